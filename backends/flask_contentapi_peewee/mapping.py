"""Maps a site's own models, whose rows are served directly and not copied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import peewee

from flask_contentapi.content import Entry

__all__ = ["ChildRows", "MappedModel", "TagRows"]


@dataclass(frozen=True)
class TagRows:
    """The tags of a mapped model's rows, in a through table.

    :param owner: the many-to-many field of the model, or the foreign key of the through table
        that points to the model.
    :param tag: the column with the tag's text, in the through table or in the table of tags.
    """

    owner: Any
    tag: peewee.Field

    @property
    def link(self) -> Any:
        """The foreign key that points to the model."""
        if isinstance(self.owner, peewee.ManyToManyField):
            return self.owner.through_model._meta.model_refs[self.owner.model][0]
        return self.owner


@dataclass(frozen=True)
class ChildRows:
    """The child objects of a mapped model's rows, each a row of another model.

    :param owner: the foreign key of the other model that points to the mapped one.
    :param columns: as for :class:`MappedModel`, for the type of the child objects.
    :param sort: the integer column that they are ordered by; None: their ids.
    """

    owner: peewee.ForeignKeyField
    columns: Mapping[str, Any] = field(default_factory=dict)
    sort: Any = None


class MappedModel:
    """One of the site's own models, whose rows are the objects of one declared type.

    The table is only read. For example::

        MappedModel(
            BlogPost,
            Post,
            {"title": Post.headline, "live": Post.status == "published", "parent": 3},
            version=Post.changed,
        )

    :param content_class: the type.
    :param model: the model; its primary key is an integer.
    :param columns: for each field of the type, the column, expression or constant that gives its
        value, or :class:`TagRows` or :class:`ChildRows`. A field that is left out has the value
        of the model's column with the same name or, if there is none, its default. A page's
        ``parent`` is the id of one of the backend's own pages, or a foreign key to a mapped model.
    :param under: for pages whose foreign key is null, the id of the backend's own page that they
        are placed under.
    :param ids_from: a number that is added to the model's ids, to make ids unique within the
        endpoint.
    :param where: the condition on the rows to serve; None: all.
    :param version: a column that every change of a row, or of what belongs to it, such as its
        tags, sets to a value higher than any in the table. True: the site's code reports every
        change with :meth:`~flask_contentapi_peewee.writing.Writer.refresh`. False: neither, so
        responses have no ``ETag`` and nothing is cached between requests.
    """

    def __init__(
        self,
        content_class: type[Entry],
        model: type[peewee.Model],
        columns: Mapping[str, Any] | None = None,
        *,
        under: int | None = None,
        ids_from: int = 0,
        where: Any = None,
        version: Any = False,
    ) -> None:
        self.content_class = content_class
        self.model = model
        self.columns = dict(columns or {})
        self.under = under
        self.ids_from = ids_from
        self.where = where
        self.version = version

    def __repr__(self) -> str:
        return f"MappedModel({self.content_class.__name__}, {self.model.__name__})"

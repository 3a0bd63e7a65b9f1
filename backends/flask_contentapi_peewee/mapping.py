"""A site's own models whose rows are served as they are, without a copy of any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import peewee

from flask_contentapi.content import Entry

__all__ = ["ChildRows", "MappedModel", "TagRows"]


@dataclass(frozen=True)
class TagRows:
    """The tags of a mapped model's rows, in a table between them and the tags.

    :param owner: the many-to-many field of the model, or the field of the table between that
        points to the model.
    :param tag: the column with the tag's text, there or in the table of tags.
    """

    owner: Any
    tag: peewee.Field

    @property
    def link(self) -> Any:
        """What points to the model."""
        if isinstance(self.owner, peewee.ManyToManyField):
            return self.owner.through_model._meta.model_refs[self.owner.model][0]
        return self.owner


@dataclass(frozen=True)
class ChildRows:
    """The child objects of a mapped model's rows, each a row of another model.

    :param owner: the field of the other model that points to the mapped one.
    :param columns: as of :class:`MappedModel`, for the type of the child objects.
    :param sort: the column of integers that they are ordered by; None: their ids.
    """

    owner: peewee.ForeignKeyField
    columns: Mapping[str, Any] = field(default_factory=dict)
    sort: Any = None


class MappedModel:
    """A model of the site's own whose rows are the objects of one declared type.

    The table is only read. For example::

        MappedModel(
            BlogPost,
            Post,
            {"title": Post.headline, "live": Post.status == "published", "parent": 3},
            version=Post.changed,
        )

    :param content_class: the type.
    :param model: the model; its primary key is an integer.
    :param columns: for fields of the type the column, the expression or the constant that is its
        value, :class:`TagRows` or :class:`ChildRows`; where a field is left out, the model's
        column of the same name, or the field's default. A page's ``parent`` is the id of a page
        of the backend's own, or a foreign key to a mapped model.
    :param under: for a page whose foreign key is null, the id of the page of the backend's own
        that it is put under.
    :param ids_from: is added to the model's ids, so that no two objects of an endpoint have the
        same one.
    :param where: which rows are served; None: all.
    :param version: a column that every change of a row, and of what belongs to it as its tags,
        gives a value higher than any in the table; True where the site's code tells of every
        change by :meth:`~flask_contentapi_peewee.writing.Writer.refresh`. False: neither;
        answers have no ``ETag`` then, and nothing is kept between requests.
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

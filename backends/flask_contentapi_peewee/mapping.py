"""A site's own models whose rows are served as they are, without a copy of any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import peewee

from flask_contentapi.content import Entry
from flask_contentapi.errors import DeclarationError
from flask_contentapi.registry import Column, ObjectType, Registry, suggest

__all__ = ["Bound", "ChildRows", "MappedModel", "TagRows", "bind"]

#: The fields of peewee whose values become each kind of value; texts are made of all.
_NUMBERS = (peewee.IntegerField, peewee.AutoField, peewee.ForeignKeyField, peewee.BooleanField)
_FIT: Mapping[str, tuple[type[peewee.Field], ...]] = {
    "integer": _NUMBERS,
    "relation": _NUMBERS,
    "boolean": _NUMBERS,
    "float": (peewee.FloatField, peewee.DecimalField, *_NUMBERS),
    "decimal": (peewee.DecimalField, *_NUMBERS),
    "date": (peewee.DateField, peewee.DateTimeField),
    "time": (peewee.TimeField,),
    "datetime": (peewee.DateTimeField,),
}


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
    def link(self) -> peewee.ForeignKeyField:
        """What points to the model."""
        if isinstance(self.owner, peewee.ManyToManyField):
            refs = self.owner.through_model._meta.model_refs[self.owner.model]
            link: peewee.ForeignKeyField = refs[0]
            return link
        return self.owner  # type: ignore[no-any-return]


@dataclass(frozen=True)
class ChildRows:
    """The child objects of a mapped model's rows, each a row of another model.

    :param owner: the field of the other model that points to the mapped one.
    :param columns: as of :class:`MappedModel`, for the type of the child objects.
    :param sort: the column that they are ordered by; None: their ids.
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
    :param model: the model.
    :param columns: for fields of the type the column, the expression or the constant that is its
        value, :class:`TagRows` or :class:`ChildRows`; where a field is left out, the model's
        column of the same name, or the field's default. A page's ``parent`` is the id of a page
        of the backend's own, or a foreign key to a mapped model.
    :param under: for a page whose foreign key is null, the id of the page of the backend's own
        that it is put under.
    :param ids_from: is added to the model's ids, so that no two objects of an endpoint have the
        same one.
    :param where: which rows are served; None: all.
    :param version: a column that every change of a row gives a higher value, in the row or in
        what belongs to it, as its tags; True where the site's code tells of every change by
        :meth:`~flask_contentapi_peewee.writing.Writer.refresh`. False: neither; answers have no
        validators then, and nothing is kept between requests.
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


class Bound:
    """A mapped model with the declared type that it stands for.

    :param mapped: the mapped model.
    :param declared: the type.
    :param others: all mapped models of the backend.
    :raises DeclarationError: if they do not fit.
    """

    def __init__(
        self, mapped: MappedModel, declared: ObjectType, others: Sequence[MappedModel]
    ) -> None:
        self.mapped = mapped
        self.declared = declared
        self.model = mapped.model
        self._others = others
        self._check_names(mapped.columns, declared)

    @property
    def identity(self) -> Any:
        """The id of the object that a row is."""
        return self.shifted(self.model._meta.primary_key, self.mapped)

    @staticmethod
    def shifted(column: Any, mapped: MappedModel) -> Any:
        """The id of the object of a mapped model whose row's id stands in a column."""
        return column + mapped.ids_from if mapped.ids_from else column

    # Values.

    def given(
        self, declared: ObjectType, column: Column, model: Any, columns: Mapping[str, Any]
    ) -> Any:
        """The column or expression that a field's value comes from, or the constant that it is.

        :param declared: the type that has the field, perhaps one of child objects.
        :param column: the field.
        :param model: the model of the rows.
        :param columns: what is named for the fields.
        """
        where = f"{self.mapped!r}: {declared.label}.{column.name}"
        if column.name in columns:
            found = columns[column.name]
        elif column.name in model._meta.fields:
            found = model._meta.fields[column.name]
        else:
            return _constant(column, None, where)
        if not isinstance(found, peewee.ColumnBase):
            return _constant(column, found, where)
        self._check_kind(column, found, where)
        return self._relation(column, found, where)

    @staticmethod
    def _check_kind(column: Column, found: Any, where: str) -> None:
        wanted = _FIT.get(column.kind.name)
        if wanted and isinstance(found, peewee.Field) and not isinstance(found, wanted):
            names = ", ".join(known.__name__ for known in wanted)
            raise DeclarationError(
                f"{where} is a {column.kind.name}, which {type(found).__name__} "
                f"{found.name} does not hold; it must be one of {names}."
            )

    def _relation(self, column: Column, found: Any, where: str) -> Any:
        """A column with the ids of rows, as the ids of the objects that they are."""
        if column.target is None or not isinstance(found, peewee.ForeignKeyField):
            return found
        mapped = self.mapped_as(found.rel_model)
        if mapped is None:
            raise DeclarationError(
                f"{where} is {found.name}, which points to {found.rel_model.__name__}, "
                "but that is not mapped to a type."
            )
        return self.shifted(found, mapped)

    def mapped_as(self, model: Any) -> MappedModel | None:
        """What a model is mapped as."""
        return next((other for other in self._others if other.model is model), None)

    # The tree.

    @cached_property
    def parent(self) -> Any:
        """What is named for a page's parent: a foreign key, or the id of a page."""
        parent = self.mapped.columns.get("parent", self.mapped.under)
        where = f"{self.mapped!r}: {self.declared.label}.parent"
        if isinstance(parent, peewee.ForeignKeyField):
            if self.mapped_as(parent.rel_model) is None:
                raise DeclarationError(
                    f"{where} points to {parent.rel_model.__name__}, which is not mapped."
                )
        elif not isinstance(parent, int):
            raise DeclarationError(
                f"{where} must be the id of a page, or a foreign key to a mapped model."
            )
        return parent

    @property
    def above(self) -> MappedModel | None:
        """The mapped model that a page's parent is a row of, if it is one."""
        parent = self.parent if self.declared.served_at.tree else None
        if not isinstance(parent, peewee.ForeignKeyField):
            return None
        return self.mapped_as(parent.rel_model)

    # What is wrong.

    def _check_names(self, columns: Mapping[str, Any], declared: ObjectType) -> None:
        for name, given in columns.items():
            where = f"{self.mapped!r}: {declared.label}.{name}"
            column = declared.columns.get(name)
            if column is None or name in ("id", "type"):
                raise DeclarationError(
                    f"{where} is no field that can be mapped.{suggest(name, declared.columns)}"
                )
            if name == "restriction":
                raise DeclarationError(
                    f"{where} cannot be mapped; restrict the page that these pages are under."
                )
            if column.child is not None and isinstance(given, ChildRows):
                self._check_names(given.columns, column.child)
            if (column.child is not None) != isinstance(given, ChildRows) or (
                column.kind.name == "tags"
            ) != isinstance(given, TagRows):
                kind = {"tags": "TagRows", "children": "ChildRows"}.get(column.kind.name)
                raise DeclarationError(f"{where} must be {kind or 'a column or a constant'}.")


def _constant(column: Column, value: Any, where: str) -> Any:
    """The stored value of a constant."""
    try:
        return column.read(value)
    except ValueError as error:
        raise DeclarationError(f"{where} {error}.") from None


def bind(mapped: Sequence[MappedModel], registry: Registry) -> list[Bound]:
    """All mapped models with the types that they stand for, parents first.

    :raises DeclarationError: if a type is not declared, or something does not fit.
    """
    by_class = {
        declared.content_class: declared
        for endpoint in registry.endpoints.values()
        for declared in endpoint.types.values()
    }
    for one in mapped:
        if one.content_class not in by_class:
            raise DeclarationError(f"{one!r}: the type is not among the declared types.")
    bound = [Bound(one, by_class[one.content_class], mapped) for one in mapped]
    return _parents_first(bound)


def _parents_first(bound: Sequence[Bound]) -> list[Bound]:
    ordered: list[Bound] = []
    waiting = list(bound)
    while waiting:
        placed = [one.mapped for one in ordered]
        ready = [one for one in waiting if one.above in (None, one.mapped, *placed)]
        if not ready:
            names = ", ".join(repr(one.mapped) for one in waiting)
            raise DeclarationError(f"{names}: the parents go round in a circle.")
        ordered += ready
        waiting = [one for one in waiting if one not in ready]
    return ordered

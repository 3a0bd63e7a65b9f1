"""Binds mapped models to the declared types that they represent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cached_property
from typing import Any

import peewee

from flask_contentapi.content import Page
from flask_contentapi.errors import DeclarationError
from flask_contentapi.hints import suggest
from flask_contentapi.registry import Registry
from flask_contentapi.types import Column, ObjectType
from flask_contentapi_peewee.fitting import (
    MANY,
    check_belongs,
    check_key,
    check_kind,
    check_options,
    check_shape,
    is_key_of,
)
from flask_contentapi_peewee.mapping import ChildRows, MappedModel, TagRows

__all__ = ["BoundModel", "bind"]

#: The fields that cannot be mapped to a column: of pages, and of other objects.
_FIXED_OF_PAGES = frozenset(("id", "type", "parent", "restriction"))
_FIXED = frozenset(("id", "type"))


class BoundModel:
    """A mapped model with the declared type that it represents.

    :param mapped: the mapped model.
    :param declared: the type.
    :param others: all mapped models of the backend.
    """

    def __init__(
        self, mapped: MappedModel, declared: ObjectType, others: Sequence[MappedModel]
    ) -> None:
        self.mapped = mapped
        self.declared = declared
        self.model = mapped.model
        self._others = others

    def check(self) -> None:
        """Checks everything that is mapped.

        :raises DeclarationError: if something does not fit.
        """
        check_key(repr(self.mapped), self.model)
        check_options(self.mapped)
        self._check_columns(self.declared, self.model, self.mapped.columns)
        if self.is_page:
            self._check_parent()

    @property
    def is_page(self) -> bool:
        """Whether the rows are pages."""
        return issubclass(self.mapped.content_class, Page)

    @property
    def models(self) -> Iterator[Any]:
        """The models that are read: its own, and those of tags and child objects."""
        yield self.model
        for given in self.mapped.columns.values():
            if isinstance(given, TagRows):
                yield from dict.fromkeys((given.link.model, given.tag.model))
            elif isinstance(given, ChildRows):
                yield given.owner.model

    @property
    def identity(self) -> Any:
        """The id of the object that a row represents."""
        return self.shifted(self.model._meta.primary_key, self.mapped)

    @staticmethod
    def shifted(column: Any, mapped: MappedModel) -> Any:
        """The id of the object of a mapped model, from a column with the id of its row."""
        return column + mapped.ids_from if mapped.ids_from else column

    # Values.

    def mapped_value(
        self, declared: ObjectType, column: Column, model: Any, columns: Mapping[str, Any]
    ) -> Any:
        """The column or expression that gives a field's value, or a constant.

        :param declared: the type that has the field, possibly one of child objects.
        :param column: the field.
        :param model: the model of the rows.
        :param columns: the mapping of the fields.
        """
        where = self._where(declared, column.name)
        found = columns.get(column.name, model._meta.fields.get(column.name))
        if not isinstance(found, peewee.ColumnBase):
            return _constant(column, found, where)
        check_belongs(where, found, model)
        if column.target is None or not isinstance(found, peewee.ForeignKeyField):
            check_kind(where, column, found)
            return found
        # Converts the ids of rows to the ids of objects.
        (target, *_) = self._mapped_as(found, column.target.served_at.name, where)
        return self.shifted(found, target)

    def _mapped_as(
        self, key: peewee.ForeignKeyField, endpoint: str, where: str
    ) -> list[MappedModel]:
        """The mappings of the model that a foreign key points to."""
        model = key.rel_model
        found = [
            other
            for other in self._others
            if other.model is model and other.content_class.endpoint == endpoint
        ]
        if not found:
            raise DeclarationError(
                f"{where} is {key.name}, which points to {model.__name__}, but that is not mapped "
                f"to a type of {endpoint}."
            )
        if not is_key_of(key, model):
            raise DeclarationError(
                f"{where} is {key.name}, which does not have the ids of {model.__name__}."
            )
        if len({other.ids_from for other in found}) > 1:
            raise DeclarationError(
                f"{where} is {key.name}, but {model.__name__} is mapped with different ids_from."
            )
        return found

    def _where(self, declared: ObjectType, name: str) -> str:
        return f"{self.mapped!r}: {declared.label}.{name}"

    # The tree.

    @property
    def parent(self) -> Any:
        """The mapping of a page's parent: a foreign key, or the id of a page."""
        return self.mapped.columns.get("parent", self.mapped.under)

    @cached_property
    def above(self) -> MappedModel | None:
        """The mapped model whose rows are the parents of pages; None if our pages are."""
        if not self.is_page or not isinstance(self.parent, peewee.ForeignKeyField):
            return None
        where = self._where(self.declared, "parent")
        found = self._mapped_as(self.parent, "pages", where)
        if len(found) > 1:
            raise DeclarationError(
                f"{where} points to {self.parent.rel_model.__name__}, which is mapped more than "
                "once."
            )
        return found[0]

    def _check_parent(self) -> None:
        where, under = self._where(self.declared, "parent"), self.mapped.under
        parent: Any = self.parent
        if isinstance(parent, peewee.ForeignKeyField):
            check_belongs(where, parent, self.model)
        elif not isinstance(parent, int) or under not in (None, parent):
            raise DeclarationError(
                f"{where} must be the id of a page of the backend's own, or a foreign key to a "
                f"mapped model, but it is {parent!r}."
            )
        if self.above is self.mapped and under is None:
            raise DeclarationError(
                f"{where} is {parent.name}, which is null for the first pages of all; give "
                "as under= the id of the page that they are below."
            )

    # Checks.

    def _check_columns(self, declared: ObjectType, model: Any, columns: Mapping[str, Any]) -> None:
        """Refuses mappings that do not fit the fields of a type."""
        fixed = _FIXED_OF_PAGES if issubclass(declared.content_class, Page) else _FIXED
        for name in columns:
            self._check_name(declared, name, fixed - {"parent"})
        for column in declared.columns.values():
            if column.name in fixed:
                continue
            if column.kind.name == "relations" and column.name in {*columns, *model._meta.fields}:
                where = self._where(declared, column.name)
                raise DeclarationError(f"{where} is a relation to many, which cannot be mapped.")
            if column.kind.name in MANY:
                self._check_many(declared, column, model, columns)
            else:
                given = columns.get(column.name)
                check_shape(self._where(declared, column.name), column, given)
                self.mapped_value(declared, column, model, columns)

    def _check_name(self, declared: ObjectType, name: str, fixed: Set[str]) -> None:
        where = self._where(declared, name)
        if name in fixed and name == "restriction":
            raise DeclarationError(
                f"{where} cannot be mapped; restrict the page that these pages are under."
            )
        if name not in declared.columns or name in fixed:
            raise DeclarationError(
                f"{where} is no field that can be mapped.{suggest(name, declared.columns)}"
            )

    def _check_many(
        self, declared: ObjectType, column: Column, model: Any, columns: Mapping[str, Any]
    ) -> None:
        """Refuses tags and child objects that do not belong to the model's rows."""
        where = self._where(declared, column.name)
        if column.name not in columns:
            return
        given = columns[column.name]
        check_shape(where, column, given)
        owner = given.link if isinstance(given, TagRows) else given.owner
        if not is_key_of(owner, model):
            raise DeclarationError(f"{where}: owner must be what points to {model.__name__}.")
        if isinstance(given, ChildRows):
            assert column.child is not None
            check_key(where, owner.model)
            if given.sort is not None:
                check_belongs(where, given.sort, owner.model)
            self._check_columns(column.child, owner.model, given.columns)
        elif given.tag.model not in (owner.model, *owner.model._meta.model_refs):
            raise DeclarationError(
                f"{where}: {given.tag.model.__name__}, which has the tags, is not what "
                f"{owner.model.__name__} points to."
            )


def _constant(column: Column, value: Any, where: str) -> Any:
    """The stored value of a constant."""
    try:
        return column.read(value)
    except ValueError as error:
        raise DeclarationError(f"{where} {error}.") from None


def bind(mapped: Sequence[MappedModel], registry: Registry) -> list[BoundModel]:
    """All mapped models with the types that they represent, parents first.

    :raises DeclarationError: if a type is not declared, or something does not fit.
    """
    by_class = {
        declared.content_class: declared
        for endpoint in registry.endpoints.values()
        for declared in endpoint.types.values()
    }
    for number, one in enumerate(mapped):
        if one.content_class not in by_class:
            raise DeclarationError(f"{one!r}: the type is not among the declared types.")
        if any(other.content_class is one.content_class for other in mapped[:number]):
            raise DeclarationError(f"{one!r}: the type is mapped to another model already.")
    bound = [BoundModel(one, by_class[one.content_class], mapped) for one in mapped]
    for each in bound:
        each.check()
    return _parents_first(bound)


def _parents_first(bound: Sequence[BoundModel]) -> list[BoundModel]:
    ordered: list[BoundModel] = []
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

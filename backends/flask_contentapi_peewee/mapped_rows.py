"""Selects the rows of a site's own model as rows of our tables, in SQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import peewee
from peewee import SQL, Value, fn

from flask_contentapi.types import Column, ObjectType
from flask_contentapi_peewee.binding import BoundModel
from flask_contentapi_peewee.columns import ALWAYS, NEVER, Clause, StoredField, microseconds
from flask_contentapi_peewee.mapping import ChildRows, MappedModel, TagRows
from flask_contentapi_peewee.names import table_name
from flask_contentapi_peewee.tables import OwnTable, Tables

__all__ = ["ABOVE", "KEY", "MappedRows"]

#: The columns with the position of a page in the tree.
_POSITION = ("id", "path_", "url_path", "access_")
#: Columns in addition to those of our tables: the model's own key, and the parent's path.
KEY, ABOVE = "key_", "above_"
#: The sort value of child objects that have none, so that they come first in every database.
LOWEST = -(2**63)


class MappedRows:
    """The rows of one mapped model.

    :param tables: our tables.
    :param bound: the model, with the type of its rows.
    """

    def __init__(self, tables: Tables, bound: BoundModel) -> None:
        self._all = tables
        self._tables = tables.endpoints[bound.declared.served_at.name]
        self._convert = tables.engine.conversion
        self._bound = bound
        self.base = self._tables.base
        self.label = bound.declared.label
        self.shift = bound.mapped.ids_from
        self.lineage = self._tables.lineage(self.label)
        #: Whether the rows of the first query are all children of the same page.
        self.begins_flat = bound.mapped.under is not None or bound.above is None
        #: The name of the query for the positions of the rows, if they are pages.
        self.positions_name = _positions_name(bound.mapped)

    @property
    def is_recursive(self) -> bool:
        """Whether rows can be below others of the same model."""
        return self._bound.above is self._bound.mapped

    def objects(self, table: OwnTable, columns: Sequence[str]) -> list[Any]:
        """Queries that together return all rows, with all fields of the type.

        :param table: the table with the columns of the result.
        :param columns: the requested columns.
        """
        if self._tables.endpoint.tree:
            return [*self._pages(table, columns)]
        values = {**self._fixed(), **self._values(table, columns)}
        return [self._select(table, values, columns)]

    def rows(self, table: OwnTable, columns: Sequence[str]) -> list[Any]:
        """Queries that return all rows as rows of one of our tables.

        :param table: the table of the endpoint, of a type, or of a field of tags or child objects.
        :param columns: the requested columns.
        """
        if table is self.base:
            return self.objects(table, columns)
        if table in self.lineage:
            return [self._select(table, self._values(table, columns), columns)]
        for lists in (self.base, *self.lineage):
            for field, many in lists.many.items():
                if many is table and field in self._bound.mapped.columns:
                    return [self._many(table, self._bound.mapped.columns[field], columns)]
        return []

    def positions(self) -> list[Any]:
        """Queries for the positions of pages in the tree. If rows can be below each other, the
        later queries refer to the union of all, which is recursive."""
        return [*self._pages(self.base, _POSITION)] if self._tables.endpoint.tree else []

    # Values.

    def _select(self, table: OwnTable, values: Mapping[str, Clause], columns: Sequence[str]) -> Any:
        query = self._bound.model.select(*_named(table, values, columns))
        where = self._bound.mapped.where
        return query if where is None else query.where(where)

    def _fixed(self) -> dict[str, Clause]:
        """The columns that do not come from the model."""
        label = self._convert.typed("key", Value(self._bound.declared.label))
        return {"type": label, "extras_": self._convert.typed("json", SQL("NULL"))}

    def _values(self, table: OwnTable, columns: Iterable[str]) -> dict[str, Clause]:
        """The values of the stored fields of a table, including the id."""
        bound = self._bound
        derived = ("id", "parent") if bound.is_page else ("id",)
        values = {
            name: self._value(bound.declared, column, bound.model, bound.mapped.columns, table)
            for name, column in table.columns.items()
            if name in columns and name not in derived
        }
        key = bound.model._meta.primary_key
        return {**values, "id": self._convert.typed("integer", bound.identity), KEY: key}

    def _value(
        self,
        declared: ObjectType,
        column: Column,
        model: Any,
        columns: Mapping[str, Any],
        table: OwnTable,
    ) -> Clause:
        field = table.fields[column.name]
        given = self._bound.mapped_value(declared, column, model, columns)
        if not isinstance(given, peewee.ColumnBase):
            return self._convert.typed(field.kind.name, self._constant(field, given))
        stored = self._convert.stored(field, given)
        empty = self._constant(field, _empty(column))
        if empty is None or not getattr(given, "null", True):
            return stored
        return self._convert.typed(field.kind.name, fn.COALESCE(stored, empty))

    def _constant(self, field: StoredField, given: Any) -> Clause:
        if given is None and field.column_name == "locale" and self._bound.is_page:
            code, sort = (self._all.locales.fields[name] for name in ("code", "sort"))
            return self._all.locales.model.select(code).order_by(sort).limit(1)
        return Value(field.db_value(given), unpack=False)

    # The tree.

    def _pages(self, table: OwnTable, columns: Sequence[str]) -> Iterator[Any]:
        """The pages under one of our pages, and those under a row of a mapped model."""
        bound, parent = self._bound, self._bound.parent
        is_key = isinstance(parent, peewee.ForeignKeyField)
        under = bound.mapped.under if is_key else parent
        if under is not None:
            above = self.base.model.alias()
            position = {name: getattr(above, self.base.fields[name].name) for name in _POSITION}
            on = position["id"] == under
            on = on & parent.is_null() if is_key else on
            # Our part of an address is quoted already. An empty slug marks its end.
            position["url_path"] = position["url_path"].concat("/")
            yield self._below(position, table, columns).join(above, on=on)
        if bound.above is not None:
            positions = peewee.Table(_positions_name(bound.above))
            position = {name: getattr(positions.c, name) for name in _POSITION}
            on = position["id"] == self._convert.object_id(bound.shifted(parent, bound.above))
            yield self._below(position, table, columns).join(positions, on=on)

    def _below(self, above: Mapping[str, Clause], table: OwnTable, columns: Sequence[str]) -> Any:
        """The pages below others.

        :param above: the positions of the others.
        :param table: the table with the columns of the result.
        :param columns: the requested columns.
        """
        typed = self._convert.typed
        slug = self._values(self.base, ["slug"])["slug"]
        address = above["url_path"].concat(slug).concat("/")
        values = {
            **self._fixed(),
            **self._values(table, columns),
            ABOVE: typed("path", above["path_"]),
            "parent": typed("relation", above["id"]),
            "path_": typed("path", above["path_"].concat(self._convert.step(self._bound.identity))),
            "url_path": self._convert.address(address),
            "url_hash_": typed("key", fn.MD5(address)),
            "access_": typed("integer", above["access_"]),
            "is_restricted_": typed("boolean", SQL("FALSE")),
            **self._visible(),
        }
        leads_there = slug.not_in(["", ".", ".."]) & ~self._convert.has(slug, Value("/"))
        leads_there &= self._convert.is_legible(slug)
        return self._select(table, values, columns).where(leads_there)

    def _visible(self) -> dict[str, Clause]:
        live = self._values(self.base, ["live"])["live"]
        moments = {
            "visible_from_": self._moment("go_live_at", ALWAYS, NEVER),
            "visible_until_": self._moment("expires_at", NEVER, ALWAYS),
        }
        return {
            name: self._convert.typed("integer", peewee.Case(None, [(live, moment)], NEVER))
            for name, moment in moments.items()
        }

    def _moment(self, column: str, none: int, unread: int) -> Clause:
        """A moment in a page's row as a number.

        :param none: the number if there is none.
        :param unread: the number if it cannot be read, so that the page is hidden.
        """
        bound = self._bound
        declared = bound.declared
        given = bound.mapped_value(
            declared, declared.columns[column], bound.model, bound.mapped.columns
        )
        if isinstance(given, peewee.ColumnBase):
            moment = fn.COALESCE(self._convert.moment(given), unread)
            return peewee.Case(None, [(self._convert.is_null(given), none)], moment)
        return Value(none if given is None else microseconds(given))

    # Tags and child objects.

    def _many(self, table: OwnTable, given: Any, columns: Sequence[str]) -> Any:
        if isinstance(given, TagRows):
            return self._tags(given, table, columns)
        return self._children(given, table, columns)

    def _tags(self, given: TagRows, table: OwnTable, columns: Sequence[str]) -> Any:
        link = given.link
        values = {
            "id": self._convert.typed("integer", self._owner(link)),
            "tag": self._convert.stored(table.fields["tag"], given.tag),
        }
        query = link.model.select(*_named(table, values, columns))
        if given.tag.model is not link.model:
            query = query.join(given.tag.model)
        return query.where(self._convert.is_legible(given.tag)).distinct()

    def _owner(self, key: Any) -> Clause:
        """The id of the object that owns tags or a child object."""
        return self._convert.object_id(self._bound.shifted(key, self._bound.mapped))

    def _children(self, given: ChildRows, table: OwnTable, columns: Sequence[str]) -> Any:
        child, model = table.child, given.owner.model
        assert child is not None
        key = model._meta.primary_key
        owner = self._owner(given.owner)
        sort = key if given.sort is None else fn.COALESCE(given.sort, LOWEST)
        ids = {"id": key, "owner_": owner, "sort_": sort}
        values = {name: self._convert.typed("integer", column) for name, column in ids.items()}
        for name, column in table.columns.items():
            if name not in values and name in columns:
                values[name] = self._value(child, column, model, given.columns, table)
        return model.select(*_named(table, values, columns))


def _empty(column: Column) -> Any:
    """The stored value if a row has none."""
    if column.kind.name == "boolean":
        # A missing boolean is False, so that above all no page is live by accident.
        return False
    return column.kind.empty() if column.field.required else column.default()


def _positions_name(mapped: MappedModel) -> str:
    label = mapped.content_class.type_label()
    return table_name(f"{label.replace('.', '_').lower()}_places")


def _named(table: OwnTable, values: Mapping[str, Clause], columns: Sequence[str]) -> list[Clause]:
    """Values with the names of a table's columns as aliases."""
    return [values[name].alias(table.fields[name].column_name) for name in columns]

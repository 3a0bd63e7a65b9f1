"""The requested columns, and how rows of the database become their values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from peewee import SQL

from flask_contentapi.query import Row
from flask_contentapi_peewee.columns import Clause, StoredField
from flask_contentapi_peewee.decoding import read_array
from flask_contentapi_peewee.engines import Engine
from flask_contentapi_peewee.tables import EndpointTables, OwnTable

__all__ = ["Detail", "Projection", "project"]


class Many(NamedTuple):
    """A field whose values are rows of another table.

    :param position: its index among the requested columns.
    :param table: that table.
    """

    position: int
    table: OwnTable


@dataclass(frozen=True, slots=True)
class Projection:
    """The requested columns, and how rows of the database become their values.

    :param nodes: the selected columns.
    :param decoders: the functions that convert values stored in another form, by index.
    :param many: the fields that are filled by further statements, in order.
    """

    nodes: tuple[Clause, ...]
    decoders: tuple[tuple[int, Callable[[Any], Any]], ...]
    many: tuple[Many, ...]

    def rows(
        self, found: Sequence[Sequence[Any]], fillings: Sequence[Mapping[int, tuple[Any, ...]]]
    ) -> list[Row]:
        """The rows.

        :param found: the rows of the database: the id, the selected columns, and the stamp.
        :param fillings: for each of :attr:`many` the values by the object's id.
        """
        if self.decoders or self.many:
            return [self._row(row, fillings) for row in found]
        return [tuple(row[1:-1]) for row in found]

    def _row(self, found: Sequence[Any], fillings: Sequence[Mapping[int, Any]]) -> Row:
        row = [*found[1:-1]]
        for position, decode in self.decoders:
            if row[position] is not None:
                row[position] = decode(row[position])
        for many, filling in zip(self.many, fillings, strict=True):
            row.insert(many.position, filling.get(found[0], ()))
        return tuple(row)


def project(tables: Sequence[OwnTable], columns: Sequence[str]) -> Projection:
    """The projection for some columns of some tables."""
    nodes: list[StoredField] = []
    many = []
    for position, column in enumerate(columns):
        table = next(table for table in tables if table.has(column))
        if column in table.fields:
            nodes.append(table.fields[column])
        else:
            many.append(Many(position, table.many[column]))
    decoders = tuple((n, field.decode) for n, field in enumerate(nodes) if not field.is_plain)
    return Projection(tuple(nodes), decoders, tuple(many))


class Detail:
    """The columns of one object whose type is not known in advance.

    The columns of each type's own table are one JSON array, so that one statement is enough.

    :param tables: the tables of the endpoint.
    """

    def __init__(self, tables: EndpointTables) -> None:
        self._tables = tables
        self._names = [*tables.base.fields]
        self._own = {
            label: [name for name in table.fields if name != "id"]
            for label, table in tables.own.items()
        }
        self._label = self._names.index("type") + 1

    def nodes(self, part: EndpointTables, engine: Engine, wanted: SQL) -> list[Clause]:
        """The selected columns.

        :param part: the tables that are queried.
        :param wanted: the parameter for the object's id.
        """
        base = (part.base.fields[name] for name in self._names)
        return [*base, *(part.array(label, engine, wanted) for label in self._own)]

    def tables(self, label: str) -> list[OwnTable]:
        """The tables of the objects of a type."""
        return [self._tables.base, *self._tables.lineage(label)]

    def label(self, found: Sequence[Any]) -> str:
        """The type of the object.

        :param found: the row of the database: the id, the selected columns, and the stamp.
        """
        label: str = found[self._label]
        return label

    def values(self, found: Sequence[Any], columns: Iterable[str]) -> dict[str, Any]:
        """The values of some columns, as far as they are in the row itself."""
        stored = dict(zip(self._names, found[1:], strict=False))
        fields = dict(self._tables.base.fields)
        arrays = found[len(self._names) + 1 : -1]
        for (label, names), array in zip(self._own.items(), arrays, strict=True):
            if array:
                stored.update(zip(names, read_array(array), strict=True))
                fields.update(self._tables.own[label].fields)
        return {name: fields[name].python_value(stored[name]) for name in columns if name in fields}

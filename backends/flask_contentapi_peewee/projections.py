"""The columns that are asked for, and how what the database gives becomes their values."""

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

    :param place: where it stands among the columns that are asked for.
    :param table: that table.
    """

    place: int
    table: OwnTable


@dataclass(frozen=True, slots=True)
class Projection:
    """The columns that are asked for, and how what the database gives becomes their values.

    :param nodes: what is selected.
    :param decoders: for those of them that are stored in another form, by place, what makes the
        value.
    :param many: the fields that are filled by further statements, in order.
    """

    nodes: tuple[Clause, ...]
    decoders: tuple[tuple[int, Callable[[Any], Any]], ...]
    many: tuple[Many, ...]

    def rows(
        self, found: Sequence[Sequence[Any]], fillings: Sequence[Mapping[int, tuple[Any, ...]]]
    ) -> list[Row]:
        """The rows.

        :param found: what the database gave: the id, what was selected, and the stamp.
        :param fillings: for each of :attr:`many` the values by the object's id.
        """
        if self.decoders or self.many:
            return [self._row(row, fillings) for row in found]
        return [tuple(row[1:-1]) for row in found]

    def _row(self, found: Sequence[Any], fillings: Sequence[Mapping[int, Any]]) -> Row:
        row = [*found[1:-1]]
        for place, decode in self.decoders:
            if row[place] is not None:
                row[place] = decode(row[place])
        for many, filling in zip(self.many, fillings, strict=True):
            row.insert(many.place, filling.get(found[0], ()))
        return tuple(row)


def project(tables: Sequence[OwnTable], columns: Sequence[str]) -> Projection:
    """How to ask for some columns that are in some tables."""
    nodes: list[StoredField] = []
    many = []
    for place, column in enumerate(columns):
        table = next(table for table in tables if table.has(column))
        if column in table.fields:
            nodes.append(table.fields[column])
        else:
            many.append(Many(place, table.many[column]))
    decoders = tuple((n, field.decode) for n, field in enumerate(nodes) if not field.is_plain)
    return Projection(tuple(nodes), decoders, tuple(many))


class Detail:
    """The columns of one object whose type is not known before.

    Those of the types' own tables come as one JSON array a table, so that one statement does.

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
        """What is selected.

        :param part: the tables that are asked.
        :param wanted: the place of the object's id.
        """
        base = (part.base.fields[name] for name in self._names)
        return [*base, *(part.array(label, engine, wanted) for label in self._own)]

    def tables(self, label: str) -> list[OwnTable]:
        """The tables of the objects of a type."""
        return [self._tables.base, *self._tables.lineage(label)]

    def label(self, found: Sequence[Any]) -> str:
        """The type of the object.

        :param found: what the database gave: the id, what was selected, and the stamp.
        """
        label: str = found[self._label]
        return label

    def values(self, found: Sequence[Any], columns: Iterable[str]) -> dict[str, Any]:
        """The values of those of some columns that stand in the row itself."""
        stored = dict(zip(self._names, found[1:], strict=False))
        fields = dict(self._tables.base.fields)
        arrays = found[len(self._names) + 1 : -1]
        for (label, names), array in zip(self._own.items(), arrays, strict=True):
            if array:
                stored.update(zip(names, read_array(array), strict=True))
                fields.update(self._tables.own[label].fields)
        return {name: fields[name].python_value(stored[name]) for name in columns if name in fields}

"""The layout of the tables: the types they were made for, and where each type's fields are.

It is stored in the state table as JSON: for each table the columns with the kinds of their values,
and for each type the searched fields and the table of each field. The endpoint's fields of objects
of undeclared types are under the name of the endpoint.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import orjson
import peewee

from flask_contentapi import kinds
from flask_contentapi.types import ObjectType
from flask_contentapi_peewee.tables import OwnTable, Tables

__all__ = [
    "CHILDREN",
    "RELATIONS",
    "TAGS",
    "Location",
    "Locations",
    "TableLayout",
    "all_tables",
    "content_of_table",
    "kind_named",
    "kind_of_column",
    "layout_of",
    "name_of",
    "stored_layout",
    "tables_in",
]

#: The keys of a stored layout that are about types.
SEARCHED, PLACES, LEFT, GONE, ROWS = "searched", "places", "left", "gone", "rows"
#: The kinds of fields that have their own tables.
TAGS, RELATIONS, CHILDREN = "tags", "relations", "children"


class Location(NamedTuple):
    """Where a field of a type is stored.

    :param table: the name of the table.
    :param kind: the kind of its values; :data:`TAGS`, :data:`RELATIONS` and :data:`CHILDREN` fill a
        table.
    :param fields: the fields of its child objects.
    """

    table: str
    kind: str
    fields: tuple[str, ...] = ()

    @property
    def has_own_table(self) -> bool:
        """Whether the table is the field's own."""
        return self.kind in (TAGS, RELATIONS, CHILDREN)


#: Where each field is stored.
Locations = dict[str, Location]


class TableLayout:
    """The layout of the tables.

    :ivar columns: for each table its columns, each with the kind of its values.
    :ivar searched: for each type the searched fields.
    :ivar locations: for each type, and each endpoint, where its fields are.
    :ivar rows: for each type, and each endpoint, the tables in which an object has a row.
    :ivar former: for each type where its former fields are.
    :ivar undeclared: for each type that is no longer declared, where its ``id`` is, and where its
        fields were that are now in the extras.
    """

    def __init__(self) -> None:
        self.columns: dict[str, dict[str, str]] = {}
        self.searched: dict[str, str] = {}
        self.locations: dict[str, Locations] = {}
        self.rows: dict[str, list[str]] = {}
        self.former: dict[str, Locations] = {}
        self.undeclared: dict[str, Locations] = {}

    @staticmethod
    def read(stored: Mapping[str, Any]) -> TableLayout:
        """The layout as stored in the state table."""
        layout = TableLayout()
        about = (SEARCHED, PLACES, LEFT, GONE, ROWS)
        layout.columns = {name: dict(c) for name, c in stored.items() if name not in about}
        layout.searched = dict(stored.get(SEARCHED, {}))
        layout.locations = _read_locations(stored.get(PLACES, {}))
        layout.former = _read_locations(stored.get(LEFT, {}))
        layout.undeclared = _read_locations(stored.get(GONE, {}))
        layout.rows = dict(stored.get(ROWS, {}))
        return layout

    def write(self) -> dict[str, Any]:
        """The layout in the form for the state table."""
        known = {PLACES: self.locations, LEFT: self.former, GONE: self.undeclared}
        locations = {
            name: {n: _write_locations(s) for n, s in at.items()} for name, at in known.items()
        }
        return {**self.columns, SEARCHED: self.searched, ROWS: self.rows, **locations}

    def tables_of_type(self, label: str) -> set[str]:
        """The names of the tables with values of objects of a type."""
        known = [at.get(label, {}) for at in (self.locations, self.former, self.undeclared)]
        return {*self.rows.get(label, ())}.union(*(tables_in(at.values()) for at in known))

    @property
    def base_tables(self) -> set[str]:
        """The names of the tables of endpoints, which have a table of words each."""
        return {locations["id"].table for locations in self.locations.values()}

    def used_tables(self) -> set[str]:
        """The names of the tables that are used."""
        known = (*self.locations.values(), *self.former.values(), *self.undeclared.values())
        rows = {table for tables in self.rows.values() for table in tables}
        return rows | {location.table for locations in known for location in locations.values()}


def _write_locations(locations: Locations) -> dict[str, list[Any]]:
    return {field: [*location[:2], [*location.fields]] for field, location in locations.items()}


def _read_locations(stored: Mapping[str, Mapping[str, Any]]) -> dict[str, Locations]:
    return {
        label: {
            field: Location(table, kind, tuple(inside))
            for field, (table, kind, inside) in fields.items()
        }
        for label, fields in stored.items()
    }


def stored_layout(tables: Tables, database: peewee.Database) -> TableLayout:
    """The layout in the state table."""
    return TableLayout.read(orjson.loads(tables.read_state("layout", database) or "{}"))


def layout_of(tables: Tables) -> TableLayout:
    """The layout of the tables of the declared types."""
    layout = TableLayout()
    layout.columns = {
        name_of(table): {c: kind_of_column(table, c) for c in table.fields}
        for table in all_tables(tables)
    }
    for name, endpoint in tables.endpoints.items():
        layout.locations[name] = _locations_of(endpoint.endpoint.base, [endpoint.base])
        layout.rows[name] = [name_of(endpoint.base)]
        layout.searched[name] = _searched_fields(endpoint.endpoint.base)
        for label, declared in endpoint.endpoint.types.items():
            own = [endpoint.base, *endpoint.lineage(label)]
            layout.locations[label] = _locations_of(declared, own)
            layout.rows[label] = [name_of(table) for table in own]
            layout.searched[label] = _searched_fields(declared)
    return layout


def _searched_fields(declared: ObjectType) -> str:
    return ",".join(column.name for column in declared.searched)


def _locations_of(declared: ObjectType, tables: Iterable[OwnTable]) -> Locations:
    locations: Locations = {}
    for table in tables:
        for column in table.columns:
            locations.setdefault(column, Location(name_of(table), kind_of_column(table, column)))
        for field, many in table.many.items():
            kind = content_of_table(many.fields)
            fields = tuple(name for name in many.columns if name != "id" and kind == CHILDREN)
            locations.setdefault(field, Location(name_of(many), kind, fields))
    return {field: locations[field] for field in declared.columns}


def all_tables(tables: Tables) -> Iterator[OwnTable]:
    """The tables of all objects, and of their tags, targets and child objects."""
    for endpoint in tables.endpoints.values():
        for table in endpoint.all:
            yield from (table, *table.many.values())


def content_of_table(columns: Collection[str]) -> str:
    """What a table with some columns holds: child objects, a relation to many, or tags."""
    return CHILDREN if "owner_" in columns else RELATIONS if "target_" in columns else TAGS


def name_of(table: OwnTable) -> str:
    """The name of a table in the database."""
    return str(table.model._meta.table_name)


def tables_in(locations: Iterable[Location]) -> set[str]:
    """The tables of some fields."""
    return {location.table for location in locations}


def kind_of_column(table: OwnTable, column: str) -> str:
    """The kind of a column, as a layout names it."""
    kind = table.fields[column].kind
    places = getattr(kind, "places", None)
    return kind.name if places is None else f"{kind.name}({places})"


def kind_named(text: str) -> kinds.Kind:
    """The kind that a layout names."""
    name, _, places = text.rstrip(")").partition("(")
    if name == "decimal":
        return kinds.Decimal(int(places) if places else None)
    return next(kind for kind in _KINDS if kind.name == name)()


_KINDS = (
    kinds.Blocks,
    kinds.Boolean,
    kinds.Date,
    kinds.DateTime,
    kinds.Float,
    kinds.Integer,
    kinds.Json,
    kinds.Relation,
    kinds.Relations,
    kinds.Text,
    kinds.Time,
)

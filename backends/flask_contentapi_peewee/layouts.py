"""The layout of the tables: what they were made for, and where each type's fields stand in them.

It is kept in the state, as JSON: for each table its columns with the kinds of their values, and
for each type what is searched, and in which table each of its fields stands. What objects of types
that are not declared have of the endpoint's fields is kept under the endpoint's name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import peewee

from flask_contentapi import kinds
from flask_contentapi.content import Content
from flask_contentapi.registry import ObjectType
from flask_contentapi_peewee.tables import (
    DERIVED,
    EndpointTables,
    OwnTable,
    Tables,
    table_name,
)

__all__ = [
    "CHILDREN",
    "TAGS",
    "Layout",
    "Stand",
    "all_tables",
    "kind_named",
    "kind_of_column",
    "layout_of",
    "name_of",
]

#: The entries of a layout that are about types.
SEARCHED, PLACES, LEFT, ROWS = "searched", "places", "left", "rows"
#: The kinds of fields that have tables of their own.
TAGS, CHILDREN = "tags", "children"


class Stand(NamedTuple):
    """Where a field of a type stands.

    :param table: the name of the table.
    :param kind: the kind of its values; :data:`TAGS` and :data:`CHILDREN` fill a table.
    :param fields: those of its child objects.
    """

    table: str
    kind: str
    fields: tuple[str, ...] = ()

    @property
    def fills(self) -> bool:
        """Whether the table is the field's own."""
        return self.kind in (TAGS, CHILDREN)


#: For each field where it stands.
Stands = dict[str, Stand]


class Layout:
    """What is known of the tables.

    :ivar columns: for each table its columns, each with the kind of its values.
    :ivar searched: for each type what is searched.
    :ivar places: for each type, and each endpoint, where its fields stand.
    :ivar rows: for each type, and each endpoint, the tables that an object has a row in.
    :ivar left: for each type where fields stand that it has had.
    :ivar mended: the types of which objects may not stand where they are looked for.
    """

    def __init__(self) -> None:
        self.columns: dict[str, dict[str, str]] = {}
        self.searched: dict[str, str] = {}
        self.places: dict[str, Stands] = {}
        self.rows: dict[str, list[str]] = {}
        self.left: dict[str, Stands] = {}
        self.mended: set[str] = set()

    @staticmethod
    def read(stored: Mapping[str, Any], tables: Tables, database: peewee.Database) -> Layout:
        """The layout that the state has.

        :param tables: those of the declared types, which tell what an older one leaves out.
        :param database: where to look for the rest.
        """
        layout = Layout()
        about = (SEARCHED, PLACES, LEFT, ROWS)
        layout.columns = {name: dict(c) for name, c in stored.items() if name not in about}
        layout.searched = dict(stored.get(SEARCHED, {}))
        layout.places = _stands(stored.get(PLACES, {}))
        layout.left = _stands(stored.get(LEFT, {}))
        layout.rows = dict(stored.get(ROWS, {}))
        for endpoint in tables.endpoints.values():
            known = name_of(endpoint.base) in layout.columns
            if known and endpoint.endpoint.name not in layout.places:
                others = [other for other in tables.endpoints.values() if other is not endpoint]
                _Guess(layout, endpoint, others, database).make()
        return layout

    def write(self) -> dict[str, Any]:
        """The layout as the state has it."""
        places, left = ({n: _lists(s) for n, s in at.items()} for at in (self.places, self.left))
        about = {SEARCHED: self.searched, PLACES: places, LEFT: left, ROWS: self.rows}
        return {**self.columns, **about}

    def used(self) -> set[str]:
        """The names of the tables in which something stands."""
        known = (*self.places.values(), *self.left.values())
        rows = {table for tables in self.rows.values() for table in tables}
        return rows | {stand.table for stands in known for stand in stands.values()}


def _lists(stands: Stands) -> dict[str, list[Any]]:
    return {field: [*stand[:2], [*stand.fields]] for field, stand in stands.items()}


def _stands(stored: Mapping[str, Mapping[str, Any]]) -> dict[str, Stands]:
    return {
        label: {
            field: Stand(table, kind, tuple(inside))
            for field, (table, kind, inside) in fields.items()
        }
        for label, fields in stored.items()
    }


def layout_of(tables: Tables) -> Layout:
    """The layout of the tables of the declared types."""
    layout = Layout()
    layout.columns = {
        name_of(table): {c: kind_of_column(table, c) for c in table.fields}
        for table in all_tables(tables)
    }
    for name, endpoint in tables.endpoints.items():
        layout.places[name] = _places(endpoint.endpoint.base, [endpoint.base])
        layout.rows[name] = [name_of(endpoint.base)]
        layout.searched[name] = _searched(endpoint.endpoint.base)
        for label, declared in endpoint.endpoint.types.items():
            own = [endpoint.base, *endpoint.lineage(label)]
            layout.places[label] = _places(declared, own)
            layout.rows[label] = [name_of(table) for table in own]
            layout.searched[label] = _searched(declared)
    return layout


def _searched(declared: ObjectType) -> str:
    return ",".join(column.name for column in declared.searched)


def _places(declared: ObjectType, tables: Iterable[OwnTable]) -> Stands:
    stands: Stands = {}
    for table in tables:
        for column in table.columns:
            stands.setdefault(column, Stand(name_of(table), kind_of_column(table, column)))
        for field, many in table.many.items():
            fields = tuple(name for name in many.columns if name != "id")
            kind = CHILDREN if many.child else TAGS
            stands.setdefault(field, Stand(name_of(many), kind, fields))
    return {field: stands[field] for field in declared.columns}


def all_tables(tables: Tables) -> Iterator[OwnTable]:
    """The tables of all objects, and of their tags and child objects."""
    for endpoint in tables.endpoints.values():
        for table in endpoint.all:
            yield from (table, *table.many.values())


def name_of(table: OwnTable) -> str:
    """What a table is called in the database."""
    return str(table.model._meta.table_name)


def kind_of_column(table: OwnTable, column: str) -> str:
    """What a layout says of a column."""
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
    kinds.Text,
    kinds.Time,
)


class _Guess:
    """Finds out where fields stand by the names of tables, where a layout does not say it.

    :param layout: the layout, which is completed.
    :param tables: those of the endpoint that it leaves out.
    :param others: those of the other endpoints.
    :param database: where to look for objects.
    """

    def __init__(
        self,
        layout: Layout,
        tables: EndpointTables,
        others: Iterable[EndpointTables],
        database: peewee.Database,
    ) -> None:
        self._layout = layout
        self._elsewhere: list[Collection[str]] = []
        for other in others:
            self._elsewhere.append(other.endpoint.types)
            if name_of(other.base) in layout.columns:
                raw = peewee.Table(name_of(other.base)).bind(database)
                self._elsewhere.append([t for (t,) in raw.select(raw.c.type).distinct().tuples()])
        self._tables = tables
        self._endpoint = tables.endpoint
        self._raw = peewee.Table(name_of(tables.base)).bind(database)

    def make(self) -> None:
        """Puts into the layout where the fields stand."""
        name = self._endpoint.name
        self._layout.places[name] = self._among([name], None, name)
        stored = self._stored(self._raw.c.type.is_null(False))
        for label in self._layout.searched:
            if label not in self._layout.places:
                self._add(label, label in stored)
        besides = self._stored(self._raw.c.extras_.is_null(False))
        self._layout.mended |= besides & self._endpoint.types.keys() & self._layout.places.keys()

    def _add(self, label: str, is_stored: bool) -> None:
        declared = self._endpoint.types.get(label)
        names = [self._endpoint.name, _own(label)]
        if declared is not None:
            bases = declared.content_class.__mro__
            names += [_own(base.type_label()) for base in bases if issubclass(base, Content)]
        names += [_own(other) for other in self._layout.searched if self._has_rows(other, label)]
        if declared is not None or is_stored:
            self._layout.places[label] = self._among(names, declared, label)

    def _has_rows(self, other: str, label: str) -> bool:
        """Whether objects of a type have rows in the table of another one of the endpoint."""
        table = table_name(_own(other))
        elsewhere = any(other in known for known in self._elsewhere)
        if elsewhere or table not in self._layout.columns:
            return False
        raw, rows = self._raw, peewee.Table(table)
        query = raw.select(raw.c.id).join(rows, on=raw.c.id == rows.c.id)
        return bool([*query.where(raw.c.type == label).limit(1).tuples()])

    def _stored(self, condition: Any) -> set[str]:
        """The labels of the types of which there are some objects."""
        raw = self._raw
        return {label for (label,) in raw.select(raw.c.type).where(condition).distinct().tuples()}

    def _among(self, names: Iterable[str], declared: ObjectType | None, label: str) -> Stands:
        """Where the fields of a type stand in some tables; all, if it is not declared."""
        stands: Stands = {}
        known = {table_name(name): name for name in names}
        self._layout.rows[label] = [table for table in known if table in self._layout.columns]
        for name in known.values():
            for field, stand in self._in(name, declared):
                stands.setdefault(field, stand)
        if declared is None:
            return stands
        left = {field: stand for field, stand in stands.items() if field not in declared.columns}
        if left:
            self._layout.left[label] = left
        return {field: stand for field, stand in stands.items() if field in declared.columns}

    def _in(self, name: str, declared: ObjectType | None) -> Iterator[tuple[str, Stand]]:
        table, tables = table_name(name), self._layout.columns
        columns = tables.get(table)
        if columns is None:
            return
        for column, kind in _columns(columns):
            yield column, Stand(table, kind)
        fields = dict.fromkeys(declared.columns if declared else ())
        fields |= {other[len(table) + 1 :]: None for other in tables if other.startswith(table)}
        for field in fields:
            many = table_name(f"{name}_{field}")
            inside = tables.get(many, {})
            if "owner_" in inside:
                named = tuple(c for c, _ in _columns(inside) if c not in ("id", "owner_", "sort_"))
                yield field, Stand(many, CHILDREN, named)
            elif inside.keys() == {"id", "tag"}:
                yield field, Stand(many, TAGS)


def _columns(known: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The fields among the columns of a table; what was put aside is called after what it was."""
    for column, kind in known.items():
        if column not in DERIVED and column.partition("__")[0] not in known.keys() - {column}:
            yield column, kind


def _own(label: str) -> str:
    """What the table of a type is named after."""
    return label.replace(".", "_").lower()

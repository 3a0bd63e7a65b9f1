"""Tables that follow the declared types when those change; nothing that is stored is lost.

What the tables were made for is kept in the state as the *layout*: for each table its columns
with the kinds of their values, and for each type what is searched. A column that is declared no
longer stays in its table, and one whose kind changes stays beside the new one.

MariaDB changes tables outside of transactions, so that a migration can be interrupted half-way.
The next one goes on with it: the layout is written last, and what is in the database although the
layout does not have it yet is left over from an earlier attempt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, count
from typing import Any, NamedTuple

import peewee
from playhouse.migrate import SchemaMigrator, migrate

from flask_contentapi import kinds
from flask_contentapi.errors import ContentError
from flask_contentapi.records import Place
from flask_contentapi.registry import Column
from flask_contentapi_peewee.columns import stored_field
from flask_contentapi_peewee.tables import EndpointTables, OwnTable, Tables

__all__ = ["Migration", "layout_of"]

#: For each table its columns, each with the kind of its values.
Layout = dict[str, dict[str, str]]
#: The entry of a layout that says what is searched.
SEARCHED = "searched"


def layout_of(tables: Tables) -> Layout:
    """The layout of the tables of the declared types."""
    layout: Layout = {
        _name(table): {c: _kind(table, c) for c in table.fields} for table in _all_tables(tables)
    }
    layout[SEARCHED] = {
        label: ",".join(column.name for column in declared.searched)
        for endpoint in tables.endpoints.values()
        for label, declared in endpoint.endpoint.types.items()
    }
    return layout


def _all_tables(tables: Tables) -> Iterator[OwnTable]:
    for endpoint in tables.endpoints.values():
        for table in endpoint.all:
            yield from (table, *table.many.values())


def _name(table: OwnTable) -> str:
    return str(table.model._meta.table_name)


def _kind(table: OwnTable, column: str) -> str:
    kind = table.fields[column].kind
    places = getattr(kind, "places", None)
    return kind.name if places is None else f"{kind.name}({places})"


def _kind_named(text: str) -> kinds.Kind:
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


class Change(NamedTuple):
    """A column whose values get another kind.

    :param table: its table.
    :param column: its name.
    :param kind: what the layout says of it.
    :param kept: what the old column is called beside the new one.
    """

    table: OwnTable
    column: str
    kind: str
    kept: str

    @property
    def declared(self) -> Column:
        """The field that is declared."""
        return self.table.columns[self.column]


class Migration:
    """What has to be done so that the tables are those of the declared types.

    :param tables: the tables of the declared types.
    :param layout: the layout that they have in the database.
    """

    def __init__(self, tables: Tables, layout: Layout) -> None:
        self._tables = tables
        self._database = tables.engine.database
        self._layout = layout
        self._wanted = layout_of(tables)
        known = [table for table in _all_tables(tables) if _name(table) in layout]
        self._created = [table for table in _all_tables(tables) if _name(table) not in layout]
        self._added = [
            (table, column)
            for table in known
            for column in table.fields
            if column not in layout[_name(table)]
        ]
        self._changed = [
            _change(table, column, layout[_name(table)])
            for table in known
            for column in table.fields
            if layout[_name(table)].get(column) not in (None, _kind(table, column))
        ]
        searched = layout.get(SEARCHED, {})
        self._searched = {
            label: columns
            for label, columns in self._wanted[SEARCHED].items()
            if label in searched and searched[label] != columns
        }

    def steps(self) -> Iterator[str]:
        """What is to be done, each in a sentence."""
        for table in self._created:
            yield f"The table {_name(table)} is new."
        for table, column in self._added:
            yield f"{_name(table)} gets the column {column} ({_kind(table, column)})."
        for change in self._changed:
            yield (
                f"{_name(change.table)}.{change.column} becomes {_kind(*change[:2])}; "
                f"it was {change.kind}, which is kept as {change.kept}."
            )
        for label, columns in self._searched.items():
            yield f"Of {label} other fields are searched: {columns or 'none besides the title'}."

    def left_over(self) -> Iterator[str]:
        """What is in the database that no type declares any longer, each in a sentence."""
        for name, columns in self._layout.items():
            wanted = self._wanted.get(name)
            if wanted is None:
                yield f"The table {name} belongs to no declared type; it stays as it is."
            elif name != SEARCHED:
                for column in sorted(columns.keys() - wanted.keys()):
                    yield f"The column {name}.{column} is not declared; it stays as it is."

    @property
    def layout(self) -> Layout:
        """The layout afterwards; what is left over is part of it."""
        kept = {name: dict(columns) for name, columns in self._layout.items()}
        for change in self._changed:
            kept[_name(change.table)][change.kept] = change.kind
        for name, columns in self._wanted.items():
            kept.setdefault(name, {}).update(columns)
        return kept

    @property
    def reindexed(self) -> list[str]:
        """The labels of the types whose objects are found by other words than before."""
        return sorted(self._searched)

    # Doing it.

    def run(self) -> None:
        """Changes the tables.

        :raises ContentError: if values cannot be taken over; nothing is changed then.
        """
        self._check()
        for table in self._created:
            self._tables.engine.drop_table(_name(table))
            table.model.create_table()
        for endpoint in self._tables.endpoints.values():
            for table in endpoint.own.values():
                if table in self._created:
                    self._fill(endpoint, table)
        for table, column in self._added:
            self._add(table, column)
        for change in self._changed:
            self._convert(change)
        touched = [*(table for table, _ in self._added), *(c.table for c in self._changed)]
        for table in dict.fromkeys(touched):
            self._index(table)

    def _check(self) -> None:
        """Looks for required fields that have no value, and for values that do not fit."""
        problems = []
        for table, column in self._added:
            declared = table.columns.get(column)
            if declared is not None and declared.field.required and _rows(table, "id"):
                message = "is required, but what is stored has none; give it a load_default"
                problems.append(_place(table).problem(column, message))
        for change in self._changed:
            for identity, value in self._old_values(change):
                try:
                    change.declared.read(value)
                except ValueError as error:
                    place = _place(change.table, identity)
                    problems.append(place.problem(change.column, f"{value!r} {error}"))
        if problems:
            raise ContentError(problems)

    def _old_values(self, change: Change) -> Iterator[tuple[int, Any]]:
        """The values of a column as records have them, by the row's id."""
        kind = _kind_named(change.kind)
        field = stored_field(kind, self._tables.engine.sql_types)
        column = change.table.fields[change.column].column_name
        renamed = change.kept in self._columns(change.table)
        for identity, stored in _rows(change.table, "id", change.kept if renamed else column):
            if stored is not None:
                yield identity, kind.write(field.decode(stored))

    def _fill(self, endpoint: EndpointTables, table: OwnTable) -> None:
        """Puts a row into a new table for each object that is to have one."""
        labels = [name for name in endpoint.endpoint.types if table in endpoint.lineage(name)]
        base = endpoint.base
        identities = base.model.select(base.fields["id"]).where(base.fields["type"].in_(labels))
        table.model.insert_from(identities, [table.fields["id"]]).execute()
        for name, column in table.columns.items():
            self._set_default(table, name, column)

    def _set_default(self, table: OwnTable, name: str, column: Column) -> None:
        value = None if column.field.required else column.default()
        if value is not None and name != "id":
            table.model.update({table.fields[name]: value}).execute()

    def _add(self, table: OwnTable, column: str) -> None:
        field = table.fields[column]
        if field.column_name not in self._columns(table):
            migrate(self._migrator.add_column(_name(table), field.column_name, field))
        if column in table.columns:
            self._set_default(table, column, table.columns[column])

    def _convert(self, change: Change) -> None:
        """Puts a column beside the old one, with its values as the new kind has them."""
        table, field = change.table, change.table.fields[change.column]
        values = [(i, change.declared.read(value)) for i, value in self._old_values(change)]
        if change.kept not in self._columns(table):
            self._put_aside(change)
        self._add(table, change.column)
        for identity, value in values:
            update = table.model.update({field: value})
            update.where(table.fields["id"] == identity).execute()

    def _put_aside(self, change: Change) -> None:
        """Gives the old column its new name, and its index none, which the new one is to have."""
        table, name = change.table, _name(change.table)
        for index in self._database.get_indexes(name):
            if index.name.startswith(f"{name}_{change.column}"):
                migrate(self._migrator.drop_index(name, index.name))
        old = table.fields[change.column].column_name
        migrate(self._migrator.rename_column(name, old, change.kept))

    def _columns(self, table: OwnTable) -> set[str]:
        """The columns that a table has in the database."""
        return {column.name for column in self._database.get_columns(_name(table))}

    def _index(self, table: OwnTable) -> None:
        """Makes the indexes that are missing."""
        there = {index.name for index in self._database.get_indexes(_name(table))}
        for index in table.model._meta.fields_to_index():
            if index._name not in there:
                self._database.execute(index)

    @property
    def _migrator(self) -> Any:
        return SchemaMigrator.from_database(self._database)


def _rows(table: OwnTable, *columns: str) -> list[tuple[Any, ...]]:
    """Columns of a table as they stand in the database."""
    raw = peewee.Table(_name(table)).bind(table.model._meta.database)
    return [*raw.select(*(getattr(raw.c, column) for column in columns)).tuples()]


def _place(table: OwnTable, identity: int | None = None) -> Place:
    name = _name(table)
    return Place(name, -1, name if identity is None else f"{name} {identity}")


def _change(table: OwnTable, column: str, known: Mapping[str, str]) -> Change:
    """The change of a column of a table whose columns are known."""
    kind = "".join(char for char in known[column] if char.isalnum())
    names = (f"{column}__{kind}{number}" for number in chain([""], count(2)))
    return Change(table, column, known[column], next(name for name in names if name not in known))

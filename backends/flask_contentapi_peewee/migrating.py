"""Migrates the tables when the declared types change. No stored content is lost.

The *layout*, which is stored in the state table, describes the types that the tables were made
for. A migration adds missing tables and columns. Then it reads all objects of types whose fields
are stored elsewhere, or as another kind, from their place in the old layout, and writes them to
their place in the new one. Objects of undeclared types have their fields beyond those of the
endpoint in ``extras_``, so removing a type is such a change too. The layout records where these
fields were, with everything else in their tables. A column that is no longer declared stays in
its table, and one whose kind changes stays beside the new one. The same holds for tables.

In MariaDB DDL is not transactional, so a migration can be interrupted half-way. The next one
continues it: objects are moved and the layout is written in one transaction at the end, and
whatever the database has but the layout does not is left over from an earlier attempt.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import chain, count
from typing import Any, NamedTuple

import peewee
from playhouse.migrate import SchemaMigrator, migrate

from flask_contentapi.errors import ContentError, Problem
from flask_contentapi.records import Place
from flask_contentapi.registry import Registry
from flask_contentapi.types import Column
from flask_contentapi_peewee.layouts import (
    Location,
    Locations,
    TableLayout,
    all_tables,
    content_of_table,
    kind_of_column,
    layout_of,
    name_of,
    tables_in,
)
from flask_contentapi_peewee.moving import Mover, stored_types
from flask_contentapi_peewee.names import PREFIX, aside_name, words_name
from flask_contentapi_peewee.tables import EndpointTables, OwnTable, Tables, indexes_of

__all__ = ["Migration"]


class KindChange(NamedTuple):
    """A column whose kind changes.

    :param table: its table.
    :param column: its name.
    :param kind: its kind in the old layout.
    :param aside: the name of the old column beside the new one.
    """

    table: OwnTable
    column: str
    kind: str
    aside: str


class Migration:
    """The changes that make the tables fit the declared types.

    :param tables: the tables of the declared types.
    :param registry: the declared types.
    :param layout: the layout of the tables in the database.
    :param reading: the connections for finding out what has to be done.
    """

    def __init__(
        self, tables: Tables, registry: Registry, layout: TableLayout, reading: peewee.Database
    ) -> None:
        self._reading = reading
        self._tables = tables
        self._database = tables.engine.database
        self._old = layout
        self._new = layout_of(tables)
        used, known = layout.used_tables(), []
        self._created: list[OwnTable] = []
        #: The tables that will hold something else than before, with their names once put aside.
        self._tables_aside: dict[str, str] = {}
        for table in all_tables(tables):
            columns = layout.columns.get(name_of(table))
            if columns is None or name_of(table) not in used:
                self._created.append(table)
            elif content_of_table(columns) != content_of_table(table.fields):
                self._tables_aside[name_of(table)] = self._table_aside_name(name_of(table))
            else:
                known.append(table)
        # The index of a column may have the name of the table that held the field before.
        self._tables_aside |= {
            name: self._table_aside_name(name) for name in self._emptied_tables()
        }
        self._added = [
            (table, column)
            for table in known
            for column in table.fields
            if column not in layout.columns[name_of(table)]
        ]
        self._changed = [
            _kind_change(table, column, layout.columns[name_of(table)])
            for table in known
            for column in table.fields
            if layout.columns[name_of(table)].get(column)
            not in (None, kind_of_column(table, column))
        ]
        self._searched = {
            label: columns
            for label, columns in self._new.searched.items()
            if layout.searched.get(label, columns) != columns
        }
        aside = {(name_of(c.table), c.column): c.aside for c in self._changed}
        aside |= {(name, ""): name_aside for name, name_aside in self._tables_aside.items()}
        self._mover = Mover(tables, registry, layout, aside)

    def _table_aside_name(self, name: str) -> str:
        """The name of a table that is put aside."""
        columns = self._old.columns
        return _free_aside_name(name, content_of_table(columns[name]), columns)

    def _emptied_tables(self) -> set[str]:
        """The tables of fields that are columns now."""
        return {
            old[field].table
            for label, old in self._old.locations.items()
            for field, location in self._new.locations.get(label, {}).items()
            if field in old and old[field].has_own_table and not location.has_own_table
        } - self._new.columns.keys()

    # Planning.

    def steps(self) -> Iterator[str]:
        """The steps of the migration, each in a sentence."""
        for table in self._created:
            yield f"The table {name_of(table)} is new."
        for name, kept in self._tables_aside.items():
            yield f"The table {name} is kept as {kept}; another one gets its name."
        for table, column in self._added:
            yield f"{name_of(table)} gets the column {column} ({kind_of_column(table, column)})."
        for change in self._changed:
            yield (
                f"{name_of(change.table)}.{change.column} becomes "
                f"{kind_of_column(*change[:2])}; "
                f"it was {change.kind}, which is kept as {change.aside}."
            )
        for endpoint in self._tables.endpoints.values():
            for label in self._layout_keys(endpoint):
                yield from self._type_steps(endpoint, label)
        for label, columns in self._searched.items():
            yield f"Of {label} other fields are searched: {columns or 'none besides the title'}."

    def _layout_keys(self, endpoint: EndpointTables) -> Iterator[str]:
        """The keys of an endpoint in the layouts: itself, its types, and its former types."""
        base = name_of(endpoint.base)
        yield endpoint.endpoint.name
        yield from endpoint.endpoint.types
        for label, locations in self._old.locations.items():
            if label not in self._new.locations and _base_table(locations) == base:
                yield label

    def _type_steps(self, endpoint: EndpointTables, label: str) -> Iterator[str]:
        old, new = self._old.locations.get(label), self._new.locations.get(label)
        if name_of(endpoint.base) not in self._old.columns:
            return
        name = endpoint.endpoint.name
        if new is None:
            served = self._new.locations[name]
            if old != self._old.locations[name] or not old.items() <= served.items():
                yield self._removal_step(endpoint, label)
        elif old is None:
            created = {name_of(table) for table in self._created}
            searched = self._new.searched
            plain = new == self._new.locations[name] and searched[label] == searched[name]
            if plain and label not in self._old.undeclared:
                return
            if not any(location.table in created for location in new.values()):
                yield f"The type {label} is new."
        else:
            if label == name:
                yield from self._loss_steps(endpoint)
            yield from self._move_steps(label, old, new)

    def _loss_steps(self, endpoint: EndpointTables) -> Iterator[str]:
        """The step for fields that objects of undeclared types keep but their endpoint loses."""
        name, declared = endpoint.endpoint.name, endpoint.endpoint.types
        lost = self._old.locations[name].keys() - self._new.locations[name].keys()
        if lost:
            raw = peewee.Table(name_of(endpoint.base)).bind(self._reading)
            known = [*{*declared, *self._old.locations}]
            others = raw.select(raw.c.id).where(raw.c.type.not_in(known)).limit(1).tuples()
            if [*others]:
                kept = ", ".join(sorted(lost))
                yield f"Objects of {name} whose types are not declared keep {kept} as they are."

    def _removal_step(self, endpoint: EndpointTables, label: str) -> str:
        raw = peewee.Table(name_of(endpoint.base)).bind(self._reading)
        number = raw.select(raw.c.id).where(raw.c.type == label).count()
        kept = f"; its {number} objects keep what they have" if number > 1 else ""
        kept = "; its 1 object keeps what it has" if number == 1 else kept
        return f"The type {label} is not declared any more{kept}."

    def _move_steps(self, label: str, old: Locations, new: Locations) -> Iterator[str]:
        former, rows = self._old.former.get(label, {}), self._old.rows[label]
        there = {(table, column) for table in rows for column in self._old.columns[table]}
        for field, location in new.items():
            before = old.get(field) or former.get(field)
            if before is not None and before.table != location.table:
                yield f"{label}.{field} moves from {before.table} to {location.table}."
            elif field not in old and (field in former or (location.table, field) in there):
                yield f"{label}.{field} is declared again."
        old_rows, new_rows = {*rows}, {*self._new.rows[label]}
        unused = (tables_in(old.values()) | old_rows) - self._new.columns.keys()
        moved = {old[field].table for field in old.keys() & new.keys()}
        for table in sorted(unused - moved):
            yield f"Nothing of {label} is kept in {table} from now on; it stays as it is."
        fewer = (old_rows - new_rows) & self._new.columns.keys()
        more = new_rows - old_rows - {name_of(table) for table in self._created}
        if (fewer | more) - moved - tables_in(new[f] for f in old.keys() & new.keys()):
            yield f"The objects of {label} stand in other tables."

    def _is_moved(self, endpoint: EndpointTables, label: str) -> bool:
        """Whether the objects of a type have to be rewritten."""
        old, new = self._old.locations.get(label), self._new.locations.get(label)
        if old is None and new is None:
            name = endpoint.endpoint.name
            return self._old.locations[name] != self._new.locations[name] or name in self._searched
        if old is None or new is None or self._old.former.get(label, {}).keys() & new.keys():
            return True
        if any(
            self._is_stored_differently(old[field], new[field]) for field in old.keys() & new.keys()
        ):
            return True
        if any(self._reuses_storage(field, new[field]) for field in new.keys() - old.keys()):
            return True
        return not {*self._new.rows[label]} <= {*self._old.rows[label]}

    def _is_stored_differently(self, old: Location, new: Location) -> bool:
        """Whether a field is stored elsewhere, or as another kind."""
        if old[:2] != new[:2]:
            return True
        old_kinds, new_kinds = self._old.columns[old.table], self._new.columns[new.table]
        if old_kinds.keys() & {*new.fields} - {*old.fields}:
            return True
        return any(old_kinds[field] != new_kinds[field] for field in {*old.fields} & {*new.fields})

    def _reuses_storage(self, field: str, location: Location) -> bool:
        """Whether a new field of a type is stored where something else was."""
        created = {name_of(table) for table in self._created}
        known = {} if location.table in created else self._old.columns.get(location.table, {})
        return bool(known) and (location.has_own_table or field in known)

    def left_over(self) -> Iterator[str]:
        """The tables and columns that no type declares any longer, each in a sentence."""
        for name, columns in self._old.columns.items():
            wanted = self._new.columns.get(name)
            if wanted is None:
                yield f"The table {name} belongs to no declared type; it stays as it is."
            else:
                for column in sorted(columns.keys() - wanted.keys()):
                    yield f"The column {name}.{column} is not declared; it stays as it is."

    @property
    def unused(self) -> list[str]:
        """The tables that no type declares any longer, without tables of words."""
        return sorted(self._old.columns.keys() - self._new.columns.keys())

    @property
    def unused_words(self) -> list[str]:
        """The tables of words of endpoints that no longer exist."""
        words = {words_name(table) for table in self.unused if table in self._old.base_tables}
        return sorted(words - self._new.columns.keys())

    @property
    def layout(self) -> TableLayout:
        """The layout after the migration, including what is left over."""
        after = TableLayout()
        created = {name_of(table) for table in self._created}
        after.columns = {n: dict(c) for n, c in self._old.columns.items() if n not in created}
        for name, aside in self._tables_aside.items():
            after.columns[aside] = after.columns.pop(name)
        for change in self._changed:
            after.columns[name_of(change.table)][change.aside] = change.kind
        for name, columns in self._new.columns.items():
            after.columns.setdefault(name, {}).update(columns)
        unserved = {
            label: locations
            for label, locations in self._old.locations.items()
            if _base_table(locations) not in self._new.columns
        }
        after.locations = {**unserved, **self._new.locations}
        after.rows = {**{label: self._old.rows[label] for label in unserved}, **self._new.rows}
        after.searched = {
            **{label: self._old.searched[label] for label in unserved},
            **self._new.searched,
        }
        for label, locations in after.locations.items():
            had = [self._old.former, self._old.undeclared, self._old.locations]
            _set_unless_empty(after.former, label, self._remaining(label, had, locations))
        known = self._old.undeclared.keys() | self._old.locations.keys()
        for label in known - after.locations.keys():
            identity, served = self._endpoint_locations(label)
            former = self._remaining(label, [self._old.former], served)
            undeclared = self._remaining(label, [self._old.undeclared, self._old.locations], served)
            _set_unless_empty(after.former, label, former)
            if former or undeclared:
                after.undeclared[label] = {"id": identity, **undeclared}
        return after

    def _endpoint_locations(self, label: str) -> tuple[Location, Locations]:
        """Where the ids of an undeclared type are stored, and the fields of its endpoint."""
        identity = (self._old.locations.get(label) or self._old.undeclared[label])["id"]
        known = (self._new.locations[name] for name in self._tables.endpoints)
        at_home = (locations for locations in known if _base_table(locations) == identity.table)
        return identity, next(at_home, {"id": identity})

    def _remaining(
        self, label: str, known: Iterable[dict[str, Locations]], locations: Locations
    ) -> Locations:
        """The former fields of a type whose values stay where they are."""
        had = {f: location for at in known for f, location in at.get(label, {}).items()}
        return {field: location for field, location in had.items() if field not in locations}

    @property
    def reindexed(self) -> list[str]:
        """The labels of the types whose objects are searched by other fields than before."""
        return sorted(label for label in self._searched if label not in self._tables.endpoints)

    # Applying.

    def change_tables(self) -> None:
        """Adds what the tables lack.

        :raises ContentError: if objects cannot be moved; then nothing is changed.
        """
        problems = [*self._missing_values()] or [*self._mover.problems(self._is_moved)]
        if problems:
            raise ContentError(problems)
        for name, aside in self._tables_aside.items():
            self._put_table_aside(name, aside)
        for table in all_tables(self._tables):
            if table in self._created or name_of(table) in self._tables_aside:
                self._create_table(table)
        for endpoint in self._tables.endpoints.values():
            if not self._database.table_exists(endpoint.words):
                self._tables.engine.create_words(endpoint.words)
        for table, column in self._added:
            self._add_column(table, column)
        for change in self._changed:
            if change.aside not in self._database_columns(change.table):
                self._put_column_aside(change)
            self._add_column(change.table, change.column)
        touched = [*(table for table, _ in self._added), *(c.table for c in self._changed)]
        for table in dict.fromkeys(touched):
            self._create_indexes(table)

    def move_objects(self) -> None:
        """Writes the objects to their new places."""
        self._mover.move(self._is_moved, self.layout.former)

    def _missing_values(self) -> Iterator[Problem]:
        """The problems of required fields without a value in objects that are not moved."""
        staying = {
            endpoint.endpoint.name: [
                label for label in stored_types(endpoint) if not self._is_moved(endpoint, label)
            ]
            for endpoint in self._tables.endpoints.values()
            if name_of(endpoint.base) in self._old.columns
        }
        for endpoint in self._tables.endpoints.values():
            for table in endpoint.all:
                labels = staying.get(endpoint.endpoint.name, [])
                if table is not endpoint.base:
                    labels = [name for name in labels if table in endpoint.lineage(name)]
                for one in (table, *table.many.values()):
                    yield from self._missing_values_in(one, labels)

    def _missing_values_in(self, table: OwnTable, labels: Collection[str]) -> Iterator[Problem]:
        for added, column in self._added:
            declared = table.columns.get(column)
            if added is table and labels and declared is not None and declared.field.required:
                raw = peewee.Table(name_of(table)).bind(self._database)
                if raw.select(raw.c.id).limit(1).tuples().execute(self._database):
                    message = "is required, but what is stored has none; give it a load_default"
                    yield Place(name_of(table), -1, name_of(table)).problem(column, message)

    def _put_table_aside(self, name: str, aside: str) -> None:
        """Puts a table aside and drops its indexes, because the new one needs their names."""
        if self._database.table_exists(aside):
            return
        for index in self._database.get_indexes(name):
            if index.name.startswith(PREFIX) and not index.unique:
                migrate(self._migrator.drop_index(name, index.name))
        migrate(self._migrator.rename_table(name, aside))

    def _create_table(self, table: OwnTable) -> None:
        name = name_of(table)
        for other, columns in self._old.columns.items():
            # The index of a former column may have the name of the table that has the field now.
            called = any(name in indexes_of(other, column) for column in columns)
            if called and self._database.table_exists(other):
                for index in self._database.get_indexes(other):
                    if index.name == name:
                        migrate(self._migrator.drop_index(other, name))
        self._tables.engine.drop_table(name)
        table.model.create_table()

    def _set_default(self, table: OwnTable, name: str, column: Column) -> None:
        value = None if column.field.required else column.default()
        if value is not None and name != "id":
            table.model.update({table.fields[name]: value}).execute()

    def _add_column(self, table: OwnTable, column: str) -> None:
        field = table.fields[column]
        if field.column_name not in self._database_columns(table):
            migrate(self._migrator.add_column(name_of(table), field.column_name, field))
        if column in table.columns:
            self._set_default(table, column, table.columns[column])

    def _put_column_aside(self, change: KindChange) -> None:
        """Renames the old column and drops its indexes, because the new one needs their names."""
        table, name = change.table, name_of(change.table)
        indexes = indexes_of(name, change.column)
        for index in self._database.get_indexes(name):
            if index.name in indexes:
                migrate(self._migrator.drop_index(name, index.name))
        old = table.fields[change.column].column_name
        migrate(self._migrator.rename_column(name, old, change.aside))

    def _database_columns(self, table: OwnTable) -> set[str]:
        """The columns that a table has in the database."""
        return {column.name for column in self._database.get_columns(name_of(table))}

    def _create_indexes(self, table: OwnTable) -> None:
        """Creates missing indexes."""
        there = {index.name for index in self._database.get_indexes(name_of(table))}
        for index in table.model._meta.fields_to_index():
            if index._name not in there:
                self._database.execute(index)

    @property
    def _migrator(self) -> Any:
        return SchemaMigrator.from_database(self._database)


def _set_unless_empty(known: dict[str, Locations], label: str, locations: Locations) -> None:
    if locations:
        known[label] = locations


def _base_table(locations: Locations) -> str:
    """The table of the endpoint of a type."""
    return locations["id"].table


def _free_aside_name(name: str, kind: str, taken: Collection[str]) -> str:
    """A name for something that is put aside."""
    kind = "".join(char for char in kind if char.isalnum())
    names = (aside_name(name, f"{kind}{number}") for number in chain([""], count(2)))
    return next(name for name in names if name not in taken)


def _kind_change(table: OwnTable, column: str, known: dict[str, str]) -> KindChange:
    """The change of a column; ``known`` are the columns of its table in the old layout."""
    return KindChange(table, column, known[column], _free_aside_name(column, known[column], known))

"""Makes the tables, and makes them anew where declarations have changed."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from functools import partial
from typing import Any

import peewee

from flask_contentapi.declarations import Column
from flask_contentapi.errors import ConfigurationError, ContentError
from flask_contentapi.logs import watched
from flask_contentapi.records import RecordReader, differ
from flask_contentapi.registry import SECTIONS
from flask_contentapi_peewee.documents import Inserter, parse
from flask_contentapi_peewee.reader import DatabaseReader
from flask_contentapi_peewee.tables import (
    PREFIX,
    EndpointTables,
    Signature,
    Tables,
    Types,
    is_derived,
    types_of,
)

#: The version of the tables.
SCHEMA = "6"

_MAKE = "Make what is missing with the command: flask contentapi init-db."
_MIGRATE = "Change them with the command: flask contentapi migrate."
_UNFIT = "The tables are not those of the declared types."
_RESTART = "They were made anew after this process had been started; restart it."

#: The start of the labels of the types that an endpoint has if a site declares none for it.
_OWN = "flask_contentapi."


class Setup:
    """The tables of a database, and whether they are those of the declared types."""

    def __init__(self, tables: Tables) -> None:
        self.tables, self._engine = tables, tables.engine
        self._was_ready = False

    # Ready or not.

    def require_tables(self, database: peewee.Database) -> dict[str, str]:
        """Makes sure that there are tables of this version.

        :returns: the entries of the state table.
        :raises ConfigurationError: if there are none.
        """
        self._engine.require_suitable(database)
        state = self._state(database)
        schema = state.get("schema")
        if schema is None:
            raise ConfigurationError(f"The tables are not there. {_MAKE}")
        if schema != SCHEMA:
            raise ConfigurationError(_other_version(schema))
        return state

    def _state(self, database: peewee.Database) -> dict[str, str]:
        there = database.table_exists(self.tables.state.name)
        return self.tables.read_state(database) if there else {}

    def require_ready(self, database: peewee.Database) -> None:
        """Makes sure that there are tables, and that they are those of the declared types.

        :raises ConfigurationError: if not, saying what to do.
        """
        state = self.require_tables(database)
        if state["declared"] != self.tables.declared:
            why = [*self._steps(state), _MIGRATE, *self._app_label_hints(state)]
            why = [_RESTART] if self._was_ready else why
            raise ConfigurationError(" ".join([_UNFIT, *why]))
        self._was_ready = True

    def _steps(self, state: Mapping[str, str]) -> list[str]:
        before, now = types_of(state["declared"]), self.tables.types
        steps = []
        for label in dict.fromkeys((*before, *now)):
            if label.startswith(_OWN):
                continue
            old, new = before.get(label), now.get(label)
            if new is None:
                steps.append(f"{label} is not declared any more; its objects stay.")
            elif old is None:
                steps.append(f"{label} is new.")
            else:
                if old[""] != new[""]:
                    steps.append(
                        f"{label} is served at {new['']} instead of {old['']}, where its objects "
                        "stay; load a dump of the code of before to have them here."
                    )
                steps += [f"{label}.{name} is {what}." for name, what in _changes(old, new)]
                if old.keys() - new.keys() and new.keys() - old.keys():
                    keep = "load a changed dump of the code of before to keep its values"
                    steps.append(f"If this renames a field, {keep}.")
        return steps or ["Other fields can be searched, filtered or ordered by."]

    def _app_label_hints(self, state: Mapping[str, str]) -> Iterator[str]:
        before, now = types_of(state["declared"]), self.tables.types
        added = {label.rpartition(".")[2] for label in now if label not in before}
        moved = defaultdict[str, list[str]](list)
        for app_label, _, name in (label.rpartition(".") for label in before if label not in now):
            if name in added:
                moved[app_label].append(name)
        for app_label, names in moved.items():
            only = f"If only the module of {', '.join(names)} is another"
            yield f"{only}, set app_label = {app_label!r} instead."

    # Making tables.

    def create(self) -> None:
        """Creates all tables, unless they are there.

        :raises ConfigurationError: if there are tables of another version.
        """
        database = self._engine.database
        self._engine.require_suitable(database)
        if self._has_tables():
            # Nothing is to be written, which may be impossible.
            return
        with self._engine.schema_lock(), self._engine.transaction():
            if self._has_tables():
                return
            # If DDL is not transactional, there may be empty tables from an interrupted attempt.
            # The state is written last.
            self._make({*self.tables.names})
            state = {"stamp": "", "declared": self.tables.declared}
            self.tables.write_state(**state, **dict.fromkeys(SECTIONS, "[]"), schema=SCHEMA)

    def _has_tables(self) -> bool:
        database = self._engine.database
        if "schema" not in self._state(database):
            return False
        self.require_tables(database)
        return True

    def _make(self, names: Set[str]) -> None:
        """Makes some of the tables, empty."""
        makers = {model._meta.table_name: model.create_table for model in self.tables.models}
        makers |= {words: partial(self._engine.create_words, words) for words in self.tables.words}
        for name, make in makers.items():
            if name in names:
                self._engine.drop_table(name)
                make()

    @contextmanager
    def remaking(self, *, replacing: bool = False) -> Iterator[set[str]]:
        """A context in which tables that are derived from others can be made anew.

        Missing ones are made, empty. At the end those that no type needs any longer are dropped.

        :param replacing: whether the content is replaced, so that objects of endpoints that are
            not declared any longer go as well.
        :returns: the names of the tables that were missing.
        """
        database = self._engine.database
        with self._engine.schema_lock():
            there = {*database.get_tables()}
            stored = json.loads(self.tables.read_state(database)["declared"])["tables"]
            # Others may be there from an interrupted attempt, which makes documents last.
            there -= {name for name in there if is_derived(name) and name not in stored}
            ends = self.tables.endpoints.values()
            there -= {end.base.name for end in ends if end.documents.name not in there}
            missing = {*self.tables.names} - there
            self._make(missing)
            yield missing
            for name in self.others(database):
                if replacing or is_derived(name):
                    self._engine.drop_table(name)

    def others(self, database: peewee.Database) -> list[str]:
        """The names of tables that no declared type needs."""
        known = {*self.tables.names}
        # SQLite has further tables for each table of words.
        words = tuple(f"{name}_" for name in self.tables.words)
        found = (name for name in database.get_tables() if name.startswith(PREFIX))
        return [name for name in found if name not in known and not name.startswith(words)]

    # Migrating.

    def changes(self, database: peewee.Database) -> list[str]:
        """What has changed since the tables were made, in sentences."""
        state = self.require_tables(database)
        return [] if state["declared"] == self.tables.declared else self._steps(state)

    def refill(self, reader: DatabaseReader, missing: Set[str]) -> None:
        """Reads the documents of changed types again and fills the missing tables.

        :raises ContentError: if stored objects do not fit their types.
        """
        state = self.tables.read_state(self._engine.database)
        before, now = types_of(state["declared"]), self.tables.types
        records = RecordReader(self.tables.registry, logs=False)
        labels = self._affected({label for label in now if now[label] != before.get(label)})
        for end in self.tables.endpoints.values():
            own = labels & end.endpoint.types.keys()
            self._refill(reader, end, own, missing, before, records)
        if records.problems:
            raise ContentError(records.problems)
        self.tables.write_state(declared=self.tables.declared)

    def _refill(
        self,
        reader: DatabaseReader,
        end: EndpointTables,
        labels: Set[str],
        missing: Set[str],
        before: Types,
        records: RecordReader,
    ) -> None:
        documents, now = reader.documents[end.endpoint.name], self.tables.types
        inserter = Inserter(documents)
        tables = [table for table in (*end.indexes, end.terms) if table.name in missing]
        fills_words = end.words in missing
        wanted = {*labels}.union(*(table.labels for table in tables))
        everything = "" in wanted or fills_words
        where = None if everything else end.base["type"].in_(sorted(wanted))
        objects = reader.objects(end.endpoint.name, where)
        for found in watched(objects, f"migrating {end.endpoint.name}"):
            label = documents.label(found)
            columns = end.endpoint.type_of(label).columns
            extras = documents.extras(found)
            if label not in labels:
                # Nothing changes, so nothing is checked: validators may be newer than what is
                # stored.
                row = documents.row(found)
            elif label in self.tables.followed_types:
                # What is stored differently is copied again anyway. The rest stays, as the words
                # that are in the index have to be known.
                old, new = before.get(label, {}), now[label]
                kept = [n for n in columns if n in end.fixed or (n in old and old[n] == new[n])]
                known = dict(zip(kept, documents.row(found, (*kept,)), strict=True))
                row = tuple(
                    [known[n] if n in known else c.kind.empty() for n, c in columns.items()]
                )
                row, extras = (row[0], label, *row[1:]), {}
            else:
                fixed = zip(end.fixed, documents.row(found, (*end.fixed,)), strict=True)
                record = {n: None if v is None else columns[n].kind.write(v) for n, v in fixed}
                document = parse(*found[-3:-1])
                record |= _cleared(document, before.get(label, {}), now[label], columns)
                record["type"] = label
                row, _ = records.read_entry(end.endpoint.name, -1, record) or ((), {})
            if records.problems:
                continue
            stored = documents.stored(row, extras)
            if label in labels:
                documents.update(found[-3:-1], stored)
            inserter.add_derived(stored, tables, documents.words(row) if fills_words else None)
        inserter.flush()

    def _affected(self, changed: set[str]) -> set[str]:
        children: dict[str, set[str]] = {
            label: {c.child.label for c in declared.columns.values() if c.child}
            for endpoint in self.tables.registry.endpoints.values()
            for label, declared in endpoint.types.items()
        }
        shared = set().union(*(children[label] for label in changed))
        return changed | {label for label, own in children.items() if own & shared}

    def former(self, reader: DatabaseReader, *, forget: bool = False) -> dict[str, list[str]]:
        """The fields that declared types once had and that are still stored, by type.

        Those of child objects follow the field of these, after a dot.

        :param forget: whether to delete their values.
        """
        found = defaultdict[str, set[str]](set)
        for name, end in self.tables.endpoints.items():
            documents, types = reader.documents[name], end.endpoint.types
            for one in reader.objects(name, end.base["type"].in_([*types])):
                label = documents.label(one)
                names = {*_former(documents.extras(one), types[label].columns)}
                found[label] |= names
                if names and forget:
                    documents.update(one[-3:-1], documents.stored(documents.row(one), {}))
        return {label: sorted(names) for label, names in sorted(found.items()) if names}


def _former(extras: Mapping[str, Any], columns: Mapping[str, Column]) -> Iterator[str]:
    for name, value in extras.items():
        child = columns[name].child if name in columns else None
        if child is None:
            yield name
        else:
            inner = {n for entry in value for n in entry if n not in child.columns}
            yield from (f"{name}.{n}" for n in inner)


def _cleared(
    record: Mapping[str, Any],
    before: Mapping[str, Signature],
    now: Mapping[str, Signature],
    columns: Mapping[str, Column],
) -> dict[str, Any]:
    """A record without former fields, without the values that records leave out, and without the
    empty values of fields that store something else now.
    """
    cleared = {}
    for name, column in columns.items():
        if name not in record:
            continue
        value, old, new = record[name], before.get(name), now.get(name)
        if column.child is not None and isinstance(value, list) and value:
            was, now_is = (one if isinstance(one, dict) else {} for one in (old, new))
            cleared[name] = [
                _cleared(e, was, now_is, column.child.columns) if isinstance(e, dict) else e
                for e in value
            ]
        elif not (_is_left_out(column, value) if old in (None, new) else _is_empty(value)):
            cleared[name] = value
    return cleared


def _is_left_out(column: Column, value: Any) -> bool:
    if column.field.required:
        return False
    default = column.default()
    return not differ(value, None if default is None else column.kind.write(default))


def _is_empty(value: Any) -> bool:
    return not value and (value is False or not isinstance(value, int | float))


def _changes(
    old: Mapping[str, Signature], new: Mapping[str, Signature]
) -> Iterator[tuple[str, str]]:
    for name in filter(None, dict.fromkeys((*old, *new))):
        if name not in new:
            yield name, "not declared any more; its values stay"
        elif name not in old:
            yield name, "new"
        elif old[name] != new[name]:
            yield name, f"{_kind(new[name])} instead of {_kind(old[name])}"


def _kind(signature: Signature) -> str:
    return signature if isinstance(signature, str) else signature[""]


def _other_version(schema: str) -> str:
    found = f"The tables have the layout {schema}, but this version of flask_contentapi knows"
    if schema.isdecimal() and int(schema) > int(SCHEMA):
        return f"{found} {SCHEMA}. Update flask_contentapi."
    return (
        f"{found} {SCHEMA}. Dump the content with the version that made them (flask contentapi "
        "dump), then init-db and load it into an empty database."
    )

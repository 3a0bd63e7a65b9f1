"""Writes rows of the declared types to the columns of their tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import peewee
from peewee import SQL

from flask_contentapi.query import Row
from flask_contentapi.search import rest_words, title_words
from flask_contentapi.types import ObjectType
from flask_contentapi_peewee.columns import ALWAYS, NEVER, StoredField, md5, microseconds
from flask_contentapi_peewee.engines import Engine, Words
from flask_contentapi_peewee.tables import EndpointTables, OwnTable, Tables
from flask_contentapi_peewee.words import tokens

__all__ = [
    "BATCH",
    "Inserter",
    "Replacer",
    "TreePosition",
    "batches",
    "stored_values",
    "words_of_row",
]

#: How many rows are read or written at a time.
BATCH = 500

Entry = TypeVar("Entry")


def batches(entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
    """The entries of a sequence, :data:`BATCH` at a time."""
    for start in range(0, len(entries), BATCH):
        yield entries[start : start + BATCH]


class TreePosition(NamedTuple):
    """The position of a page in the tree.

    :param path: its steps.
    :param url_path: its slugs.
    :param access: the nearest restricted page, itself or above it, or :data:`OPEN`.
    """

    path: str
    url_path: str
    access: int


def _derived_columns(page: Mapping[str, Any], position: TreePosition) -> dict[str, Any]:
    """The columns of a page that are derived from others and from its position.

    :param page: its stored values.
    """
    start, until = _visible(page)
    return {
        "path_": position.path,
        "url_path": position.url_path,
        "url_hash_": md5(position.url_path),
        "access_": position.access,
        "visible_from_": start,
        "visible_until_": until,
        "is_restricted_": bool(page["restriction"]),
    }


def _visible(page: Mapping[str, Any]) -> tuple[int, int]:
    """From when and until when a page is visible; a page that is not live never is."""
    if not page["live"]:
        return NEVER, NEVER
    start, stop = page["go_live_at"], page["expires_at"]
    return (
        ALWAYS if start is None else microseconds(start),
        NEVER if stop is None else microseconds(stop),
    )


def stored_values(
    declared: ObjectType, row: Row, extras: Mapping[str, Any], position: TreePosition | None
) -> dict[str, Any]:
    """The columns of all tables in which an object has a row, and its tags and child objects.

    :param row: the columns of its type.
    :param extras: the extra values in a record of an undeclared type.
    :param position: its position in the tree, if it is a page.
    """
    values = dict(zip(declared.column_names, row, strict=True))
    values["extras_"] = dict(extras) or None
    return values if position is None else values | _derived_columns(values, position)


def _values_of_many(
    table: OwnTable, owner: int, entries: Iterable[Any]
) -> Iterator[dict[str, Any]]:
    """The rows of the tags, the targets or the child objects of an object.

    :param owner: its id.
    """
    for sort, entry in enumerate(entries):
        if table.child:
            values = dict(zip(table.columns, entry, strict=True))
            yield {**values, "owner_": owner, "sort_": sort}
        else:
            yield {"id": owner, "sort_": sort, table.entry: entry}


def words_of_row(declared: ObjectType, row: Row) -> Words:
    """The words that an object is found by, as tokens.

    :param row: the columns of its type.
    """
    return row[0], tokens(title_words(declared, row)), tokens(rest_words(declared, row))


class Inserter:
    """Inserts many objects of one endpoint, in batches.

    :param tables: all tables.
    :param endpoint: its tables.
    :ivar words: the words of pending objects.
    """

    def __init__(self, tables: Tables, endpoint: EndpointTables) -> None:
        self._engine = tables.engine
        self._endpoint = endpoint
        self._waiting: defaultdict[OwnTable, list[Sequence[Any]]] = defaultdict(list)
        self.words: list[Words] = []
        self._texts: dict[OwnTable, str] = {}

    def add(
        self, row: Row, extras: Mapping[str, Any], position: TreePosition | None = None
    ) -> None:
        """Adds an object.

        :param row: the columns of its type.
        :param extras: the extra values in a record of an undeclared type.
        :param position: its position in the tree, if it is a page.
        """
        declared = self._endpoint.endpoint.type_of(row[1])
        values = stored_values(declared, row, extras, position)
        for table in (self._endpoint.base, *self._endpoint.lineage(row[1])):
            self._put(table, values)
            for name, many in table.many.items():
                self._put_many(many, row[0], values[name])
        self.words.append(words_of_row(declared, row))
        if len(self.words) >= BATCH:
            self.flush()

    def _put(self, table: OwnTable, values: Mapping[str, Any]) -> None:
        self._waiting[table].append(
            [field.db_value(values[name]) for name, field in table.fields.items()]
        )

    def _put_many(self, table: OwnTable, owner: int, entries: Iterable[Any]) -> None:
        for values in _values_of_many(table, owner, entries):
            self._put(table, values)

    def flush(self) -> None:
        """Writes pending objects."""
        self.flush_rows()
        if self.words:
            self._engine.put_words(self._endpoint.words, self.words)
        self.words.clear()

    def flush_rows(self) -> None:
        """Writes pending objects without their words."""
        for table, rows in self._waiting.items():
            self._engine.insert(self._text(table), rows)
        self._waiting.clear()

    def _text(self, table: OwnTable) -> str:
        """The statement that inserts a row."""
        if table not in self._texts:
            placeholder = SQL(self._engine.database.param)
            self._texts[table] = table.model.insert(
                dict.fromkeys(table.fields.values(), placeholder)
            ).sql()[0]
        return self._texts[table]


class Replacer:
    """Writes objects whose rows may exist already. Undeclared columns keep their values.

    :param engine: the database.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def put(self, table: OwnTable, ids: Sequence[int], rows: Sequence[Mapping[str, Any]]) -> None:
        """Writes objects to a table, with their tags and child objects.

        :param ids: all ids whose rows may exist.
        :param rows: for each object its columns, tags and child objects, as stored.
        """
        self._put(table, rows)
        for name, many in table.many.items():
            entries = [
                values for row in rows for values in _values_of_many(many, row["id"], row[name])
            ]
            if many.child:
                self._put_children(many, ids, entries)
            else:
                self._put_entries(many, ids, entries)

    def _put(self, table: OwnTable, rows: Sequence[Mapping[str, Any]]) -> None:
        """Inserts rows into a table, or updates those that exist."""
        key = table.fields["id"]
        raw = self._raw(table)
        query = raw.select(raw.c.id).where(raw.c.id.in_([row["id"] for row in rows]))
        there = {identity for (identity,) in query.tuples()}
        placeholder = SQL(self._engine.database.param)
        fields = _in_order(table)
        update = table.model.update({f: placeholder for _, f in fields if f is not key})
        old: list[list[Any]] = []
        new: list[Mapping[str, Any]] = []
        for row in rows:
            if row["id"] not in there:
                new.append(row)
            elif len(fields) > 1:
                values = [field.db_value(row[name]) for name, field in fields if name != "id"]
                old.append([*values, row["id"]])
        if old:
            self._engine.insert(update.where(key == placeholder).sql()[0], old)
        self._insert(table, new)

    def _insert(self, table: OwnTable, rows: Sequence[Mapping[str, Any]]) -> None:
        if rows:
            placeholder = SQL(self._engine.database.param)
            fields = _in_order(table)
            insert = table.model.insert({field: placeholder for _, field in fields})
            values = [[field.db_value(row[name]) for name, field in fields] for row in rows]
            self._engine.insert(insert.sql()[0], values)

    def _put_entries(
        self, table: OwnTable, ids: Sequence[int], rows: Sequence[Mapping[str, Any]]
    ) -> None:
        table.model.delete().where(table.fields["id"].in_(ids)).execute()
        self._insert(table, rows)

    def _put_children(
        self, table: OwnTable, owners: Sequence[int], rows: Sequence[Mapping[str, Any]]
    ) -> None:
        raw = self._raw(table)
        there = raw.select(raw.c.id).where(raw.c.owner_.in_(owners)).tuples()
        gone = [*{identity for (identity,) in there}.difference(row["id"] for row in rows)]
        for some in batches(gone):
            table.model.delete().where(table.fields["id"].in_(some)).execute()
        for batch in batches(rows):
            self._put(table, batch)

    def _raw(self, table: OwnTable) -> peewee.Table:
        """A table as it is in the database."""
        return peewee.Table(table.model._meta.table_name).bind(self._engine.database)


def _in_order(table: OwnTable) -> list[tuple[str, StoredField]]:
    """The columns of a table, in the order of statements."""
    order = [field.name for field in table.model._meta.sorted_fields]
    return sorted(table.fields.items(), key=lambda named: order.index(named[1].name))

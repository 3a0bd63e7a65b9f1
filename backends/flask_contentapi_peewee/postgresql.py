"""The engine for PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import peewee
from peewee import SQL, fn

from flask_contentapi.errors import ConfigurationError
from flask_contentapi_peewee import addresses
from flask_contentapi_peewee.columns import Clause, StoredField
from flask_contentapi_peewee.connections import PostgreSQLPool, atomic
from flask_contentapi_peewee.engines import INDEXED, Engine, Words
from flask_contentapi_peewee.tables import short

#: How many rows are in memory at a time.
FETCHED = 5000
#: How many bytes of words a column holds.
MOST_WORDS = (1 << 20) - 1
#: How many entries the planner expects an array to have that it does not know.
EXPECTED = 10


class PostgreSQL(Engine):
    """PostgreSQL. With several hosts in the address, it reads from standbys."""

    words_columns = ("id", "title", "words")
    prefix, joining = ":*", (" & ", " | ")
    sql_types = {
        **dict.fromkeys(("text", "json", "blocks"), 'TEXT COLLATE "C"'),
        **dict.fromkeys(("key", "path", "date", "time", "datetime"), 'VARCHAR COLLATE "C"'),
        **dict.fromkeys(("integer", "relation"), "BIGINT"),
        "boolean": "BOOLEAN",
        "decimal": "NUMERIC",
        "float": "DOUBLE PRECISION",
    }

    @classmethod
    def connect(cls, address: str, root: Path) -> PostgreSQL:
        return cls(*addresses.postgresql(address))

    def require_suitable(self, database: peewee.Database) -> None:
        names = "current_setting('server_encoding'), current_setting('client_encoding')"
        ((encoding, of_client),) = database.execute_sql(f"SELECT {names}").fetchall()
        if encoding not in ("UTF8", b"UTF8"):
            raise ConfigurationError(
                f"The database has the encoding {encoding}, which lacks characters; make another "
                "one, as with: createdb --encoding UTF8 --template template0 NAME."
            )
        if of_client != "UTF8":
            raise ConfigurationError(
                "The connection is not in UTF-8, and so it lacks characters; leave out what sets "
                "client_encoding."
            )

    def transaction(self) -> AbstractContextManager[Any]:
        # In stricter ones, who has waited for another writer gets an error.
        return atomic(self.database, "READ COMMITTED")

    @contextmanager
    def schema_lock(self) -> Iterator[None]:
        with super().schema_lock():
            self.database.execute_sql("SELECT pg_advisory_xact_lock(hashtext('contentapi'))")
            yield

    def all(
        self, database: peewee.Database, text: str, parameters: Sequence[Any]
    ) -> list[tuple[Any, ...]]:
        if isinstance(database, PostgreSQLPool):
            return database.all(text, parameters)
        return super().all(database, text, parameters)

    def rows(
        self, database: peewee.Database, text: str, parameters: Sequence[Any]
    ) -> Iterator[tuple[Any, ...]]:
        # The driver would otherwise take all at once.
        with atomic(database):
            database.execute_sql(f"DECLARE contentapi CURSOR FOR {text}", parameters)
            while found := database.execute_sql(f"FETCH {FETCHED} FROM contentapi").fetchall():
                yield from found
            database.execute_sql("CLOSE contentapi")

    def insert(self, table: str, columns: Iterable[str], rows: Sequence[Sequence[Any]]) -> None:
        cursor = self.database.cursor()
        if not hasattr(cursor, "copy"):
            # A database of the site's own may have psycopg2.
            super().insert(table, columns, rows)
            return
        # A single row takes as long as with INSERT, 500 of them take a sixth.
        names = ", ".join([self.quoted(name) for name in columns])
        question = f"COPY {self.quoted(table)} ({names}) FROM STDIN"
        with peewee.__exception_wrapper__, cursor.copy(question) as copy:  # type: ignore[attr-defined]
            for row in rows:
                copy.write_row(row)

    def among(self, column: Clause, values: SQL) -> Clause:
        met = peewee.Expression(column, "=", fn.ANY(values))
        if not self.is_long(column):
            return met
        given = fn.UNNEST(values.cast("TEXT[]")).alias("given")
        starts = fn.ARRAY(peewee.Select([given], [_start(SQL("given"))]))
        return peewee.Expression(self.indexed(column), "=", fn.ANY(starts)) & met

    def analyze(self, tables: Iterable[str], words: Iterable[str]) -> None:
        super().analyze(tables, words)
        # The pending list of a GIN index is searched row by row.
        for table in words:
            clean = "SELECT gin_clean_pending_list(CAST(%s AS REGCLASS))"
            self.database.execute_sql(clean, (self._words_index(table),))

    def _words_index(self, table: str) -> str:
        return self.quoted(short(f"{table}_words"))

    def array(self, values: Iterable[int] | Iterable[str]) -> Any:
        escaped = [str(value).replace("\\", r"\\").replace('"', r"\"") for value in values]
        # With fewer entries than it expects, the planner plans each time anew. One that is there
        # twice changes nothing.
        escaped += escaped[:1] * (EXPECTED - len(escaped))
        return "{" + ",".join([f'"{value}"' for value in escaped]) + "}"

    def indexed(self, field: Clause) -> Clause:
        # Longer values do not fit into index pages.
        return _start(field) if self.is_long(field) else field

    def indexes(self, field: StoredField) -> Sequence[Sequence[Clause]]:
        return [[self.indexed(field).asc(nulls="FIRST")]]

    def compare(self, field: Clause, operator: str, value: Clause) -> Clause:
        met = super().compare(field, operator, value)
        if not self.is_long(field):
            return met
        of_start = super().compare(self.indexed(field), f"{operator.rstrip('=')}=", _start(value))
        return of_start & met

    def one_of(self, field: Clause, values: Sequence[Clause]) -> Clause:
        if not self.is_long(field):
            return field.in_(values)
        return self.indexed(field).in_([*map(_start, values)]) & field.in_(values)

    def sort_keys(self, field: Clause, descending: bool) -> Sequence[Clause]:
        keys = [self.indexed(field), field] if self.is_long(field) else [field]
        if getattr(field, "primary_key", False):
            return [field.desc() if descending else field.asc()]
        if descending:
            return [key.desc(nulls="LAST") for key in keys]
        return [key.asc(nulls="FIRST") for key in keys]

    def create_words(self, table: str) -> None:
        name, index = self.quoted(table), self._words_index(table)
        self.database.execute_sql(
            f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, title TSVECTOR NOT NULL, "
            "words TSVECTOR NOT NULL)"
        )
        self.database.execute_sql(f"CREATE INDEX {index} ON {name} USING GIN (words)")

    def put_words(self, table: str, rows: Iterable[Words]) -> None:
        # The words of the title have a second column, so that no long text is read for them.
        put = [(i, title, _fitting(f"{title} {rest}")) for i, title, rest in rows]
        super().put_words(table, put)

    def matches(self, table: peewee.Table, query: Clause) -> Clause:
        return peewee.Expression(table.c.words, "@@", query.cast("tsquery"))

    def has(self, table: peewee.Table, word: SQL, *, in_title: bool = False) -> Clause:
        vector = table.c.title if in_title else table.c.words
        return peewee.Expression(vector, "@@", word.cast("tsquery")).cast("integer")


def _fitting(words: str) -> str:
    """As many of some tokens as a column holds."""
    return words if len(words) <= MOST_WORDS else words[:MOST_WORDS].rpartition(" ")[0]


def _start(text: Clause) -> Clause:
    return fn.LEFT(text, SQL(str(INDEXED)))

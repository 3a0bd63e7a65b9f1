"""The engine for MariaDB and MySQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import peewee
from peewee import SQL, fn

from flask_contentapi import kinds
from flask_contentapi_peewee import addresses
from flask_contentapi_peewee.columns import Clause, StoredField
from flask_contentapi_peewee.connections import DATABASE_ERRORS, MariaDBPool, ReadOnly
from flask_contentapi_peewee.engines import INDEXED, Engine
from flask_contentapi_peewee.tables import PREFIX

#: How long to wait for others that change the tables, in s; a timeout is required.
WAIT_FOR_TABLES = 86_400


class MariaDB(Engine):
    """MariaDB and MySQL. With several hosts in the address, it reads from one that answers."""

    ordered_join = "STRAIGHT_JOIN"
    analyzing = "ANALYZE TABLE"
    words_are_apart = True
    sql_types = {
        **dict.fromkeys(
            ("text", "json", "blocks"), "LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"
        ),
        **dict.fromkeys(
            ("key", "date", "time", "datetime"),
            "VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
        ),
        # As long as an index together with a "key" can be.
        "path": "VARCHAR(2000) CHARACTER SET ascii COLLATE ascii_nopad_bin",
        **dict.fromkeys(("integer", "relation"), "BIGINT"),
        "boolean": "BOOL",
        "decimal": f"DECIMAL({2 * kinds.DECIMAL_DIGITS}, {kinds.DECIMAL_DIGITS})",
        "float": "DOUBLE",
    }

    @classmethod
    def connect(cls, address: str, root: Path) -> MariaDB:
        return cls(*addresses.mariadb(address))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        is_inner = self.database.in_transaction()
        with super().transaction():
            if is_inner:
                self._require_latest()
            yield

    def _require_latest(self) -> None:
        # A site's own transaction goes on to read what there was when it began to read. Changes of
        # that would undo parts of what others have changed since.
        stamp = f"SELECT value FROM {PREFIX}state WHERE `key` = 'stamp'"  # noqa: S608
        latest, seen = (
            self.database.execute_sql(f"{stamp}{locked}").fetchall()
            for locked in (" FOR UPDATE", "")
        )
        if latest != seen:
            raise ReadOnly(
                "others have changed the content since this transaction began; begin it anew"
            )

    @contextmanager
    def schema_lock(self) -> Iterator[None]:
        # Lock names are global on the server.
        name = "CONCAT(DATABASE(), '.contentapi')"
        taken = self.database.execute_sql(f"SELECT GET_LOCK({name}, {WAIT_FOR_TABLES})")
        if taken.fetchall() != ((1,),):
            raise peewee.OperationalError("Others have changed the tables for too long")
        try:
            yield
        finally:
            # A connection that is lost has released it.
            with suppress(*DATABASE_ERRORS):
                self.database.execute_sql(f"SELECT RELEASE_LOCK({name})")

    def analyze(self, tables: Iterable[str], words: Iterable[str]) -> None:
        # It would commit a transaction of the site.
        if not self.database.in_transaction():
            super().analyze(tables, words)

    def rows(
        self, database: peewee.Database, text: str, parameters: Sequence[Any]
    ) -> Iterator[tuple[Any, ...]]:
        if not isinstance(database, MariaDBPool):
            # The driver of a site's own connections is unknown.
            yield from super().rows(database, text, parameters)
            return
        # The driver would otherwise take all at once.
        unbuffered = import_module("pymysql.cursors").SSCursor
        connection: Any = database.connection()  # type: ignore[no-untyped-call]
        with peewee.__exception_wrapper__, connection.cursor(unbuffered) as cursor:  # type: ignore[attr-defined]
            cursor.execute(text, parameters)
            yield from cursor

    def among(self, column: Clause, values: SQL) -> Clause:
        of_text = isinstance(getattr(column, "kind", None), kinds.Text)
        sql_type = "TEXT CHARACTER SET utf8mb4" if of_text else "BIGINT"
        entries = SQL(f", '$[*]' COLUMNS (value {sql_type} PATH '$')")
        table = fn.JSON_TABLE(peewee.NodeList((values, entries)))
        return column.in_(peewee.Select(columns=[SQL("j.value")]).from_(table.alias("j")))

    def indexed(self, field: Clause) -> Clause:
        if not self.is_long(field):
            return field
        return peewee.NodeList((peewee.Entity(field.column_name), SQL(f"({INDEXED})")), glue="")

    def indexes(self, field: StoredField) -> Sequence[Sequence[Clause]]:
        # An index is not read backwards if the keys after the column are ascending.
        return [[self.indexed(field)], *([] if self.is_long(field) else [[field.desc()]])]

    def create_words(self, table: str) -> None:
        text = "LONGTEXT CHARACTER SET ascii NOT NULL"
        self.database.execute_sql(
            f"CREATE TABLE {self.quoted(table)} (id BIGINT PRIMARY KEY, title {text}, rest {text}, "
            "FULLTEXT (title), FULLTEXT (title, rest))"
        )

    def matches(self, table: peewee.Table, query: Clause) -> Clause:
        return _against([table.c.title, table.c.rest], query)

    def has(self, table: peewee.Table, word: SQL, *, in_title: bool = False) -> Clause:
        columns = [table.c.title] if in_title else [table.c.title, table.c.rest]
        return _against(columns, word) > 0

    def query(self, searches: Iterable[tuple[Sequence[str], bool]]) -> str:
        return " ".join(
            f"+({' '.join(f'+{token}' if every else token for token in tokens)})"
            for tokens, every in searches
        )


def _against(columns: Sequence[Clause], query: SQL) -> Clause:
    return peewee.NodeList((fn.MATCH(*columns), SQL("AGAINST ("), query, SQL("IN BOOLEAN MODE)")))

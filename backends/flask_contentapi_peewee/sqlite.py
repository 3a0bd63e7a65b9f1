"""The engine for SQLite."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import peewee
from peewee import SQL, Value, fn

from flask_contentapi.errors import ConfigurationError
from flask_contentapi_peewee import addresses
from flask_contentapi_peewee.columns import Clause, md5
from flask_contentapi_peewee.connections import SQLitePool, atomic, file_of
from flask_contentapi_peewee.engines import Engine, Words
from flask_contentapi_peewee.words import plain_tokens

#: How long a writer waits for other writers, in s.
WAIT_TO_WRITE = 60


class SQLite(Engine):
    """SQLite, with FTS5. The journal mode is WAL, so that readers never wait."""

    isolation = ()
    ordered_join = peewee.JOIN.CROSS
    words_columns = ("rowid", "title", "rest")
    sql_types = {
        **dict.fromkeys(("text", "key", "path", "date", "time", "datetime"), "TEXT"),
        **dict.fromkeys(("json", "blocks", "decimal"), "TEXT"),
        **dict.fromkeys(("integer", "boolean", "relation"), "INTEGER"),
        "float": "REAL",
    }

    def __init__(self, database: peewee.Database) -> None:
        super().__init__(database)
        known, plain = cast(Any, database), cast(Any, peewee.SqliteDatabase)
        known.register_function(md5, "md5", 1)
        if type(known)._connect is plain._connect:
            # Snapshots are read by one thread after another, which other drivers allow anyway.
            known.connect_params.setdefault("check_same_thread", False)

    @property
    def _file(self) -> Path | None:
        return file_of(str(self.database.database))

    @property
    def name(self) -> str:
        return super().name if self._file is None else f"The database file {str(self._file)!r}"

    @classmethod
    def connect(cls, address: str, root: Path) -> SQLite:
        return cls(addresses.sqlite(address, root))

    def require_there(self) -> None:
        try:
            if self._file is not None:
                os.stat(self._file)
        except FileNotFoundError:
            self._require_folder()
            raise ConfigurationError(
                f"There is no database file {str(self._file)!r}. Put it there, or make an "
                "empty one with the command: flask contentapi init-db."
            ) from None
        except OSError as error:
            raise ConfigurationError(f"{self.name} cannot be read: {error.strerror}.") from error

    def _require_folder(self) -> None:
        file = self._file
        if file is not None and not os.path.isdir(file.parent):
            raise ConfigurationError(
                f"There is no folder {str(file.parent)!r} for {file.name}; check the name, or "
                "create it."
            )

    @contextmanager
    def creation(self) -> Iterator[None]:
        self._require_folder()
        file, is_new = self._file, False
        if file is not None:
            try:
                # Several may make it at once; only one of them may remove it.
                file.touch(exist_ok=False)
                is_new = True
            except FileExistsError:
                pass
            except OSError as error:
                raise ConfigurationError(
                    f"The database file {file} cannot be made: {error.strerror}."
                ) from error
        try:
            yield
        except BaseException:
            if is_new:
                self.close()
                for name in (str(file), f"{file}-wal", f"{file}-shm"):
                    Path(name).unlink(missing_ok=True)
            raise

    @contextmanager
    def transaction(self) -> Iterator[None]:
        # A transaction that starts by reading cannot write after another one has written.
        with self._waiting(WAIT_TO_WRITE), atomic(self.database, "IMMEDIATE"):
            yield

    def test_writing(self, table: str) -> None:
        with self._waiting(0):
            super().test_writing(table)

    @contextmanager
    def _waiting(self, seconds: float) -> Iterator[None]:
        database = cast(peewee.SqliteDatabase, self.database)
        if isinstance(database, SQLitePool):
            database.prepare_to_write()
        database.execute_sql(f"PRAGMA busy_timeout = {int(seconds * 1000)}")
        try:
            yield
        finally:
            database.execute_sql(f"PRAGMA busy_timeout = {int(database.timeout * 1000)}")

    def among(self, column: Clause, values: SQL) -> Clause:
        return column.in_(peewee.Select(columns=[SQL("value")]).from_(fn.json_each(values)))

    def unindexed(self, field: Clause) -> Clause:
        # The planner assumes that every range is narrow.
        return peewee.NodeList((SQL("+"), field), glue="")

    def analyze(self, tables: Iterable[str], words: Iterable[str]) -> None:
        # All is read once. In a mapped file it would count as memory of the process.
        database = cast(peewee.SqliteDatabase, self.database)
        mapped, database.mmap_size = database.mmap_size, 0
        try:
            super().analyze(tables, words)
        finally:
            database.mmap_size = mapped

    @contextmanager
    def filling(self, models: Iterable[type[peewee.Model]]) -> Iterator[None]:
        # An index is made faster of all rows at once than row by row.
        schemas = [peewee.SchemaManager(model) for model in models]
        for schema in schemas:
            schema.drop_indexes()
        yield
        for schema in schemas:
            schema.create_indexes()

    def clear_words(self, table: str) -> None:
        # Deleting rows one by one would take as long as inserting them.
        self.drop_table(table)
        self.create_words(table)

    def create_words(self, table: str) -> None:
        # Nobody asks for a text, how long it is, or where in it a word is.
        options = "content='', tokenize=ascii, detail=column, columnsize=0"
        name = self.quoted(table)
        self.database.execute_sql(f"CREATE VIRTUAL TABLE {name} USING fts5(title, rest, {options})")
        # The more words wait in memory, in bytes, the fewer parts of the index are merged later.
        insert = f"INSERT INTO {name} ({name}, rank) VALUES ('hashsize', {1 << 24})"  # noqa: S608
        self.database.execute_sql(insert)

    def put_words(self, table: str, rows: Iterable[Words]) -> None:
        # Whenever an id is below the one before it, the index gets another part.
        super().put_words(table, sorted(rows))

    def delete_words(
        self, table: str, ids: Sequence[int], words: Callable[[], Iterable[Words]]
    ) -> None:
        # The index alone does not know what words an object has.
        self.insert(table, (table, *self.words_columns), [("delete", *known) for known in words()])

    @staticmethod
    def tokens(words: str) -> str:
        return plain_tokens(words)

    def matches(self, table: peewee.Table, query: Clause) -> Clause:
        return peewee.Expression(getattr(table.c, table.__name__), "MATCH", query)

    def has(self, table: peewee.Table, word: SQL, *, in_title: bool = False) -> Clause:
        # The result of bm25 would depend on other objects, including hidden ones.
        other = peewee.Table(table.__name__)
        wanted = Value("title:").concat(word) if in_title else word
        found = other.select(other.c.rowid).where(self.matches(other, wanted))
        return table.c.rowid.in_(found)

"""The engine for SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, time
from functools import cache
from pathlib import Path
from typing import Any, cast

import peewee
from peewee import SQL, Value, fn

from flask_contentapi import kinds
from flask_contentapi.errors import ConfigurationError
from flask_contentapi_peewee import addresses
from flask_contentapi_peewee.columns import Clause, StoredField, md5, microseconds, stored_field
from flask_contentapi_peewee.connections import file_of
from flask_contentapi_peewee.conversions import Conversion, Converter
from flask_contentapi_peewee.engines import Engine, Words

__all__ = ["SQLite"]

#: How long a writer waits for other writers, in s.
WAIT_TO_WRITE = 60


class SQLiteConversion(Conversion):
    """Conversions for SQLite, in Python for everything but numbers and texts."""

    is_loose = True
    materialized = False

    def typed(self, name: str, value: Clause) -> Clause:
        if self.sql_types[name] == "TEXT":
            return peewee.NodeList((value, SQL("COLLATE BINARY")))
        if name in ("integer", "relation", "boolean"):
            # With a cast the index of the column would not be used.
            return value
        return peewee.Cast(value, self.sql_types[name])

    @property
    def converters(self) -> dict[str, Converter]:
        return {
            **super().converters,
            "float": self._float,
            "relation": self._relation,
            "text": self._text,
            "date": self._date,
            "datetime": self._datetime,
            "time": self._in_python,
            "decimal": self._in_python,
        }

    def _in_python(self, field: StoredField, column: Clause) -> Clause:
        places = getattr(field.kind, "places", None)
        return fn.contentapi_stored(field.kind.name, places, _as_argument(column))

    def _float(self, field: StoredField, column: Clause) -> Clause:
        return peewee.Case(None, [(fn.typeof(column).in_(_NUMBERS), column)])

    def _boolean(self, field: StoredField, column: Clause) -> Clause:
        is_true = fn.typeof(column).in_(_NUMBERS) & column
        return peewee.Case(None, [(column.is_null(), None), (is_true, SQL("TRUE"))], SQL("FALSE"))

    def _relation(self, field: StoredField, column: Clause) -> Clause:
        return self.object_id(column)

    def object_id(self, identity: Clause) -> Clause:
        key = _key(identity)
        if key is identity:
            return identity
        # In an addition SQLite takes a text for 0.
        return peewee.Case(None, [(fn.typeof(key) == "integer", identity)])

    def is_legible(self, column: Clause) -> Clause:
        # Checking for ASCII is far faster than calling a Python function.
        is_ascii = ~peewee.Expression(column, "GLOB", "*[^ -~]*")
        return (fn.typeof(column) == "text") & (
            is_ascii | fn.contentapi_legible(_as_argument(column))
        )

    def has_other_kind(self, name: str, column: Clause) -> Clause | None:
        key = _key(column)
        if name == "text" and isinstance(key, _TEXTS):
            return ~self.is_legible(key) & key.is_null(False)
        if name == "boolean":
            return fn.typeof(key).not_in([*_NUMBERS, "null"])
        return fn.typeof(key).not_in(["integer", "null"]) if name in _INTEGERS else None

    def _text(self, field: StoredField, column: Clause) -> Clause:
        # With a cast the index of the column would not be used.
        return column if isinstance(column, _TEXTS) else column.cast("TEXT")

    def _date(self, field: StoredField, column: Clause) -> Clause:
        day = fn.SUBSTR(column, 1, 10)
        is_day = (fn.DATE(day, _MENDED) == day) & (day >= _FIRST_DAY)
        return peewee.Case(None, [(is_day, day)])

    def _datetime(self, field: StoredField, column: Clause) -> Clause:
        # Handles the format that peewee writes. A Python function takes far longer.
        day, clock = fn.SUBSTR(column, 1, 10), fn.SUBSTR(column, 12)
        plain = day.concat(" ").concat(fn.SUBSTR(clock, 1, 8))
        start, is_moment = day.concat("T").concat(clock), fn.DATETIME(plain, _MENDED) == plain
        is_moment &= day >= _FIRST_DAY
        whole = ((fn.LENGTH(column) == 19) & is_moment, start.concat(".000000Z"))
        has_fraction = peewee.Expression(fn.SUBSTR(column, 20), "GLOB", _FRACTION)
        fraction = (has_fraction & is_moment, start.concat("Z"))
        return peewee.Case(None, [whole, fraction], self._in_python(field, column))

    def step(self, identity: Clause) -> Clause:
        return fn.printf("9%019d", identity)

    def moment(self, column: Clause) -> Clause:
        return fn.contentapi_moment(_as_argument(column))

    def register(self, database: peewee.SqliteDatabase) -> None:
        """Registers the conversion functions."""

        @cache
        def field(name: str, places: int | None) -> StoredField:
            kind = kinds.Decimal(places) if name == "decimal" else _KINDS[name]()
            return stored_field(kind, self.sql_types)

        def stored(name: str, places: int | None, value: Any) -> Any:
            known = field(name, places)
            return known.db_value(_read(known.kind, value))

        def moment(value: Any) -> int | None:
            read = _read(_KINDS["datetime"](), value)
            return None if read is None else microseconds(read)

        database.register_function(stored, "contentapi_stored", 3)
        database.register_function(moment, "contentapi_moment", 1)
        database.register_function(_is_legible, "contentapi_legible", 1)


#: The first day in Python, and the pattern of microseconds that peewee writes.
_FIRST_DAY, _FRACTION = "0001-01-01", "." + "[0-9]" * 6
#: The modifier that makes SQLite move an invalid day of a month into the next month.
_MENDED = "+0 days"
_TEXTS = (peewee.CharField, peewee.TextField)
_NUMBERS = ("integer", "real")
_INTEGERS = ("integer", "relation")


def _as_argument(column: Clause) -> Clause:
    """A column in a form to pass to a Python function, which does not accept all text."""
    is_text = fn.typeof(column) == "text"
    return peewee.Case(None, [(is_text, column.cast("BLOB"))], column)


def _key(identity: Clause) -> Clause:
    """The column in the id of an object, if the id is a sum; otherwise the id itself."""
    is_sum = isinstance(identity, peewee.Expression) and identity.op == peewee.OP.ADD
    return identity.lhs if is_sum and isinstance(identity.lhs, peewee.Field) else identity


def _is_legible(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


_KINDS: Mapping[str, type[kinds.Kind]] = {
    "time": kinds.Time,
    "datetime": kinds.DateTime,
}


def _read(kind: kinds.Kind, value: Any) -> Any:
    """A value that peewee stores in SQLite as a value of a kind; None if it is not valid."""
    try:
        text = value.decode() if isinstance(value, bytes) else str(value)
        return kind.read(_PARSERS[kind.name](text))
    except ValueError:
        return None


_PARSERS: Mapping[str, Callable[[str], Any]] = {
    "decimal": str,
    "time": time.fromisoformat,
    "datetime": datetime.fromisoformat,
}


class SQLite(Engine):
    """SQLite, with FTS5. The journal mode is WAL, so that readers never wait."""

    ordered_join = peewee.JOIN.CROSS
    conversion_class = SQLiteConversion
    sql_types = {
        **dict.fromkeys(("text", "key", "path", "date", "time", "datetime"), "TEXT"),
        **dict.fromkeys(("json", "blocks", "relations", "decimal"), "TEXT"),
        **dict.fromkeys(("integer", "boolean", "relation"), "INTEGER"),
        "float": "REAL",
    }

    def __init__(self, database: peewee.Database) -> None:
        super().__init__(database)
        known = cast(peewee.SqliteDatabase, database)
        known.register_function(md5, "md5", 1)
        cast(SQLiteConversion, self.conversion).register(known)

    @classmethod
    def connect(cls, address: str, root: Path) -> SQLite:
        return cls(addresses.sqlite(address, root))

    def create(self) -> None:
        file = file_of(self.database)
        if file is None:
            return
        try:
            file.touch()
        except OSError as error:
            raise ConfigurationError(
                f"The database file {file} cannot be made: {error.strerror}."
            ) from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._wait_for_locks(WAIT_TO_WRITE)
        try:
            # A transaction that starts by reading cannot write after another one has written.
            with self.database.atomic("IMMEDIATE"):
                yield
        finally:
            self._wait_for_locks(cast(peewee.SqliteDatabase, self.database).timeout)

    def _wait_for_locks(self, seconds: float) -> None:
        """Sets how long the current connection waits for others."""
        self.database.execute_sql(f"PRAGMA busy_timeout = {int(seconds * 1000)}")

    def all(self, database: peewee.Database, ask: Callable[[], list[Any]]) -> list[Any]:
        try:
            return ask()
        except (peewee.OperationalError, sqlite3.OperationalError) as error:
            if _NO_UTF8 not in str(error):
                raise
        connection = database.connection()
        usual = connection.text_factory
        connection.text_factory = _escaped
        try:
            return ask()
        finally:
            connection.text_factory = usual

    def among(self, column: Clause, values: SQL) -> Clause:
        return column.in_(peewee.Select(columns=[SQL("value")]).from_(fn.json_each(values)))

    def unindexed(self, field: Clause) -> Clause:
        # The planner assumes that every range is narrow.
        return peewee.NodeList((SQL("+"), field), glue="")

    def _analyzing(self, tables: Sequence[str]) -> Iterable[str]:
        return [f"ANALYZE {table}" for table in tables]

    def clear_words(self, table: str) -> None:
        # Deleting rows one by one would take as long as inserting them.
        self.drop_table(table)
        self.create_words(table)

    def json_array(self, *entries: Clause) -> Clause:
        return fn.json_array(*entries)

    def entry(self, field: StoredField) -> Clause:
        # SQLite writes at most 15 digits of a number in JSON.
        return _digits(field) if isinstance(field.kind, kinds.Float) else _plain(field)

    def create_words(self, table: str) -> None:
        self.database.execute_sql(
            f"CREATE VIRTUAL TABLE {self.quoted(table)} USING fts5(title, rest, tokenize=ascii)"
        )

    def put_words(self, table: str, rows: Iterable[Words]) -> None:
        texts = ((identity, " ".join(title), " ".join(rest)) for identity, title, rest in rows)
        sql = f"INSERT INTO {self.quoted(table)} (rowid, title, rest) VALUES (?, ?, ?)"  # noqa: S608
        self.database.cursor().executemany(sql, texts)

    def words_id(self, table: peewee.Table) -> Clause:
        return table.c.rowid

    def matches(self, table: peewee.Table, query: Clause) -> Clause:
        return peewee.Expression(self._whole(table), "MATCH", query)

    def has(self, table: peewee.Table, word: SQL, *, in_title: bool = False) -> Clause:
        # The result of bm25 would depend on other objects, including hidden ones.
        other = peewee.Table(table.__name__)
        wanted = Value("title:").concat(word) if in_title else word
        found = other.select(other.c.rowid).where(self.matches(other, wanted))
        return table.c.rowid.in_(found)

    @staticmethod
    def _whole(table: peewee.Table) -> Clause:
        """The hidden column that stands for all columns."""
        return getattr(table.c, table.__name__)

    def query(self, tokens: Sequence[str], every: bool) -> str:
        return (" AND " if every else " OR ").join(f'"{token}"' for token in tokens)


#: The error message of SQLite's driver for text that is not UTF-8.
_NO_UTF8 = "Could not decode to UTF-8"


def _escaped(text: bytes) -> str:
    """Decodes text, with half surrogate pairs for bytes that are not UTF-8."""
    return text.decode(errors="surrogateescape")


def _plain(field: StoredField) -> Clause:
    """A text or an integer. If a site's own column has a value that JSON cannot represent, a
    fraction, which is neither."""
    fits = fn.typeof(field).in_(["integer", "text", "null"])
    return peewee.Case(None, [(fits, field)], 0.5)


def _digits(field: StoredField) -> Clause:
    """A number as text with all its digits."""
    return peewee.Case(None, [(field.is_null(False), fn.printf("%!.20g", field))])

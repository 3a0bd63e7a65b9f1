"""Columns of a site's own tables as our tables keep the same values, in SQL."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from datetime import datetime, time
from functools import cache, reduce
from typing import Any, ClassVar

import peewee
from peewee import SQL, fn

from flask_contentapi import kinds
from flask_contentapi_peewee.columns import (
    ALWAYS,
    NEVER,
    Clause,
    StoredField,
    microseconds,
    stored_field,
)

__all__ = ["Conversion", "MariaDBConversion", "PostgreSQLConversion", "SQLiteConversion"]

_PARTS = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))


class Conversion(ABC):
    """What is different from one database to the next.

    :cvar materialized: False where the database can be told not to work out a named query as a
        whole before it is asked.
    :param sql_types: the database's type for each name of a kind.
    """

    materialized: ClassVar[bool | None] = None

    def __init__(self, sql_types: Mapping[str, str]) -> None:
        self.sql_types = sql_types

    @abstractmethod
    def typed(self, name: str, value: Clause) -> Clause:
        """A value that is as we keep it, with the type and the collation of our column.

        :param name: the name of the kind, or ``key`` or ``path``.
        """

    def stored(self, field: StoredField, column: Clause) -> Clause:
        """The value of a column as our column keeps it.

        :param field: our column.
        :param column: theirs, or an expression of such.
        """
        name = field.kind.name
        if isinstance(column, peewee.UUIDField):
            return self.typed(name, self._uuid(column))
        convert = getattr(self, f"_{name}", None)
        return self.typed(name, column if convert is None else convert(field, column))

    def _uuid(self, column: Clause) -> Clause:
        """A UUID that is kept as 32 digits."""
        parts: list[Clause] = [fn.SUBSTR(column, start, length) for start, length in _PARTS]
        return reduce(lambda start, part: start.concat("-").concat(part), parts)

    def _boolean(self, field: StoredField, column: Clause) -> Clause:
        return peewee.Case(None, [(column, SQL("TRUE")), (~column, SQL("FALSE"))], None)

    @abstractmethod
    def step(self, identity: Clause) -> Clause:
        """The step of a page's path that its id makes, after those of all pages of ours."""

    def address(self, value: Clause) -> Clause:
        """An address that is put together."""
        return self.typed("text", value)

    def has(self, text: Clause, part: Clause) -> Clause:
        """Whether a text has another one in it."""
        return fn.INSTR(text, part) > 0

    @abstractmethod
    def moment(self, column: Clause) -> Clause:
        """A date and time as the number that :func:`microseconds` gives; NULL if it is none.

        What comes before all times of Python's is :data:`ALWAYS`, what comes after them
        :data:`NEVER`.
        """

    def is_null(self, column: Clause) -> Clause:
        """Whether a column has nothing."""
        return column.is_null()


class SQLiteConversion(Conversion):
    """SQLite, where all but numbers and texts is converted by Python."""

    materialized = False

    def typed(self, name: str, value: Clause) -> Clause:
        if self.sql_types[name] == "TEXT":
            return peewee.NodeList((value, SQL("COLLATE BINARY")))
        if name in ("integer", "relation", "boolean"):
            # A cast would hide the column from its index.
            return value
        return peewee.Cast(value, self.sql_types[name])

    def _converted(self, field: StoredField, column: Clause) -> Clause:
        places = getattr(field.kind, "places", None)
        return fn.contentapi_stored(field.kind.name, places, column)

    _time = _decimal = _converted

    def _text(self, field: StoredField, column: Clause) -> Clause:
        # A cast would hide the column from its index.
        is_text = isinstance(column, peewee.CharField | peewee.TextField)
        return column if is_text else column.cast("TEXT")

    def _date(self, field: StoredField, column: Clause) -> Clause:
        return fn.SUBSTR(column, 1, 10)

    def _datetime(self, field: StoredField, column: Clause) -> Clause:
        # As peewee writes nearly all; a function of Python takes far longer.
        start = fn.SUBSTR(column, 1, 10).concat("T").concat(fn.SUBSTR(column, 12))
        whole = (19, start.concat(".000000Z"))
        fraction = (26, start.concat("Z"))
        return peewee.Case(fn.LENGTH(column), [whole, fraction], self._converted(field, column))

    def step(self, identity: Clause) -> Clause:
        return fn.printf("9%019d", identity)

    def moment(self, column: Clause) -> Clause:
        return fn.contentapi_moment(column)

    def register(self, database: peewee.SqliteDatabase) -> None:
        """Makes the functions known that convert."""

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


_KINDS: Mapping[str, type[kinds.Kind]] = {
    "time": kinds.Time,
    "datetime": kinds.DateTime,
}


def _read(kind: kinds.Kind, value: Any) -> Any:
    """What peewee keeps in SQLite as a value of a kind; None if it is none."""
    try:
        return kind.read(_PARSERS[kind.name](str(value)))
    except ValueError:
        return None


_PARSERS: Mapping[str, Callable[[str], Any]] = {
    "decimal": str,
    "time": time.fromisoformat,
    "datetime": datetime.fromisoformat,
}


#: Where the times begin that Python has, and what comes after them.
_FIRST, _AFTER_LAST = SQL("DATE '0001-01-01'"), SQL("DATE '10000-01-01'")


class PostgreSQLConversion(Conversion):
    """PostgreSQL."""

    materialized = False

    def typed(self, name: str, value: Clause) -> Clause:
        sql_type, _, collation = self.sql_types[name].partition(" COLLATE ")
        cast = peewee.Cast(value, sql_type)
        return peewee.NodeList((cast, SQL(f"COLLATE {collation}"))) if collation else cast

    def _uuid(self, column: Clause) -> Clause:
        return column

    def _date(self, field: StoredField, column: Clause) -> Clause:
        return fn.to_char(column, "YYYY-MM-DD")

    def _time(self, field: StoredField, column: Clause) -> Clause:
        return fn.to_char(column.cast("INTERVAL"), "HH24:MI:SS.US")

    def _datetime(self, field: StoredField, column: Clause) -> Clause:
        return fn.to_char(self._in_utc(column), 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')

    def step(self, identity: Clause) -> Clause:
        return fn.CONCAT(SQL("'9'"), fn.LPAD(identity.cast("TEXT"), 19, "0"))

    def has(self, text: Clause, part: Clause) -> Clause:
        return fn.STRPOS(text, part) > 0

    @staticmethod
    def _in_utc(column: Clause) -> Clause:
        if getattr(column, "field_type", "").upper().startswith("TIMESTAMPTZ"):
            return fn.timezone("UTC", column)
        return column

    def moment(self, column: Clause) -> Clause:
        instant = self._in_utc(column)
        seconds = fn.EXTRACT(peewee.NodeList((SQL("EPOCH FROM"), instant)))
        moment = (seconds * 1_000_000).cast("BIGINT")
        outside = [(instant < _FIRST, ALWAYS), (instant >= _AFTER_LAST, NEVER)]
        return peewee.Case(None, outside, moment)


class MariaDBConversion(Conversion):
    """MariaDB and MySQL."""

    def typed(self, name: str, value: Clause) -> Clause:
        sql_type, _, characters = self.sql_types[name].partition(" CHARACTER SET ")
        charset, _, collation = characters.partition(" COLLATE ")
        if name == "path":
            # As long as it gets in a recursive query, which takes the first row's length for all.
            cast = peewee.Cast(value, f"CHAR(1500) CHARACTER SET {charset}")
            return peewee.NodeList((cast, SQL(f"COLLATE {collation}")))
        if charset:
            converted = peewee.NodeList((value, SQL(f"USING {charset}")))
            return peewee.NodeList((fn.CONVERT(converted), SQL(f"COLLATE {collation}")))
        return peewee.Cast(value, sql_type) if name in ("decimal", "float") else value

    def _date(self, field: StoredField, column: Clause) -> Clause:
        return fn.DATE_FORMAT(column, "%Y-%m-%d")

    def _time(self, field: StoredField, column: Clause) -> Clause:
        return fn.TIME_FORMAT(column, "%H:%i:%s.%f")

    def _datetime(self, field: StoredField, column: Clause) -> Clause:
        return fn.DATE_FORMAT(column, "%Y-%m-%dT%H:%i:%s.%fZ")

    def step(self, identity: Clause) -> Clause:
        return fn.CONCAT("9", fn.LPAD(identity, 19, "0"))

    def address(self, value: Clause) -> Clause:
        # In a recursive query the first row's length is the longest that there can be.
        return self.typed("text", peewee.Cast(value, "CHAR(16000) CHARACTER SET utf8mb4"))

    def moment(self, column: Clause) -> Clause:
        moment = fn.TIMESTAMPDIFF(SQL("MICROSECOND"), "1970-01-01", column)
        # It takes the year 0 for a good one.
        return peewee.Case(None, [(fn.YEAR(column) > 0, moment)])

    def is_null(self, column: Clause) -> Clause:
        # IS NULL finds '0000-00-00' as well where a column cannot be null.
        return peewee.Expression(column, "<=>", SQL("NULL"))

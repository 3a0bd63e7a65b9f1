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

    :cvar is_loose: whether a column can have values of any type.
    :cvar materialized: False where the database can be told not to work out a named query as a
        whole before it is asked.
    :param sql_types: the database's type for each name of a kind.
    """

    is_loose: ClassVar[bool] = False
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

    def number(self, identity: Clause) -> Clause:
        """The id of an object, made of a column with the id of a row."""
        return identity

    def legible(self, column: Clause) -> Clause:
        """Whether a column has text."""
        return column.is_null(False)

    def odd(self, name: str, column: Clause) -> Clause | None:
        """Whether a column has something that is not of a kind, and is shown as if it had nothing.

        :param name: the name of the kind.
        :returns: None where no column can, or where it is seen otherwise.
        """
        return None

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

    is_loose = True
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
        return fn.contentapi_stored(field.kind.name, places, _passed(column))

    _time = _decimal = _converted

    def _float(self, field: StoredField, column: Clause) -> Clause:
        return peewee.Case(None, [(fn.typeof(column).in_(_NUMBERS), column)])

    def _boolean(self, field: StoredField, column: Clause) -> Clause:
        is_true = fn.typeof(column).in_(_NUMBERS) & column
        return peewee.Case(None, [(column.is_null(), None), (is_true, SQL("TRUE"))], SQL("FALSE"))

    def _relation(self, field: StoredField, column: Clause) -> Clause:
        return self.number(column)

    def number(self, identity: Clause) -> Clause:
        key = _key(identity)
        if key is identity:
            return identity
        # A text is 0 for it where something is added.
        return peewee.Case(None, [(fn.typeof(key) == "integer", identity)])

    def legible(self, column: Clause) -> Clause:
        # A function of Python takes far longer than to see that all is ASCII.
        is_ascii = ~peewee.Expression(column, "GLOB", "*[^ -~]*")
        return (fn.typeof(column) == "text") & (is_ascii | fn.contentapi_legible(_passed(column)))

    def odd(self, name: str, column: Clause) -> Clause | None:
        key = _key(column)
        if name == "text" and isinstance(key, _TEXTS):
            return ~self.legible(key) & key.is_null(False)
        if name == "boolean":
            return fn.typeof(key).not_in([*_NUMBERS, "null"])
        return fn.typeof(key).not_in(["integer", "null"]) if name in _INTEGERS else None

    def _text(self, field: StoredField, column: Clause) -> Clause:
        # A cast would hide the column from its index.
        return column if isinstance(column, _TEXTS) else column.cast("TEXT")

    def _date(self, field: StoredField, column: Clause) -> Clause:
        day = fn.SUBSTR(column, 1, 10)
        is_day = (fn.DATE(day, _MENDED) == day) & (day >= _FIRST_DAY)
        return peewee.Case(None, [(is_day, day)])

    def _datetime(self, field: StoredField, column: Clause) -> Clause:
        # As peewee writes nearly all; a function of Python takes far longer.
        day, clock = fn.SUBSTR(column, 1, 10), fn.SUBSTR(column, 12)
        plain = day.concat(" ").concat(fn.SUBSTR(clock, 1, 8))
        start, is_moment = day.concat("T").concat(clock), fn.DATETIME(plain, _MENDED) == plain
        is_moment &= day >= _FIRST_DAY
        whole = ((fn.LENGTH(column) == 19) & is_moment, start.concat(".000000Z"))
        has_fraction = peewee.Expression(fn.SUBSTR(column, 20), "GLOB", _FRACTION)
        fraction = (has_fraction & is_moment, start.concat("Z"))
        return peewee.Case(None, [whole, fraction], self._converted(field, column))

    def step(self, identity: Clause) -> Clause:
        return fn.printf("9%019d", identity)

    def moment(self, column: Clause) -> Clause:
        return fn.contentapi_moment(_passed(column))

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
        database.register_function(_is_legible, "contentapi_legible", 1)


#: The first day that Python has, and microseconds as peewee writes them.
_FIRST_DAY, _FRACTION = "0001-01-01", "." + "[0-9]" * 6
#: What makes SQLite put a day that a month does not have into the next one.
_MENDED = "+0 days"
_TEXTS = (peewee.CharField, peewee.TextField)
_NUMBERS = ("integer", "real")
_INTEGERS = ("integer", "relation")


def _passed(column: Clause) -> Clause:
    """A column as it is passed to a function of Python, which would not take all text."""
    is_text = fn.typeof(column) == "text"
    return peewee.Case(None, [(is_text, column.cast("BLOB"))], column)


def _key(identity: Clause) -> Clause:
    """The column that the id of an object is made of, if it is one that is added to."""
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
    """What peewee keeps in SQLite as a value of a kind; None if it is none."""
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
        return self._within(column, fn.to_char(column, "YYYY-MM-DD"))

    def _time(self, field: StoredField, column: Clause) -> Clause:
        text = fn.to_char(column.cast("INTERVAL"), "HH24:MI:SS.US")
        return peewee.Case(None, [(column < SQL("TIME '24:00'"), text)])

    def _float(self, field: StoredField, column: Clause) -> Clause:
        number = column.cast("DOUBLE PRECISION")
        infinite = [SQL("'NaN'"), SQL("'Infinity'"), SQL("'-Infinity'")]
        return peewee.Case(None, [(number.not_in(infinite), number)])

    def _datetime(self, field: StoredField, column: Clause) -> Clause:
        instant = self._in_utc(column)
        return self._within(instant, fn.to_char(instant, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))

    @staticmethod
    def _within(moment: Clause, text: Clause) -> Clause:
        """The text of a moment of the years 1 to 9999; others would look like such."""
        return peewee.Case(None, [((moment >= _FIRST) & (moment < _AFTER_LAST), text)])

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
        return self._whole(column, fn.DATE_FORMAT(column, "%Y-%m-%d"))

    def _time(self, field: StoredField, column: Clause) -> Clause:
        text = fn.TIME_FORMAT(column, "%H:%i:%s.%f")
        return peewee.Case(None, [((column >= "00:00:00") & (column < "24:00:00"), text)])

    def _datetime(self, field: StoredField, column: Clause) -> Clause:
        return self._whole(column, fn.DATE_FORMAT(column, "%Y-%m-%dT%H:%i:%s.%fZ"))

    @staticmethod
    def _whole(date: Clause, text: Clause) -> Clause:
        """The text of a date that has a day, a month and a year."""
        is_whole = (fn.YEAR(date) > 0) & (fn.MONTH(date) > 0) & (fn.DAYOFMONTH(date) > 0)
        return peewee.Case(None, [(is_whole, text)])

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

"""Database columns for stored values.

Every database compares all kinds of values as Python does: texts are compared by code point, dates
and times are ISO 8601 texts of a fixed width, instants are in UTC, and decimals are exact.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import orjson
import peewee

from flask_contentapi import kinds

__all__ = [
    "ALWAYS",
    "EPOCH",
    "NEVER",
    "OPEN",
    "Clause",
    "StoredField",
    "md5",
    "microseconds",
    "stored_field",
]

#: Parts of statements. The types of peewee's nodes do not declare their operators.
Clause = Any

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: A moment before all others, and one after them, in microseconds.
ALWAYS, NEVER = -(2**62), 2**62
#: Stands for the nearest restricted page if there is none; no page has this id.
OPEN = -1


def microseconds(moment: datetime) -> int:
    """A moment as an exact number of microseconds since 1970."""
    since = moment - EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def md5(text: str) -> str:
    """The digest for looking up long paths, which every database can compute."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


class StoredField(peewee.Field):
    """A column for one kind of value; this class is for values that drivers take as they are.

    :param kind: the kind.
    :param sql_type: the type of the column.
    :param kwargs: the arguments of every peewee field.
    """

    is_plain = True

    def __init__(self, kind: kinds.Kind, sql_type: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.kind = kind
        self.field_type = sql_type  # type: ignore[misc]

    def db_value(self, value: Any) -> Any:
        return None if value is None else self.encode(value)

    def python_value(self, value: Any) -> Any:
        return None if value is None else self.decode(value)

    def encode(self, value: Any) -> Any:
        """Converts a stored value for the driver."""
        return value

    def decode(self, value: Any) -> Any:
        """Converts a value from the driver to a stored value."""
        return value


class _Boolean(StoredField):
    is_plain = False

    def decode(self, value: Any) -> Any:
        return bool(value)


class _Float(StoredField):
    is_plain = False

    def decode(self, value: Any) -> Any:
        return float(value)


class _Instant(StoredField):
    is_plain = False

    def encode(self, value: Any) -> Any:
        return value.isoformat(timespec="microseconds")[:26] + "Z"

    def decode(self, value: Any) -> Any:
        return datetime.fromisoformat(value)


class _Date(StoredField):
    is_plain = False

    def encode(self, value: Any) -> Any:
        return value.isoformat()

    def decode(self, value: Any) -> Any:
        return date.fromisoformat(value)


class _Time(StoredField):
    is_plain = False

    def encode(self, value: Any) -> Any:
        return value.isoformat(timespec="microseconds")

    def decode(self, value: Any) -> Any:
        return time.fromisoformat(value)


class _Json(StoredField):
    is_plain = False

    def encode(self, value: Any) -> Any:
        return orjson.dumps(value).decode()

    def decode(self, value: Any) -> Any:
        return orjson.loads(value)


class _Decimal(StoredField):
    """A decimal in a database with exact decimals."""

    is_plain = False

    def decode(self, value: Any) -> Any:
        return self.kind.read(value if isinstance(value, str) else Decimal(value))


class _DecimalText(StoredField):
    """A decimal as text that sorts numerically, in a database without exact decimals.

    Negative numbers have the complement of each digit, and end with a character after all digits.
    """

    is_plain = False
    _complement = str.maketrans("0123456789", "9876543210")

    def encode(self, value: Any) -> Any:
        whole, _, places = format(value.copy_abs(), "f").partition(".")
        digits = f"{whole:0>{kinds.DECIMAL_DIGITS}}.{places}"
        return f"1{digits}" if value >= 0 else f"0{digits.translate(self._complement)}~"

    def decode(self, value: Any) -> Any:
        digits = value[1:].rstrip("~").rstrip(".")
        if value[0] == "0":
            digits = "-" + digits.translate(self._complement)
        return self.kind.read(digits)


_FIELDS: Mapping[str, type[StoredField]] = {
    "boolean": _Boolean,
    "float": _Float,
    "datetime": _Instant,
    "date": _Date,
    "time": _Time,
    "json": _Json,
    "blocks": _Json,
    "decimal": _Decimal,
}


def stored_field(kind: kinds.Kind, sql_types: Mapping[str, str], **kwargs: Any) -> StoredField:
    """The column for a kind of value.

    :param kind: the kind; tags and children have their own tables instead.
    :param sql_types: the database's type for each name of a kind; that of ``text`` for decimals if
        it has no exact ones.
    :param kwargs: the arguments of every peewee field.
    """
    name = kind.name
    if name == "decimal" and sql_types[name] == sql_types["text"]:
        return _DecimalText(kind, sql_types[name], **kwargs)
    return _FIELDS.get(name, StoredField)(kind, sql_types[name], **kwargs)

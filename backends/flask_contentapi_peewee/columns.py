"""What stands in the columns of tables, and how it is compared.

Every database compares all kinds of values as Python does: texts are compared by code point, dates
and times are ISO 8601 texts of a fixed width, instants are in UTC, and decimals are exact.

Places in the tree of pages are texts too, so that an index on them serves queries about the tree.
A path has a step for each page from the root page down. A step is the page's number among its
siblings, with the count of its digits in front, so that text order is number order::

    210        the first root page (10)
    210220     its second child (20)
    2103100    its tenth (100)

A page comes before its descendants, and these before its next sibling. The paths of pages below a
page are between its path and its path followed by a colon, the character after 9.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import partial
from operator import and_, or_
from typing import Any

import orjson
import peewee
from peewee import SQL

from flask_contentapi import kinds

#: Parts of statements. The types of peewee's nodes do not declare their operators.
Clause = Any

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: A moment before all others, and one after them, in microseconds.
ALWAYS, NEVER = -(2**62), 2**62
#: Stands for the nearest restricted page if there is none; no page has this id.
OPEN = -1
#: The initial difference between the numbers of siblings, to leave room for pages in between.
GAP = 10
#: The largest number that a step can have.
LARGEST = 10**9 - 1
#: Follows every step in text order.
AFTER = ":"


def microseconds(moment: datetime) -> int:
    """A moment as an exact number of microseconds since 1970."""
    since = moment - EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def md5(text: str) -> str:
    """The digest for looking up long paths, which every database can compute."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


# Paths.


def step(number: int) -> str:
    """The step of the page with a number among its siblings.

    >>> step(10), step(100)
    ('210', '3100')
    """
    digits = str(number)
    return f"{len(digits)}{digits}"


def end(path: str) -> str:
    """The text that sorts directly after a page and all pages below it."""
    return path + AFTER


def last_number(path: str) -> int:
    """The number of a page among its siblings.

    >>> last_number("210220")
    20
    """
    start = position = 0
    while position < len(path):
        start, position = position, position + 1 + int(path[position])
    return int(path[start + 1 :])


# Conditions. Joined in sequence they would be nested deeply, and a client's query, or many sites
# and languages, would soon exceed the nesting that libraries and databases allow.


def all_of(conditions: Sequence[Clause]) -> Clause:
    """The condition that all conditions are met; true if there are none."""
    return balanced(and_, conditions) if conditions else SQL("1 = 1")


def any_of(conditions: Sequence[Clause]) -> Clause:
    """The condition that one of the conditions is met; false if there are none."""
    return balanced(or_, conditions) if conditions else SQL("1 = 0")


def balanced(join: Callable[[Clause, Clause], Clause], parts: Sequence[Clause]) -> Clause:
    """Parts of a statement, at least one, joined by an operator."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return join(balanced(join, parts[:middle]), balanced(join, parts[middle:]))


# Values.

#: The functions from a stored value to one for the driver and back; None: it is the same.
Codec = tuple[Callable[[Any], Any] | None, Callable[[Any], Any] | None]


class StoredField(peewee.Field):
    """A column for one kind of value; tags and children have their own tables instead.

    :param sql_types: the database's type for each name of a kind; that of ``text`` for decimals if
        it has no exact ones.
    :param name: the name there, if it is another one.
    """

    def __init__(
        self, kind: kinds.Kind, sql_types: Mapping[str, str], name: str = "", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.kind = kind
        self.field_type = sql_types[name or kind.name]  # type: ignore[misc]
        self.encode, self.decode = _CODECS.get(kind.name, (None, None))
        if kind.name == "decimal" and self.field_type == sql_types["text"]:
            self.encode, self.decode = _digits, lambda value: kind.read(_number(value))
        elif kind.name == "decimal":
            self.decode = lambda v: kind.read(v if isinstance(v, str) else Decimal(v))

    def db_value(self, value: Any) -> Any:
        return value if value is None or self.encode is None else self.encode(value)

    def python_value(self, value: Any) -> Any:
        return value if value is None or self.decode is None else self.decode(value)


_JSON: Codec = (lambda value: orjson.dumps(value).decode(), orjson.loads)
_CODECS: Mapping[str, Codec] = {
    "boolean": (None, bool),
    "float": (None, float),
    "datetime": (
        lambda value: value.isoformat(timespec="microseconds")[:26] + "Z",
        datetime.fromisoformat,
    ),
    "date": (date.isoformat, date.fromisoformat),
    "time": (partial(time.isoformat, timespec="microseconds"), time.fromisoformat),
    "json": _JSON,
    "blocks": _JSON,
}

_COMPLEMENT = str.maketrans("0123456789", "9876543210")


def _digits(value: Decimal) -> str:
    """A decimal as text that sorts numerically.

    Negative numbers have the complement of each digit, and end with a character after all digits.
    """
    whole, _, places = format(value.copy_abs(), "f").partition(".")
    digits = f"{whole:0>{kinds.DECIMAL_DIGITS}}.{places}"
    return f"1{digits}" if value >= 0 else f"0{digits.translate(_COMPLEMENT)}~"


def _number(text: str) -> str:
    digits = text[1:].rstrip("~").rstrip(".")
    return digits if text[0] == "1" else f"-{digits.translate(_COMPLEMENT)}"

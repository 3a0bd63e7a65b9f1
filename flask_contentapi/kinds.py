"""The kinds of value that a stored field can hold.

A kind reads a value from a content record, writes it back, and reads it from a query string.
A stored value has the same Python form in every backend, so that equality and order are the same
everywhere: :class:`str`, :class:`int`, :class:`float`, :class:`bool`, :class:`~decimal.Decimal`,
:class:`~datetime.date`, :class:`~datetime.time`, an aware :class:`~datetime.datetime` in UTC, and
lists and JSON for what is neither filtered nor ordered.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Container, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context
from decimal import Decimal as PythonDecimal
from typing import Any, ClassVar, Final, NamedTuple, TypeGuard, TypeVar

T = TypeVar("T")


class Gap(NamedTuple):
    """The gap between storable values that a value in a query string falls into.

    :param below: the greatest storable value below it; None if all are greater.
    :param above: the least storable value above it; None if all are less.
    """

    below: Any
    above: Any


INT64: Final = range(-(2**63), 2**63)
#: Digits of a decimal before and after its point that every backend can store exactly.
DECIMAL_DIGITS: Final = 30
#: Computes with decimals without rounding them.
EXACT: Final = Context(prec=MAX_PREC, Emin=MIN_EMIN, Emax=MAX_EMAX)
#: The resolution of instants and times of day.
MICROSECOND: Final = timedelta(microseconds=1)
#: Digits beyond the microseconds.
_FINER = re.compile(r"\.[0-9]{6}0*[1-9]")
#: How deep a JSON value may be nested.
JSON_DEPTH: Final = 64
#: The maximum length of a type's label or a language code, in characters. Every database can store
#: that many.
LONGEST_NAME: Final = 255
#: The maximum length of a tag or a slug, in characters. In any script they then fit into a query
#: string, percent-encoded.
LONGEST_KEY: Final = 1_000
#: The maximum length of the path of slugs down to a page, and of the path of a redirect,
#: percent-encoded, with which ``find/`` has room for it and for its other parameters.
LONGEST_PATH: Final = 13_000

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,9})?")
_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = r"[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?"
_DATE_ONLY = re.compile(_DATE)
_TIME_ONLY = re.compile(_TIME)
# The "+" of an offset arrives as a space where a client did not escape it.
_INSTANT = re.compile(rf"({_DATE})([Tt ]({_TIME}))?([Zz]|[ +-][0-9]{{2}}(:?[0-9]{{2}})?)?")


class Kind:
    """One kind of stored value.

    :cvar name: its name in error messages and for backends that choose a column type by it.
    :cvar filterable: whether a query string may ask for an exact value.
    :cvar orderable: whether a list may be ordered by it.
    :cvar many: whether a value has any number of entries, of which a query string may name some.
    :cvar empty_value: the stored value if a record leaves the field out.
    :cvar schema: the JSON Schema of a value in a query string.
    """

    name: str
    schema: ClassVar[Mapping[str, Any]] = {"type": "string"}
    filterable = True
    orderable = True
    many = False
    empty_value: ClassVar[Any] = None

    def empty(self) -> Any:
        """:attr:`empty_value`, as a new object if it can be changed."""
        return self.empty_value

    def read(self, value: Any) -> Any:
        """The stored value for a value in a record (not None).

        :raises ValueError: if the value does not fit, saying what would.
        """
        raise NotImplementedError

    def write(self, value: Any) -> Any:
        """A stored value as JSON for a content record."""
        return value

    def parse(self, text: str) -> Any:
        """The stored value that a query string asks for, or the :class:`Gap` that it falls into.

        :raises ValueError: if the text cannot be read, saying what could.
        """
        raise NotImplementedError


class Text(Kind):
    name = "text"
    empty_value: ClassVar[Any] = ""

    def read(self, value: Any) -> str:
        if not isinstance(value, str):
            raise ValueError("must be text")
        return value if value.isascii() and "\0" not in value else check_text(value)

    def parse(self, text: str) -> str:
        return text


class Canonical(Text):
    """Text that can be written in several forms, of which one is stored, such as a UUID.

    :param canonical: converts any other form, or the Python object, to that form; raises a
        ValueError for anything else.
    """

    empty_value = None

    def __init__(self, canonical: Callable[[Any], str]) -> None:
        self.canonical = canonical

    def read(self, value: Any) -> str:
        return check_text(self.canonical(value))

    def parse(self, text: str) -> str:
        return self.canonical(text)


class Integer(Kind):
    name = "integer"
    schema = {"type": "integer"}
    _wanted: ClassVar[str] = "an integer"

    def read(self, value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError(f"must be {self._wanted}")
        if value not in INT64:
            raise ValueError("must be an integer of at most 64 bits")
        return int(value)

    def parse(self, text: str) -> Any:
        number = parse_integer(text)
        if number in INT64:
            return number
        return Gap(INT64[-1], None) if number > 0 else Gap(None, INT64[0])


class Float(Kind):
    name = "float"
    schema = {"type": "number"}

    def read(self, value: Any) -> float | None:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise ValueError("must be a number")
        try:
            number = float(value)
        except OverflowError:
            raise ValueError("must be a number that fits 64 bits") from None
        # JSON has no NaN or infinity, and not every database tells minus zero from zero.
        return number + 0.0 if math.isfinite(number) else None

    def parse(self, text: str) -> float:
        number = float(text) if _NUMBER.fullmatch(text.strip()) else math.nan
        if not math.isfinite(number):
            raise ValueError("must be a finite number, such as 7.5")
        return number


class Decimal(Kind):
    """Exact decimals, with a fixed number of places or as many as the value needs."""

    name = "decimal"
    schema = {"type": "string", "format": "decimal", "examples": ["4.50"]}

    def __init__(self, places: int | None = None) -> None:
        self.places = places
        self._most_places = DECIMAL_DIGITS if places is None else places

    def read(self, value: Any) -> PythonDecimal:
        if isinstance(value, bool) or not isinstance(value, int | float | str | PythonDecimal):
            raise ValueError("must be a decimal number")
        text = str(value).strip()
        if not _NUMBER.fullmatch(text):
            raise ValueError('must be a decimal number, such as "4.50"')
        number = self._canonical(PythonDecimal(text))
        if number is None:
            limit = f"{DECIMAL_DIGITS} digits before the point and {self._most_places} after it"
            raise ValueError(f"must be a decimal with at most {limit}")
        return number

    def _canonical(self, number: PythonDecimal) -> PythonDecimal | None:
        """The number with its places; None if it has more digits than can be stored."""
        # There is no minus zero.
        number = EXACT.plus(number).normalize(EXACT)
        exponent = number.as_tuple().exponent
        assert isinstance(exponent, int)
        if -exponent > self._most_places or number.adjusted() >= DECIMAL_DIGITS:
            return None
        places = max(-exponent, 0) if self.places is None else self.places
        return number.quantize(_last_digit(places), context=EXACT)

    def write(self, value: Any) -> Any:
        return format(value, "f")

    def parse(self, text: str) -> Any:
        if not _NUMBER.fullmatch(text.strip()):
            raise ValueError("must be a decimal number, such as 4.50")
        wanted = PythonDecimal(text.strip())
        number = self._canonical(wanted)
        return self._gap(wanted) if number is None else number

    def _gap(self, number: PythonDecimal) -> Gap:
        step = _last_digit(self._most_places)
        highest = EXACT.subtract(_last_digit(-DECIMAL_DIGITS), step)
        if number.copy_abs() > highest:
            highest = highest.copy_sign(number)
            return Gap(None, highest) if highest < 0 else Gap(highest, None)
        below, above = (
            self._canonical(number.quantize(step, rounding, EXACT))
            for rounding in (ROUND_FLOOR, ROUND_CEILING)
        )
        return Gap(below, above)


def _last_digit(places: int) -> PythonDecimal:
    return PythonDecimal((0, (1,), -places))


class Boolean(Kind):
    name = "boolean"
    schema = {"type": "boolean"}
    empty_value = False
    _values = {"true": True, "1": True, "false": False, "0": False}

    def read(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise ValueError("must be true or false")
        return value

    def parse(self, text: str) -> bool:
        try:
            return self._values[text]
        except KeyError:
            raise ValueError("must be true, false, 1 or 0") from None


class Date(Kind):
    name = "date"
    schema = {"type": "string", "format": "date"}

    def read(self, value: Any) -> date:
        if isinstance(value, date) and not isinstance(value, datetime):
            return value
        return self.parse(value)

    def write(self, value: Any) -> Any:
        return value.isoformat()

    def parse(self, text: str) -> date:
        if isinstance(text, str) and _DATE_ONLY.fullmatch(text):
            return _convert(date.fromisoformat, text, "a date of the calendar")
        raise ValueError("must be a date, such as 2026-01-15")


class Time(Kind):
    name = "time"
    schema = {"type": "string", "examples": ["18:30:00"]}

    def read(self, value: Any) -> time:
        if isinstance(value, time) and value.tzinfo is None:
            return value
        return self._truncate(value)

    def write(self, value: Any) -> Any:
        return value.isoformat()

    def parse(self, text: str) -> Any:
        below = self._truncate(text)
        if not _FINER.search(text):
            return below
        above = datetime.combine(date.min, below) + MICROSECOND
        return Gap(below, above.time() if above.date() == date.min else None)

    @staticmethod
    def _truncate(text: str) -> time:
        if isinstance(text, str) and _TIME_ONLY.fullmatch(text):
            return _convert(time.fromisoformat, text, "a time of the day")
        raise ValueError("must be a time of day, such as 18:30:00")


class DateTime(Kind):
    """Instants, in UTC if no offset is given."""

    name = "datetime"
    schema = {"type": "string", "examples": ["2026-01-15T08:00:00Z"]}

    def read(self, value: Any) -> datetime:
        if isinstance(value, datetime):
            return _convert(utc, value, "an instant of the years 1 to 9999")
        return self._truncate(value)

    def write(self, value: Any) -> Any:
        return value.isoformat().replace("+00:00", "Z")

    def parse(self, text: str) -> Any:
        below = self._truncate(text)
        if not _FINER.search(text):
            return below
        is_last = below == datetime.max.replace(tzinfo=UTC)
        return Gap(below, None if is_last else below + MICROSECOND)

    @staticmethod
    def _truncate(text: str) -> datetime:
        match = _INSTANT.fullmatch(text) if isinstance(text, str) else None
        if not match or (match[6] and not match[2]):
            raise ValueError("must be an instant, such as 2026-01-15T08:00:00Z")
        offset = (match[6] or "Z").upper().replace(" ", "+")
        instant = f"{match[1]}T{match[3] or '00:00'}{offset}"
        return _convert(lambda iso: utc(datetime.fromisoformat(iso)), instant, "an instant")


class Relation(Integer):
    """The id of one object of another endpoint."""

    name = "relation"
    _wanted = "the id of an object, or null"

    def parse(self, text: str) -> int | Any:
        try:
            return super().parse(text)
        except ValueError:
            raise ValueError("must be the id of an object") from None


class Many(Kind):
    """Any number of entries, as a tuple."""

    orderable = False
    many = True
    empty_value = ()

    def write(self, value: Any) -> Any:
        return list(value)


class Relations(Many):
    """The ids of several objects of another endpoint, in stored order."""

    name = "relations"

    def read(self, value: Any) -> tuple[int, ...]:
        wanted, one = "must be a list of ids of objects", Integer()
        if not isinstance(value, list | tuple):
            raise ValueError(wanted)
        ids = []
        for number, entry in enumerate(value):
            try:
                ids.append(one.read(entry))
            except ValueError as error:
                raise ValueError(f"{wanted}, but [{number}] {error}") from None
        return tuple(ids)

    def parse(self, text: str) -> Any:
        try:
            wanted = [Relation().parse(part) for part in text.split(",")]
        except ValueError:
            raise ValueError("must be ids of objects, separated by commas") from None
        gaps = (each for each in wanted if isinstance(each, Gap))
        return next(gaps, tuple(dict.fromkeys(wanted)))


def shared(text: str) -> str:
    """A text that many objects have, which is so kept in memory once."""
    return sys.intern(text) if type(text) is str else text


class Tags(Many):
    """A set of tags, in code point order."""

    name = "tags"

    def read(self, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list | tuple) or not all(isinstance(tag, str) for tag in value):
            raise ValueError("must be a list of texts")
        return tuple(map(shared, sorted({self._check_tag(tag) for tag in value})))

    @staticmethod
    def _check_tag(tag: str) -> str:
        """Refuses tags that :meth:`parse` could not give back, so that no query could name."""
        if "," in tag:
            raise ValueError(
                f"must be tags without commas, which separate tags in queries; write {tag!r} as "
                "several tags, or without the comma"
            )
        if len(tag) > LONGEST_KEY:
            raise ValueError(f"must be tags of at most {LONGEST_KEY:,} characters")
        return check_text(tag)

    def parse(self, text: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(text.split(",")))


class Json(Kind):
    """Any JSON value, returned as it is."""

    name = "json"
    filterable = False
    orderable = False

    def read(self, value: Any) -> Any:
        return read_json(value)


class Blocks(Json):
    """A JSON list of blocks."""

    name = "blocks"

    def empty(self) -> list[Any]:
        return []

    def read(self, value: Any) -> Any:
        if not isinstance(value, list | tuple):
            raise ValueError("must be a list of blocks")
        return read_json(value)


class Children(Kind):
    """Child objects, as a tuple of rows; their type reads them."""

    name = "children"
    filterable = False
    orderable = False
    empty_value = ()


def parse_integer(text: str) -> int:
    """Reads an integer as clients write it. Spaces around it are ignored, huge ones are capped.

    :raises ValueError: if the text is no integer.
    """
    digits = text.strip()
    if not _INTEGER.fullmatch(digits):
        raise ValueError("must be an integer")
    sign = -1 if digits.startswith("-") else 1
    digits = digits.lstrip("+-").lstrip("0")
    # Converting thousands of digits is slow, and Python refuses more than 4,300.
    return sign * (int(digits or "0") if len(digits) <= 20 else 10**20)


def check_text(value: str) -> str:
    """Returns the text.

    :raises ValueError: if databases or UTF-8 cannot represent it.
    """
    if "\0" in value:
        raise ValueError("must be text without NUL characters")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError("must be text without half surrogate pairs") from None
    return value


def read_json(value: Any, depth: int = JSON_DEPTH) -> Any:
    """A copy of a JSON value.

    :raises ValueError: if it is not JSON, is nested too deeply or has a number out of range.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return check_text(value)
    if isinstance(value, int):
        return Integer().read(value)
    if isinstance(value, float):
        return Float().read(value)
    if depth == 0:
        raise ValueError(f"must be JSON nested at most {JSON_DEPTH} deep")
    if isinstance(value, list | tuple):
        return [read_json(entry, depth - 1) for entry in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {check_text(key): read_json(entry, depth - 1) for key, entry in value.items()}
    raise ValueError("must be JSON")


def utc(value: datetime) -> datetime:
    """An instant in UTC, in which it is without an offset."""
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _convert(make: Callable[[Any], T], value: Any, wanted: str) -> T:
    try:
        return make(value)
    except (ValueError, OverflowError):
        raise ValueError(f"must be {wanted}") from None


#: Functions by the type of the blocks whose values they convert.
Converters = Mapping[str, Callable[[Any], Any]]


def is_block(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether a JSON value is a block."""
    return isinstance(value, dict) and "value" in value and isinstance(value.get("type"), str)


def _is_id(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def blocks_in(value: Any) -> Iterator[tuple[str, Any]]:
    """The types and values of the blocks in a JSON value, at any depth."""
    if isinstance(value, list):
        for entry in value:
            yield from blocks_in(entry)
    elif isinstance(value, dict):
        if is_block(value):
            yield value["type"], value["value"]
        for entry in value.values():
            yield from blocks_in(entry)


def ids_in(value: Any, block: str) -> Iterator[int]:
    """The ids that are the values of blocks of a type, at any depth of a JSON value."""
    return (inner for name, inner in blocks_in(value) if name == block and _is_id(inner))


def id_converter(found: Container[int], build: Callable[[int], Any]) -> Callable[[Any], Any]:
    """The converter for blocks whose value is the id of an object.

    :param found: the ids of the objects that may be seen; of others nothing is left.
    :param build: gives what takes the place of an id.
    """
    return lambda value: build(value) if _is_id(value) and value in found else None


def texts_in(value: Any) -> Iterator[str]:
    """All strings in a JSON value; for blocks only those in their values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for entry in [value["value"]] if is_block(value) else value.values():
            yield from texts_in(entry)
    elif isinstance(value, list | tuple):
        for entry in value:
            yield from texts_in(entry)


def convert_blocks(value: Any, writers: Converters, converters: Converters) -> Any:
    """A JSON value with its blocks converted for answers.

    :param writers: by block type, the function from the stored value to the one in answers, in
        which inner blocks are then converted.
    :param converters: by block type, the function from a value whose inner blocks have been
        converted to the one in answers.
    """
    if isinstance(value, list):
        return [convert_blocks(entry, writers, converters) for entry in value]
    if not isinstance(value, dict):
        return value
    block = value["type"] if is_block(value) else None
    if block is not None and block in writers:
        value = {**value, "value": writers[block](value["value"])}
    answered = {key: convert_blocks(entry, writers, converters) for key, entry in value.items()}
    if block is not None and block in converters:
        answered["value"] = converters[block](answered["value"])
    return answered

"""Reads hand-written JSON: strictly, and with line numbers for errors.

Files that are served and files that commands load are read by the same rules.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

__all__ = ["Fault", "Lines", "Unreadable", "decode", "in_line", "parse_json"]

_SPACE = re.compile(r"[ \t\n\r]*")
_NO_NUMBER = re.compile(r"NaN|-?Infinity")
#: The first character of a value.
_VALUE = re.compile(r'["{\[\-0-9tfn]')
#: How many digits of an integer are read; it is out of range long before.
_DIGITS = 1000


class Fault(NamedTuple):
    """What makes a file unreadable.

    :param line: its line, counted from 1, or 0 if there is none.
    :param message: what is wrong.
    """

    line: int
    message: str


class Unreadable(Exception):
    """A file cannot be read; has all faults found."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__(*faults)
        self.faults = faults


def in_line(name: str, line: int) -> str:
    """The name of a file, with a line unless it is 0."""
    return f"{name}, line {line}" if line else name


def decode(data: bytes) -> str:
    """The text in a file.

    :raises Unreadable: if it is not UTF-8.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise Unreadable(Fault(line, "must be UTF-8")) from None


def _integer(digits: str) -> int:
    # Python refuses to convert several thousand digits.
    return int(digits[:_DIGITS])


_decode = json.JSONDecoder(parse_int=_integer).raw_decode


def parse_json(text: str) -> Any:
    """The value of a JSON text.

    :raises Unreadable: if it is not JSON, repeats a key in an object, or has ``NaN`` or
        ``Infinity``.
    """
    doubtful: list[Any] = []

    def make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            doubtful.append(made)
        return made

    try:
        value = json.loads(
            text,
            object_pairs_hook=make_object,
            parse_constant=doubtful.append,
            parse_int=_integer,
        )
    except json.JSONDecodeError as error:
        raise Unreadable(_no_json(text, error)) from None
    except RecursionError:
        raise Unreadable(Fault(0, "is nested too deeply")) from None
    if doubtful:
        raise Unreadable(*_faults(text))
    return value


def _no_json(text: str, error: json.JSONDecodeError) -> Fault:
    """Why a text is not JSON; if a comma is the reason, at the position to fix."""
    # Newer versions of Python stop at a superfluous comma, older ones after it.
    stop = error.pos if text[error.pos : error.pos + 1] != "," else error.pos + 1
    before = text[:stop].rstrip(" \t\n\r")
    end, start = len(before), _skip_space(text, stop)
    following = text[start : start + 1]
    why, position = error.msg, error.pos
    if before.endswith(",") and following and following in "}]":
        why, position = f"there is an extra comma before {following}", end - 1
    elif error.msg == "Expecting ',' delimiter" and _VALUE.match(following):
        why, position = "a comma is missing", end
        if "\n" in text[end:start]:
            return Fault(Lines(text).at(end), f"is not JSON: {why} at the end of the line")
    column = position - text.rfind("\n", 0, position)
    return Fault(Lines(text).at(position), f"is not JSON: {why} (column {column})")


def _faults(text: str) -> Iterator[Fault]:
    """The faults of a text that the parser of the standard library accepts."""
    lines = Lines(text)
    found = []
    waiting = [_skip_space(text, 0)]
    while waiting:
        start = waiting.pop()
        if no_number := _NO_NUMBER.match(text, start):
            found.append((start, f"{no_number[0]} is no JSON; write null"))
        keys = set()
        for member in _members(text, start):
            if member.key in keys:
                found.append((member.start, f"the object has the key {member.key!r} already"))
            keys.add(member.key)
            waiting.append(member.value)
    yield from (Fault(lines.at(position), message) for position, message in sorted(found))


class _Member(NamedTuple):
    """A member of an object or an entry of a list.

    :param key: its key, or its index in the list.
    :param start: where it starts in the text.
    :param value: where its value starts.
    """

    key: str | int
    start: int
    value: int


def _members(text: str, start: int) -> Iterator[_Member]:
    """The members of the object or list that starts at a position; other values have none."""
    opening = text[start]
    if opening not in "{[":
        return
    position, number = _skip_space(text, start + 1), 0
    while text[position] not in "}]":
        key: str | int = number
        value = position
        if opening == "{":
            key, after = _decode(text, position)
            value = _skip_space(text, _skip_space(text, after) + 1)
        yield _Member(key, position, value)
        _, after = _decode(text, value)
        position, number = _skip_space(text, after), number + 1
        if text[position] == ",":
            position = _skip_space(text, position + 1)


def _skip_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    assert match is not None
    return match.end()


class Lines:
    """Finds line numbers in a JSON text.

    :param text: the text, which may not be valid JSON.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._breaks = [match.start() for match in re.finditer("\n", text)]

    def at(self, position: int) -> int:
        """The line of a position in the text, counted from 1."""
        return bisect_left(self._breaks, position) + 1

    def of(self, path: Sequence[str | int]) -> int:
        """The line of the member at a path of keys and indexes, counted from 1.

        If the path breaks off, it is the line of the last existing member on it; 0 if the text is
        not JSON.
        """
        try:
            return self.at(self._find(path))
        except (ValueError, IndexError, RecursionError):
            return 0

    def _find(self, path: Sequence[str | int]) -> int:
        position = _skip_space(self._text, 0)
        members = self._top
        for step in path:
            if step not in members:
                break
            member = members[step]
            position = member.start
            members = {member.key: member for member in _members(self._text, member.value)}
        return position

    @cached_property
    def _top(self) -> dict[str | int, _Member]:
        start = _skip_space(self._text, 0)
        return {member.key: member for member in _members(self._text, start)}

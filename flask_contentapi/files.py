"""Reads hand-written JSON and Markdown: strictly, and with line numbers for errors.

Files that are served and files that commands load are read by the same rules.
"""

from __future__ import annotations

import json
import os
import re
import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import click
import orjson

from flask_contentapi.errors import ContentError, Problem

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_SPACE = re.compile(r"[ \t\n\r]*")
_NO_NUMBER = re.compile(r"NaN|-?Infinity")
#: The first character of a value.
_VALUE = re.compile(r'["{\[\-0-9tfn]')
#: How comments begin in other languages, and there names, and texts, without double quotes.
_COMMENT = re.compile(r"//|/\*|#")
_OTHER_NAME, _OTHER_TEXT = re.compile(r"['\w\u2018-\u201f]"), re.compile("['\u2018-\u201f]")
#: How Python writes true, false and null.
_PYTHON = {"True": "true", "False": "false", "None": "null"}
#: What is wrong, by how the parser's message begins: within texts, and between them.
_WITHIN = {
    "Unterminated string": "a quote is missing at the end of a text",
    "Invalid control character": r"a quote is missing at the end of a text, or \n or \t in it",
    "Invalid \\": "a backslash in a text is written twice",
}
_BETWEEN = {
    "Expecting property name": "a name in double quotes is missing",
    "Expecting ':'": "a colon is missing",
    "Expecting ','": "a comma or bracket is missing",
    "Expecting value": "this is no value; texts are in double quotes",
    "Extra data": "something follows its end",
}
#: How many digits of an integer are read; it is out of range long before.
_DIGITS = 1000


class Fault(NamedTuple):
    """What makes a file unreadable.

    :param line: its line, counted from 1, or 0 if there is none.
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


def markdown_parser() -> MarkdownIt:
    """Reads Markdown: CommonMark with tables and strikethrough, and HTML as it is.

    :raises Unreadable: if the package for it is not installed.
    """
    try:
        from markdown_it import MarkdownIt
    except ImportError:
        message = "Markdown needs the package markdown-it-py: flask_contentapi[markdown]"
        raise Unreadable(Fault(0, message)) from None
    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


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
            text, object_pairs_hook=make_object, parse_constant=doubtful.append, parse_int=_integer
        )
    except json.JSONDecodeError as error:
        raise Unreadable(_no_json(text, error)) from None
    except RecursionError:
        raise Unreadable(Fault(0, "is nested too deeply")) from None
    if doubtful:
        raise Unreadable(*_faults(text))
    return value


def _no_json(text: str, error: json.JSONDecodeError) -> Fault:
    """Why a text is not JSON, at the position to fix if the reason is a usual mistake."""
    if _skip_space(text, 0) == len(text):
        return Fault(0, "is empty")
    # Newer versions of Python stop at a superfluous comma, older ones after it.
    stop = error.pos if text[error.pos : error.pos + 1] != "," else error.pos + 1
    before = text[:stop].rstrip(" \t\n\r")
    end, start = len(before), _skip_space(text, stop)
    following = text[start : start + 1]
    position, known = error.pos, {**_WITHIN, **_BETWEEN}
    why = next((known[start] for start in known if error.msg.startswith(start)), error.msg)
    if why in _WITHIN.values():
        pass  # What is around it tells nothing.
    elif not following:
        why, position = "a closing bracket is missing", end
    elif word := next((word for word in _PYTHON if text.startswith(word, position)), ""):
        why = f"{word} is no JSON; write {_PYTHON[word]}"
    elif _COMMENT.match(text, position):
        why = "JSON has no comments"
    elif (_OTHER_NAME if "property name" in error.msg else _OTHER_TEXT).match(text, position):
        why = "names and texts are in double quotes"
    elif before.endswith(",") and following and following in "}]":
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
    """A member of an object or an entry of a list: its key or its index, and where in the text it
    and its value start."""

    key: str | int
    start: int
    value: int


def _members(text: str, start: int) -> Iterator[_Member]:
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
    """Finds line numbers in a JSON text, which may not be valid."""

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
            position, members = _skip_space(self._text, 0), self._top
            for step in path:
                if step not in members:
                    break
                position = members[step].start
                members = self._members(members[step].value)
            return self.at(position)
        except (ValueError, IndexError, RecursionError):
            return 0

    @cached_property
    def _top(self) -> dict[str | int, _Member]:
        return self._members(_skip_space(self._text, 0))

    def _members(self, start: int) -> dict[str | int, _Member]:
        return {member.key: member for member in _members(self._text, start)}


#: The file name extensions.
ENDINGS = (".json", ".jsonl")
_STANDARD_INPUT = "-"

#: A record with its section.
Record = tuple[str, Any]


@contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """A file to write that takes the place of another one, or on an error is removed.

    :param file: the other one, which may not exist yet.
    """
    # A name of its own, and a short one, as names have at most 255 bytes.
    part = file.with_name(f".{crc32(os.fsencode(file.name)):x}.part")
    try:
        yield part
        os.replace(part, file)
    finally:
        with suppress(OSError):
            part.unlink()


def write_file(records: Iterable[Record], name: str) -> None:
    """Writes records to a file. On an error an existing file stays as it is, and nothing is left.

    :param records: the records, grouped by section.
    :param name: the name of the file, which ends in ``.json`` or ``.jsonl``.
    :raises click.ClickException: if it cannot be written.
    """
    folder = Path(name).parent
    if not folder.is_dir():
        raise click.FileError(name, f"there is no folder {str(folder)!r}")
    try:
        with replacing(Path(name)) as part, part.open("w", encoding="utf-8") as stream:
            write(records, stream, lines=name.endswith(".jsonl"))
    except OSError as error:
        raise click.ClickException(f"{name} cannot be written: {error.strerror}.") from error


def write(records: Iterable[Record], stream: IO[str], *, lines: bool = False) -> None:
    """Writes records, each on a line of its own.

    :param records: the records, grouped by section.
    :param lines: whether to write JSON Lines.
    """
    if lines:
        stream.writelines(f"{_json([section, record])}\n" for section, record in records)
        return
    start = "{"
    for section, group in groupby(records, key=itemgetter(0)):
        stream.write(f"{start}\n{_json(section)}: [\n")
        stream.write(",\n".join(_json(record) for _, record in group))
        stream.write("\n]")
        start = ","
    stream.write("\n}\n" if start == "," else "{}\n")


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()


def read_json_file(source: str) -> dict[str, Any]:
    """The content in a JSON file.

    :param source: its name, or ``-`` for the standard input.
    :raises ContentError: if it is not such a file.
    :raises click.FileError: if it cannot be opened.
    """
    with _open(source) as stream:
        text = stream.read()
    try:
        content = parse_json(decode(text))
    except Unreadable as error:
        raise content_error(source, *error.faults) from None
    if not isinstance(content, dict):
        why = 'must be an object with a list for each section, as {"pages": [...]}'
        raise content_error(source, Fault(1, why))
    return content


def read_json_lines(source: str) -> Iterator[Record]:
    """The records in a JSON Lines file.

    :raises ContentError: if a line is no record.
    :raises click.FileError: if it cannot be opened.
    """
    with _open(source) as stream:
        for number, line in enumerate(stream, 1):
            yield _read_line(source, number, line)


def _read_line(source: str, number: int, line: bytes) -> Record:
    try:
        match parse_json(decode(line)):
            case [str(section), record]:
                return section, record
    except Unreadable as error:
        raise content_error(
            source, *(fault._replace(line=number) for fault in error.faults)
        ) from None
    why = 'must be a list of a section and a record, as ["pages", {...}]'
    raise content_error(source, Fault(number, why))


def _open(name: str) -> AbstractContextManager[IO[Any]]:
    if name == _STANDARD_INPUT and sys.stdin is None:
        raise click.ClickException("The standard input is closed.")
    try:
        return click.open_file(name, "rb")
    except OSError as error:
        folder = f"; a folder of JSON files is jsonfiles:{name}" if Path(name).is_dir() else ""
        raise click.FileError(name, f"{error.strerror}{folder}") from None


def content_error(source: str, *faults: Fault) -> ContentError:
    """The error about a file with faults."""
    name = "the standard input" if source == _STANDARD_INPUT else source
    return ContentError(Problem("", "", said, file=in_line(name, line)) for line, said in faults)

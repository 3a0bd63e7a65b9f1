"""Files with the whole content: a JSON object, or JSON Lines with one record each for much content.

They are read as strictly as hand-written files, and errors name the line.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import IO, Any

import click
import orjson

from flask_contentapi.errors import ContentError, Problem
from flask_contentapi.jsontext import Fault, Unreadable, decode, in_line, parse_json

__all__ = ["ENDINGS", "Record", "read_json_file", "read_json_lines", "write", "write_file"]

#: The file name extensions.
ENDINGS = (".json", ".jsonl")
_STANDARD_INPUT = "-"

#: A record with its section.
Record = tuple[str, Any]


def write_file(records: Iterable[Record], name: str) -> None:
    """Writes records to a file. On an error an existing file stays as it is, and nothing is left.

    :param records: the records, grouped by section.
    :param name: the name of the file, which ends in ``.json`` or ``.jsonl``.
    :raises click.ClickException: if it cannot be written.
    """
    partial_file = Path(f"{name}.part")
    if not partial_file.parent.is_dir():
        raise click.FileError(name, f"there is no folder {str(partial_file.parent)!r}")
    stream = _open(str(partial_file), "w")
    try:
        with stream as opened:
            write(records, opened, lines=name.endswith(".jsonl"))
        os.replace(partial_file, name)
    except OSError as error:
        raise click.ClickException(f"{name} cannot be written: {error.strerror}.") from error
    finally:
        with suppress(OSError):
            partial_file.unlink()


def write(records: Iterable[Record], stream: IO[str], *, lines: bool = False) -> None:
    """Writes records, each on a line of its own.

    :param records: the records, grouped by section.
    :param stream: where to write.
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
    with _open(source, "rb") as stream:
        text = stream.read()
    try:
        content = parse_json(decode(text))
    except Unreadable as error:
        raise _content_error(source, *error.faults) from None
    if not isinstance(content, dict):
        why = 'must be an object with a list for each section, as {"pages": [...]}'
        raise _content_error(source, Fault(1, why))
    return content


def read_json_lines(source: str) -> Iterator[Record]:
    """The records in a JSON Lines file.

    :param source: its name.
    :raises ContentError: if a line is no record.
    :raises click.FileError: if it cannot be opened.
    """
    with _open(source, "rb") as stream:
        for number, line in enumerate(stream, 1):
            yield _read_line(source, number, line)


def _read_line(source: str, number: int, line: bytes) -> Record:
    try:
        match parse_json(decode(line)):
            case [str(section), record]:
                return section, record
    except Unreadable as error:
        raise _content_error(
            source, *(fault._replace(line=number) for fault in error.faults)
        ) from None
    why = 'must be a list of a section and a record, as ["pages", {...}]'
    raise _content_error(source, Fault(number, why))


def _open(name: str, mode: str) -> AbstractContextManager[IO[Any]]:
    """A file, or the standard input.

    :raises click.FileError: if it cannot be opened.
    """
    try:
        return click.open_file(name, mode, encoding=None if "b" in mode else "utf-8")
    except OSError as error:
        folder = f"; a folder of JSON files is jsonfiles:{name}" if Path(name).is_dir() else ""
        raise click.FileError(name, f"{error.strerror}{folder}") from None


def _content_error(source: str, *faults: Fault) -> ContentError:
    """The error for a file with faults in its text."""
    name = "the standard input" if source == _STANDARD_INPUT else source
    return ContentError(Problem("", "", said, file=in_line(name, line)) for line, said in faults)

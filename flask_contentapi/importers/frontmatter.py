"""Reads a file of Markdown with front matter."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date, datetime, time
from email.utils import parsedate_to_datetime
from itertools import count
from math import isfinite
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from ruamel.yaml import YAML
from ruamel.yaml.constructor import ConstructorError, SafeConstructor
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from flask_contentapi.files import Fault, Unreadable, decode
from flask_contentapi.kinds import DateTime

#: The most bytes of a file, characters of its front matter, and values in that.
MOST_BYTES, MOST_FRONT, MOST_VALUES = 4_000_000, 50_000, 10_000
#: The front matter: its mark, its language, its text, and whether it ends.
_FRONT = re.compile(
    r"\s*(---|\+\+\+)(\w*)[ \t]*\n(.*?)(?:^\1[ \t]*(?:\n|\Z)|(\Z))", re.DOTALL | re.MULTILINE
)
_JSON = re.compile(r'\s*\{\s*"')
#: A date as Astro writes it: ``Jan 15 2026``.
_IN_WORDS = re.compile(r"[A-Za-z]{3,9} [0-9]{1,2},? [0-9]{4}|[0-9]{1,2} [A-Za-z]{3,9} [0-9]{4}")
_KEY = re.compile(r"""["']?([^"'\s:=]+)["']?\s*[:=]""")
_DEEPEST = 50
#: Keys with more parts than values may be nested; what reads TOML takes long for these.
_PART = r"""(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*"""
_DEEP_KEY = re.compile(rf"(?<![\w-])(?:{_PART}){{{_DEEPEST}}}")


class MarkdownFile(NamedTuple):
    """A file of Markdown.

    :param name: its path inside the folder, with slashes.
    :param front: the front matter, as JSON has values.
    :param lines: the line of each of its keys.
    :param body: the text below it.
    :param start: how many lines are above that.
    """

    name: str = ""
    front: Mapping[str, Any] = MappingProxyType({})
    lines: Mapping[str, int] = MappingProxyType({})
    body: str = ""
    start: int = 0


def read_markdown(path: Path, name: str) -> MarkdownFile:
    """The content of a file.

    :raises Unreadable: if there is a fault in it.
    """
    text = _text(path).lstrip("\ufeff").replace("\r\n", "\n")
    match = _FRONT.match(text)
    if match is None:
        if _JSON.match(text):
            raise Unreadable(Fault(1, "the front matter is JSON; it must be YAML or TOML"))
        return MarkdownFile(name, body=text)
    mark, language, inner, unfinished = match.groups()
    first = text.count("\n", 0, match.start(1)) + 1
    if language:
        raise Unreadable(Fault(first, f"the front matter is {language}; it must be YAML or TOML"))
    if unfinished is not None:
        raise Unreadable(Fault(first, f"the front matter has no end: a line of {mark}"))
    if len(inner) > MOST_FRONT:
        raise Unreadable(Fault(first, f"the front matter has more than {MOST_FRONT:,} characters"))
    lines: dict[str, int] = {}
    for number, line in enumerate(inner.split("\n"), first + 1):
        if key := _KEY.match(line):
            lines.setdefault(key[1], number)
    front = _yaml(inner, first) if mark == "---" else _toml(inner, first)
    if not isinstance(front, dict):
        raise Unreadable(
            Fault(first + 1, "the front matter must be keys with values, as title: Fog")
        )
    counted = count(1)
    made = {str(k): _plain(v, lines.get(str(k), first), counted) for k, v in front.items()}
    return MarkdownFile(name, made, lines, text[match.end() :], text.count("\n", 0, match.end()))


def read_yaml(path: Path) -> Any:
    """What a file of YAML has; None if there is none.

    :raises Unreadable: if it cannot be read.
    """
    text = _text(path) if path.is_file() else ""
    if len(text) > MOST_FRONT:
        raise Unreadable(Fault(0, f"has more than {MOST_FRONT:,} characters"))
    return _yaml(text, 0)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise Unreadable(Fault(0, f"cannot be read: {error.strerror}")) from None
    if len(data) > MOST_BYTES:
        raise Unreadable(Fault(0, f"has more than {MOST_BYTES:,} bytes"))
    return decode(data)


class _Constructor(SafeConstructor):
    """Makes values of YAML without ``<<``, with which a few lines have endless keys."""

    def flatten_mapping(self, node: Any) -> Any:
        for key, _ in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                raise ConstructorError(problem="<< is not read", problem_mark=key.start_mark)
        return super().flatten_mapping(node)


def _yaml(text: str, first: int) -> Any:
    try:
        yaml = YAML(typ="safe", pure=True)
        yaml.Constructor = _Constructor
        front = yaml.load(text)
        return {} if front is None else front
    except MarkedYAMLError as error:
        line = first + 1 + (error.problem_mark.line if error.problem_mark else 0)
        why = str(error.problem)
    except (YAMLError, ValueError) as error:
        line, why = first, str(error)
    except LookupError:
        line, why = first, "a value is not of the type that is written before it"
    except RecursionError:
        line, why = first, "it is nested too deeply"
    raise Unreadable(Fault(line, f"the front matter is not YAML: {' '.join(why.split())}"))


def _toml(text: str, first: int) -> Any:
    if deep := _DEEP_KEY.search(text):
        line = first + 1 + text.count("\n", 0, deep.start())
        raise Unreadable(Fault(line, f"a key can have at most {_DEEPEST} parts"))
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        # Its messages end with the place, as "(at line 2, column 3)".
        why, _, place = str(error).partition(" (at line ")
        number = re.match("[0-9]+", place)
        line = first + (int(number[0]) if number else 0)
        raise Unreadable(Fault(line, f"the front matter is not TOML: {why}")) from None


def _plain(value: Any, line: int, number: Iterator[int], depth: int = 0) -> Any:
    """The JSON value of what a library has read.

    :param number: counts the values, because references in YAML make many of a few lines.
    """
    if next(number) > MOST_VALUES or depth > _DEEPEST:
        wanted = f"at most {MOST_VALUES:,} values, nested {_DEEPEST} times"
        raise Unreadable(Fault(line, f"the front matter can have {wanted}"))
    if isinstance(value, dict):
        return {str(k): _plain(inner, line, number, depth + 1) for k, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner, line, number, depth + 1) for inner in value]
    if isinstance(value, datetime):
        with suppress(ValueError):
            return moment(value)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, str) and value.encode("utf-8", "replace").decode() == value:
        return value
    if value is None or isinstance(value, int) or (isinstance(value, float) and isfinite(value)):
        return value
    raise Unreadable(Fault(line, f"{value!r} is no value that JSON has"))


def moment(value: Any) -> str:
    """A date, or a date with a time, in UTC unless it says otherwise, as the API writes it.

    >>> moment("2026-01-15 10:00:00 +0200")
    '2026-01-15T08:00:00Z'

    :raises ValueError: if it is none.
    """
    if isinstance(value, str):
        text = re.sub(r"\s+(?=[+-][0-9:]+$)|\s+UTC$", "", value.strip())
        is_in_words = _IN_WORDS.fullmatch(text) is not None
        value = (
            parsedate_to_datetime(f"{text} 0:00") if is_in_words else datetime.fromisoformat(text)
        )
    instant = DateTime()
    return str(instant.write(instant.read(value)))

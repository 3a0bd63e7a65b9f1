"""Values of a site's own columns as stored values, whatever stands there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import orjson

from flask_contentapi import kinds
from flask_contentapi_peewee.columns import StoredField

__all__ = ["decoder", "read_array"]

#: What SQLite gives for a value of each kind; text for others.
_GIVEN: dict[str, Any] = {
    **dict.fromkeys(("integer", "relation", "boolean"), int),
    "float": (int, float, str),
}
#: A number of JSON that may have more than 64 bits, and all texts and numbers of a JSON text.
_LONG = re.compile(r"\d{19}")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*')


def decoder(field: StoredField, is_loose: bool) -> Callable[[Any], Any]:
    """What makes a stored value of what the site's own column has.

    It gives an empty text for a text that cannot be read, False for such a boolean, and None for
    others.

    :param field: our column.
    :param is_loose: whether theirs can have anything.
    """
    name = field.kind.name
    decode = _READERS.get(name, _same)(field)
    given = _GIVEN.get(name, str)
    empty = field.kind.empty() if name in ("text", "boolean") else None

    def decoded(value: Any) -> Any:
        if is_loose and not isinstance(value, given):
            return empty
        try:
            return decode(value)
        except ValueError:
            return empty

    return decoded


def _same(field: StoredField) -> Callable[[Any], Any]:
    return field.decode


def _text(field: StoredField) -> Callable[[str], str]:
    def decode(value: str) -> str:
        if not value.isascii():
            # What is not UTF-8 has become half surrogate pairs, which are none either.
            value.encode()
        return value

    return decode


def _float(field: StoredField) -> Callable[[Any], Any]:
    return lambda value: field.kind.read(float(value))


def _json(field: StoredField) -> Callable[[str], Any]:
    parse = field.decode

    def decode(value: str) -> Any:
        if _LONG.search(value):
            _check_integers(value)
        return parse(value)

    return decode


def _check_integers(text: str) -> None:
    """Goes through the integers of a JSON text, of which the parser makes floats if they are large.

    :raises ValueError: if one has more than 64 bits.
    """
    for token in _TOKEN.findall(text):
        if token[0] != '"' and not set(token) & set(".eE"):
            kinds.Integer().read(int(token))


_READERS: dict[str, Callable[[StoredField], Callable[[Any], Any]]] = {
    "text": _text,
    "float": _float,
    "json": _json,
    "blocks": _json,
}


def read_array(text: str) -> list[Any]:
    """A JSON array that the database has made, perhaps of texts that are not UTF-8.

    What stands in columns is never an array itself: where there are arrays they are its parts.
    """
    try:
        array: list[Any] = orjson.loads(text)
    except orjson.JSONDecodeError:
        array = json.loads(text)
    if array and isinstance(array[0], list):
        return [entry for part in array for entry in part]
    return array

"""Decodes values of a site's own columns, which may be invalid, into stored values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import orjson

from flask_contentapi import kinds
from flask_contentapi_peewee.columns import StoredField

__all__ = ["decoder", "read_array"]

#: The Python types that SQLite returns for each kind; text for others.
_GIVEN: dict[str, Any] = {
    **dict.fromkeys(("integer", "relation", "boolean"), int),
    "float": (int, float, str),
}
#: A number in JSON that may have more than 64 bits, and any text or number in JSON.
_LONG = re.compile(r"\d{19}")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*')


def decoder(field: StoredField, is_loose: bool) -> Callable[[Any], Any]:
    """The function that converts a value in the site's own column to a stored value.

    For a value that cannot be read it returns an empty text if the field is a text, False if it is
    a boolean, and None otherwise.

    :param field: our column.
    :param is_loose: whether the site's column can hold values of any type.
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
            # Bytes that are not UTF-8 are half surrogate pairs by now, which this refuses.
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
    """Checks the integers in a JSON text, because the parser turns large ones into floats.

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
    """Reads a JSON array made by the database, possibly of texts that are not UTF-8.

    Values of columns are never arrays, so arrays in it are its parts, to be joined.
    """
    try:
        array: list[Any] = orjson.loads(text)
    except orjson.JSONDecodeError:
        array = json.loads(text)
    if array and isinstance(array[0], list):
        return [entry for part in array for entry in part]
    return array

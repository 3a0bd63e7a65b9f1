"""Blocks: objects with a ``type`` and a ``value``, at any depth of a JSON value."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any, TypeGuard

__all__ = ["blocks_in", "convert_blocks", "id_converter", "ids_in", "is_block", "texts_in"]

#: Functions by the type of the blocks whose values they convert.
Converters = Mapping[str, Callable[[Any], Any]]


def is_block(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether a JSON value is a block."""
    return isinstance(value, dict) and "value" in value and isinstance(value.get("type"), str)


def _is_id(value: Any) -> TypeGuard[int]:
    """Whether the value of a block can be the id of an object."""
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

"""What objects point to, by their relations, those of child objects, and blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from flask_contentapi.blocks import ids_in
from flask_contentapi.query import Row
from flask_contentapi.types import Column, ObjectType

__all__ = ["ObjectKey", "Value", "targets_of", "values_of"]

#: An object: its endpoint and id.
ObjectKey = tuple[str, int]


class Value(NamedTuple):
    """A stored value of an object, or of one of its child objects.

    :param column: its column.
    :param stored: the value.
    :param children: for a value of a child object, the column of child objects and its index.
    """

    column: Column
    stored: Any
    children: tuple[str, int] | None = None


def values_of(declared: ObjectType, row: Row) -> Iterator[Value]:
    """The values of an object, and of its child objects, that can name other objects.

    :param row: the columns of its type, :attr:`ObjectType.column_names`.
    """
    for name, place in declared.naming_places:
        column, stored = declared.columns[name], row[place]
        if column.child is None:
            yield Value(column, stored)
        else:
            for number, child in enumerate(stored):
                inner = values_of(column.child, child)
                yield from (value._replace(children=(name, number)) for value in inner)


def targets_of(column: Column, stored: Any) -> Iterator[ObjectKey]:
    """The objects that the value of a relation, or of blocks with relations, points to."""
    if column.target is not None:
        yield from ((column.target.served_at.name, identity) for identity in column.ids(stored))
    for block, inner in column.related_blocks.items():
        assert inner.target is not None
        endpoint = inner.target.served_at.name
        yield from ((endpoint, identity) for identity in ids_in(stored, block))

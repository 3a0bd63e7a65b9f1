"""The objects of an endpoint in the form for backends, with paths, ends and restrictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from flask_contentapi.kinds import LONGEST_PATH
from flask_contentapi.query import Row
from flask_contentapi.records import Place, RecordReader
from flask_contentapi.types import Endpoint

__all__ = [
    "DEEPEST",
    "Restriction",
    "Restrictions",
    "Table",
    "place_of",
    "rows_of",
    "too_deep_message",
    "too_long_message",
]

#: The number of levels that a tree of pages or collections has at most (contract, Content records).
DEEPEST = 400


class Restriction(NamedTuple):
    """A restriction on a page or a collection and everything below it.

    :param within: the nearest restricted one above it, whose restriction applies too, or None.
    :param rule: the rule in the record, ``{"type": "login" | "password" | "groups", ...}``.
    """

    within: int | None
    rule: Mapping[str, Any]


class Restrictions(NamedTuple):
    """All restrictions, by the id of the restricted page or collection."""

    pages: Mapping[int, Restriction]
    collections: Mapping[int, Restriction]


@dataclass(slots=True)
class Table:
    """The objects of an endpoint in default order, as parallel lists.

    :param endpoint: the endpoint.
    :param rows: for each object the columns of its type, :attr:`ObjectType.column_names`.
    :param access: for each the nearest restricted page (itself or above it) or collection.
    :param url_paths: for each page the slugs down to it, percent-encoded, as ``/home/log/``.
    :param ends: for each page the index after its last descendant.
    :param extras: the extra values in records of undeclared types, by id.
    """

    endpoint: Endpoint
    rows: list[Row] = field(default_factory=list)
    access: list[int | None] = field(default_factory=list)
    url_paths: list[str] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    extras: dict[int, dict[str, Any]] = field(default_factory=dict)


def place_of(table: Table, row: Row, index: int = -1) -> Place:
    return Place(table.endpoint.name, index, f"{table.endpoint.name} {row[0]}")


def rows_of(table: Table, reader: RecordReader) -> Iterator[Row]:
    """The objects of an endpoint, including those with problems."""
    yield from table.rows
    yield from (row for row in reader.refused[table.endpoint.name].values() if row[0] is not None)


def too_deep_message(level: int) -> str:
    """The message about a page or a collection on a level that is too deep.

    :param level: the level, which is 1 at the top.
    """
    return f"is on level {level} of the tree, which has at most {DEEPEST}; put it further up"


def too_long_message() -> str:
    """The message about a page whose path is longer than :data:`LONGEST_PATH`."""
    return (
        f"makes a path of more than {LONGEST_PATH:,} characters, percent-encoded; shorten it, or "
        "those above it"
    )

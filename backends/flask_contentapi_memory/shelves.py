"""All objects of an endpoint, for any viewer, identified by their positions in default order.

So a list of positions in ascending order is in default order too, and a branch of the tree is a
range.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cached_property, lru_cache
from operator import itemgetter
from typing import Any

from flask_contentapi.content import Table
from flask_contentapi.declarations import Endpoint
from flask_contentapi.query import Row
from flask_contentapi.search import words_of
from flask_contentapi_memory.words import WordIndex

#: The types that have a column; None if all have it.
Labels = frozenset[str] | None
#: Ranges of positions, each with its first and the one after its last; None: everything.
Ranges = tuple[tuple[int, int], ...] | None


class Shelf:
    """The objects of one endpoint, for any viewer.

    :param table: the objects.
    :param before: the objects of the endpoint at another time, of which few differ.
    """

    def __init__(self, table: Table, before: Shelf | None = None) -> None:
        self.table = table
        self.endpoint = table.endpoint
        self.ids = {row[0]: position for position, row in enumerate(table.rows)}
        self.rows: list[Row] = table.rows
        if table.endpoint.tree:
            # So that it is read like a column.
            pairs = zip(table.rows, table.url_paths, strict=True)
            self.rows = [(*row, path) for row, path in pairs]
        # One that has a word index, from which the own one is made.
        self._indexed: Shelf | None = before
        if before is not None and "words" not in vars(before):
            self._indexed = before._indexed

    @cached_property
    def words(self) -> WordIndex:
        """The word index."""
        words = self._made_words() if self._indexed is None else self._revised_words(self._indexed)
        self._indexed = None
        return words

    def _made_words(self) -> WordIndex:
        rows, type_of = self.table.rows, self.endpoint.type_of
        ordered = (rows[position] for _, position in sorted(self.ids.items()))
        return WordIndex((row[0], words_of(type_of(row[1]), row)) for row in ordered)

    def _revised_words(self, indexed: Shelf) -> WordIndex:
        before = {row[0]: row for row in indexed.table.rows}
        after = {row[0]: row for row in self.table.rows}
        type_of = self.endpoint.type_of
        # Unchanged rows are identical.
        changed = [i for i in before.keys() | after.keys() if before.get(i) is not after.get(i)]
        return indexed.words.revised(
            {i: words_of(type_of(before[i][1]), before[i]) for i in changed if i in before},
            {i: words_of(type_of(after[i][1]), after[i]) for i in changed if i in after},
        )

    def branches(self, scope: Iterable[int] | None) -> Ranges:
        """The ranges of the branches of some pages, without overlaps, in order."""
        if scope is None:
            return None
        ranges: list[tuple[int, int]] = []
        for position in sorted(self.ids[page] for page in scope if page in self.ids):
            if not ranges or position >= ranges[-1][1]:
                ranges.append((position, self.table.ends[position]))
        return tuple(ranges)

    @cached_property
    def changes(self) -> list[tuple[datetime, int]]:
        """The moments at which pages appear or expire, in order, each with the page's position."""
        live, start, end = (reader(self.endpoint, c) for c in ("live", "go_live_at", "expires_at"))
        found = []
        for position, row in enumerate(self.rows):
            first, last = start(row), end(row)
            if live(row) and (first is None or last is None or first < last):
                found += [(moment, position) for moment in (first, last) if moment is not None]
        return sorted(found)

    def passed(self, moment: datetime) -> int:
        """How many of these changes have happened at a moment."""
        return bisect_right(self.changes, moment, key=itemgetter(0))


def is_within(position: int, ranges: Ranges) -> bool:
    """Whether a position is in one of the ranges."""
    return ranges is None or any(low <= position < high for low, high in ranges)


@lru_cache(1024)
def reader(endpoint: Endpoint, column: str, labels: Labels = None) -> Callable[[Row], Any]:
    """The function that reads a column of objects of some types."""
    types = map(endpoint.type_of, labels or {endpoint.base.label, *endpoint.types})
    places = {t.label: -1 if column == "url_path" else t.places.get(column) for t in types}
    first, *others = {*places.values()}
    if first is not None and not others:
        return itemgetter(first)
    base = places.get(endpoint.base.label)

    def read(row: Row) -> Any:
        place = places.get(row[1], base)
        return None if place is None else row[place]

    return read


@lru_cache(1024)
def projection(
    endpoint: Endpoint, columns: tuple[str, ...], labels: Labels
) -> Callable[[Row], Row]:
    """The function that reads several columns of objects of some types, in order."""
    readers = [reader(endpoint, column, labels) for column in columns]
    return lambda row: tuple([read(row) for read in readers])

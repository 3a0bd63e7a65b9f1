"""All objects of an endpoint, for any viewer, identified by their positions in default order.

So a list of positions in ascending order is in default order too, and a branch of the tree is a
range.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any

from flask_contentapi.content import Table
from flask_contentapi.query import Row
from flask_contentapi.search import words_of
from flask_contentapi_memory.words import WordIndex

__all__ = ["Labels", "Range", "Shelf", "is_within"]

#: How many functions that read columns are cached.
GETTER_CACHE_SIZE = 256

#: The types that have a column; None if all have it.
Labels = frozenset[str] | None
#: The first position, and the one after the last.
Range = tuple[int, int]


class Shelf:
    """The objects of one endpoint, for any viewer.

    :param table: the objects.
    :param before: the objects of the endpoint at another time, of which few differ.
    """

    def __init__(self, table: Table, before: Shelf | None = None) -> None:
        self.table = table
        self.endpoint = table.endpoint
        self.ids = {row[0]: position for position, row in enumerate(table.rows)}
        # A page's row starts with its path of slugs, so that this can be queried.
        self._ahead = 1 if table.endpoint.tree else 0
        self.rows: list[Row] = table.rows
        if table.endpoint.tree:
            pairs = zip(table.url_paths, table.rows, strict=True)
            self.rows = [(path, *row) for path, row in pairs]
        self._getters: dict[Any, Callable[[Row], Any]] = {}
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

    @cached_property
    def children(self) -> Mapping[int | None, Sequence[int]]:
        """The positions of each page's children."""
        parent = self.getter("parent", None)
        found: defaultdict[int | None, list[int]] = defaultdict(list)
        for position, row in enumerate(self.rows):
            found[parent(row)].append(position)
        return found

    @cached_property
    def paths(self) -> Mapping[str, int]:
        """The position of each path of slugs."""
        return {row[0]: position for position, row in enumerate(self.rows)}

    @property
    def type_index(self) -> int:
        """The index of the type's label in the rows."""
        return 1 + self._ahead

    def _column_index(self, column: str, label: str) -> int | None:
        if column == "url_path":
            return 0
        place = self.endpoint.type_of(label).places.get(column)
        return None if place is None else place + self._ahead

    def _labels(self, labels: Labels) -> Iterable[str]:
        return labels or {self.endpoint.base.label, *self.endpoint.types}

    def getter(self, column: str, labels: Labels) -> Callable[[Row], Any]:
        """The function that reads a column of objects of some types."""
        return self._cached_getter((column, labels), self._getter)

    def project(self, columns: tuple[str, ...], labels: Labels) -> Callable[[Row], Row]:
        """The function that reads several columns of objects of some types, in order."""
        return self._cached_getter((columns, labels), self._project)

    def _cached_getter(
        self, key: Any, make: Callable[..., Callable[[Row], Any]]
    ) -> Callable[[Row], Any]:
        """A cached function that reads columns."""
        found = self._getters.get(key)
        if found is None:
            if len(self._getters) >= GETTER_CACHE_SIZE:
                self._getters.clear()
            found = self._getters[key] = make(*key)
        return found

    def _getter(self, column: str, labels: Labels) -> Callable[[Row], Any]:
        positions = {label: self._column_index(column, label) for label in self._labels(labels)}
        first, *others = set(positions.values())
        if not others and first is not None:
            return itemgetter(first)
        base, of_type = positions.get(self.endpoint.base.label, first), self.type_index

        def read(row: Row) -> Any:
            place = positions.get(row[of_type], base)
            return None if place is None else row[place]

        return read

    def _project(self, columns: tuple[str, ...], labels: Labels) -> Callable[[Row], Row]:
        getters = [self._getter(column, labels) for column in columns]
        if len(columns) > 1 and all(isinstance(getter, itemgetter) for getter in getters):
            label = next(iter(self._labels(labels)))
            places = [self._column_index(column, label) for column in columns]
            return itemgetter(*places)
        return lambda row: tuple([getter(row) for getter in getters])

    def project_own(self, row: Row, columns: Sequence[str]) -> Row:
        """Some columns of an object's own type, in order."""
        return self.project(tuple(columns), frozenset((row[self.type_index],)))(row)

    def branches(self, scope: Iterable[int]) -> list[Range]:
        """The ranges of the branches of some pages, without overlaps, in order."""
        ends = self.table.ends
        positions = sorted(self.ids[page] for page in scope if page in self.ids)
        ranges: list[Range] = []
        for position in positions:
            if not ranges or position >= ranges[-1][1]:
                ranges.append((position, ends[position]))
        return ranges


def is_within(position: int, ranges: Sequence[Range] | None) -> bool:
    """Whether a position is in one of the ranges; None: everything is."""
    return ranges is None or any(low <= position < high for low, high in ranges)

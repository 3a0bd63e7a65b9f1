"""What viewers may see, with the indexes that answer their queries.

:class:`VisibleContent` is made once for all viewers with the same rights, and is valid until the
next page becomes visible or expires. Its indexes are made on first use.
"""

from __future__ import annotations

import weakref
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

from flask_contentapi.cache import BoundedCache
from flask_contentapi.declarations import Column
from flask_contentapi.query import Order, Row, Viewer
from flask_contentapi_memory.matches import Matches
from flask_contentapi_memory.shelves import Labels, Range, Shelf, is_within

__all__ = ["Ranking", "VisibleContent", "VisibleObjects"]

#: The size of each cache of matches, counted in positions.
MATCH_CACHE_SIZE = 500_000


Ranges = tuple[Range, ...] | None


class Ranking(NamedTuple):
    """The objects that have a column, in the order of its values.

    :param positions: the positions in that order.
    :param ranks: for each position of the shelf its index in that order.
    """

    positions: Sequence[int]
    ranks: Sequence[int]


class VisibleObjects:
    """The visible objects of one endpoint, with their indexes.

    Indexes are for a column, the types that have it (None if all have it), and the ranges that
    pages are looked for in, which matter for relations within a site alone.

    :param shelf: the objects.
    :param flags: for each position whether it may be seen.
    :param content: the visible content of all endpoints.
    """

    def __init__(self, shelf: Shelf, flags: bytearray, content: VisibleContent) -> None:
        self.shelf = shelf
        self.flags = flags
        self.positions = [position for position, seen in enumerate(flags) if seen]
        # Callers hold it. A strong reference would be a cycle that keeps both alive.
        self._content = weakref.ref(content)
        self._indexes: dict[tuple[str, Labels, Ranges], Mapping[Any, Sequence[int]]] = {}
        self._rankings: dict[tuple[Order, Labels, Ranges], Ranking] = {}

    def row(self, identity: int, ranges: Sequence[Range] | None) -> Row | None:
        """An object, if it exists, may be seen, and is within the ranges."""
        position = self.shelf.ids.get(identity)
        if position is None or not self.flags[position] or not is_within(position, ranges):
            return None
        return self.shelf.rows[position]

    def sees(self, identity: int) -> bool:
        """Whether an object exists and may be seen."""
        position = self.shelf.ids.get(identity)
        return position is not None and bool(self.flags[position])

    @cached_property
    def by_type(self) -> Mapping[str, Sequence[int]]:
        """The positions of the objects of each type."""
        rows, of_type = self.shelf.rows, self.shelf.type_index
        found: defaultdict[str, list[int]] = defaultdict(list)
        for position in self.positions:
            found[rows[position][of_type]].append(position)
        return found

    def of_types(self, labels: Labels) -> Sequence[int]:
        """The positions of the objects of some types."""
        if labels is None:
            return self.positions
        lists = [self.by_type[label] for label in labels if label in self.by_type]
        return lists[0] if len(lists) == 1 else sorted(chain.from_iterable(lists))

    def index(
        self, column: str, labels: Labels, scope: Sequence[Range] | None = None
    ) -> Mapping[Any, Sequence[int]]:
        """The positions of the objects by value of a column; for tags and relations to many by
        each entry."""
        key = (column, labels, self._ranges(column, labels, scope))
        if key not in self._indexes:
            positions, found = self.of_types(labels), defaultdict[Any, list[int]](list)
            values = self._values(column, positions, labels, scope)
            for position, value in zip(positions, values, strict=True):
                if isinstance(value, tuple):
                    for entry in {*value}:
                        found[entry].append(position)
                else:
                    found[value].append(position)
            self._indexes[key] = dict(found)
        return self._indexes[key]

    def ranking(
        self, order: Order, labels: Labels, scope: Sequence[Range] | None = None
    ) -> Ranking:
        """The objects in the order of one column."""
        key = (order, labels, self._ranges(order.column, labels, scope))
        if key not in self._rankings:
            ordered = self.sort(self.of_types(labels), (order,), labels, scope)
            ranks = array("I", bytes(4 * len(self.shelf.rows)))
            for rank, position in enumerate(ordered):
                ranks[position] = rank
            self._rankings[key] = Ranking(ordered, ranks)
        return self._rankings[key]

    def sort(
        self,
        positions: Iterable[int],
        order: Sequence[Order],
        labels: Labels,
        scope: Sequence[Range] | None = None,
    ) -> list[int]:
        """Sorts positions by some keys, then by id.

        :param labels: the types for columns that not all types have.
        """
        common = self.shelf.endpoint.base.columns
        ids = [*map(self.shelf.getter("id", None), self.shelf.rows)]
        ordered = sorted(positions, key=ids.__getitem__)
        for key in reversed(order):
            known = None if key.column in common else labels
            values = dict(
                zip(ordered, self._values(key.column, ordered, known, scope), strict=True)
            )
            absent = [position for position in ordered if values[position] is None]
            ordered = [position for position in ordered if values[position] is not None]
            ordered.sort(key=values.__getitem__, reverse=key.descending)
            ordered = ordered + absent if key.descending else absent + ordered
        return ordered

    def _values(
        self,
        column: str,
        positions: Iterable[int],
        labels: Labels,
        scope: Sequence[Range] | None,
    ) -> Iterator[Any]:
        """The values of a column at some positions, as :meth:`value` reads them."""
        return map(self.value(column, labels, scope), map(self.shelf.rows.__getitem__, positions))

    def _column(self, column: str, labels: Labels) -> Column | None:
        """The declared field of a column; those that are derived have none."""
        label = self.shelf.endpoint.base.label if labels is None else next(iter(labels))
        return self.shelf.endpoint.type_of(label).columns.get(column)

    def _ranges(self, column: str, labels: Labels, scope: Sequence[Range] | None) -> Ranges:
        """The ranges that the targets of a column have to be in; None if they may be anywhere."""
        stored = self._column(column, labels)
        return tuple(scope) if scope is not None and stored and stored.within_site else None

    def value(
        self, column: str, labels: Labels, scope: Sequence[Range] | None = None
    ) -> Callable[[Row], Any]:
        """The function that reads a column, of relations only what leads to visible objects."""
        read, stored = self.shelf.getter(column, labels), self._column(column, labels)
        if stored is None or stored.target is None:
            return read
        content, ranges = self._content(), self._ranges(column, labels, scope)
        assert content is not None
        targets = content.of(stored.target.served_at.name)

        def sees(identity: int) -> bool:
            return targets.row(identity, ranges) is not None

        if ranges is None:
            sees = targets.sees
        if stored.kind.many:
            return lambda row: tuple(filter(sees, read(row)))
        return lambda row: value if (value := read(row)) is not None and sees(value) else None


class VisibleContent:
    """What viewers with the same rights may see, until a page becomes visible or expires."""

    def __init__(self, shelves: Mapping[str, Shelf], viewer: Viewer) -> None:
        self._shelves = shelves
        self._viewer = viewer
        self._visible: dict[str, VisibleObjects] = {}
        #: The cached matches of lists.
        self.match_cache: BoundedCache[Matches] = BoundedCache(
            MATCH_CACHE_SIZE, lambda found: found.cache_size
        )

    def of(self, endpoint: str) -> VisibleObjects:
        """The visible objects of an endpoint."""
        if endpoint not in self._visible:
            shelf = self._shelves[endpoint]
            self._visible[endpoint] = VisibleObjects(shelf, self._flags(shelf), self)
        return self._visible[endpoint]

    def _flags(self, shelf: Shelf) -> bytearray:
        """For each object whether the viewer may see it."""
        viewer, essential = self._viewer, shelf.endpoint.essential
        opened = {None} | (viewer.pages if shelf.endpoint.tree else viewer.collections)
        flags = bytearray(access in opened for access in shelf.table.access)
        if shelf.endpoint.tree:
            live, start, end = (shelf.getter(c, None) for c in ("live", "go_live_at", "expires_at"))
            for position, row in enumerate(shelf.rows):
                if not live(row) or not _in_time(start(row), end(row), viewer.moment):
                    flags[position] = 0
        if essential is not None:
            target, pages = shelf.getter(essential, None), self.of("pages")
            for position, row in enumerate(shelf.rows):
                flags[position] = (page := target(row)) is None or pages.sees(page)
        previewed, identity = viewer.previewed or ("", 0)
        if previewed == shelf.endpoint.name and identity in shelf.ids:
            flags[shelf.ids[identity]] = 1
        return flags


def _in_time(start: datetime | None, end: datetime | None, moment: datetime) -> bool:
    return (start is None or start <= moment) and (end is None or moment < end)

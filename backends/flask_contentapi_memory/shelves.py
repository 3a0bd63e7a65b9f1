"""The objects of each endpoint, for any viewer and for some, with indexes made on first use.

They are identified by their positions in default order. So a list of positions in ascending order
is in default order too, and a branch of the tree is a range.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property, lru_cache
from itertools import chain, compress, islice
from operator import itemgetter
from typing import Any, NamedTuple

from flask_contentapi.cache import BoundedCache
from flask_contentapi.content import Table
from flask_contentapi.declarations import Endpoint
from flask_contentapi.query import Row, Viewer
from flask_contentapi.search import words_of
from flask_contentapi_memory.words import WordIndex

#: The size of the cache of matches, counted in positions.
MATCH_CACHE_SIZE = 500_000
#: The size of an entry besides its positions, counted in positions.
ENTRY_OVERHEAD = 100
#: The types that have a column; None if all have it.
Labels = frozenset[str] | None
#: As :attr:`flask_contentapi.Query.scope`.
Scope = tuple[int, ...] | None
#: Reads a column of a row.
Read = Callable[[Row], Any]


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
        rows, type_of = self.table.rows, self.endpoint.type_of
        indexed, self._indexed = self._indexed, None
        if indexed is None:
            return WordIndex((row[0], words_of(type_of(row[1]), row)) for row in rows)
        before, after = ({row[0]: row for row in each} for each in (indexed.table.rows, rows))
        # Unchanged rows are identical.
        changed = [i for i in before.keys() | after.keys() if before.get(i) is not after.get(i)]
        gone, new = (
            {i: words_of(type_of(known[i][1]), known[i]) for i in changed if i in known}
            for known in (before, after)
        )
        return indexed.words.revised(gone, new)

    def within(self, scope: Iterable[int] | None, flags: bytearray) -> bytearray:
        """The flags of positions in the branches of some pages, 0 elsewhere; None: of all."""
        if scope is None:
            return flags
        inside = bytearray(len(flags))
        for first in (self.ids[page] for page in scope if page in self.ids):
            end = self.table.ends[first]
            inside[first:end] = flags[first:end]
        return inside

    def spans(self) -> Iterator[tuple[int, datetime | None, datetime | None]]:
        """The positions of pages that are live for a time, each with its start and its end."""
        live, start, end = (reader(self.endpoint, c) for c in ("live", "go_live_at", "expires_at"))
        for position, row in enumerate(self.rows):
            first, last = start(row), end(row)
            if live(row) and (first is None or last is None or first < last):
                yield position, first, last

    @cached_property
    def changes(self) -> list[tuple[datetime, int]]:
        """The moments at which pages appear or expire, in order, each with the page's position."""
        spans = self.spans()
        return sorted((moment, position) for position, *ends in spans for moment in ends if moment)


def _places(endpoint: Endpoint, column: str, labels: Labels) -> Mapping[str, int | None]:
    types = map(endpoint.type_of, labels or {endpoint.base.label, *endpoint.types})
    return {t.label: -1 if column == "url_path" else t.places.get(column) for t in types}


@lru_cache(1024)
def reader(endpoint: Endpoint, column: str, labels: Labels = None) -> Read:
    """The function that reads a column of objects of some types."""
    places = _places(endpoint, column, labels)
    first, *others = {*places.values()}
    if first is not None and not others:
        return itemgetter(first)
    base = places.get(endpoint.base.label)

    def read(row: Row) -> Any:
        place = places.get(row[1], base)
        return None if place is None else row[place]

    return read


@lru_cache(1024)
def projection(endpoint: Endpoint, columns: tuple[str, ...], labels: Labels) -> Read:
    """The function that reads several columns of objects of some types, in order."""
    known = [{*_places(endpoint, column, labels).values()} for column in columns]
    same = [place for places in known if len(places) == 1 for place in places if place is not None]
    if 1 < len(same) == len(columns):
        return itemgetter(*same)
    readers = [reader(endpoint, column, labels) for column in columns]
    return lambda row: tuple([read(row) for read in readers])


class Column(NamedTuple):
    """A column as the objects of some types have it.

    :param name: its name.
    :param labels: the types, which all have it; None: all objects have it.
    :param read: reads it.
    """

    name: str
    labels: Labels
    read: Read


class VisibleObjects:
    """The visible objects of one endpoint, of pages those in a scope, with their indexes.

    :param shelf: the objects.
    :param flags: for each position whether it may be seen.
    """

    def __init__(self, shelf: Shelf, flags: bytearray) -> None:
        self.shelf = shelf
        self.flags = flags
        self.positions = [*compress(range(len(flags)), flags)]
        self._indexes: dict[tuple[str, Labels], Mapping[Any, Sequence[int]]] = {}
        self._rankings: dict[tuple[str, Labels, bool], Sequence[int]] = {}

    def sees(self, identity: int) -> bool:
        """Whether an object exists and may be seen."""
        position = self.shelf.ids.get(identity)
        return position is not None and bool(self.flags[position])

    def of_types(self, labels: Labels) -> Sequence[int]:
        """The positions of the objects of some types."""
        if labels is None:
            return self.positions
        by_type = self.index(Column("type", None, itemgetter(1)))
        lists = [by_type[label] for label in labels if label in by_type]
        return lists[0] if len(lists) == 1 else sorted(chain.from_iterable(lists))

    def index(self, column: Column) -> Mapping[Any, Sequence[int]]:
        """The positions of the objects by value of a column; for tags and relations to many by
        each entry."""
        name, labels, read = column
        if (name, labels) not in self._indexes:
            positions, found = self.of_types(labels), defaultdict[Any, list[int]](list)
            values = map(read, map(self.shelf.rows.__getitem__, positions))
            for position, value in zip(positions, values, strict=True):
                if isinstance(value, tuple):
                    for entry in {*value}:
                        found[entry].append(position)
                else:
                    found[value].append(position)
            self._indexes[name, labels] = dict(found)
        return self._indexes[name, labels]

    def ranking(self, column: Column, descending: bool) -> Sequence[int]:
        """The positions of the objects in the order of one column."""
        key = column.name, column.labels, descending
        if key not in self._rankings:
            self._rankings[key] = self.sort(self.of_types(column.labels), [(column, descending)])
        return self._rankings[key]

    def sort(self, positions: Iterable[int], order: Sequence[tuple[Column, bool]]) -> list[int]:
        """Sorts positions by some columns, each descending or not, then by id."""
        rows = self.shelf.rows
        ordered = sorted(positions, key=lambda position: rows[position][0])
        for column, descending in reversed(order):
            read = map(column.read, map(rows.__getitem__, ordered))
            values = dict(zip(ordered, read, strict=True))
            absent = [position for position in ordered if values[position] is None]
            ordered = [position for position in ordered if values[position] is not None]
            ordered.sort(key=values.__getitem__, reverse=descending)
            ordered = ordered + absent if descending else absent + ordered
        return ordered


class VisibleContent:
    """What viewers with the same rights may see, until a page becomes visible or expires.

    :param passed: how many changes of pages have passed.
    """

    def __init__(self, shelves: Mapping[str, Shelf], viewer: Viewer, passed: int) -> None:
        self._shelves = shelves
        self._viewer = viewer
        self._passed = passed
        self._visible: dict[tuple[str, Scope], VisibleObjects] = {}
        self._next_changes: dict[Scope, datetime | None] = {}
        #: The positions of all objects that match a list, in its order.
        self.match_cache: BoundedCache[Sequence[int]] = BoundedCache(
            MATCH_CACHE_SIZE, lambda found: ENTRY_OVERHEAD + len(found)
        )

    def of(self, endpoint: str, scope: Iterable[int] | None = None) -> VisibleObjects:
        """The visible objects of an endpoint, of pages those in a scope."""
        key = endpoint, None if scope is None else tuple(scope)
        if key not in self._visible:
            shelf = self._shelves[endpoint]
            flags = self._flags(shelf) if scope is None else self.of(endpoint).flags
            self._visible[key] = VisibleObjects(shelf, shelf.within(scope, flags))
        return self._visible[key]

    def _flags(self, shelf: Shelf) -> bytearray:
        viewer, endpoint = self._viewer, shelf.endpoint
        if viewer.everything:
            return bytearray(b"\1" * len(shelf.rows))
        opened = {None} | (viewer.pages if endpoint.tree else viewer.collections)
        flags = bytearray(map(opened.__contains__, shelf.table.access))
        if endpoint.tree:
            now, seen, flags = viewer.moment, flags, bytearray(len(flags))
            for position, first, last in shelf.spans():
                if (first is None or first <= now) and (last is None or now < last):
                    flags[position] = seen[position]
        if endpoint.essential is not None:
            target, pages = reader(endpoint, endpoint.essential), self.of("pages")
            for position, row in enumerate(shelf.rows):
                flags[position] = (page := target(row)) is None or pages.sees(page)
        previewed, identity = viewer.previewed or ("", 0)
        if previewed == endpoint.name and identity in shelf.ids:
            flags[shelf.ids[identity]] = 1
        return flags

    def next_change(self, scope: Sequence[int] | None) -> datetime | None:
        """As :meth:`flask_contentapi.Reader.next_change`."""
        known = None if scope is None else tuple(scope)
        if known not in self._next_changes:
            shelf, opened = self._shelves["pages"], {None} | self._viewer.pages
            seen = shelf.within(scope, bytearray(map(opened.__contains__, shelf.table.access)))
            coming = islice(shelf.changes, self._passed, None)
            moments = (moment for moment, position in coming if seen[position])
            self._next_changes[known] = next(moments, None)
        return self._next_changes[known]

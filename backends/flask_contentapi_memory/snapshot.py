"""A state of the content that does not change, with the indexes that answer queries.

What a viewer may see is the base of every index: a :class:`View` is made once for everybody
with the same rights between two moments at which time changes something, and its indexes when
they are first needed. Objects are known by their places in default order, so that a list of
places in ascending order is in default order as well, and a branch of the tree is a range.
"""

from __future__ import annotations

import operator
import random
from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from itertools import chain, islice
from operator import itemgetter
from threading import Lock
from typing import Any, NamedTuple

from cachetools import LRUCache

from flask_contentapi.backend import Reader
from flask_contentapi.library import Library, Restrictions, Table
from flask_contentapi.query import Filter, Order, Query, Row, Selected, Tree, Viewer
from flask_contentapi.search import words_of
from flask_contentapi.sites import Sites
from flask_contentapi_memory.words import WordIndex

__all__ = ["Shelf", "Snapshot"]

#: How many views are kept: one for each set of rights that visitors have.
KEPT_VIEWS = 16
#: How many places are kept of what was found last, for each view.
KEPT_PLACES = 500_000
#: From how many places on it is sooner to look for the first ones of an order than to sort all.
MANY = 5_000
#: What keeping something takes besides its places, in places.
ROOM = 100
#: How many ways to read columns out of rows are kept.
KEPT_GETTERS = 256

Labels = frozenset[str] | None
Range = tuple[int, int]


class Shelf:
    """The objects of one endpoint, whoever looks.

    :param table: the objects.
    :param words: their index of words, if there is one already.
    """

    def __init__(self, table: Table, words: WordIndex | None = None) -> None:
        self.table = table
        self.endpoint = table.endpoint
        self.ids = {row[0]: place for place, row in enumerate(table.rows)}
        # A page's row has the path of its slugs in front, so that it can be asked for.
        self._ahead = 1 if table.endpoint.tree else 0
        self.rows: list[Row] = table.rows
        if table.endpoint.tree:
            pairs = zip(table.url_paths, table.rows, strict=True)
            self.rows = [(path, *row) for path, row in pairs]
        if words is not None:
            self.words = words
        self.getter = lru_cache(KEPT_GETTERS)(self._getter)
        self.project = lru_cache(KEPT_GETTERS)(self._project)

    @cached_property
    def words(self) -> WordIndex:
        """The index of words."""
        rows, type_of = self.table.rows, self.endpoint.type_of
        ordered = (rows[place] for _, place in sorted(self.ids.items()))
        return WordIndex((row[0], words_of(type_of(row[1]), row)) for row in ordered)

    @cached_property
    def children(self) -> Mapping[int | None, Sequence[int]]:
        """The places of each page's children."""
        parent = self.getter("parent", None)
        found: defaultdict[int | None, list[int]] = defaultdict(list)
        for place, row in enumerate(self.rows):
            found[parent(row)].append(place)
        return found

    @cached_property
    def paths(self) -> Mapping[str, int]:
        """The place of each path of slugs."""
        return {row[0]: place for place, row in enumerate(self.rows)}

    @property
    def type_place(self) -> int:
        """Where the label of the type stands in the rows."""
        return 1 + self._ahead

    def _place(self, column: str, label: str) -> int:
        if column == "url_path":
            return 0
        return self.endpoint.type_of(label).places[column] + self._ahead

    def _labels(self, labels: Labels) -> Iterable[str]:
        return labels or {self.endpoint.base.label, *self.endpoint.types}

    def _getter(self, column: str, labels: Labels) -> Callable[[Row], Any]:
        """Reads a column of objects of some types."""
        places = {label: self._place(column, label) for label in self._labels(labels)}
        first, *others = set(places.values())
        if not others:
            return itemgetter(first)
        base, of_type = places.get(self.endpoint.base.label, first), self.type_place
        return lambda row: row[places.get(row[of_type], base)]

    def _project(self, columns: tuple[str, ...], labels: Labels) -> Callable[[Row], Row]:
        """Reads several columns of objects of some types, in order."""
        getters = [self._getter(column, labels) for column in columns]
        if len(columns) > 1 and all(isinstance(getter, itemgetter) for getter in getters):
            label = next(iter(self._labels(labels)))
            return itemgetter(*(self._place(column, label) for column in columns))
        return lambda row: tuple([getter(row) for getter in getters])

    def project_own(self, row: Row, columns: Sequence[str]) -> Row:
        """Some columns that the type of an object has, in order."""
        return self.project(tuple(columns), frozenset((row[self.type_place],)))(row)


class Ranking(NamedTuple):
    """The objects that have a column, in the order of its values.

    :param places: in that order.
    :param ranks: for each place of the shelf where it is in that order.
    """

    places: Sequence[int]
    ranks: Sequence[int]


class Visible:
    """The objects of one endpoint that some viewers may see, with indexes of them.

    Indexes are for a column and the types that have it, None where all have it.

    :param shelf: the objects.
    :param flags: for each place whether it may be seen.
    :param view: what they may see of all endpoints.
    """

    def __init__(self, shelf: Shelf, flags: bytearray, view: View) -> None:
        self.shelf = shelf
        self.flags = flags
        self.places = [place for place, seen in enumerate(flags) if seen]
        self.view = view
        self._indexes: dict[tuple[str, Labels], Mapping[Any, Sequence[int]]] = {}
        self._rankings: dict[tuple[Order, Labels], Ranking] = {}

    def row(self, identity: int, ranges: Sequence[Range] | None) -> Row | None:
        """An object, if it is there and may be seen, and if its place is in one of some ranges."""
        place = self.shelf.ids.get(identity)
        if place is None or not self.flags[place] or not _within(place, ranges):
            return None
        return self.shelf.rows[place]

    def sees(self, identity: int) -> bool:
        """Whether an object is there and may be seen."""
        place = self.shelf.ids.get(identity)
        return place is not None and bool(self.flags[place])

    @cached_property
    def by_type(self) -> Mapping[str, Sequence[int]]:
        """The places of the objects of each type."""
        rows, of_type = self.shelf.rows, self.shelf.type_place
        found: defaultdict[str, list[int]] = defaultdict(list)
        for place in self.places:
            found[rows[place][of_type]].append(place)
        return found

    def of_types(self, labels: Labels) -> Sequence[int]:
        """The places of the objects of some types."""
        if labels is None:
            return self.places
        lists = [self.by_type[label] for label in labels if label in self.by_type]
        return lists[0] if len(lists) == 1 else sorted(chain.from_iterable(lists))

    def index(self, column: str, labels: Labels) -> Mapping[Any, Sequence[int]]:
        """The places of the objects with each value of a column, each tag by itself."""
        key = (column, labels)
        if key not in self._indexes:
            read, rows = self.value(column, labels), self.shelf.rows
            found: defaultdict[Any, list[int]] = defaultdict(list)
            for place in self.of_types(labels):
                value = read(rows[place])
                for entry in value if isinstance(value, tuple) else (value,):
                    found[entry].append(place)
            self._indexes[key] = dict(found)
        return self._indexes[key]

    def ranking(self, order: Order, labels: Labels) -> Ranking:
        """The objects in the order of one column."""
        key = (order, labels)
        if key not in self._rankings:
            ordered = self.sort(self.of_types(labels), (order,), labels)
            ranks = array("q", bytes(8 * len(self.shelf.rows)))
            for rank, place in enumerate(ordered):
                ranks[place] = rank
            self._rankings[key] = Ranking(ordered, ranks)
        return self._rankings[key]

    def sort(self, places: Iterable[int], order: Sequence[Order], labels: Labels) -> list[int]:
        """Places in some order; ties by id.

        :param labels: the types that have the columns which not all types have.
        """
        rows, identity = self.shelf.rows, self.shelf.getter("id", None)
        common = self.shelf.endpoint.base.columns
        ordered = sorted(places, key=lambda place: identity(rows[place]))
        for key in reversed(order):
            read = self.value(key.column, None if key.column in common else labels)
            keys = {place: ((value := read(rows[place])) is not None, value) for place in ordered}
            ordered.sort(key=keys.__getitem__, reverse=key.descending)
        return ordered

    def value(self, column: str, labels: Labels) -> Callable[[Row], Any]:
        """Reads a column; of relations to something hidden nothing is to be seen."""
        read = self.shelf.getter(column, labels)
        label = self.shelf.endpoint.base.label if labels is None else next(iter(labels))
        stored = self.shelf.endpoint.type_of(label).columns.get(column)
        if stored is None or stored.target is None:
            return read
        sees = self.view.of(stored.target.served_at.name).sees
        return lambda row: value if (value := read(row)) is not None and sees(value) else None


class View:
    """What some viewers may see, between two moments at which time changes something."""

    def __init__(self, shelves: Mapping[str, Shelf], viewer: Viewer) -> None:
        self._shelves = shelves
        self._viewer = viewer
        self._visible: dict[str, Visible] = {}
        self._found: LRUCache[Any, Matches] = LRUCache(KEPT_PLACES, lambda found: found.room)
        self._lock = Lock()

    def found(self, key: Any) -> Matches | None:
        """What was kept under a key; None if nothing is."""
        with self._lock:
            return self._found.get(key)

    def keep(self, key: Any, found: Matches) -> None:
        """Keeps what was found, unless there is too much of it."""
        if found.room <= KEPT_PLACES:
            with self._lock:
                self._found[key] = found

    def of(self, endpoint: str) -> Visible:
        """What they may see of an endpoint."""
        if endpoint not in self._visible:
            shelf = self._shelves[endpoint]
            self._visible[endpoint] = Visible(shelf, _flags(shelf, self._viewer), self)
        return self._visible[endpoint]


def _flags(shelf: Shelf, viewer: Viewer) -> bytearray:
    """For each object whether the viewer may see it."""
    opened = {None} | (viewer.pages if shelf.endpoint.tree else viewer.collections)
    flags = bytearray(access in opened for access in shelf.table.access)
    if shelf.endpoint.tree:
        live, start, end = (shelf.getter(c, None) for c in ("live", "go_live_at", "expires_at"))
        for place, row in enumerate(shelf.rows):
            if not live(row) or not _in_time(start(row), end(row), viewer.moment):
                flags[place] = 0
    return flags


def _in_time(start: datetime | None, end: datetime | None, moment: datetime) -> bool:
    return (start is None or start <= moment) and (end is None or moment < end)


class Snapshot(Reader):
    """A state of the content.

    :param library: the content.
    :param version: its stamp.
    :param words: indexes of words that are there already, by endpoint.
    """

    def __init__(
        self, library: Library, version: str, words: Mapping[str, WordIndex] | None = None
    ) -> None:
        self.library = library
        self._version = version
        known = words or {}
        self.shelves = {
            name: Shelf(table, known.get(name)) for name, table in library.tables.items()
        }
        self._turns = self._find_turns()
        self._view = lru_cache(KEPT_VIEWS)(self._make_view)

    @property
    def version(self) -> str:
        return self._version

    @property
    def sites(self) -> Sites:
        return self.library.sites

    @property
    def locales(self) -> Sequence[str]:
        return self.library.locales

    @property
    def restrictions(self) -> Restrictions:
        return self.library.restrictions

    def _find_turns(self) -> list[datetime]:
        """The moments at which time changes what is visible."""
        shelf = self.shelves["pages"]
        start, end = shelf.getter("go_live_at", None), shelf.getter("expires_at", None)
        moments = {moment for row in shelf.rows for moment in (start(row), end(row))}
        return sorted(moment for moment in moments if moment is not None)

    def next_change(self, moment: datetime) -> datetime | None:
        place = bisect_right(self._turns, moment)
        return self._turns[place] if place < len(self._turns) else None

    def view(self, viewer: Viewer) -> View:
        """What a viewer may see."""
        turn = bisect_right(self._turns, viewer.moment)
        return self._view(turn, viewer.pages, viewer.collections)

    def _make_view(self, turn: int, pages: frozenset[int], collections: frozenset[int]) -> View:
        moment = self._turns[turn - 1] if turn else datetime.min.replace(tzinfo=UTC)
        return View(self.shelves, Viewer(moment, pages, collections))

    def fetch(
        self,
        endpoint: str,
        ids: Iterable[int],
        columns: Sequence[str],
        viewer: Viewer,
        scope: Sequence[int] | None = None,
    ) -> Mapping[int, Row]:
        visible = self.view(viewer).of(endpoint)
        ranges = None if scope is None else _branches(visible.shelf, scope)
        found = {}
        for identity in ids:
            row = visible.row(identity, ranges)
            if row is not None:
                found[identity] = visible.shelf.project_own(row, columns)
        return found

    def get(
        self,
        endpoint: str,
        id: int,
        columns_of: Callable[[str], Sequence[str]],
        viewer: Viewer,
        scope: Sequence[int] | None = None,
    ) -> tuple[str, Row] | None:
        visible = self.view(viewer).of(endpoint)
        shelf = visible.shelf
        row = visible.row(id, None if scope is None else _branches(shelf, scope))
        if row is None:
            return None
        label: str = row[shelf.type_place]
        return label, shelf.project_own(row, columns_of(label))

    def select(self, query: Query) -> Selected:
        return _Selection(self.view(query.viewer).of(query.endpoint), query).run()


# Queries.


def _branches(shelf: Shelf, scope: Iterable[int]) -> list[Range]:
    """The ranges of the branches of some pages, without overlaps, in order."""
    ends = shelf.table.ends
    places = sorted(shelf.ids[page] for page in scope if page in shelf.ids)
    ranges: list[Range] = []
    for place in places:
        if not ranges or place >= ranges[-1][1]:
            ranges.append((place, ends[place]))
    return ranges


def _within(place: int, ranges: Sequence[Range] | None) -> bool:
    return ranges is None or any(low <= place < high for low, high in ranges)


class Condition(NamedTuple):
    """One condition of a query.

    :param places: the places that meet it, in ascending order; None where no index knows them.
    :param test: whether the object at a place meets it.
    :param hidden: whether there may be hidden objects among the places.
    :param typed: whether there are only objects of the query's types among them.
    :param shared: whether the list of the places is one that is there anyway.
    """

    places: Sequence[int] | None
    test: Callable[[int], Any]
    hidden: bool = False
    typed: bool = False
    shared: bool = False


class Matches:
    """Places, as windows of a list, which is not copied.

    :param places: the list.
    :param windows: the parts of it that count; None: all.
    :param shared: whether the list is there anyway, so that keeping it takes nothing.
    """

    def __init__(
        self,
        places: Sequence[int],
        windows: Sequence[Range] | None = None,
        *,
        shared: bool = False,
    ) -> None:
        self._places = places
        self._windows = [(0, len(places))] if windows is None else windows
        self._size = sum(high - low for low, high in self._windows)
        #: What keeping it takes, in places.
        self.room = ROOM + (0 if shared else len(places))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[int]:
        return chain.from_iterable(self._places[low:high] for low, high in self._windows)

    def is_all_of(self, places: Sequence[int]) -> bool:
        """Whether the list is a certain one, so that nothing but the windows was chosen."""
        return self._places is places

    def slice(self, offset: int, size: int) -> list[int]:
        """Some of them, from an offset on."""
        taken: list[int] = []
        for low, high in self._windows:
            taken += self._places[min(low + offset, high) : min(low + offset + size, high)]
            size -= max(min(high - low - offset, size), 0)
            offset = max(offset - (high - low), 0)
        return taken


class _Selection:
    """The answer to one query."""

    def __init__(self, visible: Visible, query: Query) -> None:
        self._visible = visible
        self._shelf = visible.shelf
        self._query = query
        self._scope = None if query.scope is None else _branches(self._shelf, query.scope)

    def run(self) -> Selected:
        query, rows = self._query, self._shelf.rows
        unseen = tuple(tree.page for tree in query.tree if not self._is_seen(tree.page))
        if unseen:
            return Selected((), 0, unseen)
        places, total = self._page()
        project = self._shelf.project(query.columns, query.types)
        return Selected([project(rows[place]) for place in places], total)

    def _is_seen(self, page: int) -> bool:
        return self._visible.sees(page) and _within(self._shelf.ids[page], self._scope)

    # What matches.

    def _matches(self) -> Matches:
        types = self._query.types
        typed = None if types is None else self._typed(types)
        conditions = [*filter(None, [typed]), *self._conditions()]
        indexed = [(len(c.places), c) for c in conditions if c.places is not None]
        everything = Condition(self._visible.places, bool, shared=True)
        # The shortest list is gone through; all other conditions are tested on it.
        best = min(indexed, key=itemgetter(0))[1] if indexed else everything
        implied = typed if best.typed else best
        tests = [c.test for c in conditions if c is not best and c is not implied]
        if best.hidden:
            tests.append(self._visible.flags.__getitem__)
        assert best.places is not None
        windows = _windows(best.places, self._ranges())
        matches = Matches(best.places, windows, shared=best.shared)
        if not tests:
            return matches
        places = list(matches)
        for test in tests:
            places = [place for place in places if test(place)]
        return Matches(places)

    def _ranges(self) -> list[Range] | None:
        """The ranges of places that the tree leaves."""
        ranges = self._scope
        for tree in self._query.tree:
            if tree.relation == "descendant_of":
                place = self._shelf.ids[tree.page]
                branch = [(place + 1, self._shelf.table.ends[place])]
                ranges = branch if ranges is None else _overlaps(ranges, branch)
        return ranges

    def _conditions(self) -> Iterator[Condition]:
        query = self._query
        for tree in query.tree:
            if tree.relation != "descendant_of":
                yield self._relatives(tree)
        for condition in query.filters:
            yield from self._filtered(condition)
        if query.search is not None:
            yield _listed(sorted(map(self._shelf.ids.__getitem__, self._scores)))

    def _typed(self, labels: frozenset[str]) -> Condition:
        rows, of_type = self._shelf.rows, self._shelf.type_place
        places = self._visible.of_types(labels)
        return Condition(
            places, lambda place: rows[place][of_type] in labels, shared=len(labels) == 1
        )

    def _relatives(self, tree: Tree) -> Condition:
        rows, place = self._shelf.rows, self._shelf.ids[tree.page]
        if tree.relation == "child_of":
            parent = self._shelf.getter("parent", None)
            places = self._shelf.children.get(tree.page, ())
            return Condition(
                places, lambda other: parent(rows[other]) == tree.page, hidden=True, shared=True
            )
        if tree.relation == "ancestor_of":
            return _listed(self._ancestors(place))
        key = self._shelf.getter("translation_key", None)(rows[place])
        same = self._visible.index("translation_key", None)[key] if key is not None else ()
        return _listed([other for other in same if other != place])

    def _ancestors(self, place: int) -> list[int]:
        parent = self._shelf.getter("parent", None)
        found = []
        while (above := parent(self._shelf.rows[place])) is not None:
            place = self._shelf.ids[above]
            found.append(place)
        return found[::-1]

    def _filtered(self, condition: Filter) -> Iterator[Condition]:
        column, comparison, wanted = condition
        if column == "url_path":
            place = self._shelf.paths.get(wanted)
            yield _listed([] if place is None else [place])
            return
        labels = self._labels(column)
        if comparison in _COMPARE:
            read, compare = self._visible.value(column, labels), _COMPARE[comparison]
            rows = self._shelf.rows
            yield Condition(
                None,
                lambda place: (value := read(rows[place])) is not None and compare(value, wanted),
            )
            return
        index = self._visible.index(column, labels)
        if comparison == "in":
            lists = [index[value] for value in set(wanted) if value in index]
            yield _listed(sorted(chain.from_iterable(lists)))
            return
        for value in wanted if comparison == "all" else (wanted,):
            yield self._equal(column, labels, value, index.get(value, ()))

    def _equal(self, column: str, labels: Labels, wanted: Any, places: Sequence[int]) -> Condition:
        read, rows = self._visible.value(column, labels), self._shelf.rows

        def test(place: int) -> bool:
            value = read(rows[place])
            return wanted in value if isinstance(value, tuple) else bool(value == wanted)

        return Condition(places, test, typed=labels is not None, shared=True)

    def _labels(self, column: str) -> Labels:
        """The types that have a column; None where all have it."""
        return None if column in self._shelf.endpoint.base.columns else self._query.types

    @cached_property
    def _scores(self) -> Mapping[int, float]:
        """How well the objects fit that have the words of the search, by id."""
        search = self._query.search
        return self._shelf.words.score(search.words, search.every) if search else {}

    # The page of it that is wanted.

    def _page(self) -> tuple[list[int], int]:
        """The places that are wanted, and how many match."""
        query, view = self._query, self._visible.view
        key = (*query.conditions, query.scope, query.order, query.random)
        found = view.found(key)
        if found is None:
            matches = self._matches()
            if self._is_walk(matches):
                return self._walked(matches), len(matches)
            found = self._in_order(matches)
            view.keep(key, found)
        total = len(found)
        size = total if query.limit is None else min(query.limit, total)
        places = random.sample([*found], size) if query.random else found.slice(query.offset, size)
        return places, total

    def _in_order(self, matches: Matches) -> Matches:
        """All that match in the order that is wanted."""
        query = self._query
        if query.random:
            return matches
        if query.order:
            return self._ordered(matches)
        return matches if query.search is None else Matches(self._ranked(matches))

    def _ranked(self, matches: Matches) -> list[int]:
        rows, identity = self._shelf.rows, self._shelf.getter("id", None)
        ids = {identity(rows[place]): place for place in matches}
        # What fits equally well stays in default order.
        return [ids[i] for i in sorted(ids, key=self._scores.__getitem__, reverse=True)]

    def _ordered(self, matches: Matches) -> Matches:
        order = self._query.order
        if len(order) > 1:
            labels = next(filter(None, (self._labels(key.column) for key in order)), None)
            return Matches(self._visible.sort(matches, order, labels))
        places, ranks = self._ranking()
        if len(matches) == len(places):
            return Matches(places, shared=True)
        return Matches(sorted(matches, key=ranks.__getitem__))

    def _ranking(self) -> Ranking:
        (order,) = self._query.order
        return self._visible.ranking(order, self._labels(order.column))

    def _is_walk(self, matches: Matches) -> bool:
        """Whether few are wanted of many that match, so that going through all in order finds
        them soon."""
        query, total = self._query, len(matches)
        if total < MANY or query.random or query.limit is None or len(query.order) != 1:
            return False
        everything = len(self._ranking().places)
        return total < everything and (query.offset + query.limit) * everything <= total * total

    def _walked(self, matches: Matches) -> list[int]:
        query, belongs = self._query, self._membership(matches)
        assert query.limit is not None
        found = filter(belongs, self._ranking().places)
        return list(islice(found, query.offset, query.offset + query.limit))

    def _membership(self, matches: Matches) -> Callable[[int], bool]:
        ranges = self._ranges()
        if ranges is not None and len(ranges) == 1 and matches.is_all_of(self._visible.places):
            low, high = ranges[0]
            return lambda place: low <= place < high
        return set(matches).__contains__


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def _listed(places: Sequence[int]) -> Condition:
    """A condition that some places meet, hidden ones maybe among them."""
    return Condition(places, frozenset(places).__contains__, hidden=True)


def _windows(places: Sequence[int], ranges: Sequence[Range] | None) -> list[Range]:
    """The parts of a list of places that lie in some ranges."""
    if ranges is None:
        return [(0, len(places))]
    return [(bisect_left(places, low), bisect_left(places, high)) for low, high in ranges]


def _overlaps(first: Iterable[Range], second: Sequence[Range]) -> list[Range]:
    """What two lists of ranges have in common."""
    shared = (
        (max(low, other_low), min(high, other_high))
        for low, high in first
        for other_low, other_high in second
    )
    return [(low, high) for low, high in shared if low < high]

"""Answers a query from the objects that its viewer may see."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice
from operator import itemgetter
from typing import Any

from flask_contentapi.filters import OPERATORS
from flask_contentapi.query import MOST_VALUES, Filter, Query, Selected, Tree
from flask_contentapi_memory.matches import Condition, Matches
from flask_contentapi_memory.shelves import Labels, Range, is_within
from flask_contentapi_memory.visible import Ranking, VisibleContent

__all__ = ["QueryRunner"]

#: From this many positions on it is faster to look for the first ones in order than to sort all.
MIN_TO_WALK = 5_000


class QueryRunner:
    """The answer to one query."""

    def __init__(self, content: VisibleContent, query: Query) -> None:
        self._content = content
        self._visible = content.of(query.endpoint)
        self._shelf = self._visible.shelf
        self._query = query
        self._scope = None if query.scope is None else self._shelf.branches(query.scope)

    def run(self) -> Selected:
        query, rows = self._query, self._shelf.rows
        unseen = tuple(tree.page for tree in query.tree if not self._is_seen(tree.page))
        if unseen:
            return Selected((), 0, unseen)
        positions, matches = self._page()
        if query.each is not None:
            positions = self._of_each(positions, query.each)
        project = self._shelf.project(query.columns, query.types)
        selected = [project(rows[position]) for position in positions]
        facets = [self._facet(column, matches) for column in query.facets]
        return Selected(selected, len(matches), facets=facets)

    def _facet(self, column: str, matches: Matches) -> list[tuple[Any, int]]:
        """The most frequent values of a column among the matches."""
        rows, labels = self._shelf.rows, self._labels(column)
        read = self._visible.value(column, labels, self._scope)
        values = (read(rows[position]) for position in matches)
        entries = ({*v} if isinstance(v, tuple) else (v,) for v in values)
        counts = Counter(chain.from_iterable(entries))
        declared = self._shelf.endpoint.types
        known = [
            (value, count)
            for value, count in counts.items()
            if value is not None and (column != "type" or value in declared)
        ]
        return sorted(known, key=lambda pair: (-pair[1], pair[0]))[:MOST_VALUES]

    def _is_seen(self, page: int) -> bool:
        return self._visible.sees(page) and is_within(self._shelf.ids[page], self._scope)

    def _of_each(self, positions: Sequence[int], most: int) -> list[int]:
        """So many first positions for each value of the first filter's column."""
        read, left = self._shelf.getter(self._query.filters[0].column, None), Counter[Any]()
        kept = []
        for position in positions:
            value = read(self._shelf.rows[position])
            left[value] += 1
            if left[value] <= most:
                kept.append(position)
        return kept

    # Matching.

    def _matches(self) -> Matches:
        types = self._query.types
        of_types = None if types is None else self._of_types(types)
        conditions = [*filter(None, [of_types]), *self._conditions()]
        indexed = [(len(c.positions), c) for c in conditions if c.positions is not None]
        everything = Condition(self._visible.positions, bool, is_shared=True)
        # Goes through the shortest list and tests all other conditions on it.
        best = min(indexed, key=itemgetter(0))[1] if indexed else everything
        implied = of_types if best.is_typed else best
        tests = [c.test for c in conditions if c is not best and c is not implied]
        if best.may_be_hidden:
            tests.append(self._visible.flags.__getitem__)
        assert best.positions is not None
        windows = _windows(best.positions, self._ranges())
        matches = Matches(best.positions, windows, is_shared=best.is_shared)
        if not tests:
            return matches
        positions = list(matches)
        for test in tests:
            positions = [position for position in positions if test(position)]
        return Matches(positions)

    def _ranges(self) -> list[Range] | None:
        """The ranges of positions that the scope and ``descendant_of`` allow; None: all."""
        ranges = self._scope
        for tree in self._query.tree:
            if tree.relation == "descendant_of":
                position = self._shelf.ids[tree.page]
                branch = [(position + 1, self._shelf.table.ends[position])]
                ranges = branch if ranges is None else _overlaps(ranges, branch)
        return ranges

    def _conditions(self) -> Iterator[Condition]:
        query = self._query
        for tree in query.tree:
            if tree.relation != "descendant_of":
                yield self._relatives(tree)
        for condition in query.filters:
            yield from self._filtered(condition)
        for scores in self._scores:
            yield _among(sorted(map(self._shelf.ids.__getitem__, scores)))

    def _of_types(self, labels: frozenset[str]) -> Condition:
        rows, of_type = self._shelf.rows, self._shelf.type_index
        positions = self._visible.of_types(labels)
        return Condition(
            positions,
            lambda position: rows[position][of_type] in labels,
            is_shared=len(labels) == 1,
        )

    def _relatives(self, tree: Tree) -> Condition:
        rows, position = self._shelf.rows, self._shelf.ids[tree.page]
        if tree.relation == "child_of":
            parent = self._shelf.getter("parent", None)
            positions = self._shelf.children.get(tree.page, ())
            return Condition(
                positions,
                lambda other: parent(rows[other]) == tree.page,
                may_be_hidden=True,
                is_shared=True,
            )
        if tree.relation == "ancestor_of":
            return _among(self._ancestors(position))
        key = self._shelf.getter("translation_key", None)(rows[position])
        same = self._visible.index("translation_key", None)[key] if key is not None else ()
        return _among([other for other in same if other != position])

    def _ancestors(self, position: int) -> list[int]:
        parent = self._shelf.getter("parent", None)
        found = []
        while (above := parent(self._shelf.rows[position])) is not None:
            position = self._shelf.ids[above]
            found.append(position)
        return found[::-1]

    def _filtered(self, condition: Filter) -> Iterator[Condition]:
        column, comparison, wanted = condition
        if column == "url_path":
            paths, known = wanted if comparison == "in" else (wanted,), self._shelf.paths
            yield _among(sorted(known[path] for path in {*paths} if path in known))
            return
        labels = self._labels(column)
        if comparison not in ("eq", "all", "in"):
            meets = OPERATORS[comparison].meets
            read, rows = self._visible.value(column, labels, self._scope), self._shelf.rows
            yield Condition(None, lambda position: meets(read(rows[position]), wanted))
            return
        index = self._visible.index(column, labels, self._scope)
        if comparison == "in":
            lists = [index[value] for value in set(wanted) if value in index]
            # One object can have several of the values.
            yield _among(sorted({*chain.from_iterable(lists)}))
            return
        for value in wanted if comparison == "all" else (wanted,):
            yield self._equal(column, labels, value, index.get(value, ()))

    def _equal(
        self, column: str, labels: Labels, wanted: Any, positions: Sequence[int]
    ) -> Condition:
        read, rows = self._visible.value(column, labels, self._scope), self._shelf.rows

        def test(position: int) -> bool:
            value = read(rows[position])
            return wanted in value if isinstance(value, tuple) else bool(value == wanted)

        return Condition(positions, test, is_typed=labels is not None, is_shared=True)

    def _labels(self, column: str) -> Labels:
        """The types that have a column; None if all have it."""
        return None if column in self._shelf.endpoint.base.columns else self._query.types

    @cached_property
    def _scores(self) -> Sequence[Mapping[int, int]]:
        """The scores of objects that match each search, by id."""
        return [self._shelf.words.score(search) for search in self._query.searches]

    # The requested page.

    def _page(self) -> tuple[list[int], Matches]:
        """The positions on the requested page, and all matches, in any order."""
        query, content = self._query, self._content
        key = (*query.conditions, query.scope, query.order, query.random)
        found = content.match_cache.get(key)
        if found is None:
            matches = self._matches()
            if self._is_walk_faster(matches):
                return self._walk_ranking(matches), matches
            found = self._in_order(matches)
            content.match_cache.put(key, found)
        total = len(found)
        size = total if query.limit is None else min(query.limit, total)
        positions = (
            random.sample([*found], size) if query.random else found.slice(query.offset, size)
        )
        return positions, found

    def _in_order(self, matches: Matches) -> Matches:
        """All matches in the requested order."""
        query = self._query
        if query.random:
            return matches
        if query.order:
            return self._by_order(matches)
        return Matches(self._by_relevance(matches)) if query.searches else matches

    def _by_relevance(self, matches: Matches) -> list[int]:
        rows, identity = self._shelf.rows, self._shelf.getter("id", None)
        ids = {identity(rows[position]): position for position in matches}
        # Objects with equal scores stay in default order.
        for scores in reversed(self._scores):
            ids = {i: ids[i] for i in sorted(ids, key=scores.__getitem__, reverse=True)}
        return [*ids.values()]

    def _by_order(self, matches: Matches) -> Matches:
        order = self._query.order
        if len(order) > 1:
            labels = next(filter(None, (self._labels(key.column) for key in order)), None)
            return Matches(self._visible.sort(matches, order, labels, self._scope))
        positions, ranks = self._ranking()
        if len(matches) == len(positions):
            return Matches(positions, is_shared=True)
        return Matches(sorted(matches, key=ranks.__getitem__))

    def _ranking(self) -> Ranking:
        (order,) = self._query.order
        return self._visible.ranking(order, self._labels(order.column), self._scope)

    def _is_walk_faster(self, matches: Matches) -> bool:
        """Whether few of many matches are requested, so that walking the ranking of all objects
        finds them soon."""
        query, total = self._query, len(matches)
        if total < MIN_TO_WALK or query.random or query.limit is None or len(query.order) != 1:
            return False
        everything = len(self._ranking().positions)
        return total < everything and (query.offset + query.limit) * everything <= total * total

    def _walk_ranking(self, matches: Matches) -> list[int]:
        query, belongs = self._query, self._membership(matches)
        assert query.limit is not None
        found = filter(belongs, self._ranking().positions)
        return list(islice(found, query.offset, query.offset + query.limit))

    def _membership(self, matches: Matches) -> Callable[[int], bool]:
        ranges = self._ranges()
        if ranges is not None and len(ranges) == 1 and matches.is_all_of(self._visible.positions):
            low, high = ranges[0]
            return lambda position: low <= position < high
        return set(matches).__contains__


def _among(positions: Sequence[int]) -> Condition:
    """A condition that certain positions meet, possibly of hidden objects."""
    return Condition(positions, frozenset(positions).__contains__, may_be_hidden=True)


def _windows(positions: Sequence[int], ranges: Sequence[Range] | None) -> list[Range]:
    """The parts of a list of positions that are within ranges."""
    if ranges is None:
        return [(0, len(positions))]
    return [(bisect_left(positions, low), bisect_left(positions, high)) for low, high in ranges]


def _overlaps(first: Iterable[Range], second: Sequence[Range]) -> list[Range]:
    """The intersection of two lists of ranges."""
    shared = (
        (max(low, other_low), min(high, other_high))
        for low, high in first
        for other_low, other_high in second
    )
    return [(low, high) for low, high in shared if low < high]

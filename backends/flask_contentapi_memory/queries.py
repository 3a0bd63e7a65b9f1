"""Answers a query from the objects that its viewer may see."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

from flask_contentapi.declarations import Column
from flask_contentapi.filters import OPERATORS
from flask_contentapi.query import MOST_VALUES, Filter, Query, Selected, Tree
from flask_contentapi_memory.shelves import Labels, Ranges, projection, reader
from flask_contentapi_memory.visible import ColumnKey, Read, VisibleContent

#: For a smaller part of all objects, sorting is faster than walking all in order.
SMALL_PART = 1 / 20


class Condition(NamedTuple):
    """One condition of a query.

    :param positions: the visible positions that meet it, in order; None if there is no index.
    :param test: returns whether the object at a position meets it.
    """

    positions: Sequence[int] | None
    test: Callable[[int], Any]


class QueryRunner:
    """The answer to one query."""

    def __init__(self, content: VisibleContent, query: Query) -> None:
        self._content = content
        self._visible = content.of(query.endpoint)
        self._shelf = self._visible.shelf
        self._query = query
        self._scope = self._shelf.branches(query.scope)

    def run(self) -> Selected:
        query, rows = self._query, self._shelf.rows
        unseen = [t.page for t in query.tree if not self._visible.sees(t.page, self._scope)]
        if unseen:
            return Selected((), 0, tuple(unseen))
        matches = self._matches()
        if query.random:
            size = len(matches) if query.limit is None else min(query.limit, len(matches))
            positions: Sequence[int] = random.sample(matches, size)
        else:
            end = None if query.limit is None else query.offset + query.limit
            positions = matches[query.offset : end]
        if query.each is not None:
            positions = self._of_each(positions, query.each)
        project = projection(self._shelf.endpoint, query.columns, query.types)
        selected = [project(rows[position]) for position in positions]
        facets = [self._facet(column, matches) for column in query.facets]
        return Selected(selected, len(matches), facets=facets)

    def _of_each(self, positions: Iterable[int], most: int) -> list[int]:
        read = reader(self._shelf.endpoint, self._query.filters[0].column)
        found, kept = Counter[Any](), []
        for position in positions:
            value = read(self._shelf.rows[position])
            found[value] += 1
            if found[value] <= most:
                kept.append(position)
        return kept

    def _facet(self, column: str, matches: Iterable[int]) -> list[tuple[Any, int]]:
        rows, read = self._shelf.rows, self._read(column)
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

    def _matches(self) -> Sequence[int]:
        """The positions of all objects that match, in the requested order."""
        query, cache = self._query, self._content.match_cache
        key = (*query.conditions, query.scope, query.order)
        found = cache.get(key)
        return cache.put(key, self._in_order(self._found())) if found is None else found

    def _found(self) -> Sequence[int]:
        rows, types = self._shelf.rows, self._query.types
        every = Condition(self._visible.of_types(types), bool)
        conditions = [*self._conditions()]
        # Goes through the shortest list and tests all other conditions on it.
        indexed = [condition for condition in conditions if condition.positions is not None]
        best = min([*indexed, every], key=lambda condition: len(condition.positions or ()))
        assert best.positions is not None
        positions = _within(best.positions, self._ranges())
        if types is not None and best is not every:
            positions = [position for position in positions if rows[position][1] in types]
        for condition in conditions:
            if condition is not best:
                positions = [*filter(condition.test, positions)]
        return positions

    def _ranges(self) -> Ranges:
        """The ranges of positions that the scope and ``descendant_of`` allow."""
        ranges = self._scope
        for tree in self._query.tree:
            if tree.relation == "descendant_of":
                position = self._shelf.ids[tree.page]
                low, high = position + 1, self._shelf.table.ends[position]
                parts = ((low, high),) if ranges is None else ranges
                shared = ((max(low, first), min(high, last)) for first, last in parts)
                ranges = tuple((first, last) for first, last in shared if first < last)
        return ranges

    def _conditions(self) -> Iterator[Condition]:
        for tree in self._query.tree:
            if tree.relation != "descendant_of":
                yield self._relatives(tree)
        for condition in self._query.filters:
            yield from self._filtered(condition)
        for scores in self._scores:
            yield self._among(sorted(map(self._shelf.ids.__getitem__, scores)))

    def _among(self, positions: Iterable[int]) -> Condition:
        """A condition that the visible ones of certain positions meet."""
        seen = [position for position in positions if self._visible.flags[position]]
        return Condition(seen, frozenset(seen).__contains__)

    def _relatives(self, tree: Tree) -> Condition:
        if tree.relation == "child_of":
            return self._equal("parent", tree.page)
        rows, position = self._shelf.rows, self._shelf.ids[tree.page]
        if tree.relation == "ancestor_of":
            return self._among(self._ancestors(position))
        key = reader(self._shelf.endpoint, "translation_key")(rows[position])
        same = () if key is None else self._index("translation_key")[key]
        return self._among(other for other in same if other != position)

    def _ancestors(self, position: int) -> list[int]:
        parent = reader(self._shelf.endpoint, "parent")
        found: list[int] = []
        while (above := parent(self._shelf.rows[position])) is not None:
            position = self._shelf.ids[above]
            found.insert(0, position)
        return found

    def _filtered(self, condition: Filter) -> Iterator[Condition]:
        column, comparison, wanted = condition
        if comparison in ("eq", "all"):
            for value in wanted if comparison == "all" else (wanted,):
                yield self._equal(column, value)
        elif comparison == "in":
            lists = [self._index(column).get(value, ()) for value in {*wanted}]
            # One object can have several of the values.
            yield self._among(sorted({*chain.from_iterable(lists)}))
        else:
            meets, read, rows = OPERATORS[comparison].meets, self._read(column), self._shelf.rows
            yield Condition(None, lambda position: meets(read(rows[position]), wanted))

    def _equal(self, column: str, wanted: Any) -> Condition:
        read, rows = self._read(column), self._shelf.rows

        def test(position: int) -> bool:
            value = read(rows[position])
            return wanted in value if isinstance(value, tuple) else bool(value == wanted)

        return Condition(self._index(column).get(wanted, ()), test)

    def _key(self, column: str) -> ColumnKey:
        is_common = column in self._shelf.endpoint.base.columns
        labels = None if is_common else self._query.types
        stored = self._stored(column, labels)
        within = self._scope if stored is not None and stored.within_site else None
        return ColumnKey(column, labels, within)

    def _stored(self, column: str, labels: Labels) -> Column | None:
        """The declared field of a column; those that are derived have none."""
        endpoint = self._shelf.endpoint
        declared = endpoint.base if labels is None else endpoint.type_of(next(iter(labels)))
        return declared.columns.get(column)

    def _read(self, column: str) -> Read:
        """The function that reads a column, of relations only what leads to visible objects."""
        _, labels, ranges = self._key(column)
        read, stored = reader(self._shelf.endpoint, column, labels), self._stored(column, labels)
        if stored is None or stored.target is None:
            return read
        targets = self._content.of(stored.target.served_at.name)
        if stored.kind.many:
            return lambda row: tuple([i for i in read(row) if targets.sees(i, ranges)])
        return lambda row: i if (i := read(row)) is not None and targets.sees(i, ranges) else None

    def _index(self, column: str) -> Mapping[Any, Sequence[int]]:
        return self._visible.index(self._key(column), self._read(column))

    # The requested order.

    def _in_order(self, matches: Sequence[int]) -> Sequence[int]:
        order, visible = self._query.order, self._visible
        if not order:
            return sorted(matches, key=self._relevance) if self._query.searches else matches
        keys = [(self._read(column), descending) for column, descending in order]
        if len(order) > 1 or len(matches) < SMALL_PART * len(visible.positions):
            return visible.sort(matches, keys)
        ranking = visible.ranking(self._key(order[0].column), *keys[0])
        if len(matches) == len(ranking):
            return ranking
        return [*filter({*matches}.__contains__, ranking)]

    def _relevance(self, position: int) -> list[int]:
        return [-scores[self._shelf.rows[position][0]] for scores in self._scores]

    @cached_property
    def _scores(self) -> Sequence[Mapping[int, int]]:
        """The scores of objects that match each search, by id."""
        return [self._shelf.words.score(search) for search in self._query.searches]


def _within(positions: Sequence[int], ranges: Ranges) -> Sequence[int]:
    """The positions that are within ranges, in order."""
    if ranges is None:
        return positions
    windows = [(bisect_left(positions, low), bisect_left(positions, high)) for low, high in ranges]
    return [*chain.from_iterable(positions[low:high] for low, high in windows)]

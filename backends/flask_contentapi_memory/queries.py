"""Answers a query from the objects that its viewer may see."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from typing import Any, NamedTuple

from flask_contentapi.filters import OPERATORS
from flask_contentapi.query import MOST_VALUES, Filter, Query, Row, Selected, Tree
from flask_contentapi_memory.shelves import ColumnKey, Read, VisibleContent, projection, reader

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
        query, rows, cache = self._query, self._shelf.rows, self._content.match_cache
        unseen = [t.page for t in query.tree if not self._visible.sees(t.page, self._scope)]
        if unseen:
            return Selected((), 0, tuple(unseen))
        key = (*query.conditions, query.scope, query.order)
        matches = cache.get(key)
        if matches is None:
            matches = cache.put(key, self._in_order(self._found()))
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
        rows, (_, read) = self._shelf.rows, self._column(column)
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

    def _found(self) -> Sequence[int]:
        """The positions of all objects that match, in default order."""
        query, rows, ranges = self._query, self._shelf.rows, self._scope
        every = Condition(self._visible.of_types(query.types), bool)
        conditions = [part for condition in query.filters for part in self._filtered(condition)]
        for tree in query.tree:
            if tree.relation != "descendant_of":
                conditions.append(self._relatives(tree))
                continue
            position = self._shelf.ids[tree.page]
            low, high = position + 1, self._shelf.table.ends[position]
            parts = ((low, high),) if ranges is None else ranges
            shared = ((max(low, first), min(high, last)) for first, last in parts)
            ranges = tuple((first, last) for first, last in shared if first < last)
        for scores in self._scores:
            conditions.append(self._among(sorted(map(self._shelf.ids.__getitem__, scores))))
        # Goes through the shortest list and tests all other conditions on it.
        indexed = [condition for condition in conditions if condition.positions is not None]
        best = min([*indexed, every], key=lambda condition: len(condition.positions or ()))
        positions = best.positions or ()
        if ranges is not None:
            at = partial(bisect_left, positions)
            positions = [
                *chain.from_iterable(positions[at(low) : at(high)] for low, high in ranges)
            ]
        if query.types is not None and best is not every:
            positions = [position for position in positions if rows[position][1] in query.types]
        for condition in conditions:
            if condition is not best:
                positions = [*filter(condition.test, positions)]
        return positions

    def _among(self, positions: Iterable[int]) -> Condition:
        seen = [position for position in positions if self._visible.flags[position]]
        return Condition(seen, frozenset(seen).__contains__)

    def _relatives(self, tree: Tree) -> Condition:
        if tree.relation == "child_of":
            (children,) = self._filtered(Filter("parent", "eq", tree.page))
            return children
        rows, position = self._shelf.rows, self._shelf.ids[tree.page]
        if tree.relation == "ancestor_of":
            parent, above = reader(self._shelf.endpoint, "parent"), list[int]()
            while (page := parent(rows[position])) is not None:
                position = self._shelf.ids[page]
                above.insert(0, position)
            return self._among(above)
        index = self._visible.index(*self._column("translation_key"))
        key = reader(self._shelf.endpoint, "translation_key")(rows[position])
        return self._among(p for p in (() if key is None else index[key]) if p != position)

    def _filtered(self, condition: Filter) -> Iterator[Condition]:
        name, comparison, wanted = condition
        (key, read), rows, visible = self._column(name), self._shelf.rows, self._visible
        meets = OPERATORS[comparison].meets

        def test(position: int) -> bool:
            return meets(read(rows[position]), wanted)

        if comparison == "in":
            lists = [visible.index(key, read).get(value, ()) for value in {*wanted}]
            # One object can have several of the values.
            yield self._among(sorted({*chain.from_iterable(lists)}))
        elif comparison in ("eq", "all"):
            index = visible.index(key, read)
            for value in wanted if comparison == "all" else (wanted,):
                yield Condition(index.get(value, ()), test)
        else:
            yield Condition(None, test)

    def _column(self, name: str) -> tuple[ColumnKey, Read]:
        """A column, and what reads it: of relations only what leads to visible objects."""
        endpoint, types = self._shelf.endpoint, self._query.types
        labels = None if name in endpoint.base.columns else types
        declared = endpoint.base if labels is None else endpoint.type_of(next(iter(labels)))
        # Columns that are derived from others are not declared.
        stored, read = declared.columns.get(name), reader(endpoint, name, labels)
        if stored is None or stored.target is None:
            return ColumnKey(name, labels, None), read
        ranges = self._scope if stored.within_site else None
        targets = self._content.of(stored.target.served_at.name)

        def visible(row: Row) -> Any:
            value = read(row)
            if isinstance(value, tuple):
                return tuple([i for i in value if targets.sees(i, ranges)])
            return value if value is not None and targets.sees(value, ranges) else None

        return ColumnKey(name, labels, ranges), visible

    def _in_order(self, matches: Sequence[int]) -> Sequence[int]:
        order, visible = self._query.order, self._visible
        if not order:
            rows = self._shelf.rows
            for scores in reversed(self._scores):
                best = [scores[rows[position][0]] for position in matches]
                found = dict(zip(matches, best, strict=True))
                matches = sorted(matches, key=found.__getitem__, reverse=True)
            return matches
        columns = [(*self._column(column), descending) for column, descending in order]
        if len(order) > 1 or len(matches) < SMALL_PART * len(visible.positions):
            return visible.sort(matches, [(read, descending) for _, read, descending in columns])
        ranking = visible.ranking(*columns[0])
        if len(matches) == len(ranking):
            return ranking
        return [*filter({*matches}.__contains__, ranking)]

    @cached_property
    def _scores(self) -> Sequence[Mapping[int, int]]:
        return [self._shelf.words.score(search) for search in self._query.searches]

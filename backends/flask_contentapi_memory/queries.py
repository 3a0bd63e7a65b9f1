"""Answers a query from the objects that its viewer may see."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, count
from typing import Any, NamedTuple

from flask_contentapi.filters import OPERATORS
from flask_contentapi.query import MOST_VALUES, Filter, Query, Row, Selected, Tree
from flask_contentapi_memory.shelves import Column, VisibleContent, projection, reader

#: For a smaller part of all objects, sorting is faster than walking all in order.
SMALL_PART = 1 / 20


class Condition(NamedTuple):
    """One condition of a query.

    :param positions: the visible positions that meet it, in order; None if there is no index.
    :param test: returns whether the object at a position meets it.
    :param typed: whether the positions are those of objects of the query's types alone.
    """

    positions: Sequence[int] | None
    test: Callable[[int], Any]
    typed: bool = False


class QueryRunner:
    """The answer to one query."""

    def __init__(self, content: VisibleContent, query: Query) -> None:
        self._content = content
        self._visible = content.of(query.endpoint, query.scope)
        self._shelf = self._visible.shelf
        self._query = query

    def run(self) -> Selected:
        query, rows, cache = self._query, self._shelf.rows, self._content.match_cache
        unseen = [t.page for t in query.tree if not self._visible.sees(t.page)]
        if unseen:
            return Selected((), 0, tuple(unseen))
        key = (*query.conditions, query.scope, query.order)
        matches = cache.get(key)
        if matches is None:
            matches = cache.put(key, self._in_order(self._found()))
        if query.random:
            positions: Sequence[int] = random.sample(matches, len(matches[: query.limit]))
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
        rows, read = self._shelf.rows, reader(self._shelf.endpoint, self._query.filters[0].column)
        # The objects with each value are numbered.
        numbers = defaultdict[Any, Iterator[int]](count)
        return [position for position in positions if next(numbers[read(rows[position])]) < most]

    def _facet(self, column: str, matches: Iterable[int]) -> list[tuple[Any, int]]:
        rows, read = self._shelf.rows, self._column(column).read
        values = (read(rows[position]) for position in matches)
        entries = ({*v} if isinstance(v, tuple) else (v,) for v in values)
        counts = Counter(chain.from_iterable(entries))
        del counts[None]
        known = counts.keys() & self._shelf.endpoint.types if column == "type" else counts.keys()
        pairs = ((value, counts[value]) for value in known)
        return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))[:MOST_VALUES]

    def _found(self) -> Sequence[int]:
        """The positions of all objects that match, in default order."""
        types, rows = self._query.types, self._shelf.rows
        every = Condition(self._visible.of_types(types), bool, typed=True)
        conditions = [*chain.from_iterable(map(self._filtered, self._query.filters))]
        conditions += map(self._related, self._query.tree)
        found = (sorted(map(self._shelf.ids.__getitem__, scores)) for scores in self._scores)
        conditions += map(self._among, found)
        # Goes through the shortest list and tests all other conditions on it.
        indexed = [condition for condition in conditions if condition.positions is not None]
        best = min([*indexed, every], key=lambda condition: len(condition.positions or ()))
        positions = best.positions or ()
        if types is not None and not best.typed:
            positions = [position for position in positions if rows[position][1] in types]
        for condition in conditions:
            if condition is not best:
                positions = [*filter(condition.test, positions)]
        return positions

    def _among(self, positions: Iterable[int]) -> Condition:
        seen = [position for position in positions if self._visible.flags[position]]
        return Condition(seen, frozenset(seen).__contains__)

    def _related(self, tree: Tree) -> Condition:
        if tree.relation == "child_of":
            (children,) = self._filtered(Filter("parent", "eq", tree.page))
            return children
        shelf, position = self._shelf, self._shelf.ids[tree.page]
        if tree.relation == "descendant_of":
            branch = range(position + 1, shelf.table.ends[position])
            seen = self._visible.of_types(self._query.types)
            low, high = (bisect_left(seen, end) for end in (branch.start, branch.stop))
            return Condition(seen[low:high], branch.__contains__, typed=True)
        if tree.relation == "ancestor_of":
            parent, above = reader(shelf.endpoint, "parent"), list[int]()
            while (page := parent(shelf.rows[position])) is not None:
                position = shelf.ids[page]
                above.insert(0, position)
            return self._among(above)
        column = self._column("translation_key")
        key = column.read(shelf.rows[position])
        others = () if key is None else self._visible.index(column)[key]
        return self._among(other for other in others if other != position)

    def _filtered(self, condition: Filter) -> Iterator[Condition]:
        name, comparison, wanted = condition
        column, rows, visible = self._column(name), self._shelf.rows, self._visible
        meets = OPERATORS[comparison].meets

        def test(position: int) -> bool:
            return meets(column.read(rows[position]), wanted)

        if comparison == "in":
            lists = [visible.index(column).get(value, ()) for value in {*wanted}]
            # One object can have several of the values.
            yield self._among(sorted({*chain.from_iterable(lists)}))
        elif comparison in ("eq", "all"):
            for value in wanted if comparison == "all" else (wanted,):
                yield Condition(visible.index(column).get(value, ()), test)
        else:
            yield Condition(None, test)

    def _column(self, name: str) -> Column:
        """A column; of relations only what leads to visible objects."""
        endpoint, types = self._shelf.endpoint, self._query.types
        labels = None if name in endpoint.base.columns else types
        declared = endpoint.base if labels is None else endpoint.type_of(next(iter(labels)))
        # Columns that are derived from others are not declared.
        stored, read = declared.columns.get(name), reader(endpoint, name, labels)
        if stored is None or stored.target is None:
            return Column(name, labels, read)
        scope = self._query.scope if stored.within_site else None
        targets = self._content.of(stored.target.served_at.name, scope)

        def seen(row: Row) -> Any:
            value = read(row)
            if isinstance(value, tuple):
                return tuple([target for target in value if targets.sees(target)])
            return value if value is not None and targets.sees(value) else None

        return Column(name, labels, seen)

    def _in_order(self, matches: Sequence[int]) -> Sequence[int]:
        order, visible = self._query.order, self._visible
        if not order:
            rows = self._shelf.rows
            for scores in reversed(self._scores):
                best = [scores[rows[position][0]] for position in matches]
                found = dict(zip(matches, best, strict=True))
                matches = sorted(matches, key=found.__getitem__, reverse=True)
            return matches
        columns = [(self._column(column), descending) for column, descending in order]
        if len(order) > 1 or len(matches) < SMALL_PART * len(visible.positions):
            return visible.sort(matches, columns)
        ranking = visible.ranking(*columns[0])
        if len(matches) == len(ranking):
            return ranking
        return [*filter({*matches}.__contains__, ranking)]

    @cached_property
    def _scores(self) -> Sequence[Mapping[int, int]]:
        return [self._shelf.words.score(search) for search in self._query.searches]

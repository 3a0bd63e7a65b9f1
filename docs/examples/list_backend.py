"""A whole backend in plain lists: slow, obvious, and right.

Every query looks at every object. What :func:`read_library` gives is all it needs: the checked
records as rows, the pages in tree order, and for each object the restriction that it is under.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

from flask_contentapi.backend import Backend, LibraryReader
from flask_contentapi.content import read_library
from flask_contentapi.declarations import ObjectType
from flask_contentapi.errors import Problem
from flask_contentapi.filters import OPERATORS
from flask_contentapi.query import MOST_VALUES, Filter, Query, Row, Search, Selected, Tree, Viewer
from flask_contentapi.registry import Registry
from flask_contentapi.search import words_of


class ListBackend(Backend):
    """Keeps the content in lists, as long as the process runs."""

    persistent = False

    def open(self, registry: Registry, *, debug: bool = False, logs: bool = True) -> None:
        self.registry = registry
        self.load({})  # in which nothing can be wrong

    def load(self, content: Mapping[str, Iterable[Any]]) -> None:
        library = read_library(content, self.registry)  # raises ContentError, changes nothing
        self.content = ListReader(library, version=uuid4().hex)

    def reader(self) -> nullcontext[ListReader]:
        return nullcontext(self.content)

    def dump(self) -> Iterator[tuple[str, Any]]:
        return self.content.library.dump()

    def check(self, *, values: bool = True) -> Iterable[Problem]:
        return self.content.library.check()


@dataclass
class Thing:
    """An object: its type, its stored fields by name, and what follows from its place."""

    type: ObjectType
    row: Row
    values: dict[str, Any]
    access: int | None


class ListReader(LibraryReader):
    """One state of the content. A load makes another one, so this never changes."""

    def next_change(self, viewer: Viewer, scope: Sequence[int] | None = None) -> datetime | None:
        times = []
        things = [t for t in self.within("pages", scope) if self.is_open(t, viewer.pages)]
        for page in (thing.values for thing in things):
            start, end = page["go_live_at"], page["expires_at"]
            if page["live"] and (start is None or end is None or start < end):
                times += [time for time in (start, end) if time and time > viewer.moment]
        return min(times, default=None)

    # What there is, and who may see it.

    def things(self, endpoint: str) -> list[Thing]:
        """All objects in default order: pages in tree order, others by id."""
        table = self.library.tables[endpoint]
        things = []
        for place, row in enumerate(table.rows):
            declared = table.endpoint.type_of(row[1])
            values = dict(zip(declared.column_names, row, strict=True))
            if table.endpoint.tree:
                values["url_path"] = table.url_paths[place]
            things.append(Thing(declared, row, values, table.access[place]))
        return things

    def visible(self, endpoint: str, viewer: Viewer, scope: Sequence[int] | None) -> list[Thing]:
        """The objects that the viewer may see, of pages those in the scope."""
        known = self.library.tables[endpoint].endpoint
        seen: set[int | None] = set()
        if known.essential is not None:
            seen = {None, *(page.values["id"] for page in self.visible("pages", viewer, None))}
        return [
            thing
            for thing in self.within(endpoint, scope)
            if viewer.everything
            or (endpoint, thing.values["id"]) == viewer.previewed
            or (
                self.is_open(thing, viewer.pages if known.tree else viewer.collections)
                and (known.essential is None or thing.values[known.essential] in seen)
                and (not known.tree or self.is_live(thing.values, viewer.moment))
            )
        ]

    def within(self, endpoint: str, scope: Sequence[int] | None) -> list[Thing]:
        """All objects, but of pages those in the scope."""
        things = self.things(endpoint)
        if scope is None or not self.library.tables[endpoint].endpoint.tree:
            return things
        paths = {thing.values["id"]: thing.values["url_path"] for thing in things}
        homes = tuple(paths[page] for page in scope)
        return [thing for thing in things if thing.values["url_path"].startswith(homes)]

    def is_open(self, thing: Thing, opened: frozenset[int]) -> bool:
        """Whether no restriction hides an object, given those that are open."""
        return thing.access in {None, *opened}

    def is_live(self, page: Mapping[str, Any], moment: datetime) -> bool:
        """Whether a page is live, inside its time window."""
        start, end = page["go_live_at"], page["expires_at"]
        started = start is None or start <= moment
        return bool(page["live"] and started and (end is None or moment < end))

    def value(self, thing: Thing, column: str, query: Query) -> Any:
        """A stored value; of relations only what leads to objects that the viewer may see."""
        value, declared = thing.values[column], thing.type.columns.get(column)
        if declared is None or declared.target is None:
            return value
        target = declared.target.served_at.name
        scope = query.scope if declared.within_site else None
        seen = {other.values["id"] for other in self.visible(target, query.viewer, scope)}
        if declared.kind.many:
            return seen.intersection(value)
        return value if value in seen else None

    # Objects by id.

    def fetch(
        self,
        endpoint: str,
        ids: Iterable[int],
        columns: Sequence[str],
        viewer: Viewer,
        scope: Sequence[int] | None = None,
    ) -> Mapping[int, Row]:
        wanted = set(ids)
        return {
            thing.values["id"]: tuple(thing.values.get(column) for column in columns)
            for thing in self.visible(endpoint, viewer, scope)
            if thing.values["id"] in wanted
        }

    # Lists.

    def select(self, query: Query) -> Selected:
        things = self.visible(query.endpoint, query.viewer, query.scope)
        ids = {thing.values["id"] for thing in things}
        unseen = tuple(tree.page for tree in query.tree if tree.page not in ids)
        if unseen:
            return Selected((), 0, unseen)
        found = [thing for thing in things if self.matches(thing, query)]
        facets = [self.facet(found, column, query) for column in query.facets]
        self.sort(found, query)
        if query.each is not None:
            found = self.first_of_each(found, query.filters[0].column, query.each)
        end = None if query.limit is None else query.offset + query.limit
        rows = [
            tuple(thing.values.get(column) for column in query.columns)
            for thing in found[query.offset : end]
        ]
        return Selected(rows, len(found), (), facets)

    def facet(self, found: list[Thing], column: str, query: Query) -> list[tuple[Any, int]]:
        """The most frequent values of a column, with how many objects have each."""
        counts: Counter[Any] = Counter()
        for thing in found:
            value = self.value(thing, column, query)
            if column != "type" or value == thing.type.label:  # otherwise it is not declared
                counts.update(value if isinstance(value, tuple | set) else [value])
        known = [pair for pair in counts.items() if pair[0] is not None]
        return sorted(known, key=lambda pair: (-pair[1], pair[0]))[:MOST_VALUES]

    def first_of_each(self, found: list[Thing], column: str, most: int) -> list[Thing]:
        """So many first objects for each value of a column."""
        numbers: Counter[Any] = Counter()
        kept = []
        for thing in found:
            numbers[thing.values[column]] += 1
            if numbers[thing.values[column]] <= most:
                kept.append(thing)
        return kept

    def matches(self, thing: Thing, query: Query) -> bool:
        """Whether an object meets all conditions."""
        return (
            (query.types is None or thing.values["type"] in query.types)
            and all(self.passes(thing, condition, query) for condition in query.filters)
            and all(self.is_related(thing, tree) for tree in query.tree)
            and all(self.has_words(thing, search) for search in query.searches)
        )

    def passes(self, thing: Thing, condition: Filter, query: Query) -> bool:
        """Whether an object meets a filter."""
        value = self.value(thing, condition.column, query)
        return OPERATORS[condition.operator].meets(value, condition.value)

    def is_related(self, thing: Thing, tree: Tree) -> bool:
        """Whether a page stands in a relation to the one that is named."""
        page = thing.values
        named = next(t.values for t in self.things("pages") if t.values["id"] == tree.page)
        if tree.relation == "child_of":
            return bool(page["parent"] == named["id"])
        if page["id"] == named["id"]:
            return False
        if tree.relation == "descendant_of":
            return bool(page["url_path"].startswith(named["url_path"]))
        if tree.relation == "ancestor_of":
            return bool(named["url_path"].startswith(page["url_path"]))
        key = named["translation_key"]
        return key is not None and bool(page["translation_key"] == key)

    def has_words(self, thing: Thing, search: Search) -> bool:
        """Whether an object has every word, or one of them."""
        weights = self.weights(thing, search)
        return all(weights) if search.every else any(weights)

    def weights(self, thing: Thing, search: Search) -> list[int]:
        """What each word of a search weighs in an object; 0 if it is not there."""
        known = words_of(thing.type, thing.row)
        weights = [known.get(word, 0) for word in search.words]
        if search.prefix:
            begun = [known[word] for word in known if word.startswith(search.words[-1])]
            weights[-1] = max(begun, default=0)
        return weights

    def sort(self, found: list[Thing], query: Query) -> None:
        """Puts objects that stand in default order into the order asked for."""
        if query.random:
            random.shuffle(found)
        elif query.order:
            found.sort(key=lambda thing: thing.values["id"])
            for column, descending in reversed(query.order):
                # Sorting keeps ties as they are, so the first key is the last to be sorted by.
                found.sort(
                    key=lambda thing: self.key(self.value(thing, column, query)),
                    reverse=descending,
                )
        else:
            for search in reversed(query.searches):
                found.sort(key=lambda thing: self.relevance(thing, search), reverse=True)

    def key(self, value: Any) -> tuple[bool, Any]:
        """What a value is sorted by: missing ones stand before all others."""
        return (value is not None, value)

    def relevance(self, thing: Thing, search: Search) -> int:
        """How well an object fits a search; a word in the title weighs more than elsewhere."""
        weights = self.weights(thing, search)
        return int(weights[-1] > 1) if search.prefix else sum(weights)

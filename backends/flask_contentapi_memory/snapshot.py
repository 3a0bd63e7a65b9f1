"""Immutable states of the content."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from operator import itemgetter

from flask_contentapi.backend import Reader
from flask_contentapi.cache import BoundedCache
from flask_contentapi.content import Library, Restrictions
from flask_contentapi.query import ObjectKey, Query, Row, Selected, Viewer
from flask_contentapi.sites import Sites
from flask_contentapi_memory.queries import QueryRunner
from flask_contentapi_memory.shelves import Shelf, is_within
from flask_contentapi_memory.visible import VisibleContent

__all__ = ["Snapshot"]

#: For how many sets of rights the visible content is cached.
VISIBLE_CACHE_SIZE = 16
#: For how many sets of rights and sites the next change is cached.
NEXT_CHANGES_CACHE_SIZE = 256


class Snapshot(Reader):
    """A state of the content.

    :param library: the content.
    :param version: its stamp; None for content that is being changed.
    :param before: a state that differs in few objects.
    """

    def __init__(
        self,
        library: Library,
        version: str | None,
        before: Snapshot | None = None,
    ) -> None:
        self.library = library
        self._version = version
        known: Mapping[str, Shelf] = {} if before is None else before.shelves
        self.shelves: Mapping[str, Shelf] = {
            name: known[name]
            if name in known and known[name].table is table
            else Shelf(table, known.get(name))
            for name, table in library.tables.items()
        }
        self._changes: list[tuple[datetime, int]] = (
            before._changes
            if before is not None and self.shelves["pages"] is before.shelves["pages"]
            else self._find_changes()
        )
        self._next_changes: BoundedCache[list[datetime]] = BoundedCache(NEXT_CHANGES_CACHE_SIZE)
        self._visible: BoundedCache[VisibleContent] = BoundedCache(VISIBLE_CACHE_SIZE)

    @property
    def version(self) -> str | None:
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

    def _find_changes(self) -> list[tuple[datetime, int]]:
        """The moments at which pages become visible or expire, each with the page's position."""
        shelf = self.shelves["pages"]
        live, start, end = (shelf.getter(c, None) for c in ("live", "go_live_at", "expires_at"))
        found = []
        for position, row in enumerate(shelf.rows):
            first, last = start(row), end(row)
            if live(row) and (first is None or last is None or first < last):
                found += [(moment, position) for moment in (first, last) if moment is not None]
        return sorted(found)

    def next_change(self, viewer: Viewer, scope: Sequence[int] | None = None) -> datetime | None:
        passed = self._passed(viewer.moment)
        key = (passed, viewer.pages, None if scope is None else tuple(scope))
        found = self._next_changes.get(key)
        if found is None:
            found = self._next_changes.put(key, [*self._next_change(*key)])
        return found[0] if found else None

    def _next_change(
        self, passed: int, pages: frozenset[int], scope: tuple[int, ...] | None
    ) -> Iterator[datetime]:
        """The next change that a viewer sees, if there is one."""
        shelf = self.shelves["pages"]
        ranges = None if scope is None else shelf.branches(scope)
        for moment, position in islice(self._changes, passed, None):
            access = shelf.table.access[position]
            if (access is None or access in pages) and is_within(position, ranges):
                yield moment
                return

    def _passed(self, moment: datetime) -> int:
        """How many changes have happened at a moment."""
        return bisect_right(self._changes, moment, key=itemgetter(0))

    def visible_to(self, viewer: Viewer) -> VisibleContent:
        """What a viewer may see."""
        passed = self._passed(viewer.moment)
        key = (passed, viewer.pages, viewer.collections, viewer.previewed)
        return self._visible.get(key) or self._visible.put(key, self._make_visible(*key))

    def _make_visible(
        self,
        passed: int,
        pages: frozenset[int],
        collections: frozenset[int],
        previewed: ObjectKey | None,
    ) -> VisibleContent:
        moment = self._changes[passed - 1][0] if passed else datetime.min.replace(tzinfo=UTC)
        return VisibleContent(self.shelves, Viewer(moment, pages, collections, previewed))

    def fetch(
        self,
        endpoint: str,
        ids: Iterable[int],
        columns: Sequence[str],
        viewer: Viewer,
        scope: Sequence[int] | None = None,
    ) -> Mapping[int, Row]:
        visible = self.visible_to(viewer).of(endpoint)
        ranges = None if scope is None else visible.shelf.branches(scope)
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
        visible = self.visible_to(viewer).of(endpoint)
        shelf = visible.shelf
        row = visible.row(id, None if scope is None else shelf.branches(scope))
        if row is None:
            return None
        label: str = row[shelf.type_index]
        return label, shelf.project_own(row, columns_of(label))

    def select(self, query: Query) -> Selected:
        return QueryRunner(self.visible_to(query.viewer), query).run()

"""Immutable states of the content."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime

from flask_contentapi.backend import Reader
from flask_contentapi.bounded_cache import BoundedCache
from flask_contentapi.library import Library
from flask_contentapi.query import Query, Row, Selected, Viewer
from flask_contentapi.sites import Sites
from flask_contentapi.tables import Restrictions
from flask_contentapi_memory.queries import QueryRunner
from flask_contentapi_memory.shelves import Shelf
from flask_contentapi_memory.visible import VisibleContent
from flask_contentapi_memory.words import WordIndex

__all__ = ["Snapshot"]

#: For how many sets of rights the visible content is cached.
VISIBLE_CACHE_SIZE = 16


class Snapshot(Reader):
    """A state of the content.

    :param library: the content.
    :param version: its stamp; None for content that is being changed.
    :param words: word indexes that exist already, by endpoint.
    """

    def __init__(
        self,
        library: Library,
        version: str | None,
        words: Mapping[str, WordIndex] | None = None,
    ) -> None:
        self.library = library
        self._version = version
        known = words or {}
        self.shelves = {
            name: Shelf(table, known.get(name)) for name, table in library.tables.items()
        }
        self._change_moments = self._find_change_moments()
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

    def _find_change_moments(self) -> list[datetime]:
        """The moments at which pages become visible or expire."""
        shelf = self.shelves["pages"]
        live, start, end = (shelf.getter(c, None) for c in ("live", "go_live_at", "expires_at"))
        rows = filter(live, shelf.rows)
        moments = {moment for row in rows for moment in (start(row), end(row))}
        return sorted(moment for moment in moments if moment is not None)

    def next_change(self, moment: datetime) -> datetime | None:
        passed = bisect_right(self._change_moments, moment)
        return self._change_moments[passed] if passed < len(self._change_moments) else None

    def visible_to(self, viewer: Viewer) -> VisibleContent:
        """What a viewer may see."""
        passed = bisect_right(self._change_moments, viewer.moment)
        key = (passed, viewer.pages, viewer.collections)
        return self._visible.get(key) or self._visible.put(key, self._make_visible(*key))

    def _make_visible(
        self, passed: int, pages: frozenset[int], collections: frozenset[int]
    ) -> VisibleContent:
        moment = self._change_moments[passed - 1] if passed else datetime.min.replace(tzinfo=UTC)
        return VisibleContent(self.shelves, Viewer(moment, pages, collections))

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

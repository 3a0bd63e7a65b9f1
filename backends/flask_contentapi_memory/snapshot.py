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
from flask_contentapi_memory.selection import Selection
from flask_contentapi_memory.shelves import Shelf
from flask_contentapi_memory.views import View
from flask_contentapi_memory.words import WordIndex

__all__ = ["Snapshot"]

#: How many views are cached: one for each set of rights.
VIEW_CACHE_SIZE = 16


class Snapshot(Reader):
    """A state of the content.

    :param library: the content.
    :param version: its stamp.
    :param words: word indexes that exist already, by endpoint.
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
        self._views: BoundedCache[View] = BoundedCache(VIEW_CACHE_SIZE)

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
        """The moments at which pages become visible or expire."""
        shelf = self.shelves["pages"]
        live, start, end = (shelf.getter(c, None) for c in ("live", "go_live_at", "expires_at"))
        rows = filter(live, shelf.rows)
        moments = {moment for row in rows for moment in (start(row), end(row))}
        return sorted(moment for moment in moments if moment is not None)

    def next_change(self, moment: datetime) -> datetime | None:
        place = bisect_right(self._turns, moment)
        return self._turns[place] if place < len(self._turns) else None

    def view(self, viewer: Viewer) -> View:
        """What a viewer may see."""
        turn = bisect_right(self._turns, viewer.moment)
        key = (turn, viewer.pages, viewer.collections)
        return self._views.get(key) or self._views.put(key, self._make_view(*key))

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
        visible = self.view(viewer).of(endpoint)
        shelf = visible.shelf
        row = visible.row(id, None if scope is None else shelf.branches(scope))
        if row is None:
            return None
        label: str = row[shelf.type_place]
        return label, shelf.project_own(row, columns_of(label))

    def select(self, query: Query) -> Selected:
        return Selection(self.view(query.viewer), query).run()

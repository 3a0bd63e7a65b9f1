"""Immutable states of the content."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from flask_contentapi.backend import Reader
from flask_contentapi.cache import BoundedCache
from flask_contentapi.content import Library, Restrictions
from flask_contentapi.query import Query, Row, Selected, Viewer
from flask_contentapi.sites import Sites
from flask_contentapi_memory.queries import QueryRunner
from flask_contentapi_memory.shelves import Shelf, projection
from flask_contentapi_memory.visible import VisibleContent

#: For how many sets of rights the visible content is cached.
VISIBLE_CACHE_SIZE = 16


class Snapshot(Reader):
    """A state of the content.

    :param library: the content.
    :param version: its stamp; None for content that is being changed.
    :param before: a state that differs in few objects.
    """

    def __init__(
        self, library: Library, version: str | None, before: Snapshot | None = None
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

    def visible_to(self, viewer: Viewer) -> VisibleContent:
        """What a viewer may see."""
        passed = self.shelves["pages"].passed(viewer.moment)
        key = (passed, viewer.pages, viewer.collections, viewer.previewed, viewer.everything)
        return self._visible.get(key) or self._visible.put(
            key, VisibleContent(self.shelves, viewer)
        )

    def next_change(self, viewer: Viewer, scope: Sequence[int] | None = None) -> datetime | None:
        return self.visible_to(viewer).next_change(scope)

    def select(self, query: Query) -> Selected:
        return QueryRunner(self.visible_to(query.viewer), query).run()

    def fetch(
        self,
        endpoint: str,
        ids: Iterable[int],
        columns: Sequence[str],
        viewer: Viewer,
        scope: Sequence[int] | None = None,
    ) -> Mapping[int, Row]:
        visible, wanted = self.visible_to(viewer).of(endpoint), tuple(columns)
        shelf = visible.shelf
        ranges = shelf.branches(scope)
        rows = [shelf.rows[shelf.ids[i]] for i in ids if visible.sees(i, ranges)]
        # Of each object the columns of its own type.
        return {
            row[0]: projection(shelf.endpoint, wanted, frozenset([row[1]]))(row) for row in rows
        }

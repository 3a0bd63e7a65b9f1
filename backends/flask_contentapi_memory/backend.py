"""The in-memory backend: serves content given in Python from immutable snapshots."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from hashlib import blake2b
from operator import itemgetter
from typing import Any, TypeVar
from uuid import uuid4

import orjson

from flask_contentapi.backend import Backend, LibraryReader, Reader
from flask_contentapi.cache import BoundedCache, renew_after_fork
from flask_contentapi.content import Library, changed_tags, read_library
from flask_contentapi.errors import Problem
from flask_contentapi.query import Query, Row, Selected, Viewer
from flask_contentapi.registry import Registry
from flask_contentapi.signals import content_changed
from flask_contentapi_memory.draft import Draft
from flask_contentapi_memory.queries import QueryRunner
from flask_contentapi_memory.shelves import Shelf, VisibleContent, projection

T = TypeVar("T")
#: For how many sets of rights the visible content is cached.
VISIBLE_CACHE_SIZE = 16


class Snapshot(LibraryReader):
    """A state of the content.

    :param library: the content.
    :param version: its stamp; None for content that is being changed.
    :param old: a state that differs in few objects.
    """

    def __init__(self, library: Library, version: str | None, old: Snapshot | None = None) -> None:
        super().__init__(library, version)
        self.shelves: dict[str, Shelf] = {}
        for name, table in library.tables.items():
            shelf = None if old is None else old.shelves.get(name)
            if shelf is None or shelf.table is not table:
                shelf = Shelf(table, shelf)
            self.shelves[name] = shelf
        self._visible: BoundedCache[VisibleContent] = BoundedCache(VISIBLE_CACHE_SIZE)

    def visible_to(self, viewer: Viewer) -> VisibleContent:
        """What a viewer may see."""
        passed = bisect_right(self.shelves["pages"].changes, viewer.moment, key=itemgetter(0))
        key = (passed, *viewer[1:])  # all but the moment
        known = self._visible.get(key)
        return known or self._visible.put(key, VisibleContent(self.shelves, viewer, passed))

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
        visible, names = self.visible_to(viewer).of(endpoint, scope), tuple(columns)
        shelf = visible.shelf
        rows = [shelf.rows[shelf.ids[i]] for i in ids if visible.sees(i)]
        # Of each object the columns of its own type.
        return {row[0]: projection(shelf.endpoint, names, frozenset([row[1]]))(row) for row in rows}


class MemoryBackend(Backend):
    """Serves records, or instances of the declared classes, from memory.

    Requests read an immutable snapshot. A change builds a new snapshot and swaps it in, so that
    every request sees a single state and never waits.

    A subclass that takes its content from elsewhere calls :meth:`begin` when it is opened, and
    :meth:`serve` with the first content and with each replacement.

    :param content: a list for each section (``sites``, ``pages``, ``images``, ...).
    :ivar changing: a lock, held from reading the content to be changed until the new content is
        served; readers do not need it.
    """

    persistent = False

    def __init__(self, content: Mapping[str, Iterable[Any]] | None = None) -> None:
        self._content = {} if content is None else content
        self.renew()
        renew_after_fork(self)
        self._registry: Registry | None = None
        self._snapshot: Snapshot | None = None

    def renew(self) -> None:
        """Makes the lock anew, and what it protects."""
        self.changing = threading.Lock()
        #: The content in the form in which it is changed, from the first change after a load on.
        self._draft: Draft | None = None

    def open(self, registry: Registry, *, debug: bool = False, logs: bool = True) -> None:
        self.begin(registry)
        self.load(self._content, logs=logs)

    def reader(self) -> AbstractContextManager[Reader]:
        if self._draft is not None and self.is_writing:
            return nullcontext(Snapshot(self._draft.library(), None, self.snapshot))
        return nullcontext(self.snapshot)

    def mark(self) -> object:
        return None if self.is_writing else self._snapshot

    @property
    def snapshot(self) -> Snapshot:
        """The current state of the content."""
        return _opened(self._snapshot)

    @property
    def registry(self) -> Registry:
        """The declared types."""
        return _opened(self._registry)

    def begin(self, registry: Registry) -> None:
        """Sets the declared types; there is no content yet."""
        self._registry, self._snapshot = registry, None

    def serve(self, library: Library) -> frozenset[str]:
        """Replaces the served content, unless the new content is the same.

        The caller holds :attr:`changing`.

        :param library: the content.
        :returns: the cache tags of the answers that may have changed; none if nobody listens.
        """
        version = _version_of(library)
        before = self._snapshot
        if before is not None and before.version == version:
            return frozenset()
        snapshot = Snapshot(library, version)
        # The first search would wait too long for them.
        for shelf in snapshot.shelves.values():
            shelf.words  # noqa: B018
        self._snapshot = snapshot
        if before is None or not content_changed.receivers:
            return frozenset()
        return changed_tags(before.library, library)

    def announce(self, tags: frozenset[str]) -> None:
        """Sends ``content_changed``, if something has."""
        if tags:
            content_changed.send(self, tags=tags)

    def load(self, content: Mapping[str, Iterable[Any]], *, logs: bool = True) -> None:
        self.require_no_writing("loaded")
        library = read_library(content, self.registry, logs=logs)
        with self.changing:
            self._draft = None
            tags = self.serve(library)
        self.announce(tags)

    def dump(self) -> Iterator[tuple[str, Any]]:
        self.require_no_writing("dumped")
        return self.snapshot.library.dump()

    def check(self, *, values: bool = True) -> Iterable[Problem]:
        return self.snapshot.library.check()

    @contextmanager
    def transaction(self) -> Iterator[Draft]:
        with self.changing:
            before = self.snapshot
            draft = self._draft = self._draft or Draft(before.library, self.registry, {})
            highest = dict(draft.highest)
            try:
                yield draft
                if draft.library() is not before.library:
                    self._snapshot = Snapshot(draft.library(), uuid4().hex, before)
                    draft.settle()
            except BaseException:
                self._draft = Draft(before.library, self.registry, highest)
                raise


def _opened(held: T | None) -> T:
    """What a backend holds from when it is opened on."""
    if held is None:
        raise RuntimeError("The backend is not open yet; ContentAPI.init_app opens it.")
    return held


def _version_of(library: Library) -> str:
    """A stamp that is the same for the same content in every process."""
    others = [library.locales, library.site_records, [*library.collections.values()]]
    digest = blake2b(orjson.dumps(others), digest_size=12)
    for name, table in library.tables.items():
        for row in table.rows:
            # Decimals are the only stored values that orjson cannot write.
            digest.update(orjson.dumps((name, row, table.extras.get(row[0])), default=str))
    return digest.hexdigest()

"""The in-memory backend: serves content given in Python from immutable snapshots."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from hashlib import blake2b
from typing import Any

import orjson

from flask_contentapi.backend import Backend, Reader
from flask_contentapi.changes import changed_tags
from flask_contentapi.errors import Problem
from flask_contentapi.library import Library, read_library
from flask_contentapi.registry import Registry
from flask_contentapi.search import words_of
from flask_contentapi.signals import EVERYTHING, content_changed
from flask_contentapi.writer import Writer
from flask_contentapi_memory.draft import Draft
from flask_contentapi_memory.shelves import Shelf
from flask_contentapi_memory.snapshot import Snapshot
from flask_contentapi_memory.words import WordIndex

__all__ = ["MemoryBackend", "SnapshotBackend"]


class SnapshotBackend(Backend):
    """Base of backends that answer from memory, whatever the source of their content.

    Requests read an immutable snapshot. A change builds a new snapshot and swaps it in, so that
    every request sees a single state and never waits.

    Only subclasses call :meth:`begin`, when they are opened, and :meth:`serve`, with the first
    content and with each replacement.

    :ivar changing: a lock for subclasses, held from reading the content to be changed until the
        new content is served; readers do not need it.
    """

    def __init__(self) -> None:
        self.changing = threading.RLock()
        self._registry: Registry | None = None
        self._snapshot: Snapshot | None = None

    def reader(self) -> AbstractContextManager[Reader]:
        return nullcontext(self.snapshot)

    @property
    def snapshot(self) -> Snapshot:
        """The current state of the content."""
        if self._snapshot is None:
            raise RuntimeError("The backend is not open yet; ContentAPI.init_app opens it.")
        return self._snapshot

    @property
    def registry(self) -> Registry:
        """The declared types."""
        if self._registry is None:
            raise RuntimeError("The backend is not open yet; ContentAPI.init_app opens it.")
        return self._registry

    def begin(self, registry: Registry) -> None:
        """Sets the declared types; there is no content yet."""
        self._registry, self._snapshot = registry, None

    def serve(
        self,
        library: Library,
        words: Mapping[str, WordIndex] | None = None,
        tags: frozenset[str] | None = None,
    ) -> None:
        """Replaces the served content, unless the new content is the same.

        The caller holds :attr:`changing`.

        :param library: the content.
        :param words: word indexes that exist already, by endpoint.
        :param tags: the cache tags of what has changed; None: found by comparing.
        """
        version = _version_of(library)
        before = self._snapshot
        if before is None or before.version != version:
            self._snapshot = Snapshot(library, version, words)
            if before is not None and content_changed.receivers:
                if tags is None:
                    tags = changed_tags(before.library, library)
                content_changed.send(self, tags=tags)

    def dump(self) -> Iterator[tuple[str, Any]]:
        return self.snapshot.library.dump()

    def check(self) -> Iterable[Problem]:
        return self.snapshot.library.check()


class _Block(threading.local):
    """What the present thread is changing."""

    draft: Draft | None = None
    writer: Writer | None = None


class MemoryBackend(SnapshotBackend):
    """Serves records, or instances of the declared classes, from memory.

    :param content: a list for each section (``sites``, ``pages``, ``images``, ...).
    """

    persistent = False

    def __init__(self, content: Mapping[str, Iterable[Any]] | None = None) -> None:
        super().__init__()
        self._content = {} if content is None else content
        #: The highest id that each section has had since the last load.
        self._highest: Mapping[str, int] = {}
        self._block = _Block()

    def open(self, registry: Registry, *, debug: bool = False, logs: bool = True) -> None:
        self.begin(registry)
        self._replace(self._content, logs=logs)

    def load(self, content: Mapping[str, Iterable[Any]]) -> None:
        self._refuse_within_block("loaded")
        self._replace(content)

    def _replace(self, content: Mapping[str, Iterable[Any]], *, logs: bool = True) -> None:
        library = read_library(content, self.registry, logs=logs)
        with self.changing:
            self._highest = {}
            self.serve(library)

    def dump(self) -> Iterator[tuple[str, Any]]:
        self._refuse_within_block("dumped")
        return super().dump()

    def _refuse_within_block(self, done: str) -> None:
        if self._block.draft is not None:
            raise RuntimeError(f"Content is not {done} while it is changed; end the change first.")

    def reader(self) -> AbstractContextManager[Reader]:
        draft = self._block.draft
        return super().reader() if draft is None else nullcontext(Snapshot(draft.library(), None))

    @contextmanager
    def write(self) -> Iterator[Writer]:
        block = self._block
        if block.draft is not None and block.writer is not None:
            with block.draft.savepoint():
                yield block.writer
            return
        with self.changing:
            before = self.snapshot
            draft = block.draft = Draft(before.library, self.registry, self._highest)
            writer = block.writer = Writer(draft, self.registry)
            try:
                yield writer
                tags = writer.tags()
            finally:
                block.draft = block.writer = None
                writer.close()
            library = draft.library()
            if [*library.sites] != [*before.sites]:
                tags = frozenset([EVERYTHING])
            shelves = before.shelves.items()
            words = {
                n: _revise_words(shelf, library) for n, shelf in shelves if "words" in vars(shelf)
            }
            self._highest = draft.highest
            self.serve(library, words, tags)


def _revise_words(shelf: Shelf, library: Library) -> WordIndex:
    """The word index for objects of which few have changed."""
    table = library.tables[shelf.endpoint.name]
    before = {row[0]: row for row in shelf.table.rows}
    after = {row[0]: row for row in table.rows}
    type_of = shelf.endpoint.type_of
    # Unchanged rows are identical.
    changed = [i for i in before.keys() | after.keys() if before.get(i) is not after.get(i)]
    return shelf.words.revised(
        {i: words_of(type_of(before[i][1]), before[i]) for i in changed if i in before},
        {i: words_of(type_of(after[i][1]), after[i]) for i in changed if i in after},
    )


def _version_of(library: Library) -> str:
    """A stamp that is the same for the same content in every process."""
    digest = blake2b(digest_size=12)
    others = [library.locales, library.site_records, [*library.collections.values()]]
    digest.update(orjson.dumps(others))
    for name, table in library.tables.items():
        digest.update(name.encode())
        for row in table.rows:
            # Decimals are the only stored values that orjson cannot write.
            digest.update(orjson.dumps((row, table.extras.get(row[0])), default=str))
    return digest.hexdigest()

"""The contract between the core and a storage.

A backend is opened once for an application and provides a :class:`Reader` for each request. The
core derives everything else from these few methods, so a backend may be slow but never answers
differently. :mod:`flask_contentapi.testing` has the tests that every backend must pass.
"""

from __future__ import annotations

import sys
import threading
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import datetime
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from flask_contentapi.content import Library, Restrictions
from flask_contentapi.errors import BackendUnavailable, ConfigurationError, Problem, suggest
from flask_contentapi.query import Query, Row, Selected, Viewer
from flask_contentapi.registry import Registry
from flask_contentapi.signals import EVERYTHING, content_changed
from flask_contentapi.sites import Site, Sites
from flask_contentapi.writer import Transaction, Writer

#: The entry point group of backends.
ENTRY_POINTS = "flask_contentapi.backends"

#: How often reading is tried if the content changes meanwhile.
ATTEMPTS = 5

#: Other names of backends, in the addresses that hosting services give.
_SYNONYMS = {"postgres": "postgresql"}

#: Content as records: a list for each of ``locales``, ``sites``, ``collections`` and endpoint.
Records = Mapping[str, Iterable[Any]]

T = TypeVar("T")


class ContentChanged(Exception):
    """The content changed while a reader was reading it.

    Raised, at the latest on closing, by a reader that cannot keep to the content it started with.
    The request is then processed again with a new reader.
    """


def attempted(attempt: Callable[[], T]) -> T:
    """The result of an attempt to read, which is made again if the content changes meanwhile.

    :raises BackendUnavailable: if it changes each time.
    """
    for _ in range(ATTEMPTS):
        try:
            return attempt()
        except ContentChanged:
            continue
    raise BackendUnavailable("The content changes faster than it can be read.", retry_after=1)


class Reader(ABC):
    """The content as one request sees it; it does not change while the request runs."""

    @property
    @abstractmethod
    def version(self) -> str | None:
        """A stamp that differs after every change of the content.

        None if changes cannot be detected; responses then have no ``ETag``. Content that
        :meth:`Backend.load` has loaded always has a version.
        """

    @property
    @abstractmethod
    def sites(self) -> Sites:
        """All sites, with their home pages and those pages' translations."""

    @property
    @abstractmethod
    def locales(self) -> Sequence[str]:
        """The codes of the languages that the content declares, in order; empty if none are.

        Then every page has the language that it names, or none.
        """

    @property
    @abstractmethod
    def restrictions(self) -> Restrictions:
        """All restrictions of pages and collections."""

    @abstractmethod
    def select(self, query: Query) -> Selected:
        """The objects that meet a query.

        :param query: what is wanted.
        """

    def ids(self, query: Query) -> Sequence[int]:
        """The ids of all objects that meet a query, in order, in eight bytes each.

        :param query: what is wanted, except the columns; it names no pages that may not be seen.
        """
        selected = self.select(query._replace(columns=("id",), count=False))
        return array("q", (row[0] for row in selected.rows))

    @abstractmethod
    def fetch(
        self,
        endpoint: str,
        ids: Iterable[int],
        columns: Sequence[str],
        viewer: Viewer,
        scope: Sequence[int] | None = None,
    ) -> Mapping[int, Row]:
        """Fetches objects by id, in one go; returns those that the viewer may see.

        :param endpoint: the endpoint of the objects.
        :param ids: their ids, each once, in any order and any number.
        :param columns: the stored fields wanted in each row, in order, as :attr:`Query.columns`.
        :param viewer: who sends the request, and when.
        :param scope: as :attr:`Query.scope`.
        """

    def get(
        self,
        endpoint: str,
        id: int,
        columns_of: Callable[[str], Sequence[str]],
        viewer: Viewer,
        scope: Sequence[int] | None = None,
    ) -> tuple[str, Row] | None:
        """Fetches one object with columns of its own type; None if it may not be seen.

        :param endpoint: its endpoint.
        :param id: its id.
        :param columns_of: gives the stored fields wanted, from the label of its type.
        :param viewer: who sends the request, and when.
        :param scope: as :attr:`Query.scope`.
        :returns: the label of its type, and the row.
        """
        found = self.fetch(endpoint, [id], ["type"], viewer, scope)
        if id not in found:
            return None
        label: str = found[id][0]
        row = self.fetch(endpoint, [id], columns_of(label), viewer, scope).get(id)
        return None if row is None else (label, row)

    @abstractmethod
    def next_change(self, viewer: Viewer, scope: Sequence[int] | None = None) -> datetime | None:
        """The first moment after the viewer's own at which an object appears to the viewer, or
        expires; None if there is none to come.

        Objects count that the viewer may see by then or until then. A lifetime that ends with
        another object would tell of something hidden.

        :param viewer: who sends the request, and when.
        :param scope: as :attr:`Query.scope`.
        """


class LibraryReader(Reader):
    """A reader of content in memory; a subclass finds objects in it.

    :param library: the content.
    :param version: as :attr:`Reader.version`.
    """

    def __init__(self, library: Library, version: str | None) -> None:
        self.library = library
        self._version = version

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


class _Blocks(threading.local):
    def __init__(self) -> None:
        self.writers: dict[Backend, Writer] = {}


_blocks = _Blocks()


class Backend(ABC):
    """A storage.

    It has to be opened before use. Until then its methods raise :exc:`RuntimeError`, except those
    that do not need the storage.

    :cvar ranks: whether searches are ordered by relevance; if so, ``search_operator`` defaults to
        ``or`` (specification, 4.1).
    :cvar persistent: whether loaded content outlives the process.
    """

    ranks: ClassVar[bool] = True
    persistent: ClassVar[bool] = True

    @classmethod
    def from_address(cls, address: str, root: Path) -> Backend:
        """The backend that the setting ``CMSAPI_BACKEND`` describes.

        :param address: what follows the backend's name and a colon, or "".
        :param root: the folder that relative paths start from.
        :raises ConfigurationError: if the address cannot be used.
        """
        if address:
            raise ConfigurationError(f"This backend has no address, but got {address!r}.")
        return cls()

    @abstractmethod
    def open(self, registry: Registry, *, debug: bool = False, logs: bool = True) -> None:
        """Makes the backend ready to serve the declared types.

        A storage that is unavailable or still empty is no error, because it may be ready by the
        first request. Until then :meth:`reader` raises an error.

        :param registry: the declared types.
        :param debug: whether the site is in development, where convenience matters more than
            speed.
        :param logs: whether to log problems that do not prevent serving, now or later. Commands
            report these themselves.
        :raises ConfigurationError: if the backend can never work as configured.
        :raises ContentError: if the backend comes with content that cannot be loaded.
        """

    def close(self) -> None:  # noqa: B027 - most have nothing to give back
        """Releases everything that was opened."""

    def create(self) -> None:  # noqa: B027 - most need nothing
        """Creates what is needed to store content; what exists stays as it is.

        :raises ConfigurationError: if it cannot be created.
        :raises BackendUnavailable: if the storage no longer answers.
        """

    def migrate(self, *, forget: bool = False) -> Iterable[str]:
        """Adapts what :meth:`create` has created to changed declarations.

        No stored content is lost unless it is to be forgotten.

        :param forget: whether to delete the values of fields that types once had.
        :returns: the steps taken, each in a sentence.
        :raises ContentError: if stored content does not fit the types; then nothing is changed.
        :raises ConfigurationError: if :meth:`create` has not been called yet, or the storage has
            another version.
        :raises BackendUnavailable: if the storage does not answer.
        """
        return ()

    def reload(self) -> None:  # noqa: B027 - most read their storage for each request anyway
        """Makes this and other processes read the storage again if they hold content in memory.

        :raises ContentError: if the content cannot be loaded; the previous content stays.
        :raises ConfigurationError: if other processes cannot be notified, or there is nothing to
            read yet.
        :raises BackendUnavailable: if the storage does not answer.
        """

    @abstractmethod
    def reader(self) -> AbstractContextManager[Reader]:
        """The content for one request.

        :raises BackendUnavailable: if the storage does not answer. Every method of the reader may
            raise it too.
        """

    def read(self, work: Callable[[Reader], T]) -> T:
        """The result of a function of a reader, called again if the content changes meanwhile.

        :raises BackendUnavailable: if the storage does not answer, or always changes meanwhile.
        """

        def attempt() -> T:
            with self.reader() as reader:
                return work(reader)

        return attempted(attempt)

    def snapshot_reader(self) -> AbstractContextManager[Reader]:
        """The content for one request that takes long.

        As :meth:`reader`, but its reader keeps to the content that it started with, however often
        that changes meanwhile; only searches may then raise :exc:`ContentChanged`. It may be used
        by one thread after another, and each thread may use several at once.

        :raises BackendUnavailable: as :meth:`reader`.
        """
        return self.reader()

    def mark(self) -> object:
        """A mark that differs after every change of the content, got without a reader; None if only
        a reader can tell, as in a block of :meth:`write`."""
        return None

    @abstractmethod
    def load(self, content: Records) -> None:
        """Replaces the whole content, or on an error nothing.

        :param content: the records of each section, as iterables that may be exhausted by one
            pass.
        :raises ContentError: with every problem in the records.
        :raises ConfigurationError: if the storage cannot be written to, or was not created for
            the declared types.
        :raises BackendUnavailable: if the storage does not answer.
        :raises RuntimeError: if :meth:`dump` of the same storage is running in this thread.
        """

    @contextmanager
    def write(self) -> Iterator[Writer]:
        """Changes the content object by object, all or nothing; other writers wait for its end.

        If an error leaves the ``with`` block, nothing is changed. Other threads and processes see
        the content as it was until the block ends. Requests within the block see its changes so
        far, and their responses have no ``ETag``. A block within another one is a part of it.

        :raises NotImplementedError: if this storage is not changed in this way.
        :raises ConfigurationError: if the storage was not created for the declared types.
        :raises BackendUnavailable: if the storage does not answer, or others write for too long.
        :raises RuntimeError: if :meth:`dump` of the same storage is running in this thread.
        """
        outer = _blocks.writers.get(self)
        if outer is not None:
            try:
                yield outer
            except BaseException as error:
                outer.close(error)
                raise
            return
        tags: frozenset[str] = frozenset()
        with self.transaction() as transaction, closing(Writer(transaction)) as writer:
            _blocks.writers[self] = writer
            try:
                # Comparing takes time, which nobody needs who does not listen.
                sites = self._sites() if content_changed.receivers else None
                yield writer
                writer.confirm()
                if sites is not None:
                    tags = writer.tags()
                    if tags and sites != self._sites():
                        tags = frozenset([EVERYTHING])
            finally:
                del _blocks.writers[self]
        if tags:
            content_changed.send(self, tags=tags)

    def _sites(self) -> list[Site]:
        return self.read(lambda reader: [*reader.sites])

    @property
    def is_writing(self) -> bool:
        """Whether the present thread is in a block of :meth:`write`."""
        return self in _blocks.writers

    def require_no_writing(self, done: str) -> None:
        """Refuses what cannot be done in a block of :meth:`write`.

        :param done: what is not done with the content, such as ``dumped``.
        :raises RuntimeError: if the present thread is in a block.
        """
        if self.is_writing:
            raise RuntimeError(f"Content is not {done} while it is changed; end the change first.")

    def transaction(self) -> AbstractContextManager[Transaction]:
        """What :meth:`write` changes; the changes are kept at the end unless an error leaves it.

        :raises Exception: as :meth:`write`.
        """
        raise NotImplementedError(f"{name_of(self)} is not changed with write(); use load().")

    def lost_by_loading(self) -> str:
        """What :meth:`load` would delete besides content, in a sentence; "" if nothing.

        Commands then load only if the user confirms it.
        """
        return ""

    @abstractmethod
    def dump(self) -> Iterator[tuple[str, Any]]:
        """The whole content as records, each with its section (``"sites"``, ``"pages"``, ...).

        :raises BackendUnavailable: if the storage does not answer, or changes too often to be
            read consistently.
        :raises RuntimeError: if the content is being changed in this thread.
        """

    @abstractmethod
    def check(self, *, values: bool = True) -> Iterable[Problem]:
        """The problems of the content, whether it can be served or not.

        These are at least undeclared types and dangling relations, as
        :meth:`flask_contentapi.content.Library.check` finds them. A storage that cannot be served
        from is a problem as well.

        :param values: whether to look as well for values that their fields no longer take, where
            these are stored. There are none after :meth:`load`.
        :raises BackendUnavailable: if the storage stops answering meanwhile.
        """

    def notes(self) -> Iterable[str]:
        """Notes for the site's operator that are not problems, each in a sentence."""
        return ()


def installed_backends() -> Mapping[str, EntryPoint]:
    """The entry points of installed backends, by name."""
    return _installed(tuple(sys.path))


@lru_cache(1)
def _installed(path: tuple[str, ...]) -> Mapping[str, EntryPoint]:
    """What is found on a path. Looking reads a file of each package, for each application."""
    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


def name_of(backend: Backend) -> str:
    """The name of a backend given as an object: of its entry point, or else of its class."""
    own = type(backend)
    # Nothing is imported, as what other backends need may not be installed.
    named = own.__module__.partition(".")[0], own.__name__
    names = (n for n, p in installed_backends().items() if (p.module, p.attr) == named)
    return next(names, own.__name__)


def find_backend(text: str, root: Path) -> Backend:
    """The backend that a setting or a command names.

    :param text: its name, and after a colon its address if it has one.
    :param root: the folder that relative paths start from.
    :raises ConfigurationError: if there is no such backend, or it cannot be used.
    """
    name, _, address = text.partition(":")
    name = _SYNONYMS.get(name, name)
    found = installed_backends()
    if name not in found:
        wrong = f"There is no backend {name!r}.{suggest(name, found)}"
        wrong = wrong if name else "The name of the backend is empty."
        raise ConfigurationError(f"{wrong} Installed are {', '.join(sorted(found))}.")
    return _load_class(found[name]).from_address(address, root)


def _load_class(point: EntryPoint) -> type[Backend]:
    named = f"The entry point {point.name} = {point.value} in {ENTRY_POINTS} names"
    try:
        # Separately from the class, so that errors inside the module are reported as such.
        import_module(point.module)
    except ImportError as error:
        remedy = ""
        if point.dist and point.name in point.dist.metadata.get_all("Provides-Extra", []):
            remedy = f' Install it with: pip install "{point.dist.name}[{point.name}]".'
        if not remedy and f"{point.module}.".startswith(f"{error.name}."):
            raise ConfigurationError(f"{named} a module that is not there.") from error
        raise ConfigurationError(
            f"What the backend {point.name!r} needs is not installed: {error}.{remedy}"
        ) from error
    try:
        backend_class = point.load()
    except AttributeError as error:
        raise ConfigurationError(f"{named} a class that the module does not have.") from error
    if not isinstance(backend_class, type) or not issubclass(backend_class, Backend):
        raise ConfigurationError(f"{named} what is no subclass of Backend.")
    return backend_class

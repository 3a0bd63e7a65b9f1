"""The contract between the core and a storage.

A backend is opened once for an application and gives a :class:`Reader` for each request. What
can be derived from these few methods is derived in the core; a backend may be slow, but it
never answers differently. :mod:`flask_contentapi.testing` has the tests to hold it against.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, ClassVar

from flask_contentapi.errors import ConfigurationError, Problem
from flask_contentapi.hints import suggest
from flask_contentapi.query import Query, Row, Selected, Viewer
from flask_contentapi.registry import Registry
from flask_contentapi.sites import Sites
from flask_contentapi.tables import Restrictions

__all__ = ["Backend", "ContentChanged", "Reader", "find_backend", "installed_backends", "name_of"]

#: The entry points that backends are found by.
ENTRY_POINTS = "flask_contentapi.backends"

#: Content as records: a list for each of ``locales``, ``sites``, ``collections`` and endpoint.
Records = Mapping[str, Iterable[Any]]


class ContentChanged(Exception):
    """The content became another one while a reader was reading it.

    A reader that cannot hold on to the content it began with raises it, at the latest when it is
    closed; the request is answered anew, with a new reader.
    """


class Reader(ABC):
    """The content as one request sees it; it does not change while the request runs."""

    @property
    @abstractmethod
    def version(self) -> str | None:
        """A stamp that is another one after every change of the content.

        None where that cannot be known; answers have no ``ETag`` then. What is loaded by
        :meth:`Backend.load` has a version always.
        """

    @property
    @abstractmethod
    def sites(self) -> Sites:
        """All sites, with their home pages and those pages' translations."""

    @property
    @abstractmethod
    def locales(self) -> Sequence[str]:
        """The codes of all languages."""

    @property
    @abstractmethod
    def restrictions(self) -> Restrictions:
        """All restrictions of pages and collections."""

    @abstractmethod
    def select(self, query: Query) -> Selected:
        """The objects that meet a query.

        :param query: what is wanted.
        """

    @abstractmethod
    def fetch(
        self,
        endpoint: str,
        ids: Iterable[int],
        columns: Sequence[str],
        viewer: Viewer,
        scope: Sequence[int] | None = None,
    ) -> Mapping[int, Row]:
        """Those of some objects that the viewer may see, by id, in one go.

        :param endpoint: which objects.
        :param ids: their ids, each once, in any order, as many as there are.
        :param columns: the stored fields wanted in each row, in order, as :attr:`Query.columns`;
            every type of the endpoint has them or, for a single id, the type of that object.
        :param viewer: who looks.
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
        """One object with the columns that its own type has; None if it may not be seen.

        :param endpoint: which objects.
        :param id: its id.
        :param columns_of: the stored fields wanted, for the label of a type.
        :param viewer: who looks.
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
    def next_change(self, moment: datetime) -> datetime | None:
        """The first moment after the given one at which time itself changes what is visible.

        It may be one at which nothing changes for the viewer, but none may be left out. None
        where nothing changes any more.
        """


class Backend(ABC):
    """A storage.

    It is opened before it is used: until then its methods raise :exc:`RuntimeError`, but for
    those that need nothing of it.

    :cvar ranks: whether searches are ordered by relevance; ``search_operator`` is ``or`` then
        where a client names none (specification, 4.1).
    :cvar persistent: whether what is loaded outlives the process.
    """

    ranks: ClassVar[bool] = True
    persistent: ClassVar[bool] = True

    @classmethod
    def from_address(cls, address: str, root: Path) -> Backend:
        """The backend that the setting ``CMSAPI_BACKEND`` describes.

        :param address: what follows the backend's name and a colon, or "".
        :param root: the folder that relative paths start at.
        :raises ConfigurationError: if the address cannot be used.
        """
        if address:
            raise ConfigurationError(f"This backend has no address, but got {address!r}.")
        return cls()

    @abstractmethod
    def open(self, registry: Registry, *, debug: bool = False, logs: bool = True) -> None:
        """Makes the backend ready to serve the declared types.

        A storage that merely does not answer now, or is not filled yet, is no error: it may be
        there by the first request, and :meth:`reader` says so until then.

        :param registry: the declared types.
        :param debug: whether the site is being developed, so that convenience goes before speed.
        :param logs: whether to log what is wrong although it can be served, or may be later. The
            commands say it themselves.
        :raises ConfigurationError: if it can never be used as it is configured.
        :raises ContentError: if it brings content that cannot be loaded.
        """

    def close(self) -> None:  # noqa: B027 - most have nothing to give back
        """Gives everything back that was opened."""

    def create(self) -> None:  # noqa: B027 - most need nothing
        """Makes what has to be there before content can be kept; what is there stays as it is.

        :raises ConfigurationError: if it cannot be made.
        :raises BackendUnavailable: if the storage does not answer any longer.
        """

    def migrate(self) -> Iterable[str]:
        """Makes what :meth:`create` has made fit to types that are declared otherwise now.

        Nothing that is kept is lost.

        :returns: what is done, each in a sentence.
        :raises ContentError: if something that is kept cannot fit; nothing is changed then.
        :raises ConfigurationError: if there is nothing yet that :meth:`create` makes, or it is
            of another version.
        :raises BackendUnavailable: if the storage does not answer.
        """
        return ()

    def reload(self) -> None:  # noqa: B027 - most read their storage for each request anyway
        """Makes this process and others read the storage anew, where they keep what they read.

        :raises ContentError: if the content cannot be loaded; what was served is served on.
        :raises ConfigurationError: if others cannot be told, or there is nothing to read yet.
        :raises BackendUnavailable: if the storage does not answer.
        """

    @abstractmethod
    def reader(self) -> AbstractContextManager[Reader]:
        """The content for one request.

        :raises BackendUnavailable: if the storage does not answer; so may every method of the
            reader.
        """

    @abstractmethod
    def load(self, content: Records) -> None:
        """Replaces the whole content, or on an error nothing.

        :param content: the records of each section, which can be gone through once.
        :raises ContentError: with every problem that the records have.
        :raises ConfigurationError: if the storage cannot be written, or is not made for the
            declared types.
        :raises BackendUnavailable: if it does not answer.
        :raises RuntimeError: if :meth:`dump` of the same storage is under way in this thread.
        """

    def lost_by_loading(self) -> str:
        """What :meth:`load` would take away besides the content, in a sentence; "" if nothing.

        The commands do not load then before somebody agrees.
        """
        return ""

    @abstractmethod
    def dump(self) -> Iterator[tuple[str, Any]]:
        """The whole content as records, each with its section (``"sites"``, ``"pages"``, ...).

        :raises BackendUnavailable: if the storage does not answer, or not with one state.
        :raises RuntimeError: if the content is being changed in this thread.
        """

    @abstractmethod
    def check(self) -> Iterable[Problem]:
        """What is wrong with the content that is served, or could not be.

        At least undeclared types and relations to nothing, as
        :meth:`flask_contentapi.library.Library.check` finds them. A storage that cannot be served
        from is a problem as well.

        :raises BackendUnavailable: if the storage ceases to answer meanwhile.
        """

    def notes(self) -> Iterable[str]:
        """What is not wrong, but good to know for whoever runs the site, each in a sentence."""
        return ()


def installed_backends() -> dict[str, EntryPoint]:
    """The backends that can be named, by name."""
    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


def name_of(backend: Backend) -> str:
    """What a backend is called that was not named: as it is installed, or else as its class."""
    own = type(backend)
    installed = installed_backends().items()
    names = (n for n, point in installed if _stands_for(point, own))
    return next(names, own.__name__)


def _stands_for(point: EntryPoint, backend_class: type[Backend]) -> bool:
    """Whether an entry point names a class, told without importing what may not be installed."""
    package = backend_class.__module__.partition(".")[0]
    return (point.module, point.attr) == (package, backend_class.__name__)


def find_backend(text: str, root: Path) -> Backend:
    """The backend that a setting or a command names.

    :param text: its name, and after a colon its address if it has one.
    :param root: the folder that relative paths start at.
    :raises ConfigurationError: if there is none, or it cannot be used.
    """
    name, _, address = text.partition(":")
    found = installed_backends()
    if name not in found:
        wrong = f"There is no backend {name!r}.{suggest(name, found)}"
        wrong = wrong if name else "The name of the backend is empty."
        raise ConfigurationError(f"{wrong} Installed are {', '.join(sorted(found))}.")
    return _load(found[name]).from_address(address, root)


def _load(point: EntryPoint) -> type[Backend]:
    """The class that an entry point names.

    :raises ConfigurationError: if it names none, or what that needs is not installed.
    """
    named = f"The entry point {point.name} = {point.value} in {ENTRY_POINTS} names"
    try:
        # Apart from the class, so that mistakes inside the module are seen as what they are.
        import_module(point.module)
    except ImportError as error:
        remedy = _remedy(point)
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


def _remedy(point: EntryPoint) -> str:
    """What installs what a backend needs, if there is an extra of its name."""
    if point.dist is None or point.name not in point.dist.metadata.get_all("Provides-Extra", []):
        return ""
    return f' Install it with: pip install "{point.dist.name}[{point.name}]".'

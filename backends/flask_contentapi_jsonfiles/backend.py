"""A folder of JSON files, served from memory.

All files are read into the same snapshots that the in-memory backend answers from. In development
a request checks the folder for changes, at most twice a second. That takes some milliseconds for
a thousand files, detects every change on every kind of file system, and needs neither a thread
nor the library watchfiles, which gets no events on network drives and many container mounts. In
production a request checks only the stamp that :meth:`JSONFilesBackend.reload` touches, and whether
a load was interrupted, which it then finishes.

Broken files change nothing: the previous content stays, and the problems are logged.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from operator import attrgetter
from pathlib import Path
from stat import S_ISDIR
from typing import Any, NoReturn

from flask_contentapi.backend import Backend, Reader
from flask_contentapi.content import read_library
from flask_contentapi.errors import ConfigurationError, ContentError, Problem
from flask_contentapi.logs import log
from flask_contentapi.registry import SECTIONS, Registry
from flask_contentapi_jsonfiles.files import CachedFile, FileReader
from flask_contentapi_jsonfiles.folder import Lister, Listing, printable
from flask_contentapi_jsonfiles.reading import Reading, read_folder
from flask_contentapi_jsonfiles.store import Store
from flask_contentapi_memory import MemoryBackend

#: What is said if new content could not be put into place.
_WAITING = " The new content is complete in .pending, and takes its place once that is possible."


class JSONFilesBackend(MemoryBackend):
    """Serves the records in a folder of JSON files.

    :param folder: the folder.
    :param interval: in development, the seconds between checks of the folder.
    :param clock: returns the time in seconds.
    """

    persistent = True

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        interval: float = 0.5,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self.folder = Path(folder).absolute()
        self._store = Store(self.folder)
        self._interval = interval
        self._clock = clock
        self._debug, self._logs = False, True
        #: What has been read from the files that are served.
        self._cached_files: Mapping[str, CachedFile] = {}
        self._logged_problems: tuple[Problem, ...] = ()
        # The state of the folder when it was last read or checked.
        self._stamp: object = None
        self._fingerprint: object = None
        self._checked_at = 0.0

    @classmethod
    def from_address(cls, address: str, root: Path) -> Backend:
        if not address:
            raise ConfigurationError("The backend needs its folder, as in 'jsonfiles:content'.")
        folder = root / address
        if address.startswith("//") and not os.path.exists(folder):
            raise ConfigurationError(
                f"There is no folder {str(folder)!r}. For one in the application's folder write "
                f"jsonfiles:{address.lstrip('/')}, without slashes in front."
            )
        return cls(folder)

    def open(self, registry: Registry, *, debug: bool = False, logs: bool = True) -> None:
        try:
            is_folder = S_ISDIR(os.stat(self.folder).st_mode)
        except FileNotFoundError:
            said = f"There is no folder {str(self.folder)!r}; check the name, or create it."
            raise ConfigurationError(said) from None
        except OSError as error:
            said = f"The folder {str(self.folder)!r} cannot be read: {error.strerror}."
            raise ConfigurationError(said) from error
        if not is_folder:
            raise ConfigurationError(f"{str(self.folder)!r} is a file; the content is in a folder.")
        self.begin(registry)
        self._debug, self._logs = debug, logs
        with self.changing:
            self._load()

    def reader(self) -> AbstractContextManager[Reader]:
        if self._is_due() and self.changing.acquire(blocking=False):
            try:
                self._reload_if_changed()
            finally:
                self.changing.release()
        return super().reader()

    def mark(self) -> object:
        self.reader()  # looks whether the files have changed, if it is time to
        return super().mark()

    def reload(self) -> None:
        try:
            with self.changing:
                self._load()
                self._store.touch()
        except OSError as error:
            raise ConfigurationError(
                f"Other processes do not know that {str(self.folder)!r} is to be read anew, "
                f"because it cannot be written: {error.strerror}."
            ) from error

    def load(self, content: Mapping[str, Iterable[Any]], *, logs: bool = True) -> None:
        library = read_library(content, self.registry, logs=logs)
        records: dict[str, list[Any]] = {section: [] for section in self._sections}
        for section, record in library.dump():
            records[section].append(record)
        with self.changing:
            try:
                self._store.replace(records, self._list().single_files)
            except OSError as error:
                raise ConfigurationError(
                    f"The folder {str(self.folder)!r} cannot be written: {error.strerror}."
                    f"{'' if self._store.is_settled else _WAITING}"
                ) from error
            self.announce(self.serve(library))
            self._cached_files = {}

    def transaction(self) -> NoReturn:
        raise NotImplementedError(
            "JSON files are not changed with write(); edit them and reload them, or use load()."
        )

    def lost_by_loading(self) -> str:
        files = self._list().single_files
        if not files:
            return ""
        return (
            f"In the folder {str(self.folder)!r} are files with single records or bodies "
            f"({len(files)}, such as {printable(files[0].name)}). They would be deleted, and their "
            "content replaced by one file for each section."
        )

    def check(self, *, values: bool = True) -> Iterator[Problem]:
        """The problems of the present files, then further problems of what is served."""
        try:
            _, reading = self._read(FileReader(self._cached_files))
            found = [*reading.locate(reading.library(self.registry, logs=False).check())]
        except ContentError as error:
            found = [*error.problems]
        which = attrgetter("where", "field", "message")
        known = {*map(which, found)}
        yield from found
        yield from (problem for problem in super().check() if which(problem) not in known)

    def notes(self) -> Iterator[str]:
        """Files that are probably meant to be read."""
        for name, wanted in self._list().unread.items():
            what = "a record" if wanted.endswith(".json") else "the body of a record"
            yield f"{printable(name)} is not read; {what} is named as {printable(wanted)}."

    # Detecting changes.

    def _is_due(self) -> bool:
        if self._debug:
            return self._clock() - self._checked_at >= self._interval
        return self._store.stamp() != self._stamp or not self._store.is_settled

    def _reload_if_changed(self) -> None:
        if not self._is_due():  # another thread has just done it
            return
        self._checked_at = self._clock()
        if self._debug:
            is_known = self._list().fingerprint == self._fingerprint
            if is_known and self._store.is_settled:
                return
        try:
            self._load()
        except ContentError as error:
            logged, self._logged_problems = self._logged_problems, error.problems
            for problem in error.problems if error.problems != logged else ():
                log.error("%s: %s; the content read before is still served.", self.folder, problem)

    # Reading.

    @property
    def _sections(self) -> list[str]:
        return [*SECTIONS, *self.registry.endpoints]

    def _list(self) -> Listing:
        return Lister(str(self.folder), self._sections).run()

    def _load(self) -> None:
        """Serves the content of the files, unless they are broken, which raises ContentError."""
        files = FileReader(self._cached_files)
        self._stamp = self._store.stamp()
        self._fingerprint, reading = self._read(files)
        if self._snapshot is None or reading.problems or not files.is_unchanged:
            self.announce(self.serve(reading.library(self.registry, logs=self._logs)))
        self._cached_files, self._logged_problems = files.cached, ()

    def _read(self, files: FileReader) -> tuple[object, Reading]:
        """The fingerprint of the folder and the content read; never in the middle of a
        :meth:`load`."""
        while True:
            try:
                self._store.settle()
            except OSError as error:
                message = f"new content cannot be put into its place: {error.strerror}"
                raise ContentError([Problem("", "", message, file=".pending")]) from None
            stamp = self._store.stamp()
            listing = self._list()
            reading = read_folder(listing, files, self.registry)
            if self._store.is_settled and self._store.stamp() == stamp:
                return listing.fingerprint, reading

"""Every backend passes the tests that are provided for authors of backends."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import RLock
from typing import Any, ClassVar
from uuid import uuid4
from weakref import WeakKeyDictionary

import pytest

from docs.examples.list_backend import ListBackend, ListReader, Thing
from flask_contentapi.backend import Backend, ContentChanged, find_backend
from flask_contentapi.content import read_library
from flask_contentapi.query import Search
from flask_contentapi.testing import (
    AnswerTests,
    BackendTests,
    FactTests,
    FilterTests,
    Kit,
    LoadTests,
    OrderTests,
    RowTests,
    SearchTests,
    TreeTests,
    VisibilityTests,
    WriteTests,
)
from flask_contentapi_jsonfiles import JSONFilesBackend
from flask_contentapi_memory import MemoryBackend
from tests.stores import fresh_address


@pytest.mark.backends("memory")
class TestMemoryBackend(BackendTests, WriteTests):
    def make_backend(self) -> Backend:
        return MemoryBackend()


@pytest.mark.backends("jsonfiles")
class TestJSONFilesBackend(BackendTests):
    folders: ClassVar[Path]

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def keep_folders(cls, tmp_path_factory: pytest.TempPathFactory) -> None:
        cls.folders = tmp_path_factory.mktemp("folders")

    def make_backend(self) -> Backend:
        return JSONFilesBackend(tempfile.mkdtemp(dir=self.folders))

    def reopen(self, backend: Backend) -> Backend:
        assert isinstance(backend, JSONFilesBackend)
        return JSONFilesBackend(backend.folder)


class DatabaseKit(Kit):
    """A backend that answers each statement from the current content."""

    holds_content = False
    name: ClassVar[str]
    _addresses: ClassVar[WeakKeyDictionary[Backend, str]] = WeakKeyDictionary()

    def make_backend(self) -> Backend:
        return self._at(fresh_address(self.name))

    def reopen(self, backend: Backend) -> Backend:
        return self._at(self._addresses[backend])

    def _at(self, address: str) -> Backend:
        backend = find_backend(address, Path())
        self._addresses[backend] = address
        return backend


@pytest.mark.backends("sqlite")
class TestSQLiteAnswers(
    DatabaseKit,
    FactTests,
    RowTests,
    VisibilityTests,
    FilterTests,
    TreeTests,
    SearchTests,
    OrderTests,
    AnswerTests,
):
    name = "sqlite"


@pytest.mark.slow
@pytest.mark.backends("sqlite")
class TestSQLiteChanges(DatabaseKit, LoadTests, WriteTests):
    name = "sqlite"


@pytest.mark.backends("postgresql")
class TestPostgreSQLBackend(DatabaseKit, BackendTests, WriteTests):
    name = "postgresql"


@pytest.mark.backends("mariadb")
class TestMariaDBBackend(DatabaseKit, BackendTests, WriteTests):
    name = "mariadb"


@pytest.mark.slow
class TestListBackend(BackendTests):
    def make_backend(self) -> Backend:
        return ListBackend()


class OtherReader(ListReader):
    """Does not rank, and raises an error once other content has been loaded."""

    backend: OtherBackend

    def relevance(self, thing: Thing, search: Search) -> int:
        return super().relevance(thing, search) if search.prefix else 0

    def things(self, endpoint: str) -> list[Thing]:
        if self.backend.content is not self:
            raise ContentChanged
        return super().things(endpoint)


class OtherBackend(ListBackend):
    ranks = False

    def snapshot_reader(self) -> nullcontext[ListReader]:
        return nullcontext(ListReader(self.content.library, self.content.version))

    def load(self, content: Mapping[str, Iterable[Any]]) -> None:
        reader = OtherReader(read_library(content, self.registry), uuid4().hex)
        reader.backend = self
        self.content = reader


@pytest.mark.slow
class TestBackendWithWaysOfItsOwn(BackendTests):
    ranks = False
    holds_content = False

    def make_backend(self) -> Backend:
        return OtherBackend()


class LockedBackend(ListBackend):
    """Admits one thread at a time, for reading and for loading."""

    def __init__(self) -> None:
        self._lock = RLock()

    def load(self, content: Mapping[str, Iterable[Any]]) -> None:
        with self._lock:
            super().load(content)

    @contextmanager
    def reader(self) -> Iterator[ListReader]:  # type: ignore[override]
        with self._lock:
            yield self.content


@pytest.mark.slow
class TestBackendWhoseLoadsWait(LoadTests):
    load_waits = True

    def make_backend(self) -> Backend:
        return LockedBackend()

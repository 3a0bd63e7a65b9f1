"""Every backend passes the tests that ship for the authors of other ones."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import ClassVar

import pytest

from docs.examples.list_backend import ListBackend
from flask_contentapi.backend import Backend
from flask_contentapi.testing import BackendTests
from flask_contentapi_jsonfiles import JSONFilesBackend
from flask_contentapi_memory import MemoryBackend


class TestMemoryBackend(BackendTests):
    def make_backend(self) -> Backend:
        return MemoryBackend()


class TestJSONFilesBackend(BackendTests):
    folders: ClassVar[Path]

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def keep_folders(cls, tmp_path_factory: pytest.TempPathFactory) -> None:
        cls.folders = tmp_path_factory.mktemp("folders")

    def make_backend(self) -> Backend:
        return JSONFilesBackend(tempfile.mkdtemp(dir=self.folders))


class TestListBackend(BackendTests):
    def make_backend(self) -> Backend:
        return ListBackend()

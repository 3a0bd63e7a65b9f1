"""Folders of JSON files, as people would write them."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from flask_contentapi import ContentAPI, ContentError, Entry
from flask_contentapi.registry import Registry
from flask_contentapi_jsonfiles import JSONFilesBackend
from tests.api import API
from tests.conformance.reference_site import TYPES
from tests.samples import Record


class Folder:
    """A folder of content.

    :param path: the path of the folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def put(self, name: str, value: Any) -> None:
        """Writes a file: text and bytes as they are, anything else as JSON."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(value, bytes):
            path.write_bytes(value)
        else:
            text = value if isinstance(value, str) else json.dumps(value, indent=1)
            path.write_text(text, encoding="utf-8", newline="")

    def remove(self, name: str) -> None:
        """Deletes a file."""
        (self.path / name).unlink()

    def link(self, name: str, target: str | Path) -> None:
        """Makes a symbolic link."""
        (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        (self.path / name).symlink_to(target)

    def age(self) -> None:
        """Makes all files look as if they had been written long ago."""
        for path in self.path.rglob("*"):
            os.utime(path, (1_000_000_000, 1_000_000_000))

    @property
    def names(self) -> list[str]:
        """The files and folders in it, except names that start with a dot."""
        found = (path.relative_to(self.path) for path in self.path.rglob("*"))
        return sorted(path.as_posix() for path in found if not path.name.startswith("."))

    def json(self, name: str) -> Any:
        """The value in a JSON file."""
        return json.loads((self.path / name).read_text(encoding="utf-8"))

    def backend(self, types: Iterable[type[Entry]] = TYPES) -> JSONFilesBackend:
        """A backend that serves the folder, as in production."""
        backend = JSONFilesBackend(self.path)
        backend.open(Registry(types))
        return backend

    def api(
        self,
        types: Iterable[type[Entry]] = TYPES,
        debug: bool = False,
        config: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> API:
        """The API of a site that serves the folder.

        :param debug: whether the site is being developed. It then checks the folder for each
            request, unless the options say otherwise.
        :param options: as for :class:`JSONFilesBackend`.
        """
        app = Flask("site")
        app.config.update(config or {}, TESTING=True, DEBUG=debug)
        backend = JSONFilesBackend(self.path, **{"interval": 0, **options})
        ContentAPI(app, types=types, backend=backend)
        return API(app)

    def problems(self) -> list[str]:
        """The problems of the folder, as shown to the developer."""
        with pytest.raises(ContentError) as caught:
            self.backend()
        return [str(problem) for problem in caught.value.problems]


def write_tree(folder: Folder, content: Mapping[str, Any]) -> None:
    """Writes content with one file per record, pages as a tree of folders.

    Records leave out what their place determines, and HTML bodies are in files of their own.
    """
    folder.put("locales.json", content["locales"])
    for section in ("sites", "images", "documents"):
        for number, record in enumerate(content[section]):
            folder.put(f"{section}/some/{number}_{number}.json", record)
    children = defaultdict(list)
    for page in content["pages"]:
        children[page["parent"]].append(page)
    _write_pages(folder, "pages", children, None)


def _write_pages(
    folder: Folder, name: str, children: Mapping[int | None, list[Record]], parent: int | None
) -> None:
    for number, page in enumerate(children.get(parent, ())):
        place = f"{name}/{number}_{page['slug']}"
        # Every second page with children is the index file of its folder.
        own = f"{place}/index" if page["id"] in children and number % 2 else place
        record = {key: value for key, value in page.items() if key not in ("slug", "parent")}
        if isinstance(record.get("body"), str):
            folder.put(f"{own}.body.html", record.pop("body") + "\n")
        folder.put(f"{own}.json", record)
        _write_pages(folder, place, children, page["id"])

"""The page about writing backends is true."""

from __future__ import annotations

import inspect
import re
from datetime import UTC
from pathlib import Path
from textwrap import dedent

import pytest
from flask import Flask

from docs.examples.list_backend import ListBackend, ListReader
from flask_contentapi import Backend, ContentAPI, Reader, query
from flask_contentapi.query import Query, Selected
from flask_contentapi.testing import CONTENT, NOW, TYPES, BackendTests

PAGE = Path(__file__).parents[1] / "docs" / "howto" / "write-a-backend.rst"


@pytest.fixture
def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def test_address_becomes_the_query_shown(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    address = re.findall(r"``GET (\S+)`` arrives", page)[0]
    asked: list[Query] = []

    def select(reader: ListReader, given: Query) -> Selected:
        asked.append(given)
        return Selected(())

    monkeypatch.setattr(ListReader, "select", select)
    app, backend = Flask("museum"), ListBackend()
    ContentAPI(app, types=TYPES, backend=backend, clock=lambda: NOW)
    backend.load(CONTENT)
    app.test_client().get(address, base_url="http://museum.example")
    assert asked == [eval(_blocks(page)[0], {**vars(query), "UTC": UTC})]  # noqa: S307 - our own page


def test_test_class_shown_is_one(page: str) -> None:
    shown = {"ShelfBackend": ListBackend}
    code = _blocks(page)[1].replace("from shelf import ShelfBackend\n", "")
    exec(code, shown)  # noqa: S102 - our own page
    assert issubclass(shown["TestShelfBackend"], BackendTests)


@pytest.mark.parametrize("contract", [Backend, Reader])
def test_every_method_is_explained(page: str, contract: type) -> None:
    names = [name for name in vars(contract) if not name.startswith("_")]
    assert [name for name in names if f"``{name}" not in page] == []


def test_every_part_of_a_query_is_explained(page: str) -> None:
    names = list(inspect.signature(Query).parameters)
    assert [name for name in names if f"``{name}``" not in page and name != "endpoint"] == []


def _blocks(page: str) -> list[str]:
    """The Python code on a page."""
    found = re.findall(r"\.\. code-block:: python\n\n((?:    .*\n|\n)+)", page)
    return [dedent(block) for block in found]

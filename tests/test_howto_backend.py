"""The page about writing backends is true."""

from __future__ import annotations

import inspect
import re
import sys
import tomllib
from datetime import UTC
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from docs.examples import list_backend
from docs.examples.list_backend import ListBackend, ListReader
from flask_contentapi import Backend, ContentAPI, Reader, query
from flask_contentapi.query import Query, Selected
from flask_contentapi.testing import CONTENT, NOW, TYPES, BackendTests
from tests.pages import blocks_of, text_of

pytestmark = pytest.mark.slow

PAGE = "docs/howto/write-a-backend.rst"


@pytest.fixture
def page() -> str:
    return text_of(PAGE)


@pytest.fixture(autouse=True)
def _example(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the backend importable by the name on the page."""
    monkeypatch.setitem(sys.modules, "list_backend", list_backend)


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
    assert asked == [eval(_shown(""), {**vars(query), "UTC": UTC})]  # noqa: S307 - our own page


def test_test_class_shown_is_one() -> None:
    shown = _executed("test_list_backend.py")["TestListBackend"]
    assert issubclass(shown, BackendTests)
    assert isinstance(shown().make_backend(), ListBackend)


def test_site_shown_serves_what_it_loads() -> None:
    answer = _executed("app.py")["app"].test_client().get("/api/v2/pages/")
    assert [item["title"] for item in answer.json["items"]] == ["Lists"]


def test_entry_point_shown_leads_to_the_backend(page: str) -> None:
    ((group, points),) = tomllib.loads(_shown("pyproject.toml"))["project"]["entry-points"].items()
    name, value = (
        re.findall(r"``CMSAPI_BACKEND = \"(\w+)\"`` calls", page)[0],
        "list_backend:ListBackend",
    )
    assert (group, points) == ("flask_contentapi.backends", {name: value})
    assert isinstance(EntryPoint(name, value, group).load().from_address("", Path()), ListBackend)


@pytest.mark.parametrize("contract", [Backend, Reader])
def test_every_method_is_explained(page: str, contract: type) -> None:
    names = [name for name in vars(contract) if not name.startswith("_")]
    assert [name for name in names if f"``{name}" not in page] == []


def test_every_part_of_a_query_is_explained(page: str) -> None:
    names = list(inspect.signature(Query).parameters)
    assert [name for name in names if f"``{name}``" not in page and name != "endpoint"] == []


def _shown(caption: str) -> str:
    """The first code on the page with a caption, or the first Python code without one."""
    blocks = [block for block in blocks_of(PAGE) if block.language in {"python", "toml"}]
    return next(block.text for block in blocks if block.caption == caption)


def _executed(caption: str) -> dict[str, Any]:
    """The names in a module on the page."""
    names: dict[str, Any] = {"__name__": Path(caption).stem}
    exec(_shown(caption), names)  # noqa: S102 - our own page
    return names

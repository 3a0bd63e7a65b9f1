"""Answers to scripts from other origins, with the headers of Flask-Cors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from flask_cors import CORS

from flask_contentapi.errors import BackendUnavailable
from tests.api import API
from tests.conftest import MakeAPI

ORIGIN = "https://front.example"
#: A request for each status.
REQUESTS: Mapping[int, tuple[str, Mapping[str, Any]]] = {
    200: ("pages/", {}),
    302: ("pages/find/?id=2", {}),
    304: ("pages/", {"headers": {"If-None-Match": "*"}}),
    400: ("pages/?limit=abc", {}),
    404: ("pages/999/", {}),
    405: ("pages/", {"method": "POST"}),
}


@pytest.fixture(scope="module")
def open_api(make_api: MakeAPI, reference_content: Mapping[str, Any]) -> API:
    """A site that allows scripts of one origin to read its API."""
    made = make_api(reference_content)
    CORS(made.app, resources={"/api/v2/.*": {"origins": ORIGIN}})
    return made


def ask(api: API, path: str, **options: Any) -> Any:
    """The answer to a script of that origin."""
    headers = {"Origin": ORIGIN, **options.pop("headers", {})}
    return api.get(path, headers=headers, **options)


@pytest.mark.parametrize("status", REQUESTS)
def test_every_answer_may_be_read_by_another_origin(open_api: API, status: int) -> None:
    path, options = REQUESTS[status]
    response = ask(open_api, path, **options)
    assert response.status_code == status
    assert response.headers["Access-Control-Allow-Origin"] == ORIGIN


def test_so_may_the_news_that_the_content_cannot_be_read(
    open_api: API, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone() -> Any:
        raise BackendUnavailable("gone")

    monkeypatch.setattr(open_api.backend, "reader", gone)
    response = ask(open_api, "pages/")
    assert response.status_code == 503
    assert response.headers["Access-Control-Allow-Origin"] == ORIGIN


def test_browsers_may_ask_beforehand(open_api: API) -> None:
    wanted = {"Access-Control-Request-Method": "GET"}
    response = ask(open_api, "pages/", method="OPTIONS", headers=wanted)
    assert response.status_code == 200
    assert "GET" in response.headers["Access-Control-Allow-Methods"]


def test_other_origins_are_told_nothing(open_api: API) -> None:
    response = open_api.get("pages/", headers={"Origin": "https://other.example"})
    assert "Access-Control-Allow-Origin" not in response.headers

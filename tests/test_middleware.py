"""Answers that are repeated before Flask: always those that Flask would give now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask, Response, g

from flask_contentapi import ConfigurationError, ContentAPI, KeptAnswers
from flask_contentapi_memory import MemoryBackend
from tests.api import API
from tests.conftest import MakeApp
from tests.databases import on_writable
from tests.samples import image, page, site
from tests.stores import on_memory

NOW = datetime(2026, 3, 1, tzinfo=UTC)
SOON = NOW + timedelta(seconds=60)
CONTENT = {
    "sites": [site(1)],
    "pages": [page(1), page(2, 1, go_live_at=SOON.isoformat()), page(3, 1)],
    "images": [image(1)],
}


class Counted:
    """A site that counts the requests that get to Flask."""

    def __init__(self, make_app: MakeApp, *hooks: Any, **options: Any) -> None:
        self.now, self.asked = NOW, 0
        app = make_app(CONTENT, clock=lambda: self.now, **options)
        (state,) = app.extensions["contentapi"].values()

        class Held:
            def __init__(self) -> None:
                self.state = state

        app.before_request(self._count)
        for hook in hooks:
            app.after_request(hook)
        app.wsgi_app = KeptAnswers(app, Held())  # type: ignore[arg-type, method-assign]
        self.app, self.api = app, API(app)
        # Before its first answer a database cannot tell whether its content has changed.
        self.api.get("pages/?limit=0")
        self.asked = 0

    def _count(self) -> None:
        self.asked += 1

    @contextmanager
    def new(self, count: int) -> Iterator[None]:
        """Expects so many requests in the block to get to Flask."""
        before = self.asked
        yield
        assert self.asked - before == count


@pytest.fixture
def counted(make_app: MakeApp) -> Counted:
    return Counted(make_app)


PATHS = ["pages/", "pages/1/", "images/?fields=*", "pages/?search=page&limit=1"]


@pytest.mark.parametrize("path", PATHS)
def test_an_answer_is_repeated_as_it_was(counted: Counted, path: str) -> None:
    with counted.new(1):
        first, second = counted.api.get(path), counted.api.get(path)
    assert (first.status, first.data) == (second.status, second.data)
    assert {*first.headers} == {*second.headers}


def test_clients_are_told_that_they_have_an_answer(counted: Counted) -> None:
    tag = counted.api.get("pages/").headers["ETag"]
    with counted.new(0):
        known = counted.api.get("pages/", headers={"If-None-Match": tag})
    assert (known.status_code, known.data, known.headers["ETag"]) == (304, b"", tag)
    assert "Content-Type" not in known.headers


@pytest.mark.parametrize(
    ("form", "status", "asked"),
    [
        ("{}", 304, 0),
        ("W/{}", 304, 0),
        ("", 200, 0),
        ('"other"', 200, 0),
        ('"other", {}', 304, 1),
        ('"{1}-gzip"', 304, 1),
        ('W/"{1}:gzip"', 304, 1),
        ("*", 304, 1),
    ],
)
def test_clients_with_other_answers_get_the_kept(
    counted: Counted, form: str, status: int, asked: int
) -> None:
    first = counted.api.get("pages/")
    with counted.new(asked):
        tag = first.headers["ETag"]
        known = {"If-None-Match": form.format(tag, tag.strip('"')), "Accept-Encoding": "gzip"}
        again = counted.api.get("pages/", headers=known)
    assert again.status_code == status
    assert again.data == (first.data if status == 200 else b"")


def test_loading_ends_what_is_kept(counted: Counted) -> None:
    assert counted.api.ids("pages/") == [1, 3]
    counted.api.load({**CONTENT, "pages": CONTENT["pages"][:1]})
    assert counted.api.ids("pages/") == [1]


@on_writable
def test_writing_ends_what_is_kept(counted: Counted) -> None:
    assert counted.api.json("pages/3/?fields=_,title") == {"title": "Page 3"}
    with counted.app.app_context(), counted.api.backend.write() as writer:
        writer.update("pages", 3, title="New")
    assert counted.api.json("pages/3/?fields=_,title") == {"title": "New"}


def test_a_page_that_appears_ends_what_is_kept(counted: Counted) -> None:
    assert counted.api.ids("pages/") == [1, 3]
    counted.now = SOON
    assert counted.api.ids("pages/") == [1, 2, 3]


@on_memory
def test_lifetimes_grow_shorter(make_app: MakeApp) -> None:
    counted = Counted(make_app, config={"CMSAPI_CACHE_MAX_AGE": 900})
    said = []
    for seconds in (0, 20, 59):
        counted.now = NOW + timedelta(seconds=seconds)
        said.append(counted.api.get("pages/").headers["Cache-Control"])
    assert said == ["public, max-age=60", "public, max-age=40", "public, max-age=1"]
    assert counted.asked == 1


@on_memory
@pytest.mark.parametrize(
    "path", ["pages/9/", "pages/?limit=x", "pages/find/?id=1", "pages/?order=random", "nothing/"]
)
def test_what_differs_each_time_gets_to_flask(counted: Counted, path: str) -> None:
    with counted.new(2):
        counted.api.get(path)
        counted.api.get(path)


@on_memory
def test_methods_hosts_and_proxies_are_apart(counted: Counted) -> None:
    counted.api.get("pages/")
    with counted.new(4):
        counted.api.get("pages/", method="HEAD")
        counted.api.get("pages/", method="OPTIONS")
        counted.api.at("other.example").get("pages/")
        counted.api.get("pages/", headers={"X-Forwarded-Host": "other.example"})


def own_lifetime(response: Response) -> Response:
    response.headers["Cache-Control"] = "private, max-age=1"
    return response


def without_etag(response: Response) -> Response:
    del response.headers["ETag"]
    return response


@on_memory
@pytest.mark.parametrize("hook", [own_lifetime, without_etag])
def test_answers_with_validators_of_a_hook_are_not_kept(make_app: MakeApp, hook: Any) -> None:
    counted = Counted(make_app, hook)
    with counted.new(2):
        first, second = counted.api.get("pages/"), counted.api.get("pages/")
    assert {*first.headers} == {*second.headers}


@on_memory
def test_answers_that_vary_are_not_kept(make_app: MakeApp) -> None:
    def vary(response: Response) -> Response:
        response.vary.add("Origin")
        return response

    counted = Counted(make_app, vary)
    with counted.new(2):
        counted.api.get("pages/")
        counted.api.get("pages/")


@on_memory
def test_other_addresses_get_to_flask(counted: Counted) -> None:
    client = counted.app.test_client()
    with counted.new(2):
        assert [client.get("/elsewhere").status_code for _ in range(2)] == [404, 404]


def test_it_is_refused_where_requests_decide_what_is_seen() -> None:
    app = Flask(__name__)
    api = ContentAPI(app, backend=MemoryBackend(), can_view=lambda rule: bool(g))
    with pytest.raises(ConfigurationError, match="can_view"):
        KeptAnswers(app, api)


def test_it_takes_the_application_itself() -> None:
    app = Flask(__name__)
    api = ContentAPI(app, backend=MemoryBackend())
    with pytest.raises(ConfigurationError, match=r"write app\.wsgi_app = KeptAnswers\(app, api\)"):
        KeptAnswers(app.wsgi_app, api)  # type: ignore[arg-type]

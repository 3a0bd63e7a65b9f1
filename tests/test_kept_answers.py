"""Cached answers: returned as they were, and no longer than they are true."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from flask import Response
from marshmallow import fields
from werkzeug.test import TestResponse

from flask_contentapi import APIField, ConfigurationError, Page
from flask_contentapi.backend import ContentChanged, Reader
from flask_contentapi.cache import AnswerCache
from flask_contentapi.views import json_response
from tests.api import API
from tests.conftest import MakeAPI
from tests.edits import NOW, Clock
from tests.samples import page, private, site
from tests.stores import on_all, on_memory

pytestmark = on_memory

SIZE = "CMSAPI_CACHE_SIZE"
CONTENT = {
    "sites": [site(1)],
    "pages": [page(n, 1 if n > 1 else None, type="x.Counted") for n in range(1, 6)],
}


class Site:
    """A site that records when pages are shown.

    :ivar shown: the ids of the pages that were shown, in order.
    """

    def __init__(self, make_api: MakeAPI, content: Any = CONTENT, **options: Any) -> None:
        self.shown: list[int] = []
        shown = self.shown

        class Counted(Page):
            app_label = "x"
            api_fields = [
                APIField("seen", fields.Function(lambda it: shown.append(it.id)), needs=["id"]),
                APIField("now", fields.Function(lambda it: None), needs=["id"], volatile=True),
            ]

        self.api: API = make_api(content, types=[Counted], **options)
        self.types = [Counted]

    def made(self, path: str, **options: Any) -> int:
        """How many pages are computed for an answer, not taken from the cache."""
        before = len(self.shown)
        assert self.api.get(path, **options).status_code in (200, 302)
        return len(self.shown) - before


PAGE = "pages/2/?fields=-now"
PATHS = [PAGE, "pages/?type=x.Counted&fields=seen", "pages/2/?fields=_,seen"]


@pytest.mark.parametrize("path", PATHS)
def test_what_is_asked_again_is_not_made_again(make_api: MakeAPI, path: str) -> None:
    asked = Site(make_api)
    assert asked.made(path) > 0
    assert asked.made(path) == 0


def whole(response: TestResponse) -> Any:
    return response.status_code, sorted(response.headers), response.data


@pytest.mark.parametrize("path", [*PATHS, "pages/find/?html_path=/p2/&a=b", "images/"])
def test_it_is_the_same_answer_to_the_last_byte(make_api: MakeAPI, path: str) -> None:
    asked = Site(make_api, config={"CMSAPI_CACHE_TAG_HEADER": "Cache-Tag"})
    first = whole(asked.api.get(path))
    assert whole(asked.api.get(path)) == first


def test_without_room_nothing_is_kept(make_api: MakeAPI) -> None:
    asked = Site(make_api, config={SIZE: 0})
    assert [asked.made(PAGE) for _ in range(3)] == [1, 1, 1]


def test_what_is_too_long_is_not_kept(make_api: MakeAPI) -> None:
    asked = Site(make_api, config={SIZE: 1800})
    long = "pages/?type=x.Counted&fields=seen"
    assert [asked.made(path) for path in (long, long, PAGE, PAGE)] == [5, 5, 1, 0]


def test_what_was_asked_least_recently_makes_room(make_api: MakeAPI) -> None:
    asked = Site(make_api, config={SIZE: 4000})
    paths = [f"pages/{number}/?fields=-now" for number in (1, 2, 1, 3, 1, 2)]
    assert [asked.made(path) for path in paths] == [1, 1, 0, 1, 0, 1]


def some_answer(items: Any, **headers: str) -> Response:
    response = json_response(items)
    response.headers.update({"Cache-Control": "no-cache", **headers})
    return response


@pytest.mark.parametrize(("length", "is_kept"), [(10, True), (5000, False)])
def test_what_stands_in_headers_counts(length: int, is_kept: bool) -> None:
    cache = AnswerCache(5000)
    cache.put("a", some_answer([], Location="x" * length))
    assert (cache.get("a") is not None) == is_kept


def test_no_more_is_kept_than_the_answers() -> None:
    cache, items = AnswerCache(10**6), [{"title": "x" * 20}] * 40
    tracemalloc.start()
    try:
        for number in range(100):
            cache.put(str(number), some_answer(items))
        assert tracemalloc.get_traced_memory()[0] < 100 * 3000
    finally:
        tracemalloc.stop()


@on_all
def test_a_change_is_seen(make_api: MakeAPI) -> None:
    asked = Site(make_api)
    asked.made(PAGE)
    changed = {**CONTENT, "pages": [*CONTENT["pages"][:1], page(2, 1, type="x.Counted", title="N")]}
    asked.api.load(changed)
    assert asked.api.json(PAGE)["title"] == "N"


@on_all
def test_time_is_seen(make_api: MakeAPI) -> None:
    clock = Clock()
    ends = (NOW + timedelta(seconds=10)).isoformat()
    pages = [*CONTENT["pages"], page(6, 1, expires_at=ends)]
    asked = Site(make_api, {**CONTENT, "pages": pages}, clock=clock)
    assert asked.api.json("pages/")["meta"]["total_count"] == 6
    clock.now = NOW + timedelta(seconds=10)
    assert asked.api.json("pages/")["meta"]["total_count"] == 5
    assert asked.api.get("pages/6/").status_code == 404


def test_lifetimes_are_those_of_the_moment(make_api: MakeAPI) -> None:
    clock = Clock()
    pages = [*CONTENT["pages"], page(6, 1, expires_at=(NOW + timedelta(seconds=10)).isoformat())]
    config = {"CMSAPI_CACHE_MAX_AGE": 60}
    asked = Site(make_api, {**CONTENT, "pages": pages}, clock=clock, config=config)
    said = []
    for seconds in (0, 4):
        clock.now = NOW + timedelta(seconds=seconds)
        said.append(asked.api.get(PAGE).headers["Cache-Control"])
    assert said == ["public, max-age=10", "public, max-age=6"]
    assert asked.shown == [2]


@pytest.mark.parametrize("path", ["pages/2/?fields=now,seen", "pages/?order=random&limit=1"])
def test_what_must_be_made_each_time_is(make_api: MakeAPI, path: str) -> None:
    asked = Site(make_api)
    first, second = (asked.api.get(path) for _ in range(2))
    assert {first.headers["Cache-Control"], second.headers["Cache-Control"]} == {"no-store"}
    assert asked.shown in ([2, 2], [])


def test_each_order_at_random_is_another_one(make_api: MakeAPI) -> None:
    asked = Site(make_api)
    assert len({asked.api.get("pages/?order=random").data for _ in range(40)}) > 1


def test_what_a_hook_decides_is_made_for_each_reader(make_api: MakeAPI) -> None:
    pages = [*CONTENT["pages"], page(6, 1, restriction=private())]
    asked = Site(make_api, {**CONTENT, "pages": pages}, can_view=lambda rule: False)
    assert [asked.made(PAGE) for _ in range(2)] == [1, 1]


def test_a_head_request_makes_nothing_that_others_get(make_api: MakeAPI) -> None:
    asked = Site(make_api)
    asked.api.get(PAGE, method="HEAD")
    assert asked.api.json(PAGE)["id"] == 2
    assert asked.api.get(PAGE, method="HEAD").data == b""


@pytest.mark.parametrize(
    "other", ["pages/2/?fields=*", "pages/2/?fields=-now&a=b", "pages/02/?fields=-now"]
)
def test_each_address_has_its_own(make_api: MakeAPI, other: str) -> None:
    asked = Site(make_api)
    asked.made(PAGE)
    assert asked.made(other) == 1


def test_each_host_has_its_own(make_api: MakeAPI) -> None:
    asked = Site(make_api, {"pages": CONTENT["pages"]})
    here, there = (asked.api.at(host).json(PAGE) for host in ("a.example", "b.example"))
    assert here["meta"]["detail_url"] == "http://a.example/api/v2/pages/2/"
    assert there["meta"]["detail_url"] == "http://b.example/api/v2/pages/2/"


def test_a_client_that_wants_none_gets_none(make_api: MakeAPI) -> None:
    asked = Site(make_api)
    for _ in range(2):
        response = asked.api.get(PAGE, headers={"If-None-Match": "*"})
        assert (response.status_code, response.data) == (304, b"")
        assert asked.api.json(PAGE)["id"] == 2


def test_what_an_after_request_function_adds_is_not_kept(make_api: MakeAPI) -> None:
    asked, numbers = Site(make_api), iter(range(9))

    @asked.api.app.after_request
    def number(response: Any) -> Any:
        response.headers["X-Number"] = next(numbers)
        return response

    assert [asked.api.get(PAGE).headers.getlist("X-Number") for _ in range(2)] == [
        ["0"],
        ["1"],
    ]


@on_all
def test_an_answer_of_two_states_is_not_kept(
    make_api: MakeAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Site(make_api)
    backend = asked.api.backend
    reader, attempts = backend.reader, []

    @contextmanager
    def changing() -> Iterator[Reader]:
        with reader() as given:
            yield given
        attempts.append(len(asked.shown))
        if len(attempts) == 1:
            raise ContentChanged

    monkeypatch.setattr(backend, "reader", changing)
    asked.made(PAGE)
    assert attempts == [1, 2]


@pytest.mark.parametrize("size", [-1, "1 MB", None, True, 1.5])
def test_a_size_is_a_number_of_bytes(make_api: MakeAPI, size: Any) -> None:
    with pytest.raises(ConfigurationError, match="a whole number of bytes from 0 on"):
        make_api(config={SIZE: size})

"""Limit and offset return parts of the whole list, in whatever way a storage finds them."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from flask_contentapi.query import Viewer
from flask_contentapi_memory import queries, shelves
from flask_contentapi_memory.backend import Snapshot
from tests.api import API
from tests.conftest import MakeAPI
from tests.samples import Record, blog, image, page, private, site
from tests.stores import on_two

pytestmark = on_two

PAGES = range(10, 60)


def numbered(number: int) -> Record:
    """A page that shares each value with some others; every fifth one is hidden."""
    return blog(
        number,
        1 + number % 2,
        title=f"Title {number * 7 % 13} {'storm ' * (number % 4)}",
        tags=["all", f"t{number % 3}"],
        rating=f"{number % 6}.5" if number % 7 else None,
        restriction=None if number % 5 else private(),
    )


def content() -> dict[str, list[Any]]:
    """A site with two branches of such pages."""
    pages = [page(1), page(2, 1), *map(numbered, PAGES)]
    images = [image(n, title=f"Image {n % 4}", tags=["all"]) for n in PAGES]
    sites = [site(1), site(2, "second.example")]
    return {"sites": sites, "pages": pages, "images": images}


LISTS = [
    "pages/?",
    "pages/?site=second.example",
    "pages/?type=blog.BlogPage",
    "pages/?order=-title",
    "pages/?order=title,-id",
    "pages/?descendant_of=2",
    "pages/?descendant_of=2&order=title",
    "pages/?child_of=1&order=-id",
    "pages/?type=blog.BlogPage&order=-rating",
    "pages/?type=blog.BlogPage&tags=t1&order=rating",
    "pages/?type=blog.BlogPage&tags=all&order=rating&descendant_of=2",
    "pages/?type=blog.BlogPage&rating=2.5",
    "pages/?search=storm",
    "pages/?search=storm&order=title&type=blog.BlogPage",
    "images/?order=title",
    "images/?tags=all&order=-title",
]


@pytest.fixture(scope="module")
def whole(make_api: MakeAPI) -> API:
    """The site, for requests for whole lists."""
    return make_api(content(), config={"CMSAPI_LIMIT_MAX": None, "CMSAPI_CACHE_SIZE": 0})


@pytest.fixture(scope="module", params=[0, 1], ids=["walked", "sorted"])
def parts(make_api: MakeAPI, request: pytest.FixtureRequest) -> Iterator[API]:
    """The site, for requests for parts. The memory backend has two ways to put them in order."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queries, "SMALL_PART", request.param)
        yield make_api(content(), config={"CMSAPI_CACHE_SIZE": 0})


@pytest.mark.parametrize("path", LISTS)
def test_parts_are_those_of_the_whole(whole: API, parts: API, path: str) -> None:
    ids = whole.ids(f"{path}&limit=1000")
    assert len(ids) > 3
    assert whole.total(path) == len(ids)
    for limit in (1, 7, 20):
        for offset in (0, 1, 13, len(ids) - 3, len(ids), 1000):
            for _ in range(2):
                part = parts.json(f"{path}&limit={limit}&offset={offset}")
                assert [item["id"] for item in part["items"]] == ids[offset : offset + limit]
                assert part["meta"]["total_count"] == len(ids)


def test_parts_are_those_of_what_there_is_now(make_api: MakeAPI) -> None:
    api, path = make_api(content()), "pages/?type=blog.BlogPage&tags=t1&order=title"
    before = api.ids(path)
    changed = content()
    changed["pages"] = [record for record in changed["pages"] if record["id"] != before[0]]
    api.load(changed)
    assert api.ids(path) == before[1:]


def test_every_condition_tells_lists_apart(make_api: MakeAPI) -> None:
    api = make_api(content(), config={"CMSAPI_LIMIT_MAX": None, "CMSAPI_CACHE_SIZE": 0})
    shown = [n for n in PAGES if n % 5]
    second = [n for n in shown if n % 2]
    assert {*api.ids("pages/?limit=100")} == {1, 2, *shown}
    assert {*api.ids("pages/?limit=100&type=blog.BlogPage")} == {*shown}
    assert {*api.ids("pages/?limit=100&type=standard.StandardPage")} == {1, 2}
    assert {*api.ids("pages/?limit=100&site=second.example")} == {2, *second}
    assert {*api.ids("pages/?limit=100&descendant_of=2")} == {*second}
    assert {*api.ids("pages/?limit=100&child_of=1")} == {2, *shown} - {*second}
    assert {*api.ids("pages/?limit=100&slug=p11")} == {11}
    assert {*api.ids("pages/?limit=100&search=storm")} == {n for n in shown if n % 4}
    assert {*api.ids("images/?limit=100")} == {*PAGES}


def test_what_was_found_in_random_order_has_another_order_else(make_api: MakeAPI) -> None:
    apis = [make_api(content(), config={"CMSAPI_CACHE_SIZE": 0}) for _ in range(2)]
    apis[0].json("pages/?search=storm&order=random")
    first, second = (api.ids("pages/?search=storm") for api in apis)
    assert first == second


@pytest.mark.backends("memory")
@pytest.mark.parametrize("most", [120, 1000])
def test_what_is_kept_of_lists_is_bounded(
    make_api: MakeAPI, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(shelves, "MATCH_CACHE_SIZE", most)
    api = make_api(content())
    for number in range(50):
        api.total(f"pages/?title=Title {number}")
        api.total(f"pages/?search=storm title {number}")
    with api.backend.reader() as reader:
        cache: Any = cast(Snapshot, reader).visible_to(Viewer(datetime.now(UTC))).match_cache
    assert 0 < cache._entries.currsize <= most
    assert len(cache) <= most / shelves.ENTRY_OVERHEAD


@pytest.mark.backends("memory", "jsonfiles")
def test_content_that_is_replaced_goes_at_once(make_api: MakeAPI) -> None:
    api = make_api(content())
    for path in LISTS:
        api.total(path)
    with api.backend.reader() as reader:
        before = weakref.ref(reader)
    del reader
    gc.disable()
    try:
        api.load({"pages": [page(1)]})
        assert before() is None
    finally:
        gc.enable()

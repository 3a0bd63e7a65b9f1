"""Lists that are sent as a whole, one JSON object a line."""

from __future__ import annotations

import gc
import json
import threading
import tracemalloc
from collections.abc import Mapping
from typing import Any

import pytest
from marshmallow import fields

from flask_contentapi import APIField, Page, views
from flask_contentapi.errors import BackendUnavailable
from tests.api import API
from tests.conftest import MakeAPI
from tests.samples import blog, document, image, page, private, site

ON = {"CMSAPI_STREAM_ENABLED": True, "CMSAPI_LIMIT_MAX": None}
STREAM = "pages/?format=ndjson"


@pytest.fixture(scope="module")
def api(make_api: MakeAPI, reference_content: Mapping[str, Any]) -> API:
    return make_api(reference_content, config=ON)


@pytest.fixture(autouse=True)
def few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "BATCH", 3)


@pytest.mark.parametrize(
    "path",
    [
        "pages/?",
        "pages/?order=-title,id",
        "pages/?order=feed_image&type=blog.BlogPage&fields=*,feed_image(*),authors(portrait)",
        "pages/?type=blog.BlogPage,events.EventPage&fields=*",
        "pages/?search=harbour storm",
        "pages/?autocomplete=a&fields=_,title",
        "pages/?descendant_of=root&show_in_menus=true",
        "pages/?child_of=root&fields=_",
        "pages/?offset=5",
        "pages/?offset=99999999999999999999",
        "pages/?slug=nowhere",
        "pages/?search=",
        "pages/?fields=ancestors(title),children(title,children)",
        "pages/?type=blog.BlogPage,events.EventPage&fields=intro,venue",
        "images/?fields=*",
        "documents/?order=-title&tags=visit",
    ],
)
def test_each_line_is_an_item_of_the_list(api: API, path: str) -> None:
    stream, whole = api.get(f"{path}&format=ndjson"), api.get(f"{path}&limit=9999")
    assert (stream.status_code, stream.content_type) == (200, "application/x-ndjson")
    lines = stream.data.split(b"\n")
    assert lines.pop() == b""
    assert [json.loads(line) for line in lines] == whole.get_json()["items"]
    assert whole.data.endswith(b'"items":[%s]}' % b",".join(lines))


def test_random_order_has_each_object_once(api: API) -> None:
    lines = api.get(f"{STREAM}&order=random").data.splitlines()
    assert sorted(json.loads(line)["id"] for line in lines) == sorted(api.ids("pages/?limit=9999"))


def test_streams_are_off_by_default(make_api: MakeAPI) -> None:
    assert make_api({}).refusal(STREAM) == "format must be json; ndjson is switched off."


def test_what_does_not_fit_is_refused(api: API) -> None:
    why = "cannot be used with format=ndjson, which gives all objects and nothing else."
    assert api.refusal(f"{STREAM}&limit=20") == f"limit {why}"
    assert api.refusal(f"{STREAM}&facets=slug") == f"facets {why}"
    assert api.refusal("pages/?format=csv") == "format must be json or ndjson."


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("child_of=99999", 400),
        ("site=nowhere.example", 404),
        ("order=random&offset=0", 400),
        ("nope=1", 400),
        ("fields=nope", 400),
    ],
)
def test_errors_are_told_before_the_first_line(api: API, query: str, status: int) -> None:
    assert api.refusal(f"{STREAM}&{query}", status)


def test_outages_are_told_before_the_first_line(api: API, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> Any:
        raise BackendUnavailable("gone")

    monkeypatch.setattr(api.backend, "snapshot_reader", gone)
    assert api.refusal(STREAM, 503)


def test_head_is_as_get(api: API) -> None:
    get, head = api.get(STREAM), api.get(STREAM, method="HEAD")
    assert (head.status_code, head.data) == (200, b"")
    assert {**head.headers} == {**get.headers}
    assert api.get(f"{STREAM}&child_of=99999", method="HEAD").status_code == 400


def test_streams_have_validators_and_are_not_kept(api: API) -> None:
    first = api.get(STREAM)
    known = {"If-None-Match": first.headers["ETag"]}
    again = api.get(STREAM, headers=known)
    assert (again.status_code, again.data) == (304, b"")
    assert first.headers["Cache-Control"] == api.get("pages/").headers["Cache-Control"]
    (state,) = api.app.extensions["contentapi"].values()
    held = len(state.answer_cache._cache)
    assert api.get(f"{STREAM}&order=id").status_code == 200
    assert len(state.answer_cache._cache) == held


def test_random_and_volatile_streams_may_not_be_stored(make_api: MakeAPI) -> None:
    class Volatile(Page):
        app_label = "lab"
        api_fields = [APIField("now", fields.Function(lambda it: 1), needs=["id"], volatile=True)]

    api = make_api({"pages": [page(1, type="lab.Volatile")]}, types=[Volatile], config=ON)
    for more in ("&order=random", "&type=lab.Volatile&fields=now"):
        headers = api.get(f"{STREAM}{more}").headers
        assert (headers["Cache-Control"], "ETag" in headers) == ("no-store", False)


def test_streams_have_tags_of_endpoints(make_api: MakeAPI) -> None:
    pages = [blog(1, feed_image=1, related_links=[{"id": 1, "link_document": 1}])]
    content = {"pages": pages, "images": [image(1)], "documents": [document(1)]}
    api = make_api(content, config={**ON, "CMSAPI_CACHE_TAG_HEADER": "Cache-Tag"})
    response = api.get(f"{STREAM}&type=blog.BlogPage&fields=feed_image,related_links")
    tags = response.headers["Cache-Tag"].split(", ")
    assert sorted(tags[1:]) == ["documents", "images", "pages"]


# Consistency.


def _pages(title: str) -> Mapping[str, Any]:
    pages = [page(n, 1 if n > 1 else None, title=title) for n in range(1, 11)]
    return {"sites": [site(1)], "pages": pages}


def test_a_change_does_not_tear_a_stream(make_api: MakeAPI) -> None:
    api = make_api(_pages("before"), config=ON)
    stream = api.get(f"{STREAM}&fields=_,title", buffered=False)
    lines = stream.iter_encoded()
    first = next(lines)
    api.load(_pages("after"))
    assert {item["title"] for item in api.items("pages/")} == {"after"}
    titles = [json.loads(line)["title"] for line in (first + b"".join(lines)).splitlines()]
    stream.close()
    assert titles == ["before"] * 10


@pytest.mark.backends("memory", "sqlite", "postgresql", "mariadb")
def test_a_stream_within_a_block_has_its_changes(make_api: MakeAPI) -> None:
    api = make_api(_pages("before"), config=ON)
    with api.app.app_context(), api.backend.write() as writer:
        writer.update("pages", 2, title="within")
        assert b"within" in api.get(f"{STREAM}&fields=_,title").data


def test_a_client_that_goes_away_frees_everything(make_api: MakeAPI) -> None:
    api = make_api(_pages("before"), config=ON)
    threads = threading.active_count()
    for _ in range(30):
        # More often than there are connections.
        stream = api.get(STREAM, buffered=False)
        next(stream.iter_encoded())
        stream.close()
    assert threading.active_count() == threads
    pool = getattr(getattr(api.backend, "engine", None), "reading", None)
    assert not getattr(pool, "_in_use", None)


def test_what_nobody_closes_is_freed_by_garbage_collection(make_api: MakeAPI) -> None:
    api = make_api(_pages("before"), config=ON)
    threads = threading.active_count()
    held: list[Any] = [api.backend.snapshot_reader()]
    assert held[0].__enter__().version
    held.append(held)
    del held
    collector = threading.Thread(target=gc.collect, daemon=True)
    collector.start()
    collector.join(20)
    assert not collector.is_alive()
    assert threading.active_count() == threads


def test_hidden_pages_are_left_out(make_api: MakeAPI) -> None:
    pages = [page(1), page(2, 1, live=False), page(3, 1, restriction=private()), page(4, 3)]
    api = make_api({"sites": [site(1)], "pages": pages}, config=ON)
    assert [json.loads(line)["id"] for line in api.get(STREAM).data.splitlines()] == [1]


def test_a_preview_shows_its_page_in_a_stream(make_api: MakeAPI) -> None:
    pages = [page(1), page(2, 1, live=False), page(3, 1, live=False)]
    api = make_api({"sites": [site(1)], "pages": pages}, config={**ON, "SECRET_KEY": "x" * 32})
    (state,) = api.app.extensions["contentapi"].values()
    with api.app.app_context():
        token = state.previews.write(("pages", 2), 60, None)
    response = api.get(f"{STREAM}&preview={token}")
    assert [json.loads(line)["id"] for line in response.data.splitlines()] == [1, 2]
    assert response.headers["Cache-Control"] == "private, no-store"


# Bounds.


def test_embedded_objects_are_bounded_in_each_part(make_api: MakeAPI) -> None:
    pages = [blog(n, n - 1 or None, feed_image=1, related_links=[{"id": n}]) for n in range(1, 11)]
    content = {"sites": [site(1)], "pages": pages, "images": [image(1)]}
    api = make_api(content, config={**ON, "CMSAPI_EMBED_MAX": 1})
    path = f"{STREAM}&type=blog.BlogPage&fields=feed_image"
    assert len(api.get(path).data.splitlines()) == 10
    assert "embed more than 1" in api.refusal(f"{path},related_links")


def test_memory_does_not_grow_with_the_list(
    make_api: MakeAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "BATCH", 20)
    text = "It rained at the harbour. " * 100
    pages = [blog(n, 1 if n > 1 else None, intro=text) for n in range(1, 801)]
    api = make_api({"sites": [site(1)], "pages": pages}, config=ON)
    few, all_pages = (
        f"{STREAM}&type=blog.BlogPage&fields=*&offset={offset}" for offset in (700, 0)
    )
    peaks = {path: _peak(api, path) for path in (all_pages, few, all_pages)}
    # All have two million characters.
    assert peaks[all_pages] < peaks[few] + 200_000


def _peak(api: API, path: str) -> int:
    """The most memory that a stream takes, in bytes."""
    tracemalloc.start()
    try:
        stream = api.get(path, buffered=False)
        for chunk in stream.iter_encoded():
            assert chunk
        stream.close()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

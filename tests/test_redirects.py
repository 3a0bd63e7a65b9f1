"""Redirects from former addresses of a site."""

from __future__ import annotations

from typing import Any

import pytest

from flask_contentapi import ContentError, DeclarationError, Entry, Page, Redirect, Related
from flask_contentapi.fields import Derived
from flask_contentapi.registry import Registry
from tests.api import API
from tests.conftest import MakeAPI
from tests.stores import on_two

pytestmark = on_two

PAGES: list[dict[str, Any]] = [
    {"id": 1, "parent": None, "title": "Home", "slug": "home"},
    {"id": 2, "parent": 1, "title": "News", "slug": "news"},
    {"id": 3, "parent": 1, "title": "Draft", "slug": "canary", "live": False},
    {"id": 4, "parent": 1, "title": "Soon", "slug": "soon", "go_live_at": "2999-01-01"},
    {"id": 5, "parent": None, "title": "Shop", "slug": "shop"},
]
SITES = [
    {"hostname": "a.example", "root_page": 1},
    {"hostname": "shop.example", "root_page": 5},
    {"hostname": "shop.example", "port": 8000, "root_page": 5},
]


class Sign(Entry):
    app_label = "guide"
    endpoint = "signs"
    to = Related("redirects")
    api_fields = ["to"]


def redirect(id: int, old_path: str, page: int | None = 2, **more: Any) -> dict[str, Any]:
    return {"id": id, "old_path": old_path, "redirect_page": page, **more}


def link(id: int, old_path: str, **more: Any) -> dict[str, Any]:
    return redirect(id, old_path, None, redirect_link=f"/{id}", **more)


@pytest.fixture(scope="module")
def empty(make_api: MakeAPI) -> API:
    return make_api(types=[Page, Redirect, Sign])


def load(api: API, *redirects: dict[str, Any], **more: Any) -> API:
    api.load({"pages": PAGES, "sites": SITES, "redirects": redirects, **more})
    return api.at("a.example")


def found(api: API, path: str) -> int | None:
    """The redirect that is found for a path."""
    response = api.get("redirects/find/", query_string={"html_path": path})
    if response.status_code == 404:
        return None
    assert response.status_code == 302
    return int(response.headers["Location"].rstrip("/").rpartition("/")[2])


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("/old", "old/"),
        ("old/", "/old"),
        ("//old//", "/old#part"),
        ("/caf%C3%A9", "/café"),
        ("/café", "/caf%c3%a9"),
        ("/a b", "/a%20b"),
        ("/a%2fb/", "/a/b"),
        ("/x?b=2&a=1#top", "/x/?a=1&b=2"),
        ("/x?q=%41", "/x?q=A"),
        ("/%FF", "/%ff/"),
        ("/", ""),
        ("/?p=3", "/?p=3&"),
    ],
)
def test_paths_are_compared_in_one_form(empty: API, stored: str, asked: str) -> None:
    assert found(load(empty, link(1, stored)), asked) == 1


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("/old", "/Old"),
        ("/a%3Fb", "/a?b"),
        ("/a%2520b", "/a%20b"),
        ("/%FF", "/%FE"),
        ("/x?a=1&b=2", "/x?a=1"),
        ("/x?a=1", "/x"),
        ("/a//b", "/a/b"),
        ("/x?a=1%26b=2", "/x?a=1&b=2"),
    ],
)
def test_different_paths_are_kept_apart(empty: API, stored: str, asked: str) -> None:
    assert found(load(empty, link(1, stored)), asked) is None


def test_query_goes_before_the_path_alone(empty: API) -> None:
    api = load(empty, link(1, "/x", site="a.example"), link(2, "/x?a=1"))
    assert [found(api, path) for path in ("/x?a=1", "/x?a=2", "/x")] == [2, 1, 1]


def test_own_redirect_goes_before_that_of_all_sites(empty: API) -> None:
    api = load(empty, link(1, "/x"), link(2, "/x", site="A.example.:80"), link(3, "/y"))
    assert [found(api, path) for path in ("/x", "/y")] == [2, 3]
    assert found(api.at("shop.example"), "/x") == 1


def test_site_chooses_among_redirects(empty: API) -> None:
    api = load(empty, link(1, "/x"), link(2, "/x", site="shop.example:8000"), link(3, "/y"))
    assert api.ids("redirects/?site=shop.example:8000") == [1, 2, 3]
    assert api.ids("redirects/?site=shop.example:80") == [1, 3]
    assert api.status("redirects/?site=shop.example") == 400
    assert api.status("redirects/find/?html_path=/x&site=none.example") == 404
    assert api.at("none.example").status("redirects/") == 404


def test_hidden_page_hides_its_redirects_everywhere(empty: API) -> None:
    hidden = [redirect(n, f"/to-{n}", page, redirect_link="/x") for n, page in enumerate((3, 4, 9))]
    signs = [{"id": 1, "to": 0}, {"id": 2, "to": 7}]
    api = load(empty, *hidden, redirect(7, "/to-7"), signs=signs)
    assert api.json("redirects/")["meta"]["total_count"] == 1
    assert api.ids("redirects/?order=-old_path") == [7]
    assert api.ids("redirects/?old_path=/to-0") == []
    for number in range(3):
        assert api.status(f"redirects/{number}/") == 404
        assert api.status(f"redirects/find/?id={number}") == 404
        assert found(api, f"/to-{number}") is None
    assert [item["to"] and item["to"]["id"] for item in api.items("signs/?fields=to")] == [None, 7]
    assert api.ids("signs/?to=0") == []
    assert api.ids("signs/?to=7") == [2]


def test_location_is_the_page_or_the_link(empty: API) -> None:
    api = load(empty, redirect(1, "/a", redirect_link="/b"), redirect(2, "/b", 5), link(3, "/c"))
    locations = [item["location"] for item in api.items("redirects/")]
    assert locations == ["http://a.example/news/", "http://shop.example/", "/3"]


def test_redirects_are_searched_by_nothing(empty: API) -> None:
    assert load(empty, link(1, "/word")).ids("redirects/?search=word") == []


def test_redirects_without_sites_are_those_of_all(empty: API) -> None:
    empty.load({"redirects": [link(1, "/x"), link(2, "/x", site="a.example")]})
    assert empty.ids("redirects/") == [1]
    assert empty.json("redirects/1/?fields=location") == {
        "id": 1,
        "meta": {
            "type": "wagtailredirects.Redirect",
            "detail_url": "http://localhost/api/v2/redirects/1/",
        },
        "old_path": "/x",
        "location": "/1",
        "is_permanent": False,
    }


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([link(1, "/x"), link(2, "x/")], "redirects 2.*old_path.*another redirect.*: redirect 1"),
        (
            [link(1, "/x", site="a.example"), link(2, "/x", site="A.EXAMPLE:80")],
            "redirects 2.*old_path.*another redirect.*: redirect 1",
        ),
        ([redirect(1, "/x", None)], "redirects 1.*must have a redirect_page or a redirect_link"),
        ([link(1, "/x", site="http://a.example/")], "redirects 1.*site.*must be the host name"),
        ([link(1, "/x", site_path="/y")], "redirects 1.*site_path.*no such field"),
        ([{"id": 1, "redirect_link": "/"}], "redirects 1.*old_path.*is missing"),
    ],
)
def test_broken_records_are_refused(empty: API, records: list[Any], message: str) -> None:
    with pytest.raises(ContentError, match=message):
        load(empty, *records)


def test_dump_has_what_was_loaded(empty: API) -> None:
    record = redirect(1, "old/?b&a#x", site="A.example.")
    dumped = load(empty, record).dump()["redirects"]
    assert dumped == [{**record, "type": "wagtailredirects.Redirect"}]


def test_check_tells_redirects_of_no_site(empty: API) -> None:
    api = load(empty, link(1, "/x", site="none.example"), link(2, "/x", site="shop.example"))
    with api.app.app_context():
        problems = [*api.backend.check()]
    assert [(p.where, p.field, p.message) for p in problems] == [
        ("redirects 1", "site", "there is no site none.example, or several"),
        ("redirects 2", "site", "there is no site shop.example, or several"),
    ]


def test_derived_fields_stay_as_they_are() -> None:
    class Other(Redirect):
        site_path = Derived(lambda values: "")

    with pytest.raises(DeclarationError, match=r"Other\.site_path is derived"):
        Registry([Other])

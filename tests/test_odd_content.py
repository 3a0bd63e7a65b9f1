"""Content with faults is served nevertheless (contract, Content records)."""

from __future__ import annotations

import math
from typing import Any

import pytest
from marshmallow import fields

from flask_contentapi import APIField, Entry, Image, Page
from tests.api import API
from tests.conftest import MakeAPI
from tests.samples import blog, document, image, page, site
from tests.stores import except_files

pytestmark = except_files

# Types that are no longer declared.


@pytest.fixture
def changed(make_api: MakeAPI) -> API:
    gone = {"type": "shop.Product", "price": "4.50", "tags": ["x"], "parts": [{"id": 1}]}
    pages = [page(1), page(2, 1, **gone), page(3, 2), page(4, 1, **gone)]
    pages += [page(5, 1, type="shop.Order"), blog(6, 1, related_links=[{"id": 1, "link_page": 2}])]
    return make_api({"sites": [site(1)], "pages": pages})


def test_pages_of_undeclared_types_are_served_as_plain_pages(changed: API) -> None:
    assert changed.ids("pages/") == [1, 2, 3, 4, 5, 6]
    item = changed.json("pages/2/?fields=*")
    assert item["meta"]["type"] is None
    assert list(item) == ["id", "meta", "title"]
    assert changed.json("pages/3/")["meta"]["parent"]["id"] == 2
    assert changed.json("pages/3/")["meta"]["parent"]["meta"]["type"] is None


def test_pages_of_undeclared_types_are_in_every_surface(changed: API) -> None:
    assert changed.ids("pages/?search=2") == [2]
    assert changed.ids("pages/?order=-title&limit=2&offset=2") == [4, 3]
    assert changed.ids("pages/?slug=p2&fields=*") == [2]
    assert changed.status("pages/find/?html_path=/p2/p3/") == 302
    link = changed.json("pages/6/?fields=related_links(link_page(type))")["related_links"][0]
    assert link["link_page"]["meta"]["type"] is None


def test_what_an_undeclared_type_has_is_kept_when_it_changes(make_api: MakeAPI) -> None:
    api = make_api({"pages": [page(1, type="shop.Product", price="4.50")]})
    api.load({"pages": [page(1, type="shop.Product", price="5.00")]})
    assert api.dump()["pages"][0]["price"] == "5.00"


@pytest.mark.parametrize(
    "more",
    ["", "&fields=*", "&search=2", "&order=-title", "&slug=p2", "&limit=2&offset=3", "&id=99"],
)
@pytest.mark.parametrize("types", ["wagtailcore.page", "blog.BlogPage,wagtailcore.Page"])
def test_the_base_of_all_page_types_lists_every_page(changed: API, types: str, more: str) -> None:
    assert changed.get(f"pages/?type={types}{more}").data == changed.get(f"pages/?{more}").data


def test_only_the_base_brings_in_undeclared_types(changed: API) -> None:
    assert changed.ids("pages/?type=blog.BlogPage,standard.StandardPage") == [1, 3, 6]


class Base(Page):
    app_label = "own"
    api_fields = [APIField("shout", fields.Function(lambda page: page.title.upper()))]


class Leaf(Base):
    app_label = "own"
    api_fields = [*Base.api_fields]


class Summed(Page):
    app_label = "own"
    summary = fields.String()
    api_fields = ["summary"]


class SummedLeaf(Summed):
    app_label = "own"


def test_the_base_shows_what_it_computes_of_every_page(make_api: MakeAPI) -> None:
    pages = [page(1, type="own.Leaf"), page(2, 1, type="own.Gone")]
    api = make_api({"pages": pages}, types=[Base, Leaf])
    items = api.items("pages/?type=own.Base&fields=_,type,shout")
    assert items == [
        {"meta": {"type": "own.Leaf"}, "shout": "PAGE 1"},
        {"meta": {"type": None}, "shout": "PAGE 2"},
    ]


@pytest.mark.parametrize(
    ("types", "asked"), [([Summed, SummedLeaf], "own.Summed"), ([Leaf], "own.Leaf")]
)
def test_types_with_more_than_all_pages_leave_others_out(
    make_api: MakeAPI, types: list[type[Page]], asked: str
) -> None:
    pages = [page(1, type=asked), page(2, 1, type="own.Gone")]
    assert make_api({"pages": pages}, types=types).ids(f"pages/?type={asked}") == [1]


class Sight(Image):
    app_label = "own"


class Photo(Sight):
    app_label = "own"
    credit = fields.String()
    api_fields = ["credit"]


class Person(Entry):
    app_label = "own"
    endpoint = "people"
    name = fields.String()
    api_fields = ["name"]


class Keeper(Person):
    app_label = "own"


@pytest.mark.parametrize(
    ("path", "types"),
    [("images/", "own.Sight"), ("images/", "own.Photo,own.Sight"), ("people/", "own.Person")],
)
def test_the_base_of_an_endpoint_lists_all_of_it(make_api: MakeAPI, path: str, types: str) -> None:
    labels = ["own.Photo", "own.Sight", "own.Gone"]
    people = [("own.Keeper", "Ada"), ("own.Gone", "Eve")]
    content = {
        "images": [image(n, type=label) for n, label in enumerate(labels, 1)],
        "people": [{"id": n, "type": t, "name": name} for n, (t, name) in enumerate(people, 1)],
    }
    api = make_api(content, types=[Sight, Photo, Person, Keeper])
    assert api.get(f"{path}?type={types}&fields=*").data == api.get(f"{path}?fields=*").data


def test_an_undeclared_type_cannot_be_asked_for(changed: API) -> None:
    assert "shop.Product" in changed.refusal("pages/?type=shop.Product")


def test_an_undeclared_type_is_logged_once(
    make_api: MakeAPI, caplog: pytest.LogCaptureFixture
) -> None:
    gone = [page(n, 1, type="shop.Product") for n in range(2, 20)]
    api = make_api({"pages": [page(1), *gone]})
    assert ["shop.Product" in message for message in caplog.messages] == [True]
    assert "pages 2" in caplog.text
    api.json("pages/")
    caplog.clear()
    assert api.total("pages/") == 19
    assert caplog.messages == []


def problems(api: API) -> set[tuple[str, str]]:
    """The problems that a check finds, as record and field."""
    with api.app.app_context():
        found = api.backend.check()
        return {(problem.where.partition(",")[0], problem.field) for problem in found}


def test_a_check_reports_undeclared_types_always(changed: API) -> None:
    found = {(f"pages {id}", "type") for id in (2, 4, 5)}
    assert problems(changed) == problems(changed) == found


# Missing files.


def test_files_need_not_be_there(make_api: MakeAPI) -> None:
    images = [image(1, file="gone.png"), {"id": 2, "title": "No file", "width": None}]
    api = make_api({"images": images, "documents": [document(1)], "pages": [blog(1, feed_image=2)]})
    urls = [item["meta"]["download_url"] for item in api.items("images/?fields=*")]
    assert urls == ["http://localhost/media/gone.png", None]
    assert api.json("pages/1/?fields=feed_image(*)")["feed_image"]["width"] is None


def test_a_relation_to_what_is_not_there_is_null(make_api: MakeAPI) -> None:
    pages = [
        blog(1, feed_image=99, alias_of=98, related_links=[{"id": 1, "link_page": 97}]),
        page(2, 1, banner=2**62),
    ]
    api = make_api({"pages": pages})
    item = api.json("pages/1/?fields=*")
    assert (item["feed_image"], item["meta"]["alias_of"]) == (None, None)
    assert item["related_links"][0]["link_page"] is None
    assert api.total("pages/?type=blog.BlogPage&feed_image=99") == 0
    assert problems(api) == {
        ("pages 1", "feed_image"),
        ("pages 1", "alias_of"),
        ("pages 1", "link_page"),
        ("pages 2", "banner"),
    }


# Invalid JSON.


class Reading(Page):
    app_label = "lab"
    value = fields.Float(allow_nan=True)
    exact = fields.Decimal(allow_nan=True)
    raw = fields.Raw()
    api_fields = [
        "value",
        "raw",
        APIField("half", fields.Float(allow_nan=True), source="halved"),
        APIField("all", fields.Function(lambda page: [page.value, {"x": math.inf}])),
    ]

    def halved(self) -> float:
        return math.nan


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_json_has_not_are_null(make_api: MakeAPI, number: float) -> None:
    records = [
        page(1, type="lab.Reading", value=number, raw=[number, {"a": number}]),
        page(2, type="lab.Reading", value=1.5, raw=1.5),
    ]
    api = make_api({"pages": records}, types=[Reading])
    response = api.get("pages/?type=lab.Reading&fields=*")
    assert "NaN" not in response.text
    assert "Infinity" not in response.text
    item: dict[str, Any] = response.get_json()["items"][0]
    assert (item["value"], item["raw"], item["half"]) == (None, [None, {"a": None}], None)
    assert item["all"] == [None, {"x": None}]
    assert api.ids("pages/?type=lab.Reading&order=value") == [1, 2]
    assert api.ids("pages/?type=lab.Reading&order=-value") == [2, 1]


def test_minus_zero_is_zero(make_api: MakeAPI) -> None:
    records = [page(1, type="lab.Reading", value=-0.0), page(2, type="lab.Reading", value=0)]
    api = make_api({"pages": records}, types=[Reading])
    assert api.ids("pages/?type=lab.Reading&value=0") == [1, 2]
    assert api.ids("pages/?type=lab.Reading&value=-0.0") == [1, 2]
    assert [item["value"] for item in api.items("pages/?type=lab.Reading&fields=value")] == [0, 0]
    assert '"value":0.0' in api.get("pages/1/").text


# Odd but valid content.


def test_content_may_be_empty(make_api: MakeAPI) -> None:
    api = make_api({})
    for endpoint in ("pages", "images", "documents"):
        assert api.json(f"{endpoint}/") == {"meta": {"total_count": 0}, "items": []}
        assert api.status(f"{endpoint}/1/") == 404
        assert api.status(f"{endpoint}/find/?id=1&html_path=/") == 404
    assert "root" in api.refusal("pages/?child_of=root")
    assert api.ids("pages/?search=x&order=-title") == []


def test_odd_texts_are_given_back_as_they_are(make_api: MakeAPI) -> None:
    texts = [
        "",
        " ",
        "\u2028\u2029",
        "\r\n\t",
        "\x01\x7f",
        "</script>",
        "\\u0041",
        "🚢" * 300,
        "\ufeff\ufffe",
    ]
    pages = [page(n, title=text) for n, text in enumerate(texts, 1)]
    api = make_api({"pages": pages})
    assert [item["title"] for item in api.items("pages/")] == texts
    for id, text in enumerate(texts, 1):
        assert api.ids("pages/", query_string={"title": text}) == [id]

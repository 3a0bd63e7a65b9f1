"""Ways to other pages: what they show, and that nothing hidden leaves by them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from marshmallow import fields

from flask_contentapi import Page, Related
from flask_contentapi.query import Query, Selected
from flask_contentapi_memory.backend import Snapshot
from tests.api import API
from tests.conftest import MakeAPI
from tests.samples import page, private, site
from tests.stores import on_memory, on_two

pytestmark = on_two

NOW = datetime(2026, 3, 1, tzinfo=UTC)
SOON = (NOW + timedelta(seconds=50)).isoformat()
#: The mark in the titles and slugs of everything that is hidden.
HIDDEN = "secret"


class Plain(Page):
    app_label = "w"
    other = Related("pages")
    api_fields = ["other"]


class Family(Page):
    """Has a field of its own with the name of a way."""

    app_label = "w"
    children = fields.Integer()
    api_fields = ["children"]


def plain(id: int, parent: int | None = None, **values: Any) -> Any:
    return page(id, parent, **{"type": "w.Plain", **values})


def hidden(id: int, parent: int | None = None, **values: Any) -> Any:
    return plain(id, parent, title=f"{HIDDEN} {id}", slug=f"{HIDDEN}-{id}", **values)


CONTENT = {
    "locales": ["en", "fr"],
    "sites": [site(1), site(30, "other.example")],
    "pages": [
        plain(1, translation_key="home"),
        plain(2, 1, translation_key="k"),
        plain(3, 2),
        hidden(4, 2, live=False),
        hidden(5, 2, restriction=private()),
        hidden(6, 2, go_live_at=SOON),
        hidden(7, 1, live=False, translation_key="k"),
        plain(8, 7),
        plain(9, 8, other=31),
        *(plain(n, 3) for n in range(100, 125)),
        page(10, 1, type="w.Family", children=4),
        plain(11, 10),
        plain(20, locale="fr", translation_key="home"),
        plain(21, 20, locale="fr", translation_key="k"),
        hidden(22, 20, locale="fr", translation_key="k2", restriction=private()),
        plain(30),
        plain(31, 30, translation_key="k"),
    ],
}
TYPES = (Plain, Family)
ALL = "ancestors(_,id),children(_,id),translations(_,id)"


@pytest.fixture(scope="module")
def api(make_api: MakeAPI) -> API:
    return make_api(CONTENT, types=TYPES, config={"CMS_I18N_ENABLED": True}, clock=lambda: NOW)


def ways(api: API, path: str) -> dict[str, list[int]]:
    meta = api.json(f"{path}{'&' if '?' in path else '?'}fields=_,{ALL}")["meta"]
    return {name: [entry["id"] for entry in entries] for name, entries in meta.items()}


@pytest.mark.parametrize(
    ("id", "ancestors", "children", "translations"),
    [
        (1, [], [2, 10], [20]),
        (2, [1], [3], [21, 31]),
        (9, [1, 8], [], []),
        (21, [20], [], [2, 31]),
    ],
)
def test_ways_lead_to_what_may_be_seen(
    api: API, id: int, ancestors: list[int], children: list[int], translations: list[int]
) -> None:
    assert ways(api, f"pages/{id}/") == {
        "ancestors": ancestors,
        "children": children,
        "translations": translations,
    }


def test_lists_have_the_ways_of_each_page(api: API) -> None:
    items = api.items(f"pages/?fields=_,id,{ALL}&limit=20&order=id")
    for item in items:
        shown = {name: [e["id"] for e in found] for name, found in item["meta"].items()}
        if item["id"] != 10:
            assert shown == ways(api, f"pages/{item['id']}/")


def test_a_page_has_at_most_as_many_children_as_a_list(api: API) -> None:
    assert ways(api, "pages/3/")["children"] == [*range(100, 120)]
    (item,) = api.items("pages/?slug=p2&fields=_,children(_,id,children)")
    (child,) = item["meta"]["children"]
    assert [entry["id"] for entry in child["meta"]["children"]] == [*range(100, 120)]


def test_a_trail_starts_at_the_home_page_of_the_site_of_its_page(api: API) -> None:
    (other,) = [api.json("pages/9/?fields=_,other(_,ancestors(_,id))")["other"]]
    assert other == {"meta": {"ancestors": [{"id": 30}]}}


@on_memory
def test_a_page_in_no_site_has_all_pages_above(make_api: MakeAPI) -> None:
    pages = [plain(1), plain(2, 1), plain(3, None, other=6), plain(5), plain(6, 5)]
    api = make_api({"sites": [site(3)], "pages": pages}, types=TYPES)
    assert api.json("pages/3/?fields=_,other(_,ancestors(_,id))")["other"] == {
        "meta": {"ancestors": [{"id": 5}]}
    }


@pytest.mark.parametrize("path", ["pages/", "pages/1/", "pages/2/", "pages/20/", "pages/9/"])
def test_nothing_hidden_is_shown(api: API, path: str) -> None:
    further = "ancestors(children,translations),children(children),translations(children,ancestors)"
    body = api.get(f"{path}?fields=*,{further}").text
    assert "children" in body
    # The slugs of pages above are a part of addresses.
    assert HIDDEN not in body.replace(f"/{HIDDEN}-7/", "/")


def test_viewers_see_what_is_open_to_them(make_api: MakeAPI) -> None:
    api = make_api(CONTENT, types=TYPES, can_view=lambda rule: True, clock=lambda: NOW)
    assert ways(api, "pages/2/")["children"] == [3, 5]


def test_an_own_field_hides_a_way(api: API) -> None:
    assert api.json("pages/10/?fields=_,children") == {"children": 4}
    (item,) = api.items("pages/?type=w.Family&fields=_,children")
    assert item == {"children": 4}
    (home,) = api.items("pages/?slug=p1&fields=_,children(_,id,children)")
    shown = {entry["id"]: entry for entry in home["meta"]["children"]}
    assert shown[10] == {"id": 10, "children": 4}
    assert [entry["id"] for entry in shown[2]["meta"]["children"]] == [3]
    # Brackets have to fit every type that has the name.
    assert "children has no fields" in api.refusal("pages/1/?fields=children(children(id))")


@on_memory
@pytest.mark.parametrize(
    "path",
    [
        "pages/?order=children",
        "pages/?ancestors=1",
        "pages/?translations__isnull=true",
        "pages/?fields=children(children(children))",
        "pages/?fields=children(translations(children(children)))",
        "pages/?fields=_,-children",
        "pages/?fields=alias_of(children)",
        "images/?fields=children",
        "pages/?fields=ancestors(nothing)",
    ],
)
def test_what_cannot_be_done_with_ways_is_refused(api: API, path: str) -> None:
    assert api.refusal(path)


@on_memory
@pytest.mark.parametrize("fields", ["*", "-children", "title", "*,-ancestors"])
def test_ways_are_shown_only_where_they_are_named(api: API, fields: str) -> None:
    meta = api.json(f"pages/2/?fields={fields}")["meta"]
    assert not {"ancestors", "children", "translations"} & meta.keys()


@on_memory
def test_objects_on_ways_count_as_embedded(make_api: MakeAPI) -> None:
    api = make_api(CONTENT, types=TYPES, config={"CMSAPI_EMBED_MAX": 20})
    assert api.status("pages/3/?fields=_,children") == 200
    refused = api.refusal("pages/3/?fields=_,children(ancestors)")
    assert "embed more than 20 objects" in refused


@on_memory
def test_no_more_pages_are_read_than_an_answer_can_have(
    make_api: MakeAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = [plain(n, translation_key="k") for n in range(1, 500)]
    config = {"CMSAPI_EMBED_MAX": 20, "CMSAPI_LIMIT_MAX": None}
    below = [plain(n, 1) for n in range(500, 900)]
    api = make_api({"pages": [*pages, *below]}, types=TYPES, config=config)
    read: list[int] = []
    select = Snapshot.select

    def counted(self: Snapshot, query: Query) -> Selected:
        found = select(self, query)
        read.append(len(found.rows))
        return found

    monkeypatch.setattr(Snapshot, "select", counted)
    for way in ("children", "translations"):
        assert "embed more than 20" in api.refusal(f"pages/1/?fields=_,{way}")
    assert max(read) <= 22


@on_memory
@pytest.mark.parametrize(("path", "age"), [("pages/2/?fields=children", 50), ("pages/31/", 900)])
def test_answers_live_until_a_page_appears(make_api: MakeAPI, path: str, age: int) -> None:
    config = {"CMSAPI_CACHE_MAX_AGE": 900}
    api = make_api(CONTENT, types=TYPES, config=config, clock=lambda: NOW)
    host = "other.example" if "31" in path else "localhost"
    assert f"max-age={age}" in api.at(host).get(path).headers["Cache-Control"]


@on_memory
def test_pages_of_other_sites_end_the_life_of_translations(make_api: MakeAPI) -> None:
    config = {"CMSAPI_CACHE_MAX_AGE": 900}
    api = make_api(CONTENT, types=TYPES, config=config, clock=lambda: NOW).at("other.example")
    said = [
        api.get(f"pages/31/?fields={way}").headers["Cache-Control"]
        for way in ("ancestors", "translations")
    ]
    assert ["max-age=900" in text for text in said] == [True, False]


@on_memory
def test_answers_with_ways_have_the_tag_of_lists(make_api: MakeAPI) -> None:
    api = make_api(CONTENT, types=TYPES, config={"CMSAPI_CACHE_TAG_HEADER": "Cache-Tag"})
    tags = [api.get(f"pages/2/{q}").headers["Cache-Tag"] for q in ("", "?fields=children")]
    assert ["pages" in text.split(", ") for text in tags] == [False, True]

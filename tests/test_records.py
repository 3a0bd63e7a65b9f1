"""Content records: what is refused or may be omitted, and that nothing is lost or half loaded."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest
from flask import Flask
from marshmallow import fields

from flask_contentapi import (
    Blocks,
    ChildObject,
    Children,
    ContentAPI,
    ContentError,
    Document,
    Entry,
    Image,
    Page,
    Related,
    Tags,
)
from flask_contentapi_memory import MemoryBackend
from tests.api import API
from tests.conftest import MakeAPI, MakeApp
from tests.samples import Record, blog, document, image, page, plain, site
from tests.stores import on_memory, on_two

pytestmark = on_two

Content = dict[str, list[Any]]


GOOD: Content = {
    "locales": ["en", "fr"],
    "sites": [site(1)],
    "collections": [{"id": 1}, {"id": 2, "parent": 1}],
    "images": [image(1, collection=2)],
    "documents": [document(1)],
    "pages": [
        page(1),
        blog(
            2,
            1,
            authors=[{"id": 1, "name": "Ada"}, {"id": 2}],
            related_links=[{"id": 1}],
            tags=["a"],
        ),
        page(3, 1, body=[{"type": "x", "value": 1}]),
    ],
}


@on_memory
@pytest.mark.parametrize("content", [[], [plain(1)], "pages", 5])
def test_content_without_sections_is_refused(make_app: MakeApp, content: Any) -> None:
    said = r"^the content must be a mapping with a list for each section, as {'pages': \[...\]}$"
    app = make_app({})
    with app.app_context(), pytest.raises(ContentError, match=said):
        app.extensions["contentapi"]["contentapi"].backend.load(content)
    with pytest.raises(ContentError, match=said):
        ContentAPI(Flask("site"), backend=MemoryBackend(content))


#: For each kind of broken record, what to change in good content, and the resulting problem.
BROKEN: dict[str, tuple[Content, tuple[str, str]]] = {
    "a page without an id": ({"pages": [{"id": None}]}, ("pages[3]", "id")),
    "an id that is text": ({"pages": [{"id": "4"}]}, ("pages 4", "id")),
    "an id that is true": ({"pages": [{"id": True}]}, ("pages True", "id")),
    "an id too large": ({"pages": [{"id": 2**63}]}, (f"pages {2**63}", "id")),
    "a second id": ({"pages": [{"id": 2, "slug": "x"}]}, ("pages 2", "id")),
    "an id below all": ({"pages": [{"id": -1}]}, ("pages -1", "id")),
    "a page without a title": ({"pages": [{"title": None}]}, ("pages 4", "title")),
    "a title that is a number": ({"pages": [{"title": 5}]}, ("pages 4", "title")),
    "a title with a NUL": ({"pages": [{"title": "\0"}]}, ("pages 4", "title")),
    "a title that is no UTF-8": ({"pages": [{"title": "\ud800"}]}, ("pages 4", "title")),
    "a page without a slug": ({"pages": [{"slug": None}]}, ("pages 4", "slug")),
    "an empty slug": ({"pages": [{"slug": ""}]}, ("pages 4", "slug")),
    "a slug with a slash": ({"pages": [{"slug": "a/b"}]}, ("pages 4", "slug")),
    "a slug that is a dot": ({"pages": [{"slug": ".."}]}, ("pages 4", "slug")),
    "two siblings with one slug": ({"pages": [{"parent": 1, "slug": "p2"}]}, ("pages 4", "slug")),
    "two roots with one slug": ({"pages": [{"slug": "p1"}]}, ("pages 4", "slug")),
    "a page without a type": ({"pages": [{"type": None}]}, ("pages 4", "type")),
    "a type that is no text": ({"pages": [{"type": 5}]}, ("pages 4", "type")),
    "a type with a name too long": ({"pages": [{"type": "x" * 256}]}, ("pages 4", "type")),
    "a type with a NUL": ({"pages": [{"type": "x.\0"}]}, ("pages 4", "type")),
    "a type that is no UTF-8": ({"pages": [{"type": "x.\ud800"}]}, ("pages 4", "type")),
    "a type of other objects": ({"pages": [{"type": "media.Picture"}]}, ("pages 4", "type")),
    "a parent that is not there": ({"pages": [{"parent": 99}]}, ("pages 4", "parent")),
    "a parent that is text": ({"pages": [{"parent": "1"}]}, ("pages 4", "parent")),
    "a page below itself": ({"pages": [{"parent": 4}]}, ("pages 4", "parent")),
    "a field that is not there": ({"pages": [{"titel": "x"}]}, ("pages 4", "titel")),
    "a field of another type": ({"pages": [{"venue": "x"}]}, ("pages 4", "venue")),
    "a state that is text": ({"pages": [{"live": "yes"}]}, ("pages 4", "live")),
    "an instant that is none": ({"pages": [{"expires_at": "soon"}]}, ("pages 4", "expires_at")),
    "a language that is not there": ({"pages": [{"locale": "xx"}]}, ("pages 4", "locale")),
    "a language that is a number": ({"pages": [{"locale": 5}]}, ("pages 4", "locale")),
    "an alias that is text": ({"pages": [{"alias_of": "1"}]}, ("pages 4", "alias_of")),
    "a restriction that is text": (
        {"pages": [{"restriction": "login"}]},
        ("pages 4", "restriction"),
    ),
    "a restriction without a type": ({"pages": [{"restriction": {}}]}, ("pages 4", "restriction")),
    "blocks that are no list": ({"pages": [{"body": {}}]}, ("pages 4", "body")),
    "a page that is no object": ({"pages": ["x"]}, ("pages[3]", "")),
    "an image without a title": ({"images": [{"title": None}]}, ("images 4", "title")),
    "a width that is text": ({"images": [{"width": "3"}]}, ("images 4", "width")),
    "tags that are text": ({"images": [{"tags": "a,b"}]}, ("images 4", "tags")),
    "a tag that is a number": ({"images": [{"tags": ["a", 5]}]}, ("images 4", "tags")),
    "a collection that is not there": ({"images": [{"collection": 9}]}, ("images 4", "collection")),
    "a size of a document": ({"documents": [{"width": 3}]}, ("documents 4", "width")),
    "a second collection": ({"collections": [{"id": 1}]}, ("collections 1", "id")),
    "a collection without an id": ({"collections": [{"name": "x"}]}, ("collections[2]", "id")),
    "a collection below nothing": (
        {"collections": [{"id": 4, "parent": 9}]},
        ("collections 4", "parent"),
    ),
    "a collection below itself": (
        {"collections": [{"id": 4, "parent": 4}]},
        ("collections 4", "parent"),
    ),
    "a collection with more": (
        {"collections": [{"id": 4, "title": "x"}]},
        ("collections 4", "title"),
    ),
    "a collection's restriction": (
        {"collections": [{"id": 4, "restriction": {"type": 5}}]},
        ("collections 4", "restriction"),
    ),
    "a site without a host": ({"sites": [{"root_page": 1}]}, ("sites[1]", "hostname")),
    "a site without a page": ({"sites": [{"hostname": "x"}]}, ("sites x", "root_page")),
    "a site at no page": ({"sites": [site(9, "x")]}, ("sites x:80", "root_page")),
    "a host with a path": ({"sites": [site(1, "x/y")]}, ("sites x/y", "hostname")),
    "a host with a port": ({"sites": [site(1, "x:80")]}, ("sites x:80", "hostname")),
    "a host with a query": ({"sites": [site(1, "x?a&b")]}, ("sites x?a&b", "hostname")),
    "a host with a space": ({"sites": [site(1, "x y")]}, ("sites x y", "hostname")),
    "a host with an empty part": ({"sites": [site(1, "a..b")]}, ("sites a..b", "hostname")),
    "an empty host": ({"sites": [site(1, "")]}, ("sites ", "hostname")),
    "a port that is none": ({"sites": [site(1, "x", port=70000)]}, ("sites x", "port")),
    "a port below all": ({"sites": [site(1, "x", port=0)]}, ("sites x", "port")),
    "a port that is text": ({"sites": [site(1, "x", port="80")]}, ("sites x", "port")),
    "a second host": ({"sites": [site(1, "LOCALHOST")]}, ("sites localhost:80", "hostname")),
    "a site with more": ({"sites": [site(1, "x", name="x")]}, ("sites x", "name")),
    "a language that is no text": ({"locales": [5]}, ("locales[2]", "")),
    "an empty language": ({"locales": [""]}, ("locales[2]", "")),
    "a language with a NUL": ({"locales": ["\0"]}, ("locales[2]", "")),
    "a language that is no UTF-8": ({"locales": ["\ud800"]}, ("locales[2]", "")),
    "a language with a name too long": ({"locales": ["x" * 256]}, ("locales[2]", "")),
    "a section that is not there": ({"pagse": []}, ("pagse", "")),
}


def broken(kind: str) -> Content:
    """Good content with one more record, which is broken."""
    content = copy.deepcopy(GOOD)
    for section, records in BROKEN[kind][0].items():
        content.setdefault(section, [])
        for record in records:
            whole: Any = record
            if section in ("pages", "images", "documents") and isinstance(record, dict):
                whole = {**(page(4, 1) if section == "pages" else image(4)), **record}
                if record.get("slug") == "p1":
                    whole["parent"] = None
            content[section].append(whole)
    return content


@pytest.fixture(scope="module")
def good(make_api: MakeAPI) -> API:
    """A site with good content, which loads that fail must not change."""
    return make_api(GOOD)


@pytest.fixture(scope="module")
def served(good: API) -> list[bytes]:
    """The answers of the good site."""
    return everything(good)


def everything(api: API) -> list[bytes]:
    """All lists of a site, with all fields."""
    return [api.get(f"{endpoint}/?fields=*").data for endpoint in ("pages", "images", "documents")]


@pytest.mark.parametrize(("given", "said"), [({}, "is missing"), ({"type": 5}, "must be")])
def test_who_gives_no_type_is_told_which_there_are(
    make_api: MakeAPI, given: Record, said: str
) -> None:
    pages = [{"id": 1, "parent": None, "title": "A", "slug": "a", **given}]
    with pytest.raises(ContentError, match=f"pages 1, type: {said}.*; there are .*blog.BlogPage"):
        make_api({"pages": pages})


@pytest.mark.parametrize("rule", ["login", ["login"], {"typ": "login"}])
def test_a_restriction_that_is_none_is_shown_one(make_api: MakeAPI, rule: Any) -> None:
    with pytest.raises(ContentError, match=r'pages 1, restriction: must .* as {"type": "login"}'):
        make_api({"pages": [page(1, restriction=rule)]})


@on_memory
@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_record_is_refused_and_nothing_is_loaded_by_halves(
    good: API, served: list[bytes], kind: str
) -> None:
    with pytest.raises(ContentError) as raised:
        good.load(broken(kind))
    assert everything(good) == served
    assert [(p.where, p.field) for p in raised.value.problems] == [BROKEN[kind][1]]
    where, field = BROKEN[kind][1]
    assert str(raised.value).startswith(f"{where}, {field}: " if field else f"{where}: ")


#: The same for values inside a page.
INSIDE: dict[str, tuple[Record, tuple[str, str]]] = {
    "children that are no list": ({"authors": {}}, ("pages 4", "authors")),
    "a child that is no object": ({"authors": [5]}, ("pages 4, authors[0]", "")),
    "a child without an id": ({"authors": [{}]}, ("pages 4, authors[0]", "id")),
    "a second child": ({"authors": [{"id": 7}, {"id": 7}]}, ("pages 4, authors[1]", "id")),
    "a child of another page": ({"authors": [{"id": 1}]}, ("pages 4, authors[0]", "id")),
    "a child's field": ({"authors": [{"id": 7, "nmae": "x"}]}, ("pages 4, authors[0]", "nmae")),
    "a child's value": ({"authors": [{"id": 7, "name": 5}]}, ("pages 4, authors[0]", "name")),
    "a child's type": ({"authors": [{"id": 7, "type": "x"}]}, ("pages 4, authors[0]", "type")),
    "a date": ({"published_date": "15.1.2026"}, ("pages 4", "published_date")),
    "a decimal": ({"rating": "4.505"}, ("pages 4", "rating")),
    "an integer": ({"reading_minutes": 2.5}, ("pages 4", "reading_minutes")),
    "a boolean": ({"featured": 1}, ("pages 4", "featured")),
    "a relation": ({"feed_image": {"id": 1}}, ("pages 4", "feed_image")),
}


@on_memory
@pytest.mark.parametrize("kind", INSIDE)
def test_what_is_broken_inside_a_page_is_named(good: API, kind: str) -> None:
    values, problem = INSIDE[kind]
    with pytest.raises(ContentError) as raised:
        good.load({**GOOD, "pages": [*GOOD["pages"], blog(4, 1, **values)]})
    assert problem in [(p.where, p.field) for p in raised.value.problems]


@on_memory
def test_problems_know_where_they_are(good: API) -> None:
    pages = [page(1), blog(2, 1, authors=[{"id": 1}, {"id": 2, "name": 5}])]
    with pytest.raises(ContentError) as raised:
        good.load({"pages": pages})
    (problem,) = raised.value.problems
    assert (problem.section, problem.index) == ("pages", 1)
    assert problem.path == ("authors", 1, "name")
    assert "must be text" in problem.message


@on_memory
def test_what_is_refused_is_not_said_to_be_missing(good: API) -> None:
    broken = {
        "pages": [page(1, title=5), page(2, 1)],
        "sites": [site(1)],
        "collections": [{"id": 1, "name": 5}, {"id": 2, "parent": 1}],
        "images": [image(1, collection=1)],
    }
    with pytest.raises(ContentError) as raised:
        good.load(broken)
    named = [(p.where, p.field) for p in raised.value.problems]
    assert named == [("collections 1", "name"), ("pages 1", "title")]


@on_memory
def test_a_problem_of_a_record_hides_no_other(good: API) -> None:
    pages: list[Record] = [page(1), page(2, 9, slug="a/b"), {**page(3, title=5), "parent": "one"}]
    pages.append({**page(4, 9), "id": None})
    with pytest.raises(ContentError) as raised:
        good.load({"pages": pages, "images": [image(1, collection=9, width="wide")]})
    named = {(p.where, p.field) for p in raised.value.problems}
    assert named == {
        *(("pages 2", "slug"), ("pages 2", "parent")),
        *(("pages 3", "title"), ("pages 3", "parent")),
        *(("images 1", "width"), ("images 1", "collection")),
        ("pages[3]", "id"),
    }


@on_memory
@pytest.mark.parametrize("records", [None, 5, "page", {"id": 1}, True])
@pytest.mark.parametrize("section", ["pages", "images", "sites", "locales", "collections"])
def test_sections_are_lists(good: API, section: str, records: Any) -> None:
    with pytest.raises(ContentError) as raised:
        good.load({section: records})
    assert [(p.where, p.field) for p in raised.value.problems] == [(section, "")]


@on_memory
@pytest.mark.parametrize("pages", [[(2, 3), (3, 4), (4, 2)], [(2, 2)], [(5, 3), (3, 5), (2, 3)]])
def test_circles_are_refused(good: API, pages: list[tuple[int, int]]) -> None:
    with pytest.raises(ContentError) as raised:
        good.load({"pages": [page(1), *(page(id, parent) for id, parent in pages)]})
    assert {(p.where, p.field) for p in raised.value.problems} == {
        (f"pages {id}", "parent") for id, _ in pages
    }


@on_memory
def test_two_default_sites_are_refused(good: API) -> None:
    sites = [site(1, "a", is_default=True), site(1, "b", is_default=True)]
    with pytest.raises(ContentError, match="sites b:80, is_default: "):
        good.load({**GOOD, "sites": sites})


@on_memory
def test_all_problems_are_told_at_once(good: API) -> None:
    content = {
        "sites": [site(9, "x")],
        "collections": [{"id": 1, "parent": 7}],
        "images": [image(1, title=5, width="x", collection=8)],
        "pages": [page(1, slug="a/b", live=5, x=1), page(2, 6), {"id": 3}, page(1, 2)],
    }
    with pytest.raises(ContentError) as raised:
        good.load(content)
    found = {(p.where, p.field) for p in raised.value.problems}
    assert found >= {
        ("collections 1", "parent"),
        ("images 1", "title"),
        ("images 1", "width"),
        ("pages 1", "slug"),
        ("pages 1", "live"),
        ("pages 1", "x"),
        ("pages 3", "title"),
        ("pages 3", "slug"),
        ("pages 2", "parent"),
        ("sites x:80", "root_page"),
    }
    assert len(found) == len(raised.value.problems)
    assert all(str(problem) in str(raised.value) for problem in raised.value.problems)


@on_memory
def test_very_many_problems_are_told_in_short(good: API) -> None:
    with pytest.raises(ContentError) as raised:
        good.load({"pages": [page(n, live=5) for n in range(1, 101)]})
    assert len(raised.value.problems) == 100
    assert "80 more" in str(raised.value)


def test_loading_replaces_all_that_was_there(make_api: MakeAPI) -> None:
    api = make_api(GOOD)
    assert api.total("pages/?search=page") == 3
    api.load({"pages": [page(7, title="Other")]})
    assert api.ids("pages/") == [7]
    assert api.ids("images/") == api.ids("documents/") == api.ids("pages/?search=page") == []
    assert api.dump().keys() == {"pages"}


def test_records_are_not_changed_by_loading(make_api: MakeAPI) -> None:
    content = copy.deepcopy(GOOD)
    api = make_api(content)
    assert content == GOOD
    content["pages"][2]["body"][0]["value"] = "changed"
    assert api.json("pages/3/")["body"] == [{"type": "x", "value": 1}]


@on_memory
def test_sections_may_be_any_iterables_of_mappings(make_api: MakeAPI) -> None:
    class Read(Mapping[str, Any]):
        def __init__(self, record: Record) -> None:
            self._record = record

        def __getitem__(self, key: str) -> Any:
            return self._record[key]

        def __iter__(self) -> Any:
            return iter(self._record)

        def __len__(self) -> int:
            return len(self._record)

    api = make_api({"pages": (Read(page(n)) for n in (1, 2)), "locales": {"en": 1}.keys()})
    assert api.ids("pages/") == [1, 2]


# Missing values.


class Left(Page):
    app_label = "lab"
    text = fields.String()
    flag = fields.Boolean()
    number = fields.Integer()
    ratio = fields.Float()
    amount = fields.Decimal()
    day = fields.Date()
    clock = fields.Time()
    moment = fields.DateTime()
    picture = Related("images")
    tags = Tags()
    body = Blocks()
    data = fields.Raw()
    api_fields = [*"text flag number ratio amount day clock moment picture tags body data".split()]


def test_left_out_fields_have_their_empty_value(make_api: MakeAPI) -> None:
    record = {"id": 1, "type": "lab.Left", "parent": None, "title": "T", "slug": "s"}
    item = make_api({"pages": [record]}, types=[Left]).json("pages/1/?fields=*")
    assert item["meta"] == {
        "type": "lab.Left",
        "detail_url": "http://localhost/api/v2/pages/1/",
        "html_url": None,
        "slug": "s",
        "show_in_menus": False,
        "seo_title": "",
        "search_description": "",
        "first_published_at": None,
        "expires_at": None,
        "alias_of": None,
        "parent": None,
        "locale": None,
    }
    assert {name: item[name] for name in Left.api_fields if isinstance(name, str)} == {
        "text": "",
        "flag": False,
        **dict.fromkeys(("number", "ratio", "amount", "day", "clock", "moment", "picture", "data")),
        "tags": [],
        "body": [],
    }


@on_memory
def test_a_language_that_a_page_brings_along_is_not_too_long(make_api: MakeAPI) -> None:
    api = make_api({"pages": [page(1, locale="x" * 255)]})
    with pytest.raises(
        ContentError, match=r"pages 1, locale: must be .* of at most 255 characters"
    ):
        api.load({"pages": [page(1, locale="x" * 256)]})


def test_pages_without_a_language_have_the_first(make_api: MakeAPI) -> None:
    api = make_api({"locales": ["pt-br", "en"], "pages": [page(1), page(2, locale="en")]})
    assert [i["meta"]["locale"] for i in api.items("pages/?fields=locale")] == ["pt-br", "en"]


def test_without_languages_pages_have_what_they_name(make_api: MakeAPI) -> None:
    api = make_api({"pages": [page(1), page(2, locale="fr"), page(3, locale="en")]})
    assert [i["meta"]["locale"] for i in api.items("pages/?fields=locale")] == [None, "fr", "en"]
    assert "locales" not in api.dump()


# Instances of the declared classes.


class Part(ChildObject):
    app_label = "lab"
    name = fields.String()
    day = fields.Date()
    api_fields = ["name", "day"]


class Thing(Page):
    app_label = "lab"
    day = fields.Date()
    clock = fields.Time()
    moment = fields.DateTime()
    amount = fields.Decimal(places=2)
    key = fields.UUID()
    tags = Tags()
    parts = Children(Part)
    api_fields = ["day", "clock", "moment", "amount", "key", "tags", "parts"]


def test_instances_stand_for_records(make_api: MakeAPI) -> None:
    thing = Thing(
        id=1,
        parent=None,
        title="Thing",
        slug="thing",
        day=date(2026, 1, 15),
        clock=time(18, 30),
        moment=datetime(2026, 1, 15, 8, tzinfo=UTC),
        amount=Decimal("4.5"),
        key=uuid.UUID(int=1),
        tags=("b", "a"),
        parts=[Part(id=1, name="P", day=date(2026, 1, 15)), {"id": 2}],
    )
    content = {
        "pages": [thing, {**page(2, 1), "type": "lab.Thing"}],
        "images": [Image(id=1, title="I", file="i.png")],
        "documents": [Document(id=1, title="D")],
    }
    api = make_api(content, types=[Thing])
    item = api.json("pages/1/")
    assert {name: item[name] for name in Thing.api_fields if isinstance(name, str)} == {
        "day": "2026-01-15",
        "clock": "18:30:00",
        "moment": "2026-01-15T08:00:00Z",
        "amount": "4.50",
        "key": str(uuid.UUID(int=1)),
        "tags": ["a", "b"],
        "parts": [
            {"id": 1, "meta": {"type": "lab.Part"}, "name": "P", "day": "2026-01-15"},
            {"id": 2, "meta": {"type": "lab.Part"}, "name": "", "day": None},
        ],
    }
    assert (api.ids("images/"), api.ids("documents/")) == ([1], [1])
    again = make_api(api.dump(), types=[Thing])
    assert again.get("pages/?fields=*").data == api.get("pages/?fields=*").data


def test_instances_have_no_fields_but_declared_ones() -> None:
    with pytest.raises(TypeError, match=r"Thing has no field dya, x\. Did you mean 'day'\?"):
        Thing(id=1, dya=None, x=1)
    bare = type("Bare", (Page,), {"tags": Tags})
    with pytest.raises(TypeError, match=r"Bare has no field tags\. It is a class; write Tags\(\)"):
        bare(id=1, tags=[])
    assert repr(Thing(id=7)) == "<lab.Thing 7>"


@on_memory
def test_broken_instances_are_refused(make_app: MakeApp) -> None:
    with pytest.raises(ContentError, match="pages 1, day: must be a date"):
        make_app({"pages": [Thing(id=1, title="T", slug="s", day=7)]}, types=[Thing])


# From content to records and back.


def without_defaults(record: Record) -> Record:
    """A record without the values that it has by default."""
    kept: Record = {}
    for key, value in record.items():
        if key in ("authors", "related_links", "gallery"):
            kept[key] = [without_defaults(entry) for entry in value]
        elif key == "live":
            kept[key] = value or "draft"
        else:
            kept[key] = sorted(set(value)) if key == "tags" else value
    plain: tuple[Any, ...] = (None, "", False, [])
    return {k: v for k, v in kept.items() if v not in plain and (k, v) != ("live", True)}


def test_the_reference_content_is_dumped_as_it_was(
    reference: API, reference_content: Mapping[str, Any]
) -> None:
    records = reference.dump()
    assert records["locales"] == reference_content["locales"]
    for section in ("pages", "images", "documents"):
        given = {record["id"]: without_defaults(record) for record in reference_content[section]}
        assert {record["id"]: without_defaults(record) for record in records[section]} == given


def test_dumped_content_answers_as_before(reference: API, make_api: MakeAPI) -> None:
    records = reference.dump()
    second = make_api(records)
    assert second.dump() == records
    paths = [
        f"{name}/?fields=*&limit=20&offset={n}" for name in ("pages", "images") for n in (0, 20)
    ]
    paths += [f"pages/{record['id']}/?fields=*" for record in records["pages"]]
    for path in paths:
        assert second.get(path).data == reference.get(path).data


def test_undeclared_types_lose_nothing(make_api: MakeAPI) -> None:
    gone = page(2, 1, type="shop.Product", price="4.50", parts=[{"id": 1, "x": [None]}], n=None)
    records = make_api({"pages": [page(1), gone]}).dump()
    assert records["pages"][1].items() >= {k: v for k, v in gone.items() if k != "parent"}.items()
    assert make_api(records).dump() == records


@pytest.mark.parametrize("value", [object(), {1: 2}, "\0", 2**63, {"a": {1}}])
def test_undeclared_types_hold_json_too(good: API, value: Any) -> None:
    with pytest.raises(ContentError, match="pages 1, price: "):
        good.load({"pages": [page(1, type="shop.Product", price=value)]})


@on_memory
def test_sites_have_any_port_there_is(make_api: MakeAPI) -> None:
    api = make_api({"pages": [page(1)], "sites": [site(1, "a", port=1), site(1, "a", port=65535)]})
    assert [api.at(f"a:{port}").ids("pages/") for port in (1, 65535)] == [[1], [1]]


def test_a_storage_that_is_not_open_has_nothing() -> None:
    backend = MemoryBackend(GOOD)
    uses = (backend.reader, backend.dump, lambda: backend.load(GOOD), backend.write().__enter__)
    for use in uses:
        with pytest.raises(RuntimeError, match="not open"):
            use()


def memory_site(backend: MemoryBackend, types: Iterable[type[Entry]] = ()) -> Flask:
    """An application with a memory backend."""
    app = Flask("site")
    ContentAPI(app, types=types, backend=backend)
    return app

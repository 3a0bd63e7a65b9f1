"""Whatever is stored can be asked for, or it is refused where it comes from.

The page about content records lists it by kind of value ("What can be asked for").
"""

from __future__ import annotations

import enum
import ipaddress
import uuid
from typing import Any
from urllib.parse import quote, unquote

import pytest
from flask import Flask
from marshmallow import fields, validate

from flask_contentapi import (
    APIField,
    ContentAPI,
    ContentError,
    DeclarationError,
    Entry,
    Page,
    Redirect,
    Related,
    RichText,
    Tags,
)
from tests.api import API
from tests.conftest import MakeAPI
from tests.databases import on_writable, writing
from tests.samples import Record, image, page, site
from tests.stores import except_files, on_memory

pytestmark = except_files

Size = enum.Enum("Size", [("S,M", 1), ("L ", 2)])


class Odd(Page):
    app_label = "odd"
    text = fields.String()
    rich = RichText()
    choice = fields.String(validate=validate.OneOf(["a,b", " a", "_", "*"]))
    link = fields.Url()
    key = fields.UUID()
    address = fields.IPInterface()
    size = fields.Enum(Size)
    whole = fields.Integer()
    ratio = fields.Float()
    price = fields.Decimal()
    round = fields.Decimal(places=2)
    is_open = fields.Boolean()
    day = fields.Date()
    clock = fields.Time()
    moment = fields.DateTime()
    picture = Related("images")
    tags = Tags()
    हिन्दी = fields.String()
    locals()["a·b"] = fields.String()
    _ = fields.String()
    random = fields.String()
    limit = fields.String()
    api_fields = [
        *("text rich choice link key address size whole ratio price round is_open day".split()),
        *("clock moment picture tags हिन्दी a·b".split()),
        APIField("underscore", source="_"),
        APIField("chance", source="random"),
        APIField("most", source="limit"),
    ]


#: Texts with everything that means something in addresses, query strings and lists of values.
TEXTS = [
    *(" ", "a ", " a", "a", "A", "*", "_", "-a", "(a)", "null", "root", "random", "true", "0"),
    *("a&b=c", "a+b", "a b", "100%", "%2C", "%2F", "#x", "a?b", "a;b", "a:b", "\\", "'\"`", "<i>"),
    *("\t", "\r\n", "\x01", "\x7f", "\u2028", "\ufeff", "\ufffd", "é", "e\u0301", "🚢", "ǆ", "İ"),
]
LISTED = ["a,b", ",", "fish, chips"]
LONG = ["x" * 1000, "🚢" * 1000]


@pytest.mark.parametrize("field", ["title", "seo_title"])
def test_texts_can_be_asked_for(make_api: MakeAPI, field: str) -> None:
    texts = ["", *TEXTS, *LISTED, "a/b", *LONG, "x" * 4096]
    pages = [{**page(id), field: text} for id, text in enumerate(texts)]
    api = make_api({"pages": pages})
    for id, text in enumerate(texts):
        assert api.ids("pages/", query_string={field: text}) == [id]


def test_tags_can_be_asked_for(make_api: MakeAPI) -> None:
    tags = ["", *TEXTS, "a/b", *LONG]
    api = make_api({"images": [image(id, tags=[tag, "all"]) for id, tag in enumerate(tags)]})
    for id, tag in enumerate(tags):
        assert api.ids("images/", query_string={"tags": tag}) == [id]
        assert api.ids("images/", query_string={"tags": f"{tag},all"}) == [id]
        assert api.items(f"images/?id={id}")[0]["meta"]["tags"] == sorted([tag, "all"])


def test_slugs_can_be_asked_for(make_api: MakeAPI) -> None:
    slugs = [*TEXTS, *LISTED, "find", "...", *LONG]
    pages = [page(id, 0 if id else None, slug=slug) for id, slug in enumerate(["home", *slugs])]
    api = make_api({"sites": [site(0)], "pages": pages})
    for id, slug in enumerate(slugs, 1):
        assert api.ids("pages/", query_string={"slug": slug, "child_of": 0}) == [id]
        found = api.get("pages/find/", query_string={"html_path": f"/{slug}/"})
        assert found.location == f"http://localhost/api/v2/pages/{id}/"
        address = api.json(f"pages/{id}/?fields=_,html_url")["meta"]["html_url"]
        assert address == f"http://localhost/{quote(slug, safe='')}/"


#: The length of the last slug with which the path below has 13,000 characters.
LAST = 13_000 - 1 - 13 * (80 * 12 + 1) - 1
SAID = (
    "slug: makes a path of more than 13,000 characters, percent-encoded; shorten it, or those above"
    " it"
)


def nested(last: int) -> list[Record]:
    """Pages below each other with slugs of 80 characters, each 12 when it is encoded, and below
    them one with a slug of some length."""
    slugs = [*(f"{'🚢' * 79}{n:012}" for n in range(13)), "x" * last]
    return [page(n, n - 1 if n else None, slug=slug) for n, slug in enumerate(slugs)]


def test_the_longest_paths_can_be_asked_for(make_api: MakeAPI) -> None:
    slugs = [record["slug"] for record in nested(LAST)]
    config = {"CMS_I18N_ENABLED": True}
    api = make_api({"locales": ["🚢" * 255], "pages": nested(LAST)}, config=config)
    asked = {"html_path": "/".join(slugs[1:]), "locale": "🚢" * 255}
    assert api.get("pages/find/", query_string=asked).location.startswith(
        "http://localhost/api/v2/pages/13/?"
    )
    with pytest.raises(ContentError, match=f"^pages 13, {SAID}$"):
        api.load({"pages": [*nested(LAST + 1), page(99, 13)]})


@on_writable
def test_no_path_gets_too_long(make_api: MakeAPI) -> None:
    api = make_api({"pages": [*nested(LAST), page(50, slug="a" * 1000), page(51, 50)]})
    with writing(api) as writer, pytest.raises(ContentError, match=f"^pages 99, {SAID}$"):
        writer.add("pages", page(99, 13))
    with writing(api) as writer, pytest.raises(ContentError, match=f"^pages 13, {SAID}$"):
        writer.update("pages", 0, slug="y" * 1000)
    with writing(api) as writer, pytest.raises(ContentError, match=f"^pages 13, {SAID}$"):
        writer.move(1, 51)
    with writing(api) as writer:
        writer.move(0, None)
        writer.update("pages", 0, slug="z")
        writer.move(13, 51)


#: Paths of redirects, with everything that means something in addresses.
PATHS = [
    *(
        "",
        "/a b",
        "/a%20c",
        "/a%zz",
        "/%00",
        "/a?x=1&y",
        "/b#c",
        "http://x.example/a",
        "/é",
        "/d\n",
    ),
    *("a,b", "?x", "/a;b", "/a+b", "/a%2Fb", "/./a", "/..", "/" + "🚢" * 1083, "x" * 13_000),
]


def test_paths_of_redirects_can_be_asked_for(make_api: MakeAPI) -> None:
    def redirect(id: int, path: str) -> Record:
        return {"id": id, "old_path": path, "redirect_link": "/"}

    records = [redirect(id, path) for id, path in enumerate(PATHS)]
    api = make_api({"redirects": records}, types=[Redirect])
    for id, path in enumerate(PATHS):
        found = api.get("redirects/find/", query_string={"html_path": path})
        assert found.location == f"http://localhost/api/v2/redirects/{id}/"
        assert api.json(f"redirects/{id}/")["old_path"] == path
    said = "redirects 1, old_path: must be at most 13,000 characters, percent-encoded"
    for path in ("x" * 13_001, "/" + "🚢" * 1084):
        with pytest.raises(ContentError) as raised:
            api.load({"redirects": [redirect(1, path)]})
        assert str(raised.value) == said


def test_languages_can_be_asked_for(make_api: MakeAPI) -> None:
    codes = [*TEXTS, *LISTED, "a/b", "x" * 255, "🚢" * 255]
    pages = [page(id, locale=code) for id, code in enumerate(codes)]
    api = make_api({"locales": codes, "pages": pages}, config={"CMS_I18N_ENABLED": True})
    for id, code in enumerate(codes):
        asked = {"locale": code, "fields": "_,id"}
        # Without sites, only the first page and what is below it is a home with its language.
        assert api.ids("pages/", query_string=asked) == [id]


VALUES: dict[str, list[Any]] = {
    "choice": ["a,b", " a", "_", "*"],
    "link": ["https://x.example/?a=1,2&b=%20#c"],
    "key": [str(uuid.UUID(int=0)), str(uuid.UUID(int=2**128 - 1))],
    "address": ["fe80::1/64", str(ipaddress.ip_interface("192.0.2.1/24"))],
    "size": ["S,M", "L "],
    "whole": [-(2**63), -1, 0, 2**63 - 1],
    "ratio": [5e-324, 1.7976931348623157e308, -1e22, 0.1, 0.30000000000000004, 1e-7],
    "price": ["1e-30", "9" * 30 + "." + "9" * 30, "-0.5", "1e3"],
    "round": ["4.50", "9" * 30 + ".99"],
    "is_open": ["true"],
    "day": ["0001-01-01", "9999-12-31"],
    "clock": ["00:00:00.000001", "23:59:59.999999"],
    "moment": ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"],
    "picture": [0, 2**63 - 1],
    "हिन्दी": ["x"],
    "a·b": ["x"],
    "_": ["x"],
    "random": ["x"],
    "limit": ["x"],
}
#: The keys that show fields whose own name means something else.
SHOWN = {"_": "underscore", "random": "chance", "limit": "most"}


@pytest.fixture(scope="module")
def odd(make_api: MakeAPI) -> API:
    """A page for each of the values."""
    numbered = enumerate((name, value) for name, values in VALUES.items() for value in values)
    pages = [page(id, type="odd.Odd", **{field: value}) for id, (field, value) in numbered]
    for record in pages:
        record["is_open"] = record.get("is_open") == "true"
    images = [image(0), image(2**63 - 1)]
    return make_api({"pages": pages, "images": images}, types=[Odd])


@pytest.mark.parametrize("field", VALUES)
def test_values_can_be_asked_for_as_written(odd: API, field: str) -> None:
    first = [name for name, values in VALUES.items() for _ in values].index(field)
    key = SHOWN.get(field, field)
    for id, value in enumerate(VALUES[field], first):
        asked = {"type": "odd.Odd", key: value, "fields": f"_,id,{key}", "order": f"-{key},id"}
        ((found),) = odd.items("pages/", query_string=asked)
        assert found["id"] == id
        shown = found[key]["id"] if field == "picture" else found[key]
        if field != "is_open":
            assert odd.ids("pages/", query_string={**asked, key: str(shown)}) == [id]


@pytest.mark.parametrize("id", [0, 2**63 - 1])
def test_ids_can_be_asked_for(odd: API, id: int) -> None:
    assert odd.json(f"images/{id}/")["id"] == id
    assert odd.ids(f"images/?id={id}") == [id]
    assert odd.get(f"images/find/?id={id}").status_code == 302


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_cannot_be_written_are_missing(make_api: MakeAPI, value: float) -> None:
    api = make_api({"pages": [page(1, type="odd.Odd", ratio=value)]}, types=[Odd])
    assert api.json("pages/1/?fields=_,ratio") == {"ratio": None}


#: Fields with values that no query could name, and what is said about them.
REFUSED: dict[str, tuple[str, Any, str]] = {
    "a tag with a comma": (
        "tags",
        ["chips", "fish, chips"],
        "must be tags without commas, which separate tags in queries; write 'fish, chips' as "
        "several tags, or without the comma",
    ),
    "a tag too long": ("tags", ["x" * 1001], "must be tags of at most 1,000 characters"),
    "a tag with a NUL": ("tags", ["\0"], "must be text without NUL characters"),
    "a tag that is no UTF-8": ("tags", ["\ud800"], "must be text without half surrogate pairs"),
    "a text with a NUL": ("text", "\0", "must be text without NUL characters"),
    "a text that is no UTF-8": ("text", "\udc00", "must be text without half surrogate pairs"),
    "an empty slug": ("slug", "", "must be one part of an address, without a slash"),
    "a slug with a slash": ("slug", "a/b", "must be one part of an address, without a slash"),
    "a slug that is a dot": ("slug", ".", "must be one part of an address, without a slash"),
    "a slug that is two dots": ("slug", "..", "must be one part of an address, without a slash"),
    "a slug too long": ("slug", "x" * 1001, "must be at most 1,000 characters"),
    "an empty language": (
        "locale",
        "",
        "must be the code of a language, as en, of at most 255 characters",
    ),
    "an id below zero": ("id", -1, "must be from 0 on"),
    "an id too large": ("id", 2**63, "must be an integer of at most 64 bits"),
    "an integer too large": ("whole", 2**63, "must be an integer of at most 64 bits"),
    "a float too large": ("ratio", 10**400, "must be a number that fits 64 bits"),
    "a decimal that is none": ("price", "NaN", 'must be a decimal number, such as "4.50"'),
    "a decimal too exact": (
        "round",
        "0.001",
        "must be a decimal with at most 30 digits before the point and 2 after it",
    ),
    "a day out of range": ("day", "0000-01-01", "must be a date of the calendar"),
    "a day beyond": ("day", "10000-01-01", "must be a date, such as 2026-01-15"),
    "an instant beyond": ("moment", "9999-12-31T23:59:59-01:00", "must be an instant"),
}


@pytest.fixture(scope="module")
def refusing(make_api: MakeAPI) -> API:
    """A site that is to keep its page."""
    return make_api({"pages": [page(1, type="odd.Odd")]}, types=[Odd])


@on_memory
@pytest.mark.parametrize("kind", REFUSED)
def test_what_no_query_could_name_is_refused(refusing: API, kind: str) -> None:
    field, value, message = REFUSED[kind]
    record: Record = {**page(7, type="odd.Odd"), field: value}
    with pytest.raises(ContentError) as raised:
        refusing.load({"pages": [record]})
    where = f"pages {value if field == 'id' else 7}"
    assert [str(problem) for problem in raised.value.problems] == [f"{where}, {field}: {message}"]
    assert refusing.ids("pages/") == [1]


@on_writable
@pytest.mark.parametrize("kind", [kind for kind in REFUSED if not kind.startswith("an id")])
def test_what_no_query_could_name_is_not_written(refusing: API, kind: str) -> None:
    field, value, message = REFUSED[kind]
    with pytest.raises(ContentError) as raised, writing(refusing) as writer:
        writer.update("pages", 1, **{field: value})
    assert [str(problem) for problem in raised.value.problems] == [f"pages 1, {field}: {message}"]


def test_an_endpoint_can_have_any_name_in_python(make_api: MakeAPI) -> None:
    name = "लोग"
    people = type("Person", (Entry,), {"app_label": "odd", "endpoint": name})
    api = make_api({name: [{"id": 1}]}, types=[people])
    assert unquote(api.items(f"{name}/")[0]["meta"]["detail_url"]).endswith(f"/{name}/1/")
    assert api.status(f"{name}/1/") == 200


def named(**attributes: Any) -> type[Page]:
    """A page type with some attributes."""
    return type(attributes.pop("name", "Page"), (Page,), {"app_label": "odd", **attributes})


#: Types that could not be named, or whose fields could not, and what is said about them.
UNNAMEABLE = {
    "a label with a comma": (
        named(name="Fish,Chips"),
        "Fish,Chips has the label 'odd.Fish,Chips', which type= cannot name because of the comma",
    ),
    "a key with brackets": (named(api_fields=[APIField("a(b)", source="title")]), "'a(b)'"),
    "a key with a comma": (named(api_fields=[APIField("a,b", source="title")]), "'a,b'"),
    "a key with a minus": (named(api_fields=[APIField("-a", source="title")]), "'-a'"),
    "a key that is a star": (named(api_fields=[APIField("*", source="title")]), "'*'"),
    "a key that is a low line": (
        named(api_fields=[APIField("_", fields.Function(lambda page: 1))]),
        "has '_', which means something else in fields and order; take another",
    ),
    "a key that is a parameter": (
        named(api_fields=["limit"], limit=fields.Integer()),
        "shows 'limit', which is a query parameter",
    ),
    "a key that is an order": (
        named(api_fields=["random"], random=fields.Integer()),
        "has 'random', which means something else in fields and order; take another",
    ),
}


@pytest.mark.parametrize("kind", UNNAMEABLE)
def test_declarations_can_be_named(kind: str) -> None:
    declared, message = UNNAMEABLE[kind]
    with pytest.raises(DeclarationError) as raised:
        ContentAPI(Flask("site"), types=[declared])
    assert message in str(raised.value)

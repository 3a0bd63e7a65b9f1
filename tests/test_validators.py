"""Validators: an answer has an ``ETag``, and a client that has the answer gets a 304."""

from __future__ import annotations

import operator
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from time import process_time
from typing import Any

import pytest
from flask import Flask
from flask_compress import Compress
from hypothesis import given, settings
from hypothesis import strategies as st
from marshmallow import fields
from werkzeug.test import TestResponse

from flask_contentapi import (
    APIField,
    APIFilter,
    Blocks,
    ChildObject,
    Children,
    ContentAPI,
    Entry,
    Page,
    PageURLs,
    Related,
    RichText,
)
from flask_contentapi_peewee import PeeweeBackend
from tests.api import API
from tests.conftest import MakeAPI
from tests.edits import (
    CONTENT,
    EDITS,
    NOW,
    TYPES,
    Edit,
    answers,
    can_view,
    change,
    edited,
    random_edits,
)
from tests.pages import ROOT
from tests.samples import image, page, private
from tests.sites import make_site
from tests.stores import on_all, on_memory

pytestmark = on_memory

CONFIG = {"CMS_I18N_ENABLED": True}
#: An address for each view that has validators.
PATHS = ["pages/", "pages/?fields=*", "pages/3/", "images/", "images/1/", "people/?fields=page(*)"]


@pytest.fixture(scope="module")
def api(make_api: MakeAPI) -> API:
    """A site whose content tests change, with restrictions that viewers can pass."""
    return make_api(types=TYPES, config=CONFIG, can_view=can_view, clock=lambda: NOW)


@pytest.fixture(scope="module")
def open_api(make_api: MakeAPI) -> API:
    """A site whose content never changes, and is the same for all viewers."""
    return make_api(CONTENT, types=TYPES, config=CONFIG, clock=lambda: NOW)


def etag(api: API, path: str, **options: Any) -> str:
    """The ETag of an answer."""
    return api.get(path, **options).headers["ETag"]


def ask(api: API, path: str, tags: str, **options: Any) -> TestResponse:
    """The answer to a client that has answers with some ETags."""
    headers = {"If-None-Match": tags, **options.pop("headers", {})}
    return api.get(path, headers=headers, **options)


# What changes ETags.


@pytest.mark.slow
@on_all
@settings(max_examples=8)
@given(edits=st.lists(random_edits, min_size=3, max_size=3))
def test_a_tag_stands_for_one_answer(api: API, edits: list[Edit]) -> None:
    content = CONTENT
    api.load(content)
    shown: dict[tuple[Any, str], Any] = {}
    for edit in edits:
        before, content = content, edited(content, edit)
        change(api, before, content)
        for address, answer in answers(api).items():
            if answer.etag is not None:
                assert shown.setdefault((address, answer.etag), answer.shown) == answer.shown


def test_different_addresses_have_different_tags(open_api: API) -> None:
    paths = [*PATHS, "pages/?limit=3", "pages/?limit=4", "pages/3/?fields=title"]
    assert len({etag(open_api, path) for path in paths}) == len(paths)


def test_hosts_and_places_have_tags_of_their_own(open_api: API) -> None:
    path = "/api/v2/pages/3/"
    client = open_api.app.test_client()
    places = ["http://localhost/", "https://localhost/", "http://localhost:81/"]
    places += ["http://other.example/", "http://localhost/below/"]
    found = [client.get(f"{path}?site=localhost", base_url=place) for place in places]
    assert len({response.headers["ETag"] for response in found}) == len(places)
    assert len({response.data for response in found}) == len(places)


# What does not change ETags.


@on_all
def test_a_tag_stays_while_nothing_changes(open_api: API) -> None:
    for path in PATHS:
        assert etag(open_api, path) == etag(open_api, path)


@pytest.mark.parametrize(
    "headers",
    [
        {"Accept": "text/html"},
        {"Accept-Language": "fr"},
        {"User-Agent": "x", "Referer": "http://localhost/"},
        {"Cookie": "a=b"},
        {"Authorization": "Bearer x"},
        {"If-Modified-Since": "Sat, 29 Oct 2044 19:43:31 GMT"},
        {"Cache-Control": "no-cache"},
        {"Host": "LocalHost"},
    ],
)
def test_headers_that_shape_nothing_change_no_tag(open_api: API, headers: dict[str, str]) -> None:
    for path in PATHS:
        assert etag(open_api, path, headers=headers) == etag(open_api, path)


def again(api: API, types: Any = TYPES, /, **options: Any) -> API:
    """Another application that serves the same content, from the same place if it is persistent."""
    app = Flask("site")
    app.config.update(CONFIG, CMSAPI_BACKEND=api.app.config["CMSAPI_BACKEND"])
    app.config.update(options.pop("config", {}))
    ContentAPI(app, types=types, **{"clock": lambda: NOW, **options})
    found = API(app, app.config.get("CMSAPI_URL_PREFIX", "/api/v2"))
    if not found.backend.persistent:
        found.load(api.dump())
    return found


@on_all
def test_each_application_has_the_same_tags(open_api: API) -> None:
    other = again(open_api)
    for path in PATHS:
        assert etag(other, path) == etag(open_api, path)


def test_how_long_answers_are_kept_changes_no_tag(open_api: API) -> None:
    config = {"CMSAPI_CACHE_MAX_AGE": 60, "CMSAPI_CACHE_STALE_WHILE_REVALIDATE": 5}
    assert etag(again(open_api, config=config), "pages/") == etag(open_api, "pages/")


@on_all
def test_reading_the_content_anew_changes_no_tag(make_api: MakeAPI) -> None:
    api = make_api(CONTENT, types=TYPES)
    before = etag(api, "pages/")
    api.backend.reload()
    assert etag(api, "pages/") == before


@pytest.mark.backends("memory", "jsonfiles")
def test_the_same_content_has_the_same_tags(backend: str) -> None:
    api = API(make_site(backend, CONTENT, TYPES))
    before = etag(api, "pages/")
    api.load(CONTENT)
    assert etag(api, "pages/") == before


_PROCESS = """
from tests.api import API
from tests.edits import CONTENT, TYPES
from tests.sites import make_site
print(API(make_site("memory", CONTENT, TYPES)).get("pages/?search=storm").headers["ETag"])
"""


@pytest.mark.slow
def test_each_process_has_the_same_tags() -> None:
    said = set()
    for seed in "12":
        environment = {
            **os.environ,
            "PYTHONHASHSEED": seed,
            "PYTHONPATH": f"{ROOT}:{ROOT}/backends",
        }
        command = [sys.executable, "-c", _PROCESS]
        said.add(subprocess.check_output(command, env=environment, cwd=ROOT))
    assert len(said) == 1


# Settings and declarations.


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("CMSAPI_BASE_URL", "https://api.example"),
        ("CMSAPI_MEDIA_URL", "/files/"),
        ("CMSAPI_LIMIT_MAX", 3),
        ("CMSAPI_SEARCH_ENABLED", False),
        ("CMSAPI_STOP_WORDS", ["storm"]),
        ("CMSAPI_URL_PREFIX", "/api"),
        ("CMSAPI_RELEASE", "2"),
        ("CMSAPI_CACHE_TAG_HEADER", "Cache-Tag"),
        ("CMS_I18N_ENABLED", False),
    ],
)
def test_settings_that_shape_answers_change_tags(open_api: API, key: str, value: Any) -> None:
    other = again(open_api, config={key: value})
    for path in PATHS:
        assert etag(other, path) != etag(open_api, path)


class Abroad(PageURLs):
    """Addresses that start with a text."""

    def __init__(self, start: str = "") -> None:
        self.start = start

    def build(self, *args: Any) -> str | None:
        return f"{self.start}/{super().build(*args)}"


def test_how_addresses_are_made_changes_tags(open_api: API) -> None:
    makers = [None, Abroad(), Abroad("x"), Abroad("y")]
    found = [again(open_api, page_urls=maker) for maker in makers]
    assert len({etag(api, "pages/3/") for api in found}) == len(makers)


class Part(ChildObject):
    app_label = "site"
    name = fields.String()
    note = fields.String()
    api_fields = ["name"]


class LongPart(Part):
    api_fields = ["note", "name"]


def loud(mark: str) -> fields.String:
    """A field with its own way of writing."""

    class Loud(fields.String):
        def _serialize(self, value: Any, *args: Any, **kwargs: Any) -> Any:
            return f"{value}{mark}"

    return Loud()


def adder(number: int) -> Callable[[Any], Any]:
    return lambda page: page.id + number


def text_page(**own: Any) -> type[Page]:
    """A page type with some attributes replaced."""
    declared = {
        "app_label": "site",
        "text": fields.String(),
        "other": fields.String(),
        "rich": RichText(),
        "day": fields.Date(),
        "near": Related("pages"),
        "blocks": Blocks({"image": Related("images"), "shout": str.upper}),
        "parts": Children(Part),
        "number": property(lambda page: page.id + 1),
        "api_fields": ["text", "day", "near", "blocks", "parts", computed(adder(1))],
        "search_fields": ["text"],
        "api_filters": [APIFilter("from_day", "day", "ge")],
        "__module__": __name__,
    }
    return type("TextPage", (Page,), {**declared, **own})


def computed(function: Callable[[Any], Any]) -> APIField:
    return APIField("made", fields.Function(function))


def shown(*entries: str | APIField) -> dict[str, Any]:
    return {"api_fields": entries}


def numbered(number: Any) -> dict[str, Any]:
    """A key that shows the attribute ``number`` of the class."""
    return {**shown(APIField("number", fields.Integer())), "number": number}


LOUD, LOUDER = loud("!"), loud("?")


def voices(*written: fields.String) -> dict[str, Any]:
    """Keys that show the same text, each written by another field."""
    return shown(*(APIField(f"v{n}", f, source="text") for n, f in enumerate(written)))


DECLARATIONS: dict[str, dict[str, Any]] = {
    "shown: more": shown("text", "day", "near", "blocks", "parts", computed(adder(1)), "other"),
    "shown: less": shown("text"),
    "shown: in another order": shown("day", "text"),
    "shown: from another field": shown(APIField("text", source="other")),
    "shown: by another class": voices(LOUD),
    "shown: by still another class": voices(LOUDER),
    "shown: by two classes": voices(LOUD, LOUDER, LOUD),
    "shown: by two other classes": voices(LOUD, LOUDER, LOUDER),
    "shown: in another format": shown(APIField("day", fields.Date(format="%d %m"))),
    "shown: in still another format": shown(APIField("day", fields.Date(format="%m %d"))),
    "computed: a constant": shown(APIField("made", fields.Constant(1))),
    "computed: another constant": shown(APIField("made", fields.Constant(2))),
    "computed: otherwise": shown(computed(lambda page: page.title.upper())),
    "computed: by another method": shown(computed(lambda page: page.title.lower())),
    "computed: by another number": shown(computed(lambda page: page.id + 1)),
    "computed: by still another number": shown(computed(lambda page: page.id + 2)),
    "computed: from a closure": shown(computed(adder(2))),
    "computed: from another closure": shown(computed(adder(3))),
    "computed: from an argument": shown(computed(partial(operator.add, 2))),
    "computed: from another argument": shown(computed(partial(operator.add, 3))),
    "computed: by a property": numbered(property(lambda page: page.id + 2)),
    "computed: by another property": numbered(property(lambda page: page.id + 3)),
    "computed: once": numbered(cached_property(lambda page: page.id + 2)),
    "computed: once otherwise": numbered(cached_property(lambda page: page.id + 3)),
    "computed: from nothing": numbered(staticmethod(lambda: 2)),
    "computed: from nothing else": numbered(staticmethod(lambda: 3)),
    "computed: by a method": numbered(lambda page: 2),
    "computed: by the class": {**shown(computed(str)), "__str__": lambda page: "2"},
    "computed: by the class otherwise": {**shown(computed(str)), "__str__": lambda page: "3"},
    "default: of a list": {"listing_default_fields": ["id", "title"]},
    "default: of what is embedded": {"nested_default_fields": ["id"]},
    "default: of a field": {"text": fields.String(load_default="x")},
    "embedded: always in one form": {"near": Related("pages", shown="id")},
    "embedded: of one site": {"near": Related("pages", within_site=True)},
    "embedded: children": {"parts": Children(LongPart)},
    "blocks: without objects": {"blocks": Blocks({"shout": str.upper})},
    "blocks: otherwise": {"blocks": Blocks({"shout": lambda text: text[::-1]})},
    "search: more": {"search_fields": ["text", "rich"]},
    "filters: other": {"api_filters": [APIFilter("from_day", "day", "gt")]},
    "label: other": {"app_label": "other"},
}
_TEXTS = {"pages": [page(1, type="site.TextPage")]}


def declared_etag(**own: Any) -> str:
    """The ETag of a list whose type is declared in some way."""
    return etag(API(make_site("memory", _TEXTS, [text_page(**own)])), "pages/?fields=*")


def test_the_same_declarations_have_the_same_tags() -> None:
    assert declared_etag() == declared_etag()


@pytest.mark.slow
def test_each_declaration_has_tags_of_its_own() -> None:
    found = {name: declared_etag(**own) for name, own in DECLARATIONS.items()}
    assert len({declared_etag(), *found.values()}) == len(DECLARATIONS) + 1


def test_the_order_in_which_types_are_given_changes_no_tag() -> None:
    class Other(Page):
        app_label = "site"

    types: list[type[Entry]] = [text_page(), Other]
    first, second = (API(make_site("memory", _TEXTS, order)) for order in (types, types[::-1]))
    assert etag(first, "pages/") == etag(second, "pages/")


def test_in_development_each_start_has_tags_of_its_own() -> None:
    found = [API(make_site("memory", CONTENT, TYPES, config={"DEBUG": True})) for _ in range(2)]
    assert len({etag(api, "pages/") for api in found}) == 2


# Clients that have the answer.


@pytest.mark.parametrize("given", ['"{}"', 'W/"{}"', '"x", "{}"', 'W/"x",W/"{}"', ' "{}" ', "*"])
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_who_has_the_answer_is_told_so(open_api: API, path: str, given: str, method: str) -> None:
    answer = open_api.get(path)
    tag, _ = answer.get_etag()
    response = ask(open_api, path, given.format(tag), method=method)
    assert response.status_code == 304
    assert response.data == b""
    assert response.get_etag()[0] == tag
    assert response.headers["Cache-Control"] == answer.headers["Cache-Control"]
    assert not {"Content-Type", "Content-Length"} & {*response.headers.keys()}


@pytest.mark.parametrize("given", ["", '"x"', '"x{}"', '"{}x"', 'W/"x"', '"{}:gzip"', '"', "W/"])
@pytest.mark.parametrize("path", PATHS)
def test_who_has_another_answer_gets_this_one(open_api: API, path: str, given: str) -> None:
    answer = open_api.get(path)
    response = ask(open_api, path, given.format(answer.get_etag()[0]))
    assert (response.status_code, response.data) == (200, answer.data)
    assert response.headers["ETag"] == answer.headers["ETag"]


def test_tags_of_other_addresses_do_not_count(open_api: API) -> None:
    tags = ", ".join(etag(open_api, path) for path in PATHS[1:])
    assert ask(open_api, PATHS[0], tags).status_code == 200


@on_all
def test_who_has_the_answer_of_before_gets_the_new_one(api: API) -> None:
    api.load(CONTENT)
    before = {path: etag(api, path) for path in PATHS}
    change(api, CONTENT, edited(CONTENT, EDITS["page: title"]))
    for path, tag in before.items():
        response = ask(api, path, tag)
        assert (response.status_code, response.data) == (200, api.get(path).data)
        assert ask(api, path, response.headers["ETag"]).status_code == 304


@contextmanager
def counted(api: API) -> Iterator[list[str]]:
    """Collects the statements that a database runs meanwhile."""
    statements: list[str] = []
    backend = api.backend
    databases = set()
    if isinstance(backend, PeeweeBackend):
        databases = {backend.engine.database, backend.engine.reading}
    hook = lambda event: statements.append(event.sql)  # noqa: E731 - removed again below
    for database in databases:
        database.query_hooks.append(hook)
    yield statements
    for database in databases:
        database.query_hooks.remove(hook)


def forbid_reading(api: API, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes reading content fail."""

    def refuse(*args: Any) -> None:
        raise AssertionError("content was read")

    with api.app.app_context(), api.backend.reader() as reader:
        for name in ("select", "fetch", "get"):
            monkeypatch.setattr(type(reader), name, refuse)


@on_all
@pytest.mark.parametrize("path", PATHS)
def test_who_has_the_answer_costs_no_content(
    api: API, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.load(CONTENT)
    tag = etag(api, path)
    forbid_reading(api, monkeypatch)
    with counted(api) as statements:
        assert ask(api, path, tag).status_code == 304
    assert len(statements) <= 1


# Restricted answers.


@pytest.mark.parametrize(
    "path",
    [
        *("pages/6/", "pages/8/", "pages/9/", "pages/10/", "pages/99/", "pages/x/"),
        *("images/3/", "images/9/", "documents/2/", "x/", "pages/3/x/"),
        *(
            "pages/?limit=x",
            "pages/?x=1",
            "pages/?child_of=6",
            "pages/?site=x",
            "pages/3/?fields=x",
        ),
        *("pages/find/?html_path=/p6/", "pages/find/?id=9", "pages/find/?id=3"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_what_is_no_answer_is_never_known(open_api: API, path: str, method: str) -> None:
    plain = open_api.get(path, method=method)
    assert plain.status_code in (302, 400, 404)
    assert "ETag" not in plain.headers
    for tags in ("*", etag(open_api, "pages/3/"), f"*, {etag(open_api, 'pages/')}"):
        response = ask(open_api, path, tags, method=method)
        assert (response.status_code, response.data) == (plain.status_code, plain.data)
        assert "ETag" not in response.headers


@on_all
@pytest.mark.parametrize(
    ("edit", "path"),
    [
        ("page: hidden", "pages/4/"),
        ("page: restricted", "pages/3/"),
        ("page: ends", "pages/11/"),
        ("page: moved below a private one", "pages/4/"),
        ("page: moved out of the site", "pages/4/"),
        ("page: deleted", "pages/4/"),
        ("page: home is no translation", "pages/14/"),
        ("page: hidden", "pages/?child_of=4"),
        ("image: hidden", "images/1/"),
        ("image: deleted", "images/1/"),
        ("collection: restricted", "images/1/"),
        ("document: deleted", "documents/1/"),
    ],
)
def test_what_is_hidden_now_is_not_known_any_more(api: API, edit: str, path: str) -> None:
    api.load(CONTENT)
    tag = etag(api, path)
    change(api, CONTENT, edited(CONTENT, EDITS[edit]))
    plain = api.get(path)
    assert plain.status_code in (400, 404)
    for tags in (tag, "*"):
        response = ask(api, path, tags)
        assert (response.status_code, response.data) == (plain.status_code, plain.data)


INSIDE = {"X-Open": "login"}


@pytest.mark.parametrize("path", ["pages/9/", "images/3/", "documents/2/"])
def test_the_tag_of_who_is_let_in_is_none_for_others(api: API, path: str) -> None:
    api.load(CONTENT)
    tag = etag(api, path, headers=INSIDE)
    assert ask(api, path, tag, headers=INSIDE).status_code == 304
    assert ask(api, path, tag).status_code == 404
    assert ask(api, path, tag, headers={"X-Open": "groups"}).status_code == 404


@pytest.mark.parametrize("path", PATHS)
def test_who_sees_something_private_shares_it_with_nobody(api: API, path: str) -> None:
    api.load(CONTENT)
    inside, outside = (api.get(path, headers=headers) for headers in (INSIDE, {}))
    assert inside.headers["ETag"] != outside.headers["ETag"]
    assert inside.cache_control.private
    assert outside.cache_control.public
    known = ask(api, path, inside.headers["ETag"], headers=INSIDE)
    for response in (inside, outside, known):
        assert response.headers["Vary"] == "Cookie, Authorization"
    assert known.headers["Cache-Control"] == inside.headers["Cache-Control"]


@pytest.mark.parametrize("opened", ["login", "groups"])
def test_each_thing_that_is_shown_makes_an_answer_private(make_api: MakeAPI, opened: str) -> None:
    content = {
        "collections": [{"id": 1, "restriction": private("groups")}],
        "pages": [page(1), page(2, 1, restriction=private("login"))],
        "images": [image(1, collection=1), image(2)],
    }
    api = make_api(content, can_view=can_view)
    for path in ("pages/", "images/"):
        inside, outside = (api.get(path, headers=h) for h in ({"X-Open": opened}, {}))
        assert inside.cache_control.private
        assert inside.headers["ETag"] != outside.headers["ETag"]


def test_who_is_let_in_alike_has_the_same_tag(api: API) -> None:
    api.load(CONTENT)
    visitors = [{"Cookie": f"session={n}", **INSIDE} for n in range(2)]
    assert len({etag(api, "pages/", headers=headers) for headers in visitors}) == 1


def test_where_all_see_the_same_nothing_varies(open_api: API) -> None:
    response = open_api.get("pages/3/", headers=INSIDE)
    assert "Vary" not in response.headers
    assert response.cache_control.public


# HEAD and compression.


@pytest.mark.parametrize("path", [*PATHS, "pages/?order=random", "pages/99/", "pages/find/?id=3"])
def test_head_is_get_without_a_body(open_api: API, path: str) -> None:
    head, answer = (open_api.get(path, method=method) for method in ("HEAD", "GET"))
    assert (head.status_code, head.data) == (answer.status_code, b"")
    del answer.headers["Content-Length"]
    head.headers.pop("Content-Length", None)
    assert dict(head.headers) == dict(answer.headers)


@pytest.fixture(scope="module")
def compressed(make_api: MakeAPI) -> API:
    """A site that compresses its answers."""
    api = make_api(CONTENT, types=TYPES, config=CONFIG, clock=lambda: NOW)
    Compress(api.app)
    return api


@pytest.mark.parametrize("coding", ["gzip", "br", "deflate", "zstd"])
def test_a_compressed_answer_is_known(compressed: API, coding: str) -> None:
    headers = {"Accept-Encoding": coding}
    answer = compressed.get("pages/?fields=*", headers=headers)
    assert answer.headers["Content-Encoding"] == coding
    response = ask(compressed, "pages/?fields=*", answer.headers["ETag"], headers=headers)
    assert response.status_code == 304
    assert response.headers["ETag"] == answer.headers["ETag"]
    assert "Accept-Encoding" in response.headers["Vary"]
    assert response.data == b""


def test_who_does_not_take_a_coding_has_not_the_answer(compressed: API) -> None:
    tag = etag(compressed, "pages/?fields=*", headers={"Accept-Encoding": "gzip"})
    for coding in ("br", "identity"):
        headers = {"Accept-Encoding": coding}
        assert ask(compressed, "pages/?fields=*", tag, headers=headers).status_code == 200


def test_tags_of_other_compressors_are_known(open_api: API) -> None:
    tag, _ = open_api.get("pages/").get_etag()
    for tags in (f'"{tag}-gzip"', f'W/"{tag}"', f'"{tag};gzip"'):
        response = ask(open_api, "pages/", tags, headers={"Accept-Encoding": "gzip, br"})
        assert response.status_code == 304
        assert response.headers["ETag"] == tags


@pytest.mark.parametrize(
    ("accepted", "status"),
    [
        ("gzip", 304),
        ("GZIP;q=0.1", 304),
        ("*", 304),
        ("gzip;q=0, *", 200),
        ("*;q=0, gzip", 304),
        ("br, *;q=0", 200),
        ("", 200),
    ],
)
def test_codings_are_accepted_as_named(open_api: API, accepted: str, status: int) -> None:
    tag, _ = open_api.get("pages/").get_etag()
    tags = f'"{tag}:zstd", "{tag}:gzip"' if "*" not in accepted else f'"{tag}:gzip"'
    headers = {"Accept-Encoding": accepted}
    assert ask(open_api, "pages/", tags, headers=headers).status_code == status


def test_long_headers_take_no_longer(open_api: API) -> None:
    tag, _ = open_api.get("pages/").get_etag()
    tags = ", ".join(f'"{tag}:x{n}"' for n in range(5000))
    headers = {"Accept-Encoding": ", ".join(f"y{n}" for n in range(5000))}
    start = process_time()
    assert ask(open_api, "pages/", tags, headers=headers).status_code == 200
    assert process_time() - start < 1


@pytest.mark.parametrize("coding", [":", ":*", ":GZIP", ": gzip", ":\x01", f":{'x' * 21}", "gzip"])
def test_a_coding_is_a_word(open_api: API, coding: str) -> None:
    tag, _ = open_api.get("pages/").get_etag()
    response = ask(open_api, "pages/", f'"{tag}{coding}"', headers={"Accept-Encoding": "*"})
    assert response.status_code == 200
    assert response.get_etag() == (tag, False)


@pytest.mark.parametrize("tags", ['""', 'W/""', '"x", "", "y"', "", ",", '"'])
def test_tags_that_are_none_are_not_known(open_api: API, tags: str) -> None:
    for path in (*PATHS, "pages/find/?id=3"):
        assert ask(open_api, path, tags).status_code in (200, 302)


def test_a_change_is_seen_through_compression(make_api: MakeAPI) -> None:
    api = make_api(CONTENT, types=TYPES)
    Compress(api.app)
    headers = {"Accept-Encoding": "gzip"}
    tag = etag(api, "pages/?fields=*", headers=headers)
    change(api, CONTENT, edited(CONTENT, EDITS["page: title"]))
    assert ask(api, "pages/?fields=*", tag, headers=headers).status_code == 200
    assert ask(api, "pages/6/", "*", headers=headers).status_code == 404


def test_head_is_get_without_a_body_through_compression(compressed: API) -> None:
    headers = {"Accept-Encoding": "gzip"}
    head, answer = (
        compressed.get("pages/?fields=*", method=method, headers=headers)
        for method in ("HEAD", "GET")
    )
    assert dict(head.headers) == dict(answer.headers)

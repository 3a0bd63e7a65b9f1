"""Every request is answered: never a 500, never HTML under the prefix, never without limits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from hypothesis import example, given
from hypothesis import strategies as st
from marshmallow import fields
from werkzeug.datastructures import Headers
from werkzeug.test import create_environ, run_wsgi_app

from flask_contentapi import Page, Related
from tests.api import API, PREFIX
from tests.conformance.reference_site import TYPES
from tests.conftest import MakeAPI, MakeApp
from tests.samples import image, page, site
from tests.stores import on_memory, on_two

pytestmark = on_two

#: The maximum length of an error. It quotes what was wrong, at most the query string.
LONGEST_ERROR = 60_000


@pytest.fixture(scope="module", params=[{}, {"CMS_I18N_ENABLED": True, "CMSAPI_LIMIT_MAX": None}])
def app(
    request: pytest.FixtureRequest, make_app: MakeApp, reference_content: Mapping[str, Any]
) -> Flask:
    return make_app(reference_content, config=request.param)


def ask(app: Flask, **environ: str) -> tuple[int, Headers, bytes]:
    """The answer to a request with any WSGI environment."""
    given = {**create_environ(f"{PREFIX}/", "http://localhost/"), **environ}
    body, status, headers = run_wsgi_app(app, given, buffered=True)
    return int(status.split()[0]), headers, b"".join(body)


def check(app: Flask, **environ: str) -> None:
    """Sends a request and checks the rules for all answers."""
    status, headers, body = ask(app, **environ)
    assert status < 500
    if 300 <= status < 400:
        assert status == 304 or headers["Location"].isascii()
        return
    method = environ.get("REQUEST_METHOD", "GET")
    if method == "HEAD" or (method == "OPTIONS" and status == 200):
        assert body == b""
        return
    assert headers["Content-Type"] == "application/json"
    answer = json.loads(body.decode(), parse_constant=refuse)
    if status >= 400:
        assert answer.keys() == {"message"}
        assert 0 < len(answer["message"]) < LONGEST_ERROR


def refuse(constant: str) -> None:
    """Refuses NaN and infinities, which are not JSON."""
    raise ValueError(constant)


# Pieces of requests, some of which mean something.

# No server passes a line break on, except for a percent-encoded one in a path.
LINES = str.maketrans("", "", "\r\n")
# The form of bytes in WSGI: each byte is the character with its code.
raw = st.binary(max_size=40).map(lambda data: data.decode("latin-1"))
anything = st.text(max_size=30).map(lambda text: text.encode("utf-8", "replace").decode("latin-1"))
NAMES = (
    "limit offset order search search_operator fields type child_of ancestor_of descendant_of site "
    "locale translation_of format html_path id _ title slug show_in_menus first_published_at "
    "published_date rating feed_image tags featured price opens starts_at width alias_of parent "
    "locale __class__ private_note meta.type"
).split()
VALUES = (
    "-1 0 1 2 20 21 9223372036854775807 9223372036854775808 1e999 NaN true false random title "
    "-title * _ *,-title _,title feed_image(*) related_links(link_page(alias_of)) "
    "authors(portrait(_,tags)) ((( ))) , ,, - blog.BlogPage blog.BlogPage,home.HomePage "
    "events.EventPage wagtailcore.Page root localhost localhost:8001 intranet.example en fr xx "
    "storm and OR 2026-01-15 2026-01-15T08:00:00Z 2026-01-15T09:00:00+01:00 9999-12-31T23:59:59-23 "
    "%00 %FF %ED%A0%80 %F0%9F%9A%A2 %2525 %0D%0A .. /log/storm/ //// null None [] {} '--"
).split()
letters = st.sampled_from([*"%&=;+#?/\\\"'<>()[]{},.-_*:@! \t\r\n\0", "%0", "%zz", "é", "🚢", "٣"])
value = st.one_of(
    st.sampled_from(VALUES),
    st.lists(letters, max_size=12).map("".join),
    st.tuples(st.sampled_from(VALUES), st.integers(1, 500)).map(lambda pair: pair[0] * pair[1]),
    st.integers().map(str),
    st.floats().map(str),
    anything,
)
name = st.sampled_from(NAMES) | anything
pairs = st.lists(st.tuples(name, value).map("=".join), max_size=6).map("&".join)
query_strings = (pairs | raw).map(lambda text: text.translate(LINES).encode().decode("latin-1"))
SEGMENTS = "pages images documents find api v2 10 0 -1 1 99999999999999999999 1e9 0x1 .. . %2e x 7"
segments = st.sampled_from(SEGMENTS.split())
below = st.lists(segments | anything, max_size=5).map("/".join)
slashes = st.sampled_from(["", "/", "//"])
paths = st.tuples(below, slashes).map("".join) | raw
methods = st.sampled_from(
    "GET GET HEAD POST PUT PATCH DELETE OPTIONS TRACE CONNECT PROPFIND get X".split()
)
HOSTS = (
    "localhost LOCALHOST:80 intranet.example a..b . : :80 a:b [::1] [::1]:80 [::1 ::1 [ ] a[b "
    "localhost: localhost:99999 localhost:٣ localhost:80:80 127.0.0.1:8000 é.example xn-- a/b a@b "
    "a?b % <b> - _ localhost. [1:2] [:] a_b:443"
).split()
text_of_headers = (anything | raw).map(lambda text: text.translate(LINES))
LONG = ["x" * 300, "a_" + "b" * 62, "b" * 64]
hosts = st.sampled_from([*HOSTS, *LONG, "", "a b", "a\tb"]) | text_of_headers
PAGES, LISTS = f"{PREFIX}/pages/", st.sampled_from(["pages/", "images/", "documents/"])


@given(query=query_strings, path=LISTS | st.sampled_from(["pages/10/", "pages/find/", "images/1/"]))
@example(query="fields=" + "a(" * 2000, path="pages/")
@example(query="fields=" + "related_links(link_page(" * 5 + "*" + "))" * 5, path="pages/10/")
@example(query="fields=" + ",".join(["title"] * 800), path="pages/")
@example(query="order=" + ",".join(["title", "-id"] * 400), path="pages/")
@example(query="type=" + ",".join(["blog.BlogPage"] * 300), path="pages/")
@example(query="search=" + "+".join(["storm"] * 600), path="pages/")
@example(query="tags=" + "," * 4000, path="images/")
@example(query="type=blog.BlogPage&rating=1" + "0" * 4000, path="pages/")
@example(query="type=blog.BlogPage&rating=0." + "0" * 4000, path="pages/")
@example(query="&".join(f"x{n}=1" for n in range(2000)), path="pages/")
@example(query="&".join(["type=blog.BlogPage"] * 400), path="pages/")
@example(query="a" * 20_000, path="pages/")
@example(query="html_path=" + "/a" * 5000, path="pages/find/")
@example(query="id=" + "0" * 4090 + "1", path="pages/find/")
@example(query="limit=" + "9" * 4090, path="pages/")
def test_any_query_string_is_answered(app: Flask, query: str, path: str) -> None:
    check(app, PATH_INFO=f"{PREFIX}/{path}", QUERY_STRING=query)


@given(path=paths, query=query_strings, method=methods)
@example(path="pages/" + "9" * 5000 + "/", query="", method="GET")
@example(path="pages/" + "0" * 5000 + "1/", query="", method="GET")
@example(path="/" * 3000, query="", method="GET")
@example(path="a/" * 3000, query="", method="POST")
@example(path="pages\r\nX: y", query="", method="GET")
def test_any_path_is_answered(app: Flask, path: str, query: str, method: str) -> None:
    check(app, PATH_INFO=f"{PREFIX}/{path}", QUERY_STRING=query, REQUEST_METHOD=method)


@on_memory
@given(host=hosts, path=LISTS | paths, query=query_strings)
@example(host="localhost:" + "9" * 5000, path="pages/", query="")
@example(host="a..b", path="pages/", query="")
@example(host="a[b", path="pages/find/", query="id=2")
@example(host="[::1", path="pages", query="")
@example(host="é", path="pages/find/", query="html_path=/")
@example(host=LONG[1], path="pages/find/", query="id=10")
@example(host=LONG[1], path="pages", query="")
def test_any_host_is_answered(app: Flask, host: str, path: str, query: str) -> None:
    check(app, PATH_INFO=f"{PREFIX}/{path}", QUERY_STRING=query, HTTP_HOST=host)


HEADERS = (
    "HTTP_IF_NONE_MATCH HTTP_IF_MODIFIED_SINCE HTTP_IF_MATCH HTTP_RANGE HTTP_ACCEPT HTTP_ORIGIN "
    "HTTP_ACCESS_CONTROL_REQUEST_METHOD HTTP_ACCESS_CONTROL_REQUEST_HEADERS HTTP_COOKIE "
    "HTTP_AUTHORIZATION CONTENT_TYPE CONTENT_LENGTH HTTP_ACCEPT_ENCODING HTTP_X_FORWARDED_HOST "
    "HTTP_X_HTTP_METHOD_OVERRIDE SERVER_NAME SERVER_PORT"
).split()
DATE = "Sat, 29 Oct 1994 19:43:31 GMT"
odd = st.sampled_from(["*", '"x"', 'W/"x"', '"', "bytes=0-1", "0", "-1", DATE])


@on_memory
@given(headers=st.dictionaries(st.sampled_from(HEADERS), odd | text_of_headers), method=methods)
def test_any_header_is_answered(app: Flask, headers: dict[str, str], method: str) -> None:
    check(app, PATH_INFO=PAGES, REQUEST_METHOD=method, **headers)


@given(limit=st.integers(-5, 10**25), offset=st.integers(-5, 10**25), path=LISTS)
def test_no_list_is_longer_than_allowed(app: Flask, limit: int, offset: int, path: str) -> None:
    response = API(app).get(f"{path}?limit={limit}&offset={offset}")
    highest = app.config.get("CMSAPI_LIMIT_MAX", 20)
    allowed = limit >= 0 and offset >= 0 and (highest is None or limit <= highest)
    assert response.status_code == (200 if allowed else 400)
    if allowed:
        assert len(response.get_json()["items"]) <= limit


def brackets(number: int) -> str:
    """A selection with a number of brackets, not nested."""
    return ",".join(["authors(name)"] * number)


@on_memory
@pytest.mark.parametrize("path", ["", "7/"])
def test_brackets_are_counted(client: FlaskClient, path: str) -> None:
    few, many = (client.get(f"{PAGES}{path}?fields={brackets(n)}") for n in (50, 51))
    assert "authors(name)" not in few.text
    assert many.status_code == 400
    assert "there are more than 50 brackets" in many.text


@on_memory
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "X"])
@pytest.mark.parametrize("path", ["pages/", "pages", "nothing/"])
def test_bodies_are_not_read(app: Flask, method: str, path: str) -> None:
    environ: dict[str, Any] = {"wsgi.input": object(), "CONTENT_LENGTH": str(10**9)}
    check(app, PATH_INFO=f"{PREFIX}/{path}", REQUEST_METHOD=method, **environ)


@on_memory
def test_what_is_too_long_is_not_read(client: FlaskClient) -> None:
    response = client.get(f"{PAGES}7/?fields={'x,' * 2100}")
    assert response.get_json() == {"message": "fields is longer than 4096 characters."}


@given(query=query_strings)
def test_the_same_request_is_answered_the_same(app: Flask, query: str) -> None:
    if "random" in query:
        query = query.replace("random", "title")
    first, second = (ask(app, PATH_INFO=PAGES, QUERY_STRING=query) for _ in range(2))
    assert (first[0], first[2]) == (second[0], second[2])


MANY = 130
NUMBERS = {f"n{n}": fields.Integer() for n in range(MANY)}
RELATIONS = {f"image{n}": Related("images") for n in range(MANY)}
#: A type with more fields than any real one.
Wide: type[Page] = type(
    "Wide",
    (Page,),
    {
        **NUMBERS,
        **RELATIONS,
        "__module__": __name__,
        "app_label": "hostile",
        "api_fields": [*NUMBERS, *RELATIONS],
    },
)


@pytest.fixture(scope="module")
def wide(make_api: MakeAPI) -> API:
    values = {**{name: int(name[1:]) for name in NUMBERS}, **dict.fromkeys(RELATIONS, 1)}
    pages = [page(1), {**page(2, 1), "type": "hostile.Wide", **values}]
    images = [image(1, tags=[f"tag{n}" for n in range(MANY)]), image(2, tags=["tag1"])]
    types = [*TYPES, Wide]
    return make_api({"pages": pages, "images": images}, types=types)


@on_memory
@pytest.mark.parametrize("field", ["n{0}={0}", "image{0}=1"])
def test_filters_are_counted(wide: API, field: str) -> None:
    path, *filters = "pages/?type=hostile.Wide&fields=_,id", *map(field.format, range(51))
    assert wide.ids("&".join([path, *filters[1:]])) == [2]
    assert wide.ids("&".join([path, *filters[1:], *filters[1:]])) == [2]
    assert wide.refusal("&".join([path, *filters])) == "The query has more than 50 filters."


def test_details_may_have_many_fields(wide: API) -> None:
    shown = wide.json("pages/2/")
    assert {name: shown[name] for name in NUMBERS} == {n: int(n[1:]) for n in NUMBERS}
    assert wide.json("pages/1/")["title"]


@on_memory
def test_fields_of_an_order_are_counted(wide: API) -> None:
    path = "pages/?type=hostile.Wide&fields=_,id&order="
    order = ",".join(f"n{n},-image{n}" for n in range(10))
    assert wide.ids(path + order) == wide.ids(f"{path}{order},{order}") == [2]
    assert wide.refusal(f"{path}{order},id") == "order has more than 20 different fields."


def test_tags_may_be_many(wide: API) -> None:
    tags = ",".join(f"tag{n}" for n in range(MANY))
    assert wide.ids(f"images/?tags={tags}") == [1]
    assert wide.ids(f"images/?tags={tags},other") == []
    assert wide.ids("images/?tags=tag1") == [1, 2]


def test_tags_may_be_as_many_as_a_query_has_room_for(wide: API) -> None:
    assert wide.ids("images/?tags=" + ",".join(map(str, range(800)))) == []


@pytest.mark.parametrize("i18n", [False, True])
def test_languages_and_sites_may_be_many(make_api: MakeAPI, i18n: bool) -> None:
    names = [f"l{n}" for n in range(MANY)]
    pages = [
        page(n, locale=name, slug=name, translation_key="home") for n, name in enumerate(names, 1)
    ]
    sites = [site(n, f"{name}.example") for n, name in enumerate(names, 1)]
    content = {"locales": names, "sites": sites, "pages": pages}
    api = make_api(content, config={"CMS_I18N_ENABLED": i18n}).at("l7.example")
    assert api.total("pages/") == (MANY if i18n else 1)

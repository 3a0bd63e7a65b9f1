"""Hosts have one normal form, for requests, ``site``, records and settings alike."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from flask import Flask
from hypothesis import given
from hypothesis import strategies as st
from werkzeug.datastructures import Headers
from werkzeug.middleware.proxy_fix import ProxyFix
from werkzeug.test import create_environ, run_wsgi_app

from flask_contentapi.errors import ContentError
from flask_contentapi.sites import Host, read_host
from tests.api import API, PREFIX
from tests.conftest import MakeAPI
from tests.samples import image, page, site
from tests.sites import make_site
from tests.stores import on_memory

pytestmark = on_memory

#: Spellings of hosts by the normal form of their names.
SPELLINGS = {
    "shop.example": ["shop.example", "SHOP.Example", "shop.example.", "ｓhop。example"],
    "xn--bcher-kva.example": [
        *("xn--bcher-kva.example", "XN--BCHER-KVA.example.", "bücher.example", "BÜCHER.example."),
        "bu\u0308cher\uff0eexample",
    ],
    "xn--strae-oqa.example": ["straße.example", "STRAẞE.example", "xn--strae-oqa.example"],
    "xn--pxavbq.example": ["οδοσ.example", "ΟΔΟΣ.example"],
    "[2001:db8::1]": ["[2001:db8::1]", "[2001:DB8:0:0::0001]", "[2001:db8::0.0.0.1]"],
    "front_end": ["front_end", "Front_End."],
}
#: Texts that are no host of an address.
UNUSABLE = [
    *("a_" + "b" * 62, "b" * 64, "ü" * 60, f"x.{'y' * 64}.z", ".".join(["x" * 63] * 4)),
    *("", ".", "a..b", ".a", "a..", "a b", "a\tb", "a/b", "a@b", "%61", "a,b", "<b>", "℀.example"),
    *"[::1 ::1 [1:2] [:] [::1%25eth0] [::1]. [] [v1.a] a:b a:0 a:-1 :80".split(),
    *("a:65536", "a:99999", "a:000080", "a:٨٠", "\u00ad", "\u200d.x", "a" * 5000, "é" * 5000),
    "xn--" + "a" * 60,
]
PATHS = ["pages/", "pages", "pages/1/", "pages/find/?id=2", "images/1/", "none", "a//b", "pages/?x"]


def ask(app: Flask, host: str, path: str = "pages/", **environ: str) -> tuple[str, Headers, bytes]:
    """The answer to a request with any host, in the form that servers pass it in."""
    given = create_environ(f"{PREFIX}/{path}", "http://localhost/")
    given["HTTP_HOST"] = host.encode("utf-8", "surrogateescape").decode("latin-1")
    body, status, headers = run_wsgi_app(app, {**given, **environ}, buffered=True)
    return status, headers, b"".join(body)


def answer(app: Flask, host: str, path: str, **environ: str) -> tuple[Any, ...]:
    """What has to be the same for all spellings of a host."""
    status, headers, body = ask(app, host, path, **environ)
    return status, headers.get("ETag"), headers.get("Location"), body


@pytest.fixture(scope="module")
def shops(make_api: MakeAPI) -> API:
    """A site at each of the hosts, and a default one."""
    pages = [page(n, slug=f"h{n}") for n in range(1, len(SPELLINGS) + 2)]
    sites = [site(n, names[-1], port=80) for n, names in enumerate(SPELLINGS.values(), 2)]
    sites = [site(1, "default.example", is_default=True), *sites]
    return make_api({"sites": sites, "pages": [*pages, page(20, 1)], "images": [image(1)]})


@pytest.mark.parametrize("name", SPELLINGS)
def test_all_spellings_have_one_normal_form(name: str) -> None:
    for text in SPELLINGS[name]:
        assert read_host(text) == (name, None)
        assert read_host(f"{text}:") == (name, None)
        assert read_host(f"{text}:0080") == (name, 80)


@pytest.mark.parametrize("name", SPELLINGS)
def test_all_spellings_get_one_answer(shops: API, name: str) -> None:
    number = [*SPELLINGS].index(name) + 2
    # Not by the client of the tests, which cannot read all names.
    assert f'"items":[{{"id":{number},'.encode() in ask(shops.app, name)[2]
    hosts = [f"{text}{port}" for text in SPELLINGS[name] for port in ("", ":", ":80", ":080")]
    for path in [*PATHS, f"pages/{number}/"]:
        assert len({answer(shops.app, host, path) for host in hosts}) == 1


@pytest.mark.parametrize("name", SPELLINGS)
def test_all_spellings_name_one_site(shops: API, name: str) -> None:
    for text in SPELLINGS[name]:
        assert shops.ids(f"pages/?site={text}") == shops.ids(f"pages/?site={text}:80")
        assert shops.ids(f"pages/?site={text}") == [[*SPELLINGS].index(name) + 2]


def test_sites_are_written_in_their_normal_form(shops: API) -> None:
    assert [one["hostname"] for one in shops.dump()["sites"]] == ["default.example", *SPELLINGS]
    items = [shops.items(f"pages/?site={name}&fields=_,html_url")[0] for name in SPELLINGS]
    assert [item["meta"]["html_url"] for item in items] == [f"http://{n}/" for n in SPELLINGS]


@pytest.mark.parametrize("name", SPELLINGS)
def test_one_host_has_one_site(make_api: MakeAPI, name: str) -> None:
    first, *others = SPELLINGS[name]
    for other in others:
        with pytest.raises(ContentError, match="another site has this host name and port already"):
            make_api({"sites": [site(1, first), site(1, other)], "pages": [page(1)]})


def test_unusable_hosts_are_as_none(shops: API) -> None:
    for path in PATHS:
        assert {answer(shops.app, host, path) for host in UNUSABLE} == {answer(shops.app, "", path)}
    status, _, body = ask(shops.app, UNUSABLE[0], "pages/?fields=_,detail_url")
    assert (status, b'"detail_url":"/api/v2/pages/1/"' in body) == ("200 OK", True)


def test_unusable_hosts_name_no_site(shops: API) -> None:
    said = "There is no site 'a_b..c'."
    assert shops.refusal("pages/?site=a_b..c", 404) == said
    assert shops.refusal(f"pages/?site={'b' * 64}", 404)


@pytest.mark.parametrize("text", UNUSABLE[:10])
def test_unusable_hosts_are_refused_in_records(make_api: MakeAPI, text: str) -> None:
    with pytest.raises(ContentError, match="hostname"):
        make_api({"sites": [site(1, text)], "pages": [page(1)]})


@pytest.mark.parametrize("scheme", ["https", "HTTPS", "Https"])
@pytest.mark.parametrize("host", ["SHOP.example.", "shop.example:443"])
def test_proxies_may_write_schemes_in_capitals(make_api: MakeAPI, scheme: str, host: str) -> None:
    sites = [site(1, "a.example", is_default=True), site(2, "shop.example", port=443)]
    sites += [site(3, "shop.example")]
    app = make_api({"sites": sites, "pages": [page(1), page(2), page(3)]}).app
    app.wsgi_app = ProxyFix(app.wsgi_app, x_host=1)  # type: ignore[method-assign]
    headers = {"HTTP_X_FORWARDED_PROTO": scheme, "HTTP_X_FORWARDED_HOST": host}
    wanted = answer(app, "shop.example", "pages/", **{"wsgi.url_scheme": "https"})
    assert answer(app, "inner:5000", "pages/", **headers) == wanted
    assert b'"detail_url":"https://shop.example/api/v2/pages/2/"' in wanted[-1]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("HTTPS://Shop.Example.:443/CMS/", "https://shop.example/CMS"),
        ("http://bücher.example:80", "http://xn--bcher-kva.example"),
        ("https://xn--BCHER-kva.example:0443/", "https://xn--bcher-kva.example"),
        ("http://[2001:DB8::0001]:8000/a", "http://[2001:db8::1]:8000/a"),
        ("http://front_end:", "http://front_end"),
    ],
)
def test_settings_have_the_normal_form(make_api: MakeAPI, written: str, read: str) -> None:
    content = {"pages": [page(1)], "images": [image(1, file="x.png")]}
    base = make_api(content, config={"CMSAPI_BASE_URL": written})
    assert base.json("pages/1/")["meta"]["detail_url"] == f"{read}/api/v2/pages/1/"
    assert base.get("pages").location == f"{read}/api/v2/pages/"
    media = make_api(content, config={"CMSAPI_MEDIA_URL": written})
    assert media.json("images/1/")["meta"]["download_url"] == f"{read}/x.png"


# Any host.

NAMES = [text for texts in SPELLINGS.values() for text in texts] + UNUSABLE
NAMES += "- _ a.b x-- 127.0.0.1 1 xn-- xn--zzzzzz 💩.example [::ffff:1.2.3.4] [::1] ١ a-".split()
ENDS = ["", ".", ":", ":80", ":8000"]


@pytest.fixture(scope="module")
def local() -> Flask:
    sites = [site(1, "shop.example", is_default=True), site(2, "front_end")]
    content = {"sites": sites, "pages": [page(1), page(2)], "images": [image(1)]}
    # As in production: what a view raises is a 500, and what happens later leaves the application.
    return make_site("memory", content, config={"TESTING": False})


def check(app: Flask, hosts: list[str]) -> None:
    """Checks that every host is answered, and equal ones alike."""
    answers: dict[Any, Any] = {}
    for host, path in product(hosts, PATHS):
        got = answer(app, host, path)
        assert not got[0].startswith("5")
        same = answers.setdefault((Host.of("http", host), path), got)
        assert got == same
        assert ask(app, host, path, REQUEST_METHOD="OPTIONS")[0] == "200 OK"


@pytest.mark.slow
def test_odd_hosts_are_answered_by_their_normal_form(local: Flask) -> None:
    check(local, ["".join(host) for host in product(NAMES, ENDS)])


_LETTERS = st.sampled_from(
    [*"aA0-_.:[]%@ ", "ß", "Σ", "é", "e\u0301", "。", "ａ", "xn--", "b" * 62]
)


@given(host=st.lists(_LETTERS, max_size=8).map("".join) | st.text(max_size=12))
def test_any_host_is_answered_by_its_normal_form(local: Flask, host: str) -> None:
    host = host.encode("utf-8", "replace").decode().translate({10: None, 13: None})
    check(local, [host, str(Host.of("http", host))])


@given(text=st.text(max_size=20) | st.lists(_LETTERS, max_size=8).map("".join))
def test_the_normal_form_is_its_own(text: str) -> None:
    host = Host.of("http", text)
    assert str(host).isascii()
    if host.name:
        assert Host.of("HTTP", str(host)) == host

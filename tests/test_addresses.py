"""The addresses in answers, and finding pages by them (contract, Fields)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from flask import Flask
from werkzeug.middleware.proxy_fix import ProxyFix
from werkzeug.test import Client, TestResponse

from flask_contentapi import PageURLs
from flask_contentapi.sites import Site
from tests.api import API
from tests.conftest import MakeAPI, MakeApp
from tests.samples import Record, blog, document, image, page, site
from tests.stores import except_files, on_all, on_memory

pytestmark = on_memory


def addresses(value: Any, name: str) -> Iterator[str]:
    """All addresses with a key, at any depth."""
    if isinstance(value, dict):
        for key, entry in value.items():
            if key == name and entry is not None:
                yield entry
            yield from addresses(entry, name)
    elif isinstance(value, list):
        for entry in value:
            yield from addresses(entry, name)


HARBOUR = {
    "sites": [
        site(1, "harbour.example", is_default=True),
        site(10, "staff.example", port=443),
        site(20, "shared.example", port=8001),
        site(30, "shared.example", port=8002),
        site(12, "deep.example"),
    ],
    "images": [image(1, file="a b/ü?#%.png"), image(2, file="https://cdn.example/x y.png")],
    "documents": [document(1, file="/docs/1.pdf"), document(2, file="")],
    "pages": [
        page(1, slug="home"),
        page(2, 1, slug="log"),
        blog(3, 2, slug="a b", feed_image=1, related_links=[{"id": 1, "link_page": 11}]),
        blog(4, 2, slug="ü%2F?#&=+;", related_links=[{"id": 2, "link_page": 21}]),
        page(10, slug="staff"),
        page(11, 10, slug="rota", alias_of=3),
        page(12, 10, slug="deep"),
        blog(13, 12, slug="sea", related_links=[{"id": 3, "link_page": 4}]),
        page(20, slug="one"),
        page(21, 20, slug="x", alias_of=31),
        page(30, slug="two"),
        page(31, 30, slug="x", alias_of=13),
        page(40, slug="nowhere"),
    ],
}
HOSTS = ["harbour.example", "staff.example", "shared.example:8001", "shared.example:8002"]
HOSTS += ["deep.example", "elsewhere.example", "harbour.example:8000", "[::1]:5000", "127.0.0.1"]
LISTS = [
    "pages/?fields=*",
    "pages/?type=blog.BlogPage&fields=*,feed_image(*),related_links(link_page(*))",
    "images/",
    "documents/",
]


@pytest.fixture(scope="module")
def harbour(make_api: MakeAPI) -> API:
    return make_api(HARBOUR)


@pytest.mark.parametrize("host", HOSTS)
def test_every_detail_address_of_a_list_answers(harbour: API, host: str) -> None:
    api = harbour.at(host)
    found = [one for path in LISTS for one in addresses(api.json(path), "detail_url")]
    assert found
    for address in found:
        assert address.startswith(f"http://{host}/api/v2/")
        item = api.follow(address).get_json()
        assert f"/{item['id']}/" in address


@on_all
@pytest.mark.parametrize("host", HOSTS[:5])
@pytest.mark.parametrize("asked", [*HOSTS[:5]])
def test_a_named_site_is_listed_from_every_host(harbour: API, host: str, asked: str) -> None:
    api = harbour.at(host)
    items = api.items(f"pages/?site={asked}&fields=*")
    assert [i["id"] for i in items] == harbour.at(asked).ids("pages/")
    for address in addresses(items, "detail_url"):
        assert api.follow(address).status_code == 200


def test_detail_addresses_name_only_other_sites(harbour: API) -> None:
    api = harbour.at("harbour.example")
    links = api.json("pages/3/?fields=related_links(link_page)")["related_links"]
    assert links[0]["link_page"]["meta"]["detail_url"] == (
        "http://harbour.example/api/v2/pages/11/?site=staff.example"
    )
    links = api.json("pages/4/?fields=related_links(link_page)")["related_links"]
    assert links[0]["link_page"]["meta"]["detail_url"].endswith("?site=shared.example:8001")
    assert all("?" not in url for url in addresses(api.json("pages/?limit=3"), "detail_url"))


def test_default_ports_are_not_written(harbour: API) -> None:
    for base_url, start in [
        ("http://HARBOUR.example:80/", "http://harbour.example/"),
        ("https://harbour.example:443/", "https://harbour.example/"),
        ("https://harbour.example:80/", "https://harbour.example:80/"),
        ("http://harbour.example:443/", "http://harbour.example:443/"),
    ]:
        item = harbour.json("pages/1/", base_url=base_url)
        assert item["meta"]["detail_url"] == f"{start}api/v2/pages/1/"


@on_all
def test_page_addresses_are_those_of_their_site(harbour: API) -> None:
    wanted = {
        "harbour.example": ["http://harbour.example/", "http://harbour.example/log/"],
        "staff.example": ["https://staff.example/", "https://staff.example/rota/"],
        "shared.example:8001": ["http://shared.example:8001/", "http://shared.example:8001/x/"],
        "deep.example": ["http://deep.example/", "http://deep.example/sea/"],
    }
    for host, urls in wanted.items():
        assert [i["meta"]["html_url"] for i in harbour.at(host).items("pages/?limit=2")] == urls


@on_all
def test_of_sites_with_one_home_the_default_one_is_named(make_api: MakeAPI) -> None:
    sites = [site(1, "a.example"), site(1, "b.example", is_default=True), site(2, "c.example")]
    pages = [page(1), page(2, alias_of=3), page(3, 1)]
    api = make_api({"sites": sites, "pages": pages})
    alias = api.at("c.example").json("pages/2/")["meta"]["alias_of"]["meta"]
    assert alias["html_url"] == "http://b.example/p3/"
    assert alias["detail_url"] == "http://c.example/api/v2/pages/3/?site=b.example"
    own = api.at("a.example").json("pages/3/")["meta"]
    assert own["html_url"] == "http://a.example/p3/"
    assert own["detail_url"] == "http://a.example/api/v2/pages/3/"


@on_all
def test_of_other_sites_with_one_home_the_first_host_name_is_named(make_api: MakeAPI) -> None:
    sites = [site(1, "b.example"), site(1, "a.example"), site(2, "c.example", is_default=True)]
    api = make_api({"sites": sites, "pages": [page(1), page(2, alias_of=3), page(3, 1)]})
    alias = api.at("c.example").json("pages/2/")["meta"]["alias_of"]["meta"]
    assert alias["html_url"] == "http://a.example/p3/"
    assert alias["detail_url"] == "http://c.example/api/v2/pages/3/?site=a.example"


def test_whole_addresses_are_no_paths(make_api: MakeAPI) -> None:
    api = make_api({"pages": [page(1), page(2, 1)]})
    said = "There is no such object in pages, or it may not be seen."
    assert api.refusal("pages/find/?html_path=/p9/", 404) == said
    assert api.refusal("pages/find/?html_path=http://localhost/p2/", 404) == (
        f"{said} html_path is a path without scheme and host, as /journal/."
    )


def test_hosts_without_a_site_are_told_how_there_can_be_one(make_api: MakeAPI) -> None:
    api = make_api({"sites": [site(1, "localhost")], "pages": [page(1)]}).at("127.0.0.1:5000")
    said = "No site answers to 127.0.0.1:5000. A site can be named with site=, or be the default."
    assert api.refusal("pages/", 404) == said
    assert api.ids("pages/?site=localhost") == [1]
    nameless = api.at("a b").refusal("pages/", 404)
    assert nameless.startswith("No site answers to the host of the request. ")


@on_all
def test_content_without_languages_says_so(make_api: MakeAPI) -> None:
    api = make_api({}, types=[], config={"CMS_I18N_ENABLED": True})
    said = "There is no language 'en'. None is declared."
    assert api.refusal("pages/?locale=en", 404) == said


def test_slugs_are_percent_encoded(harbour: API) -> None:
    items = harbour.at("harbour.example").items("pages/?child_of=2")
    assert [
        item["meta"]["html_url"].removeprefix("http://harbour.example/log/") for item in items
    ] == [
        "a%20b/",
        "%C3%BC%252F%3F%23%26%3D%2B%3B/",
    ]


def test_files_are_served_below_the_media_address(harbour: API, make_api: MakeAPI) -> None:
    images = [item["meta"]["download_url"] for item in harbour.items("images/")]
    assert images == [
        "http://localhost/media/a%20b/%C3%BC%3F%23%25.png",
        "https://cdn.example/x y.png",
    ]
    documents = [item["meta"]["download_url"] for item in harbour.items("documents/")]
    assert documents == ["http://localhost/media/docs/1.pdf", None]
    cdn = make_api(HARBOUR, config={"CMSAPI_MEDIA_URL": "https://cdn.example/files"})
    assert (
        cdn.items("documents/")[0]["meta"]["download_url"] == "https://cdn.example/files/docs/1.pdf"
    )


@on_all
def test_content_without_sites_has_no_page_addresses(make_api: MakeAPI) -> None:
    api = make_api({"pages": [page(1), page(2, 1), page(3)]}).at("any.example:81")
    assert api.ids("pages/") == [1, 2, 3]
    assert {item["meta"]["html_url"] for item in api.items("pages/")} == {None}
    assert api.get("pages/find/?html_path=/p2/").headers["Location"].endswith("/pages/2/")


@on_all
def test_without_a_default_site_other_hosts_have_no_pages(make_api: MakeAPI) -> None:
    api = make_api({"sites": [site(1, "a.example")], "pages": [page(1)], "images": [image(1)]})
    assert api.refusal("pages/", 404)
    assert api.refusal("pages/1/", 404)
    assert api.ids("pages/?site=A.example:80") == [1]
    assert api.json("pages/1/?site=a.example")["id"] == 1
    assert api.ids("images/") == [1]


# Behind a proxy, below a path, with a base address.


def proxied(app: Flask, **headers: str) -> Client:
    """A client behind a proxy that adds headers."""
    app.wsgi_app = ProxyFix(app.wsgi_app, x_host=1, x_port=1, x_prefix=1)  # type: ignore[method-assign]
    client = Client(app, TestResponse)

    class Proxy(Client):
        def open(self, path: str, **options: Any) -> TestResponse:  # type: ignore[override]
            parts = urlsplit(path)
            inner = parts.path.removeprefix(headers.get("X-Forwarded-Prefix", ""))
            return client.open(f"{inner}?{parts.query}", headers=headers, **options)

    return Proxy(app, TestResponse)


SMALL = {"sites": [site(1, "inner.example", is_default=True)], "pages": [page(1), page(2, 1)]}


def test_behind_a_proxy_addresses_are_those_outside(make_app: MakeApp) -> None:
    client = proxied(
        make_app(SMALL),
        **{
            "X-Forwarded-For": "192.0.2.1",
            "X-Forwarded-Host": "www.example",
            "X-Forwarded-Port": "8443",
            "X-Forwarded-Proto": "https",
            "X-Forwarded-Prefix": "/cms",
        },
    )
    body = client.open("/cms/api/v2/pages/").get_json()
    found = list(addresses(body, "detail_url"))
    assert found == [f"https://www.example:8443/cms/api/v2/pages/{id}/" for id in (1, 2)]
    assert [client.open(address).status_code for address in found] == [200, 200]
    redirect = client.open("/cms/api/v2/pages/find/?html_path=/p2/")
    assert redirect.headers["Location"] == found[1]
    slash = client.open("/cms/api/v2/pages?fields=*")
    assert slash.headers["Location"] == "https://www.example:8443/cms/api/v2/pages/?fields=*"


@pytest.mark.parametrize("root", ["/cms", "/a b/ü%", "/x/"])
def test_below_a_script_root_addresses_keep_it(make_app: MakeApp, root: str) -> None:
    client = make_app(SMALL).test_client()
    environ = {"SCRIPT_NAME": root.rstrip("/").encode().decode("latin-1")}
    body = client.get("/api/v2/pages/", environ_overrides=environ).get_json()
    (address, _) = addresses(body, "detail_url")
    assert address.isascii()
    assert " " not in address
    path = unquote(urlsplit(address).path)
    assert path == f"{root.rstrip('/')}/api/v2/pages/1/"


def test_a_proxy_may_say_the_script_root_without_a_slash(make_app: MakeApp) -> None:
    client = make_app(SMALL).test_client()
    environ = {"SCRIPT_NAME": "cms"}
    found = client.get("/api/v2/pages/find/?id=2", environ_overrides=environ)
    assert found.headers["Location"] == "http://localhost/cms/api/v2/pages/2/"


def test_a_base_address_with_a_path_is_in_front_of_everything(make_api: MakeAPI) -> None:
    base = "https://www.example:8443/cms"
    api = make_api({**SMALL, "images": [image(1)]}, config={"CMSAPI_BASE_URL": f"{base}/"}).at(
        "inner.example:5000"
    )
    found = list(addresses(api.json("pages/"), "detail_url"))
    assert found == [f"{base}/api/v2/pages/{id}/" for id in (1, 2)]
    assert api.items("images/")[0]["meta"]["download_url"] == f"{base}/media/1.png"
    assert api.get("pages/find/?id=2").headers["Location"] == found[1]
    for address in found:
        # The proxy removes its path.
        assert api.follow(address.replace("/cms/", "/")).status_code == 200


def test_the_redirect_to_the_last_slash_leads_to_the_base_address(make_api: MakeAPI) -> None:
    config = {"CMSAPI_BASE_URL": "https://www.example:8443/cms"}
    api = make_api(SMALL, config=config).at("inner.example:5000")
    redirect = api.get("pages/2?fields=%2A", environ_overrides={"SCRIPT_NAME": "/inner"})
    assert redirect.headers["Location"] == (
        "https://www.example:8443/cms/api/v2/pages/2/?fields=%2A"
    )


@pytest.mark.parametrize("root", ["/cms", "/a b/ü%", "/x/", "/a?b/#c", "cms"])
def test_the_redirect_to_the_last_slash_keeps_the_script_root(make_app: MakeApp, root: str) -> None:
    client = make_app(SMALL).test_client()
    environ = {"SCRIPT_NAME": root.encode().decode("latin-1")}
    details = client.get("/api/v2/pages/find/?id=2", environ_overrides=environ)
    slash = client.get("/api/v2/pages/2", environ_overrides=environ)
    assert slash.headers["Location"] == details.headers["Location"]


def test_the_redirect_to_the_last_slash_stays_at_the_host_of_the_request(make_api: MakeAPI) -> None:
    api = make_api(SMALL, config={"SERVER_NAME": "inner.example"}).at("elsewhere.example:5000")
    redirect = api.get("pages?limit=1").headers["Location"]
    assert redirect == "http://elsewhere.example:5000/api/v2/pages/?limit=1"


@pytest.fixture(
    scope="module",
    params=["https://staff.example", "http://shared.example:8001", "http://x.example"],
)
def based(request: pytest.FixtureRequest, make_api: MakeAPI) -> API:
    """The harbour with one base address, whatever the requested host."""
    return make_api(HARBOUR, config={"CMSAPI_BASE_URL": request.param})


@pytest.mark.parametrize("host", HOSTS)
def test_under_a_base_address_details_answer_for_every_host(based: API, host: str) -> None:
    api, base = based.at(host), based.app.config["CMSAPI_BASE_URL"]
    for item in api.items("pages/?fields=*"):
        for address in addresses(item, "detail_url"):
            assert address.startswith(base)
            assert api.follow(address).status_code == 200
        found = api.get(f"pages/find/?id={item['id']}").headers["Location"]
        assert api.follow(found).get_json()["id"] == item["id"]


def test_under_a_base_address_no_address_depends_on_the_host(based: API) -> None:
    path = "pages/?fields=*&site=shared.example:8001"
    first, *others = [based.at(host).items(path) for host in HOSTS]
    assert all(items == first for items in others)


# From a page to its address and back.


def trees(*languages: str, first: int = 1, key: str = "t") -> list[Record]:
    """A home page with two levels below it, for each language."""
    records = []
    for number, language in enumerate(languages):
        top = first + 10 * number
        shared: Mapping[str, Any] = {"locale": language}
        records += [
            page(top, slug=f"home-{key}-{language}", translation_key=f"{key}1", **shared),
            page(top + 1, top, slug="log", translation_key=f"{key}2", **shared),
            page(top + 2, top + 1, slug=f"é {language}", translation_key=f"{key}3", **shared),
            page(top + 3, top, slug=language, translation_key=f"{key}4", **shared),
        ]
    return records


LANGUAGES = {
    "locales": ["en", "fr", "pt-br"],
    "sites": [site(1, "a.example", is_default=True), site(111, "b.example", port=8000)],
    "pages": [*trees("en", "fr", "pt-br"), *trees("en", "fr", first=101, key="u")],
}


class LanguageFirst(PageURLs):
    """Addresses that start with the language."""

    def build(self, site: Site, locale: str | None, path: str) -> str | None:
        return super().build(site, locale, f"/{locale}{path}")

    def resolve(self, site: Site, locale: str | None, html_path: str) -> tuple[str | None, str]:
        first, _, rest = html_path.strip("/").partition("/")
        return first, rest


def went_back(api: API, item: Mapping[str, Any], **query: str) -> int:
    """The id of the page that ``find/`` returns for the public address of a page."""
    path = unquote(urlsplit(item["meta"]["html_url"]).path)
    response = api.get("pages/find/", query_string={"html_path": path, **query})
    assert response.status_code == 302
    target = response.headers["Location"]
    assert dict(parse_qsl(urlsplit(target).query)) == query
    found: int = api.follow(target).get_json()["id"]
    return found


@pytest.fixture(scope="module", params=[True, False], ids=["i18n", "one language"])
def languages(request: pytest.FixtureRequest, make_api: MakeAPI) -> API:
    """Two sites with several languages, or with internationalisation off."""
    return make_api(LANGUAGES, config={"CMS_I18N_ENABLED": request.param})


@on_all
@pytest.mark.parametrize("host", ["a.example", "b.example:8000", "c.example"])
@pytest.mark.parametrize("asked", [{}, {"site": "a.example"}, {"site": "b.example:8000"}])
def test_a_public_address_leads_back_to_its_page(
    languages: API, host: str, asked: dict[str, str]
) -> None:
    api, i18n = languages.at(host), languages.app.config["CMS_I18N_ENABLED"]
    items = api.items("pages/", query_string={**asked, "fields": "locale"})
    assert len(items) == (4 if not i18n else 8 if "b." in asked.get("site", host) else 12)
    for item in items:
        language = {"locale": item["meta"]["locale"]} if i18n else {}
        assert went_back(api, item, **asked, **language) == item["id"]


@on_all
@pytest.mark.parametrize("host", ["a.example", "b.example:8000"])
def test_a_language_in_front_of_the_path_leads_back(make_api: MakeAPI, host: str) -> None:
    config = {"CMS_I18N_ENABLED": True}
    api = make_api(LANGUAGES, config=config, page_urls=LanguageFirst()).at(host)
    items = api.items("pages/")
    assert f"http://{host}/fr/log/" in [item["meta"]["html_url"] for item in items]
    for item in items:
        assert went_back(api, item) == item["id"]


@on_all
def test_a_translation_in_the_tree_of_another_language_leads_back(make_api: MakeAPI) -> None:
    pages = [page(1, locale="en"), page(2, 1, locale="en"), page(3, 1, locale="fr")]
    content = {"locales": ["en", "fr"], "sites": [site(1)], "pages": pages}
    api = make_api(content, config={"CMS_I18N_ENABLED": True})
    for item in api.items("pages/"):
        assert went_back(api, item, locale=item["meta"]["locale"]) == item["id"]
    assert api.refusal("pages/find/?html_path=/p2/&locale=fr", 404)


#: Pages in the trees of other languages, although their own languages have trees.
ASTRAY = {
    "locales": ["en", "fr", "de"],
    "sites": [site(1)],
    "pages": [
        page(1, locale="en", translation_key="home"),
        page(2, locale="fr", translation_key="home"),
        page(3, locale="de", translation_key="home"),
        page(4, 1, locale="fr"),
        page(5, 4, locale="fr"),
        page(6, 2, locale="en"),
        page(7, 3, locale="fr"),
        page(8, 1, locale="en", slug="log"),
        page(9, 2, locale="fr", slug="log"),
    ],
}


@on_all
def test_a_page_in_the_tree_of_another_language_than_its_own_leads_back(make_api: MakeAPI) -> None:
    api = make_api(ASTRAY, config={"CMS_I18N_ENABLED": True})
    items = api.items("pages/")
    assert [went_back(api, item, locale=item["meta"]["locale"]) for item in items] == [
        item["id"] for item in items
    ]


@on_all
def test_in_trees_of_other_languages_only_pages_of_the_language_are_found(
    make_api: MakeAPI,
) -> None:
    api = make_api(ASTRAY, config={"CMS_I18N_ENABLED": True})
    assert api.refusal("pages/find/?html_path=/p4/&locale=de", 404)
    assert api.status("pages/find/?html_path=/p6/&locale=fr") == 302


@on_all
def test_a_tree_that_the_path_names_is_the_only_one_looked_in(make_api: MakeAPI) -> None:
    api = make_api(ASTRAY, config={"CMS_I18N_ENABLED": True}, page_urls=LanguageFirst())
    assert api.refusal("pages/find/?html_path=/fr/p4/", 404)
    assert [went_back(api, item) for item in api.items("pages/?limit=9")] == api.ids("pages/")


@pytest.mark.parametrize(
    ("host", "start"),
    [
        ("my_app:8000", "http://my_app:8000"),
        ("My_App:80", "http://my_app"),
        ("a.b_c", "http://a.b_c"),
        ("localhost:", "http://localhost"),
        ("[::1]:", "http://[::1]"),
    ],
)
def test_hosts_in_networks_of_containers_have_addresses(
    make_api: MakeAPI, host: str, start: str
) -> None:
    api = make_api({"pages": [page(1)]}, config={"CMSAPI_CACHE_SIZE": 2**20})
    asked = [{"Host": "other_app"}, {"Host": host}]
    items = [api.items("pages/", headers=headers)[0] for headers in asked]
    assert items[1]["meta"]["detail_url"] == f"{start}/api/v2/pages/1/"
    for path in ["pages", "pages/find/?html_path=/"]:
        redirect = api.get(path, headers=asked[1]).headers["Location"]
        assert redirect.startswith(f"{start}/api/v2/pages/")


def test_a_site_may_be_at_a_host_with_an_underscore(make_api: MakeAPI) -> None:
    sites = [site(1, is_default=True), site(2, "my_app", port=8000)]
    api = make_api({"sites": sites, "pages": [page(1), page(2)]})
    (item,) = api.items("pages/", headers={"Host": "MY_APP:8000"})
    assert item["meta"]["html_url"] == "http://my_app:8000/"
    assert api.ids("pages/?site=my_app") == [2]


NO_HOSTS = ["a,b", "é..x", "[fe80::1%25eth0]", "my_app:99999", "my_app:80:80", "u@my_app", "a_..b"]


@pytest.mark.parametrize("host", NO_HOSTS)
def test_addresses_go_without_a_host_that_is_none(make_api: MakeAPI, host: str) -> None:
    api = make_api({"pages": [page(1)], "images": [image(1, file="a:b.png")]})
    headers = {"Host": host}
    (item,) = api.items("pages/", headers=headers)
    (picture,) = api.items("images/", headers=headers)
    assert item["meta"]["detail_url"] == "/api/v2/pages/1/"
    assert picture["meta"]["download_url"] == "/media/a%3Ab.png"
    found = api.get("pages/find/?html_path=/", headers=headers)
    assert found.headers["Location"] == "/api/v2/pages/1/"
    assert api.get("pages", headers=headers).headers["Location"] == "/api/v2/pages/"


class Hidden(PageURLs):
    """No addresses, because the site has no front end."""

    def build(self, site: Site, locale: str | None, path: str) -> str | None:
        return None


def test_a_site_may_have_no_public_addresses(make_api: MakeAPI) -> None:
    api = make_api(LANGUAGES, page_urls=Hidden()).at("a.example")
    assert {item["meta"]["html_url"] for item in api.items("pages/")} == {None}
    assert api.json("pages/2/")["meta"]["parent"]["meta"]["html_url"] is None
    assert api.status("pages/find/?html_path=/log/") == 302


@pytest.mark.parametrize("path", ["/", "/xx/log/", "/en/nowhere/", ""])
def test_paths_that_the_hook_leads_nowhere_are_not_found(make_api: MakeAPI, path: str) -> None:
    config = {"CMS_I18N_ENABLED": True}
    api = make_api(LANGUAGES, config=config, page_urls=LanguageFirst()).at("a.example")
    assert api.refusal(f"pages/find/?html_path={path}", 404)


@on_all
def test_find_looks_in_the_language_asked_for(make_api: MakeAPI) -> None:
    api = make_api(LANGUAGES, config={"CMS_I18N_ENABLED": True}).at("b.example:8000")
    found = {
        query: api.get(f"pages/find/?html_path=/log/{query}").headers["Location"]
        for query in ("", "&locale=en", "&locale=fr")
    }
    start = "http://b.example:8000/api/v2/pages"
    # The site's own language is that of its home page, French.
    assert found == {
        "": f"{start}/112/",
        "&locale=en": f"{start}/102/?locale=en",
        "&locale=fr": f"{start}/112/?locale=fr",
    }
    assert api.refusal("pages/find/?html_path=/&locale=pt-br", 404)
    assert api.refusal("pages/find/?html_path=/&locale=xx", 404)
    assert api.refusal("pages/find/?id=112&locale=xx", 404) == (
        "There is no language 'xx'. There are en, fr, pt-br."
    )


@except_files
def test_find_knows_no_names_with_nul_characters(make_api: MakeAPI) -> None:
    config = {"CMS_I18N_ENABLED": True}
    undeclared = {"pages": [page(1, locale="en"), page(2, 1, locale="en")]}
    api = make_api(undeclared, config=config)
    assert api.get("pages/find/?html_path=/p2/&locale=en").status_code == 302
    for path in ("pages/find/?html_path=/p2/&locale=en%00", "redirects/find/?html_path=/p2%00"):
        assert "There is no such object" in api.refusal(path, 404)
    api = make_api(LANGUAGES, config=config).at("b.example:8000")
    path = "pages/find/?html_path=/log%00&locale=en"
    assert api.refusal(path, 404) == api.refusal("pages/find/?html_path=/none/", 404)
    # Within a block, what is asked may go other ways.
    with api.backend.write():
        assert api.refusal(path, 404)


# Several sites.


@on_all
def test_the_site_parameter_chooses_where_everything_looks(harbour: API) -> None:
    api = harbour.at("harbour.example")
    found = api.get("pages/find/?html_path=/rota/&site=staff.example")
    assert api.follow(found.headers["Location"]).get_json()["id"] == 11
    assert api.status("pages/find/?html_path=/rota/") == 404
    assert api.status("pages/find/?html_path=/log/&site=staff.example") == 404
    assert api.ids("pages/?child_of=root&site=staff.example") == [11, 12]
    assert api.ids("pages/?child_of=root") == [2]
    assert api.status("pages/11/") == 404
    assert api.json("pages/11/?site=staff.example")["id"] == 11
    assert api.status("pages/find/?id=11") == 404
    assert api.status("pages/?child_of=10") == 400
    assert api.ids("pages/?search=page&site=deep.example&order=id") == [12, 13]


@pytest.mark.parametrize("name", ["STAFF.example", "staff.example:443", "shared.example:8001"])
def test_sites_are_named_by_host_and_port(harbour: API, name: str) -> None:
    assert harbour.status(f"pages/?site={name}") == 200
    assert harbour.status(f"pages/find/?html_path=/&site={name}") == 302


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("staff.example:80", 404),
        ("staff.example:99999", 404),
        ("staff.example:99999999999999999999", 404),
        ("nowhere.example", 404),
        ("shared.example", 400),
        ("staff.example:", 400),
        ("staff.example:x", 400),
        (":80", 400),
        ("https://staff.example", 400),
    ],
)
def test_sites_that_cannot_be_told_are_refused(harbour: API, name: str, status: int) -> None:
    for path in ("pages/", "pages/find/", "pages/10/"):
        assert harbour.refusal(f"{path}?site={name}&html_path=/", status)


def test_sites_that_share_a_host_name_are_named(harbour: API) -> None:
    assert harbour.refusal("pages/?site=shared.example") == (
        "Several sites are at shared.example: ask for shared.example:8001 or shared.example:8002."
    )


@pytest.mark.parametrize(
    ("host", "home"),
    [
        ("harbour.example", 1),
        ("harbour.example:9999", 1),
        ("STAFF.example", 10),
        ("staff.example:8080", 10),
        ("shared.example:8001", 20),
        ("shared.example:8002", 30),
        ("shared.example:9999", 1),
        ("nowhere.example", 1),
    ],
)
def test_the_site_follows_from_the_host_of_the_request(harbour: API, host: str, home: int) -> None:
    assert harbour.at(host).ids("pages/?limit=1") == [home]


def test_detail_by_path_is_the_detail_view(harbour: API) -> None:
    for path in ("/", "log", "/log/a%20b/", "/log/ü%252F%3F%23%26=%2B;/"):
        there = harbour.get(f"pages/find/?html_path={path}&fields=*")
        shown = harbour.get(f"pages/detail_by_path/?html_path={path}&fields=*")
        assert there.status_code == 302
        assert shown.data == harbour.follow(there.headers["Location"]).data


def test_detail_by_path_needs_a_path(harbour: API) -> None:
    assert "html_path" in harbour.refusal("pages/detail_by_path/?id=2", 404)
    assert harbour.status("pages/detail_by_path/?html_path=/none/&fields=nope") == 404
    assert harbour.status("pages/detail_by_path/?html_path=/log/&fields=nope") == 400
    assert harbour.status("pages/detail_by_path/?html_path=/log/&site=none.example") == 404
    refusal = harbour.refusal("images/detail_by_path/?html_path=/log/", 404)
    assert refusal == "Only pages/ has detail_by_path/; elsewhere there is find/."

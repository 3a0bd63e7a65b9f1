"""The sites and the languages, where they have endpoints of their own."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from openapi_spec_validator import validate as validate_document

from flask_contentapi import ConfigurationError, ContentAPI
from tests.api import API
from tests.conftest import MakeAPI
from tests.samples import page, private, site
from tests.stores import on_all, on_memory

pytestmark = on_memory

ON = {"CMSAPI_SITES_ENABLED": True}
CONTENT: dict[str, Any] = {
    "locales": ["en", "de"],
    "sites": [
        site(5, "draft.example"),
        site(1, "a.example", site_name="A", is_default=True),
        site(2, "b.example", port=8000),
        site(1, "www.a.example", port=443),
        site(6, "private.example"),
        site(7, "expired.example"),
    ],
    "pages": [
        page(1),
        page(2),
        page(5, live=False),
        page(6, restriction=private()),
        page(7, expires_at="2020-01-01T00:00:00Z"),
    ],
}
LATER = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture
def api(make_api: MakeAPI) -> API:
    return make_api(CONTENT, config=ON).at("a.example")


def hosts(api: API, path: str = "sites/") -> list[str]:
    """The hosts of the sites in a list."""
    return [item["hostname"] for item in api.items(path)]


def test_endpoints_have_to_be_switched_on(make_api: MakeAPI) -> None:
    api = make_api(CONTENT).at("a.example")
    assert {api.status(path) for path in ("sites/", "sites/1/", "locales/", "locales/1/")} == {404}
    assert not {"/sites/", "/locales/"} & api.json("openapi.json")["paths"].keys()


@on_all
def test_sites_are_those_whose_home_is_seen(api: API) -> None:
    assert hosts(api) == ["a.example", "b.example", "www.a.example"]
    assert api.total("sites/") == 3


def test_site_has_the_keys_of_wagtail(api: API) -> None:
    found = api.items("sites/")[0]
    assert found == {
        "id": found["id"],
        "meta": {
            "type": "wagtailcore.Site",
            "detail_url": f"http://a.example/api/v2/sites/{found['id']}/",
        },
        "hostname": "a.example",
        "port": 80,
        "site_name": "A",
        "root_page_id": 1,
        "is_default_site": True,
    }


def test_each_item_leads_to_its_detail(api: API) -> None:
    for item in (*api.items("sites/"), *api.items("locales/")):
        assert api.follow(item["meta"]["detail_url"]).get_json() == item


def test_ids_tell_nothing_of_hidden_sites(make_api: MakeAPI, api: API) -> None:
    shown = [record for record in CONTENT["sites"] if record["root_page"] < 5]
    other = make_api({**CONTENT, "sites": shown}, config=ON).at("a.example")
    assert api.get("sites/").data == other.get("sites/").data


@on_all
def test_hidden_site_has_no_detail(make_api: MakeAPI, api: API) -> None:
    pages = [record | {"live": True} for record in CONTENT["pages"]]
    everything = make_api({**CONTENT, "pages": pages}, config=ON).at("a.example")
    found = {item["hostname"]: item["id"] for item in everything.items("sites/")}
    assert api.status(f"sites/{found['draft.example']}/") == 404
    assert api.status(f"sites/{found['a.example']}/") == 200


@on_all
def test_hook_shows_restricted_sites(make_api: MakeAPI) -> None:
    api = make_api(CONTENT, config=ON, can_view=lambda rule: True).at("a.example")
    response = api.get("sites/")
    assert [item["hostname"] for item in response.get_json()["items"]] == [
        *("a.example", "b.example", "www.a.example", "private.example")
    ]
    assert response.headers["Cache-Control"].startswith("private")


@on_all
def test_sites_come_and_go_by_the_clock(make_api: MakeAPI) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    pages = [page(1), page(2, go_live_at="2027-01-01T00:00:00Z")]
    content = {"sites": [site(1, "a.example"), site(2, "b.example")], "pages": pages}
    api = make_api(content, config=ON, clock=lambda: now).at("a.example")
    tag = api.get("sites/").headers["ETag"]
    assert hosts(api) == ["a.example"]
    assert api.get("sites/", headers={"If-None-Match": tag}).status_code == 304
    now = LATER
    assert api.get("sites/", headers={"If-None-Match": tag}).status_code == 200
    assert hosts(api) == ["a.example", "b.example"]


def test_unnamed_site_is_not_listed(make_api: MakeAPI) -> None:
    api = make_api({"pages": [page(1)]}, config=ON)
    assert api.json("sites/") == {"meta": {"total_count": 0}, "items": []}


@on_all
def test_locales_are_those_that_are_declared(api: API) -> None:
    found = [(item["id"], item["language_code"]) for item in api.items("locales/")]
    assert found == [(1, "en"), (2, "de")]
    assert [item["is_default"] for item in api.items("locales/")] == [True, False]


def test_languages_of_pages_are_not_told(make_api: MakeAPI) -> None:
    content = {"pages": [page(1, locale="de"), page(2, locale="fr", live=False)]}
    assert make_api(content, config=ON).items("locales/") == []


@pytest.mark.parametrize("host", ["a.example", "nowhere.example"])
def test_no_site_has_to_answer(make_api: MakeAPI, host: str) -> None:
    content = {"sites": [site(1, "a.example")], "pages": [page(1)]}
    assert hosts(make_api(content, config=ON).at(host)) == ["a.example"]


def test_lists_are_read_in_parts(api: API) -> None:
    assert hosts(api, "sites/?offset=1&limit=1&_=7") == ["b.example"]
    assert api.total("sites/?limit=0") == 3
    assert api.ids("locales/?offset=1") == [2]


@pytest.mark.parametrize("query", ["order=id", "site=a.example", "fields=id", "search=a"])
def test_other_parameters_are_unknown(api: API, query: str) -> None:
    for name in ("sites", "locales"):
        message = api.refusal(f"{name}/?{query}")
        assert message == f"Unknown parameter: {query.split('=')[0]}. " + (
            "Known are limit and offset."
        )


@pytest.mark.parametrize("query", ["limit=many", "limit=21", "offset=-1", f"_={'a' * 5000}"])
def test_wrong_values_are_refused(api: API, query: str) -> None:
    assert api.status(f"sites/?{query}") == 400


@pytest.mark.parametrize("path", ["sites/x/", "sites/7/", "locales/3/", "locales/0/"])
def test_unknown_ids_are_not_found(api: API, path: str) -> None:
    assert api.status(path) == 404


def test_answers_are_tagged_with_pages(make_api: MakeAPI) -> None:
    config = {**ON, "CMSAPI_CACHE_TAG_HEADER": "Cache-Tag"}
    api = make_api(CONTENT, config=config).at("a.example")
    assert api.get("sites/").headers["Cache-Tag"] == "content, pages"


def test_endpoints_are_described(api: API) -> None:
    document = api.json("openapi.json")
    validate_document(document)
    names = {p["name"] for p in document["paths"]["/sites/"]["get"]["parameters"]}
    assert names == {"limit", "offset", "_", "If-None-Match"}
    assert {"/sites/{id}/", "/locales/", "/locales/{id}/"} < document["paths"].keys()


@pytest.mark.parametrize("name", ["sites", "locales"])
def test_their_addresses_are_taken(make_api: MakeAPI, name: str) -> None:
    api = make_api(CONTENT, config=ON)
    api.app.config["OTHER_URL_PREFIX"] = f"/api/v2/{name}"
    with pytest.raises(ConfigurationError, match="addresses of the instance"):
        ContentAPI(api.app, name="other", config_prefix="OTHER_")


def test_head_has_no_body(api: API) -> None:
    response = api.get("sites/", method="HEAD")
    assert (response.status_code, response.data) == (200, b"")

"""The explorer: how it is served, and what it shows in a browser."""

from __future__ import annotations

import re
from configparser import ConfigParser
from fnmatch import fnmatch
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from flask_contentapi import ConfigurationError, ContentAPI, Entry
from tests.api import API
from tests.conftest import MakeAPI
from tests.pages import ROOT
from tests.samples import page, site
from tests.stores import on_memory

pytestmark = [on_memory, pytest.mark.slow]

FILES = [path for path in files("flask_contentapi.explorer").iterdir() if "py" not in path.name]
HTML = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
ON = {"CMSAPI_EXPLORER": True}


class Trip(Entry):
    """A type whose endpoint has the explorer's name."""

    endpoint = "explorer"


@pytest.fixture(scope="module")
def served_api(make_api: MakeAPI) -> API:
    return make_api({"sites": [site(1, is_default=True)], "pages": [page(1)]}, config=ON)


# How it is served.


def test_page_is_html(served_api: API) -> None:
    response = served_api.get("explorer/")
    assert (response.status_code, response.mimetype) == (200, "text/html")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_files_are_served_as_they_are(served_api: API, file: Path) -> None:
    assert served_api.get(f"explorer/{file.name}").data == file.read_bytes()


@pytest.mark.parametrize("path", ["", "explorer.js"])
def test_page_may_do_little(served_api: API, path: str) -> None:
    headers = served_api.get(f"explorer/{path}").headers
    policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
    assert policy.pop("img-src") == "'self' http: https: data:"
    assert {policy.pop(f"{what}-src") for what in ("script", "style", "connect")} == {"'self'"}
    assert {*policy.values()} == {"'none'"}
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_nothing_is_from_another_host() -> None:
    text = "".join(file.read_text(encoding="utf-8") for file in FILES)
    assert re.findall(r"https?://[\w.]+", text) == []


def test_nothing_of_answers_becomes_html() -> None:
    text = "".join(file.read_text(encoding="utf-8") for file in FILES)
    assert re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text) == []


def test_page_is_known_by_its_tag(served_api: API) -> None:
    known = {"If-None-Match": served_api.get("explorer/").headers["ETag"]}
    response = served_api.get("explorer/", headers=known)
    assert (response.status_code, response.data) == (304, b"")


def test_head_has_no_body(served_api: API) -> None:
    response = served_api.get("explorer/", method="HEAD")
    assert (response.status_code, response.data) == (200, b"")


def test_options_are_answered(served_api: API) -> None:
    assert served_api.get("explorer/", method="OPTIONS").headers["Allow"] == "GET, HEAD, OPTIONS"


def test_page_is_only_read(served_api: API) -> None:
    assert served_api.get("explorer/", method="POST").status_code == 405


@pytest.mark.parametrize("name", ["__init__.py", "x.js", "..%2fviews.py"])
def test_other_files_are_not_there(served_api: API, name: str) -> None:
    assert served_api.status(f"explorer/{name}") == 404


def test_unknown_file_names_the_page(served_api: API) -> None:
    assert "/api/v2/explorer/" in served_api.refusal("explorer/x.js", 404)


def test_address_without_slash_leads_to_it(served_api: API) -> None:
    assert served_api.get("explorer").location == "http://localhost/api/v2/explorer/"


def test_all_files_are_in_the_package() -> None:
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    patterns = setup["options.package_data"]["flask_contentapi.explorer"].split(", ")
    assert [f.name for f in FILES if not any(fnmatch(f.name, p) for p in patterns)] == []
    assert "flask_contentapi.explorer" in setup["options"]["packages"].split()


# Where it is.


def test_it_is_off_by_default(make_api: MakeAPI) -> None:
    assert make_api().status("explorer/") == 404


@pytest.mark.parametrize(("setting", "status"), [(None, 200), (False, 404)])
def test_it_is_on_in_debug_mode(make_api: MakeAPI, setting: Any, status: int) -> None:
    config = {"DEBUG": True, "CMSAPI_EXPLORER": setting}
    assert make_api(config=config).status("explorer/") == status


def test_own_endpoint_has_the_address(make_api: MakeAPI) -> None:
    api = make_api(types=[Trip], config={"DEBUG": True})
    assert api.json("explorer/")["items"] == []


def test_it_cannot_share_an_address() -> None:
    app = Flask("site")
    app.config.update(ON)
    with pytest.raises(ConfigurationError, match="has an endpoint 'explorer'"):
        ContentAPI(app, types=[Trip])


def test_another_instance_cannot_be_there() -> None:
    app = Flask("site")
    app.config.update(ON, OTHER_URL_PREFIX="/api/v2/explorer")
    ContentAPI(app)
    with pytest.raises(ConfigurationError, match="would be the same"):
        ContentAPI(app, name="other", config_prefix="OTHER_")


def test_index_names_it(served_api: API, make_api: MakeAPI) -> None:
    assert served_api.json("")["explorer_url"] == "http://localhost/api/v2/explorer/"
    assert "explorer_url" not in make_api().json("")


def test_index_names_all_sites_for_it(served_api: API) -> None:
    assert served_api.json("")["sites"] == [{"hostname": "localhost", "port": 80, "site_name": ""}]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_browsers_are_sent_to_it(served_api: API, method: str) -> None:
    response = served_api.get("", headers=HTML, method=method)
    assert (response.status_code, response.headers["Vary"]) == (302, "Accept")
    assert response.location == "http://localhost/api/v2/explorer/"


def test_browsers_find_it_below_a_path(served_api: API) -> None:
    response = served_api.get("", headers=HTML, base_url="http://localhost/cms/")
    assert response.location == "http://localhost/cms/api/v2/explorer/"


@pytest.mark.parametrize("accepted", ["*/*", "application/json", "application/json, text/html"])
def test_other_clients_get_the_index(served_api: API, accepted: str) -> None:
    response = served_api.get("", headers={"Accept": accepted})
    assert (response.status_code, response.mimetype) == (200, "application/json")
    assert response.headers["Vary"] == "Accept"


def test_browsers_get_the_index_without_it(make_api: MakeAPI) -> None:
    response = make_api().get("", headers=HTML)
    assert response.mimetype == "application/json"
    assert "Vary" not in response.headers


# What the description tells it.


def filters_of(api: API, name: str) -> list[Any]:
    parameters = api.json("openapi.json")["paths"]["/pages/"]["get"]["parameters"]
    return next(p for p in parameters if p["name"] == name)["x-filters"]  # type: ignore[no-any-return]


def test_filters_tell_kind_and_operator(reference: API) -> None:
    told = {"field": "capacity", "operator": "gte", "kind": "integer", "orders": False}
    assert filters_of(reference, "capacity__gte") == [{**told, "types": ["events.EventPage"]}]


def test_filters_tell_what_relations_lead_to(reference: API) -> None:
    (told,) = filters_of(reference, "feed_image")
    assert (told["endpoint"], told["orders"]) == ("images", True)


def test_types_tell_what_answers_have(reference: API) -> None:
    told = reference.json("openapi.json")["components"]["schemas"]["blog.BlogPage"]["x-fields"]
    assert told["nested"] == ["type", "detail_url", "id", "title"]
    assert told["named_only"] == ["ancestors", "children", "translations"]
    assert told["detail_only"] == ["parent"]

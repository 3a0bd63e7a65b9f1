"""Answers to scripts from other origins, with the headers of Flask-Cors."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import pytest
from flask import Flask
from flask_cors import CORS

from flask_contentapi import ContentAPI
from flask_contentapi.errors import BackendUnavailable
from tests.api import API
from tests.conftest import MakeAPI
from tests.stores import on_memory

pytestmark = on_memory

ORIGIN = "https://front.example"
#: A request for each status.
REQUESTS: Mapping[int, tuple[str, Mapping[str, Any]]] = {
    200: ("pages/", {}),
    302: ("pages/find/?id=2", {}),
    304: ("pages/", {"headers": {"If-None-Match": "*"}}),
    400: ("pages/?limit=abc", {}),
    404: ("pages/999/", {}),
    405: ("pages/", {"method": "POST"}),
}


@pytest.fixture(scope="module")
def open_api(make_api: MakeAPI, reference_content: Mapping[str, Any]) -> API:
    """A site that allows scripts of one origin to read its API."""
    made = make_api(reference_content)
    CORS(made.app, resources={"/api/v2/.*": {"origins": ORIGIN}})
    return made


def ask(api: API, path: str, **options: Any) -> Any:
    """The answer to a script of that origin."""
    headers = {"Origin": ORIGIN, **options.pop("headers", {})}
    return api.get(path, headers=headers, **options)


@pytest.mark.parametrize("status", REQUESTS)
def test_every_answer_may_be_read_by_another_origin(open_api: API, status: int) -> None:
    path, options = REQUESTS[status]
    response = ask(open_api, path, **options)
    assert response.status_code == status
    assert response.headers["Access-Control-Allow-Origin"] == ORIGIN


def test_so_may_the_news_that_the_content_cannot_be_read(
    open_api: API, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone() -> Any:
        raise BackendUnavailable("gone")

    monkeypatch.setattr(open_api.backend, "reader", gone)
    response = ask(open_api, "pages/")
    assert response.status_code == 503
    assert response.headers["Access-Control-Allow-Origin"] == ORIGIN


def test_browsers_may_ask_beforehand(open_api: API) -> None:
    wanted = {"Access-Control-Request-Method": "GET"}
    response = ask(open_api, "pages/", method="OPTIONS", headers=wanted)
    assert response.status_code == 200
    assert "GET" in response.headers["Access-Control-Allow-Methods"]


#: The usual ways to install it.
INSTALLED: Mapping[str, Mapping[str, Any]] = {
    "for everything": {},
    "for the prefix": {"resources": {"/api/v2/.*": {"origins": ORIGIN}}},
    "with cookies": {"origins": [ORIGIN], "supports_credentials": True},
    "without errors": {"intercept_exceptions": False},
}
ADDRESSES = ["pages/", "pages", "pages/2/", "pages/2", "pages/find/", "pages/find", "images//1"]
ADDRESSES += ["nothing", "nothing/", "a/b/c", "pages/2/x", "pages/%0A", "", "pages/?limit=abc"]


@pytest.mark.parametrize("installed", INSTALLED)
def test_browsers_may_ask_at_every_address(make_api: MakeAPI, installed: str) -> None:
    api = make_api()
    CORS(api.app, **INSTALLED[installed])
    asked = {"Access-Control-Request-Method": "GET"}
    for path in ADDRESSES:
        response = ask(api, path, method="OPTIONS", headers=asked)
        assert (response.status_code, response.data) == (200, b"")
        assert response.headers["Allow"] == "GET, HEAD, OPTIONS"
        assert response.headers["Access-Control-Allow-Origin"] in (ORIGIN, "*")


# Werkzeug warns of other hosts than SERVER_NAME.
@pytest.mark.filterwarnings("ignore:Current server name")
@pytest.mark.parametrize("options", [{"host_matching": True}, {"subdomain_matching": True}])
def test_browsers_may_ask_at_every_host(options: dict[str, Any]) -> None:
    app = Flask(__name__, static_folder=None, **options)
    app.config.update(SERVER_NAME="a.example", CMSAPI_BACKEND="memory")
    ContentAPI(app)
    for host, path in product(
        ["a.example", "x.a.example", "a_b", "b" * 64], ["pages", "pages/", "x"]
    ):
        response = API(app).get(path, method="OPTIONS", headers={"Host": host})
        assert (response.status_code, response.headers["Allow"]) == (200, "GET, HEAD, OPTIONS")


@pytest.mark.parametrize("host", ["a.example", "a_b", "b" * 64, "a b"])
def test_any_host_is_matched(host: str) -> None:
    app = Flask(__name__, static_folder=None, host_matching=True)
    app.config.update(CMSAPI_BACKEND="memory")
    ContentAPI(app)
    assert API(app).get("pages/", headers={"Host": host}).status_code == 200
    assert API(app).get("pages", headers={"Host": host}).status_code == 308


@pytest.mark.parametrize("prefix", ["", "/api/v2"])
def test_the_bare_prefix_may_be_asked(make_api: MakeAPI, prefix: str) -> None:
    client = make_api(config={"CMSAPI_URL_PREFIX": prefix or "/"}).app.test_client()
    assert client.options(prefix or "/").status_code == 200
    assert client.options(f"{prefix}/").status_code == 200


def test_untrusted_hosts_are_refused(make_api: MakeAPI) -> None:
    api = make_api(config={"TRUSTED_HOSTS": ["a.example"]})
    assert api.at("a.example").status("pages/") == 200
    for host in ("b.example", "a_b"):
        assert api.at(host).refusal("pages/") == "Requests to this host are not answered."


def test_requests_for_websockets_are_answered_as_others(reference: API) -> None:
    headers = {"Connection": "Upgrade", "Upgrade": "websocket"}
    assert reference.get("pages/", headers=headers).data == reference.get("pages/").data


SWITCHES = "TRAP_HTTP_EXCEPTIONS TRAP_BAD_REQUEST_ERRORS PROPAGATE_EXCEPTIONS DEBUG".split()


@pytest.mark.parametrize("switch", SWITCHES)
@pytest.mark.parametrize("testing", [True, False])
def test_errors_and_redirects_are_ours(make_api: MakeAPI, switch: str, testing: bool) -> None:
    api = make_api(config={switch: True, "TESTING": testing})
    for path in ("pages", "pages/1?a=b", "images/find"):
        response = api.get(path)
        assert (response.status_code, response.location.count("//")) == (308, 1)
    for status, path in {404: "none", 400: "pages/?limit=x"}.items():
        assert api.refusal(path, status)
    assert api.refusal("a/b%0A", 404)
    assert api.get("pages/", method="POST").get_json().keys() == {"message"}


def test_other_origins_are_told_nothing(open_api: API) -> None:
    response = open_api.get("pages/", headers={"Origin": "https://other.example"})
    assert "Access-Control-Allow-Origin" not in response.headers

"""The extension in an application, together with other instances and with the site itself."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from configparser import ConfigParser
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import Mock

import pytest
from flask import Blueprint, Flask, abort, request, url_for
from marshmallow import fields
from werkzeug.exceptions import HTTPException

from flask_contentapi import (
    APIField,
    BackendUnavailable,
    ConfigurationError,
    ContentAPI,
    ContentError,
    DeclarationError,
    Page,
    PageURLs,
)
from flask_contentapi.sites import Site
from flask_contentapi_jsonfiles import JSONFilesBackend
from flask_contentapi_memory import MemoryBackend
from tests.api import API
from tests.conftest import MakeAPI, MakeApp
from tests.pages import ROOT
from tests.samples import document, image, page, plain, private, site
from tests.stores import fresh_address, on_all, on_memory

pytestmark = on_memory

ONE: dict[str, list[Any]] = {"pages": [plain(1, title="One"), plain(2, 1)]}
TWO: dict[str, list[Any]] = {"pages": [plain(7, title="Two")]}


# Registering.


def test_an_instance_is_registered_once() -> None:
    app = Flask("site")
    api = ContentAPI(app)
    with pytest.raises(ConfigurationError, match="'contentapi' already"):
        api.init_app(app)
    with pytest.raises(ConfigurationError, match="'contentapi' already"):
        ContentAPI(app)
    assert API(app).total("pages/") == 0


@on_all
def test_a_backend_can_be_named_in_code_as_in_the_setting(backend: str) -> None:
    address = fresh_address(backend) if backend != "memory" else backend
    app = Flask("site")
    ContentAPI(app, backend=address)
    with app.app_context():
        state = app.extensions["contentapi"]["contentapi"]
        state.backend.create()
    assert state.backend_name == backend
    assert API(app).total("pages/") == 0


def test_what_a_backend_needs_is_an_extra_of_its_name() -> None:
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    points = setup["options.entry_points"]["flask_contentapi.backends"]
    databases = {line.split()[0] for line in points.splitlines() if "peewee" in line}
    assert databases == {"sqlite", "postgresql", "mariadb", "mysql"}
    assert databases <= {*setup["options.extras_require"]}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("sqllite:x.db", "backend: There is no backend 'sqllite'. Did you mean 'sqlite'"),
        (MemoryBackend, "backend is <class .*; it must be a Backend, such as MemoryBackend"),
        ({"pages": []}, "backend is {'pages': .*; it must be a Backend, such as MemoryBackend"),
        ("", "backend: The name of the backend is empty"),
    ],
)
def test_what_is_no_backend_stops_the_start(given: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        ContentAPI(Flask("site"), backend=given)
    with pytest.raises(ConfigurationError, match=said):
        ContentAPI().init_app(Flask("site"), backend=given)


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ("no_such_shelf:ShelfBackend", "a module that is not there"),
        ("json.no_such_shelf:ShelfBackend", "a module that is not there"),
        ("json:ShelfBackend", "a class that the module does not have"),
        ("json:loads", "what is no subclass of Backend"),
        ("json:JSONDecoder", "what is no subclass of Backend"),
    ],
)
def test_an_entry_point_of_no_backend_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, wrong: str
) -> None:
    install(tmp_path / "shelf-1.dist-info", f"shelf = {value}")
    monkeypatch.syspath_prepend(tmp_path)
    said = f"The entry point shelf = {value} in flask_contentapi.backends names {wrong}."
    with pytest.raises(ConfigurationError, match=f"^backend: {re.escape(said)}$"):
        ContentAPI(Flask("site"), backend="shelf")


def install(folder: Path, entry_point: str) -> None:
    """Makes the files of an installed package with an entry point for a backend."""
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: shelf\nVersion: 1\n")
    (folder / "entry_points.txt").write_text(f"[flask_contentapi.backends]\n{entry_point}\n")


def test_files_say_that_they_are_edited(tmp_path: Path) -> None:
    api = ContentAPI(app := Flask("site"), backend=JSONFilesBackend(tmp_path))
    with app.app_context(), pytest.raises(NotImplementedError, match="edit them and reload them"):
        api.backend.write().__enter__()


@pytest.mark.parametrize("types", [Page, "blog.Page", None])
def test_types_that_are_in_no_list_stop_the_start(types: Any) -> None:
    with pytest.raises(DeclarationError, match=r"must be a list of classes, as \[HomePage\]"):
        ContentAPI(Flask("site"), types=types)


@pytest.mark.parametrize(
    ("first", "second"),
    [("/api/v2", "/api/v2"), ("/api", "/api/pages"), ("/api/images", "/api")],
)
def test_two_instances_have_no_address_in_common(first: str, second: str) -> None:
    app = Flask("site")
    app.config.update(CMSAPI_URL_PREFIX=first, OTHER_URL_PREFIX=second)
    ContentAPI(app)
    with pytest.raises(ConfigurationError, match=f"OTHER_URL_PREFIX is '{second}'"):
        ContentAPI(app, name="other", config_prefix="OTHER_")


def test_an_instance_can_be_below_another_one() -> None:
    app = Flask("site")
    app.config.update(CMSAPI_URL_PREFIX="/api", OTHER_URL_PREFIX="/api/v2")
    ContentAPI(app)
    ContentAPI(app, name="other", config_prefix="OTHER_")
    assert [API(app, prefix).status("pages/") for prefix in ("/api", "/api/v2")] == [200, 200]


async def coming(rule: Any) -> bool:
    return False


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"can_view": 5}, "can_view is 5; it must be a function of one argument"),
        ({"can_view": lambda: True}, "can_view is .*; it must be a function of one argument"),
        ({"can_view": coming}, "can_view is .*; it must be a function of one argument.* not async"),
        ({"page_urls": PageURLs}, "page_urls is <class .*; it must be an instance"),
        ({"clock": 5}, "clock is 5; it must be a function that returns the time"),
        ({"name": "a.b"}, "name is 'a.b'; it must be a text without dots"),
        ({"name": ""}, "name is ''; it must be a text without dots"),
        ({"config_prefix": None}, "config_prefix is None; it must be a text"),
    ],
)
def test_arguments_that_no_request_could_be_served_with_stop_the_start(
    wrong: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        ContentAPI(Flask("site"), **wrong)


def test_a_clock_without_a_zone_is_in_utc(make_api: MakeAPI) -> None:
    pages = [plain(1), plain(2, 1, go_live_at="2026-01-15T12:00:00Z")]
    for hour, shown in ((11, [1]), (12, [1, 2])):
        moment = datetime(2026, 1, 15, hour)
        assert make_api({"pages": pages}, clock=lambda now=moment: now).ids("pages/") == shown


def test_every_host_is_served_where_hosts_have_their_own_addresses(make_app: MakeApp) -> None:
    app = Flask("site", host_matching=True, static_host="static.example")
    ContentAPI(app, backend=MemoryBackend(ONE))
    for host in ("localhost", "b.example:8080"):
        response = app.test_client().get("/api/v2/pages/1/", headers={"Host": host})
        assert response.status_code == 200


def test_the_last_slash_belongs_to_addresses_whatever_the_site_says() -> None:
    app = Flask("site")
    app.url_map.strict_slashes = False
    ContentAPI(app, backend=MemoryBackend(ONE))
    assert API(app).status("pages") == API(app).status("pages/1") == 308


@pytest.mark.parametrize("error", [ConfigurationError, DeclarationError, ContentError])
def test_a_failed_start_leaves_nothing_behind(error: type[Exception]) -> None:
    app = Flask("site")
    wrong: Any = {
        ConfigurationError: {"config_prefix": "WRONG_"},
        DeclarationError: {"types": [type("X", (Page,), {"api_fields": ["x"]})]},
        ContentError: {"backend": MemoryBackend({"pages": [{"id": 1}]})},
    }[error]
    app.config["WRONG_LIMIT_MAX"] = 0
    with pytest.raises(error):
        ContentAPI(app, **wrong)
    assert app.blueprints == {}
    ContentAPI(app)
    assert API(app).total("pages/") == 0


@on_all
def test_content_is_reached_in_an_application_alone(make_app: MakeApp) -> None:
    api = ContentAPI()
    with pytest.raises(RuntimeError):
        _ = api.backend
    with make_app().app_context(), pytest.raises(RuntimeError, match="'other'"):
        _ = ContentAPI(name="other").backend


@on_all
def test_one_instance_serves_several_applications(backend: str) -> None:
    api = ContentAPI()
    apps = []
    for content in (ONE, TWO):
        app = Flask("site")
        app.config["CMSAPI_BACKEND"] = fresh_address(backend)
        api.init_app(app)
        with app.app_context():
            api.backend.create()
            api.backend.load(content)
        apps.append(API(app))
    assert [one.ids("pages/") for one in apps] == [[1, 2], [7]]
    assert [one.status("pages/7/") for one in apps] == [404, 200]


@on_all
def test_a_factory_makes_applications_that_share_nothing(make_api: MakeAPI) -> None:
    first = make_api(ONE, types=[])
    second = make_api(TWO, types=[], config={"CMSAPI_LIMIT_MAX": 1, "CMSAPI_URL_PREFIX": "/v2"})
    assert first.ids("pages/?limit=20") == [1, 2]
    second = API(second.app, "/v2")
    assert second.ids("pages/") == [7]
    assert second.status("pages/?limit=20") == 400


@pytest.fixture
def twofold(backend: str) -> tuple[API, API]:
    """Two instances in one application, as their APIs."""
    app = Flask("site")
    app.config.update(
        CMSAPI_BACKEND=fresh_address(backend),
        STAFF_BACKEND=fresh_address(backend),
        STAFF_URL_PREFIX="/staff/api",
        STAFF_LIMIT_MAX=1,
        STAFF_MEDIA_URL="/files",
        STAFF_SEARCH_ENABLED=False,
    )
    public = ContentAPI(app)
    staff = ContentAPI(app, name="staff", config_prefix="STAFF_", can_view=lambda rule: True)
    with app.app_context():
        public.backend.create()
        staff.backend.create()
        public.backend.load({**ONE, "documents": [document(1)]})
        secret = [{"id": 1, "restriction": private()}]
        documents = [document(2, collection=1), document(3)]
        staff.backend.load({**TWO, "collections": secret, "documents": documents})
    return API(app), API(app, "/staff/api")


@on_all
def test_instances_have_their_own_content_and_settings(twofold: tuple[API, API]) -> None:
    public, staff = twofold
    assert (public.ids("pages/"), staff.ids("pages/")) == ([1, 2], [7])
    assert (public.ids("documents/"), staff.ids("documents/")) == ([1], [2])
    assert staff.total("documents/") == 2
    assert (public.status("pages/?search=x"), staff.status("pages/?search=x")) == (200, 400)
    meta = staff.items("documents/")[0]["meta"]
    assert meta["detail_url"] == "http://localhost/staff/api/documents/2/"
    assert meta["download_url"] == "http://localhost/files/2.pdf"


def test_instances_have_their_own_addresses(twofold: tuple[API, API]) -> None:
    public, staff = twofold
    with public.app.test_request_context():
        assert url_for("contentapi.pages_list") == "/api/v2/pages/"
        assert url_for("contentapi.pages_detail", id=7, fields="*") == "/api/v2/pages/7/?fields=*"
        assert url_for("contentapi.images_find", id=7) == "/api/v2/images/find/?id=7"
        assert url_for("staff.documents_list", _external=True) == (
            "http://localhost/staff/api/documents/"
        )
    assert staff.follow("http://localhost/staff/api/pages/7/").status_code == 200


# With the site's own views and error pages.


@pytest.fixture(scope="module")
def beside(make_app: MakeApp) -> API:
    """A site with its own views, error pages and blueprint."""
    app = make_app(ONE, types=[])
    shop = Blueprint("shop", __name__, url_prefix="/api/v2x")

    @app.errorhandler(404)
    @app.errorhandler(405)
    @app.errorhandler(HTTPException)
    @app.errorhandler(Exception)
    def page_of_error(error: Any) -> tuple[str, int]:
        return "<h1>The site's own</h1>", getattr(error, "code", 500)

    @app.get("/")
    @shop.get("/")
    @app.get("/api/")
    def home() -> str:
        return "<h1>Home</h1>"

    app.register_blueprint(shop)
    return API(app)


@pytest.mark.parametrize(
    "path", ["/nope", "/api", "/api/v", "/api/v2x/nope", "/api/v3/pages/", "/pages/"]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_outside_the_prefix_the_sites_own_error_pages_stand(
    beside: API, path: str, method: str
) -> None:
    response = beside.app.test_client().open(path, method=method)
    assert response.mimetype == "text/html"
    assert response.status_code in (308, 404)
    assert "own" in response.text or "Redirecting" in response.text


def test_outside_the_prefix_the_sites_own_views_answer(beside: API) -> None:
    client = beside.app.test_client()
    assert [client.get(path).text for path in ("/", "/api/", "/api/v2x/")] == ["<h1>Home</h1>"] * 3
    assert client.post("/").status_code == 405
    assert client.post("/").mimetype == "text/html"


UNKNOWN = ["nope", "nope/", "pages/1/x/", "pages/1/find/", "Pages/", "pages/find/x", "_"]
UNKNOWN += ["x/../y", "%00", "%FF", "%0A/"]


@pytest.mark.parametrize("path", [*UNKNOWN, "pages/x/", "pages/%2e%2e/", "pages/9/"])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH", "TRACE", "PROPFIND"])
def test_under_the_prefix_all_is_json(beside: API, path: str, method: str) -> None:
    response = beside.get(path, method=method)
    assert response.status_code == 404 if path in UNKNOWN or method == "GET" else 405
    assert response.mimetype == "application/json"
    assert response.get_json().keys() == {"message"}


@pytest.mark.parametrize("path", ["pages/", "pages/1/", "pages/x/", "pages/find/", "images/"])
def test_options_are_answered_without_a_body(beside: API, path: str) -> None:
    response = beside.get(path, method="OPTIONS")
    assert (response.status_code, response.data) == (200, b"")
    assert response.headers["Allow"] == "GET, HEAD, OPTIONS"
    assert "Content-Type" not in response.headers


def test_answers_are_json_in_utf_8(make_api: MakeAPI) -> None:
    api = make_api({"pages": [page(1, title="é")]})
    for path in ("pages/", "pages/1/", "pages/9/", "pages/?x=y"):
        assert api.get(path).headers["Content-Type"] == "application/json"
    assert '"é"' in api.get("pages/1/").data.decode()


def test_the_sites_own_hooks_can_refuse(make_app: MakeApp) -> None:
    app = make_app(ONE, types=[])

    @app.before_request
    def gate() -> None:
        if request.args.get("limit") == "1":
            abort(403, "Not today.")
        if request.args.get("limit") == "2":
            abort(429)

    api = API(app)
    assert api.refusal("pages/?limit=1", 403) == "Not today."
    assert api.refusal("pages/?limit=2", 429)
    assert app.test_client().get("/?limit=1").mimetype == "text/html"


@pytest.mark.parametrize("host", ["evil.example", "a..b", ""])
def test_hosts_that_the_site_does_not_trust_are_refused_in_json(
    make_app: MakeApp, host: str
) -> None:
    app = make_app(ONE, types=[], config={"TRUSTED_HOSTS": ["localhost"]})
    client = app.test_client()
    for path in ("/api/v2/pages/", "/api/v2"):
        response = client.get(path, headers={"Host": host})
        assert (response.status_code, response.mimetype) == (400, "application/json")
        assert "host" in response.get_json()["message"]
    assert client.get("/", headers={"Host": host}).mimetype == "text/html"
    assert API(app).ids("pages/") == [1, 2]


# Restrictions and the hook that decides about them.


GUARDED: dict[str, list[Any]] = {
    "sites": [site(1)],
    "collections": [
        {"id": 1, "restriction": private("groups", groups=["staff"])},
        {"id": 2, "parent": 1, "restriction": private("login")},
        {"id": 3, "parent": 2},
    ],
    "images": [image(1, collection=1), image(2, collection=2), image(3, collection=3), image(4)],
    "pages": [
        plain(1),
        plain(2, 1, restriction=private("login")),
        plain(3, 2),
        plain(4, 2, restriction=private("groups", groups=["staff"])),
        plain(5, 4),
        plain(6, 1, restriction=private("groups", groups=["staff"])),
        plain(7, 6, restriction=private("password", hint="x")),
        plain(8, 1),
    ],
}


def by_header(rule: Mapping[str, Any]) -> bool:
    """Passes restrictions that a header names, as a site's own session would."""
    return rule["type"] in request.headers.get("X-Open", "").split(",")


@pytest.fixture(scope="module")
def guarded(make_api: MakeAPI) -> API:
    return make_api(GUARDED, types=[], can_view=by_header)


@on_all
@pytest.mark.parametrize(
    ("opened", "pages", "images"),
    [
        ("", [1, 8], [4]),
        ("login", [1, 2, 3, 8], [4]),
        ("groups", [1, 6, 8], [1, 4]),
        ("login,groups", [1, 2, 3, 4, 5, 6, 8], [1, 2, 3, 4]),
        ("password", [1, 8], [4]),
        ("password,groups", [1, 6, 7, 8], [1, 4]),
        ("login,groups,password", [1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 3, 4]),
    ],
)
def test_all_restrictions_above_have_to_let_in(
    guarded: API, opened: str, pages: list[int], images: list[int]
) -> None:
    headers = {"X-Open": opened}
    assert guarded.ids("pages/", headers=headers) == pages
    assert guarded.ids("images/", headers=headers) == images
    assert guarded.total("pages/?search=page", headers=headers) == len(pages)
    for id in range(1, 9):
        status = guarded.get(f"pages/{id}/", headers=headers).status_code
        assert status == (200 if id in pages else 404)
    branch = guarded.get("pages/?descendant_of=2", headers=headers).status_code
    assert branch == (200 if 2 in pages else 400)


def test_the_hook_sees_restrictions_as_the_records_have_them(make_api: MakeAPI) -> None:
    seen: list[Any] = []
    api = make_api(GUARDED, types=[], can_view=seen.append)
    assert api.ids("pages/") == [1, 8]
    records = [record for key in ("pages", "collections") for record in GUARDED[key]]
    wanted = [record["restriction"] for record in records if "restriction" in record]
    assert sorted(seen, key=str) == sorted(wanted, key=str)


def test_a_relation_opens_with_its_target(make_api: MakeAPI) -> None:
    pages = [page(1, alias_of=2), page(2, 1, restriction=private())]
    api = make_api({"pages": pages}, can_view=by_header)
    path = "pages/?fields=alias_of&id=1"
    assert api.items(path)[0]["meta"]["alias_of"] is None
    (item,) = api.items(path, headers={"X-Open": "login"})
    assert item["meta"]["alias_of"]["id"] == 2


# Errors behind the API.


class Away(MemoryBackend):
    """A storage that does not answer."""

    def reader(self) -> NoReturn:
        raise BackendUnavailable("connection to 192.0.2.1 refused", retry_after=17)


class Leaving(MemoryBackend):
    """A storage that stops answering while it is read."""

    def reader(self) -> Any:
        reader = Mock(wraps=self.snapshot, sites=self.snapshot.sites)
        for name in ("select", "fetch", "get"):
            getattr(reader, name).side_effect = BackendUnavailable("192.0.2.1 gone", 17)
        return nullcontext(reader)


@pytest.mark.parametrize("storage", [Away, Leaving])
@pytest.mark.parametrize("path", ["pages/", "pages/1/", "pages/find/?id=1", "images/"])
def test_a_storage_that_does_not_answer_is_503(
    storage: type[MemoryBackend], path: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = Flask("site")
    ContentAPI(app, backend=storage(ONE))
    response = API(app).get(path)
    assert response.status_code == 503
    assert response.headers["Retry-After"] == "17"
    assert "later" in response.get_json()["message"]
    assert "192.0.2.1" not in response.text
    assert "192.0.2.1" in caplog.text


class Broken(Page):
    app_label = "lab"
    api_fields = [
        APIField("quotient", fields.Function(lambda page: page.id / 0)),
        APIField("thing", fields.Raw(), source="nothing"),
        APIField("refused", fields.Function(lambda page: abort(418))),
    ]

    def nothing(self) -> Any:
        return object()


@pytest.mark.parametrize("name", ["quotient", "thing"])
def test_an_error_in_the_sites_code_is_a_json_500(make_app: MakeApp, name: str) -> None:
    app = make_app({"pages": [page(1, type="lab.Broken")]}, types=[Broken])
    app.register_error_handler(500, lambda error: ("<h1>The site's own</h1>", 500))
    app.register_error_handler(Exception, lambda error: ("<h1>The site's own</h1>", 500))
    api = API(app)
    with pytest.raises((ZeroDivisionError, TypeError)):
        api.get(f"pages/1/?fields=_,{name}")
    app.config.update(TESTING=False, PROPAGATE_EXCEPTIONS=False)
    for path in (f"pages/1/?fields=_,{name}", f"pages/?type=lab.Broken&fields={name}"):
        response = api.get(path)
        assert (response.status_code, response.mimetype) == (500, "application/json")
        assert response.get_json().keys() == {"message"}
        assert "Error" not in response.get_json()["message"].replace("Internal Server Error", "")
    assert api.status("pages/1/?fields=_,id") == 200


def test_the_sites_code_may_refuse_in_its_own_way(make_app: MakeApp) -> None:
    app = make_app({"pages": [page(1, type="lab.Broken")]}, types=[Broken])
    assert API(app).refusal("pages/1/?fields=_,refused", 418)


def test_an_error_in_the_hook_is_a_json_500(make_app: MakeApp) -> None:
    def fail(rule: Any) -> bool:
        raise LookupError

    config = {"TESTING": False}
    app = make_app({"pages": [page(1, restriction=private())]}, can_view=fail, config=config)
    said = "The answer cannot be made because of an error in the application."
    assert API(app).refusal("pages/", 500) == said


def test_the_sites_own_words_about_an_error_stand(make_app: MakeApp) -> None:
    app = make_app(ONE, types=[])
    app.before_request(lambda: abort(500, "The mill is closed."))
    assert API(app).refusal("pages/", 500) == "The mill is closed."


# Simultaneous requests.


@on_all
def test_requests_may_run_at_the_same_time(make_app: MakeApp) -> None:
    app = make_app({"pages": [page(n, title=f"word{n}") for n in range(1, 30)]})
    paths = ["pages/", "pages/3/", "pages/?order=-title", "pages/?search=word7", "pages/?slug=p4"]
    alone = {path: API(app).get(path).data for path in paths}
    wrong: list[str] = []

    def ask() -> None:
        api = API(app)
        wrong.extend(path for path in paths * 5 if api.get(path).data != alone[path])

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_an_unnamed_site_has_no_address() -> None:
    assert Site("").address is None

"""Caching proxies in front of the API keep what is public until it changes, and no preview."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import pytest

from flask_contentapi import Backend
from flask_contentapi.signals import content_changed
from tests.conftest import MakeApp
from tests.pages import blocks_of
from tests.samples import page
from tests.servers import free_port, served, start, stop
from tests.stores import leave_out, on_memory
from tests.temporary import new_folder

pytestmark = [on_memory, pytest.mark.slow]

_CONFIGURATION = """
daemon off;
{user}
pid {folder}/pid;
error_log {folder}/errors;
events {{}}
http {{
    access_log off;
    proxy_cache_path {folder}/cache keys_zone=all:1m;
    proxy_temp_path {folder}/proxy;
    client_body_temp_path {folder}/body;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://127.0.0.1:{behind};
            proxy_set_header Host $http_host;
            proxy_cache all;
            proxy_cache_valid any 10m;
            add_header X-Cache $upstream_cache_status always;
        }}
    }}
}}
"""


@dataclass
class Proxied:
    """A site behind a proxy.

    :param port: the port of the proxy.
    :param token: makes a token for the draft.
    :param clock: the time of the site, in a list.
    :param folder: the files of the proxy.
    """

    port: int
    token: Callable[[], str]
    clock: list[datetime]
    folder: Path

    def get(self, path: str) -> HTTPResponse:
        """The answer of the proxy to a path below the prefix."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", f"/api/v2/{path}")
        response = connection.getresponse()
        response.read()
        connection.close()
        return response

    def kept(self, path: str) -> bool:
        """Whether the proxy keeps the answer to a path."""
        return [self.get(path).headers["X-Cache"] for _ in range(2)][1] == "HIT"


@pytest.fixture(scope="module")
def proxied(make_app: MakeApp) -> Iterator[Proxied]:
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        leave_out("nginx is not installed")
    clock = [datetime(2026, 3, 1, 12, tzinfo=UTC)]
    app = make_app(
        {"pages": [page(1), page(2, 1, live=False, slug="draft", title="Canary")]},
        config={"SECRET_KEY": "owl", "CMSAPI_CACHE_MAX_AGE": 600},
        clock=lambda: clock[0],
    )
    (state,) = app.extensions["contentapi"].values()
    with served(app) as behind:
        folder, port = new_folder(), free_port()
        user = "user root;" if os.geteuid() == 0 else ""
        text = _CONFIGURATION.format(folder=folder, port=port, behind=behind, user=user)
        (folder / "nginx.conf").write_text(text)
        proxy = start([program, "-p", folder, "-c", folder / "nginx.conf"], port)
        yield Proxied(port, lambda: state.previews.write(("pages", 2), 60, None), clock, folder)
        stop(proxy)


PATHS = (
    "pages/?",
    "pages/2/?",
    "pages/find/?id=2&",
    "pages/detail_by_path/?html_path=/draft/&",
    "pages/?limit=0&",
)


def test_what_is_public_is_kept(proxied: Proxied) -> None:
    assert proxied.kept("pages/1/")


@pytest.mark.parametrize("path", PATHS)
def test_nothing_of_a_preview_is_kept(proxied: Proxied, path: str) -> None:
    assert not proxied.kept(f"{path}preview={proxied.token()}")
    kept = [file.read_bytes() for file in proxied.folder.glob("cache/*")]
    assert not any(b"Canary" in text for text in kept)


def test_an_expired_token_gets_nothing(proxied: Proxied) -> None:
    path = f"pages/2/?preview={proxied.token()}"
    assert proxied.get(path).status == 200
    proxied.clock[0] += timedelta(minutes=2)
    assert [proxied.get(path).status for _ in range(2)] == [403, 403]


def test_a_refusal_is_not_kept(proxied: Proxied) -> None:
    assert not proxied.kept("pages/2/?preview=x")


# Varnish, with the files of the documentation.


@dataclass
class Varnish:
    """A site behind Varnish, which is told what has changed.

    :param port: the port of the proxy.
    :param backend: the content.
    """

    port: int
    backend: Backend

    def get(self, path: str) -> tuple[bool, str]:
        """Whether Varnish has kept the answer to a path, and the answer."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", f"/api/v2/{path}")
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        # The second number is that of the request that was kept.
        return len(response.headers["X-Varnish"].split()) == 2, text


def page_block(text: str) -> str:
    """The code on the page about proxies in which a text is."""
    (found,) = (b.text for b in blocks_of("docs/howto/scale-out.rst") if text in b.text)
    return found


@pytest.fixture
def varnish(make_app: MakeApp) -> Iterator[Varnish]:
    program = shutil.which("varnishd") or shutil.which("varnishd", path="/usr/sbin")
    if program is None:
        leave_out("Varnish is not installed")
    app = make_app(
        {"pages": [page(1), page(2, 1, title="Fog"), page(3, 1, title="Tide")]},
        config={"CMSAPI_CACHE_MAX_AGE": 86400, "CMSAPI_CACHE_TAG_HEADER": "Surrogate-Key"},
    )
    (state,) = app.extensions["contentapi"].values()
    with served(app) as behind:
        folder, port = new_folder(), free_port()
        rules = page_block("vcl 4.1").replace("5000", str(behind))
        (folder / "default.vcl").write_text(rules)
        options = ["-n", folder / "work", "-f", folder / "default.vcl", "-j", "none"]
        proxy = start([program, "-F", "-a", f"127.0.0.1:{port}", *options], port)
        names: dict[str, Any] = {"app": app, "content_changed": content_changed}
        exec(page_block("def purge"), names)  # noqa: S102 - our own
        names["PROXIES"] = [f"http://127.0.0.1:{port}"]
        with app.app_context():
            yield Varnish(port, state.backend)
        content_changed.disconnect(names["purge"])
        stop(proxy)


def test_varnish_keeps_answers(varnish: Varnish) -> None:
    assert [varnish.get("pages/2/")[0] for _ in range(3)] == [False, True, True]


def test_a_change_reaches_clients_of_varnish(varnish: Varnish) -> None:
    lists, details = "pages/?fields=_,title", "pages/2/?fields=_,title"
    for path in (lists, details, "pages/3/"):
        varnish.get(path)
    with varnish.backend.write() as content:
        content.update("pages", 2, title="Mist")
    assert varnish.get(details) == (False, '{"title":"Mist"}')
    assert "Mist" in varnish.get(lists)[1]
    assert varnish.get("pages/3/")[0]


def test_varnish_keeps_nothing_that_was_removed(varnish: Varnish) -> None:
    assert "Tide" in varnish.get("pages/3/")[1]
    with varnish.backend.write() as content:
        content.unpublish(3)
    assert "Tide" not in varnish.get("pages/3/")[1]
    assert "Tide" not in varnish.get("pages/")[1]

"""A caching proxy in front of the API keeps what is public, and nothing of a preview."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest

from tests.conftest import MakeApp
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

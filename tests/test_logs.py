"""What the log says, and how often."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import pytest
from flask import Flask

from flask_contentapi import BackendUnavailable, ContentAPI
from flask_contentapi.backend import Reader
from flask_contentapi.logs import Outages
from flask_contentapi_memory import MemoryBackend
from tests.api import API
from tests.conformance.reference_site import TYPES
from tests.samples import page, site

CONTENT: dict[str, list[Any]] = {"sites": [site(1)], "pages": [page(1)]}
DOWN = "The content cannot be read: The lights are out."
UP = "The content can be read again."


class Storage(MemoryBackend):
    """Content that can be out of reach."""

    is_down = False

    def reader(self) -> AbstractContextManager[Reader]:
        if self.is_down:
            raise BackendUnavailable("The lights are out.")
        return super().reader()


def api_of(storage: Storage) -> API:
    app = Flask("site")
    ContentAPI(app, types=TYPES, backend=storage)
    return API(app)


@pytest.fixture
def storage() -> Storage:
    return Storage(CONTENT)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time by which outages are logged; it goes on when a test says so."""
    moment = [5.0]
    timed = partial(Outages, lambda: moment[0])
    monkeypatch.setattr("flask_contentapi.extension.Outages", timed)
    return moment


# Outages.


def test_an_outage_is_one_line_a_minute(
    storage: Storage, now: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    api = api_of(storage)
    storage.is_down = True
    for seconds in range(150):
        now[0] = 5.0 + seconds
        assert api.status("pages/") == 503
    assert caplog.messages == [DOWN] * 3


def test_the_end_of_an_outage_is_one_line(
    storage: Storage, now: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    api = api_of(storage)
    storage.is_down = True
    api.status("pages/")
    storage.is_down = False
    assert [api.status(path) for path in ("nowhere/", "pages/", "pages/1/")] == [404, 200, 200]
    assert caplog.messages == [DOWN, UP]


def test_what_comes_and_goes_is_logged_no_more_often(
    storage: Storage, now: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    api = api_of(storage)
    for seconds in range(120):
        now[0] = 5.0 + seconds
        storage.is_down = not storage.is_down
        api.status("pages/")
    assert caplog.messages == [DOWN, UP] * 2


def test_each_instance_logs_its_own_outage(
    storage: Storage, now: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    app, other = Flask("site"), Storage(CONTENT)
    app.config["INTRANET_URL_PREFIX"] = "/intranet"
    ContentAPI(app, types=TYPES, backend=storage)
    ContentAPI(app, types=TYPES, backend=other, name="intranet", config_prefix="INTRANET_")
    client = app.test_client()
    storage.is_down = True
    statuses = [client.get(f"{at}/pages/").status_code for at in ("/api/v2", "/intranet") * 2]
    assert statuses == [503, 200] * 2
    assert caplog.messages == [DOWN]
    other.is_down = True
    client.get("/intranet/pages/")
    assert caplog.messages == [DOWN, DOWN]


def test_threads_log_an_outage_once(
    storage: Storage, now: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    api = api_of(storage)
    for storage.is_down in (True, False):
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(api.status, ["pages/"] * 80))
    assert caplog.messages == [DOWN, UP]


# Sites with and without logging of their own.


@contextmanager
def only(*handlers: logging.Handler) -> Iterator[None]:
    """Only these handlers are set up meanwhile."""
    before, logging.root.handlers = logging.root.handlers, [*handlers]
    try:
        yield
    finally:
        logging.root.handlers = before


def test_lines_have_time_and_level_without_logging(
    storage: Storage, capsys: pytest.CaptureFixture[str]
) -> None:
    with only():
        api = api_of(storage)
        storage.is_down = True
        api.status("pages/")
    (line,) = capsys.readouterr().err.splitlines()
    assert re.fullmatch(rf"\[\d{{4}}-\d\d-\d\d [\d:,]{{12}}\] ERROR in \w+: {DOWN}", line)


def test_warnings_at_the_start_have_time_and_level(capsys: pytest.CaptureFixture[str]) -> None:
    app = Flask("site")
    app.config["CMSAPI_LIMITMAX"] = 5
    with only():
        ContentAPI(app, backend=MemoryBackend())
    assert re.match(r"\[.+\] WARNING in \w+: There is no setting", capsys.readouterr().err)


def test_logging_set_up_later_is_left_alone(
    storage: Storage, capsys: pytest.CaptureFixture[str]
) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("mine: %(message)s"))
    api = api_of(storage)
    storage.is_down = True
    with only(handler):
        api.status("pages/")
    assert capsys.readouterr().err == f"mine: {DOWN}\n"


def test_a_site_may_silence_the_logger(
    storage: Storage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    logger = logging.getLogger("flask_contentapi")
    monkeypatch.setattr(logger, "handlers", [*logger.handlers, logging.NullHandler()])
    api = api_of(storage)
    storage.is_down = True
    with only():
        api.status("pages/")
    assert capsys.readouterr().err == ""


def test_each_line_is_written_once(storage: Storage, capsys: pytest.CaptureFixture[str]) -> None:
    """The application's own log has a handler by then."""
    with only():
        api = api_of(storage)
        api.app.logger.warning("Hello.")
        storage.is_down = True
        api.status("pages/")
    assert capsys.readouterr().err.count(DOWN) == 1

"""Helpers for the tests of database backends."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from operator import attrgetter
from typing import Any

import pytest
from flask import Flask

from flask_contentapi import Backend, ContentAPI
from flask_contentapi.writer import Writer
from flask_contentapi_peewee import PeeweeBackend
from tests.api import API
from tests.conformance.reference_site import TYPES
from tests.servers import PATIENCE, SERVERS
from tests.stores import DATABASES

__all__ = [
    "api_at",
    "app_at",
    "asked",
    "noted",
    "on_databases",
    "on_servers",
    "on_sqlite",
    "on_writable",
    "storage",
    "until",
    "writing",
]


def storage(api: API) -> PeeweeBackend:
    """The database backend of an application."""
    backend = api.backend
    assert isinstance(backend, PeeweeBackend)
    return backend


def api_at(address: str | Backend, content: Mapping[str, Any] | None = None) -> API:
    """The API of the reference site at a database, which is made and filled if content is given."""
    api = API(app_at(address))
    if content is not None:
        with api.app.app_context():
            api.backend.create()
        api.load(content)
    return api


def app_at(address: str | Backend) -> Flask:
    """The reference site at a database."""
    app = Flask("site")
    app.config.update({"TESTING": True, "CMSAPI_BACKEND": address})
    ContentAPI(app, types=TYPES)
    return app


@contextmanager
def asked(api: API, path: str, threads: int = 4) -> Iterator[Counter[int]]:
    """Repeats a request while something happens, and counts the answers by status."""
    statuses: Counter[int] = Counter()
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            statuses[api.status(path)] += 1

    running = [threading.Thread(target=ask) for _ in range(threads)]
    for thread in running:
        thread.start()
    try:
        until(lambda: sum(statuses.values()) > threads)
        yield statuses
        seen = sum(statuses.values())
        until(lambda: sum(statuses.values()) > seen + 10 * threads)
    finally:
        over.set()
        for thread in running:
            thread.join()


def until(happened: Callable[[], object]) -> None:
    """Waits for something; fails if it does not happen in time."""
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.02)


@contextmanager
def writing(api: API) -> Iterator[Writer]:
    """Opens a writer for the content of an application."""
    with api.backend.write() as writer:
        yield writer


@contextmanager
def noted(api: API, note: Callable[[Any], Any] = attrgetter("sql")) -> Iterator[list[Any]]:
    """Records something about the statements that are made meanwhile; by default their SQL."""
    made: list[Any] = []
    hook: Callable[[Any], None] = lambda event: made.append(note(event))  # noqa: E731
    hooks = storage(api).engine.database.query_hooks
    hooks.append(hook)
    try:
        yield made
    finally:
        hooks.remove(hook)


on_databases = pytest.mark.backends(*DATABASES)
on_servers = pytest.mark.backends(*SERVERS)
on_sqlite = pytest.mark.backends("sqlite")
#: The backends whose content can be changed object by object.
on_writable = pytest.mark.backends("memory", *DATABASES)

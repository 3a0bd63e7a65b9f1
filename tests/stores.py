"""Stores for tests, of each backend.

Making the tables of a database takes its time, so that one whose application is gone serves the
next one that needs the same tables; loading replaces all that is in it.
"""

from __future__ import annotations

import gc
import os
import secrets
import weakref
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import pytest

from flask_contentapi import Entry
from flask_contentapi.backend import Backend
from flask_contentapi.registry import Registry
from flask_contentapi_peewee import (
    MariaDBBackend,
    PeeweeBackend,
    PostgreSQLBackend,
    SQLiteBackend,
)
from flask_contentapi_peewee.layouts import layout_of
from flask_contentapi_peewee.tables import Tables
from tests.servers import SERVERS, why_missing
from tests.temporary import new_folder

#: The databases, and what opens each.
DATABASES: dict[str, type[PeeweeBackend]] = {
    "sqlite": SQLiteBackend,
    "postgresql": PostgreSQLBackend,
    "mariadb": MariaDBBackend,
}
#: The backends that the tests run on; ``CONTENTAPI_TEST_BACKENDS`` can name fewer, with commas.
BACKENDS = ("memory", "jsonfiles", *DATABASES)
BACKENDS = tuple(os.environ.get("CONTENTAPI_TEST_BACKENDS", ",".join(BACKENDS)).split(","))
#: Set where tests must not be left out because a server is missing.
REQUIRED = "CONTENTAPI_REQUIRE_SERVERS"
#: How many stores with the same tables are made before those that nobody uses are looked for.
LENT_AT_ONCE = 8


def fresh_address(backend: str) -> str:
    """What ``CMSAPI_BACKEND`` is for a store of the named backend with nothing in it."""
    if backend == "jsonfiles":
        return f"jsonfiles:{new_folder()}"
    if backend == "sqlite":
        return f"sqlite:///{new_folder()}/content.db"
    if backend in SERVERS:
        return _fresh_database(backend)
    return backend


def _fresh_database(backend: str) -> str:
    server = SERVERS[backend]()
    if server is None:
        leave_out(why_missing(backend))
    name = f"contentapi_{secrets.token_hex(6)}"
    server.create_database(name)
    return f"{server.address}/{name}"


def leave_out(why: str) -> NoReturn:
    """Leaves the test out, for all to see; where nothing may be left out, it fails."""
    if os.environ.get(REQUIRED):
        pytest.fail(f"{why}, and {REQUIRED} is set")
    pytest.skip(why)


class Store:
    """A store that is lent for as long as a backend is in use.

    :param address: what ``CMSAPI_BACKEND`` is for it.
    :param shelf: where it is put when it is free again; others are not used twice.
    """

    def __init__(self, address: str, shelf: Shelf | None = None) -> None:
        self.address = address
        self._shelf = shelf

    def lend(self, backend: Backend) -> None:
        """Makes it ready for the backend that serves from it."""
        backend.create()
        if self._shelf is not None and isinstance(backend, PeeweeBackend):
            weakref.finalize(backend, self._shelf.put_back, self, backend.engine.close)


class Shelf:
    """Stores with the same tables that are free.

    :param backend: the name of the backend.
    """

    def __init__(self, backend: str) -> None:
        self._backend = backend
        self._free: list[Store] = []
        self._lent = 0

    def take(self) -> Store:
        """A store that nobody uses."""
        if not self._free and self._lent % LENT_AT_ONCE == LENT_AT_ONCE - 1:
            gc.collect()
        self._lent += 1
        return self._free.pop() if self._free else Store(fresh_address(self._backend), self)

    def put_back(self, store: Store, close: Callable[[], None]) -> None:
        """Makes a store free for others."""
        close()
        self._free.append(store)


_shelves: dict[tuple[str, ...], Shelf] = {}


def take_store(backend: str, types: Iterable[type[Entry]]) -> Store:
    """A store of the named backend; the one who takes it loads all of its content anew.

    :param types: what it is to hold.
    """
    if backend not in DATABASES:
        return Store(fresh_address(backend))
    key = (backend, *_statements(backend, tuple(types)))
    return _shelves.setdefault(key, Shelf(backend)).take()


@cache
def _statements(backend: str, types: tuple[type[Entry], ...]) -> tuple[str, ...]:
    """What makes the tables for some types, and what is kept of them."""
    address = "///content.db" if backend == "sqlite" else "//localhost/content"
    engine = DATABASES[backend].engine_class.connect(address, Path())
    tables = Tables(Registry(types), engine)
    statements = [sql for model in tables.models for sql in _statements_of(model)]
    return (*statements, str(layout_of(tables).write()))


def _statements_of(model: Any) -> Iterator[str]:
    schema = model._schema
    for context in (schema._create_table(safe=False), *schema._create_indexes(safe=False)):
        yield str(context.query())

"""Stores for tests, of each backend.

Creating tables takes time, so a database whose application is gone is reused by the next one that
needs the same tables; loading replaces the whole content.
"""

from __future__ import annotations

import gc
import os
import re
import secrets
import weakref
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Iterator, Mapping
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
from flask_contentapi_peewee.tables import Tables
from tests.servers import SERVERS, variable_of, why_missing
from tests.temporary import new_folder

#: The database backends.
DATABASES: dict[str, type[PeeweeBackend]] = {
    "sqlite": SQLiteBackend,
    "postgresql": PostgreSQLBackend,
    "mariadb": MariaDBBackend,
}
#: All backends.
BACKENDS = ("memory", "jsonfiles", *DATABASES)
#: Those that tests run on unless ``--backends`` names others.
QUICK = ("memory", "sqlite")
#: The variable that makes a missing server a failure.
REQUIRED = "CONTENTAPI_REQUIRE_SERVERS"
#: Marks what the core does alike over every backend, so that one is enough.
on_memory = pytest.mark.backends("memory")
#: Marks what the core does with what is stored: one store asks in Python, and one in SQL.
on_two = pytest.mark.backends("memory", "sqlite")
#: Marks what JSON files, which answer from memory's snapshots, do as memory does.
except_files = pytest.mark.backends("memory", *DATABASES)
#: Marks tests of the stores in modules with that mark.
on_all = pytest.mark.backends(*BACKENDS)
#: After this many stores with the same tables, garbage collection looks for unused ones.
LENT_AT_ONCE = 8


def named_backends(text: str) -> tuple[str, ...]:
    """The backends that a value of ``--backends`` names."""
    names = BACKENDS if text == "all" else tuple(text.replace(" ", "").split(","))
    if not {*names} <= {*BACKENDS}:
        known = ",".join(BACKENDS)
        raise ArgumentTypeError(f"{text!r} must be all, or some of {known}, with commas.")
    return names


def wrong_variables(environment: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with the environment variables for tests, in sentences."""
    required = environment.get(REQUIRED, "1")
    if required not in ("", "1"):
        yield f"{REQUIRED} is {required!r}; it must be 1, or not be set."
    for name in SERVERS:
        variable = variable_of(name)
        address = environment.get(variable)
        if address and not re.fullmatch(rf"{name}://[^/?]+", address):
            yield (
                f"{variable} is {address!r}; it must be the address of a server without the name "
                f"of a database, as {name}://user@127.0.0.1:{3306 if name == 'mariadb' else 5432}."
            )


def fresh_address(backend: str) -> str:
    """The value of ``CMSAPI_BACKEND`` for a new, empty store of a backend."""
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
    """Skips the test, with the reason, or fails it if nothing may be skipped."""
    if os.environ.get(REQUIRED):
        pytest.fail(f"{why}, and {REQUIRED} is set")
    pytest.skip(why)


class Store:
    """A store that is lent as long as a backend exists.

    :param address: the value of ``CMSAPI_BACKEND`` for it.
    :param shelf: where it is returned when it is free; without one it is not reused.
    """

    def __init__(self, address: str, shelf: Shelf | None = None) -> None:
        self.address = address
        self._shelf = shelf

    def lend(self, backend: Backend) -> None:
        """Prepares the store for a backend that serves from it."""
        backend.create()
        if self._shelf is not None and isinstance(backend, PeeweeBackend):
            weakref.finalize(backend, self._shelf.put_back, self, backend.engine.close)


class Shelf:
    """Free stores with the same tables.

    :param backend: the name of the backend.
    """

    def __init__(self, backend: str) -> None:
        self._backend = backend
        self._free: list[Store] = []
        self._lent = 0

    def take(self) -> Store:
        """Takes a free store, or makes one."""
        if not self._free and self._lent % LENT_AT_ONCE == LENT_AT_ONCE - 1:
            gc.collect()
        self._lent += 1
        return self._free.pop() if self._free else Store(fresh_address(self._backend), self)

    def put_back(self, store: Store, close: Callable[[], None]) -> None:
        """Closes a store and makes it free again."""
        close()
        self._free.append(store)


_shelves: dict[tuple[str, ...], Shelf] = {}


def take_store(backend: str, types: Iterable[type[Entry]]) -> Store:
    """A store of a backend, which may have old content that has to be replaced.

    :param types: the types that it has to hold.
    """
    if backend not in DATABASES:
        return Store(fresh_address(backend))
    key = (backend, *_statements(backend, tuple(types)))
    return _shelves.setdefault(key, Shelf(backend)).take()


@cache
def _statements(backend: str, types: tuple[type[Entry], ...]) -> tuple[str, ...]:
    """The statements that create the tables for some types, and what is declared."""
    address = "///content.db" if backend == "sqlite" else "//localhost/content"
    engine = DATABASES[backend].engine_class.connect(address, Path())
    tables = Tables(Registry(types), engine)
    statements = [sql for model in tables.models for sql in _statements_of(model)]
    return (*statements, tables.declared)


def _statements_of(model: Any) -> Iterator[str]:
    schema = model._schema
    for context in (schema._create_table(safe=False), *schema._create_indexes(safe=False)):
        yield str(context.query())

"""What the tests of the databases share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from flask_contentapi_peewee import PeeweeBackend
from flask_contentapi_peewee.writing import Writer
from tests.api import API
from tests.stores import BACKENDS, DATABASES

__all__ = ["NAMES", "noted", "on_databases", "storage", "writing"]

#: The names of the databases.
NAMES = [name for name in BACKENDS if name in DATABASES]


def storage(api: API) -> PeeweeBackend:
    """The database that an application serves from."""
    backend = api.backend
    assert isinstance(backend, PeeweeBackend)
    return backend


@contextmanager
def writing(api: API) -> Iterator[Writer]:
    """Changes the content of an application."""
    with storage(api).write() as writer:
        yield writer


@contextmanager
def noted(api: API) -> Iterator[list[str]]:
    """The statements that are made meanwhile."""
    made: list[str] = []
    hook: Callable[[Any], None] = lambda event: made.append(event.sql)  # noqa: E731
    hooks = storage(api).engine.database.query_hooks
    hooks.append(hook)
    try:
        yield made
    finally:
        hooks.remove(hook)


#: Runs the tests that use ``backend`` on the databases only.
on_databases = pytest.mark.parametrize("backend", NAMES, indirect=True, scope="session")

"""Counts the statements that a request makes in a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from importlib import import_module
from typing import Any

from flask import Flask

from bench.content import HOST
from bench.servers import Server

__all__ = ["application", "count_statements"]


def application(server: Server, arguments: Sequence[str]) -> Flask:
    """The application of a server, in this process.

    :param arguments: the arguments of the factory.
    """
    module, _, function = server.factory.partition(":")
    app: Flask = getattr(import_module(module), function)(*arguments)
    return app


def count_statements(app: Flask, addresses: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """The number of statements for each workload, with everything cached that may be.

    :param app: an application with a database, which is closed at the end.
    :param addresses: the addresses of the workloads.
    """
    made: list[Any] = []
    counts = {}
    client = app.test_client()
    with closing(_listening(app, made)):
        for name, paths in addresses.items():
            for _ in range(2):
                made.clear()
                client.get(paths[0], headers={"Host": HOST})
            counts[name] = len(made)
    return counts


def _listening(app: Flask, made: list[Any]) -> Any:
    """The storage of an application, with all its statements recorded."""
    if "contentapi" in app.extensions:
        backend = app.extensions["contentapi"]["contentapi"].backend
        backend.engine.reading.query_hooks.append(made.append)
        return backend
    database = app.extensions["database"]
    ask = database.rows

    def rows(sql: str, *values: Any) -> Any:
        made.append(sql)
        return ask(sql, *values)

    database.rows = rows
    return database

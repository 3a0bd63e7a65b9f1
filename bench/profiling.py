"""Profiles one workload."""

from __future__ import annotations

import pstats
import time
from collections.abc import Callable
from cProfile import Profile

from werkzeug.test import create_environ

from bench.content import HOST
from bench.servers import Server
from bench.statements import application
from bench.stores import Stores

__all__ = ["profile"]

#: How long requests are sent, in seconds, and how many functions are shown.
SECONDS, SHOWN = 5, 30


def profile(server: Server, pages: int, workload: str) -> None:
    """Prints the functions in which a workload spends the most time.

    :param server: the server; its application runs in this process.
    :param pages: the number of its pages.
    :param workload: the workload's name.
    """
    stores = Stores(pages)
    app = application(server, stores.arguments(server))
    # Calling the application as a server does avoids the cost of a test client.
    asked = [create_environ(path, f"http://{HOST}") for path in stores.addresses[workload]]
    measured = Profile()
    requests, end = 0, time.monotonic() + SECONDS
    while time.monotonic() < end:
        environ = asked[requests % len(asked)].copy()
        # When every address has been requested once, one-time work is over.
        if requests == len(asked):
            measured.enable()
        b"".join(app(environ, _ignore))
        requests += 1
    measured.disable()
    print(f"{requests} requests for {workload} to {server.label}, {pages:,} pages")
    pstats.Stats(measured).strip_dirs().sort_stats("tottime").print_stats(SHOWN)


def _ignore(status: str, headers: object, error: object = None) -> Callable[[bytes], object]:
    """Ignores the status and the headers of an answer."""
    return len

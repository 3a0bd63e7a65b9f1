"""Where the time of one workload goes."""

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

#: How long requests are made, in seconds, and how many functions are shown.
SECONDS, SHOWN = 5, 30


def profile(server: Server, pages: int, workload: str) -> None:
    """Prints the functions in which a workload spends the most time.

    :param server: what is asked, in this process.
    :param pages: how many pages it has.
    :param workload: the workload's name.
    """
    stores = Stores(pages)
    app = application(server, stores.arguments(server))
    # Calling it as a server does leaves out what a client for tests costs.
    asked = [create_environ(path, f"http://{HOST}") for path in stores.addresses[workload]]
    measured = Profile()
    requests, end = 0, time.monotonic() + SECONDS
    while time.monotonic() < end:
        environ = asked[requests % len(asked)].copy()
        # What is only done at first is over when all have been asked once.
        if requests == len(asked):
            measured.enable()
        b"".join(app(environ, _ignore))
        requests += 1
    measured.disable()
    print(f"{requests} requests for {workload} to {server.label}, {pages:,} pages")
    pstats.Stats(measured).strip_dirs().sort_stats("tottime").print_stats(SHOWN)


def _ignore(status: str, headers: object, error: object = None) -> Callable[[bytes], object]:
    """Takes what comes in front of an answer."""
    return len

"""Where the time of one workload goes."""

from __future__ import annotations

import pstats
import time
from cProfile import Profile

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
    client = application(server, stores.arguments(server)).test_client()
    paths = stores.addresses[workload]
    for path in paths:
        client.get(path, headers={"Host": HOST})
    measured = Profile()
    requests, end = 0, time.monotonic() + SECONDS
    with measured:
        while time.monotonic() < end:
            client.get(paths[requests % len(paths)], headers={"Host": HOST})
            requests += 1
    print(f"{requests} requests for {workload} to {server.label}, {pages:,} pages")
    pstats.Stats(measured).strip_dirs().sort_stats("tottime").print_stats(SHOWN)

"""Measures servers that run side by side, in turns, so that noise affects all of them alike."""

from __future__ import annotations

import os
import platform
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from bench import load
from bench.checking import compare
from bench.load import Request
from bench.servers import BY_HAND, CONSTANT, PRODUCT, Running, Server, pinned
from bench.statements import application, count_statements
from bench.stores import Stores, say
from bench.workloads import CONDITIONAL

__all__ = ["Bench", "chosen", "machine"]

#: The duration of the warm-up, relative to that of the measurement.
WARM_UP = 0.25
#: As long as an ETag of the extension.
SOME_TAG = f'"{32 * "0"}"'
#: Packages whose versions are in the results.
PACKAGES = ("Flask", "Werkzeug", "gunicorn", "marshmallow", "orjson", "peewee", "psycopg")


def chosen(backends: Iterable[str]) -> list[Server]:
    """Some backends of the extension, each with its hand-written counterpart, and the constant."""
    product = {server.name: server for server in PRODUCT}
    servers: dict[str, Server] = {}
    for name in backends:
        for server in (BY_HAND.get(name), product[name]):
            if server is not None:
                servers[server.name] = server
    return [*servers.values(), CONSTANT]


class Cell:
    """One server with one number of pages, and its measurements.

    :param server: the server.
    :param stores: its content.
    """

    def __init__(self, server: Server, stores: Stores) -> None:
        self.server = server
        self.pages = stores.pages
        self.addresses = stores.addresses
        self.arguments = stores.arguments(server)
        self.rates: dict[str, list[float]] = {}
        self.start: dict[str, float] = {}
        self.statements: dict[str, int] = {}
        if server.storage in ("sqlite", "postgresql", "mariadb"):
            self.statements = count_statements(application(server, self.arguments), self.addresses)

    def begin(self) -> None:
        """Starts the server, and measures the time until it answers a list, and a search."""
        self.running = Running(self.server, self.pages, self.arguments)
        for name in ("W1", "W8") if self.server is not CONSTANT else ("W1",):
            self.start[name] = self.running.first(self.addresses[name][0])

    def measure(self, workload: str, seconds: float) -> None:
        """Measures the rate of a workload, after a warm-up."""
        requests = self._requests(workload)
        load.drive(self.running.port, requests, seconds * WARM_UP)
        rate = load.drive(self.running.port, requests, seconds)
        self.rates.setdefault(workload, []).append(rate)

    def serves(self, workload: str) -> bool:
        """Whether a workload makes sense for the server."""
        if self.server is CONSTANT:
            return workload in ("W1", CONDITIONAL)
        return workload != CONDITIONAL or self.server in PRODUCT

    def _requests(self, workload: str) -> list[Request]:
        if workload != CONDITIONAL:
            return [Request(path) for path in self.addresses[workload]]
        return self.conditional

    @property
    def conditional(self) -> list[Request]:
        """The requests of all workloads but W10, with the ETags of their answers, or a dummy."""
        paths = [path for name, found in self.addresses.items() if name != "W10" for path in found]
        return [Request(path, self.running.get(path).tag or SOME_TAG) for path in paths]

    def result(self) -> dict[str, Any]:
        """What was measured."""
        return {
            "server": self.server.name,
            "pages": self.pages,
            "rates": {name: [round(rate, 1) for rate in of] for name, of in self.rates.items()},
            "start": {name: round(seconds, 2) for name, seconds in self.start.items()},
            "peak_memory": self.running.peak,
            "statements": self.statements,
        }


class Bench:
    """All servers that are measured.

    :param sizes: the numbers of pages; each server runs once for each of them.
    :param servers: the servers.
    """

    def __init__(self, sizes: Iterable[int], servers: Sequence[Server]) -> None:
        self.cells = []
        for pages in sizes:
            stores = Stores(pages)
            self.cells += [Cell(server, stores) for server in servers]

    @contextmanager
    def running(self) -> Iterator[None]:
        """Starts all servers, one after another, and compares their answers."""
        with ExitStack() as stack:
            for cell in self.cells:
                say(f"Starting {cell.server.label}, {cell.pages:,} pages")
                cell.begin()
                stack.callback(cell.running.stop)
            self._check()
            yield

    def _check(self) -> None:
        """Compares the answers of all servers with the same content."""
        for pages in {cell.pages for cell in self.cells}:
            say(f"Comparing the answers about {pages:,} pages")
            same = [c for c in self.cells if c.pages == pages and c.server is not CONSTANT]
            compare({c.server.label: c.running for c in same}, same[0].addresses)
            for cell in same:
                if cell.server in PRODUCT:
                    _check_conditional(cell)

    def measure(self, workloads: Sequence[str], seconds: float, rounds: int) -> None:
        """Measures one workload after another, each on one server after another.

        :param workloads: their names.
        :param seconds: how long each is measured in a round.
        :param rounds: the number of rounds; each has the servers in a different order.
        """
        for number in range(rounds):
            for workload in workloads:
                cells = [cell for cell in self.cells if cell.serves(workload)]
                start = number * max(1, len(cells) // rounds) % len(cells)
                with pinned(-1):
                    for cell in cells[start:] + cells[:start]:
                        cell.measure(workload, seconds)
                self._tell(number, workload, cells)

    def _tell(self, number: int, workload: str, cells: Sequence[Cell]) -> None:
        found = (f"{c.server.name} {median(c.rates[workload]):.0f}" for c in cells)
        say(f"Round {number + 1}, {workload}: {', '.join(found)}")

    def results(self) -> list[dict[str, Any]]:
        """What was measured, for each server and number of pages."""
        return [cell.result() for cell in self.cells]


def _check_conditional(cell: Cell) -> None:
    for path, tag in cell.conditional:
        answer = cell.running.get(path, {"If-None-Match": tag})
        if answer.status != 304 or answer.body:
            raise SystemExit(f"{cell.server.label} answers {path} with {tag} by {answer.status}.")


def machine() -> Mapping[str, Any]:
    """The machine that measures, and the versions of its software."""
    cpu = Path("/proc/cpuinfo").read_text()
    names = [line.partition(": ")[2] for line in cpu.splitlines() if line.startswith("model name")]
    return {
        "processor": names[0] if names else platform.machine(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "generator": load.GENERATOR,
        "versions": {
            "Python": platform.python_version(),
            **{name: version(name) for name in PACKAGES},
            "SQLite": sqlite3.sqlite_version,
        },
    }

"""Measures the extension beside the same by hand, or beside another checkout of it."""

from __future__ import annotations

import argparse
import json
import os
import platform
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from http.client import HTTPConnection
from importlib.metadata import version
from itertools import cycle
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import psycopg

from bench import by_hand, content
from bench.magazine import HOST, PREFIX
from tests.servers import free_port, start
from tests.stores import fresh_address
from tests.temporary import new_folder

__all__ = ["main"]

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PAGE, BEGIN = ROOT / "docs" / "performance.rst", ".. The table, made by: python3 bench --rst\n\n"
STORES = ["memory", "jsonfiles", "sqlite", "postgresql", "mariadb"]
MODES = ["anew", "fresh", "kept"]
#: What servers that keep answers are asked besides, and a constant view as well.
KEPT = ["304 all but W10", "200 all but W10"]
#: The number of simultaneous requests, and the length of a warm-up in that of a measurement.
CONNECTIONS, WARM_UP = 4, 0.25


class Server:
    """A running application, with one gunicorn worker.

    :param root: the checkout whose extension it uses.
    :param call: what makes the application.
    """

    def __init__(self, root: Path, call: str) -> None:
        self._port, self._messages = free_port(), dict[str, Iterator[bytes]]()
        command = [sys.executable, "-m", "gunicorn", "--timeout=0", "--log-level=error"]
        command += [f"--bind=127.0.0.1:{self._port}", call]
        start(command, self._port, **_beside_the_site(root))

    def get(self, path: str, tag: str = "") -> tuple[int, str, bytes, str]:
        """The status, ``Location``, body and ``ETag`` of an answer."""
        connection = HTTPConnection("127.0.0.1", self._port)
        connection.request("GET", path, headers={"Host": HOST, "If-None-Match": tag})
        response = connection.getresponse()
        location, tag = (response.headers.get(name, "") for name in ("Location", "ETag"))
        return response.status, location, response.read(), tag

    def rate(self, cell: Cell, seconds: float) -> float:
        """The answers a second. Fresh requests go on where they stopped before."""
        name = cell.mode + cell.workload
        if name not in self._messages:
            self._messages[name] = cycle([self._message(cell, path) for path in cell.paths])
        self._drive(self._messages[name], seconds * WARM_UP)
        return self._drive(self._messages[name], seconds)

    def _message(self, cell: Cell, path: str) -> bytes:
        tag = f"If-None-Match: {self.get(path)[3]}\r\n" if cell.workload == KEPT[0] else ""
        return f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n{tag}\r\n".encode()

    def _drive(self, messages: Iterator[bytes], seconds: float) -> float:
        waiting = deque(self._send(next(messages)) for _ in range(CONNECTIONS))
        begin, answered = time.perf_counter(), 0
        while (took := time.perf_counter() - begin) < seconds or not answered:
            _receive(waiting.popleft())
            waiting.append(self._send(next(messages)))
            answered += 1
        for connection in waiting:
            _receive(connection)
        return answered / took

    def _send(self, message: bytes) -> socket.socket:
        connection = socket.socket()
        connection.connect(("127.0.0.1", self._port))
        connection.sendall(message)
        return connection


def _receive(connection: socket.socket) -> None:
    """Reads an answer, after which the server closes the connection."""
    with connection:
        first = connection.recv(1 << 18)
        while connection.recv(1 << 18):
            pass
    if first[9:12] not in (b"200", b"302", b"304"):
        raise SystemExit(f"A server answers {first[:500]!r}.")


def _beside_the_site(root: Path) -> dict[str, Any]:
    """Options for programs that import the site, and the extension of a checkout."""
    path = os.pathsep.join(map(str, (root, root / "backends", ROOT)))
    return {"cwd": HERE, "env": {**os.environ, "PYTHONPATH": path}}


def _site(root: Path, *arguments: str) -> Any:
    """What the site says to a command."""
    command = [sys.executable, "magazine.py", *arguments]
    return subprocess.check_output(command, text=True, **_beside_the_site(root))


@dataclass(eq=False)
class Cell:
    """One workload on one store, of the extension and of what it is compared with."""

    pages: int
    mode: str
    store: str
    workload: str
    statements: int | str
    ours: Server
    other: Server
    paths: Sequence[str]
    #: The rates of both, in each round.
    rates: list[tuple[float, float]] = field(default_factory=list)

    def check(self) -> None:
        """Compares answers; the constant view has others."""
        for path in self.paths[: content.SOME]:
            if self.workload == KEPT[0] and self.ours.get(path, self.ours.get(path)[3])[0] != 304:
                raise SystemExit(f"{self.store}, {path}: not unchanged")
            ours, other = (_essence(server, path) for server in (self.ours, self.other))
            if ours != other and self.workload not in KEPT:
                raise SystemExit(f"{self.store}, {path}:\n{ours!r:.3000}\n{other!r:.3000}")

    def measure(self, seconds: float, number: int) -> None:
        """Measures both, in rounds with odd numbers ours first."""
        servers = (self.ours, self.other)[:: 1 if number % 2 else -1]
        rates = {server: server.rate(self, seconds) for server in servers}
        self.rates.append((rates[self.ours], rates[self.other]))

    @property
    def ratios(self) -> list[float]:
        return [ours / other for ours, other in self.rates]


def _essence(server: Server, path: str) -> Any:
    """What has to be the same. What a search finds is in the order of its engine."""
    ranked = "search=" in path
    status, location, body, _ = server.get(f"{path}&limit=1000000" if ranked else path)
    if status not in (200, 302):
        raise SystemExit(f"{path}: {status} {body!r:.500}")
    items = json.loads(body)["items"] if ranked else []
    return status, location, ranked or body, sorted(items, key=lambda item: item["id"])


def _cells(pages: int, options: argparse.Namespace) -> Iterator[Cell]:
    """Makes content and stores, and starts the servers that are compared."""
    folder = str(new_folder())
    content.write(pages, Path(folder))

    @cache
    def address(store: str, root: Path | None) -> str:
        """The address of a store that is filled by a checkout, or by hand."""
        print(f"Making {pages:,} pages: {store}, {root or 'by hand'}", flush=True)
        made = fresh_address(store)
        if root is None:
            by_hand.Tables(made).load(folder)
        elif store != "memory":
            _site(root, "load", made, folder)
        if store == "postgresql":
            with psycopg.connect(made, autocommit=True) as connection:
                name = made.rpartition("/")[2]
                connection.execute(f"ALTER DATABASE {name} SET random_page_cost = 1.1".encode())
                connection.execute("VACUUM ANALYZE")
        return made

    @cache
    def server(store: str, root: Path | None, kept: bool) -> Server:
        if root is not None:
            made = address(store, root)
            return Server(root, f"magazine:create_app({made!r}, {folder!r}, {kept})")
        in_memory = store not in by_hand.DIALECTS
        made = address("sqlite" if in_memory else store, None)
        return Server(ROOT, f"bench.by_hand:create_app({made!r}, {in_memory})")

    @cache
    def constant() -> Server:
        file = Path(folder, "answer")
        file.write_bytes(server("sqlite", None, False).get(f"{PREFIX}/pages/")[2])
        return Server(ROOT, f"bench.by_hand:constant({str(file)!r})")

    addresses = content.addresses(pages, by_hand.Tables(address("sqlite", None)).rows)
    Path(folder, "addresses.json").write_text(json.dumps(addresses["some"]))
    lists = [of for name, of in addresses["some"].items() if "find/" not in name]
    everything = [path for of in lists for path in of]
    for mode in options.modes:
        asked = addresses["fresh" if mode == "fresh" else "some"]
        asked = {**asked, **(dict.fromkeys(KEPT, everything) if mode == "kept" else {})}
        for store in options.stores:
            ours = server(store, ROOT, mode == "kept")
            other = server(store, options.against, bool(options.against) and mode == "kept")
            counts: dict[str, int] = {}
            if store in by_hand.DIALECTS:
                counts = json.loads(_site(ROOT, "count", address(store, ROOT), folder))
            for name in asked:
                if name.split()[0] in (options.workloads or name):
                    peer = constant() if name in KEPT and not options.against else other
                    count = counts.get(name, "")
                    yield Cell(pages, mode, store, name, count, ours, peer, asked[name])


def main(given: Sequence[str] | None = None) -> None:
    """Runs the command with some arguments."""
    options = _parser().parse_args(given)
    cores = os.sched_getaffinity(0)
    try:
        # Servers run on one core, and what asks them runs on another.
        os.sched_setaffinity(0, {min(cores)})
        cells = [cell for pages in options.pages for cell in _cells(pages, options)]
        for cell in cells:
            cell.check()
        os.sched_setaffinity(0, {max(cores)})
        for number in range(1, options.rounds + 1):
            print(f"Round {number} of {options.rounds}", flush=True)
            for cell in cells:
                cell.measure(options.seconds, number)
    finally:
        os.sched_setaffinity(0, cores)
    text = f"{_conditions(options)}\n\n{_table(cells)}\n"
    print(f"\n{text}")
    if options.rst:
        before = PAGE.read_text(encoding="utf-8").partition(BEGIN)[0]
        PAGE.write_text(f"{before}{BEGIN}{text}", encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python3 bench", description=__doc__)
    add = parser.add_argument
    add("--pages", type=int, nargs="+", default=[10000])
    add("--stores", nargs="+", choices=STORES, default=STORES)
    add("--modes", nargs="+", choices=MODES, default=MODES[:1], help="how answers are made")
    add("--workloads", nargs="+", help="such as W9 304")
    add(
        "--against",
        type=lambda text: Path(text).resolve(),
        help="another checkout, instead of the same by hand",
    )
    add("--seconds", type=float, default=0.5, help="how long each is asked in a round")
    add("--rounds", type=int, default=7)
    add("--rst", action="store_true", help="write the table to the documentation")
    return parser


def _conditions(options: argparse.Namespace) -> str:
    cpu = Path("/proc/cpuinfo").read_text().partition("model name\t: ")[2].partition("\n")[0]
    packages = (f"{name} {version(name)}" for name in ("Flask", "gunicorn", "orjson", "peewee"))
    return (
        f"{date.today()}: {cpu}, {os.cpu_count()} cores, Python {platform.python_version()},\n"
        f"{', '.join(packages)}; {options.rounds} rounds of {options.seconds:g} seconds."
    )


def _table(cells: Sequence[Cell]) -> str:
    """The table, in plain text that is reStructuredText as well."""
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for store in dict.fromkeys(cell.store for cell in cells):
        own = [cell for cell in cells if cell.store == store]
        smallest = {(cell.mode, cell.workload): cell for cell in reversed(own)}
        means: dict[str, list[float]] = {}
        for cell in own:
            start = {"Store": store, "Workload": cell.workload, "SQL": str(cell.statements)}
            row = rows.setdefault((store, cell.workload), start)
            run, rate = f"{cell.pages:,} {cell.mode}", median(ours for ours, _ in cell.rates)
            row[run] = f"{rate:.0f}: {median(cell.ratios):.2f} ({min(cell.ratios):.2f})"
            if cell.workload not in KEPT:
                means.setdefault(run, []).append(median(cell.ratios))
            smaller = smallest[cell.mode, cell.workload]
            if smaller is not cell:
                pairs = zip(smaller.rates, cell.rates, strict=True)
                row[f"growth, {run}"] = f"{median(few / many for (few, _), (many, _) in pairs):.2f}"
        rows[store, "mean"] = {"Store": store, "Workload": "mean (lowest)"}
        for run, of in means.items():
            rows[store, "mean"][run] = f"{geometric_mean(of):.2f} ({min(of):.2f})"
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    lines = [columns, *([row.get(column) or "\\" for column in columns] for row in rows.values())]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    head, *body = (" ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
    rule = " ".join("=" * width for width in widths)
    return "\n".join([rule, head, rule, *body, rule])


if __name__ == "__main__":
    main()

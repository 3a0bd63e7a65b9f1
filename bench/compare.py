"""Measures the extension beside the same by hand: the CPU time of servers for each answer."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections import defaultdict
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

from bench import by_hand, content, magazine
from tests.servers import free_port, start
from tests.stores import fresh_address
from tests.temporary import new_folder

PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance.rst"
BEGIN = ".. The table, made by: python3 bench --rst\n\n"
STORES, MODES = ["memory", "sqlite", "postgresql"], ["some", "fresh"]
#: What servers that keep answers are asked besides, and a constant view as well.
KNOWN, KEPT = "304 all but W10", "200 all but W10"


class Server:
    """A running application, with one gunicorn worker.

    :param call: what makes the application.
    """

    def __init__(self, call: str) -> None:
        self._port = free_port()
        command = [sys.executable, "-m", "gunicorn", "--timeout=0", "--log-level=error"]
        start([*command, f"--bind=127.0.0.1:{self._port}", call], self._port)

    def get(self, path: str, tag: str = "") -> tuple[int, str, bytes, str]:
        """The status, ``Location``, body and ``ETag`` of an answer."""
        connection = HTTPConnection("127.0.0.1", self._port)
        known = {"If-None-Match": tag} if tag else {}
        connection.request("GET", path, headers={"Host": magazine.HOST, **known})
        response = connection.getresponse()
        location, tag = (response.headers.get(name, "") for name in ("Location", "ETag"))
        return response.status, location, response.read(), tag


def _spent() -> float:
    """The CPU time that all programs below this one have taken, those of databases too, in s."""
    inside = defaultdict[int, list[int]](list)
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            above = int((folder / "stat").read_text().rpartition(") ")[2].split()[1])
        except OSError:
            continue
        inside[above].append(int(folder.name))
    found = [os.getpid()]
    for process in found:
        found += inside[process]
    # The number of the clock of a process is made of its own (clock_getcpuclockid).
    return sum(time.clock_gettime(~process << 3 | 2) for process in found[1:])


@dataclass(eq=False)
class Cell:
    """One workload on one store, of the extension and of what it is compared with."""

    mode: str
    store: str
    workload: str
    ours: Server
    other: Server
    paths: Sequence[str]
    #: The CPU time for an answer of both in each round, in µs.
    costs: list[tuple[float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._asked = {server: cycle(self.paths) for server in (self.ours, self.other)}
        checked = self.paths[: content.SOME if self.mode == "fresh" else None]
        self._tags = {path: self.ours.get(path)[3] for path in checked}
        for path, tag in self._tags.items():
            if self.workload == KNOWN and self.ours.get(path, tag)[0] != 304:
                raise SystemExit(f"{self.store}, {path}: not unchanged")
            ours, other = (_essence(server, path) for server in (self.ours, self.other))
            if ours != other and self.workload not in (KNOWN, KEPT):
                raise SystemExit(f"{self.store}, {path}:\n{ours!r:.3000}\n{other!r:.3000}")

    def measure(self, number: int, answers: int) -> None:
        """Measures both, in rounds with odd numbers ours first."""
        costs = {}
        for server in (self.ours, self.other)[:: 1 if number % 2 else -1]:
            before = _spent()
            for _ in range(answers):
                path = next(self._asked[server])
                server.get(path, self._tags[path] if self.workload == KNOWN else "")
            costs[server] = (_spent() - before) / answers * 1e6
        self.costs.append((costs[self.ours], costs[self.other]))

    @property
    def ratio(self) -> float:
        return median(other / ours for ours, other in self.costs)


def _essence(server: Server, path: str) -> Any:
    """What has to be the same. What a search finds is in the order of its engine."""
    ranked = "search=" in path
    status, location, body, _ = server.get(f"{path}&limit=1000000" if ranked else path)
    if status not in (200, 302):
        raise SystemExit(f"{path}: {status} {body!r:.500}")
    items = json.loads(body)["items"] if ranked else []
    return status, location, ranked or body, sorted(items, key=lambda item: item["id"])


def _cells(options: argparse.Namespace) -> Iterator[Cell]:
    """Makes content and stores, and starts the servers that are compared."""
    folder = str(new_folder())
    content.write(options.pages, Path(folder))

    @cache
    def filled(store: str) -> str:
        made = fresh_address(store)
        by_hand.Tables(made).load(folder)
        return _ready(store, made)

    addresses = content.addresses(options.pages, by_hand.Tables(filled("sqlite")).rows)
    lists = [of for name, of in addresses["some"].items() if "find/" not in name]
    everything = [path for of in lists for path in of]
    answer = Path(folder, "answer")
    for store in options.stores:
        print(f"Making {options.pages:,} pages: {store}", flush=True)
        in_memory, made = store == "memory", fresh_address(store)
        if not in_memory:
            magazine.load(made, folder)
        made, hand = _ready(store, made), filled("sqlite" if in_memory else store)
        anew, kept = (
            Server(f"bench.magazine:create_app({made!r}, {folder!r}, {kept})")
            for kept in (False, True)
        )
        other = Server(f"bench.by_hand:create_app({hand!r}, {in_memory})")
        answer.write_bytes(other.get(f"{magazine.PREFIX}/pages/")[2])
        constant = Server(f"bench.by_hand:constant({str(answer)!r})")
        for name, workload in [(mode, w) for mode in MODES for w in addresses[mode]]:
            yield Cell(name, store, workload, anew, other, addresses[name][workload])
        for workload in (KNOWN, KEPT):
            yield Cell("some", store, workload, kept, constant, everything)


def _ready(store: str, address: str) -> str:
    """The address of a store that is filled, with what its planner needs to know."""
    if store == "postgresql":
        with psycopg.connect(address, autocommit=True) as connection:
            name = address.rpartition("/")[2]
            connection.execute(f"ALTER DATABASE {name} SET random_page_cost = 1.1".encode())
            connection.execute("VACUUM ANALYZE")
    return address


def main(given: Sequence[str] | None = None) -> None:
    """Runs the command with some arguments."""
    parser = argparse.ArgumentParser("python3 bench", description=__doc__)
    add = parser.add_argument
    add("--pages", type=int, default=10000)
    add("--stores", nargs="+", choices=STORES, default=STORES)
    add("--answers", type=int, default=40, help="how many are asked for in a round")
    add("--rounds", type=int, default=7)
    add("--rst", action="store_true", help="write the table to the documentation")
    options = parser.parse_args(given)
    cells = [*_cells(options)]
    for number in range(1, options.rounds + 1):
        print(f"Round {number} of {options.rounds}", flush=True)
        for cell in cells:
            cell.measure(number, options.answers)
    cpu = Path("/proc/cpuinfo").read_text().partition("model name\t: ")[2].partition("\n")[0]
    packages = (f"{name} {version(name)}" for name in ("Flask", "gunicorn", "orjson", "peewee"))
    text = (
        f"{date.today()}: {cpu}, {os.cpu_count()} cores, Python {platform.python_version()},\n"
        f"{', '.join(packages)}; {options.pages:,} pages, {options.rounds} rounds of "
        f"{options.answers} answers.\n\n{_table(cells)}\n"
    )
    print(f"\n{text}")
    if options.rst:
        before = PAGE.read_text(encoding="utf-8").partition(BEGIN)[0]
        PAGE.write_text(f"{before}{BEGIN}{text}", encoding="utf-8")


def _table(cells: Sequence[Cell]) -> str:
    """The table, in plain text that is reStructuredText as well."""
    rows: dict[tuple[str, str], dict[str, str]] = {}
    ratios = defaultdict[tuple[str, str], list[float]](list)
    for cell in cells:
        start = {"Store": cell.store, "Workload": cell.workload}
        row = rows.setdefault((cell.store, cell.workload), start)
        row[cell.mode] = f"{median(ours for ours, _ in cell.costs):.0f}: {cell.ratio:.2f}"
        if cell.workload not in (KNOWN, KEPT):
            ratios[cell.store, cell.mode].append(cell.ratio)
    for (store, mode), of in ratios.items():
        row = rows.setdefault((store, "mean"), {"Store": store, "Workload": "mean (lowest)"})
        row[mode] = f"{geometric_mean(of):.2f} ({min(of):.2f})"
    columns = ["Store", "Workload", *MODES]
    lines = [columns, *([row.get(column) or "\\" for column in columns] for row in rows.values())]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    head, *body = (" ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
    rule = " ".join("=" * width for width in widths)
    return "\n".join([rule, head, rule, *body, rule])


if __name__ == "__main__":
    main()

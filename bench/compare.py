"""Measures the extension beside the same by hand: the CPU time for each answer."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from functools import cache
from http.client import HTTPConnection
from importlib.metadata import version
from itertools import chain, cycle, islice
from operator import itemgetter
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

from flask import Flask, Response
from werkzeug.test import create_environ

from bench import by_hand, content, magazine
from tests.servers import free_port, start
from tests.stores import fresh_address

PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance.rst"
BEGIN = ".. The table, made by: python3 bench --rst\n\n"
STORES = ["memory", "sqlite", "postgresql"]
#: What applications that keep answers are asked besides, and a constant view as well; as these
#: answers take so little time, more of them are measured.
KNOWN, KEPT, MORE = "304 all but W10", "200 all but W10", 50
#: Store, workload, and whether addresses repeat.
Names = tuple[str, str, str]


class Server:
    """An application with one gunicorn worker, which a call makes."""

    def __init__(self, call: str) -> None:
        self._port = free_port()
        command = [sys.executable, "-m", "gunicorn", "--timeout=0", "--log-level=error"]
        start([*command, f"--bind=127.0.0.1:{self._port}", call], self._port)

    def get(self, path: str, tag: str = "") -> tuple[int, Any, bytes]:
        """The status, headers and body of an answer."""
        connection = HTTPConnection("127.0.0.1", self._port)
        known = {"If-None-Match": tag} if tag else {}
        connection.request("GET", path, headers={"Host": content.HOST, **known})
        response = connection.getresponse()
        return response.status, response.getheaders(), response.read()


class Called:
    """An application in this process, which is called as a server calls it."""

    def __init__(self, app: Flask) -> None:
        self._app: Any = app.wsgi_app
        self._environ = cache(lambda path: create_environ(path, f"http://{content.HOST}"))

    def get(self, path: str, tag: str = "") -> tuple[int, Any, bytes]:
        """The status, headers and body of an answer."""
        environ, said = self._environ(path).copy(), list[Any]()
        if tag:
            environ["HTTP_IF_NONE_MATCH"] = tag
        parts = self._app(environ, lambda *given: said.extend(given))
        body = b"".join(parts)
        getattr(parts, "close", lambda: None)()
        return int(said[0][:3]), said[1], body


App = Server | Called
#: The extension and what it is compared with, and paths and tags to send, for ever.
Cell = tuple[tuple[App, App], Iterator[tuple[str, str]]]


def _cells(size: int, stores: Sequence[str]) -> Iterator[tuple[Names, Cell]]:
    """Makes content and stores, starts what is compared, and compares answers."""
    hand = {store: fresh_address(store) for store in {"sqlite", *stores} - {"memory"}}
    for address in hand.values():
        by_hand.Tables(address).load(size)
    asked = [*content.addresses(size, by_hand.Tables(hand["sqlite"]).rows)]
    lists = [paths for name, mode, paths in asked if mode == "some" and "find/" not in name]
    asked += [(workload, "some", [*chain(*lists)]) for workload in (KNOWN, KEPT)]
    for store in stores:
        print(f"Making {size:,} pages: {store}", flush=True)
        address, made = fresh_address(store), hand.get(store, hand["sqlite"])
        if store != "memory":
            magazine.load(address, size)
        if store == "postgresql":
            # What its planner needs to know.
            os.environ["PGOPTIONS"] = "-c random_page_cost=1.1"
            for each in (address, made):
                by_hand.Tables(each).rows("VACUUM ANALYZE")
        anew = Server(f"bench.magazine:create_app({address!r}, {size})")
        other = Server(f"bench.by_hand:create_app({made!r}, {store == 'memory'})")
        constant, always = Flask(__name__), other.get(f"{content.PREFIX}/pages/")[2]

        @constant.get("/<path:path>")
        def answer(path: str, body: bytes = always) -> Response:
            return Response(body, mimetype="application/json")

        kept = Called(magazine.create_app(address, size, kept=True))
        for workload, mode, paths in asked:
            is_kept = workload in (KNOWN, KEPT)
            apps = (kept, Called(constant)) if is_kept else (anew, other)
            checked = paths[: None if mode == "some" else content.SOME]
            # Answers that are kept are made first, and then repeated.
            for path in checked * (1 + is_kept):
                ours, hers = (_essence(app, path) for app in (apps[0], other))
                if ours != hers:
                    raise SystemExit(f"{store}, {path}:\n{ours!r:.3000}\n{hers!r:.3000}")
            tags = {path: dict(kept.get(path)[1])["ETag"] for path in paths if workload == KNOWN}
            if any(kept.get(path, tag)[0] != 304 for path, tag in tags.items()):
                raise SystemExit(f"{store}: not unchanged")
            yield (store, workload, mode), (apps, cycle([(p, tags.get(p, "")) for p in paths]))


def _essence(app: App, path: str) -> Any:
    """What has to be the same. What a search finds is in the order of its engine."""
    ranked = "search=" in path
    status, headers, body = app.get(f"{path}&limit=1000000" if ranked else path)
    if status not in (200, 302):
        raise SystemExit(f"{path}: {status} {body!r:.500}")
    found = sorted(json.loads(body)["items"], key=itemgetter("id")) if ranked else body
    return status, dict(headers).get("Location"), found


def _cost(app: App, asked: Sequence[tuple[str, str]]) -> float:
    """The CPU time for an answer, in µs, of the application and of what it asks."""
    below, here = _below(os.getpid()), time.process_time()
    for path, tag in asked:
        app.get(path, tag)
    here = time.process_time() - here if isinstance(app, Called) else 0
    return (_below(os.getpid()) - below + here) / len(asked) * 1e6


def _below(process: int) -> float:
    """The CPU time that all programs below a process have taken, in s."""
    total = 0.0
    with suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                # The number of the clock of a process is made of its own (clock_getcpuclockid).
                total += time.clock_gettime(~child << 3 | 2) + _below(child)
    return total


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
    cells = dict(_cells(options.pages, options.stores))
    costs = defaultdict[Names, list[tuple[float, float]]](list)
    for number in range(options.rounds):
        print(f"Round {number + 1} of {options.rounds}", flush=True)
        for names, (apps, asked) in cells.items():
            some = [*islice(asked, options.answers * (MORE if names[1] in (KNOWN, KEPT) else 1))]
            # Each goes first in half of the rounds.
            took = {app: _cost(app, some) for app in apps[:: -1 if number % 2 else 1]}
            costs[names].append((took[apps[0]], took[apps[1]]))
    cpu = Path("/proc/cpuinfo").read_text().partition("model name\t: ")[2].partition("\n")[0]
    packages = (f"{name} {version(name)}" for name in ("Flask", "gunicorn", "orjson", "peewee"))
    text = (
        f"{date.today()}: {cpu}, {os.cpu_count()} cores, Python {platform.python_version()},\n"
        f"{', '.join(packages)}; {options.pages:,} pages, {options.rounds} rounds of "
        f"{options.answers} answers.\n\n{_table(costs)}\n"
    )
    print(f"\n{text}")
    if options.rst:
        before = PAGE.read_text(encoding="utf-8").partition(BEGIN)[0]
        PAGE.write_text(f"{before}{BEGIN}{text}", encoding="utf-8")


def _table(costs: Mapping[Names, Sequence[tuple[float, float]]]) -> str:
    """The table, in plain text that is reStructuredText as well."""
    rows = defaultdict[tuple[str, str], dict[str, str]](dict)
    ratios = defaultdict[tuple[str, str], list[float]](list)
    for (store, workload, mode), pairs in costs.items():
        took = median(ours for ours, _ in pairs)
        ratio = median(other / ours for ours, other in pairs)
        rows[store, workload][mode] = f"{took:.{1 if took < 100 else 0}f}: {ratio:.2f}"
        if workload not in (KNOWN, KEPT):
            ratios[store, mode].append(ratio)
    for (store, mode), of in ratios.items():
        rows[store, "mean (lowest)"][mode] = f"{geometric_mean(of):.2f} ({min(of):.2f})"
    lines = [("Store", "Workload", "some", "fresh")]
    lines += [(*names, row["some"], row.get("fresh", "\\")) for names, row in rows.items()]
    layout, rule = "{:10} {:30} {:11} {}".format, " ".join("=" * n for n in (10, 30, 11, 11))
    head, *body = (layout(*line) for line in lines)
    return "\n".join([rule, head, rule, *body, rule])


if __name__ == "__main__":
    main()

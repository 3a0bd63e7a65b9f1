"""The command that :mod:`bench.__main__` starts in the virtual environment."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from bench import tables
from bench.measuring import Bench, chosen, machine
from bench.profiling import profile
from bench.servers import PRODUCT, SERVERS
from bench.stores import FOLDER, say
from bench.workloads import CONDITIONAL, WORKLOADS
from flask_contentapi.settings import Settings

__all__ = ["main"]

NAMES = [*(workload.name for workload in WORKLOADS), CONDITIONAL]
BACKENDS = [server.name for server in PRODUCT]


def main(given: Sequence[str] | None = None) -> None:
    """Runs the command with some arguments."""
    options = _parser().parse_args(given)
    if options.tables:
        tables.write_page()
    elif options.profile:
        server, workload = options.profile
        profile(SERVERS[server], options.pages[0], workload)
    else:
        _measure(options)


def _measure(options: argparse.Namespace) -> None:
    if options.kept:
        os.environ["FLASK_CMSAPI_CACHE_SIZE"] = str(Settings.cache_size)
    bench = Bench(options.pages, chosen(options.backends))
    with bench.running():
        if options.check:
            say("All give the same answers.")
            return
        bench.measure(options.workloads, options.seconds, options.rounds)
        results = {
            "when": f"{datetime.now(UTC):%Y-%m-%d}",
            "seconds": options.seconds,
            "rounds": options.rounds,
            "kept": options.kept,
            "machine": machine(),
            "cells": bench.results(),
        }
    folder, name = (tables.KEPT, options.save) if options.save else (FOLDER, "results")
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(results, indent=1) + "\n")
    say(f"The results are in {path}.\n")
    say(tables.tables_of(tables.Results(results)))
    if options.save:
        tables.write_page()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python3 bench", description="Measures the extension.")
    add = parser.add_argument
    add("--pages", type=_numbers, default=[10000], help="numbers of pages, with commas")
    add("--backends", type=_among(BACKENDS), default=BACKENDS[:4], help=f"of {_listed(BACKENDS)}")
    add("--workloads", type=_among(NAMES), default=NAMES, help=f"of {_listed(NAMES)}")
    add("--seconds", type=float, default=2, help="how long each workload is asked in a round")
    add("--rounds", type=int, default=3, help="how many rounds; the median counts")
    add("--kept", action="store_true", help="let the extension keep answers, as it usually does")
    add("--check", action="store_true", help="only compare the answers of all servers")
    add(
        "--save",
        metavar="NAME",
        help="keep the results with the documentation, and show them there",
    )
    add("--tables", action="store_true", help="only write the page from the results that are kept")
    add(
        "--profile",
        nargs=2,
        metavar=("SERVER", "WORKLOAD"),
        help=f"only show where a workload's time goes; servers are {_listed(SERVERS)}",
    )
    return parser


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


class _among:  # noqa: N801 - argparse names the type in its errors
    """Parses names separated by commas.

    :param known: the known names.
    """

    def __init__(self, known: Sequence[str]) -> None:
        self._known = known

    def __call__(self, text: str) -> list[str]:
        names = text.split(",")
        if not set(names) <= set(self._known):
            raise argparse.ArgumentTypeError(f"{text!r}: known are {', '.join(self._known)}")
        return names


if __name__ == "__main__":
    main()

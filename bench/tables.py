"""Results as tables, in the terminal and on the page of the documentation."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import geometric_mean, median
from typing import Any

from bench.servers import BY_HAND, CONSTANT, PRODUCT, ROOT, SERVERS
from bench.workloads import CONDITIONAL, WORKLOADS

__all__ = ["KEPT", "Results", "tables_of", "with_tables", "write_page"]

PAGE = ROOT / "docs" / "performance.rst"
#: The folder with the results that the page shows.
KEPT = ROOT / "docs" / "performance"
#: The lines around the tables on the page.
BEGIN = ".. The tables are made of performance/*.json by: python3 bench --tables"
END = ".. The tables end here."

#: The ratio to the same by hand that a backend should reach: on average, and two thirds of it in
#: each workload.
RATIOS = {"memory": 0.7, "jsonfiles": 0.7, "sqlite": 0.6, "postgresql": 0.6}
LEAST = 2 / 3
#: The ratio to a constant body that a 304 should reach.
CONDITIONAL_RATIO = 0.8
#: The workloads whose cost should hardly grow with ten times as many pages, and the limit.
#: The cost of others may grow as it does by hand.
FLAT, GROWTH = ("W1", "W4", "W9", "W10"), 1.2
#: The longest time to start, in seconds, and the most memory, relative to the same by hand.
STARTS = {"memory": 10, "jsonfiles": 10, "sqlite": 1, "postgresql": 1, "mariadb": 1}
MEMORY = 1.3

Row = Sequence[str]


class Results:
    """Results of one run.

    :param found: the content of the file of results.
    """

    def __init__(self, found: Mapping[str, Any]) -> None:
        self.found = found
        self._cells = {(cell["server"], cell["pages"]): cell for cell in found["cells"]}
        self.sizes = sorted({pages for _, pages in self._cells})
        names = {name for name, _ in self._cells}
        self.backends = [server.name for server in PRODUCT if server.name in names]
        #: The measured servers, each backend after its hand-written counterpart.
        self.columns = [
            name
            for name in dict.fromkeys(
                column
                for backend in self.backends
                for column in (_by_hand(backend), backend)
                if column in names
            )
            if name is not None
        ]

    def cell(self, server: str | None, pages: int) -> Mapping[str, Any]:
        """What was measured on a server; empty if it did not run."""
        found: Mapping[str, Any] = self._cells.get((server or "", pages), {})
        return found

    def _rates(self, server: str | None, pages: int, workload: str) -> Sequence[float]:
        """Answers per second, in each round."""
        found: Sequence[float] = self.cell(server, pages).get("rates", {}).get(workload, ())
        return found

    def rate(self, server: str | None, pages: int, workload: str) -> float | None:
        """Answers per second, the median of all rounds; None if not measured."""
        rates = self._rates(server, pages, workload)
        return median(rates) if rates else None

    def ratio(self, backend: str, pages: int, workload: str) -> float | None:
        """The rate of a backend, relative to the same by hand; 304s relative to a constant body."""
        peer = CONSTANT.name if workload == CONDITIONAL else _by_hand(backend)
        return _divided(self._rates(backend, pages, workload), self._rates(peer, pages, workload))

    @property
    def workloads(self) -> list[str]:
        """Those of the twelve workloads that were measured."""
        measured = {name for cell in self._cells.values() for name in cell["rates"]}
        return [name for name in _TITLES if name in measured]

    def ratios(self, backend: str, pages: int) -> dict[str, float]:
        """The ratios of the twelve workloads."""
        found = {name: self.ratio(backend, pages, name) for name in self.workloads}
        return {name: ratio for name, ratio in found.items() if ratio is not None}

    def growth(self, server: str | None, small: int, large: int, workload: str) -> float | None:
        """How many times as much a request costs with more pages."""
        return _divided(self._rates(server, small, workload), self._rates(server, large, workload))


_TITLES = {workload.name: workload.title for workload in WORKLOADS}


def _by_hand(backend: str) -> str | None:
    peer = BY_HAND.get(backend)
    return peer.name if peer else None


def _divided(rates: Sequence[float], others: Sequence[float]) -> float | None:
    """The median of the ratios of each round, which noise affects least; None if there is none.

    Rounds in which the others were too slow for a single answer do not count.
    """
    ratios = [rate / other for rate, other in zip(rates, others, strict=False) if other]
    return median(ratios) if ratios else None


# The page.


def write_page() -> None:
    """Writes the tables of all saved results to the page."""
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def with_tables(text: str) -> str:
    """The page with the tables of all saved results.

    :param text: the previous page.
    """
    kept = [Results(json.loads(path.read_text())) for path in sorted(KEPT.glob("*.json"))]
    tables = "\n\n\n".join(map(tables_of, kept))
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{tables}\n\n{END}{after}"


def tables_of(results: Results) -> str:
    """All tables of a run, in reStructuredText."""
    sizes = " and ".join(f"{pages:,}" for pages in results.sizes)
    kept = ", answers kept" if results.found.get("kept") else ""
    parts = [
        _heading(f"{sizes} pages: {', '.join(_label(b) for b in results.backends)}{kept}", "-")
    ]
    parts.append(_machine(results))
    if results.workloads:
        parts += [_rates(results, pages) for pages in results.sizes]
        parts += [_growths(results, small, large) for small, large in pairwise(results.sizes)]
    parts += [_conditional(results), _starts(results), _statements(results), _targets(results)]
    return "\n\n".join(part for part in parts if part)


def _machine(results: Results) -> str:
    machine = results.found["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    text = (
        f"Measured on {results.found['when']}: {machine['processor']}, {machine['cores']} cores, "
        f"{machine['system']}; {versions}. Asked by {machine['generator']}, "
        f"{results.found['rounds']} rounds of {results.found['seconds']:g} seconds."
    )
    return "\n".join(textwrap.wrap(text, 100))


def _rates(results: Results, pages: int) -> str:
    """Answers per second, and ratios."""
    header = ["Workload", ""]
    for name in results.columns:
        header += [_label(name), "ratio"] if name in results.backends else [_label(name)]
    rows = [_rate_row(results, pages, name) for name in results.workloads]
    for text, numbers in (("mean", _means(results, pages)), ("target", RATIOS)):
        row = [text, ""]
        for name in results.columns:
            row += ["", _number(numbers.get(name))] if name in results.backends else [""]
        rows.append(row)
    return _section(f"Answers in a second, {pages:,} pages", _table(header, rows))


def _rate_row(results: Results, pages: int, workload: str) -> list[str]:
    row = [workload, _TITLES[workload]]
    for name in results.columns:
        row.append(_number(results.rate(name, pages, workload), 0))
        if name in results.backends:
            row.append(_number(results.ratio(name, pages, workload)))
    return row


def _means(results: Results, pages: int) -> dict[str, float]:
    """The geometric mean of the ratios of each backend."""
    ratios = {backend: results.ratios(backend, pages) for backend in results.backends}
    return {backend: _mean(of) for backend, of in ratios.items() if of}


def _conditional(results: Results) -> str:
    """Answers with status 304."""
    rows = []
    for pages in results.sizes:
        for name in (CONSTANT.name, *results.backends):
            rate, ratio = (of(name, pages, CONDITIONAL) for of in (results.rate, results.ratio))
            shown = "" if name == CONSTANT.name else _number(ratio)
            if rate is not None:
                rows.append([f"{pages:,}", _label(name), _number(rate, 0), shown])
    header = ["Pages", "", "a second", "ratio"]
    return _section("Nothing has changed: If-None-Match, 304", _table(header, rows)) if rows else ""


def _growths(results: Results, small: int, large: int) -> str:
    """How many times as much a request costs with more pages."""
    rows = []
    for name in results.workloads:
        found = (results.growth(column, small, large, name) for column in results.columns)
        rows.append([name, _TITLES[name], *map(_number, found)])
    header = ["Workload", "", *map(_label, results.columns)]
    title = f"Cost of a request with {large:,} pages, with {small:,} it is 1"
    return _section(title, _table(header, rows))


def _starts(results: Results) -> str:
    """Start-up and memory."""
    rows = []
    for pages in results.sizes:
        for name in results.columns:
            cell = results.cell(name, pages)
            start = cell["start"]
            memory = f"{cell['peak_memory'] / 1e6:.0f}"
            times = (_number(start["W1"], 1), _number(start["W8"], 1))
            rows.append([f"{pages:,}", _label(name), *times, memory])
    header = ["Pages", "", "s to a list", "s to a search", "MB at most"]
    return _section("Start-up and memory", _table(header, rows))


def _statements(results: Results) -> str:
    """How many statements a request makes."""
    pages = results.sizes[0]
    columns = [name for name in results.columns if results.cell(name, pages)["statements"]]
    rows = [
        [name, title, *(str(results.cell(c, pages)["statements"][name]) for c in columns)]
        for name, title in _TITLES.items()
    ]
    header = ["Workload", "", *map(_label, columns)]
    return _section("Statements for a request", _table(header, rows)) if columns else ""


# Targets.


def _targets(results: Results) -> str:
    """The targets, and the measured values."""
    rows = [
        [name, f"{wanted:.2f}", f"{found:.2f}", "met" if met else "**missed**"]
        for name, wanted, found, met in _judged(results)
    ]
    return _section("Targets", _table(["Target", "wanted", "measured", ""], rows)) if rows else ""


#: A target, the wanted value, the measured value, and whether that is enough.
Verdict = tuple[str, float, float, bool]


def _judged(results: Results) -> Iterator[Verdict]:
    for pages in results.sizes:
        for backend in results.backends:
            yield from _judged_speed(results, backend, pages)
            yield from _judged_start(results, backend, pages)
    for small, large in pairwise(results.sizes):
        for backend in results.backends:
            yield from _judged_growth(results, backend, small, large)


def _judged_speed(results: Results, backend: str, pages: int) -> Iterator[Verdict]:
    start = f"{_label(backend)}, {pages:,} pages:"
    wanted, ratios = RATIOS.get(backend), results.ratios(backend, pages)
    if wanted is not None and ratios:
        yield _at_least(f"{start} mean of ratios to the same by hand", wanted, _mean(ratios))
        slowest = min(ratios, key=ratios.__getitem__)
        yield _at_least(f"{start} lowest ratio, {slowest}", wanted * LEAST, ratios[slowest])
    ratio = results.ratio(backend, pages, CONDITIONAL)
    if ratio is not None:
        yield _at_least(f"{start} 304, of a constant body", CONDITIONAL_RATIO, ratio)


def _judged_start(results: Results, backend: str, pages: int) -> Iterator[Verdict]:
    start = f"{_label(backend)}, {pages:,} pages:"
    cell, peer = (results.cell(name, pages) for name in (backend, _by_hand(backend)))
    yield _at_most(f"{start} seconds to the first answer", STARTS[backend], cell["start"]["W1"])
    if backend == "memory":
        ratio = cell["peak_memory"] / peer["peak_memory"]
        yield _at_most(f"{start} memory, of the same by hand", MEMORY, ratio)


def _judged_growth(results: Results, backend: str, small: int, large: int) -> Iterator[Verdict]:
    """The worst of the workloads that should cost the same, and the worst of the others."""
    start = f"{_label(backend)}, {small:,} to {large:,} pages:"
    others = [name for name in results.workloads if name not in FLAT]
    for text, names in ((", ".join(FLAT), FLAT), ("the others", others)):
        found: list[tuple[float, float, str]] = []
        for name in names:
            grown = results.growth(backend, small, large, name)
            peer = results.growth(_by_hand(backend), small, large, name)
            wanted = GROWTH if name in FLAT or peer is None else max(GROWTH, peer)
            if grown is not None:
                found.append((grown / wanted, wanted, name))
        if found:
            share, wanted, worst = max(found)
            yield _at_most(f"{start} growth of {text}: {worst}", wanted, share * wanted)


def _mean(ratios: Mapping[str, float]) -> float:
    return geometric_mean(ratios.values())


def _at_least(name: str, wanted: float, found: float) -> Verdict:
    return name, wanted, found, found >= wanted


def _at_most(name: str, wanted: float, found: float) -> Verdict:
    return name, wanted, found, found <= wanted


# Writing.


def _label(name: str) -> str:
    return SERVERS[name].label


def _number(value: float | None, digits: int = 2) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _section(title: str, table: str) -> str:
    return f"{_heading(title, '~')}\n\n{table}"


def _heading(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}"


def _table(header: Row, rows: Iterable[Row]) -> str:
    """A table, with numbers on the right."""
    lines = [[cell or "\\" for cell in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = " ".join("=" * width for width in widths)
    head, *body = (_line(cells, widths) for cells in lines)
    return "\n".join([rule, head, rule, *body, rule])


def _line(cells: Row, widths: Sequence[int]) -> str:
    padded = (
        cell.rjust(width) if cell[:1].isdigit() else cell.ljust(width)
        for cell, width in zip(cells, widths, strict=True)
    )
    return " ".join(padded).rstrip()

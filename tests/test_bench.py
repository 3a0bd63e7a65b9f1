"""The benchmark measures what it claims to. How fast anything is, is not tested here."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from docutils.core import publish_doctree
from flask import Flask

from bench import command, load, magazine, profiling, stores, tables
from bench.checking import DifferentAnswer, compare
from bench.content import ABOVE, HOST, Magazine, Records
from bench.load import Request, WrongAnswer, drive_from_here, drive_with_wrk
from bench.measuring import chosen
from bench.peers import dicts, sql
from bench.servers import PRODUCT, SERVERS, Running
from bench.statements import count_statements
from bench.stores import Stores
from bench.workloads import VARIANTS, WORKLOADS, addresses
from tests.pages import text_of
from tests.stores import fresh_address

PAGES = 600


class Client:
    """A client for an application without a server."""

    def __init__(self, app: Flask) -> None:
        self._client = app.test_client()

    def get(self, path: str) -> Any:
        response = self._client.get(path, headers={"Host": HOST})
        return Copy(response.status_code, response.headers.get("Location", ""), response.data)


class Copy:
    """An answer."""

    def __init__(self, status: int, location: str, body: bytes) -> None:
        self.status, self.location, self.body = status, location, body


@pytest.fixture(scope="module")
def content() -> Magazine:
    return Magazine(PAGES)


@pytest.fixture(scope="module")
def folder(content: Magazine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("records")
    Records.write(content, folder)
    return folder


@pytest.fixture(scope="module")
def asked(content: Magazine) -> Mapping[str, list[str]]:
    return addresses(content, content["pages"])


@pytest.fixture(scope="module")
def by_hand(folder: Path) -> Client:
    return Client(dicts.create_app(str(folder)))


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that a test's benchmark writes to."""
    monkeypatch.setattr(stores, "FOLDER", tmp_path)
    monkeypatch.setattr(command, "FOLDER", tmp_path)
    monkeypatch.setattr(Stores.__init__, "__defaults__", (tmp_path,))
    return tmp_path


# Content.


@pytest.mark.parametrize("section", [*Magazine(PAGES)])
def test_content_is_the_same_each_time(section: str, content: Magazine) -> None:
    assert list(content[section]) == list(Magazine(PAGES)[section])


def test_records_come_back_from_their_files(content: Magazine, folder: Path) -> None:
    read = Records(folder)
    assert {name: list(read[name]) for name in read} == {
        name: json.loads(json.dumps(list(content[name]))) for name in content
    }


def test_there_are_as_many_pages_as_wanted(content: Magazine) -> None:
    ids = [page["id"] for page in content["pages"]]
    assert ids == list(range(1, PAGES + 1))


def test_a_million_pages_are_made_one_after_another() -> None:
    pages = iter(Magazine(1_000_000)["pages"])
    assert next(pages)["id"] == 1


def test_content_has_hidden_pages_and_deep_ones(content: Magazine) -> None:
    pages = list(content["pages"])
    assert {page.get("live", True) for page in pages} == {True, False}
    assert any(page["parent"] is not None and page["parent"] > ABOVE for page in pages)
    assert sum("restriction" in page for page in pages) == 2


def test_too_few_pages_are_refused() -> None:
    with pytest.raises(ValueError, match="more than"):
        Magazine(ABOVE)


@pytest.mark.parametrize("workload", [w.name for w in WORKLOADS])
def test_workload_asks_for_something(
    workload: str, asked: Mapping[str, list[str]], by_hand: Client
) -> None:
    answers = [by_hand.get(path) for path in asked[workload]]
    assert 1 <= len({*asked[workload]}) == len(answers) <= VARIANTS
    assert any(b'"id":' in answer.body or answer.location for answer in answers)


# Answers.


def test_backend_answers_as_by_hand(
    backend: str, folder: Path, asked: Mapping[str, list[str]], by_hand: Client
) -> None:
    compare({"by hand": by_hand, backend: Client(site(backend, folder))}, asked)


def site(backend: str, folder: Path) -> Flask:
    """The magazine with a backend."""
    if backend == "memory":
        return magazine.create_app("memory", str(folder))
    app = magazine.create_app(fresh_address(backend))
    with app.app_context():
        storage = app.extensions["contentapi"]["contentapi"].backend
        storage.create()
        storage.load(Records(folder))
    return app


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_statements_by_hand_answer_as_dicts(
    kind: str, folder: Path, asked: Mapping[str, list[str]], by_hand: Client, tmp_path: Path
) -> None:
    address = str(tmp_path / "hand.db") if kind == "sqlite" else fresh_address(kind)
    sql.load(address, Records(folder))
    app = sql.create_app(address)
    with closing(app.extensions["database"]):
        compare({"dicts": by_hand, kind: Client(app)}, asked)


class Wrong(Client):
    """Adds a space to its answers."""

    def get(self, path: str) -> Any:
        answer = super().get(path)
        answer.body += b" "
        return answer


def test_different_answers_stop_the_run(
    folder: Path, asked: Mapping[str, list[str]], by_hand: Client
) -> None:
    wrong = Wrong(dicts.create_app(str(folder)))
    with pytest.raises(DifferentAnswer, match="wrong"):
        compare({"right": by_hand, "wrong": wrong}, asked)


def test_errors_stop_the_run(by_hand: Client) -> None:
    with pytest.raises(DifferentAnswer, match="404"):
        compare({"by hand": by_hand}, {"W9": ["/api/v2/pages/999999/"]})


def test_statements_are_counted(folder: Path, asked: Mapping[str, list[str]]) -> None:
    product = count_statements(site("sqlite", folder), asked)
    assert product.keys() == asked.keys()
    assert min(product.values()) >= 1


def test_statements_by_hand_are_counted(
    folder: Path, asked: Mapping[str, list[str]], tmp_path: Path
) -> None:
    address = str(tmp_path / "hand.db")
    sql.load(address, Records(folder))
    counts = count_statements(sql.create_app(address), asked)
    assert (counts["W1"], counts["W9"]) == (2, 1)


# Measuring.


@pytest.fixture(scope="module")
def running(folder: Path) -> Iterator[Running]:
    server = Running(SERVERS["hand-dicts"], PAGES, [str(folder)])
    server.first("/api/v2/pages/")
    yield server
    server.stop()


DRIVES = [drive_from_here, *([drive_with_wrk] if load.GENERATOR == "wrk" else [])]


@pytest.mark.parametrize("drive", DRIVES)
def test_server_is_asked_again_and_again(drive: Any, running: Running) -> None:
    assert drive(running.port, [Request("/api/v2/pages/"), Request("/api/v2/images/")], 0.2) > 1


@pytest.mark.parametrize("drive", DRIVES)
def test_wrong_answers_are_no_speed(drive: Any, running: Running) -> None:
    with pytest.raises(WrongAnswer):
        drive(running.port, [Request("/nothing")], 0.2)


def test_memory_of_a_server_is_that_of_its_worker(running: Running) -> None:
    assert 10_000_000 < running.peak < 1_000_000_000


def test_backends_run_beside_the_same_by_hand() -> None:
    names = [server.name for server in chosen(["memory", "sqlite"])]
    assert names == ["hand-dicts", "memory", "hand-sqlite", "sqlite", "constant"]


def test_command_measures_and_shows(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(load, "drive", drive_from_here)
    options = ["--backends=memory,sqlite", "--workloads=W1,304", "--seconds=0.1", "--rounds=1"]
    command.main([f"--pages={PAGES}", *options])
    results = json.loads((elsewhere / "results.json").read_text())
    assert [sorted(cell["rates"]) for cell in results["cells"]] == [
        ["W1"],
        ["304", "W1"],
        ["W1"],
        ["304", "W1"],
        ["304", "W1"],
    ]
    assert "Targets" in capsys.readouterr().out


def test_command_only_compares(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command.main([f"--pages={PAGES}", "--backends=memory", "--check"])
    assert "the same answers" in capsys.readouterr().out
    assert not (elsewhere / "results.json").exists()


def test_profile_tells_functions(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(profiling, "SECONDS", 0.1)
    command.main([f"--pages={PAGES}", "--profile", "memory", "W9"])
    assert "views.py" in capsys.readouterr().out


def test_unknown_names_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["--backends=oracle"])
    assert "sqlite" in capsys.readouterr().err


def test_what_is_there_is_not_made_again(elsewhere: Path) -> None:
    (first,) = Stores(PAGES).arguments(SERVERS["hand-sqlite"])
    made = Path(first).stat().st_mtime_ns
    (second,) = Stores(PAGES).arguments(SERVERS["hand-sqlite"])
    assert Path(second).stat().st_mtime_ns == made


# Tables.

Rates = Mapping[str, float]


def results(few: Rates = {}, many: Rates = {}) -> tables.Results:  # noqa: B006 - never changed
    """Results: by hand 100 answers per second with few pages and 50 with many; the backend 70% of
    that, or the given rates. In one round the machine was slow, and in another one fast."""
    cells = []
    for pages, share, given in ((1000, 1.0, few), (10000, 0.5, many)):
        for server, rate in (("hand-sqlite", 100.0), ("sqlite", 70.0), ("constant", 200.0)):
            own = given if server == "sqlite" else {}
            names = [*(w.name for w in WORKLOADS), "304"]
            cells.append(
                {
                    "server": server,
                    "pages": pages,
                    "rates": {
                        n: [own.get(n, rate * share) * speed for speed in (1, 0.5, 2)]
                        for n in names
                    },
                    "start": {"W1": 0.5, "W8": 0.75},
                    "peak_memory": 50_000_000,
                    "statements": dict.fromkeys(names, 3),
                }
            )
    machine = {"processor": "abacus", "cores": 2, "system": "none", "generator": "hand"}
    found = {"when": "2030-01-01", "seconds": 2, "rounds": 3, "cells": cells}
    return tables.Results({**found, "machine": {**machine, "versions": {"Flask": "3"}}})


def test_median_of_rounds_counts() -> None:
    assert results({"W1": 70}).rate("sqlite", 1000, "W1") == 70


def test_rounds_are_compared_each_by_itself() -> None:
    found = results()
    for cell in found.found["cells"]:
        rates = {"sqlite": [50, 10, 80, 9], "hand-sqlite": [100, 20, 800, 0]}
        cell["rates"]["W1"] = rates.get(cell["server"], [1])
    assert found.ratio("sqlite", 1000, "W1") == 0.5


def test_ratio_is_to_the_same_by_hand() -> None:
    assert results({"W1": 50}).ratio("sqlite", 1000, "W1") == 0.5


def test_conditional_ratio_is_to_a_constant_body() -> None:
    assert results({"304": 150}).ratio("sqlite", 1000, "304") == 0.75


def test_what_was_not_measured_has_no_table() -> None:
    found = results()
    for cell in found.found["cells"]:
        cell["rates"] = {"304": cell["rates"]["304"]}
    shown = tables.tables_of(found)
    assert "If-None-Match" in shown
    assert "Answers in a second" not in shown
    assert "Cost of a request" not in shown


def test_backend_stands_after_the_same_by_hand() -> None:
    assert results().columns == ["hand-sqlite", "sqlite"]


def test_growth_is_that_of_the_cost() -> None:
    assert results().growth("sqlite", 1000, 10000, "W1") == 2


@pytest.mark.parametrize(("rate", "verdict"), [(40, "met"), (39, "**missed**")])
def test_targets_are_judged(rate: float, verdict: str) -> None:
    (line,) = lines_with(
        tables.tables_of(results({"W7": rate})), "SQLite, 1,000 pages: lowest ratio, W7"
    )
    assert line.endswith(verdict)


@pytest.mark.parametrize(("rate", "verdict"), [(35, "met"), (34, "**missed**")])
def test_growth_is_judged_by_that_by_hand(rate: float, verdict: str) -> None:
    text = tables.tables_of(results(many={"W7": rate}))
    (line,) = lines_with(text, "SQLite, 1,000 to 10,000 pages: growth of the others")
    assert line.endswith(verdict)


def lines_with(text: str, start: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(start)]


def test_tables_can_be_read() -> None:
    text = f"Title\n=====\n\n{tables.tables_of(results())}\n"
    document = publish_doctree(text, settings_overrides={"halt_level": 2, "report_level": 2})
    assert "W12" in document.astext()


def test_page_shows_the_results_that_are_kept() -> None:
    page = text_of("docs/performance.rst")
    assert tables.with_tables(page) == page


def test_every_backend_has_a_name_for_people() -> None:
    assert {server.name for server in PRODUCT} == {*tables.STARTS}

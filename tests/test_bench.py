"""The benchmark measures what it claims to. How fast anything is, is not tested here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from docutils.core import publish_doctree

from bench import by_hand, compare, content
from tests.pages import text_of
from tests.stores import fresh_address

pytestmark = pytest.mark.slow

PAGES = 600
SHORT = [f"--pages={PAGES}", "--rounds=1", "--answers=2"]
W2, W9 = "W2 articles, fields=*", "W9 detail"


def test_content_is_always_the_same(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        content.write(PAGES, tmp_path / name)
    first, second = (
        [file.read_bytes() for file in sorted((tmp_path / name).iterdir())]
        for name in ("one", "two")
    )
    assert first == second


def test_too_few_pages_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="more than"):
        content.write(content.ABOVE, tmp_path)


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, list[str]]]:
    folder = tmp_path_factory.mktemp("content")
    content.write(PAGES, folder)
    tables = by_hand.Tables(fresh_address("sqlite"))
    tables.load(str(folder))
    return content.addresses(PAGES, tables.rows)


def test_fresh_addresses_do_not_repeat(addresses: dict[str, dict[str, list[str]]]) -> None:
    assert all(len({*paths}) == len(paths) for paths in addresses["fresh"].values())
    assert len(addresses["fresh"][W2]) == content.FRESH


def test_workloads_have_the_same_names(addresses: dict[str, dict[str, list[str]]]) -> None:
    assert [name.split()[0] for name in addresses["some"]] == [f"W{n}" for n in range(1, 13)]
    assert {W2, W9} <= addresses["some"].keys() == addresses["fresh"].keys()


def test_all_give_the_same_answers(capsys: pytest.CaptureFixture[str]) -> None:
    compare.main([*SHORT, "--stores", "memory", "sqlite"])
    said = capsys.readouterr().out
    for store in ("memory", "sqlite"):
        for name in (W2, W9, compare.KNOWN, compare.KEPT, "mean (lowest)"):
            assert re.search(rf"^{store} +{re.escape(name)} +\d", said, re.M)
    publish_doctree(said.partition("\n\n")[2], settings_overrides={"halt_level": 2})


def test_different_answers_stop_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "_essence", lambda server, path: id(server))
    with pytest.raises(SystemExit, match="memory, "):
        compare.main([*SHORT, "--stores", "memory"])


def test_page_has_a_table() -> None:
    before, mark, table = text_of("docs/performance.rst").partition(compare.BEGIN)
    assert mark
    assert len(before.splitlines() + table.splitlines()) <= 150

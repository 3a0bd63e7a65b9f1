"""The benchmark measures what it claims to. How fast anything is, is not tested here."""

from __future__ import annotations

import re

import pytest
from docutils.core import publish_doctree

from bench import by_hand, compare, content
from tests.pages import text_of
from tests.stores import fresh_address

pytestmark = pytest.mark.slow

PAGES = 600
SHORT = [f"--pages={PAGES}", "--rounds=1", "--answers=2"]
W2, W9 = "W2 articles, fields=*", "W9 detail"


def test_content_is_always_the_same() -> None:
    first, second = (
        {section: [*found] for section, found in content.records(PAGES).items()} for _ in range(2)
    )
    assert first == second
    assert len(first["pages"]) == PAGES


def test_too_few_pages_are_refused() -> None:
    with pytest.raises(SystemExit, match="more than"):
        content.records(content.ABOVE)


@pytest.fixture(scope="module")
def addresses() -> dict[str, dict[str, list[str]]]:
    tables = by_hand.Tables(fresh_address("sqlite"))
    tables.load(PAGES)
    asked: dict[str, dict[str, list[str]]] = {"some": {}, "fresh": {}}
    for name, mode, paths in content.addresses(PAGES, tables.rows):
        asked[mode][name] = paths
    return asked


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
    monkeypatch.setattr(compare, "_essence", lambda app, path: id(app))
    with pytest.raises(SystemExit, match="memory, "):
        compare.main([*SHORT, "--stores", "memory"])


def test_page_has_a_table() -> None:
    before, mark, table = text_of("docs/performance.rst").partition(compare.BEGIN)
    assert mark
    assert len(before.splitlines() + table.splitlines()) <= 150

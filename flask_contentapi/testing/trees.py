"""Tests of places in the tree of pages, and of translations."""

from __future__ import annotations

from typing import Any

import pytest

from flask_contentapi.backend import Reader
from flask_contentapi.query import Query
from flask_contentapi.testing.kit import BOARD, LOANS, STAFF, Kit, case, finds, query

TREES = [
    case(
        "child_of: hidden children are left out",
        [20, 12, 10, 32, 35, 60, 14, 15, 16, 17],
        child_of=1,
    ),
    case("child_of: within the scope", [61], child_of=60, scope=(60,)),
    case("child_of: siblings in their order, not by id", [23, 22, 21, 24, 25], child_of=20),
    case("child_of: a page without children", [], child_of=21),
    case("child_of: what the viewer may see", [37], child_of=36, viewer=STAFF),
    case("descendant_of: slugs that start alike are apart", [23, 22, 21, 24, 25], descendant_of=20),
    case("descendant_of: letter case of slugs counts", [13], descendant_of=12),
    case("descendant_of: a longer slug", [11], descendant_of=10),
    case(
        "descendant_of: pages below hidden ones",
        [20, 23, 22, 21, 24, 25, 12, 13, 10, 11, 31, 32, 35, 60, 61, 14, 15, 16, 17],
        descendant_of=1,
    ),
    case("descendant_of: a page without any", [], descendant_of=61),
    case("descendant_of: within the scope", [61], descendant_of=60, scope=(60, 40)),
    case("ancestor_of: from the root on", [1, 20], ancestor_of=23),
    case("ancestor_of: a root has none", [], ancestor_of=1),
    case("ancestor_of: hidden ones are left out", [1], ancestor_of=31),
    case("ancestor_of: no further than the scope", [60], ancestor_of=61, scope=(60,)),
    case("ancestor_of: what the viewer may see", [1, 36, 38], ancestor_of=39, viewer=BOARD),
    case("translation_of: the other languages", [70, 80], translation_of=20),
    case("translation_of: from any of them", [20, 80], translation_of=70),
    case("translation_of: hidden ones are left out", [2], translation_of=1),
    case("translation_of: none is to be seen", [], translation_of=10),
    case("translation_of: pages without a key are no translations", [], translation_of=12),
    case("translation_of: within the scope", [70], translation_of=20, scope=(1, 2)),
    case("two relations: both are to be met", [20], descendant_of=1, ancestor_of=23),
    case("two relations: nothing meets both", [], child_of=20, translation_of=20),
    case("relations and types: both are to be met", [25], child_of=20, types=LOANS),
    case(
        "relations and filters: both are to be met",
        [20, 10, 60],
        child_of=1,
        where=[("show_in_menus", "eq", True)],
    ),
]


def _line(rule: str, wanted: list[int], **parts: Any) -> Any:
    return pytest.param(query(**parts), wanted, id=rule)


UNSEEN = [
    _line("a page that is not there", [404], child_of=404),
    _line("a draft", [30], descendant_of=30),
    _line("an expired page", [34], child_of=34),
    _line("a restricted page", [36], child_of=36),
    _line("a page below a restricted one", [37], ancestor_of=37),
    _line("a hidden translation", [72], translation_of=72),
    _line("a page out of scope", [20], child_of=20, scope=(60,)),
    _line("a page above the scope", [1], descendant_of=1, scope=(60,)),
    _line("one of two", [30], child_of=20, ancestor_of=30),
    _line("each of two", [30, 404], child_of=404, ancestor_of=30),
]


_EACH: dict[str, Any] = {"where": [("parent", "in", (20, 12, 1, 30, 404))], "count": False}

FIRST = [
    _line("in tree order", [20, 23, 22, 12, 13], each=2, **_EACH),
    _line("those that may be seen, in scope", [13], each=2, scope=(12, 36), viewer=STAFF, **_EACH),
    _line("none of each", [], each=0, **_EACH),
]


class TreeTests(Kit):
    """:attr:`Query.tree`."""

    test_relation = finds(TREES)

    @pytest.mark.parametrize(("query", "unseen"), UNSEEN)
    def test_names_unseen(self, reader: Reader, query: Query, unseen: list[int]) -> None:
        selected = reader.select(query)
        assert (sorted(selected.unseen), list(selected.rows)) == (unseen, [])

    @pytest.mark.parametrize(("query", "ids"), FIRST)
    def test_first_pages_of_each_parent(self, reader: Reader, query: Query, ids: list[int]) -> None:
        assert [row[0] for row in reader.select(query).rows] == ids

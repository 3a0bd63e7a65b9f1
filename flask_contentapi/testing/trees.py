"""Tests of places in the tree of pages, and of translations."""

from __future__ import annotations

from typing import Any

import pytest

from flask_contentapi.backend import Reader
from flask_contentapi.query import Query
from flask_contentapi.testing.kit import BOARD, STAFF, Kit, case, each_case, finds, query

TREES = [
    case(
        "child_of: hidden children are left out",
        [20, 12, 10, 32, 35, 60, 14, 15, 16, 17],
        tree={"child_of": 1},
    ),
    case("child_of: within the scope", [61], tree={"child_of": 60}, scope=(60,)),
    case(
        "child_of: siblings in their order, not by id", [23, 22, 21, 24, 25], tree={"child_of": 20}
    ),
    case("child_of: a page without children", [], tree={"child_of": 21}),
    case("child_of: what the viewer may see", [37], tree={"child_of": 36}, viewer=STAFF),
    case(
        "descendant_of: slugs that start alike are apart",
        [23, 22, 21, 24, 25],
        tree={"descendant_of": 20},
    ),
    case("descendant_of: letter case of slugs counts", [13], tree={"descendant_of": 12}),
    case("descendant_of: a longer slug", [11], tree={"descendant_of": 10}),
    case(
        "descendant_of: pages below hidden ones",
        [20, 23, 22, 21, 24, 25, 12, 13, 10, 11, 31, 32, 35, 60, 61, 14, 15, 16, 17],
        tree={"descendant_of": 1},
    ),
    case("descendant_of: a page without any", [], tree={"descendant_of": 61}),
    case("descendant_of: within the scope", [61], tree={"descendant_of": 60}, scope=(60, 40)),
    case("ancestor_of: from the root on", [1, 20], tree={"ancestor_of": 23}),
    case("ancestor_of: a root has none", [], tree={"ancestor_of": 1}),
    case("ancestor_of: hidden ones are left out", [1], tree={"ancestor_of": 31}),
    case("ancestor_of: no further than the scope", [60], tree={"ancestor_of": 61}, scope=(60,)),
    case(
        "ancestor_of: what the viewer may see", [1, 36, 38], tree={"ancestor_of": 39}, viewer=BOARD
    ),
    case("translation_of: the other languages", [70, 80], tree={"translation_of": 20}),
    case("translation_of: from any of them", [20, 80], tree={"translation_of": 70}),
    case("translation_of: hidden ones are left out", [2], tree={"translation_of": 1}),
    case("translation_of: none is to be seen", [], tree={"translation_of": 10}),
    case(
        "translation_of: pages without a key are no translations", [], tree={"translation_of": 12}
    ),
    case("translation_of: within the scope", [70], tree={"translation_of": 20}, scope=(1, 2)),
    case("two relations: both are to be met", [20], tree={"descendant_of": 1, "ancestor_of": 23}),
    case("two relations: nothing meets both", [], tree={"child_of": 20, "translation_of": 20}),
    case(
        "relations and types: both are to be met",
        [25],
        tree={"child_of": 20},
        types=frozenset({"museum.Loan"}),
    ),
    case(
        "relations and filters: both are to be met",
        [20, 10, 60],
        tree={"child_of": 1},
        where=[("show_in_menus", "eq", True)],
    ),
]


_PARENTS = [("parent", "in", (20, 12, 1, 30, 404))]
#: Pages that others lead to: the rule, the query, and the ids.
WAYS = [
    (
        "by their paths, those that may be seen",
        query(where=[("url_path", "in", ("/home/minerals/", "/home/depot/", "/", "/home/"))]),
        [1, 20],
    ),
    (
        "by their translation keys, in tree order",
        query(where=[("translation_key", "in", ("minerals", "home", "none"))]),
        [1, 20, 2, 70, 80],
    ),
    ("by nothing", query(where=[("translation_key", "in", ())]), []),
    (
        "the first ones of each parent, in tree order",
        query(where=_PARENTS, count=False, each=2),
        [20, 23, 22, 12, 13],
    ),
    (
        "the first ones that may be seen, within the scope",
        query(where=_PARENTS, count=False, each=2, scope=(12, 36), viewer=STAFF),
        [13],
    ),
    ("none of each", query(where=_PARENTS, count=False, each=0), []),
]


def _names(rule: str, unseen: list[int], **parts: Any) -> Any:
    return pytest.param(query(**parts), unseen, id=rule)


UNSEEN = [
    _names("a page that is not there", [404], tree={"child_of": 404}),
    _names("a draft", [30], tree={"descendant_of": 30}),
    _names("an expired page", [34], tree={"child_of": 34}),
    _names("a restricted page", [36], tree={"child_of": 36}),
    _names("a page below a restricted one", [37], tree={"ancestor_of": 37}),
    _names("a hidden translation", [72], tree={"translation_of": 72}),
    _names("a page out of scope", [20], tree={"child_of": 20}, scope=(60,)),
    _names("a page above the scope", [1], tree={"descendant_of": 1}, scope=(60,)),
    _names("one of two", [30], tree={"child_of": 20, "ancestor_of": 30}),
    _names("each of two", [30, 404], tree={"child_of": 404, "ancestor_of": 30}),
]


class TreeTests(Kit):
    """:attr:`Query.tree`."""

    test_relation = finds(TREES)

    @pytest.mark.parametrize(("query", "unseen"), UNSEEN)
    def test_names_unseen(self, reader: Reader, query: Query, unseen: list[int]) -> None:
        selected = reader.select(query)
        assert (sorted(selected.unseen), list(selected.rows)) == (unseen, [])

    @pytest.mark.parametrize(("query", "ids"), [w[1:] for w in WAYS], ids=[w[0] for w in WAYS])
    def test_pages_that_others_lead_to(self, reader: Reader, query: Query, ids: list[int]) -> None:
        assert [row[0] for row in reader.select(query).rows] == ids

    @each_case(TREES)
    def test_names_nothing_unseen(
        self, reader: Reader, query: Query, ids: list[int], total: int
    ) -> None:
        assert tuple(reader.select(query).unseen) == ()

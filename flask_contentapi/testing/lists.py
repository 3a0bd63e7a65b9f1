"""Tests of lists: their order, limit and offset; searches; places in the tree of pages, and
translations."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import Any

import pytest

from flask_contentapi.backend import Reader
from flask_contentapi.query import Query
from flask_contentapi.testing.kit import (
    BOARD,
    EXHIBITS,
    LOANS,
    STAFF,
    Kit,
    case,
    finds,
    found,
    query,
)

_HUGE = 2**63 - 1


def _order(order: str, ids: list[int], why: str, **parts: Any) -> Any:
    return case(f"{order}: {why}", ids, order=order, **parts)


_exhibits = partial(_order, types=EXHIBITS, scope=(1,))
_children = partial(_order, child_of=1)


def _orders(column: str, ascending: list[int], descending: list[int]) -> list[Any]:
    """Two lines about the exhibits of one site."""
    rule = "missing values first ascending, last descending; ties by id"
    return [_exhibits(column, ascending, rule), _exhibits(f"-{column}", descending, rule)]


ORDERS = [
    *_orders("id", [11, 13, 21, 22, 23, 24, 25], [25, 24, 23, 22, 21, 13, 11]),
    *_orders("title", [11, 13, 22, 23, 25, 21, 24], [24, 21, 23, 25, 13, 22, 11]),
    *_orders("story", [21, 22, 23, 11, 13, 25, 24], [24, 25, 13, 11, 23, 22, 21]),
    *_orders("number", [21, 22, 13, 24, 11, 25, 23], [23, 11, 25, 24, 13, 22, 21]),
    *_orders("weight", [13, 21, 22, 11, 24, 25, 23], [23, 25, 24, 11, 22, 13, 21]),
    *_orders("price", [21, 22, 13, 24, 11, 25, 23], [23, 11, 25, 24, 13, 22, 21]),
    *_orders("ratio", [21, 13, 22, 11, 24, 25, 23], [23, 24, 25, 11, 22, 13, 21]),
    *_orders("on_loan", [11, 13, 21, 22, 24, 23, 25], [23, 25, 11, 13, 21, 22, 24]),
    *_orders("found_on", [13, 21, 22, 11, 24, 25, 23], [23, 24, 25, 11, 22, 13, 21]),
    *_orders("opens_at", [13, 21, 22, 11, 24, 25, 23], [23, 25, 11, 24, 22, 13, 21]),
    *_orders("cleaned_at", [13, 21, 22, 24, 25, 11, 23], [23, 11, 24, 25, 22, 13, 21]),
    # Hidden targets count as missing.
    *_orders("photo", [11, 13, 21, 22, 23, 25, 24], [24, 23, 25, 11, 13, 21, 22]),
    *_orders("twin", [11, 21, 22, 25, 24, 23, 13], [13, 23, 24, 11, 21, 22, 25]),
    *_orders("beside", [11, 13, 21, 22, 25, 24, 23], [23, 24, 11, 13, 21, 22, 25]),
    _exhibits("twin", [11, 21, 22, 24, 23, 25, 37, 13], "to staff less is missing", viewer=STAFF),
    _exhibits("beside", [21, 22, 23, 25, 24], "a target out of scope is missing", scope=(20,)),
    _exhibits("-beside", [24, 21, 22, 23, 25], "a target out of scope is missing", scope=(20,)),
    _exhibits("number,-id", [21, 22, 13, 24, 25, 11, 23], "each key in its own direction"),
    _exhibits("-title,number", [24, 21, 25, 23, 22, 13, 11], "the first key counts most"),
    _exhibits(
        "-on_loan,found_on", [25, 23, 13, 21, 22, 11, 24], "missing values of the second key"
    ),
    _children("first_published_at", [14, 15, 16, 17, 32, 35, 60, 10, 12, 20], "ties by id"),
    _children("-first_published_at", [12, 20, 10, 14, 15, 16, 17, 32, 35, 60], "ties by id"),
    _children("alias_of", [10, 12, 15, 16, 20, 32, 35, 60, 17, 14], "hidden ones are missing"),
    _order("locale", [80, 40, 2], "by code point", where=[("id", "in", (2, 40, 80))]),
    _order("title", [22, 60], "instead of relevance", any_word="obsidian"),
    case("images: by id without an order", [1, 2, 3, 7, 8], "images"),
    _order("width", [7, 8, 1, 2, 3], "images", endpoint="images"),
    _order("-width", [3, 1, 2, 7, 8], "images", endpoint="images"),
    _order("born", [2, 1, 3], "people", endpoint="people"),
    _order("name", [1, 2, 3], "people, by code point", endpoint="people"),
    _order("portrait", [2, 3, 1], "people, hidden ones are missing", endpoint="people"),
]


def _window(rule: str, ids: list[int], offset: int, limit: int | None, order: str = "") -> Any:
    """A line about the five exhibits of one room."""
    parts: dict[str, Any] = {"offset": offset, "limit": limit, "order": order}
    return case(rule, ids, child_of=20, types=EXHIBITS, total=5, **parts)


WINDOWS = [
    _window("limit: at most as many", [23, 22], 0, 2),
    _window("limit: none at all", [], 0, 0),
    _window("limit: None is all", [23, 22, 21, 24, 25], 0, None),
    _window("limit: as large as can be", [24, 25], 3, _HUGE),
    _window("offset: leaves out the first", [24, 25], 3, None),
    _window("offset: with a limit", [22, 21], 1, 2),
    _window("offset: at the end", [], 5, 2),
    _window("offset: past the end", [], _HUGE, 20),
    _window("offset: with a limit, as large as can be", [], _HUGE, _HUGE),
    _window("with an order", [22, 24], 1, 2, "number"),
    _window("with an order: past the end", [], 5, 2, "number"),
    _window("with an order: descending", [24, 22], 2, 2, "-number"),
    _window("with two keys", [22, 24], 1, 2, "number,id"),
    case("of nothing", [], offset=0, limit=2, child_of=21),
]


class OrderTests(Kit):
    """:attr:`Query.order`, ``random``, ``limit``, ``offset`` and ``count``."""

    test_order = finds(ORDERS)
    test_window = finds(WINDOWS)

    def test_windows_over_ties_bring_each_object_once(self, reader: Reader) -> None:
        windows = [
            found(reader, query(order="show_in_menus", offset=offset, limit=5))[0]
            for offset in range(0, 30, 5)
        ]
        assert sorted(chain.from_iterable(windows)) == sorted(found(reader, query())[0])

    def test_rows_are_the_same_without_a_count(self, reader: Reader) -> None:
        selected = reader.select(query(child_of=20, limit=2, count=False))
        assert list(selected.rows) == [(23,), (22,)]

    def test_random_has_all_that_match_each_once(self, reader: Reader) -> None:
        ids, total = found(reader, query(child_of=20, random=True))
        assert (sorted(ids), total) == ([21, 22, 23, 24, 25], 5)

    def test_random_has_no_more_than_the_limit(self, reader: Reader) -> None:
        ids, total = found(reader, query(child_of=20, random=True, limit=3))
        assert (len(set(ids)), total) == (3, 5)
        assert set(ids) <= {21, 22, 23, 24, 25}

    def test_random_is_another_order_each_time(self, reader: Reader) -> None:
        orders = {tuple(found(reader, query(random=True))[0]) for _ in range(5)}
        assert len(orders) > 1


def _finds(rule: str, ids: list[int], *args: Any, **kwargs: Any) -> Any:
    """A line about the matches of a search, in id order."""
    return case(rule, ids, *args, order="id", **kwargs)


SEARCHES = [
    _finds(
        "letter case and accents of the text do not count",
        [11, 13, 21, 22, 23, 24, 25],
        any_word="agate",
    ),
    _finds("whole words are found, no parts", [], any_word="agat"),
    _finds("markup inside a word does not part it, entities are read", [13, 23], any_word="cafe"),
    _finds("characters that only control how text is shown are dropped", [23], any_word="noir"),
    _finds("markup is no text", [], any_word="p"),
    _finds("rich text", [23], any_word="chalcedony"),
    _finds("tags", [22, 23, 24, 25], any_word="quartz"),
    _finds("child objects", [23], any_word="polished"),
    _finds("blocks", [23], any_word="onyx"),
    _finds("values of blocks alone", [], any_word="granite"),
    _finds("fields that are not searched", [], any_word="hush"),
    _finds("objects of undeclared types have a title", [16], any_word="diorama"),
    _finds(
        "objects of undeclared types have nothing else, hidden ones are left out",
        [22, 60],
        any_word="obsidian",
    ),
    _finds("or: one of the words", [13, 22, 23], any_word="chalcedony igneous tin"),
    _finds("and: every word", [22, 23, 24, 25], every_word="agate quartz"),
    _finds("and: in different fields", [23], every_word="banded polished"),
    _finds("and: a word that nothing has", [], every_word="agate tin"),
    _finds("begun: a word that starts so", [11, 13, 21, 22, 23, 24, 25, 71], begun="aga"),
    _finds("begun: a whole word", [11, 13, 21, 22, 23, 24, 25], begun="agate"),
    _finds("begun: no other part of a word", [], begun="gate"),
    _finds("begun: nothing that is longer", [], begun="agates"),
    _finds("begun: words in other scripts", [17], begun="gruß"),
    _finds("begun: every word, the last one so", [22, 23, 24, 25], begun="agate qua"),
    _finds("begun: the others are whole words", [], begun="aga quartz"),
    _finds("begun: what the viewer may see", [22, 60], begun="obs"),
    _finds("begun: images by tags", [1, 2, 3, 8], "images", begun="mac"),
    _finds("two searches: what both find", [23, 25], any_word="banded", begun="qua"),
    _finds(
        "what the viewer may see", [11, 13, 21, 22, 23, 24, 25, 37], any_word="agate", viewer=STAFF
    ),
    _finds("with a type", [25], any_word="agate", types=LOANS),
    _finds("with a filter", [23, 25], any_word="agate", where=[("title", "eq", "agate")]),
    _finds("with a relation", [21, 22, 23, 24, 25], any_word="agate", child_of=20),
    _finds("with a scope", [60], any_word="obsidian", scope=(60,)),
    _finds(
        "with a window: the total is of all", [13, 21], any_word="agate", offset=1, limit=2, total=7
    ),
    _finds("images: titles and tags", [1, 2, 3, 8], "images", any_word="macro"),
    _finds("images: titles", [1, 2, 3], "images", any_word="agate"),
    _finds(
        "documents: what the type adds, hidden ones are left out",
        [1],
        "documents",
        any_word="minerals",
    ),
    _finds("documents: tags", [1, 2], "documents", any_word="visit"),
    _finds("people: what the type adds", [3], "people", any_word="asa"),
]


class SearchTests(Kit):
    """:attr:`Query.search`. Relevance is up to the engine, except for the title and ties."""

    test_finds = finds(SEARCHES)

    def test_order_of_relevance_has_all_that_is_found(self, reader: Reader) -> None:
        ids, total = found(reader, query(any_word="agate quartz"))
        assert (sorted(ids), total) == ([11, 13, 21, 22, 23, 24, 25], 7)

    def test_word_in_title_comes_before_word_elsewhere(self, reader: Reader) -> None:
        ids, _ = found(reader, query(any_word="obsidian"))
        assert ids == ([60, 22] if self.ranks else [22, 60])

    def test_beginning_of_word_in_title_comes_first(self, reader: Reader) -> None:
        ids, _ = found(reader, query(begun="obs"))
        assert ids == [60, 22]

    def test_ties_of_relevance_are_in_default_order(self, reader: Reader) -> None:
        ids, _ = found(reader, query(any_word="hall"))
        assert ids == [12, 10]


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

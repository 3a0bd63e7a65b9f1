"""Tests of the order of lists, and of limit and offset."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import Any

from flask_contentapi.backend import Reader
from flask_contentapi.testing.kit import EXHIBITS, STAFF, Kit, case, finds, found, query

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

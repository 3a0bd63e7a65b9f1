"""Tests of filters, each operator on each kind of stored value, and of facets."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from flask_contentapi.backend import Reader
from flask_contentapi.query import MOST_VALUES
from flask_contentapi.testing.kit import EXHIBITS, LOANS, STAFF, Kit, case, finds, query

_MICROSECOND = timedelta(microseconds=1)


def _filter(asked: str, value: Any, ids: list[int], why: str, **parts: Any) -> Any:
    """A line about a filter: its column and operator, its value, the ids, and the rule."""
    return case(f"{asked} {value!a}: {why}", ids, where=[(*asked.split(), value)], **parts)


_exhibits = partial(_filter, types=EXHIBITS)

_PHOTOS = ("museum.Photo", "museum.Scan")
_EIGHT = datetime(2026, 1, 15, 8, tzinfo=UTC)
_PUBLISHED = datetime(2025, 5, 1, 10, tzinfo=UTC)
_MAX_PRICE = Decimal("999999999999999999999999999999.99")
_MIN_RATIO = Decimal("-0.000000000000000000000000000001")

FILTERS = [
    _exhibits("title eq", "agate", [23, 25], "letter case, accents and spaces count"),
    _exhibits("title eq", "Agate", [22, 13], "letter case counts"),
    _exhibits("title eq", "agate ", [21], "spaces at the end count"),
    _exhibits("title eq", "ágate", [24], "accents count"),
    _exhibits("title eq", "a\u0301gate", [], "forms of one accent are apart"),
    _exhibits("title eq", "", [], "no text is equal to the empty one but itself"),
    _exhibits("story eq", "", [21, 71], "a text that is left out is empty"),
    _exhibits("story eq", "zinc", [23], "spaces at the end count"),
    _exhibits("story eq", "😀", [24], "all characters are kept"),
    _exhibits("number eq", 2**63 - 1, [23], "64 bits"),
    _exhibits("number eq", -(2**63), [22], "64 bits"),
    _exhibits("number eq", 0, [24], "a missing number is not zero"),
    _exhibits("number eq", 7, [25, 11], "several have it"),
    _exhibits("weight eq", 1.7976931348623157e308, [23], "the largest"),
    _exhibits("weight eq", 5e-324, [24], "the smallest"),
    _exhibits("weight eq", 0.1, [25], "no digit is lost"),
    _exhibits("weight eq", 0.0, [11], "minus zero is zero, and nothing is not"),
    _exhibits("price eq", _MAX_PRICE, [23], "no digit is lost"),
    _exhibits("price eq", Decimal("999999999999999999999999999999.98"), [], "no digit is lost"),
    _exhibits("price eq", Decimal("4.50"), [25, 11], "as numbers"),
    _exhibits("price eq", Decimal("0.00"), [24], "a missing decimal is not zero"),
    _exhibits("ratio eq", Decimal("1.5"), [24, 25], "as numbers"),
    _exhibits("ratio eq", _MIN_RATIO, [22], "thirty places are kept"),
    _exhibits("on_loan eq", True, [23, 25], "true"),
    _exhibits("on_loan eq", False, [22, 21, 24, 13, 11, 71], "what is left out is false"),
    _exhibits("found_on eq", date.max, [23], "the last day"),
    _exhibits("found_on eq", date.min, [22], "the first day"),
    _exhibits("found_on eq", date(2024, 2, 29), [24, 25], "a leap day"),
    _exhibits("opens_at eq", time(9, 30), [24, 11], "microseconds count"),
    _exhibits("opens_at eq", time(23, 59, 59, 999999), [23], "microseconds are kept"),
    _exhibits("opens_at eq", time(0), [22], "midnight is a time"),
    _exhibits("cleaned_at eq", _EIGHT, [24, 25], "one instant in two offsets"),
    _exhibits("cleaned_at eq", _EIGHT + _MICROSECOND, [11], "microseconds count"),
    _exhibits("cleaned_at eq", datetime.max.replace(tzinfo=UTC), [23], "the last instant"),
    _exhibits("photo eq", 1, [23, 25], "a relation by id"),
    _exhibits("photo eq", 5, [], "a hidden target counts as missing"),
    _exhibits("photo eq", 404, [], "a target that is not there counts as missing"),
    _exhibits("twin eq", 24, [23], "a relation by id"),
    _exhibits("twin eq", 26, [], "a draft counts as missing"),
    _exhibits("twin eq", 34, [], "an expired page counts as missing"),
    _exhibits("twin eq", 36, [], "a restricted page counts as missing"),
    _exhibits("keeper eq", 1, [23, 24], "a relation to another endpoint"),
    _exhibits("remark eq", "hush", [23], "stored fields that are not shown can be asked"),
    _exhibits("story in", ("zinc", "Zinc", "tin"), [23, 22], "one of several"),
    _exhibits("story in", (), [], "one of none is none"),
    _exhibits("number in", (7, 7, 0), [24, 25, 11], "each object once"),
    _exhibits("photo in", (1, 5), [23, 25], "hidden targets count as missing"),
    _exhibits("number lt", 0, [22, 13], "missing values never match"),
    _exhibits("number ge", 0, [23, 24, 25, 11], "missing values never match"),
    _exhibits("weight le", 0.0, [22, 11], "the value itself as well"),
    _exhibits("weight gt", 0.0, [23, 24, 25], "not the value itself"),
    _exhibits("price gt", Decimal("4.50"), [23], "as numbers"),
    _exhibits("price lt", Decimal(0), [22, 13], "as numbers"),
    _exhibits("ratio le", Decimal(0), [22, 13], "as numbers"),
    _exhibits("found_on ge", date(2024, 2, 29), [23, 24, 25], "missing values never match"),
    _exhibits("found_on gt", date(2024, 2, 29), [23], "not the value itself"),
    _exhibits("found_on le", date(1970, 1, 1), [22, 11], "missing values never match"),
    _exhibits("found_on lt", date(1970, 1, 1), [22], "not the value itself"),
    _exhibits("opens_at lt", time(9, 30), [22], "not the value itself"),
    _exhibits("cleaned_at gt", _EIGHT, [23, 11], "microseconds count"),
    _exhibits("story gt", "zinc", [24, 25, 13, 11], "texts compare by code point"),
    _exhibits("story lt", "a", [22, 21, 71], "the empty text is a value"),
    _exhibits("photo ge", 1, [23, 24, 25], "hidden targets count as missing"),
    _exhibits("number not", (7, 0), [23, 22, 21, 13, 71], "a missing value is none of them"),
    _exhibits("story not", ("zinc", ""), [22, 24, 25, 13, 11], "letter case counts"),
    _exhibits("photo not", (1,), [22, 21, 24, 13, 11, 71], "hidden targets count as missing"),
    _exhibits("photo not", (1, 5), [22, 21, 24, 13, 11, 71], "hidden targets count as missing"),
    _exhibits("type not", ("museum.Loan",), [23, 22, 21, 24, 13, 11, 71], "types by label"),
    _exhibits("number isnull", True, [21, 71], "zero is a value"),
    _exhibits("number isnull", False, [23, 22, 24, 25, 13, 11], "zero is a value"),
    _exhibits("twin isnull", True, [22, 21, 25, 11, 71], "hidden targets count as missing"),
    _exhibits("twin isnull", False, [23, 24, 13], "hidden targets count as missing"),
    _exhibits("story startswith", "zinc", [23, 11], "the whole text is a beginning as well"),
    _exhibits("story startswith", "Zi", [22], "letter case counts"),
    _exhibits("story startswith", "z", [23, 13, 11], "by code point"),
    _exhibits("story startswith", "\uff5a", [25], "by code point"),
    _exhibits("story startswith", "😀", [24], "characters outside the basic plane"),
    _exhibits("story startswith", "\U0010ffff", [], "nothing is above the last character"),
    _exhibits("story startswith", "z%", [], "no character has a meaning of its own"),
    _exhibits(
        "story startswith",
        "",
        [23, 22, 21, 24, 25, 13, 11, 71],
        "every text begins with the empty one",
    ),
    _exhibits("tags all", ("quartz",), [23, 22, 25], "letter case counts"),
    _exhibits("tags all", ("Quartz",), [23, 24], "letter case counts"),
    _exhibits("tags all", ("quartz", "Quartz"), [23], "every one of them"),
    _exhibits("tags all", ("banded", "quartz"), [23, 25], "every one of them"),
    _exhibits("tags all", ("banded ",), [11], "spaces at the end count"),
    _exhibits("tags all", ("Bänded",), [13], "accents count"),
    _exhibits("tags all", ("quart",), [], "whole tags"),
    _exhibits("neighbours all", (24,), [23, 25], "each object once"),
    _exhibits("neighbours all", (22,), [23, 24], "at any place"),
    _exhibits("neighbours all", (22, 24), [23], "every one of them"),
    _exhibits("neighbours all", (26,), [], "a draft is not there"),
    _exhibits("neighbours all", (24, 36), [], "a restricted page is not there"),
    _exhibits("neighbours all", (404,), [], "a target that is not there"),
    _exhibits("tags in", ("Quartz", "banded"), [23, 24, 25], "at least one, each object once"),
    _exhibits("tags in", (), [], "one of none is none"),
    _exhibits("tags not", ("quartz", "tin"), [21, 24, 13, 11, 71], "none of them"),
    _exhibits("neighbours in", (22, 26), [23, 24], "a draft is not there"),
    _exhibits("neighbours not", (24,), [22, 21, 24, 13, 11, 71], "none of them"),
    _exhibits(
        "neighbours not", (26, 36), [23, 22, 21, 24, 25, 13, 11, 71], "hidden targets do not count"
    ),
    _exhibits("views all", (5,), [], "a hidden image is not there"),
    _filter("id eq", 23, [23], "one page"),
    _filter("id eq", 26, [], "not a hidden one"),
    _filter("id in", (22, 26, 404, 23), [23, 22], "not the hidden ones"),
    _filter("slug eq", "minerals", [20, 41], "letter case counts"),
    _filter("locale eq", "fr", [2, 70, 71], "the language of a page"),
    _filter("show_in_menus eq", True, [20, 10, 60], "true"),
    _filter("first_published_at eq", _PUBLISHED, [20, 12], "one instant in two offsets"),
    _filter("alias_of eq", 23, [14], "the page copied"),
    _filter("alias_of eq", 30, [], "a hidden page counts as missing"),
    _exhibits("photo eq", 5, [22], "what the viewer may see is not missing", viewer=STAFF),
    _exhibits("twin eq", 36, [25, 37], "what the viewer may see is not missing", viewer=STAFF),
    _exhibits("neighbours all", (24, 36), [23], "what the viewer may see is there", viewer=STAFF),
    _exhibits("beside eq", 60, [23], "in scope 1", scope=(1,)),
    _exhibits("beside eq", 60, [], "in scope 20", scope=(20,)),
    _exhibits("beside ge", 21, [23, 24], "in scope 1", scope=(1,)),
    _exhibits("beside ge", 21, [24], "in scope 20", scope=(20,)),
    _exhibits("beside in", (21, 60), [23, 24], "in scope 1", scope=(1,)),
    _exhibits("beside in", (21, 60), [24], "in scope 20", scope=(20,)),
    _exhibits("beside not", (21, 60), [23, 22, 21, 25], "in scope 20", scope=(20,)),
    _exhibits("beside isnull", False, [23, 24], "in scope 1", scope=(1,)),
    _exhibits("beside isnull", False, [24], "in scope 20", scope=(20,)),
    _exhibits("beside eq", 60, [23], "without a scope"),
    _filter("translation_key in", ("minerals", "home", "none"), [1, 20, 2, 70, 80], "tree order"),
    _filter("translation_key in", (), [], "one of none is none"),
    _filter("url_path in", ("/home/minerals/", "/home/depot/", "/", "/home/"), [1, 20], "paths"),
    _filter("url_path eq", "/home/minerals/", [20], "the whole path"),
    _filter("url_path eq", "/home/Minerals/", [12], "letter case counts"),
    _filter("url_path eq", "/home/miner", [], "not a part of it"),
    _filter("url_path eq", "/home/depot/", [], "not a hidden page"),
    _filter("url_path eq", "/home/gr%C3%BC%C3%9Fe%20%26%2050%25/", [17], "slugs are quoted"),
    _filter("url_path eq", "/home/minerals/", [], "not a page out of scope", scope=(60,)),
    _filter("lender eq", "A neighbour", [25], "a column of a derived type", types=LOANS),
    case(
        "several filters: all are to be met",
        [25],
        where=[("title", "eq", "agate"), ("on_loan", "eq", True), ("number", "eq", 7)],
        types=EXHIBITS,
    ),
    case(
        "several filters: two of one column",
        [24, 25, 11],
        where=[("found_on", "ge", date(1970, 1, 1)), ("found_on", "le", date(2024, 2, 29))],
        types=EXHIBITS,
    ),
    _filter("width eq", 800, [1, 2], "objects of other endpoints", endpoint="images"),
    _filter("tags all", ("macro",), [1, 3], "letter case counts", endpoint="images"),
    _filter("photographer eq", "", [2, 7, 8], "also of undeclared types", endpoint="images"),
    _filter("title eq", "Guide", [1], "letter case counts", endpoint="documents"),
    _filter("type not", _PHOTOS, [8], "objects of undeclared types are of none", endpoint="images"),
    _filter("name eq", "ada", [2], "letter case counts", endpoint="people"),
    _filter("mentor eq", 2, [1], "a relation to itself", endpoint="people"),
]


#: The column, what else is asked, and the values with their counts.
FACETS: list[tuple[str, dict[str, Any], list[tuple[Any, int]]]] = [
    ("number", {}, [(7, 2), (-(2**63), 1), (-1, 1), (0, 1), (2**63 - 1, 1)]),
    (
        "price",
        {},
        [
            (Decimal("4.50"), 2),
            (_MAX_PRICE.copy_negate(), 1),
            (Decimal("-0.01"), 1),
            (Decimal("0.00"), 1),
            (_MAX_PRICE, 1),
        ],
    ),
    ("on_loan", {}, [(False, 6), (True, 2)]),
    (
        "title",
        {},
        [("Agate", 2), ("agate", 2), ("AGATE", 1), ("Agathe", 1), ("agate ", 1), ("ágate", 1)],
    ),
    ("photo", {}, [(1, 2), (2, 1)]),
    ("photo", {"viewer": STAFF}, [(1, 3), (2, 1), (5, 1)]),
    ("twin", {}, [(22, 1), (24, 1), (71, 1)]),
    ("beside", {}, [(21, 1), (60, 1)]),
    ("beside", {"scope": (20,)}, [(21, 1)]),
    ("tags", {}, [("quartz", 3), ("Quartz", 2), ("banded", 2), ("Bänded", 1), ("banded ", 1)]),
    (
        "tags",
        {"where": [("number", "ge", 0), ("tags", "in", ("quartz", "Quartz"))], "limit": 1},
        [("Quartz", 2), ("banded", 2), ("quartz", 2)],
    ),
    ("neighbours", {"limit": 0}, [(22, 2), (24, 2), (23, 1), (25, 1)]),
    ("type", {"offset": 99}, [("museum.Exhibit", 7), ("museum.Loan", 1)]),
    ("type", {"where": [("id", "in", ())]}, []),
]


class FilterTests(Kit):
    """:attr:`Query.filters` and :attr:`Query.facets`."""

    test_filter = finds(FILTERS)

    @pytest.mark.parametrize(("column", "more", "counted"), FACETS)
    def test_facet(
        self, reader: Reader, column: str, more: dict[str, Any], counted: list[tuple[Any, int]]
    ) -> None:
        asked = query(types=EXHIBITS, facets=(column, "id"), **more)
        facet, ids = reader.select(asked).facets
        assert [*facet] == counted
        every = reader.select(asked._replace(limit=None, offset=0, facets=())).rows
        assert [*ids] == [(id, 1) for (id,) in sorted(every)]

    def test_facet_has_the_most_frequent_values(self, reader: Reader) -> None:
        (facet,) = reader.select(query(facets=("id",), limit=0)).facets
        ids = sorted(id for (id,) in reader.select(query()).rows)
        assert [*facet] == [(id, 1) for id in ids[:MOST_VALUES]]

    def test_facet_leaves_out_labels_of_undeclared_types(self, reader: Reader) -> None:
        (facet,) = reader.select(query("images", facets=("type",))).facets
        assert [*facet] == [("museum.Photo", 3), ("museum.Scan", 1)]

"""Tests of filters, each operator on each kind of stored value, and of facets."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pytest

from flask_contentapi.backend import Reader
from flask_contentapi.query import MOST_VALUES
from flask_contentapi.testing.kit import EXHIBITS, STAFF, Kit, case, finds, query

_MICROSECOND = timedelta(microseconds=1)


def _filters(column: str, operator: str, *lines: tuple[Any, list[int], str]) -> list[Any]:
    """Lines about the exhibits: the value, the ids, and the rule."""
    return [
        case(
            f"{column} {operator} {value!a}: {why}",
            ids,
            where=[(column, operator, value)],
            types=EXHIBITS,
        )
        for value, ids, why in lines
    ]


_EIGHT = datetime(2026, 1, 15, 8, tzinfo=UTC)
_MAX_PRICE = Decimal("999999999999999999999999999999.99")
_MIN_RATIO = Decimal("-0.000000000000000000000000000001")

FILTERS = [
    *_filters(
        "title",
        "eq",
        ("agate", [23, 25], "letter case, accents and spaces count"),
        ("Agate", [22, 13], "letter case counts"),
        ("agate ", [21], "spaces at the end count"),
        ("ágate", [24], "accents count"),
        ("a\u0301gate", [], "forms of one accent are apart"),
        ("", [], "no text is equal to the empty one but itself"),
    ),
    *_filters(
        "story",
        "eq",
        ("", [21, 71], "a text that is left out is empty"),
        ("zinc", [23], "spaces at the end count"),
        ("😀", [24], "all characters are kept"),
    ),
    *_filters(
        "number",
        "eq",
        (2**63 - 1, [23], "64 bits"),
        (-(2**63), [22], "64 bits"),
        (0, [24], "a missing number is not zero"),
        (7, [25, 11], "several have it"),
    ),
    *_filters(
        "weight",
        "eq",
        (1.7976931348623157e308, [23], "the largest"),
        (5e-324, [24], "the smallest"),
        (0.1, [25], "no digit is lost"),
        (0.0, [11], "minus zero is zero, and nothing is not"),
    ),
    *_filters(
        "price",
        "eq",
        (_MAX_PRICE, [23], "no digit is lost"),
        (Decimal("999999999999999999999999999999.98"), [], "no digit is lost"),
        (Decimal("4.50"), [25, 11], "as numbers"),
        (Decimal("0.00"), [24], "a missing decimal is not zero"),
    ),
    *_filters(
        "ratio",
        "eq",
        (Decimal("1.5"), [24, 25], "as numbers"),
        (_MIN_RATIO, [22], "thirty places are kept"),
    ),
    *_filters(
        "on_loan",
        "eq",
        (True, [23, 25], "true"),
        (False, [22, 21, 24, 13, 11, 71], "what is left out is false"),
    ),
    *_filters(
        "found_on",
        "eq",
        (date.max, [23], "the last day"),
        (date.min, [22], "the first day"),
        (date(2024, 2, 29), [24, 25], "a leap day"),
    ),
    *_filters(
        "opens_at",
        "eq",
        (time(9, 30), [24, 11], "microseconds count"),
        (time(23, 59, 59, 999999), [23], "microseconds are kept"),
        (time(0), [22], "midnight is a time"),
    ),
    *_filters(
        "cleaned_at",
        "eq",
        (_EIGHT, [24, 25], "one instant in two offsets"),
        (_EIGHT + _MICROSECOND, [11], "microseconds count"),
        (datetime.max.replace(tzinfo=UTC), [23], "the last instant"),
    ),
    *_filters(
        "photo",
        "eq",
        (1, [23, 25], "a relation by id"),
        (5, [], "a hidden target counts as missing"),
        (404, [], "a target that is not there counts as missing"),
    ),
    *_filters(
        "twin",
        "eq",
        (24, [23], "a relation by id"),
        (26, [], "a draft counts as missing"),
        (34, [], "an expired page counts as missing"),
        (36, [], "a restricted page counts as missing"),
    ),
    *_filters("keeper", "eq", (1, [23, 24], "a relation to another endpoint")),
    *_filters("remark", "eq", ("hush", [23], "stored fields that are not shown can be asked")),
    *_filters(
        "story",
        "in",
        (("zinc", "Zinc", "tin"), [23, 22], "one of several"),
        ((), [], "one of none is none"),
    ),
    *_filters("number", "in", ((7, 7, 0), [24, 25, 11], "each object once")),
    *_filters("photo", "in", ((1, 5), [23, 25], "hidden targets count as missing")),
    *_filters("number", "lt", (0, [22, 13], "missing values never match")),
    *_filters("number", "ge", (0, [23, 24, 25, 11], "missing values never match")),
    *_filters("weight", "le", (0.0, [22, 11], "the value itself as well")),
    *_filters("weight", "gt", (0.0, [23, 24, 25], "not the value itself")),
    *_filters("price", "gt", (Decimal("4.50"), [23], "as numbers")),
    *_filters("price", "lt", (Decimal(0), [22, 13], "as numbers")),
    *_filters("ratio", "le", (Decimal(0), [22, 13], "as numbers")),
    *_filters("found_on", "ge", (date(2024, 2, 29), [23, 24, 25], "missing values never match")),
    *_filters("found_on", "gt", (date(2024, 2, 29), [23], "not the value itself")),
    *_filters("found_on", "le", (date(1970, 1, 1), [22, 11], "missing values never match")),
    *_filters("found_on", "lt", (date(1970, 1, 1), [22], "not the value itself")),
    *_filters("opens_at", "lt", (time(9, 30), [22], "not the value itself")),
    *_filters("cleaned_at", "gt", (_EIGHT, [23, 11], "microseconds count")),
    *_filters("story", "gt", ("zinc", [24, 25, 13, 11], "texts compare by code point")),
    *_filters("story", "lt", ("a", [22, 21, 71], "the empty text is a value")),
    *_filters("photo", "ge", (1, [23, 24, 25], "hidden targets count as missing")),
    *_filters("number", "not", ((7, 0), [23, 22, 21, 13, 71], "a missing value is none of them")),
    *_filters("story", "not", (("zinc", ""), [22, 24, 25, 13, 11], "letter case counts")),
    *_filters(
        "photo",
        "not",
        ((1,), [22, 21, 24, 13, 11, 71], "hidden targets count as missing"),
        ((1, 5), [22, 21, 24, 13, 11, 71], "hidden targets count as missing"),
    ),
    *_filters("type", "not", (("museum.Loan",), [23, 22, 21, 24, 13, 11, 71], "types by label")),
    *_filters(
        "number",
        "isnull",
        (True, [21, 71], "zero is a value"),
        (False, [23, 22, 24, 25, 13, 11], "zero is a value"),
    ),
    *_filters(
        "twin",
        "isnull",
        (True, [22, 21, 25, 11, 71], "hidden targets count as missing"),
        (False, [23, 24, 13], "hidden targets count as missing"),
    ),
    *_filters(
        "story",
        "startswith",
        ("zinc", [23, 11], "the whole text is a beginning as well"),
        ("Zi", [22], "letter case counts"),
        ("z", [23, 13, 11], "by code point"),
        ("\uff5a", [25], "by code point"),
        ("😀", [24], "characters outside the basic plane"),
        ("\U0010ffff", [], "nothing is above the last character"),
        ("z%", [], "no character has a meaning of its own"),
        ("", [23, 22, 21, 24, 25, 13, 11, 71], "every text begins with the empty one"),
    ),
    *_filters(
        "tags",
        "all",
        (("quartz",), [23, 22, 25], "letter case counts"),
        (("Quartz",), [23, 24], "letter case counts"),
        (("quartz", "Quartz"), [23], "every one of them"),
        (("banded", "quartz"), [23, 25], "every one of them"),
        (("banded ",), [11], "spaces at the end count"),
        (("Bänded",), [13], "accents count"),
        (("quart",), [], "whole tags"),
    ),
    *_filters(
        "neighbours",
        "all",
        ((24,), [23, 25], "each object once"),
        ((22,), [23, 24], "at any place"),
        ((22, 24), [23], "every one of them"),
        ((26,), [], "a draft is not there"),
        ((24, 36), [], "a restricted page is not there"),
        ((404,), [], "a target that is not there"),
    ),
    *_filters(
        "tags",
        "in",
        (("Quartz", "banded"), [23, 24, 25], "at least one, each object once"),
        ((), [], "one of none is none"),
    ),
    *_filters("tags", "not", (("quartz", "tin"), [21, 24, 13, 11, 71], "none of them")),
    *_filters("neighbours", "in", ((22, 26), [23, 24], "a draft is not there")),
    *_filters(
        "neighbours",
        "not",
        ((24,), [22, 21, 24, 13, 11, 71], "none of them"),
        ((26, 36), [23, 22, 21, 24, 25, 13, 11, 71], "hidden targets are not there"),
    ),
    *_filters("views", "all", ((5,), [], "a hidden image is not there")),
    case("id eq: one page", [23], where=[("id", "eq", 23)]),
    case("id eq: not a hidden one", [], where=[("id", "eq", 26)]),
    case("id in: not the hidden ones", [23, 22], where=[("id", "in", (22, 26, 404, 23))]),
    case("slug eq: letter case counts", [20, 41], where=[("slug", "eq", "minerals")]),
    case("locale eq: the language of a page", [2, 70, 71], where=[("locale", "eq", "fr")]),
    case("show_in_menus eq: true", [20, 10, 60], where=[("show_in_menus", "eq", True)]),
    case(
        "first_published_at eq: one instant in two offsets",
        [20, 12],
        where=[("first_published_at", "eq", datetime(2025, 5, 1, 10, tzinfo=UTC))],
    ),
    case("alias_of eq: the page copied", [14], where=[("alias_of", "eq", 23)]),
    case("alias_of eq: a hidden page counts as missing", [], where=[("alias_of", "eq", 30)]),
    case(
        "photo eq: what the viewer may see is not missing",
        [22],
        where=[("photo", "eq", 5)],
        types=EXHIBITS,
        viewer=STAFF,
    ),
    case(
        "twin eq: what the viewer may see is not missing",
        [25, 37],
        where=[("twin", "eq", 36)],
        types=EXHIBITS,
        viewer=STAFF,
    ),
    case(
        "neighbours all: what the viewer may see is there",
        [23],
        where=[("neighbours", "all", (24, 36))],
        types=EXHIBITS,
        viewer=STAFF,
    ),
    *(
        case(
            f"beside {operator}: in scope {scope}",
            ids,
            where=[("beside", operator, value)],
            types=EXHIBITS,
            scope=(scope,),
        )
        for scope, operator, value, ids in [
            (1, "eq", 60, [23]),
            (20, "eq", 60, []),
            (1, "ge", 21, [23, 24]),
            (20, "ge", 21, [24]),
            (1, "in", (21, 60), [23, 24]),
            (20, "in", (21, 60), [24]),
            (20, "not", (21, 60), [23, 22, 21, 25]),
            (1, "isnull", False, [23, 24]),
            (20, "isnull", False, [24]),
        ]
    ),
    case("beside eq: without a scope", [23], where=[("beside", "eq", 60)], types=EXHIBITS),
    case("url_path eq: the whole path", [20], where=[("url_path", "eq", "/home/minerals/")]),
    case("url_path eq: letter case counts", [12], where=[("url_path", "eq", "/home/Minerals/")]),
    case("url_path eq: not a part of it", [], where=[("url_path", "eq", "/home/miner")]),
    case("url_path eq: not a hidden page", [], where=[("url_path", "eq", "/home/depot/")]),
    case(
        "url_path eq: slugs are percent-encoded",
        [17],
        where=[("url_path", "eq", "/home/gr%C3%BC%C3%9Fe%20%26%2050%25/")],
    ),
    case(
        "url_path eq: not a page out of scope",
        [],
        where=[("url_path", "eq", "/home/minerals/")],
        scope=(60,),
    ),
    case(
        "lender eq: a column of a derived type",
        [25],
        where=[("lender", "eq", "A neighbour")],
        types=frozenset({"museum.Loan"}),
    ),
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
    case("images: width eq", [1, 2], "images", where=[("width", "eq", 800)]),
    case(
        "images: tags all: letter case counts",
        [1, 3],
        "images",
        where=[("tags", "all", ("macro",))],
    ),
    case(
        "images: objects of undeclared types have the common columns",
        [2, 7, 8],
        "images",
        where=[("photographer", "eq", "")],
    ),
    case(
        "documents: title eq: letter case counts",
        [1],
        "documents",
        where=[("title", "eq", "Guide")],
    ),
    case(
        "images: type not: objects of undeclared types are of none",
        [8],
        "images",
        where=[("type", "not", ("museum.Photo", "museum.Scan"))],
    ),
    case("people: name eq: letter case counts", [2], "people", where=[("name", "eq", "ada")]),
    case("people: mentor eq: a relation to itself", [1], "people", where=[("mentor", "eq", 2)]),
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

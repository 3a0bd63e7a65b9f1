"""Tests of rows: the requested columns, and single objects by their ids."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest

from flask_contentapi.backend import Reader
from flask_contentapi.query import Query, Viewer
from flask_contentapi.testing.kit import (
    ANYBODY,
    BOARD,
    EXHIBITS,
    LOANS,
    PAGES_ALONE,
    STAFF,
    Kit,
    exact,
    named,
    query,
)
from flask_contentapi.testing.sample import LARGEST, SMALLEST

_CAPTIONS = (
    (2, "Cut and polished", 1, 20, "", (2, 5, 1)),
    (1, "From the vault", 5, 36, "hush", ()),
)
_LAST = datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)
_EMERALD = "/home/minerals/emerald/"
_NINES = "9" * 30

#: The values of pages 23, 22 and 21: the largest, the smallest, and none.
VALUES: list[tuple[str, Any, Any, Any]] = [
    ("id", 23, 22, 21),
    ("type", "museum.Exhibit", "museum.Exhibit", "museum.Exhibit"),
    ("url_path", "/home/minerals/agate/", "/home/minerals/beryl/", "/home/minerals/copper/"),
    ("parent", 20, 20, 20),
    ("title", "agate", "Agate", "agate "),
    ("slug", "agate", "beryl", "copper"),
    ("live", True, True, True),
    ("locale", "en", "en", "en"),
    ("translation_key", "agate", None, None),
    ("show_in_menus", False, False, False),
    ("seo_title", "", "", ""),
    ("first_published_at", None, None, None),
    ("alias_of", None, None, None),
    ("restriction", None, None, None),
    ("story", "zinc", "Zinc", ""),
    ("panel", "<p>Banded <b>chal</b>cedony, caf&eacute; no&shy;ir</p>", "obsidian", ""),
    ("number", 2**63 - 1, -(2**63), None),
    ("weight", 1.7976931348623157e308, -1.7976931348623157e308, None),
    ("price", Decimal(f"{_NINES}.99"), Decimal(f"-{_NINES}.99"), None),
    ("ratio", Decimal(f"{_NINES}.{_NINES}"), Decimal(f"-0.{'0' * 29}1"), None),
    ("on_loan", True, False, False),
    ("found_on", date(9999, 12, 31), date(1, 1, 1), None),
    ("opens_at", time(23, 59, 59, 999999), time(0), None),
    ("cleaned_at", _LAST, datetime(1, 1, 1, tzinfo=UTC), None),
    ("photo", 1, 5, None),
    ("leaflet", 1, 3, None),
    ("twin", 24, 26, None),
    ("keeper", 1, 404, None),
    ("beside", 60, None, None),
    ("neighbours", (24, 22, 24, 26, 36), (26, 404), ()),
    ("views", (2, 1), (5,), ()),
    ("tags", ("Quartz", "banded", "quartz"), ("quartz",), ()),
    ("captions", _CAPTIONS, ((3, "Found in 1802", 6, None, "", ()),), ()),
    ("body", LARGEST["body"], SMALLEST["body"], []),
    ("data", LARGEST["data"], {}, None),
    ("remark", "hush", "", ""),
]

#: Values in another form, or close to another value: page, column, value.
FORMS: list[tuple[str, int, str, Any]] = [
    ("a decimal has the places of its field", 25, "price", Decimal("4.50")),
    ("a decimal without places has as many as it needs", 24, "ratio", Decimal("1.5")),
    ("zero has the places of its field", 24, "price", Decimal("0.00")),
    ("a float is no integer", 11, "weight", 0.0),
    ("NaN is a missing value", 13, "weight", None),
    ("the smallest float", 24, "weight", 5e-324),
    ("an instant is in UTC", 24, "cleaned_at", datetime(2026, 1, 15, 8, tzinfo=UTC)),
    ("a time has its microseconds", 25, "opens_at", time(9, 30, 0, 1)),
    ("spaces at the end are kept", 11, "story", "zinc "),
    ("characters of four bytes are kept", 24, "story", "😀"),
    ("forms of accents are kept", 13, "panel", "c<i>a</i>fe\u0301 <br>igneous"),
    ("a slug is quoted in url_path", 17, "url_path", "/home/gr%C3%BC%C3%9Fe%20%26%2050%25/"),
    ("a slug is not quoted itself", 17, "slug", "grüße & 50%"),
    ("the label of an undeclared type is kept", 16, "type", "museum.Diorama"),
    ("an undeclared type has the common columns", 16, "title", "Diorama"),
]

_ROOM_LOAN_DIORAMA = [("id", "in", (16, 20, 25))]

#: Lists with their rows, which are the same for objects asked for by their ids.
ROWS: list[tuple[str, Query, list[tuple[Any, ...]]]] = [
    (
        "columns are in the order asked",
        query("pages", "title", "url_path", "id", "type", where=[("id", "in", (25, 1))]),
        [("Museum", "/home/", 1, "museum.Room"), ("agate", _EMERALD, 25, "museum.Loan")],
    ),
    (
        "columns are read from each type",
        query("pages", "remark", "number", types=EXHIBITS, where=[("title", "eq", "agate")]),
        [("hush", 2**63 - 1), ("", 7)],
    ),
    (
        "there is nothing of fields that a type lacks",
        query("pages", "floor", "lender", "captions", "neighbours", where=_ROOM_LOAN_DIORAMA),
        [(1, None, None, None), (None, "A neighbour", (), (24, 23)), (None, None, None, None)],
    ),
    (
        "columns of a derived type",
        query("pages", "lender", "price", types=LOANS),
        [("A neighbour", Decimal("4.50"))],
    ),
    (
        "images",
        query("images", "title", "width", "tags", where=[("id", "eq", 3)]),
        [("Agate", 2**31, ("macro",))],
    ),
    (
        "images of a derived type",
        query("images", "type", "photographer", where=[("id", "eq", 3)]),
        [("museum.Scan", "Åsa")],
    ),
    (
        "other endpoints",
        query("people", "name", "born", "mentor", where=[("id", "eq", 3)]),
        [("Åsa", date(1815, 12, 10), None)],
    ),
]

_FETCHED = [
    ("hidden and missing ones are left out", "pages", [22, 26, 404, 34, 36, 37, 23], {}, [22, 23]),
    ("what the viewer may see", "pages", [36, 37, 38], {"viewer": STAFF}, [36, 37]),
    ("restrictions below each other", "pages", [37, 38, 39], {"viewer": BOARD}, [37, 38, 39]),
    ("pages out of scope are left out", "pages", [1, 20, 60, 61], {"scope": (60,)}, [60, 61]),
    ("a hidden home page opens its scope", "pages", [50, 51], {"scope": (50,)}, [51]),
    ("an empty scope has nothing", "pages", [1, 20], {"scope": ()}, []),
    ("no ids, no rows", "pages", [], {}, []),
    ("closed collections", "images", [1, 2, 3, 4, 5, 6, 7, 8], {}, [1, 2, 3, 7, 8]),
    ("open collections", "images", [4, 5, 6], {"viewer": STAFF}, [4, 5]),
    ("open pages open no collection", "images", [4, 6], {"viewer": PAGES_ALONE}, []),
    ("documents", "documents", [1, 3], {}, [1]),
    ("other endpoints", "people", [3, 4, 1], {}, [1, 3]),
    ("redirects to hidden pages", "redirects", [1, 2, 3, 4, 5, 6], {}, [1, 4, 6]),
    ("ids at the end of what is possible", "people", [2**63 - 1, -(2**63), 0, 2], {}, [2]),
]


#: Lists of which all ids are asked for.
_LISTS = {
    "all": query(),
    "of people": query("people"),
    "in some order": query(order="-title,id"),
    "at random": query(random=True),
    "what is behind an offset": query(offset=3),
    "with types": query(types=EXHIBITS, order="number"),
    "of a branch": query(descendant_of=20),
    "of a search": query(any_word="agate"),
    "with a scope and another viewer": query(scope=(20, 36), viewer=STAFF),
    "of nothing": query(where=[("id", "eq", 404)]),
}


class RowTests(Kit):
    """The rows of lists, :meth:`Reader.fetch` and :meth:`Reader.get`."""

    @pytest.mark.parametrize(("column", "wanted"), named((n, n, own) for n, *own in VALUES))
    def test_column_has_exact_values(self, reader: Reader, column: str, wanted: list[Any]) -> None:
        asked = query("pages", column, types=EXHIBITS, child_of=20, limit=3)
        values = [row[0] for row in reader.select(asked).rows]
        assert [*map(exact, values)] == [*map(exact, wanted)]

    @pytest.mark.parametrize(("page", "column", "value"), named(FORMS))
    def test_value(self, reader: Reader, page: int, column: str, value: Any) -> None:
        _, row = reader.get("pages", page, lambda label: [column], ANYBODY) or ("", ())
        assert [*map(exact, row)] == [exact(value)]

    @pytest.mark.parametrize(("asked", "rows"), named(ROWS))
    def test_rows_of_lists(self, reader: Reader, asked: Query, rows: list[Any]) -> None:
        assert [tuple(row) for row in reader.select(asked).rows] == rows

    @pytest.mark.parametrize(("asked", "rows"), named(ROWS))
    def test_rows_by_id(self, reader: Reader, asked: Query, rows: list[Any]) -> None:
        ids = reader.ids(asked)
        found = reader.fetch(asked.endpoint, reversed(ids), asked.columns, ANYBODY)
        assert [tuple(found[id]) for id in ids] == rows

    def test_rows_without_columns_are_empty(self, reader: Reader) -> None:
        selected = reader.select(query(child_of=20)._replace(columns=()))
        assert ([*map(len, selected.rows)], selected.total) == ([0] * 5, 5)

    @pytest.mark.parametrize(("endpoint", "ids", "parts", "wanted"), named(_FETCHED))
    def test_fetch(
        self,
        reader: Reader,
        endpoint: str,
        ids: list[int],
        parts: dict[str, Any],
        wanted: list[int],
    ) -> None:
        found = reader.fetch(endpoint, ids, ["id"], **{"viewer": ANYBODY, **parts})
        assert {i: tuple(row) for i, row in found.items()} == {i: (i,) for i in wanted}

    @pytest.mark.parametrize("asked", _LISTS.values(), ids=_LISTS)
    def test_ids(self, reader: Reader, asked: Query) -> None:
        wanted = [row[0] for row in reader.select(asked).rows]
        ids = [*reader.ids(asked._replace(columns=()))]
        assert sorted(ids) == sorted(wanted) if asked.random else ids == wanted

    def test_fetch_takes_more_ids_than_a_statement_has_parameters(self, reader: Reader) -> None:
        found = reader.fetch("people", range(100_000), ["id"], ANYBODY)
        assert sorted(found) == [1, 2, 3]

    def test_get_has_columns_of_the_type_it_finds(self, reader: Reader) -> None:
        columns = {"museum.Loan": ["lender", "id"]}
        label, row = reader.get("pages", 25, columns.__getitem__, ANYBODY) or ("", ())
        assert (label, tuple(row)) == ("museum.Loan", ("A neighbour", 25))

    @pytest.mark.parametrize(
        ("endpoint", "id", "viewer", "scope"),
        [
            pytest.param("pages", 404, BOARD, None, id="one that is not there"),
            pytest.param("pages", 26, BOARD, None, id="a draft"),
            pytest.param("pages", 38, STAFF, None, id="a restricted page"),
            pytest.param("pages", 20, BOARD, (60,), id="a page out of scope"),
            pytest.param("images", 5, ANYBODY, None, id="an image below a closed collection"),
            pytest.param("people", 2**63 - 1, ANYBODY, None, id="the largest id"),
        ],
    )
    def test_get_has_nothing_of(
        self, reader: Reader, endpoint: str, id: int, viewer: Viewer, scope: tuple[int] | None
    ) -> None:
        assert reader.get(endpoint, id, lambda label: ["id"], viewer, scope) is None

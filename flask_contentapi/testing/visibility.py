"""Tests of visibility: viewers, scopes and types."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from flask_contentapi.backend import Reader
from flask_contentapi.query import Viewer
from flask_contentapi.testing.kit import (
    ANYBODY,
    BOARD,
    EXHIBITS,
    LOANS,
    PAGES_ALONE,
    STAFF,
    Kit,
    case,
    finds,
    query,
)
from flask_contentapi.testing.sample import NOW

_MICROSECOND = timedelta(microseconds=1)

#: The visible pages of the default site.
_HOME = [1, 20, 23, 22, 21, 24, 25, 12, 13, 10, 11, 31, 32, 35, 60, 61, 14, 15, 16, 17]


def _windows(rule: str, ids: list[int], viewer: Viewer = ANYBODY) -> Any:
    """A line about the pages that open or close about :data:`NOW`."""
    return case(rule, ids, viewer=viewer, where=[("id", "in", (32, 33, 34, 35))])


def _staff(rule: str, ids: list[int], viewer: Viewer) -> Any:
    """A line about the restricted page for staff and those below it."""
    return case(rule, ids, viewer=viewer, where=[("id", "in", (36, 37, 38, 39))])


_COLLECTIONS_ALONE = Viewer(NOW, collections=frozenset({36, 38}))
_EARLIER, _LATER = (Viewer(NOW + step * _MICROSECOND) for step in (-1, 1))

VISIBLE = [
    case(
        "pages: drafts and what is closed or restricted are left out; tree order",
        [*_HOME, 2, 70, 71, 80, 40, 41, 51, 90],
    ),
    case("pages: below a draft they are shown", [31], where=[("id", "in", (30, 31))]),
    _windows("pages: go_live_at is the first moment", [32, 35]),
    _windows("pages: expires_at is the first moment after", [32, 33], _LATER),
    _windows("pages: windows are held against the moment of the viewer", [34, 35], _EARLIER),
    _staff("pages: a restriction that is open opens what is below", [36, 37], STAFF),
    _staff("pages: a restriction below another one counts as well", [36, 37, 38, 39], BOARD),
    _staff("pages: open collections open no pages", [], _COLLECTIONS_ALONE),
    case("images: in collections below a restricted one are closed", [1, 2, 3, 7, 8], "images"),
    case(
        "images: a restriction that is open opens the collections below",
        [1, 2, 3, 4, 5, 7, 8],
        "images",
        viewer=STAFF,
    ),
    case(
        "images: a restriction below another one counts as well",
        [1, 2, 3, 4, 5, 6, 7, 8],
        "images",
        viewer=BOARD,
    ),
    case("images: open pages open no collections", [1, 2, 3, 7, 8], "images", viewer=PAGES_ALONE),
    case("documents: restricted collections are closed", [1, 2], "documents"),
    case("documents: open collections are shown", [1, 2, 3], "documents", viewer=STAFF),
    case("other endpoints are in no collection", [1, 2, 3], "people"),
    case("redirects: those to pages that may not be seen are left out", [1, 4, 6], "redirects"),
    case("redirects: open pages open them", [1, 3, 4, 6], "redirects", viewer=STAFF),
    case("redirects: pages that have expired close them", [1, 4], "redirects", viewer=_LATER),
]


def _previews(endpoint: str, identity: int, **more: Any) -> Viewer:
    return Viewer(NOW, previewed=(endpoint, identity), **more)


#: A viewer to whom a restricted page is previewed.
_STAFF_PAGE = _previews("pages", 36)
_STAFF_AND_MINUTES = _previews("pages", 39, pages=frozenset({36}))

PREVIEWS = [
    case(
        "a draft that is previewed is shown, and nothing else, in tree order",
        [1, 20, 23, 22, 21, 24, 25, 26, *_HOME[7:], 2, 70, 71, 80, 40, 41, 51, 90],
        viewer=_previews("pages", 26),
    ),
    _windows("a page that opens later", [32, 33, 35], _previews("pages", 33)),
    _windows("a page that has expired", [32, 34, 35], _previews("pages", 34)),
    _staff("a restricted page without what is below", [36], _STAFF_PAGE),
    _staff("a page below a restricted one without that one", [39], _previews("pages", 39)),
    _staff("restrictions that are open stay so", [36, 37, 39], _STAFF_AND_MINUTES),
    case("a page is previewed in its site alone", [60, 61], scope=(60,), viewer=_STAFF_PAGE),
    case(
        "a page of one endpoint is no image of another",
        [1, 2, 3, 7, 8],
        "images",
        viewer=_previews("pages", 6),
    ),
    case(
        "an image of a restricted collection",
        [1, 2, 3, 6, 7, 8],
        "images",
        viewer=_previews("images", 6),
    ),
    case("nothing that does not exist", [1, 2], "documents", viewer=_previews("documents", 404)),
    case(
        "a relation to what is previewed is there",
        [25],
        viewer=_STAFF_PAGE,
        types=EXHIBITS,
        where=[("twin", "eq", 36)],
    ),
    case("redirects to what is previewed are there", [1, 3, 4, 6], "redirects", viewer=_STAFF_PAGE),
]

#: A viewer from whom nothing is hidden.
_EDITOR = Viewer(NOW, everything=True)

EVERYTHING = [
    case(
        "drafts, what is closed and what is restricted are there, in tree order",
        [30, 31, 32, 33, 34, 35, 36, 37, 38, 39],
        viewer=_EDITOR,
        where=[("id", "in", tuple(range(30, 40)))],
    ),
    case("images of all collections are there", [*range(1, 9)], "images", viewer=_EDITOR),
    case("redirects to hidden pages and to nothing", [*range(1, 7)], "redirects", viewer=_EDITOR),
    case("what is below a draft", [31], viewer=_EDITOR, child_of=30),
    case("a scope still narrows", [50, 51], viewer=_EDITOR, scope=(50,)),
    case(
        "relations to what is hidden are there",
        [22],
        viewer=_EDITOR,
        types=EXHIBITS,
        where=[("twin", "eq", 26)],
    ),
]

SCOPES = [
    case("a site is its home page and all below", _HOME, scope=(1,)),
    case("a site inside another one is its part alone", [60, 61], scope=(60,)),
    case("several home pages add up", [40, 41, 51], scope=(40, 50)),
    case("home pages below each other bring each page once", [60, 61], scope=(60, 61)),
    case("slugs that start alike are apart", [20, 23, 22, 21, 24, 25], scope=(20,)),
    case("a hidden home page hides itself alone", [51], scope=(50,)),
    case("a restricted home page hides all", [], scope=(36,)),
    case("no home page, no pages", [], scope=()),
]

TYPES = [
    case("derived types are named by the query", [23, 22, 21, 24, 25, 13, 11, 71], types=EXHIBITS),
    case(
        "a derived type is not meant unless it is named",
        [23, 22, 21, 24, 13, 11, 71],
        types=frozenset({"museum.Exhibit"}),
    ),
    case("a derived type alone", [25], types=LOANS),
    case("images have types as well", [3], "images", types=frozenset({"museum.Scan"})),
    case(
        "undeclared types are none of the declared ones",
        [1, 2, 3, 7],
        "images",
        types=frozenset({"museum.Photo", "museum.Scan"}),
    ),
]


class VisibilityTests(Kit):
    """The contents of lists without filters."""

    test_viewer = finds(VISIBLE)
    test_preview = finds(PREVIEWS)

    def test_previewed_objects_are_fetched(self, reader: Reader) -> None:
        assert [*reader.fetch("pages", [26, 30], ["id"], _previews("pages", 26))] == [26]

    @pytest.mark.parametrize(("identity", "row"), [(26, (26,)), (30, None)])
    def test_one_previewed_object(
        self, reader: Reader, identity: int, row: tuple[int] | None
    ) -> None:
        got = reader.get("pages", identity, lambda label: ["id"], _previews("pages", 26))
        assert got == (row and ("museum.Exhibit", row))

    def test_a_query_may_name_what_is_previewed(self, reader: Reader) -> None:
        below = query(child_of=36, viewer=_STAFF_PAGE)
        assert reader.select(below).unseen == ()

    test_everything = finds(EVERYTHING)

    def test_hidden_objects_are_fetched(self, reader: Reader) -> None:
        assert [*reader.fetch("images", [6], ["id"], _EDITOR)] == [6]

    def test_one_hidden_object(self, reader: Reader) -> None:
        got = reader.get("pages", 30, lambda label: ["id"], _EDITOR)
        assert got == ("museum.Room", (30,))

    test_scope = finds(SCOPES)
    test_types = finds(TYPES)

"""Tests of what a reader returns about the content as a whole."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from flask_contentapi.backend import Backend, Reader
from flask_contentapi.content import Restriction
from flask_contentapi.query import Viewer
from flask_contentapi.sites import Home, Site
from flask_contentapi.testing.kit import Kit, named, query
from flask_contentapi.testing.sample import NOW

_LOGIN = {"type": "login"}
_BOARD = {"type": "groups", "groups": ["board", "audit"]}
_MICROSECOND = timedelta(microseconds=1)


def _at(hour: int) -> datetime:
    return NOW + timedelta(hours=hour)


#: Pages with their parents and what they have. Times are hours from now; a page of the same number
#: as its time is seen to change by somebody.
_SCHEDULE: list[tuple[int, int | None, dict[str, Any]]] = [
    (1, None, {}),
    (2, 1, {"expires_at": 2, "live": False}),
    (3, 1, {"restriction": _LOGIN}),
    (4, 3, {"expires_at": 4}),
    (40, 3, {}),
    (5, 40, {"go_live_at": 5}),
    (50, None, {}),
    (6, 50, {"expires_at": 6, "go_live_at": -1}),
    (7, 1, {"go_live_at": 7}),
    (8, 7, {"expires_at": 8}),
    (9, 1, {"go_live_at": 3, "expires_at": 2}),
    (10, 1, {"go_live_at": 1, "expires_at": 1}),
    (11, 1, {"go_live_at": -2, "expires_at": -1}),
]


def _scheduled(given: tuple[int, int | None, dict[str, Any]]) -> dict[str, Any]:
    """The record of one of them."""
    id, parent, values = given
    times = {name: _at(hour) for name, hour in values.items() if name.endswith("_at")}
    room = {"type": "museum.Room", "title": "Room", "slug": f"room-{id}"}
    return {"id": id, "parent": parent, **room, **values, **times}


class FactTests(Kit):
    """Sites, languages, restrictions, the version, the next change, and problems."""

    def test_sites_have_their_home_pages_and_translations(self, reader: Reader) -> None:
        assert list(reader.sites) == [
            Site("shop.example", 443, "Shop", False, (Home(60, "en", "/home/shop/"),)),
            Site(
                "museum.example",
                80,
                "Museum",
                True,
                (Home(1, "en", "/home/"), Home(2, "fr", "/accueil/"), Home(3, "de", "/start/")),
            ),
            Site("museum.example", 8080, "", False, (Home(40, "en", "/annex/"),)),
            Site("old.example", 80, "", False, (Home(50, "en", "/old/"),)),
        ]

    def test_content_without_sites_has_an_unnamed_one(self, backend: Backend) -> None:
        backend.load({"pages": [{"id": 7, "type": "museum.Room", "slug": "a", "title": "A"}]})
        with backend.reader() as reader:
            assert list(reader.sites) == [Site("", homes=(Home(7, None, "/a/"),), is_default=True)]

    def test_locales_are_in_the_order_of_the_records(self, reader: Reader) -> None:
        assert list(reader.locales) == ["en", "fr", "de"]

    def test_locales_that_only_pages_name_are_not_declared(self, backend: Backend) -> None:
        room = {"type": "museum.Room", "slug": "a", "title": "A"}
        backend.load({"pages": [{"id": 7, **room}, {"id": 8, "parent": 7, "locale": "fr", **room}]})
        with backend.reader() as reader:
            assert list(reader.locales) == []
            assert reader.select(query("pages", "locale")).rows == [(None,), ("fr",)]

    def test_restrictions_of_pages_say_which_they_are_within(self, reader: Reader) -> None:
        pages = reader.restrictions.pages
        assert dict(pages) == {36: Restriction(None, _LOGIN), 38: Restriction(36, _BOARD)}

    def test_restrictions_of_collections_say_which_they_are_within(self, reader: Reader) -> None:
        collections = reader.restrictions.collections
        assert dict(collections) == {3: Restriction(None, _LOGIN), 6: Restriction(3, _BOARD)}

    def test_version_is_a_text(self, reader: Reader) -> None:
        assert isinstance(reader.version, str)
        assert reader.version

    def test_version_is_the_same_while_the_content_is(self, sample: Backend) -> None:
        with sample.reader() as first, sample.reader() as second:
            assert first.version == second.version

    def test_next_change_is_not_missed(self, reader: Reader) -> None:
        first = datetime.min.replace(tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
        moments = (*first, NOW, NOW + _MICROSECOND)
        found = [reader.next_change(Viewer(moment)) for moment in moments]
        assert found == [*moments[1:], None]

    @pytest.mark.parametrize(
        ("hour", "page", "scope", "pages"),
        named(
            [
                ("in the scope", 0, 7, [1], ()),
                ("one after the other", 7, 8, [1], ()),
                ("not the moment itself", 8, None, [1], ()),
                ("without a scope", 0, 6, None, ()),
                ("in several home pages", 0, 6, [1, 50], ()),
                ("in another site", 0, 6, [50], ()),
                ("in no site", 0, None, [], ()),
                ("of a restricted page", 0, 4, [1], (3,)),
                ("below a restricted page", 4, 5, [1], (3,)),
                ("of a page below", 0, 5, [40], (3,)),
            ]
        ),
    )
    def test_next_change_is_one_that_the_viewer_sees(
        self,
        backend: Backend,
        hour: int,
        page: int | None,
        scope: list[int] | None,
        pages: tuple[int, ...],
    ) -> None:
        backend.load({"pages": [*map(_scheduled, _SCHEDULE)]})
        with backend.reader() as reader:
            viewer = Viewer(_at(hour), frozenset(pages))
            found = reader.next_change(viewer, scope)
        assert found == (None if page is None else _at(page))

    @pytest.mark.parametrize("values", [True, False])
    def test_check_names_second_translations_in_a_language(
        self, backend: Backend, values: bool
    ) -> None:
        named = [("minerals", "en"), ("minerals", "fr"), (None, "fr"), (None, "fr")]
        pages = [
            {**_scheduled((id, None, {})), "translation_key": key, "locale": language}
            for id, (key, language) in enumerate([*named, ("minerals", "fr")], 1)
        ]
        backend.load({"locales": ["en", "fr"], "pages": pages})
        assert [(problem.where, problem.field) for problem in backend.check(values=values)] == [
            ("pages 5", "translation_key")
        ]

    @pytest.mark.parametrize("values", [True, False])
    def test_check_names_undeclared_types_and_relations_to_nothing(
        self, sample: Backend, values: bool
    ) -> None:
        assert {(problem.where, problem.field) for problem in sample.check(values=values)} == {
            ("pages 16", "type"),
            ("images 8", "type"),
            ("pages 22", "keeper"),
            ("pages 22", "neighbours"),
            ("pages 13", "photo"),
            ("people 2", "mentor"),
            ("redirects 5", "redirect_page"),
        }

    def test_ranks_is_as_declared(self, sample: Backend) -> None:
        assert sample.ranks is self.ranks

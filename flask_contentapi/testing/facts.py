"""Tests of what a reader returns about the content as a whole."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from flask_contentapi.backend import Backend, Reader
from flask_contentapi.sites import Home, Site
from flask_contentapi.tables import Restriction
from flask_contentapi.testing.kit import Kit, query
from flask_contentapi.testing.sample import NOW

__all__ = ["FactTests"]

_LOGIN = {"type": "login"}
_BOARD = {"type": "groups", "groups": ["board", "audit"]}
_MICROSECOND = timedelta(microseconds=1)


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

    @pytest.mark.parametrize(
        ("moment", "change"),
        [
            pytest.param(datetime.min, datetime(2026, 2, 1), id="a page goes live"),
            pytest.param(datetime(2026, 2, 1), NOW, id="not the moment itself"),
            pytest.param(NOW, NOW + _MICROSECOND, id="to the microsecond"),
        ],
    )
    def test_next_change_is_not_missed(
        self, reader: Reader, moment: datetime, change: datetime
    ) -> None:
        found = reader.next_change(moment.replace(tzinfo=UTC))
        assert found is not None
        assert moment.replace(tzinfo=UTC) < found <= change.replace(tzinfo=UTC)

    def test_next_change_is_none_where_nothing_changes_any_more(self, reader: Reader) -> None:
        assert reader.next_change(NOW + _MICROSECOND) is None

    def test_check_names_undeclared_types_and_relations_to_nothing(self, sample: Backend) -> None:
        assert {(problem.where, problem.field) for problem in sample.check()} == {
            ("pages 16", "type"),
            ("images 8", "type"),
            ("pages 22", "keeper"),
            ("pages 22", "neighbours"),
            ("pages 13", "photo"),
            ("people 2", "mentor"),
        }

    def test_ranks_is_as_declared(self, sample: Backend) -> None:
        assert sample.ranks is self.ranks

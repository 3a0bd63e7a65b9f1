"""Tests of changing content object by object, for backends that support ``write()``."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from operator import methodcaller

import pytest

from flask_contentapi.backend import Backend
from flask_contentapi.content import DEEPEST
from flask_contentapi.errors import ContentError
from flask_contentapi.signals import content_changed
from flask_contentapi.testing.kit import Kit, found, named, query
from flask_contentapi.testing.loads import Change as Loaded
from flask_contentapi.testing.loads import add, changed, drop, put

_SHELF = {"id": 9, "type": "museum.Room", "parent": 1, "title": "Shelf", "slug": "shelf"}
_SITE = {"hostname": "x.example", "root_page": 3, "is_default": True}
_TWIN = {"type": "museum.Exhibit", "parent": 1, "title": "Twin", "captions": [{"id": 1}]}
_SAME = {"old_path": "old/", "site": "museum.example:80", "redirect_link": "/"}
_INNER = {"name": "Inner", "parent": 1}

#: What is called on a writer, each with what makes the same of the content before it is loaded.
CHANGES: list[tuple[str, methodcaller, Loaded]] = [
    (
        "a page in front of another",
        methodcaller("add", "pages", _SHELF, before=2),
        lambda content: content["pages"].insert(2, _SHELF),
    ),
    ("a title", methodcaller("update", "people", 1, name="Eve"), put("people", 0, name="Eve")),
    ("a page at another place", methodcaller("move", 2, 3), put("pages", 2, parent=3)),
    ("a slug", methodcaller("update", "pages", 1, slug="start"), put("pages", 0, slug="start")),
    ("a page less", methodcaller("delete", "pages", 2), drop("pages", 2)),
    (
        "what an undeclared type has besides",
        methodcaller("update", "pages", 4, scale=43),
        put("pages", 3, scale=43),
    ),
    (
        "a child object",
        methodcaller("update", "pages", 3, captions=[{"text": "New"}]),
        put("pages", 1, captions=[{"id": 2, "text": "New"}]),
    ),
    ("a language", methodcaller("put_locale", "fr"), add("locales", "fr")),
    ("a site", methodcaller("put_site", **_SITE), add("sites", _SITE)),
    ("a site less", methodcaller("delete_site", "museum.example"), drop("sites", 0)),
    (
        "a collection",
        methodcaller("put_collection", **_INNER),
        add("collections", {"id": 2, **_INNER}),
    ),
]

#: Changes that are refused, each with a part of the message.
REFUSED: list[tuple[str, methodcaller]] = [
    ("there is no page 404", methodcaller("add", "pages", {**_SHELF, "parent": 404})),
    ("a sibling has the slug", methodcaller("update", "pages", 2, slug="agate")),
    ("there is no sibling 1", methodcaller("move", 2, 1, before=1)),
    ("a page cannot go below itself", methodcaller("move", 1, 3)),
    ("there are pages below it", methodcaller("delete", "pages", 1)),
    ("is the home of museum.example", methodcaller("delete", "pages", 1, descendants=True)),
    ("is the id of another", methodcaller("update", "pages", 3, captions=[{"id": 7}, {"id": 7}])),
    ("stands in another object", methodcaller("add", "pages", _TWIN)),
    ("has this path already", methodcaller("add", "redirects", _SAME)),
    ("objects lie in it", methodcaller("delete_collection", 1)),
    ("form a circle", methodcaller("put_collection", id=1, parent=1)),
]


@contextmanager
def _heard(backend: Backend) -> Iterator[list[frozenset[str]]]:
    """The tags that a backend sends meanwhile."""
    sent = []

    def hear(sender: object, tags: frozenset[str]) -> None:
        sent.append(tags)

    with content_changed.connected_to(hear, backend):
        yield sent


class WriteTests(Kit):
    """Content is changed object by object, all or nothing."""

    @pytest.mark.parametrize(("change", "same"), named(CHANGES))
    def test_change_makes_what_loading_makes(
        self, small: Backend, change: methodcaller, same: Loaded
    ) -> None:
        before = _version(small)
        with small.write() as writer:
            change(writer)
        assert _version(small) not in (None, before)
        with self.opened(changed(same)) as loaded:
            assert [*small.dump()] == [*loaded.dump()]
            with small.reader() as one, loaded.reader() as other:
                assert [*one.sites] == [*other.sites]
                for asked in _QUERIES:
                    assert one.select(asked) == other.select(asked)

    @pytest.mark.parametrize(("message", "change"), REFUSED)
    def test_refused_change_leaves_everything(
        self, small: Backend, message: str, change: methodcaller
    ) -> None:
        before = [*small.dump()]
        with small.write() as writer, pytest.raises(ContentError, match=message):
            change(writer)
        assert [*small.dump()] == before

    def test_error_takes_back_the_block(self, small: Backend) -> None:
        before = _version(small), [*small.dump()]
        with suppress(KeyError), small.write() as writer:
            for _, change, _ in CHANGES:
                change(writer)
            raise KeyError
        assert (_version(small), [*small.dump()]) == before
        with small.write() as writer:
            writer.update("people", 1, name="Ada")
        assert [*small.dump()] == before[1]

    def test_others_see_changes_at_the_end(self, small: Backend) -> None:
        def look() -> list[int]:
            with small.reader() as reader:
                return found(reader, query("people"))[0]

        with ThreadPoolExecutor() as others, small.write() as writer:
            writer.add("people", {"name": "Eve"})
            assert (_version(small), look()) == (None, [1, 2])
            assert others.submit(look).result() == [1]
        assert look() == [1, 2]

    def test_ids_are_not_given_again(self, small: Backend) -> None:
        for wanted in (2, 3):
            with small.write() as writer:
                assert writer.add("people", {"name": "Eve"}) == wanted
                writer.delete("people", wanted)

    def test_slugs_of_one_title_differ(self, small: Backend) -> None:
        room = {"type": "museum.Room", "parent": 1, "title": "Agate"}
        with small.write() as writer:
            added = [writer.add("pages", room) for _ in range(2)]
            slugs = [writer.record("pages", page)["slug"] for page in added]
        assert slugs == ["agate-2", "agate-3"]

    def test_translation_goes_below_that_of_the_parent(self, small: Backend) -> None:
        with small.write() as writer:
            writer.put_locale("fr")
            above = writer.translate(1, "fr", parent=None)
            below = writer.translate(2, "fr")
            assert writer.record("pages", below)["parent"] == above

    def test_trees_get_no_deeper_than_loaded_ones(self, small: Backend) -> None:
        room = {"type": "museum.Room", "title": "Deep"}
        with small.write() as writer:
            parent, last = 1, writer.add("pages", {**room, "parent": 1})
            for _ in range(DEEPEST - 1):
                parent = writer.add("pages", {**room, "parent": parent})
            below = methodcaller("add", "pages", {**room, "parent": parent})
            for change in (below, methodcaller("move", last, parent)):
                with pytest.raises(ContentError, match=f"is on level {DEEPEST + 1}"):
                    change(writer)

    def test_changed_tags_are_sent_once(self, small: Backend) -> None:
        with _heard(small) as sent, small.write() as writer:
            writer.update("people", 1, name="Eve")
            assert sent == []
        assert sent == [frozenset(["people", "people-1"])]

    def test_links_in_rich_text_are_relations(self, small: Backend) -> None:
        with small.write() as writer:
            writer.update("pages", 3, panel='See <a linktype="page" id="2">the shop</a>.')
        with _heard(small) as sent, small.write() as writer:
            writer.unpublish(2)
        assert sent == [frozenset(["pages", "pages-2", "pages-3"])]

    def test_nothing_is_dumped_or_loaded_within_a_block(self, small: Backend) -> None:
        with small.write():
            with pytest.raises(RuntimeError, match="while it is changed"):
                [*small.dump()]
            with pytest.raises(RuntimeError, match="while it is changed"):
                small.load({})

    def test_nothing_changes_after_the_block(self, small: Backend) -> None:
        with small.write() as writer:
            pass
        with pytest.raises(RuntimeError, match="The block is over"):
            writer.delete("people", 1)


_QUERIES = [
    query("pages", "id", "url_path", "title"),
    query("pages", "id", "url_path", order="-title"),
    query(where=[("url_path", "eq", "/start/shop/")]),
    query(where=[("url_path", "eq", "/home/agate/shop/")]),
    query(descendant_of=1),
    query(child_of=3),
    query(ancestor_of=3),
    query(any_word="shelf shop agate"),
    query("people", "id", "name", any_word="eve"),
    query("images"),
    query("documents", where=[("tags", "all", ("visit",))]),
]


def _version(backend: Backend) -> str | None:
    with backend.reader() as reader:
        return reader.version

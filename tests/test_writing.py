"""Changes that a site's own code makes."""

from __future__ import annotations

from contextlib import suppress
from copy import deepcopy
from datetime import UTC, datetime
from threading import Thread
from typing import Any

import pytest
from hypothesis import event, given, note
from hypothesis import strategies as st
from marshmallow import fields

from flask_contentapi import Backend, ChildObject, Children, Image, Page, content_changed
from flask_contentapi.errors import ContentError
from flask_contentapi.writer import Writer
from tests.api import API
from tests.conftest import Fill, MakeAPI
from tests.databases import on_writable, writing
from tests.generated import contents, requests
from tests.rewriting import Change, Content, Refused, changes
from tests.samples import Record, blog, image, page, private, site
from tests.test_model import Pair, ask, everything, make_pair

pytestmark = on_writable


# Random changes.


class Wanted:
    """The expected content after changes, from a backend that only loads.

    :param api: the API of that backend.
    :param content: the initial content.
    """

    def __init__(self, api: API, content: Content) -> None:
        self.api = api
        api.load(content)
        self.content = api.dump()

    def allows(self, change: Change) -> bool:
        """Whether a change is possible."""
        try:
            self.api.load(self._after(change, 10**6, lambda endpoint, id: {**_NEW}))
        except (Refused, ContentError) as error:
            event(f"{type(change).__name__}: {type(error).__name__}")
            return False
        event(f"{type(change).__name__}: made")
        return True

    def follow(self, change: Change, made: Any, writer: Writer) -> None:
        """Makes a change that the database has made."""
        self.api.load(self._after(change, made, writer.record))
        self.content = self.api.dump()

    def _after(self, change: Change, made: Any, known: Any) -> Content:
        after = deepcopy(self.content)
        change.on(after, getattr(change, "record", {}).get("id", made), known)
        return after


#: Stands for the values that a database would generate for a new page.
_NEW: dict[str, Any] = {
    "slug": "one-of-its-own",
    "translation_key": "new",
    "first_published_at": "2026-01-01",
}


class Undo(Exception):
    """Rolls the changes back."""


@pytest.fixture(scope="module")
def sites(backend: str) -> tuple[Pair, Pair]:
    """The same sites in memory and in a database."""
    return make_pair("memory"), make_pair(backend)


@pytest.mark.slow
@given(data=st.data(), content=contents(), i18n=st.booleans())
def test_changes_lead_to_what_the_records_say(
    sites: tuple[Pair, Pair], data: st.DataObject, content: Content, i18n: bool
) -> None:
    memory, database = (pair[i18n] for pair in sites)
    wanted = Wanted(memory, content)
    database.load(content)
    for _ in range(data.draw(st.integers(1, 4))):
        before = deepcopy(wanted.content)
        try:
            with writing(database) as writer:
                change_some(data, wanted, writer)
                if data.draw(st.integers(0, 5)) == 5:
                    raise Undo
        except Undo:
            wanted.content = before
        assert database.dump() == wanted.content
    memory.load(wanted.content)
    assert everything(database) == everything(memory)
    for _ in range(5):
        request = data.draw(requests(complete(wanted.content), i18n))
        first, second = ask(memory, request), ask(database, request)
        if request.shuffled:
            assert first.get_json().get("meta") == second.get_json().get("meta")
        else:
            assert first.data == second.data


def complete(content: Content) -> Content:
    """Content with all sections, and with the parent of every page."""
    sections = ("locales", "sites", "pages", "images", "documents", "people")
    pages = [{"parent": None, **page} for page in content.get("pages", ())]
    return {**{section: [] for section in sections}, **content, "pages": pages}


def change_some(data: st.DataObject, wanted: Wanted, writer: Writer) -> None:
    for _ in range(data.draw(st.integers(1, 4))):
        change = data.draw(changes(wanted.content))
        note(repr(change))
        if wanted.allows(change):
            wanted.follow(change, change.make(writer), writer)
        else:
            with pytest.raises(ContentError):
                change.make(writer)


# Single changes.


@pytest.fixture
def api(fill: Fill) -> API:
    """A site with a home page and three pages below it, of which the second has a child."""
    pages = [page(1, slug="home"), page(2, 1), page(3, 1), page(4, 1), page(5, 3)]
    return fill({"locales": ["en", "fr"], "sites": [site(1)], "pages": pages})


def test_what_is_changed_shows_in_the_next_request(api: API) -> None:
    assert api.json("pages/2/")["title"] == "Page 2"
    with writing(api) as writer:
        writer.update("pages", 2, title="Another")
    assert api.json("pages/2/")["title"] == "Another"


def test_a_change_gives_the_content_another_version(api: API) -> None:
    before = api.get("pages/").headers["ETag"]
    with writing(api) as writer:
        writer.update("images", writer.add("images", {"title": "Lamp"}), title="Light")
    assert api.get("pages/").headers["ETag"] != before


def unnamed(**values: Any) -> Record:
    """A page without an id, below the home page."""
    return {**page(9, 1, **values), "id": None}


def test_objects_without_an_id_get_one(api: API) -> None:
    with writing(api) as writer:
        ids = [writer.add("pages", unnamed(slug=None)) for _ in range(2)]
        link = {"title": "Home", "link_page": 1}
        ids.append(writer.add("pages", unnamed(type="blog.BlogPage", related_links=[link, link])))
        links = writer.record("pages", ids[-1])["related_links"]
    assert ids == [6, 7, 8]
    assert [link["id"] for link in links] == [1, 2]


def test_an_id_is_never_given_twice(api: API) -> None:
    with writing(api) as writer:
        first = writer.add("pages", unnamed())
        writer.delete("pages", first)
    with writing(api) as writer:
        assert writer.add("pages", unnamed()) > first


def test_no_id_of_pages_that_go_along_is_given_again(api: API) -> None:
    with writing(api) as writer:
        writer.delete("pages", 3, descendants=True)
        assert writer.add("pages", unnamed()) == 6


def test_a_whole_record_can_be_given_to_an_update(api: API) -> None:
    with writing(api) as writer:
        writer.update("pages", 5, **{**writer.record("pages", 5), "title": "Five"})
    assert api.json("pages/5/")["title"] == "Five"


def test_loading_begins_with_new_ids(api: API) -> None:
    with writing(api) as writer:
        writer.delete("pages", 5)
    api.load({"pages": [page(1)]})
    with writing(api) as writer:
        assert writer.add("pages", unnamed()) == 2


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ("Storm at sea", "storm-at-sea"),
        ("  Éclairs & more!", "eclairs-more"),
        ("船と港", "船と港"),
        ("Page 2", "page-2"),
        ("P2", "p2-2"),
        ("?", "page"),
        ("w" * 400, "w" * 100),
    ],
)
def test_pages_without_a_slug_get_one_of_their_title(api: API, title: str, slug: str) -> None:
    with writing(api) as writer:
        added = writer.add("pages", {**page(9, 1), "title": title, "slug": ""})
        assert writer.record("pages", added)["slug"] == slug


def test_the_same_title_gives_ever_other_slugs(api: API) -> None:
    with writing(api) as writer:
        for _ in range(12):
            writer.add("pages", unnamed(title="Storm", slug=None))
        writer.add("pages", unnamed(title="Storm night", slug=None))
    slugs = [f"storm-{number}" for number in range(2, 13)]
    found = [item["meta"]["slug"] for item in api.items("pages/?child_of=1&offset=3")]
    assert found == ["storm", *slugs, "storm-night"]


def test_publishing_makes_a_page_visible_now(api: API) -> None:
    with writing(api) as writer:
        window = {"go_live_at": "2999-01-01T00:00:00Z", "expires_at": "2001-01-01T00:00:00Z"}
        writer.update("pages", 2, live=False, **window)
        before = datetime.now(UTC)
        writer.publish(2)
    published = datetime.fromisoformat(api.json("pages/2/")["meta"]["first_published_at"])
    assert before <= published <= datetime.now(UTC)


def test_publishing_again_leaves_the_first_time_as_it_is(api: API) -> None:
    first = "2020-01-01T00:00:00Z"
    with writing(api) as writer:
        writer.update("pages", 2, first_published_at=first, expires_at="2999-01-01T00:00:00Z")
        writer.unpublish(2)
        writer.publish(2)
    meta = api.json("pages/2/")["meta"]
    assert (meta["first_published_at"], meta["expires_at"]) == (first, "2999-01-01T00:00:00Z")


def test_unpublishing_hides_a_page_alone(api: API) -> None:
    with writing(api) as writer:
        writer.unpublish(3)
    assert api.status("pages/3/") == 404
    assert api.json("pages/5/")["meta"]["parent"] is None


def test_a_translation_goes_below_that_of_the_parent(api: API) -> None:
    with writing(api) as writer:
        above = writer.translate(3, "fr", title="Trois")
        below = writer.translate(5, "fr", title="Cinq", live=True)
        assert writer.record("pages", above)["parent"] == 1
        assert writer.record("pages", below)["parent"] == above
        assert not writer.record("pages", above)["live"]


def test_a_translation_goes_below_the_parent_that_has_none(api: API) -> None:
    with writing(api) as writer:
        writer.update("pages", 3, translation_key="three")
        assert writer.record("pages", writer.translate(5, "fr"))["parent"] == 3


def test_of_several_translations_of_the_parent_the_first_in_the_tree_counts(api: API) -> None:
    with writing(api) as writer:
        writer.update("pages", 3, translation_key="three")
        for twin in (2, 4):
            writer.update("pages", twin, translation_key="three", locale="fr")
        writer.move(4, 1, before=2)
        assert writer.record("pages", writer.translate(5, "fr"))["parent"] == 4


def test_a_moved_page_is_told_of_with_all_below_it(api: API) -> None:
    with writing(api) as writer:
        writer.add("pages", page(6, 5))
    with writing(api) as writer:
        writer.move(3, 2)
        assert {"pages-3", "pages-5", "pages-6"} <= writer.tags()


def test_the_first_language_is_that_of_all_pages(make_api: MakeAPI) -> None:
    with writing(make_api({"pages": [page(1)]})) as writer:
        writer.put_locale("fr")
        writer.put_locale("en")
        assert writer.record("pages", 1)["locale"] == "fr"


def test_a_new_page_has_the_language_of_its_parent(make_api: MakeAPI) -> None:
    content = {"locales": ["en", "fr"], "pages": [page(1), page(2, locale="fr")]}
    with writing(make_api(content)) as writer:
        for record in (page(3, 2), page(4), page(5, 1), page(6, 2, locale="en")):
            writer.add("pages", record)
        languages = [writer.record("pages", number)["locale"] for number in range(3, 7)]
    assert languages == ["fr", "en", "en", "en"]


def test_an_alias_has_the_language_of_its_page_even_if_that_is_none(make_api: MakeAPI) -> None:
    with writing(make_api({"pages": [page(1), page(2, locale="fr")]})) as writer:
        assert "locale" not in writer.record("pages", writer.alias(1, 2))


def test_languages_that_pages_name_are_declared_with_the_first(make_api: MakeAPI) -> None:
    pages = [page(1, locale="nl"), page(2), page(3, locale="en", live=False), page(4, locale="de")]
    api = make_api({"pages": pages})
    with writing(api) as writer:
        writer.add("pages", page(5, locale="it"))
        assert "locale" not in writer.record("pages", 2)
        writer.put_locale("en")
    assert api.dump()["locales"] == ["en", "de", "it", "nl"]
    assert [record["locale"] for record in api.dump()["pages"]] == ["nl", "en", "en", "de", "it"]


def test_there_is_one_translation_in_each_language(api: API) -> None:
    with writing(api) as writer:
        writer.translate(3, "fr")
        for page, locale in ((3, "fr"), (3, "en"), (2, "en"), (2, "de")):
            with pytest.raises(ContentError, match=locale):
                writer.translate(page, locale)


def test_an_alias_has_the_content_of_the_other_page(api: API) -> None:
    with writing(api) as writer:
        writer.add("pages", blog(7, 1, authors=[{"id": 70, "name": "Ada"}], tags=["night"]))
        alias = writer.alias(7, 2, slug="seven")
        copy = writer.record("pages", alias)
    assert (copy["tags"], copy["alias_of"], copy["parent"]) == (["night"], 7, 2)
    assert copy["authors"][0]["id"] != 70
    assert copy["authors"][0]["name"] == "Ada"


def test_search_follows_what_is_changed(api: API) -> None:
    with writing(api) as writer:
        writer.update("pages", 2, title="Storm")
    assert api.ids("pages/?search=storm") == [2]
    with writing(api) as writer:
        writer.update("pages", 2, title="Calm")
        writer.update("pages", 3, title="Storm")
        writer.move(3, 2)
    assert api.ids("pages/?search=storm") == [3]
    with writing(api) as writer:
        writer.delete("pages", 3, descendants=True)
    assert api.total("pages/?search=storm") == 0


def test_a_change_that_is_refused_half_way_leaves_all_to_be_found(api: API) -> None:
    for _ in range(3):
        with writing(api) as writer, pytest.raises(ContentError, match="slug"):
            writer.translate(2, "fr", slug="p3")
        assert api.ids("pages/?search=page&order=id") == [1, 2, 3, 4, 5]


def test_a_refused_change_leaves_no_words_to_the_next(api: API) -> None:
    with writing(api) as writer:
        writer.add("pages", page(8, 1, title="Storm"))
        with pytest.raises(ContentError, match="slug"):
            writer.translate(8, "fr", slug="p3")
        writer.delete("pages", 8)
        writer.add("pages", page(8, 1, title="Calm"))
    assert api.ids("pages/?search=calm") == [8]
    assert api.ids("pages/?search=storm") == []


# Places in the tree.


def order_of(api: API, parent: int) -> list[int]:
    """The ids of the children of a page, in tree order."""
    return api.ids(f"pages/?child_of={parent}&limit=2000&fields=_,id")


@pytest.fixture
def wide(make_api: MakeAPI) -> API:
    """A site without a maximum limit."""
    pages = [page(1, slug="home"), page(2, 1), page(3, 2), page(4, 3), page(5, 2)]
    content = {"sites": [site(1)], "pages": pages}
    return make_api(content, config={"CMSAPI_LIMIT_MAX": None})


@pytest.mark.parametrize("place", ["first", "second", "last one added"])
def test_there_is_always_room_in_front_of_a_sibling(wide: API, place: str) -> None:
    wanted = [3, 5]
    with writing(wide) as writer:
        for number in range(10, 60):
            before = {"first": wanted[0], "second": wanted[1]}.get(place, max(wanted))
            writer.add("pages", page(number, 2), before=before)
            wanted.insert(wanted.index(before), number)
    assert order_of(wide, 2) == wanted
    assert wide.ids("pages/?descendant_of=3") == [4]


def test_making_room_takes_what_is_below_along(wide: API) -> None:
    with writing(wide) as writer:
        for number in range(10, 30):
            writer.add("pages", page(number, 1), before=2)
            writer.add("pages", page(number + 100, number))
        for root in range(200, 220):
            writer.add("pages", page(root), before=1)
    assert wide.ids("pages/?descendant_of=2") == [3, 4, 5]
    assert wide.ids("pages/?ancestor_of=4") == [1, 2, 3]
    assert wide.ids("pages/?child_of=1&limit=3") == [10, 11, 12]
    assert wide.ids("pages/?descendant_of=11") == [111]


def test_a_page_moves_among_its_siblings(wide: API) -> None:
    with writing(wide) as writer:
        for number in range(10, 16):
            writer.add("pages", page(number, 2))
        for _ in range(20):
            writer.move(3, 2, before=order_of(wide, 2)[-1])
            writer.move(3, 2, before=order_of(wide, 2)[0])
        writer.move(5, 2, before=12)
    assert order_of(wide, 2) == [3, 10, 11, 5, 12, 13, 14, 15]
    assert wide.ids("pages/?descendant_of=3") == [4]


def grown(api: API, count: int) -> None:
    """Loads a branch at page 2: ten children, with a number of pages below them."""
    children = [page(100 + n, 2, title=f"Storm {n}") for n in range(10)]
    below = [page(1000 + n, 100 + n % 10) for n in range(count)]
    content = {"sites": [site(1)], "pages": [page(1, slug="home"), page(2, 1), page(3, 1)]}
    content["pages"] += [*children, *below]
    api.load(content)


def test_a_new_slug_is_in_all_addresses_below(wide: API) -> None:
    grown(wide, 50)
    with writing(wide) as writer:
        writer.update("pages", 2, slug="sea & sky")
    item = wide.json("pages/1007/")
    assert item["meta"]["html_url"] == "http://localhost/sea%20%26%20sky/p107/p1007/"
    assert wide.status("pages/find/?html_path=/sea %26 sky/p107/p1007/") == 302
    assert wide.status("pages/find/?html_path=/p2/p107/p1007/") == 404


def test_a_restriction_hides_all_below_until_it_is_lifted(wide: API) -> None:
    grown(wide, 50)
    with writing(wide) as writer:
        writer.update("pages", 103, restriction=private())
        writer.update("pages", 2, restriction=private())
    assert wide.ids("pages/") == [1, 3]
    with writing(wide) as writer:
        writer.update("pages", 2, restriction=None)
    assert wide.total("pages/") == 3 + 9 + 45
    with writing(wide) as writer:
        writer.move(1003, 2)
        writer.update("pages", 103, restriction=None)
    assert wide.total("pages/") == 3 + 10 + 50


# Refused changes.


def test_an_error_takes_back_all_of_a_block(api: API) -> None:
    before = api.dump(), api.get("pages/").headers["ETag"]
    with suppress(Undo), writing(api) as writer:
        writer.update("pages", 2, title="Another")
        writer.delete("pages", 4)
        writer.move(3, 2)
        raise Undo
    assert (api.dump(), api.get("pages/").headers["ETag"]) == before


REFUSED: list[tuple[str, Any, str]] = [
    ("an id twice", lambda w: w.add("pages", page(2, 1, slug="x")), "id"),
    ("a slug twice", lambda w: w.add("pages", page(9, 1, slug="p2")), "slug"),
    ("no such parent", lambda w: w.add("pages", page(9, 99)), "parent"),
    ("no such sibling", lambda w: w.add("pages", page(9, 1), before=5), "sibling"),
    ("a sibling that is none", lambda w: w.move(2, 1, before=2**70), "sibling"),
    ("no such type", lambda w: w.add("images", {"title": "x", "type": "blog.BlogPage"}), "type"),
    ("no such field", lambda w: w.add("pages", page(9, 1, colour="red")), "colour"),
    ("no title", lambda w: w.add("images", {"file": "x.png"}), "title"),
    ("what is no object", lambda w: w.add("images", "x.png"), "must be an object"),
    ("a value of another kind", lambda w: w.update("pages", 2, title=7), "title"),
    ("no such page", lambda w: w.update("pages", 99, title="x"), "pages 99"),
    ("another id", lambda w: w.update("pages", 2, id=9), "id"),
    ("another parent", lambda w: w.update("pages", 2, parent=3), "move"),
    ("a slug of another", lambda w: w.update("pages", 2, slug="p3"), "slug"),
    ("no language", lambda w: w.update("pages", 2, locale="xx"), "xx"),
    ("below itself", lambda w: w.move(3, 5), "itself"),
    ("a home page", lambda w: w.delete("pages", 1, descendants=True), "home of localhost"),
    ("what has children", lambda w: w.delete("pages", 3), "descendants=True"),
    ("no such image", lambda w: w.delete("images", 9), "images 9"),
    ("no such collection", lambda w: w.add("images", {"title": "x", "collection": 9}), "9"),
    ("an empty language", lambda w: w.put_locale(""), "code"),
    ("a site without a page", lambda w: w.put_site(hostname="x.org", root_page=99), "99"),
    ("a circle", lambda w: w.put_collection(id=1, parent=1), "circle"),
    ("a collection that is none", lambda w: w.delete_collection(7), "collections 7"),
]


@pytest.mark.parametrize(
    ("change", "said"), [pytest.param(change, said, id=what) for what, change, said in REFUSED]
)
def test_what_is_refused_is_named_and_changes_nothing(api: API, change: Any, said: str) -> None:
    before = api.dump()
    with writing(api) as writer:
        with pytest.raises(ContentError, match=said):
            change(writer)
        writer.publish(2)
    with writing(api) as writer:
        writer.update("pages", 2, first_published_at=None)
    assert api.dump() == before


def test_a_collection_in_use_stays(api: API) -> None:
    with writing(api) as writer:
        inner = writer.put_collection(parent=writer.put_collection(name="Outer"), name="Inner")
        writer.add("images", {"title": "x", "collection": inner})
        for collection in (1, 2):
            with pytest.raises(ContentError, match=f"collections {collection}"):
                writer.delete_collection(collection)
        writer.update("images", 1, collection=None)
        writer.delete_collection(inner)
    assert [record["id"] for record in api.dump()["collections"]] == [1]


FILMS: list[Any] = [
    lambda writer: writer.add("films", {"title": "x"}),
    lambda writer: writer.update("films", 1, title="x"),
    lambda writer: writer.delete("films", 1),
    lambda writer: writer.record("films", 1),
]


@pytest.mark.parametrize("change", FILMS)
def test_an_unknown_endpoint_is_named(api: API, change: Any) -> None:
    with writing(api) as writer, pytest.raises(ContentError, match=r"films.*pages"):
        change(writer)


@pytest.mark.parametrize("id", [2**70, -(2**70), "2", None])
def test_an_id_that_is_none_is_of_no_object(api: API, id: Any) -> None:
    with writing(api) as writer:
        for change in (writer.record, writer.update, writer.delete):
            with pytest.raises(ContentError, match="there is no such object") as caught:
                change("pages", id)
            assert ("ids are integers" in str(caught.value)) == (not isinstance(id, int))


@pytest.mark.parametrize("parent", [2**70, "2", 99])
def test_a_parent_that_is_none_is_refused(api: API, parent: Any) -> None:
    with writing(api) as writer, pytest.raises(ContentError, match="parent"):
        writer.add("pages", {**plain_new(), "parent": parent})


def plain_new() -> Record:
    """The record of a page without an id and a slug."""
    return {name: value for name, value in page(9).items() if name not in ("id", "slug")}


def test_child_objects_without_an_id_get_one_that_is_not_given(api: API) -> None:
    authors = [{"name": "a"}, {"id": 1, "name": "b"}, {"name": "c"}, {"id": 7, "name": "d"}]
    with writing(api) as writer:
        added = writer.add("pages", blog(9, 1, authors=authors))
        known = writer.record("pages", added)["authors"]
    ids = [author["id"] for author in known]
    assert len(set(ids)) == 4
    assert (ids[1], ids[3]) == (1, 7)


class Line(ChildObject):
    app_label = "w"
    text = fields.String()


class Song(Page):
    app_label = "w"
    lines = Children(Line)


class Opera(Page):
    app_label = "w"
    lines = Children(Line)
    refrain = Children(Line)


def test_child_objects_of_a_type_have_ids_of_their_own_wherever_they_are(make_api: MakeAPI) -> None:
    known = page(1, type="w.Song", lines=[{"id": 4, "text": "a"}])
    api = make_api({"pages": [known]}, types=[Song, Opera])
    with writing(api) as writer:
        lines = {"lines": [{"text": "b"}], "refrain": [{"text": "c"}, {"id": 7}, {"text": "d"}]}
        writer.add("pages", page(2, 1, type="w.Opera", **lines))
        with pytest.raises(ContentError, match="pages 3, lines: the id 7 stands in another object"):
            writer.add("pages", page(3, 1, type="w.Song", lines=[{"id": 7}]))
        record = writer.record("pages", 2)
    assert [line["id"] for line in record["lines"] + record["refrain"]] == [8, 9, 7, 10]


@pytest.mark.parametrize("field", ["lines", "refrain"])
def test_new_child_objects_get_ids_after_those_of_every_field(
    make_api: MakeAPI, field: str
) -> None:
    known = {**page(1, type="w.Opera"), field: [{"id": 4}]}
    with writing(make_api({"pages": [known]}, types=[Song, Opera])) as writer:
        writer.add("pages", page(2, 1, type="w.Opera", lines=[{"text": "a"}], refrain=[{}]))
        record = writer.record("pages", 2)
    assert [line["id"] for line in record["lines"] + record["refrain"]] == [5, 6]


def test_child_objects_keep_their_ids_where_they_go_in_an_update(make_api: MakeAPI) -> None:
    lines = [{"id": number, "text": str(number)} for number in (1, 2, 3)]
    pages = [page(1, type="w.Opera", lines=lines, refrain=[{"id": 4}]), page(2, type="w.Song")]
    api = make_api({"pages": pages}, types=[Song, Opera])
    with writing(api) as writer:
        writer.update("pages", 1, lines=[{"id": 4}, {"id": 1}], refrain=[{"id": 3}, {}])
        writer.update("pages", 2, lines=[{"id": 2}])
        with pytest.raises(ContentError, match="pages 2, lines: the id 4 stands in another object"):
            writer.update("pages", 2, lines=[{"id": 4}])
        records = [writer.record("pages", number) for number in (1, 2)]
    ids = [[line["id"] for line in record["lines"]] for record in records]
    assert ids == [[4, 1], [2]]
    assert [line["id"] for line in records[0]["refrain"]] == [3, 5]


def test_an_object_becomes_one_of_another_type(make_api: MakeAPI) -> None:
    known = page(1, type="w.Opera", lines=[{"id": 1}])
    with writing(make_api({"pages": [known]}, types=[Song, Opera])) as writer:
        writer.update("pages", 1, type="w.Song", lines=[{"id": 2}])
        writer.add("pages", page(2, 1, type="w.Song", lines=[{"id": 1}]))
        writer.update("pages", 1, type="w.Opera", refrain=[{"id": 3}])
        record = writer.record("pages", 1)
    assert [[line["id"] for line in record[name]] for name in ("lines", "refrain")] == [[2], [3]]


class Sleeve(Image):
    app_label = "w"
    lines = Children(Line)


def test_a_page_and_an_image_with_one_id_have_other_child_objects(make_api: MakeAPI) -> None:
    content = {"pages": [page(1, type="w.Song")], "images": [image(1, type="w.Sleeve")]}
    with writing(make_api(content, types=[Song, Sleeve])) as writer:
        writer.update("images", 1, lines=[{"id": 4}])
        with pytest.raises(ContentError, match="pages 1, lines: the id 4 stands in another object"):
            writer.update("pages", 1, lines=[{"id": 4}])


def test_nothing_is_changed_after_the_block(api: API) -> None:
    with writing(api) as writer:
        writer.unpublish(2)
    tag = api.get("pages/").headers["ETag"]
    changes: list[Any] = [
        lambda: writer.publish(2),
        lambda: writer.unpublish(3),
        lambda: writer.delete_site("localhost"),
    ]
    for change in changes:
        with pytest.raises(RuntimeError, match="The block is over"):
            change()
    assert api.get("pages/", headers={"If-None-Match": tag}).status_code == 304


def test_what_is_not_named_of_a_site_stays(api: API) -> None:
    with writing(api) as writer:
        writer.put_site(hostname="shop.example", port=8000, site_name="Shop", root_page=1)
        writer.put_site(hostname="SHOP.example.", port=8000, root_page=2)
    (site,) = [s for s in api.dump()["sites"] if s["hostname"] == "shop.example"]
    assert (site["site_name"], site["root_page"]) == ("Shop", 2)


def test_what_is_not_named_of_a_collection_stays(api: API) -> None:
    with writing(api) as writer:
        number = writer.put_collection(name="Staff", restriction=private())
        writer.put_collection(id=number, name="Personnel")
    (collection,) = [c for c in api.dump()["collections"] if c["id"] == number]
    assert (collection["name"], collection["restriction"]) == ("Personnel", private())


def test_a_block_belongs_to_its_thread(api: API) -> None:
    refused: list[str] = []

    def change(writer: Writer) -> None:
        with pytest.raises(RuntimeError) as caught:
            writer.unpublish(2)
        refused.append(str(caught.value))

    with writing(api) as writer:
        thread = Thread(target=change, args=[writer])
        thread.start()
        thread.join()
    assert refused == ["A block belongs to the thread that has begun it; begin another."]
    assert api.status("pages/2/") == 200


def test_a_restriction_changes_where_python_sees_none(make_api: MakeAPI) -> None:
    api = make_api(
        {"pages": [page(1), page(2, 1, restriction={"type": "login", "x": 0})]},
        can_view=lambda rule: rule["x"] is False,
    )
    assert api.status("pages/2/") == 404
    with writing(api) as writer:
        writer.update("pages", 2, restriction={"type": "login", "x": False})
    assert api.status("pages/2/") == 200


def test_a_site_is_named_in_any_spelling(api: API) -> None:
    with writing(api) as writer:
        assert not writer.delete_site("LOCALHOST:80")
        assert not writer.delete_site("LocalHost.", 8000)
        assert writer.delete_site("LocalHost.")
    assert "sites" not in api.dump()


def test_another_error_ends_the_block(api: API) -> None:
    before = api.dump()
    with pytest.raises(TypeError, match="argument"), writing(api) as writer:
        suffer(writer)
    with pytest.raises(RuntimeError, match="The block is over"):
        writer.record("pages", 2)
    assert api.dump() == before


def suffer(writer: Writer) -> None:
    """Makes a change, and another one that fails in a way that nobody foresees."""
    writer.update("pages", 2, title="Another")
    with suppress(TypeError):
        writer.move()  # type: ignore[call-arg]


def test_an_inner_block_is_a_part_of_the_outer(api: API) -> None:
    with writing(api) as outer:
        outer.update("pages", 2, title="First")
        with writing(api) as inner:
            inner.update("pages", 3, title=outer.record("pages", 2)["title"])
        outer.update("pages", 4, title=inner.record("pages", 3)["title"])
    assert [api.json(f"pages/{id}/")["title"] for id in (2, 3, 4)] == ["First"] * 3


def test_an_error_in_an_inner_block_ends_the_outer(api: API) -> None:
    before = api.dump()
    with suppress(Undo), writing(api) as outer:
        outer.update("pages", 2, title="First")
        with suppress(Undo), writing(api):
            raise Undo
    assert api.dump() == before


def test_a_failure_in_one_thread_leaves_others_to_write(api: API) -> None:
    with suppress(Undo), writing(api):
        raise Undo
    threads = [Thread(target=count_up, args=(api,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert api.json("pages/2/")["title"] == "20"


def count_up(api: API) -> None:
    """Increases the number in the title of page 2 five times."""
    with api.app.app_context():
        for _ in range(5):
            with writing(api) as writer:
                title = writer.record("pages", 2)["title"].replace("Page 2", "0")
                writer.update("pages", 2, title=str(int(title) + 1))


def test_content_is_changed_when_a_load_is_told(api: API) -> None:
    titles = []

    def read(sender: Backend, tags: frozenset[str]) -> None:
        with sender.write() as writer:
            titles.append(writer.record("pages", 1)["title"])

    with content_changed.connected_to(read, api.backend):
        api.load({"pages": [page(1)]})
    assert titles == ["Page 1"]


def test_child_objects_may_be_instances(make_api: MakeAPI) -> None:
    api = make_api(types=[Song, Opera])
    with writing(api) as writer:
        writer.add("pages", Song(title="Fog", lines=[Line(text="a"), {"text": "b"}]))
    assert [line["id"] for line in api.dump()["pages"][0]["lines"]] == [1, 2]


def test_what_is_seen_within_a_block_is_not_kept(api: API) -> None:
    with writing(api) as writer:
        writer.update("pages", 2, title="First")
        seen = api.get("pages/2/?fields=_,title")
        writer.update("pages", 2, title="Last")
        assert api.json("pages/2/?fields=_,title") == {"title": "Last"}
    assert (seen.json, seen.headers.get("ETag")) == ({"title": "First"}, None)
    assert api.json("pages/2/?fields=_,title") == {"title": "Last"}


def test_nothing_is_dumped_or_loaded_within_a_block(api: API) -> None:
    with writing(api) as writer:
        writer.unpublish(2)
        with pytest.raises(RuntimeError, match="Content is not dumped while it is changed"):
            list(api.backend.dump())
        with pytest.raises(RuntimeError, match="Content is not loaded while it is changed"):
            api.backend.load({})
    assert api.status("pages/2/") == 404


# Copies of pages.


def test_a_translation_has_the_content_and_the_key_of_the_page(api: API) -> None:
    with writing(api) as writer:
        writer.add("pages", blog(7, 1, tags=["night"], authors=[{"id": 70, "name": "Ada"}]))
        french = writer.translate(7, "fr", title="Sept", live=True)
        first, second = writer.record("pages", 7), writer.record("pages", french)
    assert first["translation_key"] == second["translation_key"]
    assert (second["tags"], second["locale"], second["slug"]) == (["night"], "fr", "sept")
    assert [author["name"] for author in second["authors"]] == ["Ada"]


def test_a_translation_keeps_the_key_that_the_page_has(api: API) -> None:
    with writing(api) as writer:
        writer.update("pages", 2, translation_key="two")
        french = writer.translate(2, "fr")
        assert writer.record("pages", french)["translation_key"] == "two"


def test_a_translation_that_is_refused_leaves_the_page_as_it_was(api: API) -> None:
    before = api.dump()
    with writing(api) as writer, pytest.raises(ContentError, match="slug"):
        writer.translate(2, "fr", slug="p3")
    assert api.dump() == before


def test_an_alias_is_no_translation(api: API) -> None:
    with writing(api) as writer:
        writer.translate(2, "fr")
        alias = writer.alias(2, 3)
        assert writer.record("pages", alias).get("translation_key") is None
    assert api.json(f"pages/{alias}/")["meta"]["alias_of"]["id"] == 2


def test_an_alias_can_stand_beside_its_page_and_at_the_top(api: API) -> None:
    with writing(api) as writer:
        beside, above = writer.alias(2, 1), writer.alias(2, None, title="Top")
        slugs = [writer.record("pages", alias)["slug"] for alias in (beside, above)]
    assert slugs == ["page-2", "top"]
    assert api.ids("pages/?child_of=1") == [2, 3, 4, beside]

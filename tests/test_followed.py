"""Rows of a site's own models are served, and every change of them shows."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import date
from itertools import count
from typing import Any

import peewee
import pytest
from hypothesis import given
from hypothesis import strategies as st
from marshmallow import fields

from flask_contentapi import ConfigurationError, ContentError, Page, Redirect
from flask_contentapi.content import DEEPEST
from flask_contentapi.signals import content_changed
from flask_contentapi.writer import Writer
from flask_contentapi_peewee import Followed
from tests.api import API
from tests.databases import noted, on_databases, on_servers, storage, writing
from tests.followed_site import (
    CONTENT,
    HOME,
    MODELS,
    PHOTOS,
    POSTS,
    SECTIONS,
    TYPES,
    WRONG_RANK,
    Photo,
    Post,
    PostPage,
    Section,
    SectionPage,
    Source,
    Tag,
    Tagging,
    followed,
    made,
    open_database,
    post_record,
    serve,
)
from tests.sites import make_site
from tests.test_sql_statements import forget_totals

pytestmark = [on_databases, pytest.mark.slow]


@pytest.fixture(scope="module")
def opened(backend: str) -> Iterator[peewee.Database]:
    """The site's own database."""
    with open_database(backend) as database:
        yield database


@pytest.fixture
def database(opened: peewee.Database) -> peewee.Database:
    """The same, with some rows."""
    fill(opened)
    return opened


def fill(database: peewee.Database) -> None:
    close_all()
    with database:
        for model in reversed(MODELS):
            model.delete().execute()
        Section.create(id=1, name="Sea", slug="sea", changed=1)
        photo = Photo.create(id=1, caption="Pier", path="pier.jpg")
        values: dict[str, Any] = {"headline": "Storm", "slug": "storm", "text": "<p>Tie up</p>"}
        Post.create(id=1, section=1, photo=photo, rank=7, changed=1, **values)
        Post.create(id=2, headline="Draft", slug="draft", status="new", changed=2)
        Post.create(id=3, headline="Calm", slug="calm", changed=3)
        for number, name in enumerate(("weather", "sea"), 1):
            Tagging.create(post=1, tag=Tag.create(id=number, name=name))
        Source.create(id=1, post=1, name="Met office")


@pytest.fixture
def api(database: peewee.Database) -> API:
    return serve(database)


def close_all() -> None:
    """Closes the backends of other tests, so that they do not hear of rows any longer."""
    while made:
        made.pop().close()


def titles(api: API, query: str = "") -> list[str]:
    """The titles of pages, without the home page."""
    return [page["title"] for page in api.items(f"pages/?{query}") if page["id"] != HOME]


def urls(api: API) -> dict[int, str]:
    """The addresses of pages by id, without the host."""
    found = api.items("pages/?fields=_,id,html_url")
    return {page["id"]: page["meta"]["html_url"].removeprefix("http://localhost") for page in found}


def change(database: peewee.Database, row: int, model: Any = Post, **values: Any) -> None:
    """Changes a row as another program would."""
    with database:
        highest = model.select(peewee.fn.MAX(model.changed)).scalar()
        model.update({"changed": highest + 1, **values}).where(model.id == row).execute()


def delete(database: peewee.Database, row: int, model: Any = Post) -> None:
    """Deletes a row as another program would."""
    with database:
        model.delete().where(model.id == row).execute()


def problems(api: API) -> list[str]:
    with api.app.app_context():
        return [*map(str, api.backend.check())]


@contextmanager
def heard(api: API) -> Iterator[list[frozenset[str]]]:
    """Collects the cache tags that are sent meanwhile."""
    tags: list[frozenset[str]] = []

    def hear(sender: Any, tags: frozenset[str], into: list[frozenset[str]] = tags) -> None:
        into.append(tags)

    with content_changed.connected_to(hear, storage(api)):
        yield tags


# Rows as content.


def test_rows_are_served_as_content(api: API) -> None:
    assert urls(api) == {
        HOME: "/",
        SECTIONS + 1: "/sea/",
        POSTS + 1: "/sea/storm/",
        POSTS + 3: "/calm/",
    }


def test_records_of_rows_have_everything(api: API) -> None:
    page = api.json(f"pages/{POSTS + 1}/?fields=_,text,rank,tags,photo(_,title),sources(_,name)")
    assert page == {
        "text": "<p>Tie up</p>",
        "rank": 7,
        "tags": ["sea", "weather"],
        "photo": {"title": "Pier"},
        "sources": [{"name": "Met office"}],
    }


@pytest.mark.parametrize(
    "query",
    [
        "tags=sea&type=f.PostPage",
        "rank=7&type=f.PostPage",
        "search=tie",
        f"child_of={SECTIONS + 1}",
    ],
)
def test_rows_are_found_as_content(api: API, query: str) -> None:
    assert titles(api, query) == ["Storm"]


def by_name(**record: Any) -> list[Followed]:
    """The followed models, posts by the names of columns."""
    given = {"title": Post.headline, "parent": HOME, **record}
    return [*followed()[::2], Followed(Post, PostPage, given, ids_from=POSTS, changed=Post.changed)]


def test_columns_are_found_by_name(database: peewee.Database) -> None:
    page = serve(database, by_name()).json(f"pages/{POSTS + 1}/?fields=_,slug,text,rank,title")
    assert page == {"meta": {"slug": "storm"}, "text": "<p>Tie up</p>", "rank": 7, "title": "Storm"}


def test_foreign_keys_become_ids_of_objects(database: peewee.Database) -> None:
    page = serve(database, by_name()).json(f"pages/{POSTS + 1}/?fields=_,photo(id)")
    assert page["photo"]["id"] == PHOTOS + 1


def test_values_can_be_functions_and_constants(database: peewee.Database) -> None:
    api = serve(database, by_name(title=lambda post: post.headline.upper(), rank=3))
    page = api.json(f"pages/{POSTS + 1}/?fields=_,title,rank")
    assert page == {"title": "STORM", "rank": 3}


def test_a_condition_chooses_rows(database: peewee.Database) -> None:
    api = serve(database, followed(where=Post.headline != "Calm"))
    assert titles(api) == ["Sea", "Storm"]
    change(database, 3, headline="Rain")
    assert titles(api) == ["Sea", "Storm", "Rain"]
    change(database, 1, headline="Calm")
    assert titles(api) == ["Sea", "Rain"]


class OldPostPage(Page):
    app_label = "f"


def test_a_table_can_give_two_types(database: peewee.Database) -> None:
    models = [
        *followed(where=Post.rank.is_null()),
        Followed(
            Post,
            OldPostPage,
            {"title": Post.headline, "parent": HOME},
            where=Post.rank.is_null(False),
            ids_from=POSTS,
            changed=Post.changed,
        ),
    ]
    api = serve(database, models, types=[*TYPES, OldPostPage])
    assert titles(api, "type=f.OldPostPage") == ["Storm"]
    assert titles(api, "type=f.PostPage") == ["Calm"]
    change(database, 3, rank=1)
    assert sorted(titles(api, "type=f.OldPostPage")) == ["Calm", "Storm"]
    assert titles(api, "type=f.PostPage") == []


def test_tables_of_the_site_stay_as_they_are(database: peewee.Database) -> None:
    def schema() -> Any:
        with database:
            names = [model._meta.table_name for model in MODELS]
            return [(database.get_columns(n), database.get_indexes(n)) for n in names]

    before = schema()
    change(database, 1, headline="Rain")
    assert titles(serve(database)) == ["Sea", "Rain", "Calm"]
    assert schema() == before


# Changes by any program.


def test_a_changed_row_shows_in_the_next_answer(api: API, database: peewee.Database) -> None:
    assert titles(api) == ["Sea", "Storm", "Calm"]
    change(database, 1, headline="Rain", text="wet")
    assert titles(api) == ["Sea", "Rain", "Calm"]
    assert titles(api, "search=wet") == ["Rain"]
    assert titles(api, "search=tie") == []


def test_a_deleted_row_is_gone_from_the_next_answer(api: API, database: peewee.Database) -> None:
    delete(database, 3)
    assert api.status(f"pages/{POSTS + 3}/") == 404
    assert titles(api) == ["Sea", "Storm"]


def test_a_new_row_shows_in_the_next_answer(api: API, database: peewee.Database) -> None:
    with database:
        Post.insert(id=4, headline="Hail", slug="hail", section=1, changed=4).execute()
    assert titles(api) == ["Sea", "Storm", "Hail", "Calm"]


def test_new_rows_with_old_marks_are_found(api: API, database: peewee.Database) -> None:
    with database:
        Post.insert(id=4, headline="Hail", slug="hail", changed=0).execute()
    assert titles(api) == ["Sea", "Storm", "Calm", "Hail"]


def test_validators_differ_after_each_change(api: API, database: peewee.Database) -> None:
    tags = [api.get("pages/").headers["ETag"]]
    change(database, 1, headline="Rain")
    tags.append(api.get("pages/").headers["ETag"])
    delete(database, 3)
    tags.append(api.get("pages/").headers["ETag"])
    assert len({*tags}) == 3
    assert api.get("pages/", headers={"If-None-Match": tags[1]}).status_code == 200
    assert api.get("pages/", headers={"If-None-Match": tags[2]}).status_code == 304


@pytest.mark.parametrize(
    ("row", "values", "names"),
    [
        (1, {"headline": "Rain"}, {f"pages-{POSTS + 1}", "pages"}),
        (3, {"status": "new"}, {f"pages-{POSTS + 3}", "pages"}),
    ],
)
def test_caches_are_told_what_has_changed(
    api: API, database: peewee.Database, row: int, values: Any, names: set[str]
) -> None:
    titles(api)
    change(database, row, **values)
    with heard(api) as tags:
        titles(api)
        titles(api)
    assert tags == [names]


def test_caches_are_told_of_deleted_rows(api: API, database: peewee.Database) -> None:
    delete(database, 3)
    with heard(api) as tags:
        titles(api)
    assert tags == [{f"pages-{POSTS + 3}", "pages"}]


def test_caches_are_told_of_moved_branches(api: API, database: peewee.Database) -> None:
    change(database, 1, Section, slug="ocean")
    with heard(api) as tags:
        titles(api)
    assert tags == [{f"pages-{SECTIONS + 1}", f"pages-{POSTS + 1}", "pages"}]


def test_a_renamed_row_renames_what_is_below(api: API, database: peewee.Database) -> None:
    change(database, 1, Section, slug="ocean")
    assert urls(api)[POSTS + 1] == "/ocean/storm/"
    assert api.status("pages/find/?html_path=/ocean/storm/") == 302
    assert api.status("pages/find/?html_path=/sea/storm/") == 404


def test_a_moved_row_takes_along_what_is_below(api: API, database: peewee.Database) -> None:
    with database:
        Section.insert(id=2, name="Land", slug="land", changed=2).execute()
    change(database, 1, Section, up=2, slug="lake")
    assert urls(api)[POSTS + 1] == "/land/lake/storm/"


def test_slugs_can_be_exchanged(api: API, database: peewee.Database) -> None:
    change(database, 1, slug="calm", section=None)
    change(database, 3, slug="storm")
    assert {i: url for i, url in urls(api).items() if i > POSTS} == {
        POSTS + 1: "/calm/",
        POSTS + 3: "/storm/",
    }


def test_what_is_below_a_deleted_row_waits(api: API, database: peewee.Database) -> None:
    delete(database, 1, Section)
    assert titles(api) == ["Calm"]
    assert problems(api) == [
        f"Post 1 (pages {POSTS + 1}), parent: there is no page {SECTIONS + 1}; the row is left out"
    ]
    with database:
        Section.insert(id=1, name="Sea", slug="sea", changed=0).execute()
    assert titles(api) == ["Calm", "Sea", "Storm"]
    assert problems(api) == []


def test_changes_show_with_a_function_as_mark(database: peewee.Database) -> None:
    marks = [1]
    api = serve(database, followed(changed=None, mark=lambda: marks))
    with database:
        Post.update(headline="Rain").where(Post.id == 1).execute()
        Post.delete().where(Post.id == 3).execute()
    assert titles(api) == ["Sea", "Storm", "Calm"]
    marks.append(2)
    assert titles(api) == ["Sea", "Rain"]


def test_a_function_can_tell_of_deleted_rows(database: peewee.Database) -> None:
    marks = [1]
    api = serve(database, followed(mark=lambda: marks))
    change(database, 1, headline="Rain")
    delete(database, 3)
    assert titles(api) == ["Sea", "Rain", "Calm"]
    marks.append(2)
    assert titles(api) == ["Sea", "Rain"]


#: Options that a model is followed with, and others of the site as it is changed.
OTHER_MARKS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "from signals": ({"changed": None}, {}),
    "to signals": ({}, {"changed": None}),
    "from a function": ({"changed": None, "mark": lambda: 1}, {}),
    "to a function": ({}, {"changed": None, "mark": lambda: 1}),
}


@pytest.mark.parametrize(("before", "after"), OTHER_MARKS.values(), ids=OTHER_MARKS)
def test_models_can_get_another_mark(
    database: peewee.Database, before: dict[str, Any], after: dict[str, Any]
) -> None:
    assert titles(serve(database, followed(**before))) == ["Sea", "Storm", "Calm"]
    change(database, 1, headline="Rain")
    delete(database, 3)
    api = serve(database, followed(**after), content=None)
    with api.app.app_context():
        api.backend.reload()
    assert titles(api) == ["Sea", "Rain"]


def test_a_mark_that_fails_is_named(
    database: peewee.Database, caplog: pytest.LogCaptureFixture
) -> None:
    marks: list[int] = [1]
    api = serve(database, followed(mark=lambda: marks[0]))
    marks.clear()
    assert api.status("pages/") == 503
    assert "its mark raises IndexError: list index out of range" in caplog.messages[-1]


def test_a_mark_can_be_anything(database: peewee.Database) -> None:
    days = [date(2026, 1, 1)]
    api = serve(database, followed(changed=None, mark=lambda: days[-1]))
    delete(database, 3)
    assert titles(api) == ["Sea", "Storm", "Calm"]
    days.append(date(2026, 1, 2))
    assert titles(api) == ["Sea", "Storm"]


def test_reload_reads_all_rows(api: API, database: peewee.Database) -> None:
    with database:
        Post.update(headline="Rain").where(Post.id == 1).execute()
    assert titles(api) == ["Sea", "Storm", "Calm"]
    with api.app.app_context():
        api.backend.reload()
    assert titles(api) == ["Sea", "Rain", "Calm"]


# Changes through peewee's signals.


def test_a_saved_row_shows_without_a_mark(api: API, database: peewee.Database) -> None:
    with database:
        post = Post.get_by_id(1)
        post.headline = "Rain"
        post.save()
        Photo.update(caption="Quay").execute()
        photo = Photo.get_by_id(1)
        photo.path = "quay.jpg"
        photo.save()
    assert titles(api) == ["Sea", "Rain", "Calm"]
    assert [image["title"] for image in api.items("images/")] == ["Quay"]


def test_a_deleted_instance_is_gone(api: API, database: peewee.Database) -> None:
    with database:
        Post.update(photo=None).execute()
        Photo.get_by_id(1).delete_instance()
    assert api.items("images/") == []


def test_caches_are_told_of_a_saved_row_at_once(api: API, database: peewee.Database) -> None:
    titles(api)
    with database.connection_context(), heard(api) as tags:
        post = Post.get_by_id(1)
        post.headline = "Rain"
        post.save()
    assert tags == [{f"pages-{POSTS + 1}", "pages"}]


def test_a_transaction_shows_when_it_is_committed(api: API, database: peewee.Database) -> None:
    with database.connection_context():
        with database.atomic():
            post = Post.get_by_id(1)
            post.headline = "Rain"
            post.save()
        assert titles(api) == ["Sea", "Rain", "Calm"]
        with database.atomic() as transaction:
            Post.create(id=4, headline="Hail", slug="hail", changed=9)
            assert titles(api) == ["Sea", "Rain", "Calm", "Hail"]
            transaction.rollback()
        assert titles(api) == ["Sea", "Rain", "Calm"]


def test_rows_can_be_saved_before_tables_are_made(backend: str) -> None:
    with open_database(backend) as database:
        api = serve(database, content=None, tables=False)
        with database, database.atomic():
            Post.create(headline="Hail", slug="hail")
        with api.app.app_context():
            api.backend.create()
        api.load(CONTENT)
        assert titles(api) == ["Hail"]


# Rows that cannot be objects.

LEFT_OUT: list[tuple[Any, dict[str, Any], str]] = [
    (Post, {"slug": "a/b"}, "slug: must be one part of an address, without a slash"),
    (
        Post,
        {"slug": "calm", "section": None},
        f"slug: a sibling has the slug 'calm' already: page {POSTS + 3}",
    ),
    (Post, {"headline": None}, "title: is missing"),
    (Post, {"section": 7}, f"parent: there is no page {SECTIONS + 7}"),
    (Section, {"up": 1}, "parent: the pages above it form a circle"),
    (Photo, {"album": 9}, "collection: there is no collection 9"),
]


@pytest.mark.parametrize(("model", "values", "why"), LEFT_OUT)
def test_rows_that_do_not_fit_are_left_out(
    api: API, database: peewee.Database, model: Any, values: dict[str, Any], why: str
) -> None:
    endpoint, ids_from = {Post: ("pages", POSTS), Section: ("pages", SECTIONS)}.get(
        model, ("images", PHOTOS)
    )
    with database:
        row = model.get_by_id(1)
    before = {name: getattr(row, name) for name in values}
    save(database, row, values)
    assert api.status(f"{endpoint}/{ids_from + 1}/") == 404
    name = f"{model.__name__} 1 ({endpoint} {ids_from + 1}), {why}; the row is left out"
    assert name in problems(api)
    assert "Calm" in titles(api)
    save(database, row, before)
    assert api.status(f"{endpoint}/{ids_from + 1}/") == 200
    assert problems(api) == []


def save(database: peewee.Database, row: Any, values: dict[str, Any]) -> None:
    """Saves new values of a row."""
    with database:
        for name, value in values.items():
            setattr(row, name, value)
        if hasattr(row, "changed"):
            row.changed += 100
        row.save()


def test_an_error_in_a_function_leaves_out_one_row(database: peewee.Database) -> None:
    def record(post: Any) -> Any:
        if post.id == 1:
            raise KeyError("hook")
        return post_record(post)

    models = followed()
    models[1].record = record
    api = serve(database, models)
    assert titles(api) == ["Sea", "Calm"]
    assert problems(api) == [
        f"Post 1 (pages {POSTS + 1}): cannot be read: KeyError('hook'); the row is left out"
    ]


def test_rows_that_cannot_be_read_are_left_out(api: API, database: peewee.Database) -> None:
    change(database, 1, rank=WRONG_RANK)
    assert titles(api) == ["Sea", "Calm"]
    why = "cannot be read: KeyError('is no rank'); the row is left out"
    assert problems(api) == [f"Post 1 (pages {POSTS + 1}): {why}"]


def test_rows_that_cannot_be_read_lock_nothing(api: API, database: peewee.Database) -> None:
    gc.disable()
    try:
        change(database, 1, rank=WRONG_RANK)
        titles(api)
        change(database, 3, headline="Rain")
    finally:
        gc.enable()
    assert titles(api) == ["Sea", "Rain"]


def test_rows_in_a_circle_are_left_out(api: API, database: peewee.Database) -> None:
    with database:
        for number, up in ((2, 3), (3, 4), (4, 2)):
            row = {"id": number, "name": "Round", "slug": f"r{number}", "up": up, "changed": 5}
            Section.insert(row).execute()
    assert titles(api) == ["Sea", "Storm", "Calm"]
    assert len(problems(api)) == 3
    change(database, 3, Section, up=None)
    assert titles(api) == ["Sea", "Storm", "Calm", "Round", "Round", "Round"]


def test_rows_that_get_too_deep_are_left_out(api: API, database: peewee.Database) -> None:
    """The home page is on the first level, and the section 1 on the second."""
    rows = [{"id": n, "up": n - 1} for n in range(2, DEEPEST)]
    rows += [{"id": 1001, "up": 1}, {"id": 1002, "up": 1001}]
    named = [{"name": "Deep", "slug": f"s{row['id']}", "changed": 5, **row} for row in rows]
    with database:
        Section.insert_many(named).execute()
    assert problems(api) == []
    change(database, 1001, Section, up=DEEPEST - 2)
    assert api.status(f"pages/{SECTIONS + 1001}/") == 200
    assert api.status(f"pages/{SECTIONS + 1002}/") == 404
    (said,) = problems(api)
    assert f"is on level {DEEPEST + 1} of the tree, which has at most {DEEPEST}" in said


def test_rows_above_can_be_copied_later(database: peewee.Database) -> None:
    with database:
        Section.insert(id=2, name="Bay", slug="bay", up=3, changed=2).execute()
        Section.insert(id=3, name="Coast", slug="coast", up=1, changed=2).execute()
    models = followed()
    api = serve(database, [models[1], models[0], models[2]])
    assert urls(api)[SECTIONS + 2] == "/sea/coast/bay/"
    assert problems(api) == []


def test_what_is_left_out_is_logged_once(
    api: API, database: peewee.Database, caplog: pytest.LogCaptureFixture
) -> None:
    change(database, 1, slug="a/b")
    with caplog.at_level(logging.WARNING):
        titles(api)
        change(database, 3, headline="Rain")
        titles(api)
    assert [record.getMessage() for record in caplog.records] == problems(api)
    assert len(problems(api)) == 1


def test_an_id_of_the_sites_own_is_not_taken(api: API, database: peewee.Database) -> None:
    with writing(api) as writer:
        writer.add("pages", {**CONTENT["pages"][0], "id": POSTS + 4, "parent": HOME, "slug": "own"})
    with database:
        Post.insert(id=4, headline="Hail", slug="hail", changed=4).execute()
    assert api.json(f"pages/{POSTS + 4}/")["title"] == "Home"
    (problem,) = problems(api)
    assert "id: another object has this id already; give another ids_from" in problem


def test_child_objects_keep_ids_of_their_own(api: API, database: peewee.Database) -> None:
    models = followed()
    models[1].record = lambda post: {**post_record(post), "sources": [{"id": 1, "name": "Own"}]}
    api = serve(database, models)
    assert len([p for p in problems(api) if "the id of another" in p or "stands in" in p]) == 2
    delete(database, 2)
    delete(database, 3)
    assert problems(api) == []
    assert titles(api) == ["Sea", "Storm"]


def test_nothing_changes_while_a_row_waits(api: API, database: peewee.Database) -> None:
    with database:
        Post.insert(id=4, headline="Hail", slug="hail", section=9, changed=4).execute()
    first, second = (api.get("pages/").headers["ETag"] for _ in range(2))
    assert first == second
    (problem,) = problems(api)
    assert "Post 4" in problem


def test_rows_wait_for_content_of_the_sites_own(database: peewee.Database) -> None:
    api = serve(database, content={**CONTENT, "pages": [], "sites": []})
    assert len(problems(api)) == 4
    with writing(api) as writer:
        writer.add("pages", CONTENT["pages"][0])
        writer.put_site(**CONTENT["sites"][0])
    assert titles(api) == ["Sea", "Storm", "Calm"]


# Writing, loading and dumping.

REFUSED: list[Callable[[Writer], Any]] = [
    lambda writer: writer.add("pages", {"type": "f.PostPage", "title": "A", "parent": HOME}),
    lambda writer: writer.update("pages", POSTS + 1, title="Other"),
    lambda writer: writer.update("pages", HOME, type="f.PostPage"),
    lambda writer: writer.delete("pages", POSTS + 1),
    lambda writer: writer.delete("images", PHOTOS + 1),
    lambda writer: writer.move("pages", POSTS + 1) if False else writer.move(POSTS + 1, HOME),
    lambda writer: writer.publish(POSTS + 2),
    lambda writer: writer.alias(POSTS + 1, HOME, slug="b"),
    lambda writer: writer.translate(POSTS + 1, "fr"),
]


@pytest.mark.parametrize("write", REFUSED)
def test_rows_are_not_written(api: API, write: Callable[[Writer], Any]) -> None:
    with writing(api) as writer, pytest.raises(ContentError) as raised:
        write(writer)
    assert "changes only with them" in str(raised.value)
    assert titles(api) == ["Sea", "Storm", "Calm"]


def test_own_pages_are_not_below_rows(api: API) -> None:
    page = {"type": "f.HomePage", "title": "A", "slug": "a"}
    with writing(api) as writer, pytest.raises(ContentError, match="no other pages can be below"):
        writer.add("pages", {**page, "parent": SECTIONS + 1})


def test_pages_above_rows_are_not_deleted(api: API) -> None:
    own = {"type": "f.HomePage", "title": "A", "slug": "a", "parent": HOME}
    with writing(api) as writer:
        writer.add("pages", {**own, "id": 2})
        writer.add("pages", {**own, "id": 3, "parent": 2})
        writer.delete("pages", 2, descendants=True)
    api.load({**CONTENT, "sites": []})
    with writing(api) as writer, pytest.raises(ContentError, match="changes only with them"):
        writer.delete("pages", HOME, descendants=True)


def test_new_objects_have_ids_before_those_of_rows(api: API) -> None:
    with writing(api) as writer:
        added = writer.add("pages", {"type": "f.HomePage", "title": "A", "parent": HOME})
    assert added == HOME + 1


def test_records_of_rows_are_not_loaded(api: API) -> None:
    with pytest.raises(ContentError) as raised:
        api.load(api.dump())
    assert [str(problem) for problem in raised.value.problems] == [
        "pages[1], type: f.SectionPage has the rows of Section and changes only with them; leave "
        "out all of its records",
        "pages[2], type: f.PostPage has the rows of Post and changes only with them; leave out all "
        "of its records",
        "images[0], type: f.Picture has the rows of Photo and changes only with them; leave out "
        "all of its records",
    ]


def test_a_dump_is_loaded_elsewhere(api: API) -> None:
    other = API(make_site("memory", api.dump(), types=TYPES))
    for path in ("pages/?fields=*", "pages/?type=f.PostPage&fields=*", "images/?fields=*"):
        assert other.get(path).data == api.get(path).data


def test_loading_replaces_all_but_rows(api: API, database: peewee.Database) -> None:
    change(database, 1, headline="Rain")
    home = {**CONTENT["pages"][0], "title": "Start"}
    api.load({**CONTENT, "pages": [home]})
    assert api.json(f"pages/{HOME}/")["title"] == "Start"
    assert titles(api) == ["Sea", "Rain", "Calm"]


class FurtherPostPage(PostPage):
    app_label = "f"
    headline = fields.String(required=True)
    api_fields = [*PostPage.api_fields, "headline"]


FurtherPostPage.__name__ = "PostPage"


def test_migrating_reads_changed_types_from_rows(database: peewee.Database) -> None:
    serve(database)
    record = {"title": Post.headline, "headline": Post.headline, "parent": HOME}
    further = Followed(Post, FurtherPostPage, record, ids_from=POSTS, changed=Post.changed)
    models = [*followed()[::2], further]
    types = [t for t in TYPES if t is not PostPage]
    api = serve(database, models, content=None, types=[*types, FurtherPostPage])
    assert api.status("pages/") == 503
    with api.app.app_context():
        api.backend.migrate()
    assert titles(api, "type=f.PostPage&headline=Storm&rank=7") == ["Storm"]
    assert problems(api) == []


def test_words_of_rows_that_changed_before_migrating_are_forgotten(
    database: peewee.Database,
) -> None:
    serve(database)
    close_all()
    change(database, 1, text="<p>Cast off</p>")
    record = {"title": Post.headline, "text": Post.text, "headline": Post.headline, "parent": HOME}
    further = Followed(Post, FurtherPostPage, record, ids_from=POSTS, changed=Post.changed)
    types = [t for t in TYPES if t is not PostPage]
    models = [*followed()[::2], further]
    api = serve(database, models, content=None, types=[*types, FurtherPostPage])
    with api.app.app_context():
        api.backend.migrate()
    assert [titles(api, f"search={word}") for word in ("tie", "cast")] == [[], ["Storm"]]


def test_a_row_that_comes_again_is_found_by_its_new_words(
    api: API, database: peewee.Database
) -> None:
    change(database, 3, text="<p>Cast off</p>")
    assert titles(api, "search=cast") == ["Calm"]
    delete(database, 3)
    assert titles(api) == ["Sea", "Storm"]
    with database:
        Post.create(id=3, headline="Calm", slug="calm", text="<p>Sail</p>", changed=9)
    assert [titles(api, f"search={word}") for word in ("cast", "sail")] == [[], ["Calm"]]


def test_other_objects_of_the_type_are_kept(database: peewee.Database) -> None:
    own = {"id": 9, "type": "f.PostPage", "title": "Own", "slug": "own", "parent": HOME}
    content = {**CONTENT, "pages": [*CONTENT["pages"], own]}
    first = serve(database, followed()[::2], content=content)
    assert first.json("pages/9/")["title"] == "Own"
    api = serve(database, content=None)
    assert api.status("pages/") == 503
    (problem,) = problems(api)
    assert "there are 1 objects of f.PostPage already" in problem
    with writing(first) as writer:
        writer.delete("pages", 9)
    assert titles(api) == ["Sea", "Storm", "Calm"]


# Statements, processes, and what cannot be written.


@pytest.mark.parametrize(
    "path",
    [
        "pages/",
        "pages/?type=f.PostPage&fields=*",
        f"pages/{POSTS + 1}/",
        "images/",
        "pages/find/?id=9",
    ],
)
def test_requests_take_one_more_statement(api: API, path: str) -> None:
    def count() -> int:
        api.get(path)
        forget_totals(api)
        with noted(api) as statements:
            api.get(path)
        return len(statements)

    following = count()
    backend = storage(api)
    backend._following = None
    assert following == count() + 1


def test_few_rows_are_read_for_one_change(api: API, database: peewee.Database) -> None:
    with database:
        rows = [{"id": n, "headline": "P", "slug": f"p{n}", "changed": n} for n in range(4, 1204)]
        Post.insert_many(rows).execute()
    assert len(titles(api, "limit=1")) < 2
    change(database, 1, headline="Rain")
    with noted(api, lambda event: event) as made:
        assert api.json(f"pages/{POSTS + 1}/")["title"] == "Rain"
    assert len(made) < 50
    delete(database, 3)
    with noted(api) as made:
        assert api.status(f"pages/{POSTS + 3}/") == 404
    assert len(made) < 60


def test_two_sites_copy_a_change_once(api: API, database: peewee.Database, backend: str) -> None:
    other = serve(database, content=None)
    titles(other)
    change(database, 1, headline="Rain")
    with heard(api) as first, heard(other) as second:
        assert titles(api) == titles(other) == ["Sea", "Rain", "Calm"]
    assert len(first + second) == 1


def test_threads_copy_a_change_once(api: API, database: peewee.Database) -> None:
    others = [API(api.app) for _ in range(4)]
    titles(api)
    change(database, 1, headline="Rain")
    with heard(api) as tags, ThreadPoolExecutor(len(others)) as pool:
        found = [*pool.map(titles, others)]
    assert found == [["Sea", "Rain", "Calm"]] * len(others)
    assert len(tags) == 1


READ_ONLY = {
    "sqlite": ("PRAGMA query_only = 1", "PRAGMA query_only = 0"),
    "postgresql": (
        "SET default_transaction_read_only = on",
        "SET default_transaction_read_only = off",
    ),
    "mariadb": ("SET SESSION TRANSACTION READ ONLY", "SET SESSION TRANSACTION READ WRITE"),
}


def test_where_nothing_is_written_the_copies_stay(
    api: API, database: peewee.Database, backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    change(database, 1, headline="Rain")
    lock, unlock = READ_ONLY[backend]
    with database.connection_context():
        database.execute_sql(lock)
        assert titles(api) == titles(api) == ["Sea", "Storm", "Calm"]
        database.execute_sql(unlock)
        assert titles(api) == ["Sea", "Rain", "Calm"]
    assert [r.getMessage()[:28] for r in caplog.records].count("Changed rows are not copied:") == 1


@on_servers
def test_a_transaction_that_does_not_see_what_others_copy_is_answered(
    api: API, database: peewee.Database
) -> None:
    other = ThreadPoolExecutor(1)
    with database.connection_context(), database.atomic():
        assert titles(api) == ["Sea", "Storm", "Calm"]
        other.submit(change, database, 1, headline="Rain").result()
        assert other.submit(titles, api).result() == ["Sea", "Rain", "Calm"]
        Post.update(headline="Sun", changed=50).where(Post.id == 3).execute()
        assert titles(api)[0] == "Sea"
    assert titles(api) == ["Sea", "Rain", "Sun"]


def test_many_changes_show_before_all_is_ready_for_them(
    api: API,
    database: peewee.Database,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def analyze(*_: Any) -> None:
        raise peewee.OperationalError("must be owner of table")

    monkeypatch.setattr("flask_contentapi_peewee.backend.MANY", 0)
    monkeypatch.setattr(storage(api).engine, "analyze", analyze)
    change(database, 1, headline="Rain")
    assert titles(api) == ["Sea", "Rain", "Calm"]
    assert "not all is ready for it: The database" in caplog.text


# Configuration.


class Odd(peewee.Model):
    name = peewee.CharField(primary_key=True)


WRONG: list[tuple[Callable[[], list[Followed]], str]] = [
    (lambda: [Followed(Section, SectionPage)], "nothing tells when rows change"),
    (lambda: [Followed(Odd, SectionPage, mark=int)], "must be in the database"),
    (lambda: [Followed(Post, OldPostPage)], "OldPostPage is none of the types"),
    (lambda: [*followed(), followed()[1]], "another model gives f.PostPage already"),
    (lambda: [Followed(Post, PostPage, {"titel": 1})], "no field 'titel' to be given. Did you"),
    (lambda: [Followed(Post, PostPage, {"title": Section.name})], "title is a column of Section"),
    (lambda: [Followed(Post, PostPage, changed=Section.changed)], "changed must be a column"),
    (lambda: [Followed(Post, PostPage, changed=Post.changed, ids_from="9")], "ids_from must be"),  # type: ignore[arg-type]
    (
        lambda: followed(prefetch=[Section]),
        "prefetch must be a list of models, .* that foreign keys join",
    ),
    (lambda: followed(prefetch=["tags"]), "prefetch must be a list of models, or"),
    (lambda: followed(prefetch=Source), "prefetch must be a list of models, or"),
]


@pytest.mark.parametrize(("models", "why"), WRONG)
def test_what_cannot_be_followed_is_refused(
    database: peewee.Database, models: Callable[[], list[Followed]], why: str
) -> None:
    with pytest.raises(ConfigurationError, match=why):
        serve(database, models())


def test_keys_of_rows_must_be_numbers(database: peewee.Database) -> None:
    with database.bind_ctx([Odd]), pytest.raises(ConfigurationError, match="must be an integer"):
        serve(database, [Followed(Odd, SectionPage, mark=int)])


# Random changes.

IDS = st.integers(1, 6)
SECTION = st.builds(
    lambda id, up, slug: (Section, id, {"name": "S", "up": up, "slug": slug}),
    IDS,
    st.none() | IDS,
    st.sampled_from("abcdef"),
)
POST = st.builds(
    lambda id, section, slug, rank: (
        Post,
        id,
        {"headline": "P", "section": section, "slug": slug, "rank": rank},
    ),
    IDS,
    st.none() | IDS,
    st.sampled_from(["a", "g", "h", "i", "/"]),
    st.none() | IDS,
)
REMOVED = st.builds(lambda model, id: (model, id, None), st.sampled_from([Section, Post]), IDS)
STEPS = st.lists(st.lists(SECTION | POST | REMOVED, min_size=1, max_size=8), max_size=5)


def test_copies_are_what_new_copies_would_be(database: peewee.Database) -> None:
    api = serve(database)

    @given(steps=STEPS)
    def follow(steps: Any) -> None:
        with database:
            for model in reversed(MODELS):
                model.delete().execute()
        for step in steps:
            apply(database, step)
            compare(api)

    follow()


#: Values of ``changed``, which are used once.
numbers = count(1000)


def apply(database: peewee.Database, step: Any) -> None:
    """Makes some changes in one transaction."""
    with database:
        for model, row, values in step:
            given = {"changed": next(numbers), **(values or {})}
            if values is None:
                model.delete().where(model.id == row).execute()
            elif model.select().where(model.id == row).exists():
                model.update(given).where(model.id == row).execute()
            else:
                model.insert(id=row, **given).execute()


def compare(api: API) -> None:
    """Compares what is served with the rows, and with what is served after all were read anew."""
    served = {record["id"]: record for record in api.dump()["pages"]}
    left_out = {problem.partition(")")[0] for problem in problems(api)}
    rows = expected()
    assert len(served) - 1 + len(left_out) == len(rows)
    paths = urls(api)
    assert paths.keys() == served.keys()
    for identity in served.keys() - {HOME}:
        record = served[identity]
        assert record.items() >= rows[identity].items()
        assert paths[identity] == f"{paths[record['parent']]}{record['slug']}/"
    with api.app.app_context():
        api.backend.reload()
    assert {record["id"]: record for record in api.dump()["pages"]} == served


def expected() -> dict[int, dict[str, Any]]:
    """What the records of all rows have, by id."""
    found = {}
    for row in [*Section.select(), *Post.select()]:
        above = row.up if isinstance(row, Section) else row.section
        ids_from = SECTIONS if isinstance(row, Section) else POSTS
        parent = HOME if above is None else SECTIONS + above
        found[ids_from + row.id] = {"parent": parent, "slug": row.slug}
    return found


class Moved(peewee.Model):
    old_path = peewee.TextField()
    redirect_link = peewee.TextField()
    changed = peewee.IntegerField()


def test_rows_can_be_redirects(opened: peewee.Database) -> None:
    with opened.bind_ctx([Moved]):
        with opened:
            opened.drop_tables([Moved])
            opened.create_tables([Moved])
            Moved.create(old_path="old/", redirect_link="/new/", changed=1)
        models = [Followed(Moved, Redirect, changed=Moved.changed)]
        api = serve(opened, models, types=[Redirect], content={})
        assert api.status("redirects/find/?html_path=/old") == 302
        change(opened, 1, Moved, old_path="/older")
        assert api.status("redirects/find/?html_path=/old") == 404
        assert api.json("redirects/1/")["old_path"] == "/older"
        assert api.status("redirects/find/?html_path=/older") == 302

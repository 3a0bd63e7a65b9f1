"""Processes that are killed while they change a database, at each statement in turn."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from flask import Flask
from marshmallow import fields

from flask_contentapi import ContentAPI, Image, Page, Tags
from flask_contentapi.writer import Writer
from tests.api import API
from tests.conftest import MakeAPI
from tests.databases import on_databases, storage, writing
from tests.samples import blog, image, page, private, site
from tests.stores import fresh_address

pytestmark = [
    on_databases,
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork"),
]

#: How many of the steps of a change are tried, approximately.
MOST = 15
PATHS = (
    *("pages/?fields=*", "pages/?search=storm", "pages/?descendant_of=2", "pages/?ancestor_of=5"),
    *("pages/?type=blog.BlogPage&tags=night&fields=*", "images/?fields=*", "pages/4/"),
    *("pages/find/?html_path=/p2/p4/", "pages/find/?html_path=/p3/p2/p4/"),
)


def answers(api: API) -> list[bytes]:
    return [api.get(path).data for path in PATHS]


def content(prefix: str = "Page") -> dict[str, list[Any]]:
    """A site with a branch below page 2."""
    link = {"id": 1, "title": "Home", "link_page": 1}
    return {
        "locales": ["en"],
        "sites": [site(1)],
        "collections": [{"id": 1, "name": "All"}],
        "images": [image(1, tags=["night"], collection=1), image(2), image(3)],
        "pages": [
            page(1, slug="home", title=f"{prefix} home"),
            page(2, 1, title=f"{prefix} storm"),
            page(3, 1),
            blog(4, 2, tags=["night", "sea"], authors=[{"id": 1, "name": "Ada", "portrait": 1}]),
            blog(5, 4, title=f"{prefix} calm", related_links=[link], feed_image=2),
            page(6, 2, alias_of=5),
        ],
    }


# Killing.


class Steps:
    """Counts the steps of a process: its statements, and the moments before and after a commit.

    :param database: the database in which it makes them.
    :param last: the index of the step before which the process is killed.
    """

    def __init__(self, database: Any, last: int | None = None) -> None:
        self.taken = 0
        self._last = last
        self._database = database
        self._cursor, self._commit = database.cursor, database.commit

    def __enter__(self) -> Steps:
        self._database.cursor, self._database.commit = self.cursor, self.commit
        return self

    def __exit__(self, *_: object) -> None:
        del self._database.cursor, self._database.commit

    def _step(self) -> None:
        if self.taken == self._last:
            os.kill(os.getpid(), signal.SIGKILL)
        self.taken += 1

    def cursor(self, *args: Any, **options: Any) -> Any:
        self._step()
        return self._cursor(*args, **options)

    def commit(self) -> Any:
        self._step()
        done = self._commit()
        self._step()
        return done


def killed(api: API, change: Callable[[], object], steps: Iterable[int]) -> Iterator[None]:
    """For each step, makes a change in a process that is killed at it, and yields if it was."""
    for step in steps:
        child = os.fork()
        if child == 0:
            try:
                with Steps(storage(api).engine.database, step):
                    change()
                os._exit(0)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        assert status in (0, signal.SIGKILL)
        if status:
            yield


def some_of(steps: int) -> list[int]:
    """Some of many steps, including the first and the last ones."""
    return sorted(
        {*range(0, steps, 1 + steps // MOST), *range(min(4, steps)), *range(steps - 6, steps)}
    )


# Content.


def move(writer: Writer) -> None:
    writer.move(2, 3)


def delete(writer: Writer) -> None:
    writer.delete("pages", 2, descendants=True)


def several(writer: Writer) -> None:
    record = blog(20, 2, title="Storm", tags=["night"], authors=[{"id": 9, "name": "Bo"}])
    writer.add("pages", record, before=4)
    writer.move(3, 1, before=2)
    writer.update("pages", 2, slug="sea", title="Calm")
    writer.update("pages", 4, restriction=private(), tags=["sea"])
    writer.alias(4, 3, slug="four")
    writer.put_site(hostname="sea.example", root_page=2)
    writer.delete("images", 3)


CHANGES = [move, delete, several]


@pytest.fixture(scope="module")
def api(make_api: MakeAPI) -> API:
    return make_api(content())


def loaded(api: API) -> object:
    """Loads the content, and reads it, so that changes need not make sure of the tables first."""
    api.load(content())
    return state_of(api)


def state_of(api: API) -> object:
    return api.dump(), answers(api)


def assert_before_or_after(api: API, change: Callable[[], object]) -> None:
    """Kills a process at each step of a change, which has to be made completely or not at all."""
    known = [loaded(api)]
    with Steps(storage(api).engine.database) as steps:
        change()
    known.append(state_of(api))
    assert known[0] != known[1]
    loaded(api)
    seen = []
    for _ in killed(api, change, some_of(steps.taken)):
        found = state_of(api)
        assert [*api.backend.check()] == []
        seen.append(known.index(found))
        if seen[-1]:
            loaded(api)
    assert seen == sorted(seen)
    assert {*seen} == {0, 1}


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_killed_change_is_made_as_a_whole_or_not_at_all(
    api: API, change: Callable[[Writer], None]
) -> None:
    def make() -> None:
        with writing(api) as writer:
            change(writer)

    assert_before_or_after(api, make)


def test_a_killed_load_leaves_the_old_content_or_the_new(api: API) -> None:
    assert_before_or_after(api, lambda: api.load(content("Another")))


# Tables.


def types(*, new: bool) -> list[Any]:
    """The types of a site before or after a release."""

    class Note(Page):
        app_label = "w"
        text = fields.String()
        more = fields.String()
        number = fields.Float() if new else fields.Integer()
        if new:
            stars = fields.Integer(load_default=3)
            tags = Tags()
        search_fields = ["text", "more"] if new else ["text"]
        api_fields = ["text", "number", *(["stars", "tags"] if new else [])]

    class Picture(Image):
        app_label = "w"
        if new:
            place = fields.String()
            api_fields = ["place"]

    return [Note, Picture]


NOTES = {
    "sites": [site(1)],
    "pages": [
        page(1, slug="home", type="w.Note", text="storm", more="seven", number=7),
        page(2, 1, type="w.Note", text="calm", number=8),
        page(3, 1, type="w.Note"),
    ],
    "images": [image(1, type="w.Picture")],
}
ASKED = (
    *("pages/?type=w.Note&fields=*", "pages/?type=w.Note&order=-number", "pages/?search=storm"),
    *("pages/?search=seven", "pages/2/", "images/?fields=*"),
)


def site_with(address: str, *, new: bool) -> API:
    app = Flask("site")
    app.config.update({"TESTING": True, "CMSAPI_BACKEND": address})
    ContentAPI(app, types=types(new=new))
    return API(app)


def notes_at(address: str) -> tuple[API, API]:
    """The site before and after a release, with tables that are not migrated yet."""
    old, new = (site_with(address, new=number) for number in (False, True))
    old.backend.create()
    old.load(NOTES)
    return old, new


def seen_by(api: API) -> list[bytes]:
    return [api.get(path).data for path in ASKED]


def test_a_killed_migration_is_made_as_a_whole_or_gone_on_with(backend: str) -> None:
    old, new = notes_at(fresh_address(backend))
    before = seen_by(old)
    with Steps(storage(new).engine.database) as steps:
        new.backend.migrate()
    after, wanted = seen_by(new), indexes(new)
    assert new.ids("pages/?type=w.Note&number=7&stars=3&search=seven") == [1]
    old, new = notes_at(fresh_address(backend))
    for _ in killed(new, new.backend.migrate, some_of(steps.taken)):
        if new.status("pages/") == 503:
            assert "migrate" in next(iter(new.backend.check())).message
            assert backend == "mariadb" or seen_by(old) == before
    new.backend.migrate()
    assert seen_by(new) == after
    assert indexes(new) == wanted
    assert [*new.backend.check()] == []
    assert [*new.backend.notes()] == []


def test_a_field_can_become_what_it_was_before(backend: str) -> None:
    address = fresh_address(backend)
    notes_at(address)[0].load({"pages": [page(1, type="w.Note")]})
    for new in (True, False, True, False):
        api = site_with(address, new=new)
        api.backend.migrate()
        assert api.ids("pages/?type=w.Note&order=number") == [1]


def test_killed_preparations_are_gone_on_with(backend: str) -> None:
    other = site_with(fresh_address(backend), new=True)
    with Steps(storage(other).engine.database) as steps:
        other.backend.create()
    api = site_with(fresh_address(backend), new=True)
    for _ in killed(api, api.backend.create, some_of(steps.taken)):
        if api.status("pages/") == 503:
            assert "init-db" in next(iter(api.backend.check())).message
    api.backend.create()
    assert indexes(api) == indexes(other)
    api.load({"pages": [page(1, type="w.Note", text="storm", tags=["a"])]})
    assert api.ids("pages/?search=storm") == [1]
    assert [*api.backend.check()] == []


def indexes(api: API) -> dict[str, set[str]]:
    """The indexes of all tables, by table."""
    database: Any = storage(api).engine.database
    with database.connection_context():
        tables = [name for name in database.get_tables() if "_words_" not in name]
        return {table: {index.name for index in database.get_indexes(table)} for table in tables}

"""Several processes and threads with one database: some serve while others write."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from flask import Flask
from marshmallow import fields

from flask_contentapi import ContentAPI, Page, Tags
from flask_contentapi.errors import BackendUnavailable
from flask_contentapi.writer import Writer
from tests.api import API, PREFIX
from tests.conftest import MakeAPI
from tests.databases import api_at, asked, noted, on_databases, on_servers, storage, writing
from tests.pages import ROOT
from tests.samples import image, page, site
from tests.servers import free_port, start, stop
from tests.stores import fresh_address

pytestmark = [on_databases, pytest.mark.slow]

CONTENT = {
    "locales": ["en"],
    "sites": [site(1, is_default=True)],
    "pages": [
        page(1, slug="home"),
        page(2, 1),
        page(3, 1),
        *(page(number, 2) for number in range(10, 60)),
    ],
    "images": [image(1), image(2)],
}
#: The number of changes while others serve, and the number of threads or processes that make them.
CHANGES = 60
WRITERS = 4


class Remote(API):
    """An application in a process of its own.

    :param port: the port that it listens on.
    """

    def __init__(self, port: int) -> None:
        self._address = f"http://127.0.0.1:{port}{PREFIX}"

    def text(self, path: str) -> str:
        with urlopen(f"{self._address}/{path}") as response:  # noqa: S310 - our own server
            body: bytes = response.read()
        return body.decode()

    def status(self, path: str) -> int:
        try:
            self.text(path)
        except HTTPError as error:
            return error.code
        return 200


@pytest.fixture
def address(backend: str) -> str:
    """The address of a database with content."""
    address = fresh_address(backend)
    api_at(address, CONTENT).backend.close()
    return address


@pytest.fixture
def processes(address: str) -> Iterator[list[Remote]]:
    """Two processes that serve the database."""
    ports = [free_port(), free_port()]
    started = [start(gunicorn(address, port), port, cwd=ROOT) for port in ports]
    yield [Remote(port) for port in ports]
    for process in started:
        stop(process)


def gunicorn(address: str, port: int) -> list[str]:
    """The command that serves a database on a port."""
    app = f"tests.databases:app_at('{address}')"
    bind = ["--bind", f"127.0.0.1:{port}", "--threads", "4"]
    return [sys.executable, "-m", "gunicorn", "--pythonpath", "backends", *bind, app]


def test_each_change_shows_in_the_next_request_to_every_process(
    address: str, processes: list[Remote]
) -> None:
    first, second = processes
    api = api_at(address)
    seen, wanted = [], []
    with (
        asked(first, "pages/?fields=*&limit=20", threads=2) as some,
        asked(second, "pages/?search=page", threads=2) as more,
    ):
        for number in range(CHANGES):
            with writing(api) as writer:
                change(writer, number)
            wanted.append([f'{{"title":"Change {number}"}}'] * 2)
            seen.append([process.text("pages/2/?fields=_,title") for process in processes])
    assert seen == wanted
    assert (set(some), set(more)) == ({200}, {200})
    assert [*api.backend.check()] == []


def test_who_has_an_answer_learns_of_each_change_elsewhere(address: str) -> None:
    here, there = api_at(address), api_at(address)
    for number in range(3):
        tag = here.get("pages/2/").headers["ETag"]
        assert [conditional(here, tag) for _ in range(3)] == [304] * 3
        with writing(there) as writer:
            change(writer, number)
        assert conditional(here, tag) == 200


def test_a_change_while_a_client_is_told_that_there_is_none_is_seen_next(address: str) -> None:
    here, there = api_at(address), api_at(address)
    tag = here.get("pages/2/").headers["ETag"]
    changes = iter(range(1))

    def interfere(_: Any) -> None:
        for number in changes:
            with writing(there) as writer:
                change(writer, number)

    with noted(here, interfere):
        assert conditional(here, tag) == 304
    assert conditional(here, tag) == 200


@pytest.mark.parametrize(
    ("path", "add"),
    [
        ("pages/?site=b.example", lambda w: w.put_site(hostname="b.example", root_page=1)),
        ("pages/?child_of=100", lambda w: w.add("pages", page(100, 1))),
        ("pages/100/", lambda w: w.add("pages", page(100, 1))),
    ],
    ids=["site", "parent", "page"],
)
def test_what_is_missing_is_there_when_somebody_else_has_added_it(
    address: str, path: str, add: Callable[[Writer], object]
) -> None:
    here = api_at(address)
    assert [here.status(path) for _ in range(2)] in ([404, 404], [400, 400])
    with writing(api_at(address)) as writer:
        add(writer)
    assert here.status(path) == 200


def conditional(api: API, tag: str) -> int:
    """The status for a client that has a page already."""
    return api.get("pages/2/", headers={"If-None-Match": tag}).status_code


def change(writer: Writer, number: int) -> None:
    """Changes a page that is watched, and others."""
    writer.update("pages", 2, title=f"Change {number}")
    writer.add("pages", page(100 + number, 3))
    writer.move(10 + number % 50, 3 - number % 2)
    if number:
        writer.delete("pages", 99 + number)


# Writers.


def together(change: Callable[[int], None]) -> None:
    """Makes many changes in several threads at the same time."""
    with ThreadPoolExecutor(WRITERS) as threads:
        assert [*threads.map(change, range(CHANGES))] == [None] * CHANGES


def in_processes(api: API, change: Callable[[int], None]) -> None:
    """Makes many changes in several processes at the same time."""
    children = []
    for first in range(WRITERS):
        child = os.fork()
        if child == 0:
            try:
                for number in range(first, CHANGES, WRITERS):
                    change(number)
                os._exit(0)
            finally:
                os._exit(1)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * WRITERS


@pytest.fixture
def api(make_api: MakeAPI) -> API:
    return make_api(CONTENT, config={"CMSAPI_LIMIT_MAX": None})


def add_to(api: API) -> Callable[[int], None]:
    """Returns a function that adds a page without a given id or slug below page 3."""

    def add(number: int) -> None:
        with writing(api) as writer:
            record: Any = {**page(0, 3, title="Same"), "id": None, "slug": None}
            first = api.ids("pages/?child_of=3&limit=1")
            writer.add("pages", record, before=None if number % 2 or not first else first[0])

    return add


def assert_complete(api: API) -> None:
    """All added pages exist, each with its own place, id and slug."""
    items = api.items("pages/?child_of=3&limit=500")
    assert len({item["id"] for item in items}) == CHANGES
    slugs = {item["meta"]["slug"] for item in items}
    assert slugs == {"same", *(f"same-{number}" for number in range(2, CHANGES + 1))}
    assert [*api.backend.check()] == []
    content, answer = api.dump(), api.get("pages/?limit=500&fields=*").data
    api.load(content)
    assert api.get("pages/?limit=500&fields=*").data == answer


def test_writers_in_threads_build_on_each_other(api: API) -> None:
    together(add_to(api))
    assert_complete(api)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_writers_in_processes_build_on_each_other(api: API) -> None:
    in_processes(api, add_to(api))
    assert_complete(api)


#: What gives transactions the strictest isolation, as the settings of a server can.
STRICT = {
    "postgresql": "options=-c%20default_transaction_isolation=serializable",
    "mariadb": "init_command=SET%20tx_isolation='SERIALIZABLE'",
}


@on_servers
def test_writers_in_any_isolation_build_on_each_other(address: str, backend: str) -> None:
    api = api_at(f"{address}?{STRICT[backend]}")
    together(add_to(api))
    assert api.total("pages/?child_of=3") == CHANGES


def test_branches_that_many_move_at_once_stay_whole(api: API) -> None:
    def move(number: int) -> None:
        with writing(api) as writer:
            writer.move(10 + number % 50, 10 + (number + 1) % 50 if number % 50 < 49 else 2)

    together(move)
    ids = api.ids("pages/?limit=500")
    assert sorted(ids) == [1, 2, 3, *range(10, 60)]
    content = api.dump()
    before = api.get("pages/?limit=500&fields=*").data
    api.load(content)
    assert api.get("pages/?limit=500&fields=*").data == before


def test_who_waits_too_long_for_another_writer_is_told(
    address: str, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    first, second = api_at(address), api_at(address)
    monkeypatch.setattr("flask_contentapi_peewee.sqlite.WAIT_TO_WRITE", 0.1)
    limit = {"mariadb": "SET innodb_lock_wait_timeout = 1", "postgresql": "SET lock_timeout = 100"}
    database = storage(second).engine.database
    with database.connection_context(), writing(first):
        if backend in limit:
            database.execute_sql(limit[backend])
        with pytest.raises(BackendUnavailable, match=r"[Ll]ock"), writing(second):
            pass
    with writing(second) as writer:
        writer.update("pages", 2, title="Late")
    assert first.json("pages/2/")["title"] == "Late"


# Dumps.


def test_a_dump_has_the_content_of_one_moment(api: API) -> None:
    before = api.dump()
    other = api_at(str(api.app.config["CMSAPI_BACKEND"]))
    records = iter(api.backend.dump())
    first = next(records)
    with ThreadPoolExecutor(1) as thread:
        thread.submit(change_in_between, other).result()
    sections: dict[str, list[Any]] = {}
    for section, record in (first, *records):
        sections.setdefault(section, []).append(record)
    assert sections == before
    assert api.dump() != before


def change_in_between(api: API) -> None:
    with writing(api) as writer:
        writer.delete("pages", 10)
        writer.update("pages", 59, title="Changed")


#: A program that ends while it reads a snapshot.
UNFINISHED = """
import sys
from flask_contentapi_peewee import backend
from tests.databases import api_at

# It goes after what closing it needs.
backend.snapshot = api_at(sys.argv[1]).backend.snapshot_reader()
print([*backend.snapshot.__enter__().locales])
"""


def test_a_program_that_ends_within_a_snapshot_complains_of_nothing(address: str) -> None:
    command = [sys.executable, "-c", UNFINISHED, address]
    path = {**os.environ, "PYTHONPATH": "backends"}
    done = subprocess.run(command, cwd=ROOT, env=path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("['en']\n", "")


def test_what_is_being_dumped_is_not_changed_by_who_dumps_it(api: API) -> None:
    records = iter(api.backend.dump())
    next(records)
    with pytest.raises(RuntimeError, match="take all of it first"), writing(api):
        pass
    assert [*records]
    with writing(api) as writer:
        writer.update("pages", 2, title="Afterwards")


# Tables.


def test_tables_that_several_make_at_once_are_made_once(backend: str) -> None:
    address = fresh_address(backend)
    apis = [api_at(address) for _ in range(WRITERS)]
    assert at_once(apis, lambda api: api.backend.create()) == [None] * WRITERS
    apis[0].load(CONTENT)
    assert [api.status("pages/10/") for api in apis] == [200] * WRITERS


def test_tables_that_several_migrate_at_once_are_changed_once(backend: str) -> None:
    class Before(Page):
        app_label = "x"

    class After(Page):
        app_label = "x"
        note = fields.String(load_default="none")
        tags = Tags()
        api_fields = ["note"]

    After.__name__ = "Before"
    address = fresh_address(backend)
    make_site(address, [Before]).load({"pages": [page(1, type="x.Before")]})
    apis = [make_site(address, [After]) for _ in range(WRITERS)]
    done = at_once(apis, lambda api: [*api.backend.migrate()])
    assert sorted(map(bool, done)) == [False] * (WRITERS - 1) + [True]
    assert [api.json("pages/1/")["note"] for api in apis] == ["none"] * WRITERS


def make_site(address: str, types: list[type[Page]]) -> API:
    """A site with some types at a database, whose tables are made if they are missing."""
    app = Flask("site")
    app.config.update(TESTING=True, CMSAPI_BACKEND=address)
    ContentAPI(app, types=types)
    api = API(app)
    api.backend.create()
    return api


def at_once(apis: list[API], do: Callable[[API], Any]) -> list[Any]:
    """The results of several applications that do something at the same time."""
    ready = threading.Barrier(len(apis))

    def wait_and_do(api: API) -> Any:
        with api.app.app_context():
            ready.wait()
            return do(api)

    with ThreadPoolExecutor(len(apis)) as threads:
        return [*threads.map(wait_and_do, apis)]

"""Connections: taken for each request and returned; those of the site itself are left alone."""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

import peewee
import pytest

from flask_contentapi.errors import BackendUnavailable, ContentError
from flask_contentapi.query import Viewer
from flask_contentapi_peewee import PeeweeBackend
from tests.api import API
from tests.conftest import MakeAPI
from tests.databases import api_at, asked, noted, on_databases, storage, until, writing
from tests.samples import image, page, private, site
from tests.servers import PATIENCE
from tests.stores import fresh_address

pytestmark = [on_databases, pytest.mark.slow]

CONTENT = {
    "sites": [site(1)],
    "pages": [page(1, slug="home"), page(2, 1), page(3, 1, restriction=private())],
}
#: Requests with the status of the answer; every second one is an error.
REQUESTS = [
    ("pages/?fields=*", 200),
    ("pages/?limit=x", 400),
    ("pages/2/", 200),
    ("pages/99/", 404),
    ("pages/find/?html_path=/p2/", 302),
    ("pages/?child_of=99", 400),
    ("pages/?search=page&order=-title", 200),
    ("images/9/", 404),
    ("documents/", 200),
    ("nothing/", 404),
]


@pytest.fixture
def address(backend: str) -> str:
    """The address of a database with content."""
    address = fresh_address(backend)
    api_at(address, CONTENT).backend.close()
    return address


def lent(api: API) -> int:
    """How many connections are in use."""
    database: Any = storage(api).engine.database
    return len(database._in_use)


def test_two_connections_are_enough_for_eight_threads(address: str) -> None:
    api = api_at(f"{address}?max_connections=2")
    asked = REQUESTS * 20
    with ThreadPoolExecutor(8) as threads:
        statuses = [*threads.map(lambda request: api.status(request[0]), asked)]
    assert statuses == [status for _, status in asked]
    assert lent(api) == 0


class Mistake(Exception):
    """An error in a site's own code."""


def fail(restriction: Mapping[str, Any]) -> bool:
    raise Mistake


def test_a_mistake_in_the_sites_code_costs_no_connection(make_api: MakeAPI) -> None:
    api = make_api(CONTENT, can_view=fail)
    for _ in range(30):
        with pytest.raises(Mistake):
            api.get("pages/")
    assert lent(api) == 0


def test_a_change_that_fails_costs_no_connection(address: str) -> None:
    api = api_at(f"{address}?max_connections=1")
    for _ in range(3):
        with pytest.raises(ContentError), writing(api) as writer:
            writer.move(2, 2)
        with pytest.raises(ContentError):
            api.load({"pages": [page(1, 7)]})
        with pytest.raises(Mistake), writing(api):
            raise Mistake
    assert lent(api) == 0
    assert api.status("pages/") == 200


def test_a_dump_that_nobody_reads_to_its_end_costs_no_connection(address: str) -> None:
    api = api_at(f"{address}?max_connections=1")
    records = api.backend.dump()
    next(records)
    del records
    assert lent(api) == 0
    assert api.status("pages/") == 200


def read_and_forget(api: API) -> None:
    """Opens a reader that nobody closes, and that only garbage collection finds."""
    opened = api.backend.snapshot_reader()
    around: list[object] = [opened, opened.__enter__()]
    around.append(around)


def test_a_reader_that_nobody_closes_costs_no_connection_and_undoes_nothing(address: str) -> None:
    api = api_at(address)
    for number in range(5):
        read_and_forget(api)
        with writing(api) as writer:
            writer.update("pages", 2, title=f"Title {number}")
            gc.collect()
        assert api.json("pages/2/")["title"] == f"Title {number}"
    with api.backend.snapshot_reader():
        assert lent(api) == 1


def test_a_reader_that_nobody_closes_may_be_found_while_its_thread_connects(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = api_at(f"{address}?stale_timeout=600")
    pool: Any = storage(api).engine.database
    connect = pool._connect
    monkeypatch.setattr(pool, "_connect", lambda: [gc.collect(), connect()][1])
    read_and_forget(api)
    asked = threading.Thread(target=api.get, args=["pages/"], daemon=True)
    asked.start()
    asked.join(PATIENCE)
    assert not asked.is_alive()


def test_who_waits_too_long_for_a_connection_gets_503(address: str) -> None:
    api = api_at(f"{address}?max_connections=1&timeout=0.2")
    assert api.status("pages/") == 200
    with held(storage(api).engine.database):
        answer = api.get("pages/")
    assert answer.status_code == 503
    assert "Retry-After" in answer.headers
    assert api.status("pages/") == 200


def test_who_has_the_answer_waits_for_no_connection(address: str) -> None:
    api = api_at(f"{address}?max_connections=1&timeout=0.2")
    known = {"If-None-Match": api.get("pages/").headers["ETag"]}
    assert api.get("pages/", headers=known).status_code == 304
    with held(storage(api).engine.database):
        assert api.get("pages/", headers=known).status_code == 304


def test_who_has_the_answer_is_lent_a_connection_where_nothing_can_be_watched(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = api_at(address)
    known = {"If-None-Match": api.get("pages/").headers["ETag"]}
    pool: Any = storage(api).engine.database
    tried = []

    def refuse() -> None:
        tried.append(True)
        raise peewee.OperationalError("There are too many already.")

    monkeypatch.setattr(pool, "connect_outside_pool", refuse)
    pool.close_idle()
    for _ in range(3):
        with noted(api) as statements:
            assert api.get("pages/", headers=known).status_code == 304
        assert len(statements) == 1
    assert len(tried) == 1


@contextmanager
def held(database: peewee.Database) -> Iterator[None]:
    """Lets another thread hold a connection meanwhile."""
    has, may_go = threading.Event(), threading.Event()

    def hold() -> None:
        with database.connection_context():
            has.set()
            may_go.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    has.wait()
    yield
    may_go.set()
    thread.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_processes_that_were_forked_share_no_connection(address: str) -> None:
    api = api_at(f"{address}?max_connections=1")
    assert api.status("pages/") == 200
    child = os.fork()
    if child == 0:
        os._exit(0 if [api.status("pages/") for _ in range(5)] == [200] * 5 else 1)
    assert [api.status("pages/") for _ in range(5)] == [200] * 5
    assert os.waitpid(child, 0)[1] == 0
    assert api.status("pages/") == 200


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_who_is_forked_while_others_ask_can_ask_as_well(address: str) -> None:
    api = api_at(f"{address}?max_connections=4")
    with asked(api, "pages/?fields=*") as statuses:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                os._exit(0 if api.status("pages/2/") == 200 else 1)
            assert os.waitpid(child, 0)[1] == 0
    assert {*statuses} <= {200}


def test_what_is_closed_while_others_ask_is_opened_again(address: str) -> None:
    api = api_at(address)
    known = {"If-None-Match": api.get("pages/2/").headers["ETag"]}
    with asked(api, "pages/?fields=*") as statuses:
        for _ in range(50):
            api.backend.close()
            assert api.get("pages/2/", headers=known).status_code == 304
    assert {*statuses} <= {200}
    api.backend.close()
    assert lent(api) == 0


@pytest.mark.parametrize("known", ["version", "next_change"])
def test_who_waits_for_a_connection_lets_others_use_theirs(address: str, known: str) -> None:
    api = api_at(f"{address}?max_connections=1")
    database: Any = storage(api).engine.database
    with ThreadPoolExecutor(1) as threads, database.connection_context():
        with storage(api).reader() as reader:
            assert known == "version" or reader.next_change(Viewer(datetime.now(UTC))) is None
        waiting = threads.submit(api.status, "pages/?order=title")
        until(lambda: database._pool_available._waiters)
        assert api.status("pages/") == 200
    assert waiting.result() == 200


def test_statements_are_in_the_log_of_peewee(
    address: str, caplog: pytest.LogCaptureFixture
) -> None:
    api = api_at(address)
    assert api.status("pages/") == 200
    with caplog.at_level("DEBUG", "peewee"):
        assert api.status("pages/?fields=_,title") == 200
    assert any("contentapi_pages" in said for said in caplog.messages)


def test_what_a_lent_connection_has_not_ended_is_taken_back(address: str) -> None:
    api = api_at(address)
    database, pages = storage(api).engine.database, storage(api).tables.endpoints["pages"].base
    with database.connection_context():
        database.execute_sql("BEGIN")
        pages.model.update({pages.fields["title"]: "Undone"}).execute()
    assert api.json("pages/2/")["title"] == "Page 2"


@pytest.mark.backends("postgresql")
def test_prepared_statements_can_be_gone(address: str) -> None:
    api = api_at(address)
    database = storage(api).engine.database
    with database.connection_context():
        for number in range(10):
            assert api.json(f"pages/2/?_={number}")["title"] == "Page 2"
        database.execute_sql("DEALLOCATE ALL")
        assert api.json("pages/2/?_=again")["title"] == "Page 2"


@pytest.mark.backends("postgresql")
def test_few_statements_are_prepared(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flask_contentapi_peewee.connections.MOST_PREPARED", 2)
    api = api_at(address)
    database = storage(api).engine.database
    kept = "SELECT COUNT(*) FROM pg_prepared_statements WHERE starts_with(name, 'contentapi_')"
    with database.connection_context():
        for field in ("title", "slug", "locale", "seo_title"):
            for number in range(10):
                assert api.status(f"pages/?fields=_,{field}&_={number}") == 200
        assert database.execute_sql(kept).fetchall() == [(2,)]


@pytest.mark.backends("postgresql")
def test_statements_that_are_gone_can_make_room_for_others(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flask_contentapi_peewee.connections.MOST_PREPARED", 2)
    api = api_at(address)
    database = storage(api).engine.database
    with database.connection_context():
        for number in range(10):
            assert api.status(f"pages/?fields=_,title&_={number}") == 200
        database.execute_sql("DEALLOCATE ALL")
        for field in ("slug", "locale", "seo_title"):
            assert api.status(f"pages/?fields=_,{field}") == 200


@pytest.mark.backends("postgresql")
def test_statements_that_fail_now_and_then_are_prepared_once(address: str) -> None:
    api, locking = api_at(f"{address}?options=-c%20lock_timeout%3D20"), api_at(address)
    database, other = (storage(each).engine.database for each in (api, locking))
    with database.connection_context(), other.connection_context():
        for time in range(2):
            for number in range(10):
                assert api.status(f"pages/?_={time}-{number}") == 200
            with other.atomic():
                other.execute_sql("LOCK TABLE contentapi_pages IN ACCESS EXCLUSIVE MODE")
                assert api.status(f"pages/?_={time}") == 503
        kept = "SELECT statement FROM pg_prepared_statements WHERE starts_with(name, 'contentapi_')"
        found = database.execute_sql(kept).fetchall()
        assert len(found) == len({*found}) > 0


@pytest.mark.backends("postgresql")
def test_prepared_statements_follow_columns_that_change(address: str) -> None:
    api, other = api_at(address), api_at(address)
    for number in range(10):
        assert api.json(f"pages/2/?_={number}")["title"] == "Page 2"
    change = "ALTER TABLE contentapi_pages ALTER title TYPE {}"
    for to in ('VARCHAR COLLATE "C"', 'TEXT COLLATE "C"'):
        with storage(other).engine.database.connection_context():
            storage(other).engine.database.execute_sql(change.format(to))
        assert api.json(f"pages/2/?_={to}")["title"] == "Page 2"


@pytest.mark.backends("postgresql")
def test_nothing_is_prepared_if_the_driver_may_not(address: str) -> None:
    api = api_at(address)
    database = storage(api).engine.database
    with database.connection_context():
        database.connection().prepare_threshold = None
        for number in range(10):
            assert api.json(f"pages/2/?_={number}")["title"] == "Page 2"
        kept = database.execute_sql("SELECT name FROM pg_prepared_statements").fetchall()
        assert kept == []


@pytest.mark.backends("postgresql")
def test_statements_of_others_in_a_lent_connection_are_never_asked(address: str) -> None:
    api, other = api_at(address), api_at(address)
    first, second = (storage(each).engine.database for each in (api, other))
    names: list[set[str]] = []
    for each, database in ((api, first), (other, second)):
        with database.connection_context():
            for number in range(10):
                assert each.status(f"pages/2/?_={number}") == 200
            found = database.execute_sql("SELECT name FROM pg_prepared_statements").fetchall()
            names.append({name for (name,) in found})
    assert names[0]
    assert names[1]
    assert not names[0] & names[1]


# The site's own connections.


@pytest.fixture
def own(address: str, backend: str) -> Iterator[peewee.Database]:
    """A database with content, as a site itself opens it."""
    pooled: Any = storage(api_at(address)).engine.database
    if backend == "sqlite":
        database: peewee.Database = peewee.SqliteDatabase(pooled.database, uri=True)
    elif backend == "postgresql":
        database = peewee.PostgresqlDatabase(address, prefer_psycopg3=True)
    else:
        host = pooled.connect_params["hosts"][0]
        database = peewee.MySQLDatabase(pooled.database, **host, user=pooled.connect_params["user"])
    yield database
    database.close()


def test_an_open_connection_of_the_site_is_used_and_left_open(own: peewee.Database) -> None:
    api = api_at(PeeweeBackend.on(own))
    own.connect()
    connection = own.connection()
    for path, status in REQUESTS:
        assert api.status(path) == status
        assert own.connection() is connection
    with writing(api) as writer:
        writer.update("pages", 2, title="Another")
    assert own.connection() is connection
    assert api.json("pages/2/")["title"] == "Another"


def test_a_connection_that_the_site_has_not_opened_is_closed(own: peewee.Database) -> None:
    api = api_at(PeeweeBackend.on(own))
    for path, _ in REQUESTS:
        api.get(path)
        assert own.is_closed()
    with writing(api):
        pass
    assert own.is_closed()


def test_a_database_that_does_not_connect_by_itself_is_connected_to(own: peewee.Database) -> None:
    own.autoconnect = False
    api = api_at(PeeweeBackend.on(own))
    answer = api.get("pages/")
    assert api.get("pages/", headers={"If-None-Match": answer.headers["ETag"]}).status_code == 304
    assert own.is_closed()


def test_a_change_is_part_of_the_sites_transaction(own: peewee.Database) -> None:
    api = api_at(PeeweeBackend.on(own))
    with own.connection_context():
        with own.atomic() as transaction:
            with writing(api) as writer:
                writer.update("pages", 2, title="Undone")
            assert api.json("pages/2/")["title"] == "Undone"
            transaction.rollback()
        assert api.json("pages/2/")["title"] == "Page 2"


def test_a_load_is_part_of_the_sites_transaction(own: peewee.Database) -> None:
    api = api_at(PeeweeBackend.on(own))
    with own.connection_context():
        with own.atomic() as transaction:
            api.load({"pages": [page(1)]})
            assert api.total("pages/") == 1
            transaction.rollback()
        assert api.total("pages/") == 2


def test_a_transaction_that_began_before_another_change_mixes_nothing(
    own: peewee.Database, address: str
) -> None:
    api, other = api_at(PeeweeBackend.on(own)), api_at(address)
    with writing(other) as writer:
        writer.add("images", image(1, tags=["old"]))
    # Who cannot see the other change has to begin anew.
    with own.connection_context(), suppress(BackendUnavailable), own.atomic():
        assert api.ids("images/?tags=old") == [1]
        with writing(other) as writer:
            writer.update("images", 1, tags=["new"])
        with writing(api) as writer:
            writer.update("images", 1, credit="Somebody")
    assert other.json("images/1/")["meta"]["tags"] == ["new"]
    assert (other.ids("images/?tags=new"), other.ids("images/?tags=old")) == ([1], [])


def test_closing_the_backend_leaves_the_sites_database_open(own: peewee.Database) -> None:
    backend = PeeweeBackend.on(own)
    own.connect()
    backend.close()
    assert not own.is_closed()

"""Databases that go down while a site is running, and come back."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import peewee
import pytest

from flask_contentapi.errors import BackendUnavailable, ConfigurationError
from flask_contentapi_peewee import PeeweeBackend
from flask_contentapi_peewee.documents import Inserter
from tests.api import API
from tests.databases import api_at, asked, on_servers, on_sqlite, storage, until, writing
from tests.samples import page, site
from tests.servers import Daemon, new_mariadb, new_postgresql, why_missing
from tests.stores import leave_out

pytestmark = [on_servers, pytest.mark.slow]

CONTENT = {"sites": [site(1)], "pages": [page(1, slug="home"), page(2, 1)]}
NAME = "contentapi_interrupted"
NEW = {"postgresql": new_postgresql, "mariadb": new_mariadb}


def assert_unavailable(api: API, path: str = "pages/?fields=*") -> None:
    answer = api.get(path)
    assert answer.status_code == 503
    assert answer.get_json() == {"message": "The content cannot be read now; try again later."}
    assert int(answer.headers["Retry-After"]) > 0
    assert answer.headers["Cache-Control"] == "no-store"


# Servers.


@pytest.fixture(scope="module")
def daemon(backend: str) -> Iterator[Daemon]:
    made = NEW[backend]()
    if made is None:
        leave_out(why_missing(backend))
    made.start()
    made.server.create_database(NAME)
    api_at(f"{made.server.address}/{NAME}", CONTENT)
    yield made
    made.stop()


@pytest.fixture
def server(daemon: Daemon) -> Daemon:
    """A running server."""
    daemon.start()
    until(lambda: served(daemon).status("pages/") == 200)
    return daemon


def served(server: Daemon, options: str = "") -> API:
    """The API of a site that uses the server."""
    return api_at(f"{server.server.address}/{NAME}{options}")


def test_while_a_server_is_gone_the_answer_is_503(server: Daemon) -> None:
    api = served(server)
    before = api.get("pages/?fields=*").data
    server.stop()
    for path in ("pages/?fields=*", "pages/2/", "pages/find/?html_path=/p2/", "images/"):
        assert_unavailable(api, path)
    server.start()
    until(lambda: api.status("pages/") == 200)
    assert api.get("pages/?fields=*").data == before


def test_a_server_that_crashes_under_load_leads_to_nothing_worse(server: Daemon) -> None:
    api = served(server)
    with asked(api, "pages/?fields=*") as statuses:
        server.crash()
        until(lambda: statuses[503] > 10)
        server.start()
        answered = statuses[200]
        until(lambda: statuses[200] > answered + 10)
    assert set(statuses) == {200, 503}
    assert [api.status("pages/") for _ in range(20)] == [200] * 20


def test_a_restart_between_two_requests_goes_unnoticed(server: Daemon) -> None:
    api = served(server)
    fill(storage(api).engine.database, 10)
    server.stop()
    server.start()
    until(lambda: served(server).status("pages/") == 200)
    assert [api.status("pages/") for _ in range(20)] == [200] * 20


def test_what_reads_by_itself_notices_no_restart(server: Daemon) -> None:
    api = served(server)
    version = api.backend.read(lambda reader: reader.version)
    server.stop()
    with pytest.raises(BackendUnavailable):
        api.backend.read(lambda reader: reader.version)
    server.start()
    until(lambda: served(server).status("pages/") == 200)
    assert api.backend.read(lambda reader: reader.version) == version


def fill(database: peewee.Database, number: int) -> None:
    """Opens a number of connections at once, and returns them to the pool."""
    barrier = threading.Barrier(number)

    def hold() -> None:
        with database.connection_context():
            barrier.wait()

    with ThreadPoolExecutor(number) as threads:
        for _ in range(number):
            threads.submit(hold)


def test_a_restart_between_two_changes_goes_unnoticed(server: Daemon) -> None:
    api = served(server)
    with writing(api) as writer:
        writer.update("pages", 2, title="Before")
    server.stop()
    server.start()
    until(lambda: served(server).status("pages/") == 200)
    with writing(api) as writer:
        writer.update("pages", 2, title="After")
    assert api.json("pages/2/")["title"] == "After"


def test_a_connection_that_the_server_ends_is_replaced(server: Daemon) -> None:
    api = served(server, "?max_connections=1")
    other = served(server)
    assert api.status("pages/") == 200
    end_connections(storage(other).engine.database)
    assert api.status("pages/") == 200
    assert other.status("pages/") == 200


def end_connections(database: peewee.Database) -> None:
    """Makes the server end all connections except the one that requests it."""
    is_mariadb = isinstance(database, peewee.MySQLDatabase)
    processes, end = _ENDING["mariadb" if is_mariadb else "postgresql"]
    with database.connection_context():
        found = database.execute_sql(processes, [NAME]).fetchall()
        assert found
        for (process,) in found:
            database.execute_sql(end, [process])


#: Statements for each kind of server: to find the other connections to a database, and to end one.
_ENDING = {
    "postgresql": (
        "SELECT pid FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()",
        "SELECT pg_terminate_backend(%s)",
    ),
    "mariadb": (
        "SELECT id FROM information_schema.processlist WHERE db = %s AND id <> CONNECTION_ID()",
        "KILL %s",
    ),
}


def test_changes_while_a_server_is_gone_are_refused_with_a_sentence(server: Daemon) -> None:
    api = served(server)
    assert api.status("pages/") == 200
    server.stop()
    with pytest.raises(BackendUnavailable, match=r"^The database cannot be used: .+\.$"):
        api.load(CONTENT)
    with pytest.raises(BackendUnavailable), writing(api):
        pass
    with pytest.raises(BackendUnavailable):
        api.dump()
    (problem,) = api.backend.check()
    assert problem.message.startswith("The database cannot be used: ")


def test_a_server_that_dies_during_a_change_leaves_all_as_it_was(server: Daemon) -> None:
    api = served(server)
    before = api.dump()
    with pytest.raises(BackendUnavailable):
        change_during_a_crash(api, server)
    server.start()
    until(lambda: api.status("pages/") == 200)
    assert api.dump() == before


def test_a_server_that_dies_during_a_load_leaves_all_as_it_was(
    server: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = served(server)
    before, flush = api.dump(), Inserter.flush

    def crash(inserter: Inserter) -> None:
        server.crash()
        flush(inserter)

    with monkeypatch.context() as patched:
        patched.setattr(Inserter, "flush", crash)
        with pytest.raises(BackendUnavailable, match=r"^The database is gone: .+\.$"):
            api.load({**CONTENT, "pages": [page(1, slug="home", title="Lost")]})
    server.start()
    until(lambda: api.status("pages/") == 200)
    assert api.dump() == before


def change_during_a_crash(api: API, server: Daemon) -> None:
    with writing(api) as writer:
        writer.update("pages", 2, title="Lost")
        server.crash()
        writer.update("pages", 1, title="Lost")


def test_a_server_that_turns_read_only_says_so(server: Daemon) -> None:
    api = editors(server)
    set_read_only(server, True)
    storage(api).close()
    try:
        assert api.ids("pages/") == [1, 2]
        with pytest.raises(BackendUnavailable, match=r"^The database can only be read: .+\.$"):
            api.load(CONTENT)
    finally:
        set_read_only(server, False)
    storage(api).close()
    until(lambda: api.status("pages/") == 200)
    api.load(CONTENT)


def editors(server: Daemon) -> API:
    """The API of a site whose account is no administrator, who could always write."""
    if "mariadb" not in server.server.address:
        return served(server)
    database = own_database(server)
    with database.connection_context():
        database.execute_sql("CREATE USER IF NOT EXISTS editor@'%%'")
        database.execute_sql(f"GRANT ALL ON {NAME}.* TO editor@'%%'")
    return api_at(f"mariadb://editor@127.0.0.1:{server.port}/{NAME}")


def set_read_only(server: Daemon, value: bool) -> None:
    """Makes a server read-only for new sessions, or writable."""
    is_mariadb = "mariadb" in server.server.address
    database = own_database(server)
    with database.connection_context():
        if is_mariadb:
            database.execute_sql(f"SET GLOBAL read_only = {value}")
        else:
            database.execute_sql(f"ALTER SYSTEM SET default_transaction_read_only = {value}")
            database.execute_sql("SELECT pg_reload_conf()")


def test_a_site_starts_without_its_server(server: Daemon, caplog: pytest.LogCaptureFixture) -> None:
    server.stop()
    api = served(server)
    (said,) = caplog.messages
    assert said.startswith("The database cannot be used: ")
    assert_unavailable(api)
    server.start()
    until(lambda: api.status("pages/") == 200)


def test_a_database_of_the_sites_own_comes_back_as_well(server: Daemon) -> None:
    api = api_at(PeeweeBackend.on(own_database(server)))
    assert api.status("pages/") == 200
    server.crash()
    assert_unavailable(api)
    server.start()
    until(lambda: api.status("pages/") == 200)


def own_database(server: Daemon) -> peewee.Database:
    """A database as a site itself opens it."""
    if "mariadb" in server.server.address:
        return peewee.MySQLDatabase(NAME, host="127.0.0.1", port=server.port, user="root")
    return peewee.PostgresqlDatabase(f"{server.server.address}/{NAME}", prefer_psycopg3=True)


def test_a_connection_of_the_sites_own_that_broke_is_left_to_the_site(server: Daemon) -> None:
    database = own_database(server)
    api = api_at(PeeweeBackend.on(database))
    database.connect()
    server.crash()
    assert_unavailable(api)
    assert not database.is_closed()
    server.start()
    until(lambda: served(server).status("pages/") == 200)
    close(database)
    assert api.status("pages/") == 200


def close(database: peewee.Database) -> None:
    """Closes a connection that may be broken."""
    with suppress(Exception):
        database.close()


# Files.


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The database file of a site."""
    api = api_at(f"sqlite:///{tmp_path}/site.db", CONTENT)
    api.backend.close()
    return tmp_path / "site.db"


def at(file: Path, options: str = "") -> API:
    """The API of the site with the file."""
    return api_at(f"sqlite:///{file}{options}")


def asked_again(file: Path) -> tuple[API, dict[str, str]]:
    """The API of the site with the file, and headers with which it has answered 304 twice."""
    api = at(file)
    known = {"If-None-Match": api.get("pages/").headers["ETag"]}
    assert [api.get("pages/", headers=known).status_code for _ in range(2)] == [304, 304]
    return api, known


@on_sqlite
def test_while_a_file_is_gone_the_answer_is_503(file: Path) -> None:
    api = at(file)
    before = api.get("pages/?fields=*").data
    away = shutil.move(file, f"{file}.away")
    assert_unavailable(api)
    assert_unavailable(api)
    shutil.move(away, file)
    assert api.get("pages/?fields=*").data == before


@on_sqlite
def test_what_is_gone_is_not_made_anew(file: Path) -> None:
    api = at(file)
    assert api.status("pages/") == 200
    file.unlink()
    assert_unavailable(api)
    with pytest.raises(ConfigurationError, match=r"no database file .*/site\.db'\. Put it there"):
        api.load(CONTENT)
    assert not file.exists()


@on_sqlite
def test_another_file_in_its_place_is_read_at_once(file: Path, tmp_path: Path) -> None:
    api = at(file)
    assert api.ids("pages/") == [1, 2]
    other = api_at(f"sqlite:///{tmp_path}/other.db", {"pages": [page(7)]})
    other.backend.close()
    api.backend.close()
    os.replace(tmp_path / "other.db", file)
    assert api.ids("pages/") == [7]


@on_sqlite
def test_who_has_an_answer_learns_of_another_file_in_its_place(file: Path, tmp_path: Path) -> None:
    api, known = asked_again(file)
    api_at(f"sqlite:///{tmp_path}/other.db", {"pages": [page(7)]}).backend.close()
    os.replace(tmp_path / "other.db", file)
    assert api.get("pages/", headers=known).status_code == 200


@on_sqlite
def test_another_file_is_told_from_one_that_has_just_been_opened(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api, other = at(file), tmp_path / "other.db"
    api_at(f"sqlite:///{other}", {"pages": [page(7), page(8)]}).backend.close()
    pool: Any = storage(api).engine.database
    finish = pool._add_conn_hooks

    def finish_late(connection: sqlite3.Connection) -> None:
        if other.exists():
            os.replace(other, file)
        finish(connection)

    monkeypatch.setattr(pool, "_add_conn_hooks", finish_late)
    pool.close_idle()
    api.status("pages/")
    assert api.ids("pages/") == [7, 8]


@on_sqlite
def test_who_has_an_answer_gets_503_while_a_file_is_gone(file: Path) -> None:
    api, known = asked_again(file)
    file.unlink()
    assert api.get("pages/", headers=known).status_code == 503


@on_sqlite
def test_a_backend_that_is_closed_leaves_nothing_beside_the_file(file: Path) -> None:
    api, _ = asked_again(file)
    api.backend.close()
    assert [*file.parent.iterdir()] == [file]


@on_sqlite
def test_while_a_file_is_locked_the_answer_is_503(file: Path) -> None:
    api = at(file, "?timeout=0.2")
    api.backend.close()
    with locked(file):
        assert_unavailable(api)
    assert api.status("pages/") == 200


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Another connection locks a file exclusively meanwhile."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA locking_mode = exclusive")
        connection.execute("BEGIN EXCLUSIVE")
        yield


@on_sqlite
def test_a_file_that_is_emptied_while_it_is_served_is_named_in_the_log(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    api = at(file)
    assert api.status("pages/") == 200
    with closing(sqlite3.connect(file)) as connection:
        for table in ("contentapi_pages", "contentapi_state"):
            connection.execute(f"DROP TABLE {table}")
    assert_unavailable(api)
    assert "flask contentapi init-db" in caplog.messages[-1]

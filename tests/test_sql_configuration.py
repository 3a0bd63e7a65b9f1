"""Unusable databases are reported in a sentence: at the start, by commands and in the log."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import peewee
import pytest
from flask import Flask
from marshmallow import fields

from flask_contentapi import ContentAPI, DeclarationError, Entry, Page
from flask_contentapi.errors import ConfigurationError
from flask_contentapi_peewee import PeeweeBackend, PostgreSQLBackend
from flask_contentapi_peewee.setup import SCHEMA
from tests.api import API
from tests.databases import (
    api_at,
    noted,
    on_databases,
    on_servers,
    on_sqlite,
    storage,
    until,
    writing,
)
from tests.samples import page, site
from tests.servers import Daemon, free_port, new_postgresql, why_missing
from tests.stores import fresh_address, leave_out

pytestmark = pytest.mark.slow

CONTENT = {"sites": [site(1)], "pages": [page(1, slug="home"), page(2, 1)]}


def run(api: API, command: str) -> tuple[int, str]:
    """The exit status and the output of a command, whose input is content without objects."""
    done = api.app.test_cli_runner().invoke(
        args=["contentapi", *command.split()], input='{"locales": ["en"]}'
    )
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


def assert_said(address: str, said: str, caplog: pytest.LogCaptureFixture) -> None:
    """The site starts. The log and commands report the problem, and answers a part of it."""
    api = api_at(address)
    assert caplog.messages == [said]
    assert run(api, "check") == (1, f"database: {said}\n1 problem found.\n")
    assert api.refusal("pages/", 503) == "The content cannot be read now; try again later."
    assert caplog.messages[-1] == f"The content cannot be read: {said}"
    for command in ("dump", "load -", "migrate"):
        assert run(api, command) == (1, f"Error: {said}\n")


MAKE = "Make what is missing with the command: flask contentapi init-db."


# Addresses.


WRONG = [
    ("oracle://x", "There is no backend 'oracle'. Installed are .*postgresql, sqlite"),
    ("sqlite:/x.db", "names no file; use sqlite:///site.db"),
    ("sqlite://x.db", "names no file; use sqlite:///site.db"),
    ("sqlite:///x.db?pool=7", "'pool' is no option; there are max_connections, timeout"),
    ("sqlite:///x.db?recheck=1", "'recheck' is no option; there are max_connections, timeout"),
    ("sqlite:///x.db?timeout=soon", "timeout is 'soon'; it must be a number"),
    ("postgresql:x", "must be as postgresql://user:password@host/name"),
    ("sqlite:///x.db?timeout=-1", "timeout is '-1'; it must be a number from 0 on"),
    ("sqlite:///x.db?max_connections=0", "max_connections is '0'; it must be an integer from 1 on"),
    ("sqlite:///x.db?", "'' is no option; there are max_connections"),
    ("sqlite:///x.db?timeout=1&&stale_timeout=1", "'' is no option; there are max_connections"),
    ("sqlite:///what?.db", "'.db' is no option; .* A question mark .* is written %3F"),
    (
        "postgresql://localhost/x?pool=7",
        "'pool' is no option; there are max_connections, .*sslmode",
    ),
    ("postgresql://localhost/x?sslmode=", "sslmode has no value; write sslmode=..., or leave it"),
    ("postgresql://localhost/x?host=other", "host is no option here: the rest of the address"),
    ("postgresql://a,b/x?target_session_attrs=any", "target_session_attrs is no option here"),
    ("postgresql://localhost/x#y", "must be as postgresql://user:password@host/name"),
    ("postgresql://localhost/x\n", "must be as postgresql://user:password@host/name"),
    ("mariadb://localhost", "must be as mariadb://user:password@host/name"),
    ("mariadb://localhost/x?pool=7", "'pool' is no option; there are max_connections, .*ssl_ca"),
    ("mariadb://localhost/x?bogus", "'bogus' is no option; there are max_connections, .*ssl_ca"),
    ("mariadb://localhost/x?ssl_ca=", "ssl_ca has no value; write ssl_ca=..., or leave it out"),
    ("mariadb://localhost/x?ssl_ca", "ssl_ca has no value; write ssl_ca=..., or leave it out"),
    ("mariadb://localhost/x?timeout=1&timeout=2", "timeout is given twice"),
    ("mariadb://localhost/x?host=other", "'host' is no option"),
    ("mariadb://me@localhost/x?user=you", "user is no option here: the rest of the address tells"),
    ("mariadb://localhost/x?ssl_disabled=no", "ssl_disabled is 'no'; it must be true or false"),
    (
        "postgresql://localhost/x?prepare_threshold=0",
        "prepare_threshold is '0'; it must be an integer from 1 on, or none",
    ),
    ("mariadb://localhost/x?read_timeout=a", "read_timeout is 'a'; it must be a number"),
    ("mariadb://localhost:soon/x", "must be as mariadb://.* a port is a number"),
    ("postgresql://localhost:soon/x", "must be as postgresql://.* a port is a number"),
    ("mariadb://localhost:0/x", "must be as mariadb://.* a port is a number"),
    ("postgresql://localhost,other:0/x", "must be as postgresql://.* a port is a number"),
    ("postgresql://a,b:65536/x", "must be as postgresql://.* a port is a number"),
    ("mariadb://localhost/x?ssl_ca=/no/such", "ssl_ca is '/no/such'; it must be the path of a f"),
    ("mariadb://localhost/x?read_default_file=/no/such", "it must be the path of a file"),
    (
        f"mariadb://localhost/x?read_default_file={quote(__file__)}",
        f"read_default_file is '{__file__}', which has no options",
    ),
    ("mariadb://db..internal/x", "'db..internal' cannot be the name of a host"),
    ("mariadb://me:caf%E9@localhost/x", "what is .* in the password is percent-encoded"),
    ("postgresql://me:caf%E9@localhost/x", "what is .* in the password is percent-encoded"),
    ("mariadb://localhost/x?charset=latin1", "charset is 'latin1'; it must be utf8mb4, as others"),
    ("mariadb://localhost/x?charset=nosuch", "charset is 'nosuch'; it must be utf8mb4, as others"),
    ("sqlite:///a%00b.db", "names no file; use sqlite:///site.db"),
    ("sqlite:///site.db/", "names no file; use sqlite:///site.db"),
]


@pytest.mark.parametrize(("address", "said"), WRONG, ids=[address for address, _ in WRONG])
def test_addresses_that_cannot_be_used_stop_the_start(address: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^CMSAPI_BACKEND: .*{said}.*\\.$"):
        api_at(address)


@pytest.mark.parametrize("address", ["postgresql://u:hush@h/x?y=z", "mariadb://u:hush@h:x/y"])
def test_passwords_stay_unsaid(address: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        api_at(address)
    assert "hush" not in str(error.value)


@pytest.mark.parametrize("scheme", ["postgresql", "mariadb"])
@pytest.mark.parametrize(
    "password", [*(f"sec{c}ret" for c in "/?#@%["), "80/ret", "80#ret", "80?ret"]
)
def test_passwords_are_percent_encoded(scheme: str, password: str) -> None:
    with pytest.raises(ConfigurationError, match="password is percent-encoded, as %2F") as error:
        api_at(f"{scheme}://u:{password}@localhost/x")
    assert "ret" not in str(error.value)


@pytest.mark.parametrize("scheme", ["postgresql", "mariadb"])
def test_encoded_passwords_are_taken(scheme: str) -> None:
    api_at(f"{scheme}://u:{quote('80/sec?r#e@t%[', safe='')}@127.0.0.1:{free_port()}/x")


@on_servers
def test_passwords_have_any_characters(backend: str) -> None:
    address, password = fresh_address(backend), "p@s/s:w?o#r%d é&='+ 日本"
    with storage(api_at(address)).engine.database as database:
        name = address.rpartition("/")[2]
        made, granted = ACCOUNTS[backend]
        database.execute_sql(made.format(name, password.replace("'", "''").replace("%", "%%")))
        database.execute_sql(granted.format(name))
    scheme, _, place = address.partition("://")
    account = f"{name}:{quote(password, safe='')}"
    api = api_at(f"{scheme}://{account}@{place.rpartition('@')[2]}", CONTENT)
    assert api.total("pages/") == 2


#: Statements that make an account with a password and the rights to its database.
ACCOUNTS = {
    "postgresql": ["CREATE ROLE {0} LOGIN PASSWORD '{1}'", "ALTER DATABASE {0} OWNER TO {0}"],
    "mariadb": [
        "CREATE USER {0}@localhost IDENTIFIED BY '{1}'",
        "GRANT ALL ON {0}.* TO {0}@localhost",
    ],
}


@pytest.mark.backends("postgresql")
@pytest.mark.parametrize("option", ["client_encoding=latin1", "options=-c%20client_encoding=sjis"])
def test_connections_that_lack_characters_are_refused(
    backend: str, option: str, caplog: pytest.LogCaptureFixture
) -> None:
    address = fresh_address(backend)
    api_at(address, CONTENT)
    caplog.clear()
    said = (
        "The connection is not in UTF-8, and so it lacks characters; leave out what sets "
        "client_encoding."
    )
    assert_said(f"{address}?{option}", said, caplog)


@pytest.mark.parametrize("scheme", ["sqlite:///", "jsonfiles:"])
def test_names_that_are_too_long_are_told(scheme: str) -> None:
    with pytest.raises(ConfigurationError, match=r"File name too long\.$"):
        api_at(scheme + "x" * 300, {})


@pytest.mark.parametrize("name", ["what?.db", "50%.db", "a#b.db", "a&b=c.db"])
def test_files_can_have_any_name(tmp_path: Path, name: str) -> None:
    api = api_at(f"sqlite:///{quote(f'{tmp_path}/{name}')}", CONTENT)
    assert api.total("pages/") == 2
    assert (tmp_path / name).exists()


def test_postgres_is_another_name() -> None:
    api = api_at(f"postgres://127.0.0.1:{free_port()}/x")
    assert isinstance(api.backend, PostgreSQLBackend)


def test_an_address_without_a_host_is_that_of_a_socket(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    api_at(f"postgresql:///x?host={tmp_path}")
    assert f"{tmp_path}/.s.PGSQL.5432" in caplog.text


@pytest.mark.parametrize(
    ("address", "module", "extra"),
    [
        ("postgresql://localhost/x", "psycopg", "postgresql"),
        ("mariadb://localhost/x", "pymysql", "mariadb"),
        ("mysql://localhost/x", "pymysql", "mariadb"),
        ("sqlite:///x.db", "flask_contentapi_peewee", "sqlite"),
    ],
)
def test_drivers_that_are_missing_are_named(
    monkeypatch: pytest.MonkeyPatch, address: str, module: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    install = rf'pip install "flask.contentapi\[{extra}\]"\.$'
    with pytest.raises(ConfigurationError, match=f"{module}.*{install}"):
        api_at(address)


def test_a_database_of_no_known_kind_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="Database is none of SqliteDatabase"):
        PeeweeBackend.on(peewee.Database("x"))
    with pytest.raises(TypeError, match=r"PeeweeBackend\.on\(database\) makes the backend"):
        PeeweeBackend(peewee.SqliteDatabase(":memory:"))  # type: ignore[arg-type]


# Files.


@on_sqlite
def test_a_file_that_is_not_there_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    way = "make an empty one with the command: flask contentapi init-db."
    said = f"There is no database file '{tmp_path}/x.db'. Put it there, or {way}"
    assert_said(f"sqlite:///{tmp_path}/x.db", said, caplog)
    assert [*tmp_path.iterdir()] == []


@on_sqlite
def test_a_folder_that_is_not_there_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    address = f"sqlite:///{tmp_path}/no/such/x.db"
    said = f"There is no folder '{tmp_path}/no/such' for x.db; check the name, or create it."
    assert_said(address, said, caplog)
    assert run(api_at(address), "init-db") == (1, f"Error: {said}\n")


@on_sqlite
def test_a_file_that_is_no_database_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "x.db").write_text("no database " * 100)
    address = f"sqlite:///{tmp_path}/x.db"
    said = f"The database file '{tmp_path}/x.db' cannot be used: file is not a database."
    assert_said(address, said, caplog)
    assert run(api_at(address), "init-db") == (1, f"Error: {said}\n")


@on_sqlite
def test_a_folder_is_no_database(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    said = f"The database file '{tmp_path}' cannot be used: unable to open database file."
    assert_said(f"sqlite:///{tmp_path}", said, caplog)


# Servers.


@on_servers
def test_it_can_take_a_while_until_changes_elsewhere_are_asked_for(backend: str) -> None:
    address = fresh_address(backend)
    there = api_at(address, {"pages": [page(1)]})
    slow, quick = (api_at(f"{address}?recheck={seconds}") for seconds in (10**6, 0.05))
    known = {"If-None-Match": slow.get("pages/").headers["ETag"]}
    assert [api.get("pages/", headers=known).status_code for api in (slow, quick)] == [304, 304]
    with writing(there) as writer:
        writer.update("pages", 1, title="Another")
    with noted(slow) as statements:
        assert slow.get("pages/", headers=known).status_code == 304
    assert statements == []
    until(lambda: quick.get("pages/", headers=known).status_code == 200)
    with writing(slow) as writer:
        writer.update("pages", 1, title="A third")
    assert slow.get("pages/", headers=known).status_code == 200


@on_servers
def test_a_database_that_is_not_there_is_named(
    backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    address = f"{fresh_address(backend).rpartition('/')[0]}/contentapi_none"
    api = api_at(address)
    (said,) = caplog.messages
    assert said.startswith("The database cannot be used: ")
    assert "contentapi_none" in said
    assert run(api, "init-db") == (1, f"Error: {said}\n")
    assert api.status("pages/") == 503


@on_servers
def test_a_server_that_is_not_there_is_named(
    backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    api = api_at(f"{backend}://somebody@127.0.0.1:{free_port()}/x")
    (said,) = caplog.messages
    assert said.startswith("The database cannot be used: ")
    assert "refused" in said
    assert run(api, "check") == (1, f"database: {said}\n1 problem found.\n")
    assert api.status("pages/") == 503


@on_servers
def test_a_wrong_password_is_named(
    backend: str, caplog: pytest.LogCaptureFixture, locked_door: str
) -> None:
    api = api_at(f"{backend}://somebody:wrong@{locked_door}")
    (said,) = caplog.messages
    assert "somebody" in said
    assert "wrong" not in said
    assert run(api, "init-db") == (1, f"Error: {said}\n")
    assert api.status("pages/") == 503


@pytest.fixture
def locked_door(backend: str, guarded: Daemon | None) -> str:
    """The address of a server that requires a password from ``somebody``, without an account."""
    if backend == "postgresql":
        assert guarded is not None
        return f"127.0.0.1:{guarded.port}/postgres"
    return fresh_address(backend).partition("@")[2]


@pytest.fixture
def guarded(backend: str) -> Iterator[Daemon | None]:
    """A PostgreSQL server that requires passwords."""
    if backend != "postgresql":
        yield None
        return
    daemon = new_postgresql()
    if daemon is None:
        leave_out(why_missing(backend))
    daemon.start()
    daemon.server.create_database("contentapi_guarded")
    api = api_at(f"{daemon.server.address}/postgres")
    database: Any = storage(api).engine.database
    with database.connection_context():
        database.execute_sql("CREATE ROLE somebody LOGIN PASSWORD 'right'")
        ((rules,),) = database.execute_sql("SHOW hba_file").fetchall()
        Path(rules).write_text("host all all 127.0.0.1/32 scram-sha-256\n")
        database.execute_sql("SELECT pg_reload_conf()")
    yield daemon
    daemon.stop()


# Tables.


@on_databases
def test_tables_that_are_missing_are_named_until_they_are_made(
    backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    address = fresh_address(backend)
    if backend == "sqlite":
        Path(address.removeprefix("sqlite:///")).touch()
    assert_said(address, f"The tables are not there. {MAKE}", caplog)
    api = api_at(address)
    assert run(api, "init-db") == (0, "The storage is ready.\n")
    assert run(api, "check") == (0, "Everything is in order.\n")
    assert api.status("images/") == 200


OTHER_VERSIONS = {
    "3": (
        "Dump the content with the version that made them (flask contentapi dump), then init-db "
        "and load it into an empty database."
    ),
    "7": "Update flask_contentapi.",
}


@on_databases
@pytest.mark.parametrize(("layout", "remedy"), OTHER_VERSIONS.items(), ids=OTHER_VERSIONS)
def test_tables_of_another_version_are_left_alone(
    backend: str, caplog: pytest.LogCaptureFixture, layout: str, remedy: str
) -> None:
    address = fresh_address(backend)
    made = storage(api_at(address, CONTENT))
    with made.engine.database.connection_context():
        made.tables.write_state(schema=layout)
    made.close()
    caplog.clear()
    said = (
        f"The tables have the layout {layout}, but this version of flask_contentapi knows "
        f"{SCHEMA}. {remedy}"
    )
    assert_said(address, said, caplog)
    assert run(api_at(address), "init-db") == (1, f"Error: {said}\n")


@pytest.mark.backends("postgresql")
def test_a_database_without_all_characters_is_refused(
    backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    address = fresh_address(backend)
    server, _, name = address.rpartition("/")
    api = api_at(address)
    database = storage(api).engine.database
    with database.connection_context():
        database.execute_sql(
            f"CREATE DATABASE {name}_latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0"
        )
    caplog.clear()
    said = (
        "The database has the encoding LATIN1, which lacks characters; make another one, as with: "
        "createdb --encoding UTF8 --template template0 NAME."
    )
    assert_said(f"{server}/{name}_latin", said, caplog)
    assert run(api_at(f"{server}/{name}_latin"), "init-db") == (1, f"Error: {said}\n")


class Note(Page):
    app_label = "w"
    text = fields.String()


@on_databases
def test_tables_of_other_types_are_named(backend: str, caplog: pytest.LogCaptureFixture) -> None:
    address = fresh_address(backend)
    api_at(address, CONTENT)
    caplog.clear()
    api = notes_at(address, Note)
    (said,) = caplog.messages
    assert said.startswith("The tables are not those of the declared types. blog.")
    assert said.endswith(". Change them with the command: flask contentapi migrate.")
    assert api.status("pages/") == 503
    shown = run(api, "migrate")[1]
    assert "home.HomePage is not declared any more; its objects stay.\n" in shown
    assert "w.Note is new.\n" in shown
    assert api.status("pages/") == 200


def notes_at(address: str, *types: type[Page]) -> API:
    """The API of a site with some types, at a database."""
    app = Flask("site")
    app.config.update({"TESTING": True, "CMSAPI_BACKEND": address})
    ContentAPI(app, types=types)
    return API(app)


@on_databases
def test_a_type_whose_module_has_another_name_is_noticed(backend: str) -> None:
    address = fresh_address(backend)
    song = type("Song", (Note,), {})
    run(notes_at(address, Note, song), "init-db")
    moved, other = type("Note", (Note,), {"app_label": "v"}), type("Memo", (Note,), {})
    moved_song = type("Song", (Note,), {"app_label": "v"})
    said = "migrate. If only the module of Note, Song is another, set app_label = 'w' instead."
    assert said in run(notes_at(address, moved, moved_song), "check")[1]
    for types in ([other], [Note, moved]):
        assert "app_label" not in run(notes_at(address, *types), "check")[1]


# Commands.


@pytest.mark.parametrize("name", ["none.json", "none.jsonl", "none/none.json"])
def test_a_dump_that_is_not_there_is_named(name: str, tmp_path: Path) -> None:
    api = api_at(f"jsonfiles:{tmp_path}")
    status, shown = run(api, f"load {tmp_path}/{name}")
    assert (status, shown.count("\n")) == (1, 1)
    assert f"{name}': No such file or directory" in shown


def test_a_place_for_a_dump_that_is_not_there_is_named(tmp_path: Path) -> None:
    status, shown = run(api_at(f"jsonfiles:{tmp_path}"), f"dump {tmp_path}/none/all.json")
    assert status == 1
    assert "none/all.json" in shown


class State(Entry):
    app_label = "x"
    endpoint = "state"


def test_two_things_in_one_table_are_refused() -> None:
    with pytest.raises(DeclarationError, match=r"^contentapi_state would be the name of 2 tables"):
        ContentAPI(
            Flask("site"),
            types=[State],
            backend=PeeweeBackend.on(peewee.SqliteDatabase(":memory:")),
        )

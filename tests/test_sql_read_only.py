"""Databases that can only be read are served, and say in a sentence why nothing is changed."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import peewee
import pytest

from flask_contentapi.errors import BackendUnavailable
from flask_contentapi_peewee import PeeweeBackend
from tests.api import API
from tests.databases import api_at, on_servers, on_sqlite, storage, writing
from tests.samples import page, site
from tests.scarcity import full_disk, on_posix, write_protected
from tests.stores import fresh_address
from tests.temporary import new_folder

CONTENT = {"sites": [site(1, is_default=True)], "pages": [page(1, slug="home"), page(2, 1)]}
PATHS = ("pages/?fields=*", "pages/2/", "pages/?search=page", "images/")


def answers(api: API) -> list[bytes]:
    return [api.get(path).data for path in PATHS]


def run(api: API, command: str) -> tuple[int, str]:
    """The exit status and the output of a command, whose input is content without objects."""
    done = api.app.test_cli_runner().invoke(
        args=["contentapi", *command.split()], input='{"locales": ["en"]}'
    )
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


def assert_refused(api: API, said: str) -> None:
    """All changes are refused with a sentence."""
    with pytest.raises(BackendUnavailable) as error, writing(api) as writer:
        writer.update("pages", 2, title="Another")
    assert str(error.value) == said
    with pytest.raises(BackendUnavailable) as error:
        api.load(CONTENT)
    assert str(error.value) == said
    assert run(api, "load --yes -") == (1, f"Error: {said}\n")


# Files.


@pytest.fixture
def file() -> Iterator[Path]:
    """The database file of a site, in a folder, both of which everybody may write."""
    folder = new_folder()
    folder.chmod(0o777)
    api = api_at(f"sqlite:///{folder}/site.db", {})
    for command in ("load --yes -", "check"):
        run(api, command)
    api.load(CONTENT)
    answers(api)
    api.backend.close()
    (folder / "site.db").chmod(0o666)
    yield folder / "site.db"
    shutil.rmtree(folder)


def at(file: Path, options: str = "") -> API:
    """The API of the site with the file."""
    return api_at(f"sqlite:///{file}{options}")


#: What may be write-protected, and how it is said.
PROTECTED = {
    "the file": (["."], "it is write-protected"),
    "its folder": ([".."], "no files can be made in its folder"),
    "both": ([".", ".."], "it is write-protected"),
}


@pytest.fixture(params=PROTECTED)
def protected(file: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """Why the file can only be read."""
    names, why = PROTECTED[request.param]
    with write_protected(*({".": file, "..": file.parent}[name] for name in names)):
        yield f"The database file '{file}' can only be read: {why}."


class TestProtectedFiles:
    pytestmark = [on_posix, on_sqlite, pytest.mark.slow]

    def test_they_are_served(self, file: Path, protected: str) -> None:
        api = at(file)
        assert api.ids("pages/") == [1, 2]
        known = {"If-None-Match": api.get("pages/").headers["ETag"]}
        assert [api.get("pages/", headers=known).status_code for _ in range(2)] == [304] * 2

    def test_check_says_so(self, file: Path, protected: str) -> None:
        said = f"Note: {protected}\nEverything is in order.\n"
        assert run(at(file), "check") == (0, said)

    def test_changes_are_refused(self, file: Path, protected: str) -> None:
        assert_refused(at(file), protected)

    def test_they_are_ready(self, file: Path, protected: str) -> None:
        assert run(at(file), "init-db") == (0, "The storage is ready.\n")
        assert run(at(file), "migrate") == (0, "There is nothing to change.\n")

    def test_they_are_dumped(self, file: Path, protected: str) -> None:
        assert [page["id"] for page in at(file).dump()["pages"]] == [1, 2]


def copied(file: Path) -> Path:
    """A copy of a database file as VACUUM makes it, with another journal."""
    copy = file.with_name("copy.db")
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("VACUUM INTO ?", [str(copy)])
    return copy


class TestFiles:
    pytestmark = [on_posix, on_sqlite, pytest.mark.slow]

    def test_protected_copies_are_served(self, file: Path) -> None:
        copy = copied(file)
        with write_protected(copy, copy.parent):
            assert at(copy).ids("pages/") == [1, 2]

    def test_answers_are_the_same(self, file: Path) -> None:
        before = answers(at(file))
        with write_protected(file, file.parent):
            assert answers(at(file)) == before

    def test_changes_by_others_show(self, file: Path) -> None:
        api = at(file)
        api.backend.close()
        with write_protected(file, file.parent):
            known = {"If-None-Match": api.get("pages/").headers["ETag"]}
            assert api.get("pages/", headers=known).status_code == 304
        with writing(at(file)) as writer:
            writer.delete("pages", 2)
        with write_protected(file, file.parent):
            assert api.get("pages/", headers=known).status_code == 200
            assert api.ids("pages/") == [1]

    def test_changes_that_are_not_merged_show(self, file: Path) -> None:
        api, other = at(file), at(file)
        api.backend.close()
        with write_protected(file, file.parent):
            assert api.ids("pages/") == [1, 2]
        with writing(other) as writer:
            writer.delete("pages", 2)
        with write_protected(file, file.parent):
            assert Path(f"{file}-wal").stat().st_size
            assert api.ids("pages/") == [1]
        other.backend.close()

    def test_changes_that_cannot_be_merged_are_named(self, file: Path) -> None:
        other, copy = at(file), file.with_name("copy.db")
        with writing(other) as writer:
            writer.delete("pages", 2)
        for end in ("", "-wal"):
            shutil.copy(f"{file}{end}", f"{copy}{end}")
        other.backend.close()
        with write_protected(copy, copy.parent):
            status, said = run(at(copy), "check")
            assert status == 1
            assert "the latest changes are in a second file beside it" in said
            assert at(copy).status("pages/") == 503
        assert at(copy).ids("pages/") == [1]

    def test_they_are_written_once_they_can_be(self, file: Path) -> None:
        api = at(file)
        with write_protected(file, file.parent):
            assert api.ids("pages/") == [1, 2]
        with writing(api) as writer:
            writer.delete("pages", 2)
        assert api.ids("pages/") == [1]

    def test_a_file_of_the_sites_own_is_served(self, file: Path) -> None:
        with write_protected(file):
            api = api_at(PeeweeBackend.on(peewee.SqliteDatabase(str(file))))
            assert api.ids("pages/") == [1, 2]
            with pytest.raises(BackendUnavailable, match="can only be read: attempt to write"):
                api.load(CONTENT)


class TestFullDisks:
    pytestmark = [on_posix, on_sqlite, pytest.mark.slow]

    def test_files_are_served(self, file: Path) -> None:
        before = answers(at(file))
        api = at(file)
        api.backend.close()
        with full_disk():
            found = answers(api)
        assert found == before

    def test_changes_are_refused_until_there_is_room(self, file: Path) -> None:
        api = at(file)
        api.backend.close()
        with (
            pytest.raises(BackendUnavailable, match=r"can only be read: disk I/O error\.$"),
            full_disk(),
            writing(api),
        ):
            pass
        with writing(api) as writer:
            writer.delete("pages", 2)
        assert api.ids("pages/") == [1]

    def test_a_load_reports_the_first_error(self, file: Path) -> None:
        api = small(file)
        with pytest.raises(BackendUnavailable, match="disk is full") as error:
            api.load({"pages": [page(n, title="x" * 9000) for n in range(1, 200)]})
        assert "cannot rollback" not in str(error.value)
        assert api.ids("pages/") == [1, 2]

    def test_a_change_reports_the_first_error(self, file: Path) -> None:
        api = small(file)
        with pytest.raises(BackendUnavailable, match="disk is full"):
            add_much(api)
        assert api.ids("pages/") == [1, 2]

    def test_a_change_that_cannot_be_committed_says_why(self, file: Path) -> None:
        api = at(file)
        assert api.status("pages/") == 200
        with (
            pytest.raises(BackendUnavailable, match="cannot be used: disk I/O error"),
            full_disk(),
            writing(api) as writer,
        ):
            writer.update("pages", 2, title="Another")
        assert api.json("pages/2/")["title"] == "Page 2"

    def test_nothing_follows_a_change_that_failed(self, file: Path) -> None:
        api = small(file)
        with pytest.raises(BackendUnavailable, match="disk is full"):
            go_on_after_a_failure(api)
        assert {item["title"] for item in api.items("pages/")} == {"Page 1", "Page 2"}

    def test_a_file_that_cannot_be_filled_is_not_left(self) -> None:
        folder = new_folder()
        api = at(folder / "new.db")
        with full_disk():
            status, said = run(api, "init-db")
        assert (status, "can only be read: disk I/O error." in said) == (1, True)
        assert [*folder.iterdir()] == []


def add_much(api: API) -> None:
    with writing(api) as writer:
        for _ in range(200):
            writer.add("pages", {"title": "x" * 9000, "type": "blog.BlogPage", "parent": 1})


def go_on_after_a_failure(api: API) -> None:
    """Catches the error of a change, and tries another one."""
    with writing(api) as writer:
        writer.update("pages", 2, title="Another")
        with pytest.raises(peewee.OperationalError):
            writer.update("pages", 2, title="x" * 10_000_000)
        with pytest.raises(RuntimeError, match="block is over"):
            writer.update("pages", 1, title="Another")


def small(file: Path) -> API:
    """The API of the site with the file, which can only grow a little."""
    api = at(file)
    database: Any = storage(api).engine.database
    with database.connection_context():
        ((pages,),) = database.execute_sql("PRAGMA page_count")
    database._pragmas = [*database._pragmas, ("max_page_count", pages + 50)]
    database.close_all()
    return api


# Servers.


#: How an address makes its sessions read-only.
READ_ONLY = {
    "postgresql": "options=-c%20default_transaction_read_only=on",
    "mariadb": "init_command=SET%20SESSION%20TRANSACTION%20READ%20ONLY",
}
#: Statements that make an account which may only read.
ACCOUNTS = {
    "postgresql": [
        "CREATE ROLE {0} LOGIN",
        "GRANT SELECT ON ALL TABLES IN SCHEMA public TO {0}",
    ],
    "mariadb": ["CREATE USER {0}@'%%'", "GRANT SELECT ON {0}.* TO {0}@'%%'"],
}


@on_servers
def test_servers_that_are_read_only_are_served(backend: str) -> None:
    address = fresh_address(backend)
    before = answers(api_at(address, CONTENT))
    api = api_at(f"{address}?{READ_ONLY[backend]}")
    assert answers(api) == before
    status, said = run(api, "check")
    assert status == 0
    assert said.startswith("Note: The database can only be read: ")
    with pytest.raises(BackendUnavailable, match=r"^The database can only be read: .*\.$") as error:
        api.load(CONTENT)
    assert_refused(api, str(error.value))


@on_servers
def test_accounts_that_may_only_read_are_served(backend: str) -> None:
    address = fresh_address(backend)
    owner = api_at(address, CONTENT)
    database = storage(owner).engine.database
    name = address.rpartition("/")[2]
    with database.connection_context():
        for statement in ACCOUNTS[backend]:
            database.execute_sql(statement.format(name))
    scheme, _, place = address.partition("://")
    api = api_at(f"{scheme}://{name}@{place.rpartition('@')[2]}")
    assert api.ids("pages/") == [1, 2]
    with pytest.raises(BackendUnavailable, match=r"^The database cannot be used: .* denied"):
        api.load(CONTENT)

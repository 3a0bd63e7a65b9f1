"""The commands: what they refuse, what they print, and what they report of the configuration."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest
from click.testing import CliRunner
from flask import Flask
from flask.cli import FlaskGroup
from marshmallow import fields

from flask_contentapi import ConfigurationError, ContentAPI, Entry, Page
from flask_contentapi_jsonfiles import JSONFilesBackend
from flask_contentapi_memory import MemoryBackend
from tests.api import API
from tests.samples import image, page, plain, site
from tests.scarcity import full_disk, on_posix
from tests.sites import make_site
from tests.stores import DATABASES, fresh_address

#: For commands that load content, which the memory backend would lose when they end.
persistent = pytest.mark.backends("jsonfiles", *DATABASES)
CONTENT = {"pages": [plain(1), plain(2, 1)], "images": [image(1, type="flask_contentapi.Image")]}


def configured(**config: Any) -> Flask:
    app = Flask("site")
    app.config.update({"TESTING": True, "CMSAPI_BACKEND": MemoryBackend(CONTENT), **config})
    return app


def site_at(address: str) -> Flask:
    """A site whose backend is at an address, prepared for content."""
    app = configured(CMSAPI_BACKEND=address)
    ContentAPI(app)
    run(app, "init-db")
    return app


def run(app: Flask, *command: str, input: str | None = None, name: str = "contentapi") -> str:
    """The output of a command, followed by its exit status if that is not 0."""
    done = app.test_cli_runner().invoke(args=[name, *command], input=input)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.output + (f"{done.exit_code}" if done.exit_code else "")


@persistent
@pytest.mark.parametrize("section", [None, 3, "ab", {}, {"id": 1}])
def test_load_says_what_a_section_has_to_be(backend: str, tmp_path: Path, section: Any) -> None:
    app = site_at(fresh_address(backend))
    (tmp_path / "c.json").write_text(json.dumps({"pages": section}))
    said = run(app, "load", str(tmp_path / "c.json"), "--yes")
    assert said == "Error: pages: must be a list of records\n1"


@persistent
@pytest.mark.parametrize("locales", [{"en": "English"}, "en", None])
def test_load_says_that_languages_are_codes(backend: str, tmp_path: Path, locales: Any) -> None:
    app = site_at(fresh_address(backend))
    (tmp_path / "c.json").write_text(json.dumps({"locales": locales}))
    said = run(app, "load", str(tmp_path / "c.json"), "--yes")
    assert said.startswith("Error: locales: must be a list of the codes of languages, as [")


# Full disks.


@on_posix
@pytest.mark.parametrize("name", ["all.json", "all.jsonl"])
def test_a_dump_that_does_not_fit_leaves_nothing(tmp_path: Path, name: str) -> None:
    app, target = configured(), tmp_path / name
    ContentAPI(app)
    target.write_text("before")
    with full_disk():
        said = run(app, "dump", str(target))
    assert said == f"Error: {target} cannot be written: File too large.\n1"
    assert [*tmp_path.iterdir()] == [target]
    assert target.read_text() == "before"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("command", ["dump", "openapi", "types", "check"])
def test_an_output_that_is_full_is_told(tmp_path: Path, command: str) -> None:
    (tmp_path / "app.py").write_text(
        "from flask import Flask\nfrom flask_contentapi import ContentAPI\n"
        "app = Flask(__name__)\nContentAPI(app)\n"
    )
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "flask", "contentapi", command],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    said = "The output or a file cannot be read or written: No space left on device."
    assert done.stderr == f"Error: {said}\n"


@on_posix
@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("dump >&-", "The standard output is closed."),
        ("openapi >&-", "The standard output is closed."),
        ("load - <&-", "The standard input is closed."),
        ("types >&-", ""),
    ],
)
def test_what_is_closed_is_told_where_it_is_needed(tmp_path: Path, command: str, why: str) -> None:
    (tmp_path / "app.py").write_text(
        "from flask import Flask\nfrom flask_contentapi import ContentAPI\n"
        "app = Flask(__name__)\napp.config['CMSAPI_BACKEND'] = 'sqlite:///a.db'\nContentAPI(app)\n"
    )
    shell = f"{sys.executable} -m flask contentapi init-db && "
    shell += f"{sys.executable} -m flask contentapi {command}"
    done = subprocess.run(
        ["sh", "-c", shell], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    said = f"Error: {why}\n" if why else ""
    assert (done.returncode, done.stderr) == (bool(why), said)


@on_posix
@pytest.mark.backends(*DATABASES)
@pytest.mark.parametrize("target", ["-", "all.json"])
def test_a_dump_that_fails_ends_its_transaction(backend: str, tmp_path: Path, target: str) -> None:
    """Nothing else is told than why it has failed."""
    address = fresh_address(backend)
    run(site_at(address), "load", "-", input=json.dumps(CONTENT))
    (tmp_path / "app.py").write_text(
        "from flask import Flask\nfrom flask_contentapi import ContentAPI\n"
        f"app = Flask(__name__)\napp.config['CMSAPI_BACKEND'] = {address!r}\nContentAPI(app)\n"
        "from flask_contentapi import files\n"
        "def fail(value): raise OSError(28, 'No space left on device')\n"
        "files._json = fail\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "flask", "contentapi", "dump", target],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert done.stderr.endswith("written: No space left on device.\n")


# Missing or misspelt configuration.

UNSET = "CMSAPI_BACKEND is not set, and no backend is given in Python; so there is no content."
MISSPELT = "There is no setting CMSAPI_LIMITMAX. Did you mean CMSAPI_LIMIT_MAX?"


def test_check_misses_the_backend() -> None:
    app = Flask("site")
    ContentAPI(app)
    assert run(app, "check") == f"{UNSET}\n1 problem found.\n1"


def test_a_backend_that_is_missing_is_in_the_log_once(caplog: pytest.LogCaptureFixture) -> None:
    app = Flask("site")
    ContentAPI(app)
    app.test_client().get("/api/v2/pages/")
    assert caplog.messages == [UNSET]
    ContentAPI(Flask("site"), backend=MemoryBackend({}))
    ContentAPI(configured())
    assert caplog.messages == [UNSET]


def test_check_misses_no_backend_that_is_named_or_given() -> None:
    named, given = configured(CMSAPI_BACKEND="memory"), Flask("site")
    ContentAPI(named)
    ContentAPI(given, backend=MemoryBackend({}))
    assert run(named, "check") == run(given, "check") == "Everything is in order.\n"


def test_check_notes_that_no_site_is_the_default(backend: str) -> None:
    app = make_site(backend, {"pages": [page(1)], "sites": [site(1)]})
    said = run(app, "check")
    assert said.startswith("Note: No site is the default, so that lists of pages are refused at")
    assert said.endswith("Everything is in order.\n")


@pytest.mark.parametrize("sites", [[], [site(1, is_default=True), site(2, "b.example")]])
def test_check_notes_nothing_where_every_host_is_answered(backend: str, sites: Any) -> None:
    app = make_site(backend, {"pages": [page(1), page(2)], "sites": sites})
    assert run(app, "check") == "Everything is in order.\n"


def test_load_names_the_setting_that_is_missing() -> None:
    app = Flask("site")
    ContentAPI(app, name="more", config_prefix="MORE_")
    shown = run(app, "load", "-", input="{}", name="more")
    assert shown.startswith("Error: MORE_BACKEND is not set. The backend keeps nothing")


def test_misspelt_settings_are_in_the_log_once(caplog: pytest.LogCaptureFixture) -> None:
    app = configured(CMSAPI_LIMITMAX=5)
    ContentAPI(app)
    assert caplog.messages == [MISSPELT]
    app.test_client().get("/api/v2/pages/")
    assert caplog.messages == [MISSPELT]


def test_check_finds_misspelt_settings() -> None:
    app = configured(CMSAPI_LIMITMAX=5)
    ContentAPI(app)
    assert run(app, "check") == f"{MISSPELT}\n1 problem found.\n1"


def test_a_misspelt_setting_is_named_by_the_instance_that_it_begins_like() -> None:
    app = configured(CMS_I18N_ENABLE=True, CMS_BACKEND="memory", CMS_URL_PREFIX="/cms")
    ContentAPI(app)
    ContentAPI(app, name="cms", config_prefix="CMS_")
    said = "CMS_I18N_ENABLE. Did you mean CMS_I18N_ENABLED or CMS_SITES_ENABLED?"
    assert run(app, "check") == "Everything is in order.\n"
    assert said in run(app, "check", name="cms")


@pytest.mark.parametrize(
    "key", ["CMS_I18N_ENABLE", "CMS_I18N_ENALBED", "CMS_L18N_ENABLED", "CMS_I18N", "CMSAPI_I18N"]
)
def test_the_setting_of_the_whole_site_may_be_misspelt(
    key: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = configured(**{key: True})
    ContentAPI(app)
    said = f"There is no setting {key}. Did you mean CMS_I18N_ENABLED?"
    assert caplog.messages == [said]
    assert run(app, "check").startswith(f"{said}\n1 problem")


def test_known_settings_and_those_of_others_are_not_misspelt(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = configured(
        CMSAPI_LIMIT_MAX=5, CMS_I18N_ENABLED=False, CMSAPI="x", SITE_LIMITMAX=5, I18N_ENABLED=1
    )
    ContentAPI(app)
    assert caplog.messages == []
    assert run(app, "check") == "Everything is in order.\n"


@pytest.mark.parametrize("prefix", ["CMSAPI_INTRANET_", "CMSAPI_URL_", "CMS_", "CMSX_"])
def test_prefixes_may_start_with_each_other(prefix: str, caplog: pytest.LogCaptureFixture) -> None:
    values = {"URL_PREFIX": "/intranet", "BACKEND": "memory", "I18N_ENABLED": True}
    own = {f"{prefix}{name}": value for name, value in values.items()}
    app = configured(CMSAPI_URL_PREFIX="/api/v2", **own)
    ContentAPI(app)
    ContentAPI(app, name="intranet", config_prefix=prefix)
    assert caplog.messages == []
    for name in ("contentapi", "intranet"):
        assert run(app, "check", name=name) == "Everything is in order.\n"


def test_settings_of_an_instance_that_never_comes_are_found_by_check() -> None:
    app = configured(CMSAPI_INTRANET_BASE_URL="https://x.example")
    ContentAPI(app)
    assert run(app, "check").startswith("There is no setting CMSAPI_INTRANET_BASE_URL.")


# Names of files and backends.


@pytest.mark.parametrize("command", ["dump", "load"])
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("sqlit:///x.db", "There is no backend 'sqlit'. Did you mean 'sqlite'"),
        ("postgre://u:secret@h/x.json", "There is no backend 'postgre'. Did you mean 'postgre"),
        ("folder:content", "There is no backend 'folder'."),
    ],
)
def test_backends_that_do_not_exist_are_no_files(command: str, name: str, said: str) -> None:
    shown = run(site_at(fresh_address("jsonfiles")), command, name)
    assert shown.startswith(f"Error: {said}")
    assert "secret" not in shown


def test_misspelt_backends_are_known_to_the_setting() -> None:
    with pytest.raises(ConfigurationError, match=r"'postgre'\. Did you mean 'postgresql'"):
        ContentAPI(configured(CMSAPI_BACKEND="postgre://host/name"))


OTHER = "For this backend, commands begin with FLASK_CMSAPI_BACKEND=sqlite:..."


@pytest.mark.parametrize("command", ["dump", "load"])
@pytest.mark.parametrize(
    ("name", "problem"),
    [("none.db", "There is no database file"), ("empty.db", "The tables are not there.")],
)
def test_advice_about_another_backend_says_so(
    command: str, name: str, problem: str, tmp_path: Path
) -> None:
    (tmp_path / "empty.db").touch()
    shown = run(site_at(fresh_address("sqlite")), command, f"sqlite:///{tmp_path}/{name}")
    assert shown.startswith(f"Error: {problem}")
    assert shown.endswith(f"flask contentapi init-db. {OTHER}\n1")


@pytest.mark.parametrize("command", ["dump", "load"])
def test_another_backend_is_migrated_by_itself(command: str) -> None:
    app = configured(CMSAPI_BACKEND=fresh_address("sqlite"))
    ContentAPI(app, types=[Old])
    run(app, "init-db")
    shown = run(site_at(fresh_address("sqlite")), command, app.config["CMSAPI_BACKEND"])
    assert shown.endswith(f"Change them with the command: flask contentapi migrate. {OTHER}\n1")


@pytest.mark.parametrize("name", ["x.csv", "content", "json"])
def test_dumps_have_names_that_say_what_they_are(name: str, tmp_path: Path) -> None:
    target = tmp_path / name
    shown = run(site_at(fresh_address("jsonfiles")), "dump", str(target))
    assert shown.endswith("must end in .json or .jsonl; a backend is named as jsonfiles:content\n1")
    assert not target.exists()


def test_folders_are_named_as_backends(tmp_path: Path) -> None:
    shown = run(site_at(fresh_address("sqlite")), "load", str(tmp_path))
    assert shown.endswith(f"; a folder of JSON files is jsonfiles:{tmp_path}\n1")


def test_folders_that_are_missing_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "nowhere"
    shown = run(site_at(fresh_address("sqlite")), "dump", f"{folder}/x.json")
    assert shown.endswith(f"/x.json': there is no folder '{folder}'\n1")


# Output of commands.


@pytest.mark.parametrize("end", ["json", "jsonl"])
def test_load_and_dump_say_what_they_did(end: str, tmp_path: Path) -> None:
    source, app = Flask("site"), site_at(fresh_address("sqlite"))
    ContentAPI(source, backend=MemoryBackend(CONTENT))
    path = str(tmp_path / f"a.{end}")
    assert run(source, "dump", path) == f"2 pages, 1 image written to {path}.\n"
    assert run(app, "load", path) == "2 pages, 1 image loaded into sqlite.\n"
    address = fresh_address("jsonfiles")
    assert run(app, "dump", address) == "2 pages, 1 image written to jsonfiles.\n"
    assert run(app, "load", address) == "2 pages, 1 image loaded into sqlite.\n"
    assert run(app, "load", "--yes", "-", input="{}") == "Nothing loaded into sqlite.\n"


def test_backends_given_in_python_are_called_as_they_are_installed() -> None:
    app = Flask("site")
    ContentAPI(app, backend=JSONFilesBackend(fresh_address("jsonfiles").partition(":")[2]))
    shown = run(app, "load", "-", input=json.dumps(CONTENT))
    assert shown == "2 pages, 1 image loaded into jsonfiles.\n"


def test_a_backend_of_the_sites_own_is_called_by_its_class() -> None:
    own = type("JSONFilesBackend", (JSONFilesBackend,), {})
    app = Flask("site")
    ContentAPI(app, backend=own(fresh_address("jsonfiles").partition(":")[2]))
    shown = run(app, "load", "-", input=json.dumps(CONTENT))
    assert shown == "2 pages, 1 image loaded into JSONFilesBackend.\n"


@persistent
def test_load_says_how_much_check_finds(backend: str) -> None:
    app = site_at(fresh_address(backend))
    content = {"pages": [plain(1, type="w.Old"), plain(2, 1, alias_of=9)]}
    shown = run(app, "load", "-", input=json.dumps(content))
    said = "The command flask contentapi check finds 2 problems in it."
    assert shown == f"2 pages loaded into {backend}.\n{said}\n"
    assert run(app, "check").endswith("2 problems found.\n1")


def test_progress_tells_reading_from_writing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flask_contentapi.cli._is_unwatched", bool)
    app, other = site_at(fresh_address("sqlite")), site_at(fresh_address("jsonfiles"))
    run(other, "load", "-", input=json.dumps(CONTENT))
    shown = run(app, "load", other.config["CMSAPI_BACKEND"])
    assert shown.index("reading pages") < shown.index("writing pages")


@persistent
def test_check_shows_its_progress(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flask_contentapi.cli._is_unwatched", bool)
    app = site_at(fresh_address(backend))
    content = json.dumps(CONTENT)
    assert re.search(r"loaded into \w+\.\n(.*\n)*checking\n", run(app, "load", "-", input=content))
    assert run(app, "check").endswith("checking\nEverything is in order.\n")


#: What is said on Ctrl-C if the content has been changed by then.
INTERRUPTED = (
    "\nThe content has been changed; only what comes after that has been interrupted. "
    "All of it is checked by: flask contentapi check.\n130"
)


def interrupted(*_: Any, **__: Any) -> NoReturn:
    """Stands for Ctrl-C at some point."""
    raise KeyboardInterrupt


@persistent
def test_interrupting_the_check_keeps_what_is_loaded(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = site_at(fresh_address(backend))
    monkeypatch.setattr(type(API(app).backend), "check", interrupted)
    content = {"pages": [plain(1, type="w.Old")]}
    said = run(app, "load", "-", input=json.dumps(content))
    assert said == f"1 page loaded into {backend}.\n{INTERRUPTED}"
    assert API(app).ids("pages/") == [1]


#: What follows once new content is stored.
AFTERWARDS = {
    "jsonfiles": "flask_contentapi_jsonfiles.store.shutil.rmtree",
    **dict.fromkeys(DATABASES, "flask_contentapi_peewee.engines.Engine.analyze"),
    "postgresql": "flask_contentapi_peewee.postgresql.PostgreSQL.analyze",
}


@persistent
@pytest.mark.parametrize("way", ["load", "dump"])
def test_interrupting_what_follows_a_load_says_that_it_is_done(
    backend: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = site_at(fresh_address(backend))
    from_memory = configured(CMSAPI_BACKEND=MemoryBackend(CONTENT))
    ContentAPI(from_memory)

    def once(*_: Any, **__: Any) -> NoReturn:
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(AFTERWARDS[backend], once)
    if way == "load":
        said = run(app, "load", "-", input=json.dumps(CONTENT))
    else:
        said = run(from_memory, "dump", app.config["CMSAPI_BACKEND"])
    assert said == INTERRUPTED
    assert API(site_at(app.config["CMSAPI_BACKEND"])).ids("pages/") == [1, 2]


@persistent
def test_interrupting_before_anything_is_stored_is_an_abort(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = site_at(fresh_address(backend))
    monkeypatch.setattr("flask_contentapi.content.check_collections", interrupted)
    assert run(app, "load", "-", input=json.dumps(CONTENT)).endswith("Aborted!\n1")
    assert API(app).ids("pages/") == []


@pytest.mark.backends(*DATABASES)
def test_interrupting_what_follows_a_migration_says_that_it_is_done(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Talk(Page):
        place = fields.String()

    address = fresh_address(backend)
    run(site_at(address), "load", "-", input=json.dumps(CONTENT))
    changed = configured(CMSAPI_BACKEND=address)
    ContentAPI(changed, types=[Talk, Page])
    with monkeypatch.context() as patched:
        patched.setattr(AFTERWARDS[backend], interrupted)
        assert run(changed, "migrate").endswith(INTERRUPTED)
    assert run(changed, "migrate") == "There is nothing to change.\n"


@on_posix
def test_a_dump_that_is_ended_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ending(*_: Any) -> NoReturn:
        os.kill(os.getpid(), signal.SIGTERM)
        raise AssertionError

    app = configured()
    ContentAPI(app)
    monkeypatch.setattr("flask_contentapi.files.orjson.dumps", ending)
    assert run(app, "dump", str(tmp_path / "all.jsonl")).endswith("143")
    assert [*tmp_path.iterdir()] == []


# Files written by people.


def written_by_hand() -> tuple[Flask, Path]:
    """A site with a folder that has one file with a record, and that file."""
    address = fresh_address("jsonfiles")
    file = Path(address.partition(":")[2], "pages", "home.json")
    file.parent.mkdir()
    file.write_text(json.dumps({"id": 1, "title": "Home"}), encoding="utf-8")
    return site_at(address), file


def test_load_deletes_files_by_hand_only_if_that_is_meant() -> None:
    app, file = written_by_hand()
    shown = run(app, "load", "-", input=json.dumps(CONTENT))
    assert "pages/home.json" in shown
    assert shown.endswith("If that is meant, say --yes.\n1")
    assert file.exists()
    assert run(app, "load", "--yes", "-", input=json.dumps(CONTENT)).startswith("2 pages")
    assert not file.exists()


def test_dump_deletes_files_by_hand_only_if_that_is_meant() -> None:
    app, file = written_by_hand()
    other = site_at(fresh_address("sqlite"))
    assert run(other, "dump", app.config["CMSAPI_BACKEND"]).endswith("say --yes.\n1")
    assert file.exists()
    assert run(other, "dump", "--yes", app.config["CMSAPI_BACKEND"]).startswith("Nothing")
    assert not file.exists()


def test_files_for_a_section_may_be_replaced() -> None:
    app = site_at(fresh_address("jsonfiles"))
    for _ in range(2):
        assert run(app, "load", "-", input=json.dumps(CONTENT)).startswith("2 pages")


# Types that are not declared.


@pytest.mark.backends("jsonfiles", "sqlite")
def test_undeclared_types_are_said_once(backend: str, caplog: pytest.LogCaptureFixture) -> None:
    source, app = site_at(fresh_address("jsonfiles")), site_at(fresh_address(backend))
    wrong = {"pages": [plain(1, type="flask_contentapi.Pages")]}
    said = "'flask_contentapi.Pages' is not declared. Did you mean 'flask_contentapi.Page'?"
    run(source, "load", "-", input=json.dumps(wrong))
    caplog.clear()
    run(app, "load", source.config["CMSAPI_BACKEND"])
    assert caplog.messages == [f"pages 1: the type {said}"]
    caplog.clear()
    shown = run(app, "check")
    assert (shown.count(said), caplog.messages) == (1, [])


@pytest.mark.backends("memory", "jsonfiles")
def test_what_a_command_says_is_not_in_the_log(
    backend: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    content = {"pages": [plain(1, type="shop.Product")]}
    (tmp_path / "pages.json").write_text(json.dumps(content["pages"]))
    given = MemoryBackend(content) if backend == "memory" else f"jsonfiles:{tmp_path}"

    def create_app() -> Flask:
        ContentAPI(app := configured(CMSAPI_BACKEND=given))
        return app

    said = CliRunner().invoke(FlaskGroup(create_app=create_app), ["contentapi", "check"]).output
    assert ("shop.Product" in said, caplog.messages) == (True, [])
    create_app()
    assert ["shop.Product" in message for message in caplog.messages] == [True]


# Notes.


class Old(Page):
    app_label = "w"
    text = fields.String()


@pytest.fixture
def later() -> Flask:
    """A site whose pages once had a text."""
    address = fresh_address("sqlite")
    app = configured(CMSAPI_BACKEND=address)
    ContentAPI(app, types=[Old])
    run(app, "init-db")
    run(app, "load", "-", input=json.dumps({"pages": [page(1, type="w.Old", text="Storm")]}))
    later = configured(CMSAPI_BACKEND=address)
    ContentAPI(later, types=[type("Old", (Page,), {"app_label": "w"})])
    assert run(later, "migrate") == "w.Old.text is not declared any more; its values stay.\n"
    return later


def test_what_is_no_longer_declared_is_no_problem(later: Flask) -> None:
    note = (
        "Note: w.Old once had text, which is still stored, but in no dump; "
        "flask contentapi migrate --forget deletes it.\n"
    )
    assert run(later, "check") == f"{note}Everything is in order.\n"


def test_a_dump_notes_what_it_leaves_out(later: Flask, tmp_path: Path) -> None:
    said = run(later, "dump", f"{tmp_path}/all.jsonl")
    assert "Note: w.Old once had text, which is still stored, but in no dump; " in said
    assert "Storm" not in (tmp_path / "all.jsonl").read_text()


def test_what_is_no_longer_declared_is_forgotten(later: Flask) -> None:
    assert run(later, "migrate", "--forget") == "w.Old.text is forgotten.\n"
    assert run(later, "migrate", "--forget") == "There is nothing to change.\n"
    assert run(later, "check") == "Everything is in order.\n"


class Person(Entry):
    app_label, endpoint = "w", "people"


def test_objects_of_former_endpoints_are_forgotten() -> None:
    address = fresh_address("sqlite")
    app = configured(CMSAPI_BACKEND=address)
    ContentAPI(app, types=[Person])
    run(app, "init-db")
    later = site_at(address)
    run(later, "migrate")
    tables = ("contentapi_people", "contentapi_people_documents")
    noted = [
        f"Note: The table {name} belongs to no declared endpoint; "
        "flask contentapi migrate --forget drops it."
        for name in tables
    ]
    assert run(later, "check").splitlines() == [*noted, "Everything is in order."]
    dropped = [f"The table {name} is dropped." for name in tables]
    assert run(later, "migrate", "--forget").splitlines() == dropped
    assert run(later, "check") == "Everything is in order.\n"


# Unreadable files.

#: For each file its content, and the message about it.
UNREADABLE: dict[str, tuple[str | bytes, str]] = {
    "deep.json": ('{"pages": ' + "[" * 10**5, "nested too deeply"),
    "cut.json": (
        '{"pages":\n [',
        "cut.json, line 2: is not JSON: a closing bracket is missing (column 3)",
    ),
    "twice.json": ('{"pages": [], "pages": []}', "the object has the key 'pages' already"),
    "inside.json": ('{"pages": [{"id": 1, "id": 2}]}', "the object has the key 'id' already"),
    "latin.json": (b'{"pages": ["\xff"]}', "latin.json, line 1: must be UTF-8"),
    "nan.json": ('{"pages": [{"id": NaN}]}', "line 1: NaN is no JSON; write null"),
    "list.json": ("[]", """must be an object with a list for each section, as {"pages": [...]}"""),
    "app.py": (
        "app = Flask('site')",
        "app.py, line 1: is not JSON: this is no value; texts are in double quotes (column 1)",
    ),
    "blank.json": ("\n", "blank.json: is empty"),
    "blank.jsonl": ("\n", "blank.jsonl, line 1: is empty"),
    "empty.json": ("{}", "There is nothing in it"),
    "page.json": ('{"page": []}', "page: there is no such section. Did you mean 'pages'?"),
    "same.json": (
        '{"collections": [{"id": 2}, {"id": 1}, {"id": 1}]}',
        "collections 1, id: another record has this id already: collections[1]",
    ),
    "object.json": ('{"pages": {}}', "pages: must be a list of records"),
    "deep.jsonl": ("[" * 10**5, "line 1: is nested too deeply"),
    "list.jsonl": (
        '["pages", {}]\n[["pages"], {}]',
        "line 2: must be a list of a section and a record",
    ),
    "twice.jsonl": ('["pages", {"id": 1, "id": 2}]', "the object has the key 'id' already"),
    "latin.jsonl": (b'["pages", {}]\n["pages", "\xff"]', "line 2: must be UTF-8"),
    "nan.jsonl": (
        '["pages", {"id": 1}]\n["pages", {"id": -Infinity}]',
        "line 2: -Infinity is no JSON",
    ),
    "empty.jsonl": ("", "There is nothing in it"),
}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Flask:
    """A site with content, which no test changes."""
    app, good = site_at(fresh_address("sqlite")), tmp_path_factory.mktemp("good") / "good.json"
    good.write_text(json.dumps(CONTENT))
    run(app, "load", str(good))
    return app


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_is_not_loaded(name: str, filled: Flask, tmp_path: Path) -> None:
    bad, held = tmp_path / name, run(filled, "dump", "-")
    assert '"title":"Page 1"' in held
    text, said = UNREADABLE[name]
    bad.write_bytes(text if isinstance(text, bytes) else text.encode())
    output = run(filled, "load", str(bad))
    assert said in output
    assert output.endswith("1")
    assert run(filled, "dump", "-") == held


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_files_may_begin_with_a_mark_of_their_encoding(name: str, tmp_path: Path) -> None:
    source, app = configured(), site_at(fresh_address("sqlite"))
    ContentAPI(source)
    path = tmp_path / name
    run(source, "dump", str(path))
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert run(app, "load", str(path)) == "2 pages, 1 image loaded into sqlite.\n"


def test_what_is_wrong_with_the_standard_input_is_said_with_its_line() -> None:
    said = run(site_at(fresh_address("sqlite")), "load", "-", input='{"pages":\n[')
    assert said.startswith("Error: the standard input, line 2: is not JSON")


def test_nothing_is_loaded_only_if_that_is_meant(tmp_path: Path) -> None:
    app = site_at(fresh_address("sqlite"))
    (tmp_path / "empty.jsonl").touch()
    assert "Nothing loaded" in run(app, "load", "--yes", str(tmp_path / "empty.jsonl"))

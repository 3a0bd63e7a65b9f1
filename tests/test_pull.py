"""A site that speaks the API is pulled: into a folder that runs, and into a site that is there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from click.testing import CliRunner
from flask import Flask
from marshmallow import fields

import flask_contentapi as contentapi
from demo import create_app, models
from demo.languages import LanguageInPath
from demo.models import TYPES
from flask_contentapi import ContentAPI, Entry
from flask_contentapi.__main__ import main
from flask_contentapi_memory import MemoryBackend
from tests.clones import copy_demo
from tests.servers import free_port, served, start, stop
from tests.stores import DATABASES, fresh_address, on_memory

pytestmark = [on_memory, pytest.mark.slow]

#: What is left of an address without its host.
HOST = re.compile(r"http://(127\.0\.0\.1|localhost)(:[0-9]+)?")
ENDPOINTS = ("pages", "images", "documents", "apples", "redirects")


class Original:
    """The demo, served from a folder of its own.

    :param folder: the folder.
    """

    def __init__(self, folder: Path) -> None:
        copy_demo(folder)
        self.content = folder / "demo" / "content"
        # What a rendition is cannot be seen from outside.
        config = {"CMSAPI_BACKEND": f"jsonfiles:{self.content}", "CMSAPI_RENDITIONS": {}}
        self.app = create_app(config)
        self.url = ""

    def edit(self, page: str, **changes: Any) -> None:
        """Changes a page, named by its file."""
        file = self.content / "pages" / page
        file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
        self.reload()

    def reload(self) -> None:
        with self.app.app_context():
            self.app.extensions["contentapi"]["contentapi"].backend.reload()


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Original]:
    """The demo, which no test changes."""
    made = Original(tmp_path_factory.mktemp("original"))
    with served(made.app) as port:
        made.url = f"http://127.0.0.1:{port}/api/v2/"
        yield made


@pytest.fixture(scope="module")
def mirror(original: Original, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the demo is pulled into, with its files."""
    folder = tmp_path_factory.mktemp("pulled") / "mirror"
    said = pull(original.url, folder, "--media")
    assert "36 pages" in said
    assert "2 locales, 1 site are in" in said
    return folder


@pytest.fixture
def changing(tmp_path: Path) -> Iterator[Original]:
    """A demo to be changed."""
    made = Original(tmp_path / "original")
    with served(made.app) as port:
        made.url = f"http://127.0.0.1:{port}/api/v2/"
        yield made


def pull(url: str, folder: Path, *options: str, status: int = 0) -> str:
    """What the command says that needs no site."""
    done = CliRunner().invoke(main, ["pull", url, str(folder), *options])
    assert done.exit_code == status, done.output
    return done.output


def ask(url: str) -> Any:
    """The JSON at an address, without hosts."""
    with urlopen(url) as response:  # noqa: S310 - our own server
        return json.loads(HOST.sub("", response.read().decode()))


def site_of(folder: Path) -> Flask:
    """A site with the types of the demo, whose content is anywhere."""
    app = Flask("site", root_path=str(folder), instance_path=str(folder / "instance"))
    app.config.update(CMSAPI_BACKEND="jsonfiles:content", CMS_I18N_ENABLED=True)
    return app


def test_mirror_answers_as_the_original(original: Original, mirror: Path) -> None:
    said = pull(original.url, mirror, "--verify", "--requests", "150", "--seed", "5")
    assert "150 answers compared, 0 unexplained differences." in said


def test_folder_runs(original: Original, mirror: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "flask", "run", "--port", str(port)]
    server = start(command, port, cwd=mirror)
    try:
        base = f"http://127.0.0.1:{port}/api/v2/"
        for endpoint in ENDPOINTS:
            for item in ask(f"{original.url}{endpoint}/?fields=*")["items"]:
                path = f"{endpoint}/{item['id']}/"
                assert ask(f"{base}{path}") == ask(f"{original.url}{path}")
        image = ask(f"{base}images/")["items"][0]["meta"]["download_url"]
        assert urlopen(f"http://127.0.0.1:{port}{image}").read(3)
    finally:
        stop(server)


def test_files_can_be_downloaded_later(original: Original, tmp_path: Path) -> None:
    pull(original.url, tmp_path / "mirror")
    pull(original.url, tmp_path / "mirror", "--media")
    ask = (
        "from app import app; from urllib.parse import urlsplit; client = app.test_client(); "
        "url = client.get('/api/v2/images/').json['items'][0]['meta']['download_url']; "
        "print(client.get(urlsplit(url).path).status_code)"
    )
    command = [sys.executable, "-c", ask]
    done = subprocess.run(command, cwd=tmp_path / "mirror", capture_output=True, text=True)
    assert done.stdout == "200\n", done.stderr


def test_files_that_are_missing_are_downloaded_later(
    original: Original, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*args: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("flask_contentapi.importers.source.Source.download", stopped)
        pull(original.url, tmp_path / "mirror", "--media", status=1)
    assert [path.name for path in tmp_path.iterdir()] == ["mirror"]
    assert pull(original.url, tmp_path / "mirror", "--media") == "Nothing has changed.\n"
    assert {path.suffix for path in (tmp_path / "mirror" / "media").rglob("*.*")} >= {".jpg"}


def test_what_the_site_needs_is_named(
    original: Original, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flask_contentapi.importers.pull.missing_packages", lambda name: [name])
    said = pull(original.url, tmp_path / "mirror")
    assert 'rich text needs: pip install "flask_contentapi[richtext]".\n' in said


def test_sites_keep_their_names(mirror: Path) -> None:
    (site,) = json.loads((mirror / "content" / "sites.json").read_text())
    assert site["site_name"] == "Windfall"


def test_nothing_is_wrong_with_the_content(mirror: Path) -> None:
    command = [sys.executable, "-m", "flask", "contentapi", "check"]
    done = subprocess.run(command, cwd=mirror, capture_output=True, text=True, check=False)
    assert done.stdout == "Everything is in order.\n"


def test_links_of_redirects_stay_links(mirror: Path) -> None:
    page, link = json.loads((mirror / "content" / "redirects.json").read_text())
    assert page["redirect_page"] == 10
    assert link["redirect_link"] == "/apples/"


def test_location_that_becomes_a_page_is_told(original: Original, tmp_path: Path) -> None:
    class Redirect(contentapi.Redirect):
        app_label = "wagtailredirects"
        body_fields = ("id", "old_path", "location")

    app = site_of(original.content.parent)
    others = [declared for declared in TYPES if declared is not contentapi.Redirect]
    ContentAPI(app, types=[*others, Redirect], page_urls=LanguageInPath())
    with served(app) as port:
        url = f"http://127.0.0.1:{port}/api/v2/"
        said = pull(url, tmp_path / "mirror", "--verify", "--requests", "150")
    assert " x the location of a redirect to a page is an address here\n" in said
    assert "0 unexplained" in said


def test_types_are_read_off_answers(mirror: Path) -> None:
    code = (mirror / "models.py").read_text()
    for line in (
        "    published_date = fields.Date()",
        "    begins = fields.Time()",
        "    tags = Tags()",
        "    authors = Children(Author)",
        '    feed_image = Related("images")',
        '    page = Related("pages", shown="_,id,type,detail_url,html_url,title")',
        "    known_since = fields.Integer()",
        "    body = RichText()",
    ):
        assert f"{line}\n" in code


def verified(original: Original, folder: Path, old: str, new: str, requests: int) -> str:
    """What is said about the answers of a mirror whose code has been changed."""
    pull(original.url, folder)
    code = (folder / "app.py").read_text()
    assert old in code
    (folder / "app.py").write_text(code.replace(old, new))
    return pull(original.url, folder, "--verify", "--requests", str(requests), status=1)


def test_verification_finds_what_differs(original: Original, tmp_path: Path) -> None:
    setting = "CMS_I18N_ENABLED=True", "CMSAPI_LIMIT_MAX=19"
    said = verified(original, tmp_path / "mirror", *setting, requests=80)
    assert "meta.locale: 'en', here None" in said


def test_verification_asks_for_paths(original: Original, tmp_path: Path) -> None:
    found = "return locale, html_path", "return locale, '/no/'"
    said = verified(original, tmp_path / "mirror", *found, requests=200)
    assert "pages/find/?html_path=%2F\n  status: 302, here 404\n" in said
    assert re.search(r"html_path=(%2F[a-z-]+){2}%2F\n  status: 302, here 404\n", said)


def test_nothing_is_written_if_nothing_has_changed(original: Original, mirror: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (mirror / "content").glob("*.json")}
    assert pull(original.url, mirror) == "Nothing has changed.\n"
    assert before == {path: path.stat().st_mtime_ns for path in (mirror / "content").glob("*.json")}


def test_only_what_has_changed_is_written(changing: Original, tmp_path: Path) -> None:
    mirror = tmp_path / "mirror"
    pull(changing.url, mirror)
    content = mirror / "content"
    before = {path: path.stat().st_mtime_ns for path in content.glob("*.json")}
    changing.edit("10_en/10_orchard/index.json", title="The old orchard")
    assert pull(changing.url, mirror) == "1 page changed.\n~ pages 2\n"
    written = {path.name for path, time in before.items() if path.stat().st_mtime_ns != time}
    assert written == {"pages.json"}


def test_what_came_and_went_is_told(changing: Original, tmp_path: Path) -> None:
    mirror = tmp_path / "mirror"
    pull(changing.url, mirror)
    page = json.loads((changing.content / "pages/10_en/10_orchard/index.json").read_text())
    new = {**page, "id": 900, "title": "New", "slug": "new"}
    (changing.content / "pages/10_en/11_new.json").write_text(json.dumps(new))
    changing.edit("10_en/10_orchard/index.json", live=False)
    said = pull(changing.url, mirror)
    assert "+ pages 900\n" in said
    assert "- pages 2\n" in said
    said = pull(changing.url, mirror, "--verify", "--requests", "60")
    assert "Nothing has changed." in said
    assert "0 unexplained" in said


@pytest.mark.backends("jsonfiles", *DATABASES)
def test_pull_into_a_site(original: Original, backend: str, tmp_path: Path) -> None:
    app = site_of(tmp_path)
    app.config["CMSAPI_BACKEND"] = fresh_address(backend)
    app.config["CMSAPI_RICH_TEXT_FORMAT"] = "html"
    ContentAPI(app, types=TYPES, page_urls=LanguageInPath())
    runner = app.test_cli_runner()
    runner.invoke(args=["contentapi", "init-db"])
    done = runner.invoke(args=["contentapi", "pull", original.url])
    assert "36 pages new" in done.output, done.output
    here = app.test_client().get("/api/v2/pages/7/").get_data(as_text=True)
    with urlopen(f"{original.url}pages/7/") as response:  # noqa: S310
        there = response.read().decode()
    assert HOST.sub("", here) == HOST.sub("", there)
    assert (
        runner.invoke(args=["contentapi", "pull", original.url]).output == "Nothing has changed.\n"
    )


def test_what_is_not_shown_stays(original: Original, tmp_path: Path) -> None:
    class Picture(models.Picture):
        app_label = "demo"
        note = fields.String()

    app = site_of(tmp_path)
    app.config["CMSAPI_BACKEND"] = f"sqlite:///{tmp_path}/site.db"
    types = [Picture if declared is models.Picture else declared for declared in TYPES]
    api = ContentAPI(app, types=types)
    runner = app.test_cli_runner()
    runner.invoke(args=["contentapi", "init-db"])
    runner.invoke(args=["contentapi", "pull", original.url])
    with app.app_context(), api.backend.write() as writer:
        writer.update("images", 1, note="ours", title="Another title")
        writer.delete_site("127.0.0.1", int(original.url.split(":")[2].split("/")[0]))
        writer.put_site(hostname="new.example", root_page=1, is_default=True)
    said = runner.invoke(args=["contentapi", "pull", original.url]).output
    assert said == "1 image changed.\n~ images 1\n"
    with app.app_context(), api.backend.write() as writer:
        assert writer.record("images", 1)["note"] == "ours"
        assert writer.record("images", 1)["title"] != "Another title"
    assert app.test_client().get("/api/v2/pages/?site=new.example").status_code == 200


def test_what_the_source_does_not_have_stays(original: Original, tmp_path: Path) -> None:
    class Visit(Entry):
        app_label = "own"
        endpoint = "visits"
        name = fields.String()
        api_fields = ["name"]

    app = site_of(tmp_path)
    app.config["CMSAPI_BACKEND"] = f"sqlite:///{tmp_path}/site.db"
    api = ContentAPI(app, types=[*TYPES, Visit])
    runner = app.test_cli_runner()
    runner.invoke(args=["contentapi", "init-db"])
    runner.invoke(args=["contentapi", "pull", original.url])
    with app.app_context(), api.backend.write() as writer:
        vault = writer.put_collection(name="Vault", restriction={"type": "login"})
        writer.put_locale("xx")
        writer.update("images", 1, collection=vault)
        writer.add("visits", {"id": 5, "type": "own.Visit", "name": "Spring"})
    # Languages are what the source says, which has everything written anew.
    said = runner.invoke(args=["contentapi", "pull", original.url]).output
    assert said == "Sites or languages changed.\n"
    client = app.test_client()
    assert client.get("/api/v2/visits/5/").get_json()["name"] == "Spring"
    assert client.get("/api/v2/images/1/").status_code == 404


def test_unknown_fields_are_told(original: Original, tmp_path: Path) -> None:
    (tmp_path / "content").mkdir()
    app = site_of(tmp_path)
    ContentAPI(app, types=[])
    done = app.test_cli_runner().invoke(args=["contentapi", "pull", original.url])
    assert "Note: No type is served at apples" in done.output
    assert "Note: demo.ArticlePage is not declared" in done.output


def test_memory_backend_is_refused(original: Original, tmp_path: Path) -> None:
    app = site_of(tmp_path)
    app.config["CMSAPI_BACKEND"] = MemoryBackend({})
    ContentAPI(app, types=TYPES)
    done = app.test_cli_runner().invoke(args=["contentapi", "pull", original.url])
    assert done.exit_code == 1
    assert "keeps nothing" in done.output


def test_folder_with_something_else_stays(original: Original, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    said = pull(original.url, tmp_path, status=1)
    assert "none that this command writes" in said
    assert os.listdir(tmp_path) == ["notes.txt"]


def test_hand_written_files_are_not_lost(original: Original, tmp_path: Path) -> None:
    pull(original.url, tmp_path / "mirror")
    (tmp_path / "mirror" / "content" / "pages").mkdir()
    (tmp_path / "mirror" / "content" / "pages" / "own.json").write_text(
        '{"id": 5000, "type": "blog.Post", "title": "Own", "slug": "own"}'
    )
    assert "say --yes" in pull(original.url, tmp_path / "mirror", status=1)
    assert "- pages 5000" in pull(original.url, tmp_path / "mirror", "--yes")


@pytest.mark.parametrize(
    "command",
    [
        "flask_contentapi pull http://127.0.0.1:9/ mirror",
        "flask contentapi pull http://127.0.0.1:9/",
    ],
)
def test_missing_package_is_named(command: str, tmp_path: Path) -> None:
    (tmp_path / "content").mkdir()
    (tmp_path / "app.py").write_text(
        "from flask import Flask\nfrom flask_contentapi import ContentAPI\n"
        "app = Flask(__name__)\napp.config['CMSAPI_BACKEND'] = 'jsonfiles:content'\n"
        "ContentAPI(app, types=[])\n"
    )
    module, *args = command.split()
    code = (
        "import runpy, sys; sys.modules['httpx'] = None; "
        f"sys.argv[:] = {[module, *args]}; runpy.run_module({module!r}, run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.startswith("Error: What pulling needs is not installed: ")
    assert done.stderr.endswith('pip install "flask_contentapi[pull]".\n')
    assert not (tmp_path / "mirror").exists()
    assert not (tmp_path / ".mirror.answers.db").exists()

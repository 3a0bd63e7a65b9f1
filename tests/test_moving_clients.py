"""Clients of Wagtail's API move by changing one address: the mirror answers them as Wagtail does.

wagtail-js and wagtail-cli run as they are published. Of front ends the requests are sent that they
make, with the types and fields of this site.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import pytest

from tests.servers import free_port, start, stop
from tests.stores import leave_out, on_memory
from tests.wagtails import Wagtail, running_wagtail

pytestmark = [on_memory, pytest.mark.slow]

#: The keys that the contract adds, and those with an address in the API.
ADDED, LEADING = {"expires_at", "is_permanent"}, {"detail_url", "location"}
#: What is left of an address without its host.
HOST = re.compile(r"https?://(?:127\.0\.0\.1(?::[0-9]+)?|main\.example|second\.example)")
INSTANT = re.compile(r"[0-9-]{10}T[0-9:.]+(?:Z|[+-][0-9:]{5})")
ARTICLE = "orchard.ArticlePage"
MISSING = 999_999


class Sites(NamedTuple):
    """Both sites.

    :param original: the address of Wagtail.
    :param mirror: that of its mirror.
    :param page: the id of an article.
    :param slug: its slug.
    :param section: the id of the page above it.
    :param home: that of the home page.
    """

    original: str
    mirror: str
    page: int
    slug: str
    section: int
    home: int


@pytest.fixture(scope="module")
def wagtail(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wagtail]:
    yield from running_wagtail(tmp_path_factory)


@pytest.fixture(scope="module")
def sites(wagtail: Wagtail, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    folder = tmp_path_factory.mktemp("pulled") / "mirror"
    command = [sys.executable, "-m", "flask_contentapi", "pull", wagtail.url, str(folder)]
    subprocess.run([*command, "--site", "second.example"], check=True, capture_output=True)
    records = json.loads((folder / "content" / "pages.json").read_text())
    # One that embeds nothing that is hidden, and has a slug of its own.
    page = next(
        record
        for record in records
        if record["type"] == ARTICLE and record["slug"] == "article-1" and record.get("live", True)
    )
    port = free_port()
    command = [sys.executable, "-m", "flask", "run", "--port", str(port)]
    environment = {**os.environ, "FLASK_CMSAPI_SITES_ENABLED": "true"}
    server = start(command, port, cwd=folder, env=environment)
    yield Sites(
        wagtail.url.removesuffix("/api/v2/"),
        f"http://127.0.0.1:{port}",
        page["id"],
        page["slug"],
        page["parent"],
        records[0]["id"],
    )
    stop(server)


def tidy(value: Any) -> Any:
    """A value without hosts, keys that the contract adds, and messages of errors.

    Instants are the same in any time zone.
    """
    if isinstance(value, dict):
        kept = {key: tidy(inner) for key, inner in value.items() if key not in ADDED}
        kept |= dict.fromkeys(kept.keys() & {"message"}, "")
        led = [key for key in kept.keys() & LEADING if "/api/v2/" in str(kept[key])]
        # What is asked with an address is no part of where it leads.
        return kept | {key: urlsplit(kept[key]).path for key in led}
    if isinstance(value, list):
        return [*map(tidy, value)]
    if isinstance(value, str) and INSTANT.fullmatch(value):
        return datetime.fromisoformat(value).astimezone(UTC)
    return HOST.sub("", value) if isinstance(value, str) else value


# wagtail-js.

CALLS = """
import { CMSClient, FetchError, fetchContent, fetchRequest } from "wagtail-js";

const [base, page, slug, section, home, missing] = process.argv.slice(2);
console.group = console.log = console.groupEnd = console.warn = () => {};
const client = new CMSClient({ baseURL: base, apiPath: "/api/v2", cache: "no-store" });
const article = "orchard.ArticlePage";
const calls = {
  pages: () => client.fetchPages(),
  some: () => client.fetchPages({ limit: 3, offset: 4 }),
  typed: () => client.fetchPages({ type: article, fields: ["subtitle", "tags", "author"] }),
  everything: () => client.fetchPages({ type: article, slug, fields: ["*"] }),
  below: () => client.fetchPages({ child_of: section, order: "-id", limit: 5 }),
  inside: () => client.fetchPages({ descendant_of: home, limit: 5 }),
  above: () => client.fetchPages({ ancestor_of: page }),
  menu: () => client.fetchPages({ child_of: "root", show_in_menus: true }),
  german: () => client.fetchPages({ locale: "de", limit: 4 }),
  translations: () => client.fetchPages({ translation_of: section }),
  wrong: () => client.fetchPages({ no_such: 1 }),
  page: () => client.fetchPage(Number(page)),
  bySlug: () => client.fetchPage(slug),
  withFields: () => client.fetchPage(Number(page), { fields: ["_", "title", "body"] }),
  missing: () => client.fetchPage(Number(missing)),
  missingSlug: () => client.fetchPage("no-such-slug"),
  images: () => client.fetchImages({ limit: 3, fields: ["width", "height"] }),
  image: () => client.fetchImage(1),
  noImage: () => client.fetchImage(Number(missing)),
  documents: () => client.fetchDocuments({ limit: 2 }),
  document: () => client.fetchDocument(1),
  noDocument: () => client.fetchDocument(Number(missing)),
  people: () => client.fetchContent("people", { limit: 2 }),
  media: async () => client.getMediaSrc((await client.fetchImage(1)).meta),
  fetchContent: () => fetchContent(base, "/api/v2", "redirects", { limit: 5 }),
  fetchRequest: () => fetchRequest("GET", `${base}/api/v2/pages/${page}/`),
};
const found = {};
for (const [name, call] of Object.entries(calls)) {
  try {
    const answer = await call();
    found[name] = answer.data instanceof FetchError ? [answer.message, answer.data.code] : answer;
  } catch (error) {
    found[name] = [error.name, error.code];
  }
}
process.stdout.write(JSON.stringify(found));
"""


@pytest.fixture(scope="module")
def javascript(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with wagtail-js in it."""
    if shutil.which("npm") is None:
        leave_out("npm is not installed")
    folder = tmp_path_factory.mktemp("wagtail-js")
    (folder / "package.json").write_text('{"type": "module", "private": true}')
    (folder / "calls.js").write_text(CALLS)
    command = ["npm", "install", "--no-audit", "--no-fund", "wagtail-js@1.1.1"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder


def called(folder: Path, base: str, sites: Sites) -> Any:
    """What each call of wagtail-js gives."""
    given = (base, sites.page, sites.slug, sites.section, sites.home, MISSING)
    command = ["node", "calls.js", *map(str, given)]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return tidy(json.loads(done.stdout))


def test_wagtail_js(sites: Sites, javascript: Path) -> None:
    original = called(javascript, sites.original, sites)
    mirror = called(javascript, sites.mirror, sites)
    for name, wanted in original.items():
        assert mirror[name] == wanted, name
    assert len(original) == 26
    assert original["page"]["id"] == sites.page
    assert original["wrong"] == ["FetchError", "REQUEST_FAILED"]


# wagtail-cli.

RUNS = """
import json, sys
from typer.testing import CliRunner
from wagtail_cli import __version__
from wagtail_cli.cli import main
import wagtail_cli.cli

found = {"version": __version__}
for words in json.loads(sys.argv[2]):
    given = ["--url", sys.argv[1] + "/api/v2/", "--token", "none", "--json", "api", *words]
    done = CliRunner().invoke(main.app, given)
    shown = None if done.exit_code else json.loads(done.output)
    found[" ".join(words)] = [done.exit_code, shown]
print(json.dumps(found))
"""


def commands(sites: Sites) -> list[list[str]]:
    """The commands of wagtail-cli that read."""
    page, section = str(sites.page), str(sites.section)
    lists = [
        "",
        "--limit 3 --offset 2",
        f"--type {ARTICLE} --order -id --limit 4",
        f"--child-of {section} --limit 4",
        "--child-of root",
        f"--descendant-of {section} --limit 4",
        f"--ancestor-of {page}",
        f"--translation-of {section}",
        "--locale de --limit 2",
        "--site second.example --limit 4",
        "--order no-such-field",
        "--limit many",
    ]
    others = [
        *("pages find --path /section-1/", "pages find --path /no-such-page/"),
        *(f"pages find --id {page}", f"pages get {page}", f"pages get {MISSING}"),
        f"pages get {page} --html",
        *("images list --limit 3", "images list --order -id", "images get 1"),
        *("documents list", "documents get 1", f"documents get {MISSING}"),
        *("redirects list", "redirects list --order -id", "redirects get 1"),
        *("redirects find --path /within", f"redirects find --id {MISSING}"),
        # Version 2 of the API does not have these.
        *("whoami", "schema list", f"pages revisions list {page}"),
    ]
    return [text.split() for text in (*(f"pages list {text}" for text in lists), *others)]


@pytest.mark.parametrize("version", ["0.2.0", "0.4.0"])
def test_wagtail_cli(sites: Sites, version: str, tmp_path: Path) -> None:
    # Its packages are there, as ours need them, too. It says that it needs a newer Python.
    install = ["-m", "pip", "install", "-q", "--no-deps", "--ignore-requires-python"]
    source = ["--disable-pip-version-check", "--target", str(tmp_path), f"wagtail-cli=={version}"]
    subprocess.run([sys.executable, *install, *source], check=True, capture_output=True)
    run = partial(subprocess.run, check=True, capture_output=True, text=True, cwd=tmp_path)

    def shown(base: str, wanted: list[list[str]]) -> Any:
        command = [sys.executable, "-c", RUNS, base, json.dumps(wanted)]
        return tidy(json.loads(run(command).stdout))

    found = [shown(base, commands(sites)) for base in (sites.original, sites.mirror)]
    assert found[0].pop("version").startswith(version[:3])
    for name, wanted in found[0].items():
        assert found[1][name] == wanted, name
    assert found[0][f"pages get {sites.page}"][1]["id"] == sites.page
    assert found[0][f"pages get {MISSING}"][0] != 0
    # Version 2 of the original does not have these.
    own = shown(sites.mirror, [["sites", "list"], ["locales", "list"], ["locales", "get", "1"]])
    hosts, languages = (own[f"{name} list"][1]["items"] for name in ("sites", "locales"))
    assert [host["port"] for host in hosts] == [80, 80]
    assert hosts[0]["root_page_id"] == sites.home
    assert own["locales get 1"] == [0, languages[0]]
    first = f"sites get {hosts[0]['id']}"
    assert shown(sites.mirror, [first.split()])[first] == [0, hosts[0]]


# Front ends.


def requests_of(client: str, sites: Sites) -> list[str]:
    """The requests of a front end."""
    page, section, path = sites.page, sites.section, quote("/section-1/")
    if client == "ds-frontend":
        return [
            "pages/?offset=0&limit=20&format=json",
            f"pages/{page}/?format=json",
            f"pages/find/?html_path={path}&format=json",
            f"pages/?child_of={section}&format=json",
            f"pages/?ancestor_of={page}&format=json",
            f"pages/?child_of={section}&offset=2&limit=3&order=-first_published_at&format=json",
            f"pages/?type={ARTICLE}&limit=4&fields=subtitle,date&format=json",
            "images/1/?format=json",
            f"pages/{MISSING}/?format=json",
        ]
    if client == "areweheadlessyet":
        return [
            "pages/?type=orchard.HomePage",
            f"pages/{sites.home}?",
            f"pages/?type={ARTICLE}&fields=title%2Csubtitle%2Cfeatured",
            f"pages/?type={ARTICLE}&slug={sites.slug}&fields=*",
        ]
    if client == "nextjs-loves-wagtail":
        return [
            f"pages/?type={ARTICLE}&fields=subtitle",
            f"pages/?slug={sites.slug}&type={ARTICLE}&fields=subtitle%2Cbody",
            f"pages/?type={ARTICLE}",
        ]
    return [
        f"pages/?type={ARTICLE}&fields=subtitle,body,date",
        f"pages/{page}/",
        "pages/find/?html_path=/section-1/",
        "pages/find/?html_path=/no-such-page/",
    ]


def asked(base: str, path: str) -> tuple[int, Any]:
    """The status and the JSON of an answer, after redirects as browsers follow them."""
    parts = urlsplit(base)
    connection = HTTPConnection(parts.netloc)
    with closing(connection):
        location = f"/api/v2/{path}"
        for _ in range(3):
            connection.request("GET", location, headers={"Accept": "application/json"})
            answer = connection.getresponse()
            body = answer.read()
            if answer.status not in (301, 302, 307, 308):
                break
            # The host of the site is not known here.
            location = HOST.sub("", answer.headers["Location"])
    return answer.status, tidy(json.loads(body))


@pytest.mark.parametrize(
    "client", ["ds-frontend", "areweheadlessyet", "nextjs-loves-wagtail", "nuxt-wagtail-api-poc"]
)
def test_requests_of_front_ends(sites: Sites, client: str) -> None:
    for path in requests_of(client, sites):
        assert asked(sites.mirror, path) == asked(sites.original, path), path

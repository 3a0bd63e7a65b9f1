"""A folder of Markdown is imported: into a folder that runs, and again into the same one."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
import time
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal
from unicodedata import normalize
from urllib.request import urlopen

import pytest
from click.testing import CliRunner
from flask import Flask

from flask_contentapi import ContentAPI
from flask_contentapi.__main__ import main
from flask_contentapi.content import DEEPEST
from flask_contentapi.importers.bodies import without_code
from tests.servers import free_port, start, stop
from tests.stores import on_memory

pytestmark = [on_memory, pytest.mark.slow]

Form = Literal["NFC", "NFD"]
#: A picture, as far as anybody looks.
PICTURE = b"\x89PNG\r\n"


class Site:
    """A folder of Markdown, and the site that is made of it.

    :param folder: where both are.
    """

    def __init__(self, folder: Path) -> None:
        self.source, self.folder = folder / "garden", folder / "site"
        self.source.mkdir()

    def put(self, name: str, text: str | bytes = "") -> None:
        """Writes a file of the source."""
        file = self.source / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())

    def run(self, *options: str, status: int = 0) -> str:
        """What the command says."""
        command = ["import", str(self.source), str(self.folder), *options]
        done = CliRunner().invoke(main, command)
        assert done.exit_code == status, done.output
        return done.output.replace(str(self.folder), "site")

    def refused(self, *options: str) -> list[str]:
        """What is wrong; nothing is written then."""
        before = state_of(self.folder)
        said = self.run(*options, status=1)
        assert state_of(self.folder) == before
        assert [*self.folder.parent.glob(".site*")] == []
        return said.removeprefix("Error: ").splitlines()

    def ask(self, path: str) -> Any:
        """The answer of the site that was made."""
        app = Flask("site")
        app.config["CMSAPI_BACKEND"] = f"jsonfiles:{self.folder / 'content'}"
        ContentAPI(app, types=runpy.run_path(str(self.folder / "models.py"))["TYPES"])
        response = app.test_client().get(f"/api/v2/{path}")
        assert response.status_code == 200, response.text
        return response.json

    def page(self, slug: str, query: str = "") -> Any:
        """The page with a slug."""
        (found,) = self.ask(f"pages/?slug={slug}")["items"]
        return self.ask(f"pages/{found['id']}/{query}")

    def body(self, text: str) -> str:
        """The body of a page with a text, that is beside ``other.md`` and ``rye.png``."""
        self.put("log/page.md", text)
        self.put("log/other.md", "---\nslug: another\naliases: [/former]\n---\n")
        self.put("log/rye.png", PICTURE)
        self.run()
        body: str = self.page("page")["body"]
        return body


def state_of(folder: Path) -> dict[str, bytes]:
    """The files of a folder."""
    paths = (Path(inner, name) for inner, _, names in os.walk(folder) for name in names)
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def add(site: Site, **values: Any) -> None:
    """Writes a page into the content by hand, before the others."""
    file = site.folder / "content" / "pages.json"
    own = {"id": 3, "type": "site.Page", "parent": 1, "title": "Own", "slug": "own", **values}
    pages = json.loads(file.read_text())
    file.write_text(json.dumps([pages[0], own, *pages[1:]]))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


# The tree.


def test_folders_are_as_deep_as_a_tree(site: Site) -> None:
    deepest = "/".join("ab"[n % 2] for n in range(DEEPEST - 1))
    site.put(f"{deepest}/_index.md", "---\ntitle: Last\n---\n")
    assert site.run().startswith(f"{DEEPEST} pages, ")
    site.put(f"{deepest}/c.md")
    (said,) = site.refused()
    assert f"/c.md, line 1: parent: is on level {DEEPEST + 1} of the tree" in said


def test_folders_and_indexes_are_the_tree(site: Site) -> None:
    site.put("_index.md", "---\ntitle: The garden\n---\nHello")
    site.put("beds/index.md", "---\ntitle: Beds\n---\n")
    site.put("beds/rye.md", "---\ntitle: Rye\n---\n")
    site.put("beds/oats/index.md", "---\ntitle: Oats\n---\n")
    site.put("tools/saw/old-saw.md")
    assert site.run() == "7 pages, 1 site are in site. cd site && flask run\n"
    items = [site.ask(f"pages/{number}/") for number in range(1, 8)]
    found = {item["title"]: (item["meta"]["parent"] or {}).get("title") for item in items}
    assert found == {
        "The garden": None,
        "Beds": "The garden",
        "Oats": "Beds",
        "Rye": "Beds",
        "Tools": "The garden",
        "Saw": "Tools",
        "Old saw": "Saw",
    }


def test_a_page_has_the_folder_beside_it(site: Site) -> None:
    site.put("beds.md", "---\ntitle: Our beds\n---\n")
    site.put("beds/rye.md")
    site.run()
    assert site.page("rye")["meta"]["parent"]["title"] == "Our beds"


def test_a_file_can_have_the_name_of_its_folder(site: Site) -> None:
    site.put("beds/rye/rye.md", "Rye")
    site.put("beds/_index.md")
    site.put("beds/beds.md", "Beds")
    site.run()
    pages = json.loads((site.folder / "content" / "pages.json").read_text())
    assert [page["slug"] for page in pages] == ["home", "beds", "beds", "rye"]
    assert site.page("rye")["body"] == "<p>Rye</p>"


@pytest.mark.parametrize("index", ["_index.md", "index.md", "README.md"])
def test_the_index_of_a_folder_named_as_the_one_above_is_its_own(site: Site, index: str) -> None:
    site.put(f"a/a/{index}", "Inner")
    assert site.run() == "3 pages, 1 site are in site. cd site && flask run\n"
    site.put("a/a.md", "Outer")
    site.run()
    outer, inner = (site.ask(f"pages/{number}/") for number in (2, 3))
    assert (outer["body"], inner["body"]) == ("<p>Outer</p>", "<p>Inner</p>")
    assert inner["meta"]["parent"]["id"] == outer["id"]


def test_posts_of_jekyll_have_their_dates(site: Site) -> None:
    site.put("_posts/2026-01-15-first-frost.md", "---\ntags: rye frost\n---\n")
    site.run()
    page = site.page("first-frost")
    assert page["meta"]["first_published_at"] == "2026-01-15T00:00:00Z"
    assert page["meta"]["type"] == "site.Posts"
    assert page["tags"] == ["frost", "rye"]


def test_titles_are_found(site: Site) -> None:
    site.put("a.md", "Before\n\n# The *old* saw\n")
    site.put("b-c_d.md", "No heading")
    site.run()
    assert [site.page(slug)["title"] for slug in ("a", "b-c_d")] == ["The old saw", "B c d"]


def test_weights_order_siblings(site: Site) -> None:
    for name, weight in {"a": "0", "b": "20", "c": "3", "d": ""}.items():
        site.put(f"{name}.md", f"---\nweight: {weight}\n---\n")
    site.run()
    children = json.loads((site.folder / "content" / "pages.json").read_text())
    assert [page["slug"] for page in children] == ["home", "c", "b", "a", "d"]


def test_types_are_outermost_folders(site: Site) -> None:
    site.put("2026 über-News/a/b.md")
    site.put("c.md", "---\ntype: photo essay\n---\n")
    site.run()
    found = {item["meta"]["slug"]: item["meta"]["type"] for item in site.ask("pages/")["items"]}
    assert found == {
        "home": "site.Page",
        "2026-über-News": "site.Page",
        "a": "site.Page2026UberNews",
        "b": "site.Page2026UberNews",
        "c": "site.PhotoEssay",
    }


def test_what_is_no_page_is_left_out(site: Site) -> None:
    site.put("a.md")
    for name in (".git/b.md", "node_modules/b.md", "vendor/bundle/b.md", "_includes/b.md"):
        site.put(name)
    for name in ("_b.md", "b.txt"):
        site.put(name)
    assert site.run() == (
        "Note: _b.md is left out, as names with an underscore are.\n"
        "Note: _includes is left out, as names with an underscore are.\n"
        "2 pages, 1 site are in site. cd site && flask run\n"
    )


def test_collections_of_jekyll_are_folders(site: Site) -> None:
    site.put("_config.yml", "collections:\n  recipes:\n    output: true\n  staff: {}\n")
    site.put("recipes.md", "---\ntitle: Our recipes\n---\n[Pie]({% link _recipes/pie.md %})")
    site.put("_recipes/pie.md", "---\ntitle: Pie\n---\n")
    site.put("_staff/ada.md")
    site.put("log/_recipes/secret.md")
    assert site.run().splitlines()[:2] == [
        "Note: _staff is left out, as names with an underscore are.",
        "Note: log/_recipes is left out, as names with an underscore are.",
    ]
    pie = site.page("pie")
    assert (pie["meta"]["type"], pie["meta"]["html_url"]) == (
        *("site.Recipes", "http://localhost:5000/recipes/pie/"),
    )
    assert site.page("recipes")["body"] == f'<p><a linktype="page" id="{pie["id"]}">Pie</a></p>'


def test_collections_of_jekyll_are_in_their_folder(site: Site) -> None:
    own = "collections_dir: /all/\ncollections:\n  recipes:\n    output: true\n"
    site.put("_config.yml", own)
    site.put("index.md", "[Pie]({% link _recipes/pie.md %}) [Log]({% post_url 2026-01-15-log %})")
    site.put("all/_recipes/pie.md")
    site.put("all/_posts/2026-01-15-log.md", "---\ntags: a b\n---\n![Rye](../_recipes/rye.png)")
    site.put("all/_recipes/rye.png", PICTURE)
    site.put("all/_drafts/soon.md")
    site.put("_recipes/secret.md")
    assert site.run().splitlines() == [
        "Note: _recipes is left out, as names with an underscore are.",
        "7 pages, 1 image, 1 site are in site. cd site && flask run",
    ]
    home, pie, log = (site.page(slug) for slug in ("home", "pie", "log"))
    made = [f'<a linktype="page" id="{page["id"]}">{page["title"]}</a>' for page in (pie, log)]
    assert home["body"] == f"<p>{' '.join(made)}</p>"
    assert (log["tags"], log["meta"]["html_url"]) == (
        *(["a", "b"], "http://localhost:5000/posts/log/"),
    )
    assert pie["meta"]["type"] == "site.Recipes"


def test_folders_of_collections_that_are_not_there_are_told(site: Site) -> None:
    site.put("_config.yml", "collections_dir: all\n")
    site.put("a.md")
    note = "Note: _config.yml: collections_dir names 'all', which is no folder."
    assert site.run().splitlines()[:-1] == [note]


def test_the_folder_of_collections_can_be_the_outermost(site: Site) -> None:
    own = "collections_dir: .\ncollections: {recipes: {output: true}}\n"
    site.put("_config.yml", own)
    site.put("_recipes/pie.md")
    site.run()
    assert site.page("pie")["meta"]["type"] == "site.Recipes"


@pytest.mark.parametrize(
    "text",
    [
        *("a: [", "a" * 60_000, "- a", "collections: [recipes]", "a: *b"),
        *("collections_dir: [a]", "collections_dir: ../..", "collections_dir: ''"),
        'collections: {"": {output: true}}',
    ],
)
def test_odd_configurations_have_no_collections(site: Site, text: str) -> None:
    site.put("a.md")
    site.put("_config.yml", text)
    site.put("_recipes/pie.md")
    site.put("_/pie.md")
    assert "2 pages" in site.run()


# Languages.


def translated(site: Site, *names: str) -> None:
    """Imports a folder with two languages."""
    for name in names:
        site.put(name, f"---\ntitle: {name}\n---\n")
    site.run("--language", "en", "--language", "de")


@pytest.mark.parametrize("names", [("{}.md", "{}.de.md"), ("en/{}.md", "de/{}.md")])
def test_names_tell_languages(site: Site, names: tuple[str, str]) -> None:
    german = names[1]
    written = [
        name.format(page) for name in names for page in ("_index", "beds/_index", "beds/rye")
    ]
    translated(site, *written)
    assert "CMS_I18N_ENABLED=True" in (site.folder / "app.py").read_text()
    pages = json.loads((site.folder / "content" / "pages.json").read_text())
    by_title = {page["title"]: page for page in pages}
    assert by_title.keys() == {*written}
    home, rye = (by_title[german.format(name)] for name in ("_index", "beds/rye"))
    assert (home.get("parent"), home["locale"], rye["locale"], rye["type"]) == (
        *(None, "de", "de", "site.Beds"),
    )
    for page in ("_index", "beds/_index", "beds/rye"):
        keys = {by_title[name.format(page)]["translation_key"] for name in names}
        assert len(keys) == 1
    assert json.loads((site.folder / "content" / "locales.json").read_text()) == ["en", "de"]


def test_keys_tell_translations(site: Site) -> None:
    for name in ("about.md", "ueber.de.md"):
        site.put(name, "---\ntranslationKey: about\n---\n")
    site.put("beds.de.md", "---\ntranslation-key: 7\n---\n")
    site.put("rye.md", "---\ntranslationKey: 7\n---\n")
    translated(site, "beds.md", "oats.md", "oats.de.md")
    pages = json.loads((site.folder / "content" / "pages.json").read_text())
    groups: dict[str, set[str]] = {}
    for page in pages:
        if "translation_key" in page:
            groups.setdefault(page["translation_key"], set()).add(page["slug"])
    assert [*groups.values()] == [{"home", "de"}, {"about", "ueber"}, {"oats"}, {"rye", "beds"}]
    assert "translationKey" not in site.page("about")


def test_keys_tell_one_page_of_a_language(site: Site) -> None:
    for name in ("a.md", "b.md", "c.de.md"):
        site.put(name, "---\ntitle: X\ntranslationKey: k\n---\n")
    wrong = "another than that of a.md, which is in en, too; it is 'k'"
    assert site.refused("--language", "en", "--language", "de") == [
        f"b.md, line 3: translationKey must be {wrong}"
    ]
    # Where nothing has a language, keys say nothing.
    site.run()


def test_pages_of_languages_have_addresses(site: Site) -> None:
    translated(site, "_index.md", "about.md", "about.de.md")
    run = "from app import app; print(app.test_client().get('/api/v2/pages/?locale=de').text)"
    command = [sys.executable, "-c", run]
    done = subprocess.run(command, cwd=site.folder, check=True, capture_output=True, text=True)
    urls = [item["meta"]["html_url"] for item in json.loads(done.stdout)["items"]]
    assert urls == ["http://localhost:5000/de/", "http://localhost:5000/de/about/"]


def test_files_are_meant_in_the_language_of_the_page(site: Site) -> None:
    site.put("a.de.md", "[x](b.md) [y](c.md) [z](b.en.md)")
    for name in ("b.en.md", "b.de.md", "c.md"):
        site.put(name)
    translated(site, "a.md")
    pages = json.loads((site.folder / "content" / "pages.json").read_text())
    ids = {(page["slug"], page["locale"]): page["id"] for page in pages}
    wanted = [ids["b", "de"], ids["c", "en"], ids["b", "en"]]
    (page,) = [page for page in pages if (page["slug"], page["locale"]) == ("a", "de")]
    assert [int(number) for number in re.findall(r'id="(\d+)"', page["body"])] == wanted


#: Relative links from German pages, and where they lead.
SECTION = {
    "hot/": "hot de",
    "hot.html": "hot de",
    "soup/hot": "hot de",
    "../": "de de",
    "../../soup/": "soup en",
    "../cold/": "cold en",
    "/soup/hot/": "hot en",
    "/soup/hot.md": "hot de",
    "/en/soup/hot/": "hot en",
    "/de/soup/hot/": "hot de",
}
PAGE = {"../soup/": "soup de", "../../soup/": "soup de", "../../../soup/hot/": "hot en"}


@pytest.mark.parametrize("names", [("{}.md", "{}.de.md"), ("en/{}.md", "de/{}.md")])
def test_relative_links_stay_in_the_language(site: Site, names: tuple[str, str]) -> None:
    bodies: dict[str, dict[str, str]] = {"_index": {}, "soup/_index": SECTION, "soup/hot": PAGE}
    for name, links in bodies.items():
        site.put(names[0].format(name))
        site.put(names[1].format(name), " ".join(f"[x]({link})" for link in links))
    translated(site, names[0].format("cold"))
    pages = {p["id"]: p for p in json.loads((site.folder / "content/pages.json").read_text())}
    for slug, links in (("soup", SECTION), ("hot", PAGE)):
        (body,) = (p["body"] for p in pages.values() if (p["slug"], p["locale"]) == (slug, "de"))
        led = (pages[int(number)] for number in re.findall(r'id="(\d+)"', body))
        assert dict(zip(links, (f"{p['slug']} {p['locale']}" for p in led), strict=True)) == links


def test_files_of_pages_in_other_languages_are_pages(site: Site) -> None:
    site.put("beds/oats.md", "Oats")
    site.put("de/beds/rye.md", "[Oats](../../beds/oats.md#harvest)")
    said = site.run("--language", "en", "--language", "de")
    assert said == "6 pages, 2 locales, 1 site are in site. cd site && flask run\n"
    oats = site.page("oats")["id"]
    body = f'<p><a linktype="page" id="{oats}" href="#harvest">Oats</a></p>'
    pages = json.loads((site.folder / "content" / "pages.json").read_text())
    assert [page["body"] for page in pages if page["slug"] == "rye"] == [body]


def test_languages_are_remembered(site: Site) -> None:
    translated(site, "a.md", "a.de.md")
    assert site.run() == "Nothing has changed.\n"
    said = site.run("--language", "fr", status=1)
    assert said == "Error: The languages in 'site' are en, de; others need a new folder.\n"


def test_names_without_languages_are_names(site: Site) -> None:
    for name in ("de/a.md", "b.de.md"):
        site.put(name)
    site.run()
    assert site.page("b.de")["meta"]["html_url"] == "http://localhost:5000/b.de/"
    assert "I18N" not in (site.folder / "app.py").read_text()


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["a.md", "a.de.md"], {"a.de.md": "de"}),
        (["a.de.md", "a.pt-br.md"], {"a.de.md": "de", "a.pt-br.md": "pt-br"}),
        (["a.de.md", "b/c.de.md"], {"a.de.md": "de"}),
        (["README.md", "README.zh-CN.md"], {"README.zh-CN.md": "zh-CN"}),
        (["a.md", "b.de.md", "v1.2.md", "v1.md", "de.md", "b/fr.md"], {"b.de.md": "de"}),
        (
            ["de/a.md", "de/b.md", "en/a.md", "a.fr/b.md", "b/pl/c.md"],
            {"de/a.md": "de", "en/a.md": "en"},
        ),
        (["node.js.md", "node.md", "vue.js.md", "app.py.md", "ci.old.md", "ci.md"], {}),
        (["a.c.md", "a.md", "b.c.md", "b.german.md", "b.md"], {}),
    ],
)
def test_languages_that_names_seem_to_have_are_told(
    site: Site, names: list[str], told: dict[str, str]
) -> None:
    for name in names:
        site.put(name)
    assert site.run().splitlines()[:-1] == [
        f"Note: {name} seems to be in the language {code}, but no --language names it."
        for name, code in told.items()
    ]


def test_names_without_a_language_are_in_the_first_one(site: Site) -> None:
    for name in ("a.md", "a.de.md"):
        site.put(name)
    wrong = "a.md, line 1: is the same page as a.de.md; one of them has to go"
    for languages in (["de"], ["de", "en"]):
        options = [f"--language={code}" for code in languages]
        assert site.refused(*options) == [f"{wrong}, or another --language has to come before de"]


def test_languages_that_are_named_are_not_told(site: Site) -> None:
    for name in ("a.md", "a.de.md", "a.fr.md"):
        site.put(name)
    said = site.run("--language", "en", "--language", "de")
    assert said.splitlines()[:-1] == [
        "Note: a.fr.md seems to be in the language fr, but no --language names it."
    ]


def test_links_to_pages_in_other_languages_alone_are_told(site: Site) -> None:
    site.put("a.md", "[x](b.md)\n[x](b/)\n[x](b.js)\n[x](/b)")
    site.put("b.de.md")
    why = "leads to nothing; b.de.md is there"
    assert site.refused() == [
        f"a.md, line 1: 'b.md' {why}, but no --language names de",
        f"a.md, line 2: 'b/' {why}, but no --language names de",
        "a.md, line 3: 'b.js' leads to nothing",
    ]
    # Python does not know Low German.
    for code in ("de", "nds"):
        (site.source / "b.de.md").rename(site.source / f"b.{code}.md")
        wrong = f"a.md, line 1: 'b.md' leads to nothing; b.{code}.md is there"
        assert site.refused("--language", "en", "--language", code)[0] == wrong
    (site.source / "b.nds.md").rename(site.source / "b.de.md")
    site.put("a.md", "[x](/b)")
    assert site.run().splitlines()[:-1] == [
        "Note: b.de.md seems to be in the language de, but no --language names it.",
        "Note: a.md: /b is left as it is, as nothing is there; b.de.md is there, "
        "but no --language names de.",
    ]


def test_links_to_pages_in_folders_of_other_languages_are_told(site: Site) -> None:
    site.put("en/a.md", "[x](b.md) [y](/c/)")
    site.put("de/b.md")
    site.put("en/c/_index.md")
    wrong = "en/a.md, line 1: 'b.md' leads to nothing; de/b.md is there"
    assert site.refused("--language", "en", "--language", "de") == [wrong]
    site.put("en/b.md")
    assert site.run().splitlines()[2:-1] == [
        "Note: en/a.md: /c/ is left as it is, as nothing is there; en/c/_index.md is there, "
        "but no --language names en."
    ]


def test_codes_of_languages_are_checked(site: Site) -> None:
    site.put("a.md")
    assert "'d/e' is no code of a language" in site.run("--language", "d/e", status=2)


# MDX.

MDX = """\
import Chart from "../Chart.jsx"
import {a} from 'b'

# Rye {#rye}

export const data = {a: {b: [1]}}

<Tabs kind="x>y" data={{a: {b: 1}}}>
    <Tab>
        It is *hardy*, we
        import it. {/* not said */}
    </Tab>
</Tabs>

<Chart data={data.filter((x) => x > 1)} />Seen \\{once} `<Tag a={1}>`.

```jsx
import x from "y"
<Tag a={1} />
```
"""


def test_mdx_is_markdown_without_code(site: Site) -> None:
    site.put("rye.mdx", MDX)
    assert "Note: rye.mdx: components and code of MDX are left out.\n" in site.run()
    page = site.page("rye")
    assert page["title"] == "Rye"
    assert page["body"] == (
        "<h1>Rye</h1>\n<p>It is <em>hardy</em>, we\nimport it.</p>\n"
        "<p>Seen {once} <code>&lt;Tag a={1}&gt;</code>.</p>\n"
        '<pre><code class="language-jsx">import x from &quot;y&quot;\n&lt;Tag a={1} /&gt;\n'
        "</code></pre>"
    )


@pytest.mark.parametrize(
    "text",
    [
        "Use ``{a} ` <B>`` and `{c\n{d}`.",
        "> ```js\n> {a}\n> ```",
        "1. ~~~\n   {a}\n\n   {b}\n   ~~~",
        "- * ```\n    <A>\n    ```",
    ],
)
def test_code_in_mdx_stays(text: str) -> None:
    assert without_code(f"{text}\n\n{{gone}}") == f"{text}\n\n"


def test_statements_in_mdx_go_up_to_their_end() -> None:
    text = "export const a = {\n  b: {c: 1},\n\n  d: 2,\n}\n\nSeen"
    assert without_code(text) == "\n\n\n\n\n\nSeen"


def test_mdx_changes_nothing_about_other_files(site: Site) -> None:
    site.put("a.mdx", "    text")
    site.put("b.md", "    code")
    site.run()
    bodies = [site.page(slug)["body"] for slug in ("a", "b")]
    assert bodies == ["<p>text</p>", "<pre><code>code\n</code></pre>"]


def test_faults_of_mdx_have_their_lines(site: Site) -> None:
    site.put("rye.mdx", "import {\n a\n} from 'b'\n\n<A\n  b={1}>\n[x](no.mdx)\n</A>")
    assert site.refused() == ["rye.mdx, line 7: 'no.mdx' leads to nothing"]


def test_mdx_can_be_kept(site: Site) -> None:
    site.put("rye.mdx", MDX)
    site.run("--keep-markdown")
    assert site.page("rye")["body"] == MDX.strip("\n")


@pytest.mark.parametrize(
    "text", ["<A ", "{ {y}", '<A "', "<A {", "`", "{", "\n\nimport {", "<A '\"", "`` ` ", "> ```"]
)
def test_odd_mdx_takes_no_time(text: str) -> None:
    start = time.process_time()
    without_code(text * 100_000)
    assert time.process_time() - start < 5


# The front matter.


@pytest.mark.parametrize(
    "front",
    [
        "---\ntitle: Rye\ndate: 2026-01-15 10:00:00 +0200\ntags: [b, a]\ncategory: x\n"
        "cut: 2026-02-03\nat: 2026-02-03T10:00:00Z\nsown: true\ndays: 3\nkg: 0.5\n"
        "note: Some\nmore: {a: [1]}\nhero-text: Big\nlink: https://example.org/\n---\n",
        '+++\ntitle = "Rye"\ndate = 2026-01-15T10:00:00+02:00\ntags = ["b", "a"]\n'
        'category = "x"\ncut = 2026-02-03\nat = 2026-02-03T10:00:00Z\nsown = true\ndays = 3\n'
        'kg = 0.5\nnote = "Some"\nmore = {a = [1]}\nhero-text = "Big"\n'
        'link = "https://example.org/"\n+++\n',
    ],
    ids=["yaml", "toml"],
)
def test_front_matter_becomes_fields(site: Site, front: str) -> None:
    site.put("beds/rye.md", front)
    site.run()
    page = site.page("rye")
    assert page.pop("meta")["first_published_at"] == "2026-01-15T08:00:00Z"
    assert page == {
        "id": 3,
        "title": "Rye",
        "tags": ["a", "b"],
        "categories": ["x"],
        "body": "",
        "cut": "2026-02-03",
        "at": "2026-02-03T10:00:00Z",
        "sown": True,
        "days": 3,
        "kg": 0.5,
        "note": "Some",
        "more": {"a": [1]},
        "hero_text": "Big",
        "link": "https://example.org/",
    }
    code = (site.folder / "models.py").read_text()
    for line in ("cut = fields.Date()", "sown = fields.Boolean()", "body = RichText()"):
        assert f"    {line}\n" in code


@pytest.mark.parametrize(
    "text", ["2022-07-08", "Jul 08 2022", "July 8, 2022", "8 July 2022", "2022-07-08 02:00 +0200"]
)
def test_dates_can_be_written_in_words(site: Site, text: str) -> None:
    site.put("a.md", f"---\npubDate: '{text}'\n---\n")
    site.run()
    assert site.page("a")["meta"]["first_published_at"] == "2022-07-08T00:00:00Z"


def test_front_matter_may_be_below_empty_lines(site: Site) -> None:
    site.put("a.md", "\n\n---\ntitle: A\ndate: soon\n---\n")
    assert site.refused() == ["a.md, line 5: date must be a date, as 2026-01-15; it is 'soon'"]


@pytest.mark.parametrize(
    ("text", "language"),
    [("---js\nconst draft = true\n---\n", "js"), ('{\n"draft": true\n}', "JSON")],
)
def test_front_matter_in_other_languages_is_refused(site: Site, text: str, language: str) -> None:
    site.put("a.md", text)
    wanted = f"a.md, line 1: the front matter is {language}; it must be YAML or TOML"
    assert site.refused() == [wanted]


def test_what_is_empty_is_not_there(site: Site) -> None:
    site.put("beds/rye.md", "---\nseen:\nwords: []\nnote: ''\ndays: 3\n---\n")
    site.run()
    assert {*site.page("rye")} == {"id", "meta", "title", "body", "days"}


def test_yaml_is_read_as_its_version_1_2(site: Site) -> None:
    site.put("beds/rye.md", "---\nopens: 18:30\nsown: yes\nnumber: 013\n---\n")
    site.run()
    page = site.page("rye")
    assert (page["opens"], page["sown"], page["number"]) == ("18:30", "yes", 13)


@pytest.mark.parametrize(
    "front",
    [
        "draft: true",
        "draft: yes",
        "Draft: 'true'",
        "draft: On",
        "published: off",
        "published: false",
        "headless: true",
        "permalink: false",
        "publishDate: 2199-01-01",
        "date: 2199-01-01",
        "published: 2199-01-01",
        "publish-date: 2199-01-01",
        "expiryDate: 2001-01-01",
        "unpublishDate: 2001-01-01",
        "published_at: 'false'",
        "publish: false",
        "isDraft: true",
        "is_draft: true",
        "private: true",
        "hidden: true",
        "unlisted: true",
        "status: Draft",
        "visibility: private",
        "build: {list: never}",
    ],
)
def test_what_is_not_public_stays_hidden(site: Site, front: str) -> None:
    site.put("a.md", f"---\n{front}\n---\n")
    site.put("b.md", "---\ndraft: false\npublished: true\ndate: 2001-01-01\n---\n")
    site.run()
    assert [item["meta"]["slug"] for item in site.ask("pages/")["items"]] == ["home", "b"]


@pytest.mark.parametrize(
    ("cascade", "shown"),
    [
        ("{draft: true}", ["home", "b", "shown"]),
        ("[{private: true}]", ["home", "b"]),
        ("{expiryDate: 2001-01-01}", ["home", "b"]),
        ("{banner: x}", ["home", "b", "a", "inner", "page", "shown"]),
    ],
)
def test_sections_hide_what_is_below(site: Site, cascade: str, shown: list[str]) -> None:
    site.put("a/_index.md", f"---\ncascade: {cascade}\n---\n")
    site.put("a/inner/page.md")
    site.put("a/shown.md", "---\ndraft: false\n---\n")
    site.put("b.md")
    site.run()
    found = [item["meta"]["slug"] for item in site.ask("pages/?order=id")["items"]]
    assert sorted(found) == sorted(shown)


def test_what_may_mean_hidden_is_told(site: Site) -> None:
    site.put("a.md", "---\nstatus: done\n---\n")
    site.put("b.md", "---\nstatus: done\n---\n")
    site.put("c/_index.md", "---\ncascade: {draft: true, _target: {path: /x}}\n---\n")
    notes = site.run().splitlines()[:-1]
    why = "its target is not read; draft is that of all pages below it"
    assert sorted(notes) == [
        f"Note: c/_index.md: cascade: {why}.",
        "Note: status: 'done' does not hide pages.",
    ]


@pytest.mark.parametrize("names", [(), ("posts", "drafts")])
def test_posts_and_drafts_are_no_collections(site: Site, names: tuple[str, ...]) -> None:
    site.put("_config.yml", json.dumps({"collections": {n: {"output": True} for n in names}}))
    site.put("_posts/2026-03-21-rye.md", "Sow it.")
    site.put("_drafts/oats.md")
    site.put("a.md", "[Rye]({% post_url 2026-03-21-rye %})")
    site.run()
    rye = site.page("rye")
    assert site.page("a")["body"] == f'<p><a linktype="page" id="{rye["id"]}">Rye</a></p>'
    pages = json.loads((site.folder / "content" / "pages.json").read_text())
    assert [page["slug"] for page in pages if page.get("live") is False] == ["drafts", "oats"]
    assert {page["type"] for page in pages if page["slug"] in ("rye", "oats")} == {"site.Posts"}


def test_drafts_of_jekyll_stay_hidden(site: Site) -> None:
    site.put("_drafts/a.md")
    site.run()
    assert [item["meta"]["slug"] for item in site.ask("pages/")["items"]] == ["home"]


def test_names_that_answers_have_get_another(site: Site) -> None:
    front = "id: 7\nparent: x\nlimit: 5\nclass: y\nchildren: [1]\n2nd: z\n_own: w"
    site.put("beds/rye.md", f"---\n{front}\n---\n")
    site.run()
    page = site.page("rye")
    assert page["id"] == 3
    assert page["id_"] == 7
    assert page["parent_"] == "x"
    assert (page["limit"], page["class"], page["children_"]) == (5, "y", [1])
    assert (page["own_2nd"], page["_own"]) == ("z", "w")


def test_paths_in_front_matter_become_relations(site: Site) -> None:
    site.put("beds/rye/index.md", "---\ncover: rye.png\nsee: [../oats.md]\nsheet: a.pdf\n---\n")
    site.put("beds/oats.md", "---\ncover: rye/rye.png\n---\n")
    site.put("beds/rye/rye.png", PICTURE)
    site.put("beds/rye/a.pdf")
    site.run()
    page = site.page("rye")
    assert page["cover"]["title"] == "rye"
    assert page["cover"]["meta"]["download_url"].endswith("/media/beds/rye/rye.png")
    assert [other["title"] for other in page["see"]] == ["Oats"]
    assert page["sheet"]["meta"]["detail_url"].endswith("/documents/1/")
    assert (site.folder / "media" / "beds" / "rye" / "rye.png").read_bytes() == PICTURE


def test_addresses_in_front_matter_stay_texts(site: Site) -> None:
    site.put("beds/rye.md", "---\ncover: rye.png\n---\n")
    site.put("beds/oats.md", "---\ncover: https://example.org/oats.png\n---\n")
    site.put("beds/rye.png", PICTURE)
    site.run()
    assert site.page("rye")["cover"] == "rye.png"


# Bodies.


@pytest.mark.parametrize(
    "address",
    ["{% post_url 2026-01-15-frost %}", "/2026/01/15/frost.html", "/news/2026/01/15/frost/"],
)
def test_posts_of_jekyll_are_found(site: Site, address: str) -> None:
    site.put("_posts/2026-01-15-frost.markdown")
    assert site.body(f"[x]({address})") == '<p><a linktype="page" id="3">x</a></p>'


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("[x](other.md)", '<a linktype="page" id="3">x</a>'),
        ("[x](other.md#top)", '<a linktype="page" id="3" href="#top">x</a>'),
        ("[x](../log/another/)", '<a linktype="page" id="3">x</a>'),
        ("[x](/log/another/)", '<a linktype="page" id="3">x</a>'),
        ("[x](/log/another.html)", '<a linktype="page" id="3">x</a>'),
        ("[x](/log/)", '<a linktype="page" id="2">x</a>'),
        ("[x](log/other.md)", '<a linktype="page" id="3">x</a>'),
        ("[x](/Log/ANOTHER/)", '<a linktype="page" id="3">x</a>'),
        ("[x](/former/)", '<a linktype="page" id="3">x</a>'),
        ("[x](/)", '<a linktype="page" id="1">x</a>'),
        ('[x]({{< ref "other.md" >}})', '<a linktype="page" id="3">x</a>'),
        ("[x]({% link log/other.md %})", '<a linktype="page" id="3">x</a>'),
        ("[x]({{ site.baseurl }}{% link log/other.md %})", '<a linktype="page" id="3">x</a>'),
        ("[x]({{site.url}}{{site.baseurl}}/log/other.md)", '<a linktype="page" id="3">x</a>'),
        ("[x]({{ '/log/another/' | relative_url }})", '<a linktype="page" id="3">x</a>'),
        ('<a href="{{ "log/another/" | absolute_url }}">x</a>', '<a linktype="page" id="3">x</a>'),
        ('<a class="b" href="other.md">x</a>', '<a linktype="page" id="3" class="b">x</a>'),
        ("[x](rye.png)", '<a linktype="document" id="1">x</a>'),
        ("![*R*ye](rye.png)", '<embed embedtype="image" id="1" alt="Rye" format="fullwidth"/>'),
        ('A<img src="rye.png">', 'A<embed embedtype="image" id="1" alt="" format="fullwidth"/>'),
        ("[x](https://example.org/a.md)", '<a href="https://example.org/a.md">x</a>'),
        ("[x](/feed.xml)", '<a href="/feed.xml">x</a>'),
        ("[x](#top)", '<a href="#top">x</a>'),
        ("![x](https://example.org/a.png)", '<img src="https://example.org/a.png" alt="x" />'),
        ("[x](mailto:a@example.org)", '<a href="mailto:a@example.org">x</a>'),
    ],
)
def test_links_and_images_are_found(site: Site, text: str, wanted: str) -> None:
    assert site.body(text) == f"<p>{wanted}</p>"


@pytest.mark.parametrize(
    "text", ["[[b & c|B]]", "![[c.png]]", "{{< figure src=x >}}", "{% raw %}", "{{ x }}", "[^1]"]
)
def test_what_is_no_markdown_is_told(site: Site, text: str) -> None:
    site.put("a.md", f"`{text}`\n\n    {text}\n\nAnd {text}.\n\n[^2]: Last")
    site.put("b.md", f"```\n{text}\n```\n[[x](https://example.org/)] {{a}} {{% b }}")
    note = f"Note: a.md: {text} is no Markdown, and stays as it is."
    assert site.run().splitlines()[:-1] == [note]
    assert f"<p>And {escape(text)}.</p>" in site.page("a")["body"]


def test_body_is_html(site: Site) -> None:
    text = "# A\n\n~~b~~ *c*\n\n| d |\n|---|\n| e |\n"
    wanted = "<h1>A</h1>\n<p><s>b</s> <em>c</em></p>\n<table>\n<thead>\n<tr>\n<th>d</th>\n</tr>"
    assert site.body(text).startswith(wanted)


def test_a_link_leads_to_its_part_of_the_page(site: Site) -> None:
    site.body("[x](other.md#top)")
    page = site.page("page", "?rich_text_format=html")
    assert page["body"] == '<p><a href="http://localhost:5000/log/another/#top">x</a></p>'


def test_files_from_the_root_are_in_static(site: Site) -> None:
    static = site.source.parent / "static"
    static.mkdir()
    (static / "logo.png").write_bytes(PICTURE)
    site.put("a.md", "![Logo](/logo.png)")
    site.run("--static", str(static))
    assert site.ask("images/")["items"][0]["title"] == "logo"
    assert (site.folder / "media" / "logo.png").read_bytes() == PICTURE


def test_links_can_lead_to_static_files(site: Site) -> None:
    assets = site.source.parent / "assets"
    (assets / "a").mkdir(parents=True)
    (assets / "a" / "logo.png").write_bytes(PICTURE)
    site.put("log/a.md", "---\ncover: ../../assets/a/logo.png\n---\n![x](../../assets/a/logo.png)")
    site.put("log/b.md", "[x](../../assets/a/no.png)")
    wrong = "leads out of the folder"
    told = [f"log/a.md, line {n} '../../assets/a/logo.png' {wrong}" for n in ("4:", "2: cover:")]
    missing = f"log/b.md, line 1: '../../assets/a/no.png' {wrong}"
    assert site.refused() == [told[0], missing, told[1]]
    assert site.refused("--static", str(assets)) == [missing]
    site.put("log/b.md")
    site.run("--static", str(assets))
    page = site.page("a")
    assert (page["cover"]["id"], page["cover"]["title"]) == (1, "logo")
    assert 'embedtype="image" id="1"' in page["body"]
    assert (site.folder / "media" / "a" / "logo.png").read_bytes() == PICTURE


def test_static_folders_are_remembered(site: Site, tmp_path: Path) -> None:
    for name in ("static", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "logo.png").write_bytes(PICTURE + name.encode())
    site.put("a.md", "![Logo](/logo.png)")
    site.run("--static", str(tmp_path / "static"))
    assert site.run() == "Nothing has changed.\n"
    said = site.run("--static", str(tmp_path / "other"))
    assert said == "Nothing has changed.\n* media/logo.png\n"
    assert site.run() == "Nothing has changed.\n"
    (tmp_path / "other").rename(tmp_path / "gone")
    assert site.refused() == [
        f"{str(site.source / '../other')!r}, which --static named before, is no folder any more; "
        "name another by --static."
    ]


def test_markdown_can_be_kept(site: Site) -> None:
    site.put("log/a.md", "# A\n\n<br> [b](nowhere.md)\n")
    site.run("--keep-markdown")
    assert site.page("a")["body"] == "# A\n\n<br> [b](nowhere.md)"
    site.put("log/a.md", "# B")
    assert site.run() == "1 page changed.\n~ pages 3 /log/a\n"
    assert site.page("a")["body"] == "# B"


def test_links_that_lead_nowhere_can_be_kept(site: Site) -> None:
    site.put("log/a.md", "---\ncover: no.png\n---\n[b](no.md)")
    site.run("--keep-links")
    page = site.page("a")
    assert (page["body"], page["cover"]) == ('<p><a href="no.md">b</a></p>', "no.png")


# Again.


def test_nothing_is_written_if_nothing_has_changed(site: Site) -> None:
    site.put("a.md", "---\ndraft: true\n---\n![b](b.png)")
    site.put("b.png", PICTURE)
    site.run()
    before = {path: path.stat().st_mtime_ns for path in site.folder.rglob("content/*")}
    assert site.run() == "Nothing has changed.\n"
    assert {path: path.stat().st_mtime_ns for path in site.folder.rglob("content/*")} == before


def test_what_came_went_and_changed_is_told(site: Site) -> None:
    site.put("a.md", "![x](x.png)")
    site.put("b.md", "![y](y.png)")
    for name in "xyz":
        site.put(f"{name}.png", PICTURE)
    site.run()
    site.put("b.md", "B ![y](y.png)")
    site.put("c.md", "![z](z.png)")
    site.put("y.png", b"another")
    (site.source / "a.md").unlink()
    assert site.run() == (
        "1 page new, 1 image new, 1 page changed, 1 image gone, 1 page gone.\n"
        "+ pages 4 /c\n"
        "+ images 3 z.png\n"
        "~ pages 3 /b\n"
        "- images 1 x.png\n"
        "- pages 2 /a\n"
        "* media/y.png\n"
        "* media/z.png\n"
    )
    assert {path.name for path in (site.folder / "media").iterdir()} == {"y.png", "z.png"}


def test_ids_stay_and_are_not_given_again(site: Site) -> None:
    site.put("b.md")
    site.run()
    site.put("a.md")
    (site.source / "b.md").unlink()
    site.put("b/index.md")
    site.run()
    assert (site.page("a")["id"], site.page("b")["id"]) == (3, 2)
    (site.source / "a.md").unlink()
    site.put("c.md")
    site.run()
    assert site.page("c")["id"] == 4


def test_what_the_types_lack_is_told(site: Site) -> None:
    site.put("a.md", "---\nnote: x\n---\n")
    site.run()
    site.put("a.md", "---\nnote: x\nother: y\n---\n")
    note = "Note: site.Page has no other in its api_fields, so that this is left out."
    assert site.run() == f"{note}\nNothing has changed.\n"


def test_own_values_stay(site: Site) -> None:
    site.put("a.md")
    site.run()
    (site.folder / "content" / "sites.json").write_text(
        '[{"hostname": "garden.example", "root_page": 1, "is_default": true}]'
    )
    site.put("a.md", "New")
    site.run()
    assert "garden.example" in (site.folder / "content" / "sites.json").read_text()


def test_pages_written_by_hand_stay(site: Site) -> None:
    site.put("a.md")
    site.put("b/c.md")
    site.run()
    add(site, id=50)
    assert site.run() == "Nothing has changed.\n"
    site.put("d.md")
    (site.source / "a.md").unlink()
    assert site.run() == "1 page new, 1 page gone.\n+ pages 51 /d\n- pages 2 /a\n"
    assert site.page("own")["id"] == 50
    assert site.run() == "Nothing has changed.\n"
    for name in ("_index.md", "b/_index.md", "d.md"):
        site.put(name, "---\nweight: 2\n---\nNew")
    assert "3 pages changed" in site.run()
    assert site.page("own")["id"] == 50


def test_pages_written_by_hand_need_a_parent(site: Site) -> None:
    site.put("a.md")
    site.put("b.md")
    site.run()
    add(site, id=50, parent=2)
    (site.source / "a.md").unlink()
    assert site.refused() == ["pages 50, parent: there is no page 2"]


def test_keys_written_by_hand_stay(site: Site) -> None:
    site.put("a.md", "---\nnote: x\ndraft: true\n---\n")
    site.put("b.md")
    site.run()
    file = site.folder / "content" / "pages.json"
    pages = json.loads(file.read_text())
    own = {
        "restriction": {"type": "login"},
        "seo_title": "Mine",
        "expires_at": "2199-01-01T00:00:00Z",
    }
    file.write_text(json.dumps([pages[0], {**pages[1], **own}, {**pages[2], "live": False}]))
    for text in ("---\nnote: x\n---\nNew", "New"):
        site.put("a.md", text)
        site.put("b.md", text)
        site.run()
        _, a, b = json.loads(file.read_text())
        assert own.items() <= a.items()
        assert (a.get("note", ""), a.get("live", True)) == ("x" if "x" in text else "", True)
        assert b["live"] is False


# What is wrong.


def test_every_fault_has_its_file_and_line(site: Site) -> None:
    site.put("a.md", "---\ntitle: A\ndate: tomorrow\n---\n")
    site.put("b.md", "---\ntitle: [x\n---\n")
    site.put("c.md", "+++\ntitle = 3 4\n+++\n")
    site.put("d.md", b"---\ntitle: A\n---\n\xff")
    site.put("e.md", "---\ntitle: A\n\nText")
    site.put("f.md", "---\n- x\n---\n")
    site.put("g.md", "---\na: 1\na: 2\n---\n")
    site.put("h.md", "---\ntitle: A\n---\n\nText\nand [b](no.md)\n")
    site.put("i.md", "---\ntags: ['a, b']\n---\n")
    site.put("j.md", "---\nweight: heavy\n---\n")
    site.put("k.md", "---\ndraft: perhaps\n---\n")
    site.put("l.md", "---\ncover: no.png\n---\n")
    site.put("m.md", "---\na-b: 1\na_b: 2\n---\n")
    site.put("n.md", "---\ntitle: [A]\n---\n")
    site.put("o.md", "---\ndraft:\n---\n")
    assert site.refused() == [
        "b.md, line 3: the front matter is not YAML: expected ',' or ']', but got '<stream end>'",
        "c.md, line 2: the front matter is not TOML: Expected newline or end of document after a "
        "statement",
        "d.md, line 4: must be UTF-8",
        "e.md, line 1: the front matter has no end: a line of ---",
        "f.md, line 2: the front matter must be keys with values, as title: Fog",
        'g.md, line 3: the front matter is not YAML: found duplicate key "a" with value "2" '
        '(original value: "1")',
        "n.md, line 2: title must be a text; it is ['A']",
        "j.md, line 2: weight must be a number; it is 'heavy'",
        "a.md, line 3: date must be a date, as 2026-01-15; it is 'tomorrow'",
        "h.md, line 6: 'no.md' leads to nothing",
        "i.md, line 2: tags must be a list of texts without commas; it is ['a, b']",
        "k.md, line 2: draft must be true or false; it is 'perhaps'",
        "m.md, line 3: a_b is called a_b, as another key is",
        "o.md, line 2: draft must be true or false; it is empty",
        "l.md, line 2: cover: 'no.png' leads to nothing",
    ]


def test_slugs_are_given_once(site: Site) -> None:
    site.put("a.md", "---\ntitle: A\nslug: x\n---\n")
    site.put("b.md", "---\ntitle: B\nslug: x\n---\n")
    assert site.refused() == ["b.md, line 3: the slug 'x' is that of a.md already"]


def test_a_page_is_in_one_file(site: Site) -> None:
    site.put("a.md")
    site.put("a/index.md")
    site.put("index.md")
    site.put("README.md")
    assert site.refused() == ["a/index.md, line 1: is the same page as a.md; one of them has to go"]
    (site.source / "a.md").unlink()
    site.put("b.md", "[x](README.md)")
    said = "Note: README.md is left out, because index.md is the page.\n"
    assert site.run().startswith(said)
    assert site.page("b")["body"] == '<p><a linktype="page" id="1">x</a></p>'


def test_links_lead_out_from_their_file(site: Site) -> None:
    site.put("log/a.md", "[x](../no.md)\n[x](../../no.md)")
    assert site.refused() == [
        "log/a.md, line 1: '../no.md' leads to nothing",
        "log/a.md, line 2: '../../no.md' leads out of the folder",
    ]


@pytest.mark.parametrize(
    "link",
    ["../secret.png", "..%2Fsecret.png", "../../../../../../etc/passwd", "a/../../secret.png"],
)
def test_links_do_not_lead_out_of_the_folder(site: Site, link: str) -> None:
    (site.source.parent / "secret.png").write_bytes(PICTURE)
    site.put("a.md", f"![x]({link})")
    assert site.refused() == [f"a.md, line 1: '{link}' leads out of the folder"]
    site.put("a.md", f"---\ncover: {link}\n---\n")
    expected = (
        []
        if link.endswith("passwd")
        else [f"a.md, line 2: cover: '{link}' leads out of the folder"]
    )
    if expected:
        assert site.refused() == expected


@pytest.mark.parametrize("name", [".env", "b/.git/config", "page.njk"])
def test_hidden_files_and_templates_are_not_published(site: Site, name: str) -> None:
    site.put(name, "password")
    site.put("a.md", f"[x]({name})")
    assert site.refused() == [f"a.md, line 1: '{name}' leads to nothing"]


def test_symbolic_links_do_not_lead_out(site: Site) -> None:
    outside = site.source.parent / "outside"
    outside.mkdir()
    (outside / "x.md").write_text("secret")
    (outside / "x.png").write_bytes(PICTURE)
    site.put("a.md", "![x](x.png)")
    (site.source / "b").symlink_to(outside)
    (site.source / "c.md").symlink_to(outside / "x.md")
    (site.source / "d").symlink_to(site.source)
    (site.source / "x.png").symlink_to(outside / "x.png")
    only = "is a symbolic link; only links to files inside the folder are followed"
    assert site.refused() == [
        f"b: {only}",
        f"c.md: {only}",
        f"d: {only}",
        "a.md, line 1: 'x.png' is a symbolic link out of the folder",
    ]


def test_symbolic_links_inside_are_followed(site: Site) -> None:
    site.put("a.md", "Text")
    (site.source / "b.md").symlink_to("a.md")
    site.run()
    assert site.page("b")["body"] == "<p>Text</p>"


def test_what_is_no_file_is_told(site: Site) -> None:
    site.put("a.md", "Text")
    os.mkfifo(site.source / "b.md")
    (site.source / "c.md").symlink_to("d.md")
    (site.source / "d.md").symlink_to("c.md")
    (site.source / "e.png").symlink_to("e.png")
    assert site.refused() == [f"{name}.md: is no file that can be read" for name in "bcd"]


def test_folders_that_cannot_be_read_are_told(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.put("a.md")
    site.put("b/c/d.md")
    scan = os.scandir

    def refusing(path: str) -> Any:
        if path.endswith("/c"):
            raise PermissionError(13, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", refusing)
    assert site.run(status=1) == "Error: b/c: cannot be read: Permission denied\n"


@pytest.mark.parametrize(("linked", "named"), [("NFC", "NFD"), ("NFD", "NFC")])
def test_accents_are_compared_however_written(site: Site, linked: Form, named: Form) -> None:
    folder, page, image = (normalize(named, name) for name in ("Bäume/", "né.md", "né.png"))
    site.put(folder + page)
    site.put(folder + image, PICTURE)
    site.put("a.md", normalize(linked, "[x](Bäume/né.md) ![x](Bäume/né.png)"))
    site.run()
    number = site.page("né")["id"]
    assert f'<a linktype="page" id="{number}">' in site.page("a")["body"]
    assert 'embedtype="image" id="1"' in site.page("a")["body"]
    for name in (page, image):
        (site.source / folder / name).rename(site.source / folder / normalize(linked, name))
    assert site.run() == "Nothing has changed.\n"


def test_two_byte_order_marks_are_skipped(site: Site) -> None:
    site.put("a.md", "\ufeff\ufeff---\ndraft: true\n---\n")
    site.run()
    assert [item["meta"]["slug"] for item in site.ask("pages/")["items"]] == ["home"]


def test_slugs_are_in_one_line(site: Site) -> None:
    site.put("a.md", '---\nslug: "a\\nb"\n---\n')
    assert site.refused() == ["a.md, line 2: slug must be a text of one line; it is 'a\\nb'"]


def test_sizes_are_bounded(site: Site) -> None:
    site.put("a.md", b"x" * 4_000_001)
    site.put("b.md", f"---\nx: '{'y' * 50_000}'\n---\n")
    many = [f"{name}: &{name} [{f'*{before}, ' * 10}]" for before, name in pairwise("abcdef")]
    site.put("c.md", "\n".join(["---", "a: &a [1]", *many, "---"]))
    site.put("d.md", f"---\nx: {'[' * 1000}\n---\n")
    site.put("e.md", "---\na: &a [*a]\n---\n")
    found = site.refused()
    assert found[0] == "a.md: has more than 4,000,000 bytes"
    assert found[1] == "b.md, line 1: the front matter has more than 50,000 characters"
    assert found[-1] == (
        "e.md, line 2: the front matter can have at most 10,000 values, nested 50 times"
    )
    assert len(found) == 5


@pytest.mark.parametrize(
    ("front", "line", "why"),
    [
        (
            "---\na: &a {k: 1}\nb: {<<: [*a, *a]}\n---\n",
            3,
            "the front matter is not YAML: << is not read",
        ),
        (
            "---\na: !!bool maybe\n---\n",
            1,
            "the front matter is not YAML: a value is not of the type that is written before it",
        ),
        (f"+++\nb = 1\n{'a.' * 20_000}a = 1\n+++\n", 3, "a key can have at most 50 parts"),
        (f"+++\nb = {{{'a . ' * 9_000}a = 1}}\n+++\n", 2, "a key can have at most 50 parts"),
    ],
)
def test_front_matter_is_bounded(site: Site, front: str, line: int, why: str) -> None:
    site.put("a.md", front)
    assert site.refused() == [f"a.md, line {line}: {why}"]


def test_merge_marks_in_texts_stay(site: Site) -> None:
    site.put("a.md", "---\nnote: '<<: *a'\n---\n")
    site.run()
    assert site.page("a")["note"] == "<<: *a"


def test_long_paragraphs_take_no_time(site: Site) -> None:
    site.put("a.md", "x\n" * 50_000 + "[](x)\n" * 3000 + "<a href=y>\n" * 3000)
    start = time.process_time()
    assert site.refused()[0] == "a.md, line 50001: 'x' leads to nothing"
    assert time.process_time() - start < 10


def test_every_link_has_its_line(site: Site) -> None:
    links = ["[a](n1) b  \n[](n2)", "[](n3) ![a\nb](n4)", "[](n5)\n\n| a |\n|---|\n| [](n9) |"]
    html = "<p>\n<a href=n12></a>\n\na <em\nclass=b>[](n15)"
    code = "`b\nc` [](n18)\\\n[d\ne](n20)"
    site.put("a.md", "\n".join([*links, "", html, "", code]))
    assert site.refused() == [
        f"a.md, line {number}: 'n{number}' leads to nothing"
        for number in (1, 2, 3, 4, 5, 9, 12, 15, 18, 20)
    ]


def test_records_that_do_not_fit_are_located(site: Site) -> None:
    site.put("a.md", "---\ntitle: A\ndays: 3\n---\n")
    site.run()
    site.put("a.md", "---\ntitle: A\ndays: many\n---\n")
    assert site.refused() == ["a.md, line 3: days: must be an integer"]
    site.put("a.md", "---\ntitle: A\nslug: a/b\n---\n")
    assert site.refused() == ["a.md, line 3: slug: must be one part of an address, without a slash"]


def test_what_does_not_fit_a_page_is_located(site: Site) -> None:
    site.put("a/b.md", "---\ntitle: A\nslug: c/d\n---\n")
    (said,) = site.refused()
    assert said.startswith("a/b.md, line 3: slug: ")


def test_a_folder_without_pages_is_refused(site: Site) -> None:
    assert site.refused() == ["garden: has no files that end in .md, .markdown or .mdx"]


def test_another_folder_is_left_alone(site: Site) -> None:
    site.put("a.md")
    site.folder.mkdir()
    (site.folder / "mine.txt").write_text("x")
    (said,) = site.refused()
    assert said.endswith("ids.json cannot be read: No such file or directory. Name a new folder.")


@pytest.mark.parametrize(
    "text",
    [
        *("{", "[]", '{"pages": {"/": 1, "/a": 1}}', '{"pages": {"/": "x"}}'),
        '{"pages": {}, "images": {}, "documents": {}, "static": [1]}',
    ],
)
def test_broken_ids_are_refused(site: Site, text: str) -> None:
    site.put("a.md")
    site.run()
    (site.folder / "ids.json").write_text(text)
    (said,) = site.refused()
    assert "/ids.json" in said


def test_code_of_other_folders_is_not_run(site: Site) -> None:
    site.put("a.md")
    (site.folder / "content").mkdir(parents=True)
    (site.folder / "app.py").write_text("")
    (site.folder / "models.py").write_text("raise SystemExit(9)")
    (said,) = site.refused()
    assert "is nothing that was imported" in said


@pytest.mark.parametrize("path", ["../../victim.png", "{root}/victim.png", "a/../../../victim.png"])
def test_ids_name_files_inside_alone(site: Site, path: str) -> None:
    site.put("a.md", "![x](x.png)")
    site.put("x.png", PICTURE)
    site.run()
    victim = site.folder.parent / "victim.png"
    victim.write_bytes(PICTURE)
    ids = site.folder / "ids.json"
    ids.write_text(ids.read_text().replace("x.png", path.format(root=victim.parent)))
    site.put("a.md")
    (said,) = site.refused()
    assert "which leads out of the media" in said
    assert victim.exists()


def test_refused_imports_write_nothing(site: Site) -> None:
    site.put("a.md", "---\ndays: 3\n---\n![x](x.png)")
    site.put("x.png", PICTURE)
    site.run()
    site.put("a.md", "---\ndays: many\n---\n![x](x.png) ![y](y.png)")
    site.put("x.png", b"another")
    site.put("y.png", PICTURE)
    assert site.refused() == ["a.md, line 2: days: must be an integer"]


def test_stopped_imports_leave_what_is_served(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.put("a.md", "![x](x.png)")
    site.put("x.png", PICTURE)
    site.run()
    site.put("a.md", "New ![x](x.png)")
    site.put("x.png", b"another")
    with monkeypatch.context() as patched:
        patched.setattr("flask_contentapi.importers.refresh.Changes.write", stopped)
        site.run(status=1)
    assert (site.folder / "media" / "x.png").read_bytes() == PICTURE
    assert [*site.folder.glob(".*")] == []
    assert site.run() == "1 page changed.\n~ pages 2 /a\n* media/x.png\n"


def test_killed_imports_leave_what_is_served(site: Site) -> None:
    site.put("a.md", "![x](x.png)")
    site.put("x.png", PICTURE)
    site.run()
    site.put("x.png", b"another")
    kill = "from flask_contentapi.importers import refresh; import os, signal; "
    kill += "refresh.Changes.__bool__ = lambda changes: os.kill(os.getpid(), signal.SIGKILL)\n"
    run = "from flask_contentapi.__main__ import main; main()"
    command = [sys.executable, "-c", kill + run, "import", str(site.source), str(site.folder)]
    assert subprocess.run(command).returncode == -9
    assert (site.folder / "media" / "x.png").read_bytes() == PICTURE
    assert site.run() == "Nothing has changed.\n* media/x.png\n"


def stopped(*args: object) -> None:
    raise KeyboardInterrupt


def test_what_is_beside_stays(site: Site) -> None:
    site.put("a.md")
    beside = site.folder.parent / ".site.part"
    beside.mkdir()
    (beside / "app.py").write_text("mine")
    site.run()
    assert (beside / "app.py").read_text() == "mine"
    assert {path.name for path in beside.parent.glob(".site*")} == {".site.part"}


def test_a_folder_may_be_a_symbolic_link(site: Site) -> None:
    site.put("a.md")
    site.folder.symlink_to("elsewhere")
    site.run()
    assert site.folder.is_symlink()
    assert site.run() == "Nothing has changed.\n"


def test_files_that_cannot_be_written_are_told(site: Site) -> None:
    site.put("a.md")
    site.folder.parent.joinpath("file").write_text("")
    site.folder = site.folder.parent / "file" / "site"
    assert f"{str(site.folder.parent)!r} cannot be read or written: " in site.run(status=1)


def test_hand_written_files_are_not_lost(site: Site) -> None:
    site.put("a.md")
    site.run()
    (site.folder / "content" / "pages").mkdir()
    (site.folder / "content" / "pages" / "own.json").write_text(
        '{"id": 50, "parent": null, "type": "site.Page", "title": "Own", "slug": "own"}'
    )
    assert "say --yes" in " ".join(site.refused())
    assert site.run("--yes") == "Nothing has changed.\n"


def test_folder_runs(site: Site) -> None:
    site.put("index.md", "# The garden\n\n![Rye](rye.png)\n")
    site.put("rye.png", PICTURE)
    site.run()
    check = [sys.executable, "-m", "flask", "contentapi", "check"]
    done = subprocess.run(check, cwd=site.folder, capture_output=True, text=True, check=False)
    assert done.stdout == "Everything is in order.\n"
    port = free_port()
    command = [sys.executable, "-m", "flask", "run", "--port", str(port)]
    server = start(command, port, cwd=site.folder)
    try:
        base = f"http://127.0.0.1:{port}"
        with urlopen(f"{base}/api/v2/images/") as response:  # noqa: S310 - our own server
            (image,) = json.load(response)["items"]
        with urlopen(image["meta"]["download_url"]) as response:  # noqa: S310
            assert response.read() == PICTURE
    finally:
        stop(server)

"""All problems of a folder are reported at once, with files and lines."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from flask_contentapi.files import Unreadable
from flask_contentapi_jsonfiles.files import File, parser
from tests.folders import Folder
from tests.samples import Record, image, page, site


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "content")


def bare(id: int, **values: Any) -> Record:
    """A page without the fields that its place determines."""
    return {"id": id, "type": "standard.StandardPage", "title": f"Page {id}", **values}


ABOUT = """{
  "id": 5,
  "type": "standard.StandardPage",
  "title": "About",

  "body": [{"type": "text", "value": "banner"}],
  "banner": "storm.png"
}"""

LIST = """[
  {"id": 1, "title": "Lamp",
   "file": "lamp.png"},
  {
    "id": 2,
    "title": "Rope", "width":
      "wide",
    "hight": 3
  },
  7,
  {"title": "No id"}
]"""

AUTHORS = """{
  "id": 1,
  "type": "blog.BlogPage",
  "title": "Blog",
  "authors": [
    {"id": 1, "name": "K. Osei"},
    {"id": 2,
     "name": 7,
     "nmae": ""},
    3
  ]
}"""

#: Files, and their problems.
MISTAKES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a value": (
        {"pages/about.json": ABOUT},
        ["pages/about.json, line 7: pages 5, banner: must be the id of an object, or null"],
    ),
    "a list": (
        {"images.json": LIST},
        [
            "images.json, line 6: images 2, width: must be an integer",
            "images.json, line 8: images 2, hight: there is no such field. Did you mean 'height'?",
            "images.json, line 10: images[2]: must be an object",
            "images.json, line 11: images[3], id: is missing",
        ],
    ),
    "child objects": (
        {"pages/blog.json": AUTHORS},
        [
            "pages/blog.json, line 8: pages 1, authors[1], name: must be text",
            "pages/blog.json, line 9: pages 1, authors[1], nmae: there is no such field."
            " Did you mean 'name'?",
            "pages/blog.json, line 10: pages 1, authors[2]: must be an object",
        ],
    ),
    "no id": (
        {"pages/about.json": '\n{"type": "blog.BlogPage",\n "authors": [{}, {}]}'},
        [
            "pages/about.json, line 2: id: is missing",
            "pages/about.json, line 2: title: is missing",
            "pages/about.json, line 3: authors[0], id: is missing",
            "pages/about.json, line 3: authors[1], id: is missing",
        ],
    ),
    "circles": (
        {
            "pages.json": [page(1, 2), page(2, 1)],
            "collections/a.json": '{"id": 1,\n"parent": 2}',
            "collections/b.json": {"id": 2, "parent": 1},
        },
        [
            "collections/a.json, line 2: collections 1, parent: the collections above it form a"
            " circle",
            "collections/b.json, line 3: collections 2, parent: the collections above it form a"
            " circle",
            "pages.json, line 4: pages 1, parent: the pages above it form a circle",
            "pages.json, line 11: pages 2, parent: the pages above it form a circle",
        ],
    ),
    "a tree that is too deep": (
        {"pages/a.json": bare(1), "pages.json": [page(n, n - 1) for n in range(2, 402)]},
        [
            "pages.json, line 2797: pages 401, parent: is on level 401 of the tree, which has at"
            " most 400; put it further up",
        ],
    ),
    "what records are together": (
        {
            "sites.json": [
                {"hostname": "a"},
                site(1, "b", is_default=True),
                site(7, "c", is_default=True),
                site(1, "b"),
            ],
            "pages.json": [page(1), page(2, 4, slug="a")],
            "pages/a.json": bare(4),
            "pages/a/b.json": bare(5, slug="a"),
            "images/a.json": image(1, collection=5),
        },
        [
            "sites.json, line 2: sites a, root_page: is missing",
            "pages/a/b.json, line 5: pages 5, slug: a sibling has the slug 'a' already: page 2",
            "images/a.json, line 5: images 1, collection: there is no collection 5",
            "sites.json, line 12: sites c:80, root_page: there is no page 7",
            "sites.json, line 13: sites c:80, is_default: another site is the default already:"
            " sites.json, line 5",
            "sites.json, line 16: sites b:80, hostname: another site has this host name and port"
            " already: sites.json, line 5",
        ],
    ),
    "two of one id": (
        {
            "pages.json": [page(1)],
            "pages/a.json": '{"title": "A", "type": "blog.BlogPage",\n"id":1}',
            "collections.json": [{"id": 7}, {"id": 7}],
        },
        [
            "collections.json, line 6: collections 7, id: another record has this id already:"
            " collections.json, line 2",
            "pages/a.json, line 2: pages 1, id: another record has this id already:"
            " pages.json, line 2",
        ],
    ),
    "a tag with a comma": (
        {"images/a.json": '{"id": 1, "title": "A",\n"tags": ["b", "fish, chips"]}'},
        [
            "images/a.json, line 2: images 1, tags: must be tags without commas, which separate"
            " tags in queries; write 'fish, chips' as several tags, or without the comma"
        ],
    ),
    "locales": (
        {"locales.json": '["en",\n{}]'},
        ["locales.json, line 2: locales[1]: must be a code, as en"],
    ),
    "locales that are no list": (
        {"locales.json": {"en": "English"}},
        ['locales.json, line 1: must be a list of the codes of languages, as ["en", "fr"]'],
    ),
    "broken JSON": (
        {"pages/about.json": '{\n  "id": 5,\n  "title": "About"\n  "slug": "about"\n}'},
        ["pages/about.json, line 3: is not JSON: a comma is missing at the end of the line"],
    ),
    "commas": (
        {
            "images.json": '[\n{"id": 1, "title": "a"},\n]',
            "pages.json": '[{"id": 1, "title": "a",\n\n}]',
            "pages/a.json": '{"id": 1 "title": "a"}',
            "pages/b.json": '{"title": "a "rope" b"}',
            "pages/c.json": "[1, 2}",
        },
        [
            "images.json, line 2: is not JSON: there is an extra comma before ] (column 24)",
            "pages.json, line 1: is not JSON: there is an extra comma before } (column 24)",
            "pages/a.json, line 1: is not JSON: a comma is missing (column 9)",
            "pages/b.json, line 1: is not JSON: a comma or bracket is missing (column 15)",
            "pages/c.json, line 1: is not JSON: a comma or bracket is missing (column 6)",
        ],
    ),
    "an empty file": (
        {"pages.json": ""},
        ["pages.json: is empty"],
    ),
    "what is JavaScript or Python": (
        {
            "collections.json": "\n/* none */ []",
            "images.json": "[\n{'id': 7}]",
            "images/a.json": "{id: 7}",
            "images/b.json": """{"title": "A", 'id': 7}""",
            "images/c.json": """{"id": 1, "title":\n 'A'}""",
            "pages.json": "[ // none\n]",
            "pages/a.json": '{"id": 1, // the first\n"title": "A"}',
            "pages/b.json": '{"id": 1 // the first\n}',
            "pages/c.json": '{"id": 1}\n\n # the first',
            "pages/d.json": '{"url": "//a", "title": "#", }',
            "pages/e.json": '{"title": "A\n# B"}',
        },
        [
            "collections.json, line 2: is not JSON: JSON has no comments (column 1)",
            "images.json, line 2: is not JSON: names and texts are in double quotes (column 2)",
            "pages.json, line 1: is not JSON: JSON has no comments (column 3)",
            "images/a.json, line 1: is not JSON: names and texts are in double quotes (column 2)",
            "images/b.json, line 1: is not JSON: names and texts are in double quotes (column 16)",
            "images/c.json, line 2: is not JSON: names and texts are in double quotes (column 2)",
            "pages/a.json, line 1: is not JSON: JSON has no comments (column 11)",
            "pages/b.json, line 1: is not JSON: JSON has no comments (column 10)",
            "pages/c.json, line 3: is not JSON: JSON has no comments (column 2)",
            "pages/d.json, line 1: is not JSON: there is an extra comma before } (column 28)",
            "pages/e.json, line 1: is not JSON: a quote is missing at the end of a text, or \\n or"
            " \\t in it (column 13)",
        ],
    ),
    "texts that are none": (
        {
            "images.json": r'[{"id": 1, "title": "A\"}]',
            "pages/a.json": r'{"title": "C:\dir"}',
            "pages/b.json": '{"title": "A,\n}',
            "pages/c.json": '{"title": “A”}',
            "pages/d.json": '{"title" "A"}',
            "pages/e.json": '{"live": True}',
            "pages/f.json": '{"id": 1}\n{"id": 2}',
            "pages/g.json": '{"id": [1,\n2',
            "pages/h.json": '{"title": A}',
        },
        [
            "images.json, line 1: is not JSON: a quote is missing at the end of a text (column 21)",
            "pages/a.json, line 1: is not JSON: a backslash in a text is written twice (column 14)",
            "pages/b.json, line 1: is not JSON: a quote is missing at the end of a text, or \\n or"
            " \\t in it (column 14)",
            "pages/c.json, line 1: is not JSON: names and texts are in double quotes (column 11)",
            "pages/d.json, line 1: is not JSON: a colon is missing (column 10)",
            "pages/e.json, line 1: is not JSON: True is no JSON; write true (column 10)",
            "pages/f.json, line 2: is not JSON: something follows its end (column 1)",
            "pages/g.json, line 2: is not JSON: a closing bracket is missing (column 2)",
            "pages/h.json, line 1: is not JSON: this is no value; texts are in double quotes"
            " (column 11)",
        ],
    ),
    "not UTF-8": (
        {"pages.json": b'[\n{"title": "caf\xe9"}\n]', "images.json": b'\xef\xbb\xbf[\n"\xff"]'},
        ["images.json, line 2: must be UTF-8", "pages.json, line 2: must be UTF-8"],
    ),
    "a key twice": (
        {"images.json": '[\n{"id": 1, "title": "a",\n "x": {"b": 1,\n "b": 2, "b": 3},\n"id": 2}]'},
        [
            "images.json, line 4: the object has the key 'b' already",
            "images.json, line 4: the object has the key 'b' already",
            "images.json, line 5: the object has the key 'id' already",
        ],
    ),
    "numbers that are none": (
        {"images.json": '[\n{"id": NaN,\n "x": [-Infinity,\n "NaN"]}]', "pages.json": "\nInfinity"},
        [
            "images.json, line 2: NaN is no JSON; write null",
            "images.json, line 3: -Infinity is no JSON; write null",
            "pages.json, line 2: Infinity is no JSON; write null",
        ],
    ),
    "huge numbers": (
        {"images.json": f'[{{"id": 1,\n"title": "a",\n"width": -{"9" * 5000}}}]'},
        ["images.json, line 3: images 1, width: must be an integer of at most 64 bits"],
    ),
    "deep nesting": (
        {"images.json": "[" * 100_000},
        ["images.json: is nested too deeply"],
    ),
    "one record for a list": (
        {"pages.json": bare(1)},
        ["pages.json, line 1: must be a list of records"],
    ),
    "a list for one record": (
        {"images/a.json": [image(1)]},
        ["images/a.json, line 1: must be one record; a list of them is images.json"],
    ),
    "unknown sections": (
        {
            "page.json": [],
            "imgaes/a.json": {},
            "zoo.json": [],
            "locales/en.json": "en",
            "pages.body.md": "",
        },
        [
            "imgaes: there is no section 'imgaes'. Did you mean 'images'?",
            "locales: there is no section 'locales'. There are sites, collections, pages, images,"
            " documents, redirects.",
            "page.json: there is no section 'page'. Did you mean 'pages'?",
            "pages.body.md: belongs to no record",
            "zoo.json: there is no section 'zoo'. There are locales, sites, collections, pages,"
            " images, documents, redirects.",
        ],
    ),
    "another parent": (
        {
            "pages/a.json": bare(1, parent=2),
            "pages/b.json": bare(2),
            "pages/b/c.json": bare(3, parent=None),
            "pages/b/d.json": bare(4, parent=1),
        },
        [
            "pages/a.json, line 5: pages 1, parent: must be null, which its folder belongs to",
            "pages/b/c.json, line 5: pages 3, parent: must be 2, which its folder belongs to",
            "pages/b/d.json, line 5: pages 4, parent: must be 2, which its folder belongs to",
        ],
    ),
    "one page twice": (
        {"pages/a.json": bare(1), "pages/a/index.json": bare(1)},
        ["pages/a/index.json: is the same page as pages/a.json; keep one of them"],
    ),
    "an index of no page": (
        {"pages/index.json": bare(1)},
        ["pages/index.json: has no page's folder around it; name it by its slug"],
    ),
    "a folder without a page": (
        {
            "pages/a.json": bare(1),
            "pages/a/b/c/d.json": bare(2),
            "pages/a/b/c/e.json": {**bare(0), "id": "3"},
        },
        [
            "pages/a/b: there is no page for it, as pages/a/b.json or pages/a/b/index.json",
            "pages/a/b/c/e.json, line 2: pages 3, id: must be an integer",
        ],
    ),
    "a body twice": (
        {
            "pages/a.json": bare(1, body=[]),
            "pages/a.body.md": "A",
            "pages/b.json": {**bare(2), "type": "blog.BlogPage"},
            "pages/b.body.md": "B",
            "pages/b.body.html": "<p>B</p>",
        },
        [
            "pages/b.body.md: is the same body as pages/b.body.html; keep one of them",
            "pages/a.json, line 5: pages 1, body: stands in pages/a.body.md as well; keep one",
        ],
    ),
    "a body without a record": (
        {"pages/a.json": bare(1), "pages/b.body.md": "B", "images/x/a.body.html": "A"},
        [
            "images/x/a.body.html: has no record beside it, a.json",
            "pages/b.body.md: has no record beside it, b.json",
        ],
    ),
    "a body of what has none": (
        {
            "images/a.json": image(1),
            "images/a.body.html": "A",
            "pages/a.json": bare(1),
            "pages/a.body.md": "",
        },
        [
            "pages/a.body.md: pages 1, body: must be a list of blocks",
            "images/a.body.html: images 1, body: there is no such field.",
        ],
    ),
    "a body that is not UTF-8": (
        {"pages/a.json": {**bare(1), "type": "blog.BlogPage"}, "pages/a.body.html": b"<p>\n\xff"},
        ["pages/a.body.html, line 2: must be UTF-8"],
    ),
    "what is missing for another mistake is no mistake": (
        {
            "colections.json": [{"id": 1}],
            "images/a.json": image(1, collection=1),
        },
        ["colections.json: there is no section 'colections'. Did you mean 'collections'?"],
    ),
    "what a broken file lacks is no mistake": (
        {"pages/a.json": "[]", "sites.json": [site(1)]},
        ["pages/a.json, line 1: must be one record; a list of them is pages.json"],
    ),
    "what is below a page without an id is no mistake": (
        {
            "pages/a.json": '{"title": "A", "type": "blog.BlogPage"}',
            "pages/a/b.json": bare(2, parent=1),
            "pages/b.json": bare(3),
        },
        ["pages/a.json, line 1: id: is missing"],
    ),
    "what is below a page with another id is no mistake": (
        {"pages/a.json": {**bare(1), "id": "1"}, "pages/a/b.json": bare(2)},
        ["pages/a.json, line 2: pages 1, id: must be an integer"],
    ),
    "odd records in the list of pages": (
        {
            "pages.json": [page(1, slug="a") | {"parent": []}, 7, page(2, slug=[])],
            "pages/a/b.json": bare(3),
        },
        [
            "pages/a: there is no page for it, as pages/a.json or pages/a/index.json",
            "pages.json, line 4: pages 1, parent: must be the id of an object, or null",
            "pages.json, line 9: pages[1]: must be an object",
            "pages.json, line 15: pages 2, slug: must be text",
        ],
    ),
    "everything at once": (
        {
            "pages/a.json": "{",
            "pages/a/b.json": ABOUT,
            "images/a.json": image(1, width="wide"),
            "sites/a.json": {},
            "collections/a.json": {"id": "1"},
            "imagse.json": [],
        },
        [
            "imagse.json: there is no section 'imagse'. Did you mean 'images'?",
            "pages/a.json, line 1: is not JSON: a closing bracket is missing (column 2)",
            "collections/a.json, line 2: collections 1, id: must be an integer",
            "images/a.json, line 5: images 1, width: must be an integer",
            "pages/a/b.json, line 7: pages 5, banner: must be the id of an object, or null",
            "sites/a.json, line 1: hostname: is missing",
            "sites/a.json, line 1: root_page: is missing",
        ],
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_every_problem_is_named_with_its_file_and_line(folder: Folder, mistake: str) -> None:
    content, wanted = MISTAKES[mistake]
    for name, value in content.items():
        folder.put(name, value)
    assert folder.problems() == wanted


def test_an_entry_of_an_earlier_line_does_not_move_the_line(folder: Folder) -> None:
    folder.put("images.json", '[{"id": 1, "title": "a\\nb", "width": {"width":\n1}},\n\n{"id": 1}]')
    assert [problem.split(":")[0] for problem in folder.problems()] == [
        "images.json, line 1",
        "images.json, line 4",
    ]


@pytest.mark.parametrize("meanwhile", [None, "", "[", '[{"id"', "[" * 100_000])
def test_a_file_that_is_changed_meanwhile_is_named_without_a_line(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, meanwhile: str | None
) -> None:
    def read_text(file: File) -> str:
        if meanwhile is None:
            raise Unreadable
        return meanwhile

    monkeypatch.setattr("flask_contentapi_jsonfiles.reading.read_text", read_text)
    folder.put("images.json", [image(1, width="wide")])
    assert folder.problems() == ["images.json: images 1, width: must be an integer"]


def test_names_that_are_no_text_are_shown_all_the_same(folder: Folder) -> None:
    folder.put("pages.json", [])
    (folder.path / "im\udcff.json").write_text("[]")
    assert folder.problems()[0].startswith("im\\xff.json: there is no section 'im\\xff'.")


def test_markdown_needs_its_library(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "markdown_it", None)
    parser.cache_clear()
    folder.put("pages/a.json", bare(1))
    folder.put("pages/a.body.md", "A")
    message = "Markdown needs the package markdown-it-py: flask_contentapi[markdown]"
    assert folder.problems() == [f"pages/a.body.md: {message}"]


# Links.


@pytest.fixture
def outside(folder: Folder) -> Folder:
    outside = Folder(folder.path.parent / "outside")
    outside.put("secret.json", bare(1))
    outside.put("secret.body.html", "secret")
    folder.put("pages/a.json", bare(2))
    return outside


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("pages/b.json", "secret.json"),
        ("pages/a.body.html", "secret.body.html"),
        ("pages/b", ""),
        ("images", ""),
        ("images.json", "secret.json"),
    ],
)
def test_links_that_lead_out_of_the_folder_are_refused(
    folder: Folder, outside: Folder, name: str, target: str
) -> None:
    folder.link(name, outside.path / target)
    assert folder.problems() == [f"{name}: leads out of the folder"]


def test_a_folder_whose_name_starts_with_the_same_is_outside(folder: Folder) -> None:
    Folder(folder.path.with_name("content2")).put("a.json", image(1))
    folder.link("images/a.json", "../../content2/a.json")
    assert folder.problems() == ["images/a.json: leads out of the folder"]


def test_links_in_a_circle_are_refused(folder: Folder) -> None:
    folder.put("pages/a/b.json", bare(1))
    folder.put("pages/a.json", bare(2))
    folder.link("pages/a/up", "..")
    folder.link("pages/c", "c")
    assert folder.problems() == ["pages/a/up: leads back to a folder that it lies in"]


def test_links_to_nothing_are_refused(folder: Folder) -> None:
    folder.link("pages/a.json", "b.json")
    assert folder.problems() == ["pages/a.json: cannot be read: No such file or directory"]


def test_what_cannot_be_read_to_its_end_is_refused(folder: Folder) -> None:
    folder.put("images.json", [])
    os.mkfifo(folder.path / "pages.json")
    assert folder.problems() == ["pages.json: is no file"]


def test_a_folder_is_no_file(folder: Folder) -> None:
    folder.put("pages/a.json/b.json", bare(1))
    assert folder.problems() == [
        "pages/a.json: there is no page for it, as pages/a.json.json or pages/a.json/index.json"
    ]

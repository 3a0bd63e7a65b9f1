"""The meaning of the files in a folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from marshmallow import fields

from flask_contentapi import ConfigurationError, ContentAPI, Entry
from tests.api import API
from tests.conformance.reference_site import create_app
from tests.conftest import CONFORMANCE
from tests.folders import Folder, write_tree
from tests.samples import Record, image, page, site


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def bare(id: int, **values: Any) -> Record:
    """A page without the fields that its place determines."""
    return {"id": id, "type": "blog.BlogPage", "title": f"Page {id}", **values}


# The same content in another form.


def _requests() -> dict[str, list[tuple[str, str]]]:
    """The paths and hosts of the recorded requests, by settings, except for random answers."""
    found: dict[str, list[tuple[str, str]]] = {}
    for line in (CONFORMANCE / "cases.jsonl").read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        if "random" not in case["path"]:
            key = json.dumps(case["settings"], sort_keys=True)
            found.setdefault(key, []).append((case["path"], case["host"]))
    return found


REQUESTS = _requests()


@pytest.mark.slow
@pytest.mark.parametrize("settings", REQUESTS)
def test_a_tree_of_files_answers_as_the_same_content_in_memory(
    folder: Folder, reference_content: Mapping[str, Any], settings: str
) -> None:
    write_tree(folder, reference_content)
    config = json.loads(settings)
    memory = create_app(reference_content, "memory", config).test_client()
    files = folder.api(config=config).app.test_client()
    for path, host in REQUESTS[settings]:
        wanted = memory.get(path, base_url=f"http://{host}/")
        got = files.get(path, base_url=f"http://{host}/")
        assert (got.status, got.data) == (wanted.status, wanted.data), path


def test_an_empty_folder_serves_nothing(folder: Folder) -> None:
    assert [folder.api().total(f"{name}/") for name in ("pages", "images", "documents")] == [0] * 3


# One file a section.


def test_a_section_can_be_one_file(folder: Folder) -> None:
    folder.put("pages.json", [page(1), page(2, 1), page(3, 2)])
    folder.put("images.json", [image(7)])
    api = folder.api()
    assert api.ids("pages/?descendant_of=1") == [2, 3]
    assert api.ids("images/") == [7]


def test_sites_collections_and_locales_are_read(folder: Folder) -> None:
    folder.put("locales.json", ["en", "fr"])
    folder.put("pages/a.json", bare(1))
    folder.put("pages/b.json", bare(2, locale="fr"))
    folder.put("sites/b.json", site(2, "b.example"))
    folder.put("collections/staff.json", {"id": 1, "restriction": {"type": "login"}})
    folder.put("collections/public/all.json", {"id": 2})
    folder.put("images.json", [image(1, collection=1), image(2, collection=2)])
    api = folder.api(config={"CMS_I18N_ENABLED": True})
    assert api.at("b.example").ids("pages/?locale=fr") == [2]
    assert api.ids("images/") == [2]


def test_pages_have_the_language_of_their_folders_page(folder: Folder) -> None:
    folder.put("locales.json", ["en", "fr"])
    folder.put("pages.json", [page(1, slug="a", locale="fr")])
    folder.put("pages/a/b.json", bare(2))
    folder.put("pages/a/b/c.json", bare(3))
    folder.put("pages/a/b/d.json", bare(4, locale="en"))
    folder.put("pages/a/b/d/e.json", bare(5))
    folder.put("pages/f.json", bare(6))
    folder.put("pages/f/g.json", bare(7))
    locales = [record["locale"] for record in folder.api().dump()["pages"]]
    assert locales == ["fr", "fr", "fr", "en", "en", "en", "en"]


def test_an_endpoint_of_the_sites_own_has_files_too(folder: Folder) -> None:
    class Person(Entry):
        endpoint = "people"
        name = fields.String()
        api_fields = ["name"]

    folder.put("people.json", [{"id": 1, "name": "Ada"}])
    folder.put("people/b/brook.json", {"id": 2, "name": "Brook"})
    assert folder.api([Person]).ids("people/?order=-name") == [2, 1]


# The tree of pages.


def test_folders_mirror_the_tree_of_pages(folder: Folder) -> None:
    folder.put("pages/home.json", bare(1))
    folder.put("pages/home/about.json", bare(2))
    folder.put("pages/home/about/team/index.json", bare(3))
    folder.put("pages/home/about/team/jobs.json", bare(4))
    api = folder.api()
    assert api.ids("pages/?ancestor_of=4") == [1, 2, 3]
    assert api.get("pages/find/?html_path=/about/team/jobs/").status_code == 302


def test_siblings_stand_in_the_order_of_their_names(folder: Folder) -> None:
    folder.put("pages/home.json", bare(1))
    for id, name in enumerate(["c", "B", "a/index", "b"], 2):
        folder.put(f"pages/home/{name}.json", bare(id))
    assert folder.api().ids("pages/?child_of=1") == [3, 4, 5, 2]


def test_numbers_before_names_give_the_order(folder: Folder) -> None:
    folder.put("pages/home.json", bare(1))
    for id, name in enumerate(["0100_x", "9_z", "b", "20_y/index", "a"], 2):
        folder.put(f"pages/home/{name}.json", bare(id))
    assert folder.api().ids("pages/?child_of=1") == [3, 5, 2, 6, 4]


def test_numbers_before_names_are_no_part_of_slugs(folder: Folder) -> None:
    folder.put("pages/1_home.json", bare(1))
    folder.put("pages/1_home/20_12_knots.json", bare(2))
    assert folder.api().json("pages/2/")["meta"]["slug"] == "12_knots"


@pytest.mark.parametrize("name", ["10_", "10", "10-a"])
def test_other_numbers_are_part_of_slugs(folder: Folder, name: str) -> None:
    folder.put(f"pages/{name}.json", bare(1))
    assert folder.api().json("pages/1/")["meta"]["slug"] == name


def test_a_record_can_have_a_slug_of_its_own(folder: Folder) -> None:
    folder.put("pages/start.json", bare(1, slug="home"))
    folder.put("pages/start/a.json", bare(2))
    api = folder.api()
    assert api.json("pages/1/")["meta"]["slug"] == "home"
    assert api.ids("pages/?child_of=1") == [2]


def test_a_record_may_repeat_what_its_place_says(folder: Folder) -> None:
    folder.put("pages/home.json", bare(1, parent=None, slug="home"))
    folder.put("pages/home/a.json", bare(2, parent=1, slug="a"))
    assert folder.api().ids("pages/?child_of=1") == [2]


def test_accents_that_stand_apart_in_a_name_are_put_together(folder: Folder) -> None:
    folder.put("pages/cafe\N{COMBINING ACUTE ACCENT}.json", bare(1))
    assert folder.api().ids("pages/?slug=café") == [1]


# Combined layouts.


def test_pages_of_the_list_can_have_a_folder(folder: Folder) -> None:
    folder.put("pages.json", [page(1, slug="home"), page(2, 1, slug="about")])
    folder.put("pages/home/5_about/team.json", bare(3))
    assert folder.api().ids("pages/?child_of=2") == [3]


def test_pages_of_the_list_can_stand_below_those_in_files(folder: Folder) -> None:
    folder.put("pages.json", [page(2, 1, slug="listed")])
    folder.put("pages/home.json", bare(1))
    folder.put("pages/home/filed.json", bare(3))
    folder.put("pages/home/listed/below.json", bare(4))
    api = folder.api()
    assert api.ids("pages/?child_of=1") == [2, 3]
    assert api.ids("pages/?child_of=2") == [4]


def test_lists_and_single_files_add_up(folder: Folder) -> None:
    folder.put("images.json", [image(1), image(3)])
    folder.put("images/2026/lamp.json", image(2))
    assert folder.api().ids("images/") == [1, 2, 3]


# Ignored files.


def test_names_with_a_dot_or_an_underscore_are_left_alone(folder: Folder) -> None:
    folder.put("pages/home.json", bare(1))
    for name in (".git/a", "_drafts/pages", "pages/_a", "pages/.a", "_a", ".a", "pages/home/_b/c"):
        folder.put(f"{name}.json", "no JSON at all")
    folder.put("pages/_home.body.md", "no page's")
    assert folder.api().ids("pages/") == [1]


def test_other_files_are_left_alone(folder: Folder) -> None:
    folder.put("README.md", "How to write here")
    folder.put("media/lamp.png", b"\x89PNG")
    folder.put("media/_raw/notes.json", {})
    folder.put("images/lamp.png", b"\x89PNG")
    folder.put("images/lamp.json", image(1))
    folder.put("pages/photos/lamp.png", b"\x89PNG")
    assert folder.api().ids("images/") == [1]


def test_files_that_are_probably_meant_to_be_read_are_noted(folder: Folder) -> None:
    folder.put("pages/home.json", bare(1))
    folder.put("pages/home/10_fern.json", bare(2))
    folder.put("README.md", "How to write here")
    for name in ("10_fern.body.md", "_ideas.md", "fern.png"):
        folder.put(f"pages/home/{name}", "Fern")
    meant = {
        "10_fern.Body.markdown": "the body of a record is named as 10_fern.body.md.",
        "10_fern.md": "the body of a record is named as 10_fern.body.md.",
        "more/moss.HTM": "the body of a record is named as moss.body.html.",
        "moss.JSON": "a record is named as moss.json.",
    }
    for name in meant:
        folder.put(f"pages/home/{name}", "Fern")
    runner = folder.api().app.test_cli_runner()
    assert runner.invoke(args=["contentapi", "check"]).output.splitlines() == [
        *(f"Note: pages/home/{name} is not read; {why}" for name, why in meant.items()),
        "Everything is in order.",
    ]


def test_a_byte_order_mark_is_no_part_of_the_text(folder: Folder) -> None:
    folder.put("images.json", b"\xef\xbb\xbf" + json.dumps([image(1)]).encode())
    assert folder.api().ids("images/") == [1]


# Bodies.


def body_of(folder: Folder) -> Any:
    return folder.api().json("pages/1/")["body"]


@pytest.mark.parametrize(
    "text", ["<p>Été</p>\n", "<p>Été</p>", b"\xef\xbb\xbf<p>\xc3\x89t\xc3\xa9</p>\r\n"]
)
def test_html_beside_a_record_is_its_body(folder: Folder, text: str | bytes) -> None:
    folder.put("pages/a.json", bare(1))
    folder.put("pages/a.body.html", text)
    assert body_of(folder) == "<p>Été</p>"


def test_markdown_beside_a_record_is_its_body_in_html(folder: Folder) -> None:
    folder.put("pages/10_a/index.json", bare(1))
    folder.put("pages/10_a/index.body.md", "# Storm\n\nA ~~quiet~~ *wild* day.\n")
    assert body_of(folder) == "<h1>Storm</h1>\n<p>A <s>quiet</s> <em>wild</em> day.</p>"


def test_markdown_has_tables(folder: Folder) -> None:
    folder.put("pages/a.json", bare(1))
    folder.put("pages/a.body.md", "|a|b|\n|-|-|\n|1|2|\n")
    assert "<td>1</td>" in body_of(folder)


def test_a_body_is_found_by_search(folder: Folder) -> None:
    folder.put("pages/a.json", bare(1))
    folder.put("pages/a.body.md", "An **anchor**.")
    assert folder.api().ids("pages/?type=blog.BlogPage&search=anchor") == [1]


# Links.


def test_links_are_followed_inside_the_folder(folder: Folder) -> None:
    folder.put(".data/2026/pages.json", [page(1)])
    folder.put(".data/2026/pictures/a.json", image(1))
    folder.link("pages.json", ".data/2026/pages.json")
    folder.link("images", ".data/2026/pictures")
    api = folder.api()
    assert api.ids("pages/") == api.ids("images/") == [1]


def test_links_that_are_no_sections_are_left_alone(folder: Folder) -> None:
    folder.put("content/images.json", [image(1)])
    folder.put("media/notes.json", {})
    folder.link("content/media", "../media")
    assert Folder(folder.path / "content").api().ids("images/") == [1]


def test_the_folder_itself_can_be_a_link(folder: Folder) -> None:
    folder.put("releases/1/pages/a.json", bare(1))
    folder.link("current", "releases/1")
    assert Folder(folder.path / "current").api().ids("pages/") == [1]


# The backend's address.


def make(address: str, root: Path) -> API:
    app = Flask("site", root_path=str(root))
    app.config["CMSAPI_BACKEND"] = address
    ContentAPI(app)
    return API(app)


def test_a_relative_folder_starts_at_the_root_of_the_application(folder: Folder) -> None:
    folder.put("content/images.json", [image(1)])
    assert make("jsonfiles:content", folder.path).ids("images/") == [1]


def test_an_absolute_folder_is_what_it_is(folder: Folder, tmp_path_factory: Any) -> None:
    folder.put("images.json", [image(1)])
    assert make(f"jsonfiles:{folder.path}", tmp_path_factory.mktemp("root")).ids("images/") == [1]


@pytest.mark.parametrize("slashes", ["//", "///"])
def test_an_address_with_slashes_that_leads_nowhere_is_told_the_right_one(
    folder: Folder, slashes: str
) -> None:
    folder.put("content/images.json", [image(1)])
    with pytest.raises(ConfigurationError, match="write jsonfiles:content, without slashes"):
        make(f"jsonfiles:{slashes}content", folder.path)
    assert make(f"jsonfiles://{folder.path}/content", Path("elsewhere")).ids("images/") == [1]


@pytest.mark.parametrize("address", ["jsonfiles", "jsonfiles:"])
def test_without_a_folder_is_a_mistake(folder: Folder, address: str) -> None:
    with pytest.raises(ConfigurationError, match="needs its folder, as in 'jsonfiles:content'"):
        make(address, folder.path)


def test_a_folder_that_is_missing_is_a_mistake(folder: Folder) -> None:
    with pytest.raises(
        ConfigurationError, match=r"There is no folder '.*/missing'; check the name, or create it"
    ):
        make("jsonfiles:missing", folder.path)


def test_a_file_is_no_folder(folder: Folder) -> None:
    folder.put("pages.json", [])
    with pytest.raises(ConfigurationError, match=r"pages\.json' is a file; the content is in a"):
        make("jsonfiles:pages.json", folder.path)

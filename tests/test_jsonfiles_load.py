"""Loading replaces the files of a folder, or changes nothing."""

from __future__ import annotations

import itertools
import os
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from flask_contentapi import ConfigurationError, ContentError
from flask_contentapi_jsonfiles.reading import Reading, read_folder
from flask_contentapi_jsonfiles.store import Store
from tests.folders import Folder, write_tree
from tests.samples import blog, image, page
from tests.scarcity import full_disk, on_posix

OLD = {"pages": [page(1, title="Old")], "images": [image(1, title="Old")], "documents": []}
NEW = {"pages": [page(1, title="New")], "images": [], "documents": [image(1, title="New")]}
FILES = [
    f"{name}.json" for name in "collections documents images locales pages redirects sites".split()
]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "content")


@pytest.fixture
def old(folder: Folder) -> Folder:
    """A folder with old content, in every layout."""
    folder.put("pages/a.json", {**page(1, title="Old"), "slug": "p1"})
    folder.put("pages/_draft.json", {})
    folder.put("images/2026/deep/a.json", image(1, title="Old"))
    folder.put("images/2026/a.png", b"\x89PNG")
    return folder


def content_of(folder: Folder) -> dict[str, list[str]]:
    """The titles in a folder, as a new process reads them."""
    found = defaultdict(list)
    for section, record in folder.backend().dump():
        found[section].append(record["title"])
    return dict(found)


def titles(content: Mapping[str, Any]) -> dict[str, list[str]]:
    found = {
        section: [record["title"] for record in records] for section, records in content.items()
    }
    return {section: names for section, names in found.items() if names}


# What is written.


def test_each_section_becomes_a_file(folder: Folder) -> None:
    folder.path.mkdir()
    folder.backend().load(NEW)
    assert folder.names == FILES
    assert folder.json("images.json") == folder.json("sites.json") == []


def test_records_are_written_for_people(folder: Folder) -> None:
    folder.path.mkdir()
    folder.backend().load({"pages": [blog(1, tags=["é"], rating=4.5, featured=False, intro="")]})
    assert (
        (folder.path / "pages.json").read_text(encoding="utf-8")
        == """[
  {
    "id": 1,
    "type": "blog.BlogPage",
    "title": "Page 1",
    "slug": "p1",
    "rating": "4.50",
    "tags": [
      "é"
    ]
  }
]
"""
    )


def test_files_of_the_old_content_are_gone(old: Folder) -> None:
    old.backend().load(NEW)
    assert old.names == sorted(
        [*FILES, "images", "images/2026", "images/2026/a.png", "pages", "pages/_draft.json"]
    )


def test_bodies_of_the_old_content_are_gone(old: Folder) -> None:
    shutil.rmtree(old.path)
    old.put("pages/a/index.json", blog(1, slug="a"))
    old.put("pages/a/index.body.md", "Old")
    old.backend().load(NEW)
    assert old.names == FILES


def test_other_files_stay(old: Folder) -> None:
    for name in ("README.md", "media/lamp.json.png", ".git/config", "_drafts/pages.json"):
        old.put(name, "as it was")
    old.backend().load(NEW)
    assert (old.path / "README.md").read_text() == "as it was"
    assert (old.path / "_drafts/pages.json").read_text() == "as it was"


def test_links_are_replaced_and_not_what_they_lead_to(old: Folder) -> None:
    old.put(".data/images.json", [])
    old.put(".data/one.json", page(2))
    old.link("images.json", ".data/images.json")
    old.link("pages/b.json", "../.data/one.json")
    old.backend().load(NEW)
    assert not (old.path / "images.json").is_symlink()
    assert (old.path / ".data/one.json").exists()


# What is served.


def test_new_content_is_served_at_once(old: Folder) -> None:
    api, other = old.api(debug=True, interval=1e9), old.api()
    api.app.extensions["contentapi"]["contentapi"].backend.load(NEW)
    for found in (api, other):
        assert found.items("documents/")[0]["title"] == "New"
        assert found.total("images/") == 0


def test_files_that_are_put_back_after_a_load_are_served(old: Folder) -> None:
    api = old.api(debug=True, interval=0)
    backend = api.app.extensions["contentapi"]["contentapi"].backend
    backend.load(OLD)
    assert api.items("images/")[0]["title"] == "Old"
    texts = {name: (old.path / name).read_text() for name in FILES}
    backend.load(NEW)
    for name, text in texts.items():
        old.put(name, text)
    assert api.items("images/")[0]["title"] == "Old"


@pytest.mark.parametrize("broken", [{"pages": [page(1), page(1)]}, {"images": [{"id": 1}]}])
def test_content_that_is_broken_changes_nothing(old: Folder, broken: Mapping[str, Any]) -> None:
    names, found = old.names, old.backend()
    with pytest.raises(ContentError):
        found.load(broken)
    assert old.names == names
    assert content_of(old) == titles(OLD)


def dumped(found: Iterator[tuple[str, Any]]) -> dict[str, list[Any]]:
    content = defaultdict(list)
    for section, record in found:
        content[section].append(record)
    return dict(content)


def test_loading_what_was_dumped_loses_nothing(
    folder: Folder, reference_content: Mapping[str, Any]
) -> None:
    other = {
        "id": 7000,
        "type": "x.Y",
        "title": "X",
        "slug": "x",
        "extra": {"b": [1, 2.5], "a": None},
    }
    write_tree(folder, reference_content)
    folder.put("pages/x.json", other)
    found = folder.backend()
    content = dumped(found.dump())
    assert {**other, "locale": "en"} in content["pages"]
    found.load(content)
    again = folder.backend()
    assert list(again.dump()) == [(s, record) for s in content for record in content[s]]
    assert again.snapshot.version == found.snapshot.version


# Interruptions.


class Stopped(BaseException):
    """The process is stopped."""


#: The functions that change the folder.
CHANGES: list[tuple[Any, str]] = [
    (os, "rename"),
    (os, "replace"),
    (os, "unlink"),
    (os, "rmdir"),
    (os, "fsync"),
    (Store, "touch"),
]


#: The number of changes in a load, and the indexes of the one that commits it and of the last one
#: that matters.
STEPS, COMMIT, LAST = 27, 9, 23


def stop_at(step: int, monkeypatch: pytest.MonkeyPatch, error: Callable[[], BaseException]) -> None:
    """Makes a change of the folder fail, by its index, and all later ones."""
    steps = itertools.count()

    def counted(change: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            if next(steps) >= step:
                raise error()
            return change(*arguments, **options)

        return run

    for module, name in CHANGES:
        monkeypatch.setattr(module, name, counted(getattr(module, name)))


def failure_of(load: Callable[[], None]) -> BaseException | None:
    try:
        load()
    except (Stopped, ConfigurationError) as error:
        return error
    return None


@pytest.mark.slow
@pytest.mark.parametrize("error", [Stopped, lambda: OSError(28, "No space left on device")])
@pytest.mark.parametrize("step", range(STEPS))
def test_a_load_that_is_interrupted_leaves_the_old_content_or_the_new(
    old: Folder, step: int, error: Callable[[], BaseException]
) -> None:
    found = old.backend()
    with pytest.MonkeyPatch.context() as monkeypatch:
        stop_at(step, monkeypatch, error)
        failure = failure_of(lambda: found.load(NEW))
    if isinstance(failure, ConfigurationError):
        assert ("The new content is complete in .pending" in str(failure)) == (step > COMMIT)
    assert failure is not None or step > LAST
    assert content_of(old) == titles(OLD if step <= COMMIT else NEW)
    assert (old.path / "images/2026/a.png").exists()


def test_a_load_takes_no_more_steps_than_are_interrupted(old: Folder) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        stop_at(STEPS, monkeypatch, Stopped)
        old.backend().load(NEW)


def test_a_load_that_fails_leaves_nothing_beside(
    old: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, found = [path.name for path in old.path.iterdir()], old.backend()
    monkeypatch.setattr(os, "rename", lambda *paths: os.stat("/missing"))
    with pytest.raises(ConfigurationError, match="cannot be written: No such file"):
        found.load(NEW)
    assert sorted(path.name for path in old.path.iterdir()) == sorted(names)


def test_what_is_written_after_an_interruption_is_not_deleted(old: Folder) -> None:
    found = old.backend()
    with pytest.MonkeyPatch.context() as monkeypatch:
        stop_at(COMMIT + 13, monkeypatch, Stopped)
        with pytest.raises(Stopped):
            found.load(NEW)
    old.put("pages/a.json", page(5, title="Newer", slug="a"))
    assert content_of(old)["pages"] == ["New", "Newer"]


def test_new_content_that_lacks_the_list_of_old_files_is_put_into_place(old: Folder) -> None:
    old.put(".pending/images.json", [image(2, title="New")])
    assert content_of(old)["images"] == ["Old", "New"]
    assert not (old.path / ".pending").exists()


def test_a_load_finishes_another_one_first(old: Folder) -> None:
    found = old.backend()
    with pytest.MonkeyPatch.context() as monkeypatch:
        stop_at(COMMIT + 4, monkeypatch, Stopped)
        with pytest.raises(Stopped):
            found.load(NEW)
    found.load(OLD)
    assert content_of(old) == titles(OLD)
    assert old.names.count("pages/a.json") == 0


@pytest.mark.parametrize("debug", [True, False])
def test_an_interrupted_load_is_finished_at_the_next_request(old: Folder, debug: bool) -> None:
    old.age()
    api, found = old.api(debug=debug), old.backend()
    with pytest.MonkeyPatch.context() as monkeypatch:
        stop_at(COMMIT + 1, monkeypatch, Stopped)
        with pytest.raises(Stopped):
            found.load(NEW)
    assert api.items("documents/")[0]["title"] == "New"


def test_new_content_that_cannot_be_put_into_place_is_a_problem(old: Folder) -> None:
    found = old.backend()
    with pytest.MonkeyPatch.context() as monkeypatch:
        stop_at(COMMIT + 4, monkeypatch, Stopped)
        with pytest.raises(Stopped):
            found.load(NEW)
        with pytest.MonkeyPatch.context() as inner:
            stop_at(0, inner, lambda: OSError(30, "Read-only file system"))
            assert [str(problem) for problem in found.check()] == [
                ".pending: new content cannot be put into its place: Read-only file system"
            ]


# Several processes.


def test_a_reader_never_sees_half_of_a_load(old: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    loader = old.backend()

    def amid(listing: Any, *arguments: Any) -> Reading:
        """Reads half of the content before a load, and the rest after it."""
        monkeypatch.undo()
        listing.lists.clear()
        del listing.folders["images"]
        loader.load(NEW)
        return read_folder(listing, *arguments)

    monkeypatch.setattr("flask_contentapi_jsonfiles.backend.read_folder", amid)
    assert content_of(old) == titles(NEW)


def test_a_load_that_comes_in_between_is_kept_whole(
    old: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = old.backend(), old.backend()
    rename = os.rename

    def late(*paths: Any) -> None:
        """Commits while another load is committed but not finished."""
        monkeypatch.undo()
        with pytest.MonkeyPatch.context() as inner:
            stop_at(COMMIT + 1, inner, Stopped)
            with pytest.raises(Stopped):
                second.load(OLD)
        rename(*paths)

    monkeypatch.setattr(os, "rename", late)
    first.load(NEW)
    assert content_of(old) == titles(NEW)


def test_folders_of_killed_loads_go(old: Folder) -> None:
    killed, at_work = old.path / ".load-1", old.path / ".load-2"
    for left in (killed, at_work):
        left.mkdir()
        (left / "pages.json").write_text("[")
    os.utime(killed, (0, 0))
    old.backend().load(NEW)
    assert [*old.path.glob(".load-*")] == [at_work]


# Full disks.


@on_posix
def test_a_full_disk_changes_nothing(old: Folder) -> None:
    names, found = [path.name for path in old.path.iterdir()], old.backend()
    with (
        pytest.raises(ConfigurationError, match=r"cannot be written: File too large\.$"),
        full_disk(),
    ):
        found.load(NEW)
    assert sorted(path.name for path in old.path.iterdir()) == sorted(names)
    assert content_of(old) == titles(OLD)

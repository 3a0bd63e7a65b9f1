"""Changes on disk are served: at once in development, on demand in production, never if broken."""

from __future__ import annotations

import logging
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from flask_contentapi import ConfigurationError, ContentError, Reader
from flask_contentapi_jsonfiles import JSONFilesBackend, files, folder
from flask_contentapi_jsonfiles.files import File
from flask_contentapi_jsonfiles.reading import Reading, read_folder
from tests.api import API
from tests.folders import Folder
from tests.samples import image, page

BROKEN = '[\n{"id": 1,\n}]'
PROBLEM = "images.json, line 2: is not JSON: there is an extra comma before } (column 9)"


@pytest.fixture
def content(tmp_path: Path) -> Folder:
    """A folder with one image."""
    content = Folder(tmp_path / "content")
    content.put("images.json", [image(1, title="Old")])
    return content


def titles(api: API) -> list[str]:
    return [item["title"] for item in api.items("images/")]


def storage(api: API) -> JSONFilesBackend:
    found = api.app.extensions["contentapi"]["contentapi"].backend
    assert isinstance(found, JSONFilesBackend)
    return found


class Clock:
    """A clock that stands still unless it is set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


# In development.


def test_a_change_shows_at_the_next_request(content: Folder) -> None:
    api = content.api(debug=True)
    content.put("images.json", [image(1, title="New")])
    assert titles(api) == ["New"]


def test_files_that_come_and_go_show(content: Folder) -> None:
    api = content.api(debug=True)
    content.put("images/a.json", image(2))
    assert api.ids("images/") == [1, 2]
    content.remove("images.json")
    assert api.ids("images/") == [2]


def test_a_body_that_changes_shows(content: Folder) -> None:
    content.put("pages/a.json", {"id": 1, "type": "blog.BlogPage", "title": "A"})
    content.put("pages/a.body.md", "Old")
    api = content.api(debug=True)
    content.put("pages/a.body.md", "New")
    assert api.json("pages/1/")["body"] == "<p>New</p>"


def test_a_change_from_one_to_true_shows(content: Folder) -> None:
    content.put("pages.json", [page(1, body=[1])])
    api = content.api(debug=True)
    content.put("pages.json", [page(1, body=[True])])
    assert api.json("pages/1/")["body"] == [True]


def test_changes_show_in_files_that_are_old(content: Folder) -> None:
    content.age()
    api = content.api(debug=True)
    assert titles(api) == ["Old"]
    content.put("images.json", [image(1, title="New")])
    assert titles(api) == ["New"]


def test_changes_within_a_tick_of_the_clock_show(
    content: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "signature_of", lambda status: (0,))
    api = content.api(debug=True)
    content.put("images.json", [image(1, title="New")])
    assert titles(api) == ["New"]


def test_the_folder_is_looked_at_twice_a_second(content: Folder) -> None:
    clock = Clock()
    api = content.api(debug=True, interval=0.5, clock=clock)
    clock.now = 10.0
    assert titles(api) == ["Old"]
    content.put("images.json", [image(1, title="New")])
    clock.now = 10.4
    assert titles(api) == ["Old"]
    clock.now = 10.5
    assert titles(api) == ["New"]


def test_the_folder_stays_the_same_when_the_process_moves(
    content: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(content.path.parent)
    api = Folder(Path("content")).api(debug=True)
    monkeypatch.chdir("/")
    content.put("images.json", [image(1, title="New")])
    assert titles(api) == ["New"]


def test_half_a_second_is_what_is_waited(content: Folder) -> None:
    assert JSONFilesBackend(content.path)._interval == 0.5


def test_only_changed_files_are_read_again(
    content: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    content.put("images/a.json", image(2))
    content.age()
    api = content.api(debug=True)
    read: list[str] = []
    original = files.read_text

    def read_text(file: File) -> str:
        read.append(file.name)
        return original(file)

    monkeypatch.setattr("flask_contentapi_jsonfiles.files.read_text", read_text)
    assert (titles(api), read) == (["Old", "Image 2"], [])
    content.put("images/a.json", image(2, title="New"))
    assert titles(api) == ["Old", "New"]
    assert read == ["images/a.json"]


def test_a_folder_that_did_not_change_is_not_read(
    content: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    content.age()
    api = content.api(debug=True)
    monkeypatch.delattr("flask_contentapi_jsonfiles.backend.read_folder")
    assert titles(api) == ["Old"]


def test_unchanged_content_is_not_checked_again(
    content: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = content.api(debug=True)
    content.put("images.json", [image(1, title="Old")])
    monkeypatch.delattr("flask_contentapi_jsonfiles.reading.read_library")
    assert titles(api) == ["Old"]


def test_content_in_another_form_keeps_its_indexes(content: Folder) -> None:
    api = content.api(debug=True)
    before = storage(api).snapshot
    content.remove("images.json")
    content.put("images/a.json", image(1, title="Old"))
    assert titles(api) == ["Old"]
    assert storage(api).snapshot is before


def test_a_file_that_is_as_it_was_before_it_was_broken_is_served(content: Folder) -> None:
    api = content.api(debug=True)
    for value in (BROKEN, [image(1, title=3)], [image(1, title="Old")]):
        content.put("images.json", value)
        assert titles(api) == ["Old"]
    assert check(storage(api)) == []


def test_a_mistake_that_stays_is_a_problem_at_each_reload(content: Folder) -> None:
    found = content.backend()
    content.put("images.json", [image(1, title=3)])
    for _ in range(2):
        with pytest.raises(ContentError):
            found.reload()


def test_files_are_served_again_after_a_load_that_they_do_not_know(content: Folder) -> None:
    api = content.api(debug=True)
    storage(api).load({"images": [image(1, title="New")]})
    content.put("images.json", [image(1, title="Old")])
    for name in ("collections", "documents", "locales", "pages", "sites"):
        content.remove(f"{name}.json")
    assert titles(api) == ["Old"]


# In production.


def test_a_change_does_not_show_by_itself(content: Folder) -> None:
    api = content.api()
    content.put("images.json", [image(1, title="New")])
    assert titles(api) == ["Old"]


def test_a_reload_shows_in_every_process(content: Folder) -> None:
    api, other, third = content.api(), content.api(), content.backend()
    for title in ("New", "Newer"):
        content.put("images.json", [image(1, title=title)])
        third.reload()
        assert titles(api) == titles(other) == [title]


def test_a_reload_shows_in_its_own_process(content: Folder) -> None:
    api = content.api()
    content.put("images.json", [image(1, title="New")])
    storage(api).reload()
    assert titles(api) == ["New"]


def test_the_command_reloads(content: Folder) -> None:
    api, other = content.api(), content.api()
    content.put("images.json", [image(1, title="New")])
    result = other.app.test_cli_runner().invoke(args=["contentapi", "reload"])
    assert (result.exit_code, titles(api)) == (0, ["New"])


def test_a_reload_that_cannot_be_told_to_others_says_so(
    content: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = content.api()
    (content.path / ".reload").mkdir()
    with pytest.raises(ConfigurationError, match="cannot be written: Is a directory"):
        storage(api).reload()


# Broken files.


def test_a_broken_file_is_an_error_at_the_start(content: Folder) -> None:
    content.put("images.json", BROKEN)
    with pytest.raises(ContentError) as caught:
        content.api()
    assert str(caught.value) == PROBLEM


def test_in_development_the_last_good_state_is_served_on(content: Folder) -> None:
    api = content.api(debug=True)
    content.put("images.json", BROKEN)
    assert titles(api) == ["Old"]
    content.put("images.json", [image(1, title="New")])
    assert titles(api) == ["New"]


def test_in_production_the_last_good_state_is_served_on(content: Folder) -> None:
    api, other = content.api(), content.backend()
    content.put("images.json", [image(1, title="New")])
    other.reload()
    content.put("images.json", BROKEN)
    assert titles(api) == ["Old"]


def test_a_reload_of_a_broken_file_says_what_is_wrong(content: Folder) -> None:
    api, other = content.api(), content.api()
    content.put("images.json", BROKEN)
    with pytest.raises(ContentError) as caught:
        storage(api).reload()
    assert str(caught.value) == PROBLEM
    assert titles(api) == titles(other) == ["Old"]
    assert not (content.path / ".reload").exists()


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    caplog.clear()
    assert {record.name for record in caplog.records} <= {"flask_contentapi"}
    return found


def test_a_broken_state_is_logged_once(content: Folder, caplog: pytest.LogCaptureFixture) -> None:
    api = content.api(debug=True)
    content.put("images.json", BROKEN)
    assert titles(api) == titles(api) == ["Old"]
    assert logged(caplog) == [
        f"{content.path}: {PROBLEM}; the content read before is still served."
    ]


def test_every_problem_is_logged(content: Folder, caplog: pytest.LogCaptureFixture) -> None:
    api = content.api(debug=True)
    content.put("images.json", [image(1, width="a", height="b")])
    assert titles(api) == ["Old"]
    assert len(logged(caplog)) == 2


def test_what_is_broken_again_is_logged_again(
    content: Folder, caplog: pytest.LogCaptureFixture
) -> None:
    api = content.api(debug=True)
    for text in (BROKEN, "[]", BROKEN):
        content.put("images.json", text)
        titles(api)
    assert len(logged(caplog)) == 2


def test_a_folder_that_goes_away_is_served_on(
    content: Folder, caplog: pytest.LogCaptureFixture
) -> None:
    api = content.api(debug=True)
    shutil.rmtree(content.path)
    assert titles(api) == ["Old"]
    assert logged(caplog) == [
        f"{content.path}: {content.path}: cannot be read: No such file or directory;"
        " the content read before is still served."
    ]


# Checks.


def check(found: JSONFilesBackend) -> list[str]:
    return [str(problem) for problem in found.check()]


def test_a_check_finds_nothing_where_all_is_well(content: Folder) -> None:
    assert check(content.backend()) == []


def test_a_check_looks_at_the_files_as_they_are_now(content: Folder) -> None:
    found = content.backend()
    content.put("images.json", BROKEN)
    assert check(found) == [PROBLEM]


def test_a_check_names_files_of_what_is_hardly_meant(content: Folder) -> None:
    content.put(
        "pages/a.json",
        '{"id": 1, "title": "A",\n "type": "blog.BlogPage",\n "related_links": [\n'
        '  {"id": 1,\n   "link_page": 9}],\n "feed_image": 8}',
    )
    content.put("pages/b.json", '{"id": 2, "title": "B",\n "type": "x.Y"}')
    assert check(content.backend()) == [
        "pages/a.json, line 6: pages 1, feed_image: there is no object 8 in images",
        "pages/a.json, line 5: pages 1, related_links[0], link_page: there is no object 9 in pages",
        "pages/b.json, line 2: pages 2, type: 'x.Y' is not declared",
    ]


def test_a_check_names_what_is_served_besides(content: Folder) -> None:
    content.put("pages/b.json", '{"id": 2, "title": "B",\n "type": "x.Y"}')
    found = content.backend()
    content.remove("pages/b.json")
    content.put("images.json", BROKEN)
    assert check(found) == [PROBLEM, "pages 2, type: 'x.Y' is not declared"]


def test_a_check_changes_nothing(content: Folder) -> None:
    api = content.api()
    content.put("images.json", [image(1, title="New")])
    storage(api).check()
    assert titles(api) == ["Old"]


def test_the_command_checks(content: Folder) -> None:
    api = content.api()
    content.put("images.json", BROKEN)
    result = api.app.test_cli_runner().invoke(args=["contentapi", "check"])
    assert (result.exit_code, PROBLEM in result.output) == (1, True)


# Several threads.


class Slow:
    """Reads the folder, but waits for permission first."""

    def __init__(self) -> None:
        self.entered, self.go_on = threading.Semaphore(0), threading.Event()
        self.times = 0

    def read_folder(self, *arguments: Any) -> Reading:
        self.times += 1
        self.entered.release()
        assert self.go_on.wait(60)
        return read_folder(*arguments)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    slow = Slow()
    monkeypatch.setattr("flask_contentapi_jsonfiles.backend.read_folder", slow.read_folder)
    return slow


class CountingLock:
    """A lock that counts how often it has been requested."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.comers = threading.Semaphore(0)

    def __enter__(self) -> None:
        self.comers.release()
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()


def test_requests_do_not_wait_for_a_reload(content: Folder, slow: Slow) -> None:
    slow.go_on.set()
    api = content.api(debug=True)
    assert slow.entered.acquire(timeout=60)
    slow.go_on.clear()
    content.put("images.json", [image(1, title="New")])
    with ThreadPoolExecutor() as pool:
        first = pool.submit(titles, api)
        assert slow.entered.acquire(timeout=60)
        assert titles(api) == ["Old"]
        slow.go_on.set()
    assert first.result() == ["New"]


def test_two_threads_never_read_at_the_same_time(content: Folder, slow: Slow) -> None:
    slow.go_on.set()
    found, lock = content.backend(), CountingLock()
    found.changing = lock  # type: ignore[assignment]
    slow.go_on.clear()
    with ThreadPoolExecutor() as pool:
        waiting = [pool.submit(found.reload) for _ in range(3)]
        assert all(lock.comers.acquire(timeout=60) for _ in waiting)
        assert all(slow.entered.acquire(timeout=60) for _ in ("open", "reload"))
        assert slow.times == 2
        slow.go_on.set()
    assert slow.times == 4


def test_a_request_keeps_its_state_while_the_content_changes(content: Folder) -> None:
    found = content.backend()
    reader: Reader
    with found.reader() as reader:
        before = reader.version
        content.put("images.json", [image(1, title="New")])
        found.reload()
        assert reader.version == before
    with found.reader() as reader:
        assert reader.version != before

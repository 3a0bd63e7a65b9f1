"""The demo with its editor, in a browser: Chromium, driven by selenium."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from selenium.common import StaleElementReferenceException
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from tests.clones import copy_demo
from tests.databases import on_sqlite
from tests.servers import PATIENCE, free_port, start, stop
from tests.test_explorer_in_browser import make_browser, resize

pytestmark = [on_sqlite, pytest.mark.slow]

PASSWORD = "over the hedge"  # noqa: S105 - only of this test
TITLE = "A nest <b>box</b>"


class Desk:
    """The editor in the browser.

    :param browser: the browser.
    :param base: the address of the site, without a slash at its end.
    """

    def __init__(self, browser: Chrome, base: str) -> None:
        self.browser, self.base = browser, base

    def open(self, path: str) -> None:
        self.browser.get(self.base + path)

    def until(self, done: Callable[[], Any]) -> Any:
        wait = WebDriverWait(self.browser, PATIENCE, 0.05, [StaleElementReferenceException])
        return wait.until(lambda _: done())

    def all(self, css: str) -> list[WebElement]:
        return self.browser.find_elements(By.CSS_SELECTOR, css)

    def wait(self, css: str, text: str = "") -> WebElement:
        """The first element with a text, as soon as it is shown."""
        found: WebElement = self.until(
            lambda: next((e for e in self.all(css) if e.is_displayed() and text in e.text), None)
        )
        return found

    def click(self, css: str, text: str = "") -> None:
        element = self.wait(css, text)
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    def write(self, name: str, text: str) -> None:
        """Replaces the text of a field."""
        field = self.wait(f"[name='{name}']")
        field.clear()
        field.send_keys(text)

    def choose(self, name: str, words: str) -> None:
        """Searches an object for a relation, and takes the first one."""
        self.click(f"#s2id_{name} a")
        self.wait(".select2-drop-active input").send_keys(words)
        self.wait(".select2-drop-active .select2-result-selectable .select2-match")
        self.wait(".select2-drop-active input").send_keys(Keys.ENTER)

    def log_in(self) -> None:
        self.open("/admin/")
        self.write("password", PASSWORD)
        self.click("[type='submit']")
        self.wait(".model-list")

    def said_at(self, name: str) -> str:
        """The message at a field."""
        return self.wait(f".form-group:has([name='{name}']) .invalid-feedback").text

    def rows(self) -> list[str]:
        return [element.text for element in self.all(".col-title")]

    def status(self, path: str) -> int:
        """The status of an answer to a visitor."""
        try:
            with urlopen(self.base + path) as answer:  # noqa: S310 - the site itself
                return int(answer.status)
        except HTTPError as error:
            return error.code

    def asked(self, path: str) -> Any:
        """What the API answers a visitor."""
        with urlopen(f"{self.base}/api/v2/{path}") as answer:  # noqa: S310 - the site itself
            return json.load(answer)


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    found = make_browser("en")
    yield found
    found.quit()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the demo."""
    folder = tmp_path_factory.mktemp("clone")
    copy_demo(folder)
    port = free_port()
    more = {"FLASK_RUN_PORT": str(port), "FLASK_EDITOR_PASSWORD": PASSWORD}
    command = [sys.executable, "demo", "--edit"]
    server = start(command, port, cwd=folder, env={**os.environ, **more})
    yield f"http://127.0.0.1:{port}"
    stop(server)


@pytest.fixture
def desk(browser: Chrome, site: str) -> Desk:
    resize(browser, (1280, 900))
    browser.get(site)
    browser.delete_all_cookies()
    return Desk(browser, site)


def test_editor_has_to_log_in(desk: Desk) -> None:
    desk.open("/admin/pages/")
    desk.write("password", "wrong")
    desk.click("[type='submit']")
    assert desk.said_at("password") == "This is not the password."
    desk.open("/admin/images/")
    assert desk.wait("[name='password']")
    desk.log_in()
    desk.click(".nav-link", "Log out")
    assert desk.wait("[name='password']")


def test_page_is_added_previewed_published_and_moved(desk: Desk) -> None:
    desk.log_in()
    desk.click(".col-title a", "Windfall")
    desk.click(".col-title a", "Journal")
    desk.click(".nav-link", "Create")
    desk.click(".list-group-item", "ArticlePage")
    desk.write("title", TITLE)
    desk.write("slug", "nest/box")
    desk.write("intro", "It is for the owl.")
    desk.choose("feed_image", "owl")
    desk.choose("apple", "blenheim")
    desk.click("#authors-button")
    desk.write("authors-0-name", "Ines Marlow")
    desk.click("[value='Save']")
    assert desk.said_at("slug") == "must be one part of an address, without a slash"
    desk.write("slug", "nest-box")
    desk.click("[name='_continue_editing']")
    desk.wait(".badge", "draft")

    edited, path = desk.browser.current_url, "/journal/nest-box/"
    desk.browser.get(desk.wait("[title='Preview']").get_attribute("href") or "")
    assert desk.wait("h1").text == TITLE
    assert "owl" in (desk.wait("main img").get_attribute("alt") or "")
    assert desk.browser.current_url.startswith(f"{desk.base}{path}?preview=")
    assert desk.status(path) == 404

    desk.browser.get(edited)
    desk.click("[name='_publish']")
    desk.wait(".alert-success")
    assert desk.status(path) == 200
    query = "fields=_,title,feed_image(_,title),apple(_,name),authors(_,name)"
    (found,) = desk.asked(f"pages/?type=demo.ArticlePage&slug=nest-box&{query}")["items"]
    assert (found["title"], found["authors"]) == (TITLE, [{"name": "Ines Marlow"}])
    assert "owl" in found["feed_image"]["title"]
    assert found["apple"] == {"name": "Blenheim Orange"}

    desk.click(".breadcrumb-item a", "Pages")
    desk.click(".col-title a", "Windfall")
    desk.click(".col-title a", "Journal")
    desk.wait(".col-title", TITLE)
    place = desk.rows().index(TITLE)
    desk.click(f"[title='Move up {TITLE}']")
    desk.until(lambda: desk.rows()[place - 1 : place] == [TITLE])
    desk.click(f"[title='Move {TITLE}']")
    desk.choose("parent", "orchard")
    desk.click("[value='Save']")
    desk.until(lambda: TITLE in desk.rows())
    assert (desk.status(path), desk.status("/orchard/nest-box/")) == (404, 200)


def test_second_editor_is_told_and_decides(desk: Desk) -> None:
    desk.log_in()
    desk.open("/admin/pages/?search=visit")
    desk.click(".col-title a", "Visit")
    form = desk.browser.current_url
    first = desk.browser.current_window_handle
    desk.browser.switch_to.new_window("tab")
    desk.browser.get(form)
    desk.write("intro", "By bicycle.")
    desk.click("[value='Save']")
    desk.wait(".alert-success")
    desk.browser.close()
    desk.browser.switch_to.window(first)
    desk.write("intro", "By boat.")
    desk.click("[value='Save']")
    assert desk.said_at("intro") == "Now stored: By bicycle."
    assert desk.asked("pages/?slug=visit&fields=_,intro&type=demo.StandardPage")["items"] == [
        {"intro": "By bicycle."}
    ]
    desk.click("[value='Save']")
    desk.wait(".alert-success")
    assert desk.asked("pages/?slug=visit&fields=_,intro&type=demo.StandardPage")["items"] == [
        {"intro": "By boat."}
    ]


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_window(desk: Desk, width: int) -> None:
    resize(desk.browser, (width, 900))
    desk.log_in()
    paths = ["pages/?parent=1", "pages/edit/?id=1", "pages/new/", "pages/move/?id=2", "images/"]
    for path in paths:
        desk.open(f"/admin/{path}")
        wide = desk.browser.execute_script("return document.documentElement.scrollWidth")
        assert (path, wide <= width) == (path, True)

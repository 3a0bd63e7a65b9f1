"""The demo in narrow and wide windows: Chromium, driven by selenium."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium.webdriver import Chrome

from demo import create_app
from tests.servers import served
from tests.stores import on_memory
from tests.test_explorer_in_browser import make_browser, resize

pytestmark = [on_memory, pytest.mark.slow]

#: How wide windows are: those of small and of usual telephones, and of desks.
WIDTHS = (320, 390, 700, 1280)
PATHS = (
    *("/", "/de/", "/about-this-site/", "/de/ueber-diese-website/", "/journal/?page=2"),
    *("/search/?q=", "/de/search/?q=Kauz", "/nothing/", "/apple/egremont-russet/"),
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    found = make_browser("en")
    yield found
    found.quit()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    app = create_app({"TESTING": True, "CMSAPI_BACKEND": "jsonfiles:content"})
    with served(app) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(params=WIDTHS)
def width(browser: Chrome, request: pytest.FixtureRequest) -> int:
    width: int = request.param
    resize(browser, (width, 900))
    return width


def test_nothing_is_wider_than_the_window(browser: Chrome, address: str, width: int) -> None:
    for path in PATHS:
        browser.get(address + path)
        wide = browser.execute_script("return document.documentElement.scrollWidth")
        assert (path, wide <= width) == (path, True)


#: The width of the placeholder, and the room that there is for it.
PLACEHOLDER = """
const input = document.querySelector(".finder input"), style = getComputedStyle(input);
const context = document.createElement("canvas").getContext("2d");
context.font = style.font;
const padding = parseFloat(style.paddingLeft) + parseFloat(style.paddingRight);
return [context.measureText(input.placeholder).width, input.clientWidth - padding];
"""


@pytest.mark.parametrize("path", ["/", "/de/"])
def test_placeholders_are_shown_whole(browser: Chrome, address: str, width: int, path: str) -> None:
    browser.get(address + path)
    wanted, room = browser.execute_script(PLACEHOLDER)
    assert 0 < wanted <= room


#: How many lines of text the header has, and those of them that the menu has.
LINES = """
const lines = css => new Set([...document.querySelectorAll(css)].map(link => {
  const box = link.getBoundingClientRect();
  return Math.round((box.top + box.bottom) / 24);
})).size;
return [lines(".masthead a, .masthead input"), lines(".menu a")];
"""


@pytest.mark.parametrize("path", ["/", "/de/"])
def test_headers_have_few_lines(browser: Chrome, address: str, width: int, path: str) -> None:
    browser.get(address + path)
    lines, of_menu = browser.execute_script(LINES)
    assert lines == (1 if width == 1280 else of_menu + 1)
    assert of_menu <= (1 if width >= 700 else 2)


#: The links with underscores whose underline runs through these.
HIDDEN_UNDERSCORES = """
for (const details of document.querySelectorAll("details")) details.open = true;
const underlined = link => getComputedStyle(link).textDecorationLine.includes("underline");
const isBelow = link => {
  const style = getComputedStyle(link);
  return parseFloat(style.textUnderlineOffset) >= 0.3 * parseFloat(style.fontSize);
};
const links = [...document.querySelectorAll("main a, footer a")].filter(
  link => link.textContent.includes("_") && underlined(link));
return [links.length, links.filter(link => !isBelow(link)).map(link => link.textContent)];
"""


def test_underscores_are_not_hidden_by_underlines(
    browser: Chrome, address: str, width: int
) -> None:
    for path in PATHS:
        browser.get(address + path)
        number, hidden = browser.execute_script(HIDDEN_UNDERSCORES)
        assert number
        assert hidden == []

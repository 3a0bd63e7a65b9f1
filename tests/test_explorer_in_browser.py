"""The explorer in a browser: Chromium, driven by selenium."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Any
from urllib.parse import unquote

import pytest
from flask import Flask
from marshmallow import fields
from selenium.common import StaleElementReferenceException
from selenium.webdriver import Chrome, ChromeOptions, ChromeService
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait
from werkzeug.middleware.proxy_fix import ProxyFix

from demo import create_app
from flask_contentapi import ContentAPI, Document, Page, PageURLs, Related
from flask_contentapi.sites import Site
from flask_contentapi_memory import MemoryBackend
from tests.servers import PATIENCE, served
from tests.stores import leave_out, on_memory

pytestmark = [on_memory, pytest.mark.slow]

PREFIX = "/api/v2/explorer/"
ARTICLES = "#/pages/?type=demo.ArticlePage"
EVENTS = "#/pages/?type=demo.EventPage"
#: Two sizes of the window, of a desk and of a telephone.
DESK, TELEPHONE = (1280, 900), (390, 844)
#: A text that would run if it became HTML, and an address that would if it became a link.
HOSTILE, RUNS = "<img src=x onerror=document.title='run'>", "javascript:document.title='run'"


class Explorer:
    """The explorer in the browser.

    :param browser: the browser.
    :param base: the address of the explorer.
    """

    def __init__(self, browser: Chrome, base: str) -> None:
        self.browser, self.base = browser, base

    def open(self, hash: str = "") -> Explorer:
        """Opens the explorer anew, and waits for what it shows."""
        self.browser.get("about:blank")
        self.browser.get(self.base + hash)
        self.wait("main")
        return self.settle()

    def until(self, done: Callable[[], Any]) -> Any:
        """Waits until something is true, and returns it."""
        wait = WebDriverWait(self.browser, PATIENCE, 0.05, [StaleElementReferenceException])
        return wait.until(lambda _: done())

    def settle(self) -> Explorer:
        """Waits until all answers are there."""
        self.until(lambda: not self.all("[aria-busy]"))
        return self

    def all(self, css: str) -> list[WebElement]:
        return self.browser.find_elements(By.CSS_SELECTOR, css)

    def wait(self, css: str) -> WebElement:
        """The first element, as soon as it is there."""
        found: WebElement = self.until(lambda: next(iter(self.all(css)), None))
        return found

    def texts(self, css: str) -> list[str]:
        return [element.text for element in self.all(css)]

    def act(self, css: str, action: Callable[[WebElement], Any], text: str = "") -> Explorer:
        """Does something with the first element, which has some text, and waits for what it leads
        to."""

        def done() -> bool:
            for element in self.all(css):
                if text in ("", element.text):
                    self.script("arguments[0].scrollIntoView({block: 'center'})", element)
                    action(element)
                    return True
            return False

        self.until(done)
        return self.settle()

    def click(self, css: str) -> Explorer:
        return self.act(css, WebElement.click)

    def press(self, text: str, css: str = "button") -> Explorer:
        """Clicks on what has a text."""
        return self.act(css, WebElement.click, text)

    def choose(self, css: str, text: str) -> Explorer:
        return self.act(css, lambda found: Select(found).select_by_visible_text(text))

    def write(self, css: str, *keys: str) -> Explorer:
        """Replaces the text of an input."""
        return self.act(
            css, lambda found: found.send_keys(Keys.CONTROL, "a", Keys.NULL, Keys.DELETE, *keys)
        )

    def section(self, name: str) -> Explorer:
        """Opens a part of the builder."""
        if self.wait(f"#section-{name}").get_attribute("open") is None:
            self.click(f"#summary-{name}")
        return self

    @property
    def query(self) -> str:
        """The query in the address of the page."""
        return unquote(self.browser.current_url.partition("#")[2])

    def script(self, code: str, *given: Any) -> Any:
        return self.browser.execute_script(code, *given)


def make_browser(language: str) -> Chrome:
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        leave_out("chromium and chromium-driver are not installed")
    options = ChromeOptions()
    options.binary_location = program
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    options.add_experimental_option("prefs", {"intl.accept_languages": language})
    for name in ("headless=new", "disable-gpu", "disable-dev-shm-usage", f"lang={language}"):
        options.add_argument(f"--{name}")
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    return Chrome(options, ChromeService(driver))


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    found = make_browser("en")
    yield found
    found.quit()


def resize(browser: Chrome, size: tuple[int, int]) -> None:
    wanted = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", wanted)


def paint(browser: Chrome, scheme: str) -> None:
    wanted = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": wanted})


@pytest.fixture(autouse=True)
def quiet(browser: Chrome) -> Iterator[None]:
    """A wide window before each test, and nothing wrong in the browser's log after it."""
    resize(browser, DESK)
    yield
    said = [entry["message"] for entry in browser.get_log("browser")]  # type: ignore[no-untyped-call]
    assert [text for text in said if "Failed to load resource" not in text] == []


@pytest.fixture(scope="module")
def demo_address() -> Iterator[str]:
    config = {"CMSAPI_BACKEND": "jsonfiles:content", "CMSAPI_CACHE_TAG_HEADER": "Cache-Tag"}
    with served(create_app({"TESTING": True, **config})) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def demo(browser: Chrome, demo_address: str) -> Explorer:
    return Explorer(browser, demo_address + PREFIX)


class Wide(Page):
    """A page with a field of each kind."""

    app_label = "wide"
    link = fields.String()
    rating = fields.Float()
    price = fields.Decimal(places=2)
    at = fields.DateTime()
    near = fields.List(Related("pages"))
    api_fields = ["link", "rating", "price", "at", "near"]


class Paper(Document):
    app_label = "wide"


class Paths(PageURLs):
    """Addresses that are paths, on one of the sites."""

    def build(self, site: Site, locale: str | None, path: str) -> str | None:
        return path if site.hostname == "other.example" else super().build(site, locale, path)


def wide_site() -> Flask:
    """A site with fifty types, thousands of pages below one page, and two sites."""
    names = [f"field_{number}" for number in range(12)]
    body = {"app_label": "wide", "api_fields": names, **dict.fromkeys(names, fields.String())}
    types: list[Any] = [type(f"Type{number}", (Page,), body) for number in range(50)]
    pages: list[Page] = [Wide(id=1, parent=None, title="Home", slug="home", link=RUNS)]
    pages += [
        types[n % 50](id=n, parent=1, title=f"Page {n}", slug=f"p{n}") for n in range(2, 3000)
    ]
    pages += [Wide(id=5000, parent=None, title="Other", slug="other")]
    pages += [Wide(id=5001, parent=5000, title=HOSTILE, slug="hostile", near=[5000])]
    sites = [
        {"hostname": "127.0.0.1", "port": 1, "root_page": 1, "is_default": True},
        {"hostname": "other.example", "root_page": 5000, "site_name": "Elsewhere"},
    ]
    app = Flask("wide")
    app.config.update(CMSAPI_EXPLORER=True)
    content: dict[str, Any] = {"pages": pages, "sites": sites}
    backend = MemoryBackend(content)
    ContentAPI(app, types=[Wide, Paper, *types], backend=backend, page_urls=Paths())
    return app


@pytest.fixture(scope="module")
def wide_address() -> Iterator[str]:
    with served(wide_site()) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def wide(browser: Chrome, wide_address: str) -> Explorer:
    return Explorer(browser, wide_address + PREFIX)


# The content.


def test_index_leads_a_browser_here(browser: Chrome, demo_address: str) -> None:
    browser.get(f"{demo_address}/api/v2/")
    assert browser.current_url.startswith(demo_address + PREFIX)


def test_tree_opens_level_by_level(demo: Explorer) -> None:
    demo.open()
    demo.until(lambda: "The orchard" in demo.texts(".page a"))
    assert "An owl in row three" not in demo.texts(".page a")
    demo.click("[aria-label='Open Journal']")
    demo.until(lambda: "An owl in row three" in demo.texts(".page a"))
    assert demo.wait("[aria-label='Open Journal']").get_attribute("aria-expanded") == "true"


def test_each_language_has_its_tree(demo: Explorer) -> None:
    demo.open()
    assert demo.script("return [...document.querySelectorAll('h2')].map(h => h.textContent)") == [
        "en",
        "de",
    ]
    demo.choose("#pick-locale", "de")
    demo.until(lambda: demo.texts("h2") == ["DE"])
    assert demo.query == "browse/pages/?locale=de"


def test_long_levels_come_in_parts(wide: Explorer) -> None:
    wide.open()
    wide.until(lambda: len(wide.all(".below .page")) == 20)
    assert wide.wait(".more").text == "2978 more"
    wide.click(".more")
    wide.until(lambda: len(wide.all(".below .page")) == 40)
    assert wide.wait(".more").text == "2958 more"


def test_each_site_has_its_tree(wide: Explorer) -> None:
    wide.open().choose("#pick-site", "Elsewhere (other.example:80)")
    wide.until(lambda: wide.texts(".page a[href^='#']") == ["Other", HOSTILE])
    assert wide.texts(".page .where") == ["/", "/hostile/"]
    wide.press(HOSTILE, ".page a")
    wide.until(lambda: wide.query == "/pages/5001/?site=other.example:80")
    assert wide.settle().texts(".good") == ["200"]


def test_images_are_a_wall(demo: Explorer) -> None:
    demo.open("#browse/images/")
    assert len(demo.all(".wall li")) == 20
    assert (
        demo.texts(".wall .name")[1] == "A little owl in the hollow of an old apple tree, at night"
    )
    assert demo.texts(".wall small")[1] == "1200 × 800 · #2"
    first = "return document.querySelector('.wall img').naturalWidth"
    assert demo.until(lambda: demo.script(first)) == 400  # of the rendition


def test_walls_have_parts_and_a_search(demo: Explorer) -> None:
    demo.open("#browse/images/").press("Next ›", ".pager a")
    demo.until(lambda: demo.query == "browse/images/?offset=20")
    demo.settle().write("#look-for", "owl")
    demo.until(lambda: demo.query == "browse/images/?autocomplete=owl")
    demo.until(lambda: len(demo.all(".wall li")) == 1)


@pytest.mark.parametrize(("endpoint", "rows"), [("documents", 3), ("apples", 9), ("redirects", 2)])
def test_other_endpoints_are_tables(demo: Explorer, endpoint: str, rows: int) -> None:
    demo.open(f"#browse/{endpoint}/")
    assert len(demo.all("tbody tr")) == rows
    demo.click("td:nth-child(2) a")
    demo.until(lambda: demo.query.startswith(f"/{endpoint}/"))


# The builder.


def test_builder_names_fields_kinds_and_targets(demo: Explorer) -> None:
    demo.open(ARTICLES)
    told = ["id integer", "published_date date", "feed_image → images", "tags list: text"]
    assert {*told} <= {*demo.texts(".fields .tick")}


def test_clicks_write_the_address(demo: Explorer) -> None:
    demo.open("#/pages/").section("types").click("[id='type-demo.ArticlePage']")
    demo.click("[id='fields.intro']")
    demo.until(lambda: demo.query == "/pages/?type=demo.ArticlePage&fields=intro")
    demo.click("[id='fields.slug']").click("[id='fields.intro']")
    demo.until(lambda: demo.query == "/pages/?type=demo.ArticlePage&fields=-slug")
    assert "slug" not in demo.texts("thead th")


def test_fields_are_ticked_to_any_depth(demo: Explorer) -> None:
    demo.open(ARTICLES).click("[id='fields.apple-inside']")
    demo.click("[id='fields.apple.picture-inside']")
    demo.click("[id='fields.apple.picture.credit']").click("[id='fields.apple.slug']")
    demo.until(lambda: demo.query.endswith("&fields=apple(picture(-credit),-slug)"))
    assert demo.texts(".good") == ["200"]


def test_a_level_can_start_with_nothing(demo: Explorer) -> None:
    demo.open(f"{ARTICLES}&fields=intro").choose("#fields-base", "all fields")
    demo.until(lambda: demo.query.endswith("&fields=*"))
    demo.settle().choose("#fields-base", "the default fields")
    demo.until(lambda: demo.query == "/pages/?type=demo.ArticlePage")
    demo.settle().choose("#fields-base", "only what is ticked")
    demo.until(lambda: "fields=_,id,title,type" in demo.query)


@pytest.mark.parametrize(
    ("name", "value", "kind", "shown"),
    [
        ("day__gte", "2026-12-01", "date", "2026-12-01"),
        ("begins__lt", "18:30:00", "time", "18:30"),
        ("first_published_at__gt", "2026-01-15T08:00:00Z", "datetime-local", "2026-01-15T08:00"),
        ("id__lte", "20", "number", "20"),
        ("show_in_menus", "false", "checkbox", "on"),
        ("day__isnull", "true", "checkbox", "on"),
        ("place", "The barn", "text", "The barn"),
        ("day__lt", "soon", "text", "soon"),
    ],
)
def test_inputs_fit_the_kind(demo: Explorer, name: str, value: str, kind: str, shown: str) -> None:
    demo.open(f"{EVENTS}&{name}={value}")
    control = demo.wait(f"#value-{name}")
    assert control.get_attribute("type") == kind
    assert str(control.get_property("value")).startswith(shown)


def test_operators_fit_the_field(demo: Explorer) -> None:
    demo.open(f"{EVENTS}&day=2026-12-01&show_in_menus=true")
    operators = demo.script(
        "return [...arguments[0].options].map(o => o.value)", demo.wait("[id^=operator-day]")
    )
    ends = ["", "__in", "__not", "__lt", "__lte", "__gt", "__gte", "__isnull"]
    assert operators == [f"day{end}" for end in ends]
    assert len(Select(demo.wait("[id^=operator-show_in_menus]")).options) == 3


def test_a_filter_is_added_and_taken_away(demo: Explorer) -> None:
    demo.open(EVENTS).choose("#add-filter", "id").choose("[id^=operator-id]", "at least")
    demo.write("#value-id__gte", "30", Keys.TAB)
    demo.until(lambda: demo.query.endswith("&id__gte=30"))
    demo.settle().click("[aria-label='Remove id__gte']")
    demo.until(lambda: demo.query == "/pages/?type=demo.EventPage")


def test_a_boolean_is_ticked(demo: Explorer) -> None:
    demo.open("#/pages/").choose("#add-filter", "show_in_menus")
    demo.until(lambda: demo.query == "/pages/?show_in_menus=true")
    demo.settle().click("#value-show_in_menus")
    demo.until(lambda: demo.query == "/pages/?show_in_menus=false")


def test_a_relation_is_searched_by_title(demo: Explorer) -> None:
    demo.open(ARTICLES).choose("#add-filter", "feed_image")
    demo.write("#value-feed_image", "owl")
    demo.until(lambda: demo.texts(".found button") == [f"{OWL} #2"])
    demo.press(f"{OWL} #2", ".found button")
    demo.until(lambda: demo.query.endswith("&feed_image=2"))
    assert demo.wait(".picker .chip").text == f"{OWL} ×"


OWL = "A little owl in the hollow of an old apple tree, at night"


def test_several_targets_are_chosen(demo: Explorer) -> None:
    demo.open(f"{ARTICLES}&feed_image__in=2").write("#value-feed_image__in", "press")
    demo.until(lambda: any("#4" in text for text in demo.texts(".found button")))
    demo.all(".found button")[0].click()
    demo.until(lambda: demo.query.endswith("&feed_image__in=2,4"))


def test_order_search_and_limit(demo: Explorer) -> None:
    demo.open("#/apples/").section("order").choose("#add-order", "trees")
    demo.choose("#direction-trees", "descending")
    demo.section("search").write("#value-limit", "2", Keys.TAB)
    demo.write("#value-search", "apple", Keys.TAB)
    demo.until(lambda: demo.query == "/apples/?order=-trees&limit=2&search=apple")
    assert len(demo.settle().all("tbody tr")) <= 2


def test_a_place_is_searched_too(demo: Explorer) -> None:
    demo.open("#/pages/").section("places").write("#value-child_of", "journal")
    demo.until(lambda: demo.texts(".found button")[:1] == ["the home page"])
    demo.until(lambda: "Journal #6" in demo.texts(".found button"))
    demo.press("Journal #6", ".found button")
    demo.until(lambda: demo.query == "/pages/?child_of=6")


def test_builder_follows_the_address(demo: Explorer) -> None:
    demo.open("#/pages/")
    demo.write(
        "#address", "/apples/?fields=_,name,picture(_,width)&trees__gt=5&limit=3", Keys.ENTER
    )
    demo.until(lambda: demo.query.startswith("/apples/"))
    demo.settle()
    assert Select(demo.wait("#endpoint")).first_selected_option.text == "apples"
    assert demo.wait("#value-trees__gt").get_property("value") == "5"
    ticked = [box.get_attribute("id") for box in demo.all(".fields input:checked")]
    assert ticked == ["fields.name", "fields.picture", "fields.picture.width"]


def test_a_whole_address_can_be_pasted(demo: Explorer, demo_address: str) -> None:
    demo.open("#/pages/").write("#address", f"{demo_address}/api/v2/images/2/", Keys.ENTER)
    demo.until(lambda: demo.query == "/images/2/")
    assert demo.settle().wait(".large").get_property("naturalWidth") == 1200


@pytest.mark.parametrize(
    ("query", "name", "said"),
    [
        (f"{EVENTS}&day__gte=2026-13-01", "day__gte", "must be a date"),
        ("#/pages/?limit=99", "limit", "must be from 0 to 20"),
        ("#/pages/?fields=titel", "fields", "names what is not here"),
        ("#/pages/?order=titel", "order", "cannot be by"),
        ("#/pages/?order=html_url", "order", "; lists cannot be ordered by it"),
        ("#/pages/?child_of=9999", "child_of", "names a page that is not there"),
        ("#/pages/?colour=red&limit=3", "colour", "Unknown parameter: colour"),
        ("#/pages/?type=demo.Nothing", "type", "There is no type"),
        ("#/pages/?locale=xx", "locale", "There is no language"),
    ],
)
def test_errors_are_where_they_belong(demo: Explorer, query: str, name: str, said: str) -> None:
    demo.open(query)
    shown = demo.until(lambda: demo.all(".builder .problem"))
    assert [one.get_attribute("id") for one in shown] == [f"problem-{name}"]
    assert shown[0].is_displayed()
    assert said in shown[0].text
    assert said in demo.wait("#message").text
    described = demo.all(f"#value-{name}[aria-invalid]")
    assert [one.get_attribute("aria-describedby") for one in described] in ([], [f"problem-{name}"])


# The answer.


def test_facts_are_shown(demo: Explorer) -> None:
    demo.open("#/pages/7/?fields=_,title")
    facts = dict(zip(demo.texts("dt"), demo.texts("dd"), strict=True))
    assert facts["Status"] == "200"
    assert re.fullmatch(r"\d+ ms", facts["Time"])
    assert facts["Size"] == "31 B"
    assert re.fullmatch("[0-9a-f]{32}", facts["ETag"])
    assert facts["Cache tags"] == "content, pages-7"


def test_table_shows_pictures_and_leads_on(demo: Explorer) -> None:
    demo.open(f"{ARTICLES}&fields=_,title,feed_image&order=title&limit=2")
    assert demo.texts("thead th") == ["title ↑", "feed_image"]
    assert demo.until(lambda: demo.script("return document.querySelector('td img').naturalWidth"))
    link = demo.wait("td a")
    assert "#/images/" in (link.get_attribute("href") or "")


def test_columns_order_the_list(demo: Explorer) -> None:
    demo.open("#/apples/").click("#order-slug")
    demo.until(lambda: demo.query == "/apples/?order=slug")
    demo.settle().click("#order-slug")
    demo.until(lambda: demo.query == "/apples/?order=-slug")
    assert demo.wait("[aria-sort]").get_attribute("aria-sort") == "descending"


def test_json_folds_and_leads_on(demo: Explorer) -> None:
    demo.open("#/pages/7/").click("#shape-json")
    text = demo.wait(".json").text
    assert '"title": "An owl in row three"' in text
    demo.click(".json summary")
    assert '"title"' not in demo.wait(".json").text
    demo.click(".json summary")
    demo.click(".json a[href='#/images/2/']")
    demo.until(lambda: demo.query == "/images/2/")
    demo.settle().until(lambda: demo.all(".json .thumb"))


def test_next_and_previous(demo: Explorer) -> None:
    demo.open("#/apples/?limit=4").press("Next ›", ".pager a")
    demo.until(lambda: demo.query == "/apples/?limit=4&offset=4")
    assert "5 to 8 of 9" in demo.settle().wait(".pager").text
    demo.press("‹ Previous", ".pager a")
    demo.until(lambda: demo.query == "/apples/?limit=4&offset=0")


def test_facets_add_filters(demo: Explorer) -> None:
    demo.open(f"{ARTICLES}&facets=tags").press("wildlife 2", ".facet button")
    demo.until(lambda: demo.query.endswith("&facets=tags&tags=wildlife"))
    assert "1 to 2 of 2" in demo.settle().wait(".pager").text


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("Address", "{base}/apples/?limit=1&fields=_,name,known_since,picture(_,title)"),
        ("curl", "curl '{base}/apples/?limit=1&fields=_,name,known_since,picture(_,title)'"),
        ("fetch", 'await fetch(\n  "{base}/apples/?limit=1&fields=_,name,'),
        ("Python", '        "fields": "_,name,known_since,picture(_,title)",\n'),
        (
            "TypeScript type",
            "type Item = {{\n  name: string;\n  known_since: number | null;\n"
            "  picture: {{\n    title: string;\n  }} | null;\n}};\n",
        ),
    ],
)
def test_a_query_can_be_copied(demo: Explorer, demo_address: str, name: str, wanted: str) -> None:
    demo.open("#/apples/?limit=1&fields=_,name,known_since,picture(_,title)").press(name)
    copied = demo.wait(".copied").get_property("value")
    assert wanted.format(base=f"{demo_address}/api/v2") in str(copied)


def test_answers_are_told_to_screen_readers(demo: Explorer) -> None:
    demo.open("#/apples/?limit=4")
    told = demo.wait("[role=status]").get_property("textContent")
    assert told == "Answer: 200, 9 entries"


# The page.


def test_history_leads_back_and_forward(demo: Explorer) -> None:
    demo.open("#/pages/").choose("#endpoint", "apples").choose("#endpoint", "images")
    demo.browser.back()
    demo.until(lambda: Select(demo.wait("#endpoint")).first_selected_option.text == "apples")
    demo.browser.forward()
    demo.until(lambda: demo.query == "/images/")


def test_it_works_with_the_keyboard(demo: Explorer) -> None:
    demo.open(ARTICLES)
    demo.script("document.getElementById('fields.intro').focus()")
    demo.browser.switch_to.active_element.send_keys(Keys.SPACE)
    demo.until(lambda: demo.query.endswith("&fields=intro"))
    active = demo.settle().browser.switch_to.active_element
    assert active.get_attribute("id") == "fields.intro"
    active.send_keys(Keys.TAB)
    assert demo.browser.switch_to.active_element.get_attribute("id") == "fields.body"


def test_first_key_skips_to_the_content(demo: Explorer) -> None:
    demo.open("#/pages/")
    demo.script("document.activeElement.blur()")
    demo.wait("body").send_keys(Keys.TAB)
    demo.browser.switch_to.active_element.send_keys(Keys.ENTER)
    assert demo.browser.switch_to.active_element.get_attribute("id") == "main"


STATES = {
    "tree": "",
    "wall": "#browse/images/",
    "documents": "#browse/documents/",
    "builder": f"{ARTICLES}&fields=apple(picture(title)),feed_image&facets=tags&order=-title",
    "filters": f"{EVENTS}&day__gte=2026-12-01&picture=3&show_in_menus=true&programme__in=1,2",
    "error": "#/pages/?limit=99&child_of=9999&colour=red",
    "object": "#/pages/7/",
}
#: What is opened before a state is looked at.
OPEN_ALL = "document.querySelectorAll('.section').forEach((section) => { section.open = true; })"


@pytest.mark.parametrize("state", STATES)
def test_axe_finds_nothing(demo: Explorer, state: str) -> None:
    demo.open(STATES[state])
    demo.script(OPEN_ALL)
    if state == "object":
        demo.click("#shape-json")
    demo.script((files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8"))
    run = "const done = arguments[0]; axe.run().then((found) => done(found.violations))"
    found = demo.browser.execute_async_script(run)
    paint(demo.browser, "dark")
    found += demo.browser.execute_async_script(run)
    paint(demo.browser, "light")
    assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []


@pytest.mark.parametrize("state", STATES)
def test_a_telephone_needs_no_sideways_scrolling(demo: Explorer, state: str) -> None:
    resize(demo.browser, TELEPHONE)
    demo.open(STATES[state])
    demo.script(OPEN_ALL)
    assert demo.script("return document.documentElement.scrollWidth") <= TELEPHONE[0]


def test_it_is_dark_at_night(demo: Explorer) -> None:
    paint(demo.browser, "dark")
    demo.open()
    colour = demo.script("return getComputedStyle(document.body).backgroundColor")
    paint(demo.browser, "light")
    assert max(map(int, re.findall(r"\d+", colour))) < 64


def test_it_speaks_german_too(demo: Explorer) -> None:
    demo.open("#/pages/").choose("#language", "Deutsch")
    assert demo.wait("#send").text == "Senden"
    assert demo.script("return document.documentElement.lang") == "de"
    assert demo.open("#browse/images/").wait("h1").text == "Bilder"
    demo.choose("#language", "English")
    assert demo.wait("h1").text == "Images"


def test_it_speaks_the_language_of_the_browser(demo_address: str) -> None:
    german = make_browser("de-DE")
    try:
        assert Explorer(german, demo_address + PREFIX).open().wait("h1").text == "Seiten"
    finally:
        german.quit()


def test_it_works_behind_a_proxy(browser: Chrome) -> None:
    app = create_app({"TESTING": True, "CMSAPI_BACKEND": "jsonfiles:content"})
    inner = ProxyFix(app.wsgi_app, x_prefix=1)

    def proxy(environ: Any, start_response: Any) -> Any:
        environ["PATH_INFO"] = environ["PATH_INFO"].removeprefix("/cms")
        environ["HTTP_X_FORWARDED_PREFIX"] = "/cms"
        return inner(environ, start_response)

    app.wsgi_app = proxy  # type: ignore[method-assign]
    with served(app) as port:
        base = f"http://127.0.0.1:{port}/cms/api/v2"
        explorer = Explorer(browser, f"{base}/explorer/").open("#/apples/?limit=1")
        explorer.press("Address")
        assert explorer.wait(".copied").get_property("value") == f"{base}/apples/?limit=1"
        explorer.press("Next ›", ".pager a")
        explorer.until(lambda: explorer.query == "/apples/?limit=1&offset=1")


def test_answers_cannot_run_anything(wide: Explorer) -> None:
    for hash in (
        "#/pages/1/",
        "#/pages/5001/?site=other.example",
        "#browse/pages/?site=other.example",
    ):
        wide.open(hash)
        assert wide.all("img[src=x], a[href^=javascript]") == []
    wide.open("#/pages/1/").click("#shape-json")
    assert RUNS in wide.wait(".json").text
    assert wide.browser.title == "wide · API explorer"


def test_fifty_types_are_found_by_name(wide: Explorer) -> None:
    wide.open("#/pages/").section("types")
    assert len(wide.all("#section-types li")) == 51
    wide.write("#section-types .sieve", "type49")
    assert [one.text for one in wide.all("#section-types li") if one.is_displayed()] == [
        "wide.Type49"
    ]
    wide.click("[id='type-wide.Type49']")
    wide.until(lambda: wide.query == "/pages/?type=wide.Type49")
    assert "field_11" in wide.texts(".fields .tick span span") or wide.all("[id='fields.field_11']")


def test_relations_to_many_have_brackets(wide: Explorer) -> None:
    wide.open("#/pages/?type=wide.Wide&site=other.example").click("[id='fields.near-inside']")
    wide.click("[id='fields.near.slug']")
    wide.until(lambda: wide.query.endswith("&fields=near(slug)"))
    assert wide.settle().texts(".good") == ["200"]

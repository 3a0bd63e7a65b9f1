"""The demo, as visitors see it."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag, urljoin
from urllib.request import urlopen

import html5lib
import httpx
import pytest
from flask import Flask
from flask.testing import FlaskClient
from PIL import Image
from werkzeug.test import TestResponse

import demo
from demo import create_app, members
from demo.languages import LANGUAGES
from demo.models import TYPES
from flask_contentapi import Page
from flask_contentapi.errors import ConfigurationError
from flask_contentapi_memory import MemoryBackend
from tests.clones import copy_demo
from tests.servers import answers, free_port, start, stop

pytestmark = pytest.mark.slow

DEMO = Path(demo.__file__).parent
HOST = "http://localhost/"
LINKS = {"a": "href", "link": "href", "img": "src", "form": "action"}
OWL, OWL_IN_GERMAN = "/journal/an-owl-in-row-three/", "/de/tagebuch/ein-kauz-in-reihe-drei/"
MINUTES = "/media/documents/members/minutes-2026.pdf"


@pytest.fixture(scope="module")
def site() -> Flask:
    return create_app({"TESTING": True, "CMSAPI_BACKEND": "jsonfiles:content"})


@pytest.fixture
def visitor(site: Flask) -> FlaskClient:
    return site.test_client()


@pytest.fixture
def member(site: Flask) -> FlaskClient:
    client = site.test_client()
    log_in(client)
    return client


@pytest.fixture(scope="module", params=["visitor", "member"])
def crawled(site: Flask, request: pytest.FixtureRequest) -> Mapping[str, Answer]:
    """Every address that links lead to, with its answer, for a visitor and for a member."""
    client = site.test_client()
    if request.param == "member":
        log_in(client)
    found: dict[str, Answer] = {}
    waiting = [HOST, f"{HOST}de/"]
    while waiting:
        url = waiting.pop()
        if url.startswith(HOST) and url not in found:
            found[url] = Answer(client.get(url, follow_redirects=True, buffered=True))
            waiting += found[url].links(url)
    return found


class Answer:
    """The answer behind a link.

    :ivar tree: the HTML, or None.
    :ivar faults: the errors in the HTML.
    """

    def __init__(self, response: TestResponse) -> None:
        self.status = response.status
        self.tree: Any = None
        self.faults: list[Any] = []
        if response.mimetype == "text/html":
            parser = html5lib.HTMLParser(namespaceHTMLElements=False)
            self.tree = parser.parse(response.text)
            self.faults = parser.errors

    def links(self, url: str) -> Iterator[str]:
        """All links in it that are followed by GET."""
        for element in () if self.tree is None else self.tree.iter():
            target = element.get(LINKS.get(element.tag, ""))
            if target and element.get("method") != "post":
                yield urldefrag(urljoin(url, target)).url


def log_in(client: FlaskClient, **more: str) -> TestResponse:
    form = {"name": members.NAME, "password": members.PASSWORD, **more}
    return client.post("/login/", data=form)


def get(client: FlaskClient, path: str) -> str:
    return client.get(path, buffered=True).text


def everything(client: FlaskClient, endpoint: str, **parameters: Any) -> list[dict[str, Any]]:
    """All items of a list of the API."""
    found: list[dict[str, Any]] = []
    total = 1
    while len(found) < total:
        query = {"offset": len(found), **parameters}
        answer: Any = client.get(f"/api/v2/{endpoint}/", query_string=query).json
        total, found = answer["meta"]["total_count"], found + answer["items"]
    return found


def titles(response: TestResponse) -> list[str]:
    """The headings of a page, except for the first level."""
    elements = Answer(response).tree.iter()
    return ["".join(h.itertext()).strip() for h in elements if h.tag in ("h2", "h3")]


def records(section: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((DEMO / "content" / f"{section}.json").read_text())
    return found


# Links.


def test_no_link_is_dead(crawled: Mapping[str, Answer]) -> None:
    assert {
        url: answer.status for url, answer in crawled.items() if answer.status != "200 OK"
    } == {}


def test_links_lead_to_every_page(crawled: Mapping[str, Answer], visitor: FlaskClient) -> None:
    pages = {page["meta"]["html_url"] for page in everything(visitor, "pages")}
    assert pages <= crawled.keys()


def test_html_is_well_formed(crawled: Mapping[str, Answer]) -> None:
    assert {url: answer.faults for url, answer in crawled.items() if answer.faults} == {}


def pages_of(crawled: Mapping[str, Answer]) -> dict[str, Answer]:
    """The pages of the site itself, without the API's own page."""
    return {url: a for url, a in crawled.items() if a.tree is not None and "/api/" not in url}


def test_every_page_has_one_headline_and_its_language(crawled: Mapping[str, Answer]) -> None:
    for url, answer in pages_of(crawled).items():
        assert len(list(answer.tree.iter("h1"))) == len(list(answer.tree.iter("main"))) == 1
        assert answer.tree.get("lang") == ("de" if url.startswith(f"{HOST}de/") else "en")


def test_every_picture_has_a_text_and_its_size(crawled: Mapping[str, Answer]) -> None:
    trees = [answer.tree for answer in crawled.values() if answer.tree is not None]
    for image in (image for tree in trees for image in tree.iter("img")):
        assert {"alt", "width", "height"} <= set(image.keys())


def test_every_page_leads_to_the_json_that_it_is_made_from(visitor: FlaskClient) -> None:
    (link,) = re.findall(r'rel="alternate" type="application/json" href="(.+?)"', get(visitor, OWL))
    answer: Any = visitor.get(link).json
    assert answer["title"] == "An owl in row three"


def test_find_leads_from_each_html_url_to_its_page(member: FlaskClient) -> None:
    for page in everything(member, "pages"):
        path = page["meta"]["html_url"].removeprefix("http://localhost")
        found = member.get("/api/v2/pages/find/", query_string={"html_path": path})
        assert found.location == page["meta"]["detail_url"]


def test_addresses_follow_the_host_that_is_asked(visitor: FlaskClient) -> None:
    answer: Any = visitor.get("/api/v2/pages/101/", base_url="http://127.0.0.1:8080/").json
    assert answer["meta"]["html_url"] == "http://127.0.0.1:8080/de/"


def test_site_works_below_a_path(site: Flask) -> None:
    below = site.test_client().get(OWL, base_url="http://localhost/demo/")
    assert below.status_code == 200
    assert 'href="http://localhost/demo/journal/"' in below.text


def test_blocks_become_html(visitor: FlaskClient) -> None:
    tree = Answer(visitor.get("/orchard/")).tree
    for kind in ("h2", "ol/li/a", "dl/div/dt", "blockquote/footer", "figure/img", "p/a"):
        assert tree.find(f".//div[@class='prose']//{kind}") is not None, kind


# The content.


def test_content_has_no_problems(site: Flask) -> None:
    assert list(site.extensions["contentapi"]["contentapi"].backend.check()) == []


@pytest.mark.parametrize("record", records("images"), ids=lambda record: record["file"])
def test_pictures_are_as_large_as_their_records_say(record: dict[str, Any]) -> None:
    with Image.open(DEMO / "media" / record["file"]) as picture:
        assert picture.size == (record["width"], record["height"])


def test_every_file_has_its_record() -> None:
    named = {record["file"] for record in records("images") + records("documents")}
    media = DEMO / "media"
    assert named == {
        path.relative_to(media).as_posix() for path in media.rglob("*") if path.is_file()
    }


def test_register_has_all_the_trees_that_the_apples_count(visitor: FlaskClient) -> None:
    lines = get(visitor, "/media/documents/register-of-trees.csv").splitlines()[1:]
    for apple in everything(visitor, "apples", fields="trees"):
        assert sum(f",{apple['name']}," in line for line in lines) == apple["trees"]


def test_templates_say_nothing_that_has_no_translation() -> None:
    said = set()
    for template in (DEMO / "templates").rglob("*.html"):
        said.update(re.findall(r"""\b_\(["'](.+?)["']\)""", template.read_text()))
    assert said - {"cider", "cooking", "eating"} <= LANGUAGES["de"].words.keys()


@pytest.mark.parametrize(
    "path",
    ["/journal/the-hedge-we-are-going-to-plant/", "/events/pressing-day-2025/"],
    ids=["draft", "expired"],
)
def test_what_is_not_live_is_not_there(member: FlaskClient, path: str) -> None:
    assert member.get(path).status_code == 404


@pytest.mark.parametrize(
    ("path", "leads_to"),
    [
        ("/marmalade/", "http://localhost/journal/forty-jars/"),
        ("/varieties/?from=list", "/apples/"),
    ],
)
def test_former_address_leads_to_the_present_one(
    visitor: FlaskClient, path: str, leads_to: str
) -> None:
    answer = visitor.get(path)
    assert (answer.status_code, answer.headers["Location"]) == (301, leads_to)


def test_alias_leads_to_its_original(visitor: FlaskClient) -> None:
    answer = visitor.get("/directions/")
    assert (answer.status_code, answer.location) == (301, "http://localhost/visit/")


# Pictures.


def images_of(answer: TestResponse) -> Iterator[Mapping[str, str]]:
    """The attributes of the pictures that a page shows, each of them once."""
    tree = html5lib.parse(answer.text, namespaceHTMLElements=False)
    found = {each.get("srcset"): dict(each.attrib) for each in tree.iter("img")}
    found.pop(None, None)
    yield from found.values()


def fitting(image: Mapping[str, str]) -> str:
    """The address that a browser takes in a window of 1280 pixels."""
    rems = re.search(r"\(width >= 60rem\) (\d+)rem, 100vw$", image["sizes"])
    assert rems
    offered = [entry.split() for entry in image["srcset"].split(", ")]
    wide = [url for url, width in offered if int(width[:-1]) >= 16 * int(rems[1])]
    return wide[0] if wide else offered[-1][0]


def test_pages_weigh_a_third_of_the_pictures(visitor: FlaskClient) -> None:
    def size(url: str) -> int:
        return len(visitor.get(url, buffered=True).data)

    weight = before = 0
    for path in ("/", "/journal/", "/apples/", "/orchard/", OWL):
        page = visitor.get(path)
        weight, before = weight + len(page.data), before + len(page.data)
        for image in images_of(page):
            weight += size(fitting(image))
            address = fitting(image).partition("renditions/")[0]
            before += size(visitor.get(address).get_json()["meta"]["download_url"])
    assert weight < before / 3


def test_every_picture_has_its_own_size(visitor: FlaskClient) -> None:
    (image,) = images_of(visitor.get(OWL))
    for entry in image["srcset"].split(", "):
        url, width = entry.split()
        answer = visitor.get(url, buffered=True)
        assert answer.mimetype == "image/webp"
        assert Image.open(BytesIO(answer.data)).width == int(width[:-1])


# Members.


@pytest.mark.parametrize("path", ["/members/", "/members/rota/"])
def test_private_page_asks_for_login_and_then_shows_itself(visitor: FlaskClient, path: str) -> None:
    closed = visitor.get(path)
    assert closed.status_code == 404
    assert f'name="next" value="{path}"' in closed.text
    assert log_in(visitor, next=path).location == path
    assert visitor.get(path).status_code == 200


def test_private_page_and_no_page_look_the_same(visitor: FlaskClient) -> None:
    assert get(visitor, "/members/") == get(visitor, "/nothing/").replace("/nothing/", "/members/")


def test_private_document_is_for_members(visitor: FlaskClient, member: FlaskClient) -> None:
    assert [client.get(MINUTES, buffered=True).status_code for client in (visitor, member)] == [
        404,
        200,
    ]
    assert len(everything(member, "documents")) == len(everything(visitor, "documents")) + 1


@pytest.mark.parametrize("path", ["papers/../members", "MEMBERS"])
def test_private_document_has_no_back_door(visitor: FlaskClient, path: str) -> None:
    assert visitor.get(f"/media/documents/{path}/minutes-2026.pdf").status_code == 404


def test_menu_shows_members_their_page(visitor: FlaskClient, member: FlaskClient) -> None:
    link = '<a href="http://localhost/members/">Members</a>'
    assert link not in get(visitor, "/")
    assert link in get(member, "/")


def test_wrong_name_opens_nothing(visitor: FlaskClient) -> None:
    answer = log_in(visitor, name="bramley")
    assert "do not go together" in answer.text
    assert visitor.get("/members/").status_code == 404


def test_logout_closes_the_door(member: FlaskClient) -> None:
    member.post("/logout/")
    assert member.get("/members/").status_code == 404


@pytest.mark.parametrize("there", ["", "/", "//"])
def test_login_leads_home_from_nowhere(visitor: FlaskClient, there: str) -> None:
    assert log_in(visitor, next=there).location == "/"


@pytest.mark.parametrize("there", ["//evil.example", "https://evil.example", "/\\evil.example"])
def test_login_leads_to_no_other_site(visitor: FlaskClient, there: str) -> None:
    location = urljoin(HOST, log_in(visitor, next=there).location)
    assert location.startswith(HOST)


# Languages.


def test_switch_leads_to_the_translation(visitor: FlaskClient) -> None:
    link = f'<a href="http://localhost{OWL_IN_GERMAN}" hreflang="de" lang="de">'
    assert link in get(visitor, OWL)


def test_switch_leads_home_where_there_is_no_translation(visitor: FlaskClient) -> None:
    assert '<a href="/de/" hreflang="de" lang="de">' in get(visitor, "/journal/forty-jars/")


def test_switch_keeps_what_is_searched(visitor: FlaskClient) -> None:
    assert '<a href="/de/search/?q=Ada" hreflang="de"' in get(visitor, "/search/?q=Ada")


def test_pictures_and_apples_speak_the_language(visitor: FlaskClient) -> None:
    page = get(visitor, "/de/apple/egremont-russet/")
    assert "wie eine Kartoffel" in page
    assert 'alt="Egremont Russet, ganz und aufgeschnitten"' in page


def test_every_language_says_the_way_and_what_the_site_is(visitor: FlaskClient) -> None:
    footer = get(visitor, "/de/").partition("<footer")[2]
    assert re.findall('<a href="http://localhost(/de/.+?)">(.+?)<', footer) == [
        ("/de/anfahrt/", "Anfahrt"),
        ("/de/ueber-diese-website/", "Über diese Website"),
    ]
    assert 'href="http://localhost/about-this-site/"' in get(visitor, "/de/ueber-diese-website/")


def test_dates_speak_the_language(visitor: FlaskClient) -> None:
    assert "28 September 2026" in get(visitor, OWL)
    assert "2. Oktober 2026" in get(visitor, OWL_IN_GERMAN)


# Finding things.


def test_search_finds_pages_that_have_all_the_words(visitor: FlaskClient) -> None:
    assert titles(visitor.get("/search/?q=Blenheim coughing")) == ["An owl in row three"]


def test_search_finds_documents(visitor: FlaskClient) -> None:
    assert "Grafting on one page" in get(visitor, "/search/?q=grafting")


def test_search_finds_what_is_in_blocks(visitor: FlaskClient) -> None:
    assert "A hundred and fifteen years" in titles(visitor.get("/search/?q=piano"))


def test_search_keeps_to_the_language(visitor: FlaskClient) -> None:
    assert "Ein Kauz in Reihe drei" in titles(visitor.get("/de/search/?q=Kauz"))
    assert titles(visitor.get("/search/?q=Kauz")) == []


def test_search_has_further_pages(visitor: FlaskClient) -> None:
    first, second = (titles(visitor.get(f"/search/?q=the&page={n}")) for n in (1, 2))
    assert second
    assert not set(first[:6]) & set(second[:6])


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/search/?q=owl", "3 pages with owl"),
        ("/search/?q=piano", "1 page with piano"),
        ("/search/?q=+piano+", "1 page with piano"),
        ("/search/?q=shed+graft", "1 document with shed graft"),
        ("/search/?q=grafting", "2 pages and 1 document with grafting"),
        ("/search/?q=pineapple", "Nothing with pineapple"),
        ("/search/", "What are you looking for?"),
        ("/de/search/?q=Kauz", "3 Seiten mit Kauz"),
        ("/de/search/?q=Ananas", "Nichts mit Ananas"),
    ],
)
def test_search_says_what_it_found(visitor: FlaskClient, path: str, said: str) -> None:
    heading = Answer(visitor.get(path)).tree.find(".//main//h1")
    assert " ".join("".join(heading.itertext()).split()) == said


@pytest.mark.parametrize(
    "path", ["/journal/?page=99", "/journal/?page=99999999999999999999", "/search/?q=the&page=99"]
)
def test_beyond_the_end_of_a_list_there_is_nothing(visitor: FlaskClient, path: str) -> None:
    answer = visitor.get(path)
    assert answer.status_code == 404
    assert "<h1>Nothing grows here</h1>" in answer.text


def test_switch_begins_a_search_anew(visitor: FlaskClient) -> None:
    assert 'href="/de/search/?q=the" hreflang="de"' in get(visitor, "/search/?q=the&page=2")


@pytest.mark.parametrize("path", ["/search/", "/search/?q=pineapple", "/nothing/"])
def test_who_found_nothing_can_search_at_once(visitor: FlaskClient, path: str) -> None:
    form = Answer(visitor.get(path)).tree.find(".//main//form")
    assert form.get("action") == "/search/"
    assert form.find("input").get("name") == "q"


def test_search_shows_words_as_words(visitor: FlaskClient) -> None:
    assert "<script>" not in get(visitor, "/search/?q=<script>")


def test_tag_has_its_articles(visitor: FlaskClient) -> None:
    assert titles(visitor.get("/tag/cider/")) == ["Pressing day, in numbers"]


def test_apples_are_chosen_and_ordered(visitor: FlaskClient) -> None:
    apples = titles(visitor.get("/apples/?use=cider&order=name"))
    assert apples == ["Ashmead’s Kernel", "Gravenstein", "The Windfall"]


def test_apple_leads_to_the_article_about_it(visitor: FlaskClient) -> None:
    assert "The apple that nobody planted" in titles(visitor.get("/apple/windfall/"))


def test_journal_begins_with_the_latest(visitor: FlaskClient) -> None:
    assert titles(visitor.get("/journal/"))[0] == "Pressing day, in numbers"


# Errors.


@pytest.mark.parametrize("path", ["/apple/pear/", "/media/none.jpg", "/de/nichts/"])
def test_missing_things_have_a_page_that_says_so(visitor: FlaskClient, path: str) -> None:
    answer = visitor.get(path)
    assert answer.status_code == 404
    assert Answer(answer).tree.find(".//form[@method='post']") is not None


@pytest.mark.parametrize(
    "path", ["/apples/?order=taste)", "/search/?q=a&page=0", "/journal/?page=abc"]
)
def test_what_the_api_refuses_is_explained(visitor: FlaskClient, path: str) -> None:
    answer = visitor.get(path)
    assert answer.status_code == 400
    assert "order" in answer.text or "offset" in answer.text


def test_errors_keep_their_headers(visitor: FlaskClient) -> None:
    answer = visitor.post("/search/")
    assert answer.status_code == 405
    assert answer.headers["Allow"]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/", "The content cannot be read now; try again later."),
        ("/de/", "Die Inhalte sind gerade nicht zu lesen."),
        ("/media/none.jpg", "Nothing grows here"),
    ],
)
def test_there_is_a_page_while_there_is_no_content(tmp_path: Path, path: str, said: str) -> None:
    site = create_app({"CMSAPI_BACKEND": f"sqlite:///{tmp_path}/gone.db"})
    answer = site.test_client().get(path)
    assert answer.status_code == (404 if path.startswith("/media") else 503)
    assert said in answer.text
    assert Answer(answer).faults == []


def test_mistakes_in_the_site_have_a_page() -> None:
    site = create_app({"CMSAPI_BACKEND": "jsonfiles:content"})
    site.view_functions["en.search"] = lambda: str(1 / 0)
    answer = site.test_client().get("/search/")
    assert answer.status_code == 500
    assert "<h1>Internal Server Error</h1>" in answer.text


# What the site says about itself.


ABOUT = ["/about-this-site/", "/de/ueber-diese-website/"]


def about(client: FlaskClient, path: str) -> dict[str, Any]:
    """The answer of the API that a page about the site is made from."""
    query = {"html_path": path}
    found: Any = client.get("/api/v2/pages/find/", query_string=query, follow_redirects=True).json
    return dict(found)


def asked(client: FlaskClient, path: str) -> Any:
    return client.get(path, follow_redirects=True).json


@pytest.mark.parametrize("path", ABOUT)
def test_files_that_the_site_names_are_there(visitor: FlaskClient, path: str) -> None:
    named = re.findall(r"<code>(demo/.+?)</code>", get(visitor, path))
    assert len(named) == 2
    assert [name for name in named if not (DEMO.parent / name).exists()] == []
    assert "class ArticlePage" in (DEMO.parent / named[0]).read_text()


@pytest.mark.parametrize("path", ABOUT)
def test_requests_that_the_site_names_show_what_it_says(visitor: FlaskClient, path: str) -> None:
    body = about(visitor, path)["body"]
    calls = next(block["value"] for block in body if block["type"] == "requests")
    answers = {call["path"].partition("/v2/")[2]: asked(visitor, call["path"]) for call in calls}
    found = iter(answers.values())
    language = path == ABOUT[1]
    every = next(found)
    assert language or (len(every["items"]), every["meta"]["total_count"] > 20) == (20, True)
    articles = next(found)["items"]
    days = [asked(visitor, f"/api/v2/pages/{item['id']}/")["published_date"] for item in articles]
    assert days == sorted(days, reverse=True)
    assert all(item["feed_image"] for item in articles)
    if not language:
        assert all("how-to" in item["tags"] for item in next(found)["items"])
    searched = [item["title"] for item in next(found)["items"]]
    assert searched[0] in ("An owl in row three", "Ein Kauz in Reihe drei")
    menu = Answer(visitor.get("/de/" if language else "/")).tree.findall(".//nav[@class='menu']/a")
    assert [item["title"] for item in next(found)["items"]] == [link.text for link in menu]
    (translation,) = next(found)["items"]
    assert translation["meta"]["locale"] == ("en" if language else "de")
    assert next(found)["title"] in ("Apple Day", "Apfeltag")
    apples = next(found)["items"]
    assert [item["trees"] for item in apples] == sorted(
        (item["trees"] for item in apples), reverse=True
    )
    assert apples
    assert all("cooking" in item["uses"] for item in apples)
    if not language:
        assert all("winter" in item["meta"]["tags"] for item in next(found)["items"])
        assert next(found)["items"]


def test_what_the_site_says_is_hidden_is(visitor: FlaskClient, member: FlaskClient) -> None:
    pages = [json.loads(path.read_text()) for path in (DEMO / "content/pages").rglob("*.json")]
    assert sum(page.get("live") is False for page in pages) == 1
    assert sum("expires_at" in page for page in pages) == 1
    for_members = len(everything(member, "pages")) - len(everything(visitor, "pages"))
    assert for_members == 2


def test_every_page_lists_its_requests(crawled: Mapping[str, Answer]) -> None:
    for url, answer in pages_of(crawled).items():
        assert answer.tree.find(".//footer//details//a") is not None
        links = answer.tree.findall(".//footer//a[@type='application/json']")
        assert len(links) == (not url.endswith("/login/"))


def test_numbers_of_the_home_page_are_true(visitor: FlaskClient) -> None:
    apples = everything(visitor, "apples", fields="trees")
    figures = asked(visitor, "/api/v2/pages/1/")["figures"]
    numbers = {figure["label"]: figure["number"] for figure in figures}
    assert numbers["trees"] == str(sum(apple["trees"] for apple in apples))
    assert numbers["kinds of apple"] == str(len(apples))


def test_an_edit_shows_where_the_site_says_so(visitor: FlaskClient, tmp_path: Path) -> None:
    (said,) = {
        command
        for path in ABOUT
        for command in re.findall("<code>([^<]*python3[^<]*)</code>", get(visitor, path))
    }
    variable, program, *arguments = said.split()
    assert (program, arguments[0]) == ("python3", "demo")
    copy_demo(tmp_path)
    port = free_port()
    name, value = variable.split("=")
    environment = {**os.environ, name: value, "FLASK_RUN_PORT": str(port)}
    server = start([sys.executable, *arguments], port, cwd=tmp_path, env=environment)
    try:
        file = tmp_path / "demo/content/pages/10_en/50_visit.json"
        file.write_text(file.read_text().replace('"title": "Visit"', '"title": "Come here"'))
        with urlopen(f"http://127.0.0.1:{port}/visit/") as answer:
            assert "<h1>Come here</h1>" in answer.read().decode()
    finally:
        stop(server)


# Starting the demo.


@pytest.mark.parametrize(
    ("name", "wrong", "right"),
    [
        *(
            ("FLASK_RUN_PORT", wrong, "a number from 1 to 65535")
            for wrong in ("abc", "", "0", "-1", "70000", "5000.0")
        ),
        *(
            ("FLASK_RUN_HOST", wrong, "an IPv4 address")
            for wrong in ("203.0.113.7", "no.invalid", "", "::1", "a" * 70)
        ),
        *(("FLASK_DEBUG", wrong, "true or false") for wrong in ("no", "True")),
    ],
)
def test_wrong_variables_end_in_a_sentence(name: str, wrong: str, right: str) -> None:
    done = subprocess.run(
        [sys.executable, "demo"],
        cwd=DEMO.parent,
        env={**os.environ, name: wrong},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert re.fullmatch(f"{name} is '{wrong}'; it must be {right}.*\\.\n", done.stderr)


@pytest.mark.parametrize(
    ("name", "wrong", "said"),
    [
        ("SECRET_KEY", "5", r"is 5; it must be a text\."),
        ("SECRET_KEY", "", r"is ''; it must be a text\."),
        ("CMSAPI_URL_PREFIX", "/", "is '/'; the pages of the demo need \"/api/v2\""),
        ("CMSAPI_SEARCH_ENABLED", "false", "is False; the pages of the demo need true"),
        ("CMSAPI_RENDITIONS", "{}", r"is {}; the pages of the demo need {\"small\": "),
        ("CMS_I18N_ENABLED", "no", "is 'no'; the pages of the demo need true"),
        ("CMSAPI_LIMIT_MAX", "few", "in environment variables write 100 or null"),
    ],
)
def test_wrong_settings_end_in_a_sentence(
    name: str, wrong: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"FLASK_{name}", wrong)
    with pytest.raises(ConfigurationError, match=f"^{name} .*{said}"):
        create_app({"CMSAPI_BACKEND": "jsonfiles:content"})


def test_settings_of_flask_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"SERVER_NAME": "5", "MAX_CONTENT_LENGTH": "x"}.items():
        monkeypatch.setenv(f"FLASK_{name}", value)
    site = create_app({"CMSAPI_BACKEND": "jsonfiles:content"})
    assert log_in(site.test_client()).status_code == 302


@pytest.mark.parametrize("password", ["", "1e5", "null"])
def test_the_password_that_is_told_opens_the_editor(tmp_path: Path, password: str) -> None:
    copy_demo(tmp_path)
    port, pipe = free_port(), subprocess.PIPE
    environment = {
        **os.environ,
        "FLASK_RUN_PORT": str(port),
        "FLASK_EDITOR_PASSWORD": password,
    }
    command = [sys.executable, "demo", "--edit"]
    with (
        subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=pipe, stderr=pipe, text=True
        ) as process,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", follow_redirects=True) as client,
    ):
        try:
            assert process.stdout is not None
            lines = iter(process.stdout)
            told = next(line.split()[-1] for line in lines if "with the password" in line)
            (token,) = re.findall('csrf_token"[^>]*value="(.*?)"', client.get("/admin/").text)
            form = {"csrf_token": token, "password": told}
            assert client.post("/admin/", data=form).url.path == "/admin/pages/"
        finally:
            process.terminate()
    assert told == (password or told)


def test_help_is_there_at_once(tmp_path: Path) -> None:
    shutil.copytree(DEMO, tmp_path / "demo")
    shown = subprocess.check_output([sys.executable, "demo", "--help"], cwd=tmp_path, text=True)
    assert shown.startswith("usage: [FLASK_RUN_PORT=5000] python3 demo [--edit] [BACKEND]\n")
    assert [path.name for path in tmp_path.iterdir()] == ["demo"]


def test_server_ends_with_what_started_it(tmp_path: Path) -> None:
    copy_demo(tmp_path)
    port = free_port()
    environment = {**os.environ, "FLASK_RUN_PORT": str(port)}
    stop(start([sys.executable, "demo"], port, cwd=tmp_path, env=environment))
    assert not answers(port)


def test_the_address_is_told_when_it_answers(tmp_path: Path) -> None:
    copy_demo(tmp_path)
    port = free_port()
    environment = {**os.environ, "FLASK_RUN_PORT": str(port)}
    command = [sys.executable, "demo"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=pipe, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        told = next(line for line in process.stdout if "The demo is at" in line)
        is_there = answers(port)
        process.terminate()
    assert f"http://127.0.0.1:{port}/" in told
    assert is_there


def test_demo_is_made_fit_by_the_command_that_it_names(tmp_path: Path) -> None:
    copy_demo(tmp_path)
    flask = [sys.executable, "-m", "flask", "--app", "demo", "contentapi"]
    (tmp_path / "demo" / "instance").mkdir()
    subprocess.check_call([*flask, "init-db"], cwd=tmp_path)
    types = tmp_path / "demo" / "models.py"
    types.write_text(
        f"{types.read_text()}class NewPage(Page): text = fields.String()\nTYPES.append(NewPage)\n"
    )
    done = subprocess.run(
        [sys.executable, "demo"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    named = re.search(r"with the command: (.+ contentapi migrate)\.", done.stderr)
    assert named is not None, done.stderr
    shown = subprocess.check_output(shlex.split(named[1]), cwd=tmp_path, text=True)
    assert shown == "demo.NewPage is new.\n"


# Types without a template.


class NewPage(Page):
    app_label = "demo"


@pytest.mark.parametrize("types", [[], [NewPage]])
def test_types_without_a_template_are_shown_plainly(
    types: list[type[Page]], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = {"id": 1, "type": "demo.HomePage", "title": "Home", "slug": "en", "locale": "en"}
    new = {"id": 2, "type": "demo.NewPage", "title": "New here", "slug": "new", "parent": 1}
    site = {"hostname": "localhost", "root_page": 1, "is_default": True}
    content: dict[str, list[Any]] = {"sites": [site], "locales": ["en", "de"], "pages": [home, new]}
    monkeypatch.setattr("demo.TYPES", [*TYPES, *types])
    app = create_app({"TESTING": True, "CMSAPI_BACKEND": MemoryBackend(content)})
    assert "<h1>New here</h1>" in app.test_client().get("/new/").text


@pytest.mark.parametrize("page_type", [known for known in TYPES if issubclass(known, Page)])
def test_a_page_with_only_a_title_is_shown(page_type: type[Page]) -> None:
    label = page_type.type_label()
    home = {"id": 1, "type": "demo.HomePage", "title": "Home", "slug": "en", "locale": "en"}
    new = {"id": 2, "type": label, "title": "New here", "slug": "new", "parent": 1, "locale": "en"}
    site = {"hostname": "localhost", "root_page": 1, "is_default": True}
    content: dict[str, list[Any]] = {"sites": [site], "locales": ["en", "de"], "pages": [home, new]}
    app = create_app({"TESTING": True, "CMSAPI_BACKEND": MemoryBackend(content)})
    assert "New here" in app.test_client().get("/new/").text
    for path in ("/", "/search/?q=new", "/journal/", "/events/"):
        assert app.test_client().get(path).status_code in (200, 404)


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("http://localhost:5173", "http://localhost:5173"),
        ("http://127.0.0.1:3000", "http://127.0.0.1:3000"),
        ("http://localhost.example:80", None),
        ("https://elsewhere.example", None),
    ],
)
def test_front_ends_on_other_ports_read(
    visitor: FlaskClient, origin: str, allowed: str | None
) -> None:
    answer = visitor.get("/api/v2/pages/?limit=1", headers={"Origin": origin})
    assert answer.headers.get("Access-Control-Allow-Origin") == allowed
    assert "Access-Control-Allow-Origin" not in visitor.get("/", headers={"Origin": origin}).headers


def test_the_editor_needs_its_password() -> None:
    settings = {"TESTING": True, "CMSAPI_BACKEND": MemoryBackend()}
    assert create_app(settings).test_client().get("/admin/").status_code == 404
    settings |= {"CMSAPI_BACKEND": MemoryBackend(), "EDITOR_PASSWORD": "secret"}
    with pytest.raises(ConfigurationError, match="needs a SECRET_KEY of its own"):
        create_app(settings)
    app = create_app({**settings, "SECRET_KEY": "of its own"})
    client = app.test_client()
    token = {
        "csrf_token": re.findall('csrf_token"[^>]*value="(.*?)"', client.get("/admin/").text)[0]
    }
    for wrong in ({}, {"password": ""}, {"password": "other"}):
        assert client.post("/admin/", data={**token, **wrong}).status_code == 200
    for rule in app.url_map.iter_rules():
        if rule.endpoint.startswith("edit_") and "GET" in (rule.methods or ()):
            answer = client.get(rule.rule.replace("<export_type>", "csv"))
            assert answer.location == "/admin/", rule.rule


def test_the_editor_is_for_this_machine_alone() -> None:
    done = subprocess.run(
        [sys.executable, "demo", "--edit"],
        cwd=DEMO.parent,
        env={**os.environ, "FLASK_RUN_HOST": "0.0.0.0"},  # noqa: S104 - to be refused
        capture_output=True,
        text=True,
        check=False,
    )
    assert "The editor is for this machine alone" in done.stderr


def test_the_editor_asks_for_a_database() -> None:
    done = subprocess.run(
        [sys.executable, "demo", "--edit", "jsonfiles:content"],
        cwd=DEMO.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == (
        "The editor needs a database, and jsonfiles:content is none. Type python3 demo --edit: "
        "it edits a copy of the content in an SQLite file.\n"
    )


def test_lists_begin_in_english(visitor: FlaskClient) -> None:
    assert everything(visitor, "pages")[0]["meta"]["html_url"] == "http://localhost/"

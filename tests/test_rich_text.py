"""Rich text in each format, and what it points to."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import unquote

import html5lib
import pytest
from markdown_it import MarkdownIt
from marshmallow import fields

from flask_contentapi import (
    APIField,
    Blocks,
    ChildObject,
    Children,
    ConfigurationError,
    Image,
    Page,
    Related,
    RichText,
    content_changed,
)
from flask_contentapi.commonmark import commonmark
from flask_contentapi.markup import FORMATS, convert, installed_packages
from flask_contentapi.signals import EVERYTHING
from tests.api import API
from tests.conftest import MakeAPI
from tests.edits import NOW, Clock
from tests.stores import on_two

pytestmark = on_two

#: The formats in which targets are looked up.
RESOLVED = ("html", "markdown", "db_markdown")
LOGIN = {"type": "login"}
SITE = {"hostname": "localhost", "root_page": 1, "is_default": True}
#: What must never leave: what belongs to hidden targets.
CANARIES = ("canary", "987654")


class Remark(ChildObject):
    app_label = "rich"
    text = RichText()
    api_fields = ["text"]


class Story(Page):
    app_label = "rich"
    text = RichText()
    plain = fields.String()
    remarks = Children(Remark)
    body = Blocks({"text": RichText(), "story": Related("pages")})
    other = Related("pages")
    api_fields = [
        "text",
        APIField("written", RichText(), source="plain"),
        "remarks",
        "body",
        "other",
    ]
    nested_default_fields = [*Page.nested_default_fields]


class Picture(Image):
    app_label = "rich"
    caption = RichText()
    api_fields = ["caption"]


def story(id: int, text: str = "", **more: Any) -> dict[str, Any]:
    parent = None if id == 1 else 1
    record = {"id": id, "type": "rich.Story", "parent": parent, "title": f"T{id}", "text": text}
    return {**record, "slug": f"s{id}", **more}


TARGETS = {
    "sites": [SITE],
    "collections": [{"id": 1, "restriction": LOGIN}],
    "pages": [
        story(1),
        story(3, slug="a b"),
        story(987654, title="canary", slug="canary", live=False),
        story(987655, title="canary", slug="canary2", restriction=LOGIN),
    ],
    "images": [
        {"id": 1, "title": "Boat", "file": "a b.png", "width": 800, "height": 600},
        {"id": 2, "title": "Boat", "file": "b.png"},
        {"id": 4, "title": "Without a file"},
        {"id": 987654, "title": "canary", "file": "canary.png", "collection": 1},
    ],
    "documents": [
        {"id": 1, "title": "Map", "file": "map.pdf"},
        {"id": 987654, "title": "canary", "file": "canary.pdf", "collection": 1},
    ],
}


@pytest.fixture(scope="module")
def empty(make_api: MakeAPI) -> API:
    return make_api(types=[Story, Picture])


def load(api: API, *texts: str, **more: Any) -> API:
    """Loads stories with some texts, from id 10 on."""
    stories = [story(10 + number, text) for number, text in enumerate(texts)]
    api.load({**TARGETS, "pages": [*TARGETS["pages"], *stories], **more})
    return api


def shown(api: API, format: str, count: int = 1) -> list[str]:
    """The texts in a list."""
    path = f"pages/?type=rich.Story&fields=_,text&rich_text_format={format}&order=id"
    return [item["text"] for item in api.items(path)][2 : 2 + count]


PAGE, DOCUMENT = "http://localhost/a%20b/", "http://localhost/media/map.pdf"
IMAGE = "http://localhost/media/a%20b.png"
REWRITTEN = [
    ('<a linktype="page" id="3">x</a>', f'<a href="{PAGE}">x</a>'),
    ("<A ID=3 LinkType='page' >x</A >", f'<a href="{PAGE}">x</A >'),
    ('&#<a linktype="page" id="3">x</a>', f'&#<a href="{PAGE}">x</a>'),
    ("&#x<A linktype=page id=3>x</a>", f'&#x<a href="{PAGE}">x</a>'),
    ('<a linktype="page" id="3" class="c" title="&quot;">x</a>', None),
    ('<a id="1" linktype="document">x</a>', f'<a href="{DOCUMENT}">x</a>'),
    ('<b>a <a linktype="page" id="987654">x <i>y</i></a></b>', "<b>a x <i>y</i></b>"),
    ('<a linktype="page" id="987655">x</a>', "x"),
    ('<a linktype="page" id="404">x</a>', "x"),
    ('<a linktype="page">x</a>', "x"),
    ('<a linktype="page" id="-3">x</a>', "x"),
    (f'<a linktype="page" id="{"9" * 19}">x</a>', "x"),
    (f'<a linktype="page" id="{"9" * 9999}">x</a>', "x"),
    ('<a linktype="user" id="3">x</a>', "x"),
    ('<a linktype="document" id="987654">x</a>', "x"),
    ('<a linktype="page" id="404">x<a href="/y">z</a></a>', 'x<a href="/y">z</a>'),
    (
        '<embed embedtype="image" id="1" alt="A &amp; B" format="left"/>',
        f'<img src="{IMAGE}" alt="A &amp; B" width="800" height="600" class="richtext-image left">',
    ),
    (
        '<embed embedtype="image" id="2" format="fullwidth">',
        '<img src="http://localhost/media/b.png" alt="" class="richtext-image full-width">',
    ),
    ('a<embed embedtype="image" id="4"/>b', "ab"),
    ('a<embed embedtype="image" id="987654" alt="x"></embed>b', "ab"),
    (
        '<embed embedtype="media" url="https://v.example/?a=1&amp;b=2"/>',
        '<a href="https://v.example/?a=1&amp;b=2">https://v.example/?a=1&amp;b=2</a>',
    ),
    ('a<embed embedtype="media" url="javascript:x"/>b', "ab"),
    ('a<embed embedtype="form" id="1"/>b', "ab"),
    ("a<script>alert('<b>')</script>b", "ab"),
    ('<p onclick="x()" class="c">a</p>', '<p class="c">a</p>'),
    ('<p class="c" onclick="x()">a</p>', '<p class="c">a</p>'),
    ('<p cite="java&#115;cript:x">a</p>', "<p>a</p>"),
    ('<p linktype="page" id="987654">a</p>', '<p id="987654">a</p>'),
    ("<a href=' java&#10;script:x'>a</a>", "<a>a</a>"),
    ("<a HREF=JavaScript:x>a</a>", "<a>a</a>"),
    ('<!-- <a linktype="page" id="987654">x</a> -->a', "a"),
    ('<!-- <a linktype="page" id="3">x</a> -->a', "a"),
    ('<?a <a linktype="page" id="987654">?>a', "?>a"),
    ('<!-- <!-- <a linktype="page" id="987654">x</a> -->a', "a"),
    ('a <a linktype="page" id="987654', "a "),
    ("a <embed embedtype='image' id='987654' alt='", "a "),
]


@pytest.mark.parametrize(("stored", "written"), [pair for pair in REWRITTEN if pair[1]])
def test_html_has_addresses(empty: API, stored: str, written: str) -> None:
    assert shown(load(empty, stored), "html") == [written]


#: Markup without targets, which stays as it is.
KEPT = [
    *("", "a", "<", "a < b", "a <b", "<p>open", "</p>closed", "<b><i>x</b></i>", "<br/>", "<BR>"),
    *("caf&eacute; &amp; &#233; &nbsp;&copy", "<!-- <b> -->", "<!-- <script> -->"),
    *("<a href=x>y</a>", "<a href='/?a=1&b=2' title=\"'\">y</a>", "<a id=3>y</a>", "<embed src=x>"),
    *("&lt;script&gt;", "<x-y z>a</x-y>", "<p\nclass=c\n>a</p>", "linktype embedtype", "<td>"),
    *(
        "<?php x ?>",
        "<![CDATA[x]]>",
        "<?linktype?>",
        "</ linktype>",
        "a\r\nb\n<b>\n</b>\n",
        "<li>a<li>b</ul>",
        "\u2028🚢",
    ),
    *("<p data-on='x'>", "<img src=x alt='>'>", "</a>", "<style>a{}</style>", "<a name=b>"),
]


@pytest.mark.parametrize("format", ["html", "db_html"])
def test_other_markup_stays_as_it_is(empty: API, format: str) -> None:
    for start in range(0, len(KEPT), 18):
        kept = KEPT[start : start + 18]
        assert shown(load(empty, *kept), format, 18) == kept


PIECES = [
    *("<p>", "</p>", "<b>", "</b>", "<I>", "</I>", "<ul>", "<li>", "</ul>", "<h2>", "<br>"),
    *("<a href='/x?a=1&amp;copy;=2(b)'>", "</a>", "<code>", "</code>", "<pre>", "</pre>", "<hr>"),
    *('<a linktype="page" id="3">', "<A ID=1 LINKTYPE='document'>", "<table><tr><td>", "</table>"),
    *('<a linktype="page" id="987654">', '<a title="canary" linktype=page id=987655>'),
    *('<embed embedtype="image" id="1" alt="A ] &quot;"/>', "<blockquote>", "</blockquote>"),
    *('<embed id="987654" alt="canary" embedtype="image"/>', "<!-- c -->", "<s>", "</s>"),
    *('<!-- <a linktype="page" id="987654"> -->', "<embed embedtype=image id=987654", "</h2>"),
    *("1. ", "- ", "+ ", "# ", "*", "_", "`", "~~~", "===", "!", "[", "](u)", "\\", "|", "2024."),
    *("&amp;", "&lt;", "&copy", "&nbsp;", " ", "\n", "text", "é", "<span>", "</span>", "<", ">"),
]


def odd_texts(count: int) -> Iterator[str]:
    chosen = random.Random(14)
    for _ in range(count):
        yield "".join(chosen.choices(PIECES, k=chosen.randint(1, 14)))


def found(kind: str, identity: int) -> dict[str, Any] | None:
    """The targets, as answers have them."""
    addresses = {"page": {"href": PAGE}, "document": {"href": DOCUMENT}, "image": {"src": IMAGE}}
    return addresses[kind] if identity in (1, 3) else None


def facts(html: str) -> tuple[str, list[str], list[tuple[str, str]]]:
    """The text of HTML without white space, the links, and the pictures."""
    tree = html5lib.parse(html, namespaceHTMLElements=False)
    return (
        re.sub(r"\s", "", "".join(_texts(tree))),
        [unquote(link.get("href", "")) for link in tree.iter("a") if link.get("href")],
        [(unquote(img.get("src", "")), img.get("alt", "")) for img in tree.iter("img")],
    )


def _texts(element: Any) -> Iterator[str]:
    if isinstance(element.tag, str):  # no comment
        yield element.text or ""
        for child in element:
            yield from _texts(child)
            yield child.tail or ""


def test_markdown_rendered_back_is_the_html() -> None:
    for text in odd_texts(200):
        html, markdown = (convert(text, format, found) for format in ("html", "markdown"))
        assert facts(MarkdownIt("commonmark").render(markdown)) == facts(html), text


def test_tidy_markup_is_read_as_any_other() -> None:
    tidy = [*'"</p>|<p class="c">|<b>|</b>|<br/>|<h2 id="a" >|</a>|&amp;|&#|\'|>|x\n'.split("|")]
    tidy += ['<a linktype="page" id="3">', '<a linktype="page" id="4" title="&lt;">']
    tidy += ['<embed embedtype="image" id="1" alt="&quot;"/>', '<a href="/">', '<img src="/x">']
    chosen = random.Random(14)
    for _ in range(2_000):
        text = "".join(chosen.choices(tidy, k=chosen.randint(1, 9)))
        # Nobody writes capitals who writes tidily.
        assert convert(f"{text}<BR>", "html", found) == f"{convert(text, 'html', found)}<BR>"


@pytest.mark.parametrize("format", RESOLVED)
def test_odd_markup_fails_nowhere_and_leaks_nothing(empty: API, format: str) -> None:
    texts = [*odd_texts(200)]
    for start in range(0, 200, 20):
        for written in shown(load(empty, *texts[start : start + 20]), format, 20):
            assert not any(canary in written for canary in CANARIES), written


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "<a " * 20_000,
        "<!--" * 5_000,
        "<ul><li>" * 2_000,
        "<b>" * 9_000,
        f"{' ' * 50_000}<",
        "a" * 99_999,
        f"{'<!' * 2_000} linktype {'>' * 2_000}",
        f"<a href=x>{'<p>t</p>' * 4_000}</a>",
        f"<ol>{'<li>x</li>y' * 4_000}</ol>",
    ],
    ids=[
        *("tags", "comments", "lists", "emphasis", "spaces", "letters"),
        *("comments in comments", "blocks in a link", "entries of a list"),
    ],
)
def test_long_and_deep_texts_are_converted(text: str) -> None:
    for format in RESOLVED:
        convert(f"{text}<br>x", format, found)


@pytest.mark.parametrize(
    ("start", "first"),
    [("3", "3"), ("½", "1"), ("9" * 5_000, "1"), ("9999999999", "1"), ("-2", "1")],
)
def test_lists_are_numbered_as_commonmark_can(start: str, first: str) -> None:
    written = convert(f'<ol start="{start}"><li>a<p>b</p></li></ol>', "markdown", found)
    assert written == f"{first}. a\n\n   b"


def test_markdown_is_commonmark(empty: API) -> None:
    text = (
        '<h2>A * title</h2><p>Caf&eacute; <a linktype="page" id="3">with <b>bold</b></a>!</p>'
        '<embed embedtype="image" id="1" alt="[x]"/><ul><li>1. a_b</li></ul>'
    )
    (markdown,) = shown(load(empty, text), "markdown")
    assert markdown == (
        f"## A \\* title\n\nCafé [with **bold**]({PAGE})!\n\n![\\[x\\]]({IMAGE})\n\n- 1\\. a\\_b"
    )


def test_db_markdown_names_targets_by_their_ids(empty: API) -> None:
    text = (
        '<a linktype="page" id="3">a</a> <a linktype="document" id="1">b</a> '
        '<embed embedtype="image" id="1" alt="c"/> <a linktype="page" id="987654">d</a>'
    )
    (markdown,) = shown(load(empty, text), "db_markdown")
    expected = "[a](wagtail://page/3) [b](wagtail://document/1) ![c](wagtail://image/1) d"
    assert markdown == expected


LINK, LINKED = '<a linktype="page" id="3">x</a>', f'<a href="{PAGE}">x</a>'


def test_texts_are_written_wherever_they_are(empty: API) -> None:
    blocks = [
        {"type": "text", "value": LINK},
        {
            "type": "list",
            "value": [{"type": "text", "value": LINK}, {"type": "raw", "value": LINK}],
        },
        {"type": "story", "value": 11},
    ]
    record = story(10, LINK, plain=LINK, remarks=[{"id": 1, "text": LINK}], body=blocks, other=11)
    pictures = [{"id": 1, "title": "", "caption": LINK}]
    pages = [*TARGETS["pages"], record, story(11, LINK)]
    empty.load({**TARGETS, "pages": pages, "images": pictures})
    shown = empty.json("pages/10/?rich_text_format=html&fields=other(_,title)")
    assert shown["text"] == shown["written"] == shown["remarks"][0]["text"] == LINKED
    for name in ("text", "written"):
        assert empty.json(f"pages/10/?rich_text_format=html&fields=_,{name}") == {name: LINKED}
    assert shown["body"][0]["value"] == shown["body"][1]["value"][0]["value"] == LINKED
    assert shown["body"][1]["value"][1]["value"] == LINK
    assert empty.json("images/1/?rich_text_format=html")["caption"] == LINKED
    assert empty.items("images/?rich_text_format=html&fields=caption")[0]["caption"] == LINKED
    by_path = empty.json("pages/detail_by_path/?html_path=/s11/&rich_text_format=html")
    assert by_path["text"] == LINKED
    assert empty.json("pages/10/")["text"] == LINK


def test_a_text_is_not_converted_again_for_the_next_request(
    empty: API, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    converted = []

    def note(html: str) -> str:
        converted.append(html)
        return commonmark(html)

    monkeypatch.setattr("flask_contentapi.commonmark.commonmark", note)
    text = f"<p>Once, {backend}: {LINK}</p>"
    api = load(empty, text)
    path = "pages/10/?fields=_,text&rich_text_format=markdown"
    assert (
        api.json(f"{path}&_=1")
        == api.json(f"{path}&_=2")
        == {"text": f"Once, {backend}: [x]({PAGE})"}
    )
    assert len(converted) == 1
    pages = [{**record, "live": record["id"] != 3} for record in TARGETS["pages"]]
    api.load({**TARGETS, "pages": [*pages, story(10, text)]})
    assert api.json(f"{path}&_=3") == {"text": f"Once, {backend}: x"}
    assert len(converted) == 2


def test_setting_says_the_default(make_api: MakeAPI) -> None:
    config = {"CMSAPI_RICH_TEXT_FORMAT": "html"}
    api = load(make_api(types=[Story], config=config), LINK)
    assert api.json("pages/10/")["text"] == LINKED
    assert api.json("pages/10/?rich_text_format=db_html")["text"] == LINK


@pytest.mark.parametrize("path", ["pages/", "pages/1/", "images/", "documents/1/"])
@pytest.mark.parametrize("value", ["", "HTML", "text"])
def test_other_formats_are_refused(empty: API, path: str, value: str) -> None:
    api = load(empty)
    message = api.refusal(f"{path}?rich_text_format={value}")
    assert message == "rich_text_format must be one of db_html, html, markdown, db_markdown."


def test_what_is_not_installed_is_named(
    empty: API, make_api: MakeAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = frozenset[str]
    monkeypatch.setattr("flask_contentapi.markup.installed_packages", nothing)
    assert "needs nh3, which" in empty.refusal("pages/?rich_text_format=html")
    assert "needs nh3 and markdownify" in empty.refusal("pages/?rich_text_format=markdown")
    assert empty.status("pages/?rich_text_format=db_html") == 200
    with pytest.raises(
        ConfigurationError, match=r"RICH_TEXT_FORMAT.*nh3 is installed.*\[richtext\]"
    ):
        make_api(types=[Story], config={"CMSAPI_RICH_TEXT_FORMAT": "html"})


def test_targets_count_among_embedded_objects(make_api: MakeAPI) -> None:
    api = load(make_api(types=[Story], config={"CMSAPI_EMBED_MAX": 5}), LINK * 6)
    assert api.status("pages/10/") == 200
    assert "more than 5 objects" in api.refusal("pages/10/?rich_text_format=html")


def test_targets_are_among_the_cache_tags(make_api: MakeAPI) -> None:
    api = make_api(types=[Story], config={"CMSAPI_CACHE_TAG_HEADER": "Cache-Tag"})
    hidden = '<a linktype="page" id="987654">x</a><embed embedtype="image" id="1"/>'
    load(api, LINK + hidden)
    path = "pages/10/?rich_text_format=html&fields=_,text"
    tags = api.get(path).headers["Cache-Tag"].split(", ")
    assert {*tags} - {EVERYTHING} == {"pages-10", "pages-3", "images-1"}


def test_who_links_to_a_page_is_purged_when_it_appears(make_api: MakeAPI) -> None:
    api = make_api(types=[Story])
    hidden = '<a linktype="page" id="987654">x</a>'
    load(api, hidden, '<a linktype="page" id="3">x</a>')
    pages = [*TARGETS["pages"], story(10, hidden), story(11, LINK)]
    live = [{**page, "live": True} if page["id"] == 987654 else page for page in pages]
    sent: list[frozenset[str]] = []

    def hear(sender: object, tags: frozenset[str]) -> None:
        sent.append(tags)

    with content_changed.connected_to(hear, api.backend):
        api.load({**TARGETS, "pages": live})
    assert any({"pages-10", EVERYTHING} & tags for tags in sent)


def test_answers_are_over_when_a_target_appears(make_api: MakeAPI) -> None:
    clock = Clock()
    api = make_api(types=[Story], config={"CMSAPI_CACHE_MAX_AGE": 60}, clock=clock)
    soon = story(20, slug="soon", go_live_at=(NOW + timedelta(seconds=30)).isoformat())
    text = '<a linktype="page" id="20">x</a>'
    api.load({**TARGETS, "pages": [*TARGETS["pages"], soon, story(10, text)]})
    path = "pages/10/?rich_text_format=html"
    before = api.get(path)
    assert before.headers["Cache-Control"] == "public, max-age=30"
    clock.now = NOW + timedelta(seconds=30)
    after = api.get(path, headers={"If-None-Match": before.headers["ETag"]})
    assert (before.json or {})["text"] == "x"
    assert (after.json or {})["text"] == '<a href="http://localhost/soon/">x</a>'


def test_check_tells_targets_that_are_not_there(empty: API) -> None:
    blocks = [{"type": "text", "value": '<embed embedtype="image" id="405"/>'}]
    pages = [*TARGETS["pages"], story(10, '<a linktype="page" id="404">', body=blocks)]
    empty.load({**TARGETS, "pages": pages})
    with empty.app.app_context():
        problems = [(p.where, p.field, p.message) for p in empty.backend.check()]
    assert problems == [
        ("pages 10", "text", "there is no object 404 in pages"),
        ("pages 10", "body", "there is no object 405 in images"),
    ]


def test_every_format_is_tested() -> None:
    assert {*FORMATS} == {"db_html", *RESOLVED}
    assert installed_packages() == {"nh3", "markdownify"}

"""Sample content, each kind of edit to it, and how each backend makes edits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

from flask import request
from hypothesis import strategies as st
from marshmallow import fields

from flask_contentapi import (
    Blocks,
    ChildObject,
    Children,
    Entry,
    Page,
    Related,
    RichText,
    Tags,
    content_changed,
)
from flask_contentapi.writer import Writer
from flask_contentapi_jsonfiles import JSONFilesBackend
from tests.api import API
from tests.samples import Record, document, image, page, private, site

Content = dict[str, list[Any]]
Edit = Callable[[Content], None]


class Link(ChildObject):
    app_label = "site"
    title = fields.String()
    page = Related("pages")
    paper = Related("documents")
    pictures = fields.List(Related("images"))
    api_fields = ["title", "page", "paper", "pictures"]


class Article(Page):
    app_label = "site"
    body = RichText()
    picture = Related("images")
    near = Related("pages", within_site=True)
    others = fields.List(Related("pages"))
    blocks = Blocks({"image": Related("images"), "page": Related("pages")})
    links = Children(Link)
    tags = Tags()
    search_fields = ["body"]
    api_fields = ["body", "picture", "near", "others", "blocks", "links", "tags"]


class Note(Page):
    app_label = "site"


class Person(Entry):
    app_label = "site"
    endpoint = "people"
    name = fields.String()
    page = Related("pages")
    api_fields = ["name", "page"]


TYPES = (Article, Note, Person)
NOW = datetime(2026, 6, 1, tzinfo=UTC)


class Clock:
    """A clock that tests move forward."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now

    def wait(self, seconds: float) -> None:
        """Lets time pass."""
        self.now += timedelta(seconds=seconds)


def article(id: int, parent: int | None = None, **values: Any) -> Record:
    return page(id, parent, **{"type": "site.Article", **values})


def note(id: int, parent: int | None = None, **values: Any) -> Record:
    return page(id, parent, **{"type": "site.Note", **values})


def block(type: str, value: Any) -> Record:
    return {"type": type, "value": value}


#: Page 6 is a draft, 8 and 15 are restricted, 10 is not published yet. Images 3 and 9 and
#: document 2 are hidden or missing.
CONTENT: Content = {
    "locales": ["en", "fr"],
    "sites": [site(1, is_default=True), site(40, "other.example")],
    "collections": [
        {"id": 1, "name": "everybody"},
        {"id": 2, "name": "staff", "restriction": private()},
        {"id": 3, "name": "drawings", "parent": 2},
    ],
    "pages": [
        note(1, translation_key="home"),
        article(2, 1, seo_title="Two", show_in_menus=True, near=15),
        article(
            3,
            2,
            body="<p>storm</p>",
            picture=1,
            near=4,
            others=[13, 6, 4],
            blocks=[block("image", 1), block("list", [block("image", 3), block("page", 6)])],
            links=[{"id": 1, "page": 4, "paper": 1}, {"id": 2, "title": "b", "page": 6}],
            tags=["a", "b"],
        ),
        article(
            4,
            2,
            picture=9,
            near=41,
            blocks=[block("image", 9)],
            translation_key="four",
            links=[{"id": 3, "paper": 2, "pictures": [3, 2]}],
        ),
        article(5, 1, alias_of=4, picture=2, near=13),
        note(6, 1, live=False),
        article(7, 6, picture=3, near=6, alias_of=9),
        note(8, 1, restriction=private()),
        article(9, 8, others=[6, 4, 50]),
        note(15, 9, restriction=private("nobody")),
        note(10, 1, go_live_at="2026-06-01T01:00:00Z"),
        note(11, 1, expires_at="2026-06-01T02:00:00Z"),
        note(12, locale="fr", translation_key="home"),
        article(13, 12, locale="fr", translation_key="four"),
        note(14, 13, locale="fr"),
        note(40),
        note(41, 40),
    ],
    "images": [image(1, collection=1, tags=["a"]), image(2), image(3, collection=3)],
    "documents": [document(1), document(2, collection=2)],
    "people": [{"id": 1, "name": "Ada", "page": 4}, {"id": 2, "name": "Bo", "page": 6}],
}


# Edits.


def put(section: str, id: int, **values: Any) -> Edit:
    """Changes values of an object."""

    def edit(content: Content) -> None:
        found(content, section, id).update(values)

    return edit


def found(content: Content, section: str, id: int) -> Record:
    """The record with an id."""
    record: Record = next(record for record in content[section] if record["id"] == id)
    return record


def add(section: str, record: Any) -> Edit:
    """Adds an object."""
    return lambda content: content[section].append(deepcopy(record))


def delete(section: str, id: int) -> Edit:
    """Deletes an object."""
    return lambda content: content[section].remove(found(content, section, id))


def move(id: int, parent: int) -> Edit:
    """Moves a page under another one, after its children."""

    def edit(content: Content) -> None:
        record = found(content, "pages", id)
        content["pages"].remove(record)
        content["pages"].append({**record, "parent": parent})

    return edit


def put_site(number: int, **values: Any) -> Edit:
    """Changes values of a site."""
    return lambda content: content["sites"][number].update(values)


def swap(content: Content) -> None:
    """Swaps pages 3 and 4."""
    pages = content["pages"]
    pages[2], pages[3] = pages[3], pages[2]


def change_default(content: Content) -> None:
    """Makes the other site the default."""
    for record in content["sites"]:
        record["is_default"] = not record.get("is_default")


EDITS: Mapping[str, Edit] = {
    "page: title": put("pages", 4, title="New"),
    "page: body": put("pages", 3, body="<p>sun</p>"),
    "page: slug": put("pages", 2, slug="new"),
    "page: slug of the home": put("pages", 1, slug="new", title="New"),
    "page: type": put("pages", 41, type="site.Article"),
    "page: hidden": put("pages", 4, live=False),
    "page: shown": put("pages", 6, live=True),
    "page: restricted": put("pages", 2, restriction=private()),
    "page: opened": put("pages", 8, restriction=None),
    "page: restricted otherwise": put("pages", 8, restriction=private("groups")),
    "page: restricted for nobody": put("pages", 8, restriction=private("nobody")),
    "page: moved": move(4, 1),
    "page: moved out of the site": move(4, 40),
    "page: moved into the site": move(41, 1),
    "page: moved below a private one": move(4, 8),
    "page: order": swap,
    "page: tags": put("pages", 3, tags=["b"]),
    "page: relation": put("pages", 3, picture=2),
    "page: relation gone": put("pages", 3, picture=None),
    "page: relation to many": put("pages", 3, others=[4, 13]),
    "page: relation to many gone": put("pages", 3, others=[]),
    "page: alias": put("pages", 5, alias_of=3),
    "page: alias no more": put("pages", 5, alias_of=None),
    "page: block": put("pages", 3, blocks=[block("image", 2)]),
    "page: title in search results": put("pages", 2, seo_title="New"),
    "page: description": put("pages", 2, search_description="New"),
    "page: menus": put("pages", 2, show_in_menus=False),
    "page: published": put("pages", 2, first_published_at="2026-01-01T00:00:00Z"),
    "page: begins": put("pages", 10, go_live_at="2026-05-01T00:00:00Z"),
    "page: ends": put("pages", 11, expires_at="2026-05-01T00:00:00Z"),
    "page: not yet": put("pages", 4, go_live_at="2027-01-01T00:00:00Z"),
    "page: over": put("pages", 4, expires_at="2026-05-01T00:00:00Z"),
    "page: ends later": put("pages", 11, expires_at="2026-06-01T03:00:00Z"),
    "page: language": put("pages", 13, locale="en"),
    "page: translation no more": put("pages", 13, translation_key=None),
    "page: home is no translation": put("pages", 12, translation_key=None),
    "page: added": add("pages", article(50, 2)),
    "page: home added": add("pages", note(51, translation_key="home", locale="fr")),
    "page: deleted": delete("pages", 4),
    "child: added": put("pages", 4, links=[{"id": 3}, {"id": 4, "title": "New", "page": 3}]),
    "child: deleted": put("pages", 3, links=[]),
    "child: title": put("pages", 4, links=[{"id": 3, "title": "New"}]),
    "image: title": put("images", 1, title="New"),
    "image: file": put("images", 1, file="new.png"),
    "image: width": put("images", 1, width=9),
    "image: tags": put("images", 1, tags=["b"]),
    "image: hidden": put("images", 1, collection=3),
    "image: shown": put("images", 3, collection=1),
    "image: added": add("images", image(9)),
    "image: deleted": delete("images", 1),
    "document: title": put("documents", 1, title="New"),
    "document: file": put("documents", 1, file="new.pdf"),
    "document: shown": put("documents", 2, collection=None),
    "document: deleted": delete("documents", 1),
    "collection: restricted": put("collections", 1, restriction=private()),
    "collection: restricted for nobody": put("collections", 2, restriction=private("nobody")),
    "collection: opened": put("collections", 2, restriction=None),
    "collection: moved": put("collections", 3, parent=1),
    "site: host name": put_site(1, hostname="new.example"),
    "site: port": put_site(0, port=443),
    "site: home page": put_site(1, root_page=3),
    "site: added": add("sites", site(2, "new.example")),
    "site: deleted": lambda content: content["sites"].pop(),
    "site: default": change_default,
    "language: added": add("locales", "de"),
    "entry: name": put("people", 1, name="New"),
    "entry: relation": put("people", 1, page=3),
    "entry: added": add("people", {"id": 3}),
}


def edited(content: Mapping[str, Any], edit: Edit) -> Content:
    """A copy of the content after an edit."""
    after: Content = deepcopy(dict(content))
    edit(after)
    return after


# Random edits. They do nothing if their subject does not exist.


def _if_there(section: str, id: int, edit: Edit) -> Edit:
    def careful(content: Content) -> None:
        if any(record["id"] == id for record in content[section]):
            edit(content)

    return careful


def _unless_there(section: str, record: Record) -> Edit:
    def careful(content: Content) -> None:
        if all(known["id"] != record["id"] for known in content[section]):
            add(section, record)(content)

    return careful


def _puts(section: str, ids: list[int], **values: list[Any]) -> st.SearchStrategy[Edit]:
    """Changes values of a random object."""
    optional = {name: st.sampled_from(few) for name, few in values.items()}
    changes = st.fixed_dictionaries({}, optional=optional)
    return st.builds(
        lambda id, values: _if_there(section, id, put(section, id, **values)),
        st.sampled_from(ids),
        changes,
    )


def _comes_and_goes(section: str, record: Record) -> st.SearchStrategy[Edit]:
    there = _unless_there(section, record)
    return st.sampled_from([there, _if_there(section, record["id"], delete(section, record["id"]))])


_RULES = [None, None, private()]
_PAGES, _IMAGES = [None, 2, 3, 4, 6, 13, 41, 50], [None, 1, 2, 3, 9]
_MOMENTS = [None, None, None, *(f"2026-06-01T{hour:02}:30:00Z" for hour in range(4))]
_EVERY: dict[str, list[Any]] = {
    "title": ["One", "Two", "Storm"],
    "live": [True, True, False],
    "restriction": _RULES,
    "go_live_at": _MOMENTS,
    "expires_at": _MOMENTS,
    "alias_of": _PAGES,
    "translation_key": [None, "home", "four"],
}
_OWN: dict[str, list[Any]] = {
    "picture": _IMAGES,
    "near": _PAGES,
    "others": [[], [2, 6], [50, 41, 3]],
    "blocks": [[block("image", id) for id in ids] for ids in ([], [1, 3], [9])],
}
_LINKS = [[{"id": 100, "page": id, "paper": 2}] for id in _PAGES]
random_edits: st.SearchStrategy[Edit] = st.one_of(
    _puts("pages", [1, 6, 8, 10, 12, 14, 41], **_EVERY),
    _puts("pages", [2, 3, 4, 5, 9, 13], **_EVERY, **_OWN),
    _puts("pages", [3], links=_LINKS),
    _puts("images", [1, 2, 3], title=["One", "Two"], collection=[None, 1, 2, 3]),
    _puts("documents", [1, 2], title=["One", "Two"], collection=[None, 1, 2, 3]),
    _puts("people", [1, 2], name=["One", "Two"], page=_PAGES),
    _puts("collections", [1, 2, 3], restriction=_RULES),
    st.builds(move, st.sampled_from([3, 4, 5, 7, 41]), st.sampled_from([1, 2, 8, 13, 40])),
    st.builds(
        lambda id, slug: put("pages", id, slug=f"{slug}{id}"),
        st.sampled_from([1, 2, 12, 13]),
        st.sampled_from("abc"),
    ),
    st.builds(lambda page: put_site(1, root_page=page), st.sampled_from([40, 2, 13])),
    _comes_and_goes("pages", article(50, 2, near=3)),
    _comes_and_goes("images", image(9)),
    _comes_and_goes("documents", document(3)),
)


# Answers.

_ARTICLES = "pages/?type=site.Article&fields="
#: The requests to each host.
ADDRESSES: Mapping[str, list[str]] = {
    "localhost": [
        *("pages/", "pages/?fields=*", "pages/?order=-title&limit=2", "pages/?child_of=2"),
        *("pages/?search=storm", "pages/?locale=de", "pages/?show_in_menus=true"),
        *("pages/?translation_of=4", "pages/?limit=3&offset=2", "pages/?ancestor_of=3"),
        f"{_ARTICLES}*&order=picture",
        f"{_ARTICLES}near(near(title)),links(page(html_url),paper(*))",
        "pages/?type=site.Article&picture=9",
        "pages/?type=site.Article&tags=a",
        *(f"pages/{id}/" for id in (2, 3, 4, 5, 7, 9, 10, 11, 13, 14, 41)),
        "pages/3/?fields=near(picture(*)),links(page(near))",
        "pages/find/?html_path=/p2/p4/",
        *("images/?fields=*", "images/1/", "images/3/", "images/9/"),
        *("documents/?fields=*", "documents/1/", "documents/2/"),
        *("people/?fields=*", "people/1/", "people/2/?fields=page(*)"),
    ],
    "other.example": ["pages/?fields=*", "pages/41/", "pages/4/", "pages/?site=localhost"],
    "elsewhere.example": ["pages/", "pages/41/", "people/1/"],
    "new.example": ["pages/", "pages/3/"],
}
PLACES = [(host, path) for host, paths in ADDRESSES.items() for path in paths]
#: The requests whose answers show something private to viewers with the right.
PRIVATE = [
    ("localhost", path)
    for path in (
        *("pages/?fields=*", f"{_ARTICLES}*&order=picture", "images/?fields=*"),
        *("pages/3/", "pages/4/", "pages/7/", "pages/9/", "images/3/", "documents/2/"),
    )
]


def can_view(rule: Any) -> bool:
    """Passes the type of restriction named in the request, and the type ``nobody``."""
    return rule["type"] in ("nobody", request.headers.get("X-Open"))


class Answer:
    """The parts of an answer that matter."""

    def __init__(self, api: API, path: str, **options: Any) -> None:
        response = api.get(path, **options)
        self.status = response.status_code
        self.shown = (self.status, response.data, response.headers.get("Location"))
        self.etag = response.headers.get("ETag")
        self.tags = frozenset(response.headers.get("Cache-Tag", "").split(", "))
        self.cache_control = response.cache_control

    @property
    def is_public(self) -> bool:
        """Whether a shared cache may store it."""
        return not (self.cache_control.private or self.cache_control.no_store)


def answers(
    api: API, opened: str = "", places: list[tuple[str, str]] = PLACES
) -> dict[tuple[str, str, str], Answer]:
    """The answers to some requests, for a viewer who may pass one type of restriction."""
    headers = {"X-Open": opened}
    return {
        (host, path, opened): Answer(api.at(host), path, headers=headers) for host, path in places
    }


# Making edits.


@contextmanager
def heard(api: API) -> Iterator[set[str]]:
    """The cache tags that are reported as changed meanwhile."""
    tags: set[str] = set()

    def listen(sender: object, tags: frozenset[str], **_: Any) -> None:
        said.update(tags)

    said = tags
    with content_changed.connected_to(listen, api.backend):
        yield tags


def change(api: API, before: Content, after: Content) -> None:
    """Makes an edit by changing objects, or by loading where they cannot be changed."""
    with api.app.app_context():
        if isinstance(api.backend, JSONFilesBackend):
            api.backend.load(after)
        else:
            with api.backend.write() as writer:
                write(writer, before, after)


def write(writer: Writer, before: Content, after: Content) -> None:
    """Makes an edit by changing objects."""
    for locale in after["locales"]:
        if locale not in before["locales"]:
            writer.put_locale(locale)
    for record in after["collections"]:
        if record not in before["collections"]:
            writer.put_collection(**record)
    for section in ("pages", "images", "documents", "people"):
        _write_objects(writer, section, _by_id(before[section]), _by_id(after[section]))
    _write_order(writer, before["pages"], after["pages"])
    _write_sites(writer, before["sites"], after["sites"])


def _by_id(records: list[Any]) -> dict[int, Record]:
    return {record["id"]: record for record in records}


def _write_sites(writer: Writer, before: list[Record], after: list[Record]) -> None:
    if before == after:
        return
    for record in before:
        writer.delete_site(record["hostname"], record.get("port", 80))
    for record in after:
        writer.put_site(**record)


def _write_objects(
    writer: Writer, section: str, before: Mapping[int, Record], after: Mapping[int, Record]
) -> None:
    for id in before.keys() - after.keys():
        writer.delete(section, id)
    for id, record in after.items():
        if id not in before:
            writer.add(section, record)
        elif record != before[id]:
            _update(writer, section, before[id], record)


def _update(writer: Writer, section: str, before: Record, after: Record) -> None:
    if before.get("parent") != after.get("parent"):
        writer.move(after["id"], after["parent"])
    changes = {name: after.get(name) for name in {*before, *after} - {"parent"}}
    changes = {name: value for name, value in changes.items() if value != before.get(name)}
    if changes:
        writer.update(section, after["id"], **changes)


def _write_order(writer: Writer, before: list[Record], after: list[Record]) -> None:
    """Moves all pages to the end in turn, if those that stay are in another order."""
    known = [(record["id"], record["parent"]) for record in before]
    wanted = [(record["id"], record["parent"]) for record in after]
    if [one for one in known if one in wanted] != [one for one in wanted if one in known]:
        for id, parent in wanted:
            writer.move(id, parent)

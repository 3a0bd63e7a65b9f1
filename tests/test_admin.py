"""The editor: its lists, forms and changes, over HTTP."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from flask import Flask, session
from flask.testing import FlaskClient
from flask_admin import Admin
from marshmallow import fields, validate
from werkzeug.test import TestResponse

from flask_contentapi import (
    Blocks,
    ChildObject,
    Children,
    ContentAPI,
    Image,
    Page,
    Related,
    RichText,
    Tags,
)
from flask_contentapi.admin import ContentView
from flask_contentapi.errors import ConfigurationError
from tests.api import API
from tests.databases import noted, on_databases, on_writable
from tests.stores import fresh_address, on_memory, take_store

pytestmark = [on_writable, pytest.mark.slow]

HOSTILE = "<script>alert(1)</script>"


class Author(ChildObject):
    name = fields.String(required=True, validate=validate.Length(max=20))
    wrote = fields.Date()
    api_fields = ["name"]


class Picture(Image):
    pass


class Note(Page):
    text = fields.String()
    body = RichText()
    stars = fields.Integer(validate=validate.Range(1, 5))
    weight = fields.Float()
    price = fields.Decimal(places=2)
    sold = fields.Boolean()
    day = fields.Date()
    hour = fields.Time()
    moment = fields.DateTime()
    colour = fields.String(validate=validate.OneOf(["red", "blue"], ["Red", "Blue"]))
    grade = fields.Integer(validate=validate.OneOf([1, 2]))
    labels = Tags()
    picture = Related("images")
    others = fields.List(Related("pages"))
    authors = Children(Author)
    parts = Blocks()
    data = fields.Raw()
    web = fields.Url()
    country = fields.String(load_default="it")
    api_fields = ["text", "picture", "others", "authors", "labels"]


class Folder(Page):
    pass


TYPES = [Note, Folder, Picture]
#: A value of each kind, with what a form does not show of it.
FULL: dict[str, Any] = {
    "text": "one\r\ntwo",
    "body": "<p>Hello</p>",
    "stars": 3,
    "weight": 1.5,
    "price": "2.50",
    "sold": True,
    "day": "0985-01-15",
    "hour": "18:30:00.000005",
    "moment": "2026-01-15T08:00:00.123456Z",
    "colour": "blue",
    "grade": 2,
    "labels": ["a", "b c"],
    "picture": 1,
    "others": [3, 1],
    "authors": [{"id": 7, "name": "Ann", "wrote": "2026-01-01"}, {"id": 8, "name": "Bob"}],
    "parts": [{"type": "text", "value": "ü", "id": "x"}],
    "data": {"a": [1, None]},
    "web": "https://example.org/",
    "country": "",
    "restriction": {"type": "login"},
    "expires_at": "2199-01-01T00:00:00.5Z",
}
CONTENT: dict[str, Any] = {
    "locales": ["en", "de"],
    "sites": [{"hostname": "localhost", "root_page": 1, "is_default": True}],
    "images": [
        {"id": 1, "title": "Tree", "file": "tree.png"},
        {"id": 2, "title": HOSTILE, "file": "x.png"},
    ],
    "pages": [
        {"id": 1, "type": "notes.Folder", "title": "Home", "slug": "home"},
        {"id": 2, "parent": 1, "type": "notes.Note", "title": "Full", "slug": "full", **FULL},
        {"id": 3, "parent": 1, "type": "notes.Note", "title": "Draft", "slug": "d", "live": False},
        {"id": 4, "parent": 3, "type": "notes.Folder", "title": HOSTILE, "slug": "below"},
        {"id": 5, "type": "notes.Folder", "title": "Zuhause", "slug": "de", "locale": "de"},
    ],
}
for declared in TYPES:
    declared.app_label = "notes"


class Editor(ContentView):
    def is_accessible(self) -> bool:
        return "editor" in session


class Office:
    """An application with an editor.

    :param backend: the name of the backend.
    :param types: its types.
    """

    def __init__(self, backend: str, types: list[Any] = TYPES) -> None:
        self.app = Flask("office")
        store = take_store(backend, types)
        settings = {"TESTING": True, "SECRET_KEY": "known", "CMSAPI_BACKEND": store.address}
        settings["CMS_I18N_ENABLED"] = True
        self.app.config.update(settings)
        api = ContentAPI(self.app, types=types)
        with self.app.app_context():
            store.lend(api.backend)
            api.backend.load(CONTENT if types is TYPES else {})
        admin = Admin(self.app)
        for endpoint in ("pages", "images") if types is TYPES else ("pages",):
            admin.add_view(Editor(api, endpoint))
        self.api = API(self.app)
        self.backend = self.api.backend

    def client(self, *, editor: bool = True) -> FlaskClient:
        client = self.app.test_client()
        if editor:
            with client.session_transaction() as known:
                known["editor"] = True
        return client

    def record(self, id: int, endpoint: str = "pages") -> dict[str, Any]:
        with self.app.app_context(), self.backend.write() as content:
            return content.record(endpoint, id)

    def change(self, id: int, **changes: Any) -> None:
        with self.app.app_context(), self.backend.write() as content:
            content.update("pages", id, **changes)


class Opened:
    """A form in a page of the editor.

    :param client: who has opened it.
    :param path: its address.
    """

    def __init__(self, client: FlaskClient, path: str) -> None:
        self.client, self.path = client, path
        self.values = form_values(client.get(path).text)

    def send(self, **changes: Any) -> TestResponse:
        """Sends the form, with some values changed; None takes one out."""
        sent = {name: v for name, v in {**self.values, **changes}.items() if v is not None}
        return self.client.post(self.path, data=sent)


def form_values(page: str) -> dict[str, str]:
    """What a browser would send of the only form for an object in a page."""
    (form,) = re.findall(r'<form [^>]*class="admin-form".*?</form>', page, re.DOTALL)
    form = re.sub(
        r'<div class="inline-field-template.*?</div>\s*<a id', "<a id", form, flags=re.DOTALL
    )
    values = {}
    for tag in re.findall(r"<input [^>]*>", form):
        found = dict(re.findall(r'([\w-]+)="([^"]*)"', tag))
        is_sent = found["type"] not in ("checkbox", "submit") or " checked" in tag
        if is_sent and "name" in found and found["type"] != "submit":
            values[found["name"]] = re.sub("[\r\n]", "", unescape(found.get("value", "")))
    for name, text in re.findall(
        r'<textarea [^>]*name="([^"]*)"[^>]*>(.*?)</textarea>', form, re.DOTALL
    ):
        values[name] = (
            unescape(text)
            .removeprefix("\r\n")
            .removeprefix("\n")
            .replace("\r\n", "\n")
            .replace("\n", "\r\n")
        )
    for name, options in re.findall(
        r'<select [^>]*name="([^"]*)"[^>]*>(.*?)</select>', form, re.DOTALL
    ):
        (values[name],) = re.findall(r'<option selected value="([^"]*)"', options)
    return values


def said_at(page: str) -> dict[str, list[str]]:
    """The messages at fields, by label."""
    found: dict[str, list[str]] = {}
    for group in page.split('<div class="form-group')[1:]:
        if "<label" not in group:
            continue
        label = re.sub(
            r"\s|&nbsp;|<.*?>", " ", re.findall(r"<label.*?>(.*?)<", group, re.DOTALL)[0]
        )
        messages = re.findall(r"<li>(.*?)</li>", group, re.DOTALL)
        if messages:
            found.setdefault(" ".join(label.split()), []).extend(map(unescape, messages))
    return found


def flashed(page: str) -> list[str]:
    found = re.findall(r"&times;</button>(.*?)</div>", page, re.DOTALL)
    return [unescape(text).strip() for text in found]


@pytest.fixture(scope="module")
def only_office(backend: str) -> Office:
    return Office(backend)


@pytest.fixture
def office(only_office: Office) -> Office:
    """The office, in which nothing has happened yet."""
    only_office.api.load(CONTENT)
    return only_office


@pytest.fixture
def editor(office: Office) -> FlaskClient:
    return office.client()


# What it costs.


class Visit(ChildObject):
    place = Related("pages")


class Tour(Page):
    app_label = "notes"
    stops = fields.List(Related("pages"))
    visits = Children(Visit)


def deep_content(number: int) -> dict[str, Any]:
    """A page that leads to so many others, which are below each other."""
    places = range(10, 10 + number)
    tour: dict[str, Any] = {"type": "notes.Tour", "slug": "tour"}
    below = [{**tour, "id": n, "parent": max(n - 1, 9), "title": f"Place {n}"} for n in places]
    home = {**tour, "id": 9, "title": "Home"}
    visits = [{"id": n, "place": n} for n in places]
    last = {**tour, "id": 100, "parent": places[-1], "title": "Last", "stops": [*places]}
    return {"pages": [home, *below, {**last, "visits": visits}]}


@on_databases
@pytest.mark.parametrize(
    "path", ["edit/?id=100", "move/?id=100", "?parent={last}", "new/?parent=100"]
)
def test_much_content_takes_no_more_statements(backend: str, path: str) -> None:
    office, made = Office(backend, [Tour]), []
    for number in (2, 30):
        office.api.load(deep_content(number))
        address = f"/admin/pages/{path.format(last=number + 9)}"
        editor = office.client()
        editor.get(address)
        with noted(office.api) as statements:
            page = editor.get(address).text
        made.append(len(statements))
        assert f"Place {number + 9}" in page
    assert made[0] == made[1] < 12


# Who may edit.


def test_no_address_works_without_login(office: Office) -> None:
    visitor = office.client(editor=False)
    rules = [r for r in office.app.url_map.iter_rules() if r.endpoint.startswith("edit_")]
    opened = {
        (rule.rule, method): visitor.open(
            rule.rule.replace("<export_type>", "csv"), method=method
        ).status_code
        for rule in rules
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    assert len(opened) > 20
    assert {where for where, status in opened.items() if status != 403} == set()


@on_memory
def test_nobody_edits_unless_allowed(office: Office) -> None:
    with office.app.test_request_context():
        assert not ContentView(ContentAPI()).is_accessible()


def test_changes_need_the_token(office: Office, editor: FlaskClient) -> None:
    form = Opened(editor, "/admin/pages/edit/?id=2")
    form.values["csrf_token"] += "."
    told = flashed(form.send(title="Other").text)
    assert "The form was open for too long. Send it again." in told
    editor.post("/admin/pages/action/", data={"action": "publish", "rowid": "3"})
    editor.post("/admin/pages/delete/", data={"id": "4"})
    assert (office.record(2)["title"], office.record(3)["live"]) == ("Full", False)
    assert office.record(4)["title"] == HOSTILE


@on_memory
def test_endpoint_has_to_be_there(office: Office) -> None:
    app = Flask("other")
    api = ContentAPI(app, types=TYPES)
    with pytest.raises(ConfigurationError, match="'pagse' to edit; there are pages, images"):
        Admin(app).add_view(Editor(api, "pagse"))


@on_memory
def test_files_are_not_edited_here() -> None:
    app = Flask("files")
    api = ContentAPI(app, types=TYPES, backend=fresh_address("jsonfiles"))
    with pytest.raises(ConfigurationError, match="nothing to edit: JSON files are not"):
        Admin(app).add_view(Editor(api, "pages"))


@pytest.mark.parametrize(
    "url",
    [
        "http://evil.example/",
        "http:evil.example",
        "https:evil.example",
        "//evil.example/",
        r"/\evil.example/",
        r"http://localhost\@evil.example/",
        "/\t/evil.example/",
        "javascript:alert(1)",
    ],
)
def test_nothing_leads_to_other_sites(editor: FlaskClient, url: str) -> None:
    asked = {"id": "2", "url": url}
    for path in ("details/", "export/csv/"):
        assert editor.get(f"/admin/pages/{path}", query_string=asked).location == "/admin/pages/"
    page = editor.get("/admin/pages/edit/", query_string=asked).text
    sent = {**form_values(page), "url": url}
    saved = editor.post("/admin/pages/edit/?id=2", data=sent)
    assert saved.location == "/admin/pages/?parent=1"


def test_answers_are_kept_by_nobody(editor: FlaskClient) -> None:
    for path in ("", "edit/?id=2", "preview/?id=2"):
        headers = editor.get(f"/admin/pages/{path}").headers
        assert headers["Cache-Control"] == "no-store"
        assert headers["Content-Security-Policy"] == "frame-ancestors 'none'"
        assert headers["Referrer-Policy"] == "same-origin"


@on_memory
def test_what_is_not_allowed_has_no_button(
    office: Office, editor: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = re.findall(r'name="csrf_token"[^>]* value="([^"]*)"', editor.get("/admin/pages/").text)
    for name in ("can_create", "can_edit", "can_delete"):
        monkeypatch.setattr(Editor, name, False)
    before = office.api.dump()
    for name in ("publish", "unpublish", "up", "down"):
        sent = {"csrf_token": tokens[0], "action": name, "rowid": ["2", "3"]}
        editor.post("/admin/pages/action/", data=sent)
    sent = {"csrf_token": tokens[0], "id": "2", "locale": "de"}
    assert editor.post("/admin/pages/translate/", data=sent).status_code == 404
    assert office.api.dump() == before
    page = editor.get("/admin/pages/?parent=1").text
    paths = {path.partition("?")[0] for path in re.findall(r'"(/admin/pages/.*?)"', page)}
    assert paths == {"/admin/pages/", "/admin/pages/preview/"}


# Lists.


def test_list_shows_one_level_with_drafts(editor: FlaskClient) -> None:
    page = editor.get("/admin/pages/?parent=1").text
    assert re.findall(r'class="col-title"><a href="([^"]*)">(.*?)<', page) == [
        ("/admin/pages/edit/?id=2&amp;url=/admin/pages/?parent%3D1", "Full"),
        ("/admin/pages/?parent=3", "Draft ›"),
    ]
    assert re.findall(r'class="col-state">(.*?)<', page) == [
        "live, restricted",
        "draft",
    ]


def test_lists_show_what_is_restricted_above(office: Office, editor: FlaskClient) -> None:
    office.change(3, live=True, restriction={"type": "login"})
    assert '"col-state">live, restricted<' in editor.get("/admin/pages/?parent=3").text
    office.change(3, restriction=None)
    assert '"col-state">live<' in editor.get("/admin/pages/?parent=3").text


def test_lists_show_languages_if_there_are_any(editor: FlaskClient) -> None:
    page = editor.get("/admin/pages/").text
    assert re.findall(r'class="col-language">(.*?)<', page) == ["en", "de"]
    assert "col-language" not in editor.get("/admin/images/").text


def test_titles_are_escaped(editor: FlaskClient) -> None:
    for path in ("pages/?parent=3", "pages/edit/?id=4", "pages/move/?id=4", "images/"):
        page = editor.get(f"/admin/{path}").text
        assert "&lt;script&gt;alert" in page
        assert HOSTILE not in page


def test_search_finds_drafts(editor: FlaskClient) -> None:
    page = editor.get("/admin/pages/?search=dra").text
    assert re.findall(r'class="col-title"><a [^>]*>(.*?)<', page) == ["Draft ›"]


def test_lists_are_sorted_by_title(editor: FlaskClient) -> None:
    page = editor.get("/admin/pages/?search=&sort=0&desc=1").text
    assert re.findall(r'class="col-title"><a [^>]*>(.*?)<', page) == ["Zuhause", "Home ›"]


def test_relations_are_searched_by_title(editor: FlaskClient) -> None:
    found = editor.get("/admin/pages/ajax/lookup/?name=images&query=tr&offset=0")
    assert found.get_json() == [["1", "Tree (1)"]]
    found = editor.get("/admin/pages/ajax/lookup/?name=pages&query=draft&limit=100000")
    assert found.get_json() == [["3", "Draft (3, draft)"]]


def test_search_is_for_own_relations(editor: FlaskClient) -> None:
    assert editor.get("/admin/pages/ajax/lookup/?name=images&query=").status_code == 200
    assert editor.get("/admin/images/ajax/lookup/?name=pages&query=").status_code == 404


def test_drafts_stay_hidden_from_others(office: Office, editor: FlaskClient) -> None:
    editor.get("/admin/pages/?parent=1")
    assert office.api.ids("pages/") == [1, 4]
    assert office.api.status("pages/3/") == 404


# Forms.


def test_form_sent_unchanged_changes_nothing(office: Office, editor: FlaskClient) -> None:
    before = office.record(2)
    sent = Opened(editor, "/admin/pages/edit/?id=2").send()
    assert sent.status_code == 302, said_at(sent.text)
    assert office.record(2) == before


CHANGES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"text": "a\r\nb"}, {"text": "a\nb"}),
    ({"stars": "5"}, {"stars": 5}),
    ({"stars": ""}, {"stars": None}),
    ({"weight": "2.25"}, {"weight": 2.25}),
    ({"price": "3"}, {"price": "3.00"}),
    ({"sold": None}, {"sold": None}),
    ({"day": "2026-02-03"}, {"day": "2026-02-03"}),
    ({"hour": "07:00"}, {"hour": "07:00:00"}),
    ({"moment": "2026-02-03T04:05"}, {"moment": "2026-02-03T04:05:00Z"}),
    ({"colour": "red"}, {"colour": "red"}),
    ({"colour": ""}, {"colour": None}),
    ({"grade": "1"}, {"grade": 1}),
    ({"labels": "x,y"}, {"labels": ["x", "y"]}),
    ({"labels": ""}, {"labels": None}),
    ({"picture": "2"}, {"picture": 2}),
    ({"picture": ""}, {"picture": None}),
    ({"others": "4,3,1"}, {"others": [4, 3, 1]}),
    ({"others": ""}, {"others": None}),
    ({"parts": "[]"}, {"parts": None}),
    ({"field_data": '{"b": 1}'}, {"data": {"b": 1}}),
    ({"country": "at"}, {"country": "at"}),
    (
        {"authors-0-name": "Eve"},
        {"authors": [{**FULL["authors"][0], "name": "Eve"}, FULL["authors"][1]]},
    ),
    ({"del-authors-0": "on"}, {"authors": [FULL["authors"][1]]}),
    (
        {"authors-2-name": "Joe", "authors-2-id": "", "authors-2-wrote": ""},
        {"authors": [*FULL["authors"], {"id": 9, "name": "Joe"}]},
    ),
]


@pytest.mark.parametrize(("sent", "stored"), CHANGES, ids=lambda value: "-".join(value))
def test_fields_of_every_kind_change(
    office: Office, editor: FlaskClient, sent: dict[str, Any], stored: dict[str, Any]
) -> None:
    before = office.record(2)
    answer = Opened(editor, "/admin/pages/edit/?id=2").send(**sent)
    assert answer.status_code == 302, said_at(answer.text)
    assert office.record(2) == {k: v for k, v in {**before, **stored}.items() if v is not None}


WRONG: list[tuple[dict[str, str], str, str]] = [
    ({"stars": "many"}, "Stars", "must be an integer"),
    ({"stars": "6"}, "Stars", "Must be greater than or equal to 1 and less than or equal to 5."),
    ({"day": "tomorrow"}, "Day", "must be a date, such as 2026-01-15"),
    ({"colour": "green"}, "Colour", "Must be one of: red, blue."),
    ({"picture": "x"}, "Picture", "must be the id of an object"),
    ({"picture": "99"}, "Picture", "there is no object 99 in images"),
    ({"picture": str(10**30)}, "Picture", f"there is no object {10**30} in images"),
    ({"others": "3,98,1,97"}, "Others", "there is no object 97, 98 in pages"),
    ({"slug": "a/b"}, "Slug", "must be one part of an address, without a slash"),
    ({"slug": "d"}, "Slug", "a sibling has the slug 'd' already: page 3"),
    ({"title": ""}, "Title", "This field is required."),
    ({"web": "nowhere"}, "Web", "Not a valid URL."),
    ({"authors-1-name": "x" * 21}, "Name", "Longer than maximum length 20."),
    ({"field_data": "{"}, "Data", "must be JSON: Expecting property name"),
    ({"restriction": "login"}, "Restriction", 'must be JSON, such as {"type": "login"}: '),
    ({"restriction": '{"group": 1}'}, "Restriction", 'must have a type, as {"type": "login"}'),
]


@pytest.mark.parametrize(("sent", "label", "message"), WRONG)
def test_wrong_value_is_told_at_its_field(
    office: Office, editor: FlaskClient, sent: dict[str, str], label: str, message: str
) -> None:
    before = office.record(2)
    answer = Opened(editor, "/admin/pages/edit/?id=2").send(**sent)
    ((where, (said,)),) = said_at(answer.text).items()
    assert (where, said[: len(message)]) == (label, message)
    assert flashed(answer.text)[0] == "Nothing was saved. The fields below say what is wrong."
    if not sent.keys() & {"picture", "others"}:  # which are shown with titles
        assert form_values(answer.text).items() >= sent.items()
    assert office.record(2) == before


def test_stored_relation_to_nothing_stays(office: Office, editor: FlaskClient) -> None:
    office.change(2, picture=99, others=[3, 98])
    assert Opened(editor, "/admin/pages/edit/?id=2").send(title="Other").status_code == 302
    stored = office.record(2)
    assert (stored["title"], stored["picture"], stored["others"]) == ("Other", 99, [3, 98])


@on_memory
def test_child_relation_to_nothing_is_told(backend: str) -> None:
    office = Office(backend, [Tour])
    office.api.load(deep_content(1))
    told = Opened(office.client(), "/admin/pages/edit/?id=100").send(**{"visits-0-place": "99"})
    assert said_at(told.text) == {"Place": ["there is no object 99 in pages"]}


def test_fields_say_what_to_write(editor: FlaskClient) -> None:
    page = editor.get("/admin/pages/edit/?id=2").text
    helped = dict(
        re.findall(r'name="(\w+)"[^>]*>[^<]*</textarea>\s*<small[^>]*>(.*?)</', page, re.S)
    )
    assert {name: " ".join(text.split()) for name, text in helped.items()} == {
        "body": "HTML",
        "parts": "JSON",
        "field_data": "JSON",
        "restriction": 'JSON, such as {"type": "login"}. '
        "Hides the page and all below it from visitors.",
    }


def test_second_editor_is_told(office: Office, editor: FlaskClient) -> None:
    first, second = (Opened(editor, "/admin/pages/edit/?id=2") for _ in range(2))
    first.send(title="First", stars="1")
    told = second.send(text="Second")
    assert said_at(told.text) == {
        "Title": ["Now stored: First"],
        "Stars": ["Now stored: 1"],
        "Text": ["Now stored: one\r\ntwo"],
    }
    assert (office.record(2)["title"], office.record(2)["text"]) == ("First", "one\r\ntwo")


def test_told_editor_can_decide(office: Office, editor: FlaskClient) -> None:
    form = Opened(editor, "/admin/pages/edit/?id=2")
    office.change(2, title="Other")
    form.values = form_values(form.send(text="Mine").text)
    assert form.send(title="Both").status_code == 302
    assert (office.record(2)["title"], office.record(2)["text"]) == ("Both", "Mine")


def test_deleted_object_is_told(office: Office, editor: FlaskClient) -> None:
    form = Opened(editor, "/admin/pages/edit/?id=2")
    with office.app.app_context(), office.backend.write() as content:
        content.delete("pages", 2)
    assert "Record does not exist." in editor.get(form.send().location).text


# Adding, showing, moving and deleting.


def test_new_page_is_a_draft(office: Office, editor: FlaskClient) -> None:
    form = Opened(editor, "/admin/pages/new/?parent=5&type=notes.Note")
    assert form.values["country"] == "it"
    assert form.send(title="Neu", picture="1").location == "/admin/pages/?parent=5"
    (made,) = (r for r in office.api.dump()["pages"] if r["title"] == "Neu")
    assert made == {
        "id": made["id"],
        "type": "notes.Note",
        "parent": 5,
        "title": "Neu",
        "slug": "neu",
        "live": False,
        "locale": "de",
        "picture": 1,
    }


@pytest.mark.parametrize("parent", ["77", str(10**30)])
def test_missing_parent_is_told(office: Office, editor: FlaskClient, parent: str) -> None:
    told = Opened(editor, "/admin/pages/new/?type=notes.Folder").send(title="New", parent=parent)
    assert [*said_at(told.text)] == ["Parent"]
    assert len(office.api.dump()["pages"]) == len(CONTENT["pages"])


@pytest.mark.parametrize("path", ["new/?type=notes.Folder", "move/?id=4"])
def test_page_goes_below_another_one(office: Office, editor: FlaskClient, path: str) -> None:
    told = Opened(editor, f"/admin/pages/{path}").send(title="New", parent="")
    ((message,),) = said_at(told.text).values()
    assert message.startswith("Choose the page that ")
    assert flashed(told.text)[0] == "Nothing was saved. The fields below say what is wrong."
    assert [r["id"] for r in office.api.dump()["pages"] if "parent" not in r] == [1, 5]


def test_first_page_is_below_none(office: Office, editor: FlaskClient) -> None:
    office.api.load({})
    Opened(editor, "/admin/pages/new/?type=notes.Folder").send(title="Home")
    assert [record["title"] for record in office.api.dump()["pages"]] == ["Home"]


def test_form_of_a_new_page_says_its_type(editor: FlaskClient) -> None:
    assert "New <strong>Note</strong>" in editor.get("/admin/pages/new/?type=notes.Note").text


def test_type_is_chosen_first(editor: FlaskClient) -> None:
    page = editor.get("/admin/pages/new/?parent=1").text
    assert re.findall(r'href="(/admin/pages/new/[^"]*)">(\w+)<', page) == [
        ("/admin/pages/new/?type=notes.Folder&amp;parent=1", "Folder"),
        ("/admin/pages/new/?type=notes.Note&amp;parent=1", "Note"),
    ]


def test_saving_can_publish(office: Office, editor: FlaskClient) -> None:
    Opened(editor, "/admin/pages/edit/?id=3").send(_publish="1", title="News")
    assert office.api.json("pages/3/?fields=_,title") == {"title": "News"}


def test_publishing_waits_for_the_time(office: Office, editor: FlaskClient) -> None:
    form = Opened(editor, "/admin/pages/edit/?id=3")
    form.send(_publish="1", go_live_at="2199-01-01T00:00")
    assert office.record(3)["go_live_at"] == "2199-01-01T00:00:00Z"
    assert office.api.status("pages/3/") == 404
    assert '"col-state">scheduled' in editor.get("/admin/pages/?parent=1").text


def act(client: FlaskClient, action: str, *ids: int | str) -> None:
    """Presses a button in the list of pages."""
    page = client.get("/admin/pages/?parent=1").text
    (token, *_) = re.findall(r'name="csrf_token"[^>]* value="([^"]*)"', page)
    (url, *_) = re.findall(r'name="url" value="(.+?)"', page)
    sent = {"csrf_token": token, "action": action, "rowid": [*ids], "url": unescape(url)}
    assert "parent=1" in client.post("/admin/pages/action/", data=sent).location


def test_pages_are_published_and_unpublished(office: Office, editor: FlaskClient) -> None:
    act(editor, "publish", 3)
    assert office.api.ids("pages/?child_of=1") == [3]
    act(editor, "unpublish", 3)
    assert office.api.ids("pages/?child_of=1") == []


def test_pages_move_among_siblings(office: Office, editor: FlaskClient) -> None:
    def children() -> list[int]:
        return [r["id"] for r in office.api.dump()["pages"] if r.get("parent") == 1]

    act(editor, "up", 3)
    assert children() == [3, 2]
    act(editor, "up", 3)
    assert children() == [3, 2]
    act(editor, "down", 3)
    assert children() == [2, 3]


def translate(client: FlaskClient, id: int) -> TestResponse:
    """Presses the button that translates a page to German."""
    page = client.get(f"/admin/pages/edit/?id={id}").text
    (form,) = re.findall(r'<form[^>]*"/admin/pages/translate/".*?</form>', page, re.DOTALL)
    sent = dict(re.findall(r'name="(\w+)"[^>]* value="([^"]*)"', form))
    assert sent["locale"] == "de"
    return client.post("/admin/pages/translate/", data=sent)


def test_translation_is_a_draft_in_the_other_language(office: Office, editor: FlaskClient) -> None:
    home = translate(editor, 1).location
    new = int(translate(editor, 2).location.rpartition("=")[2])
    added = office.record(new)
    assert (added["locale"], added["live"], added["title"]) == ("de", False, "Full")
    assert home.endswith(f"={added['parent']}")
    assert added["translation_key"] == office.record(2)["translation_key"]


def test_forms_lead_to_translations(editor: FlaskClient) -> None:
    new = translate(editor, 1).location
    page = editor.get("/admin/pages/edit/?id=1").text
    assert re.findall(r'href="([^"]*)"[^>]*title="Edit the translation in de"', page) == [new]
    assert "Translate to" not in page
    assert 'title="Edit the translation in en"' in editor.get(new).text


def test_second_translator_is_told(office: Office, editor: FlaskClient) -> None:
    form = editor.get("/admin/pages/edit/?id=1").text
    (token, *_) = re.findall(r'name="csrf_token"[^>]* value="([^"]*)"', form)
    translate(office.client(), 1)
    sent = {"csrf_token": token, "id": "1", "locale": "de"}
    again = editor.post("/admin/pages/translate/", data=sent, follow_redirects=True)
    assert flashed(again.text) == ["pages 1, locale: there is one in de already"]
    before = office.api.dump()
    editor.post("/admin/pages/translate/", data={"id": "2", "locale": "de"})
    assert office.api.dump() == before


def test_page_moves_below_another(office: Office, editor: FlaskClient) -> None:
    moved = Opened(editor, "/admin/pages/move/?id=4").send(parent="1")
    assert moved.location == "/admin/pages/?parent=1"
    assert office.record(4)["parent"] == 1


def test_impossible_move_is_told(office: Office, editor: FlaskClient) -> None:
    told = Opened(editor, "/admin/pages/move/?id=3").send(parent="4")
    assert said_at(told.text) == {"Below": ["a page cannot go below itself"]}


def test_second_mover_is_told(office: Office, editor: FlaskClient) -> None:
    form = Opened(editor, "/admin/pages/move/?id=4")
    Opened(office.client(), "/admin/pages/move/?id=4").send(parent="1")
    assert "Somebody else has changed this" in flashed(form.send(parent="5").text)[0]
    assert office.record(4)["parent"] == 1


def test_page_with_pages_below_stays(office: Office, editor: FlaskClient) -> None:
    page = editor.get("/admin/pages/").text
    (token, *_) = re.findall(r'name="csrf_token"[^>]* value="([^"]*)"', page)
    for id in ("3", "4"):
        editor.post("/admin/pages/delete/", data={"csrf_token": token, "id": id})
    assert flashed(editor.get("/admin/pages/").text) == [
        "There are pages below it. Move or delete them first.",
        "Record was successfully deleted.",
    ]
    assert [r["id"] for r in office.api.dump()["pages"]] == [1, 2, 3, 5]


def test_preview_shows_a_draft(office: Office, editor: FlaskClient) -> None:
    address = editor.get("/admin/pages/preview/?id=3").location
    assert address.startswith("http://localhost/d/?preview=")
    token = address.partition("=")[2]
    assert office.api.json(f"pages/3/?fields=_,title&preview={token}") == {"title": "Draft"}


def test_preview_of_others_is_in_the_api(office: Office, editor: FlaskClient) -> None:
    address = editor.get("/admin/images/preview/?id=1").location
    assert office.api.follow(address).get_json()["title"] == "Tree"


def test_images_are_added_and_changed(office: Office, editor: FlaskClient) -> None:
    Opened(editor, "/admin/images/new/").send(title="Leaf", file="leaf.png", tags="a,b")
    assert office.record(3, "images") == {
        "id": 3,
        "type": "notes.Picture",
        "title": "Leaf",
        "file": "leaf.png",
        "tags": ["a", "b"],
    }
    Opened(editor, "/admin/images/edit/?id=3").send(title="Leaves")
    assert office.record(3, "images")["title"] == "Leaves"


def test_images_are_shown_in_their_list(editor: FlaskClient) -> None:
    page = editor.get("/admin/images/").text
    assert re.findall(r'<img src="([^"]*)"', page) == [
        f"http://localhost/media/{file}" for file in ("tree.png", "x.png")
    ]


@pytest.mark.parametrize("id", ["404", "x", str(10**30), "9" * 5000, ""])
def test_objects_that_are_not_there(editor: FlaskClient, id: str) -> None:
    for path in ("edit/", "move/", "preview/"):
        assert editor.get(f"/admin/pages/{path}?id={id}").status_code in (302, 404)
    act(editor, "up", id)
    for path in (f"?parent={id}", "?page=99999999999999999999", "?page=-2"):
        assert editor.get(f"/admin/pages/{path}").status_code in (200, 404)


class Line(ChildObject):
    count = fields.Integer(load_default=1)
    note = fields.String(load_default="it")
    self = fields.String()
    seen = fields.List(Related("pages"))


class Odd(Page):
    """Fields that forms have trouble with."""

    app_label = "notes"
    y = fields.String()
    filter_y = fields.String()
    validate_y = fields.String()
    field_y = fields.String()
    self = fields.String()
    hidden_tag = fields.String()
    data = fields.String()
    field_data = fields.String()
    url = fields.String()
    name = fields.String(required=True)
    text = fields.String()
    maybe = fields.String(load_default=None)
    agreed = fields.Boolean(required=True)
    shown = fields.Boolean(load_default=True)
    anything = fields.Raw()
    labels = Tags()
    wanted = fields.List(Related("pages"), required=True)
    lines = Children(Line)
    lines_2 = Children(Line)


NAMES = ("y", "filter_y", "validate_y", "field_y", "self", "hidden_tag", "data", "field_data")
#: Values that forms cannot show as they are.
ODD: dict[str, Any] = {
    **{name: name.upper() for name in NAMES},
    "url": "/elsewhere/",
    "title": "A\nB",
    "text": "one\rtwo\r\nthree\n",
    "name": "",
    "maybe": "",
    "agreed": False,
    "shown": False,
    "anything": {"a": 1, "b": True},
    "labels": [" a", "b "],
    "wanted": [],
    "lines": [{"id": 5, "count": 0, "self": "x", "seen": [1]}, {"id": 6}],
}


@pytest.fixture(scope="module")
def odd_office(backend: str) -> Office:
    return Office(backend, [Odd])


@pytest.fixture
def odd(odd_office: Office) -> Opened:
    """The form of a page with odd fields."""
    page = {"id": 1, "type": "notes.Odd", "slug": "odd", **ODD}
    odd_office.api.load({"pages": [page]})
    return Opened(odd_office.client(), "/admin/pages/edit/?id=1")


def test_odd_values_stay_as_they_are(odd_office: Office, odd: Opened) -> None:
    before = odd_office.record(1)
    sent = odd.send()
    assert (sent.status_code, sent.location) == (302, "/admin/pages/"), said_at(sent.text)
    assert odd_office.record(1) == before


def test_mistake_changes_no_odd_values(odd_office: Office, odd: Opened) -> None:
    before = odd_office.record(1)
    odd.values = form_values(odd.send(anything="{").text)
    assert odd.send(anything="7").status_code == 302
    assert odd_office.record(1) == {**before, "anything": 7}


@pytest.mark.parametrize(("path", "is_asked"), [("edit/?id=1", False), ("new/?parent=1", True)])
def test_browsers_ask_unless_none_is_stored(odd: Opened, path: str, is_asked: bool) -> None:
    page = odd.client.get(f"/admin/pages/{path}").text
    (tag,) = re.findall('<[^>]* name="name"[^>]*>', page)
    assert (" required" in tag) is is_asked


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        *(({name if name == "y" else f"field_{name}": "new"}, {name: "new"}) for name in NAMES),
        ({"field_url": "/x/"}, {"url": "/x/"}),
        ({"anything": '{"a": true, "b": 1}'}, {"anything": {"a": True, "b": 1}}),
        ({"anything": '{"a": 1.0, "b": true}'}, {"anything": {"a": 1.0, "b": True}}),
        ({"title": "A C"}, {"title": "A C"}),
        (
            {"lines-2-count": "0", "lines-2-id": "404"},
            {"lines": [*ODD["lines"], {"id": 7, "count": 0}]},
        ),
        ({"lines-2-id": ""}, {}),
        ({"lines-2-note": "", "lines-2-id": ""}, {"lines": [*ODD["lines"], {"id": 7, "note": ""}]}),
        (
            {"lines_2-²-count": "2", f"lines_2-{'9' * 5000}-count": "2", "lines_2-0-count": "2"},
            {"lines_2": [{"id": 7, "count": 2}]},
        ),
    ],
    ids=lambda value: "-".join(value)[:30],
)
def test_odd_fields_change(
    odd_office: Office, odd: Opened, sent: dict[str, Any], stored: dict[str, Any]
) -> None:
    before = odd_office.record(1)
    answer = odd.send(**sent)
    assert answer.status_code == 302, said_at(answer.text)
    assert repr(odd_office.record(1)) == repr({**before, **stored})


@pytest.mark.parametrize("text", ["NaN", "[1e999]", "-Infinity", "[" * 100_000])
def test_what_is_no_json_is_told(odd_office: Office, odd: Opened, text: str) -> None:
    before = odd_office.record(1)
    ((where, (said,)),) = said_at(odd.send(anything=text).text).items()
    assert (where, said[:12]) == ("Anything", "must be JSON")
    assert odd_office.record(1) == before


def test_new_object_begins_with_defaults(odd_office: Office, odd: Opened) -> None:
    new = Opened(odd.client, "/admin/pages/new/?parent=1")
    page = unescape(odd.client.get(new.path).text)
    template = page.partition('class="inline-field-template')[2]
    assert re.findall(r'name="count"[^>]*value="(.*?)"', template)[0] == "1"
    saved = new.send(title="New", name="n", wanted="1", shown=None)
    assert saved.status_code == 302, said_at(saved.text)
    record = odd_office.record(2)
    assert (record["agreed"], record["shown"]) == (False, False)


def test_ticks_stay_when_something_is_wrong(odd: Opened) -> None:
    page = odd.send(**{"del-lines-1": "on", "anything": "{"}).text
    assert re.findall(r'name="(del-lines-\d)" checked', page) == ["del-lines-1"]


def test_second_editor_reads_yes_or_no(odd_office: Office, odd: Opened) -> None:
    odd_office.change(1, agreed=True)
    told = said_at(odd.send().text)
    assert told["Agreed"] == ["Now stored: yes"]
    odd = Opened(odd.client, odd.path)
    odd_office.change(1, agreed=False)
    assert said_at(odd.send().text)["Agreed"] == ["Now stored: no"]

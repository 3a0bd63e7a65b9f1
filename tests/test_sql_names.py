"""Types, endpoints and fields with any names have tables that do not clash with others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import peewee
import pytest
from flask import Flask
from marshmallow import fields

from flask_contentapi import ChildObject, Children, ContentAPI, DeclarationError, Entry, Page, Tags
from flask_contentapi_peewee import PeeweeBackend
from tests.api import API
from tests.databases import on_databases, storage, writing
from tests.samples import page, plain
from tests.stores import fresh_address

Types = Sequence[type[Entry]]

#: Far longer than the names that databases accept, in ASCII and in other letters.
LONG, BROAD = "people_who_" + "really_" * 12 + "write", "Größen_" * 9 + "Maß"


class Part(ChildObject):
    app_label = "app"
    name = fields.String()
    search_fields = ["name"]
    api_fields = ["name"]


class Words(Page):
    app_label = "app"
    text = fields.String()
    search_fields = ["title", "text"]
    api_fields = ["text"]


class Story(Page):
    app_label = "app"
    words = Tags()
    Parts = Children(Part)
    search_fields = ["title", "words"]
    api_fields = ["words", "Parts"]


class Person(Entry):
    app_label = "app"
    endpoint = "People"
    Name = fields.String()
    Tags = Tags()
    search_fields = ["Name"]
    api_fields = ["Name", "Tags"]


class Writer(Entry):
    app_label = "app"
    endpoint = LONG
    name = fields.String()
    notes = Tags()
    parts = Children(Part)
    search_fields = ["name", "parts"]
    api_fields = ["name", "notes", "parts"]


class Scale(Entry):
    app_label = "app"
    endpoint = BROAD
    name = fields.String()
    search_fields = ["name"]
    api_fields = ["name"]


def content() -> dict[str, list[Any]]:
    return {
        "pages": [
            plain(1, slug="home"),
            page(2, 1, type="app.Words", text="storm"),
            page(3, 1, type="app.Story", words=["owl"], Parts=[{"id": 1, "name": "end"}]),
        ],
        "People": [{"id": 1, "Name": "Ada", "Tags": ["math"]}, {"id": 2, "Name": "Bo"}],
        LONG: [{"id": 1, "name": "Cy", "notes": ["sea"], "parts": [{"id": 2, "name": "end"}]}],
        BROAD: [{"id": 1, "name": "Deer"}],
    }


#: Requests, and the ids in their answers.
FOUND = {
    "pages/?search=storm": [2],
    "pages/?search=owl": [3],
    "pages/?type=app.Words&text=storm": [2],
    "pages/?type=app.Story&words=owl": [3],
    "People/?search=ada": [1],
    "People/?Name=Bo&order=-Name": [2],
    "People/?Tags=math": [1],
    f"{LONG}/?search=end": [1],
    f"{LONG}/?name=Cy&notes=sea&order=name": [1],
    f"{BROAD}/?search=deer": [1],
    f"{BROAD}/?name=Deer": [1],
}
TYPES = [Words, Story, Person, Writer, Scale]


def site_at(address: str, types: Types) -> API:
    app = Flask("site")
    app.config.update({"TESTING": True, "CMSAPI_BACKEND": address})
    ContentAPI(app, types=list(types))
    return API(app)


def stored_at(address: str, types: Types = TYPES) -> API:
    api = site_at(address, types)
    api.backend.create()
    api.load(content())
    return api


@pytest.fixture(scope="module")
def address(backend: str) -> str:
    return fresh_address(backend)


@pytest.fixture
def api(address: str) -> API:
    return stored_at(address)


def found(api: API) -> dict[str, list[int]]:
    return {path: api.ids(path) for path in FOUND}


@on_databases
def test_what_is_loaded_is_found(api: API) -> None:
    assert found(api) == FOUND


@on_databases
def test_what_is_loaded_again_is_found(api: API) -> None:
    api.load(content())
    assert found(api) == FOUND


@on_databases
def test_what_is_loaded_is_dumped(api: API, backend: str) -> None:
    assert api.dump() == stored_at("memory").dump()


@on_databases
def test_what_is_changed_is_found(api: API) -> None:
    with writing(api) as writer:
        writer.update("pages", 2, text="calm")
        writer.update("pages", 3, words=["jay"], Parts=[])
        writer.update("People", 1, Name="Eve", Tags=["art"])
        writer.update(LONG, 1, name="Flo", notes=["hill"], parts=[{"name": "start"}])
        writer.add(BROAD, {"name": "Elk"})
    assert {path: api.ids(path) for path in CHANGED} == CHANGED


#: The same after a change.
CHANGED = {
    "pages/?search=storm": [],
    "pages/?search=calm": [2],
    "pages/?search=jay": [3],
    "pages/?type=app.Story&words=jay": [3],
    "People/?search=eve": [1],
    "People/?Tags=art": [1],
    f"{LONG}/?search=end": [],
    f"{LONG}/?search=start": [1],
    f"{LONG}/?notes=hill": [1],
    f"{BROAD}/?search=elk": [2],
}


@on_databases
def test_what_is_taken_away_is_gone(api: API) -> None:
    with writing(api) as writer:
        writer.delete("pages", 1, descendants=True)
        for endpoint, number in (("People", 1), ("People", 2), (LONG, 1), (BROAD, 1)):
            writer.delete(endpoint, number)
    assert not any(found(api).values())


# Migrating.


@pytest.mark.slow
@on_databases
def test_what_is_not_declared_for_a_while_is_found_again(backend: str) -> None:
    address = fresh_address(backend)
    stored_at(address)
    site_at(address, [Page]).backend.migrate()
    api = site_at(address, TYPES)
    api.backend.migrate()
    assert found(api) == FOUND


@pytest.mark.slow
@on_databases
def test_what_is_loaded_while_types_are_gone_is_all_that_is_found(backend: str) -> None:
    address = fresh_address(backend)
    stored_at(address)
    gone = site_at(address, [Page])
    gone.backend.migrate()
    gone.load({"pages": content()["pages"]})
    api = site_at(address, TYPES)
    api.backend.migrate()
    pages = {path: ids if path.startswith("pages") else [] for path, ids in FOUND.items()}
    assert found(api) == pages


@pytest.mark.slow
@on_databases
def test_what_is_loaded_after_types_have_come_is_found(backend: str) -> None:
    address = fresh_address(backend)
    site_at(address, [Page]).backend.create()
    api = site_at(address, TYPES)
    api.backend.migrate()
    api.load(content())
    assert found(api) == FOUND


class Note(Entry):
    app_label = "app"
    endpoint = LONG
    number = fields.Integer()
    first, further = Tags(), Tags()
    second = Children(Part)
    third = fields.String()
    api_fields = ["number", "first", "second", "third"]


class Letter(Entry):
    app_label = "app"
    endpoint = LONG
    number = fields.Integer()
    first, further = Children(Part), Children(Part)
    second = Tags()
    third = Tags()
    api_fields = ["number", "first", "second", "third"]


Letter.__name__ = "Note"


@pytest.mark.slow
@on_databases
def test_fields_of_a_long_endpoint_become_others_and_again_what_they_were(backend: str) -> None:
    address = fresh_address(backend)
    site_at(address, [Note]).backend.create()
    site_at(address, [Note]).load({LONG: [{"id": 1, "number": 7}]})
    for declared in (Letter, Note, Letter, Note):
        api = site_at(address, [declared])
        api.backend.migrate()
        fresh = site_at(fresh_address(backend), [declared])
        fresh.backend.create()
        assert api.ids(f"{LONG}/?number=7") == [1]
        assert missing(indexes(fresh), indexes(api)) == []


def indexes(api: API) -> dict[str, set[str]]:
    """The indexes that are not unique, by table, except those of tables of words."""
    tables, database = storage(api).tables, storage(api).engine.database
    with database.connection_context():
        return {
            name: {index.name for index in database.get_indexes(name) if not index.unique}
            for name in {*tables.names} - {*tables.words}
        }


def missing(wanted: dict[str, set[str]], there: dict[str, set[str]]) -> list[str]:
    return [index for table, indexes in wanted.items() for index in indexes - there[table]]


# Refused names.


class Lower(Entry):
    app_label = "app"
    endpoint = "people"


def refusal(*types: Any) -> str:
    """The message of the error that refuses some types."""
    backend = PeeweeBackend.on(peewee.SqliteDatabase(":memory:"))
    with pytest.raises(DeclarationError) as raised:
        ContentAPI(Flask("site"), types=types, backend=backend)
    return str(raised.value)


@pytest.mark.parametrize("name", ["ctid", "x" * 61, "Wind"])
def test_what_is_no_name_of_a_column_is_refused(name: str) -> None:
    columns = {"wind": fields.String(), name: fields.String(), "api_fields": ["wind", name]}
    assert f"{name!r}" in refusal(type("Odd", (Page,), {"app_label": "app", **columns}))


def test_what_would_have_one_name_is_refused() -> None:
    assert "contentapi_people would be the name of 2 tables" in refusal(Person, Lower)

"""The index and the description of the API; that answers fit it, every test of answers checks."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import Enum
from typing import Any

import jsonschema_rs
import pytest
from flask import Flask
from marshmallow import Schema, fields, validate
from openapi_spec_validator import validate as validate_document

from flask_contentapi import APIField, ContentAPI, Page, Related
from flask_contentapi.openapi import describe
from flask_contentapi.parameters import Parameters
from tests.api import API
from tests.conftest import MakeAPI
from tests.description import UNSEEN, description_of
from tests.samples import page
from tests.stores import on_memory

pytestmark = on_memory


@pytest.fixture(scope="module")
def document(reference: API) -> Any:
    return reference.json("openapi.json")


def schema_of(document: Any, name: str) -> Any:
    return document["components"]["schemas"][name]


def parameters_of(document: Any, path: str) -> dict[str, Any]:
    return {p["name"]: p for p in document["paths"][path]["get"]["parameters"]}


# The index.


def test_index_names_endpoints_and_types(reference: API) -> None:
    images = reference.json("")["endpoints"]["images"]
    assert images == {"url": "http://localhost/api/v2/images/", "types": ["media.Picture"]}


def test_index_leads_to_the_description(reference: API) -> None:
    address = reference.json("")["openapi_url"]
    assert reference.follow(address).get_json()["openapi"] == "3.1.0"


def test_index_names_languages_and_site(reference: API) -> None:
    index = reference.at("localhost:8001").json("")
    assert index["locales"] == ["en", "fr", "pt-br"]
    assert index["site"]["port"] == 8001


def test_index_needs_no_site(make_api: MakeAPI) -> None:
    site = {"hostname": "a.example", "root_page": 1}
    api = make_api({"sites": [site], "pages": [page(1)]})
    assert api.at("b.example").json("")["site"] is None


def test_index_is_known_by_its_tag(reference: API) -> None:
    tag = reference.get("").headers["ETag"]
    assert reference.get("", headers={"If-None-Match": tag}).status_code == 304


@pytest.mark.parametrize("path", ["", "openapi.json"])
def test_they_are_answered_without_a_body(reference: API, path: str) -> None:
    response = reference.get(path, method="HEAD")
    assert (response.status_code, response.data) == (200, b"")


@pytest.mark.parametrize("path", ["", "openapi.json"])
def test_they_are_only_read(reference: API, path: str) -> None:
    assert reference.get(path, method="POST").status_code == 405


# The document.


def test_validator_finds_nothing(document: Any) -> None:
    validate_document(document)


def test_description_is_known_by_its_tag(reference: API) -> None:
    tag = reference.get("openapi.json").headers["ETag"]
    response = reference.get("openapi.json", headers={"If-None-Match": tag})
    assert (response.status_code, response.data) == (304, b"")


def test_description_is_kept_as_long_as_configured(make_api: MakeAPI) -> None:
    api = make_api(config={"CMSAPI_CACHE_MAX_AGE": 60})
    assert api.get("openapi.json").headers["Cache-Control"] == "public, max-age=60"


def test_description_has_nothing_of_some_settings(reference: API) -> None:
    (state,) = reference.app.extensions["contentapi"].values()
    types = state.registry.endpoints
    every = (state.settings, replace(state.settings, **UNSEEN))
    first, second = (describe("", Parameters(types, own, True)) for own in every)
    assert first == second


def test_description_needs_no_storage(make_api: MakeAPI) -> None:
    api = make_api()
    api.backend.reader = None  # type: ignore[method-assign, assignment]
    assert api.status("openapi.json") == 200


def test_servers_are_where_the_request_came(reference: API) -> None:
    servers = reference.at("intranet.example").json("openapi.json")["servers"]
    assert servers == [{"url": "http://intranet.example/api/v2"}]


def test_the_command_writes_the_same(reference: API, document: Any) -> None:
    result = reference.app.test_cli_runner().invoke(args=["contentapi", "openapi"])
    assert json.loads(result.output) == {**document, "servers": [{"url": "/api/v2"}]}


def test_every_view_is_described(reference: API, document: Any) -> None:
    rules = {rule.rule for rule in reference.app.url_map.iter_rules()}
    paths = {f"/api/v2{path.replace('{id}', '<id>')}" for path in document["paths"]}
    assert rules - paths == {"/api/v2/<path:path>", "/static/<path:filename>"}


def test_defaults_of_lists_are_required(document: Any) -> None:
    assert schema_of(document, "events.EventPage")["required"] == ["id", "meta", "title"]
    wanted = ["detail_url", "first_published_at", "html_url", "slug", "type"]
    assert schema_of(document, "events.EventPage.Meta")["required"] == wanted


def test_nothing_else_is_required(document: Any) -> None:
    assert "required" not in schema_of(document, "pages.Selected")


def test_types_are_told_apart(document: Any) -> None:
    told = schema_of(document, "pages.Item")["discriminator"]
    assert told["propertyName"] == "meta.type"
    assert told["mapping"]["blog.BlogPage"] == "#/components/schemas/blog.BlogPage"


def test_a_type_has_its_own_label(document: Any) -> None:
    meta = schema_of(document, "blog.BlogPage.Meta")["properties"]
    assert meta["type"] == {"type": "string", "enum": ["blog.BlogPage"]}


def test_what_can_be_missing_can_be_null(document: Any) -> None:
    properties = schema_of(document, "events.EventPage")["properties"]
    assert properties["capacity"] == {"type": ["integer", "null"]}
    assert properties["venue"] == {"type": "string"}


def test_parameters_of_types_are_described(document: Any) -> None:
    capacity = parameters_of(document, "/pages/")["capacity"]
    assert capacity["schema"] == {"type": "integer"}
    assert "type=events.EventPage" in capacity["description"]


def test_limits_are_described(document: Any) -> None:
    limit = parameters_of(document, "/images/")["limit"]
    assert limit["schema"] == {"type": "integer", "minimum": 0, "maximum": 20}


def test_a_setting_takes_parameters_away(make_api: MakeAPI) -> None:
    api = make_api(config={"CMSAPI_SEARCH_ENABLED": False})
    assert "search" not in parameters_of(api.json("openapi.json"), "/pages/")


def test_every_parameter_has_a_purpose(document: Any) -> None:
    names = parameters_of(document, "/pages/")
    named = [p for p in names.values() if p["in"] == "query"]
    assert [p["name"] for p in named if not p["description"]] == []


def examples_in(value: Any) -> Iterator[tuple[Mapping[str, Any], Any]]:
    """The examples in a document, each with its schema."""
    if isinstance(value, dict):
        if "example" in value:
            yield value["schema"], value["example"]
        for example in value["examples"] if isinstance(value.get("examples"), list) else ():
            yield value, example
    for inner in value.values() if isinstance(value, dict) else value:
        if isinstance(inner, dict | list):
            yield from examples_in(inner)


def test_examples_fit_their_schemas(document: Any) -> None:
    components = document["components"]
    checked = [*examples_in(document)]
    for schema, example in checked:
        jsonschema_rs.validate({**schema, "components": components}, example)
    assert len(checked) > 100


# What fields write.


class Colour(Enum):
    RED = 1


class Loud(fields.String):
    """A site's own, of which nothing is known."""

    def _serialize(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        return [value]


class Link(Schema):
    url = fields.Url(required=True)
    label = fields.String(allow_none=True)


class Every(Page):
    """Fields whose answers differ from what they load, or are limited."""

    app_label = "lab"
    colour = fields.Enum(Colour)
    mood = fields.String(validate=validate.OneOf(["calm", "wild"]))
    level = fields.Integer(validate=validate.Range(1, 9))
    size = fields.Integer(required=True, validate=validate.Range(1, 9))
    money = fields.Decimal(places=2)
    day = fields.Date(format="%d.%m.%Y")
    mail = fields.Email()
    loud = Loud()
    links = fields.List(fields.Nested(Link))
    sizes = fields.Dict(fields.String(), fields.Integer())
    near = Related("pages")
    always = Related("pages", shown="_,title")
    own = ("colour", "mood", "level", "size", "money", "mail", "loud", "links", "sizes", "near")
    api_fields = [
        *own,
        "always",
        APIField("date", fields.Date(format="%d.%m.%Y"), source="day"),
        APIField("length", fields.Function(len, metadata={"type": "integer"})),
        APIField("anything", fields.Function(lambda page: page.title)),
    ]


WRITTEN: Mapping[str, Any] = {
    "colour": {"anyOf": [{"type": "string", "enum": ["RED"]}, {"type": "null"}]},
    "mood": {"anyOf": [{"type": "string", "enum": ["calm", "wild"]}, {"enum": [""]}]},
    "level": {"type": ["integer", "null"], "minimum": 1, "maximum": 9},
    "size": {"type": "integer", "minimum": 1, "maximum": 9},
    "money": {"type": ["string", "null"], "format": "decimal"},
    "mail": {"anyOf": [{"type": "string", "format": "email"}, {"enum": [""]}]},
    "loud": {},
    "near": {"anyOf": [{"$ref": "#/components/schemas/pages.Selected"}, {"type": "null"}]},
    "date": {"type": ["string", "null"]},
    "length": {"type": "integer"},
    "anything": {},
}


@pytest.fixture(scope="module")
def own(make_api: MakeAPI) -> API:
    given: dict[str, Any] = {"colour": "RED", "mood": "wild", "money": "1.5", "day": "2026-01-02"}
    given |= {"links": [{"url": "https://a.example", "label": None}], "sizes": {"a": 1}, "near": 1}
    pages = [page(1, type="lab.Every", size=2), page(2, 1, type="lab.Every", size=2, **given)]
    return make_api({"pages": pages}, types=[Every])


@pytest.mark.parametrize(("name", "schema"), WRITTEN.items())
def test_fields_are_described_as_they_write(own: API, name: str, schema: Any) -> None:
    properties = schema_of(own.json("openapi.json"), "lab.Every")["properties"]
    assert properties[name] == schema


def test_what_is_always_shown_is_required(own: API) -> None:
    value = schema_of(own.json("openapi.json"), "lab.Every")["properties"]["always"]
    always, missing = value["anyOf"]
    assert missing == {"type": "null"}
    assert always["required"] == ["title"]
    assert [*always["properties"]] == ["title"]


def test_their_answers_fit(own: API) -> None:
    assert own.total("pages/?type=lab.Every&fields=*,-length") == 2


def test_what_does_not_fit_is_noticed(own: API) -> None:
    response = own.get("pages/2/?fields=_,size")
    (state,) = own.app.extensions["contentapi"].values()
    known = description_of(own.app, state)
    response.set_data('{"size": "2"}')
    with pytest.raises(AssertionError):
        known.check("pages_detail", response)


def test_a_wide_type_is_described_at_once() -> None:
    names = [f"field_{number}" for number in range(40)]
    body = {name: fields.Integer() for name in names}
    wide = type("Wide", (Page,), {**body, "app_label": "lab", "api_fields": names})
    app = Flask("site")
    ContentAPI(app, types=[wide])
    client = app.test_client()
    before = time.process_time()
    assert client.get("/api/v2/openapi.json").status_code == 200
    assert time.process_time() - before < 1


def test_a_description_is_kept(make_api: MakeAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    api = make_api()
    first = api.get("openapi.json").data
    monkeypatch.setattr("flask_contentapi.index.describe", None)
    assert api.get("openapi.json").data == first

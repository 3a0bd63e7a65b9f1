"""Compiled plans produce the same bytes as marshmallow, for every type and selection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from flask import Flask, request
from hypothesis import given, note
from hypothesis import strategies as st

from flask_contentapi import Entry, Page, Related
from flask_contentapi.answers import Item, Planner, View
from flask_contentapi.declarations import Export, ObjectType
from flask_contentapi.query import Query
from flask_contentapi.schemas import AnswerSchema, Schemas
from flask_contentapi.selection import parse_fields
from flask_contentapi.sources import Context
from flask_contentapi.state import State
from flask_contentapi.views import Responder, identify_viewer, json_response
from tests.conftest import MakeApp
from tests.samples import image, page, private
from tests.test_types import BODY, FIELDS, PEOPLE, STORY, Every, Gallery, Person, Story, Teaser

# Selections.


@dataclass
class Chosen:
    """One level of ``fields``: its text, and the keys that it selects.

    :param text: the text as a client would write it.
    :param keys: the keys, each with what is selected of the object in it.
    """

    text: str
    keys: dict[str, Chosen | None] = field(default_factory=dict)


def shown(declared: ObjectType, view: View) -> dict[str, Export]:
    """The keys that are available in a view."""
    hidden = declared.detail_only if view != "detail" else ()
    return {name: export for name, export in declared.exports.items() if name not in hidden}


def defaults(declared: ObjectType, view: View) -> set[str]:
    """The keys that are shown without ``fields``."""
    content_class = declared.content_class
    if not issubclass(content_class, Entry):
        return set(declared.exports)
    if view == "detail":
        return set(declared.exports) - set(content_class.i18n_default_fields)
    if view == "nested":
        return set(content_class.nested_default_fields)
    return set(content_class.listing_default_fields)


@st.composite
def selections(draw: st.DrawFn, declared: ObjectType, view: View, depth: int = 2) -> Chosen:
    """Valid selections."""
    available = shown(declared, view)
    base = draw(st.sampled_from(["", "*", "_"]))
    mentioned = draw(st.lists(st.sampled_from(list(available)), unique=True, max_size=6))
    names = {"*": set(available), "_": set(), "": defaults(declared, view)}[base]
    parts, inner = [base] if base else [], {}
    for name in mentioned:
        nested = available[name].nested
        if nested is not None and depth and draw(st.booleans()):
            inner[name] = draw(selections(nested, "nested", depth - 1))
            parts.append(f"{name}({inner[name].text})" if inner[name].text else name)
            names.add(name)
        elif base != "_" and draw(st.booleans()):
            parts.append(f"-{name}")
            names.discard(name)
        elif base != "*":
            parts.append(name)
            names.add(name)
    keys = {name: inner.get(name) or plain(available[name]) for name in available if name in names}
    # "*" includes keys with brackets; next to it, keys without brackets are not allowed.
    text = ",".join(part for part in parts if base != "*" or part[0] in "*-" or "(" in part)
    return Chosen(text, keys)


def plain(export: Export) -> Chosen | None:
    """The selection of a key without brackets."""
    if export.nested is None:
        return None
    names = defaults(export.nested, "nested")
    keys = {name: plain(e) for name, e in shown(export.nested, "nested").items() if name in names}
    return Chosen("", keys)


# The same with marshmallow.


def options(declared: ObjectType, chosen: Chosen, before: str = "") -> tuple[list[str], list[str]]:
    """The arguments ``only`` and ``exclude`` of a schema, for a selection."""
    only, exclude = [], []
    for name, inner in in_order(declared, chosen):
        export = declared.exports[name]
        path = f"{before}meta.{name}" if export.in_meta else f"{before}{name}"
        nested = export.nested
        if nested is None or inner is None:
            only.append(path)
        elif inner.keys:
            below = options(nested, inner, f"{path}.")
            only += below[0]
            exclude += below[1]
        else:
            # "only" cannot express that an object is shown without any keys.
            only.append(path)
            exclude += [f"{path}.{key}" for key in Schemas().of(nested)._declared_fields]
    return only, exclude


def in_order(declared: ObjectType, chosen: Chosen) -> list[tuple[str, Chosen | None]]:
    """The selected keys in the order of answers, with those in ``meta`` after the id."""
    order = {name: place for place, name in enumerate(declared.exports)}
    at = {
        name: (1 if declared.exports[name].in_meta else 0 if name == "id" else 2) for name in order
    }
    return sorted(chosen.keys.items(), key=lambda key: (at[key[0]], order[key[0]]))


# The sites.


class Shown(Page):
    """Relations that are always shown in one form."""

    app_label = "lab"
    all = Related("people", shown="*")
    fewer = Related("people", shown="-name,born")
    deep = Related("people", shown="_,name,boss(_,home),teams(lead(born))")
    nothing = Related("images", shown="_")
    api_fields = ["all", "fewer", "deep", "nothing"]


OWN: Mapping[str, Any] = {
    **PEOPLE,
    "images": [image(1, tags=["b", "a"]), image(2, collection=1)],
    "pages": [
        {**STORY, "parent": None},
        page(2, 1, type="lab.Every", **{name: value for name, (_, value, _) in FIELDS.items()}),
        page(3, 1, type="lab.Every"),
        page(4, 1, type="lab.Gallery", body=BODY, alias_of=1),
        page(5, 1, type="lab.Teaser", target=4, near=2),
        page(6, 1, type="lab.Teaser", target=7),
        page(7, 1, type="lab.Gallery", restriction=private()),
        page(8, 1, type="gone.Type"),
        page(9, 1, type="lab.Shown", all=1, fewer=1, deep=1, nothing=1),
    ],
}
TYPES = (Every, Gallery, Person, Shown, Story, Teaser)


@pytest.fixture(scope="module", params=["reference site", "own types"])
def site(
    request: pytest.FixtureRequest, make_app: MakeApp, reference_content: Mapping[str, Any]
) -> Flask:
    if request.param == "own types":
        return make_app(OWN, types=TYPES)
    return make_app(reference_content)


def types_of(state: State) -> list[ObjectType]:
    """All served types, including the base types of the endpoints."""
    endpoints = state.registry.endpoints.values()
    return [t for end in endpoints for t in dict.fromkeys((end.base, *end.types.values()))]


def both(state: State, declared: ObjectType, view: View, chosen: Chosen) -> tuple[bytes, bytes]:
    """All objects of a type, as written by the plan and by the schema."""
    plan = Planner(state.registry.endpoints.values(), i18n=False).plan(
        declared, view, parse_fields(chosen.text)
    )
    endpoint = declared.served_at
    only, exclude = options(declared, chosen)
    schema: AnswerSchema = Schemas().of(declared)(only=only, exclude=exclude)
    with state.backend.reader() as reader:
        responder = Responder(request, state, endpoint, reader, identify_viewer(state, reader), "")
        labels = None if declared is endpoint.base else declared.types
        query = Query(endpoint.name, plan.columns, responder.viewer, types=labels)
        rows = reader.select(query).rows
        related = plan.look_up(rows, reader, responder.addresses, responder.viewer, responder.scope)
        context = Context(responder.addresses, related)
        build = plan.bind(context)
        compiled = [build(row) for row in rows]
        dumped = schema.dump([Item(plan, row, context) for row in rows], many=True)
    return json_response(compiled).data, json_response(dumped).data


@given(data=st.data())
@pytest.mark.parametrize("view", ["list", "detail"])
def test_a_plan_writes_what_the_schema_dumps(site: Flask, view: View, data: st.DataObject) -> None:
    (state,) = site.extensions["contentapi"].values()
    declared = data.draw(st.sampled_from(types_of(state)), label="type")
    chosen = data.draw(selections(declared, view), label="fields")
    note(chosen.text)
    with site.test_request_context():
        compiled, dumped = both(state, declared, view, chosen)
    assert compiled == dumped


@pytest.mark.parametrize("view", ["list", "detail"])
@pytest.mark.parametrize("text", ["", "*", "_"])
def test_whole_objects_are_what_the_schema_dumps(site: Flask, view: View, text: str) -> None:
    (state,) = site.extensions["contentapi"].values()
    with site.test_request_context():
        for declared in types_of(state):
            available = shown(declared, view)
            names = {"*": set(available), "_": set(), "": defaults(declared, view)}[text]
            keys = {name: plain(export) for name, export in available.items() if name in names}
            compiled, dumped = both(state, declared, view, Chosen(text, keys))
            assert compiled == dumped
            # The recorded content has no objects of these.
            empty = ("wagtailcore", "flask_", "guide")
            assert compiled != b"[]" or declared.label.startswith(empty)

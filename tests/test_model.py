"""Every backend finds what a slow, obvious model finds in random content."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st
from werkzeug.datastructures import MultiDict
from werkzeug.test import TestResponse

from tests.api import API
from tests.generated import (
    DECLARED,
    FORMER,
    NOW,
    RULES,
    can_view,
    clock,
    contents,
    headers,
    requests,
)
from tests.model import MANY, RELATIONS, SECTIONS, TYPES, Model, Request, kinds_of, normal
from tests.sites import make_site
from tests.stores import DATABASES

#: How many requests are sent for each content.
PER_CONTENT = 10

Content = dict[str, list[Any]]
#: A site with internationalisation off, and one with it on. Each example loads its own content.
Pair = tuple[API, API]


def make_pair(backend: str) -> Pair:
    """The two sites with a backend."""
    off, on = (
        make_site(
            backend,
            types=DECLARED,
            config={"CMS_I18N_ENABLED": i18n, "SECRET_KEY": "owl"},
            can_view=can_view,
            clock=clock,
        )
        for i18n in (False, True)
    )
    return API(off), API(on)


@pytest.fixture(scope="module")
def pair(backend: str) -> Pair:
    return make_pair(backend)


def ask(api: API, wanted: Request, path: str = "", **query: Any) -> TestResponse:
    """The answer to a request for a list, or to another path for the same viewer."""
    given = list(query.items()) if path else wanted.parameters()
    if wanted.previewed is not None:
        (state,) = api.app.extensions["contentapi"].values()
        with api.app.test_request_context(headers=headers(wanted)):
            given.append(("preview", state.previews.write(wanted.previewed, 60, None)))
    return api.get(
        f"{wanted.section}/{path}",
        query_string=MultiDict(given),
        base_url=f"http://{wanted.host}/",
        headers=headers(wanted),
    )


@given(data=st.data(), content=contents(), i18n=st.booleans())
def test_lists_find_what_the_model_finds(
    pair: Pair, data: st.DataObject, content: Content, i18n: bool
) -> None:
    api, model = pair[i18n], Model(content, i18n)
    api.load(content)
    for _ in range(PER_CONTENT):
        wanted = data.draw(requests(content, i18n))
        check(ask(api, wanted), wanted, model)


def check(response: TestResponse, wanted: Request, model: Model) -> None:
    """Compares an answer with that of the model."""
    note(response.text[:2000])
    expected = model.answer(wanted)
    if isinstance(expected, int):
        assert response.status_code == expected
        return
    assert response.status_code == 200
    body = response.get_json()
    ids = [item["id"] for item in body["items"]]
    assert body["meta"]["total_count"] == len(expected.matching)
    kinds = {**kinds_of(wanted.section, wanted.types), "type": "type"}
    for name in wanted.facets:
        found = [(entry["value"], entry["count"]) for entry in body["meta"]["facets"][name]]
        kind = "text" if kinds[name] == "tags" else kinds[name]
        counted = [(normal(kind, value), count) for value, count in found]
        assert counted == model.facet(wanted, expected.matching, name)
    if wanted.shuffled:
        assert len(ids) == len(set(ids)) == len(expected.ids)
        assert {*ids} <= {*expected.matching}
    else:
        assert ids == expected.ids


@given(data=st.data(), content=contents(), i18n=st.booleans())
def test_single_objects_are_there_for_whom_the_model_says(
    pair: Pair, data: st.DataObject, content: Content, i18n: bool
) -> None:
    api, model = pair[i18n], Model(content, i18n)
    api.load(content)
    wanted = data.draw(requests(content, i18n))
    site = {} if wanted.site is None else {"site": wanted.site}
    for section in SECTIONS:
        wanted = replace(wanted, section=section)
        for id in [*model.records[section], 99]:
            ways = ",ancestors,children,translations" if section == "pages" else ""
            response = ask(api, wanted, f"{id}/", **site, fields=f"*{ways}")
            assert response.status_code == model.detail(wanted, id)
            if response.status_code == 200:
                check_relations(response.get_json(), model, wanted, id)


def check_relations(item: dict[str, Any], model: Model, wanted: Request, id: int) -> None:
    """Compares the related objects that an object shows with the model."""
    record = model.records[wanted.section][id]
    kinds = {**kinds_of(wanted.section, None), **TYPES.get(record.get("type", ""), {})}
    for name, kind in kinds.items():
        if kind in RELATIONS:
            shown = item["meta"]["alias_of"] if name == "alias_of" else item[name]
            assert (shown and shown["id"]) == model.value(wanted, kind, record, name)
        if kind.startswith(MANY):
            ids = [other["id"] for other in item[name]]
            assert ids == model.value(wanted, kind, record, name)
    for entry, part in zip(item.get("parts", ()), record.get("parts") or (), strict=True):
        picture = model.value(wanted, "images", part, "picture")
        assert (entry["picture"] and entry["picture"]["id"]) == picture
        pictures = model.value(wanted, "many images", part, "pictures")
        assert [other["id"] for other in entry["pictures"]] == pictures
    if wanted.section == "pages":
        for name, pages in model.ways(wanted, id).items():
            assert [page["id"] for page in item["meta"][name]] == pages
        parent = record.get("parent")
        plain = replace(wanted, previewed=None)
        shown = parent if parent is not None and model.detail(plain, parent) == 200 else None
        assert (item["meta"]["parent"] and item["meta"]["parent"]["id"]) == shown


@given(data=st.data(), content=contents(), i18n=st.booleans())
def test_paths_lead_where_the_model_says(
    pair: Pair, data: st.DataObject, content: Content, i18n: bool
) -> None:
    api, model = pair[i18n], Model(content, i18n)
    api.load(content)
    wanted = replace(data.draw(requests(content, i18n)), section="pages", previewed=None)
    asked = {"site": wanted.site, "locale": wanted.locale}
    query = {name: value for name, value in asked.items() if value is not None}
    for page in model.pages:
        chain = [page, *model.above(page)]
        slugs = [model.records["pages"][id]["slug"] for id in reversed(chain)]
        for start in range(len(slugs) + 1):
            path = "/".join(slugs[start:])
            response = ask(api, wanted, "find/", html_path=path, **query)
            found = model.find(wanted, path)
            assert (response.status_code == 302) == (found is not None)
            assert f"/pages/{found}/" in response.headers.get("Location", "/pages/None/")


@given(data=st.data(), content=contents(), i18n=st.booleans())
def test_former_paths_lead_where_the_model_says(
    pair: Pair, data: st.DataObject, content: Content, i18n: bool
) -> None:
    api, model = pair[i18n], Model(content, i18n)
    api.load(content)
    wanted = replace(data.draw(requests(content, i18n)), section="redirects", previewed=None)
    site = {} if wanted.site is None else {"site": wanted.site}
    for path in (*FORMER, "/a?none=1", ""):
        response = ask(api, wanted, "find/", html_path=path, **site)
        found = model.moved(wanted, path)
        assert (response.status_code == 302) == (found is not None)
        assert f"/redirects/{found}/" in response.headers.get("Location", "/redirects/None/")


#: A request by a viewer who may pass all restrictions.
ALLOWED = Request("pages", "a.example", frozenset(RULES), NOW)


def everything(api: API) -> list[bytes]:
    """All answers that together show the whole content."""
    records = api.dump()
    return [
        ask(api, replace(ALLOWED, section=section), path, fields="*").data
        for section in SECTIONS
        for path in ("", *(f"{record['id']}/" for record in records.get(section, ())))
    ]


@given(content=contents())
def test_content_is_the_same_after_a_dump_and_a_load(pair: Pair, content: Content) -> None:
    api = pair[True]
    api.load(content)
    records, before = api.dump(), everything(api)
    for section in SECTIONS:
        assert {r["id"] for r in records.get(section, ())} == {r["id"] for r in content[section]}
    api.load(records)
    assert api.dump() == records
    assert everything(api) == before


@pytest.fixture(scope="module")
def pairs(pair: Pair) -> tuple[Pair, Pair]:
    """The two sites in memory, and with another backend."""
    return make_pair("memory"), pair


@pytest.mark.backends("jsonfiles", *DATABASES)
@given(data=st.data(), content=contents(), i18n=st.booleans())
def test_all_backends_answer_with_the_same_bytes(
    pairs: tuple[Pair, Pair], data: st.DataObject, content: Content, i18n: bool
) -> None:
    first, second = (pair[i18n] for pair in pairs)
    first.load(content)
    second.load(content)
    assert first.dump() == second.dump()
    for _ in range(PER_CONTENT):
        wanted = data.draw(requests(content, i18n))
        answers = [ask(api, wanted) for api in (first, second)]
        if wanted.shuffled:
            assert len({answer.status_code for answer in answers}) == 1
        else:
            assert answers[0].data == answers[1].data

"""Databases whose types change: nothing stored is lost, and all backends agree."""

from __future__ import annotations

import enum
import os
import random
from collections.abc import Sequence
from typing import Any

import pytest
from flask import Flask
from marshmallow import fields, validate

from flask_contentapi import (
    BackendUnavailable,
    ChildObject,
    Children,
    ContentAPI,
    ContentError,
    Entry,
    Image,
    Page,
    Related,
    Tags,
)
from tests.api import API
from tests.databases import on_databases, storage, writing
from tests.samples import image, page
from tests.stores import fresh_address
from tests.test_sql_interrupted import Steps, indexes, killed, some_of

pytestmark = [on_databases, pytest.mark.slow]

Types = Sequence[type[Entry]]


class Kid(ChildObject):
    app_label = "x"
    name = fields.String()
    rank = fields.Integer()
    search_fields = ["name"]
    api_fields = ["name", "rank"]


def typed(base: Any, name: str, *shown: str, **own: Any) -> Any:
    """A type with some fields, which are shown and, if they are text, searched."""
    searched = [
        name
        for name, field in own.items()
        if isinstance(field, fields.String | Tags)
        or (isinstance(field, Children) and field.child.search_fields)
    ]
    listed = {
        "api_fields": [*base.api_fields, *own, *shown],
        "search_fields": [*base.search_fields, *searched],
    }
    return type(name, (base,), {"app_label": "x", **own, **listed})


def full() -> dict[str, Any]:
    return {
        "txt": fields.String(),
        "n": fields.Integer(),
        "tags": Tags(),
        "kids": Children(Kid),
        "rel": Related("pages"),
    }


class PlainKid(Kid):
    nick = fields.String()
    api_fields = [*Kid.api_fields, "nick"]


class NickKid(PlainKid):
    search_fields = ["name", "nick"]


PlainKid.__name__ = NickKid.__name__ = "Kid"
A = typed(Page, "A", **full())
KIDS, NICKS = (typed(Page, "A", kids=Children(kid)) for kid in (PlainKid, NickKid))
OTHER = typed(Page, "Other", note=fields.String())
BASE = typed(Page, "Base", **full())
DERIVED = typed(BASE, "A")
MIXED = typed(typed(Page, "Base", txt=fields.String(), kids=Children(Kid)), "A")
MIXED_BASE = MIXED.__mro__[1]
PARTLY = typed(
    typed(Page, "Base", txt=fields.String(), n=fields.Integer()),
    "A",
    tags=Tags(),
    kids=Children(Kid),
    rel=Related("pages"),
)
PARTLY_BASE = PARTLY.__mro__[1]
GRAND = typed(typed(BASE, "Middle"), "A")
MORE = typed(Page, "A", **full(), more=fields.String(load_default="m"))
PICTURE = typed(Image, "Picture", credit=fields.String(), rank=fields.Integer())
UNSEARCHED = typed(Image, "Picture", credit=fields.String(), rank=fields.Integer())
UNSEARCHED.search_fields = Image.search_fields
DRAWING = typed(Image, "Drawing", artist=fields.String())


class Someone(Entry):
    app_label = "x"
    endpoint = "people"
    name = fields.String()
    search_fields = ["name"]
    api_fields = ["name"]


def content() -> dict[str, list[Any]]:
    kids = [{"id": 3, "name": "owl", "rank": 1}, {"id": 1, "name": "jay"}]
    return {
        "pages": [
            page(1, slug="home", type="x.A", txt="five", n=7, tags=["a", "b"], kids=kids, rel=2),
            page(2, 1, type="x.A", txt="storm", n=0),
            page(3, 1, type="x.A"),
            page(4, 2, type="x.Base", title="Four"),
            page(5, 2, type="x.Other", title="Five", note="wind"),
        ],
        "images": [
            image(1, type="x.Picture", credit="Ann", rank=3, tags=["t"]),
            image(2, type="x.Drawing", title="Deer", artist="Bo"),
            image(3, type="x.Unknown", credit="Cy"),
        ],
    }


#: Types before and after a release, for the same content.
RELEASES: dict[str, tuple[Types, Types]] = {
    "gone": ([A, OTHER], [OTHER]),
    "all gone but one": ([A, OTHER, PICTURE, DRAWING], [OTHER, PICTURE]),
    "new": ([OTHER], [A, OTHER]),
    "new with a base": ([OTHER], [BASE, DERIVED, OTHER]),
    "into a base": ([A], [BASE, DERIVED]),
    "into a mixed-in base": ([A], [DERIVED]),
    "in part into a base": ([A], [PARTLY_BASE, PARTLY]),
    "in part into a base that is not declared": ([A], [PARTLY]),
    "from part of a base into all": ([PARTLY_BASE, PARTLY], [BASE, DERIVED]),
    "under a third class": ([BASE, DERIVED], [BASE, GRAND.__mro__[1], GRAND]),
    "a second type of images": ([PICTURE], [PICTURE, DRAWING]),
    "other types of images": ([DRAWING, PICTURE], [DRAWING]),
    "types of images": ([OTHER], [PICTURE, DRAWING]),
    "the only type of images": ([UNSEARCHED], []),
    "another field": ([A], [MORE]),
    "another endpoint": ([A], [A, Someone]),
}
EACH = [(before, after) for pair in RELEASES.values() for before, after in (pair, pair[::-1])]
NAMES = [f"{name}{way}" for name in RELEASES for way in ("", " (back)")]
ASKED = (
    *("pages/?fields=*", "pages/?search=five", "pages/?search=owl", "pages/?search=storm"),
    *("pages/1/", "pages/2/", "pages/3/", "pages/5/", "images/?fields=*", "images/1/", "images/2/"),
    *("images/3/", "images/?search=ann", "images/?search=bo", "images/?search=cy"),
    *("pages/?type=x.A&fields=*&order=-n", "pages/?type=x.A&tags=a", "pages/?type=x.Base&fields=*"),
    *("pages/?type=x.A&txt=storm", "pages/?search=wind", "pages/?type=x.Other&fields=*"),
)


def site_at(address: str, types: Types) -> API:
    app = Flask("site")
    app.config.update({"TESTING": True, "CMSAPI_BACKEND": address})
    ContentAPI(app, types=list(types))
    return API(app)


def stored_at(address: str, types: Types, what: dict[str, list[Any]]) -> API:
    api = site_at(address, types)
    api.backend.create()
    api.load(what)
    return api


def answers(api: API) -> list[bytes]:
    return [api.get(path).data for path in ASKED]


NOTHING = ("''", "[]", "False", "None")


def wrong(api: API) -> list[str]:
    return sorted(
        f"{problem.where} {problem.field} {problem.message}" for problem in api.backend.check()
    )


def assert_same(api: API, other: API) -> None:
    """Both give the same answers, and their dumps have the same meaning."""
    assert answers(api) == answers(other)
    assert meaning(api) == meaning(other)


def meaning(api: API) -> dict[str, list[Any]]:
    """The dumped content, without values that records may leave out."""
    return {section: [without_nothing(r) for r in found] for section, found in api.dump().items()}


def without_nothing(value: Any) -> Any:
    if isinstance(value, list):
        return [without_nothing(entry) for entry in value]
    if isinstance(value, dict):
        return {k: without_nothing(v) for k, v in value.items() if repr(v) not in NOTHING}
    return value


@pytest.mark.parametrize(("before", "after"), EACH, ids=NAMES)
def test_content_follows_its_types(backend: str, before: Types, after: Types) -> None:
    address = fresh_address(backend)
    dumped = stored_at(address, before, content()).dump()
    api, other = site_at(address, after), stored_at("memory", after, dumped)
    api.backend.migrate()
    assert_same(api, other)
    assert wrong(api) == wrong(other)
    assert [*api.backend.migrate()] == []


@pytest.mark.parametrize(("before", "after"), EACH, ids=NAMES)
def test_content_comes_back_as_it_was(backend: str, before: Types, after: Types) -> None:
    address = fresh_address(backend)
    old = stored_at(address, before, content())
    known = (meaning(old), answers(old))
    site_at(address, after).backend.migrate()
    api = site_at(address, before)
    api.backend.migrate()
    assert (meaning(api), answers(api)) == known


KILLED = {name: RELEASES[name] for name in ("gone", "new", "into a base")}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.parametrize(("before", "after"), KILLED.values(), ids=KILLED)
def test_a_killed_move_loses_nothing(backend: str, before: Types, after: Types) -> None:
    address, other = fresh_address(backend), fresh_address(backend)
    stored_at(other, before, content())
    wanted, api = site_at(other, after), site_at(address, after)
    with Steps(storage(wanted).engine.database) as steps:
        wanted.backend.migrate()
    stored_at(address, before, content())
    for _ in killed(api, api.backend.migrate, some_of(steps.taken)):
        assert api.status("pages/") in (200, 503)
    api.backend.migrate()
    assert (api.dump(), answers(api)) == (wanted.dump(), answers(wanted))


def test_new_fields_have_the_indexes_of_new_tables(backend: str) -> None:
    address, less = fresh_address(backend), typed(Page, "A", tags=Tags())
    stored_at(address, [less], {})
    api = site_at(address, [MORE])
    api.backend.migrate()
    assert indexes(api) == indexes(stored_at(fresh_address(backend), [MORE], {}))


# While a type is not declared.


def test_what_is_changed_while_a_type_is_gone_is_there_when_it_is_back(backend: str) -> None:
    address = fresh_address(backend)
    stored_at(address, [A], content())
    gone = site_at(address, [OTHER])
    gone.backend.migrate()
    with writing(gone) as writer:
        writer.update("pages", 1, n=8, title="calm")
        writer.delete("pages", 3)
        writer.add("pages", page(3, 1, type="x.Other"))
        writer.add("pages", page(6, 1, type="x.A", txt="new", kids=[{"id": 9, "name": "tit"}]))
    api, other = site_at(address, [A]), stored_at("memory", [A], gone.dump())
    api.backend.migrate()
    assert_same(api, other)
    assert api.ids("pages/?search=calm") == [1]
    with writing(api) as writer:
        writer.delete("pages", 1, descendants=True)
        writer.add("pages", page(1, type="x.A", kids=[{"id": 1, "name": "rook"}]))
        writer.add("pages", page(3, 1, type="x.A"))
    assert api.json("pages/1/?fields=_,txt,tags") == {"txt": "", "tags": []}


def test_child_objects_of_what_is_deleted_while_a_type_is_gone_leave_their_ids(
    backend: str,
) -> None:
    address = fresh_address(backend)
    stored_at(address, [A], content())
    gone = site_at(address, [OTHER])
    gone.backend.migrate()
    with writing(gone) as writer:
        writer.delete("pages", 1, descendants=True)
    api = site_at(address, [A])
    api.backend.migrate()
    with writing(api) as writer:
        writer.add("pages", page(9, type="x.A", kids=[{"id": 3, "name": "tit"}]))
    assert api.json("pages/9/?fields=_,kids(_,id)") == {"kids": [{"id": 3}]}


def test_what_is_loaded_while_a_type_is_gone_is_all_that_is_there(backend: str) -> None:
    address = fresh_address(backend)
    stored_at(address, [A, Someone], {**content(), "people": [{"id": 1, "name": "Ada"}]})
    gone = site_at(address, [OTHER])
    gone.backend.migrate()
    gone.load({"pages": [page(1, type="x.A", txt="new"), page(9, 1, type="x.A", n=3)]})
    api, other = site_at(address, [A, Someone]), stored_at("memory", [A, Someone], gone.dump())
    api.backend.migrate()
    assert_same(api, other)
    assert api.items("people/") == []
    api.load({"people": [{"id": 1, "name": "Bo"}]})
    assert api.ids("people/?search=bo") == [1]


def test_an_endpoint_comes_back_with_what_it_had(backend: str) -> None:
    address = fresh_address(backend)
    stored_at(address, [A, Someone], {**content(), "people": [{"id": 1, "name": "Ada"}]})
    site_at(address, [OTHER]).backend.migrate()
    api = site_at(address, [A, Someone])
    api.backend.migrate()
    assert api.items("people/?search=ada&fields=_,name") == [{"name": "Ada"}]


def test_a_type_can_get_another_endpoint(backend: str) -> None:
    address = fresh_address(backend)
    own = {"app_label": "x", "n": fields.Integer(), "api_fields": ["n"]}
    first, second = (
        type("Person", (Entry,), {**own, "endpoint": name}) for name in ("people", "staff")
    )
    stored_at(address, [first], {"people": [{"id": 1, "n": 7}]})
    api = site_at(address, [second])
    (step,) = api.backend.migrate()
    assert step.startswith("x.Person is served at staff instead of people, where its objects stay;")
    with writing(api) as writer:
        writer.add("staff", {"id": 1, "n": 8})
    assert api.ids("staff/?n=8") == [1]
    api = site_at(address, [first])
    api.backend.migrate()
    assert (api.ids("people/?n=7"), api.ids("people/?n=8")) == ([1], [])


def test_a_former_field_is_none_of_another_type(backend: str) -> None:
    address, less = fresh_address(backend), typed(Page, "A")
    stored_at(address, [A], {"pages": [page(1, type="x.A", txt="secret")]})
    between = site_at(address, [less, OTHER])
    between.backend.migrate()
    with writing(between) as writer:
        writer.update("pages", 1, type="x.Other")
    other = typed(Page, "Other", txt=fields.String())
    api = site_at(address, [less, other])
    api.backend.migrate()
    assert api.json("pages/1/")["txt"] == ""


def test_a_removed_field_comes_back_with_what_it_had(backend: str) -> None:
    address, less = fresh_address(backend), typed(Page, "A", txt=fields.String())
    known = answers(stored_at(address, [A], content()))
    site_at(address, [less]).backend.migrate()
    api = site_at(address, [A])
    api.backend.migrate()
    assert answers(api) == known


def test_what_a_type_once_had_is_told_when_it_is_back(backend: str) -> None:
    address, less = fresh_address(backend), typed(Page, "A", kids=Children(LESS_KID))
    stored_at(address, [A], content())
    for types in ([OTHER], [less]):
        api = site_at(address, types)
        api.backend.migrate()
    (note,) = api.backend.notes()
    assert note.startswith(
        "x.A once had kids.rank, n, rel, tags, txt, which is still stored, but in no dump;"
    )
    assert "x.A.kids.rank is forgotten." in api.backend.migrate(forget=True)
    assert [*api.backend.notes()] == []
    site_at(address, [A]).backend.migrate()
    page = site_at(address, [A]).json("pages/1/")
    assert (page["n"], page["tags"], page["kids"][0]["rank"]) == (None, [], None)


def test_a_type_can_come_back_without_the_fields_it_had(backend: str) -> None:
    address, plain = fresh_address(backend), typed(Page, "A")
    record = page(1, type="x.A", txt="five", tags=["a"])
    known = meaning(stored_at(address, [A], {"pages": [record]}))
    site_at(address, []).backend.migrate()
    api = site_at(address, [plain])
    assert api.backend.migrate() == ["x.A is new."]
    assert meaning(api)["pages"] == [without_nothing(page(1, type="x.A"))]
    site_at(address, [A]).backend.migrate()
    assert meaning(site_at(address, [A])) == known


def test_who_renames_a_field_is_told_how_to_keep_its_values(backend: str) -> None:
    address = fresh_address(backend)
    stored_at(address, [A], {"pages": [page(1, type="x.A", txt="five")]})
    renamed = typed(Page, "A", text=fields.String())
    said = "If this renames a field, load a changed dump of the code of before to keep its values."
    assert said in site_at(address, [renamed]).backend.migrate()


def test_objects_of_the_only_type_of_an_endpoint_keep_what_they_have(backend: str) -> None:
    address, record = fresh_address(backend), image(1, type="x.Picture", credit="Cy")
    stored_at(address, [UNSEARCHED], {"images": [record]})
    api = site_at(address, [])
    assert "x.Picture is not declared any more; its objects stay." in api.backend.migrate()
    assert meaning(api) == {"images": [without_nothing(record)]}


def test_a_field_that_a_base_has_again_is_new_to_types_made_meanwhile(backend: str) -> None:
    address = fresh_address(backend)
    less = typed(Page, "Base", n=fields.Integer())
    more = typed(Page, "Base", n=fields.Integer(), more=fields.String(load_default="m"))
    stored_at(address, [more], {"pages": [page(1, type="x.Base", more="a")]})
    between = site_at(address, [less, typed(less, "A")])
    between.backend.migrate()
    with writing(between) as writer:
        writer.add("pages", page(2, 1, type="x.A"))
    api = site_at(address, [more, typed(more, "A")])
    api.backend.migrate()
    found = api.items("pages/?type=x.Base&fields=_,more&order=id")
    assert found == [{"more": "a"}, {"more": "m"}]


def test_a_field_that_comes_back_is_new_to_objects_made_meanwhile(backend: str) -> None:
    address = fresh_address(backend)
    more, less = (
        typed(Page, "A", m=fields.Integer(), **own)
        for own in ({"n": fields.Integer(load_default=4)}, {})
    )
    stored_at(address, [more], {"pages": [page(1, type="x.A", n=7)]})
    between = site_at(address, [less, OTHER])
    between.backend.migrate()
    with writing(between) as writer:
        writer.add("pages", page(2, 1, type="x.A"))
    api = site_at(address, [more, OTHER])
    assert api.backend.migrate() == ["x.A.n is new."]
    assert api.items("pages/?type=x.A&fields=_,n&order=id") == [{"n": 7}, {"n": 4}]


def test_a_type_can_go_below_another_and_back(backend: str) -> None:
    address, base = fresh_address(backend), typed(Page, "Base", n=fields.Integer(load_default=4))
    alone, below = (typed(above, "A", m=fields.Integer()) for above in (Page, base))
    pages = [page(1, type="x.Base", n=1), page(2, 1, type="x.A", m=2)]
    known = meaning(stored_at(address, [base, alone], {"pages": pages}))
    api = site_at(address, [base, below])
    assert api.backend.migrate() == ["x.A.n is new."]
    assert api.items("pages/?type=x.Base&fields=_,n&order=id") == [{"n": 1}, {"n": 4}]
    site_at(address, [base, alone]).backend.migrate()
    assert meaning(site_at(address, [base, alone])) == known


def test_a_type_can_go_below_a_new_one(backend: str) -> None:
    address, base = fresh_address(backend), typed(Page, "Base", n=fields.Integer(load_default=4))
    alone, below = (typed(above, "A", m=fields.Integer()) for above in (Page, base))
    stored_at(address, [alone], {"pages": [page(1, type="x.A", m=2)]})
    api = site_at(address, [base, below])
    api.backend.migrate()
    assert api.items("pages/?type=x.Base&fields=_,n") == [{"n": 4}]


def test_a_field_that_a_type_has_of_its_own_again_has_what_it_had(backend: str) -> None:
    address, base = fresh_address(backend), typed(Page, "Base", n=fields.Integer())
    own = typed(Page, "A", m=fields.Integer(), n=fields.Integer(load_default=4))
    less, below = (typed(above, "A", m=fields.Integer()) for above in (Page, base))
    stored_at(address, [own], {"pages": [page(1, type="x.A", n=7)]})
    for types in ([base, below], [base, less]):
        between = site_at(address, types)
        between.backend.migrate()
    with writing(between) as writer:
        writer.add("pages", page(2, 1, type="x.A"))
    api = site_at(address, [base, own])
    assert api.backend.migrate() == ["x.A.n is new."]
    assert api.items("pages/?type=x.A&fields=_,n&order=id") == [{"n": 7}, {"n": 4}]


FULL_BASE = typed(Page, "Base", n=fields.Integer(), tags=Tags(), kids=Children(Kid))


def test_a_type_that_leaves_a_base_and_comes_back_has_what_it_had(backend: str) -> None:
    address = fresh_address(backend)
    base = FULL_BASE
    below, alone = (typed(above, "A", m=fields.Integer()) for above in (base, Page))
    had: dict[str, Any] = {"n": 7, "m": 8, "tags": ["owl"], "kids": [{"id": 1, "name": "Ann"}]}
    first = stored_at(address, [base, below], {"pages": [page(1, type="x.A", **had)]})
    before = first.json("pages/1/?fields=*")
    between = site_at(address, [base, alone])
    between.backend.migrate()
    assert between.json("pages/1/?fields=_,m") == {"m": 8}
    api = site_at(address, [base, below])
    api.backend.migrate()
    assert api.json("pages/1/?fields=*") == before


@pytest.mark.parametrize(
    ("types", "between"),
    [
        ([FULL_BASE, typed(FULL_BASE, "A")], [FULL_BASE, typed(Page, "A")]),
        ([typed(Page, "A", **full())], [typed(Page, "A")]),
    ],
    ids=["of a base", "of its own"],
)
def test_nothing_of_an_object_that_was_deleted_comes_back(
    backend: str, types: Types, between: Types
) -> None:
    address = fresh_address(backend)
    had: dict[str, Any] = {"n": 7, "tags": ["owl"], "kids": [{"id": 1, "name": "Ann"}]}
    pages = [page(1), page(2, 1, type="x.A", **had), page(3, 1, type="x.A")]
    stored_at(address, types, {"pages": pages})
    less = site_at(address, between)
    less.backend.migrate()
    with writing(less) as writer:
        writer.delete("pages", 2)
        writer.add("pages", page(2, 1, type="x.A"))
    api = site_at(address, types)
    api.backend.migrate()
    again, new = api.items("pages/?type=x.A&fields=_,n,tags,kids&order=id")
    assert again == new
    with writing(api) as writer:
        writer.update("pages", 3, kids=[{"id": 1, "name": "Bea"}])
    assert api.json("pages/3/?fields=_,kids(_,name)") == {"kids": [{"name": "Bea"}]}


LOW_KID, HIGH_KID = (
    type("Kid", (ChildObject,), {"app_label": "x", "api_fields": [*own], **own})
    for own in (
        {"name": fields.String()},
        {"name": fields.String(), "rank": fields.Integer(load_default=4)},
    )
)


def test_a_field_that_child_objects_have_again_is_new_to_those_made_meanwhile(backend: str) -> None:
    address = fresh_address(backend)
    low, high = (typed(Page, "A", kids=Children(kid)) for kid in (LOW_KID, HIGH_KID))
    stored_at(address, [high], {"pages": [page(1, type="x.A", kids=[{"id": 1, "rank": 1}])]})
    between = site_at(address, [low, OTHER])
    between.backend.migrate()
    with writing(between) as writer:
        writer.update("pages", 1, kids=[{"id": 1}, {"name": "owl"}])
    api = site_at(address, [high, OTHER, PICTURE])
    api.backend.migrate()
    assert api.json("pages/1/?fields=_,kids(_,rank)") == {"kids": [{"rank": 1}, {"rank": 4}]}


def test_tables_that_others_fill_as_before_stay_theirs(backend: str) -> None:
    address, base = fresh_address(backend), typed(Page, "Base", it=Tags())
    stored_at(address, [base, typed(base, "A")], {"pages": [page(1, type="x.Base", it=["a"])]})
    api = site_at(address, [base, typed(Page, "A", it=fields.Integer())])
    api.backend.migrate()
    assert api.items("pages/?type=x.Base&it=a&fields=_,it") == [{"it": ["a"]}]


def test_the_only_column_of_a_type_comes_back_with_what_it_had(backend: str) -> None:
    address = fresh_address(backend)
    first, less, more = (
        typed(Page, "A", tags=Tags(), **own)
        for own in ({"n": fields.Integer()}, {}, {"txt": fields.String()})
    )
    record = page(1, type="x.A", tags=["a"], n=7)
    known = meaning(stored_at(address, [first], {"pages": [record]}))
    for types in ([less, PICTURE], [more], [first]):
        api = site_at(address, types)
        api.backend.migrate()
    assert meaning(api) == known


LESS_KID = type("Kid", (ChildObject,), {"app_label": "x", "name": fields.String()})
#: Types whose child objects have lost a field, and types that have it again.
LESS: dict[str, tuple[Types, Types]] = {
    "in another table": ([typed(Page, "A", kids=Children(LESS_KID))], [BASE, DERIVED]),
    "in rows that are written": (
        [PARTLY_BASE, typed(PARTLY_BASE, "A", tags=Tags(), kids=Children(LESS_KID))],
        [A],
    ),
}


@pytest.mark.parametrize(("less", "after"), LESS.values(), ids=LESS)
def test_a_removed_field_of_child_objects_comes_back(
    backend: str, less: Types, after: Types
) -> None:
    address = fresh_address(backend)
    stored_at(address, [A], content())
    site_at(address, less).backend.migrate()
    api = site_at(address, after)
    api.backend.migrate()
    assert api.json("pages/1/?fields=_,kids(_,rank)") == {"kids": [{"rank": 1}, {"rank": None}]}


def test_a_removed_field_comes_back_in_objects_that_were_changed_meanwhile(backend: str) -> None:
    address, less = fresh_address(backend), typed(Page, "A", kids=Children(LESS_KID))
    stored_at(address, [A], content())
    between = site_at(address, [less])
    between.backend.migrate()
    with writing(between) as writer:
        writer.update("pages", 1, title="New", kids=[{"id": 3, "name": "tit"}, {"name": "rook"}])
    api = site_at(address, [A])
    api.backend.migrate()
    path = "pages/1/?fields=_,title,txt,n,tags,kids(_,name,rank)"
    kids = [{"name": "tit", "rank": 1}, {"name": "rook", "rank": None}]
    known = {"txt": "five", "n": 7, "tags": ["a", "b"]}
    assert api.json(path) == {"title": "New", **known, "kids": kids}


def test_tags_of_an_object_that_is_gone_are_not_those_of_another_type(backend: str) -> None:
    address = fresh_address(backend)
    less, more = (typed(Page, "Base", n=fields.Integer(), **own) for own in ({}, {"tags": Tags()}))
    pages = [page(1, type="x.Base"), page(2, 1, type="x.Base", tags=["a"])]
    stored_at(address, [more], {"pages": pages})
    between = site_at(address, [less, typed(less, "A")])
    between.backend.migrate()
    with writing(between) as writer:
        writer.delete("pages", 2)
        writer.add("pages", page(2, 1, type="x.A"))
    api = site_at(address, [more, typed(more, "A")])
    api.backend.migrate()
    assert api.json("pages/2/?fields=_,tags") == {"tags": []}


class OtherKid(ChildObject):
    app_label = "x"
    name = fields.String()
    other = fields.String()
    api_fields = ["name", "other"]


OtherKid.__name__ = "Kid"
LESS_PICTURE = typed(Image, "Picture", rank=fields.Integer(), more=fields.String())
LESS_KIDS = typed(Page, "A", **{**full(), "kids": Children(OtherKid)})
#: Types, the same with other fields, and the types that remain when they are gone.
LESS_AND_GONE: dict[str, tuple[Types, Types, Types]] = {
    "pages": ([A], [typed(Page, "A", txt=fields.String(), more=fields.String())], [OTHER]),
    "the only images": ([PICTURE], [LESS_PICTURE], []),
    "some images": ([PICTURE, DRAWING], [LESS_PICTURE, DRAWING], [DRAWING]),
    "child objects": ([A], [LESS_KIDS], [OTHER]),
}


@pytest.mark.parametrize(("all_", "less", "gone"), LESS_AND_GONE.values(), ids=LESS_AND_GONE)
def test_a_removed_field_comes_back_with_its_type(
    backend: str, all_: Types, less: Types, gone: Types
) -> None:
    address = fresh_address(backend)
    known = meaning(stored_at(address, all_, content()))
    for types in (less, gone, all_, less, gone, less, all_, gone, less, gone, all_):
        site_at(address, types).backend.migrate()
    assert meaning(site_at(address, all_)) == known


def test_fields_that_child_objects_have_lost_meanwhile_do_not_come_back(backend: str) -> None:
    address = fresh_address(backend)
    stored_at(address, [A], content())
    site_at(address, [LESS_KIDS]).backend.migrate()
    gone = site_at(address, [OTHER])
    gone.backend.migrate()
    with writing(gone) as writer:
        writer.update("pages", 1, kids=[{"id": 1, "name": "jay"}])
        writer.update("pages", 2, kids=[{"id": 3, "name": "owl"}])
    api = site_at(address, [A])
    api.backend.migrate()
    path = "pages/?type=x.A&fields=_,kids(_,name,rank)&order=id"
    assert [kid for page in api.items(path) for kid in page["kids"]] == [
        {"name": "jay", "rank": None},
        {"name": "owl", "rank": None},
    ]


def test_a_field_is_required_of_a_type_that_comes_back_with_values_for_it(backend: str) -> None:
    address = fresh_address(backend)
    less, more = (
        typed(Page, "A", n=fields.Integer(), **own)
        for own in ({}, {"more": fields.Integer(required=True)})
    )
    pages = [page(1, type="x.A", n=7), page(2, 1, type="x.Other", note="wind")]
    stored_at(address, [less, OTHER], {"pages": pages})
    gone = site_at(address, [OTHER])
    gone.backend.migrate()
    with writing(gone) as writer:
        writer.update("pages", 1, more=8)
    api = site_at(address, [more, OTHER])
    api.backend.migrate()
    assert api.json("pages/1/?fields=_,n,more") == {"n": 7, "more": 8}


def test_objects_of_undeclared_types_are_found_by_what_their_endpoint_has(backend: str) -> None:
    address = fresh_address(backend)
    stored_at(address, [PICTURE], {"images": [image(1, type="x.Unknown", credit="Cy")]})
    for types, found in (([UNSEARCHED], []), ([PICTURE], [1])):
        api = site_at(address, types)
        api.backend.migrate()
        assert api.ids("images/?search=cy") == found


def test_objects_of_undeclared_types_keep_what_their_endpoint_has_no_more(backend: str) -> None:
    address = fresh_address(backend)
    stored_at(address, [UNSEARCHED], {"images": [image(1, type="x.Unknown", credit="Cy")]})
    for types in ([typed(Image, "Picture")], [UNSEARCHED], [typed(Image, "Picture")]):
        api = site_at(address, types)
        api.backend.migrate()
        assert [record["credit"] for record in api.dump()["images"]] == ["Cy"]


def random_types(chance: random.Random) -> Types:
    """Random types with random fields."""
    kid_fields = [("name", fields.String()), ("rank", fields.Integer())]
    named = {name: field for name, field in kid_fields if chance.random() < 0.7}
    kid = type("Kid", (ChildObject,), {"app_label": "x", "api_fields": [*named], **named})
    known = {**full(), "kids": Children(kid)}
    return [
        typed(base, name, **{n: f for n, f in known.items() if n != out and chance.random() < 0.7})
        for base, name, out in (
            (Page, "A", ""),
            (Page, "Other", "kids"),
            (Image, "Picture", "tags"),
        )
        if chance.random() < 0.7
    ]


def filled(types: Sequence[Any]) -> dict[str, list[Any]]:
    """An object of each type, and one of an undeclared type, with all their fields."""
    values = {"txt": "five", "n": 7, "tags": ["a"], "rel": 1}
    found: dict[str, list[Any]] = {"pages": [page(1, type="x.Unknown", txt="six")]}
    for number, declared in enumerate(types, 2):
        is_page = issubclass(declared, Page)
        record = {name: value for name, value in values.items() if name in declared.api_fields}
        if "kids" in declared.api_fields:
            child = declared.kids.child
            kid = {"name": "owl", "rank": 1}
            record["kids"] = [
                {"id": number, **{n: v for n, v in kid.items() if n in child.api_fields}}
            ]
        made = page(number, 1, slug=f"s{number}", type=declared.type_label()) if is_page else None
        made = made or image(number, type=declared.type_label())
        found.setdefault("pages" if is_page else "images", []).append({**made, **record})
    return found


@pytest.mark.parametrize("seed", range(12))
def test_any_types_in_between_lose_nothing(backend: str, seed: int) -> None:
    chance, address = random.Random(seed), fresh_address(backend)
    first = random_types(chance)
    known, before = meaning(stored_at(address, first, filled(first))), first
    for types in (*(random_types(chance) for _ in range(3)), first):
        dumped = meaning(site_at(address, before))
        try:
            site_at(address, types).backend.migrate()
        except ContentError:
            assert meaning(site_at(address, before)) == dumped
        else:
            before = types
    assert before is not first or meaning(site_at(address, first)) == known


# Conflicts.


FEW_AND_MANY = [page(1, type="x.A", n=40), page(2, 1, type="x.A", n=60)]


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Fewer(enum.Enum):
    RED = "red"


REFUSED = {
    "tags": (Tags(), Children(Kid), ["a"], "pages 1, tags[0]: must be an object"),
    "text": (fields.String(), fields.Integer(), "five", "pages 1, tags: must be an integer"),
    "children": (Children(Kid), Tags(), [{"id": 1}], "pages 1, tags: must be a list of texts"),
    "digits of text": (
        fields.String(),
        fields.Integer(),
        "42",
        "pages 1, tags: must be an integer",
    ),
    "a number": (fields.Integer(), fields.String(), 42, "pages 1, tags: must be text"),
    "half": (fields.Float(), fields.Integer(), 0.5, "pages 1, tags: must be an integer"),
    "digits": (
        fields.Decimal(),
        fields.Float(),
        "0.12345678901234567890",
        "pages 1, tags: must be a number",
    ),
    "enum": (fields.Enum(Colour), fields.Enum(Fewer), "BLUE", "pages 1, tags: must be one of RED"),
    "uuid": (fields.String(), fields.UUID(), "owl", "pages 1, tags: must be a UUID"),
    "ip": (fields.IP(), fields.IPv4(), "2001:db8::1", "pages 1, tags: must be an IPv4 address"),
}


@pytest.mark.parametrize(("was", "is_now", "value", "said"), REFUSED.values(), ids=REFUSED)
def test_values_that_do_not_fit_are_named_and_stay(
    backend: str, was: Any, is_now: Any, value: Any, said: str
) -> None:
    address = fresh_address(backend)
    old = stored_at(
        address, [typed(Page, "A", tags=was)], {"pages": [page(1, type="x.A", tags=value)]}
    )
    known = (old.dump(), old.get("pages/1/").data)
    api = site_at(address, [typed(Page, "A", tags=is_now)])
    with pytest.raises(ContentError) as caught:
        api.backend.migrate()
    assert str(caught.value).startswith(said)
    assert (old.dump(), old.get("pages/1/").data) == known


NARROWED = {
    "enum_value": (
        fields.Enum(Colour, by_value=True),
        fields.Enum(Fewer, by_value=True),
        "blue",
    ),
    "list": (fields.Raw(), fields.List(fields.Date()), ["owl"]),
}


@pytest.mark.parametrize(("was", "is_now", "value"), NARROWED.values(), ids=NARROWED)
def test_values_that_a_field_takes_no_more_are_null_and_named_by_check(
    backend: str, was: Any, is_now: Any, value: Any
) -> None:
    address = fresh_address(backend)
    stored_at(address, [typed(Page, "A", it=was)], {"pages": [page(1, type="x.A", it=value)]})
    api = site_at(address, [typed(Page, "A", it=is_now)])
    api.backend.migrate()
    assert api.json("pages/1/")["it"] is None
    assert api.items("pages/?type=x.A&fields=it")[0]["it"] is None
    (problem,) = api.backend.check()
    assert str(problem).startswith("pages 1, it: ")


def test_values_that_a_new_validator_refuses_are_named_by_check(backend: str) -> None:
    address = fresh_address(backend)
    few = fields.Integer(validate=validate.Range(max=40))
    stored_at(address, [typed(Page, "A", n=fields.Integer())], {"pages": FEW_AND_MANY})
    assert [*site_at(address, [typed(Page, "A", n=fields.Integer())]).backend.check()] == []
    (problem,) = site_at(address, [typed(Page, "A", n=few)]).backend.check()
    assert str(problem) == "pages 2, n: Must be less than or equal to 40."


def test_what_records_leave_out_is_not_checked(backend: str) -> None:
    address = fresh_address(backend)
    kid = type("Kid", (ChildObject,), {"app_label": "x", "url": fields.Url()})
    own = {"url": fields.Url(), "kids": Children(kid)}
    pages = [page(1, type="x.A", kids=[{"id": 1}])]
    stored_at(address, [typed(Page, "A", **own)], {"pages": pages})
    api = site_at(address, [typed(Page, "A", **own, n=fields.Integer())])
    assert [*api.backend.migrate()] == ["x.A.n is new."]


def test_other_fields_of_child_objects_can_be_searched(backend: str) -> None:
    address = fresh_address(backend)
    kids = [{"id": 1, "name": "owl", "nick": "ear"}]
    first = stored_at(address, [KIDS], {"pages": [page(1, type="x.A", kids=kids)]})
    assert first.ids("pages/?search=ear") == []
    for types, found in (([NICKS], [1]), ([KIDS], [])):
        api = site_at(address, types)
        assert api.status("pages/?search=ear") == 503
        api.backend.migrate()
        assert api.ids("pages/?search=ear") == found
        assert api.ids("pages/?search=owl") == [1]


def test_types_that_stay_are_not_checked(backend: str) -> None:
    address = fresh_address(backend)
    few = fields.Integer(validate=validate.Range(max=40))
    stored_at(address, [typed(Page, "A", n=fields.Integer())], {"pages": FEW_AND_MANY})
    api = site_at(address, [typed(Page, "A", n=few), OTHER])
    assert [*api.backend.migrate()] == ["x.Other is new."]


def test_a_field_of_child_objects_can_store_something_else_and_go_back(backend: str) -> None:
    address = fresh_address(backend)
    first, second = (
        typed(Page, "A", kids=Children(type("Kid", (ChildObject,), {"app_label": "x", **own})))
        for own in ({"day": fields.String()}, {"day": fields.Date()})
    )
    kids = [{"id": 1, "day": "2026-01-15"}, {"id": 2}]
    known = meaning(stored_at(address, [first], {"pages": [page(1, type="x.A", kids=kids)]}))
    for types in ([second], [first], [second]):
        api = site_at(address, types)
        api.backend.migrate()
        assert meaning(api) == known


class Kin(ChildObject):
    app_label = "x"
    name = fields.String()
    api_fields = ["name"]


OWN, ALIKE = (typed(Page, name, kids=Children(Kid)) for name in ("A", "B"))
UNLIKE = typed(Page, "B", kids=Children(Kin))
ROOT = typed(Page, "Root", kids=Children(Kid))
#: Types before and after a release that unites child objects from separate tables.
UNITED: dict[str, tuple[Types, Types]] = {
    "all move": ([UNLIKE, OWN], [ROOT, typed(ROOT, "B"), typed(ROOT, "A")]),
    "some move": ([UNLIKE, OWN], [ALIKE, typed(ALIKE, "A")]),
    "some are new": ([ALIKE], [ALIKE, OWN]),
}


@pytest.mark.parametrize(("before", "after"), UNITED.values(), ids=UNITED)
def test_child_objects_that_would_have_the_same_id_are_named_and_stay(
    backend: str, before: Types, after: Types
) -> None:
    labels = enumerate(("x.B", "x.A"), 1)
    pages = [page(id, type=label, kids=[{"id": 7, "name": label}]) for id, label in labels]
    address = fresh_address(backend)
    old = stored_at(address, before, {"pages": pages})
    known = old.dump()
    with pytest.raises(ContentError, match=r"pages [12], kids.* 7 "):
        site_at(address, after).backend.migrate()
    assert old.dump() == known


def test_child_objects_of_pages_and_images_have_other_ids(backend: str) -> None:
    address, cover = fresh_address(backend), typed(Image, "Cover", kids=Children(Kid))
    kids = [{"id": 7, "name": "owl"}]
    content = {
        "pages": [page(1, type="x.B", kids=kids)],
        "images": [image(1, type="x.Cover", kids=kids)],
    }
    old = stored_at(address, [UNLIKE, cover], content)
    known = old.dump()
    with pytest.raises(ContentError, match=r"images 1, kids.* 7 "):
        site_at(address, [ROOT, typed(ROOT, "B"), cover]).backend.migrate()
    assert old.dump() == known


KINDS = [
    (fields.Integer(), fields.Float(), None),
    (fields.Integer(), fields.Decimal(places=0), None),
    (Tags(), Children(Kid), None),
    (Children(Kid), Tags(), None),
    (Tags(), fields.String(), None),
    (Tags(), fields.List(fields.String()), ["a"]),
    (fields.String(), fields.Integer(), None),
    (fields.String(), fields.Date(), "2026-01-15"),
    (fields.String(), fields.DateTime(), "2026-01-15T08:00:00Z"),
    (fields.String(), fields.Decimal(), "4.5"),
    (fields.Boolean(), fields.String(), False),
    (fields.Integer(), Related("images"), 7),
]


def test_a_process_with_former_types_answers_no_more(
    backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    address = fresh_address(backend)
    first, second = (typed(Page, "A", it=field) for field in (fields.Integer(), fields.Decimal()))
    content = {"pages": [page(1, type="x.A", it=5)]}
    old = stored_at(address, [first], content)
    assert old.json("pages/1/")["it"] == 5
    site_at(address, [second]).backend.migrate()
    with pytest.raises(BackendUnavailable, match="restart it"):
        old.backend.read(lambda reader: reader.version)
    with pytest.raises(BackendUnavailable, match="restart it"):
        old.dump()
    assert old.status("pages/1/") == old.status("pages/?type=x.A&it=5") == 503
    assert caplog.messages[-1] == (
        "The content cannot be read: The tables are not those of the declared types. They were "
        "made anew after this process had been started; restart it."
    )


@pytest.mark.parametrize(("was", "is_now", "value"), KINDS, ids=range(len(KINDS)))
@pytest.mark.parametrize("name", ["A", "A" * 60], ids=["A", "long"])
def test_a_field_can_store_something_else_and_go_back(
    backend: str, was: Any, is_now: Any, value: Any, name: str
) -> None:
    address = fresh_address(backend)
    first, second = (typed(Page, name, it=field) for field in (was, is_now))
    old = stored_at(address, [first], {"pages": [page(1, type=f"x.{name}", it=value)]})
    known = (old.dump(), old.get("pages/1/").data)
    for types in ([second], [first], [second], [first]):
        api = site_at(address, types)
        api.backend.migrate()
    assert (api.dump(), api.get("pages/1/").data) == known

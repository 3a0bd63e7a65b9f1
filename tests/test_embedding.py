"""How many objects one answer embeds, and what happens beyond the bound."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from marshmallow import fields

from flask_contentapi import Blocks, ChildObject, Children, Entry, Image, Page, Related, RichText
from tests.api import API
from tests.conftest import MakeAPI
from tests.samples import image, page, private, site
from tests.stores import on_memory

pytestmark = on_memory

PEOPLE, FRIENDS = 40, 6


class Friend(ChildObject):
    who = Related("people")
    api_fields = ["who"]


class Person(Entry):
    endpoint = "people"
    name = fields.String()
    friends = Children(Friend)
    best = Related("people")
    api_fields = ["name", "friends", "best"]


class Similar(ChildObject):
    image = Related("images")
    api_fields = ["image"]


class Photo(Image):
    similar = Children(Similar)
    api_fields = ["similar"]


class Album(Page):
    cover = Related("images")
    owner = Related("people")
    body = Blocks({"person": Related("people", shown="name"), "photo": Related("images")})
    api_fields = ["cover", "owner", "body"]


class Remark(ChildObject):
    text = fields.String()
    secret = fields.String()
    api_fields = ["text"]


class Essay(Entry):
    endpoint = "essays"
    text = RichText()
    data = fields.Raw()
    body = Blocks()
    secret = fields.String()
    remarks = Children(Remark)
    next = Related("essays")
    api_fields = ["text", "data", "body", "remarks", "next"]


TYPES = [Person, Photo, Album, Essay]
#: By the id of an essay, what it has, and how many objects it counts for in ``next(text,data)``.
ESSAYS: dict[int, tuple[dict[str, Any], int]] = {
    1: ({"text": "x" * 4999}, 1),
    2: ({"text": "é" * 5000}, 2),
    3: ({"text": "x" * 10_000, "data": ["y" * 4995]}, 3),
    4: ({"text": "x" * 10_000, "data": ["y" * 4996]}, 4),
    5: ({"body": [{"type": "t", "value": "x" * 4980}], "secret": "x" * 9999}, 1),
    7: ({"data": [0] * 157}, 1),
    8: ({"data": [0] * 158}, 2),
    6: ({"remarks": [{"id": 1, "text": "x" * 10_000, "secret": "x" * 10_000}, {"id": 2}]}, 1),
}


def album(id: int, **values: Any) -> dict[str, Any]:
    return page(id, 1, type="test_embedding.Album", **values)


def content() -> dict[str, list[Any]]:
    child_ids = iter(range(1, 10**6))

    def children(key: str, targets: Iterator[int]) -> list[dict[str, int]]:
        return [{"id": next(child_ids), key: target} for target in targets]

    people = [
        {
            "id": n,
            "name": f"P{n}",
            "best": (n + 1) % PEOPLE,
            "friends": children("who", ((n + k) % PEOPLE for k in range(1, FRIENDS + 1))),
        }
        for n in range(PEOPLE)
    ]
    blocks = [{"type": "person", "value": n % 3} for n in range(30)]
    return {
        "sites": [site(1)],
        "collections": [{"id": 1, "restriction": private()}],
        "people": people,
        "images": [
            *(image(n, similar=children("image", iter(range(8)))) for n in range(8)),
            image(8, collection=1),
            image(9, similar=children("image", iter([8, 8, 1]))),
        ],
        "pages": [
            page(1, type="flask_contentapi.Page"),
            album(2, cover=1, owner=2, alias_of=1, body=blocks),
            album(3, cover=8, owner=3, body=[{"type": "list", "value": blocks}]),
        ],
        "essays": [
            *({"id": id, **values} for id, (values, _) in ESSAYS.items()),
            *({"id": id + 10, "next": id} for id in ESSAYS),
        ],
    }


@pytest.fixture(scope="module")
def limited(make_api: MakeAPI) -> Any:
    """Makes the API with a bound."""
    made: dict[int | None, API] = {}

    def make(most: int | None) -> API:
        if most not in made:
            made[most] = make_api(content(), types=TYPES, config={"CMSAPI_EMBED_MAX": most})
        return made[most]

    return make


@pytest.fixture(scope="module")
def api(make_api: MakeAPI) -> API:
    """The API with the bound that it has by default."""
    return make_api(content(), types=TYPES)


NESTED_IMAGES = "_," + "similar(image(" * 5 + "title" + "))" * 5
NESTED_FRIENDS = "friends(who(" * 5 + "*" + "))" * 5


@pytest.mark.parametrize(
    "path",
    [
        f"images/1/?fields={NESTED_IMAGES}",
        f"images/?fields={NESTED_IMAGES}",
        f"people/?fields={NESTED_FRIENDS}",
        f"people/1/?fields={NESTED_FRIENDS}",
    ],
)
def test_nesting_does_not_multiply_work(api: API, path: str) -> None:
    assert api.refusal(path) == (
        "The answer would embed more than 10000 objects. Ask for fewer: name less in fields, with "
        "fewer brackets, or take a lower limit."
    )


#: Requests, with the number of objects that they embed.
EXACT = [
    ("people/?fields=_,best&limit=20", 20),
    ("people/?fields=_,best(best(best))&limit=7", 21),
    ("people/?fields=_,friends&limit=3", 3 * (6 + 6)),
    ("people/1/?fields=_,friends(who(friends(who(best))))", 6 + 6 + 36 + 36 + 36),
    ("people/1/?fields=_,friends(_,id),best(friends(_,id))", 6 + 1 + 6),
    ("images/2/?fields=_,similar(image(similar(_,id)))", 8 + 8 + 64),
    # Image 8 is hidden, so it counts as little as what is below it.
    ("images/9/?fields=_,similar(image(similar(_,id)))", 3 + 1 + 8),
    ("pages/2/?fields=_,cover,owner(best),alias_of,parent", 1 + 2 + 1 + 1),
    ("pages/3/?fields=_,cover,owner(best)", 2),
    ("pages/?fields=alias_of", 1),
    # Three persons stand in thirty blocks.
    ("pages/2/?fields=_,body", 30),
    ("pages/?type=test_embedding.Album&fields=_,body,owner(friends(_,id))", 60 + 2 + 12),
    # Long texts count too, where they are shown.
    *((f"essays/{id + 10}/?fields=_,next(text,data)", n) for id, (_, n) in ESSAYS.items()),
    ("essays/?fields=_,next(text,data)", sum(n for _, n in ESSAYS.values())),
    ("essays/?fields=_,next", len(ESSAYS)),
    ("essays/15/?fields=_,next(body)", 2),
    ("essays/6/?fields=_,remarks", 3 + 1),
    ("essays/16/?fields=_,next(remarks(text))", 1 + 3 + 1),
    ("essays/16/?fields=_,next(remarks(_,id))", 1 + 2),
    # What the object itself has is not embedded.
    ("essays/4/?fields=_,id,text,data,next", 0),
]


@pytest.mark.parametrize(("path", "number"), EXACT)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_what_is_embedded_is_counted_exactly(
    limited: Any, path: str, number: int, method: str
) -> None:
    assert limited(max(number, 1)).get(path, method=method).status_code == 200
    if number > 1:
        assert limited(number - 1).get(path, method=method).status_code == 400


def test_the_bound_can_be_lifted(limited: Any) -> None:
    names = "_,friends(who(friends(who(friends(who(friends(_,id)))))))"
    assert limited(None).status(f"people/?fields={names}") == 200
    assert limited(10_000).status(f"people/?fields={names}") == 400


def test_a_missing_object_is_told_first(api: API) -> None:
    assert api.status(f"people/{PEOPLE}/?fields={NESTED_FRIENDS}") == 404

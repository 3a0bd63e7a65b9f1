"""How many objects one answer embeds, and what happens beyond the bound."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from marshmallow import fields

from flask_contentapi import (
    APIField,
    Blocks,
    ChildObject,
    Children,
    Entry,
    Image,
    Page,
    Related,
    RichText,
    Tags,
)
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


class Box(Entry):
    """What takes room or time in each place without being an object or a text of its own."""

    endpoint = "boxes"
    tags = Tags()
    boxes = fields.List(Related("boxes"))
    photo = Related("images")
    album = Related("pages")
    text = RichText()
    body = Blocks({"text": RichText()})
    remarks = Children(Remark)
    api_fields = [
        *("tags", "boxes", "photo", "album", "text", "body"),
        APIField("ids", fields.List(fields.Integer()), source="boxes"),
        APIField("length", fields.Function(lambda box: len(box.body)), needs=["body"]),
        APIField("height", fields.Function(lambda box: len(box.remarks)), needs=["remarks"]),
        APIField("breadth", fields.Function(lambda box: len(box.text)), needs=["text"]),
    ]


TYPES = [Person, Photo, Album, Essay, Box]
BLOCKS = [{"type": "text", "value": "x" * 4990}]
#: By the id of a box, what it has, the fields that are asked for of it, and how many objects it
#: counts for in each place. Texts that are converted are not counted again in other places.
BOXES: dict[int, tuple[dict[str, Any], str, int]] = {
    1: ({"tags": [f"{n:020}" for n in range(99)]}, "_,tags", 1),
    2: ({"tags": [f"{n:020}" for n in range(100)]}, "_,tags", 2),
    3: ({"tags": [f"{n:020}" for n in range(100)]}, "_,id", 1),
    4: ({"boxes": [1] * 167}, "_,ids", 2),
    5: ({"body": BLOCKS}, "_,length", 2),
    6: ({"text": "x" * 9999}, "_,breadth", 1),
    7: ({"remarks": [{"id": n} for n in range(100, 267)]}, "_,height", 2),
    8: ({"photo": 1}, "_,photo(_,renditions)", 2 + 2),
    9: ({"photo": 10}, "_,photo(_,download_url)", 2 + 1),
    10: ({"album": 5}, "_,album(_,html_url)", 2 + 2),
    11: ({"album": 5}, "_,album(_,id)", 1 + 1),
}
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


def boxed(fields: str) -> str:
    """A selection that shows a box in four places."""
    return f"_,boxes(_,boxes({fields}))"


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
            image(10, file="x" * 5000),
            image(9, similar=children("image", iter([8, 8, 1]))),
        ],
        "pages": [
            page(1, type="flask_contentapi.Page"),
            *(page(n, n - 1 if n > 4 else 1, slug="🚢" * 450) for n in (4, 5)),
            album(2, cover=1, owner=2, alias_of=1, body=blocks),
            album(3, cover=8, owner=3, body=[{"type": "list", "value": blocks}]),
        ],
        "boxes": [
            *({"id": id, **values} for id, (values, *_) in BOXES.items()),
            *({"id": id + 100, "boxes": [id, id]} for id in BOXES),
            *({"id": id + 200, "boxes": [id + 100, id + 100]} for id in BOXES),
        ],
        "essays": [
            *({"id": id, **values} for id, (values, _) in ESSAYS.items()),
            *({"id": id + 10, "next": id} for id in ESSAYS),
        ],
    }


IMAGES = {
    "CMSAPI_RENDITIONS": {"small": "width-100", "large": "width-1000"},
    "CMSAPI_RENDITION_URL": "https://images.example/{width}/{url}",
}


@pytest.fixture(scope="module")
def limited(make_api: MakeAPI) -> Any:
    """Makes the API with a bound."""
    made: dict[int | None, API] = {}

    def make(most: int | None) -> API:
        if most not in made:
            made[most] = make_api(
                content(), types=TYPES, config={"CMSAPI_EMBED_MAX": most, **IMAGES}
            )
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
    *(
        (f"boxes/{id + 200}/?fields={boxed(wanted)}", 2 + 4 * n)
        for id, (_, wanted, n) in BOXES.items()
    ),
    # What the object itself has is not embedded.
    *((f"boxes/{id}/?fields={wanted}", 0) for id, (_, wanted, _) in BOXES.items() if id < 8),
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


#: By format, how many characters of converted text count as much as an object.
CONVERTED = {"db_html": 0, "html": 1000, "markdown": 100, "db_markdown": 100}


@pytest.mark.parametrize("format", CONVERTED)
def test_converted_texts_count_once(limited: Any, format: str) -> None:
    size = CONVERTED[format]
    for id, field, length in ((5, "body", 4990), (6, "text", 9999)):
        path = f"boxes/{id + 200}/?fields={boxed(f'_,{field}')}&rich_text_format={format}"
        number = 2 + 4 * 2 + (length // size if size else 0)
        assert limited(number).status(path) == 200
        assert limited(number - 1).status(path) == 400
    own = f"boxes/6/?fields=_,text&rich_text_format={format}"
    assert limited(1).status(own) == 200


def test_a_text_is_converted_once(api: API, monkeypatch: pytest.MonkeyPatch) -> None:
    converted = []

    def note(text: str, *_: Any) -> str:
        converted.append(text)
        return "x"

    monkeypatch.setattr("flask_contentapi.sources.convert", note)
    path = f"boxes/206/?fields={boxed('_,text')}&rich_text_format=markdown"
    assert api.json(path)["boxes"] == [{"boxes": [{"text": "x"}] * 2}] * 2
    assert converted == [BOXES[6][0]["text"]]


def test_the_bound_can_be_lifted(limited: Any) -> None:
    names = "_,friends(who(friends(who(friends(who(friends(_,id)))))))"
    assert limited(None).status(f"people/?fields={names}") == 200
    assert limited(10_000).status(f"people/?fields={names}") == 400


def test_a_missing_object_is_told_first(api: API) -> None:
    assert api.status(f"people/{PEOPLE}/?fields={NESTED_FRIENDS}") == 404

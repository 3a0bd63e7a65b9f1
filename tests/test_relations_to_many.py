"""Relations to many: what they show and find, and that nothing hidden leaves by them."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest
from marshmallow import fields, validate

from flask_contentapi import (
    APIField,
    Blocks,
    ChildObject,
    Children,
    ContentError,
    Entry,
    Page,
    Related,
)
from tests.api import API
from tests.conftest import MakeAPI
from tests.samples import Record, document, image, page, private, site
from tests.stores import on_memory, on_two

pytestmark = on_two

#: The mark in the texts of everything that is hidden, and in its ids and those of what is missing.
HIDDEN, MARK = "hidden", "9090"


class Leg(ChildObject):
    app_label = "guide"
    name = fields.String()
    through = fields.List(Related("pages"))
    search_fields = ["name"]
    api_fields = ["name", "through"]


class Trail(Page):
    app_label = "guide"
    stops = fields.List(Related("pages"))
    photos = fields.List(Related("images"))
    maps = fields.List(Related("documents", shown="title"))
    guides = fields.List(Related("people"))
    local = fields.List(Related("pages", within_site=True))
    legs = Children(Leg)
    body = Blocks({"page": Related("pages"), "image": Related("images")})

    def everything(self) -> Any:
        """What the site's own code sees of a trail."""
        own: Any = self
        legs = [[leg.name, leg.through] for leg in own.legs]
        return [self.stops, self.photos, self.guides, self.local, legs, self.body]

    search_fields = ["legs", "body"]
    api_fields = [
        *("stops", "photos", "maps", "guides", "local", "legs", "body"),
        APIField("ways", source="stops"),
        APIField("stop_ids", fields.List(fields.Integer()), source="stops"),
        APIField("seen", fields.Raw(), source="everything"),
        APIField("first", fields.Function(lambda trail: trail.stops[:1]), needs=["stops"]),
    ]


class Person(Entry):
    app_label = "guide"
    endpoint = "people"
    name = fields.String()
    walks = fields.List(Related("pages"))
    api_fields = ["name", "walks"]


TYPES = [Trail, Person]


def trail(id: int, parent: int | None = None, **values: Any) -> Record:
    """A page with relations to many."""
    return page(id, parent, **{"type": "guide.Trail", **values})


def block(type: str, value: Any) -> Record:
    """A block."""
    return {"type": type, "value": value}


def hidden(id: int, **values: Any) -> Record:
    """A page that may not be seen, with the mark."""
    named = {"title": f"{HIDDEN} {id}", "slug": f"{HIDDEN}-{id}"}
    return trail(id, 1, **named, stops=[2, 3], photos=[1], **values)


NOW = datetime(2026, 6, 1, tzinfo=UTC)
#: Ids of pages that nobody sees, for four reasons.
DRAFT, PRIVATE, EXPIRED, MISSING = 90901, 90902, 90903, 90904
UNSEEN = [DRAFT, PRIVATE, EXPIRED, MISSING]
CONTENT: dict[str, Any] = {
    "sites": [site(1), site(7, "other.example")],
    "collections": [{"id": 1, "restriction": private()}, {"id": 2}],
    "images": [
        image(1, collection=2, tags=["sea"]),
        image(2),
        image(90905, title=f"{HIDDEN} image", file=f"{HIDDEN}.png", collection=1, tags=[HIDDEN]),
    ],
    "documents": [document(1), document(90906, title=f"{HIDDEN} map", collection=1)],
    "people": [{"id": 1, "name": "Ada", "walks": [PRIVATE, 2, 2]}, {"id": 2, "walks": []}],
    "pages": [
        trail(1),
        trail(
            2,
            1,
            stops=[3, DRAFT, 4, PRIVATE, 3, EXPIRED, MISSING, 2],
            photos=[90905, 2, 1],
            maps=[90906, 1],
            guides=[2, 90907, 1],
            local=[DRAFT, 4, 7, 3],
            legs=[{"id": 1, "name": "dune", "through": [PRIVATE, 4, MISSING, 3]}],
            body=[block("page", DRAFT), block("list", [block("page", 3), block("image", 90905)])],
        ),
        trail(3, 1, stops=[2, PRIVATE], local=[7]),
        trail(4, 1, stops=[DRAFT], photos=[90905], body=[block("text", [block("page", MISSING)])]),
        trail(5, 1),
        trail(7, local=[7, 2]),
        hidden(DRAFT, live=False),
        hidden(PRIVATE, restriction=private()),
        hidden(EXPIRED, expires_at="2026-05-01T00:00:00Z"),
    ],
}


def bare(value: Any) -> Any:
    """Content without anything that is hidden, and without what points there."""
    if isinstance(value, list):
        kept = [e for e in value if not (isinstance(e, dict) and str(e.get("id")).startswith(MARK))]
        return [bare(entry) for entry in kept if not str(entry).startswith(MARK)]
    if isinstance(value, dict):
        return {
            key: None if key == "value" and str(entry).startswith(MARK) else bare(entry)
            for key, entry in value.items()
        }
    return value


CONFIG = {"CMSAPI_CACHE_TAG_HEADER": "Cache-Tag", "CMSAPI_LIMIT_MAX": 50}


@pytest.fixture(scope="module")
def api(make_api: MakeAPI) -> API:
    return make_api(CONTENT, types=TYPES, config=CONFIG, clock=lambda: NOW)


@pytest.fixture(scope="module")
def bare_api(make_api: MakeAPI) -> API:
    return make_api(bare(CONTENT), types=TYPES, config=CONFIG, clock=lambda: NOW)


OWN = "pages/?type=guide.Trail"
#: All that can be asked about trails.
SURFACES = [
    "pages/",
    f"{OWN}&fields=*",
    f"{OWN}&fields=stops,photos,maps,guides,local,legs,body,ways,stop_ids,seen,first",
    f"{OWN}&fields=stops(*),photos(*),guides(*),local(*)",
    f"{OWN}&fields=stops(alias_of),legs(through(*)),guides(walks(*))",
    f"{OWN}&fields=guides(walks(title,alias_of,locale)),photos(tags,download_url)",
    f"{OWN}&fields=_,seen",
    "pages/2/",
    "pages/2/?fields=*",
    "pages/2/?fields=_,guides(walks(*))",
    "pages/2/?fields=_,legs(through(_,title))",
    "pages/4/",
    "pages/7/?site=other.example",
    "people/",
    "people/?fields=*",
    "people/1/",
    "people/?fields=walks(*),-name",
    *(f"{OWN}&stops={id}" for id in [*UNSEEN, "3,90901", "3,4", "2"]),
    *(f"{OWN}&ways={id}&fields=ways" for id in [DRAFT, "3,90902", 3]),
    *(f"{OWN}&photos={id}" for id in [90905, "2,90905", "1,2"]),
    *(f"{OWN}&maps={id}" for id in [90906, 1]),
    *(f"{OWN}&guides={id}" for id in [90907, 1]),
    *(f"{OWN}&local={id}" for id in [DRAFT, 7, 4]),
    *(f"people/?walks={id}" for id in [PRIVATE, 2]),
    "images/?fields=*",
    "images/?tags=hidden",
    *(f"{OWN}&search={text}&fields=*" for text in ["dune", "hidden", "9090", "90901"]),
    f"{OWN}&search=dune&stops={DRAFT}",
    f"{OWN}&stops={DRAFT}&order=-title&fields=stops",
    f"{OWN}&stops=3&order=-id&limit=1&offset=1",
    "pages/find/?html_path=/hidden-90901/",
    "pages/find/?id=90902",
    # Refused.
    f"{OWN}&stops=x",
    f"{OWN}&stops=",
    f"{OWN}&stops=3,,4",
    f"{OWN}&order=stops",
    f"{OWN}&order=-ways",
    f"{OWN}&fields=stops(nothing)",
    f"{OWN}&fields=maps(title)",
    f"{OWN}&fields=stop_ids(id)",
    f"{OWN}&fields=stops(stops)",
    f"{OWN}&stop_ids=90901",
    f"{OWN}&seen=90901",
    f"{OWN}&through=90901",
    f"{OWN}&stops__in=90901",
    "pages/?stops=90901",
    f"{OWN}&stops__title=hidden",
    *(f"pages/?{name}={id}" for name in ("child_of", "ancestor_of") for id in (DRAFT, PRIVATE)),
]


@pytest.mark.parametrize("path", SURFACES)
def test_hidden_targets_are_as_if_not_there(api: API, bare_api: API, path: str) -> None:
    found, expected = api.get(path), bare_api.get(path)
    assert found.text == expected.text
    assert found.status_code == expected.status_code < 500
    of_versions = ("ETag",)
    assert [h for h in found.headers if h[0] not in of_versions] == [
        h for h in expected.headers if h[0] not in of_versions
    ]


@pytest.mark.parametrize("path", [path for path in SURFACES if MARK not in path])
def test_nothing_hidden_is_named(api: API, path: str) -> None:
    response = api.get(path)
    said = f"{response.text} {response.headers}".replace(f"search={HIDDEN}", "")
    assert MARK not in said
    assert HIDDEN not in said


def test_targets_stand_in_stored_order(api: API) -> None:
    item = api.json("pages/2/?fields=_,stops(_,id),photos(_,id),maps,guides(_,id)")
    assert [stop["id"] for stop in item["stops"]] == [3, 4, 3, 2]
    assert [photo["id"] for photo in item["photos"]] == [2, 1]
    assert [entry["title"] for entry in item["maps"]] == ["Document 1"]
    assert [guide["id"] for guide in item["guides"]] == [2, 1]


def test_lists_embed_targets_like_details(api: API) -> None:
    fields_ = "_,id,stops,photos,maps,guides,local,legs"
    items = api.json(f"{OWN}&fields={fields_}")["items"]
    assert items == [api.json(f"pages/{item['id']}/?fields={fields_}") for item in items]


def test_brackets_choose_fields_of_targets(api: API) -> None:
    item = api.json("pages/2/?fields=_,stops(_,slug),legs(_,through(_,title))")
    assert item["stops"][1] == {"meta": {"slug": "p4"}}
    assert item["legs"] == [{"through": [{"title": "Page 4"}, {"title": "Page 3"}]}]


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        ("stops=3", [2]),
        ("stops=2", [2, 3]),
        ("stops=4,3", [2]),
        ("stops=%203%20,2", [2]),
        ("stops=3,3", [2]),
        ("stops=2&stops=4", [2]),
        ("stops=5", []),
        ("stops=3,5", []),
        ("stops=9223372036854775808", []),
        ("stops=3,-99999999999999999999", []),
        ("photos=1,2", [2]),
        ("ways=2", [2, 3]),
        ("guides=1&stops=4", [2]),
        ("local=7", []),
        ("local=3", [2]),
    ],
)
def test_filters_want_every_target(api: API, wanted: str, ids: list[int]) -> None:
    assert api.ids(f"{OWN}&{wanted}") == ids


def test_many_targets_can_be_asked_for_at_once(make_api: MakeAPI) -> None:
    every = [*range(2, 42)]
    pages = [trail(1, stops=every), *(trail(id, 1, stops=[1]) for id in every)]
    api = make_api({"pages": pages}, types=TYPES)
    assert api.ids(f"{OWN}&stops={','.join(map(str, every))}") == [1]
    pages[5]["live"] = False
    api.load({"pages": pages})
    assert api.ids(f"{OWN}&stops={','.join(map(str, every))}") == []


def test_fields_of_one_name_are_apart(make_api: MakeAPI) -> None:
    class Walk(Page):
        app_label = "guide"
        photos = fields.List(Related("pages"))
        api_fields = ["photos"]

    pages = [trail(1, photos=[1]), page(2, 1, type="guide.Walk", photos=[2])]
    api = make_api({"pages": pages, "images": [image(1), image(2)]}, types=[*TYPES, Walk])
    assert api.ids(f"{OWN}&photos=1") == [1]
    assert api.ids(f"{OWN}&photos=2") == []
    assert api.ids("pages/?type=guide.Walk&photos=2") == [2]
    assert api.ids("pages/?type=guide.Walk&photos=1") == []


def test_targets_of_child_objects_are_not_the_pages_own(make_api: MakeAPI) -> None:
    class Part(ChildObject):
        app_label = "guide"
        stops = fields.List(Related("pages"))
        api_fields = ["stops"]

    class Tour(Page):
        app_label = "guide"
        stops = fields.List(Related("pages"))
        parts = Children(Part)
        api_fields = ["stops", "parts"]

    tour: Record = {"type": "guide.Tour", "stops": [1], "parts": [{"id": 1, "stops": [2]}]}
    api = make_api({"pages": [page(1, **tour), page(2, 1, type="guide.Tour")]}, types=[Tour])
    assert api.ids("pages/?type=guide.Tour&stops=1") == [1]
    assert api.ids("pages/?type=guide.Tour&stops=2") == []


def test_targets_within_a_site_are_those_of_the_site(api: API) -> None:
    local = f"{OWN}&fields=_,id,local(_,id)&local="
    assert api.json(f"{local}4")["items"] == [{"id": 2, "local": [{"id": 4}, {"id": 3}]}]
    other = api.at("other.example").json(f"{local}7")
    assert other["items"] == [{"id": 7, "local": [{"id": 7}]}]
    assert api.at("other.example").ids(f"{OWN}&local=2") == []


def test_the_sites_code_sees_ids_of_what_may_be_seen(api: API) -> None:
    item = api.json("pages/2/?fields=_,stop_ids,seen,first")
    assert item["stop_ids"] == [3, 4, 3, 2]
    assert item["first"] == [3]
    stops, photos, guides, local, legs, body = item["seen"]
    assert (stops, photos, guides, local) == ([3, 4, 3, 2], [2, 1], [2, 1], [4, 3])
    assert legs == [["dune", [4, 3]]]
    pages, inner = [body[0], body[1]["value"][0]], body[1]["value"][1]
    assert [entry["value"] for entry in [*pages, inner]] == [None, 3, None]


class Written(fields.Raw):
    def _serialize(self, value: Any, attr: str | None, obj: Any, **_: Any) -> Any:
        return str(value)


def test_no_field_of_blocks_writes_a_hidden_id(make_api: MakeAPI) -> None:
    class Story(Page):
        app_label = "guide"
        body = Blocks(
            {
                "page": Related("pages"),
                "text": Written(),
                "any": fields.Raw(),
                "call": lambda value: str(value),
            }
        )
        api_fields = ["body"]

    inner = [block("page", DRAFT), block("page", 1)]
    body = [block(name, inner) for name in ("text", "any", "call", "more")]
    pages = [page(1, type="guide.Story", body=body), hidden(DRAFT, live=False)]
    api = make_api({"pages": pages}, types=[Story, *TYPES])
    response = api.get("pages/1/?fields=_,body")
    assert response.status_code == 200
    assert MARK not in response.text
    assert HIDDEN not in response.text


def test_cache_tags_name_every_target_that_is_shown(api: API) -> None:
    tags = api.get("pages/2/?fields=_,stops,photos").headers["Cache-Tag"].split(", ")
    assert {*tags} == {"content", "pages-2", "pages-3", "pages-4", "images-1", "images-2"}


@on_memory
def test_embedded_objects_are_counted_wherever_they_stand(make_api: MakeAPI) -> None:
    pages = [trail(1, stops=[2, 2, DRAFT]), trail(2, 1, stops=[1, 1])]
    pages += [hidden(DRAFT, live=False)]
    api = make_api({"pages": pages}, types=TYPES, config={"CMSAPI_EMBED_MAX": 4})
    assert len(api.json("pages/1/?fields=_,stops")["stops"]) == 2
    assert len(api.json(f"{OWN}&fields=_,stops")["items"]) == 2
    stricter = make_api({"pages": pages}, types=TYPES, config={"CMSAPI_EMBED_MAX": 3})
    assert "more than 3 objects" in stricter.refusal(f"{OWN}&fields=_,stops")


# Records.


@on_memory
@pytest.mark.parametrize(
    ("stops", "why"),
    [
        (5, "must be a list of ids of objects"),
        ("5", "must be a list of ids of objects"),
        ({"id": 5}, "must be a list of ids of objects"),
        ([1, None], "must be a list of ids of objects, but [1] must be an integer"),
        (["1"], "must be a list of ids of objects, but [0] must be an integer"),
        ([True], "must be a list of ids of objects, but [0] must be an integer"),
        ([1.0], "must be a list of ids of objects, but [0] must be an integer"),
        ([[1]], "must be a list of ids of objects, but [0] must be an integer"),
        ([2**63], "must be a list of ids of objects, but [0] must be an integer of at most"),
    ],
)
def test_records_hold_lists_of_ids(make_api: MakeAPI, stops: Any, why: str) -> None:
    api = make_api({"pages": []}, types=TYPES)
    for record in ({"stops": stops}, {"legs": [{"id": 1, "through": stops}]}):
        with pytest.raises(ContentError) as raised:
            api.load({"pages": [trail(1, **record)]})
        (problem,) = raised.value.problems
        assert problem.where.startswith("pages 1")
        assert problem.field in ("stops", "through")
        assert problem.message.startswith(why)


def test_validators_hold_for_the_list_and_its_entries(make_api: MakeAPI) -> None:
    class Few(Page):
        app_label = "guide"
        stops = fields.List(
            Related("pages", validate=validate.Range(max=5)), validate=validate.Length(max=2)
        )
        api_fields = ["stops"]

    api = make_api({"pages": [page(1, type="guide.Few", stops=[1, 1])]}, types=[Few])
    assert [stop["id"] for stop in api.json("pages/1/")["stops"]] == [1, 1]
    for stops in ([1, 1, 1], [6]):
        with pytest.raises(ContentError):
            api.load({"pages": [page(1, type="guide.Few", stops=stops)]})


def test_no_relations_is_an_empty_list(make_api: MakeAPI) -> None:
    pages = [trail(1), trail(2, 1, stops=None), trail(3, 1, stops=[])]
    api = make_api({"pages": pages}, types=TYPES)
    assert [item["stops"] for item in api.json(f"{OWN}&fields=stops")["items"]] == [[], [], []]
    assert all("stops" not in record for record in api.dump()["pages"])


def test_dumps_have_what_was_stored(api: API) -> None:
    found = {record["id"]: record for record in api.dump()["pages"]}
    stored = {record["id"]: record for record in CONTENT["pages"]}
    for name in ("stops", "photos", "maps", "guides", "local", "legs"):
        assert found[2][name] == stored[2][name]


def test_content_is_not_changed_by_answers(api: API) -> None:
    before = copy.deepcopy(api.dump())
    for path in SURFACES:
        api.get(path)
    assert api.dump() == before

"""The types that can be declared, and how they work over HTTP."""

from __future__ import annotations

import enum
import uuid
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta, timezone
from operator import attrgetter
from typing import Any

import pytest
from marshmallow import Schema, fields, post_load, validate

from flask_contentapi import (
    APIField,
    APIFilter,
    Blocks,
    ChildObject,
    Children,
    ContentError,
    Document,
    Entry,
    Image,
    Page,
    Related,
    RichText,
    Tags,
)
from tests.api import API
from tests.conftest import MakeAPI
from tests.samples import Record, document, image, page, private
from tests.stores import except_files, on_memory

pytestmark = except_files


def one(make_api: MakeAPI, content_class: type[Page], **values: Any) -> API:
    """The API of a site with one page of a type, with the id 1."""
    record = page(1, type=content_class.type_label(), **values)
    return make_api({"pages": [record]}, types=[content_class])


# Plain marshmallow fields.


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Renaming(Schema):
    at = fields.DateTime()
    inner = fields.Nested(Schema.from_dict({"at": fields.DateTime()}), data_key="in-it")

    def on_bind_field(self, field_name: str, field_obj: fields.Field[Any]) -> None:
        field_obj.data_key = f"its-{field_obj.data_key or field_name}"


class Careful(Schema):
    name = fields.String()

    @post_load
    def check(self, data: dict[str, Any], **_: Any) -> Any:
        return {"name": data["name"]}


class Size(Schema):
    width = fields.Integer(required=True)
    unit = fields.String(load_default="mm")
    made = fields.Date()
    taken = fields.DateTime(data_key="taken-at")
    parts = fields.List(fields.Nested(lambda: Size(exclude=("width", "parts"))))


#: A field of each kind, a value in a record, and its form in answers.
FIELDS: dict[str, tuple[fields.Field[Any], Any, Any]] = {
    "string": (fields.String(), "ä <b>", "ä <b>"),
    "rich": (RichText(), "<p>x</p>", "<p>x</p>"),
    "uuid": (
        fields.UUID(),
        "6F9619FF-8B86-D011-B42D-00C04FC964FF",
        "6f9619ff-8b86-d011-b42d-00c04fc964ff",
    ),
    "email": (fields.Email(), "a@example.org", "a@example.org"),
    "url": (fields.Url(), "https://example.org/?a=b", "https://example.org/?a=b"),
    "ip": (fields.IP(), "2001:DB8:0::1", "2001:db8::1"),
    "ip_exploded": (fields.IPv6(exploded=True), "::1", "0000:0000:0000:0000:0000:0000:0000:0001"),
    "ipv4": (fields.IPv4(), "192.0.2.1", "192.0.2.1"),
    "interface": (fields.IPInterface(), "192.0.2.1/24", "192.0.2.1/24"),
    "enum": (fields.Enum(Colour), "RED", "RED"),
    "enum_value": (fields.Enum(Colour, by_value=True), 2, 2),
    "enum_field": (fields.Enum(Colour, by_value=fields.Integer), 1, 1),
    "integer": (fields.Integer(), -(2**63), -(2**63)),
    "integer_text": (fields.Integer(as_string=True), 7, "7"),
    "float": (fields.Float(), 1e21, 1e21),
    "float_text": (fields.Float(as_string=True), 7.5, "7.5"),
    "decimal": (fields.Decimal(), "123456789.1234567890", "123456789.123456789"),
    "decimal_number": (fields.Decimal(), 4.5, "4.5"),
    "decimal_places": (fields.Decimal(places=2), "4.5", "4.50"),
    "decimal_whole": (fields.Decimal(places=0), "1e3", "1000"),
    "boolean": (fields.Boolean(), True, True),
    "date": (fields.Date(), "0001-01-01", "0001-01-01"),
    "date_format": (fields.Date(format="%d/%m/%Y"), "2026-01-15", "15/01/2026"),
    "time": (fields.Time(), "18:30", "18:30:00"),
    "time_micro": (fields.Time(), "18:30:00.250000", "18:30:00.250000"),
    "time_few_micro": (fields.Time(), "18:30:00.010027", "18:30:00.010027"),
    "time_format": (fields.Time(format="%H.%M"), "18:30", "18.30"),
    "datetime": (fields.DateTime(), "2026-01-15T09:00:00+01:00", "2026-01-15T08:00:00Z"),
    "datetime_micro": (
        fields.DateTime(),
        "2026-01-15T09:00:00.000001",
        "2026-01-15T09:00:00.000001Z",
    ),
    "datetime_stamp": (fields.DateTime(format="timestamp"), "1970-01-02", 86400.0),
    "datetime_format": (fields.DateTime(format="%Y"), "2026-01-15T08:00:00Z", "2026"),
    "naive_iso": (fields.NaiveDateTime(), "2026-01-15T08:00:00Z", "2026-01-15T08:00:00Z"),
    "aware_iso": (fields.AwareDateTime(), "2026-01-15T08:00:00Z", "2026-01-15T08:00:00Z"),
    "naive": (fields.NaiveDateTime(format="%H"), "2026-01-15T08:00:00Z", "08"),
    "aware": (fields.AwareDateTime(format="%H"), "2026-01-15T08:00:00Z", "08"),
    "timedelta": (fields.TimeDelta(), 90, 90),
    "timedelta_minutes": (fields.TimeDelta(precision="minutes"), 90, 90),
    "dict": (fields.Dict(), {"a": [1, None, {"b": "c"}]}, {"a": [1, None, {"b": "c"}]}),
    "dict_typed": (
        fields.Dict(fields.String(), fields.Date()),
        {"a": "2026-01-15"},
        {"a": "2026-01-15"},
    ),
    "list": (fields.List(fields.Decimal()), ["4.50"], ["4.50"]),
    "list_uuid": (fields.List(fields.UUID()), [str(uuid.UUID(int=1))], [str(uuid.UUID(int=1))]),
    "tuple": (fields.Tuple((fields.Integer(), fields.String())), [1, "a"], [1, "a"]),
    "tuple_instant": (
        fields.Tuple((fields.DateTime(), fields.Decimal(places=2))),
        ["2026-01-15T09:00:00+01:00", "4.5"],
        ["2026-01-15T08:00:00Z", "4.50"],
    ),
    "dict_instant": (
        fields.Dict(fields.DateTime(), fields.DateTime()),
        {"2026-01-15T09:00:00+01:00": "2026-01-15T09:00"},
        {"2026-01-15T08:00:00Z": "2026-01-15T09:00:00Z"},
    ),
    "nested_instant": (
        fields.Nested(Size, only=("taken", "parts")),
        {"taken-at": "2026-01-15T09:00:00+01:00", "parts": [{"taken-at": "2026-01-15"}]},
        {
            "taken-at": "2026-01-15T08:00:00Z",
            "parts": [{"taken-at": "2026-01-15T00:00:00Z", "unit": "mm"}],
        },
    ),
    "nested": (fields.Nested(Size), {"width": 3}, {"width": 3, "unit": "mm"}),
    "nested_only": (
        fields.Nested(Size, only=("made",)),
        {"made": "2026-01-15"},
        {"made": "2026-01-15"},
    ),
    "nested_many": (
        fields.Nested(Size, many=True),
        [{"width": 3, "unit": "cm"}],
        [{"width": 3, "unit": "cm"}],
    ),
    "list_nested": (fields.List(fields.Nested(Size)), [{"width": 1}], [{"width": 1, "unit": "mm"}]),
    "nested_renamed": (
        fields.Nested(Renaming),
        {"its-at": "2026-01-15", "its-in-it": {"at": "2026-01-15"}},
        {"its-at": "2026-01-15T00:00:00Z", "its-in-it": {"at": "2026-01-15T00:00:00Z"}},
    ),
    "pluck": (fields.Pluck(Size, "width"), 3, 3),
    "pluck_many": (fields.Pluck(Size, "width", many=True), [3, 4], [3, 4]),
    "list_early": (
        fields.List(fields.DateTime()),
        ["0001-01-01T00:00:00+14:00"],
        ["0001-01-01T00:00:00+14:00"],
    ),
    "pluck_instant": (
        fields.Pluck(Size, "taken"),
        "2026-01-15T09:00:00+01:00",
        "2026-01-15T08:00:00Z",
    ),
    "dict_number": (fields.Dict(fields.Integer()), {"7": "x"}, {"7": "x"}),
    "raw": (fields.Raw(), [{"x": 1.5}], [{"x": 1.5}]),
    "tags": (Tags(), ["b", "a", "B", "a"], ["B", "a", "b"]),
    "blocks": (
        Blocks(),
        [{"type": "t", "value": 1, "id": "x"}],
        [{"type": "t", "value": 1, "id": "x"}],
    ),
}
#: The answers if a record has no value; null for others.
EMPTY: Mapping[str, Any] = {"string": "", "rich": "", "email": "", "url": "", "boolean": False}
EMPTY = {**EMPTY, "tags": [], "blocks": []}


class Every(Page):
    app_label = "lab"
    api_fields = [*FIELDS, APIField("as_text", fields.Function(lambda page: repr(vars(page))))]


for name, (field, _, _) in FIELDS.items():
    setattr(Every, name, field)


@pytest.fixture(scope="module")
def every(make_api: MakeAPI) -> API:
    pages = [
        page(1, type="lab.Every", **{name: value for name, (_, value, _) in FIELDS.items()}),
        page(2, type="lab.Every"),
        page(3, type="lab.Every", **dict.fromkeys(FIELDS)),
    ]
    return make_api({"pages": pages}, types=[Every])


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_is_answered_in_its_own_way(every: API, name: str) -> None:
    wanted = FIELDS[name][2]
    assert every.json("pages/1/?fields=*")[name] == wanted
    assert every.items(f"pages/?type=lab.Every&fields={name}")[0][name] == wanted


@pytest.mark.parametrize("name", FIELDS)
def test_left_out_fields_are_empty(every: API, name: str) -> None:
    left_out, null = every.json("pages/2/")[name], every.json("pages/3/")[name]
    assert left_out == null == EMPTY.get(name)


class InBlocks(Page):
    app_label = "lab"
    body = Blocks({name: field for name, (field, _, _) in FIELDS.items()})
    api_fields = ["body"]


@pytest.fixture(scope="module")
def in_blocks(make_api: MakeAPI) -> API:
    body = [{"type": name, "value": value} for name, (_, value, _) in FIELDS.items()]
    return make_api({"pages": [page(1, type="lab.InBlocks", body=body)]}, types=[InBlocks])


def test_a_block_is_represented_as_the_field_of_its_value_is_answered(in_blocks: API) -> None:
    shown = {block["type"]: block["value"] for block in in_blocks.json("pages/1/")["body"]}
    assert shown == {name: wanted for name, (_, _, wanted) in FIELDS.items()}


@on_memory
def test_a_schema_that_fails_in_its_own_way_refuses_the_value(make_api: MakeAPI) -> None:
    guarded = type(
        "Guarded",
        (Page,),
        {"app_label": "lab", "it": fields.Nested(Careful), "api_fields": ["it"]},
    )
    api = make_api({}, types=[guarded])
    with pytest.raises(ContentError, match="pages 1, it: cannot be read: KeyError"):
        api.load({"pages": [page(1, type="lab.Guarded", it={})]})


@on_memory
@pytest.mark.parametrize(
    ("name", "value", "said"),
    [("date", "tomorrow", "must be a date"), ("integer", "7", "must be an integer")],
)
def test_a_block_whose_value_is_none_of_its_field_is_refused(
    make_api: MakeAPI, name: str, value: Any, said: str
) -> None:
    body = [{"type": "other", "value": [{"type": name, "value": value}]}]
    api = make_api({}, types=[InBlocks])
    message = f"pages 1, body: has a block '{name}' whose value {said}"
    with pytest.raises(ContentError, match=message):
        api.load({"pages": [page(1, type="lab.InBlocks", body=body)]})


FILTERS = {
    "uuid": ["6f9619ff-8b86-d011-b42d-00c04fc964ff", "6F9619FF8B86D011B42D00C04FC964FF"],
    "ip": ["2001:db8::1", "2001:0DB8::0001"],
    "ipv4": ["192.0.2.1"],
    "interface": ["192.0.2.1/24"],
    "enum": ["RED"],
    "email": ["a@example.org"],
    "integer_text": ["7", "07"],
    "float": ["1e21", "1000000000000000000000"],
    "decimal": ["123456789.123456789"],
    "date_format": ["2026-01-15"],
    "time_format": ["18:30", "18:30:00.000"],
    "datetime_format": ["2026-01-15T08:00:00Z"],
    "datetime_stamp": ["1970-01-02"],
    "naive": ["2026-01-15T09:00:00+01:00"],
    "tags": ["a", "a,b", "B"],
}


@pytest.mark.parametrize("name", FILTERS)
def test_stored_values_can_be_filtered_by(every: API, name: str) -> None:
    for text in FILTERS[name]:
        query = {"type": "lab.Every", name: text}
        assert every.ids("pages/", query_string=query) == [1]


@on_memory
@pytest.mark.parametrize("name", ["uuid", "ip", "ipv4", "interface", "enum"])
@pytest.mark.parametrize("text", ["garbage", "", "1", "red"])
def test_filters_that_no_value_can_equal_are_refused(every: API, name: str, text: str) -> None:
    assert name in every.refusal(f"pages/?type=lab.Every&{name}={text}")


@on_memory
@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("uuid", "must be a UUID, such as 6f9619ff-8b86-d011-b42d-00c04fc964ff."),
        ("ip", "must be an IP address, such as 192.0.2.1."),
        ("ip_exploded", "must be an IPv6 address, such as 2001:db8::1."),
        ("ipv4", "must be an IPv4 address, such as 192.0.2.1."),
        ("interface", "must be an IP interface, such as 192.0.2.1/24."),
        ("enum", "must be one of RED, BLUE."),
    ],
)
def test_refusals_of_such_filters_say_what_would_be_right(
    every: API, name: str, wanted: str
) -> None:
    assert every.refusal(f"pages/?type=lab.Every&{name}=x") == f"{name} {wanted}"


@on_memory
@pytest.mark.parametrize("name", FIELDS)
def test_json_is_neither_filtered_nor_ordered_by(every: API, name: str) -> None:
    as_json = name.split("_")[0] in "dict list tuple nested pluck raw timedelta blocks".split()
    as_json = as_json or name in ("enum_value", "enum_field")
    filtered = every.status(f"pages/?type=lab.Every&{name}=")
    ordered = every.status(f"pages/?type=lab.Every&order={name}")
    assert (ordered == 400) == (as_json or name == "tags")
    assert not as_json or filtered == 400


#: Values that records cannot hold, by field.
WRONG: list[tuple[str, Any]] = [
    ("string", 5),
    ("string", "a\0"),
    ("string", "\ud800"),
    ("uuid", "garbage"),
    ("uuid", 5),
    ("uuid", ""),
    ("email", "nobody"),
    ("email", ""),
    ("url", "example"),
    ("ip", "1.2.3"),
    ("ipv4", "::1"),
    ("interface", "1.2.3.4/99"),
    ("enum", "GREEN"),
    ("enum", "red"),
    ("enum", 1),
    ("enum_value", 3),
    ("enum_value", "RED"),
    ("enum_field", 3),
    ("integer", 7.5),
    ("integer", "7"),
    ("integer", True),
    ("integer", 2**63),
    ("float", "7.5"),
    ("float", 10**400),
    ("float", False),
    ("decimal", "abc"),
    ("decimal", "NaN"),
    ("decimal", "1" * 31),
    ("decimal", "0." + "1" * 31),
    ("decimal", []),
    ("decimal_places", "4.501"),
    ("decimal_whole", "4.5"),
    ("boolean", 1),
    ("boolean", "true"),
    ("date", "2026-02-30"),
    ("date", "15/01/2026"),
    ("date", 20260115),
    ("date_format", "15/01/2026"),
    ("time", "25:00"),
    ("time", 18),
    ("datetime", "yesterday"),
    ("datetime", 0),
    ("datetime_stamp", 86400),
    ("timedelta", "x"),
    ("dict", []),
    ("dict_typed", {"a": "x"}),
    ("list", {"a": 1}),
    ("list", ["x"]),
    ("list_uuid", ["x"]),
    ("tuple", [1]),
    ("nested", {}),
    ("nested", {"width": "x"}),
    ("nested", {"width": 1, "height": 1}),
    ("nested_many", {"width": 1}),
    ("pluck", "x"),
    ("raw", {1: 2}),
    ("raw", {"a": object()}),
    ("tags", "a"),
    ("tags", [1]),
    ("tags", [None]),
    ("blocks", {}),
    ("blocks", "x"),
]


@on_memory
@pytest.mark.parametrize(("name", "value"), WRONG)
def test_values_that_do_not_fit_are_refused(every: API, name: str, value: Any) -> None:
    with pytest.raises(ContentError) as raised:
        every.load({"pages": [page(1, type="lab.Every", **{name: value})]})
    assert [(p.where, p.field) for p in raised.value.problems] == [("pages 1", name)]


@pytest.mark.parametrize("name", ["raw", "blocks"])
def test_json_is_nested_64_deep_and_no_deeper(make_api: MakeAPI, name: str) -> None:
    nested: Any = 1
    for _ in range(64):
        nested = [nested]
    assert one(make_api, Every, **{name: nested}).json("pages/1/")[name] == nested
    with pytest.raises(ContentError, match=f"pages 1, {name}: .* 64 deep"):
        one(make_api, Every, **{name: [nested]})


# Options of fields.


class Strict(Page):
    app_label = "lab"
    code = fields.String(required=True, validate=validate.Length(min=2))
    count = fields.Integer(load_default=3, validate=validate.Range(0, 9))
    colour = fields.Enum(Colour, load_default=Colour.BLUE)
    key = fields.UUID(load_default=lambda: uuid.UUID(int=7))
    day = fields.Date(load_default=date(2026, 1, 15))
    note = fields.String(load_default=None)
    names = fields.List(fields.String(), load_default=list)
    api_fields = ["code", "count", "colour", "key", "day", "note", "names"]


def test_left_out_fields_have_their_default(make_api: MakeAPI) -> None:
    item = one(make_api, Strict, code="ab").json("pages/1/")
    assert {name: item[name] for name in Strict.api_fields if isinstance(name, str)} == {
        "code": "ab",
        "count": 3,
        "colour": "BLUE",
        "key": str(uuid.UUID(int=7)),
        "day": "2026-01-15",
        "note": None,
        "names": [],
    }


@on_memory
@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({}, "code"),
        ({"code": None}, "code"),
        ({"code": "a"}, "code"),
        ({"code": "ab", "count": 10}, "count"),
    ],
)
def test_required_fields_and_validators_hold(
    make_api: MakeAPI, values: dict[str, Any], name: str
) -> None:
    with pytest.raises(ContentError, match=f"pages 1, {name}: "):
        one(make_api, Strict, **values)


class Own(fields.Field[tuple[int, int]]):
    """A site's own field: a point, stored as JSON."""

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> tuple[int, int]:
        x, y = value
        return int(x), int(y)

    def _serialize(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        return None if value is None else {"x": value[0], "y": value[1]}


class Shouting(fields.String):
    """A site's own field that stores texts as its base class does, but writes capitals."""

    def _serialize(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        return None if value is None else value.upper()


class Place(Page):
    app_label = "lab"
    point = Own()
    name = Shouting()
    api_fields = ["point", "name", APIField("x", fields.Integer(), source="first")]

    def first(self: Any) -> Any:
        return self.point and self.point[0]


def test_fields_of_the_sites_own_read_and_write(make_api: MakeAPI) -> None:
    api = one(make_api, Place, point=[1, 2], name="pier")
    item = api.json("pages/1/")
    assert (item["point"], item["name"], item["x"]) == ({"x": 1, "y": 2}, "PIER", 1)
    assert api.ids("pages/?type=lab.Place&name=pier") == [1]


# Inherited types.


class Timed:
    """A mixin with fields."""

    starts = fields.DateTime()
    ends = fields.DateTime()


class Event(Timed, Page):
    app_label = "events"
    venue = fields.String()
    api_fields = ["starts", "venue"]
    search_fields = ["venue"]


class Concert(Event):
    app_label = "music"
    band = fields.String()
    api_fields = [*Event.api_fields, "band"]
    search_fields = [*Event.search_fields, "band"]


class Festival(Concert):
    app_label = "music"
    days = fields.Integer()
    api_fields = ["days", *Concert.api_fields]
    starts = fields.DateTime(required=True)


@pytest.fixture(scope="module")
def events(make_api: MakeAPI) -> API:
    start = "2026-06-01T00:00:00Z"
    pages = [
        page(1, type="events.Event", venue="Hall", starts=start),
        page(2, type="music.Concert", venue="Hall", band="The Gulls"),
        page(3, type="music.Festival", venue="Pier", band="Gulls", days=3, starts=start),
    ]
    return make_api({"pages": pages}, types=[Event, Concert, Festival])


def test_a_type_brings_in_those_derived_from_it(events: API) -> None:
    assert events.ids("pages/?type=events.Event") == [1, 2, 3]
    assert events.ids("pages/?type=music.Concert") == [2, 3]
    assert events.ids("pages/?type=music.FESTIVAL") == [3]
    assert events.ids("pages/?type=music.Festival,events.Event") == [1, 2, 3]


def test_derived_types_are_filtered_ordered_and_shown_by_the_fields_asked_for(events: API) -> None:
    assert events.ids("pages/?type=events.Event&venue=Hall&order=-venue,-id") == [2, 1]
    items = events.items("pages/?type=events.Event&fields=_,id,starts,venue&order=starts")
    assert items[0] == {"id": 2, "starts": None, "venue": "Hall"}
    assert events.refusal("pages/?type=events.Event&band=Gulls")
    assert events.ids("pages/?type=music.Concert&order=band") == [3, 2]


class Party(Event):
    app_label = "events"
    host = fields.String()
    api_fields = [*Event.api_fields, "host"]


class Notice(Page):
    app_label = "events"


@pytest.fixture(scope="module")
def meetings(make_api: MakeAPI) -> API:
    pages = [
        page(1, type="events.Event", venue="Hall"),
        page(2, type="music.Concert", venue="Hall", band="The Gulls"),
        page(3, type="events.Party", venue="Pier", host="Ada"),
        page(4, type="events.Notice"),
    ]
    return make_api({"pages": pages}, types=[Notice, Event, Concert, Festival, Party])


@pytest.mark.parametrize(
    ("query", "items"),
    [
        ("fields=_,id,venue", [{"id": 2, "venue": "Hall"}, {"id": 3, "venue": "Pier"}]),
        ("fields=_,id&venue=Pier", [{"id": 3}]),
        ("fields=_,id&order=-venue", [{"id": 3}, {"id": 2}]),
    ],
)
def test_several_types_bring_the_fields_of_the_type_above_them(
    meetings: API, query: str, items: list[Any]
) -> None:
    assert meetings.items(f"pages/?type=music.Concert,events.Party&{query}") == items


@on_memory
@pytest.mark.parametrize("query", ["band=x", "order=band", "fields=nobody"])
def test_several_types_have_filters_in_common_alone(meetings: API, query: str) -> None:
    assert meetings.refusal(f"pages/?type=music.Concert,events.Party&{query}")
    assert meetings.refusal(f"pages/?type=music.Concert,events.Event&{query}")


def test_types_without_a_type_above_them_bring_what_all_pages_have(meetings: API) -> None:
    query = "type=events.Notice,events.Party&order=-title"
    assert meetings.ids(f"pages/?{query}") == [4, 3]
    assert meetings.refusal(f"pages/?{query}&venue=x")


def test_each_of_several_types_shows_its_own_fields(meetings: API) -> None:
    query = "type=music.Concert,events.Party&fields=_,type,band,host"
    shown = {item["meta"]["type"]: {*item} - {"meta"} for item in meetings.items(f"pages/?{query}")}
    assert shown == {"music.Concert": {"band"}, "events.Party": {"host"}}


@pytest.mark.parametrize("left_out", ["-type,-host", "-host,-type,-venue,-detail_url"])
def test_a_field_of_one_of_several_types_can_be_left_out(meetings: API, left_out: str) -> None:
    query = f"type=music.Concert,events.Party&fields=id,{left_out}"
    items = meetings.items(f"pages/?{query}")
    assert [item["id"] for item in items] == [2, 3]
    assert not any({"host", "type"} & {*item, *item["meta"]} for item in items)


def test_a_field_of_several_types_is_asked_for_with_the_one_that_brings_all(events: API) -> None:
    message = events.refusal("pages/?fields=venue")
    assert message.endswith("It is a field of events.Event; ask for type=events.Event.")
    assert "ask for type=music.Concert." in events.refusal("pages/?type=events.Event&band=Gulls")


def test_fields_come_in_the_order_of_their_own_type(events: API) -> None:
    assert list(events.json("pages/3/"))[3:] == ["days", "starts", "venue", "band"]
    assert list(events.json("pages/1/"))[3:] == ["starts", "venue"]


def test_each_type_is_searched_by_its_own_fields(events: API) -> None:
    assert sorted(events.ids("pages/?search=gulls hall")) == [1, 2, 3]
    assert events.ids("pages/?type=events.Event&search=gulls&order=id") == [2, 3]


# The site's own images and documents, and several types of them.


class Picture(Image):
    app_label = "media"
    credit = fields.String()
    taken = Related("pages")
    search_fields = ["credit"]
    api_fields = ["credit", "taken"]


class Drawing(Picture):
    app_label = "media"
    scale = fields.Decimal(places=1)
    api_fields = [*Picture.api_fields, "scale"]


class Paper(Document):
    app_label = "media"
    cover = Related("images")
    language = fields.String()
    api_fields = ["cover", APIField("lang", source="language")]
    listing_default_fields = [*Document.listing_default_fields, "lang"]


MEDIA = {
    "pages": [page(1, type="flask_contentapi.Page")],
    "images": [
        image(1, type="media.Picture", credit="Osei", taken=1, width=3, height=4),
        image(2, type="media.Drawing", scale="0.5", tags=["b", "a"]),
    ],
    "documents": [document(1, cover=2, language="en"), document(2, cover=9)],
}


@pytest.fixture(scope="module")
def media(make_api: MakeAPI) -> API:
    return make_api(MEDIA, types=[Picture, Drawing, Paper])


def test_images_of_the_sites_own_type(media: API) -> None:
    item = media.json("images/1/")
    assert list(item) == ["id", "meta", "title", "width", "height", "credit", "taken"]
    assert (item["meta"]["type"], item["credit"], item["taken"]["id"]) == (
        "media.Picture",
        "Osei",
        1,
    )
    assert media.ids("images/?credit=Osei&search=osei") == [1]


def test_several_types_of_images_can_be_asked_for(media: API) -> None:
    assert media.ids("images/?type=media.Drawing&scale=0.5") == [2]
    assert media.ids("images/?type=media.Picture") == [1, 2]
    assert media.refusal("images/?scale=0.5")
    assert media.json("images/2/")["scale"] == "0.5"


def test_documents_have_relations_and_renamed_fields(media: API) -> None:
    (first, second) = media.items("documents/?fields=cover(tags)")
    assert first["lang"] == "en"
    assert first["cover"]["meta"]["tags"] == ["a", "b"]
    assert second["cover"] is None
    assert media.ids("documents/?lang=en&order=lang") == [1]
    assert media.refusal("documents/?language=en")


def test_the_type_can_be_left_out_where_there_is_one(media: API, make_api: MakeAPI) -> None:
    assert media.json("documents/1/")["meta"]["type"] == "media.Paper"
    with pytest.raises(ContentError, match=r"media\.Picture, media\.Drawing"):
        make_api({"images": [image(1)]}, types=[Picture, Drawing])


def test_without_types_the_packages_own_are_served(make_api: MakeAPI) -> None:
    content = {"pages": [page(1, type="flask_contentapi.Page")], "images": [image(1)]}
    api = make_api({**content, "documents": [document(1)]}, types=[])
    assert api.json("pages/1/")["meta"]["type"] == "flask_contentapi.Page"
    assert api.json("images/1/")["meta"]["type"] == "flask_contentapi.Image"
    assert api.json("documents/1/")["meta"]["type"] == "flask_contentapi.Document"


# An additional endpoint.


class Team(ChildObject):
    app_label = "staff"
    name = fields.String()
    lead = Related("people")
    page = Related("pages")
    api_fields = ["name", "lead", "page"]


class Person(Entry):
    app_label = "staff"
    endpoint = "people"
    name = fields.String(required=True)
    born = fields.Date()
    boss = Related("people")
    home = Related("pages")
    portrait = Related("images")
    topics = Tags()
    teams = Children(Team)
    search_fields = ["name", "topics"]
    api_fields = ["name", "born", "boss", "home", "portrait", "topics", "teams"]
    listing_default_fields = nested_default_fields = [*Entry.listing_default_fields, "name"]
    api_filters = [
        APIFilter("born_after", "born", "gt"),
        APIFilter("born_from", "born", "ge"),
        APIFilter("born_before", "born", "lt"),
        APIFilter("born_until", "born", "le"),
        APIFilter("name_from", "name", "ge"),
    ]


class Article(Page):
    app_label = "news"
    author = Related(Person)
    api_fields = ["author"]


PEOPLE = {
    "collections": [{"id": 1, "restriction": private()}],
    "images": [image(1), image(2, collection=1)],
    "pages": [
        page(1, type="news.Article", author=2),
        page(2, 1, type="news.Article", author=9),
        page(3, 1, type="news.Article", restriction=private(), author=1),
    ],
    "people": [
        {"id": 2, "name": "Bo", "born": "1990-05-01", "boss": 1, "home": 3, "portrait": 2},
        {
            "id": 1,
            "name": "Ada",
            "born": "1980-01-01",
            "boss": 1,
            "home": 1,
            "portrait": 1,
            "topics": ["storms", "Knots"],
            "teams": [{"id": 1, "name": "Ropes", "lead": 2, "page": 3}],
        },
        {"id": 3, "name": "bo"},
    ],
}


@pytest.fixture(scope="module")
def people(make_api: MakeAPI) -> API:
    return make_api(PEOPLE, types=[Article, Person])


class Reading(Page):
    app_label = "tide"
    level = fields.Integer()
    depth = fields.Decimal()
    price = fields.Decimal(places=2)
    taken = fields.DateTime()
    hour = fields.Time()
    api_fields = ["level", "depth", "price", "taken", "hour"]
    api_filters = [
        APIFilter(f"{name}_{operator}", name, operator)
        for name in ("level", "depth", "price", "taken", "hour")
        for operator in ("lt", "le", "gt", "ge")
    ]


NINES = "9" * 30
READINGS = [
    page(1, type="tide.Reading"),
    page(
        2,
        type="tide.Reading",
        level=-(2**63),
        depth=f"-{NINES}.{NINES}",
        price="-4.51",
        taken="0001-01-01T00:00:00Z",
        hour="00:00",
    ),
    page(
        3,
        type="tide.Reading",
        level=0,
        depth="1.5",
        price="4.50",
        taken="2026-01-15T08:00:00Z",
        hour="08:00",
    ),
    page(
        4,
        type="tide.Reading",
        level=2**63 - 1,
        depth=f"{NINES}.{NINES}",
        price="4.51",
        taken="9999-12-31T23:59:59.999999Z",
        hour="23:59:59.999999",
    ),
]
#: Values that cannot be stored, each with how many of the three stored values are less.
BETWEEN = {
    "level": {"-9223372036854775809": 0, "9223372036854775808": 3, "9" * 4000: 3},
    "depth": {
        "-1e40": 0,
        f"-{NINES}.{NINES}1": 0,
        "1." + "4" * 40: 1,
        "1.5" + "0" * 40 + "1": 2,
        "1e-999999999": 1,
        "-1e-999999999": 1,
        "1e999999999": 3,
    },
    "price": {"-4.511": 0, "4.499": 1, "4.501": 2, "4.5051": 2, "1e30": 3},
    "taken": {
        "2026-01-15T08:00:00.000000001Z": 2,
        "2026-01-15T07:59:59.9999999": 1,
        "2026-01-15T09:00:00.0000001%2B01:00": 2,
        "9999-12-31T23:59:59.9999999Z": 3,
    },
    "hour": {"08:00:00.0000001": 2, "07:59:59.999999999": 1, "23:59:59.9999999": 3},
}


@pytest.fixture(scope="module")
def readings(make_api: MakeAPI) -> API:
    return make_api({"pages": READINGS}, types=[Reading])


@pytest.mark.parametrize(
    ("name", "value", "below"),
    [(name, value, below) for name, values in BETWEEN.items() for value, below in values.items()],
    ids=lambda value: str(value)[:40],
)
def test_values_that_cannot_be_stored_are_compared_as_they_are(
    readings: API, name: str, value: str, below: int
) -> None:
    stored = [2, 3, 4]
    found = {
        operator: readings.ids(f"pages/?type=tide.Reading&{name}{operator}={value}")
        for operator in ("", "_lt", "_le", "_gt", "_ge")
    }
    less, greater = stored[:below], stored[below:]
    assert found == {"": [], "_lt": less, "_le": less, "_gt": greater, "_ge": greater}


@on_memory
def test_a_filter_of_another_type_is_told_where_it_is(make_api: MakeAPI) -> None:
    api = make_api({"pages": READINGS}, types=[Reading, Article, Person])
    message = api.refusal("pages/?level_lt=5")
    assert message.endswith("It is a filter of tide.Reading; ask for type=tide.Reading.")


def test_digits_of_an_instant_that_are_all_zero_change_nothing(readings: API) -> None:
    query = "pages/?type=tide.Reading&taken=2026-01-15T08:00:00.000000000Z&hour=08:00:00.0000000"
    assert readings.ids(query) == [3]


def test_a_further_endpoint_has_lists_and_details(people: API) -> None:
    assert people.json("people/?limit=1") == {
        "meta": {"total_count": 3},
        "items": [
            {
                "id": 1,
                "meta": {
                    "type": "staff.Person",
                    "detail_url": "http://localhost/api/v2/people/1/",
                },
                "name": "Ada",
            }
        ],
    }
    assert list(people.json("people/1/")) == ["id", "meta", *map(str, Person.api_fields)]
    assert people.status("people/4/") == 404
    assert people.get("people/find/?id=2").headers["Location"].endswith("/people/2/")


def test_a_further_endpoint_is_filtered_ordered_and_searched(people: API) -> None:
    assert people.ids("people/?name=Bo") == [2]
    assert people.ids("people/?order=-name") == [3, 2, 1]
    assert people.ids("people/?order=born,-id") == [3, 1, 2]
    assert people.ids("people/?search=KNOTS") == [1]
    assert sorted(people.ids("people/?search=bo")) == [2, 3]
    assert people.ids("people/?topics=storms,Knots") == [1]
    assert people.ids("people/?boss=1&limit=1&offset=1") == [2]
    for wrong in ("type=staff.Person", "child_of=1", "site=localhost", "title=x", "locale=en"):
        assert people.refusal(f"people/?{wrong}")


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("born_after=1980-01-01", [2]),
        ("born_from=1980-01-01", [1, 2]),
        ("born_before=1990-05-01", [1]),
        ("born_until=1990-05-01", [1, 2]),
        ("born_from=1980-01-01&born_before=1990-05-01", [1]),
        ("born_after=9999-12-31", []),
        ("name_from=Bo", [2, 3]),
        ("name_from=b&born_until=9999-12-31", []),
    ],
)
def test_filters_of_the_sites_own_compare(people: API, query: str, ids: list[int]) -> None:
    assert people.ids(f"people/?{query}") == ids
    assert people.total(f"people/?{query}") == len(ids)


def test_filters_of_the_sites_own_read_their_values(people: API) -> None:
    assert "born_after" in people.refusal("people/?born_after=yesterday")
    assert "born_after" in people.refusal("people/?born_after=")


def test_relations_go_both_ways(people: API) -> None:
    item = people.json("pages/1/?fields=author(boss(name),home(title),portrait(*))")
    author = item["author"]
    assert (author["name"], author["boss"]["name"]) == ("Bo", "Ada")
    assert (author["home"], author["portrait"]) == (None, None)
    assert people.json("people/1/?fields=home(title)")["home"]["title"] == "Page 1"
    assert people.json("pages/2/")["author"] is None
    assert people.json("pages/1/")["author"] == {
        "id": 2,
        "meta": {"type": "staff.Person", "detail_url": "http://localhost/api/v2/people/2/"},
        "name": "Bo",
    }


def test_relations_may_go_round_in_a_circle(people: API) -> None:
    boss = people.json("people/1/?fields=boss(boss(boss(boss(_,name))))")["boss"]
    assert boss["boss"]["boss"]["boss"] == {"name": "Ada"}
    nested = "boss(" * 10 + "_,id" + ")" * 10
    assert people.status(f"people/1/?fields={nested}") == 200
    assert people.refusal(f"people/1/?fields=boss({nested})")


def test_children_of_a_further_endpoint_have_relations(people: API) -> None:
    teams = people.json("people/1/?fields=teams(name,lead(_,name),page)")["teams"]
    assert teams == [
        {
            "id": 1,
            "meta": {"type": "staff.Team"},
            "name": "Ropes",
            "lead": {"name": "Bo"},
            "page": None,
        }
    ]


def test_relations_filter_by_id(people: API) -> None:
    assert people.ids("pages/?type=news.Article&author=2") == [1]
    assert people.ids("people/?home=1") == [1]
    assert people.ids("people/?home=3") == []


# Computed and renamed keys.


class Byline(ChildObject):
    app_label = "news"
    name = fields.String()
    person = Related("people")
    api_fields = ["name", APIField("initial", fields.String(), source="first", needs=["name"])]

    @property
    def first(self: Any) -> str:
        return str(self.name[:1])


class Story(Page):
    app_label = "news"
    written = fields.Date()
    length = fields.Integer()
    key = fields.UUID()
    tags = Tags()
    body = Blocks()
    author = Related("people")
    bylines = Children(Byline)
    api_fields = [
        APIField("day", source="written"),
        APIField("day_text", fields.Date(format="%d.%m."), source="written"),
        APIField("minutes", fields.Integer(), source="reading_time"),
        APIField("shout", fields.String(), source="in_capitals", needs=["title"]),
        APIField("length", fields.Function(lambda page: page.length and -page.length)),
        APIField("kind", fields.Constant("story")),
        APIField("fixed", fields.Integer(), source="number"),
        APIField("types", fields.Function(lambda page: page.kinds())),
        APIField("writer", fields.Raw(), source="author_id"),
        APIField("names", fields.List(fields.String()), source="all_names"),
        APIField("when", fields.DateTime(), source="at_noon", needs=["written"]),
        APIField("price", fields.Decimal(places=1), source="cost", needs=[]),
        APIField("by", source="bylines"),
        APIField("pen", source="author"),
    ]
    number = 7

    @property
    def reading_time(self: Any) -> int:
        return int(self.length // 200)

    def in_capitals(self: Any) -> str:
        return str(self.title.upper())

    def kinds(self: Any) -> list[str]:
        own = (self.written, self.key, self.tags, self.body, self.bylines[0])
        return [type(value).__name__ for value in own]

    def author_id(self: Any) -> Any:
        return self.author

    def all_names(self: Any) -> list[str]:
        return [f"{byline.first}.{byline.person}" for byline in self.bylines]

    def at_noon(self: Any) -> datetime:
        noon = datetime(self.written.year, self.written.month, self.written.day, 12)
        return noon.replace(tzinfo=timezone(timedelta(hours=2)))

    def cost(self: Any) -> str:
        return "4.449"


STORY = page(
    1,
    type="news.Story",
    written="2026-01-15",
    length=450,
    key=str(uuid.UUID(int=1)),
    tags=["b", "a"],
    body=[{"type": "x", "value": 1}],
    author=2,
    bylines=[{"id": 1, "name": "Ada", "person": 2}, {"id": 2, "name": "Bo", "person": 8}],
)


@pytest.fixture(scope="module")
def story(make_api: MakeAPI) -> API:
    return make_api({**PEOPLE, "pages": [STORY]}, types=[Story, Person])


def test_keys_are_computed_by_the_sites_code(story: API) -> None:
    item = story.json("pages/1/")
    assert {name: item[name] for name in list(item)[3:-2]} == {
        "day": "2026-01-15",
        "day_text": "15.01.",
        "minutes": 2,
        "shout": "PAGE 1",
        "length": -450,
        "kind": "story",
        "fixed": 7,
        "types": ["date", "UUID", "tuple", "list", "Byline"],
        "writer": 2,
        "names": ["A.2", "B.None"],
        "when": "2026-01-15T10:00:00Z",
        "price": "4.4",
    }
    assert [(entry["name"], entry["initial"]) for entry in item["by"]] == [
        ("Ada", "A"),
        ("Bo", "B"),
    ]
    assert item["pen"]["name"] == "Bo"


class Reference(Page):
    app_label = "news"
    other = Related("pages")
    api_fields = [APIField("other_id", fields.Integer(), source="other")]


def test_another_field_writes_no_hidden_relation(make_api: MakeAPI) -> None:
    pages = [
        page(1, type="news.Reference", other=2),
        page(2, 1, type="news.Reference", other=1, restriction=private()),
        page(3, 1, type="news.Reference", other=1),
    ]
    api = make_api({"pages": pages}, types=[Reference])
    items = api.json("pages/?type=news.Reference&fields=_,id,other_id")["items"]
    assert items == [{"id": 1, "other_id": None}, {"id": 3, "other_id": 1}]
    assert api.json("pages/1/?fields=_,other_id") == {"other_id": None}


def test_renamed_fields_are_filtered_and_ordered_by_their_new_name(story: API) -> None:
    assert story.ids("pages/?type=news.Story&day=2026-01-15&order=-day") == [1]
    assert story.ids("pages/?type=news.Story&pen=2&order=pen") == [1]
    for wrong in ("written=2026-01-15", "order=written", "author=2", "order=by", "by=1"):
        assert story.refusal(f"pages/?type=news.Story&{wrong}")


@on_memory
@pytest.mark.parametrize(
    "name", ["day_text", "minutes", "length", "kind", "fixed", "shout", "writer"]
)
def test_computed_keys_are_neither_filtered_nor_ordered_by(story: API, name: str) -> None:
    assert story.refusal(f"pages/?type=news.Story&{name}=1")
    assert story.refusal(f"pages/?type=news.Story&order={name}")
    assert story.refusal(f"pages/1/?fields={name}(x)")


def test_computations_see_only_what_they_need(make_api: MakeAPI) -> None:
    seen: list[set[str]] = []

    def look(page: Any) -> None:
        seen.append(set(vars(page)))

    class Narrow(Page):
        app_label = "news"
        api_fields = [
            APIField("one", fields.Function(look), needs=["title", "live"]),
            APIField("all", fields.Function(look)),
        ]

    api = one(make_api, Narrow)
    api.json("pages/1/?fields=_,one")
    api.json("pages/1/?fields=_,all")
    assert seen[0] == {"title", "live"}
    assert seen[1] == set(Page.declared_fields()) - {"parent", "alias_of"}


@on_memory
def test_no_class_is_made_by_what_clients_ask(make_api: MakeAPI) -> None:
    class Asked(Page):
        app_label = "asked"
        api_fields = [
            APIField("one", fields.Function(lambda asked: asked.title), needs=["title"]),
            APIField("other", fields.Function(lambda asked: asked.slug), needs=["slug"]),
        ]

    api = make_api({"pages": [{**page(1), "type": "asked.Asked"}]}, types=[Asked])
    for selected in ("one", "other", "one,other", "*", "_,one,slug", "_,id,other"):
        api.json(f"pages/?type=asked.Asked&fields={selected}")
    assert len(Asked.__subclasses__()) == 2


@on_memory
@pytest.mark.parametrize(("field", "needs"), [("body", ["title"]), ("parent", None)])
def test_a_computation_that_reads_more_than_it_needs_is_told_so(
    make_api: MakeAPI, field: str, needs: list[str] | None
) -> None:
    class Greedy(Page):
        app_label = "news"
        body = fields.String()
        api_fields = [APIField("it", fields.Function(attrgetter(field)), needs=needs)]

    api = one(make_api, Greedy)
    with pytest.raises(AttributeError, match=f"{field} is not read for this; name it in needs"):
        api.get("pages/1/?fields=_,it")


def test_what_a_computation_changes_is_its_own(make_api: MakeAPI) -> None:
    def spoil(page: Any) -> Any:
        page.body.append("spoilt")
        page.body[0]["value"] = "spoilt"
        page.title = "spoilt"

    class Careless(Page):
        app_label = "news"
        body = Blocks()
        data = fields.Raw()
        api_fields = ["body", APIField("nothing", fields.Function(spoil))]

    api = one(make_api, Careless, body=[{"type": "x", "value": 1}])
    first, second = (api.json("pages/1/?fields=*") for _ in range(2))
    assert first == second
    assert first["body"] == [{"type": "x", "value": 1}]


# Blocks.


class Gallery(Page):
    app_label = "lab"
    body = Blocks(
        {
            "image": Related("images"),
            "page": Related("pages", shown="_,id,title"),
            "day": fields.Date(format="%d/%m/%Y"),
            "group": fields.List(fields.Dict()),
            "loud": lambda value: value.upper(),
            "list": lambda value: {"entries": value},
            "person": Related("people", shown="_,name,boss(_,name)"),
        }
    )
    search_fields = ["body"]
    api_fields = ["body"]


BODY: list[Record] = [
    {"type": "image", "value": 1, "id": "a"},
    {"type": "image", "value": 2, "id": "b"},
    {"type": "image", "value": None},
    {"type": "image", "value": "1"},
    {"type": "image", "value": True},
    {"type": "page", "value": 2},
    {"type": "page", "value": 3},
    {"type": "loud", "value": "storm", "more": [1]},
    {"type": "other", "value": {"type": "loud", "value": "deep"}},
    {"type": "list", "value": [{"type": "image", "value": 1}, {"type": "loud", "value": "x"}, 5]},
    {"type": "person", "value": 2},
    {
        "type": "group",
        "value": [{"type": "day", "value": "2026-01-15"}, {"type": "page", "value": 2}],
    },
    {"type": "loud"},
    {"value": "storm"},
    {"type": 5, "value": 6},
]


@pytest.fixture(scope="module")
def gallery(make_api: MakeAPI) -> API:
    pages = [
        page(1, type="lab.Gallery", body=BODY),
        page(2, 1, type="lab.Gallery"),
        page(3, 1, type="lab.Gallery", restriction=private()),
    ]
    return make_api({**PEOPLE, "pages": pages}, types=[Gallery, Person])


def test_check_names_what_blocks_point_to_in_vain(make_api: MakeAPI) -> None:
    body = [{"type": "other", "value": {"type": "image", "value": 7}}, {"type": "page", "value": 1}]
    api = make_api({"pages": [page(1, type="lab.Gallery", body=body)]}, types=[Gallery, Person])
    (problem,) = map(str, api.backend.check())
    assert problem.endswith("pages 1, body: there is no object 7 in images")


def test_blocks_are_answered_by_their_representation(gallery: API) -> None:
    body = gallery.json("pages/1/")["body"]
    shown = {
        "id": 1,
        "meta": {
            "type": "flask_contentapi.Image",
            "detail_url": "http://localhost/api/v2/images/1/",
            "download_url": "http://localhost/media/1.png",
        },
        "title": "Image 1",
    }
    assert body[:5] == [
        {"type": "image", "value": shown, "id": "a"},
        {"type": "image", "value": None, "id": "b"},
        *({"type": "image", "value": None} for _ in range(3)),
    ]
    assert body[5:9] == [
        {"type": "page", "value": {"id": 2, "title": "Page 2"}},
        {"type": "page", "value": None},
        {"type": "loud", "value": "STORM", "more": [1]},
        {"type": "other", "value": {"type": "loud", "value": "DEEP"}},
    ]
    assert body[9]["value"]["entries"] == [
        {"type": "image", "value": shown},
        {"type": "loud", "value": "X"},
        5,
    ]
    assert body[10]["value"] == {"name": "Bo", "boss": {"name": "Ada"}}
    assert body[11]["value"] == [
        {"type": "day", "value": "15/01/2026"},
        {"type": "page", "value": {"id": 2, "title": "Page 2"}},
    ]
    assert body[12:] == BODY[12:]


def test_blocks_are_the_same_in_lists(gallery: API) -> None:
    (item,) = gallery.items("pages/?type=lab.Gallery&fields=body&id=1")
    assert item["body"] == gallery.json("pages/1/")["body"]


def test_texts_in_blocks_are_searched(gallery: API) -> None:
    assert gallery.ids("pages/?search=storm") == [1]
    assert gallery.ids("pages/?search=deep") == [1]
    assert gallery.ids("pages/?search=image") == []


@pytest.mark.parametrize("query", ["body=x", "order=body", "fields=body(id)"])
def test_blocks_are_given_back_whole(gallery: API, query: str) -> None:
    assert gallery.refusal(f"pages/?type=lab.Gallery&{query}")


# Relations with one form, or within one site.


class Teaser(Page):
    app_label = "lab"
    target = Related("pages", shown="_,id,slug,alias_of")
    near = Related("pages", within_site=True)
    api_fields = ["target", "near"]


def test_relations_can_have_one_form(make_api: MakeAPI) -> None:
    pages = [
        page(1, type="lab.Teaser", target=2),
        page(2, 1, type="lab.Teaser", alias_of=3, near=4),
        page(3, 1, type="lab.Teaser", near=1),
        page(4, type="lab.Teaser"),
    ]
    sites = [
        {"hostname": "localhost", "root_page": 1},
        {"hostname": "other.example", "root_page": 4},
    ]
    api = make_api({"sites": sites, "pages": pages}, types=[Teaser])
    target = api.json("pages/1/")["target"]
    assert list(target) == ["id", "meta"]
    assert list(target["meta"]) == ["slug", "alias_of"]
    assert target["meta"]["alias_of"]["title"] == "Page 3"
    assert api.refusal("pages/1/?fields=target(id)")
    assert api.json("pages/2/")["near"] is None
    assert api.json("pages/3/?fields=near(_,id)")["near"] == {"id": 1}


def test_fields_that_only_details_have(make_api: MakeAPI) -> None:
    class Long(Page):
        app_label = "lab"
        text = fields.String()
        mark = fields.String()
        api_fields = ["text", "mark"]
        detail_only_fields = [*Page.detail_only_fields, "text"]
        listing_default_fields = [*Page.listing_default_fields, "mark"]
        nested_default_fields = ["id"]

    api = one(make_api, Long, text="x", mark="y")
    assert api.json("pages/1/")["text"] == "x"
    assert api.items("pages/?type=lab.Long")[0]["mark"] == "y"
    for query in ("fields=text", "text=x", "order=text"):
        assert api.refusal(f"pages/?type=lab.Long&{query}")


def test_a_title_may_be_missing_where_a_type_says_so(make_api: MakeAPI) -> None:
    class Untitled(Page):
        app_label = "lab"
        title = fields.String(load_default=None)

    api = make_api({"pages": [{"id": 1, "type": "lab.Untitled", "slug": "x"}]}, types=[Untitled])
    assert api.items("pages/")[0]["title"] is None
    assert api.ids("pages/?search=none") == []


def test_instants_are_in_utc_whatever_writes_them(make_api: MakeAPI) -> None:
    class Clock(Page):
        app_label = "lab"
        api_fields = [
            APIField("raw", fields.Raw(), source="at"),
            APIField("function", fields.Function(lambda page: [page.at()])),
        ]

        def at(self) -> datetime:
            return datetime(2026, 1, 15, 9, tzinfo=timezone(timedelta(hours=1)))

    item = one(make_api, Clock).json("pages/1/")
    assert (item["raw"], item["function"]) == ("2026-01-15T08:00:00Z", ["2026-01-15T08:00:00Z"])


def test_times_have_all_digits_whatever_writes_them(make_api: MakeAPI) -> None:
    class Clock(Page):
        app_label = "lab"
        api_fields = [
            APIField("raw", fields.Raw(), source="at"),
            APIField("function", fields.Function(lambda page: [page.at()])),
        ]

        def at(self) -> time:
            return time(8, 0, 0, 10_027)

    item = one(make_api, Clock).json("pages/1/")
    assert (item["raw"], item["function"]) == ("08:00:00.010027", ["08:00:00.010027"])

"""Filters that compare: ``<field>__<operator>=<value>``, and ``type__not``."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any
from urllib.parse import quote
from uuid import UUID

import pytest
from marshmallow import fields
from peewee import fn

from flask_contentapi import APIField, APIFilter, Page, Related, Tags
from flask_contentapi.filters import OPERATORS, Operator
from flask_contentapi.query import Filter
from flask_contentapi_peewee.selects import CONDITIONS
from tests.api import API
from tests.conftest import MakeAPI
from tests.samples import blog, image, page, private, site
from tests.stores import except_files

pytestmark = except_files

#: Texts around what indexes hold and sort by, and around the surrogates, the end of Unicode and
#: what some databases take for equal.
TEXTS = [
    *("", " ", "a", "A", "a ", "ab", "aé", "ae\u0301", "%", "_", "a%", "\\", "'", "\n", "ß", "ss"),
    *("a" * size for size in (189, 190, 191, 255, 256, 1100)),
    *("a" * 189 + end for end in ("\U0010ffff", "\ud7ff", "b")),
    *("a" * 190 + end for end in ("\U0010ffff", "b", "\x01")),
    *("z" * 3000, "z" * 3000 + "a", "\ud7ff", "\ud7ff\U0010ffff", "\ue000", "\uffff", "😀"),
    *("\U0010ffff", "\U0010ffff" * 2, "a\U0010ffff", "a\U0010ffff\U0010ffff"),
]
COMPARISONS: dict[str, Callable[[str, str], bool]] = {
    "lt": operator.lt,
    "lte": operator.le,
    "gt": operator.gt,
    "gte": operator.ge,
    "in": operator.eq,
    "not": operator.ne,
    "startswith": str.startswith,
}


@pytest.fixture(scope="module")
def texts(make_api: MakeAPI) -> API:
    pages = [blog(n, seo_title=text, intro=text, body=text) for n, text in enumerate(TEXTS)]
    config = {"CMSAPI_LIMIT_MAX": None, "CMSAPI_CACHE_SIZE": 0}
    return make_api({"pages": [page(999), *pages]}, config=config)


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("field", ["seo_title", "intro", "body"])
def test_texts_compare_by_code_point(texts: API, field: str, name: str) -> None:
    for wanted in TEXTS:
        path = f"pages/?type=blog.BlogPage&{field}__{name}={quote(wanted)}&limit=999&fields=_,id"
        expected = [n for n, text in enumerate(TEXTS) if COMPARISONS[name](text, wanted)]
        assert texts.ids(path) == expected, (field, name, wanted)


class Measured(Page):
    app_label = "c"
    level = fields.Integer()
    price = fields.Decimal(places=2)
    hour = fields.Time()
    taken = fields.DateTime()
    code = fields.UUID()
    remark = fields.String(load_default=None)
    reach = fields.Integer()
    reach__in = fields.Integer()
    shown = fields.Integer()
    picture = Related("images")
    tags = Tags()
    api_fields = [
        *(
            "level",
            "price",
            "hour",
            "taken",
            "code",
            "remark",
            "picture",
            "tags",
            "reach",
            "reach__in",
        ),
        APIField("renamed", source="shown"),
        APIField("price__in", fields.Function(lambda page: 1), needs=[]),
    ]
    api_filters = [APIFilter("renamed__gte", "shown", "lt")]


CODE = "6f9619ff-8b86-d011-b42d-00c04fc964ff"
MEASURED: dict[int, dict[str, Any]] = {
    2: {
        "level": 2**63 - 1,
        "price": "4.50",
        "hour": "08:00",
        "taken": "2026-01-15T08:00:00Z",
        "code": UUID(CODE).hex,
        "remark": "",
        "reach__in": 5,
        "shown": 1,
        "picture": 1,
        "tags": ["a", "b"],
    },
    3: {"level": 0, "price": "4.51", "shown": 3, "picture": 2, "tags": ["b"]},
    4: {},
}


@pytest.fixture(scope="module")
def measured(make_api: MakeAPI) -> API:
    pages = [page(id, 1, type="c.Measured", **values) for id, values in MEASURED.items()]
    content = {
        "sites": [site(1)],
        "collections": [{"id": 1, "restriction": private()}],
        "images": [image(1), image(2, collection=1)],
        "pages": [page(1, type="flask_contentapi.Page"), *pages],
    }
    return make_api(content, types=[Measured])


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("level__gte=0&level__lt=5", [3]),
        ("level__lt=1e", None),
        (f"level__lt={10**30}", [2, 3]),
        (f"level__gt={10**30}", []),
        (f"level__gte=-{10**30}", [2, 3]),
        (f"level__in={10**30},0", [3]),
        (f"level__in={10**30}", []),
        (f"level__not={10**30}", [2, 3, 4]),
        (f"level__not={10**30},0", [2, 4]),
        ("price__lt=4.505", [2]),
        ("price__gte=4.505", [3]),
        ("price__lte=4.5", [2]),
        ("price__not=4.5,4.505", [3, 4]),
        ("hour__gt=07:59:59.9999999", [2]),
        ("hour__lt=23:59:59.9999999", [2]),
        ("hour__gt=23:59:59.9999999", []),
        ("taken__gte=2026-01-15T09:00:00%2B01:00", [2]),
        ("taken__in=2026-01-15T09:00:00 01:00", [2]),
        ("taken__lt=2026-01-15", []),
        ("code__isnull=false", [2]),
        (f"code__not={CODE.upper()}", [3, 4]),
        (f"code__in={{{CODE}}}", [2]),
        ("code__startswith=6f96", [2]),
        ("code__gt=6f96", None),
        ("remark__isnull=1", [3, 4]),
        ("remark__startswith=", [2]),
        ("remark__not=", [3, 4]),
        ("picture__isnull=true", [3, 4]),
        ("picture__isnull=0", [2]),
        ("picture__not=2", [2, 3, 4]),
        ("picture__in=1,2", [2]),
        ("tags__in=a,c", [2]),
        ("tags__in=b", [2, 3]),
        ("tags__not=a", [3, 4]),
        ("tags=b&tags__not=a", [3]),
        ("level__in=0&level__not=0", []),
    ],
)
def test_values_are_read_as_for_filters(measured: API, query: str, ids: list[int] | None) -> None:
    path = f"pages/?type=c.Measured&{query}"
    assert measured.status(path) == 400 if ids is None else measured.ids(path) == ids


def test_fields_and_own_parameters_win_over_comparisons(measured: API) -> None:
    assert measured.ids("pages/?type=c.Measured&reach__in=5") == [2]
    assert measured.ids("pages/?type=c.Measured&reach__in__in=4,5") == [2]
    # The type's own parameter asks for less than its value.
    assert measured.ids("pages/?type=c.Measured&renamed__gte=3") == [2]
    assert measured.ids("pages/?type=c.Measured&renamed__gt=1") == [3]
    assert "price__in" in measured.refusal("pages/?type=c.Measured&price__in=1")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("title__foo=1", ["title__in", "title__startswith"]),
        ("title__isnull=1", ["title__in", "title__lte"]),
        ("show_in_menus__gt=1", ["show_in_menus__in", "show_in_menus__not"]),
        ("alias_of__lt=1", ["alias_of__isnull"]),
        ("type__in=c.Measured", ["type__not"]),
        ("locale__in=en", ["Unknown parameter: locale__in"]),
        ("html_url__startswith=http", ["html_url", "cannot be filtered"]),
        ("level__gt=1", ["c.Measured"]),
        ("id__isnull=maybe", ["id__isnull must be true, false, 1 or 0"]),
        ("id__in=1,x", ["id__in must be an integer"]),
        ("first_published_at__lt=soon", ["first_published_at__lt must be an instant"]),
        ("type__not=c.Measurde", ["Did you mean 'c.Measured'?"]),
    ],
)
def test_messages_list_what_there_is(measured: API, query: str, words: list[str]) -> None:
    message = measured.refusal(f"pages/?{query}")
    assert [word for word in words if word not in message] == []


def test_messages_about_unknown_names_are_short(measured: API) -> None:
    said = measured.refusal("pages/?xyz=1").removeprefix("Unknown parameter: xyz.")[:300]
    # It is in the table of parameters, and no comparison of a field.
    assert "__" not in said.replace("type__not", "")


@pytest.mark.parametrize("name", ["in", "not"])
def test_a_list_of_values_is_bounded(measured: API, name: str) -> None:
    values = ",".join(["7"] * 100)
    assert measured.status(f"pages/?id__{name}={values}") == 200
    assert "100" in measured.refusal(f"pages/?id__{name}={values},7")


# Types.


class Root(Page):
    app_label = "t"


class Base(Root):
    app_label = "t"
    level = fields.Integer()
    api_fields = ["level"]


class Derived(Base):
    app_label = "t"


class Other(Root):
    app_label = "t"


@pytest.fixture(scope="module")
def typed(make_api: MakeAPI) -> API:
    labels = {2: "t.Base", 3: "t.Derived", 4: "t.Other", 5: "gone.Type"}
    pages = [page(id, 1, type=label, level=id) for id, label in labels.items()]
    pages = [{n: v for n, v in p.items() if n != "level" or p["id"] < 4} for p in pages]
    return make_api({"pages": [page(1, type="t.Root"), *pages]}, types=[Root, Base, Derived, Other])


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("type__not=t.Base", [1, 4, 5]),
        ("type__not=t.BASE,t.other", [1, 5]),
        ("type__not=t.Derived", [1, 2, 4, 5]),
        ("type=t.Base&type__not=t.Derived&level__gte=2", [2]),
        ("type=t.Derived&type__not=t.Base", []),
        ("type=t.Base&type__not=t.Base", []),
        ("type__not=t.Other,t.Root", []),
        ("type__not=", [1, 2, 3, 4, 5]),
        ("type__not=t.Base&type__not=t.Other", [1, 2, 3, 5]),
    ],
)
def test_types_are_left_out_with_what_derives_from_them(
    typed: API, query: str, ids: list[int]
) -> None:
    assert typed.ids(f"pages/?{query}") == ids


def test_only_pages_leave_types_out(typed: API) -> None:
    assert "Only pages/" in typed.refusal("images/?type__not=t.Base")


# A new operator.


class Numbered(Page):
    app_label = "n"
    number = fields.Integer()
    api_fields = ["number"]


def test_an_operator_is_an_entry_in_two_tables(
    make_api: MakeAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    near = Operator(
        "near",
        "is at most one away from the value",
        lambda column: column.kind.name == "integer",
        lambda column, text: (Filter(column.name, "near", column.kind.parse(text)),),
        lambda own, wanted: own is not None and abs(own - wanted) <= 1,
    )
    condition = lambda engine, field, wanted: fn.ABS(field - wanted[0]) <= 1  # noqa: E731
    monkeypatch.setitem(OPERATORS, "near", near)
    monkeypatch.setitem(CONDITIONS, "near", condition)
    pages = [page(n, type="n.Numbered", number=n) for n in range(2, 10)]
    api = make_api({"pages": [*pages, page(10, type="n.Numbered")]}, types=[Numbered])
    path = "pages/?type=n.Numbered&number__near"
    assert api.ids(f"{path}=6") == [5, 6, 7]
    assert api.ids(f"{path}=6&number__gt=5&id__not=7") == [6]
    assert api.status(f"{path}=x") == 400
    assert "number__near" in api.refusal(f"{path}s=3")

"""``facets``: how many objects have each value (contract beyond the specification, 13)."""

from __future__ import annotations

from typing import Any

import pytest
from marshmallow import fields

from flask_contentapi import APIField, Page, Related, Tags
from tests.api import API
from tests.conftest import MakeAPI
from tests.databases import noted, on_databases
from tests.samples import blog, image, page, private, site
from tests.stores import except_files
from tests.test_comparisons import TEXTS

pytestmark = except_files


class Shouted(fields.String):
    def _serialize(self, value: Any, attr: str | None, obj: Any, **kwargs: Any) -> Any:
        return value.upper()


class Item(Page):
    app_label = "f"
    level = fields.Integer(as_string=True)
    price = fields.Decimal()
    day = fields.Date(format="%d.%m.%Y")
    code = fields.UUID()
    kind = Shouted()
    flag = fields.Boolean()
    tags = Tags()
    picture = Related("images")
    other = Related("pages")
    near = Related("pages", within_site=True)
    others = fields.List(Related("pages"))
    secret = fields.String()
    api_fields = [
        *("level", "price", "day", "code", "kind", "flag", "tags", "picture", "other", "near"),
        *("others", APIField("again", source="kind")),
        APIField("shown", fields.Function(lambda page: 1), needs=[]),
    ]


CODE = "6f9619ff-8b86-d011-b42d-00c04fc964ff"
ITEMS: list[dict[str, Any]] = [
    {"level": 9, "price": "4.5", "day": "2026-01-15", "code": CODE, "kind": "b", "flag": True},
    {"level": 10, "price": "4.50", "day": "2026-01-15", "kind": "b", "picture": 1, "other": 2},
    {"level": 10, "price": "10", "kind": "a", "picture": 2, "other": 20, "near": 2},
    {"tags": ["x", "y"], "picture": 1, "other": 50, "near": 50, "others": [2, 3, 2, 20, 50]},
    {"tags": ["y"], "picture": 99, "others": [3]},
]
CONTENT: dict[str, Any] = {
    "sites": [site(1), site(50, "other.example")],
    "collections": [{"id": 1, "restriction": private()}],
    "images": [image(1), image(2, collection=1)],
    "pages": [
        page(1, type="f.Item"),
        *(page(n, 1, type="f.Item", **values) for n, values in enumerate(ITEMS, 2)),
        page(20, 1, type="f.Item", level=77, tags=["z"], live=False),
        page(21, 1, type="gone.Type"),
        page(50, type="f.Item", level=5, tags=["x"]),
    ],
}


@pytest.fixture(scope="module")
def items(make_api: MakeAPI) -> API:
    return make_api(CONTENT, types=[Item])


def facets(api: API, path: str) -> dict[str, list[tuple[Any, int]]]:
    """The facets of a list: for each name the values with their counts."""
    found = api.json(path)["meta"]["facets"]
    return {
        name: [(entry["value"], entry["count"]) for entry in entries]
        for name, entries in found.items()
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("level", [("10", 2), ("9", 1)]),
        ("price", [("4.5", 2), ("10", 1)]),
        ("day", [("15.01.2026", 2)]),
        ("code", [(CODE, 1)]),
        ("kind", [("", 3), ("B", 2), ("A", 1)]),
        ("again", [("", 3), ("B", 2), ("A", 1)]),
        ("flag", [(False, 5), (True, 1)]),
        ("tags", [("y", 2), ("x", 1)]),
        ("picture", [(1, 2)]),
        ("other", [(2, 1), (50, 1)]),
        ("near", [(2, 1)]),
        ("others", [(3, 2), (2, 1), (50, 1)]),
        ("type", [("f.Item", 6)]),
        ("id", [(n, 1) for n in range(1, 7)]),
    ],
)
def test_values_are_counted(items: API, name: str, expected: list[Any]) -> None:
    assert facets(items, f"pages/?type=f.Item&facets={name}") == {name: expected}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("limit=0", [("y", 2), ("x", 1)]),
        ("limit=1&offset=2", [("y", 2), ("x", 1)]),
        ("offset=99", [("y", 2), ("x", 1)]),
        ("order=random&limit=1", [("y", 2), ("x", 1)]),
        ("order=-title&limit=1", [("y", 2), ("x", 1)]),
        ("tags=y,x", [("x", 1), ("y", 1)]),
        ("tags__in=x,z", [("x", 1), ("y", 1)]),
        ("tags__not=x", [("y", 1)]),
        ("others=3", [("y", 2), ("x", 1)]),
        ("kind=&search=page", [("y", 2), ("x", 1)]),
        ("search=nothing", []),
        ("descendant_of=root&other__isnull=true", [("y", 1)]),
        ("site=other.example", [("x", 1)]),
        ("level=9", []),
    ],
)
def test_all_that_is_found_counts(items: API, query: str, expected: list[Any]) -> None:
    assert facets(items, f"pages/?type=f.Item&facets=tags&{query}") == {"tags": expected}


def test_facets_stand_after_the_total_in_the_order_of_names(items: API) -> None:
    meta = items.json("pages/?facets=type,slug,id&limit=0")["meta"]
    assert list(meta) == ["total_count", "facets"]
    assert list(meta["facets"]) == ["type", "slug", "id"]
    # A type that is not declared is a missing value.
    assert meta["total_count"] == 7
    assert meta["facets"]["type"] == [{"value": "f.Item", "count": 6}]


def test_the_most_frequent_values_are_given(make_api: MakeAPI) -> None:
    pages = [blog(100 * n + k, 1, seo_title=f"t{n:02}") for n in range(1, 31) for k in range(n % 3)]
    api = make_api({"pages": [page(1, seo_title="t01"), *pages]})
    twice = [(f"t{n:02}", 2) for n in range(2, 31, 3)]
    once = [(f"t{n:02}", 1) for n in range(4, 31, 3)]
    expected = [("t01", 2), *twice, *once][:20]
    assert facets(api, "pages/?facets=seo_title") == {"seo_title": expected}


@pytest.mark.parametrize("field", ["seo_title", "intro", "body"])
def test_long_texts_are_told_apart(make_api: MakeAPI, field: str) -> None:
    long = [*TEXTS, *("y" * 9000 + end for end in ("a", "b", "c"))]
    texts = sorted(long)[-15:]
    values = [{field: text} for text in texts[::-1] for _ in range(3)]
    pages = [{**blog(n), **value} for n, value in enumerate(values, 2)]
    api = make_api({"pages": [page(1), *pages]})
    found = facets(api, f"pages/?type=blog.BlogPage&facets={field}&limit=0")[field]
    assert found == [(text, 3) for text in texts]


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ("nope", "There are slug, show_in_menus"),
        ("", "cannot be of ''"),
        ("type,,slug", "cannot be of ''"),
        ("slgu", "Did you mean 'slug'?"),
        ("locale", "cannot be of 'locale'. locale has no comparisons and no facet."),
        ("html_url", "html_url is no single stored value"),
        ("shown", "It is a field of f.Item"),
        ("secret", "cannot be of 'secret'"),
        ("id,slug,title,type,show_in_menus,seo_title", "more than 5 fields"),
    ],
)
def test_what_cannot_be_counted_is_refused(items: API, names: str, words: str) -> None:
    message = items.refusal(f"pages/?facets={names}")
    assert message.startswith("facets ")
    assert words in message


def test_only_pages_count_types(items: API) -> None:
    assert "type" in items.refusal("images/?facets=type")
    assert facets(items, "images/?facets=tags,title") == {"tags": [], "title": [("Image 1", 1)]}


def test_hidden_pages_are_named_before_anything_is_counted(items: API) -> None:
    assert "20" in items.refusal("pages/?child_of=20&facets=type")


@on_databases
def test_each_facet_takes_one_statement(items: API) -> None:
    made = []
    for names in ("", "tags", "tags,picture,others,level,type"):
        path = f"pages/?type=f.Item&fields=_,id&_={names}" + f"&facets={names}" * bool(names)
        items.get("pages/?type=f.Item&fields=_,id")
        with noted(items) as statements:
            assert items.status(path) == 200
        made.append(len(statements))
    assert [count - made[0] for count in made] == [0, 1, 5]

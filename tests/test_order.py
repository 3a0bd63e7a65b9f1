"""Order, equality and the tree of pages (contract, Parameters)."""

from __future__ import annotations

import random
from typing import Any
from urllib.parse import unquote

import pytest

from tests.api import API
from tests.conftest import Fill
from tests.samples import Record, blog, image, page, site
from tests.stores import except_files, on_memory

pytestmark = except_files


def ids_by(pairs: list[tuple[int, Any]], name: str, fill: Fill, order: str) -> list[int]:
    """The ids of blog pages that differ in one field, in some order."""
    pages = [page(1), *(blog(id, 1, **{name: value}) for id, value in pairs)]
    api = fill({"sites": [site(1)], "pages": pages})
    return api.ids(f"pages/?type=blog.BlogPage&order={order}")


def test_keys_have_their_own_direction(fill: Fill) -> None:
    pairs: list[tuple[int, Any]] = [(5, "b"), (2, "a"), (4, "a"), (3, "b")]
    assert ids_by(pairs, "title", fill, "title,-id") == [4, 2, 5, 3]
    assert ids_by(pairs, "title", fill, "-title,id") == [3, 5, 2, 4]
    assert ids_by(pairs, "title", fill, "-title,-id") == [5, 3, 4, 2]


@pytest.mark.parametrize(
    "order", ["title", "-title", "featured,title", "title,title", "title,-title"]
)
def test_ties_end_in_id_order(fill: Fill, order: str) -> None:
    assert ids_by([(5, "a"), (2, "a"), (9, "a"), (3, "a")], "title", fill, order) == [
        2,
        3,
        5,
        9,
    ]


def test_pages_of_one_title_are_listed_each_once(fill: Fill) -> None:
    ids = random.sample(range(2, 1000), 60)
    api = fill({"pages": [page(1), *(page(id, 1, title="One") for id in ids)]})
    seen = [
        id
        for offset in (0, 20, 40)
        for id in api.ids(f"pages/?order=title&title=One&limit=20&offset={offset}")
    ]
    assert seen == sorted(ids)


@on_memory
@pytest.mark.parametrize(
    "order", ["tags", "authors", "body,tags", "shout", "type", "html_url", "parent"]
)
def test_what_is_no_single_stored_value_orders_nothing(reference: API, order: str) -> None:
    assert order.split(",")[-1] in reference.refusal(f"pages/?type=blog.BlogPage&order={order}")


@on_memory
@pytest.mark.parametrize(
    "order",
    [
        ",",
        "title,",
        ",title",
        "-",
        "--title",
        "+title",
        "title desc",
        "-random",
        "random,title",
        "title, slug",
        "TITLE",
    ],
)
def test_orders_that_cannot_be_read_are_refused(reference: API, order: str) -> None:
    assert reference.refusal(f"pages/?order={order}")


@on_memory
@pytest.mark.parametrize("order", ["-random", "random,title", "title,random"])
def test_random_order_stands_alone(reference: API, order: str) -> None:
    assert reference.refusal(f"pages/?order={order}") == (
        "order can be random only by itself, as order=random."
    )


def test_each_object_is_listed_once_in_random_order(fill: Fill) -> None:
    images = [image(id, tags=["a", "b", "c"]) for id in range(1, 16)]
    api = fill({"images": [*images, image(16, tags=["a"])]})
    orders = [api.ids("images/?tags=a,b&order=random") for _ in range(8)]
    assert all(sorted(ids) == list(range(1, 16)) for ids in orders)
    assert len(set(map(tuple, orders))) > 1
    assert api.total("images/?tags=a,b&order=random&limit=2") == 15
    assert len(set(api.ids("images/?tags=a,b&order=random&limit=2"))) == 2


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("published_date", ["0001-01-01", "1900-01-01", "2026-01-15", "9999-12-31"]),
        ("reading_minutes", [-(2**63), -1, 0, 2, 10, 2**63 - 1]),
        (
            "rating",
            ["-10.25", "-9", "0", "0.01", "9.99", "10", "123456789012345678901234567890.12"],
        ),
        ("feed_image", [1, 2, 10]),
    ],
)
def test_missing_values_are_smallest(fill: Fill, name: str, values: list[Any]) -> None:
    ids = random.sample(range(10, 100), len(values))
    pages = [blog(1), blog(2, **{name: None})]
    pages += [blog(id, **{name: value}) for id, value in zip(ids, values, strict=True)]
    random.shuffle(pages)
    api = fill({"pages": pages, "images": [image(id) for id in (1, 2, 10)]})
    assert api.ids(f"pages/?type=blog.BlogPage&order={name}") == [1, 2, *ids]
    assert api.ids(f"pages/?type=blog.BlogPage&order=-{name}") == [*ids[::-1], 1, 2]


def test_an_empty_text_is_not_missing_but_first(fill: Fill) -> None:
    assert ids_by([(2, "a"), (3, ""), (4, None)], "intro", fill, "intro") == [3, 4, 2]


def test_long_texts_are_ordered_by_their_ends(fill: Fill) -> None:
    pairs = [(id, 2000 * "\N{SNOWMAN}" + end) for id, end in [(2, "c"), (3, "a"), (4, "b")]]
    assert ids_by(pairs, "title", fill, "title") == [3, 4, 2]


def test_text_is_ordered_by_code_point(fill: Fill) -> None:
    texts = [
        " a",
        "-",
        "10",
        "9",
        "A",
        "Z",
        "_",
        "a",
        "a ",
        "ab",
        "b",
        "Ä",
        "é",
        "Ω",
        "船",
        "\ufb01",
        "🚢",
    ]
    ids = random.sample(range(10, 100), len(texts))
    pairs = list(zip(ids, texts, strict=True))
    random.shuffle(pairs)
    assert ids_by([*pairs], "title", fill, "title") == ids


# Equality.


ALIKE = [
    "apple",
    "Apple",
    "APPLE",
    "apple ",
    " apple",
    "äpple",
    "a\u0308pple",
    "ａpple",
    "apple\u200b",
]


@pytest.mark.parametrize("title", ALIKE)
def test_equal_is_only_what_is_the_same(fill: Fill, title: str) -> None:
    pages = [page(1), *(page(id, 1, title=text) for id, text in enumerate(ALIKE, 2))]
    api = fill({"pages": pages})
    assert api.ids(f"pages/?title={title}".replace(" ", "%20")) == [ALIKE.index(title) + 2]


def test_slugs_that_differ_in_case_are_two_pages(fill: Fill) -> None:
    pages = [page(1), page(2, 1, slug="log"), page(3, 1, slug="Log"), page(4, 1, slug="LOG")]
    api = fill({"sites": [site(1)], "pages": pages})
    for id, slug in ((2, "log"), (3, "Log"), (4, "LOG")):
        found = api.get(f"pages/find/?html_path=/{slug}/")
        assert found.headers["Location"].endswith(f"/pages/{id}/")
        assert api.ids(f"pages/?slug={slug}") == [id]


def test_tags_that_differ_in_case_are_two_tags(fill: Fill) -> None:
    api = fill({"images": [image(1, tags=["Storm", "storm", "storm"]), image(2, tags=["storm"])]})
    assert api.ids("images/?tags=storm") == [1, 2]
    assert api.ids("images/?tags=Storm") == [1]
    assert api.ids("images/?tags=Storm,storm") == [1]
    assert api.ids("images/?tags=STORM") == []
    assert api.ids("images/?tags=storm,storm") == [1, 2]
    assert [item["meta"]["tags"] for item in api.items("images/")] == [
        ["Storm", "storm"],
        ["storm"],
    ]


@pytest.mark.parametrize("text", ["%", "_", "p%", "p_", "p*", "[a-z]2", "p2' OR '1'='1", "P2"])
def test_text_filters_have_no_patterns(fill: Fill, text: str) -> None:
    api = fill({"pages": [page(1), page(2, 1)]})
    assert api.ids(f"pages/?slug={text}".replace("%", "%25").replace(" ", "%20")) == []


# The tree.


TREE = [
    page(1, slug="home"),
    page(2, 1, slug="log"),
    page(3, 2, slug="a"),
    page(4, 1, slug="log2"),
    page(5, 4, slug="a"),
    page(6, 1, slug="Log"),
    page(7, 6, slug="a"),
    page(8, 1, slug="lo%"),
    page(9, 8, slug="a"),
    page(10, 1, slug="lo_"),
    page(11, 1, slug="log-2"),
    page(12, 11, slug="a"),
    page(13, 1, slug="log 2"),
    page(14, 13, slug="ä"),
]


@pytest.mark.parametrize(
    ("id", "below"), [(2, [3]), (4, [5]), (6, [7]), (8, [9]), (10, []), (11, [12])]
)
def test_branches_are_kept_apart(fill: Fill, id: int, below: list[int]) -> None:
    api = fill({"sites": [site(1)], "pages": TREE})
    assert api.ids(f"pages/?descendant_of={id}") == below
    assert api.ids(f"pages/?child_of={id}") == below


@pytest.mark.parametrize("record", TREE, ids=lambda record: record["slug"])
def test_each_page_is_at_its_own_address(fill: Fill, record: Record) -> None:
    api = fill({"sites": [site(1)], "pages": TREE})
    address = api.json(f"pages/{record['id']}/")["meta"]["html_url"]
    path = unquote(address.removeprefix("http://localhost"))
    found = api.get("pages/find/", query_string={"html_path": path})
    assert found.headers["Location"].endswith(f"/pages/{record['id']}/")


def test_pages_stand_in_tree_order(fill: Fill) -> None:
    pages = [page(5, 9), page(1), page(9, 1), page(3, 1), page(2, 9), page(8, 3), page(4, 5)]
    api = fill({"sites": [site(1)], "pages": pages})
    assert api.ids("pages/") == [1, 9, 5, 4, 2, 3, 8]
    assert api.ids("pages/?descendant_of=9") == [5, 4, 2]
    assert api.ids("pages/?child_of=1") == [9, 3]
    assert api.ids("pages/?ancestor_of=4") == [1, 9, 5]
    assert api.ids("pages/?ancestor_of=1") == []
    assert api.ids("pages/?descendant_of=root&ancestor_of=4") == [9, 5]


def test_branches_are_found_without_any_site(fill: Fill) -> None:
    api = fill({"pages": TREE})
    assert api.ids("pages/?descendant_of=2") == api.ids("pages/?child_of=2") == [3]
    assert api.ids("pages/?descendant_of=root&ancestor_of=5") == [4]


def test_images_and_documents_stand_in_id_order(fill: Fill) -> None:
    records = [image(id) for id in (3, 10, 1, 2)]
    api = fill({"images": records, "documents": records})
    assert api.ids("images/") == api.ids("documents/") == [1, 2, 3, 10]

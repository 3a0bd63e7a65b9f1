"""Trees of pages and collections have at most 400 levels, on every backend."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flask_contentapi import ContentError
from tests.api import API
from tests.conftest import Fill
from tests.databases import on_writable, writing
from tests.samples import Record, image, page, private, site
from tests.stores import except_files

pytestmark = except_files

DEEPEST = 400
SAID = "level 401 of the tree, which has at most 400; put it further up"
#: The public address of the lowest page; that of the first one is "/".
ADDRESS = "".join(f"/p{number}" for number in range(2, DEEPEST + 1)) + "/"


def pages(levels: int) -> list[Record]:
    """A page on each level."""
    return [page(number, number - 1 or None) for number in range(1, levels + 1)]


def collections(levels: int) -> list[Record]:
    return [{"id": n, "name": "C", "parent": n - 1 or None} for n in range(1, levels + 1)]


def full(fill: Fill) -> API:
    return fill({"sites": [site(1)], "pages": pages(DEEPEST), "collections": collections(DEEPEST)})


def test_the_deepest_trees_are_served(fill: Fill) -> None:
    api = full(fill)
    lowest = api.json(f"pages/{DEEPEST}/")
    assert lowest["meta"]["parent"]["id"] == DEEPEST - 1
    assert lowest["meta"]["html_url"] == "http://localhost" + ADDRESS
    assert api.ids(f"pages/?limit=1&offset={DEEPEST - 1}") == [DEEPEST]
    assert api.ids(f"pages/?child_of={DEEPEST - 1}") == [DEEPEST]
    assert api.total("pages/?descendant_of=1") == DEEPEST - 1
    assert api.total(f"pages/?ancestor_of={DEEPEST}") == DEEPEST - 1
    assert api.follow(api.get(f"pages/find/?html_path={ADDRESS}").location).json == lowest


def test_a_restriction_at_the_top_counts_below(fill: Fill) -> None:
    levels = collections(DEEPEST)
    levels[0]["restriction"] = private()
    api = fill({"collections": levels, "images": [image(1, collection=DEEPEST), image(2)]})
    assert api.ids("images/") == [2]


@pytest.mark.parametrize(("section", "made"), [("pages", pages), ("collections", collections)])
def test_deeper_ones_are_refused(
    fill: Fill, section: str, made: Callable[[int], list[Record]]
) -> None:
    api = full(fill)
    before = api.dump()
    with pytest.raises(ContentError) as error:
        api.load({section: made(DEEPEST + 200)})
    assert str(error.value) == f"{section} 401, parent: is on {SAID}"
    assert api.dump() == before


@on_writable
def test_nothing_is_added_below_the_last_level(fill: Fill) -> None:
    api = full(fill)
    with writing(api) as writer, pytest.raises(ContentError, match=SAID):
        writer.add("pages", page(1000, DEEPEST))
    with writing(api) as writer, pytest.raises(ContentError, match=SAID):
        writer.put_collection(name="C", parent=DEEPEST)


@on_writable
def test_a_branch_that_gets_too_deep_stays(fill: Fill) -> None:
    api = fill({"pages": [*pages(DEEPEST - 2), page(1000), page(1001, 1000), page(1002, 1001)]})
    with (
        writing(api) as writer,
        pytest.raises(ContentError, match=f"pages 1002, parent: is on {SAID}"),
    ):
        writer.move(1000, DEEPEST - 2)
    with writing(api) as writer:
        writer.move(1001, DEEPEST - 2)
    assert api.json("pages/1002/")["meta"]["parent"]["id"] == 1001

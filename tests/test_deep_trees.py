"""Trees of pages and collections have at most 400 levels, on every backend."""

from __future__ import annotations

from typing import Any

import pytest

from flask_contentapi import ContentError
from tests.api import API
from tests.conftest import MakeAPI
from tests.databases import on_databases, writing
from tests.samples import page

DEEPEST = 400
SAID = "level 401 of the tree, which has at most 400; put it further up"


def pages(levels: int) -> list[dict[str, Any]]:
    """A page on each level."""
    return [page(number, number - 1 or None) for number in range(1, levels + 1)]


def collections(levels: int) -> list[dict[str, Any]]:
    return [{"id": n, "name": "C", "parent": n - 1 or None} for n in range(1, levels + 1)]


def full(make_api: MakeAPI) -> API:
    return make_api({"pages": pages(DEEPEST), "collections": collections(DEEPEST)})


def test_the_deepest_trees_are_served(make_api: MakeAPI) -> None:
    api = full(make_api)
    assert api.json(f"pages/{DEEPEST}/")["meta"]["parent"]["id"] == DEEPEST - 1
    assert api.total("pages/?descendant_of=1") == DEEPEST - 1
    assert api.total(f"pages/?ancestor_of={DEEPEST}") == DEEPEST - 1


@pytest.mark.parametrize(("section", "made"), [("pages", pages), ("collections", collections)])
def test_deeper_ones_are_refused(make_api: MakeAPI, section: str, made: Any) -> None:
    api = full(make_api)
    before = api.dump()
    with pytest.raises(ContentError) as error:
        api.load({section: [*made(DEEPEST + 200), *before.get("nothing", ())]})
    assert str(error.value) == f"{section} 401, parent: is on {SAID}"
    assert api.dump() == before


@on_databases
def test_nothing_is_added_below_the_last_level(make_api: MakeAPI) -> None:
    api = full(make_api)
    with writing(api) as writer, pytest.raises(ContentError, match=SAID):
        writer.add("pages", page(1000, DEEPEST))
    with writing(api) as writer, pytest.raises(ContentError, match=SAID):
        writer.put_collection(name="C", parent=DEEPEST)


@on_databases
def test_a_branch_that_gets_too_deep_stays(make_api: MakeAPI) -> None:
    api = make_api({"pages": [*pages(DEEPEST - 2), page(1000), page(1001, 1000), page(1002, 1001)]})
    with (
        writing(api) as writer,
        pytest.raises(ContentError, match=f"pages 1002, parent: is on {SAID}"),
    ):
        writer.move(1000, DEEPEST - 2)
    with writing(api) as writer:
        writer.move(1001, DEEPEST - 2)
    assert api.json("pages/1002/")["meta"]["parent"]["id"] == 1001

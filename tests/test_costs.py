"""What a request may cost at most, however it is put together."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from marshmallow import Schema, fields
from werkzeug.test import create_environ, run_wsgi_app

from flask_contentapi import (
    ChildObject,
    Children,
    ContentAPI,
    Entry,
    KeptAnswers,
    Related,
    Tags,
)
from flask_contentapi.sources import RowLayout
from flask_contentapi_memory import MemoryBackend
from flask_contentapi_peewee.shapes import Slot
from tests.api import API, PREFIX
from tests.conftest import MakeAPI
from tests.databases import noted, on_databases
from tests.samples import page, private
from tests.stores import on_memory


class Leaf(ChildObject):
    node = Related("nodes")
    api_fields = ["node"]


RELATIONS = {f"r{n}": Related("nodes") for n in range(60)}
TAGS = {f"t{n}": Tags() for n in range(5)}
CHILDREN = {"c": Children(Leaf)}
OWN = [*RELATIONS, *TAGS, *CHILDREN]
#: A type with many relations, which brackets could follow again and again.
Node: type[Entry] = type(
    "Node",
    (Entry,),
    {
        "__module__": __name__,
        "endpoint": "nodes",
        "name": fields.String(),
        "api_fields": ["name", *OWN],
        **RELATIONS,
        **TAGS,
        **CHILDREN,
    },
)
NODES = range(1, 9)


def names(prefix: str, count: int) -> str:
    return ",".join(f"{prefix}{n}" for n in range(count))


#: Selections with as much inside brackets as there may be, and how much they have outside.
MOST = {
    "relations": (f"_,r0(_,{names('r', 60)}),r1(_,{names('r', 40)})", 2),
    "tags": ("_," + ",".join(f"r{n}(_,{names('t', 5)})" for n in range(20)), 20),
    # Each child object shows its node.
    "child objects": (
        ",".join(["_", *(f"r{n}(_,c)" for n in range(40))])
        + f",c(node(_,{names('t', 5)},{names('r', 14)}))",
        41,
    ),
    "levels": (
        f"_,{'r0(_,' * 10}{names('r', 60)},{names('t', 5)}{')' * 10},r1(_,{names('r', 26)})",
        2,
    ),
}


@pytest.fixture(scope="module")
def api(make_api: MakeAPI) -> API:
    def node(id: int) -> dict[str, Any]:
        near = {name: (id + n) % 8 + 1 for n, name in enumerate(RELATIONS)}
        leaf = {"id": id, "node": id % 8 + 1}
        return {"id": id, **near, **{name: ["a", f"b{id}"] for name in TAGS}, "c": [leaf]}

    content = {"nodes": [node(id) for id in NODES]}
    return make_api(content, types=[Node], config={"CMSAPI_CACHE_SIZE": 0})


@on_memory
@pytest.mark.parametrize("selection", MOST)
@pytest.mark.parametrize("path", ["nodes/", "nodes/1/"])
def test_what_brackets_ask_for_is_counted(api: API, path: str, selection: str) -> None:
    most = MOST[selection][0]
    assert api.status(f"{path}?fields={most}") == 200
    assert api.refusal(f"{path}?fields={most},r59(_,t0)") == (
        "fields asks for more than 100 relations, tag fields and lists of child objects inside "
        "brackets. Name fewer of them."
    )


@on_memory
def test_what_stands_outside_brackets_is_not_counted(api: API) -> None:
    for path in ("nodes/?fields=*", "nodes/1/", f"nodes/?fields=*,{MOST['relations'][0][2:]}"):
        assert api.status(path) == 200
    everything = ",".join(f"r{n}(*)" for n in range(50))
    assert api.status(f"nodes/?limit=1&fields={everything}") == 400


@on_databases
@pytest.mark.parametrize("selection", MOST)
@pytest.mark.parametrize(("path", "rows"), [("nodes/", 2), ("nodes/1/", 1)])
def test_brackets_cost_a_bounded_number_of_statements(
    api: API, path: str, rows: int, selection: str
) -> None:
    most, outside = MOST[selection]
    api.get(path)
    for method in ("GET", "HEAD"):
        with noted(api) as statements:
            assert api.get(f"{path}?fields={most}", method=method).status_code == 200
        assert len(statements) <= rows + outside + 100
    with noted(api) as statements:
        assert api.status(f"{path}?fields={most},r59(_,t0)") == 400
    # Whether the content has changed, and the type of an object.
    assert len(statements) <= 2


@on_databases
@pytest.mark.parametrize("method", ["OPTIONS", "POST", "PUT", "X"])
def test_what_only_reads_the_content_asks_it(api: API, method: str) -> None:
    for path in ("nodes/", "nodes", "nodes/1/", "nodes/find/?id=1", "nothing/"):
        with noted(api) as statements:
            api.get(path, method=method)
        assert statements == []


@pytest.mark.slow
def test_what_is_kept_of_requests_is_bounded(
    make_api: MakeAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flask_contentapi.parameters.CACHE_SIZE", 300)
    api = make_api({"nodes": [{"id": 1}]}, types=[Node], config={"CMSAPI_CACHE_SIZE": 0})

    def kept() -> int:
        gc.collect()
        return sum(isinstance(one, RowLayout) for one in gc.get_objects())

    before = kept()
    for path in ("nodes/", "nodes/1/"):
        for n in range(20):
            assert api.status(f"{path}?fields=*,-r{n}") == 200
            assert api.status(f"{path}?fields=*,-r{n}&_={'x' * 1000}") == 200
    assert kept() - before <= 2 * 300


def memory_kept_of(requests: int, ask: Callable[[int], object]) -> int:
    """How much memory stays taken after some requests, in bytes."""
    ask(0)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(1, requests + 1):
            ask(number)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


@on_memory
def test_long_queries_are_not_kept(api: API) -> None:
    # Not by the client of the tests, which keeps addresses itself.
    environ = create_environ(f"{PREFIX}/nodes/", "http://localhost/")
    filler = "&".join(["_=" + "x" * 4000] * 4)

    def ask(number: int) -> None:
        query = f"limit=0&{filler}&_={number}"
        _, status, _ = run_wsgi_app(api.app, {**environ, "QUERY_STRING": query}, buffered=True)
        assert status == "200 OK"

    assert memory_kept_of(100, ask) < 100 * 4000


DEEP = 300


@on_memory
def test_deep_trees_do_not_multiply_work(make_api: MakeAPI) -> None:
    chain = [page(n, n - 1 or None, slug=f"page-{n}") for n in range(1, DEEP + 1)]
    broad = [page(1000 + n, DEEP) for n in range(20)]
    below = [page(2000 + n, 1000 + n % 20) for n in range(400)]
    api = make_api({"pages": [*chain, *broad, *below]}, config={"CMSAPI_EMBED_MAX": 9000})
    path = f"pages/?child_of={DEEP}&fields=_,"
    assert len(api.items(f"{path}ancestors(_,id)")[0]["meta"]["ancestors"]) == DEEP
    tracemalloc.start()
    try:
        assert "more than 9000 objects" in api.refusal(f"{path}children(_,ancestors(_,id))")
        # The 120,000 paths above these pages take 200 megabytes.
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


@on_memory
def test_what_reads_filters_is_bounded(make_api: MakeAPI) -> None:
    api = make_api({"nodes": [{"id": 1}]}, types=[Node], config={"CMSAPI_CACHE_SIZE": 0})
    filters = [f"{name}{end}=1" for name in RELATIONS for end in ("", "__in", "__not", "__isnull")]

    def kept() -> int:
        gc.collect()
        schemas = (one for one in gc.get_objects() if isinstance(one, Schema))
        return sum(len(one.fields) for one in schemas if type(one).__name__ == "Parameters")

    before = kept()
    for number in range(180):
        assert api.status(f"nodes/?{'&'.join(filters[number : number + 50])}") == 200
    assert 0 < kept() - before <= 8192
    before = kept()
    for number in range(60):
        assert api.status(f"nodes/?{'&'.join(filters[number : number + 51])}") == 400
    assert kept() == before


@on_databases
def test_statements_are_kept_by_their_size(
    make_api: MakeAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flask_contentapi_peewee.statements.CACHE_SIZE", 2_000_000)
    api = make_api({"nodes": [{"id": 1}]}, types=[Node], config={"CMSAPI_CACHE_SIZE": 0})

    def kept() -> int:
        gc.collect()
        return sum(isinstance(one, Slot) for one in gc.get_objects())

    before = kept()
    for number in range(1, 13):
        ids = ",".join(map(str, range(88 + number)))
        names = (f"r{n}__in" for n in range(10))
        assert api.ids("nodes/?" + "&".join(f"{name}={ids}" for name in names)) == []
    assert 0 < kept() - before <= 2_000


def test_addresses_of_kept_answers_count() -> None:
    app = Flask(__name__)
    app.config["CMSAPI_CACHE_SIZE"] = 500_000
    kept = KeptAnswers(app, ContentAPI(app, types=[Node], backend=MemoryBackend({"nodes": []})))
    environ = create_environ(f"{PREFIX}/nodes/", "http://localhost/")

    def ask(number: int) -> None:
        prefix = f"/{number}{'x' * 20_000}"
        given = {**environ, "HTTP_X_FORWARDED_PREFIX": prefix}
        assert run_wsgi_app(kept, given, buffered=True)[1] == "200 OK"

    assert memory_kept_of(200, ask) < 2_000_000


@pytest.mark.slow
def test_what_viewers_may_see_is_kept_once(make_api: MakeAPI) -> None:
    pages = [page(1), *(page(id, 1, restriction=private()) for id in range(2, 2002))]
    api = make_api({"pages": pages}, can_view=lambda rule: True, config={"CMSAPI_CACHE_SIZE": 0})
    ask = lambda number: api.json(f"pages/?limit=1&id={number}")  # noqa: E731
    # A set of the ids takes 130,000 bytes.
    assert memory_kept_of(50, ask) < 50 * 50_000

"""Tests of loading and dumping, and of replacing content while it is served."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from copy import deepcopy
from threading import Event
from typing import Any

import orjson
import pytest
from marshmallow import fields

from flask_contentapi.backend import ATTEMPTS, Backend, ContentChanged, Reader
from flask_contentapi.content import DEEPEST, read_library
from flask_contentapi.errors import ContentError
from flask_contentapi.registry import Registry
from flask_contentapi.testing.kit import ANYBODY, Kit, found, named, query
from flask_contentapi.testing.sample import CONTENT, SMALL
from flask_contentapi.testing.sample_types import TYPES, Leaflet, Room
from flask_contentapi.types import Page

Content = dict[str, Any]
Change = Callable[[Content], Any]

_REGISTRY = Registry(TYPES)


def put(section: str, index: int, **values: Any) -> Change:
    """Gives a record of a section other values."""
    return lambda content: content[section][index].update(values)


def add(section: str, record: Any) -> Change:
    """Adds a record to a section."""
    return lambda content: content[section].append(record)


def drop(section: str, index: int) -> Change:
    """Takes a record away from a section."""
    return lambda content: content[section].pop(index)


def _rooms(levels: int) -> list[dict[str, Any]]:
    """A room on each level of the tree."""
    plain = {"type": "museum.Room", "title": "Museum"}
    return [
        {"id": n, "parent": n - 1 or None, "slug": f"room-{n}", **plain}
        for n in range(1, levels + 1)
    ]


def _both(first: Change, second: Change) -> Change:
    return lambda content: (first(content), second(content))


CHANGES: list[tuple[str, Change]] = [
    ("a title", put("pages", 2, title="shop")),
    ("a page less", drop("pages", 2)),
    ("siblings in another order", lambda content: content["pages"].reverse()),
    ("a page at another place", put("pages", 2, parent=3)),
    ("a draft", put("pages", 2, live=False)),
    ("a time", put("pages", 2, expires_at="2030-01-01")),
    ("a restriction", put("pages", 2, restriction={"type": "login"})),
    ("a relation to many", put("pages", 1, neighbours=[2, 1])),
    ("a stored field that is not shown", put("pages", 1, remark="hush")),
    ("a child object", put("pages", 1, captions=[{"id": 1, "text": "Polished"}])),
    ("the order of keys in JSON", put("pages", 1, data={"b": 2, "a": 1})),
    ("what an undeclared type has besides", put("pages", 3, scale=43)),
    ("an image", put("images", 0, width=1)),
    ("the type of an image", put("images", 0, type="museum.Scan")),
    ("a tag of a document", put("documents", 0, tags=["Visit"])),
    ("an object of another endpoint", put("people", 0, name="ada")),
    ("a redirect", put("redirects", 0, old_path="/older")),
    ("a collection", put("collections", 0, restriction={"type": "login"})),
    ("a site", put("sites", 0, port=8080)),
    ("a language", add("locales", "fr")),
]

_SAME = {"id": 2, "old_path": "old/", "site": "museum.example:80", "redirect_link": "/"}

#: Faults: what is wrong, how to cause it, and the records and fields to be named in problems.
FAULTS: list[tuple[str, Change, set[str]]] = [
    ("a parent that is not there", put("pages", 2, parent=404), {"pages 2 parent"}),
    (
        "a circle",
        _both(put("pages", 1, parent=2), put("pages", 2, parent=3)),
        {"pages 2 parent", "pages 3 parent"},
    ),
    (
        "a tree that is too deep",
        lambda content: content.update(pages=_rooms(DEEPEST + 1)),
        {f"pages {DEEPEST + 1} parent"},
    ),
    ("a second id", add("people", {"id": 1, "name": "Eve"}), {"people 1 id"}),
    ("a second slug", put("pages", 2, slug="agate"), {"pages 2 slug"}),
    ("a value that does not fit", put("images", 0, width="wide"), {"images 1 width"}),
    ("a second path", add("redirects", _SAME), {"redirects 2 old_path"}),
    ("a redirect to nothing", put("redirects", 0, redirect_page=None), {"redirects 1"}),
    ("a number that does not fit", put("pages", 1, number=2**63), {"pages 3 number"}),
    ("a relation to many with null", put("pages", 1, neighbours=[1, None]), {"pages 3 neighbours"}),
    ("a field that there is not", put("people", 0, nmae="x"), {"people 1 nmae"}),
    (
        "a site without a page",
        put("sites", 0, root_page=404),
        {"sites museum.example:80 root_page"},
    ),
    ("a section that there is not", lambda content: content.update(pagse=[]), {"pagse"}),
    (
        "several at once",
        _both(put("pages", 2, parent=404), put("people", 0, born=7)),
        {"pages 2 parent", "people 1 born"},
    ),
]


class Cabinet(Page):
    """A type that is declared later."""

    app_label = "museum"
    drawers = fields.Integer()
    api_fields = ["drawers"]


_NINE_DRAWERS = query(where=[("drawers", "eq", 9)], types=frozenset({"museum.Cabinet"}))

Look = Callable[[Reader], Any]

#: Ways to see that a reader reads other content than it started with.
LOOKS: list[tuple[str, Look]] = [
    ("a list", lambda reader: found(reader, query())),
    ("a list in some order", lambda reader: found(reader, query("people", order="-name"))),
    ("a search", lambda reader: found(reader, query(any_word="agate", order="id"))),
    ("a list of nothing", lambda reader: found(reader, query(where=[("id", "eq", 20)]))),
    ("objects by id", lambda reader: dict(reader.fetch("pages", [1, 4], ["title"], ANYBODY))),
    ("one that is gone", lambda reader: dict(reader.fetch("pages", [4], ["title"], ANYBODY))),
    ("one that is new", lambda reader: dict(reader.fetch("pages", [20], ["title"], ANYBODY))),
    ("the version", lambda reader: reader.version),
    ("the sites", lambda reader: list(reader.sites)),
    ("the languages", lambda reader: list(reader.locales)),
    ("the restrictions", lambda reader: dict(reader.restrictions.pages)),
]


def changed(change: Change) -> Content:
    """The small content with a change."""
    content = deepcopy(SMALL)
    change(content)
    return content


def _dumped(records: Iterable[tuple[str, Any]]) -> Content:
    """Dumped records, in the form for loading."""
    content = defaultdict(list)
    for section, record in records:
        content[section].append(record)
    return dict(content)


def _canonical(content: Mapping[str, Any]) -> str:
    """The content as canonical text, including the order of keys."""
    records = list(read_library(content, _REGISTRY).dump())
    return json.dumps(records, indent=1, ensure_ascii=False)


def _content(backend: Backend) -> str:
    """The content that a backend dumps, as canonical text."""
    return _canonical(_dumped(backend.dump()))


def _state(backend: Backend) -> tuple[str | None, str]:
    """The version and the content that a backend serves."""
    with backend.reader() as reader:
        return reader.version, _content(backend)


def _broken_off(records: Iterable[Any]) -> Iterator[Any]:
    yield from records
    raise OSError("the rest cannot be read")


class LoadTests(Kit):
    """:meth:`Backend.load` and :meth:`Backend.dump`, and what readers see meanwhile."""

    def test_opened_backend_is_empty(self, backend: Backend) -> None:
        with backend.reader() as reader:
            assert [found(reader, query(name)) for name in ("pages", "images", "people")] == [
                ([], 0)
            ] * 3
        assert list(backend.dump()) == []

    def test_dump_is_lossless(self, sample: Backend) -> None:
        assert _content(sample) == _canonical(CONTENT)

    def test_dump_is_json(self, sample: Backend) -> None:
        dumped = _dumped(sample.dump())
        assert _canonical(orjson.loads(orjson.dumps(dumped))) == _canonical(CONTENT)

    def test_dump_can_be_loaded_elsewhere(self, sample: Backend, backend: Backend) -> None:
        backend.load(_dumped(sample.dump()))
        assert _content(backend) == _canonical(CONTENT)

    def test_load_takes_instances_and_iterators(self, backend: Backend) -> None:
        rooms = [Room(id=1, title="Museum", slug="home"), Room(id=2, parent=1, title="B", slug="b")]
        backend.load({"pages": iter(rooms), "documents": iter([Leaflet(id=1, title="Guide")])})
        with backend.reader() as reader:
            assert found(reader, query()) == ([1, 2], 2)
            assert found(reader, query("documents")) == ([1], 1)

    def test_load_takes_trees_of_all_levels(self, backend: Backend) -> None:
        backend.load({"pages": _rooms(DEEPEST)})
        above = [*range(1, DEEPEST)]
        with backend.reader() as reader:
            assert found(reader, query(ancestor_of=DEEPEST))[0] == above

    def test_load_replaces_the_whole_content(self, backend: Backend) -> None:
        backend.load(CONTENT)
        backend.load(SMALL)
        assert _content(backend) == _canonical(SMALL)
        with backend.reader() as reader:
            assert found(reader, query()) == ([1, 3, 2, 4], 4)
            assert found(reader, query(any_word="agate")) == ([3], 1)
            assert (dict(reader.restrictions.pages), list(reader.locales)) == ({}, ["en"])

    def test_load_of_nothing_leaves_nothing(self, small: Backend) -> None:
        small.load({})
        assert list(small.dump()) == []

    @pytest.mark.parametrize("change", named(CHANGES))
    def test_version_changes_with(self, small: Backend, change: Change) -> None:
        before, _ = _state(small)
        small.load(changed(change))
        assert _state(small)[0] != before

    @pytest.mark.parametrize(("fault", "wrong"), named(FAULTS))
    def test_load_refuses_and_changes_nothing(
        self, small: Backend, fault: Change, wrong: set[str]
    ) -> None:
        before = _state(small)
        with pytest.raises(ContentError) as raised:
            small.load(changed(fault))
        assert {f"{p.where} {p.field}".strip() for p in raised.value.problems} == wrong
        assert _state(small) == before

    def test_load_that_breaks_off_changes_nothing(self, small: Backend) -> None:
        before = _state(small)
        with pytest.raises(OSError, match="cannot be read"):
            small.load({"pages": _rooms(1), "people": _broken_off([{"id": 2, "name": "Eve"}])})
        assert _state(small) == before

    @pytest.mark.parametrize("method", ["create", "migrate", "reload"])
    def test_what_is_stored_stays_after(self, small: Backend, method: str) -> None:
        before = _state(small)
        list(getattr(small, method)() or ())
        assert _state(small) == before

    def test_opening_logs_nothing_where_a_command_says_it(
        self, sample: Backend, caplog: pytest.LogCaptureFixture
    ) -> None:
        other = self.reopen(sample)
        other.open(Registry(TYPES), logs=False)
        other.close()
        assert caplog.messages == []

    def test_loaded_content_outlives_a_persistent_backend(self) -> None:
        with self.opened(SMALL) as first:
            before = _state(first)
        with self.opened(backend=self.reopen(first)) as second:
            assert (_state(second) == before) is first.persistent

    def test_other_processes_see_what_is_loaded_once_it_is_reloaded(self) -> None:
        with self.opened({}) as first, self.opened(backend=self.reopen(first)) as second:
            first.load(SMALL)
            first.reload()
            assert (_state(second) == _state(first)) is first.persistent

    def test_migrate_keeps_what_is_there_and_makes_room_for_further_types(self) -> None:
        with self.opened(SMALL) as first:
            before = _content(first)
        with self.opened(backend=self.reopen(first), types=(*TYPES, Cabinet)) as second:
            list(second.migrate())
            assert (_content(second) == before) is first.persistent
            second.load({"pages": [Cabinet(id=1, title="Drawers", slug="drawers", drawers=9)]})
            with second.reader() as reader:
                assert found(reader, _NINE_DRAWERS) == ([1], 1)

    @pytest.mark.parametrize("look", named(LOOKS))
    def test_reader_sees_one_content_while_another_is_loaded(
        self, small: Backend, look: Look
    ) -> None:
        with ThreadPoolExecutor() as others, suppress(*self._forgiven()):
            with small.reader() as reader:
                before = look(reader)
                loading = others.submit(small.load, CONTENT)
                if not self.load_waits:
                    loading.result()
                after = look(reader)
            # A reader may report the change as late as on closing.
            assert after == before
        with small.reader() as reader:
            assert look(reader) != before

    @pytest.mark.parametrize(("what", "look"), named((what, what, look) for what, look in LOOKS))
    def test_snapshot_reader_keeps_to_its_content(
        self, small: Backend, what: str, look: Look
    ) -> None:
        with ThreadPoolExecutor() as others, small.snapshot_reader() as reader:
            before = look(reader)
            loading = others.submit(small.load, CONTENT)
            if not self.load_waits:
                loading.result()
                with small.reader() as other:
                    assert look(other) != before
            with suppress(*[ContentChanged] * (what == "a search")):
                assert look(reader) == before

    def test_snapshot_reader_is_for_any_thread(self, small: Backend) -> None:
        with small.snapshot_reader() as reader, small.snapshot_reader() as own:
            with ThreadPoolExecutor() as others:
                seen = others.submit(found, reader, query()).result()
            assert seen == found(own, query())

    def _forgiven(self) -> tuple[type[Exception], ...]:
        """The errors that a reader may raise if the content changes while it is open."""
        return () if self.holds_content else (ContentChanged,)

    def test_readers_of_several_threads_see_whole_contents(self, small: Backend) -> None:
        one, other = ((1, 3, 2, 4), 4, 4), (tuple(range(1, 10)), 9, 9)
        stopped = Event()
        with ThreadPoolExecutor(4) as pool:
            watched = [pool.submit(_watch, small, self._forgiven(), stopped) for _ in range(4)]
            try:
                for content in ({"pages": _rooms(9)}, SMALL) * 5:
                    small.load(content)
            finally:
                stopped.set()
        seen = set().union(*(watch.result() for watch in watched))
        assert seen <= {one, other}
        assert one in seen

    def test_a_reader_can_be_opened_inside_another(self, sample: Backend) -> None:
        with sample.reader() as outer:
            with sample.reader() as inner:
                assert found(inner, query("people")) == ([1, 2, 3], 3)
            assert found(outer, query("people")) == ([1, 2, 3], 3)


def _watch(backend: Backend, forgiven: tuple[type[Exception], ...], stopped: Event) -> set[Any]:
    """What is seen by reading repeatedly, each time with a new reader.

    :param forgiven: the errors that may be raised.
    :param stopped: is set when loading has ended, so that one of the attempts that a request makes
        must succeed.
    """
    seen = set()
    left = ATTEMPTS
    while left:
        left -= stopped.is_set()
        with suppress(*forgiven):
            with backend.reader() as reader:
                ids, total = found(reader, query())
                again = len(reader.fetch("pages", range(100), ["id"], query().viewer))
            seen.add((tuple(ids), total, again))
    return seen

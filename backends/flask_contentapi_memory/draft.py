"""The content in the form in which it is changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import chain, dropwhile
from operator import itemgetter
from typing import Any

from flask_contentapi.content import STRUCTURAL, Library, Table, assemble_library
from flask_contentapi.declarations import Endpoint, ObjectType, targets_of
from flask_contentapi.query import ObjectKey, Row
from flask_contentapi.records import RecordReader, differ
from flask_contentapi.registry import Registry
from flask_contentapi.sites import quote_slug
from flask_contentapi.writer import StoredObject, Transaction


class Draft(Transaction):
    """The content in the form in which it is changed.

    A change of an object takes as long in much content as in little, except that of its siblings.

    :param library: the content.
    :param registry: the declared types.
    :param highest: the highest id that each endpoint has had, unless an object still has it.
    """

    def __init__(self, library: Library, registry: Registry, highest: Mapping[str, int]) -> None:
        super().__init__(registry)
        base = registry.endpoints["pages"].base.places
        self._parent, self._slug = base["parent"], base["slug"]
        self._key, self._locale = base["translation_key"], base["locale"]
        self.highest = defaultdict(int, highest)
        self._records: dict[str, Sequence[Any]] = {
            "locales": library.locales,
            "sites": library.site_records,
            "collections": [*library.collections.values()],
        }
        self._objects: dict[str, dict[int, StoredObject]] = {}
        #: The pages under each parent by slug, in order.
        self._children: defaultdict[int | None, dict[str, int]] = defaultdict(dict)
        #: The objects that child objects are in, by type and id.
        self._owners: dict[tuple[str, int], ObjectKey] = {}
        for name, table in library.tables.items():
            self._objects[name] = {}
            for row in table.rows:
                self._put(name, StoredObject(row, table.extras.get(row[0], {})))
        self._now: Library | None = library
        self.settle()

    # Snapshots.

    def library(self) -> Library:
        """The content as it is now."""
        if self._now is None and not self._is_restructured:
            tables = dict(self._before.tables)
            for name in self._replaced:
                tables[name] = self._table(tables[name], [row[0] for row in tables[name].rows])
            self._now = replace(self._before, tables=tables)
        if self._now is None:
            pages = chain.from_iterable(pages.values() for pages in self._children.values())
            self._now = assemble_library(
                {
                    name: self._table(Table(known), pages if known.tree else self._objects[name])
                    for name, known in self.registry.endpoints.items()
                },
                tuple(self._records["locales"]),
                self._records["sites"],
                {collection["id"]: collection for collection in self._records["collections"]},
                RecordReader(self.registry),
            )
        return self._now

    def _table(self, table: Table, ids: Iterable[int]) -> Table:
        objects = [self._objects[table.endpoint.name][identity] for identity in ids]
        extras = {row[0]: dict(extras) for row, extras in objects if extras}
        return replace(table, rows=[row for row, _ in objects], extras=extras)

    def settle(self) -> None:
        """Keeps the changes for the next block."""
        self._before = self.library()
        #: The endpoints with objects that only have other values, and whether anything else is new.
        self._replaced, self._is_restructured = set[str](), False

    # What there is.

    def records(self, section: str) -> Sequence[Any]:
        return self._records[section]

    def find(self, endpoint: str, id: int) -> StoredObject | None:
        return self._objects[endpoint].get(id)

    def next_id(self, endpoint: str) -> int:
        return self.highest[endpoint] + 1

    def next_child_id(self, child: ObjectType) -> int:
        ids = (identity for label, identity in self._owners if label == child.label)
        return max(ids, default=0) + 1

    def owners(self, child: ObjectType, ids: Sequence[int]) -> Iterator[tuple[int, ObjectKey]]:
        found = ((identity, self._owners.get((child.label, identity))) for identity in ids)
        return ((identity, owner) for identity, owner in found if owner is not None)

    def page_at(self, parent: int | None, slug: str) -> int | None:
        return self._children[parent].get(slug)

    def redirect_at(self, site_path: str) -> int | None:
        place = self.registry.endpoints["redirects"].base.places["site_path"]
        redirects = self._objects["redirects"].values()
        return next((row[0] for row, _ in redirects if row[place] == site_path), None)

    def slugs(self, parent: int | None, start: str) -> Set[str]:
        return self._children[parent].keys()

    def url_path(self, page: int) -> str:
        path = "/"
        here: int | None = page
        while here is not None:
            row = self._objects["pages"][here].row
            path, here = f"/{quote_slug(row[self._slug])}{path}", row[self._parent]
        return path

    def below(self, page: int) -> dict[int, str]:
        return dict(self._tree(page, self.url_path(page)))

    def _tree(self, page: int | None, path: str) -> Iterator[tuple[int, str]]:
        waiting = [(page, path)]
        while waiting:
            here, path = waiting.pop()
            if here is not None and here != page:
                yield here, path
            children = reversed(self._children.get(here, {}).items())
            waiting += [(child, f"{path}{quote_slug(slug)}/") for slug, child in children]

    def translation(self, key: str, locale: str) -> int | None:
        pages, of = self._objects["pages"], itemgetter(self._key, self._locale)
        found = (page for page, _ in self._tree(None, "/") if of(pages[page].row) == (key, locale))
        return next(found, None)

    def page_locales(self) -> Set[str]:
        return {row[self._locale] for row, _ in self._objects["pages"].values()} - {None}

    def members(self, collection: int) -> int:
        return sum(
            row[endpoint.base.places["collection"]] == collection
            for endpoint, row in self._all()
            if endpoint.collections
        )

    def referring(self, targets: Set[ObjectKey]) -> Iterator[ObjectKey]:
        for endpoint, row in self._all():
            if any(key in targets for key, _, _ in targets_of(endpoint.type_of(row[1]), row)):
                yield endpoint.name, row[0]

    def _all(self) -> Iterator[tuple[Endpoint, Row]]:
        for name, endpoint in self.registry.endpoints.items():
            yield from ((endpoint, row) for row, _ in self._objects[name].values())

    # Changes.

    def insert(self, endpoint: str, new: StoredObject, before: int | None) -> None:
        self._is_restructured = True
        self._put(endpoint, new)
        if before is not None:
            siblings = self._children[new.row[self._parent]]
            for slug in [*dropwhile(lambda slug: siblings[slug] != before, siblings)][:-1]:
                siblings[slug] = siblings.pop(slug)

    def replace(self, endpoint: str, old: StoredObject, new: StoredObject) -> None:
        places = self.registry.endpoints[endpoint].base.places
        structural = [places[name] for name in STRUCTURAL & places.keys()]
        if any(differ(new.row[place], old.row[place]) for place in structural):
            self._is_restructured = True
        if endpoint == "pages" and old.row[self._slug] != new.row[self._slug]:
            slugs = {old.row[self._slug]: new.row[self._slug]}
            siblings = self._children[new.row[self._parent]].items()
            self._children[new.row[self._parent]] = {slugs.get(s, s): page for s, page in siblings}
        self._take_away(endpoint, new.row[0])
        self._put(endpoint, new)
        self._replaced.add(endpoint)

    def move(self, old: StoredObject, parent: int | None, before: int | None) -> None:
        row = (*old.row[: self._parent], parent, *old.row[self._parent + 1 :])
        self.remove("pages", row[:1])
        self.insert("pages", StoredObject(row, old.extras), before)

    def remove(self, endpoint: str, ids: Sequence[int]) -> None:
        self._is_restructured = True
        for identity in ids:
            row = self._take_away(endpoint, identity)
            if endpoint == "pages":
                del self._children[row[self._parent]][row[self._slug]]

    def put_records(self, section: str, records: Sequence[Any]) -> None:
        self._is_restructured = True
        if section == "locales" and not self._records[section]:
            for row, extras in [*self._objects["pages"].values()]:
                if row[self._locale] is None:
                    named = (*row[: self._locale], records[0], *row[self._locale + 1 :])
                    self._put("pages", StoredObject(named, extras))
        self._now = None
        self._records[section] = records

    def _put(self, endpoint: str, new: StoredObject) -> None:
        self._now = None
        row = new.row
        self._objects[endpoint][row[0]] = new
        self.highest[endpoint] = max(self.highest[endpoint], row[0])
        if endpoint == "pages":
            self._children[row[self._parent]][row[self._slug]] = row[0]
        for child in self._child_keys(endpoint, row):
            self._owners[child] = (endpoint, row[0])

    def _take_away(self, endpoint: str, identity: int) -> Row:
        self._now = None
        row = self._objects[endpoint].pop(identity).row
        for child in self._child_keys(endpoint, row):
            del self._owners[child]
        return row

    def _child_keys(self, endpoint: str, row: Row) -> Iterator[tuple[str, int]]:
        declared = self.registry.endpoints[endpoint].type_of(row[1])
        for name, column in declared.columns.items():
            if column.child is not None:
                yield from ((column.child.label, child[0]) for child in row[declared.places[name]])

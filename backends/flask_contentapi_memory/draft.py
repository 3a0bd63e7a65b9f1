"""The content in the form in which it is changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace
from itertools import chain
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
    """

    def __init__(self, library: Library, registry: Registry) -> None:
        super().__init__(registry)
        base = registry.endpoints["pages"].base.places
        self._parent, self._slug = base["parent"], base["slug"]
        self._key, self._locale = base["translation_key"], base["locale"]
        #: The highest id that each endpoint has had.
        self._highest = dict.fromkeys(registry.endpoints, 0)
        self._take(library)
        self.settle()

    def _take(self, library: Library) -> None:
        self._records: dict[str, Sequence[Any]] = {
            "locales": library.locales,
            "sites": library.site_records,
            "collections": [*library.collections.values()],
        }
        self._objects: dict[str, dict[int, StoredObject]] = {}
        #: The pages under each parent in order, and those with a parent and a slug.
        self._children: defaultdict[int | None, list[int]] = defaultdict(list)
        self._page_at: dict[tuple[int | None, str], int] = {}
        #: The objects that child objects are in, by type and id.
        self._owners: dict[tuple[str, int], ObjectKey] = {}
        for name, table in library.tables.items():
            self._objects[name] = {}
            for row in table.rows:
                self._put(name, StoredObject(row, table.extras.get(row[0], {})))
        for page, (row, _) in self._objects["pages"].items():
            self._children[row[self._parent]].append(page)
        self._now: Library | None = library

    # Snapshots.

    def library(self) -> Library:
        """The content as it is now."""
        if self._now is None and not self._is_restructured:
            tables = dict(self._before.tables)
            for name in self._replaced:
                tables[name] = self._table(tables[name], [row[0] for row in tables[name].rows])
            self._now = replace(self._before, tables=tables)
        if self._now is None:
            pages = chain.from_iterable(self._children.values())
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
        """Keeps the changes; they can no longer be undone."""
        self._before, self._highest_before = self.library(), dict(self._highest)
        #: The endpoints with objects that only have other values, and whether anything else is new.
        self._replaced, self._is_restructured = set[str](), False

    def undo(self) -> None:
        """Takes the changes back."""
        self._highest = dict(self._highest_before)
        self._take(self._before)
        self.settle()

    # What there is.

    def records(self, section: str) -> Sequence[Any]:
        return self._records[section]

    def find(self, endpoint: str, id: int) -> StoredObject | None:
        return self._objects[endpoint].get(id)

    def next_id(self, endpoint: str) -> int:
        return self._highest[endpoint] + 1

    def next_child_id(self, child: ObjectType) -> int:
        ids = (identity for label, identity in self._owners if label == child.label)
        return max(ids, default=0) + 1

    def owners(self, child: ObjectType, ids: Sequence[int]) -> Iterator[tuple[int, ObjectKey]]:
        found = ((identity, self._owners.get((child.label, identity))) for identity in ids)
        return ((identity, owner) for identity, owner in found if owner is not None)

    def page_at(self, parent: int | None, slug: str) -> int | None:
        return self._page_at.get((parent, slug))

    def redirect_at(self, site_path: str) -> int | None:
        place = self.registry.endpoints["redirects"].base.places["site_path"]
        redirects = self._objects["redirects"].values()
        return next((row[0] for row, _ in redirects if row[place] == site_path), None)

    def slugs(self, parent: int | None, start: str) -> Set[str]:
        pages = self._objects["pages"]
        return {pages[page].row[self._slug] for page in self._children.get(parent, ())}

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
        waiting = [(child, path) for child in reversed(self._children.get(page, ()))]
        while waiting:
            here, path = waiting.pop()
            path = f"{path}{quote_slug(self._objects['pages'][here].row[self._slug])}/"
            yield here, path
            waiting += [(child, path) for child in reversed(self._children.get(here, ()))]

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
        if endpoint == "pages":
            siblings = self._children[new.row[self._parent]]
            place = len(siblings) if before is None else siblings.index(before)
            siblings.insert(place, new.row[0])

    def replace(self, endpoint: str, old: StoredObject, new: StoredObject) -> None:
        self._take_away(endpoint, new.row[0])
        self._put(endpoint, new)
        self._replaced.add(endpoint)
        places = self.registry.endpoints[endpoint].base.places
        structural = [places[name] for name in STRUCTURAL & places.keys()]
        if any(differ(new.row[place], old.row[place]) for place in structural):
            self._is_restructured = True

    def move(self, old: StoredObject, parent: int | None, before: int | None) -> None:
        row = (*old.row[: self._parent], parent, *old.row[self._parent + 1 :])
        self.remove("pages", row[:1])
        self.insert("pages", StoredObject(row, old.extras), before)

    def remove(self, endpoint: str, ids: Sequence[int]) -> None:
        self._is_restructured = True
        for identity in ids:
            row = self._take_away(endpoint, identity)
            if endpoint == "pages":
                self._children[row[self._parent]].remove(identity)

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
        self._highest[endpoint] = max(self._highest[endpoint], row[0])
        if endpoint == "pages":
            self._page_at[row[self._parent], row[self._slug]] = row[0]
        for child in self._child_keys(endpoint, row):
            self._owners[child] = (endpoint, row[0])

    def _take_away(self, endpoint: str, identity: int) -> Row:
        self._now = None
        row = self._objects[endpoint].pop(identity).row
        if endpoint == "pages":
            del self._page_at[row[self._parent], row[self._slug]]
        for child in self._child_keys(endpoint, row):
            del self._owners[child]
        return row

    def _child_keys(self, endpoint: str, row: Row) -> Iterator[tuple[str, int]]:
        declared = self.registry.endpoints[endpoint].type_of(row[1])
        for name, column in declared.columns.items():
            if column.child is not None:
                yield from ((column.child.label, child[0]) for child in row[declared.places[name]])

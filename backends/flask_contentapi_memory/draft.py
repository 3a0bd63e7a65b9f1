"""The content in the form in which it is changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from typing import Any

from flask_contentapi.content import STRUCTURAL, Library, Table, assemble_library
from flask_contentapi.declarations import Endpoint, ObjectType, targets_of
from flask_contentapi.query import ObjectKey, Row
from flask_contentapi.records import RecordReader, differ
from flask_contentapi.registry import Registry
from flask_contentapi.sites import quote_slug
from flask_contentapi.writer import StoredObject, Transaction

__all__ = ["Draft"]

_MISSING: Any = object()


class Draft(Transaction):
    """The content in the form in which it is changed.

    A change of an object takes as long in much content as in little, except that of its siblings.

    :param library: the content.
    :param registry: the declared types.
    """

    def __init__(self, library: Library, registry: Registry) -> None:
        super().__init__(registry)
        #: The content before the changes.
        self._before = library
        self._now: Library | None = library
        #: For each change the value that was at a key before, to undo it.
        self._log: list[tuple[dict[Any, Any], Any, Any]] = []
        #: The objects that only have other values, and whether there are other changes.
        self._replaced: set[ObjectKey] = set()
        self._is_restructured = False
        self._records: dict[str, Sequence[Any]] = {
            "locales": library.locales,
            "sites": library.site_records,
            "collections": [*library.collections.values()],
        }
        self._objects: dict[str, dict[int, StoredObject]] = {}
        #: The highest id that each endpoint has had.
        self._highest: dict[str, int] = {}
        #: The pages under each parent in order, and their slugs.
        self._children: dict[int | None, tuple[int, ...]] = {}
        self._slugs: defaultdict[int | None, dict[str, int]] = defaultdict(dict)
        #: The objects that child objects are in, by type.
        self._owners: defaultdict[str, dict[int, ObjectKey]] = defaultdict(dict)
        for name, table in library.tables.items():
            rows, extras = table.rows, table.extras
            self._objects[name] = {r[0]: StoredObject(r, extras.get(r[0], {})) for r in rows}
            self._highest[name] = max(self._objects[name], default=0)
            for row in rows:
                for child, ids in _child_ids(table.endpoint, row):
                    self._owners[child].update(dict.fromkeys(ids, (name, row[0])))
        self._parent, self._slug = (self._page_column(name) for name in ("parent", "slug"))
        children: defaultdict[int | None, list[int]] = defaultdict(list)
        for page, (row, _) in self._objects["pages"].items():
            children[row[self._parent]].append(page)
            self._slugs[row[self._parent]][row[self._slug]] = page
        self._children.update((parent, tuple(pages)) for parent, pages in children.items())

    def _page_column(self, name: str) -> int:
        return self.registry.endpoints["pages"].base.places[name]

    # Snapshots.

    def library(self) -> Library:
        """The content as it is now."""
        if self._now is None:
            self._now = self._assembled() if self._is_restructured else self._patched()
        return self._now

    def _patched(self) -> Library:
        """The content if only values of objects have changed."""
        tables = dict(self._before.tables)
        for name in {name for name, _ in self._replaced}:
            known = self._objects[name]
            changed = {identity: known[identity] for end, identity in self._replaced if end == name}
            tables[name] = replace(
                tables[name],
                rows=[changed[r[0]].row if r[0] in changed else r for r in tables[name].rows],
                extras=tables[name].extras | {i: dict(one.extras) for i, one in changed.items()},
            )
        return replace(self._before, tables=tables)

    def _assembled(self) -> Library:
        tables = {}
        for name, endpoint in self.registry.endpoints.items():
            known = self._objects[name]
            if endpoint.tree:
                ordered = [known[page] for pages in self._children.values() for page in pages]
            else:
                ordered = [*known.values()]
            extras = {row[0]: dict(extras) for row, extras in ordered if extras}
            tables[name] = Table(endpoint, [row for row, _ in ordered], extras=extras)
        return assemble_library(
            tables,
            tuple(self._records["locales"]),
            self._records["sites"],
            {collection["id"]: collection for collection in self._records["collections"]},
            RecordReader(self.registry),
        )

    def settle(self) -> None:
        """Keeps the changes; they can no longer be undone."""
        self._before = self.library()
        self._begin()

    def undo(self) -> None:
        """Takes the changes back."""
        for known, key, value in reversed(self._log):
            _assign(known, key, value)
        self._now = self._before
        self._begin()

    def _begin(self) -> None:
        self._log.clear()
        self._replaced.clear()
        self._is_restructured = False

    def _put(self, known: dict[Any, Any], key: Any, value: Any = _MISSING) -> None:
        """Puts a value at a key, or removes the one that is there."""
        self._log.append((known, key, known.get(key, _MISSING)))
        self._now = None
        _assign(known, key, value)

    # What there is.

    def records(self, section: str) -> Sequence[Any]:
        return self._records[section]

    def find(self, endpoint: str, id: int) -> StoredObject | None:
        return self._objects[endpoint].get(id)

    def next_id(self, endpoint: str) -> int:
        return self._highest[endpoint] + 1

    def next_child_id(self, child: ObjectType) -> int:
        return max(self._owners[child.label], default=0) + 1

    def owners(self, child: ObjectType, ids: Sequence[int]) -> Iterator[tuple[int, ObjectKey]]:
        known = self._owners[child.label]
        return ((identity, known[identity]) for identity in ids if identity in known)

    def page_at(self, parent: int | None, slug: str) -> int | None:
        return self._slugs[parent].get(slug)

    def redirect_at(self, site_path: str) -> int | None:
        place = self.registry.endpoints["redirects"].base.places["site_path"]
        redirects = self._objects["redirects"].values()
        return next((row[0] for row, _ in redirects if row[place] == site_path), None)

    def slugs(self, parent: int | None, start: str) -> Set[str]:
        return self._slugs[parent].keys()

    def url_path(self, page: int) -> str:
        slug, slugs = self._page_column("slug"), list[str]()
        here: int | None = page
        while here is not None:
            row = self._objects["pages"][here].row
            slugs.append(quote_slug(row[slug]))
            here = row[self._parent]
        return "/".join(["", *reversed(slugs), ""])

    def below(self, page: int) -> dict[int, str]:
        found: dict[int, str] = {}
        slug, waiting = self._page_column("slug"), [(page, self.url_path(page))]
        while waiting:
            above, path = waiting.pop()
            found[above] = path
            for child in reversed(self._children.get(above, ())):
                own = quote_slug(self._objects["pages"][child].row[slug])
                waiting.append((child, f"{path}{own}/"))
        del found[page]
        return found

    def translation(self, key: str, locale: str) -> int | None:
        wanted = {self._page_column("translation_key"): key, self._page_column("locale"): locale}
        found = (
            page
            for page, (row, _) in self._objects["pages"].items()
            if all(row[index] == value for index, value in wanted.items())
        )
        return min(found, key=self._position, default=None)

    def _position(self, page: int) -> list[int]:
        """The numbers of a page and those above it among their siblings, from the top."""
        numbers: list[int] = []
        here: int | None = page
        while here is not None:
            parent = self._objects["pages"][here].row[self._parent]
            numbers.append(self._children[parent].index(here))
            here = parent
        return numbers[::-1]

    def page_locales(self) -> Set[str]:
        index = self._page_column("locale")
        return {row[index] for row, _ in self._objects["pages"].values()} - {None}

    def members(self, collection: int) -> int:
        return sum(
            row[endpoint.base.places["collection"]] == collection
            for endpoint, row in self._rows()
            if endpoint.collections
        )

    def referring(self, targets: Set[ObjectKey]) -> Iterator[ObjectKey]:
        for endpoint, row in self._rows():
            if any(key in targets for key, _, _ in targets_of(endpoint.type_of(row[1]), row)):
                yield endpoint.name, row[0]

    def _rows(self) -> Iterator[tuple[Endpoint, Row]]:
        for name, endpoint in self.registry.endpoints.items():
            yield from ((endpoint, row) for row, _ in self._objects[name].values())

    # Changes.

    def insert(self, endpoint: str, new: StoredObject, before: int | None) -> None:
        self._is_restructured = True
        identity = new.row[0]
        self._put_object(endpoint, identity, new)
        self._put(self._highest, endpoint, max(self._highest[endpoint], identity))
        if endpoint == "pages":
            self._insert_page(new.row, before)

    def _insert_page(self, row: Row, before: int | None) -> None:
        parent, page = row[self._parent], row[0]
        siblings = [*self._children.get(parent, ())]
        siblings.insert(len(siblings) if before is None else siblings.index(before), page)
        self._put(self._children, parent, tuple(siblings))
        self._put(self._slugs[parent], row[self._slug], page)

    def _leave_siblings(self, page: int, parent: int | None) -> None:
        left = tuple([sibling for sibling in self._children[parent] if sibling != page])
        self._put(self._children, parent, left)

    def replace(self, endpoint: str, old: StoredObject, new: StoredObject) -> None:
        identity, known = new.row[0], self.registry.endpoints[endpoint].base.places
        self._put_object(endpoint, identity, new)
        self._replaced.add((endpoint, identity))
        structural = [known[name] for name in STRUCTURAL & known.keys()]
        if any(differ(new.row[place], old.row[place]) for place in structural):
            self._is_restructured = True
        if endpoint == "pages":
            slugs = self._slugs[old.row[self._parent]]
            self._put(slugs, old.row[self._slug])
            self._put(slugs, new.row[self._slug], identity)

    def move(self, old: StoredObject, parent: int | None, before: int | None) -> None:
        self._is_restructured = True
        row = (*old.row[: self._parent], parent, *old.row[self._parent + 1 :])
        self._leave_siblings(row[0], old.row[self._parent])
        self._put(self._slugs[old.row[self._parent]], row[self._slug])
        self._insert_page(row, before)
        self._put(self._objects["pages"], row[0], StoredObject(row, old.extras))

    def remove(self, endpoint: str, ids: Sequence[int]) -> None:
        self._is_restructured = True
        gone = {*ids}
        for identity in ids:
            if endpoint == "pages":
                row = self._objects[endpoint][identity].row
                if row[self._parent] not in gone:
                    self._leave_siblings(identity, row[self._parent])
                self._put(self._slugs[row[self._parent]], row[self._slug])
                self._put(self._children, identity)
            self._put_object(endpoint, identity, None)

    def _put_object(self, endpoint: str, identity: int, new: StoredObject | None) -> None:
        """Puts an object in the place of the one with its id, with the owners of child objects."""
        known, objects = self.registry.endpoints[endpoint], self._objects[endpoint]
        if identity in objects:
            for child, ids in _child_ids(known, objects[identity].row):
                for inner in ids:
                    self._put(self._owners[child], inner)
        self._put(objects, identity, _MISSING if new is None else new)
        for child, ids in () if new is None else _child_ids(known, new.row):
            for inner in ids:
                self._put(self._owners[child], inner, (endpoint, identity))

    def put_records(self, section: str, records: Sequence[Any]) -> None:
        self._is_restructured = True
        if section == "locales" and not self._records[section]:
            index = self._page_column("locale")
            for page, (row, extras) in [*self._objects["pages"].items()]:
                if row[index] is None:
                    named = (*row[:index], records[0], *row[index + 1 :])
                    self._put(self._objects["pages"], page, StoredObject(named, extras))
        self._put(self._records, section, records)


def _assign(known: dict[Any, Any], key: Any, value: Any) -> None:
    if value is _MISSING:
        known.pop(key, None)
    else:
        known[key] = value


def _child_ids(endpoint: Endpoint, row: Row) -> Iterator[tuple[str, list[int]]]:
    """The ids of the child objects of an object, by type."""
    declared = endpoint.type_of(row[1])
    for name, column in declared.columns.items():
        if column.child is not None:
            yield column.child.label, [child[0] for child in row[declared.places[name]]]

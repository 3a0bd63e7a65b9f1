"""The content while it is changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from operator import itemgetter
from typing import Any

from flask_contentapi.library import Library, assemble_library
from flask_contentapi.query import Row
from flask_contentapi.records import RecordReader
from flask_contentapi.registry import Registry
from flask_contentapi.relations import ObjectKey, targets_of, values_of
from flask_contentapi.tables import Table
from flask_contentapi.types import Endpoint, ObjectType
from flask_contentapi.writer import Stored, Transaction

__all__ = ["Draft"]


class Draft(Transaction):
    """A copy of the content that can be changed. Each change may look at every object.

    :param library: the content.
    :param registry: the declared types.
    :param highest: the highest id of each section since the last load, as far as it is known.
    """

    def __init__(self, library: Library, registry: Registry, highest: Mapping[str, int]) -> None:
        self._registry = registry
        # The dictionaries are replaced or copied before they are changed, so that an error can
        # bring back those before. Siblings are in the order of their pages.
        self._objects = {
            name: {row[0]: Stored(row, table.extras.get(row[0], {})) for row in table.rows}
            for name, table in library.tables.items()
        }
        self._locales, self._sites = library.locales, library.site_records
        self._collections = library.collections
        sections: dict[str, Iterable[int]] = {**self._objects, "collections": self._collections}
        self.highest = {name: max((highest.get(name, 0), *ids)) for name, ids in sections.items()}

    def library(self) -> Library:
        """The content as it is now."""
        tables = {}
        for name, endpoint in self._registry.endpoints.items():
            known = self._objects[name]
            extras = {i: dict(stored.extras) for i, stored in known.items() if stored.extras}
            tables[name] = Table(endpoint, [row for row, _ in known.values()], extras=extras)
        reader = RecordReader(self._registry)
        return assemble_library(tables, self._locales, self._sites, self._collections, reader)

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        before = dict(vars(self))
        self._objects = {name: dict(known) for name, known in self._objects.items()}
        self.highest = dict(self.highest)
        try:
            yield
        except BaseException:
            vars(self).update(before)
            raise

    # What there is.

    @property
    def locales(self) -> tuple[str, ...]:
        return self._locales

    @property
    def sites(self) -> list[dict[str, Any]]:
        return self._sites

    @property
    def collections(self) -> dict[int, dict[str, Any]]:
        return self._collections

    def find(self, endpoint: str, id: int) -> Stored | None:
        return self._objects[endpoint].get(id)

    def next_id(self, section: str) -> int:
        return self.highest[section] + 1

    def next_child_id(self, child: ObjectType) -> int:
        return 1 + max((identity for identity, _ in self._children_of(child)), default=0)

    def owners(self, child: ObjectType, ids: Sequence[int]) -> Iterator[tuple[int, ObjectKey]]:
        return (found for found in self._children_of(child) if ids and found[0] in ids)

    def _children_of(self, child: ObjectType) -> Iterator[tuple[int, ObjectKey]]:
        """The ids of the child objects of a type, each with the object it is in."""
        for endpoint, row in self._rows():
            declared = endpoint.type_of(row[1])
            for name, column in declared.columns.items():
                if column.child is child:
                    yield from ((c[0], (endpoint.name, row[0])) for c in row[declared.places[name]])

    def _rows(self) -> Iterator[tuple[Endpoint, Row]]:
        for name, endpoint in self._registry.endpoints.items():
            yield from ((endpoint, row) for row, _ in self._objects[name].values())

    def _pages(self, *columns: str) -> Iterator[tuple[int, Any]]:
        """The ids of all pages, siblings in order, each with the value of some columns."""
        places = self._registry.endpoints["pages"].base.places
        value = itemgetter(*(places[column] for column in columns))
        return ((identity, value(row)) for identity, (row, _) in self._objects["pages"].items())

    def page_at(self, parent: int | None, slug: str) -> int | None:
        at = (parent, slug)
        return next((page for page, found in self._pages("parent", "slug") if found == at), None)

    def slugs(self, parent: int | None, start: str) -> Set[str]:
        return {slug for _, (above, slug) in self._pages("parent", "slug") if above == parent}

    def below(self, page: int | None) -> list[int]:
        children: defaultdict[int | None, list[int]] = defaultdict(list)
        for child, parent in self._pages("parent"):
            children[parent].insert(0, child)
        found, waiting = [], children[page]
        while waiting:
            found.append(waiting.pop())
            waiting += children[found[-1]]
        return found

    def translation(self, key: str, locale: str) -> int | None:
        values = dict(self._pages("translation_key", "locale"))
        return next((page for page in self.below(None) if values[page] == (key, locale)), None)

    def members(self, collection: int) -> int:
        return sum(
            row[endpoint.base.places["collection"]] == collection
            for endpoint, row in self._rows()
            if endpoint.collections
        )

    def referring(self, targets: Set[ObjectKey]) -> Iterator[ObjectKey]:
        for endpoint, row in self._rows():
            for value in values_of(endpoint.type_of(row[1]), row):
                if not targets.isdisjoint(targets_of(value.column, value.stored)):
                    yield endpoint.name, row[0]

    # Changes.

    def insert(
        self, endpoint: str, row: Row, extras: Mapping[str, Any], before: int | None = None
    ) -> None:
        known = self._objects[endpoint]
        known[row[0]] = Stored(row, extras)
        self.highest[endpoint] = max(self.highest[endpoint], row[0])
        if before is not None:
            ids = [*known]
            ids.insert(ids.index(before), ids.pop())
            self._objects[endpoint] = {identity: known[identity] for identity in ids}

    def replace(self, endpoint: str, old: Stored, row: Row, extras: Mapping[str, Any]) -> None:
        self._objects[endpoint][row[0]] = Stored(row, extras)

    def move(self, row: Row, before: int | None) -> None:
        old = self._objects["pages"].pop(row[0])
        self.insert("pages", row, old.extras, before)

    def remove(self, endpoint: str, ids: Sequence[int]) -> None:
        for identity in ids:
            del self._objects[endpoint][identity]

    def put_locale(self, code: str) -> None:
        if not self._locales:
            index = self._registry.endpoints["pages"].base.places["locale"]
            for page, (row, extras) in self._objects["pages"].items():
                named = (*row[:index], code, *row[index + 1 :])
                self._objects["pages"][page] = Stored(named, extras)
        self._locales = (*self._locales, code)

    def put_site(self, site: Mapping[str, Any]) -> None:
        known = {(one["hostname"], one["port"]): one for one in self._sites}
        known[site["hostname"], site["port"]] = dict(site)
        self._sites = [*known.values()]

    def remove_site(self, hostname: str, port: int) -> None:
        at = (hostname, port)
        self._sites = [one for one in self._sites if (one["hostname"], one["port"]) != at]

    def put_collection(self, collection: Mapping[str, Any]) -> None:
        self.highest["collections"] = max(self.highest["collections"], collection["id"])
        self._collections = {**self._collections, collection["id"]: dict(collection)}

    def remove_collection(self, id: int) -> None:
        left = {known: one for known, one in self._collections.items() if known != id}
        self._collections = left

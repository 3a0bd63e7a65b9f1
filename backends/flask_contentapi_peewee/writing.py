"""Changes content object by object, within a transaction of the database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from typing import Any

import peewee
from peewee import fn

from flask_contentapi.declarations import ObjectType
from flask_contentapi.query import ObjectKey, Row
from flask_contentapi.records import differ
from flask_contentapi.writer import StoredObject, Transaction
from flask_contentapi_peewee.documents import (
    Inserter,
    TreePosition,
    batches,
    children_term,
    target_term,
)
from flask_contentapi_peewee.engines import Words
from flask_contentapi_peewee.page_tree import PageTree
from flask_contentapi_peewee.reader import DatabaseReader
from flask_contentapi_peewee.tables import USED_ID_PREFIX, StoredTable


class DatabaseTransaction(Transaction):
    """The content within a transaction of the database.

    :param copies: whether it is for copying rows of the site's own models.
    """

    def __init__(self, reader: DatabaseReader, copies: bool = False) -> None:
        self.reader, self.tables, self.documents = reader, reader.tables, reader.documents
        super().__init__(self.tables.registry)
        if not copies:
            self.elsewhere = self.tables.followed_types
        self.engine = self.tables.engine
        self._pages = self.tables.endpoints["pages"].base
        self.page_tree = PageTree(reader)
        self._records: dict[str, list[Any]] = {}

    # What there is.

    def records(self, section: str) -> Sequence[Any]:
        self._records = self._records or self.reader.records()
        return self._records[section]

    def find(self, endpoint: str, id: int) -> StoredObject | None:
        return next(iter(self.find_all(endpoint, [id])), None)

    def find_all(self, endpoint: str, ids: Sequence[int]) -> Iterator[StoredObject]:
        """Those of some objects that there are."""
        documents = self.documents[endpoint]
        for found in self.reader.objects(endpoint, ids=ids):
            yield StoredObject(documents.row(found), documents.extras(found))

    def next_id(self, endpoint: str) -> int:
        base = self.tables.endpoints[endpoint].base
        highest_known = base.select(fn.MAX(base["id"]))
        if self.elsewhere:
            # Their ids come from elsewhere too.
            own = base["type"].not_in([*self.elsewhere])
            highest_known = highest_known.where(own)
        known = highest_known, self.tables.state_of(f"{USED_ID_PREFIX}{base.name}")
        ((highest, deleted),) = self.reader.all(peewee.Select(columns=known))
        return max(highest or 0, int(deleted or 0)) + 1

    def next_child_id(self, child: ObjectType) -> int:
        highest = (
            self.reader.first(terms.select(fn.MAX(terms["number"])).where(same))
            for _, terms, same in self._terms_of(child)
        )
        return max((known or 0 for known in highest), default=0) + 1

    def owners(self, child: ObjectType, ids: Sequence[int]) -> Iterator[tuple[int, ObjectKey]]:
        for endpoint, terms, same in self._terms_of(child):
            for some in batches(ids):
                query = terms.select("number", "id").where(same, terms["number"].in_(some))
                yield from ((i, (endpoint, found)) for i, found in self.reader.all(query))

    def _terms_of(self, child: ObjectType) -> Iterator[tuple[str, StoredTable, Any]]:
        for name, tables in self.tables.endpoints.items():
            columns = (c for t in tables.endpoint.types.values() for c in t.columns.values())
            if any(column.child and column.child.label == child.label for column in columns):
                yield name, tables.terms, tables.terms["field"] == children_term(child.label)

    def page_at(self, parent: int | None, slug: str) -> int | None:
        # Many pages may have the parent, but few the slug.
        same = self.engine.unindexed(self._pages["parent"]) == parent
        same &= self.engine.compare(self._pages["slug"], "=", slug)
        page: int | None = self.reader.first(self._pages.select("id").where(same))
        return page

    def redirect_at(self, site_path: str) -> int | None:
        base = self.tables.endpoints["redirects"].base
        same = self.engine.compare(base["site_path"], "=", site_path)
        redirect: int | None = self.reader.first(base.select("id").where(same))
        return redirect

    def slugs(self, parent: int | None, start: str) -> set[str]:
        slug = self._pages["slug"]
        # The slug itself and numbered ones sort before the slug followed by ".", which follows "-".
        alike = (self._pages["parent"] == parent) & (slug >= start) & (slug < f"{start}.")
        return {*self.reader.values(self._pages.select(slug).where(alike))}

    def url_path(self, page: int) -> str:
        return self.page_tree.position_of(page).url_path

    def below(self, page: int) -> dict[int, str]:
        return self.page_tree.below(page)

    def translation(self, key: str, locale: str) -> int | None:
        pages = self._pages
        same = self.engine.compare(pages["translation_key"], "=", key)
        query = pages.select("id").where(same, pages["locale"] == locale).order_by(pages["path_"])
        page: int | None = self.reader.first(query.limit(1))
        return page

    def page_locales(self) -> list[str]:
        locale = self._pages["locale"]
        query = self._pages.select(locale).where(locale.is_null(is_null=False)).distinct()
        return self.reader.values(query)

    def members(self, collection: int) -> int:
        bases = [t.base for t in self.tables.endpoints.values() if t.endpoint.collections]
        counts = (b.select(fn.COUNT(1)).where(b["collection"] == collection) for b in bases)
        return sum(map(self.reader.first, counts))

    def referring(self, targets: Set[ObjectKey]) -> Iterator[ObjectKey]:
        wanted: defaultdict[str, list[int]] = defaultdict(list)
        for endpoint, identity in targets:
            wanted[endpoint].append(identity)
        for name, tables in self.tables.endpoints.items():
            terms = tables.terms
            for endpoint, ids in wanted.items():
                found = (terms["field"] == target_term(endpoint)) & terms["number"].in_(ids)
                owners = self.reader.values(terms.select("id").where(found).distinct())
                yield from ((name, owner) for owner in owners)

    # Changes.

    def insert(self, endpoint: str, new: StoredObject, before: int | None) -> None:
        position = None
        if self.registry.endpoints[endpoint].tree:
            position = self.page_tree.new_position(self.values(new.row), before)
        self._add(endpoint, [(new, position)])

    def _add(
        self, endpoint: str, objects: Iterable[tuple[StoredObject, TreePosition | None]]
    ) -> None:
        inserter = Inserter(self.documents[endpoint])
        for new, position in objects:
            inserter.add(*new, position)
        inserter.flush()

    def replace(self, endpoint: str, old: StoredObject, new: StoredObject) -> None:
        documents, tables = self.documents[endpoint], self.tables.endpoints[endpoint]
        before, after = documents.stored(*old), documents.stored(*new)
        position = None
        if tables.endpoint.tree:
            page, places = self.values(new.row), tables.endpoint.base.places
            if any(differ(page[name], old.row[places[name]]) for name in ("slug", "restriction")):
                position = self.page_tree.revise(page)
        names = [*tables.base.fields]
        known = dict(zip(names, documents.base_values(old.row), strict=False))
        base = dict(zip(names, documents.base_values(new.row, position), strict=False))
        changed = {n: v for n, v in base.items() if n not in known or differ(v, known[n])}
        if changed:
            update = tables.base.model.update(
                {tables.base[n]: peewee.Value(changed[n]) for n in changed}
            )
            update.where(tables.base["id"] == after.id).execute()
        documents.update(before[1:3], after)
        inserter = Inserter(documents)
        was, now = before.indexed, after.indexed
        stale: list[StoredTable] = [t for t in tables.indexes if was.get(t) != now.get(t)]
        if before.terms != after.terms:
            stale.append(tables.terms)
        _clear(stale, [after.id])
        gone, words = documents.words(old.row), documents.words(new.row)
        if words != gone:
            self.engine.delete_words(tables.words, [after.id], lambda: [gone])
        inserter.add_derived(after, stale, words if words != gone else None)
        inserter.flush()

    def move(self, old: StoredObject, parent: int | None, before: int | None) -> None:
        self.page_tree.move({**self.values(old.row), "parent": parent}, before)

    def values(self, row: Row) -> dict[str, Any]:
        """The columns of a page by name."""
        declared = self.registry.endpoints["pages"].type_of(row[1])
        return dict(zip(declared.column_names, row, strict=True))

    def remove(self, endpoint: str, ids: Sequence[int]) -> None:
        self.clear(endpoint, ids)
        key = f"{USED_ID_PREFIX}{self.tables.endpoints[endpoint].base.name}"
        known = self.reader.first(peewee.Select(columns=[self.tables.state_of(key)]))
        # Relations to a deleted object must not come to point to a new one.
        if max(ids) > int(known or 0):
            self.tables.write_state(**{key: str(max(ids))})

    def clear(self, endpoint: str, ids: Sequence[int]) -> None:
        """Deletes objects whose ids may come again."""
        tables = self.tables.endpoints[endpoint]
        for some in batches(ids):
            self.engine.delete_words(tables.words, some, partial(self._words, endpoint, some))
            _clear([tables.terms, *tables.indexes, tables.documents, tables.base], some)

    def _words(self, endpoint: str, ids: Sequence[int]) -> Iterator[Words]:
        documents = self.documents[endpoint]
        for found in self.reader.objects(endpoint, ids=ids):
            yield documents.words(documents.row(found))

    def insert_all(
        self, endpoint: str, rows: Sequence[Row], refuse: Callable[[int, str, str], None]
    ) -> list[int]:
        """Adds objects; pages become the last of their siblings.

        :param rows: their columns. Pages above others have to be there already.
        :param refuse: is told why a page cannot be there: its id, the field, and a message.
        :returns: the ids of those that were added.
        """
        positions: Mapping[int, TreePosition | None] = dict.fromkeys(row[0] for row in rows)
        if self.registry.endpoints[endpoint].tree:
            positions = self.page_tree.append([*map(self.values, rows)], refuse)
        added = (row for row in rows if row[0] in positions)
        self._add(endpoint, ((StoredObject(row, {}), positions[row[0]]) for row in added))
        return [*positions]

    def put_records(self, section: str, records: Sequence[Any]) -> None:
        self._records = {}
        self.tables.write_records(section, records)
        if section == "locales":
            locale = self._pages["locale"]
            self._pages.model.update({locale: records[0]}).where(locale.is_null()).execute()


def _clear(tables: Iterable[StoredTable], ids: Sequence[int]) -> None:
    for table in tables:
        table.model.delete().where(table["id"].in_(ids)).execute()

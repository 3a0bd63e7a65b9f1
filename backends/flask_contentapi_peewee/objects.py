"""Reads, checks, writes and deletes single objects in the tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from typing import Any, NoReturn

from peewee import fn

from flask_contentapi.errors import ContentError
from flask_contentapi.kinds import INT64
from flask_contentapi.query import Row
from flask_contentapi.records import Place, RecordReader, write_record
from flask_contentapi.registry import Registry
from flask_contentapi.types import Column, ObjectType
from flask_contentapi_peewee.documents import (
    Inserter,
    Stored,
    TreePosition,
    batches,
    children_term,
)
from flask_contentapi_peewee.engines import Words
from flask_contentapi_peewee.reader import DatabaseReader
from flask_contentapi_peewee.statements import Statements
from flask_contentapi_peewee.tables import USED_ID_PREFIX, EndpointTables, StoredTable

__all__ = ["Objects", "raise_problems", "refuse"]


def refuse(place: Place, key: str, message: str) -> NoReturn:
    """Raises a ContentError with one problem."""
    raise ContentError([place.problem(key, message)])


def _used_id_key(table: StoredTable) -> str:
    """The key in the state table for the highest id of a deleted object."""
    return f"{USED_ID_PREFIX}{table.name}"


def raise_problems(reader: RecordReader) -> None:
    """Raises the problems that a reader has collected, if there are any."""
    if reader.problems:
        raise ContentError(reader.problems)


class Objects:
    """Single objects of all endpoints.

    :param statements: the statements of the backend.
    :param registry: the declared types.
    :param reader: reads the content, including the changes of the transaction.
    """

    def __init__(self, statements: Statements, registry: Registry, reader: DatabaseReader) -> None:
        self._tables = statements.tables
        self._documents = statements.documents
        self._database = statements.tables.engine.database
        self._registry = registry
        self._reader = reader
        #: The words to delete and the words to write, by endpoint and id.
        self._words_to_delete: defaultdict[str, set[int]] = defaultdict(set)
        self._words_to_write: defaultdict[str, dict[int, Words]] = defaultdict(dict)

    def exists(self, table: StoredTable, identity: Any) -> bool:
        """Whether a table has a row with an id."""
        if not isinstance(identity, int) or identity not in INT64:
            return False
        return self.count(table, table.fields["id"] == identity) > 0

    def count(self, table: StoredTable, condition: Any) -> int:
        """How many rows of a table meet a condition."""
        ((number,),) = self._reader.all(table.model.select(fn.COUNT(1)).where(condition))
        return int(number)

    def next_id(self, table: StoredTable) -> int:
        """An id greater than those of all rows and of all deleted objects."""
        return max(self._highest_id(table), self._highest_deleted_id(table)) + 1

    def _highest_id(self, table: StoredTable) -> int:
        ((highest,),) = self._reader.all(table.model.select(fn.MAX(table.fields["id"])))
        return int(highest or 0)

    def _highest_deleted_id(self, table: StoredTable) -> int:
        state = self._tables.state
        query = state.model.select(state.fields["value"])
        found = self._reader.all(query.where(state.fields["key"] == _used_id_key(table)))
        return max((int(value) for (value,) in found), default=0)

    def reserve_id(self, table: StoredTable, identity: int) -> None:
        """Prevents an id from being used again, because old relations would point to it."""
        if identity > self._highest_deleted_id(table):
            self._tables.write_state(**{_used_id_key(table): str(identity)})

    def endpoint(self, name: str) -> EndpointTables:
        """The tables of an endpoint.

        :raises ContentError: if there is no such endpoint.
        """
        if name not in self._tables.endpoints:
            known = ", ".join(self._tables.endpoints)
            refuse(Place(name, -1, name), "", f"there is no such endpoint; there are {known}")
        return self._tables.endpoints[name]

    def label(self, endpoint: str, identity: int) -> str:
        """The type of an object.

        :raises ContentError: if there is no such object.
        """
        base = self.endpoint(endpoint).base
        found: list[Any] = []
        if isinstance(identity, int) and identity in INT64:
            query = base.model.select(base.fields["type"]).where(base.fields["id"] == identity)
            found = self._reader.all(query)
        if not found:
            refuse(Place(endpoint, 0, f"{endpoint} {identity}"), "", "there is no such object")
        return str(found[0][0])

    def get(self, endpoint: str, identity: int) -> tuple[Row, dict[str, Any]]:
        """An object: the columns of its type, and the further values of its document.

        :raises ContentError: if there is no such object.
        """
        self.endpoint(endpoint)
        known = isinstance(identity, int) and identity in INT64
        found = [*self._reader.objects(endpoint, [identity])] if known else []
        if not found:
            refuse(Place(endpoint, 0, f"{endpoint} {identity}"), "", "there is no such object")
        return found[0]

    def record(self, endpoint: str, identity: int) -> dict[str, Any]:
        """The record of an object.

        :raises ContentError: if there is no such object.
        """
        return self.write(endpoint, *self.get(endpoint, identity))

    def write(self, endpoint: str, row: Row, extras: Mapping[str, Any]) -> dict[str, Any]:
        """An object as a record, without fields that its type once had."""
        known = self._registry.endpoints[endpoint]
        return write_record(known, row, {} if row[1] in known.types else extras)

    def declared(self, endpoint: str, label: Any) -> ObjectType:
        """The type with a label."""
        return self._registry.endpoints[endpoint].type_of(str(label))

    # Records.

    def read(
        self, endpoint: str, record: Mapping[str, Any], changed: Collection[str] | None = None
    ) -> tuple[Row, dict[str, Any]]:
        """Reads and checks a record. Gives child objects an id and pages a language if missing.

        :param changed: the fields that may differ from those of the stored object; None: all.
        :returns: the columns of its type, and the extra values of an undeclared type.
        :raises ContentError: with all its problems.
        """
        reader = RecordReader(self._registry)
        entry = reader.read_entry(endpoint, 0, self._complete(endpoint, record))
        if entry is not None:
            self._check(reader, Place(endpoint, 0, f"{endpoint} {entry[0][0]}"), entry[0], changed)
        raise_problems(reader)
        assert entry is not None
        return entry

    def _complete(self, endpoint: str, record: Mapping[str, Any]) -> dict[str, Any]:
        completed = dict(record)
        if self._registry.endpoints[endpoint].tree and completed.get("locale") is None:
            completed["locale"] = next(iter(self.locales()), None)
        declared = self.declared(endpoint, completed.get("type"))
        given: defaultdict[ObjectType, list[str]] = defaultdict(list)
        for name, column in declared.columns.items():
            if column.child is not None and isinstance(completed.get(name), list | tuple):
                given[column.child].append(name)
        for child, names in given.items():
            free = self._free_ids(child, chain(*(completed[name] for name in names)))
            for name in names:
                completed[name] = [_with_id(record, free) for record in completed[name]]
        return completed

    def _free_ids(self, child: ObjectType, records: Iterable[Any]) -> Iterator[int]:
        """Ids that no child objects of a type have, neither stored ones nor those in records."""
        given = (record.get("id") for record in records if isinstance(record, Mapping))
        highest = max((i for i in given if isinstance(i, int) and i in INT64), default=0)
        for tables in self._tables.endpoints.values():
            fields = tables.terms.fields
            query = tables.terms.model.select(fn.MAX(fields["number"]))
            query = query.where(fields["field"] == children_term(child.label))
            ((stored,),) = self._reader.all(query)
            highest = max(highest, stored or 0)
        return count(1 + highest)

    def locales(self) -> list[str]:
        """The codes of all languages."""
        return [r["code"] for r in self._reader.records(self._tables.locales, ["code"], "sort")]

    def _check(
        self, reader: RecordReader, place: Place, row: Row, changed: Collection[str] | None
    ) -> None:
        """Notes what does not fit the stored content."""
        endpoint = self._registry.endpoints[place.section]
        declared = endpoint.type_of(row[1])
        values = {
            name: value
            for name, value in zip(declared.column_names, row, strict=True)
            if changed is None or name in changed
        }
        collection = values.get("collection") if endpoint.collections else None
        if collection is not None and not self.exists(self._tables.collections, collection):
            reader.note(place, "collection", f"there is no collection {collection}")
        if endpoint.tree:
            parent, locale = values.get("parent"), values.get("locale")
            if parent is not None and not self.exists(self._pages, parent):
                reader.note(place, "parent", f"there is no page {parent}")
            known = self.locales()
            if known and locale is not None and locale not in known:
                reader.note(place, "locale", f"{locale!r} is none of {', '.join(known)}")
        for name, column in declared.columns.items():
            if column.child is not None and values.get(name):
                for taken in self._taken_ids(column, values[name], place.section, row[0]):
                    reader.note(place, name, f"the id {taken} stands in another object already")

    def _taken_ids(
        self, column: Column, children: Sequence[Row], endpoint: str, owner: int
    ) -> Iterator[int]:
        """The ids of child objects that those of other objects have.

        :param endpoint: where the owner of the child objects is served.
        :param owner: its id.
        """
        assert column.child is not None
        for name, tables in self._tables.endpoints.items():
            fields = tables.terms.fields
            for some in batches([child[0] for child in children]):
                others = fields["field"] == children_term(column.child.label)
                others &= fields["number"].in_(some)
                if name == endpoint:
                    others &= fields["id"] != owner
                query = tables.terms.model.select(fields["number"]).where(others)
                yield from (taken for (taken,) in self._reader.all(query))

    @property
    def _pages(self) -> StoredTable:
        return self._tables.endpoints["pages"].base

    # Rows.

    def put(self, table: StoredTable, values: Mapping[str, Any]) -> None:
        """Inserts a row into a table."""
        table.model.insert({table.fields[name]: v for name, v in values.items()}).execute()

    def insert(
        self, endpoint: str, row: Row, extras: Mapping[str, Any], position: TreePosition | None
    ) -> None:
        """Inserts a new object; :meth:`write_words` writes its words."""
        documents = self._documents[endpoint]
        inserter = Inserter(self._tables.engine, self._tables.endpoints[endpoint])
        inserter.add(documents.base_values(row, position), documents.stored(row, extras))
        inserter.flush()
        self._words_to_write[endpoint][row[0]] = documents.words(row)

    def replace(
        self,
        endpoint: str,
        old: tuple[Row, dict[str, Any]],
        new: tuple[Row, dict[str, Any]],
        position: TreePosition | None,
    ) -> None:
        """Replaces an object by one with the same id; :meth:`write_words` writes its words.

        :param old: the object as it is stored: its columns, and the further values.
        :param new: the same as it is to be.
        :param position: the new position of a page, if it has changed.
        """
        documents, end = self._documents[endpoint], self._tables.endpoints[endpoint]
        before, after = documents.stored(*old), documents.stored(*new)
        base, known = documents.base_values(new[0], position), documents.base_values(old[0])
        changed = {n: value for n, value in base.items() if n not in known or value != known[n]}
        if changed:
            update = end.base.model.update({end.base.fields[n]: v for n, v in changed.items()})
            update.where(end.base.fields["id"] == after.id).execute()
        if (before.doc, before.large) != (after.doc, after.large):
            self._database.execute_sql(
                end.documents.update_text, [after.doc, after.large, after.id]
            )
        self._replace_derived(end, before, after)
        words = documents.words(new[0])
        if words != documents.words(old[0]):
            self._words_to_delete[endpoint].add(after.id)
            self._words_to_write[endpoint][after.id] = words

    def _replace_derived(self, end: EndpointTables, before: Stored, after: Stored) -> None:
        for table in before.indexed.keys() | after.indexed.keys():
            if before.indexed.get(table) != after.indexed.get(table):
                self._clear([table], [after.id])
                if table in after.indexed:
                    self._database.execute_sql(table.insert_text, after.indexed[table])
        if before.terms != after.terms:
            self._clear([end.terms], [after.id])
            rows = [(after.id, *term) for term in after.terms]
            if rows:
                self._tables.engine.insert(end.terms.insert_text, rows)

    def remove(self, endpoint: str, ids: Sequence[int]) -> None:
        """Deletes objects with all that is stored of them; :meth:`write_words` deletes words."""
        end = self._tables.endpoints[endpoint]
        for some in batches(ids):
            self._clear([end.terms, *end.indexes, end.documents, end.base], some)
        self._words_to_delete[endpoint].update(ids)

    @staticmethod
    def _clear(tables: Iterable[StoredTable], ids: Sequence[int]) -> None:
        """Deletes the rows of objects from tables."""
        for table in tables:
            table.model.delete().where(table.fields["id"].in_(ids)).execute()

    # Words.

    def write_words(self) -> None:
        """Writes the words of written objects and deletes those of deleted ones."""
        engine = self._tables.engine
        for endpoint, ids in self._words_to_delete.items():
            for some in batches([*ids]):
                engine.delete_words(self._tables.endpoints[endpoint].words, some)
        for endpoint, words in self._words_to_write.items():
            engine.put_words(self._tables.endpoints[endpoint].words, words.values())
        self.forget_words()

    def forget_words(self) -> None:
        """Discards pending changes of words."""
        self._words_to_delete.clear()
        self._words_to_write.clear()


def _with_id(record: Any, free: Iterator[int]) -> Any:
    """The record of a child object, with an id if it has none."""
    if isinstance(record, Mapping) and record.get("id") is None:
        return {**record, "id": next(free)}
    return record

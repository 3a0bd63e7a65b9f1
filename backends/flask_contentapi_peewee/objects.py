"""Reads, checks, writes and deletes single objects in the tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from typing import Any, NoReturn

import peewee
from peewee import fn

from flask_contentapi.errors import ContentError
from flask_contentapi.kinds import INT64
from flask_contentapi.query import Row
from flask_contentapi.records import Place, RecordReader, write_record
from flask_contentapi.registry import Registry
from flask_contentapi.types import ObjectType
from flask_contentapi_peewee.engines import Words
from flask_contentapi_peewee.layouts import name_of, stored_layout
from flask_contentapi_peewee.loading import foreign_message
from flask_contentapi_peewee.reader import DatabaseReader
from flask_contentapi_peewee.rows import (
    Inserter,
    Replacer,
    TreePosition,
    batches,
    stored_values,
    words_of_row,
)
from flask_contentapi_peewee.tables import USED_ID_PREFIX, EndpointTables, OwnTable, Tables

__all__ = ["Objects", "raise_problems", "refuse"]


def refuse(place: Place, key: str, message: str) -> NoReturn:
    """Raises a ContentError with one problem."""
    raise ContentError([place.problem(key, message)])


def _used_id_key(table: OwnTable) -> str:
    """The key in the state table for the highest id of a deleted object."""
    return f"{USED_ID_PREFIX}{table.model._meta.table_name}"


def raise_problems(reader: RecordReader) -> None:
    """Raises the problems that a reader has collected, if there are any."""
    if reader.problems:
        raise ContentError(reader.problems)


class Objects:
    """Single objects of all endpoints.

    :param tables: the tables.
    :param registry: the declared types.
    :param reader: reads the content, including the changes of the transaction.
    """

    def __init__(self, tables: Tables, registry: Registry, reader: DatabaseReader) -> None:
        self._tables = tables
        self._registry = registry
        self._reader = reader
        #: The words to delete and the words to write, by endpoint and id.
        self._words_to_delete: defaultdict[str, set[int]] = defaultdict(set)
        self._words_to_write: defaultdict[str, dict[int, Words]] = defaultdict(dict)

    def exists(self, table: OwnTable, identity: Any) -> bool:
        """Whether a table has a row with an id."""
        if not isinstance(identity, int) or identity not in INT64:
            return False
        return self.count(table, table.fields["id"] == identity) > 0

    def object_exists(self, endpoint: str, identity: Any) -> bool:
        """Whether there is an object with an id, in our tables or the site's own."""
        return self.exists(self._reader.tables.endpoints[endpoint].base, identity)

    def count(self, table: OwnTable, condition: Any) -> int:
        """How many rows of a table meet a condition."""
        ((number,),) = self._reader.all(table.model.select(fn.COUNT(1)).where(condition))
        return int(number)

    def next_id(self, table: OwnTable) -> int:
        """An id greater than those of all rows and of all deleted objects."""
        return max(self._highest_id(table), self._highest_deleted_id(table)) + 1

    def _highest_id(self, table: OwnTable) -> int:
        ((highest,),) = self._reader.all(table.model.select(fn.MAX(table.fields["id"])))
        return int(highest or 0)

    def _highest_deleted_id(self, table: OwnTable) -> int:
        return int(self._tables.read_state(_used_id_key(table), self._tables.engine.database) or 0)

    def reserve_id(self, table: OwnTable, identity: int) -> None:
        """Prevents an id from being used again, because old relations would point to it."""
        if identity > self._highest_deleted_id(table):
            state = self._tables.state
            state.model.delete().where(state.fields["key"] == _used_id_key(table)).execute()
            self.put(state, {"key": _used_id_key(table), "value": str(identity)})

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
        base = self._reader.tables.endpoints[self.endpoint(endpoint).endpoint.name].base
        found: list[str] = []
        if self.exists(base, identity):
            query = base.model.select(base.fields["type"]).where(base.fields["id"] == identity)
            found = [label for (label,) in self._reader.all(query)]
        if not found:
            place = Place(endpoint, 0, f"{endpoint} {identity}")
            refuse(place, "", "there is no such object")
        return found[0]

    def record(self, endpoint: str, identity: int) -> dict[str, Any]:
        """The record of an object.

        :raises ContentError: if there is no such object.
        """
        label = self.label(endpoint, identity)
        *row, extras = self._reader.stored(endpoint, [identity], label)[identity]
        return write_record(self._registry.endpoints[endpoint], tuple(row), extras)

    def declared(self, endpoint: str, label: Any) -> ObjectType:
        """The type with a label."""
        return self._registry.endpoints[endpoint].type_of(str(label))

    # Records.

    def read(self, endpoint: str, record: Mapping[str, Any]) -> tuple[Row, dict[str, Any]]:
        """Reads and checks a record. Gives child objects an id and pages a language if missing.

        :returns: the columns of its type, and the extra values of an undeclared type.
        :raises ContentError: with all its problems.
        """
        reader = RecordReader(self._registry)
        entry = reader.read_entry(endpoint, 0, self._complete(endpoint, record))
        if entry is not None:
            self._check(reader, Place(endpoint, 0, f"{endpoint} {entry[0][0]}"), entry[0])
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
        return count(1 + max(highest, *map(self._highest_id, self._tables.of_child(child))))

    def locales(self) -> list[str]:
        """The codes of all languages."""
        return [r["code"] for r in self._reader.records(self._tables.locales, ["code"], "sort")]

    def _check(self, reader: RecordReader, place: Place, row: Row) -> None:
        """Notes what does not fit the stored content."""
        endpoint = self._registry.endpoints[place.section]
        self.refuse_foreign(place, row[1])
        values = dict(zip(endpoint.type_of(row[1]).column_names, row, strict=True))
        collection = values["collection"] if endpoint.collections else None
        if collection is not None and not self.exists(self._tables.collections, collection):
            reader.note(place, "collection", f"there is no collection {collection}")
        if endpoint.tree:
            parent, locale = values["parent"], values["locale"]
            if parent is not None and not self.exists(self._pages, parent):
                foreign = self.object_exists("pages", parent)
                why = f"page {parent} is a row of the site's own; pages of ours go below ours only"
                reader.note(place, "parent", why if foreign else f"there is no page {parent}")
            known = self.locales()
            if known and locale is not None and locale not in known:
                reader.note(place, "locale", f"{locale!r} is none of {', '.join(known)}")

    def refuse_foreign(self, place: Place, label: str) -> None:
        """Refuses to change an object that is a row of one of the site's own tables."""
        table = self._reader.tables.foreign.get(label)
        if table is not None:
            refuse(place, "type", foreign_message(label, table))

    @property
    def _pages(self) -> OwnTable:
        return self._tables.endpoints["pages"].base

    # Rows.

    def put(self, table: OwnTable, values: Mapping[str, Any]) -> None:
        """Inserts a row into a table."""
        table.model.insert({table.fields[name]: v for name, v in values.items()}).execute()

    def insert(
        self, endpoint: str, row: Row, extras: Mapping[str, Any], position: TreePosition | None
    ) -> None:
        """Inserts a new object; :meth:`write_words` writes its words.

        :raises ContentError: if one of its child objects has the id of another one.
        """
        self._check_children(endpoint, row)
        inserter = Inserter(self._tables, self._tables.endpoints[endpoint])
        inserter.add(row, extras, position)
        inserter.flush_rows()
        self._words_to_write[endpoint] |= {words[0]: words for words in inserter.words}

    def replace(
        self,
        endpoint: str,
        label: str,
        row: Row,
        extras: Mapping[str, Any],
        position: TreePosition | None,
    ) -> None:
        """Replaces the object with the same id; :meth:`write_words` writes its words.

        Values in columns that no type declares any longer stay.

        :param label: the type of the existing object.
        :raises ContentError: if one of its child objects has the id of another object's child.
        """
        self.refuse_foreign(Place(endpoint, 0, f"{endpoint} {row[0]}"), label)
        self._check_children(endpoint, row)
        known, ids = self._tables.endpoints[endpoint], [row[0]]
        own = [known.base, *known.lineage(row[1])]
        if label != row[1]:
            others = [table for table in known.lineage(label) if table not in own]
            self._clear(others, ids)
            self._clear_former_fields([label], ids, [*own, *others])
        declared, replacer = self.declared(endpoint, row[1]), Replacer(self._tables.engine)
        values = stored_values(declared, row, extras, position)
        for table in own:
            replacer.put(table, ids, [values])
        self._words_to_delete[endpoint].update(ids)
        self._words_to_write[endpoint][row[0]] = words_of_row(declared, row)

    def _check_children(self, endpoint: str, row: Row) -> None:
        declared = self.declared(endpoint, row[1])
        for name, column in declared.columns.items():
            if column.child is not None:
                ids = [child[0] for child in row[declared.places[name]]]
                for taken in self._taken_ids(column.child, ids, endpoint, row[0]):
                    place = Place(endpoint, 0, f"{endpoint} {row[0]}")
                    refuse(place, name, f"the id {taken} stands in another object already")

    def _taken_ids(
        self, child: ObjectType, ids: Sequence[int], endpoint: str, owner: int
    ) -> Iterator[int]:
        """Those of some ids that child objects of other objects have.

        :param endpoint: where the intended owner of the ids is served.
        :param owner: its id.
        """
        mine = {
            many for table in self._tables.endpoints[endpoint].all for many in table.many.values()
        }
        for table in self._tables.of_child(child):
            identity, owners = table.fields["id"], table.fields["owner_"]
            for some in batches(ids):
                others = identity.in_(some)
                if table in mine:
                    others &= owners != owner
                query = table.model.select(identity).where(others)
                yield from (taken for (taken,) in self._reader.all(query))

    def remove(self, endpoint: str, doomed: Sequence[tuple[int, str]]) -> None:
        """Deletes objects and everything that belongs to them; :meth:`write_words` deletes words.

        :param doomed: the id and the type of each object.
        """
        for identity, label in doomed:
            self.refuse_foreign(Place(endpoint, 0, f"{endpoint} {identity}"), label)
        for some in batches(doomed):
            self._remove(endpoint, [identity for identity, _ in some], {label for _, label in some})

    def _remove(self, endpoint: str, ids: Sequence[int], labels: Iterable[str]) -> None:
        known = self._tables.endpoints[endpoint]
        tables = [known.base]
        for label in labels:
            tables += [table for table in known.lineage(label) if table not in tables]
        self._clear(tables, ids)
        self._clear_former_fields(labels, ids, tables)
        self._words_to_delete[endpoint].update(ids)

    @staticmethod
    def _clear(tables: Iterable[OwnTable], ids: Sequence[int]) -> None:
        """Deletes the rows of objects from tables, with their tags and child objects."""
        for table in tables:
            for many in table.many.values():
                owner = many.fields.get("owner_") or many.fields["id"]
                many.model.delete().where(owner.in_(ids)).execute()
            table.model.delete().where(table.fields["id"].in_(ids)).execute()

    def _clear_former_fields(
        self, labels: Iterable[str], ids: Sequence[int], cleared: Iterable[OwnTable]
    ) -> None:
        """Deletes values of fields that the types of objects no longer declare.

        :param labels: their types.
        :param cleared: the tables that are cleared already.
        """
        database = self._tables.engine.database
        layout = stored_layout(self._tables, database)
        names = {name_of(t) for table in cleared for t in (table, *table.many.values())}
        for name in sorted(set().union(*map(layout.tables_of_type, labels)) - names):
            # Somebody may have dropped it, as it is no longer used.
            if database.table_exists(name):
                table = peewee.Table(name).bind(database)
                owner = table.c.owner_ if "owner_" in layout.columns[name] else table.c.id
                table.delete().where(owner.in_(ids)).execute()

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

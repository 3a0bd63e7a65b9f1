"""What is stored of an object: the rows of its tables, with its document as JSON.

The document holds the fields that have no column in the endpoint's own table, as in content
records: the small ones in ``doc``, and rich text, blocks and other JSON in ``large``. Everything
else that is written here can be made from it again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import orjson

from flask_contentapi import kinds
from flask_contentapi.declarations import Column, ObjectType, targets_of
from flask_contentapi.fields import RichText
from flask_contentapi.query import Row
from flask_contentapi.search import rest_words, title_words
from flask_contentapi_peewee.columns import ALWAYS, NEVER, md5, microseconds
from flask_contentapi_peewee.engines import Engine, Words
from flask_contentapi_peewee.tables import EndpointTables, StoredTable, has_terms
from flask_contentapi_peewee.words import tokens

__all__ = [
    "BATCH",
    "Documents",
    "Inserter",
    "Stored",
    "TreePosition",
    "batches",
    "children_term",
    "parse",
    "target_term",
]

#: How many rows are read or written at a time.
BATCH = 500
#: How many combinations of a type and fields keep their functions.
CACHE_SIZE = 512

Entry = TypeVar("Entry")


def batches(entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
    """The entries of a sequence, :data:`BATCH` at a time."""
    for start in range(0, len(entries), BATCH):
        yield entries[start : start + BATCH]


class TreePosition(NamedTuple):
    """The position of a page in the tree.

    :param path: its steps.
    :param url_path: its slugs.
    :param access: the nearest restricted page, itself or above it, or
        :data:`~flask_contentapi_peewee.columns.OPEN`.
    """

    path: str
    url_path: str
    access: int


class Term(NamedTuple):
    """Something that objects are found by: a tag, or an id.

    :param field: the field with the tag, or the relation to many with the id; :func:`target_term`
        for all that an object points to, :func:`children_term` for its child objects.
    :param text: the tag.
    :param number: the id.
    """

    field: str
    text: str | None = None
    number: int | None = None


def target_term(endpoint: str) -> str:
    """The field of terms with the ids of all objects of an endpoint that an object points to."""
    return f"@{endpoint}"


def children_term(label: str) -> str:
    """The field of terms with the ids of an object's child objects of a type."""
    return f"#{label}"


class Stored(NamedTuple):
    """What is stored of an object besides its row of the endpoint's own table and its words.

    :param id: its id.
    :param doc: the small fields of its document.
    :param large: the large fields, or None.
    :param indexed: its row of each index table.
    :param terms: its terms.
    """

    id: int
    doc: str
    large: str | None
    indexed: dict[StoredTable, tuple[Any, ...]]
    terms: frozenset[Term]


def is_large(column: Column) -> bool:
    """Whether a field is stored among the large ones."""
    return isinstance(column.field, RichText) or isinstance(column.kind, kinds.Json)


class Documents:
    """Writes and reads the objects of an endpoint.

    :param tables: its tables.
    """

    def __init__(self, tables: EndpointTables) -> None:
        self._tables = tables
        self._endpoint = tables.endpoint
        self.base, self.table = tables.base, tables.documents
        self._type = [*tables.base.fields].index("type")
        self._reader_of = lru_cache(CACHE_SIZE)(self._make_reader)

    def own_columns(self, declared: ObjectType) -> dict[str, Column]:
        """The fields of a type that are in its documents."""
        return {n: c for n, c in declared.columns.items() if n not in self._tables.fixed}

    def has_large(self, names: Iterable[str]) -> bool:
        """Whether there are large fields among some fields, in any type."""
        types = (self._endpoint.base, *self._endpoint.types.values())
        columns = (declared.columns.get(name) for declared in types for name in names)
        return any(column is not None and is_large(column) for column in columns)

    # Writing.

    def base_values(self, row: Row, position: TreePosition | None = None) -> dict[str, Any]:
        """The values of an object in the endpoint's own table, by column.

        :param row: the columns of its type.
        :param position: the position of a page; None: without the columns that depend on it.
        """
        declared = self._endpoint.type_of(row[1])
        values = dict(zip(declared.column_names, row, strict=True))
        if self._endpoint.tree:
            values |= _visibility(values)
        if position is not None:
            values |= {
                "path_": position.path,
                "url_path": position.url_path,
                "url_hash_": md5(position.url_path),
                "access_": position.access,
            }
        return {name: values[name] for name in self.base.fields if name in values}

    def stored(self, row: Row, extras: Mapping[str, Any]) -> Stored:
        """The document of an object, and what is derived from it.

        :param row: the columns of its type.
        :param extras: what its document has besides, as :meth:`split` returns it.
        """
        declared = self._endpoint.type_of(row[1])
        values = dict(zip(declared.column_names, row, strict=True))
        own = self.own_columns(declared)
        small = _json_object(own, values, extras)
        large = {name: small.pop(name) for name, column in own.items() if is_large(column)}
        return Stored(
            row[0],
            orjson.dumps(small).decode(),
            orjson.dumps(large).decode() if large else None,
            {
                table: tuple([f.db_value(values[name]) for name, f in table.fields.items()])
                for table in self._tables.lineage(row[1])
            },
            frozenset((*_entries(declared, values), *_terms(declared, values))),
        )

    def words(self, row: Row) -> Words:
        """The words that an object is found by, as tokens.

        :param row: the columns of its type.
        """
        declared = self._endpoint.type_of(row[1])
        return row[0], tokens(title_words(declared, row)), tokens(rest_words(declared, row))

    # Reading.

    def read(self, label: str, names: tuple[str, ...], doc: str, large: str | None) -> list[Any]:
        """The values of some fields in a document.

        :param label: the type of the object.
        :param names: the fields; None for those that the type does not have.
        :param large: the large fields, or None if there are none among the names.
        """
        return self._reader_of(label, names)(parse(doc, large))

    def split(self, found: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The document of an object: what its type declares, and what it has besides.

        The second part has the values of an undeclared type and of former fields. Of child objects
        that have any it has the ids with these values.

        :param found: as for :meth:`label`.
        """
        columns = self.own_columns(self._endpoint.type_of(self.label(found)))
        return _split(columns, parse(*found[-3:-1]))

    def label(self, found: Sequence[Any]) -> str:
        """The type of an object.

        :param found: a row with all columns of the endpoint's own table, the document in two
            columns, and the stamp.
        """
        label: str = found[self._type]
        return label

    def row(self, found: Sequence[Any], columns: tuple[str, ...]) -> Row:
        """Some columns of an object.

        :param found: as for :meth:`label`.
        """
        fields = self.base.fields
        own = tuple([name for name in columns if name not in fields])
        values = dict(zip(fields, found, strict=False))
        values |= zip(own, self.read(self.label(found), own, *found[-3:-1]), strict=True)
        return tuple(
            [
                fields[name].python_value(values[name]) if name in fields else values[name]
                for name in columns
            ]
        )

    def fixed_values(self, found: Sequence[Any]) -> dict[str, Any]:
        """The values of an object in the endpoint's own table, as in content records.

        :param found: as for :meth:`label`.
        """
        stored = zip(self.base.fields.items(), found, strict=False)
        values = {n: (f, f.python_value(v)) for (n, f), v in stored if n in self._tables.fixed}
        return {n: None if v is None else f.kind.write(v) for n, (f, v) in values.items()}

    def _make_reader(self, label: str, names: tuple[str, ...]) -> Reader:
        """The function from a parsed document to the values of some fields."""
        columns = self.own_columns(self._endpoint.type_of(label))
        return _reader([(name, columns.get(name)) for name in names])


#: Reads the values of some fields of a parsed document.
Reader = Callable[[Mapping[str, Any]], list[Any]]


def parse(doc: str, large: str | None) -> dict[str, Any]:
    """The fields of a document, as in content records."""
    values: dict[str, Any] = orjson.loads(doc)
    if large is not None:
        values |= orjson.loads(large)
    return values


def _reader(columns: Iterable[tuple[str, Column | None]]) -> Reader:
    getters = [(name, column and column.kind.empty(), _decoder(column)) for name, column in columns]

    def read(values: Mapping[str, Any]) -> list[Any]:
        return [
            value if (value := values.get(name, empty)) is None or decode is None else decode(value)
            for name, empty, decode in getters
        ]

    return read


def _decoder(column: Column | None) -> Callable[[Any], Any] | None:
    """The function from a value in a document to a stored value; None if they are the same."""
    if column is None or column.child is None:
        return None if column is None else _DECODERS.get(column.kind.name)
    read = _reader(column.child.columns.items())
    return lambda entries: tuple([tuple(read(entry)) for entry in entries])


_DECODERS: Mapping[str, Callable[[Any], Any]] = {
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "decimal": Decimal,
    "relations": tuple,
    "tags": tuple,
}


def _json_object(
    columns: Mapping[str, Column], values: Mapping[str, Any], extras: Mapping[str, Any]
) -> dict[str, Any]:
    """Values as in a document, after further ones."""
    written = {name: value for name, value in extras.items() if name not in columns}
    for name, column in columns.items():
        written[name] = _json_value(column, values[name], extras.get(name, ()))
    return written


def _json_value(column: Column, value: Any, extras: Sequence[Mapping[str, Any]]) -> Any:
    """A value as in a document. Child objects have the further values of those with their ids."""
    if value is None or column.child is None:
        return None if value is None else column.kind.write(value)
    fields, known = column.child.columns, {entry["id"]: entry for entry in extras}
    return [
        _json_object(fields, dict(zip(fields, entry, strict=True)), known.get(entry[0], {}))
        for entry in value
    ]


def _split(
    columns: Mapping[str, Column], values: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values that are declared, and the others, as in :meth:`Documents.split`."""
    own, others = {}, {}
    for name, value in values.items():
        column = columns.get(name)
        if column is None:
            others[name] = value
            continue
        own[name] = value
        if column.child is not None and _are_objects(value):
            parts = [_split(column.child.columns, entry) for entry in value]
            own[name] = [known for known, _ in parts]
            more = [{"id": k.get("id"), **others} for k, others in parts if others]
            if more:
                others[name] = more
    return own, others


def _are_objects(value: Any) -> bool:
    """Whether a value is a list of objects, as child objects are."""
    return isinstance(value, list) and all(isinstance(entry, dict) for entry in value)


def _visibility(page: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a page that determine when it is visible.

    :param page: its stored values.
    """
    start, stop = page["go_live_at"], page["expires_at"]
    visible_from = ALWAYS if start is None else microseconds(start)
    visible_until = NEVER if stop is None else microseconds(stop)
    return {
        # A page that is not live never is visible.
        "visible_from_": visible_from if page["live"] else NEVER,
        "visible_until_": visible_until if page["live"] else NEVER,
        "is_restricted_": bool(page["restriction"]),
    }


def _entries(declared: ObjectType, values: Mapping[str, Any]) -> Iterator[Term]:
    """The terms that lists are filtered by: the tags, and the ids of relations to many."""
    for name, column in declared.columns.items():
        for entry in values[name] if column.kind.many else ():
            yield Term(name, number=entry) if column.target else Term(name, entry)


def _terms(declared: ObjectType, values: Mapping[str, Any]) -> Iterator[Term]:
    """The terms for what an object, or one of its child objects, points to."""
    for name, column in declared.columns.items():
        if not has_terms(column):
            continue
        stored = values[name]
        if column.child is not None:
            for child in stored:
                yield Term(children_term(column.child.label), number=child[0])
                yield from _terms(column.child, dict(zip(column.child.columns, child, strict=True)))
        for endpoint, identity in targets_of(column, stored):
            yield Term(target_term(endpoint), number=identity)


class Inserter:
    """Inserts many objects of one endpoint, in batches.

    :param engine: the database.
    :param endpoint: the endpoint's tables.
    """

    def __init__(self, engine: Engine, endpoint: EndpointTables) -> None:
        self._engine = engine
        self._endpoint = endpoint
        self._waiting: defaultdict[StoredTable, list[Sequence[Any]]] = defaultdict(list)
        self._words: list[Words] = []

    def add(self, base: Mapping[str, Any], stored: Stored) -> None:
        """Adds an object, without its words.

        :param base: its values in the endpoint's own table.
        """
        fields = self._endpoint.base.fields.items()
        self._waiting[self._endpoint.base].append([f.db_value(base[name]) for name, f in fields])
        self._waiting[self._endpoint.documents].append([stored.id, stored.doc, stored.large])
        self.add_derived(stored, [*stored.indexed, self._endpoint.terms])

    def add_derived(self, stored: Stored, into: Iterable[StoredTable]) -> None:
        """Adds rows that are derived from an object to some tables of the endpoint."""
        for table in into:
            if table is self._endpoint.terms:
                self._waiting[table] += [(stored.id, *term) for term in stored.terms]
            elif table in stored.indexed:
                self._waiting[table].append(stored.indexed[table])
            if len(self._waiting[table]) >= BATCH:
                self.flush()

    def add_words(self, words: Words) -> None:
        """Adds the words of an object."""
        self._words.append(words)
        if len(self._words) >= BATCH:
            self.flush()

    def flush(self) -> None:
        """Writes what has been added and is not yet written."""
        for table, rows in self._waiting.items():
            if rows:
                self._engine.insert(table.insert_text, rows)
        self._waiting.clear()
        if self._words:
            self._engine.put_words(self._endpoint.words, self._words)
        self._words.clear()

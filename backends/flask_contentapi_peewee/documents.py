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
from functools import lru_cache, partial
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

import orjson

from flask_contentapi import kinds
from flask_contentapi.declarations import Column, ObjectType, targets_of
from flask_contentapi.fields import RichText
from flask_contentapi.query import Row
from flask_contentapi.search import rest_words, title_words
from flask_contentapi_peewee.columns import ALWAYS, NEVER, StoredField, md5, microseconds
from flask_contentapi_peewee.engines import Engine, Words
from flask_contentapi_peewee.tables import EndpointTables, StoredTable
from flask_contentapi_peewee.words import tokens

#: How many rows are read or written at a time.
BATCH = 500
#: How many combinations of a type and fields keep their functions.
CACHE_SIZE = 512

Entry = TypeVar("Entry")


def batches(entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
    """The entries of a sequence, :data:`BATCH` at a time."""
    for start in range(0, len(entries), BATCH):
        yield entries[start : start + BATCH]


def picker(places: Sequence[int]) -> Any:
    """The function that takes values from some places of a row."""
    if len(places) == 1:
        return lambda row, place=places[0]: (row[place],)
    return itemgetter(*places) if places else lambda row: ()


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


#: Something that objects are found by: a field, a tag in it or None, and an id in it or None. The
#: field is one with tags or a relation to many; :func:`target_term` for all that an object points
#: to, :func:`children_term` for its child objects.
Term = tuple[str, str | None, int | None]


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
    terms: set[Term]


def is_large(column: Column) -> bool:
    """Whether a field is stored among the large ones."""
    return isinstance(column.field, RichText) or isinstance(column.kind, kinds.Json)


class Documents:
    """Writes and reads the objects of an endpoint.

    :param tables: its tables.
    :param engine: the database.
    """

    def __init__(self, tables: EndpointTables, engine: Engine) -> None:
        self._tables, self._engine = tables, engine
        self._endpoint = tables.endpoint
        self.base, self.table = tables.base, tables.documents
        self._type = [*tables.base.fields].index("type")
        self._reader_of = lru_cache(CACHE_SIZE)(self._make_reader)
        self._row_reader_of = lru_cache(CACHE_SIZE)(self._make_row_reader)
        self._layout_of = lru_cache(CACHE_SIZE)(partial(_Layout, tables))

    def own_columns(self, declared: ObjectType) -> dict[str, Column]:
        """The fields of a type that are in its documents."""
        return {n: c for n, c in declared.columns.items() if n not in self._tables.fixed}

    def has_large(self, names: Iterable[str]) -> bool:
        """Whether there are large fields among some fields, in any type."""
        types = (self._endpoint.base, *self._endpoint.types.values())
        columns = (declared.columns.get(name) for declared in types for name in names)
        return any(column is not None and is_large(column) for column in columns)

    # Writing.

    def base_values(self, row: Row, position: TreePosition | None = None) -> list[Any]:
        """The values of an object in the endpoint's own table as drivers take them.

        :param row: the columns of its type.
        :param position: the position of a page; None: without the columns that depend on it, which
            are the last.
        """
        values = self._layout_of(row[1]).base(row)
        if self._endpoint.tree:
            values += _visibility(row, self._endpoint.base.places)
        if position is not None:
            path, url_path, access = position
            values += (path, url_path, md5(url_path), access)
        return values

    def stored(self, row: Row, extras: Mapping[str, Any]) -> Stored:
        """The document of an object, and what is derived from it.

        :param row: the columns of its type.
        :param extras: what its document has besides, as :meth:`split` returns it.
        """
        layout = self._layout_of(row[1])
        small = {n: v for n, v in extras.items() if n not in layout.declared.columns}
        small |= zip(layout.small, layout.pick_small(row), strict=True)
        terms: set[Term] = {
            (target_term(endpoint), None, identity)
            for (endpoint, identity), _, _ in targets_of(layout.declared, row)
        }
        for place, name, is_tag in layout.many:
            terms |= {(name, v, None) if is_tag else (name, None, v) for v in row[place]}
        for place, name, child in layout.children:
            small[name] = _child_objects(child, row[place], extras.get(name, ()))
            field = children_term(child.label)
            terms |= {(field, None, entry[0]) for entry in row[place]}
        large = dict(zip(layout.large, layout.pick_large(row), strict=True))
        return Stored(
            row[0],
            _dump(small),
            _dump(large) if large else None,
            {table: tuple(encode(row)) for table, encode in layout.indexed},
            terms,
        )

    def update(self, stored: Stored) -> None:
        """Changes the document of an object in the database."""
        values = [stored.doc, stored.large, stored.id]
        self._engine.database.execute_sql(self.table.update_text, values)

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
        return self._row_reader_of(self.label(found), columns)(found)

    def _make_row_reader(
        self, label: str, columns: tuple[str, ...]
    ) -> Callable[[Sequence[Any]], Row]:
        fields = self.base.fields
        own = tuple([name for name in columns if name not in fields])
        order = [*fields, *own]
        pick = picker([order.index(name) for name in columns])
        wanted = ((n, field) for n, (name, field) in enumerate(fields.items()) if name in columns)
        decoders = [(n, field.decode) for n, field in wanted if field.decode is not None]
        known = self.own_columns(self._endpoint.type_of(label))
        large = any(name in known and is_large(known[name]) for name in own)

        def read(found: Sequence[Any]) -> Row:
            values = [*found[: len(fields)]]
            for place, decode in decoders:
                if values[place] is not None:
                    values[place] = decode(values[place])
            if own:
                values += self.read(label, own, found[-3], found[-2] if large else None)
            row: Row = pick(values)
            return row

        return read

    def fixed_values(self, found: Sequence[Any]) -> dict[str, Any]:
        """The values of an object in the endpoint's own table, as in content records.

        :param found: as for :meth:`label`.
        """
        stored = zip(self.base.fields.items(), found, strict=False)
        values = {n: (f, f.python_value(v)) for (n, f), v in stored if n in self._tables.fixed}
        return {n: None if v is None else f.kind.write(v) for n, (f, v) in values.items()}

    def _make_reader(self, label: str, names: tuple[str, ...]) -> Reader:
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


class _Layout:
    """How the objects of a type are stored.

    :param tables: the tables of its endpoint.
    :param label: the type.
    """

    def __init__(self, tables: EndpointTables, label: str) -> None:
        declared = tables.endpoint.type_of(label)
        places = declared.places
        own = {n: c for n, c in declared.columns.items() if n not in tables.fixed}
        self.declared = declared
        self.small = [name for name, column in own.items() if not is_large(column)]
        self.large = [name for name, column in own.items() if is_large(column)]
        self.pick_small = picker([places[name] for name in self.small])
        self.pick_large = picker([places[name] for name in self.large])
        self.many = [
            (places[n], n, c.target is None) for n, c in declared.columns.items() if c.kind.many
        ]
        self.children = [(places[n], n, c.child) for n, c in own.items() if c.child is not None]
        own_fields = {n: f for n, f in tables.base.fields.items() if n in (*tables.fixed, "type")}
        self.base = _encoder(own_fields, places)
        self.indexed = [(table, _encoder(table.fields, places)) for table in tables.lineage(label)]


def _encoder(
    fields: Mapping[str, StoredField], places: Mapping[str, int]
) -> Callable[[Row], list[Any]]:
    pick = picker([places[name] for name in fields])
    encoders = [
        (n, field.encode) for n, field in enumerate(fields.values()) if field.encode is not None
    ]

    def encode(row: Row) -> list[Any]:
        values = [*pick(row)]
        for place, encode_value in encoders:
            if values[place] is not None:
                values[place] = encode_value(values[place])
        return values

    return encode


def _dump(document: Mapping[str, Any]) -> str:
    # orjson itself writes some times wrongly, as 03:04:05.010027.
    return orjson.dumps(document, _text, orjson.OPT_PASSTHROUGH_DATETIME).decode()


def _text(value: Any) -> str:
    """A decimal, a date or a time as in content records."""
    if isinstance(value, Decimal):
        return format(value, "f")
    text: str = value.isoformat()
    return text.replace("+00:00", "Z")


def _child_objects(
    child: ObjectType, rows: Iterable[Row], extras: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Child objects as in a document, after the further values of those with their ids."""
    if not extras:
        return [dict(zip(child.columns, row, strict=True)) for row in rows]
    known = {entry["id"]: entry for entry in extras}
    others = (
        {n: v for n, v in known.get(r[0], {}).items() if n not in child.columns} for r in rows
    )
    return [o | dict(zip(child.columns, r, strict=True)) for o, r in zip(others, rows, strict=True)]


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
    return isinstance(value, list) and all(isinstance(entry, dict) for entry in value)


def _visibility(page: Row, places: Mapping[str, int]) -> tuple[int, int, bool]:
    """The columns of a page that determine when it is visible.

    :param page: its stored values.
    :param places: the index of each column in them.
    """
    start, stop = page[places["go_live_at"]], page[places["expires_at"]]
    live = page[places["live"]]
    return (
        # A page that is not live never is visible.
        NEVER if not live else ALWAYS if start is None else microseconds(start),
        NEVER if not live or stop is None else microseconds(stop),
        bool(page[places["restriction"]]),
    )


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

    def add(self, base: Sequence[Any], stored: Stored) -> None:
        """Adds an object, without its words.

        :param base: its values in the endpoint's own table, all of them.
        """
        self._add(self._endpoint.base, (base,))
        self._add(self._endpoint.documents, (stored[:3],))
        self.add_derived(stored, [*stored.indexed, self._endpoint.terms])

    def add_derived(self, stored: Stored, into: Iterable[StoredTable]) -> None:
        """Adds rows that are derived from an object to some tables of the endpoint."""
        for table in into:
            if table is self._endpoint.terms:
                self._add(table, [(stored.id, *term) for term in stored.terms])
            elif table in stored.indexed:
                self._add(table, (stored.indexed[table],))

    def _add(self, table: StoredTable, rows: Iterable[Sequence[Any]]) -> None:
        waiting = self._waiting[table]
        waiting += rows
        if len(waiting) >= BATCH:
            self._engine.insert(table.insert_text, waiting)
            waiting.clear()

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

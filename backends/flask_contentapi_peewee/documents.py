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
from peewee import SQL

from flask_contentapi import kinds
from flask_contentapi.declarations import Column, ObjectType, targets_of
from flask_contentapi.fields import RichText
from flask_contentapi.query import Row
from flask_contentapi.search import rest_text, title_text
from flask_contentapi_peewee.columns import ALWAYS, NEVER, Clause, StoredField, md5, microseconds
from flask_contentapi_peewee.engines import Engine, Words
from flask_contentapi_peewee.tables import EndpointTables, StoredTable

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

    :param access: the nearest restricted page, itself or above it, or
        :data:`~flask_contentapi_peewee.columns.OPEN`.
    """

    path: str
    url_path: str
    access: int


#: The id of an object, and something that it is found by: a field, a tag in it or None, and an id
#: in it or None. The field is one with tags or a relation to many; :func:`target_term` for all that
#: an object points to, :func:`children_term` for its child objects.
Term = tuple[int, str, str | None, int | None]


def target_term(endpoint: str) -> str:
    """The field of terms with the ids of all objects of an endpoint that an object points to."""
    return f"@{endpoint}"


def children_term(label: str) -> str:
    """The field of terms with the ids of an object's child objects of a type."""
    return f"#{label}"


class Stored(NamedTuple):
    """What is stored of an object besides its row of the endpoint's own table and its words."""

    id: int
    doc: str
    large: str | None
    indexed: dict[StoredTable, tuple[Any, ...]]
    terms: set[Term]


def is_large(column: Column) -> bool:
    """Whether a field is stored among the large ones."""
    return isinstance(column.field, RichText) or isinstance(column.kind, kinds.Json)


class Documents:
    """Writes and reads the objects of an endpoint."""

    def __init__(self, tables: EndpointTables, engine: Engine) -> None:
        self.tables, self.engine = tables, engine
        self.endpoint, self.table = tables.endpoint, tables.documents
        #: The columns that are not derived from others.
        self.fixed = (*tables.fixed, *(["url_path"] if tables.endpoint.tree else []))
        self.whole = Projection(self, [tables.base], None)
        self._layout_of = lru_cache(CACHE_SIZE)(partial(_Layout, tables))
        names = ("live", "go_live_at", "expires_at", "restriction") if tables.endpoint.tree else ()
        self._pick_times = picker([tables.endpoint.base.places[name] for name in names])
        table, value = engine.quoted(self.table.name), engine.database.param
        self._update = f"UPDATE {table} SET doc = {value}, large = {value} WHERE id = {value}"  # noqa: S608

    # Writing.

    def in_language(self, row: Row, locales: Sequence[str]) -> Row:
        """The row of an object; if it is a page without a language, with the first one."""
        place = self.endpoint.base.places.get("locale")
        if place is None or row[place] is not None or not locales:
            return row
        return (*row[:place], locales[0], *row[place + 1 :])

    def base_values(self, row: Row, position: TreePosition | None = None) -> list[Any]:
        """The values of an object in the endpoint's own table as drivers take them.

        :param position: the position of a page; None: without the columns that depend on it, which
            are the last.
        """
        values = self._layout_of(row[1]).base(row)
        if self.endpoint.tree:
            live, start, stop, rule = self._pick_times(row)
            # A page that is not live never is visible.
            since = NEVER if not live else ALWAYS if start is None else microseconds(start)
            until = NEVER if not live or stop is None else microseconds(stop)
            values += (since, until, bool(rule))
        if position is not None:
            path, url_path, access = position
            values += (path, url_path, md5(url_path), access)
        return values

    def stored(self, row: Row, extras: Mapping[str, Any]) -> Stored:
        """The document of an object, and what is derived from it.

        :param extras: what its document has besides, as :meth:`extras` returns it.
        """
        layout = self._layout_of(row[1])
        small = {n: v for n, v in extras.items() if n not in layout.declared.columns}
        small |= zip(layout.small, layout.pick_small(row), strict=True)
        own = row[0]
        terms: set[Term] = {
            (own, target_term(endpoint), None, identity)
            for (endpoint, identity), _, _ in targets_of(layout.declared, row)
        }
        for place, name, is_tag in layout.many:
            terms.update((own, name, *((v, None) if is_tag else (None, v))) for v in row[place])
        for place, name, child in layout.children:
            small[name] = _child_objects(child, row[place], extras.get(name, ()))
            field = children_term(child.label)
            terms.update([(own, field, None, entry[0]) for entry in row[place]])
        large = dict(zip(layout.large, layout.pick_large(row), strict=True))
        return Stored(
            row[0],
            _dump(small),
            _dump(large) if large else None,
            {table: tuple(encode(row)) for table, encode in layout.indexed},
            terms,
        )

    def update(self, before: Sequence[Any], stored: Stored) -> None:
        """Changes the document of an object in the database, if its two parts were others."""
        if stored[1:3] != tuple(before):
            self.engine.database.execute_sql(self._update, [*stored[1:3], stored.id])

    def words(self, row: Row) -> Words:
        """The words that an object is found by, as tokens."""
        declared = self.endpoint.type_of(row[1])
        tokens = self.engine.tokens
        return row[0], tokens(title_text(declared, row)), tokens(rest_text(declared, row))

    # Reading.

    def label(self, found: Sequence[Any]) -> str:
        """The type of an object.

        :param found: a row of a statement for whole objects, as for the following methods.
        """
        label: str = found[self.whole.type]
        return label

    def row(self, found: Sequence[Any], columns: tuple[str, ...] | None = None) -> Row:
        """Some columns of an object; None: all of its type."""
        label = self.label(found)
        return self.whole.reader(label, columns or self.endpoint.type_of(label).column_names)(found)

    def extras(self, found: Sequence[Any]) -> dict[str, Any]:
        """What the document of an object has besides what its type declares: the values of an
        undeclared type and of former fields. Child objects, which may have these too, are whole.
        """
        columns = self.endpoint.type_of(self.label(found)).columns
        values = parse(*found[-3:-1]).items()
        return {n: v for n, v in values if n not in columns or (columns[n].child and v)}


class Projection:
    """What a statement selects of objects, and how its rows become those that are wanted.

    It selects columns of tables, the id first; then, if a wanted field is in none of the tables,
    the document in two columns. The stamp of the content is behind them.

    :param tables: tables in which the objects have a row, that of the endpoint first.
    :param wanted: the wanted columns, in order; None: all that is stored.
    """

    def __init__(
        self, documents: Documents, tables: Sequence[StoredTable], wanted: Sequence[str] | None
    ) -> None:
        holders = {name: table for table in tables[::-1] for name in table.fields}
        base, stored = tables[0], documents.table
        names = documents.fixed if wanted is None else wanted
        own = [name for name in names if name not in base.fields]
        has_document = wanted is None or any(name not in holders for name in own)
        if has_document:
            names = ["type", *(name for name in names if name not in own)]
        names = [*dict.fromkeys(("id", *names))]
        self._documents, self._wanted = documents, tuple(wanted or ())
        self._fields = [holders[name].fields[name] for name in names]
        #: The selected columns, and the tables that have them.
        self.nodes: list[Clause] = [*self._fields]
        self.joined = [holders[name] for name in names]
        #: The index of the type, if the document is read.
        self.type = names.index("type") if has_document else -1
        if has_document:
            types = (documents.endpoint.base, *documents.endpoint.types.values())
            columns = [t.columns[name] for t in types for name in own if name in t.columns]
            has_large = wanted is None or any(map(is_large, columns))
            large = stored.fields["large"] if has_large else SQL("NULL")
            self.nodes += [stored.fields["doc"], large]
            self.joined.append(stored)
        self.reader = lru_cache(CACHE_SIZE)(self._make_reader)

    def rows(self, found: Sequence[Sequence[Any]]) -> list[Row]:
        """The wanted rows, from those of the statement."""
        read, place, wanted = self.reader, self.type, self._wanted
        if place < 0:
            return [*map(read("", wanted), found)]
        readers = {label: read(label, wanted) for label in {row[place] for row in found}}
        return [readers[row[place]](row) for row in found]

    def _make_reader(self, label: str, wanted: tuple[str, ...]) -> Callable[[Sequence[Any]], Row]:
        places = {field.column_name: n for n, field in enumerate(self._fields)}
        tables = self._documents.tables
        columns = tables.in_documents(tables.endpoint.type_of(label))
        decoders, values = dict[str, Any](), list[str]()
        for name in wanted:
            decode, value = None, f"doc.get({name!r})"
            if name in places:
                decode, value = self._fields[places[name]].decode, f"row[{places[name]}]"
            elif name in columns:
                decode, empty = _decoder(columns[name]), columns[name].kind.empty()
                decoders[f"empty{len(values)}"] = empty
                value = f"doc.get({name!r}, empty{len(values)})"
            if decode is not None:
                decoders[f"decode{len(values)}"] = decode
                value = f"(v if (v := {value}) is None else decode{len(values)}(v))"
            values.append(f"{value}, ")
        # Compiled, it takes half the time. Its source has only names that the types declare.
        make = eval(f"lambda row, doc=None: ({''.join(values)})", decoders)  # noqa: S307
        own = [name for name in wanted if name not in places]
        if not own:
            return make  # type: ignore[no-any-return]
        has_large = any(name in columns and is_large(columns[name]) for name in own)
        document = len(places)

        def read_row(found: Sequence[Any]) -> Row:
            large = found[document + 1] if has_large else None
            row: Row = make(found, parse(found[document], large))
            return row

        return read_row


def parse(doc: str, large: str | None) -> dict[str, Any]:
    """The document of an object, from its two parts."""
    values: dict[str, Any] = orjson.loads(doc)
    if large is not None:
        values |= orjson.loads(large)
    return values


def _decoder(column: Column) -> Callable[[Any], Any] | None:
    """The function from a value in a document to a stored value; None if they are the same."""
    if column.child is None:
        return _DECODERS.get(column.kind.name)
    getters = [(n, c.kind.empty(), _decoder(c)) for n, c in column.child.columns.items()]

    def read(values: Mapping[str, Any]) -> list[Any]:
        return [
            value if (value := values.get(name, empty)) is None or decode is None else decode(value)
            for name, empty, decode in getters
        ]

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
    """How the objects of a type are stored."""

    def __init__(self, tables: EndpointTables, label: str) -> None:
        declared = tables.endpoint.type_of(label)
        places = declared.places
        own = tables.in_documents(declared)
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
    if isinstance(value, Decimal):
        return format(value, "f")
    text: str = value.isoformat()
    return text.replace("+00:00", "Z")


def _child_objects(
    child: ObjectType, rows: Iterable[Row], extras: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Child objects as in a document, after the further values of those with their ids."""
    known = {entry["id"]: entry for entry in extras}
    others = (
        {n: v for n, v in known.get(r[0], {}).items() if n not in child.columns} for r in rows
    )
    return [o | dict(zip(child.columns, r, strict=True)) for o, r in zip(others, rows, strict=True)]


class Inserter:
    """Inserts many objects of one endpoint, in batches."""

    def __init__(self, documents: Documents) -> None:
        self._documents, self._tables = documents, documents.tables
        self._waiting: defaultdict[StoredTable, list[Sequence[Any]]] = defaultdict(list)
        self._words: list[Words] = []
        self._number = 0

    def add(self, row: Row, extras: Mapping[str, Any], position: TreePosition | None) -> None:
        """Adds an object.

        :param row: its columns.
        :param extras: what its document has besides.
        :param position: the position of a page.
        """
        documents, tables, waiting = self._documents, self._tables, self._waiting
        stored = documents.stored(row, extras)
        waiting[tables.base].append(documents.base_values(row, position))
        waiting[tables.documents].append(stored[:3])
        self.add_derived(stored, (*stored.indexed, tables.terms), documents.words(row))

    def add_derived(self, stored: Stored, into: Iterable[StoredTable], words: Words | None) -> None:
        """Adds rows that are derived from an object to some tables of the endpoint.

        :param words: its words; None: they are there.
        """
        if words is not None:
            self._words.append(words)
        for table in into:
            if table is self._tables.terms:
                self._waiting[table].extend(stored.terms)
            elif table in stored.indexed:
                self._waiting[table].append(stored.indexed[table])
        self._number += 1
        if self._number == BATCH:
            self.flush()

    def flush(self) -> None:
        """Writes what has been added and is not yet written."""
        engine = self._documents.engine
        for table, rows in self._waiting.items():
            if rows:
                engine.insert(table.name, table.fields, rows)
        self._waiting.clear()
        self._number = 0
        if self._words:
            engine.put_words(self._tables.words, self._words)
        self._words.clear()

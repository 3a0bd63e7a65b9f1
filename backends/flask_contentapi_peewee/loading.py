"""Loads the whole content into the tables, and dumps it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import peewee

from flask_contentapi.errors import ContentError
from flask_contentapi.library import Library, read_library, require_mapping
from flask_contentapi.query import Row
from flask_contentapi.records import Place, RecordReader, write_record
from flask_contentapi.registry import Registry
from flask_contentapi.tables import Table
from flask_contentapi_peewee.columns import OPEN
from flask_contentapi_peewee.paths import GAP, step
from flask_contentapi_peewee.reader import DatabaseReader
from flask_contentapi_peewee.rows import Inserter, TreePosition, batches, words_of_row
from flask_contentapi_peewee.structure import COLLECTION_COLUMNS, SITE_COLUMNS
from flask_contentapi_peewee.tables import USED_ID_PREFIX, EndpointTables, OwnTable, Tables

__all__ = [
    "delete_stale_words",
    "dump",
    "foreign_message",
    "ids_of",
    "load",
    "reindex",
    "stored_objects",
]


def load(
    content: Mapping[str, Iterable[Any]],
    registry: Registry,
    tables: Tables,
    foreign: Mapping[str, str],
) -> None:
    """Replaces the content of the tables; the caller provides the transaction.

    Records are read twice: once to check them together, keeping only what determines places in
    the tree, and once to write them.

    :param foreign: as :attr:`Tables.foreign`.
    :raises ContentError: with every problem in the records.
    """
    require_mapping(content)
    rereadable = _Rereadable(content)
    outline = read_library(rereadable, registry, outline=True)
    _refuse_foreign(outline, foreign)
    clear(tables)
    _load_structure(outline, tables)
    for name, table in outline.tables.items():
        _load_objects(rereadable.get(name, ()), table, registry, tables, outline.locales)


def _refuse_foreign(outline: Library, foreign: Mapping[str, str]) -> None:
    """Refuses records of types whose objects are rows of the site's own tables."""
    problems = [
        Place(name, -1, f"{name} {row[0]}").problem(
            "type", foreign_message(row[1], foreign[row[1]])
        )
        for name, table in outline.tables.items()
        for row in table.rows
        if row[1] in foreign
    ]
    if problems:
        raise ContentError(problems)


def foreign_message(label: str, table: str) -> str:
    """The message that only the site itself may change objects of a type."""
    return f"{label} are the rows of {table}, which the site itself changes"


def clear(tables: Tables) -> None:
    """Empties the tables, except for the state of the tables themselves."""
    state = tables.state
    for model in tables.models:
        if model is not state.model:
            model.delete().execute()
    state.model.delete().where(state.fields["key"].startswith(USED_ID_PREFIX)).execute()
    for endpoint in tables.endpoints.values():
        tables.engine.clear_words(endpoint.words)


class _Rereadable(Mapping[str, Iterable[Any]]):
    """Content whose sections can be read more than once."""

    def __init__(self, content: Mapping[str, Iterable[Any]]) -> None:
        self._content = content
        self._lists: dict[str, list[Any]] = {}

    def __len__(self) -> int:
        return len(self._content)

    def __iter__(self) -> Iterator[str]:
        return iter(self._content)

    def __getitem__(self, section: str) -> Iterable[Any]:
        if section in self._lists:
            return self._lists[section]
        records = self._content[section]
        if isinstance(records, Iterator) and records is self._content[section]:
            # An iterator can be read only once.
            self._lists[section] = list(records)
            return self._lists[section]
        return records


def _load_structure(outline: Library, tables: Tables) -> None:
    _insert(tables.locales, ({"code": c, "sort": n} for n, c in enumerate(outline.locales)))
    _insert(tables.sites, ({"id": n, **site} for n, site in enumerate(outline.site_records)))
    collections = enumerate(outline.collections.values())
    _insert(tables.collections, ({"sort": n, **collection} for n, collection in collections))


def _insert(table: OwnTable, rows: Iterable[Mapping[str, Any]]) -> None:
    for row in rows:
        table.model.insert({table.fields[name]: value for name, value in row.items()}).execute()


def _load_objects(
    records: Iterable[Any],
    table: Table,
    registry: Registry,
    tables: Tables,
    locales: Sequence[str],
) -> None:
    endpoint = table.endpoint
    positions = _find_positions(table) if endpoint.tree else {}
    inserter = Inserter(tables, tables.endpoints[endpoint.name])
    reader = RecordReader(registry, logs=False)
    locale = endpoint.base.places.get("locale")
    for index, record in enumerate(records):
        entry = reader.read_entry(endpoint.name, index, record)
        assert entry is not None
        row, extras = entry
        if locale is not None and row[locale] is None and locales:
            row = (*row[:locale], locales[0], *row[locale + 1 :])
        inserter.add(row, extras, positions.get(row[0]))
    inserter.flush()


def _find_positions(pages: Table) -> dict[int, TreePosition]:
    """The position of each page in the tree, by id.

    :param pages: the pages in tree order; only their structural columns are used.
    """
    parent = pages.endpoint.base.places["parent"]
    positions: dict[int, TreePosition] = {}
    children: dict[int | None, int] = {}
    for row, url_path, access in zip(pages.rows, pages.url_paths, pages.access, strict=True):
        number = children.get(row[parent], 0) + GAP
        children[row[parent]] = number
        above = positions[row[parent]].path if row[parent] is not None else ""
        positions[row[0]] = TreePosition(
            above + step(number), url_path, OPEN if access is None else access
        )
    return positions


def dump(reader: DatabaseReader) -> Iterator[tuple[str, Any]]:
    """The content of the tables as records, each with its section."""
    tables = reader.tables
    for record in reader.records(tables.locales, ["code"], "sort"):
        yield "locales", record["code"]
    for record in reader.records(tables.sites, SITE_COLUMNS, "id"):
        yield "sites", record
    for record in reader.records(tables.collections, COLLECTION_COLUMNS, "sort"):
        yield "collections", record
    for name, endpoint in tables.endpoints.items():
        for row, extras in stored_objects(reader, endpoint):
            yield name, write_record(endpoint.endpoint, row, extras)


def stored_objects(
    reader: DatabaseReader, tables: EndpointTables
) -> Iterator[tuple[Row, dict[str, Any] | None]]:
    """All objects of an endpoint in default order, including hidden ones: the columns of the type,
    and the extras."""
    endpoint = tables.endpoint
    order = "path_" if endpoint.tree else "id"
    known = reader.records(tables.base, ["id", "type"], order)
    for batch in batches(known):
        stored: dict[int, Row] = {}
        for label in {record["type"] for record in batch}:
            ids = [record["id"] for record in batch if record["type"] == label]
            stored |= reader.stored(endpoint.name, ids, label)
        for record in batch:
            # An object of ours with the type of a site's own rows is not served.
            if record["id"] in stored:
                *row, extras = stored[record["id"]]
                yield tuple(row), extras


def ids_of(reader: DatabaseReader, label: str) -> tuple[str, list[int]]:
    """The endpoint of a type, and the ids of all its objects."""
    for name, tables in reader.tables.endpoints.items():
        if label in tables.endpoint.types:
            known = reader.records(tables.base, ["id", "type"], "id")
            return name, [record["id"] for record in known if record["type"] == label]
    raise KeyError(label)


def reindex(reader: DatabaseReader, endpoint: str, ids: Sequence[int]) -> None:
    """Indexes the words of some objects again; some of the objects may be deleted."""
    tables, engine = reader.tables.endpoints[endpoint], reader.tables.engine
    for batch in batches(ids):
        engine.delete_words(tables.words, batch)
        by_label: defaultdict[str, list[int]] = defaultdict(list)
        for identity, label in reader.labels(endpoint, batch).items():
            by_label[label].append(identity)
        for name, known in by_label.items():
            declared = tables.endpoint.type_of(name)
            rows = reader.stored(endpoint, known, name).values()
            engine.put_words(tables.words, [words_of_row(declared, row[:-1]) for row in rows])


def delete_stale_words(reader: DatabaseReader, endpoint: str) -> None:
    """Deletes the words of objects that no longer exist."""
    tables, engine = reader.tables.endpoints[endpoint], reader.tables.engine
    words = peewee.Table(tables.words).bind(engine.database)
    there = {
        identity for (identity,) in reader.all(tables.base.model.select(tables.base.fields["id"]))
    }
    known = [identity for (identity,) in reader.all(words.select(engine.words_id(words)))]
    engine.delete_words(tables.words, [identity for identity in known if identity not in there])

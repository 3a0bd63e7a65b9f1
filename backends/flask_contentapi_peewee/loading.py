"""Loads the whole content into the tables, and dumps it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from flask_contentapi.content import Table, check_objects, read_library, require_mapping
from flask_contentapi.declarations import Endpoint
from flask_contentapi.errors import ContentError, Problem
from flask_contentapi.query import Row
from flask_contentapi.records import Place, RecordReader, write_record
from flask_contentapi.registry import Registry
from flask_contentapi.types import Content
from flask_contentapi_peewee.columns import OPEN
from flask_contentapi_peewee.documents import Inserter, TreePosition, batches
from flask_contentapi_peewee.paths import GAP, step
from flask_contentapi_peewee.reader import DatabaseReader
from flask_contentapi_peewee.statements import Statements
from flask_contentapi_peewee.structure import COLLECTION_COLUMNS, SITE_COLUMNS
from flask_contentapi_peewee.tables import MARK_PREFIX, USED_ID_PREFIX, EndpointTables, Tables

__all__ = ["check", "dump", "insert_records", "load", "read_records"]


def load(content: Mapping[str, Iterable[Any]], registry: Registry, statements: Statements) -> None:
    """Replaces the content of the tables; the caller provides the transaction.

    Records are read twice: once to check them together, keeping only what determines places in
    the tree, and once to write them.

    :raises ContentError: with every problem in the records.
    """
    require_mapping(content)
    rereadable = _Rereadable(content)
    if statements.tables.followed_types:
        _refuse_followed(rereadable, registry, statements.tables.followed_types)
    outline = read_library(rereadable, registry, outline=True)
    clear(statements.tables)
    insert_records(statements.tables, "locales", outline.locales)
    insert_records(statements.tables, "sites", outline.site_records)
    insert_records(statements.tables, "collections", outline.collections.values())
    for name, table in outline.tables.items():
        _load_objects(rereadable.get(name, ()), table, registry, statements, outline.locales)


def _refuse_followed(
    content: Mapping[str, Iterable[Any]], registry: Registry, followed: Mapping[str, str]
) -> None:
    """Refuses records of types that have the rows of the site's own models.

    :raises ContentError: if there are some, with one problem for each type.
    """
    problems: dict[str, Problem] = {}
    for name, endpoint in registry.endpoints.items():
        records = content.get(name, ())
        if not (endpoint.types.keys() & followed and isinstance(records, Iterable)):
            continue
        only = next(iter(endpoint.types)) if len(endpoint.types) == 1 else None
        for index, record in enumerate(records):
            if isinstance(record, Content):
                record = record.to_record()
            label = str(isinstance(record, Mapping) and record.get("type", only))
            if label in followed and label not in problems:
                message = f"{followed[label]}; leave out all of its records"
                problems[label] = Place(name, index, f"{name}[{index}]").problem("type", message)
    if problems:
        raise ContentError(problems.values())


def clear(tables: Tables) -> None:
    """Empties the tables, except for the state of the tables themselves."""
    state = tables.state
    for model in tables.models:
        # Rows that are noted while the content is loaded have to be read afterwards.
        if model not in (state.model, tables.followed.model):
            model.delete().execute()
    for prefix in (USED_ID_PREFIX, MARK_PREFIX):
        state.model.delete().where(state.fields["key"].startswith(prefix)).execute()
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


#: The columns of the tables of sections, and the one with the order.
_SECTIONS: Mapping[str, tuple[Sequence[str], str]] = {
    "locales": (["code"], "sort"),
    "sites": (SITE_COLUMNS, "id"),
    "collections": (COLLECTION_COLUMNS, "sort"),
}


def read_records(reader: DatabaseReader, section: str) -> list[Any]:
    """The codes of all languages, or the records of all sites or collections with all keys."""
    columns, order = _SECTIONS[section]
    records = reader.records(getattr(reader.tables, section), columns, order)
    return [record["code"] for record in records] if section == "locales" else records


def insert_records(tables: Tables, section: str, records: Iterable[Any]) -> None:
    """Writes what :func:`read_records` gives into its table, which is empty."""
    table, (_, order) = getattr(tables, section), _SECTIONS[section]
    for number, record in enumerate(records):
        row = {"code": record} if section == "locales" else record
        fields = {table.fields[name]: value for name, value in row.items()}
        table.model.insert({**fields, table.fields[order]: number}).execute()


def _load_objects(
    records: Iterable[Any],
    table: Table,
    registry: Registry,
    statements: Statements,
    locales: Sequence[str],
) -> None:
    endpoint = table.endpoint
    positions = _find_positions(table) if endpoint.tree else {}
    documents = statements.documents[endpoint.name]
    inserter = Inserter(statements.tables.engine, statements.tables.endpoints[endpoint.name])
    reader = RecordReader(registry, logs=False)
    locale = endpoint.base.places.get("locale")
    for index, record in enumerate(records):
        entry = reader.read_entry(endpoint.name, index, record)
        assert entry is not None
        row, extras = entry
        if locale is not None and row[locale] is None and locales:
            row = (*row[:locale], locales[0], *row[locale + 1 :])
        base = documents.base_values(row, positions.get(row[0]))
        inserter.add(base, documents.stored(row, extras))
        inserter.add_words(documents.words(row))
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
    for section in _SECTIONS:
        yield from ((section, record) for record in read_records(reader, section))
    for name, endpoint in tables.endpoints.items():
        for row, extras in _objects(reader, endpoint):
            # Fields that a type once had are none of its records.
            others = {} if row[1] in endpoint.endpoint.types else extras
            yield name, write_record(endpoint.endpoint, row, others)


def _objects(
    reader: DatabaseReader, tables: EndpointTables
) -> Iterator[tuple[Row, dict[str, Any]]]:
    """All objects of an endpoint in default order, including hidden ones: the columns of the type,
    and the further values."""
    known = reader.records(tables.base, ["id"], "path_" if tables.endpoint.tree else "id")
    for batch in batches([record["id"] for record in known]):
        stored = {row[0]: (row, more) for row, more in reader.objects(tables.endpoint.name, batch)}
        yield from (stored[identity] for identity in batch)


def check(reader: DatabaseReader, registry: Registry) -> Iterator[Problem]:
    """The problems of the content: undeclared types, dangling relations, and values that the
    declared fields no longer take."""
    ids = {
        name: {record["id"] for record in reader.records(tables.base, ["id"], "id")}
        for name, tables in reader.tables.endpoints.items()
    }
    records = RecordReader(registry, logs=False)
    yield from check_objects(_checked_objects(reader, records), ids)
    yield from records.problems


def _checked_objects(
    reader: DatabaseReader, records: RecordReader
) -> Iterator[tuple[Place, Endpoint, Row]]:
    """All objects, each with its place and its endpoint.

    :param records: reads the objects as records, for what their fields no longer take, for example
        because of new validators.
    """
    for name, tables in reader.tables.endpoints.items():
        for row, _ in _objects(reader, tables):
            records.read_entry(name, -1, write_record(tables.endpoint, row))
            yield Place(name, -1, f"{name} {row[0]}"), tables.endpoint, row

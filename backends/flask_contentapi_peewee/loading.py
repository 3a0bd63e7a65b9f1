"""Loads the whole content into the tables, and dumps it."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from tempfile import TemporaryFile
from typing import IO, Any

from peewee import SQL, fn

from flask_contentapi.content import ReadRecord, Table, check_objects, read_library
from flask_contentapi.errors import ContentError, Problem
from flask_contentapi.logs import watched
from flask_contentapi.records import Place, RecordReader, write_record
from flask_contentapi_peewee.columns import GAP, OPEN, Clause, step
from flask_contentapi_peewee.documents import BATCH, Inserter, TreePosition, target_term
from flask_contentapi_peewee.reader import DatabaseReader
from flask_contentapi_peewee.statements import Statements
from flask_contentapi_peewee.tables import (
    MARK_PREFIX,
    USED_ID_PREFIX,
    EndpointTables,
    Tables,
)


def load(content: Mapping[str, Iterable[Any]], statements: Statements) -> None:
    """Replaces the content of the tables; the caller provides the transaction.

    Each record is read once. Until all have been checked together, the objects are in files; in
    memory is only what determines places in the tree.

    :raises ContentError: with every problem in the records.
    """
    tables = statements.tables
    with ExitStack() as stack:
        files = {name: stack.enter_context(TemporaryFile()) for name in tables.endpoints}
        refused: dict[str, Problem] = {}

        waiting: dict[str, list[ReadRecord]] = {name: [] for name in files}

        def keep(endpoint: str, index: int, entry: ReadRecord) -> None:
            entries = waiting[endpoint]
            entries.append(entry)
            if len(entries) == BATCH:
                pickle.dump(entries, files[endpoint])
                entries.clear()
            label = entry[0][1]
            if label in tables.followed_types and label not in refused:
                message = f"{tables.followed_types[label]}; leave out all of its records"
                place = Place(endpoint, index, f"{endpoint}[{index}]")
                refused[label] = place.problem("type", message)

        try:
            outline = read_library(content, tables.registry, keep=keep)
        except ContentError as error:
            raise ContentError([*refused.values(), *error.problems]) from None
        if refused:
            raise ContentError(refused.values())
        clear(tables)
        tables.write_records("locales", outline.locales)
        tables.write_records("sites", outline.site_records)
        tables.write_records("collections", outline.collections.values())
        with tables.engine.filling(tables.content):
            for name, file in files.items():
                pickle.dump(waiting[name], file)
                _load_objects(_entries(file), outline.tables[name], statements, outline.locales)


def _entries(file: IO[bytes]) -> Iterator[ReadRecord]:
    file.seek(0)
    with suppress(EOFError):
        while True:
            yield from pickle.load(file)  # noqa: S301 - nobody else has it


def clear(tables: Tables) -> None:
    """Empties the tables, except for the state of the tables themselves."""
    state = tables.state
    # Rows that are noted while the content is loaded have to be read afterwards.
    for model in tables.content:
        model.delete().execute()
    for prefix in (USED_ID_PREFIX, MARK_PREFIX):
        state.model.delete().where(state["key"].startswith(prefix)).execute()
    for endpoint in tables.endpoints.values():
        tables.engine.clear_words(endpoint.words)


def _load_objects(
    entries: Iterable[ReadRecord], table: Table, statements: Statements, locales: Sequence[str]
) -> None:
    endpoint = table.endpoint
    positions = _find_positions(table) if endpoint.tree else {}
    documents = statements.documents[endpoint.name]
    inserter = Inserter(documents)
    for row, extras in watched(entries, f"writing {endpoint.name}", len(table.rows)):
        inserter.add(documents.in_language(row, locales), extras, positions.get(row[0]))
    inserter.flush()


def _find_positions(pages: Table) -> dict[int, TreePosition]:
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
    for section, records in reader.records().items():
        yield from ((section, record) for record in records)
    for name, endpoint in tables.endpoints.items():
        documents = reader.documents[name]
        for found in reader.objects(name):
            # Fields that a type once had are none of its records.
            is_declared = documents.label(found) in endpoint.endpoint.types
            extras = {} if is_declared else documents.extras(found)
            yield name, write_record(endpoint.endpoint, documents.row(found), extras)


def check(reader: DatabaseReader, *, values: bool = True) -> Iterator[Problem]:
    """The problems of the content: undeclared types, dangling relations, and values that the
    declared fields no longer take, if these are wanted."""
    ids = {name: {*reader.identities(name)} for name in reader.tables.endpoints}
    records = RecordReader(reader.tables.registry, logs=False)
    objects = (
        (records.check_entry(tables.endpoint, row), tables.endpoint, row)
        for name, tables in reader.tables.endpoints.items()
        for found in reader.objects(name, None if values else _suspect(reader, tables))
        for row in [reader.documents[name].row(found)]
    )
    yield from check_objects(objects, ids, reader.sites)
    yield from records.problems


def _suspect(reader: DatabaseReader, tables: EndpointTables) -> Clause | None:
    """The condition for objects that may have another problem than their values; None for all."""
    fields, terms = tables.base.fields, tables.terms.fields
    if tables.endpoint.redirects:
        # Their sites are in documents.
        return None
    wanted = fields["type"].not_in([*tables.endpoint.types])
    if tables.endpoint.tree:
        language = fields["translation_key"], fields["locale"]
        shared = tables.base.select("translation_key").group_by(*language)
        wanted |= fields["translation_key"].in_(shared.having(fn.COUNT(SQL("1")) > 1))
    for name, others in reader.tables.endpoints.items():
        missing = (terms["field"] == target_term(name)) & terms["number"].not_in(
            others.base.select("id")
        )
        wanted |= fields["id"].in_(tables.terms.select(terms["id"]).where(missing))
    return wanted

"""Checks the content in the tables for problems."""

from __future__ import annotations

from collections.abc import Iterator

from flask_contentapi.errors import Problem
from flask_contentapi.library import check_objects
from flask_contentapi.query import Row
from flask_contentapi.records import Place, RecordReader, write_record
from flask_contentapi.registry import Registry
from flask_contentapi.types import Endpoint
from flask_contentapi_peewee.loading import stored_objects
from flask_contentapi_peewee.mapped_tables import MappedTables
from flask_contentapi_peewee.reader import DatabaseReader
from flask_contentapi_peewee.row_checking import check_rows

__all__ = ["check"]


def check(reader: DatabaseReader, registry: Registry) -> Iterator[Problem]:
    """The problems: undeclared types, dangling relations, values that the declared fields no longer
    take, and those of a site's own rows."""
    tables = reader.tables
    if isinstance(tables, MappedTables):
        yield from check_rows(reader, registry, tables)
    bases = {name: endpoint.base for name, endpoint in tables.endpoints.items()}
    ids = {
        name: {found for (found,) in reader.all(base.model.select(base.fields["id"]))}
        for name, base in bases.items()
    }
    records = RecordReader(registry, logs=False)
    yield from check_objects(_objects(reader, records), ids)
    yield from records.problems


def _objects(
    reader: DatabaseReader, records: RecordReader
) -> Iterator[tuple[Place, Endpoint, Row]]:
    """All objects, each with its place and its endpoint.

    :param records: reads the objects in our tables as records, for what their fields no longer
        take, for example because of new validators; rows of the site's own are checked already.
    """
    for name, tables in reader.tables.endpoints.items():
        for row, extras in stored_objects(reader, tables):
            if row[1] not in reader.tables.foreign:
                records.read_entry(name, -1, write_record(tables.endpoint, row, extras))
            yield reader.tables.place(name, row[0], row[1]), tables.endpoint, row

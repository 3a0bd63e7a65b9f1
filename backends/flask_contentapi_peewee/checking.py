"""Checks the content in the tables for problems."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import peewee

from flask_contentapi.errors import Problem
from flask_contentapi.library import undeclared_message
from flask_contentapi.records import Place, RecordReader
from flask_contentapi.registry import Registry
from flask_contentapi.relations import targets_of, values_of
from flask_contentapi_peewee.loading import dump
from flask_contentapi_peewee.mapped_tables import MappedTables
from flask_contentapi_peewee.reader import DatabaseReader
from flask_contentapi_peewee.row_checking import check_rows
from flask_contentapi_peewee.tables import OwnTable, Tables

__all__ = ["check"]


def check(reader: DatabaseReader, registry: Registry) -> Iterator[Problem]:
    """The problems: undeclared types, dangling relations, values that the declared fields no longer
    take, and those of a site's own rows."""
    tables = reader.tables
    if isinstance(tables, MappedTables):
        yield from check_rows(reader, registry, tables)
    for name, endpoint in tables.endpoints.items():
        base = endpoint.base
        identity, label = base.fields["id"], base.fields["type"]
        declared = sorted(endpoint.endpoint.types)
        query = base.model.select(identity, label).where(label.not_in(declared)).order_by(identity)
        for page, found in reader.all(query):
            yield tables.place(name, page, found).problem(
                "type", undeclared_message(found, endpoint.endpoint)
            )
        found = [one for table in endpoint.all for one in _dangling(reader, table, tables)]
        labels = reader.labels(name, [page for page, *_ in found])
        for page, column, target, missing in found:
            if page in labels:
                message = f"there is no object {missing} in {target}"
                yield tables.place(name, page, labels[page]).problem(column, message)
    yield from _refused(reader, registry)


def _refused(reader: DatabaseReader, registry: Registry) -> Iterator[Problem]:
    """The problems of stored objects as records: values that fields no longer take, for example
    because of new validators, and blocks whose objects are missing."""
    records = RecordReader(registry, logs=False)
    pointing: list[tuple[Place, str, str, int]] = []
    for section, record in dump(reader):
        if section in registry.endpoints and record["type"] not in reader.tables.foreign:
            entry = records.read_entry(section, -1, record)
            place = Place(section, -1, f"{section} {record['id']}")
            declared = registry.endpoints[section].type_of(record["type"])
            for value in values_of(declared, entry[0]) if entry else ():
                if value.column.target is None:
                    inner = place.child(*value.children) if value.children else place
                    found = targets_of(value.column, value.stored)
                    pointing.extend((inner, value.column.name, *one) for one in found)
    yield from records.problems
    yield from _missing(reader, pointing)


def _missing(
    reader: DatabaseReader, pointing: Sequence[tuple[Place, str, str, int]]
) -> Iterator[Problem]:
    """The problems of relations without an object.

    :param pointing: for each relation the place and the field, and the object's endpoint and id.
    """
    ids = {}
    for target in {target for _, _, target, _ in pointing}:
        base = reader.tables.endpoints[target].base
        ids[target] = {found for (found,) in reader.all(base.model.select(base.fields["id"]))}
    for place, name, target, identity in pointing:
        if identity not in ids[target]:
            yield place.problem(name, f"there is no object {identity} in {target}")


def _dangling(
    reader: DatabaseReader, table: OwnTable, tables: Tables
) -> Iterator[tuple[int, str, str, int]]:
    """Dangling relations in a table: the object, the column, the endpoint, the missing id.

    For child objects, the object is their owner.
    """
    owner = table.fields.get("owner_") or table.fields["id"]
    for name, column in table.columns.items():
        if column.target is None:
            continue
        endpoint = column.target.served_at.name
        target = tables.endpoints[endpoint].base.model.alias()
        field = table.fields[name]
        query = (
            table.model.select(owner, field)
            .join(target, peewee.JOIN.LEFT_OUTER, on=(target.id == field))
            .where(field.is_null(False) & target.id.is_null())
            .order_by(owner)
        )
        # Unreadable values are None.
        found = ((owner, missing) for owner, missing in reader.all(query) if missing is not None)
        for identity, missing in found:
            yield identity, name, endpoint, missing
    for many in table.many.values():
        yield from _dangling(reader, many, tables)

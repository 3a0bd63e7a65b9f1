"""Checks the content in the tables for problems."""

from __future__ import annotations

from collections.abc import Iterator

import peewee

from flask_contentapi.errors import Problem
from flask_contentapi.library import undeclared_message
from flask_contentapi.registry import Registry
from flask_contentapi_peewee.mapped_tables import MappedTables
from flask_contentapi_peewee.reader import DatabaseReader
from flask_contentapi_peewee.row_checking import check_rows
from flask_contentapi_peewee.tables import OwnTable, Tables

__all__ = ["check"]


def check(reader: DatabaseReader, registry: Registry) -> Iterator[Problem]:
    """The problems: undeclared types, dangling relations, and those of a site's own rows."""
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

"""What is wrong with content that stands in the tables all the same."""

from __future__ import annotations

from collections.abc import Iterator

import peewee

from flask_contentapi.errors import Problem
from flask_contentapi.records import Place
from flask_contentapi_peewee.reader import DatabaseReader
from flask_contentapi_peewee.tables import OwnTable, Tables

__all__ = ["check"]


def check(reader: DatabaseReader) -> Iterator[Problem]:
    """Undeclared types, and relations to nothing."""
    tables = reader.tables
    for name, endpoint in tables.endpoints.items():
        base = endpoint.base
        identity, label = base.fields["id"], base.fields["type"]
        declared = sorted(endpoint.endpoint.types)
        query = base.model.select(identity, label).where(label.not_in(declared)).order_by(identity)
        for page, found in reader.all(query):
            yield _place(name, page).problem("type", f"{found!r} is not declared")
        for table in endpoint.all:
            for page, column, target, missing in _dangling(reader, table, tables):
                message = f"there is no object {missing} in {target}"
                yield _place(name, page).problem(column, message)


def _place(section: str, identity: int) -> Place:
    return Place(section, -1, f"{section} {identity}")


def _dangling(
    reader: DatabaseReader, table: OwnTable, tables: Tables
) -> Iterator[tuple[int, str, str, int]]:
    """Relations in a table to nothing: the object, the column, the endpoint, the id.

    Of child objects the object that they are in.
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
        for identity, missing in reader.all(query):
            yield identity, name, endpoint, missing
    for many in table.many.values():
        yield from _dangling(reader, many, tables)

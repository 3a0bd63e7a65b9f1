"""What a transaction changes, and so which answers are others afterwards."""

from __future__ import annotations

from collections.abc import Iterator

from flask_contentapi.changes import MOST_NAMED, tags_of
from flask_contentapi.relations import Object, embedded, pointed
from flask_contentapi.signals import EVERYTHING
from flask_contentapi.types import Column
from flask_contentapi_peewee.reader import DatabaseReader
from flask_contentapi_peewee.tables import OwnTable

__all__ = ["Changes"]


class Changes:
    """Gathers the objects that a transaction changes.

    :param reader: reads what is there, what the transaction has changed included.
    """

    def __init__(self, reader: DatabaseReader) -> None:
        self._reader = reader
        self._changed: set[Object] = set()
        self._turned: set[Object] = set()
        self._everything = False

    def changed(self, endpoint: str, *ids: int) -> None:
        """Notes objects that are others now, but are seen by the same visitors."""
        self._changed |= {(endpoint, identity) for identity in ids}

    def turned(self, endpoint: str, *ids: int) -> None:
        """Notes objects that are seen by others now, that are there now, or are gone."""
        self._turned |= {(endpoint, identity) for identity in ids}

    def everything(self) -> None:
        """Notes that all may be other now."""
        self._everything = True

    def tags(self) -> frozenset[str]:
        """The tags of the answers that are others, or may be."""
        changed = self._changed | self._turned
        if self._everything or len(changed) > MOST_NAMED:
            return frozenset([EVERYTHING])
        return tags_of(changed.union(self._pointing() if self._turned else ()))

    def _pointing(self) -> Iterator[Object]:
        """The objects that point to one which others see now."""
        for name, endpoint in self._reader.tables.endpoints.items():
            for own in endpoint.all:
                for table in (own, *own.many.values()):
                    for column in table.columns.values():
                        yield from ((name, owner) for owner in self._owners(table, column))

    def _owners(self, table: OwnTable, column: Column) -> Iterator[int]:
        """The objects that point to such a one by a column of theirs, or of their children."""
        targets = [endpoint for _, endpoint in embedded(column)]
        if column.target is not None:
            targets.append(column.target.served_at.name)
        wanted = {(endpoint, i) for endpoint, i in self._turned if endpoint in targets}
        if not wanted:
            return
        owner = table.fields.get("owner_") or table.fields["id"]
        query = table.model.select(owner, table.fields[column.name])
        if column.target is not None:
            query = query.where(table.fields[column.name].in_([i for _, i in wanted]))
        for identity, value in self._reader.all(query):
            if not wanted.isdisjoint(pointed(column, value)):
                yield identity

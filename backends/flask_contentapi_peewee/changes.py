"""What a transaction changes, and so which answers are others afterwards."""

from __future__ import annotations

from collections.abc import Iterator

from flask_contentapi.changes import Object, tags_of
from flask_contentapi.signals import EVERYTHING
from flask_contentapi_peewee.reader import DatabaseReader
from flask_contentapi_peewee.tables import OwnTable, Tables

__all__ = ["Changes"]


class Changes:
    """Gathers the objects that a transaction changes.

    :param tables: the tables.
    :param reader: reads what is there, what the transaction has changed included.
    """

    def __init__(self, tables: Tables, reader: DatabaseReader) -> None:
        self._tables = tables
        self._reader = reader
        self._turned: set[Object] = set()
        self._everything = False

    def turned(self, endpoint: str, *ids: int) -> None:
        """Notes objects that are others now, that are there now, or are gone."""
        self._turned |= {(endpoint, identity) for identity in ids}

    def everything(self) -> None:
        """Notes that all may be other now."""
        self._everything = True

    def tags(self) -> frozenset[str]:
        """The tags of the answers that are others, or may be."""
        tags = frozenset([EVERYTHING]) if self._everything else tags_of(self._turned)
        return tags if EVERYTHING in tags else tags | tags_of({*self._pointing()})

    def _pointing(self) -> Iterator[Object]:
        """The objects that have a relation to one that was changed."""
        for name, endpoint in self._tables.endpoints.items():
            for own in endpoint.all:
                for table in (own, *own.many.values()):
                    for identity in self._owners(table):
                        yield name, identity

    def _owners(self, table: OwnTable) -> Iterator[int]:
        owner = table.fields.get("owner_") or table.fields["id"]
        for name, column in table.columns.items():
            if column.target is None:
                continue
            ids = [i for other, i in self._turned if other == column.target.served_at.name]
            query = table.model.select(owner).where(table.fields[name].in_(ids))
            yield from (identity for (identity,) in self._reader.all(query) if ids)

"""What a transaction changes, and the answers that this affects."""

from __future__ import annotations

from collections.abc import Iterator

from flask_contentapi.changes import MOST_NAMED, tags_of
from flask_contentapi.relations import ObjectKey, targets_of
from flask_contentapi.signals import EVERYTHING
from flask_contentapi.types import Column
from flask_contentapi_peewee.reader import DatabaseReader
from flask_contentapi_peewee.tables import OwnTable

__all__ = ["Changes"]


class Changes:
    """Collects the objects that a transaction changes.

    :param reader: reads the content, including the changes of the transaction.
    """

    def __init__(self, reader: DatabaseReader) -> None:
        self._reader = reader
        self._changed: set[ObjectKey] = set()
        self._visibility_changed: set[ObjectKey] = set()
        self._is_everything_changed = False

    def note_change(self, endpoint: str, *ids: int) -> None:
        """Notes objects that have changed but are visible to the same viewers."""
        self._changed |= {(endpoint, identity) for identity in ids}

    def note_visibility(self, endpoint: str, *ids: int) -> None:
        """Notes objects that are new, deleted, or visible to other viewers."""
        self._visibility_changed |= {(endpoint, identity) for identity in ids}

    def note_everything(self) -> None:
        """Notes that everything may have changed."""
        self._is_everything_changed = True

    def tags(self) -> frozenset[str]:
        """The cache tags of the answers that may have changed."""
        changed = self._changed | self._visibility_changed
        if self._is_everything_changed or len(changed) > MOST_NAMED:
            return frozenset([EVERYTHING])
        return tags_of(changed.union(self._referring() if self._visibility_changed else ()))

    def _referring(self) -> Iterator[ObjectKey]:
        """The objects that point to an object noted by :meth:`note_visibility`."""
        for name, endpoint in self._reader.tables.endpoints.items():
            for own in endpoint.all:
                for table in (own, *own.many.values()):
                    for column in table.columns.values():
                        yield from ((name, owner) for owner in self._owners(table, column))

    def _owners(self, table: OwnTable, column: Column) -> Iterator[int]:
        """The objects that point to such an object by a column of their own or of a child."""
        pointing = (column, *column.related_blocks.values())
        targets = {each.target.served_at.name for each in pointing if each.target is not None}
        wanted = {(endpoint, i) for endpoint, i in self._visibility_changed if endpoint in targets}
        if not wanted:
            return
        owner = table.fields.get("owner_") or table.fields["id"]
        query = table.model.select(owner, table.fields[column.name])
        if column.target is not None and not column.kind.many:
            query = query.where(table.fields[column.name].in_([i for _, i in wanted]))
        for identity, value in self._reader.all(query):
            if not wanted.isdisjoint(targets_of(column, value)):
                yield identity

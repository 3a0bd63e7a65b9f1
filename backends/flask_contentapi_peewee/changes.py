"""What a transaction changes, and the answers that this affects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from flask_contentapi.changes import MOST_NAMED, tags_of
from flask_contentapi.relations import ObjectKey
from flask_contentapi.signals import EVERYTHING
from flask_contentapi_peewee.documents import target_term
from flask_contentapi_peewee.reader import DatabaseReader

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
        wanted: defaultdict[str, list[int]] = defaultdict(list)
        for endpoint, identity in self._visibility_changed:
            wanted[endpoint].append(identity)
        for name, tables in self._reader.tables.endpoints.items():
            fields = tables.terms.fields
            for endpoint, ids in wanted.items():
                found = (fields["field"] == target_term(endpoint)) & fields["number"].in_(ids)
                query = tables.terms.model.select(fields["id"]).where(found).distinct()
                yield from ((name, owner) for (owner,) in self._reader.all(query))

"""Collections, and the restrictions that they put on their images and documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from flask_contentapi.records import Place, RecordReader
from flask_contentapi.tables import (
    DEEPEST,
    Restriction,
    Table,
    place_of,
    rows_of,
    too_deep_message,
)

__all__ = ["check_collections", "nearest_restrictions", "read_collections", "restrictions_of"]


def read_collections(records: Iterable[Any], reader: RecordReader) -> dict[int, dict[str, Any]]:
    """All collections with all their keys, by id.

    :param records: the records as given.
    :param reader: collects problems.
    """
    collections: dict[int, dict[str, Any]] = {}
    for index, record in enumerate(records):
        collection = reader.read_collection(index, record)
        if collection is None:
            continue
        if collection["id"] in collections:
            place = Place("collections", index, f"collections {collection['id']}")
            reader.note(place, "id", "another record has this id already")
        collections[collection["id"]] = collection
    check_collections(collections, reader)
    return collections


def check_collections(collections: Mapping[int, Mapping[str, Any]], reader: RecordReader) -> None:
    """Notes missing parents, cycles, and collections that are too deep in the tree.

    :param collections: all collections, by id.
    :param reader: collects problems.
    """
    known = {None, *collections, *reader.refused["collections"]}
    levels: dict[int, int] = {}
    for identity in collections:
        chain: dict[int, None] = {}
        above: int | None = identity
        while above is not None and above in collections:
            if above in levels or above in chain:
                break
            chain[above] = None
            above = collections[above]["parent"]
        place = Place("collections", -1, f"collections {identity}")
        if above in chain:
            reader.note(place, "parent", "the collections above it form a circle")
        elif above not in known:
            reader.note(place, "parent", f"there is no collection {above}")
        else:
            start = 0 if above is None else levels.get(above, 0)
            for level, inner in enumerate(reversed(chain), start + 1):
                levels[inner] = level
                if level == DEEPEST + 1:
                    deep = place._replace(name=f"collections {inner}")
                    reader.note(deep, "parent", too_deep_message(level))


def restrictions_of(collections: dict[int, dict[str, Any]]) -> dict[int, Restriction]:
    """The restriction of each collection that has one.

    :param collections: all of them, by id.
    """
    return {
        identity: Restriction(
            _nearest(collections, collection["parent"]), collection["restriction"]
        )
        for identity, collection in collections.items()
        if collection["restriction"]
    }


def _nearest(collections: dict[int, dict[str, Any]], identity: int | None) -> int | None:
    """The nearest restricted collection: the given one or one above it."""
    while identity is not None and not collections[identity]["restriction"]:
        identity = collections[identity]["parent"]
    return identity


def nearest_restrictions(
    table: Table, collections: dict[int, dict[str, Any]], reader: RecordReader
) -> list[int | None]:
    """For each image or document the nearest restricted collection."""
    if not table.endpoint.collections:
        return [None] * len(table.rows)
    column = table.endpoint.base.places["collection"]
    known = {None, *collections, *reader.refused["collections"]}
    for row in rows_of(table, reader):
        if row[column] not in known:
            reader.note(place_of(table, row), "collection", f"there is no collection {row[column]}")
    if reader.problems:
        return []
    nearest = {identity: _nearest(collections, identity) for identity in collections}
    return [nearest.get(row[column]) for row in table.rows]

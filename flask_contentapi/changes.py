"""Finds the cache tags of answers that a change of the content may affect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from functools import partial

from flask_contentapi.content import Library, Restriction, Table
from flask_contentapi.declarations import targets_of, values_of
from flask_contentapi.query import ObjectKey, Row
from flask_contentapi.signals import EVERYTHING, tag_of
from flask_contentapi.sites import Sites

#: How many changed objects are named at most; beyond that everything counts as changed.
MOST_NAMED = 1000
#: The columns that determine when a page is visible.
_TIMES = ("live", "go_live_at", "expires_at")


def changed_tags(before: Library, after: Library) -> frozenset[str]:
    """The cache tags of the answers that a change may affect.

    :param before: the content before the change.
    :param after: the content after the change.
    """
    if before.locales != after.locales or [*before.sites] != [*after.sites]:
        return frozenset([EVERYTHING])
    changed: set[ObjectKey] = set()
    visibility_changed: set[ObjectKey] = set()
    tags = set()
    for name, table in after.tables.items():
        old, new = _objects(before, name), _objects(after, name)
        different = {i for i in old.keys() | new.keys() if old.get(i) != new.get(i)}
        changed |= {(name, i) for i in different}
        visibility = [partial(_visibility, table, after.sites, objects) for objects in (old, new)]
        visibility_changed |= {(name, i) for i in different if visibility[0](i) != visibility[1](i)}
        if list(old) != list(new):
            tags.add(tag_of(name))
    if visibility_changed:
        changed |= {own for own, other in _references(after) if other in visibility_changed}
    named = tags_of(changed)
    return named if EVERYTHING in named else named | tags


def tags_of(changed: Set[ObjectKey]) -> frozenset[str]:
    """The cache tags of the answers that contain some objects, or could contain them."""
    if len(changed) > MOST_NAMED:
        return frozenset([EVERYTHING])
    named = (tag_of(name, identity) for name, identity in changed)
    return frozenset((*named, *(tag_of(name) for name, _ in changed)))


#: The row of an object with its path of slugs and the restrictions that apply to it.
ObjectState = tuple[Row, str, Sequence[object]]


def _objects(library: Library, endpoint: str) -> dict[int, ObjectState]:
    table = library.tables[endpoint]
    known = library.restrictions.pages if table.endpoint.tree else library.restrictions.collections
    chains: dict[int | None, list[object]] = {None: []}
    chains |= {identity: [*_chain(known, identity)] for identity in known}
    paths = table.url_paths or [""] * len(table.rows)
    states = zip(table.rows, paths, table.access, strict=True)
    return {row[0]: (row, path, chains[access]) for row, path, access in states}


def _chain(known: Mapping[int, Restriction], identity: int | None) -> Iterator[object]:
    """A restriction and all those above it."""
    while identity is not None:
        yield identity, known[identity].rule
        identity = known[identity].within


def _visibility(
    table: Table, sites: Sites, objects: dict[int, ObjectState], identity: int
) -> object:
    """What determines who sees an object, and when; None if the object does not exist."""
    if identity not in objects:
        return None
    row, path, chain = objects[identity]
    if not table.endpoint.tree:
        return (chain,)
    places = table.endpoint.type_of(row[1]).places
    return chain, sites.locate(path, True), *(row[places[name]] for name in _TIMES)


def _references(library: Library) -> Iterator[tuple[ObjectKey, ObjectKey]]:
    """All relations, each as the object that has it and the one it points to."""
    for name, table in library.tables.items():
        for row in table.rows:
            for value in values_of(table.endpoint.type_of(row[1]), row):
                for other in targets_of(value.column, value.stored):
                    yield (name, row[0]), other

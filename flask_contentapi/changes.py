"""Which answers a change of the content may have changed, by their tags."""

from __future__ import annotations

from collections.abc import Iterator, Set

from flask_contentapi.library import Library, Table, relations
from flask_contentapi.query import Row
from flask_contentapi.records import Place
from flask_contentapi.signals import EVERYTHING

__all__ = ["Object", "changed_tags", "tags_of"]

#: How many objects are named at most; where more have changed, everything has.
MOST_NAMED = 1000
#: The columns that say when a page is visible.
_TIMES = ("live", "go_live_at", "expires_at")

#: An object: its endpoint and id.
Object = tuple[str, int]


def changed_tags(before: Library, after: Library) -> frozenset[str]:
    """The tags of the answers that may be others after a change.

    :param before: the content before it.
    :param after: the content after it.
    """
    if (
        before.locales != after.locales
        or before.site_records != after.site_records
        or before.collections != after.collections
    ):
        return frozenset([EVERYTHING])
    changed: set[Object] = set()
    turned: set[Object] = set()
    tags = set()
    for name, table in after.tables.items():
        old, new = _objects(before.tables[name]), _objects(table)
        different = {i for i in old.keys() | new.keys() if old.get(i) != new.get(i)}
        changed |= {(name, i) for i in different}
        turned |= {(name, i) for i in different if _shown(table, old, i) != _shown(table, new, i)}
        if list(old) != list(new):
            tags.add(name)
    if turned:
        changed |= {own for own, other in _references(after) if other in turned}
    return frozenset(tags) | tags_of(changed)


def tags_of(changed: Set[Object]) -> frozenset[str]:
    """The tags of the answers that some objects are in, or could be."""
    if len(changed) > MOST_NAMED:
        return frozenset([EVERYTHING])
    named = (f"{name}-{identity}" for name, identity in changed)
    return frozenset((*named, *(name for name, _ in changed)))


#: The row of an object with its path of slugs and the restriction that holds for it.
Placed = tuple[Row, str, int | None]


def _objects(table: Table) -> dict[int, Placed]:
    paths = table.url_paths or [""] * len(table.rows)
    placed = zip(table.rows, paths, table.access, strict=True)
    return {row[0]: (row, path, access) for row, path, access in placed}


def _shown(table: Table, objects: dict[int, Placed], identity: int) -> object:
    """What decides whether an object is visible; None where there is none."""
    if identity not in objects:
        return None
    row, _, access = objects[identity]
    places = table.endpoint.type_of(row[1]).places
    return access, *(row[places[name]] for name in _TIMES if table.endpoint.tree)


def _references(library: Library) -> Iterator[tuple[Object, Object]]:
    """All relations: the object that has it, and the one it points to."""
    for name, table in library.tables.items():
        place = Place(name, -1, name)
        for row in table.rows:
            for _, _, target, identity in relations(place, table.endpoint.type_of(row[1]), row):
                yield (name, row[0]), (target, identity)

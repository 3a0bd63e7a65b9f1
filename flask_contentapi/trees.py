"""The tree of pages, which determines their order, paths and restrictions."""

from __future__ import annotations

from collections import defaultdict

from flask_contentapi.addresses import quote_slug
from flask_contentapi.kinds import LONGEST_PATH
from flask_contentapi.query import Row
from flask_contentapi.records import RecordReader
from flask_contentapi.tables import (
    DEEPEST,
    Restriction,
    Table,
    place_of,
    rows_of,
    too_deep_message,
    too_long_message,
)

__all__ = ["build_tree"]


def build_tree(table: Table, reader: RecordReader) -> dict[int, Restriction]:
    """Puts pages into tree order, fills in paths, ends and access; returns the restrictions."""
    columns = table.endpoint.base.places
    slug, restriction = columns["slug"], columns["restriction"]
    children = _siblings(table, reader)
    total = len(table.rows)
    table.rows = []
    restrictions: dict[int, Restriction] = {}
    parents: list[int] = []  # for each page the index of its parent, -1 for root pages
    waiting = [(row, "/", None, -1, 1) for row in reversed(children.pop(None, []))]
    while waiting:
        row, path, access, parent, level = waiting.pop()
        if row[restriction]:
            restrictions[row[0]] = Restriction(access, row[restriction])
            access = row[0]
        if level == DEEPEST + 1:
            reader.note(place_of(table, row), "parent", too_deep_message(level))
        if level <= DEEPEST and len(path) <= LONGEST_PATH:
            path = f"{path}{quote_slug(row[slug])}/"
            if len(path) > LONGEST_PATH:
                reader.note(place_of(table, row), "slug", too_long_message())
        index = len(table.rows)
        below = reversed(children.pop(row[0], []))
        waiting += [(child, path, access, index, level + 1) for child in below]
        table.rows.append(row)
        table.url_paths.append(path)
        table.access.append(access)
        parents.append(parent)
    table.ends = _ends(parents)
    if len(table.rows) < total:
        for row in (row for siblings in children.values() for row in siblings):
            reader.note(place_of(table, row), "parent", "the pages above it form a circle")
    return restrictions


def _siblings(table: Table, reader: RecordReader) -> defaultdict[int | None, list[Row]]:
    """The pages by parent, in the order of their records."""
    columns = table.endpoint.base.places
    parent, slug = columns["parent"], columns["slug"]
    present = {None, *(row[0] for row in table.rows)}
    known = present | reader.refused[table.endpoint.name].keys()
    for row in rows_of(table, reader):
        if row[parent] not in known:
            reader.note(place_of(table, row), "parent", f"there is no page {row[parent]}")
    slugs = set()
    children: defaultdict[int | None, list[Row]] = defaultdict(list)
    for row in table.rows:
        if (row[parent], row[slug]) in slugs:
            reader.note(
                place_of(table, row), "slug", f"a sibling has the slug {row[slug]!r} already"
            )
        slugs.add((row[parent], row[slug]))
        children[row[parent] if row[parent] in present else None].append(row)
    return children


def _ends(parents: list[int]) -> list[int]:
    """For each page the index after its last descendant, given the indexes of the parents."""
    ends = list(range(1, len(parents) + 1))
    for index in range(len(parents) - 1, -1, -1):
        if parents[index] >= 0 and ends[parents[index]] < ends[index]:
            ends[parents[index]] = ends[index]
    return ends

"""The whole content, read and checked in the same way for every backend.

Rows are in default order. With them is what follows from the tree: the path of slugs, the end of
the branch, and the restriction in force.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from itertools import count
from typing import Any

from flask_contentapi.errors import ContentError, Problem
from flask_contentapi.hints import suggest
from flask_contentapi.homes import find_sites
from flask_contentapi.media_collections import (
    nearest_restrictions,
    read_collections,
    restrictions_of,
)
from flask_contentapi.progress import watched
from flask_contentapi.query import Row
from flask_contentapi.records import Place, RecordReader, check_name, write_record
from flask_contentapi.registry import SECTIONS, Registry
from flask_contentapi.relations import targets_of, values_of
from flask_contentapi.sites import Sites
from flask_contentapi.tables import Restriction, Restrictions, Table, place_of
from flask_contentapi.trees import build_tree
from flask_contentapi.types import Endpoint

__all__ = [
    "Library",
    "assemble_library",
    "check_objects",
    "not_a_list_message",
    "read_code",
    "read_library",
    "require_mapping",
]

Content = Mapping[str, Iterable[Any]]


@dataclass(slots=True)
class Library:
    """The whole content.

    :param locales: the codes of the languages that the content declares; pages without a language
        have the first. Empty: it declares none.
    :param sites: all sites.
    :param tables: the objects by endpoint.
    :param restrictions: all restrictions.
    :param site_records: the sites as records.
    :param collections: the collections as records, by id.
    """

    locales: tuple[str, ...]
    sites: Sites
    tables: dict[str, Table]
    restrictions: Restrictions
    site_records: list[dict[str, Any]]
    collections: dict[int, dict[str, Any]]

    def dump(self) -> Iterator[tuple[str, Any]]:
        """The content as records, each with its section."""
        yield from (("locales", locale) for locale in self.locales)
        yield from (("sites", record) for record in self.site_records)
        yield from (("collections", record) for record in self.collections.values())
        for name, table in self.tables.items():
            for row in table.rows:
                yield name, write_record(table.endpoint, row, table.extras.get(row[0]))

    def check(self) -> Iterator[Problem]:
        """Likely mistakes in content that is served: undeclared types and dangling relations."""
        ids = {name: {row[0] for row in table.rows} for name, table in self.tables.items()}
        objects = (
            (place_of(table, row), table.endpoint, row)
            for table in self.tables.values()
            for row in table.rows
        )
        return check_objects(objects, ids)


def check_objects(
    objects: Iterable[tuple[Place, Endpoint, Row]], ids: Mapping[str, Collection[int]]
) -> Iterator[Problem]:
    """Likely mistakes in objects that are served: undeclared types and dangling relations.

    :param objects: for each its place, its endpoint, and the columns of its type.
    :param ids: the ids of all objects, by endpoint.
    """
    total = sum(map(len, ids.values()))
    for place, endpoint, row in watched(objects, "checking", total):
        if row[1] not in endpoint.types:
            yield place.problem("type", _undeclared_message(row[1], endpoint))
        for column, stored, children in values_of(endpoint.type_of(row[1]), row):
            for target, identity in targets_of(column, stored):
                if identity not in ids[target]:
                    inner = place.child(*children) if children else place
                    message = f"there is no object {identity} in {target}"
                    yield inner.problem(column.name, message)


def _undeclared_message(label: str, endpoint: Endpoint) -> str:
    hint = suggest(label, endpoint.types)
    return f"{label!r} is not declared.{hint}" if hint else f"{label!r} is not declared"


#: The columns that determine places in the tree, restrictions and languages.
STRUCTURAL = frozenset(
    ("id", "type", "parent", "slug", "restriction", "locale", "translation_key", "collection")
)


def read_library(
    content: Content, registry: Registry, *, outline: bool = False, logs: bool = True
) -> Library:
    """Reads and checks the whole content.

    :param content: a list of records for each section (``locales``, ``sites``, ``collections``
        and each endpoint); instances of the declared classes may stand among the records.
    :param outline: whether to keep only the columns of each endpoint's base, with None for all
        but the :data:`STRUCTURAL` ones; for content that is not to be held in memory.
    :param logs: whether undeclared types are logged.
    :raises ContentError: with every problem found.
    """
    require_mapping(content)
    reader = RecordReader(registry, logs=logs)
    content = _sections(content, registry, reader)
    collections = read_collections(content.get("collections", ()), reader)
    tables = {
        name: _read_table(content.get(name, ()), endpoint, reader, outline)
        for name, endpoint in registry.endpoints.items()
    }
    locales = _read_locales(content.get("locales", ()), tables["pages"], reader)
    sites = [*map(reader.read_site, count(), content.get("sites", ()))]
    return assemble_library(tables, locales, sites, collections, reader)


def require_mapping(content: Any) -> None:
    """Refuses content that has no sections.

    :raises ContentError: if it is no mapping.
    """
    if not isinstance(content, Mapping):
        why = "the content must be a mapping with a list for each section, as {'pages': [...]}"
        raise ContentError([Problem("", "", why)])


def not_a_list_message(section: str) -> str:
    """The message about a section that is no list."""
    if section == "locales":
        return 'must be a list of the codes of languages, as ["en", "fr"]'
    return "must be a list of records"


def assemble_library(
    tables: dict[str, Table],
    locales: tuple[str, ...],
    sites: Sequence[dict[str, Any] | None],
    collections: dict[int, dict[str, Any]],
    reader: RecordReader,
) -> Library:
    """Derives what follows from all records together, and checks them against each other.

    :param tables: the objects by endpoint, with their rows and extras only; siblings in order.
    :param locales: the codes of all languages.
    :param sites: the sites as records with all keys; None for those with a mistake.
    :param collections: the collections as records with all keys, by id.
    :param reader: has the problems so far.
    :raises ContentError: with every problem found.
    """
    page_restrictions: dict[int, Restriction] = {}
    for table in tables.values():
        if table.endpoint.tree:
            page_restrictions = build_tree(table, reader)
        else:
            table.rows.sort(key=lambda row: row[0])
            table.access = nearest_restrictions(table, collections, reader)
    found = find_sites(sites, tables["pages"], reader)
    if reader.problems:
        raise ContentError(reader.problems)
    restrictions = Restrictions(page_restrictions, restrictions_of(collections))
    return Library(locales, found, tables, restrictions, [*filter(None, sites)], collections)


def _sections(content: Content, registry: Registry, reader: RecordReader) -> Content:
    """The sections that can be read; the others are noted as problems."""
    known = (*SECTIONS, *registry.endpoints)
    readable = {}
    for name, records in content.items():
        place = Place(str(name), -1, str(name))
        if name not in known:
            hint = suggest(str(name), known) or f" There are {', '.join(known)}."
            reader.note(place, "", f"there is no such section.{hint}")
        elif isinstance(records, str | Mapping) or not isinstance(records, Iterable):
            reader.note(place, "", not_a_list_message(name))
        else:
            readable[name] = records
    return readable


def _read_table(
    records: Iterable[Any], endpoint: Endpoint, reader: RecordReader, outline: bool
) -> Table:
    """The objects of an endpoint, in the order of their records."""
    table = Table(endpoint)
    seen = set()
    kept = [name in STRUCTURAL for name in endpoint.base.column_names]
    total = len(records) if isinstance(records, Sized) else None
    for index, record in enumerate(watched(records, f"reading {endpoint.name}", total)):
        entry = reader.read_entry(endpoint.name, index, record)
        if entry is None:
            continue
        row, extras = entry
        if row[0] in seen:
            reader.note(place_of(table, row, index), "id", "another record has this id already")
        seen.add(row[0])
        if outline:
            row = tuple([value if keep else None for value, keep in zip(row, kept, strict=False)])
        elif extras:
            table.extras[row[0]] = extras
        table.rows.append(row)
    return table


def _read_locales(codes: Iterable[Any], pages: Table, reader: RecordReader) -> tuple[str, ...]:
    """The declared languages; the first becomes that of pages that name none.

    If there are none, pages may be in any language. These are not collected: what hidden pages are
    in must not become known.
    """
    given = []
    for index, code in enumerate(codes):
        try:
            given.append(read_code(code))
        except ValueError as error:
            reader.note(Place("locales", index, f"locales[{index}]"), "", str(error))
    locales = tuple(dict.fromkeys(given))
    column = pages.endpoint.base.places["locale"]
    for index, row in enumerate(pages.rows if locales else ()):
        if row[column] is None:
            pages.rows[index] = (*row[:column], locales[0], *row[column + 1 :])
        elif row[column] not in locales:
            known = ", ".join(locales)
            reader.note(place_of(pages, row), "locale", f"{row[column]!r} is none of {known}")
    return locales


def read_code(code: Any) -> str:
    """Reads the code of a language.

    :raises ValueError: if it is not one.
    """
    if not isinstance(code, str) or not code:
        raise ValueError("must be a code, as en")
    return check_name(code)

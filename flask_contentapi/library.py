"""The whole content, read and checked, the same for every backend.

Rows stand in default order, and beside them what follows from the tree: the path of slugs, the
end of the branch, and the restriction that holds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

from flask_contentapi.addresses import quote_slug
from flask_contentapi.errors import ContentError, Problem, suggest
from flask_contentapi.query import Row
from flask_contentapi.records import Place, RecordReader, check_name, write_record
from flask_contentapi.registry import SECTIONS, Endpoint, Registry
from flask_contentapi.relations import values_of
from flask_contentapi.sites import Home, Site, Sites

__all__ = [
    "Library",
    "Restriction",
    "Restrictions",
    "Table",
    "read_library",
    "revise_library",
    "undeclared",
]

Content = Mapping[str, Iterable[Any]]


class Restriction(NamedTuple):
    """What keeps visitors from a page or a collection and from all below it.

    :param within: the restricted one above it whose restriction holds as well, or None.
    :param rule: as the record has it, ``{"type": "login" | "password" | "groups", ...}``.
    """

    within: int | None
    rule: Mapping[str, Any]


class Restrictions(NamedTuple):
    """All restrictions, by the id of the page or the collection that has them."""

    pages: Mapping[int, Restriction]
    collections: Mapping[int, Restriction]


@dataclass(slots=True)
class Table:
    """The objects of an endpoint in default order; the lists run in parallel.

    :param endpoint: the endpoint.
    :param rows: for each object the columns of its type, :attr:`ObjectType.column_names`.
    :param access: for each the nearest restricted page (itself or above it) or collection.
    :param url_paths: for each page the slugs down to it, percent-encoded, as ``/home/log/``.
    :param ends: for each page the place after its last descendant.
    :param extras: what records of undeclared types have besides, by id.
    """

    endpoint: Endpoint
    rows: list[Row] = field(default_factory=list)
    access: list[int | None] = field(default_factory=list)
    url_paths: list[str] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    extras: dict[int, dict[str, Any]] = field(default_factory=dict)

    def copy(self) -> Table:
        """The same objects, to be changed and assembled anew."""
        return Table(self.endpoint, list(self.rows), extras=dict(self.extras))

    def drop(self, identity: int) -> None:
        """Leaves an object out, if it is there."""
        self.rows = [row for row in self.rows if row[0] != identity]
        self.extras.pop(identity, None)

    def put(self, row: Row, extras: dict[str, Any]) -> None:
        """Adds an object, or puts it in the place of the one with its id."""
        place = next((n for n, known in enumerate(self.rows) if known[0] == row[0]), None)
        if place is None:
            self.rows.append(row)
        else:
            self.rows[place] = row
        self.extras.pop(row[0], None)
        if extras:
            self.extras[row[0]] = extras


@dataclass(slots=True)
class Library:
    """The whole content.

    :param locales: the codes of all languages; the first is that of pages which name none.
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
        """What is served but hardly meant: undeclared types, relations to nothing."""
        ids = {name: {row[0] for row in table.rows} for name, table in self.tables.items()}
        for table in self.tables.values():
            for row in table.rows:
                place = _place(table, row)
                if row[1] not in table.endpoint.types:
                    yield place.problem("type", undeclared(row[1], table.endpoint))
                declared = table.endpoint.type_of(row[1])
                for column, stored, children in values_of(declared, row):
                    target = column.target and column.target.served_at.name
                    if target and stored is not None and stored not in ids[target]:
                        inner = place.child(*children) if children else place
                        message = f"there is no object {stored} in {target}"
                        yield inner.problem(column.name, message)


def undeclared(label: str, endpoint: Endpoint) -> str:
    """What is wrong with an object whose type is not declared."""
    hint = suggest(label, endpoint.types)
    return f"{label!r} is not declared.{hint}" if hint else f"{label!r} is not declared"


#: The columns that places in the tree, restrictions and languages follow from.
STRUCTURAL = frozenset(
    ("id", "type", "parent", "slug", "restriction", "locale", "translation_key", "collection")
)


def read_library(
    content: Content, registry: Registry, *, outline: bool = False, logs: bool = True
) -> Library:
    """Reads and checks the whole content.

    :param content: a list of records for each section (``locales``, ``sites``, ``collections``
        and each endpoint); instances of the declared classes may stand among the records.
    :param outline: whether to keep of each object only :data:`STRUCTURAL` columns, None for the
        others, and those of its endpoint's base, for content that is not to be kept in memory.
    :param logs: whether types that are not declared are logged.
    :raises ContentError: with every problem found.
    """
    reader = RecordReader(registry, logs=logs)
    content = _sections(content, registry, reader)
    collections = _read_collections(content.get("collections", ()), reader)
    tables = {
        name: _read_table(content.get(name, ()), endpoint, reader, outline)
        for name, endpoint in registry.endpoints.items()
    }
    locales = _read_locales(content.get("locales", ()), tables["pages"], reader)
    sites = [*map(reader.site, count(), content.get("sites", ()))]
    return _assemble(tables, locales, sites, collections, reader)


def revise_library(
    library: Library,
    registry: Registry,
    put: Iterable[tuple[str, Any]] = (),
    delete: Iterable[tuple[str, int]] = (),
) -> Library:
    """The content with some objects changed; what was read before is not read again.

    :param put: records to add, or to put in the place of those with the same id, each with its
        endpoint. A new page becomes the last of its siblings.
    :param delete: endpoint and id of records to leave out.
    :raises ContentError: with every problem found; pages below a deleted one are one.
    """
    reader = RecordReader(registry)
    tables = {name: table.copy() for name, table in library.tables.items()}
    for name, identity in delete:
        tables[name].drop(identity)
    for index, (name, record) in enumerate(put):
        entry = reader.entry(name, index, record)
        if entry is not None:
            tables[name].put(*entry)
    _check_child_ids(tables.values(), reader)
    locales = _read_locales(library.locales, tables["pages"], reader)
    return _assemble(tables, locales, library.site_records, library.collections, reader)


def _assemble(
    tables: dict[str, Table],
    locales: tuple[str, ...],
    sites: Sequence[dict[str, Any] | None],
    collections: dict[int, dict[str, Any]],
    reader: RecordReader,
) -> Library:
    """Finds what follows from the records together, and what is wrong with them together."""
    page_restrictions: dict[int, Restriction] = {}
    for table in tables.values():
        if table.endpoint.tree:
            page_restrictions = _grow(table, reader)
        else:
            table.rows.sort(key=lambda row: row[0])
            table.access = _shelve(table, collections, reader)
    found = _find_sites(sites, tables["pages"], reader)
    if reader.problems:
        raise ContentError(reader.problems)
    restrictions = Restrictions(page_restrictions, _restrictions(collections))
    return Library(locales, found, tables, restrictions, [*filter(None, sites)], collections)


def _sections(content: Content, registry: Registry, reader: RecordReader) -> Content:
    """The sections that can be read; what else there is, is noted."""
    known = (*SECTIONS, *registry.endpoints)
    readable = {}
    for name, records in content.items():
        place = Place(str(name), -1, str(name))
        if name not in known:
            hint = suggest(str(name), known) or f" There are {', '.join(known)}."
            reader.note(place, "", f"there is no such section.{hint}")
        elif isinstance(records, str | Mapping) or not isinstance(records, Iterable):
            reader.note(place, "", "must be a list of records")
        else:
            readable[name] = records
    return readable


def _read_table(
    records: Iterable[Any], endpoint: Endpoint, reader: RecordReader, outline: bool
) -> Table:
    """The objects of an endpoint, as their records stand."""
    table = Table(endpoint)
    seen = set()
    kept = [name in STRUCTURAL for name in endpoint.base.column_names]
    for index, record in enumerate(records):
        entry = reader.entry(endpoint.name, index, record)
        if entry is None:
            continue
        row, extras = entry
        if row[0] in seen:
            reader.note(_place(table, row, index), "id", "another record has this id already")
        seen.add(row[0])
        if outline:
            row = tuple([value if keep else None for value, keep in zip(row, kept, strict=False)])
        elif extras:
            table.extras[row[0]] = extras
        table.rows.append(row)
    return table


def _check_child_ids(tables: Iterable[Table], reader: RecordReader) -> None:
    """Notes child objects that have the id of another one."""
    seen = set()
    for table in tables:
        for row in table.rows:
            columns = table.endpoint.type_of(row[1]).columns.values()
            for column, value in zip(columns, (row[0], *row[2:]), strict=True):
                for child in value if column.child else ():
                    key = (column.child and column.child.label, child[0])
                    if key in seen:
                        message = f"the id {child[0]} stands in another object already"
                        reader.note(_place(table, row), column.name, message)
                    seen.add(key)


def _place(table: Table, row: Row, index: int = -1) -> Place:
    return Place(table.endpoint.name, index, f"{table.endpoint.name} {row[0]}")


def _read_locales(codes: Iterable[Any], pages: Table, reader: RecordReader) -> tuple[str, ...]:
    """The languages; those of the pages where none are given. Gives each page one."""
    given = []
    for index, code in enumerate(codes):
        try:
            given.append(_read_code(code))
        except ValueError as error:
            reader.note(Place("locales", index, f"locales[{index}]"), "", str(error))
    column = pages.endpoint.base.places["locale"]
    used = dict.fromkeys(row[column] for row in pages.rows if row[column] is not None)
    locales = tuple(dict.fromkeys(given or used))
    for place, row in enumerate(pages.rows):
        if row[column] is None and locales:
            pages.rows[place] = (*row[:column], locales[0], *row[column + 1 :])
        elif row[column] is not None and (why := _unfit_locale(row[column], locales)):
            reader.note(_place(pages, row), "locale", why)
    return locales


def _unfit_locale(code: str, locales: Sequence[str]) -> str:
    """Why a page cannot have a language; "" if it can."""
    if code not in locales:
        return f"{code!r} is none of {', '.join(locales)}"
    try:
        check_name(code)
    except ValueError as error:
        return str(error)
    return ""


def _read_code(code: Any) -> str:
    """The code of a language.

    :raises ValueError: if it is none.
    """
    if not isinstance(code, str) or not code:
        raise ValueError("must be a code, as en")
    return check_name(code)


# Collections.


def _read_collections(records: Iterable[Any], reader: RecordReader) -> dict[int, dict[str, Any]]:
    collections: dict[int, dict[str, Any]] = {}
    for index, record in enumerate(records):
        collection = reader.collection(index, record)
        if collection is None:
            continue
        if collection["id"] in collections:
            place = Place("collections", index, f"collections {collection['id']}")
            reader.note(place, "id", "another record has this id already")
        collections[collection["id"]] = collection
    _check_collections(collections, reader)
    return collections


def _check_collections(collections: dict[int, dict[str, Any]], reader: RecordReader) -> None:
    """Notes parents that are missing, and circles."""
    known = {None, *collections, *reader.refused["collections"]}
    rooted: set[int] = set()
    for identity in collections:
        chain: list[int] = []
        above: int | None = identity
        while above in collections and above not in rooted and above not in chain:
            chain.append(above)
            above = collections[above]["parent"]
        place = Place("collections", -1, f"collections {identity}")
        if above in chain:
            reader.note(place, "parent", "the collections above it form a circle")
        elif above not in known:
            reader.note(place, "parent", f"there is no collection {above}")
        else:
            rooted.update(chain)


def _restrictions(collections: dict[int, dict[str, Any]]) -> dict[int, Restriction]:
    return {
        identity: Restriction(
            _nearest(collections, collection["parent"]), collection["restriction"]
        )
        for identity, collection in collections.items()
        if collection["restriction"]
    }


def _nearest(collections: dict[int, dict[str, Any]], identity: int | None) -> int | None:
    """The nearest restricted collection: the one given or one above it."""
    while identity is not None and not collections[identity]["restriction"]:
        identity = collections[identity]["parent"]
    return identity


def _shelve(
    table: Table, collections: dict[int, dict[str, Any]], reader: RecordReader
) -> list[int | None]:
    """The restriction of each image or document."""
    if not table.endpoint.collections:
        return [None] * len(table.rows)
    column = table.endpoint.base.places["collection"]
    known = {None, *collections, *reader.refused["collections"]}
    for row in _all_rows(table, reader):
        if row[column] not in known:
            reader.note(_place(table, row), "collection", f"there is no collection {row[column]}")
    if reader.problems:
        return []
    nearest = {identity: _nearest(collections, identity) for identity in collections}
    return [nearest.get(row[column]) for row in table.rows]


def _all_rows(table: Table, reader: RecordReader) -> Iterator[Row]:
    """The objects of an endpoint, with those in which something is wrong already."""
    yield from table.rows
    yield from (row for row in reader.refused[table.endpoint.name].values() if row[0] is not None)


# The tree of pages.


def _grow(table: Table, reader: RecordReader) -> dict[int, Restriction]:
    """Puts the pages into tree order and finds what follows from it; gives the restrictions."""
    columns = table.endpoint.base.places
    slug, restriction = columns["slug"], columns["restriction"]
    children = _siblings(table, reader)
    total = len(table.rows)
    table.rows = []
    restrictions: dict[int, Restriction] = {}
    above: list[int] = []  # for each page the place of its parent, -1 for root pages
    waiting = [(row, "/", None, -1) for row in reversed(children.pop(None, []))]
    while waiting:
        row, path, access, parent = waiting.pop()
        if row[restriction]:
            restrictions[row[0]] = Restriction(access, row[restriction])
            access = row[0]
        path = f"{path}{quote_slug(row[slug])}/"
        place = len(table.rows)
        waiting += [(child, path, access, place) for child in reversed(children.pop(row[0], []))]
        table.rows.append(row)
        table.url_paths.append(path)
        table.access.append(access)
        above.append(parent)
    table.ends = _ends(above)
    if len(table.rows) < total:
        for row in (row for siblings in children.values() for row in siblings):
            reader.note(_place(table, row), "parent", "the pages above it form a circle")
    return restrictions


def _siblings(table: Table, reader: RecordReader) -> defaultdict[int | None, list[Row]]:
    """The pages by parent, in the order of their records."""
    columns = table.endpoint.base.places
    parent, slug = columns["parent"], columns["slug"]
    present = {None, *(row[0] for row in table.rows)}
    known = present | reader.refused[table.endpoint.name].keys()
    for row in _all_rows(table, reader):
        if row[parent] not in known:
            reader.note(_place(table, row), "parent", f"there is no page {row[parent]}")
    slugs = set()
    children: defaultdict[int | None, list[Row]] = defaultdict(list)
    for row in table.rows:
        if (row[parent], row[slug]) in slugs:
            reader.note(_place(table, row), "slug", f"a sibling has the slug {row[slug]!r} already")
        slugs.add((row[parent], row[slug]))
        children[row[parent] if row[parent] in present else None].append(row)
    return children


def _ends(above: list[int]) -> list[int]:
    """For each page the place after its last descendant, from the places of the parents."""
    ends = list(range(1, len(above) + 1))
    for place in range(len(above) - 1, -1, -1):
        if above[place] >= 0 and ends[above[place]] < ends[place]:
            ends[above[place]] = ends[place]
    return ends


# Sites.


def _find_sites(
    records: Sequence[dict[str, Any] | None], pages: Table, reader: RecordReader
) -> Sites:
    homes, refused = _Homes(pages), reader.refused["pages"]
    sites: dict[tuple[str, int], Site] = {}
    for index, site in enumerate(records):
        if site is None:
            continue
        hostname, port = site["hostname"], site["port"]
        place = Place("sites", index, f"sites {hostname}:{port}")
        if site["root_page"] not in homes and site["root_page"] not in refused:
            reader.note(place, "root_page", f"there is no page {site['root_page']}")
        if (hostname, port) in sites:
            reader.note(place, "hostname", "another site has this host name and port already")
        if site["is_default"] and any(other.is_default for other in sites.values()):
            reader.note(place, "is_default", "another site is the default already")
        trees = homes.of(site["root_page"])
        sites[hostname, port] = Site(hostname, port, site["site_name"], site["is_default"], trees)
    first_root = homes.of(pages.rows[0][0]) if pages.rows else ()
    return Sites(sites.values(), first_root)


class _Homes:
    """Finds home pages with their translations."""

    def __init__(self, pages: Table) -> None:
        columns = pages.endpoint.base.places
        self._locale, self._key = columns["locale"], columns["translation_key"]
        self._pages = pages
        self._places = {row[0]: place for place, row in enumerate(pages.rows)}

    def __contains__(self, page: int) -> bool:
        return page in self._places

    def of(self, page: int) -> tuple[Home, ...]:
        """The page itself, then its translations in tree order; empty if there is no page."""
        if page not in self:
            return ()
        key = self._pages.rows[self._places[page]][self._key]
        found = [self._home(self._places[page])]
        for place, row in enumerate(self._pages.rows if key is not None else ()):
            if row[self._key] == key and row[0] != page:
                found.append(self._home(place))
        return tuple(found)

    def _home(self, place: int) -> Home:
        row = self._pages.rows[place]
        return Home(row[0], row[self._locale], self._pages.url_paths[place])

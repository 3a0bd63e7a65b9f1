"""The objects of an endpoint in the form for backends, with paths, ends and restrictions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from itertools import count
from operator import itemgetter
from typing import Any, NamedTuple

from flask_contentapi.declarations import Endpoint, targets_of
from flask_contentapi.errors import ContentError, Problem, suggest
from flask_contentapi.kinds import LONGEST_PATH
from flask_contentapi.logs import watched
from flask_contentapi.query import ObjectKey, Row
from flask_contentapi.records import Place, RecordReader, check_name, write_record
from flask_contentapi.registry import SECTIONS, Registry
from flask_contentapi.signals import EVERYTHING, tag_of, tags_of
from flask_contentapi.sites import Home, Site, Sites, quote_slug

#: The number of levels that a tree of pages or collections has at most (contract, Content records).
DEEPEST = 400

#: The message about a page or a collection that is too deep.
TOO_DEEP = f"is on level {DEEPEST + 1} of the tree, which has at most {DEEPEST}; put it further up"
#: The message about a record with the id of another one.
SAME_ID = "another record has this id already"
#: The message about a page whose path is too long.
TOO_LONG = (
    f"makes a path of more than {LONGEST_PATH:,} characters, percent-encoded; shorten it, or "
    "those above it"
)


class Restriction(NamedTuple):
    """A restriction on a page or a collection and everything below it.

    :param within: the nearest restricted one above it, whose restriction applies too, or None.
    :param rule: the rule in the record, ``{"type": "login" | "password" | "groups", ...}``.
    """

    within: int | None
    rule: Mapping[str, Any]


class Restrictions(NamedTuple):
    """All restrictions, by the id of the restricted page or collection."""

    pages: Mapping[int, Restriction]
    collections: Mapping[int, Restriction]


def rules_over(
    known: Mapping[int, Restriction], nearest: int | None
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The restrictions in force below one of several, from there upwards: each id with its rule."""
    while nearest is not None:
        yield nearest, known[nearest].rule
        nearest = known[nearest].within


@dataclass(slots=True)
class Table:
    """The objects of an endpoint in default order, as parallel lists.

    :param endpoint: the endpoint.
    :param rows: for each object the columns of its type, :attr:`ObjectType.column_names`.
    :param access: for each the nearest restricted page (itself or above it) or collection.
    :param url_paths: for each page the slugs down to it, percent-encoded, as ``/home/log/``.
    :param ends: for each page the index after its last descendant.
    :param extras: the extra values in records of undeclared types, by id.
    """

    endpoint: Endpoint
    rows: list[Row] = field(default_factory=list)
    access: list[int | None] = field(default_factory=list)
    url_paths: list[str] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    extras: dict[int, dict[str, Any]] = field(default_factory=dict)


def _place_of(table: Table, row: Row, index: int = -1) -> Place:
    return Place(table.endpoint.name, index, f"{table.endpoint.name} {row[0]}")


def _note_missing(
    table: Table, column: str, there: Iterable[int], what: str, reader: RecordReader
) -> None:
    """Notes objects, including those with problems, that name something that is not there."""
    index, known = table.endpoint.base.places[column], {None, *there}
    refused = reader.refused[table.endpoint.name].values()
    for row in (*table.rows, *(row for row in refused if row[0] is not None)):
        if row[index] not in known:
            reader.note(_place_of(table, row), column, f"there is no {what} {row[index]}")


def same_slug(slug: str, sibling: int) -> str:
    """The message about a page that has the slug of a sibling."""
    return f"a sibling has the slug {slug!r} already: page {sibling}"


def same_path(other: int) -> str:
    """The message about a redirect with the path and the site of another one."""
    return f"another redirect of the site has this path already: redirect {other}"


def misplaced(url_path: str) -> tuple[str, str] | None:
    """What is wrong with the place of a page, its field and a message; None if nothing is. Of pages
    below each other it is only wrong with the first.

    :param url_path: the slugs down to it, as in :class:`Table`.
    """
    level, above = url_path.count("/") - 1, url_path.rindex("/", 0, -1) + 1
    if level == DEEPEST + 1:
        return "parent", TOO_DEEP
    return (
        ("slug", TOO_LONG) if level <= DEEPEST and above <= LONGEST_PATH < len(url_path) else None
    )


def _build_tree(table: Table, reader: RecordReader) -> dict[int, Restriction]:
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
            reader.note(_place_of(table, row), "parent", TOO_DEEP)
        if level <= DEEPEST and len(path) <= LONGEST_PATH:
            path = f"{path}{quote_slug(row[slug])}/"
            if len(path) > LONGEST_PATH:
                reader.note(_place_of(table, row), "slug", TOO_LONG)
        index = len(table.rows)
        below = reversed(children.pop(row[0], []))
        waiting += [(child, path, access, index, level + 1) for child in below]
        table.rows.append(row)
        table.url_paths.append(path)
        table.access.append(access)
        parents.append(parent)
    table.ends = [*range(1, len(parents) + 1)]
    for index in range(len(parents) - 1, -1, -1):
        if (above := parents[index]) >= 0:
            table.ends[above] = max(table.ends[above], table.ends[index])
    if len(table.rows) < total:
        for row in (row for siblings in children.values() for row in siblings):
            reader.note(_place_of(table, row), "parent", "the pages above it form a circle")
    return restrictions


def _siblings(table: Table, reader: RecordReader) -> defaultdict[int | None, list[Row]]:
    """The pages by parent, in the order of their records."""
    columns = table.endpoint.base.places
    parent, slug = columns["parent"], columns["slug"]
    present = {None, *(row[0] for row in table.rows)}
    known = present | reader.refused[table.endpoint.name].keys()
    _note_missing(table, "parent", known, "page", reader)
    slugs: dict[tuple[int | None, str], int] = {}
    children: defaultdict[int | None, list[Row]] = defaultdict(list)
    for row in table.rows:
        place = row[parent], row[slug]
        if place in slugs:
            reader.note(_place_of(table, row), "slug", same_slug(row[slug], slugs[place]))
        slugs.setdefault(place, row[0])
        children[row[parent] if row[parent] in present else None].append(row)
    return children


def _find_sites(
    records: Sequence[dict[str, Any] | None], pages: Table, reader: RecordReader
) -> Sites:
    first = pages.rows[0][0] if pages.rows else None
    homes = _homes(pages, {first, *(site["root_page"] for site in records if site is not None)})
    sites: dict[tuple[str, int], Site] = {}
    #: The index of the first site with a host name and a port, and of that which is the default.
    seen: dict[object, int] = {}
    for index, site in enumerate(records):
        if site is None:
            continue
        hostname, port, root = site["hostname"], site["port"], site["root_page"]
        place = Place("sites", index, f"sites {hostname}:{port}")
        if root not in homes and root not in reader.refused["pages"]:
            reader.note(place, "root_page", f"there is no page {root}")
        if (first := seen.setdefault((hostname, port), index)) != index:
            reader.note(
                place, "hostname", "another site has this host name and port already", first
            )
        if site["is_default"] and (first := seen.setdefault("default", index)) != index:
            reader.note(place, "is_default", "another site is the default already", first)
        trees = homes.get(root, ())
        sites[hostname, port] = Site(hostname, port, site["site_name"], site["is_default"], trees)
    return Sites(sites.values(), homes.get(first, ()))


def _homes(pages: Table, wanted: Collection[int | None]) -> dict[int | None, tuple[Home, ...]]:
    locale, key = (pages.endpoint.base.places[name] for name in ("locale", "translation_key"))
    keys = {row[0]: row[key] for row in pages.rows if row[0] in wanted}
    shared = {*keys.values()} - {None}
    found = {
        row[0]: (row[key], Home(row[0], row[locale], path))
        for row, path in zip(pages.rows, pages.url_paths, strict=True)
        if row[0] in keys or row[key] in shared
    }
    return homes_of(keys, found)


def homes_of(
    wanted: Iterable[int], pages: Mapping[int, tuple[str | None, Home]]
) -> dict[int | None, tuple[Home, ...]]:
    """The homes of sites by home page: this page, if it is there, and its translations.

    :param pages: the translation key of each of all these pages, and the page, in tree order.
    """
    homes: dict[int | None, tuple[Home, ...]] = {}
    for page in pages.keys() & wanted:
        key, home = pages[page]
        others = (other for known, other in pages.values() if known == key and key is not None)
        homes[page] = home, *(other for other in others if other.page != page)
    return homes


def _read_collections(records: Iterable[Any], reader: RecordReader) -> dict[int, dict[str, Any]]:
    collections: dict[int, dict[str, Any]] = {}
    seen: dict[int, int] = {}
    for index, record in enumerate(records):
        collection = reader.read_collection(index, record)
        if collection is None:
            continue
        first = seen.setdefault(collection["id"], index)
        if first != index:
            place = Place("collections", index, f"collections {collection['id']}")
            reader.note(place, "id", SAME_ID, first)
        collections[collection["id"]] = collection
    check_collections(collections, reader)
    return collections


def check_collections(collections: Mapping[int, Mapping[str, Any]], reader: RecordReader) -> None:
    """Notes missing parents, cycles, and collections that are too deep in the tree."""
    known = {None, *collections, *reader.refused["collections"]}
    levels: dict[int, int] = {}
    for identity in collections:
        chain: dict[int, None] = {}
        above: Any = identity
        while above in collections and not (above in levels or above in chain):
            chain[above] = None
            above = collections[above]["parent"]
        place = Place("collections", -1, f"collections {identity}")
        if above in chain:
            reader.note(place, "parent", "the collections above it form a circle")
        elif above not in known:
            reader.note(place, "parent", f"there is no collection {above}")
        else:
            for level, inner in enumerate(reversed(chain), levels.get(above, 0) + 1):
                levels[inner] = level
                if level == DEEPEST + 1:
                    deep = place._replace(name=f"collections {inner}")
                    reader.note(deep, "parent", TOO_DEEP)


def nearest_restricted(collections: dict[int, dict[str, Any]], identity: int | None) -> int | None:
    """The nearest restricted collection: the given one or one above it."""
    while identity is not None and not collections[identity]["restriction"]:
        identity = collections[identity]["parent"]
    return identity


def restricted(collections: dict[int, dict[str, Any]]) -> dict[int, Restriction]:
    """The restrictions of collections, which form no circle."""
    return {
        one: Restriction(nearest_restricted(collections, known["parent"]), known["restriction"])
        for one, known in collections.items()
        if known["restriction"]
    }


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
            (_place_of(table, row), table.endpoint, row)
            for table in self.tables.values()
            for row in table.rows
        )
        return check_objects(objects, ids, self.sites)


def check_objects(
    objects: Iterable[tuple[Place, Endpoint, Row]], ids: Mapping[str, Collection[int]], sites: Sites
) -> Iterator[Problem]:
    """Likely mistakes in objects that are served: undeclared types, dangling relations, redirects
    of sites that do not exist, and pages with several translations in one language.

    :param objects: for each its place, its endpoint, and the columns of its type.
    :param ids: the ids of all objects, by endpoint.
    """
    total = sum(map(len, ids.values()))
    names = {"", *sites.aliases}
    translated: dict[tuple[str, str | None], int] = {}
    for place, endpoint, row in watched(objects, "checking", total):
        if row[1] not in endpoint.types:
            message = f"{row[1]!r} is not declared."
            hint = suggest(row[1], endpoint.types)
            yield place.problem("type", f"{message}{hint}" if hint else message.rstrip("."))
        if endpoint.redirects and (name := row[endpoint.base.places["site_name"]]) not in names:
            yield place.problem("site", f"there is no site {name}, or several")
        places = endpoint.base.places
        if endpoint.tree and (key := row[places["translation_key"]]) is not None:
            other = translated.setdefault((key, row[places["locale"]]), row[0])
            if other != row[0]:
                message = f"page {other} has it already, in the same language"
                yield place.problem("translation_key", message)
        for (target, identity), column, children in targets_of(endpoint.type_of(row[1]), row):
            if identity not in ids[target]:
                inner = place.child(*children) if children else place
                message = f"there is no object {identity} in {target}"
                yield inner.problem(column.name, message)


#: The columns that determine places in the tree, restrictions and languages.
STRUCTURAL = frozenset(
    "id type parent slug restriction locale translation_key collection site_name site_path".split()
)


#: What a record is read as: the columns of its type, and the extra values of an undeclared type.
ReadRecord = tuple[Row, dict[str, Any]]
#: Takes in an object: its endpoint, the index of its record, and what it is read as.
Keep = Callable[[str, int, ReadRecord], object]


def read_library(
    content: Content, registry: Registry, *, keep: Keep | None = None, logs: bool = True
) -> Library:
    """Reads and checks the whole content.

    :param content: a list of records for each section (``locales``, ``sites``, ``collections``
        and each endpoint); instances of the declared classes may stand among the records.
    :param keep: takes in each object, for content that is not to be held in memory: the library
        then has only the columns of each endpoint's base, with None for all but the
        :data:`STRUCTURAL` ones.
    :param logs: whether undeclared types are logged.
    :raises ContentError: with every problem found.
    """
    given: Any = content
    if not isinstance(given, Mapping):
        why = "the content must be a mapping with a list for each section, as {'pages': [...]}"
        raise ContentError([Problem("", "", why)])
    reader = RecordReader(registry, logs=logs)
    content = _sections(content, registry, reader)
    collections = _read_collections(content.get("collections", ()), reader)
    tables = {
        name: _read_table(content.get(name, ()), endpoint, reader, keep)
        for name, endpoint in registry.endpoints.items()
    }
    locales = _read_locales(content.get("locales", ()), tables["pages"], reader)
    sites = [*map(reader.read_site, count(), content.get("sites", ()))]
    if "redirects" in tables and tables["redirects"].endpoint.redirects:
        _check_redirects(tables["redirects"], site_names(filter(None, sites)), reader)
    return assemble_library(tables, locales, sites, collections, reader)


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
    :param sites: the sites as records with all keys; None for those with a mistake.
    :param collections: the collections as records with all keys, by id.
    :param reader: has the problems so far.
    :raises ContentError: with every problem found.
    """
    page_restrictions: dict[int, Restriction] = {}
    for table in tables.values():
        if table.endpoint.tree:
            page_restrictions = _build_tree(table, reader)
        else:
            table.rows.sort(key=lambda row: row[0])
        if table.endpoint.collections:
            there = collections.keys() | reader.refused["collections"].keys()
            _note_missing(table, "collection", there, "collection", reader)
    found = reader.accept(_find_sites(sites, tables["pages"], reader))
    # Only now it is certain that collections form no circle.
    nearest = {identity: nearest_restricted(collections, identity) for identity in collections}
    for table in tables.values():
        if table.endpoint.collections:
            place = table.endpoint.base.places["collection"]
            table.access = [nearest.get(row[place]) for row in table.rows]
        elif not table.endpoint.tree:
            table.access = [None] * len(table.rows)
    restrictions = Restrictions(page_restrictions, restricted(collections))
    return Library(locales, found, tables, restrictions, [*filter(None, sites)], collections)


def site_names(records: Iterable[Mapping[str, Any]]) -> Mapping[str, Sequence[str]]:
    """The names of sites, as :attr:`Sites.aliases`."""
    return Sites(Site(record["hostname"], record["port"]) for record in records).aliases


def _check_redirects(
    table: Table, names: Mapping[str, Sequence[str]], reader: RecordReader
) -> None:
    name, path = (table.endpoint.base.places[key] for key in ("site_name", "site_path"))
    seen: dict[tuple[str, ...], int] = {}
    for row in table.rows:
        key = (*names.get(row[name], [row[name]]), row[path][len(row[name]) :])
        if key in seen:
            reader.note(_place_of(table, row), "old_path", same_path(seen[key]))
        seen.setdefault(key, row[0])


def _sections(content: Content, registry: Registry, reader: RecordReader) -> Content:
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
    records: Iterable[Any], endpoint: Endpoint, reader: RecordReader, keep: Keep | None
) -> Table:
    table = Table(endpoint)
    seen: dict[int, int] = {}
    # Of other columns the value behind the last is taken, which is None.
    names = endpoint.base.column_names
    structural = itemgetter(*(n if name in STRUCTURAL else -1 for n, name in enumerate(names)))
    total = len(records) if isinstance(records, Sized) else None
    for index, record in enumerate(watched(records, f"reading {endpoint.name}", total)):
        entry = reader.read_entry(endpoint.name, index, record)
        if entry is None:
            continue
        row, extras = entry
        first = seen.setdefault(row[0], index)
        if first != index:
            place = _place_of(table, row, index)
            reader.note(place, "id", SAME_ID, first)
        if keep is not None:
            keep(endpoint.name, index, entry)
            row = structural((*row, None))
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
            reader.note(_place_of(pages, row), "locale", f"{row[column]!r} is none of {known}")
    return locales


def read_code(code: Any) -> str:
    """Reads the code of a language.

    :raises ValueError: if it is not one.
    """
    if not isinstance(code, str) or not code:
        raise ValueError("must be a code, as en")
    return check_name(code)


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
    for name in after.tables:
        old, new = _states(before, name), _states(after, name)
        if [*old] != [*new]:
            tags.add(tag_of(name))
        for identity in old.keys() | new.keys():
            was, now = old.get(identity), new.get(identity)
            if was != now:
                changed.add((name, identity))
                if was is None or now is None or was[1] != now[1]:
                    visibility_changed.add((name, identity))
    for name, table in after.tables.items() if visibility_changed else ():
        for row in table.rows:
            found = targets_of(table.endpoint.type_of(row[1]), row)
            if any(target in visibility_changed for target, _, _ in found):
                changed.add((name, row[0]))
    named = tags_of(changed)
    return named if EVERYTHING in named else named | tags


def _states(library: Library, endpoint: str) -> dict[int, tuple[object, object]]:
    """By id what each object is, and what determines who sees it, and when."""
    table, sites = library.tables[endpoint], library.sites
    is_tree, places = table.endpoint.tree, table.endpoint.base.places
    known = library.restrictions.pages if is_tree else library.restrictions.collections
    rules = {id: [rule for _, rule in rules_over(known, id)] for id in (None, *known)}
    found: dict[int, tuple[object, object]] = {}
    paths = table.url_paths or [""] * len(table.rows)
    for row, path, access in zip(table.rows, paths, table.access, strict=True):
        place = (sites.locate(path, True), *(row[places[n]] for n in _TIMES)) if is_tree else ()
        found[row[0]] = (row, path), (rules[access], *place)
    return found

"""What a process caches between requests: sites, languages, restrictions and totals.

It is valid for one version of the content. The stamp that every statement returns shows whether
the content still has that version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache
from operator import itemgetter
from typing import Any, Generic, NamedTuple, TypeVar

import peewee
from peewee import fn

from flask_contentapi.cache import BoundedCache
from flask_contentapi.content import (
    Restriction,
    Restrictions,
    homes_of,
    nearest_restricted,
    restricted,
)
from flask_contentapi.query import Viewer
from flask_contentapi.sites import Home, Site, Sites
from flask_contentapi_peewee.columns import ALWAYS, NEVER, OPEN, any_of, end, microseconds
from flask_contentapi_peewee.tables import StoredTable, Tables

T = TypeVar("T")
#: How many totals are cached.
TOTALS_CACHE_SIZE = 4096


class Period(NamedTuple):
    """A period in which no page appears or expires, in microseconds."""

    since: int
    until: int


#: The path of each page that a query names, or None if it may not be seen; and how many objects
#: match.
Counted = tuple[tuple[str | None, ...], int]


class _Part(Generic[T]):
    """A part of the structure, which is read on first use.

    No thread waits for another one that reads a part, as for :func:`functools.cached_property` up
    to Python 3.11: that one may itself wait for a connection.
    """

    def __init__(self, read: Callable[[Structure], T]) -> None:
        self._read = read

    def __get__(self, structure: Structure, owner: type[Structure]) -> T:
        # Attributes of the instance come first from now on.
        part = vars(structure)[self._read.__name__] = self._read(structure)
        return part


class Structure:
    """The structure of one version of the content; each part is read on first use.

    :ivar paths: returns the paths of the pages of a scope.
    """

    def __init__(self, tables: Tables, database: peewee.Database, stamp: str) -> None:
        self._tables = tables
        self._database = database
        self._period = Period(0, 0)
        self.stamp = stamp
        #: The engine's mark from just before the version was last read.
        self.mark: object = None
        #: The cached counts.
        self.totals: BoundedCache[Counted] = BoundedCache(TOTALS_CACHE_SIZE)
        self._next_changes: BoundedCache[Period] = BoundedCache(TOTALS_CACHE_SIZE)
        self._sizes: dict[str, int] = {}
        self._homes: dict[int, str] = {}
        self.paths = lru_cache(TOTALS_CACHE_SIZE)(self._find_paths)

    @_Part
    def records(self) -> dict[str, list[Any]]:
        """The codes of all languages, and the records of all sites and collections."""
        return self._tables.records(self._database)

    @_Part
    def collections(self) -> dict[int, dict[str, Any]]:
        """The record of each collection."""
        return {one["id"]: one for one in self.records["collections"]}

    @_Part
    def restrictions(self) -> Restrictions:
        """All restrictions."""
        return Restrictions(self._page_restrictions(), restricted(self.collections))

    def size(self, endpoint: str) -> int:
        """The approximate number of objects of an endpoint."""
        if endpoint not in self._sizes:
            base = self._tables.endpoints[endpoint].base
            ((self._sizes[endpoint],),) = self._all(base.select(fn.COUNT(base["id"])))
        return self._sizes[endpoint]

    # Sites.

    @_Part
    def sites(self) -> Sites:
        """All sites."""
        records = self.records["sites"]
        homes = self._read_homes({record["root_page"] for record in records})
        sites = [
            Site(hostname, port, name, default, homes.get(root, ()))
            for hostname, port, name, root, default in (record.values() for record in records)
        ]
        if sites:
            return Sites(sites, ())
        query = self._pages.select("id").where(self._pages["parent"].is_null())
        found = self._all(query.order_by(self._pages["path_"]).limit(1))
        homes = self._read_homes({page for (page,) in found})
        return Sites([], next(iter(homes.values()), ()))

    def _read_homes(self, roots: set[int]) -> dict[int | None, tuple[Home, ...]]:
        columns, key = [self._pages[name] for name in _HOME_COLUMNS], self._pages["translation_key"]
        named = self._pages["id"].in_(roots)
        keys = {found for (found,) in self._all(self._pages.select(key).where(named))}
        same = [self._tables.engine.compare(key, "=", found) for found in keys - {None}]
        query = self._pages.select(*columns).where(any_of([named, *same]))
        # With ORDER BY the database would walk through all pages.
        rows = sorted(self._all(query), key=itemgetter(_HOME_COLUMNS.index("path_")))
        self._homes = {row[0]: row[4] for row in rows}
        return homes_of(roots, {row[0]: (row[3], Home(*row[:3])) for row in rows})

    def _all(self, query: Any) -> list[Any]:
        return self._tables.all(query, self._database)

    def _find_paths(self, scope: tuple[int, ...] | None) -> tuple[str, ...] | None:
        if scope is None:
            return None
        # Reading the sites reads the paths of all home pages; others are asked for in tests alone.
        known = self._homes if self.sites else {}
        if not known.keys() >= {*scope}:
            query = self._pages.select("id", "path_")
            known = dict(self._all(query.where(self._pages["id"].in_(scope))))
        return tuple([known[page] for page in scope if page in known])

    @property
    def _pages(self) -> StoredTable:
        return self._tables.endpoints["pages"].base

    # Restrictions.

    def _page_restrictions(self) -> Mapping[int, Restriction]:
        above = self._pages.model.alias()
        access = above.select(getattr(above, self._pages["access_"].name))
        within = access.where(above.id == self._pages["parent"])
        # If no page is restricted, the planner would not use the index for an equality.
        query = self._pages.select("id", "restriction", within).where(
            self._pages["is_restricted_"] > False
        )
        return {
            page: Restriction(None if within == OPEN else within, rule)
            for page, rule, within in self._all(query)
        }

    def closed(self, opened: frozenset[int]) -> list[int]:
        """The collections that are closed to a viewer."""
        known, open_ones = self.collections, {None, *opened}
        if not self.restrictions.collections:
            return []
        return [one for one in known if nearest_restricted(known, one) not in open_ones]

    # Time.

    def period(self, moment: datetime) -> Period:
        """The period around a moment in which no page appears or expires; read if not cached."""
        now = microseconds(moment)
        if not self._period.since <= now < self._period.until:
            select = self._pages.model.select
            edges = [self._pages[f"visible_{name}_"] for name in ("from", "until")]
            passed = [select(fn.MAX(edge)).where(edge <= now) for edge in edges]
            to_come = [select(fn.MIN(edge)).where(edge > now) for edge in edges]
            ((*since, start, stop),) = self._all(peewee.Select(columns=[*passed, *to_come]))
            self._period = Period(
                max((int(edge) for edge in since if edge is not None), default=ALWAYS),
                min((int(edge) for edge in (start, stop) if edge is not None), default=NEVER),
            )
        return self._period

    def next_change(self, viewer: Viewer, paths: tuple[str, ...] | None) -> int:
        """When the next page appears to a viewer or expires, in microseconds; read if not cached.

        :param paths: the paths of some pages; only they and the pages below them count. None: all.
        """
        now, key = microseconds(viewer.moment), (viewer.pages, paths)
        known = self._next_changes.get(key)
        if known is not None and known.since <= now < known.until:
            return known.until
        engine, fields = self._tables.engine, self._pages.fields
        start, until = fields["visible_from_"], fields["visible_until_"]
        param = peewee.SQL(engine.database.param, (engine.array([OPEN, *viewer.pages]),))
        seen = engine.among(fields["access_"], param) if viewer.pages else fields["access_"] == OPEN
        seen &= start < until
        if paths is not None:
            path = engine.unindexed(fields["path_"])
            seen &= any_of([(path >= above) & (path < end(above)) for above in paths])
        edges = [
            # The first in the index that is seen: MIN would look at all.
            self._pages.select(edge)
            .where((edge > now) & (edge < NEVER) & seen)
            .order_by(edge)
            .limit(1)
            for edge in (start, until)
        ]
        (found,) = self._all(peewee.Select(columns=edges))
        change = min((int(edge) for edge in found if edge is not None), default=NEVER)
        self._next_changes.put(key, Period(now, change))
        return change


_HOME_COLUMNS = ("id", "locale", "url_path", "translation_key", "path_")

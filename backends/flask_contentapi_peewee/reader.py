"""The content as one request sees it, read from a database."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import peewee

from flask_contentapi.backend import ContentChanged, Reader
from flask_contentapi.content import Restrictions
from flask_contentapi.query import Query, Row, Selected, Viewer
from flask_contentapi.sites import Sites
from flask_contentapi_peewee.columns import EPOCH, NEVER
from flask_contentapi_peewee.documents import Projection, batches
from flask_contentapi_peewee.shapes import (
    NOBODY,
    Shape,
    Values,
    Visibility,
    shape_of,
    shape_of_all,
)
from flask_contentapi_peewee.statements import Statement, Statements
from flask_contentapi_peewee.structure import Counted, Structure
from flask_contentapi_peewee.tables import Tables

#: From this offset on, rows are skipped in an index without being looked up.
DEEP = 100


class DatabaseReader(Reader):
    """Reads one version of the content.

    :param versioned: whether the version changes with the content: not within a transaction that
        changes it.
    """

    #: Raises :exc:`ContentChanged` if a search may have found other content.
    confirm_search: Callable[[], None] | None = None

    def __init__(
        self,
        database: peewee.Database,
        statements: Statements,
        structure: Structure,
        versioned: bool = True,
    ) -> None:
        self._database = database
        self._statements = statements
        self._structure = structure
        #: What reads the objects of each endpoint.
        self.documents = statements.documents
        self._versioned = versioned
        # Whether the stamp was checked since the last result that does not include it: a cached
        # part of the structure, or an empty result.
        self._is_stamp_checked = False
        self._viewer: Viewer | None = None
        self._closed: list[int] = []
        self._views: dict[tuple[int, ...] | None, Visibility] = {}

    @property
    def tables(self) -> Tables:
        """The tables that are read."""
        return self._statements.tables

    @property
    def version(self) -> str | None:
        return self._structure.stamp if self._versioned else None

    @property
    def sites(self) -> Sites:
        return self._structure.sites

    @property
    def locales(self) -> Sequence[str]:
        return self._structure.records["locales"]

    @property
    def restrictions(self) -> Restrictions:
        return self._structure.restrictions

    def next_change(self, viewer: Viewer, scope: Sequence[int] | None = None) -> datetime | None:
        paths = self._structure.paths(None if scope is None else tuple(scope))
        until = self._structure.next_change(viewer, paths)
        return None if until == NEVER else EPOCH + timedelta(microseconds=until)

    def select(self, query: Query) -> Selected:
        selected = self._select(query)
        if query.searches and self.confirm_search is not None:
            self.confirm_search()
        return selected

    def _select(self, query: Query) -> Selected:
        closed, visible = self._view(query.viewer, query.scope)
        values = Values(query.viewer, closed, query)
        total, window, soon = 0, query, False
        is_counted = query.count or bool(query.tree)
        if is_counted:
            named, total = self._counted(query, visible, values)
            if None in named:
                pairs = zip(query.tree, named, strict=True)
                return Selected((), 0, tuple(tree.page for tree, path in pairs if path is None))
            if named:
                values = values._replace(named=named)
        facets: Sequence[Any] = ()
        if query.facets:
            shape = shape_of_all(query, visible, counted=is_counted)
            facets = [self._facet(shape, values, column) for column in query.facets]
        if query.count:
            if query.offset >= total or query.limit == 0:
                return Selected((), total, facets=facets)
            window = _from_nearer_end(query, total)
            soon = self._is_walk(window, total)
            if window is not query:
                values = values._replace(query=window)
        shape = shape_of(
            window,
            visible,
            counted=is_counted,
            deep=query.count and window.offset >= DEEP and not (query.searches or query.random),
            walk=soon and bool(query.order),
            broad=soon and not query.order,
            backward=window is not query,
        )
        statement, projection = self._statements.page(shape)
        found = self._run(statement, values)
        if query.count and not found:
            raise ContentChanged
        if shape.backward:
            found = found[::-1]
        return Selected(projection.rows(found), total, (), facets)

    def _facet(self, shape: Shape, values: Values, column: str) -> list[tuple[Any, int]]:
        statement, field = self._statements.facet(shape, column)
        found = self._run(statement, values)
        counted = [(field.python_value(value), count) for value, count, _ in found]
        # MariaDB sorts by the beginning of long texts alone.
        return sorted(counted, key=lambda pair: (-pair[1], pair[0]))

    def ids(self, query: Query) -> Sequence[int]:
        closed, visible = self._view(query.viewer, query.scope)
        statement, _ = self._statements.page(shape_of(query._replace(columns=()), visible))
        ids, stamp = array("q"), self._structure.stamp
        text, parameters = statement.text, statement.fill(Values(query.viewer, closed, query))
        for identity, stamp in self.tables.engine.rows(self._database, text, parameters):  # noqa: B007
            ids.append(identity)
        self._check_stamp(stamp)
        if query.searches and self.confirm_search is not None:
            self.confirm_search()
        return ids

    def _is_walk(self, query: Query, total: int) -> bool:
        if query.random or query.searches or query.limit is None:
            return False
        reach = (query.offset + query.limit) * self._structure.size(query.endpoint)
        return reach < total**2

    def _counted(self, query: Query, visible: Visibility, values: Values) -> Counted:
        viewer = query.viewer
        key = query.conditions, visible, viewer.pages, viewer.collections, viewer.previewed
        known = self._structure.totals.get(key)
        if known is not None:
            return known
        statement = self._statements.count(shape_of_all(query, visible))
        ((stamp, *named, total),) = self._execute(statement, values)
        self._check_stamp(stamp)
        return self._structure.totals.put(key, (tuple(named), total))

    def fetch(
        self,
        endpoint: str,
        ids: Iterable[int],
        columns: Sequence[str],
        viewer: Viewer,
        scope: Sequence[int] | None = None,
    ) -> Mapping[int, Row]:
        ids = [*ids]
        if not ids:
            return {}
        found, projection = self._fetch(endpoint, ids, tuple(columns), viewer, scope)
        return {row[0]: wanted for row, wanted in zip(found, projection.rows(found), strict=True)}

    def get(
        self,
        endpoint: str,
        id: int,
        columns_of: Callable[[str], Sequence[str]],
        viewer: Viewer,
        scope: Sequence[int] | None = None,
    ) -> tuple[str, Row] | None:
        found, projection = self._fetch(endpoint, [id], None, viewer, scope)
        if not found:
            return None
        label: str = found[0][projection.type]
        return label, projection.reader(label, tuple(columns_of(label)))(found[0])

    def _fetch(
        self,
        endpoint: str,
        ids: Sequence[int],
        columns: tuple[str, ...] | None,
        viewer: Viewer,
        scope: Sequence[int] | None,
    ) -> tuple[list[Any], Projection]:
        closed, visible = self._view(viewer, scope)
        statement, projection = self._statements.fetch(endpoint, visible, columns, len(ids) == 1)
        return self._run(statement, Values(viewer, closed, None, ids)), projection

    def records(self) -> dict[str, list[Any]]:
        """As :meth:`Tables.records`."""
        return self.tables.records(self._database)

    def all(self, query: Any) -> list[tuple[Any, ...]]:
        """The result of a peewee query, as tuples."""
        return self._statements.tables.all(query, self._database)

    def values(self, query: Any) -> list[Any]:
        """The result of a peewee query for a single column."""
        return [value for (value,) in self.all(query)]

    def first(self, query: Any) -> Any:
        """The first of these values; None if there is none."""
        return next(iter(self.values(query)), None)

    def identities(self, endpoint: str, where: Any = None) -> Sequence[int]:
        """The ids of all objects that meet a condition, including hidden ones, in default order."""
        tables = self.tables.endpoints[endpoint]
        query = tables.base.select("id").where(where)
        text, given = query.order_by(tables.default_order).sql()
        return array("q", (i for (i,) in self.tables.engine.rows(self._database, text, given)))

    def objects(
        self, endpoint: str, where: Any = None, ids: Sequence[int] | None = None
    ) -> Iterator[Sequence[Any]]:
        """Objects with all that is stored of them, including hidden ones, in default order.

        :param ids: their ids; None: all that meet the condition.
        :returns: for each the row that :class:`Documents` reads.
        """
        if ids is None:
            ids = self.identities(endpoint, where)
        visible = Visibility(everything=True)
        statement, _ = self._statements.fetch(endpoint, visible, None, False)
        for some in batches(ids):
            found = self._run(statement, Values(NOBODY, ids=some))
            of_id = {row[0]: row for row in found}
            yield from (of_id[identity] for identity in some if identity in of_id)

    def _view(self, viewer: Viewer, scope: Sequence[int] | None) -> tuple[list[int], Visibility]:
        """What all statements for a viewer and a scope have in common: the collections that are
        closed, and what is visible."""
        if viewer is not self._viewer:
            self._viewer, self._closed = viewer, self._structure.closed(viewer.collections)
            anywhere = Visibility(
                None,
                self._structure.period(viewer.moment).since,
                bool(viewer.pages),
                bool(self._closed),
                viewer.previewed[0] if viewer.previewed else "",
                viewer.everything,
            )
            self._views = {None: anywhere}
        key = None if scope is None else tuple(scope)
        if key not in self._views:
            paths = self._structure.paths(key)
            self._views[key] = Visibility(paths, *self._views[None][1:])
        return self._closed, self._views[key]

    # Statements.

    def _run(self, statement: Statement, values: Values) -> list[Any]:
        """The result of a statement whose last column is the stamp, which is verified."""
        found = self._execute(statement, values)
        if found:
            self._check_stamp(found[-1][-1])
        else:
            self._is_stamp_checked = False
        return found

    def confirm_version(self) -> None:
        """Makes sure that the content still has the version that was read.

        :raises ContentChanged: if the content has changed meanwhile.
        """
        if self._is_stamp_checked:
            return
        version = self._statements.version
        mark = self.tables.engine.mark(version.text)
        if mark is not None and mark == self._structure.mark:
            return
        ((stamp,),) = self._execute(version, Values(NOBODY))
        self._check_stamp(str(stamp))
        self._structure.mark = mark

    def _execute(self, statement: Statement, values: Values) -> list[Any]:
        text, parameters = statement.text, statement.fill(values)
        return self.tables.engine.all(self._database, text, parameters)

    def _check_stamp(self, stamp: str) -> None:
        if stamp != self._structure.stamp:
            raise ContentChanged
        self._is_stamp_checked = True


def _from_nearer_end(query: Query, total: int) -> Query:
    left = total - query.offset
    size = left if query.limit is None else min(query.limit, left)
    if query.random or query.searches or left - size >= query.offset:
        return query
    return query._replace(offset=left - size, limit=size)

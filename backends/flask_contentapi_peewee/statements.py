"""Turns queries into SQL statements, which are cached by the shape of the query.

peewee builds a statement once for all queries that differ only in their values. These are slots in
the statement, which are filled for each query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property, lru_cache
from typing import Any, TypeVar

import peewee
from peewee import SQL, fn

from flask_contentapi.cache import BoundedCache
from flask_contentapi_peewee.columns import StoredField
from flask_contentapi_peewee.documents import Documents, Projection
from flask_contentapi_peewee.selects import Select
from flask_contentapi_peewee.shapes import Shape, Slot, Values, Visibility, literal
from flask_contentapi_peewee.tables import Tables

M = TypeVar("M", bound="Statement | tuple[Statement, Any]")
#: How much memory the cached statements may take, in bytes, and how much one takes at least, for
#: each character of its text, with what it was made from, and for each of its parameters. A list of
#: values can make thousands of these.
CACHE_SIZE, _OVERHEAD, _CHARACTER, _PARAMETER = 32_000_000, 10_000, 4, 1_000
#: How many statements that fetch objects by id are cached.
CACHED_FETCHES = 1024
#: More rows than there can be.
ALL = 2**62


class Statement:
    """SQL with its parameters.

    :param parameters: values, and slots for those that are filled for each query.
    """

    __slots__ = ("_given", "_slots", "text")

    def __init__(self, text: str, parameters: Iterable[Any]) -> None:
        self.text = text
        self._given = [*parameters]
        self._slots = [(n, p.get) for n, p in enumerate(self._given) if isinstance(p, Slot)]

    @property
    def size(self) -> int:
        """Roughly how much memory it takes, in bytes."""
        return _OVERHEAD + _CHARACTER * len(self.text) + _PARAMETER * len(self._given)

    def fill(self, values: Values) -> list[Any]:
        """The parameters for some values."""
        filled = self._given.copy()
        for index, get in self._slots:
            filled[index] = get(values)
        return filled


class Statements:
    """The statements of a backend, built on first use."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.documents = {
            name: Documents(end, tables.engine) for name, end in tables.endpoints.items()
        }
        self._made: BoundedCache[Any] = BoundedCache(
            CACHE_SIZE, lambda made: (made if isinstance(made, Statement) else made[0]).size
        )
        self.count = self._cached("count", self._count)
        self.facet = self._cached("facet", self._facet)
        self.page = self._cached("page", self._page)
        # These have no values of clients, so their number bounds their size too.
        self.fetch = lru_cache(CACHED_FETCHES)(self._fetch)

    def _cached(self, sort: str, make: Callable[..., M]) -> Callable[..., M]:
        def get(*what: Any) -> M:
            known: M | None = self._made.get((sort, *what))
            return self._made.put((sort, *what), make(*what)) if known is None else known

        return get

    @cached_property
    def version(self) -> Statement:
        """The current version of the content."""
        return self._statement(peewee.Select(columns=[self.tables.version]))

    def _count(self, shape: Shape) -> Statement:
        """The stamp, the path of each page that the query names (NULL if it may not be seen), and
        how many objects match."""
        select = Select(self.tables, shape)
        total = select.query(fn.COUNT(SQL("*")))
        query = peewee.Select(columns=[self.tables.version, *select.named(), total])
        return self._statement(query)

    def _facet(self, shape: Shape, column: str) -> tuple[Statement, StoredField]:
        """The most frequent values of a column, how many objects have each, the stamp; and the
        column with the values."""
        select = Select(self.tables, shape)
        query, field = select.facet(column, self.tables.version)
        return self._statement(query), field

    def _page(self, shape: Shape) -> tuple[Statement, Projection]:
        select, each = Select(self.tables, shape), shape.each
        projection = self._projection(select)
        columns, joined = [*projection.nodes, self.tables.version], projection.joined
        if not shape.deep and each is None:
            query = select.query(*columns, joined=joined).order_by(*select.order())
            return self._statement(_window(query, select, shape)), projection
        # Skips rows in an index and looks up only the wanted ones.
        narrow = Select(self.tables, shape._replace(columns=()))
        if each is None:
            ids = narrow.query(narrow.identity).order_by(*narrow.order())
            ids = _window(ids, narrow, shape)
        else:
            # A server that expects more of them than there can be reads all objects instead.
            most = narrow.slot(lambda values: each * len(values.query.filters[0].value))
            ids = narrow.first_of_each(each).limit(most)
        return self._statement(select.named_by(ids, *columns, joined=joined)), projection

    def _fetch(
        self, endpoint: str, visible: Visibility, columns: tuple[str, ...] | None, one: bool
    ) -> tuple[Statement, Projection]:
        """The objects with some ids. The parameters are those of a shape."""
        select = Select(self.tables, Shape(endpoint, visible=visible, columns=columns, one=one))
        projection = self._projection(select)
        nodes = (*projection.nodes, self.tables.version)
        query = select.query(*nodes, joined=projection.joined).where(select.wanted())
        return self._statement(query), projection

    def _projection(self, select: Select) -> Projection:
        documents, wanted = self.documents[select.shape.endpoint], select.shape.columns
        return documents.whole if wanted is None else Projection(documents, select.tables, wanted)

    def _statement(self, query: Any) -> Statement:
        text, parameters = query.bind(self.tables.engine.database).sql()
        return Statement(text, parameters)


def _window(query: Any, select: Select, shape: Shape) -> Any:
    limit = select.slot(lambda v: ALL if v.query.limit is None else v.query.limit)
    query = query.limit(limit if shape.limit is None else literal(shape.limit))
    return query.offset(select.slot(lambda v: v.query.offset)) if shape.offset else query

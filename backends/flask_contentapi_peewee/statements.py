"""Turns queries into SQL statements, which are cached by the shape of the query.

peewee builds a statement once for all queries that differ only in their values. These are slots in
the statement, which are filled for each query.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache, reduce
from operator import add
from typing import Any

import peewee
from peewee import SQL, fn

from flask_contentapi_peewee.columns import Clause, StoredField
from flask_contentapi_peewee.projections import Detail, Projection, project
from flask_contentapi_peewee.selects import Select
from flask_contentapi_peewee.shapes import Shape, Slot, Values, literal, slot
from flask_contentapi_peewee.tables import OwnTable, Tables

__all__ = ["Statement", "Statements"]

#: How many statements of each sort are cached.
CACHE_SIZE = 512
#: More rows than there can be.
ALL = 2**62


class Statement:
    """SQL with its parameters.

    :param text: the SQL.
    :param parameters: values, and slots for those that are filled for each query.
    """

    __slots__ = ("_given", "_slots", "text")

    def __init__(self, text: str, parameters: Iterable[Any]) -> None:
        self.text = text
        self._given = [*parameters]
        self._slots = [(n, p.get) for n, p in enumerate(self._given) if isinstance(p, Slot)]

    def fill(self, values: Values) -> list[Any]:
        """The parameters for some values."""
        filled = self._given.copy()
        for index, get in self._slots:
            filled[index] = get(values)
        return filled


class Statements:
    """The statements of a backend, built on first use.

    :param tables: its tables.
    """

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.count = lru_cache(CACHE_SIZE)(self._count)
        self.page = lru_cache(CACHE_SIZE)(self._page)
        self.fetch = lru_cache(CACHE_SIZE)(self._fetch)
        self.many = lru_cache(CACHE_SIZE)(self._many)
        self.detail = lru_cache(CACHE_SIZE)(self._detail)

    @cached_property
    def version(self) -> Statement:
        """The current version of the content."""
        return self._statement(peewee.Select(columns=[self.tables.version()]))

    def _count(self, shape: Shape) -> Statement:
        """The stamp, the path of each page that the query names (NULL if it may not be seen), and
        how many objects match."""
        first, *others = self._selects(shape)
        total = first.query(fn.COUNT(SQL("*")))
        for select in others:
            further = select.query(fn.COUNT(SQL("*")))
            total = peewee.Expression(total, peewee.OP.ADD, further)
        query = peewee.Select(columns=[self.tables.version(), *first.named(), total])
        return self._statement(query, first, *others)

    def _selects(self, shape: Shape) -> list[Select]:
        """A select for each part of the tables that the query concerns."""
        parts = self.tables.endpoints[shape.endpoint].parts(shape.types)
        return [Select(self.tables, part, shape._replace(types=types)) for part, types in parts]

    def _page(self, shape: Shape) -> tuple[Statement, Projection]:
        """The rows of one page of a list: the id, the columns, the stamp."""
        selects = self._selects(shape)
        projection = project(selects[0].tables, shape.columns)
        if len(selects) > 1:
            return self._statement(self._merged(selects, shape), *selects), projection
        (select,) = selects
        columns = [select.identity, *projection.nodes, self.tables.version()]
        if shape.deep:
            # Skips rows in an index and looks up only the wanted ones.
            (narrow,) = self._selects(shape._replace(columns=()))
            found = narrow.query(narrow.identity).order_by(*narrow.order())
            wanted = _window(found, narrow, shape)
            return self._statement(select.named_by(wanted, *columns), narrow), projection
        query = _window(select.query(*columns).order_by(*select.order()), select, shape)
        return self._statement(query, select), projection

    def _merged(self, selects: Sequence[Select], shape: Shape) -> Any:
        """The rows of one page of a list whose objects are in several parts of the tables.

        Each part contributes its first rows in order, as many as may be needed.
        """
        keys = [_ordering(key) for key in selects[0].order()]
        parts = (_first_rows(select, shape) for select in selects)
        rows = reduce(add, (peewee.Select([part], [SQL("*")]) for part in parts)).alias("found")
        width = 1 + len(project(selects[0].tables, shape.columns).nodes)
        columns = [getattr(rows.c, f"c{number}") for number in range(width)]
        query = peewee.Select([rows], [*columns, self.tables.version()])
        order = [
            peewee.Ordering(getattr(rows.c, f"k{number}"), key.direction, nulls=key.nulls)
            for number, key in enumerate(keys)
        ]
        return _window(query.order_by(*order), selects[0], shape)

    def _fetch(self, shape: Shape) -> tuple[Statement, Projection]:
        """The rows of objects requested by id: the id, the columns, the stamp."""
        selects = self._selects(shape)
        queries = []
        for select in selects:
            nodes = project(select.tables, shape.columns).nodes
            query = select.query(select.identity, *nodes, self.tables.version())
            queries.append(query.where(select.wanted()))
        projection = project(selects[0].tables, shape.columns)
        return self._statement(reduce(add, queries), *selects), projection

    def _many(self, table: OwnTable, one: bool) -> tuple[Statement, Projection]:
        """The tags, targets or child objects of objects requested by id: the owner, the columns,
        the stamp.

        :param one: as :attr:`Shape.one`.
        """
        if table.child is None:
            owner, columns = table.fields["id"], [table.entry]
            order = [table.fields.get("sort_", table.fields[table.entry])]
        else:
            owner, columns = table.fields["owner_"], [*table.columns]
            # In a site's own table several rows may have the same place.
            order = [table.fields["sort_"], table.fields["id"]]
        projection = project([table], columns)
        query = (
            table.model.select(owner, *projection.nodes, self.tables.version())
            .where(self._named(owner, one))
            .order_by(owner, *order)
        )
        return self._statement(query), projection

    def _detail(self, shape: Shape) -> tuple[Statement, Detail]:
        """One object requested by id, with the columns of its type, whatever that is."""
        detail = Detail(self.tables.endpoints[shape.endpoint])
        selects = self._selects(shape)
        queries = []
        for select in selects:
            wanted = select.slot(lambda values: values.ids[0])
            nodes = detail.nodes(select.part, self.tables.engine, wanted)
            query = select.query(select.identity, *nodes, self.tables.version())
            queries.append(query.where(select.wanted()))
        return self._statement(reduce(add, queries), *selects), detail

    def _named(self, identity: StoredField, one: bool) -> Clause:
        engine = self.tables.engine
        if one:
            return identity == slot(engine, lambda v: v.ids[0])
        return engine.among(identity, slot(engine, lambda v: engine.integers(v.ids)))

    def columns(self, endpoint: str, label: str) -> tuple[str, ...]:
        """The columns of a type."""
        return self.tables.endpoints[endpoint].endpoint.type_of(label).column_names

    def have_all(self, endpoint: str, columns: Iterable[str]) -> bool:
        """Whether all objects of an endpoint have some columns."""
        return all(self.tables.endpoints[endpoint].base.has(column) for column in columns)

    def _statement(self, query: Any, *selects: Select) -> Statement:
        named = {name: q for select in selects for name, q in select.named_queries.items()}
        query = query.with_cte(*named.values()) if named else query
        complete = self.tables.with_ctes(query).bind(self.tables.engine.database)
        text, parameters = complete.sql()
        return Statement(text, parameters)


def _first_rows(select: Select, shape: Shape) -> Any:
    """The first rows of one part of the tables in order, with the keys of the order."""
    nodes = [select.identity, *project(select.tables, shape.columns).nodes]
    keys = [_ordering(key).node for key in select.order()]
    query = select.query(
        *(node.alias(f"c{number}") for number, node in enumerate(nodes)),
        *(key.alias(f"k{number}") for number, key in enumerate(keys)),
    )
    return query.order_by(*select.order_here()).limit(select.slot(_reach)).alias("part")


def _ordering(key: Clause) -> peewee.Ordering:
    """A key of the order, with its direction."""
    return key if isinstance(key, peewee.Ordering) else key.asc()


def _reach(values: Values) -> int:
    """The maximum number of rows up to the last wanted one."""
    query = values.query
    return min(_limit(values) + (query.offset if query else 0), ALL)


def _window(query: Any, select: Select, shape: Shape) -> Any:
    """A query for the wanted part of its rows."""
    query = query.limit(select.slot(_limit) if shape.limit is None else literal(shape.limit))
    return query.offset(select.slot(lambda v: v.query.offset)) if shape.offset else query


def _limit(values: Values) -> int:
    query = values.query
    return ALL if query is None or query.limit is None else query.limit

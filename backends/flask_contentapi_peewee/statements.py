"""Turns queries into SQL statements, which are cached by the shape of the query.

peewee builds a statement once for all queries that differ only in their values. These are slots in
the statement, which are filled for each query.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from typing import Any

import peewee
from peewee import SQL, fn

from flask_contentapi.query import Row
from flask_contentapi_peewee.columns import Clause, StoredField
from flask_contentapi_peewee.documents import Documents, picker
from flask_contentapi_peewee.selects import Select
from flask_contentapi_peewee.shapes import Shape, Slot, Values, literal
from flask_contentapi_peewee.tables import StoredTable, Tables

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


class Projection:
    """The columns that a statement selects, and how its rows become those that are wanted.

    Columns are read from the tables that can be filtered by them if these have all; otherwise all
    fields that are not in the endpoint's own table are read from the documents.

    :param select: the statement's tables and conditions.
    :param documents: reads the documents of the endpoint.
    :param wanted: the wanted columns, in order.
    """

    def __init__(self, select: Select, documents: Documents, wanted: Sequence[str]) -> None:
        tables = {name: table for table in select.tables[::-1] for name in table.fields}
        self._documents = documents
        own = tuple(dict.fromkeys(name for name in wanted if name not in documents.base.fields))
        self._own = () if all(name in tables for name in own) else own
        names = dict.fromkeys(("type", *wanted) if self._own else wanted)
        known = [name for name in names if name not in self._own]
        fields = [tables[name].fields[name] for name in known]
        #: The selected columns, and the tables with them besides the base.
        self.nodes: list[Clause] = [*fields]
        self.joined: list[StoredTable] = [tables[name] for name in known]
        if self._own:
            stored = documents.table
            large = documents.has_large(own)
            self.nodes += [stored.fields["doc"], stored.fields["large"] if large else SQL("NULL")]
            self.joined.append(stored)
        self._decoders = [(n, f.decode) for n, f in enumerate(fields) if f.decode is not None]
        order = [*known, *self._own]
        self._pick = picker([order.index(name) for name in wanted])
        self._type = known.index("type") if self._own else 0

    def rows(self, found: Sequence[Sequence[Any]]) -> list[Row]:
        """The wanted rows.

        :param found: rows of the statement: the id, the selected columns, and the stamp.
        """
        if self._own or self._decoders:
            return [self._row([*row[1:-1]]) for row in found]
        return [self._pick(row[1:-1]) for row in found]

    def _row(self, row: list[Any]) -> Row:
        for position, decode in self._decoders:
            if row[position] is not None:
                row[position] = decode(row[position])
        if self._own:
            large, doc = row.pop(), row.pop()
            row += self._documents.read(row[self._type], self._own, doc, large)
        picked: Row = self._pick(row)
        return picked


class Statements:
    """The statements of a backend, built on first use.

    :param tables: its tables.
    """

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.documents = {
            name: Documents(end, tables.engine) for name, end in tables.endpoints.items()
        }
        self.count = lru_cache(CACHE_SIZE)(self._count)
        self.facet = lru_cache(CACHE_SIZE)(self._facet)
        self.page = lru_cache(CACHE_SIZE)(self._page)
        self.fetch = lru_cache(CACHE_SIZE)(self._fetch)
        self.whole = lru_cache(CACHE_SIZE)(self._whole)

    @cached_property
    def version(self) -> Statement:
        """The current version of the content."""
        return self._statement(peewee.Select(columns=[self.tables.version()]))

    def _count(self, shape: Shape) -> Statement:
        """The stamp, the path of each page that the query names (NULL if it may not be seen), and
        how many objects match."""
        select = Select(self.tables, shape)
        total = select.query(fn.COUNT(SQL("*")))
        query = peewee.Select(columns=[self.tables.version(), *select.named(), total])
        return self._statement(query, select)

    def _facet(self, shape: Shape, column: str) -> tuple[Statement, StoredField]:
        """The most frequent values of a column, how many objects have each, the stamp; and the
        column with the values."""
        select = Select(self.tables, shape)
        query, field = select.facet(column, self.tables.version())
        return self._statement(query, select), field

    def _page(self, shape: Shape) -> tuple[Statement, Projection]:
        """The rows of one page of a list: the id, the columns, the stamp."""
        select = Select(self.tables, shape)
        projection = Projection(select, self.documents[shape.endpoint], shape.columns)
        columns = [select.identity, *projection.nodes, self.tables.version()]
        if not shape.deep and shape.each is None:
            query = select.query(*columns, joined=projection.joined).order_by(*select.order())
            return self._statement(_window(query, select, shape), select), projection
        # Skips rows in an index and looks up only the wanted ones.
        narrow = Select(self.tables, shape._replace(columns=()))
        if shape.each is None:
            ids = narrow.query(narrow.identity).order_by(*narrow.order())
            ids = _window(ids, narrow, shape)
        else:
            ids = narrow.first_of_each(shape.each)
        query = select.named_by(ids, *columns, joined=projection.joined)
        return self._statement(query, narrow), projection

    def _fetch(self, shape: Shape) -> tuple[Statement, Projection]:
        """The rows of objects requested by id: the id, the columns, the stamp."""
        select = Select(self.tables, shape)
        projection = Projection(select, self.documents[shape.endpoint], shape.columns)
        columns = [select.identity, *projection.nodes, self.tables.version()]
        query = select.query(*columns, joined=projection.joined).where(select.wanted())
        return self._statement(query, select), projection

    def _whole(self, shape: Shape) -> Statement:
        """Objects requested by id: all columns of the endpoint's own table, the document in two
        columns, the stamp."""
        select = Select(self.tables, shape)
        end = self.tables.endpoints[shape.endpoint]
        document = [end.documents.fields[name] for name in ("doc", "large")]
        columns = [*end.base.fields.values(), *document, self.tables.version()]
        query = select.query(*columns, joined=[end.documents]).where(select.wanted())
        return self._statement(query, select)

    def _statement(self, query: Any, *selects: Select) -> Statement:
        named = {name: q for select in selects for name, q in select.named_queries.items()}
        query = query.with_cte(*named.values()) if named else query
        text, parameters = query.bind(self.tables.engine.database).sql()
        return Statement(text, parameters)


def _window(query: Any, select: Select, shape: Shape) -> Any:
    query = query.limit(select.slot(_limit) if shape.limit is None else literal(shape.limit))
    return query.offset(select.slot(lambda v: v.query.offset)) if shape.offset else query


def _limit(values: Values) -> int:
    query = values.query
    return ALL if query is None or query.limit is None else query.limit

"""Queries to SQL, whose text is kept for each shape of query.

A statement is built by peewee once for all queries that differ in their values only; what is
different stands in it as slots, which are filled for each query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import and_, or_
from typing import Any, NamedTuple

import orjson
import peewee
from peewee import SQL, fn

from flask_contentapi import kinds
from flask_contentapi.query import Filter, Order, Query, Row, Viewer
from flask_contentapi.registry import Column
from flask_contentapi_peewee.columns import Clause, StoredField, microseconds
from flask_contentapi_peewee.engines import Engine, md5
from flask_contentapi_peewee.paths import AFTER, end
from flask_contentapi_peewee.tables import EndpointTables, OwnTable, Tables
from flask_contentapi_peewee.words import token, tokens

__all__ = ["Projection", "Shape", "Statement", "Statements", "Values", "shape_of"]

#: How many statements of each sort are kept.
KEPT = 512
#: Columns that many objects have the same value of.
WIDE = frozenset(("show_in_menus", "locale"))
#: More rows than there can be.
ALL = 2**62


@dataclass(frozen=True, slots=True)
class Values:
    """What fills the slots of a statement.

    :param viewer: who looks.
    :param closed: the collections that the viewer may not see into.
    :param scope: the paths of some pages; only they and the pages below them count. None: all.
    :param query: the query, if it is for one.
    :param ids: the objects that are asked for, if they are named.
    """

    viewer: Viewer
    closed: Sequence[int] = ()
    scope: Sequence[str] | None = None
    query: Query | None = None
    ids: Sequence[int] = ()


class Slot:
    """A parameter that is different each time."""

    __slots__ = ("get",)

    def __init__(self, get: Callable[[Any], Any]) -> None:
        self.get = get


class Statement(NamedTuple):
    """SQL with what fills its parameters.

    :param text: the SQL.
    :param parameters: values and slots.
    """

    text: str
    parameters: tuple[Any, ...]

    def fill(self, values: Values) -> list[Any]:
        """The parameters for some values."""
        return [p.get(values) if isinstance(p, Slot) else p for p in self.parameters]


class Shape(NamedTuple):
    """What queries that share a statement have in common; the values are left out.

    :param endpoint: as :attr:`Query.endpoint`.
    :param columns: as :attr:`Query.columns`.
    :param types: as :attr:`Query.types`.
    :param filters: of each the column, the operator, and how many values there are.
    :param relations: of each condition on the tree the relation.
    :param searched: how many words are to be found.
    :param order: as :attr:`Query.order`.
    :param random: as :attr:`Query.random`.
    :param scope: how many pages the scope is given by; None: all count.
    :param opened: whether some restricted pages are open to the viewer.
    :param closed: whether some collections are not.
    :param everything: whether what nobody may see counts as well.
    :param deep: whether many rows come before those that are wanted.
    :param walk: whether so many match that going through all in order finds the wanted ones soon.
    """

    endpoint: str
    columns: tuple[str, ...] = ()
    types: frozenset[str] | None = None
    filters: tuple[tuple[str, str, int], ...] = ()
    relations: tuple[str, ...] = ()
    searched: int = 0
    order: tuple[Order, ...] = ()
    random: bool = False
    scope: int | None = None
    opened: bool = False
    closed: bool = False
    everything: bool = False
    deep: bool = False
    walk: bool = False

    @property
    def is_narrow(self) -> bool:
        """Whether there is a condition that few objects meet, wherever they are."""
        related = any(relation != "descendant_of" for relation in self.relations)
        return bool(self.searched) or related or any(name not in WIDE for name, *_ in self.filters)


def shape_of(query: Query, values: Values) -> Shape:
    """The shape of a query."""
    return Shape(
        query.endpoint,
        query.columns,
        query.types,
        tuple((f.column, f.operator, _arity(f)) for f in query.filters),
        tuple(tree.relation for tree in query.tree),
        len(query.search.words) if query.search else 0,
        query.order,
        query.random,
        None if values.scope is None else len(values.scope),
        bool(query.viewer.pages),
        bool(values.closed),
    )


def _arity(condition: Filter) -> int:
    return len(condition.value) if condition.operator in ("in", "all") else 1


# Rows.


class Many(NamedTuple):
    """A field whose values are rows of another table.

    :param place: where it stands among the columns that are asked for.
    :param table: that table.
    """

    place: int
    table: OwnTable


@dataclass(frozen=True, slots=True)
class Projection:
    """The columns that are asked for, and how what the database gives becomes their values.

    :param nodes: what is selected.
    :param places: for each of them where it stands among the columns.
    :param decoders: for each of them what makes the stored value, or None.
    :param many: the fields that are filled by further statements.
    :param width: how many columns there are.
    """

    nodes: tuple[Clause, ...]
    places: tuple[int, ...]
    decoders: tuple[Callable[[Any], Any] | None, ...]
    many: tuple[Many, ...]
    width: int

    def rows(
        self, found: Sequence[Sequence[Any]], fillings: Sequence[Mapping[int, tuple[Any, ...]]]
    ) -> list[Row]:
        """The rows.

        :param found: what the database gave: the id, what was selected, and the stamp.
        :param fillings: for each of :attr:`many` the values by the object's id.
        """
        if not self.many and not any(self.decoders):
            return [tuple(row[1:-1]) for row in found]
        return [self._row(row, fillings) for row in found]

    def _row(self, found: Sequence[Any], fillings: Sequence[Mapping[int, Any]]) -> Row:
        row: list[Any] = [()] * self.width
        for place, decode, value in zip(self.places, self.decoders, found[1:-1], strict=True):
            row[place] = value if decode is None or value is None else decode(value)
        for many, filling in zip(self.many, fillings, strict=True):
            row[many.place] = filling.get(found[0], ())
        return tuple(row)


def project(tables: Sequence[OwnTable], columns: Sequence[str]) -> Projection:
    """How to ask for some columns that are in some tables."""
    nodes, places, decoders, many = [], [], [], []
    for place, column in enumerate(columns):
        table = next(table for table in tables if table.has(column))
        if column in table.fields:
            field = table.fields[column]
            nodes.append(field)
            places.append(place)
            decoders.append(None if field.is_plain else field.decode)
        else:
            many.append(Many(place, table.many[column]))
    return Projection(tuple(nodes), tuple(places), tuple(decoders), tuple(many), len(columns))


class Detail:
    """The columns of one object whose type is not known before.

    Those of the types' own tables come as one JSON array a table, so that one statement does;
    numbers with a point come by themselves, as JSON would not keep all their digits.

    :param tables: the tables of the endpoint.
    :param engine: the database.
    """

    def __init__(self, tables: EndpointTables, engine: Engine) -> None:
        self._tables = tables
        self._base = project([tables.base], [*tables.base.fields])
        self._names = [*tables.base.fields]
        self._own: list[tuple[OwnTable, list[str], list[str]]] = []
        self.nodes: list[Clause] = [*self._base.nodes]
        identity, label = tables.base.fields["id"], tables.base.fields["type"]
        for table in tables.own:
            of_object = table.fields["id"] == identity
            names = [name for name in table.fields if name != "id"]
            floats = [n for n in names if isinstance(table.columns[n].kind, kinds.Float)]
            others = [name for name in names if name not in floats]
            array = table.model.select(engine.array([table.fields[n] for n in others]))
            labels = [name for name in tables.endpoint.types if table in tables.lineage(name)]
            self.nodes.append(peewee.Case(None, [(label.in_(labels), array.where(of_object))]))
            self.nodes += [table.model.select(table.fields[n]).where(of_object) for n in floats]
            self._own.append((table, others, floats))

    def tables(self, label: str) -> list[OwnTable]:
        """The tables of the objects of a type."""
        return [self._tables.base, *self._tables.lineage(label)]

    def read(self, found: Sequence[Any]) -> dict[str, Any]:
        """The values by column.

        :param found: what the database gave: the id, what was selected, and the stamp.
        """
        base, *_ = self._base.rows([(*found[: len(self._names) + 1], None)], ())
        values = dict(zip(self._names, base, strict=True))
        rest = iter(found[len(self._names) + 1 : -1])
        for table, others, floats in self._own:
            array = next(rest)
            given = [*(orjson.loads(array) if array else ()), *(next(rest) for _ in floats)]
            if array:
                for name, value in zip((*others, *floats), given, strict=True):
                    values[name] = table.fields[name].python_value(value)
        return values


class Statements:
    """The statements of a backend, made when they are first needed.

    :param tables: its tables.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.count = lru_cache(KEPT)(self._count)
        self.page = lru_cache(KEPT)(self._page)
        self.fetch = lru_cache(KEPT)(self._fetch)
        self.many = lru_cache(KEPT)(self._many)
        self.detail = lru_cache(KEPT)(self._detail)

    def _count(self, shape: Shape) -> Statement:
        """The stamp, the path of each page that is named (none where it may not be seen), and
        how many objects match."""
        select = _Select(self._tables, shape)
        total = select.query(fn.COUNT(SQL("*")))
        return self._statement(peewee.Select(columns=[self.stamp(), *select.named(), total]))

    def _page(self, shape: Shape) -> tuple[Statement, Projection]:
        """The rows of one page of a list: the id, the columns, the stamp."""
        select = _Select(self._tables, shape)
        projection = project(select.tables, shape.columns)
        columns = [select.identity, *projection.nodes, self.stamp()]
        if shape.deep:
            # The rows before are skipped in an index, and only those wanted are looked up.
            narrow = _Select(self._tables, shape._replace(columns=()))
            wanted = _window(narrow.query(narrow.identity).order_by(*narrow.order()), narrow)
            query = select.named_by(wanted, *columns)
        else:
            query = _window(select.query(*columns).order_by(*select.order()), select)
        return self._statement(query), projection

    def _fetch(self, shape: Shape) -> tuple[Statement, Projection]:
        """The rows of objects that are named: the id, the columns, the stamp."""
        select = _Select(self._tables, shape)
        projection = project(select.tables, shape.columns)
        query = select.query(select.identity, *projection.nodes, self.stamp())
        return self._statement(query.where(self._named(select.identity))), projection

    def _many(self, table: OwnTable) -> tuple[Statement, Projection]:
        """The tags or child objects of the objects that are named: the owner, the columns, the
        stamp."""
        if "tag" in table.fields and not table.columns:
            owner, columns, sort = table.fields["id"], ["tag"], table.fields["tag"]
        else:
            owner, columns = table.fields["owner_"], [*table.columns]
            sort = table.fields["sort_"]
        projection = project([table], columns)
        query = (
            table.model.select(owner, *projection.nodes, self.stamp())
            .where(self._named(owner))
            .order_by(owner, sort)
        )
        return self._statement(query), projection

    def _detail(self, shape: Shape) -> tuple[Statement, Detail]:
        """One object that is named, with the columns of its type, whatever type it is."""
        select = _Select(self._tables, shape)
        detail = Detail(self._tables.endpoints[shape.endpoint], self._tables.engine)
        query = select.query(select.identity, *detail.nodes, self.stamp())
        named = select.identity == _slot(self._tables.engine, lambda values: values.ids[0])
        return self._statement(query.where(named)), detail

    def _named(self, identity: StoredField) -> Clause:
        engine = self._tables.engine
        return engine.among(identity, _slot(engine, lambda v: engine.integers(v.ids)))

    def columns(self, endpoint: str, label: str) -> tuple[str, ...]:
        """The columns of a type."""
        return self._tables.endpoints[endpoint].endpoint.type_of(label).column_names

    def have_all(self, endpoint: str, columns: Iterable[str]) -> bool:
        """Whether all objects of an endpoint have some columns."""
        return all(self._tables.endpoints[endpoint].base.has(column) for column in columns)

    def stamp(self) -> Clause:
        """The version of the content."""
        state = self._tables.state
        return state.model.select(state.fields["value"]).where(state.fields["key"] == "stamp")

    def _statement(self, query: peewee.Query) -> Statement:
        text, parameters = query.bind(self._tables.engine.database).sql()
        return Statement(text, tuple(parameters))


def _window(query: Any, select: _Select) -> Any:
    """A query for the part of its rows that is wanted."""
    return query.limit(select.slot(_limit)).offset(select.slot(lambda v: v.query.offset))


def _limit(values: Values) -> int:
    query = values.query
    return ALL if query is None or query.limit is None else query.limit


def _slot(engine: Any, get: Callable[[Any], Any]) -> SQL:
    return SQL(engine.database.param, (Slot(get),))


# Conditions.


class _Objects:
    """The table of an endpoint in a statement.

    :param tables: the endpoint's tables.
    :param aliased: whether it stands in the statement beside itself.
    """

    def __init__(self, tables: EndpointTables, aliased: bool = False) -> None:
        self.endpoint = tables.endpoint
        self.model: Any = tables.base.model.alias() if aliased else tables.base.model
        self._fields = tables.base.fields
        self._aliased = aliased

    def field(self, column: str) -> Any:
        """A column of it."""
        field = self._fields[column]
        return getattr(self.model, field.name) if self._aliased else field

    def seen(self, shape: Shape, engine: Engine) -> Iterator[Clause]:
        """Whether the viewer may see an object."""
        if shape.everything:
            return
        if self.endpoint.tree:
            access = self.field("access_")
            moment = _slot(engine, lambda values: microseconds(values.viewer.moment))
            yield self._opened(access, engine) if shape.opened else access == 0
            # Nearly all pages are visible, so that an index would not narrow anything.
            yield engine.unindexed(self.field("visible_from_")) <= moment
            yield engine.unindexed(self.field("visible_until_")) > moment
        elif self.endpoint.collections and shape.closed:
            collection = self.field("collection")
            closed = _slot(engine, lambda values: engine.integers(values.closed))
            yield collection.is_null() | ~engine.among(collection, closed)

    def path(self, shape: Shape, engine: Engine) -> Clause:
        """The place in the tree, for a range; something else may narrow the search more."""
        path = self.field("path_")
        return engine.unindexed(path) if shape.walk or shape.is_narrow else path

    @staticmethod
    def _opened(access: Any, engine: Engine) -> Clause:
        opened = _slot(engine, lambda values: engine.integers([0, *values.viewer.pages]))
        return engine.among(access, opened)

    def within(self, shape: Shape, engine: Engine) -> Iterator[Clause]:
        """Whether a page is in the scope."""
        if shape.scope is None:
            return
        path = self.path(shape, engine)
        if shape.scope > 1:
            # One range is walked in the default order; several would have to be sorted.
            yield (path >= _slot(engine, _start)) & (path < _slot(engine, _stop))
            path = engine.unindexed(path)
        yield _any_of(
            [
                (path >= _slot(engine, _nth_scope(n))) & (path < _slot(engine, _nth_scope(n, end)))
                for n in range(shape.scope)
            ]
        )


def _start(values: Values) -> str:
    """Where the first of the pages that the scope is given by is in the tree."""
    return min(values.scope or ())


def _stop(values: Values) -> str:
    """Where the last of what is in the scope ends in the tree."""
    return max(map(end, values.scope or ()))


def _same(one: OwnTable, other: OwnTable) -> Clause:
    """Whether rows of two tables are of the same object."""
    return one.fields["id"] == other.fields["id"]


def _nth_scope(number: int, change: Callable[[str], str] = str) -> Callable[[Any], str]:
    """One of the paths that the scope is given by, or what is made of it."""
    return lambda values: change(values.scope[number])


def _nth_token(number: int) -> Callable[[Any], str]:
    """One of the words that are to be found."""
    return lambda values: token(values.query.search.words[number])


def _any_of(conditions: Sequence[Clause]) -> Clause:
    """Whether one of some conditions is met; none of none is."""
    return reduce(or_, conditions) if conditions else SQL("1 = 0")


class _Select:
    """The tables and conditions of one shape of query."""

    def __init__(self, tables: Tables, shape: Shape) -> None:
        self._all = tables
        self._shape = shape
        self._engine = tables.engine
        self._here = tables.endpoints[shape.endpoint]
        self._objects = _Objects(self._here)
        self._words = peewee.Table(self._here.words)
        self.tables = [self._here.base, *self._own_tables()]
        self.identity: StoredField = self._here.base.fields["id"]

    def _own_tables(self) -> list[OwnTable]:
        """The tables besides the base that all objects of the types have a row in."""
        first, *others = [self._here.lineage(label) for label in self._shape.types or ("",)]
        return [table for table in first if all(table in other for other in others)]

    def slot(self, get: Callable[[Any], Any]) -> SQL:
        """A parameter that is different each time."""
        return _slot(self._engine, get)

    def _field(self, column: str) -> StoredField:
        return next(table for table in self.tables if table.has(column)).fields[column]

    def _column(self, column: str) -> Column | None:
        """The declared field of a column; derived ones have none."""
        table = next(table for table in self.tables if table.has(column))
        return table.columns.get(column)

    def query(self, *columns: Clause) -> Any:
        """A query for something of all objects that match."""
        source: Any = self._joined(self._first(), self._engine.ordered_join)
        if self._shape.searched:
            on = self._engine.words_id(self._words) == self.identity
            source = peewee.Join(source, self._words, on=on)
        conditions = list(self._conditions())
        query = peewee.Select([source], columns)
        return query.where(reduce(and_, conditions)) if conditions else query

    def named_by(self, ids: Any, *columns: Clause) -> Any:
        """A query for something of the objects that another query gives, in the same order."""
        wanted = ids.alias("wanted")
        source = peewee.Join(self._joined(), wanted, on=wanted.c.id == self.identity)
        return peewee.Select([source], columns).order_by(*self.order())

    def _first(self) -> OwnTable:
        """The table to begin with: where all is walked through in some order, the one that has
        the index for it."""
        return self._ordered() if self._shape.walk else self._here.base

    def _joined(self, first: OwnTable | None = None, join: str = peewee.JOIN.INNER) -> Any:
        """The tables whose columns are needed.

        :param first: the one to begin with; None: the base.
        :param join: how the base joins another one that comes first.
        """
        base = self._here.base
        source: Any = base.model
        if first is not None and first is not base:
            source = peewee.Join(first.model, base.model, join, _same(first, base))
        for table in self._needed():
            if table is not first:
                source = peewee.Join(source, table.model, on=_same(table, base))
        return source

    def _needed(self) -> Iterator[OwnTable]:
        """The tables besides the base whose columns are needed."""
        needed = {name for name, *_ in (*self._shape.filters, *self._shape.order)}
        needed.update(self._shape.columns)
        return (t for t in self.tables[1:] if needed & (t.fields.keys() - {"id"}))

    def _conditions(self) -> Iterator[Clause]:
        shape = self._shape
        yield from self._objects.seen(shape, self._engine)
        yield from self._objects.within(shape, self._engine)
        if shape.types is not None:
            labels = sorted(shape.types)
            label = self._objects.field("type")
            if shape.walk or shape.is_narrow:
                label = self._engine.unindexed(label)
            yield label == labels[0] if len(labels) == 1 else label.in_(labels)
        for number, relation in enumerate(shape.relations):
            yield self._related(number, relation)
        for number, (column, operator, arity) in enumerate(shape.filters):
            yield from self._filtered(number, column, operator, arity)
        if shape.searched:
            yield self._engine.matches(self._words, self._search())

    def _search(self) -> SQL:
        engine = self._engine
        return self.slot(lambda v: engine.query(tokens(v.query.search.words), v.query.search.every))

    def _tokens(self) -> Iterator[SQL]:
        """The tokens of the words that are to be found."""
        for number in range(self._shape.searched):
            yield self.slot(_nth_token(number))

    # The tree.

    def _page(self, number: int) -> SQL:
        """The id of a page that is named."""
        return self.slot(lambda values: values.query.tree[number].page)

    def named(self) -> Iterator[Clause]:
        """The path of each page that is named; none where it may not be seen in the scope."""
        for number in range(len(self._shape.relations)):
            pages = _Objects(self._here, aliased=True)
            conditions = [
                pages.field("id") == self._page(number),
                *pages.seen(self._shape, self._engine),
                *pages.within(self._shape, self._engine),
            ]
            yield pages.model.select(pages.field("path_")).where(reduce(and_, conditions))

    def _related(self, number: int, relation: str) -> Clause:
        if relation == "child_of":
            return self._objects.field("parent") == self._page(number)
        if relation == "ancestor_of":
            return self.identity.in_(self._ancestors(number))
        pages = _Objects(self._here, aliased=True)
        named = pages.field("id") == self._page(number)
        if relation == "translation_of":
            key = pages.field("translation_key")
            wanted = pages.model.select(key).where(named)
            same = self._engine.equals(self._objects.field("translation_key"), wanted)
            return same & (self.identity != self._page(number))
        start = pages.model.select(pages.field("path_")).where(named)
        stop = pages.model.select(pages.field("path_").concat(AFTER)).where(named)
        path = self._objects.path(self._shape, self._engine)
        return (path > start) & (path < stop)

    def _ancestors(self, number: int) -> Clause:
        """The ids of the pages above one that is named."""
        quote = self._engine.database.quote
        table = f"{quote[0]}{self._here.base.model._meta.table_name}{quote[1]}"
        return SQL(
            f"(WITH RECURSIVE above (id) AS (SELECT parent FROM {table} "  # noqa: S608
            f"WHERE id = {self._engine.database.param} UNION ALL SELECT p.parent FROM {table} p "
            "JOIN above ON p.id = above.id) SELECT id FROM above WHERE id IS NOT NULL)",
            (Slot(lambda values: values.query.tree[number].page),),
        )

    # Filters.

    def _filtered(self, number: int, column: str, operator: str, arity: int) -> Iterator[Clause]:
        if operator == "all":
            yield from self._tagged(number, column, arity)
            return
        if column == "url_path":
            wanted = self.slot(lambda values: values.query.filters[number].value)
            digest = self.slot(lambda values: md5(values.query.filters[number].value))
            yield (self._objects.field("url_hash_") == digest) & (
                self._objects.field("url_path") == wanted
            )
            return
        field = self._field(column)
        if operator == "in":
            values = [self._wanted(number, field, place) for place in range(arity)]
            yield _any_of([self._engine.equals(field, value) for value in values])
        elif operator == "eq":
            yield self._engine.equals(field, self._wanted(number, field))
        else:
            yield peewee.Expression(field, _COMPARE[operator], self._wanted(number, field))
        yield from self._target_seen(column)

    def _wanted(self, number: int, field: StoredField, place: int | None = None) -> SQL:
        """A value that is asked for, as it stands in a column."""

        def get(values: Any) -> Any:
            wanted = values.query.filters[number].value
            return field.db_value(wanted if place is None else wanted[place])

        return self.slot(get)

    def _tagged(self, number: int, column: str, arity: int) -> Iterator[Clause]:
        table = next(table for table in self.tables if table.has(column)).many[column]
        for place in range(arity):
            tag = self._engine.equals(
                table.fields["tag"], self._wanted(number, table.fields["tag"], place)
            )
            yield self.identity.in_(table.model.select(table.fields["id"]).where(tag))

    def _target_seen(self, column: str) -> Iterator[Clause]:
        """For a relation, whether the viewer may see what it points to."""
        declared = self._column(column)
        if declared is None or declared.target is None:
            return
        objects = _Objects(self._all.endpoints[declared.target.served_at.name], aliased=True)
        pointed = objects.field("id") == self._field(column)
        conditions = [pointed, *objects.seen(self._shape, self._engine)]
        yield fn.EXISTS(objects.model.select(SQL("1")).where(reduce(and_, conditions)))

    # Order.

    def order(self) -> list[Clause]:
        """What to order by."""
        shape, engine = self._shape, self._engine
        default = self._objects.field("path_") if self._here.endpoint.tree else self.identity
        if shape.random:
            return [engine.random()]
        if shape.order:
            keys = [key for order in shape.order for key in self._sort_keys(order)]
            # An index on a column has the id of the column's own table.
            return [*keys, *engine.sort_keys(self._ordered().fields["id"], False)]
        if shape.searched:
            return [*engine.rank(self._words, self._search(), self._tokens()), default]
        return [default]

    def _ordered(self) -> OwnTable:
        """The table of the first key of the order."""
        return next(table for table in self.tables if table.has(self._shape.order[0].column))

    def _sort_keys(self, order: Order) -> Sequence[Clause]:
        field = self._field(order.column)
        seen = list(self._target_seen(order.column))
        if not seen:
            return self._engine.sort_keys(field, order.descending)
        shown = peewee.Case(None, [(seen[0], field)], None)
        return self._engine.sort_keys(shown, order.descending)


_COMPARE = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}

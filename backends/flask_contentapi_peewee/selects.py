"""Builds peewee queries for the objects that meet conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import peewee
from peewee import SQL, fn

from flask_contentapi.query import Order
from flask_contentapi.types import Column
from flask_contentapi_peewee.clauses import all_of, any_of
from flask_contentapi_peewee.columns import OPEN, Clause, StoredField
from flask_contentapi_peewee.engines import Engine
from flask_contentapi_peewee.paths import AFTER, end
from flask_contentapi_peewee.shapes import Shape, literal, slot
from flask_contentapi_peewee.tables import EndpointTables, OwnTable, Tables
from flask_contentapi_peewee.words import token, tokens

__all__ = ["Select"]


#: How many tags of a request get a subquery each.
FEW_TAGS = 8
#: The relations to a page of pages below it.
_BELOW = frozenset(("child_of", "descendant_of"))


class _BaseTable:
    """The base table of an endpoint in a statement.

    :param tables: the endpoint's tables.
    :param aliased: whether it has an alias, because it occurs twice in the statement.
    """

    def __init__(self, tables: EndpointTables, aliased: bool = False) -> None:
        self.endpoint = tables.endpoint
        self._tables = tables
        self.model: Any = tables.base.model.alias() if aliased else tables.base.model
        self._fields = tables.base.fields
        self._aliased = aliased

    def field(self, column: str) -> Any:
        """A column of the table."""
        field = self._fields[column]
        return getattr(self.model, field.name) if self._aliased else field

    def has_id(self, identity: Clause) -> Clause:
        """The condition that an object has an id."""
        shift = self._tables.shift
        return self.field(self._tables.key.column_name) == (identity - shift if shift else identity)

    def visibility(self, shape: Shape, engine: Engine) -> Iterator[Clause]:
        """The conditions that the viewer may see an object."""
        if shape.everything:
            return
        if self.endpoint.tree:
            access = self.field("access_")
            moment = literal(shape.since)
            yield self._opened(access, engine) if shape.opened else access == literal(OPEN)
            # Nearly all pages are visible, so an index would be useless.
            yield engine.unindexed(self.field("visible_from_")) <= moment
            yield engine.unindexed(self.field("visible_until_")) > moment
        elif self.endpoint.collections and shape.closed:
            collection = self.field("collection")
            closed = slot(engine, lambda values: engine.integers(values.closed))
            yield collection.is_null() | ~engine.among(collection, closed)

    def reach(self, shape: Shape, engine: Engine) -> Clause:
        """The path that shows which pages are above; without its index if others narrow more."""
        path = self.field(self._tables.reach)
        return engine.unindexed(path) if shape.walk or shape.is_narrow else path

    def below(self, start: Clause, stop: Clause, shape: Shape, engine: Engine) -> Clause:
        """The condition that a page is below another one.

        :param start: the path of the other.
        :param stop: its end.
        """
        reach = self.reach(shape, engine)
        return (reach > start if self._tables.reach == "path_" else reach >= start) & (reach < stop)

    @staticmethod
    def _opened(access: Any, engine: Engine) -> Clause:
        opened = slot(engine, lambda values: engine.integers([OPEN, *values.viewer.pages]))
        return engine.among(access, opened)

    def in_scope(self, shape: Shape, engine: Engine) -> Iterator[Clause]:
        """The conditions that a page is in the scope."""
        if shape.scope is None:
            return
        reach, paths = self.reach(shape, engine), shape.scope
        are_ours = self._tables.reach == "path_"
        if len(paths) > 1 and are_ours:
            # One range can be walked in default order. Several would have to be sorted.
            yield _between(reach, min(paths), max(map(end, paths)))
            reach = engine.unindexed(reach)
        conditions = [_between(reach, path, end(path)) for path in paths]
        if len(paths) > 1 and not are_ours:
            # A translation of a home page can itself be one of these rows.
            conditions.append(self.field("path_").in_([literal(path) for path in paths]))
        yield any_of(conditions)


def _between(column: Clause, start: str, stop: str) -> Clause:
    """The condition that a path is in a half-open range."""
    return (column >= literal(start)) & (column < literal(stop))


def _same(one: OwnTable, other: OwnTable) -> Clause:
    """The condition that rows of two tables belong to the same object."""
    return one.fields["id"] == other.fields["id"]


def _nth_token(number: int) -> Callable[[Any], str]:
    """The function that returns the token of one of the words of the search."""
    return lambda values: token(values.query.search.words[number])


class Select:
    """The tables and conditions of one shape of query.

    :param tables: all tables.
    :param part: the part of them that is queried.
    :param shape: the shape, with the types to be distinguished in this part.
    """

    def __init__(self, tables: Tables, part: EndpointTables, shape: Shape) -> None:
        self._all_tables = tables
        self._shape = shape
        self._engine = tables.engine
        self._endpoint = tables.endpoints[shape.endpoint]
        self._base = _BaseTable(part)
        self._words = peewee.Table(part.words)
        self.part = part
        self.tables = [part.base, *self._own_tables()]
        self.identity: StoredField = part.base.fields["id"]
        #: The common table expressions that a statement needs, by name.
        self.named_queries: dict[str, peewee.CTE] = {}

    def _own_tables(self) -> list[OwnTable]:
        """The tables other than the base in which all objects of the types have a row."""
        first, *others = [self.part.lineage(label) for label in self._shape.types or ("",)]
        return [table for table in first if all(table in other for other in others)]

    def slot(self, get: Callable[[Any], Any]) -> SQL:
        """A parameter that is filled for each query."""
        return slot(self._engine, get)

    def _field(self, column: str) -> StoredField:
        return next(table for table in self.tables if table.has(column)).fields[column]

    def _column(self, column: str) -> Column | None:
        """The declared field of a column; derived ones have none."""
        table = next(table for table in self.tables if table.has(column))
        return table.columns.get(column)

    def query(self, *columns: Clause) -> Any:
        """A query for columns of all objects that match."""
        source: Any = self._join_tables(self._first(), self._engine.ordered_join)
        if self._shape.searched:
            on = self.part.key == self._shifted(self._engine.words_id(self._words))
            source = peewee.Join(source, self._words, on=on)
        conditions = list(self._conditions())
        query = peewee.Select([source], columns)
        return query.where(all_of(conditions)) if conditions else query

    def _shifted(self, identity: Clause) -> Clause:
        """The value of the key column for an object's id."""
        return identity - self.part.shift if self.part.shift else identity

    def wanted(self) -> Clause:
        """The condition that an object is one of those requested by id."""
        engine, shift = self._engine, self.part.shift
        if self._shape.one:
            return self.part.key == self.slot(lambda values: values.ids[0] - shift)
        ids = self.slot(lambda values: engine.integers(i - shift for i in values.ids))
        return engine.among(self.part.key, ids)

    def named_by(self, ids: Any, *columns: Clause) -> Any:
        """A query for columns of the objects that another query returns, in the same order."""
        wanted = ids.alias("wanted")
        source = peewee.Join(self._join_tables(), wanted, on=wanted.c.id == self.identity)
        return peewee.Select([source], columns).order_by(*self.order())

    def _first(self) -> OwnTable:
        """The first table of the join: if an index is walked in order, the table with that
        index."""
        return self._ordered() if self._shape.walk else self.part.base

    def _join_tables(self, first: OwnTable | None = None, join: str = peewee.JOIN.INNER) -> Any:
        """Joins the tables whose columns are needed.

        :param first: the first table; None: the base.
        :param join: how the base joins another table that comes first.
        """
        base = self.part.base
        source: Any = base.model
        if first is not None and first is not base:
            source = peewee.Join(first.model, base.model, join, _same(first, base))
        for table in self._needed():
            if table is not first:
                source = peewee.Join(source, table.model, on=_same(table, base))
        return source

    def _needed(self) -> Iterator[OwnTable]:
        """The tables other than the base whose columns are needed."""
        needed = {name for name, *_ in (*self._shape.filters, *self._shape.order)}
        needed.update(self._shape.columns)
        return (t for t in self.tables[1:] if needed & (t.fields.keys() - {"id"}))

    def _conditions(self) -> Iterator[Clause]:
        shape = self._shape
        yield from self._base.visibility(shape, self._engine)
        # Pages below a page in the scope are in the scope as well.
        if not _BELOW & set(shape.relations):
            yield from self._base.in_scope(shape, self._engine)
        if shape.types is not None:
            labels = sorted(shape.types)
            label = self._base.field("type")
            if shape.walk or shape.is_narrow:
                label = self._engine.unindexed(label)
            yield label == labels[0] if len(labels) == 1 else label.in_(labels)
        for number, relation in enumerate(shape.relations):
            yield self._on_tree(number, relation)
        for number, (column, operator, arity) in enumerate(shape.filters):
            yield from self._on_column(number, column, operator, arity)
        if shape.searched:
            yield self._engine.matches(self._words, self._search())

    def _search(self) -> SQL:
        engine = self._engine
        return self.slot(lambda v: engine.query(tokens(v.query.search.words), v.query.search.every))

    def _tokens(self) -> Iterator[SQL]:
        """The tokens of the words of the search."""
        for number in range(self._shape.searched):
            yield self.slot(_nth_token(number))

    # The tree.

    def _page(self, number: int) -> SQL:
        """The id of a page that the query names."""
        return self.slot(lambda values: values.query.tree[number].page)

    def named(self) -> Iterator[Clause]:
        """The path of each page that the query names; NULL if it may not be seen in the scope."""
        shape, engine = self._shape, self._engine
        for number in range(len(shape.relations)):
            yield self._of_page(
                "path_",
                self._page(number),
                lambda pages: [*pages.visibility(shape, engine), *pages.in_scope(shape, engine)],
            )

    def _of_page(
        self,
        column: str,
        identity: Clause,
        conditions: Callable[[_BaseTable], Sequence[Clause]] = lambda pages: (),
    ) -> Clause:
        """A column of the page with an id.

        :param conditions: further conditions on the page.
        """
        found = []
        for part, _ in self._endpoint.parts(None):
            pages = _BaseTable(part, aliased=True)
            met = all_of([pages.has_id(identity), *conditions(pages)])
            found.append(pages.model.select(pages.field(column)).where(met))
        return found[0] if len(found) == 1 else fn.COALESCE(*found)

    def _on_tree(self, number: int, relation: str) -> Clause:
        page = self._page(number)
        if relation == "child_of":
            return self._base.field("parent") == page
        if relation == "ancestor_of":
            return self.identity.in_(self._ancestors(number))
        if relation == "translation_of":
            wanted = self._of_page("translation_key", page)
            same = self._engine.equals(self._base.field("translation_key"), wanted)
            return same & (self.identity != page)
        start, stop = self._branch_range(number)
        return self._base.below(start, stop, self._shape, self._engine)

    def _branch_range(self, number: int) -> tuple[Clause, Clause]:
        """The path of a page that the query names, and the end of its branch."""
        if self._shape.counted:
            path = self.slot(lambda values: values.named[number])
            return path, self.slot(lambda values: end(values.named[number]))
        found = self._of_page("path_", self._page(number))
        return found, peewee.StringExpression(found, peewee.OP.CONCAT, AFTER)

    def _ancestors(self, number: int) -> Any:
        """The ids of the pages above one that the query names."""
        name = f"above{number}"
        parent = self._of_page("parent", self._page(number))
        found = peewee.Select(columns=[parent]).cte(name, recursive=True, columns=["id"])
        further = self._of_page("parent", found.c.id)
        found = found.union_all(peewee.Select([found], [further]).where(found.c.id.is_null(False)))
        self.named_queries[name] = found
        return peewee.Select([found], [found.c.id]).where(found.c.id.is_null(False))

    # Filters.

    def _on_column(self, number: int, column: str, operator: str, arity: int) -> Iterator[Clause]:
        if operator == "all":
            yield from self._on_entries(number, column, arity)
            return
        if column == "url_path":
            yield self.part.has_address(self._engine, partial(self._address, number))
            return
        field = self._field(column)
        if operator == "in":
            yield self._one_of(number, field, range(arity))
        elif operator == "eq":
            yield self._engine.equals(field, self._wanted(number, field))
        else:
            yield peewee.Expression(field, _COMPARE[operator], self._wanted(number, field))
        yield from self._target_visible(self._column(column), field)

    def _address(self, number: int, make: Callable[[str], Any]) -> SQL:
        """A parameter made from the requested address."""
        return self.slot(lambda values: make(values.query.filters[number].value))

    def _wanted(self, number: int, field: StoredField, index: int | None = None) -> SQL:
        """A requested value, as stored in a column."""

        def get(values: Any) -> Any:
            wanted = values.query.filters[number].value
            return field.db_value(wanted if index is None else wanted[index])

        return self.slot(get)

    def _one_of(self, number: int, field: StoredField, indexes: Sequence[int]) -> Clause:
        """The condition that a column has one of the requested values.

        :param indexes: the indexes of these values.
        """
        values = [self._wanted(number, field, index) for index in indexes]
        return self._engine.one_of(field, values)

    def _on_entries(self, number: int, column: str, arity: int) -> Iterator[Clause]:
        """The conditions that an object has every requested tag or visible target.

        The first ones get a subquery each, so that the database can start with the rarest. The
        others share one.
        """
        table = next(table for table in self.tables if table.has(column)).many[column]
        identity, entry = table.fields["id"], table.fields[table.entry]
        visible = [*self._target_visible(table.columns.get(table.entry), entry)]
        before = sum(count for _, other, count in self._shape.filters[:number] if other == "all")
        few = min(arity, max(FEW_TAGS - before, 0))
        singly, together = range(few), range(few, arity)
        for indexes in [*([index] for index in singly), *filter(None, [together])]:
            wanted = all_of([self._one_of(number, entry, indexes), *visible])
            found = table.model.select(identity).where(wanted)
            if len(indexes) > 1:
                all_there = fn.COUNT(entry.distinct()) == literal(len(indexes))
                found = found.group_by(identity).having(all_there)
            yield self.identity.in_(found)

    def _target_visible(self, column: Column | None, field: StoredField) -> Iterator[Clause]:
        """For a relation to one, the condition that the viewer may see its target.

        :param column: the declared field of a column; derived ones have none.
        :param field: the column.
        """
        if column is not None and column.target is not None:
            parts = self._all_tables.endpoints[column.target.served_at.name].parts(None)
            yield any_of([self._points_into(part, field) for part, _ in parts])

    def _points_into(self, part: EndpointTables, field: StoredField) -> Clause:
        """The condition that a relation points to a visible object in a part of the tables."""
        objects = _BaseTable(part, aliased=True)
        conditions = [objects.has_id(field), *objects.visibility(self._shape, self._engine)]
        return fn.EXISTS(objects.model.select(SQL("1")).where(all_of(conditions)))

    # Order.

    def order(self) -> list[Clause]:
        """The keys to order by."""
        shape, engine = self._shape, self._engine
        default = self._base.field("path_") if self._endpoint.endpoint.tree else self.identity
        if shape.random:
            return [engine.random()]
        if shape.order:
            keys = [key for order in shape.order for key in self._sort_keys(order)]
            # An index on a column includes the id of the same table.
            return [*keys, *engine.sort_keys(self._ordered().fields["id"], shape.backward)]
        if shape.searched:
            return [engine.rank(self._words, [*self._tokens()], shape.every), default]
        return [default.desc() if shape.backward else default.asc()]

    def _ordered(self) -> OwnTable:
        """The table of the first key of the order."""
        return next(table for table in self.tables if table.has(self._shape.order[0].column))

    def order_here(self) -> list[Clause]:
        """The keys to order by within this part alone, which may be simpler."""
        shape = self._shape
        if shape.random or shape.order or shape.searched:
            return self.order()
        default = self.part.default_order
        return [default.desc() if shape.backward else default.asc()]

    def _sort_keys(self, order: Order) -> Sequence[Clause]:
        field = self._field(order.column)
        visibility = [*self._target_visible(self._column(order.column), field)]
        shown = peewee.Case(None, [(visibility[0], field)], None) if visibility else field
        return self._engine.sort_keys(shown, order.descending is not self._shape.backward)


_COMPARE = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}

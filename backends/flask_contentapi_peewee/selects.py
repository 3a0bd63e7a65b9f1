"""Builds peewee queries for the objects that meet conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import peewee
from peewee import SQL, fn

from flask_contentapi.declarations import Column
from flask_contentapi.query import MOST_VALUES, Order, Search
from flask_contentapi_peewee.columns import (
    AFTER,
    OPEN,
    Clause,
    StoredField,
    all_of,
    any_of,
    end,
    md5,
)
from flask_contentapi_peewee.engines import Engine
from flask_contentapi_peewee.shapes import MANY, Shape, literal, operands, slot
from flask_contentapi_peewee.tables import StoredTable, Tables

#: How many tags and targets of a request get a subquery each.
FEW_ENTRIES = 8
#: The relations to a page of pages below it.
_BELOW = frozenset(("child_of", "descendant_of"))


def _compared(operator: str) -> Condition:
    return lambda engine, field, wanted: engine.compare(field, operator, wanted[0])


def _starts_with(engine: Engine, field: Clause, wanted: Sequence[Clause]) -> Clause:
    start, *end = wanted
    above = engine.compare(field, ">=", start)
    return above & engine.compare(field, "<", end[0]) if end else above


#: The condition that a column is there and compares in some way with the :func:`operands`.
Condition = Callable[[Engine, Clause, Sequence[Clause]], Clause]

#: The condition of each operator. That for ``not`` is negated, with a missing value meeting it.
CONDITIONS: dict[str, Condition] = {
    "eq": _compared("="),
    "in": lambda engine, field, wanted: engine.one_of(field, wanted),
    "not": lambda engine, field, wanted: field.in_(wanted),
    "lt": _compared("<"),
    "le": _compared("<="),
    "gt": _compared(">"),
    "ge": _compared(">="),
    "startswith": _starts_with,
}


class _BaseTable:
    """The base table of an endpoint in a statement.

    :param aliased: whether it has an alias, because it occurs twice in the statement.
    """

    def __init__(
        self, all_tables: Tables, shape: Shape, endpoint: str, aliased: bool = False
    ) -> None:
        self._all_tables, tables = all_tables, all_tables.endpoints[endpoint]
        self._shape, self._engine, self._endpoint = shape, all_tables.engine, tables.endpoint
        self.model: Any = tables.base.model.alias() if aliased else tables.base.model
        self._fields = tables.base.fields

    def field(self, column: str) -> Any:
        return getattr(self.model, self._fields[column].name)

    def visibility(self) -> Iterator[Clause]:
        if self._shape.visible.everything:
            return
        conditions = [*self._visibility()]
        if conditions and self._shape.visible.previewed == self._endpoint.name:
            previewed = slot(self._engine, lambda values: values.viewer.previewed[1])
            conditions = [any_of([all_of(conditions), self.field("id") == previewed])]
        yield from conditions

    def _visibility(self) -> Iterator[Clause]:
        engine, visible = self._engine, self._shape.visible
        if self._endpoint.tree:
            access, moment = self.field("access_"), literal(visible.since)
            opened = slot(engine, lambda values: engine.array([OPEN, *values.viewer.pages]))
            yield engine.among(access, opened) if visible.opened else access == literal(OPEN)
            # Nearly all pages are visible, so an index would be useless.
            yield engine.unindexed(self.field("visible_from_")) <= moment
            yield engine.unindexed(self.field("visible_until_")) > moment
        elif self._endpoint.collections and visible.closed:
            collection = self.field("collection")
            closed = slot(engine, lambda values: engine.array(values.closed))
            yield collection.is_null() | ~engine.among(collection, closed)
        elif self._endpoint.essential is not None:
            page = self.field(self._endpoint.essential)
            pages = _BaseTable(self._all_tables, self._shape, "pages", aliased=True)
            yield page.is_null() | pages.has_visible(page)

    def has_visible(self, identity: Clause, within_site: bool = False) -> Clause:
        """The condition that the viewer may see the object with an id.

        :param within_site: whether it also has to be a page in the scope.
        """
        conditions = [self.field("id") == identity, *self.visibility()]
        conditions += self.in_scope() if within_site else ()
        return fn.EXISTS(self.model.select(SQL("1")).where(all_of(conditions)))

    def path(self) -> Clause:
        """The path, without its index if others narrow more."""
        path, shape = self.field("path_"), self._shape
        return self._engine.unindexed(path) if shape.walk or shape.is_narrow else path

    def in_scope(self) -> Iterator[Clause]:
        paths = self._shape.visible.scope
        if paths is None:
            return
        path = self.path()
        if len(paths) > 1:
            # One range can be walked in default order. Several would have to be sorted.
            yield _between(path, min(paths), max(map(end, paths)))
            path = self._engine.unindexed(path)
        yield any_of([_between(path, start, end(start)) for start in paths])


def _between(column: Clause, start: str, stop: str) -> Clause:
    return (column >= literal(start)) & (column < literal(stop))


class Select:
    """The tables and conditions of one shape of query."""

    def __init__(self, tables: Tables, shape: Shape) -> None:
        self._all_tables = tables
        self.shape = shape
        self._engine = tables.engine
        self._end = tables.endpoints[shape.endpoint]
        self._base = _BaseTable(tables, shape, shape.endpoint)
        self._words = peewee.Table(self._end.words)
        first, *others = [self._end.lineage(label) for label in shape.types or ("",)]
        #: The index tables in which all objects of the types have a row.
        self.indexes = [table for table in first if all(table in other for other in others)]
        self.tables: list[StoredTable] = [self._end.base, *self.indexes]
        self.identity: StoredField = self._end.base["id"]

    def slot(self, get: Callable[[Any], Any]) -> SQL:
        """A parameter that is filled for each query."""
        return slot(self._engine, get)

    def _table(self, column: str) -> StoredTable:
        return next(table for table in self.tables if column in table.fields)

    def _column(self, column: str) -> Column | None:
        label = next(iter(self.shape.types or ("",)))
        return self._end.endpoint.type_of(label).columns.get(column)

    def query(self, *columns: Clause, joined: Sequence[StoredTable] = ()) -> Any:
        """A query for columns of all objects that match.

        :param joined: the tables of the columns, besides the base.
        """
        # The first table is the one with the index that is walked in order.
        first = self._table(self.shape.order[0].column) if self.shape.walk else self._end.base
        source = self._join(joined, first)
        if self.shape.searches:
            on = self.identity == self._engine.words_id(self._words)
            source = peewee.Join(source, self._words, on=on)
        conditions = list(self._conditions())
        query = peewee.Select([source], columns)
        return query.where(all_of(conditions)) if conditions else query

    def facet(self, column: str, *columns: Clause) -> tuple[Any, StoredField]:
        """A query for the most frequent values of a column, how many objects have each, and further
        columns.

        :returns: the query, and the column with the values.
        """
        declared, table = self._column(column), self._end.terms
        if declared is not None and declared.kind.many:
            value = table["text" if declared.target is None else "number"]
            conditions = [table["field"] == SQL(f"'{column}'")]
        else:
            table = self._table(column)
            value = table[column]
            conditions = [value.is_null(False)]
        if column == "type":
            conditions.append(value.in_([*self._end.endpoint.types]))
        conditions += self._target_visible(column, value)
        count = fn.COUNT(SQL("*"))
        query = self.query(value, count, *columns, joined=[table]).where(all_of(conditions))
        group = self._engine.unindexed(value) if self.shape.is_narrow else value
        query = query.group_by(group).order_by(count.desc(), value.asc())
        return query.limit(literal(MOST_VALUES)), value

    def wanted(self) -> Clause:
        """The condition that an object is one of those requested by id."""
        if self.shape.one:
            return self.identity == self.slot(lambda values: values.ids[0])
        ids = self.slot(lambda values: self._engine.array(values.ids))
        return self._engine.among(self.identity, ids)

    def first_of_each(self, most: int) -> Any:
        """A query for the ids of so many first objects for each value of the first filter."""
        column = self._base.field(self.shape.filters[0][0])
        number = fn.ROW_NUMBER().over(partition_by=[column], order_by=self.order())
        found = self.query(self.identity.alias("id"), number.alias("number")).alias("each")
        return peewee.Select([found], [found.c.id]).where(found.c.number <= literal(most))

    def named_by(self, ids: Any, *columns: Clause, joined: Sequence[StoredTable] = ()) -> Any:
        """A query for columns of the objects that another query returns, in the same order."""
        wanted = ids.alias("wanted")
        source = self._join(joined, self._end.base)
        source = peewee.Join(source, wanted, on=wanted.c.id == self.identity)
        return peewee.Select([source], columns).order_by(*self.order())

    def _join(self, joined: Sequence[StoredTable], first: StoredTable) -> Any:
        base = self._end.base
        source: Any = base.model
        ordered = self._engine.ordered_join
        if first is not base:
            source = peewee.Join(first.model, base.model, ordered, first["id"] == base["id"])
        used = {name for name, *_ in (*self.shape.filters, *self.shape.order)}
        needed: list[StoredTable]
        needed = [t for t in self.indexes if t in joined or used & (t.fields.keys() - {"id"})]
        needed += [table for table in (self._end.documents, self._end.terms) if table in joined]
        for table in needed:
            if table is not first:
                # Terms would be grouped in the order of their index, whatever few objects match.
                late = table is self._end.terms and self.shape.is_narrow
                join = ordered if late else peewee.JOIN.INNER
                source = peewee.Join(source, table.model, join, table["id"] == base["id"])
        return source

    def _conditions(self) -> Iterator[Clause]:
        shape = self.shape
        yield from self._base.visibility()
        # Pages below a page in the scope are in the scope as well.
        if not _BELOW & set(shape.relations):
            yield from self._base.in_scope()
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
        if shape.searches:
            found = self.slot(
                lambda values: self._engine.query(map(self._search, values.query.searches))
            )
            yield self._engine.matches(self._words, found)

    def _search(self, search: Search) -> tuple[Sequence[str], bool]:
        terms = [self._engine.tokens(word).rpartition(" ")[2] for word in search.words]
        if search.prefix:
            terms[-1] += self._engine.prefix
        return terms, search.every

    def _ranks(self) -> Iterator[Clause]:
        for number, (size, every, prefix) in enumerate(self.shape.searches):
            terms = [self.slot(self._term(number, word)) for word in range(size)]
            if prefix:
                yield self._engine.has(self._words, terms[-1], in_title=True).desc()
            else:
                yield self._engine.rank(self._words, terms, every)

    def _term(self, number: int, word: int) -> Callable[[Any], str]:
        return lambda values: self._search(values.query.searches[number])[0][word]

    # The tree.

    def _page(self, number: int) -> SQL:
        return self.slot(lambda values: values.query.tree[number].page)

    def named(self) -> Iterator[Clause]:
        """The path of each page that the query names; NULL if it may not be seen in the scope."""
        for number in range(len(self.shape.relations)):
            page = self._page(number)
            yield self._of_page("path_", page, lambda p: [*p.visibility(), *p.in_scope()])

    def _of_page(
        self,
        column: str,
        identity: Clause,
        conditions: Callable[[_BaseTable], Sequence[Clause]] = lambda pages: (),
    ) -> Clause:
        pages = _BaseTable(self._all_tables, self.shape, self.shape.endpoint, aliased=True)
        met = all_of([pages.field("id") == identity, *conditions(pages)])
        return pages.model.select(pages.field(column)).where(met)

    def _on_tree(self, number: int, relation: str) -> Clause:
        page = self._page(number)
        if relation == "child_of":
            return self._base.field("parent") == page
        if relation == "ancestor_of":
            return self.identity.in_(self._ancestors(number))
        if relation == "translation_of":
            wanted = self._of_page("translation_key", page)
            same = self._engine.compare(self._base.field("translation_key"), "=", wanted)
            return same & (self.identity != page)
        path = self._base.path()
        if self.shape.counted:
            start = self.slot(lambda values: values.named[number])
            return (path > start) & (path < self.slot(lambda values: end(values.named[number])))
        start = self._of_page("path_", page)
        return (path > start) & (path < peewee.StringExpression(start, peewee.OP.CONCAT, AFTER))

    def _ancestors(self, number: int) -> Any:
        parent = self._of_page("parent", self._page(number))
        found = peewee.Select(columns=[parent]).cte("above", recursive=True, columns=["id"])
        further = self._of_page("parent", found.c.id)
        found = found.union_all(peewee.Select([found], [further]).where(found.c.id.is_null(False)))
        query = peewee.Select([found], [found.c.id]).where(found.c.id.is_null(False))
        return query.with_cte(found)

    # Filters.

    def _on_column(self, number: int, column: str, operator: str, arity: int) -> Iterator[Clause]:
        shape, declared = self.shape, self._column(column)
        if declared is not None and declared.kind.many:
            yield from self._on_entries(number, column, operator, arity)
            return
        # The index of addresses has their digests, as they can be long.
        is_address = column == "url_path"
        field = self._table(column).fields["url_hash_" if is_address else column]
        encode = md5 if is_address else field.db_value
        there = [*self._target_visible(column, field)]
        if operator == "isnull":
            met = all_of([field.is_null(False), *there])
            yield ~met if arity and there else field.is_null() if arity else met
            return
        if arity == MANY:
            given = self.slot(
                lambda v: self._engine.array(map(encode, v.query.filters[number].value))
            )
            yield from (self._engine.among(field, given), *there)
            return
        # An index would be of no use for what many objects meet.
        useless = shape.broad or (shape.walk and shape.order[0].column != column)
        shown = self._engine.unindexed(field) if useless else field
        wanted = [self._wanted(number, encode, index) for index in range(arity)]
        met = all_of([CONDITIONS[operator](self._engine, shown, wanted), *there])
        yield ~fn.COALESCE(met, SQL("FALSE")) if operator == "not" else met

    def _wanted(self, number: int, encode: Callable[[Any], Any], index: int) -> SQL:
        return self.slot(lambda values: encode(operands(values.query.filters[number])[index]))

    def _on_entries(self, number: int, column: str, operator: str, arity: int) -> Iterator[Clause]:
        """The conditions that an object has every requested tag or visible target, one of them, or
        none.

        The first of those that have to be there get a subquery each, so that the database can start
        with the rarest. The others share one. Where many objects match, each is looked up.
        """
        terms, declared, shape = self._end.terms.fields, self._column(column), self.shape
        identity = terms["id"]
        entry = terms["number" if declared is not None and declared.target else "text"]
        named = [terms["field"] == SQL(f"'{column}'"), *self._target_visible(column, entry)]
        values = [self._wanted(number, entry.db_value, index) for index in range(arity)]
        before = sum(count for _, other, count in shape.filters[:number] if other == "all")
        few = max(FEW_ENTRIES - before, 0) if operator == "all" else 0
        parts = [[value] for value in values[:few]]
        if values[few:] or operator != "all":
            parts.append(values[few:])
        for some in parts:
            # Looking up many values for each object takes longer than reading its few entries.
            is_scan = operator == "not" and len(some) > FEW_ENTRIES
            shown = self._engine.unindexed(entry) if is_scan else entry
            wanted = all_of([*named, self._engine.one_of(shown, some)])
            every = operator == "all" and len(some) > 1
            if operator == "not" or (not every and (shape.walk or shape.broad)):
                there = all_of([identity == self.identity, wanted])
                met = fn.EXISTS(self._end.terms.select(SQL("1")).where(there))
                yield ~met if operator == "not" else met
                continue
            found = self._end.terms.select(identity).where(wanted)
            if every:
                all_there = fn.COUNT(entry.distinct()) == literal(len(some))
                found = found.group_by(identity).having(all_there)
            yield self.identity.in_(found)

    def _target_visible(self, column: str, field: StoredField) -> Iterator[Clause]:
        """For a relation, the condition that the viewer may see its target, if it is within a
        site in the scope.

        :param field: the stored id of the target.
        """
        declared = self._column(column)
        if declared is None or declared.target is None:
            return
        endpoint = declared.target.served_at.name
        objects = _BaseTable(self._all_tables, self.shape, endpoint, aliased=True)
        yield objects.has_visible(field, declared.within_site)

    # Order.

    def order(self) -> list[Clause]:
        """The keys to order by."""
        shape, engine = self.shape, self._engine
        default = self._end.default_order
        if shape.random:
            return [engine.database.random()]
        if shape.order:
            keys = [key for order in shape.order for key in self._sort_keys(order)]
            # An index on a column includes the id of the same table.
            ordered = self._table(shape.order[0].column).fields["id"]
            return [*keys, *engine.sort_keys(ordered, shape.backward)]
        return [*self._ranks(), default.desc() if shape.backward else default.asc()]

    def _sort_keys(self, order: Order) -> Sequence[Clause]:
        field = self._table(order.column).fields[order.column]
        visibility = list(self._target_visible(order.column, field))
        shown = peewee.Case(None, [(visibility[0], field)], None) if visibility else field
        return self._engine.sort_keys(shown, order.descending is not self.shape.backward)

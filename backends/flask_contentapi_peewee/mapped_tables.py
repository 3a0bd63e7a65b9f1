"""The tables for reading, if rows of a site's own models are served with ours.

A common table expression replaces each table that gets such rows. It has the table's own rows,
followed by those of each model, in the same columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial, reduce
from operator import add
from typing import Any
from urllib.parse import quote, unquote

import peewee
from peewee import SQL, fn

from flask_contentapi import kinds
from flask_contentapi.records import Place
from flask_contentapi.registry import Registry
from flask_contentapi_peewee.binding import BoundModel, bind
from flask_contentapi_peewee.columns import Clause, StoredField, md5
from flask_contentapi_peewee.decoding import decoder
from flask_contentapi_peewee.engines import Engine
from flask_contentapi_peewee.mapped_rows import ABOVE, KEY, MappedRows
from flask_contentapi_peewee.mapping import MappedModel
from flask_contentapi_peewee.names import PREFIX, query_name
from flask_contentapi_peewee.tables import EndpointTables, OwnTable, TableMaker, Tables

__all__ = ["MappedTables"]


class _Address(StoredField):
    """An address in which the slugs of a site's own rows follow an empty slug, not quoted."""

    is_plain = False

    def decode(self, value: Any) -> Any:
        ours, _, theirs = value.partition("//")
        return f"{ours}/{quote(theirs)}" if theirs else value


def _forms(address: str) -> Iterator[str]:
    """The possible forms of an address in the row of a site's own page."""
    slugs = address.strip("/").split("/")
    for count in range(1, len(slugs)):
        yield f"/{'/'.join(slugs[:count])}//{unquote('/'.join(slugs[count:]))}/"


class _MappedTableMaker(TableMaker):
    """Makes the tables for reading, which may have values that records cannot have."""

    def address(self) -> StoredField:
        text = self.text()
        return _Address(text.kind, text.field_type)

    def column(self, kind: kinds.Kind, **options: Any) -> StoredField:
        field = super().column(kind, **options)
        is_loose = self._engine.conversion.is_loose
        if is_loose or not field.is_plain:
            field.decode = decoder(field, is_loose)  # type: ignore[method-assign,assignment]
            field.is_plain = False
        return field


class _Part(EndpointTables):
    """Rows of one model, as a table with all columns of the type.

    :param whole: the tables of the endpoint.
    :param mapped: the rows.
    :param number: the index of the query for them.
    :param make: makes the model.
    """

    def __init__(
        self, whole: EndpointTables, mapped: MappedRows, number: int, make: TableMaker
    ) -> None:
        self.endpoint, self.words, self.shift = whole.endpoint, whole.words, mapped.shift
        self._label = mapped.label
        # Rows below one page are in the order of their keys.
        self._is_flat = number == 0 and mapped.begins_flat
        self._whole = whole
        self._own = {}
        tables = (whole.base, *whole.lineage(mapped.label))
        fields: dict[str, StoredField] = {
            name: copy(field) for table in tables for name, field in table.fields.items()
        }
        fields |= {KEY: make.integer()}
        if self.endpoint.tree:
            self.reach = ABOVE
            fields |= {ABOVE: make.path()}
        self.base = make.table(f"{mapped.label.replace('.', '_').lower()}_rows{number}", fields)
        self.base.columns = {n: c for table in tables for n, c in table.columns.items()}
        self.base.many = {name: many for table in tables for name, many in table.many.items()}

    @property
    def key(self) -> StoredField:
        return self.base.fields[KEY]

    @property
    def default_order(self) -> StoredField:
        order: StoredField = self.key if self._is_flat else super().default_order
        return order

    def has_address(self, engine: Engine, address: Callable[[Callable[[str], Any]], SQL]) -> Clause:
        # The slug is nearly unique, and may have an index.
        slug = address(lambda path: unquote(path.rstrip("/").rpartition("/")[2]))
        digests = address(lambda path: ",".join(map(md5, _forms(path))))
        among = engine.conversion.has(digests, self.base.fields["url_hash_"])
        return (self.base.fields["slug"] == slug) & among

    def array(self, label: str, engine: Engine, wanted: SQL) -> Clause:
        table = self._whole.own[label]
        if table not in self._whole.lineage(self._label):
            return SQL("NULL")
        return engine.array([self.base.fields[name] for name in table.fields if name != "id"])


class MappedTables(Tables):
    """The tables with the rows of mapped models, for reading only.

    A common table expression replaces each table that gets such rows; it has the table's own rows
    and then theirs. Queries for lists and objects ask our tables and each model separately.

    :param own: our own tables.
    :param registry: the declared types.
    :param mapped: the models.
    :raises DeclarationError: if a model does not fit its type.
    """

    def __init__(self, own: Tables, registry: Registry, mapped: Sequence[MappedModel]) -> None:
        make = _MappedTableMaker(own.engine)
        super().__init__(registry, own.engine, make)
        self._bound = bind(mapped, registry)
        self._mapped_rows = [MappedRows(own, bound) for bound in self._bound]
        #: The functions that make the queries of each common table expression, from its columns.
        self._queries: dict[str, Callable[[Sequence[str]], list[Any]]] = {}
        #: The tables that the expressions replace.
        self._tables: dict[str, OwnTable] = {}
        for name, whole in self.endpoints.items():
            mapped_here = [m for m in self._mapped_rows if m.label in whole.endpoint.types]
            if mapped_here:
                self._unite(own.endpoints[name], whole)
                whole.ours = self._ours(whole, make)
                for rows in mapped_here:
                    self._add_parts(whole, rows, make)

    # Common table expressions.

    def _unite(self, own: EndpointTables, whole: EndpointTables) -> None:
        """Adds the rows of the models to the tables of an endpoint."""
        for ours, read in zip(own.all, whole.all, strict=True):
            self._unite_table(ours, read)
            for field, many in ours.many.items():
                self._unite_table(many, read.many[field])

    def _unite_table(self, ours: OwnTable, read: OwnTable) -> None:
        def query(columns: Sequence[str]) -> list[Any]:
            own = ours.model.select(*(ours.fields[column] for column in columns))
            return [own, *(rows for m in self._mapped_rows for rows in m.rows(ours, columns))]

        if len(query(["id"])) > 1:
            name = query_name(ours.model._meta.table_name)
            read.model._meta.set_table_name(name)
            self._queries[name], self._tables[name] = query, read

    @staticmethod
    def _ours(whole: EndpointTables, make: TableMaker) -> EndpointTables:
        """Our tables alone. Tags and child objects are read from the tables of all objects."""
        ours = EndpointTables(whole.endpoint, make)
        for table, read in zip(ours.all, whole.all, strict=True):
            table.many = read.many
        return ours

    def _add_parts(self, whole: EndpointTables, mapped: MappedRows, make: TableMaker) -> None:
        count = len(mapped.objects(whole.base, ["id"]))
        parts = [_Part(whole, mapped, number, make) for number in range(count)]
        whole.further[mapped.label] = parts
        for number, part in enumerate(parts):
            name = str(part.base.model._meta.table_name)
            self._queries[name] = partial(self._part_query, mapped, part.base, number)
            self._tables[name] = part.base

    @staticmethod
    def _part_query(
        mapped: MappedRows, table: OwnTable, number: int, columns: Sequence[str]
    ) -> list[Any]:
        return [mapped.objects(table, columns)[number]]

    def with_ctes(self, query: Any) -> Any:
        text, _ = query.bind(self.engine.database).sql()
        named = [self._named(name, text) for name in self._queries.keys() & {*_NAME.findall(text)}]
        positions = [query for query in map(self._positions, self._mapped_rows) if query]
        needed = [*positions, *named] if named else []
        return query.with_cte(*needed, *(query._cte_list or ())) if needed else query

    def _named(self, name: str, text: str) -> peewee.CTE:
        """A common table expression, for the columns that a statement uses."""
        asked = {"id", *_COLUMN.findall(text)}
        fields = self._tables[name].fields
        queries = self._queries[name]([c for c, f in fields.items() if f.column_name in asked])
        materialized = self.engine.conversion.materialized
        return peewee.CTE(name, reduce(add, queries), materialized=materialized)

    def _positions(self, mapped: MappedRows) -> peewee.CTE | None:
        """The positions in the tree of pages that are rows of a model."""
        positions = mapped.positions()
        if not positions:
            return None
        return peewee.CTE(
            mapped.positions_name, reduce(add, positions), recursive=mapped.is_recursive
        )

    def missing_message(self, database: peewee.Database) -> str:
        for bound in self._bound:
            for model in bound.models:
                table, schema = model._meta.table_name, model._meta.schema
                known = _columns(database, table, schema)
                if not known:
                    return f"{bound.mapped!r}: there is no table {table}."
                for name in model._meta.columns.keys() - known:
                    return f"{bound.mapped!r}: the table {table} has no column {name}."
        return ""

    # Mapped models.

    @property
    def nested(self) -> bool:
        return any(bound.above is not None for bound in self._bound)

    @property
    def bound(self) -> Sequence[BoundModel]:
        """The models, parents first."""
        return self._bound

    def place(self, section: str, identity: int, label: str) -> Place:
        """The place of an object, for messages; for a row with its table."""
        place = super().place(section, identity, label)
        for bound in self._bound:
            if bound.declared.label == label:
                row = f"row {identity - bound.mapped.ids_from} of {self.foreign[label]}"
                return place._replace(name=f"{place.name} ({row})")
        return place

    # The version.

    @property
    def foreign(self) -> Mapping[str, str]:
        return {b.declared.label: b.model._meta.table_name for b in self._bound}

    @property
    def versioned(self) -> bool:
        return all(bound.mapped.version is not False for bound in self._bound)

    def version(self) -> Clause:
        return reduce(_joined_by_dot, [super().version(), *self._versions()])

    def _versions(self) -> Iterator[Clause]:
        """The versions of the models: the number of rows, and the last change."""
        for bound in self._bound:
            column = bound.mapped.version
            if isinstance(column, peewee.ColumnBase):
                parts = (fn.COUNT(SQL("*")), fn.MAX(column))
                count, last = (part.cast("CHAR(40)") for part in parts)
                seen = _joined_by_dot(count, fn.COALESCE(last, ""))
                yield bound.model.select(self.engine.conversion.typed("key", seen))


def _columns(database: peewee.Database, table: str, schema: str | None) -> set[str]:
    """The columns of a table or a view; none if it does not exist."""
    try:
        return {column.name for column in database.get_columns(table, schema)}
    except peewee.ProgrammingError:
        return set()


def _joined_by_dot(left: Clause, right: Clause) -> Clause:
    """Two texts joined by a dot."""
    start = peewee.StringExpression(left, peewee.OP.CONCAT, ".")
    return peewee.StringExpression(start, peewee.OP.CONCAT, right)


#: Possible names of common table expressions in SQL.
_NAME = re.compile(rf"{PREFIX}\w+")
#: Possible columns in SQL.
_COLUMN = re.compile(r"\.[\"`](\w+)[\"`]")

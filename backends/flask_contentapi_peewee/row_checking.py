"""Checks the rows of a site's own models, which are not checked when they are written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from peewee import SQL, ColumnBase, NodeList, fn

from flask_contentapi.errors import Problem
from flask_contentapi.query import Row
from flask_contentapi.records import Place, RecordReader, write_record
from flask_contentapi.registry import Registry
from flask_contentapi_peewee.binding import BoundModel
from flask_contentapi_peewee.columns import ALWAYS, NEVER
from flask_contentapi_peewee.mapped_tables import MappedTables
from flask_contentapi_peewee.reader import DatabaseReader
from flask_contentapi_peewee.rows import batches
from flask_contentapi_peewee.tables import EndpointTables

__all__ = ["check_rows"]

#: The kinds for which a column may hold an invalid value.
_READ = frozenset(("date", "time", "datetime", "decimal", "float", "json", "blocks"))

#: The fields that are derived from the type and the place of a row.
_DERIVED = frozenset(("id", "type", "parent", "restriction"))
#: How unreadable values are shown, by kind; others are null.
_SHOWN = {"text": "an empty text", "boolean": "false"}
#: The fields that determine from when and until when a page is shown.
_MOMENTS = frozenset(("go_live_at", "expires_at"))


def check_rows(
    reader: DatabaseReader, registry: Registry, tables: MappedTables
) -> Iterator[Problem]:
    """The problems of rows that cannot be served, are served differently than meant, or clash."""
    for bound in tables.bound:
        yield from _RowChecker(reader, registry, tables, bound).problems()
    for name in dict.fromkeys(bound.declared.served_at.name for bound in tables.bound):
        yield from _clashes(reader, tables, name)


def _clashes(reader: DatabaseReader, tables: MappedTables, name: str) -> Iterator[Problem]:
    """The problems of objects with the same id, and of sibling pages with the same slug."""
    endpoint = tables.endpoints[name]
    for (identity,) in _repeated(reader, endpoint, "id"):
        yield Place(name, -1, f"{name} {identity}").problem("id", "several objects have this id")
    if not endpoint.endpoint.tree:
        return
    fields = endpoint.base.fields
    for parent, slug in _repeated(reader, endpoint, "parent", "slug"):
        same = (fields["parent"] == parent) & (fields["slug"] == slug)
        query = endpoint.base.model.select(fields["id"], fields["type"]).where(same)
        first, *others = reader.all(query.order_by(fields["path_"]))
        for identity, label in others:
            message = f"page {first[0]} beside it has the slug {slug!r} already, and is found by it"
            yield tables.place(name, identity, label).problem("slug", message)


def _repeated(reader: DatabaseReader, endpoint: EndpointTables, *columns: str) -> list[Any]:
    """The values in some columns that several objects share."""
    fields = [endpoint.base.fields[column] for column in columns]
    query = endpoint.base.model.select(*fields).group_by(*fields).having(fn.COUNT(SQL("*")) > 1)
    return [row for row in reader.all(query.order_by(*fields)) if None not in row]


class _RowChecker:
    """The rows of one mapped model.

    :param reader: reads the content.
    :param registry: the declared types.
    :param tables: the tables.
    :param bound: the model.
    """

    def __init__(
        self, reader: DatabaseReader, registry: Registry, tables: MappedTables, bound: BoundModel
    ) -> None:
        self._reader = reader
        self._registry = registry
        self._tables = tables
        self._bound = bound
        self._endpoint = bound.declared.served_at
        self._label = bound.declared.label
        self._convert = tables.engine.conversion

    def problems(self) -> Iterator[Problem]:
        """All problems of the rows."""
        ids = self._served(self._tables.endpoints[self._endpoint.name])
        ours = self._served(self._tables.endpoints[self._endpoint.name].ours)
        for identity in ours:
            place = Place(self._endpoint.name, -1, f"{self._endpoint.name} {identity}")
            table = self._tables.foreign[self._label]
            yield place.problem("type", f"{self._label} are the rows of {table}; this is none")
        if self._bound.is_page:
            yield from self._lost({*ids})
        yield from self._unfit(ids)

    def _served(self, endpoint: EndpointTables) -> list[int]:
        """The ids of the objects that are served."""
        identity, label = (endpoint.base.fields[name] for name in ("id", "type"))
        query = endpoint.base.model.select(identity).where(label == self._label)
        return [found for (found,) in self._reader.all(query.order_by(identity))]

    def _rows(self, *columns: Any, condition: Any = None) -> list[Any]:
        """The id and some columns of all rows that should be served."""
        query = self._bound.model.select(self._bound.identity, *columns)
        for wanted in (self._bound.mapped.where, condition):
            query = query if wanted is None else query.where(wanted)
        return self._reader.all(query.order_by(self._bound.identity))

    def _place(self, identity: int) -> Place:
        return self._tables.place(self._endpoint.name, identity, self._label)

    # Rows without a place in the tree.

    def _lost(self, served: set[int]) -> Iterator[Problem]:
        """The problems of rows that have no place in the tree."""
        bound = self._bound
        under = bound.mapped.under if bound.above else bound.parent
        if under is not None and under not in self._ids_of_ours():
            yield Problem(repr(bound.mapped), "parent", f"there is no page {under} of ours")
        above: Any = SQL("NULL")
        if bound.above:
            above = self._convert.object_id(bound.shifted(bound.parent, bound.above))
        # Selected as it is, because peewee could not convert every value.
        slug = NodeList((self._given("slug"),)).alias("given_")
        rows = {identity: found for identity, *found in self._rows(slug, above)}
        parents = {identity: parent for identity, (_, parent) in rows.items()}
        for identity in rows.keys() - served:
            key, message = self._reason(identity, rows[identity][0], parents)
            yield self._place(identity).problem(key, f"{message}; it is not served")

    def _given(self, column: str) -> Any:
        """The column, expression or constant of a field."""
        bound = self._bound
        declared = bound.declared
        return bound.mapped_value(
            declared, declared.columns[column], bound.model, bound.mapped.columns
        )

    def _ids_of_ours(self) -> set[int]:
        base = self._tables.endpoints[self._endpoint.name].ours.base
        return {page for (page,) in self._reader.all(base.model.select(base.fields["id"]))}

    def _reason(self, identity: int, slug: Any, parents: Mapping[int, Any]) -> tuple[str, str]:
        """Why a row has no place: the field, and the message."""
        try:
            self._bound.declared.columns["slug"].read(slug)
        except ValueError as error:
            return "slug", str(error)
        parent = parents[identity]
        if self._bound.above is None or parent is None:
            return "parent", "the page that it is below is not there"
        if self._bound.above is self._bound.mapped and _is_circle(identity, parents):
            return "parent", "the pages above it form a circle"
        return "parent", f"page {parent}, which it is below, is not there or not served"

    # Values.

    def _unfit(self, ids: Sequence[int]) -> Iterator[Problem]:
        """The problems of values that no record could have."""
        unread = {name: self._with(name) for name in self._read_from_columns()}
        collections = {
            c["id"] for c in self._reader.records(self._tables.collections, ["id"], "id")
        }
        known = {"collection": {None, *collections}}
        if self._reader.locales:
            known["locale"] = {None, *self._reader.locales}
        hidden = self._never_shown()
        unreadable = self._unreadable()
        for some in batches(ids):
            stored = self._reader.stored(self._endpoint.name, some, self._label)
            for identity, (*row, _) in sorted(stored.items()):
                yield from self._unfit_record(tuple(row))
                values = dict(zip(self._bound.declared.column_names, row, strict=True))
                for name, shown in unreadable.get(identity, ()):
                    message = f"cannot be read; it is shown as {shown}"
                    yield self._place(identity).problem(name, message)
                for name, there in unread.items():
                    if values[name] is None and identity in there:
                        hides = name in _MOMENTS and identity in hidden
                        message = "cannot be read; it is shown as null"
                        yield self._place(identity).problem(
                            name, f"{message}, and the page is hidden" if hides else message
                        )
                for name, fitting in known.items():
                    if values.get(name) not in fitting:
                        message = f"there is no {name} {values[name]!r}"
                        yield self._place(identity).problem(name, message)

    def _unreadable(self) -> Mapping[int, Sequence[tuple[str, str]]]:
        """The fields that are shown as if they were empty, by object: the name, and how shown."""
        found: defaultdict[int, list[tuple[str, str]]] = defaultdict(list)
        for name, column in self._bound.declared.columns.items():
            if name in _DERIVED or column.kind.name in ("tags", "children"):
                continue
            if not isinstance(self._given(name), ColumnBase):
                continue
            condition = self._convert.has_other_kind(column.kind.name, self._given(name))
            rows = [] if condition is None else self._rows(condition=condition)
            for (identity,) in rows:
                found[identity].append((name, _SHOWN.get(column.kind.name, "null")))
        return found

    def _never_shown(self) -> set[int]:
        """The pages that are always hidden."""
        if not self._bound.is_page:
            return set()
        base = self._tables.endpoints[self._endpoint.name].base
        start, until = base.fields["visible_from_"], base.fields["visible_until_"]
        query = base.model.select(base.fields["id"]).where((start == NEVER) | (until == ALWAYS))
        return {page for (page,) in self._reader.all(query)}

    def _read_from_columns(self) -> Iterator[str]:
        """The fields that come from columns that may hold an invalid value."""
        for name, column in self._bound.declared.columns.items():
            if column.kind.name in _READ and isinstance(self._given(name), ColumnBase):
                yield name

    def _with(self, column: str) -> set[int]:
        """The objects whose rows have a value for a field."""
        rows = self._rows(condition=self._given(column).is_null(False))
        return {identity for (identity,) in rows}

    def _unfit_record(self, row: Row) -> Iterator[Problem]:
        """The problems that a row would have as a record."""
        reader = RecordReader(self._registry, logs=False)
        reader.read_entry(self._endpoint.name, -1, write_record(self._endpoint, row))
        place = self._place(row[0])
        for problem in reader.problems:
            where = problem.where.replace(f"{self._endpoint.name} {row[0]}", place.name, 1)
            yield replace(problem, where=where)


def _is_circle(identity: int, parents: Mapping[int, Any]) -> bool:
    """Whether an object is among those above it."""
    seen: set[Any] = set()
    above = parents[identity]
    while above in parents and above not in seen:
        seen.add(above)
        above = parents[above]
    return identity in seen

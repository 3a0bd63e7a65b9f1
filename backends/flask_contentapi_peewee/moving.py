"""Moves objects from the tables of an old layout to those of the declared types."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from decimal import Decimal
from itertools import chain
from typing import Any

import peewee

from flask_contentapi.errors import Problem
from flask_contentapi.kinds import Gap
from flask_contentapi.query import Row
from flask_contentapi.records import Place, RecordReader
from flask_contentapi.registry import Registry
from flask_contentapi.types import Column, ObjectType
from flask_contentapi_peewee.columns import stored_field
from flask_contentapi_peewee.layouts import (
    CHILDREN,
    RELATIONS,
    Location,
    Locations,
    TableLayout,
    kind_named,
    name_of,
    tables_in,
)
from flask_contentapi_peewee.rows import (
    BATCH,
    Replacer,
    TreePosition,
    batches,
    stored_values,
    words_of_row,
)
from flask_contentapi_peewee.tables import EndpointTables, OwnTable, Tables

__all__ = ["Mover", "stored_types"]

#: Empty values, which may be dropped if a column cannot store them.
_EMPTY: tuple[Any, ...] = ("", False, [], {})

#: The kinds of numbers.
_NUMBERS = ("integer", "float", "decimal")
#: A row of the columns of its type, and the extra values of an undeclared type.
Entry = tuple[Row, dict[str, Any]]


class Mover:
    """Moves objects from one layout of the tables to another.

    :param tables: the tables of the declared types.
    :param registry: the declared types.
    :param old: the layout that the objects have.
    :param aside: the new names of tables and columns that are put aside, by table and column; the
        column is "" for a table. They exist only once they are put aside.
    """

    def __init__(
        self,
        tables: Tables,
        registry: Registry,
        old: TableLayout,
        aside: Mapping[tuple[str, str], str],
    ) -> None:
        self._tables = tables
        self._engine = tables.engine
        self._registry = registry
        self._old = old
        self._aside = aside
        self._replacer = Replacer(tables.engine)

    def problems(self, is_moved: Callable[[EndpointTables, str], bool]) -> Iterator[Problem]:
        """The problems of objects as objects of the declared types.

        :param is_moved: returns whether the objects of a type are to be moved.
        """
        reader = RecordReader(self._registry, logs=False)
        for tables, label in self._types_to_move(is_moved):
            for ids in self._batches(tables, label):
                entries = self._entries(reader, tables, label, ids)
                yield from reader.problems
                reader.problems.clear()
                yield from self._child_id_clashes(tables, label, entries)

    def _child_id_clashes(
        self, tables: EndpointTables, label: str, entries: Sequence[Entry]
    ) -> Iterator[Problem]:
        """The problems of child objects with the id of a child of another object."""
        section, declared = tables.endpoint.name, tables.endpoint.type_of(label)
        for name, column in declared.columns.items():
            if column.child is not None:
                place = declared.places[name]
                owners = {child[0]: row[0] for row, _ in entries for child in row[place]}
                for identity in self._taken_ids(tables, column.child, owners):
                    where = Place(section, -1, f"{section} {owners[identity]}")
                    yield where.problem(name, f"the id {identity} stands in another object already")

    def _taken_ids(
        self, tables: EndpointTables, child: ObjectType, owners: Mapping[int, int]
    ) -> Iterator[int]:
        """The ids of child objects that children of other objects have too.

        :param owners: the objects that the children belong to, by the children's ids.
        """
        for own, name in self._child_tables(child):
            raw = self._raw(name)
            for some in batches([*owners]):
                query = raw.select(raw.c.id, raw.c.owner_).where(raw.c.id.in_(some))
                for identity, owner in query.tuples():
                    if own is not tables or owner != owners[identity]:
                        yield identity

    def _child_tables(self, child: ObjectType) -> Iterator[tuple[EndpointTables, str]]:
        """The tables with child objects of a type, each with the tables of its endpoint."""
        old = self._old
        former = [locations for label, locations in old.former.items() if label in old.locations]
        known = chain(old.locations.values(), former)
        # Remains of undeclared types are rewritten when the types are declared again.
        used = {location.table for locations in known for location in locations.values()}
        for tables in self._tables.endpoints.values():
            for many in (many for table in tables.all for many in table.many.values()):
                name = name_of(many)
                if many.child is child and name in used and "owner_" in old.columns[name]:
                    yield tables, name

    def move(
        self, is_moved: Callable[[EndpointTables, str], bool], former: Mapping[str, Locations]
    ) -> None:
        """Writes objects to their new tables, with their words.

        :param is_moved: returns whether the objects of a type are to be moved.
        :param former: where the values of removed fields stay, by type.
        """
        reader = RecordReader(self._registry, logs=False)
        for tables, label in self._types_to_move(is_moved):
            for ids in self._batches(tables, label):
                entries = self._entries(reader, tables, label, ids)
                self._write(tables, label, ids, entries)
        for tables in self._tables.endpoints.values():
            for table in tables.all:
                self._delete_stale_rows(tables, table, former)

    def _types_to_move(
        self, is_moved: Callable[[EndpointTables, str], bool]
    ) -> Iterator[tuple[EndpointTables, str]]:
        for tables in self._tables.endpoints.values():
            if name_of(tables.base) in self._old.columns:
                for label in stored_types(tables):
                    if is_moved(tables, label):
                        yield tables, label

    # Reading.

    def _batches(self, tables: EndpointTables, label: str) -> Iterator[list[int]]:
        """The ids of the objects of a type, in batches."""
        raw = self._raw(name_of(tables.base))
        last = None
        while True:
            wanted = raw.c.type == label
            if last is not None:
                wanted &= raw.c.id > last
            found = raw.select(raw.c.id).where(wanted).order_by(raw.c.id).limit(BATCH).tuples()
            ids = [identity for (identity,) in found]
            if not ids:
                return
            yield ids
            last = ids[-1]

    def _entries(
        self, reader: RecordReader, tables: EndpointTables, label: str, ids: Sequence[int]
    ) -> list[Entry]:
        name = tables.endpoint.name
        records = self._records(tables, label, ids)
        entries = (reader.read_entry(name, -1, record) for record in records)
        return [entry for entry in entries if entry is not None]

    def _records(
        self, tables: EndpointTables, label: str, ids: Sequence[int]
    ) -> Iterator[dict[str, Any]]:
        """Objects of a type as records, read from their old tables."""
        locations = self._old_locations(tables, label)
        columns = tables.endpoint.type_of(label).columns
        found: dict[int, dict[str, Any]] = {identity: {} for identity in ids}
        self._read_columns(locations, found)
        self._read_many(locations, columns, found)
        base = self._raw(name_of(tables.base))
        query = base.select(base.c.id, base.c.extras_).where(base.c.id.in_(ids))
        decode = tables.base.fields["extras_"].python_value
        extras_of = {identity: decode(stored) or {} for identity, stored in query.tuples()}
        self._restore_fields(tables, label, extras_of)
        for identity, values in found.items():
            known = {field: values[field] for field in locations if values.get(field) is not None}
            extras = extras_of.get(identity, {})
            record = {"id": identity, "type": label, **known, **extras}
            yield {
                name: self._convert(
                    value, columns[name], None if name in extras else locations.get(name)
                )
                if name in columns
                else value
                for name, value in record.items()
                if name in columns or label in self._old.locations or not _is_empty(value)
            }

    def _old_locations(self, tables: EndpointTables, label: str) -> Locations:
        """Where the fields are stored that objects of a type will still have."""
        columns = tables.endpoint.type_of(label).columns
        former = {
            field: location
            for field, location in self._old.former.get(label, {}).items()
            if field in columns
        }
        known = self._old.locations.get(label)
        if known is None:
            return {**former, **self._old.locations[tables.endpoint.name]}
        if label not in tables.endpoint.types:
            return {**former, **known}
        # An existing column may have earlier values of the field.
        rows = [(table, self._old.columns[table]) for table in self._old.rows[label]]
        in_columns = {
            f: Location(table, kind) for table, kinds in rows for f, kind in kinds.items()
        }
        known = {**in_columns, **former, **known}
        return {field: known[field] for field in columns if field in known}

    def _read_columns(self, locations: Locations, found: dict[int, dict[str, Any]]) -> None:
        """Puts the values of columns into records."""
        fields: defaultdict[str, dict[str, str]] = defaultdict(dict)
        for field, location in locations.items():
            if not location.has_own_table and field != "id":
                fields[location.table][field] = location.kind
        for table, columns in fields.items():
            for identity, *values in self._select(table, "id", columns, found):
                found[identity] |= zip(columns, values, strict=True)

    def _read_many(
        self, locations: Locations, columns: Mapping[str, Column], found: dict[int, dict[str, Any]]
    ) -> None:
        """Puts tags, targets and child objects into records."""
        for field, location in locations.items():
            if not location.has_own_table:
                continue
            key = "owner_" if location.kind == CHILDREN else "id"
            kinds = self._old.columns[location.table]
            names = ["sort_", "target_"] if location.kind == RELATIONS else ["tag"]
            if location.kind == CHILDREN:
                child = columns[field].child if field in columns else None
                more = [name for name in (child.columns if child else ()) if name in kinds]
                names = ["sort_", *dict.fromkeys(["id", *location.fields, *more])]
            for values in found.values():
                values[field] = []
            known = {column: kinds[column] for column in names}
            for owner, *row in self._select(location.table, key, known, found):
                values = {c: v for c, v in zip(known, row, strict=True) if v is not None}
                values.pop("sort_", None)
                found[owner][field].append(values if key == "owner_" else values[names[-1]])

    def _restore_fields(
        self, tables: EndpointTables, label: str, extras_of: dict[int, dict[str, Any]]
    ) -> None:
        """Makes extras fit a type that is declared again.

        Fields that the type had when it was removed but does not have now stay where they were,
        if their values are unchanged. Child objects get back the values they had before.
        """
        locations = {
            f: s for f, s in self._old.undeclared.get(label, {}).items() if self._is_intact(f, s)
        }
        if label not in tables.endpoint.types or not locations:
            return
        columns = tables.endpoint.types[label].columns
        before: dict[int, dict[str, Any]] = {identity: {} for identity in extras_of}
        self._read_columns(locations, before)
        self._read_many(locations, columns, before)
        for identity, extras in extras_of.items():
            for field in extras.keys() & before[identity].keys():
                was, column = before[identity][field], columns.get(field)
                if column is None and extras[field] == was:
                    del extras[field]
                elif column is not None and column.child and locations[field].kind == CHILDREN:
                    rest = column.child.columns.keys() - {*locations[field].fields}
                    extras[field] = _merge_children(extras[field], was, column.child, rest)

    def _is_intact(self, field: str, location: Location) -> bool:
        """Whether a field of a removed type is still stored where it was."""
        columns = self._old.columns.get(location.table, {})
        if location.has_own_table:
            return columns.keys() >= {*location.fields}
        return field != "id" and columns.get(field) == location.kind

    def _select(
        self, table: str, key: str, columns: Mapping[str, str], owners: Iterable[int]
    ) -> Iterator[list[Any]]:
        """Rows of a table: their owner, and the values of columns as in records."""
        put_aside = self._aside.get((table, ""))
        current = put_aside if put_aside and self._exists(put_aside) else table
        raw = self._raw(current)
        names = {column.name for column in self._engine.database.get_columns(current)}
        found = [self._aside.get((table, column), "") for column in columns]
        stored = [a if a in names else c for a, c in zip(found, columns, strict=True)]
        query = raw.select(getattr(raw.c, key), *(getattr(raw.c, column) for column in stored))
        query = query.where(getattr(raw.c, key).in_(list(owners)))
        if "sort_" in columns:
            query = query.order_by(raw.c.sort_)
        known = [kind_named(kind) for kind in columns.values()]
        fields = [stored_field(kind, self._engine.sql_types) for kind in known]
        for owner, *values in query.tuples():
            decoded = [field.python_value(v) for field, v in zip(fields, values, strict=True)]
            yield [
                owner,
                *(
                    None if value is None else kind.write(value)
                    for kind, value in zip(known, decoded, strict=True)
                ),
            ]

    def _exists(self, table: str) -> bool:
        return bool(self._engine.database.table_exists(table))

    def _convert(self, value: Any, column: Column, location: Location | None) -> Any:
        """A value in a record, converted for a column if possible."""
        if column.child is not None and isinstance(value, list):
            kinds = self._old.columns[location.table] if location and location.has_own_table else {}
            return [_convert_child(child, column.child, kinds) for child in value]
        return _convert_value(value, column, location.kind if location else "")

    # Writing.

    def _write(
        self, tables: EndpointTables, label: str, ids: Sequence[int], entries: Iterable[Entry]
    ) -> None:
        declared = tables.endpoint.type_of(label)
        positions = self._tree_positions(tables, ids)
        rows = [
            stored_values(declared, row, extras, positions.get(row[0])) | {"id": row[0]}
            for row, extras in entries
        ]
        for table in (tables.base, *tables.lineage(label)):
            self._replacer.put(table, ids, rows)
        self._engine.delete_words(tables.words, ids)
        words = [
            words_of_row(declared, tuple(row[name] for name in declared.column_names))
            for row in rows
        ]
        self._engine.put_words(tables.words, words)

    def _tree_positions(
        self, tables: EndpointTables, ids: Sequence[int]
    ) -> dict[int, TreePosition]:
        if not tables.endpoint.tree:
            return {}
        raw = self._raw(name_of(tables.base))
        columns = (raw.c.id, raw.c.path_, raw.c.url_path, raw.c.access_)
        found = raw.select(*columns).where(raw.c.id.in_(ids)).tuples()
        return {identity: TreePosition(*where) for identity, *where in found}

    def _delete_stale_rows(
        self, tables: EndpointTables, own: OwnTable, former: Mapping[str, Locations]
    ) -> None:
        """Deletes the rows of a table, and of those that belong to it, for objects that have
        neither rows there any longer nor values of removed fields."""
        base = tables.base
        for table in (own, *own.many.values()):
            with_row = base.model.select(base.fields["id"])
            if own is not base:
                labels = [name for name in tables.endpoint.types if own in tables.lineage(name)]
                labels += [
                    n for n, at in former.items() if name_of(table) in tables_in(at.values())
                ]
                with_row = with_row.where(base.fields["type"].in_(labels))
            if table is not base:
                owner = table.fields["owner_" if table.child else "id"]
                table.model.delete().where(owner.not_in(with_row)).execute()

    def _raw(self, table: str) -> peewee.Table:
        """A table as it is in the database."""
        return peewee.Table(table).bind(self._engine.database)


def stored_types(tables: EndpointTables) -> list[str]:
    """The labels of the types that have objects."""
    base = tables.base
    raw = peewee.Table(name_of(base)).bind(base.model._meta.database)
    return sorted(label for (label,) in raw.select(raw.c.type).distinct().tuples())


def _convert_child(child: Any, declared: ObjectType, kinds: Mapping[str, str]) -> Any:
    if not isinstance(child, Mapping):
        return child
    return {
        name: _convert_value(value, declared.columns[name], kinds.get(name, ""))
        if name in declared.columns
        else value
        for name, value in child.items()
        if name in declared.columns or not (name in kinds or _is_empty(value))
    }


def _merge_children(
    children: Any, before: Sequence[dict[str, Any]], declared: ObjectType, rest: Set[str]
) -> Any:
    """Child objects as objects of their type, which is declared again.

    :param before: their values in their table.
    :param rest: the fields that they did not have when their type was removed.
    """
    if not isinstance(children, list) or not all(isinstance(c, Mapping) for c in children):
        return children
    known = {child["id"]: child for child in before}
    joined = []
    for child in children:
        was = known.get(child.get("id"), {})
        kept = {n: v for n, v in child.items() if n in declared.columns or was.get(n, ...) != v}
        joined.append({n: v for n, v in was.items() if n in rest} | kept)
    return joined


def _convert_value(value: Any, column: Column, kind: str) -> Any:
    for form in (value, *_numbers(value, kind), *_parsed(value, column, kind)):
        if column.child is None and _can_read(column, form):
            return form
    return None if _is_empty(value) else value


def _is_empty(value: Any) -> bool:
    return any(type(value) is type(empty) and value == empty for empty in _EMPTY)


def _can_read(column: Column, value: Any) -> bool:
    try:
        column.kind.read(value)
    except ValueError:
        return False
    return True


def _numbers(value: Any, kind: str) -> Iterator[Any]:
    """A number as other kinds of number, if that loses nothing."""
    if kind.startswith(("decimal", "float")):
        exact = Decimal(str(value))
        if exact == exact.to_integral_value():
            yield int(exact)
        if Decimal(repr(float(exact))) == exact:
            yield float(exact)


def _parsed(value: Any, column: Column, kind: str) -> Iterator[Any]:
    """What the text of a single value means for a column, as in a query string; of numbers, only
    what :func:`_numbers` finds means another number."""
    if kind.startswith(_NUMBERS) and column.kind.name in _NUMBERS:
        return
    if column.kind.orderable and isinstance(value, str | int | float):
        text = str(value).lower() if isinstance(value, bool) else str(value)
        with suppress(ValueError):
            stored = column.kind.parse(text)
            if not isinstance(stored, Gap):
                yield column.kind.write(stored)

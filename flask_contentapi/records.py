"""Reads single content records into rows, and writes them (contract, Content records)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from marshmallow import ValidationError, fields, validate

from flask_contentapi.declarations import Column, Endpoint, ObjectType
from flask_contentapi.errors import ContentError, Problem, suggest
from flask_contentapi.fields import Derived, kind_of
from flask_contentapi.kinds import LONGEST_NAME, check_text, read_json, shared
from flask_contentapi.logs import log
from flask_contentapi.query import Row
from flask_contentapi.registry import Registry
from flask_contentapi.sites import read_host
from flask_contentapi.types import Content, restriction_field

T = TypeVar("T")


def _check_hostname(hostname: str) -> None:
    with suppress(ValueError):
        if read_host(hostname)[1] is None:
            return
    raise ValidationError(
        "must be a host name, as 'example.org': letters, digits, hyphens and underscores, at "
        "most 63 between dots, without scheme, port and path"
    )


def _columns(**declared: fields.Field[Any]) -> dict[str, Column]:
    return {name: Column(name, kind_of(field), field) for name, field in declared.items()}


_SITE = _columns(
    hostname=fields.String(required=True, validate=_check_hostname),
    port=fields.Integer(load_default=80, validate=validate.Range(1, 65535)),
    site_name=fields.String(),
    root_page=fields.Integer(required=True),
    is_default=fields.Boolean(),
)
_COLLECTION = _columns(
    id=fields.Integer(required=True),
    name=fields.String(),
    parent=fields.Integer(),
    restriction=restriction_field(),
)


def check_name(name: str) -> str:
    """Returns the label of a type or the code of a language.

    :raises ValueError: if a database cannot store it.
    """
    if len(name) > LONGEST_NAME:
        raise ValueError(f"must be at most {LONGEST_NAME} characters")
    return check_text(name)


class Place(NamedTuple):
    """The place of a record in the content, or of a child object in a record.

    :param section: the list it is in, as ``pages``.
    :param number: its index in the list, or -1.
    :param name: the name of the record in messages, with the section.
    :param path: the path to the child object inside the record.
    """

    section: str
    number: int
    name: str
    path: tuple[str | int, ...] = ()

    def child(self, key: str, number: int) -> Place:
        """The place of one of its child objects."""
        return Place(self.section, self.number, self.name, (*self.path, key, number))

    def problem(self, key: str, message: str, other: int = -1) -> Problem:
        """A problem at this place; the key is "" if it concerns the whole record.

        :param other: as for :class:`Problem`.
        """
        path = (*self.path, key) if key else self.path
        children = zip(self.path[::2], self.path[1::2], strict=True)
        where = ", ".join([self.name, *(f"{name}[{number}]" for name, number in children)])
        return Problem(where, key, message, self.section, self.number, path=path, other=other)


class RecordReader:
    """Reads records one by one and collects their problems in :attr:`problems`.

    :param logs: whether undeclared types are logged.
    """

    def __init__(self, registry: Registry, *, logs: bool = True) -> None:
        self._registry = registry
        self._logs = logs
        self._child_ids: defaultdict[str, set[int]] = defaultdict(set)
        self._undeclared: set[str] = set()
        self.problems: list[Problem] = []
        #: The records with problems, by section and id, because others may refer to them. Values
        #: that could not be read are None.
        self.refused: defaultdict[str, dict[Any, Row]] = defaultdict(dict)

    def note(self, place: Place, key: str, message: str, other: int = -1) -> None:
        """Adds a problem, as :meth:`Place.problem` makes it."""
        self.problems.append(place.problem(key, message, other))

    def accept(self, read: T | None) -> T:
        """What has been read.

        :raises ContentError: with all problems if there are any.
        """
        if self.problems or read is None:
            raise ContentError(self.problems)
        return read

    def read_entry(
        self, section: str, index: int, record: Any
    ) -> tuple[Row, dict[str, Any]] | None:
        """Reads one object of an endpoint.

        :returns: the columns of its type, and the extra values in a record of an undeclared
            type; None if there is a problem.
        """
        before = len(self.problems)
        endpoint = self._registry.endpoints[section]
        values, place = self._start(section, index, record)
        if values is None:
            return None
        label = shared(self._label(place, endpoint, values.pop("type", None)))
        read = self._read(place, endpoint.type_of(label).columns, values)
        if label in endpoint.types:
            self._note_unknown_keys(place, values, endpoint.types[label].columns)
        else:
            values = self._read_extras(place, endpoint, label, values)
        row = (read[0], label, *read[1:])
        if len(self.problems) > before:
            self.refused[section][read[0]] = row
            return None
        return row, values

    def _read_extras(
        self, place: Place, endpoint: Endpoint, label: str, values: dict[str, Any]
    ) -> dict[str, Any]:
        if self._logs and label and label not in self._undeclared:
            self._undeclared.add(label)
            hint = suggest(label, endpoint.types)
            log.warning("%s: the type %r is not declared.%s", place.name, label, hint)
        kept: dict[str, Any] = {}
        for name, value in values.items():
            try:
                kept |= read_json({name: value})
            except ValueError as error:
                self.note(place, str(name), str(error))
        return kept

    def check_entry(self, endpoint: Endpoint, row: Row) -> Place:
        """Checks whether the fields of a stored object still take its values.

        :returns: its place.
        """
        place = Place(endpoint.name, -1, f"{endpoint.name} {row[0]}")
        if row[1] not in endpoint.types:
            self._label(place, endpoint, row[1])
        self._check(place, endpoint.type_of(row[1]), row)
        return place

    def _check(self, place: Place, declared: ObjectType, row: Row) -> None:
        for column, index in declared.checked_places:
            value = row[index]
            try:
                if value is None:
                    column.default()
                elif column.child is not None:
                    for number, child in enumerate(value):
                        self._check(place.child(column.name, number), column.child, child)
                elif not _is_left_out(column, value):
                    column.check(value)
            except ValueError as error:
                self.note(place, column.name, str(error))

    def read_site(self, index: int, record: Any) -> dict[str, Any] | None:
        """Reads a site, with all keys and its host name in its normal form; None if there is a
        problem."""
        site = self._read_whole("sites", index, record, _SITE)
        return site and {**site, "hostname": read_host(site["hostname"])[0]}

    def read_collection(self, index: int, record: Any) -> dict[str, Any] | None:
        """Reads a collection, with all keys; None if there is a problem."""
        return self._read_whole("collections", index, record, _COLLECTION)

    def _read_whole(
        self, section: str, index: int, record: Any, columns: Mapping[str, Column]
    ) -> dict[str, Any] | None:
        before = len(self.problems)
        values, place = self._start(section, index, record)
        if values is None:
            return None
        read = self._read(place, columns, values)
        self._note_unknown_keys(place, values, columns)
        if len(self.problems) > before:
            self.refused[section][read[0]] = tuple(read)
            return None
        return dict(zip(columns, read, strict=True))

    def _start(self, section: str, index: int, record: Any) -> tuple[dict[str, Any] | None, Place]:
        values = _values_of(record)
        name = None if values is None else values.get("id", values.get("hostname"))
        place = Place(
            section, index, f"{section}[{index}]" if name is None else f"{section} {name}"
        )
        if values is None:
            self.note(place, "", "must be an object")
        return values, place

    def _label(self, place: Place, endpoint: Endpoint, label: Any) -> str:
        if label is None and len(endpoint.types) == 1:
            return next(iter(endpoint.types))
        if not isinstance(label, str) or not label:
            known = ", ".join(endpoint.types)
            what = "is missing" if label is None else "must be the label of a type"
            self.note(place, "type", f"{what}; there are {known}")
            return ""
        try:
            check_name(label)
        except ValueError as error:
            self.note(place, "type", str(error))
        others = self._registry.endpoints.values()
        if label not in endpoint.types and any(label in other.types for other in others):
            self.note(place, "type", f"{label} is no type of {endpoint.name}")
        return label

    def _read(
        self, place: Place, columns: Mapping[str, Column], values: dict[str, Any]
    ) -> list[Any]:
        """Removes the columns from a record's values and reads them."""
        read: list[Any] = []
        before = len(self.problems)
        for name, column in columns.items():
            derive, default, read_given = column.steps
            try:
                if derive is not None:
                    known = dict(zip(columns, read, strict=False))
                    read.append(derive(known) if len(self.problems) == before else None)
                elif (value := values.pop(name, None)) is None:
                    read.append(default())
                elif read_given is not None:
                    read.append(read_given(value))
                else:
                    read.append(self._children(place, column, value))
            except ValueError as error:
                read.append(None)
                self.note(place, "" if derive is not None else name, str(error))
        return read

    def _children(self, place: Place, column: Column, records: Any) -> tuple[Row, ...]:
        if not isinstance(records, list | tuple):
            raise ValueError("must be a list of objects")
        return tuple(self._child(place, column, *numbered) for numbered in enumerate(records))

    def _child(self, place: Place, column: Column, number: int, record: Any) -> Row:
        child = column.child
        assert child is not None
        inner = place.child(column.name, number)
        values = _values_of(record)
        if values is None:
            self.note(inner, "", "must be an object")
            return ()
        read = self._read(inner, child.columns, values)
        self._note_unknown_keys(inner, values, child.columns)
        if read[0] in self._child_ids[child.label]:
            self.note(inner, "id", f"{read[0]} is the id of another {child.label} already")
        if read[0] is not None:
            self._child_ids[child.label].add(read[0])
        return tuple(read)

    def _note_unknown_keys(
        self, place: Place, rest: Mapping[str, Any], known: Iterable[str]
    ) -> None:
        for name in rest:
            self.note(place, str(name), f"there is no such field.{suggest(str(name), known)}")


def _values_of(record: Any) -> dict[str, Any] | None:
    if isinstance(record, dict):  # much faster than the rest, and nearly always true
        return dict(record)
    if isinstance(record, Content):
        return record.to_record()
    return dict(record) if isinstance(record, Mapping) else None


def write_record(
    endpoint: Endpoint, row: Row, extras: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A row as a record, without default values.

    :param extras: the extra values in a record of an undeclared type.
    """
    identity, *columns = endpoint.type_of(row[1]).columns.values()
    return {
        identity.name: row[0],
        "type": row[1],
        **dict(_written(columns, row[2:])),
        **(extras or {}),
    }


def _written(columns: Iterable[Column], values: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    for column, value in zip(columns, values, strict=True):
        if _is_left_out(column, value):
            continue
        if column.child is not None and value is not None:
            value = [dict(_written(column.child.columns.values(), entry)) for entry in value]
        elif value is not None:
            value = column.kind.write(value)
        yield column.name, value


def differ(value: Any, other: Any) -> bool:
    """Whether stored values differ. To Python some numbers equal booleans, also within JSON."""
    return bool(value != other or repr(value) != repr(other))


def _is_left_out(column: Column, value: Any) -> bool:
    if column.field.required:
        return False
    return isinstance(column.field, Derived) or not differ(value, column.default())

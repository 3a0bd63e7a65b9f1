"""Checks whether columns of a site's own models fit the fields they are mapped to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import peewee

from flask_contentapi.errors import DeclarationError
from flask_contentapi.types import Column
from flask_contentapi_peewee.mapping import ChildRows, MappedModel, TagRows

__all__ = [
    "MANY",
    "check_belongs",
    "check_key",
    "check_kind",
    "check_options",
    "check_shape",
    "is_key_of",
]

_INTEGERS = (peewee.IntegerField, peewee.AutoField)
_NUMBERS = (*_INTEGERS, peewee.BooleanField)
#: The peewee fields that fit each kind of value.
_FIT: Mapping[str, tuple[type[peewee.Field], ...]] = {
    "text": (peewee.CharField, peewee.TextField, peewee.UUIDField, *_INTEGERS),
    "integer": _NUMBERS,
    "relation": _NUMBERS,
    "boolean": _NUMBERS,
    "float": (peewee.FloatField, peewee.DecimalField, *_NUMBERS),
    "decimal": (peewee.DecimalField, *_NUMBERS),
    "date": (peewee.DateField, peewee.DateTimeField),
    "time": (peewee.TimeField,),
    "datetime": (peewee.DateTimeField,),
}
#: How a field of each kind has to be mapped; others need a column or a constant.
_SHAPES = {"tags": TagRows, "children": ChildRows}


#: The kinds of fields that have tables of their own.
MANY = ("tags", "relations", "children")


def check_key(where: str, model: Any) -> None:
    """Refuses a model without an integer primary key."""
    key = model._meta.primary_key
    if not isinstance(_resolved(key), _INTEGERS):
        names = [f"{model.__name__}.{field.name}" for field in model._meta.get_primary_keys()]
        found = ", ".join(names) or "none"
        raise DeclarationError(
            f"{where}: the primary key of {model.__name__} must be one column of integers, "
            f"but it is {found}."
        )


def check_options(mapped: MappedModel) -> None:
    """Refuses invalid options of a mapped model."""
    if not isinstance(mapped.ids_from, int) or mapped.ids_from < 0:
        raise DeclarationError(f"{mapped!r}: ids_from must be an integer, 0 or more.")
    for name, given in (("where", mapped.where), ("version", mapped.version)):
        if isinstance(given, peewee.ColumnBase):
            check_belongs(f"{mapped!r}: {name}", given, mapped.model)
        elif given is not None and not (name == "version" and isinstance(given, bool)):
            other = "a column, True or False" if name == "version" else "a condition"
            raise DeclarationError(f"{mapped!r}: {name} must be {other}, not {given!r}.")


def check_shape(where: str, column: Column, given: Any) -> None:
    """Refuses mappings of the wrong form, such as a column for child objects."""
    wanted = _SHAPES.get(column.kind.name)
    if wanted is None and isinstance(given, TagRows | ChildRows):
        raise DeclarationError(f"{where} must be a column or a constant.")
    if wanted is not None and not isinstance(given, wanted):
        raise DeclarationError(f"{where} must be {wanted.__name__}(...).")
    if isinstance(given, TagRows) and not isinstance(given.tag, peewee.Field):
        raise DeclarationError(f"{where}: tag must be the column with the tag's text.")


def check_belongs(where: str, given: Any, model: Any) -> None:
    """Refuses an expression with columns of other models than the mapped one."""
    for field in _fields_in(given):
        if field.model is not model:
            raise DeclarationError(
                f"{where} is made of {field.model.__name__}.{field.name}, which is no column of "
                f"{model.__name__}."
            )


def _fields_in(node: Any) -> Iterator[peewee.Field]:
    """The columns in an expression, except those in subqueries."""
    if isinstance(node, peewee.Field):
        yield node
    elif isinstance(node, list | tuple):
        for part in node:
            yield from _fields_in(part)
    elif isinstance(node, peewee.Node) and not isinstance(node, peewee.Source | peewee.Query):
        yield from _fields_in([*vars(node).values()])


def check_kind(where: str, column: Column, given: Any) -> None:
    """Refuses a column with another kind of values than the field."""
    wanted, found = _FIT.get(column.kind.name), _resolved(given)
    if wanted and isinstance(found, peewee.Field) and not isinstance(found, wanted):
        names = ", ".join(known.__name__ for known in wanted)
        raise DeclarationError(
            f"{where} is a {column.kind.name}, which the {type(found).__name__} {given.name} does "
            f"not hold; it must be one of {names}."
        )


def _resolved(field: Any) -> Any:
    """The column that a foreign key refers to in the end; any other column itself."""
    while isinstance(field, peewee.ForeignKeyField):
        field = field.rel_field
    return field


def is_key_of(given: Any, model: Any) -> bool:
    """Whether a foreign key has the ids of a model's rows."""
    return (
        isinstance(given, peewee.ForeignKeyField)
        and given.rel_model is model
        and given.rel_field is model._meta.primary_key
    )

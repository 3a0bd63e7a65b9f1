"""Makes and checks the keys of a type's answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from marshmallow import fields

from flask_contentapi.attributes import LISTINGS, OPTIONS, PARAMETERS, check_field, mistake
from flask_contentapi.content import APIField, APIFilter, Content
from flask_contentapi.errors import DeclarationError
from flask_contentapi.fields import Anything, answer_field
from flask_contentapi.hints import suggest
from flask_contentapi.sources import Computed, Source, Stored, attribute
from flask_contentapi.types import Column, Export, ObjectType

__all__ = ["COMPUTED", "exports_of"]

#: Fields that compute a value instead of serialising a stored one.
COMPUTED = (fields.Function, fields.Method, fields.Constant)


def exports_of(declared: ObjectType) -> dict[str, Export]:
    """The keys of a type's answers, in order.

    :param declared: the type, with its columns.
    :raises DeclarationError: for the first mistake found.
    """
    content_class = declared.content_class
    listed: list[tuple[str | APIField, bool]] = [
        *((entry, True) for entry in content_class.meta_fields),
        *((entry, False) for entry in content_class.body_fields),
        *((entry, False) for entry in content_class.api_fields),
    ]
    exports: dict[str, Export] = {}
    for entry, in_meta in listed:
        export = _make_export(declared, entry, in_meta)
        if not _is_name(export.name):
            what = f"has {export.name!r}; a key of an answer is a name, as Python has them"
            raise mistake(declared, "api_fields", what)
        if export.name in exports or export.name == "meta":
            what = f"has {export.name!r}, which the API shows already"
            raise mistake(declared, "api_fields", what)
        exports[export.name] = export
    _check_names(declared, exports)
    return exports


def _check_names(declared: ObjectType, exports: dict[str, Export]) -> None:
    for name, export in exports.items():
        if name in PARAMETERS and not export.in_meta and export.column is not None:
            raise mistake(
                declared,
                "api_fields",
                f"shows {name!r}, which is a query parameter; show it under another name, as "
                f"APIField('<name>', source={export.column.name!r})",
            )
        if name == "_" or (name == "random" and export.column is not None):
            what = f"has {name!r}, which means something else in fields and order; take another"
            raise mistake(declared, "api_fields", what)
    taken = {*PARAMETERS, *exports}
    for custom in declared.api_filters:
        _check_filter(declared, custom, taken)
        taken.add(custom.name)
    for listing in LISTINGS:
        for name in getattr(declared.content_class, listing, ()):
            if name not in exports:
                raise mistake(declared, listing, f"has {name!r}, which is not shown")


def _check_filter(declared: ObjectType, custom: Any, taken: set[str]) -> None:
    if not isinstance(custom, APIFilter):
        raise mistake(declared, "api_filters", f"has {custom!r}; it must be an APIFilter")
    column = declared.columns.get(custom.source)
    if column is None or not column.kind.orderable:
        what = f"compares {custom.source!r}, which is no single stored value"
        fitting = [name for name, other in declared.columns.items() if other.kind.orderable]
        raise mistake(declared, "api_filters", what, suggest(custom.source, fitting))
    if not _is_name(custom.name):
        what = f"has {custom.name!r}; a parameter is a name, as Python has them"
        raise mistake(declared, "api_filters", what)
    if custom.name in taken:
        what = f"has {custom.name!r}, which is a parameter already"
        raise mistake(declared, "api_filters", what)
    if custom.operator not in ("lt", "le", "gt", "ge"):
        what = f"has {custom.name!r} with the operator {custom.operator!r}"
        raise mistake(declared, "api_filters", what, " There are lt, le, gt and ge.")


def _make_export(declared: ObjectType, entry: str | APIField, in_meta: bool) -> Export:
    given = entry if isinstance(entry, APIField) else APIField(entry)
    source: Any = given.source
    if not isinstance(source, str | Source | None):
        what = f"has {given.name!r} with the source {source!r}; it must be a text"
        raise mistake(declared, "api_fields", what)
    return replace(_export_of(declared, given, in_meta), volatile=given.volatile)


def _export_of(declared: ObjectType, given: APIField, in_meta: bool) -> Export:
    if isinstance(given.source, Source):
        assert given.field is not None
        return Export(given.name, given.field, given.source, None, in_meta)
    source = given.source or given.name
    column = declared.columns.get(source)
    if given.needs is not None:
        _check_needs(declared, given)
    wanted: Any = given.field
    if not (wanted is None or isinstance(wanted, fields.Field)):
        what = f"has {given.name!r}, which {wanted!r} cannot write"
        raise mistake(declared, "api_fields", what, " Give a field, as fields.String().")
    if wanted is not None:
        check_field(declared, f"api_fields[{given.name!r}]", wanted)
    if given.field is None:
        if column is None and _is_own_attribute(declared, source):
            what = f"has {source!r}, which needs a field that writes it"
            hint = f" Write it as APIField({given.name!r}, fields.String(), source={source!r})."
            raise mistake(declared, "api_fields", what, hint)
        if column is None:
            raise _unknown_source(declared, source)
        return _stored_export(given.name, column, in_meta)
    if column is not None and not isinstance(given.field, COMPUTED):
        if column.child or column.related_blocks:
            hidden = f"also write what may be hidden in {source!r}"
            what = f"has {given.name!r}, whose field would {hidden}"
            hint = " Leave the field out, or compute the value with fields.Function."
            raise mistake(declared, "api_fields", what, hint)
        return Export(given.name, answer_field(given.field), Stored(source), None, in_meta)
    field, compute = _computation(declared, given, source)
    return Export(given.name, field, Computed(compute, given.needs), None, in_meta)


def _is_own_attribute(declared: ObjectType, source: Any) -> bool:
    """Whether a property or method of the site's own has a name."""
    own = [base for base in declared.content_class.__mro__ if base.__module__ != Content.__module__]
    known = {name for base in own[:-1] for name in vars(base) if not name.startswith("_")}
    return source in known - {*OPTIONS}


def _computation(
    declared: ObjectType, given: APIField, source: str
) -> tuple[fields.Field[Any], Callable[[Any], Any]]:
    """The field that serialises a computed key, and the function that computes it."""
    field = given.field
    assert field is not None
    if isinstance(field, fields.Function):
        if field.serialize_func is None:
            what = f"has {given.name!r} with a Function without a function"
            raise mistake(declared, "api_fields", what)
        return Anything(), cast(Callable[[Any], Any], field.serialize_func)
    if isinstance(field, fields.Constant):
        return field, lambda instance: field.constant
    if isinstance(field, fields.Method):
        what = f"has {given.name!r} as a Method, which looks for it on a schema; "
        raise mistake(
            declared, "api_fields", what + "give another field, and the method as its source"
        )
    if not hasattr(declared.content_class, source):
        raise _unknown_source(declared, source)
    written = Anything() if type(field) is fields.Raw else answer_field(field)
    return written, attribute(source)


def _stored_export(name: str, column: Column, in_meta: bool) -> Export:
    field = column.field
    composed = column.target or column.child or getattr(field, "representations", None)
    source = None if composed else Stored(column.name)
    return Export(name, answer_field(field), source, column, in_meta, column.shown)


def _unknown_source(declared: ObjectType, name: object) -> DeclarationError:
    return mistake(
        declared,
        "api_fields",
        f"has {name!r}, which is no field, property or method of the class",
        suggest(str(name), declared.columns),
    )


def _check_needs(declared: ObjectType, given: APIField) -> None:
    for name in given.needs or ():
        if name not in declared.columns:
            what = f"has {given.name!r}, which needs {name!r}: there is no such field"
            raise mistake(declared, "api_fields", what, suggest(name, declared.columns))


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and name.isidentifier()

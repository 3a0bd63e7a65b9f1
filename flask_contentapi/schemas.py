"""The marshmallow schemas of answers, from which the API is described.

Schemas and the plans that make answers (:mod:`flask_contentapi.answers`) come from the same
declared fields.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from marshmallow import EXCLUDE, Schema, ValidationError, fields, validate

from flask_contentapi import kinds
from flask_contentapi.answers import choose
from flask_contentapi.declarations import Endpoint, Export, ObjectType
from flask_contentapi.selection import Selection
from flask_contentapi.sources import DetailURL, Type


class AnswerSchema(Schema):
    """Base of the schemas."""

    class Meta:
        # Later releases may add keys.
        unknown = EXCLUDE


#: The labels that ``type`` can have; None for an undeclared type.
_Labels = Sequence[str | None]


class Schemas:
    """The schemas of types and endpoints, each created on first use.

    Their fields are ``required`` if answers have them always, and ``allow_none`` if they can be
    null. What else a key can hold is in the attribute ``alternatives``, a list of fields.

    :param i18n: whether internationalisation is on.
    """

    def __init__(self, i18n: bool = False) -> None:
        self._i18n = i18n
        self._made: dict[object, type[AnswerSchema]] = {}

    def of(self, declared: ObjectType) -> type[AnswerSchema]:
        """The schema of all keys that a type shows; those of items in lists are required."""
        if declared not in self._made:
            chosen = choose(declared, "list", i18n=self._i18n) if declared.endpoint else ()
            required = {export.name for export, _ in chosen}
            types, labels = [declared, *_above(declared)], [declared.label]
            self._made[declared] = self._make(declared.label, types, required, labels)
        return self._made[declared]

    def selected(self, endpoint: Endpoint) -> type[AnswerSchema]:
        """The schema of what a selection leaves of any object of an endpoint."""
        if endpoint not in self._made:
            types = dict.fromkeys((endpoint.base, *endpoint.types.values()))
            labels = [*endpoint.types, None]
            self._made[endpoint] = self._make(f"{endpoint.name}.Selected", types, (), labels)
        return self._made[endpoint]

    def _whole(self, declared: ObjectType) -> type[AnswerSchema]:
        """The schema of all keys that a type shows, all of them required, also further inside."""
        key = declared, "whole"
        if key not in self._made:
            labels = [*declared.endpoint.types, None] if declared.endpoint else [declared.label]
            self._made[key] = self._make("", [declared], declared.exports, labels, whole=True)
        return self._made[key]

    def _make(
        self,
        name: str,
        types: Iterable[ObjectType],
        required: Collection[str],
        labels: _Labels,
        *,
        whole: bool = False,
    ) -> type[AnswerSchema]:
        """The schema of objects of some types, which may write the same key differently.

        :param required: the keys that are always there.
        """
        body: dict[str, Any] = {}
        meta: dict[str, Any] = {}
        for export in (export for declared in types for export in declared.exports.values()):
            field = self._field(export, labels, whole)
            field.required = export.name in required
            known = (meta if export.in_meta else body).setdefault(export.name, field)
            if known is not field:
                known.alternatives += [field, *field.alternatives]
        always = any(field.required for field in meta.values())
        nested = fields.Nested(_generated(meta, f"{name}.Meta"), required=always)
        return _generated({"id": body.pop("id"), "meta": nested, **body}, name)

    def _field(self, export: Export, labels: _Labels, whole: bool) -> Any:
        column = export.column
        field: Any
        if export.way is not None:
            field = fields.List(fields.Nested(self._embedded(export.way, None, whole)))
        elif column is None or export.source is not None:
            field = copy.copy(export.field)
            field.allow_none = _can_be_null(export)
            field.validators = field.validators if column is not None else []
            if isinstance(export.source, Type):
                field.validators = [validate.OneOf(labels)]
                field.allow_none = None in labels
        elif (inner := column.target or column.child) is not None:
            field = fields.Nested(self._embedded(inner, export.shown, whole))
            many = column.kind.many or column.child is not None
            field = fields.List(field) if many else field
            field.allow_none = not many
        else:
            field = fields.List(fields.Raw())
        field.alternatives = [*_defaults(export)]
        return field

    def _embedded(self, inner: ObjectType, shown: Selection | None, whole: bool) -> Any:
        # A function, because types may point to each other in a circle.
        if shown is not None:
            exclude = [*_left_out(inner, shown)]
            return lambda: self._whole(inner)(exclude=exclude)
        if whole:
            return lambda: self._whole(inner)
        return lambda: self.selected(inner.endpoint) if inner.endpoint else self.of(inner)


def _above(declared: ObjectType) -> Iterator[ObjectType]:
    """The types that a type derives from, whose lists have its objects too."""
    endpoint = declared.endpoint
    for other in dict.fromkeys((endpoint.base, *endpoint.types.values())) if endpoint else ():
        if other is not declared and issubclass(declared.content_class, other.content_class):
            yield other


def _can_be_null(export: Export) -> bool:
    """Whether a key that is no relation can be null."""
    column = export.column
    if column is None:
        return not (isinstance(export.source, DetailURL) or "type" in export.field.metadata)
    # A value can be infinite, or from a time when the field was declared otherwise.
    if isinstance(column.kind, kinds.Float) or not column.is_plain:
        return True
    default = column.field.load_default
    return not column.field.required and (callable(default) or column.default() is None)


def _defaults(export: Export) -> Iterator[fields.Field[Any]]:
    """The default of a stored field, as one that has only this value, if the field itself would
    not accept it."""
    column = export.column
    if column is None or column.field.required or callable(column.field.load_default):
        return
    default = column.default()
    try:
        for validator in column.field.validators if default is not None else ():
            validator(default)
    except ValidationError:
        yield fields.Raw(validate=validate.Equal(default))


def _left_out(declared: ObjectType, selection: Selection, before: str = "") -> Iterator[str]:
    """The paths of all keys that a selection leaves out, at every level."""
    chosen = {export.name: inner for export, inner in choose(declared, "nested", selection)}
    for name, export in declared.exports.items():
        path = f"{before}meta.{name}" if export.in_meta else f"{before}{name}"
        if name not in chosen:
            yield path
        elif export.nested is not None:
            yield from _left_out(export.nested, chosen[name], f"{path}.")
    if not any(declared.exports[name].in_meta for name in chosen):
        yield f"{before}meta"


def _generated(declared: dict[str, fields.Field[Any]], label: str) -> type[AnswerSchema]:
    return AnswerSchema.from_dict(declared, name=label)  # type: ignore[return-value]

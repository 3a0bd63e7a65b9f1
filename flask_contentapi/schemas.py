"""The marshmallow schema of each type, which describes its answers.

Schemas and the plans that make answers (:mod:`flask_contentapi.answers`) come from the same
declared fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from marshmallow import Schema, fields

from flask_contentapi.answers import choose
from flask_contentapi.declarations import Export, ObjectType
from flask_contentapi.selection import Selection

__all__ = ["AnswerSchema", "Schemas"]


class AnswerSchema(Schema):
    """Base of the generated schemas, which dump objects that return values by key."""

    def get_attribute(self, obj: Any, attr: str, default: Any) -> Any:
        return obj.value(attr)


class _Meta(fields.Nested):
    """``meta``: further keys of the same object."""

    def get_value(self, obj: Any, *args: Any, **kwargs: Any) -> Any:
        return obj


class Schemas:
    """The schema of each type, created on first use."""

    def __init__(self) -> None:
        self._made: dict[ObjectType, type[AnswerSchema]] = {}

    def of(self, declared: ObjectType) -> type[AnswerSchema]:
        """The schema of all keys that a type shows."""
        if declared not in self._made:
            self._made[declared] = self._make(declared)
        return self._made[declared]

    def _make(self, declared: ObjectType) -> type[AnswerSchema]:
        written = {name: self._field(export) for name, export in declared.exports.items()}
        in_meta = {
            name: written.pop(name) for name in list(written) if declared.exports[name].in_meta
        }
        meta = AnswerSchema.from_dict(in_meta, name=f"{declared.label} meta")
        identity = {"id": written.pop("id"), "meta": _Meta(meta)}
        return _generated({**identity, **written}, declared.label)

    def _field(self, export: Export) -> fields.Field[Any]:
        column = export.column
        if export.way is not None:
            return fields.List(fields.Nested(self._embedded(export.way, None)))
        if column is None or export.source is not None:
            return export.field
        if column.target is not None:
            embedded = fields.Nested(self._embedded(column.target, export.shown))
            return fields.List(embedded) if column.kind.many else embedded
        if column.child is not None:
            return fields.List(fields.Nested(self.of(column.child)))
        return fields.Raw()

    def _embedded(self, target: ObjectType, shown: Selection | None) -> Any:
        # A function, because types may point to each other in a circle.
        if shown is None:
            return lambda: self.of(target)
        exclude = [*_left_out(target, shown)]
        return lambda: self.of(target)(exclude=exclude)


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

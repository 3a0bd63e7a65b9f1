"""What a declared type is: its endpoint, what it stores, and the keys of its answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from marshmallow import ValidationError, fields, missing

from flask_contentapi import kinds
from flask_contentapi.content import APIFilter, Content
from flask_contentapi.errors import BadRequest
from flask_contentapi.fields import Blocks, Related
from flask_contentapi.hints import suggest
from flask_contentapi.selection import Selection
from flask_contentapi.sources import Source

__all__ = ["Column", "Endpoint", "Export", "ObjectType"]


@dataclass(frozen=True)
class Column:
    """A stored field.

    :param name: its name in the class and in records.
    :param kind: what it stores.
    :param field: the declared field.
    :param target: for relations, what they point to.
    :param child: for child objects, their type.
    """

    name: str
    kind: kinds.Kind
    field: fields.Field[Any]
    target: ObjectType | None = None
    child: ObjectType | None = None

    @property
    def within_site(self) -> bool:
        """Whether what a relation points to is shown only in the asked site."""
        return isinstance(self.field, Related) and self.field.within_site

    @property
    def stores(self) -> object:
        """What two fields have to have in common whose values stand in one column."""
        places = getattr(self.kind, "places", None)
        own = (type(self.field), getattr(self.field, "enum", None))
        canonical = own if isinstance(self.kind, kinds.Canonical) else None
        children = self.child and self.child.label
        target = self.target and self.target.served_at.name
        return type(self.kind), places, canonical, children, target

    def default(self) -> Any:
        """The stored value where a record has none (contract, Records).

        :raises ValueError: if the field is required.
        """
        if self.field.required:
            raise ValueError("is missing")
        default = self.field.load_default
        if default is missing:
            return self.kind.empty()
        value = default() if callable(default) else default
        return None if value is None else self.kind.read(value)

    def read(self, value: Any) -> Any:
        """The stored value of a record's value.

        :raises ValueError: with what would be right, if the value does not fit.
        """
        if value is None:
            return self.default()
        stored = self.kind.read(value)
        if self._is_checked:
            self._check(value, stored)
        return stored

    def _check(self, value: Any, stored: Any) -> None:
        """Raises what the field says against a value, if it does."""
        try:
            if self.is_plain:
                for validator in self.field.validators:
                    validator(stored)
            else:
                self.field.deserialize(value)
        except ValidationError as error:
            raise ValueError(_sentence(error.messages)) from None

    @cached_property
    def _is_checked(self) -> bool:
        """Whether the field says more of its values than their kind does."""
        return bool(self.field.validators) or not self.is_plain

    def to_python(self, stored: Any) -> Any:
        """A stored value as the field makes it available to Python."""
        return stored if self.is_plain or stored is None else self.field.deserialize(stored)

    @cached_property
    def is_plain(self) -> bool:
        """Whether a stored value is what the field has in Python, so that it only validates."""
        if isinstance(self.kind, kinds.Canonical):
            return False
        if isinstance(self.kind, kinds.Text | kinds.Json):
            standard = type(self.field).__module__ in (fields.__name__, Blocks.__module__)
            return standard and isinstance(self.field, fields.String | fields.Raw)
        return True


def _sentence(messages: Any) -> str:
    """Messages of a validator as one text."""
    if isinstance(messages, dict):
        return "; ".join(f"{name}: {_sentence(text)}" for name, text in messages.items())
    if isinstance(messages, list):
        return " ".join(map(_sentence, messages))
    return str(messages)


@dataclass(frozen=True)
class Export:
    """A key of an answer.

    :param name: the key.
    :param field: the marshmallow field that writes it.
    :param source: where its value comes from; None for relations, children and blocks with
        representations, which are made of other objects.
    :param column: the stored field shown, or None for what is computed or written differently.
    :param in_meta: whether it stands in ``meta``.
    :param shown: for a relation that is always shown in one form, that form.
    :param volatile: whether its value depends on more than the content.
    """

    name: str
    field: fields.Field[Any]
    source: Source | None
    column: Column | None
    in_meta: bool
    shown: Selection | None = None
    volatile: bool = False

    @property
    def nested(self) -> ObjectType | None:
        """The type of the objects shown in it, which brackets choose the fields of."""
        if self.column is None or self.source is not None or self.shown is not None:
            return None
        return self.column.target or self.column.child


@dataclass(eq=False)
class ObjectType:
    """A declared type.

    :param label: ``<app_label>.<ModelName>``.
    :param content_class: its class.
    :param endpoint: where it is served; None for child objects.
    :param columns: its stored fields by name, those of its bases first.
    :param exports: its keys by name, in the order of answers.
    :param searched: the columns that are searched, the title apart.
    """

    label: str
    content_class: type[Content]
    endpoint: Endpoint | None
    columns: dict[str, Column] = field(default_factory=dict)
    exports: dict[str, Export] = field(default_factory=dict)
    searched: tuple[Column, ...] = ()
    _partial: dict[frozenset[str], type[Content]] = field(default_factory=dict, repr=False)

    def without(self, names: frozenset[str], mark: Callable[[str], Any]) -> type[Content]:
        """The class of its objects that do not have some of its fields.

        Which fields those are is declared, so that there are not many such classes.

        :param mark: makes what stands in the place of a field.
        """
        if names not in self._partial:
            own = self.content_class
            marks = {name: mark(name) for name in sorted(names)}
            partial = type(own.__name__, (own,), {"__module__": own.__module__, **marks})
            self._partial[names] = partial
        return self._partial[names]

    @property
    def served_at(self) -> Endpoint:
        """Its endpoint; child objects have none and are never asked."""
        assert self.endpoint is not None
        return self.endpoint

    @cached_property
    def detail_only(self) -> frozenset[str]:
        """Keys that only a detail view has."""
        return frozenset(getattr(self.content_class, "detail_only_fields", ()))

    @cached_property
    def filterable(self) -> dict[str, Column]:
        """The stored fields that lists can be filtered by, by key."""
        return {
            name: export.column
            for name, export in self.exports.items()
            if export.column and export.column.kind.filterable and name not in self.detail_only
        }

    @cached_property
    def orderable(self) -> dict[str, Column]:
        """The stored fields that lists can be ordered by, by key."""
        return {name: column for name, column in self.filterable.items() if column.kind.orderable}

    def hint(self, name: str, use: str = "") -> str:
        """A sentence about a key that cannot be asked for here, "" if there is nothing to say.

        :param name: the key.
        :param use: what lists cannot be by it, although it is shown: ``filtered`` or ``ordered``.
        """
        if use and name in self.detail_only:
            return f" {name} is shown in details only; lists cannot be {use} by it."
        if use and name in self.exports:
            return f" {name} is no single stored value; lists cannot be {use} by it."
        labels = self.having(name)
        return f" It is a field of {', '.join(labels)}; ask for type={labels[0]}." if labels else ""

    def having(self, name: str) -> list[str]:
        """The labels of those of its :attr:`types` that show a key in lists; not of types that are
        derived from one of them, which brings them in."""
        types = [self.served_at.types[label] for label in sorted(self.types)]
        having = [t for t in types if name in t.exports.keys() - t.detail_only]
        return [t.label for t in having if not any(t.types < other.types for other in having)]

    @property
    def api_filters(self) -> Sequence[APIFilter]:
        """Its further query parameters."""
        return getattr(self.content_class, "api_filters", ())

    @cached_property
    def types(self) -> frozenset[str]:
        """The labels of the type and of all derived from it."""
        return frozenset(
            label
            for label, other in self.served_at.types.items()
            if issubclass(other.content_class, self.content_class)
        )

    @cached_property
    def column_names(self) -> tuple[str, ...]:
        """What its rows hold: ``id``, ``type`` except for child objects, and the stored fields."""
        first, *rest = self.columns
        return (first, "type", *rest) if self.endpoint else (first, *rest)

    @cached_property
    def plain_columns(self) -> tuple[str, ...]:
        """Its stored fields, but for relations that are always shown in one form."""
        return tuple(
            name
            for name, column in self.columns.items()
            if not (isinstance(column.field, Related) and column.field.shown)
        )

    @cached_property
    def places(self) -> dict[str, int]:
        """Where each column stands in its rows."""
        return {name: place for place, name in enumerate(self.column_names)}


@dataclass(eq=False)
class Endpoint:
    """One kind of object with an address in the API.

    :param name: the last part of the address, and the key of the records.
    :param base: the type that all others of the endpoint derive from.
    :param types: all types by label.
    :param tree: whether the objects are pages of a tree.
    :param collections: whether they lie in collections, which can be restricted.
    """

    name: str
    base: ObjectType = field(init=False)
    types: dict[str, ObjectType] = field(default_factory=dict)
    tree: bool = False
    collections: bool = False

    def type_of(self, label: str) -> ObjectType:
        """The type with a label; for labels that are not declared, the base."""
        return self.types.get(label, self.base)

    def named(self, text: str) -> ObjectType:
        """The type that a part of the ``type`` parameter names.

        :raises BadRequest: if there is none.
        """
        app_label, _, model_name = text.partition(".")
        found = self._by_name.get((app_label, model_name.lower()))
        if found is None:
            hint = suggest(text, self.types) or f" There are {', '.join(self.types)}."
            raise BadRequest(f"There is no type {text!r}.{hint}")
        return found

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], ObjectType]:
        names = {}
        for label, declared in self.types.items():
            app_label, _, model_name = label.partition(".")
            names[app_label, model_name.lower()] = declared
        return names

"""Declared types: their endpoints, their stored fields, and the keys of their answers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from marshmallow import ValidationError, fields, missing

from flask_contentapi import kinds
from flask_contentapi.errors import BadRequest, suggest
from flask_contentapi.fields import Blocks, Derived, Related, RichText, relation_in
from flask_contentapi.kinds import blocks_in, ids_in
from flask_contentapi.markup import targets_in
from flask_contentapi.query import ObjectKey, Row
from flask_contentapi.selection import Selection, parse_fields
from flask_contentapi.types import APIFilter, Content


@dataclass(frozen=True)
class Column:
    """A stored field.

    :param name: its name in the class and in records.
    :param kind: what it stores.
    :param field: the declared field.
    :param target: for a relation to one or many, the type it points to.
    :param child: for child objects, their type.
    :param blocks: for blocks, the columns that their values are read as, by block type; those of
        relations have a target, and their values are not checked.
    """

    name: str
    kind: kinds.Kind
    field: fields.Field[Any]
    target: ObjectType | None = None
    child: ObjectType | None = None
    blocks: Mapping[str, Column] = dataclasses.field(default_factory=dict)

    @cached_property
    def relation(self) -> Related | None:
        """The declared relation, to one or many; None if it is no relation."""
        return relation_in(self.field)

    @cached_property
    def names_others(self) -> bool:
        """Whether its values, or those of child objects, can name other objects."""
        inner = self.child.columns.values() if self.child is not None else ()
        own = self.target is not None or bool(self.related_blocks) or self.is_rich
        return own or any(column.names_others for column in inner)

    @cached_property
    def within_site(self) -> bool:
        """Whether the target of a relation is shown only if it is in the requested site."""
        return self.relation is not None and self.relation.within_site

    @cached_property
    def shown(self) -> Selection | None:
        """For a relation that is always shown with the same fields, these fields."""
        text = self.relation.shown if self.relation is not None else None
        return None if text is None else parse_fields(text)

    @cached_property
    def ids(self) -> Callable[[Any], Sequence[int]]:
        """The function from the stored value of a relation to the ids in it."""
        return tuple if self.kind.many else lambda stored: () if stored is None else (stored,)

    @cached_property
    def targets(self) -> Callable[[Any], Iterable[ObjectKey]]:
        """The function from a stored value to the objects that it points to."""
        if self.target is None:
            return self._inner_targets
        endpoint, ids = self.target.served_at.name, self.ids
        return lambda stored: [(endpoint, identity) for identity in ids(stored)]

    def _inner_targets(self, stored: Any) -> Iterator[ObjectKey]:
        for block, inner in self.related_blocks.items():
            for identity in ids_in(stored, block):
                yield from inner.targets(identity)
        for text in self.rich_texts(stored) if self.is_rich else ():
            yield from targets_in(text)

    @cached_property
    def related_blocks(self) -> Mapping[str, Column]:
        """For blocks, the relations in them, by block type."""
        return {name: inner for name, inner in self.blocks.items() if inner.target is not None}

    @cached_property
    def rich_blocks(self) -> frozenset[str]:
        """For blocks, the types whose values are rich text."""
        return frozenset(name for name, inner in self.blocks.items() if inner.is_rich)

    @cached_property
    def is_rich(self) -> bool:
        """Whether its values are rich text, or have some in blocks."""
        return isinstance(self.field, RichText) or bool(self.rich_blocks)

    def rich_texts(self, stored: Any) -> Iterator[str]:
        """The rich texts in a stored value."""
        if isinstance(self.field, RichText):
            yield stored or ""
        for block, value in blocks_in(stored) if self.rich_blocks else ():
            if block in self.rich_blocks and isinstance(value, str):
                yield value

    @property
    def storage_signature(self) -> object:
        """What two fields must have in common for their values to share a column."""
        places = getattr(self.kind, "places", None)
        own = (type(self.field), getattr(self.field, "enum", None))
        canonical = own if isinstance(self.kind, kinds.Canonical) else None
        children = self.child and self.child.label
        target = self.target and self.target.served_at.name
        return type(self.kind), places, canonical, children, target

    @cached_property
    def default(self) -> Callable[[], Any]:
        """Makes the stored value if a record has none (contract, Records).

        It raises a ValueError if the field is required.
        """
        if self.field.required:
            return _refuse_missing
        default = self.field.load_default
        if default is missing or self.child is not None:
            return self.kind.empty
        # Without a value, what has any number of entries has none.
        no_value = self.kind.empty if self.kind.many else lambda: None
        if callable(default):
            return lambda: no_value() if (value := default()) is None else self.kind.read(value)
        return no_value if default is None else lambda: self.kind.read(default)

    @cached_property
    def steps(self) -> tuple[Any, Callable[[], Any], Callable[[Any], Any] | None]:
        """How it is read: what gives its values from those before it, None if records have them;
        :attr:`default`; and :attr:`read_given`, which is None for child objects."""
        derive = self.field.derive if isinstance(self.field, Derived) else None
        return derive, self.default, self.read_given if self.child is None else None

    @cached_property
    def read_given(self) -> Callable[[Any], Any]:
        """Reads the stored value for a value in a record that is not None.

        It raises a ValueError, saying what would fit, if the value does not.
        """
        # Fields that accept all values of their kind are read without a detour.
        return self._read_checked if self.is_checked else self.kind.read

    def _read_checked(self, value: Any) -> Any:
        stored = self.kind.read(value)
        self.check(stored)
        return stored

    def check(self, stored: Any) -> None:
        """Raises a ValueError if the field does not take a stored value (any longer)."""
        try:
            if self.is_plain:
                for validator in self.field.validators:
                    validator(stored)
            else:
                self.field.deserialize(self.kind.write(stored))
        except ValidationError as error:
            raise ValueError(_message_text(error.messages)) from None
        except Exception as error:
            # A site's own field or schema may fail in any way.
            raise ValueError(f"cannot be read: {error!r}") from error
        for block, inner in blocks_in(stored) if self.blocks else ():
            column = self.blocks.get(block)
            try:
                if column is not None and column.target is None and inner is not None:
                    column.read_given(inner)
            except ValueError as error:
                raise ValueError(f"has a block {block!r} whose value {error}") from None

    @cached_property
    def is_checked(self) -> bool:
        """Whether the field accepts fewer values than their kind."""
        return bool(self.field.validators or self.blocks) or not self.is_plain

    def to_python(self, stored: Any) -> Any:
        """A stored value as the Python object that the field deserialises it to.

        It is None if the value no longer fits, because the field was declared otherwise before.
        """
        if self.is_plain or stored is None:
            return stored
        try:
            return self.field.deserialize(stored)
        except Exception:
            # A site's own field or schema may fail in any way.
            return None

    @cached_property
    def is_plain(self) -> bool:
        """Whether the stored value is the field's Python value, so the field only validates."""
        if isinstance(self.kind, kinds.Canonical | kinds.Relations):
            return False
        if isinstance(self.kind, kinds.Text | kinds.Json):
            standard = type(self.field).__module__ in (fields.__name__, Blocks.__module__)
            return standard and isinstance(self.field, fields.String | fields.Raw)
        return True


def _refuse_missing(*_: Any) -> Any:
    raise ValueError("is missing")


def _message_text(messages: Any) -> str:
    if isinstance(messages, dict):
        return "; ".join(f"{name}: {_message_text(text)}" for name, text in messages.items())
    if isinstance(messages, list):
        return " ".join(map(_message_text, messages))
    return str(messages)


#: Where the value of a key comes from; :mod:`flask_contentapi.sources` has all. It adds what is
#: needed to a :class:`~flask_contentapi.sources.RowLayout`, and returns how values are made.
Source = Callable[[Any], Any]


@dataclass(frozen=True)
class Export:
    """A key of an answer.

    :param field: the marshmallow field that writes it.
    :param source: where its value comes from; None for relations, children and blocks with
        representations, which are made of other objects.
    :param column: the stored field shown; None if the value is computed or written differently.
    :param in_meta: whether it is in ``meta``.
    :param volatile: whether its value depends on more than the content.
    :param way: for pages that a page leads to, the base of their types.
    :param only_named: whether it is shown only if ``fields`` names it.
    """

    name: str
    field: fields.Field[Any]
    source: Source | None
    column: Column | None
    in_meta: bool
    volatile: bool = False
    way: ObjectType | None = None
    only_named: bool = False

    @property
    def shown(self) -> Selection | None:
        """For a relation that is always shown with the same fields, these fields."""
        return None if self.column is None else self.column.shown

    @property
    def nested(self) -> ObjectType | None:
        """The type of the objects shown in it, whose fields can be selected in brackets."""
        if self.way is not None:
            return self.way
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
    :param searched: the searched columns, without the title.
    """

    label: str
    content_class: type[Content]
    endpoint: Endpoint | None
    columns: dict[str, Column] = field(default_factory=dict)
    exports: dict[str, Export] = field(default_factory=dict)
    searched: tuple[Column, ...] = ()

    @property
    def served_at(self) -> Endpoint:
        """Its endpoint; not to be used for child objects, which have none."""
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
        """A hint about a key that cannot be used here, or "".

        :param use: ``filtered`` or ``ordered`` if it was to be used for that in a list.
        """
        if use and name in self.detail_only:
            return f" {name} is shown in details only; lists cannot be {use} by it."
        if use == "filtered" and name in self.filterable:
            return f" {name} has no comparisons and no facet."
        if use and name in self.exports:
            return f" {name} is no single stored value; lists cannot be {use} by it."
        own = [self.served_at.types[label] for label in sorted(self.types)]
        showing = [t for t in own if name in t.exports.keys() - t.detail_only]
        filtering = [t for t in own if name in {custom.name for custom in t.api_filters}]
        for kind, types in (("field", showing), ("filter", filtering * (use == "filtered"))):
            # A type includes those that derive from it.
            labels = [t.label for t in types if not any(t.types < other.types for other in types)]
            if labels:
                return f" It is a {kind} of {', '.join(labels)}; ask for type={labels[0]}."
        return ""

    @property
    def api_filters(self) -> Sequence[APIFilter]:
        """Its additional query parameters."""
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
        """The columns of its rows: ``id``, ``type`` (not for child objects), and stored fields."""
        first, *rest = self.columns
        return (first, "type", *rest) if self.endpoint else (first, *rest)

    @cached_property
    def places(self) -> dict[str, int]:
        """The index of each column in its rows."""
        return {name: index for index, name in enumerate(self.column_names)}

    @cached_property
    def checked_places(self) -> list[tuple[Column, int]]:
        """The columns that may refuse a stored value, or that there is none, each with its index in
        rows."""
        return [
            (column, self.places[name])
            for name, column in self.columns.items()
            if (column.child.checked_places if column.child else column.is_checked)
            or column.field.required
        ]

    @cached_property
    def naming_places(self) -> list[tuple[Column, int]]:
        """The columns that can name other objects, each with its index in rows."""
        return [(c, self.places[name]) for name, c in self.columns.items() if c.names_others]


@dataclass(eq=False)
class Endpoint:
    """One kind of object with an address in the API.

    :param name: the last part of the address, and the key of the records.
    :param base: the type that all others of the endpoint derive from.
    :param types: all types by label.
    :param tree: whether the objects are pages of a tree.
    :param collections: whether they belong to collections, which can be restricted.
    :param redirects: whether they are redirects, each of a site or of all sites.
    :param images: whether they are images, which have renditions.
    :ivar of_sites: whether the ``site`` parameter chooses among the objects.
    """

    name: str
    base: ObjectType = field(init=False)
    types: dict[str, ObjectType] = field(default_factory=dict)
    tree: bool = False
    collections: bool = False
    redirects: bool = False
    images: bool = False
    #: The relation without whose target an object does not exist, if it points to one; None if
    #: there is no such relation.
    essential: str | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.essential = "redirect_page" if self.redirects else None
        self.of_sites = self.tree or self.redirects

    @property
    def every_type(self) -> tuple[ObjectType, ...]:
        """The base, and the types that derive from it."""
        return tuple(dict.fromkeys((self.base, *self.types.values())))

    def type_of(self, label: str) -> ObjectType:
        """The type with a label; the base if the label is not declared."""
        return self.types.get(label, self.base)

    def is_of_all(self, declared: ObjectType) -> bool:
        """Whether all objects are of a type, even those of undeclared types: it is the base, or
        every type derives from it and it stores nothing that those objects lack."""
        return declared is self.base or (
            1 < len(self.types) == len(declared.types)
            and declared.columns.keys() == self.base.columns.keys()
        )

    def named(self, text: str) -> ObjectType:
        """The type that a part of the ``type`` parameter names.

        :raises BadRequest: if there is none.
        """
        # The registry refuses labels that differ in letter case alone.
        wanted, known = _folded(text), self.types.items()
        found = self.types.get(text) or next((t for n, t in known if _folded(n) == wanted), None)
        if found is None:
            hint = suggest(text, self.types) or f" There are {', '.join(self.types)}."
            raise BadRequest(f"There is no type {text!r}.{hint}")
        return found


def _folded(label: str) -> str:
    """A label as it is compared: the name of the model in any case, the first part exactly."""
    app_label, _, model_name = label.partition(".")
    return f"{app_label}.{model_name.lower()}"


def targets_of(
    declared: ObjectType, row: Row, children: tuple[str, int] | None = None
) -> Iterator[tuple[ObjectKey, Column, tuple[str, int] | None]]:
    """The objects that an object and its child objects point to: in relations, in blocks with
    relations, and in rich text.

    :param row: the columns of its type, :attr:`ObjectType.column_names`.
    :returns: for each the column that points to it, and for a column of a child object the column
        of child objects and its index.
    """
    for column, place in declared.naming_places:
        value = row[place]
        if value is None:
            continue
        if column.child is None:
            for target in column.targets(value):
                yield target, column, children
        else:
            for number, child in enumerate(value):
                yield from targets_of(column.child, child, (column.name, number))

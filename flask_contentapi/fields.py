"""The fields for declaring types, in addition to marshmallow's own.

Every marshmallow field can be declared. Its class determines what it stores (:func:`kind_of`).
The field itself serialises its values, with two exceptions that the contract makes for the plain
classes: instants end in ``Z`` and decimals are strings (:func:`answer_field`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, time
from decimal import Decimal
from functools import partial
from typing import Any

from marshmallow import Schema, ValidationError, fields

from flask_contentapi import kinds


class Related(fields.Integer):
    """A relation to one object of an endpoint; a record holds its id or null.

    ``fields.List(Related("pages"))`` is a relation to many; a record holds a list of their ids.

    :param endpoint: the endpoint of the related object (``"pages"``, ``"images"``,
        ``"documents"`` or one of the site's own) or a class that is served there.
    :param shown: the ``fields`` text that an embedded object is always shown with; without it
        clients choose the fields in brackets.
    :param within_site: show the related object only if it is a page of the requested site.
    :param kwargs: the arguments of every marshmallow field.
    """

    def __init__(
        self,
        endpoint: str | type[Any],
        *,
        shown: str | None = None,
        within_site: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.endpoint = endpoint
        self.shown = shown
        self.within_site = within_site

    @property
    def endpoint_name(self) -> str:
        """The name of the endpoint; "" if the class has none."""
        wanted = self.endpoint
        return wanted if isinstance(wanted, str) else getattr(wanted, "endpoint", "")


#: What answers have of a rendition, as JSON Schema.
RENDITION: Mapping[str, Any] = {
    "type": ["object", "null"],
    "properties": {
        "url": {"type": "string", "format": "url"},
        "width": {"type": ["integer", "null"], "minimum": 1},
        "height": {"type": ["integer", "null"], "minimum": 1},
        "alt": {"type": "string"},
    },
    "required": ["url", "width", "height", "alt"],
}


class Rendition(fields.Raw):
    """The image of a relation in the size and format of a spec; it stores nothing itself.

    It is an attribute of the class whose name is listed in ``api_fields``, or the field of an
    :class:`APIField` there.

    :param relation: the field that is the relation to one image.
    :param spec: how the rendition is made, as ``"fill-400x300|format-webp"``.
    :param kwargs: the arguments of every marshmallow field.
    """

    def __init__(self, relation: str, spec: str, **kwargs: Any) -> None:
        url = RENDITION["properties"]["url"]
        full = {"url": url, "full_url": url, **RENDITION["properties"]}
        schema = {**RENDITION, "properties": full, "required": [*full]}
        super().__init__(metadata={**schema, **kwargs.pop("metadata", {})}, **kwargs)
        self.relation = relation
        self.spec = spec


class Children(fields.Field[list[Any]]):
    """Objects that live and die with the page; a record holds a list of them.

    :param child: their class.
    :param kwargs: the arguments of every marshmallow field.
    """

    def __init__(self, child: type[Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.child = child


class Tags(fields.List[str]):
    """A set of tags; a record holds a list of texts, and answers list them by code point."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(fields.String(), **kwargs)


class RichText(fields.String):
    """HTML, returned as it is and searched without its markup."""


class Derived(fields.String):
    """Text that follows from other fields, so that records do not have it.

    :param derive: gives it, from the stored values of the fields declared before it; raises a
        ValueError, saying what is wrong, if they do not fit together.
    """

    def __init__(self, derive: Callable[[Mapping[str, Any]], str]) -> None:
        super().__init__()
        self.derive = derive


#: Converts the stored JSON of a block's value to the JSON in answers.
Representation = Callable[[Any], Any]


class Blocks(fields.Raw):
    """A list of blocks, ``{"type": ..., "value": ..., "id": ...}``, returned as they are.

    :param representations: by block type, a marshmallow field that serialises its value
        (:class:`Related` embeds the object, or null if it may not be seen) or a function from
        the stored value to the one in answers. They apply at any depth.
    :param kwargs: the arguments of every marshmallow field.
    """

    def __init__(
        self,
        representations: Mapping[str, fields.Field[Any] | Representation] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.representations = dict(representations or {})


def relation_in(field: Any) -> Related | None:
    """The relation that a field is, or that it is a list of; None for other fields."""
    if isinstance(field, fields.List):
        field = field.inner
    return field if isinstance(field, Related) else None


class Instant(fields.DateTime):
    """ISO 8601 in UTC with ``Z``, microseconds only if there are any (contract, Fields)."""

    def _serialize(self, value: datetime | None, attr: str | None, obj: Any, **_: Any) -> Any:
        if value is None:
            return None
        try:
            aware = kinds.utc(value)
        except OverflowError:
            # In UTC it is outside the years that Python knows.
            return value.isoformat()
        return aware.isoformat().replace("+00:00", "Z")


class DecimalText(fields.Decimal):
    """A decimal as a string with all its digits (contract, Fields)."""

    def _serialize(self, value: Any, attr: str | None, obj: Any, **_: Any) -> Any:
        if value is None:
            return None
        number = self.num_type(str(value))
        if not number.is_finite():
            return None
        if self.places is not None:
            number = number.quantize(self.places, rounding=self.rounding, context=kinds.EXACT)
        return format(number, "f")


class Anything(fields.Raw):
    """Output of the site's code: JSON, with instants and decimals written as elsewhere."""

    def _serialize(self, value: Any, attr: str | None, obj: Any, **_: Any) -> Any:
        return _as_elsewhere(value)


def _as_elsewhere(value: Any) -> Any:
    if isinstance(value, datetime):
        return Instant().serialize("", value, accessor=itself)
    if isinstance(value, time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return DecimalText().serialize("", value, accessor=itself)
    if isinstance(value, Mapping):
        return {key: _as_elsewhere(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_as_elsewhere(entry) for entry in value]
    return value


def itself(value: Any, *_: Any) -> Any:
    """The accessor for fields that are given the value itself instead of an object."""
    return value


#: marshmallow's messages about texts that a field cannot read, and ours.
_WORDS = {
    "Not a valid UUID.": "must be a UUID, such as 6f9619ff-8b86-d011-b42d-00c04fc964ff",
    "Not a valid IP address.": "must be an IP address, such as 192.0.2.1",
    "Not a valid IPv4 address.": "must be an IPv4 address, such as 192.0.2.1",
    "Not a valid IPv6 address.": "must be an IPv6 address, such as 2001:db8::1",
    "Not a valid IP interface.": "must be an IP interface, such as 192.0.2.1/24",
    "Not a valid IPv4 interface.": "must be an IPv4 interface, such as 192.0.2.1/24",
    "Not a valid IPv6 interface.": "must be an IPv6 interface, such as 2001:db8::1/64",
}


def _canonical_kind(field: fields.Field[Any]) -> kinds.Kind:
    def canonical(value: Any) -> str:
        try:
            text = value if isinstance(value, str) else field.serialize("", value, accessor=itself)
            return str(field.serialize("", field.deserialize(text), accessor=itself))
        except (ValidationError, AttributeError) as error:
            messages = error.messages if isinstance(error, ValidationError) else ["is not valid"]
            ours = [_WORDS.get(message) or str(message) for message in messages]
            ours = [text.replace("Must be one of:", "must be one of", 1) for text in ours]
            raise ValueError(" ".join(text.removesuffix(".") for text in ours)) from None

    return kinds.Canonical(canonical)


def _decimal_kind(field: fields.Decimal) -> kinds.Kind:
    places = field.places.as_tuple().exponent if field.places is not None else None
    return kinds.Decimal(None if places is None else -int(places))


# The first class that a field is an instance of decides.
_KINDS: tuple[tuple[type[fields.Field[Any]], Callable[[Any], kinds.Kind]], ...] = (
    (Related, lambda field: kinds.Relation()),
    (Children, lambda field: kinds.Children()),
    (Tags, lambda field: kinds.Tags()),
    (Blocks, lambda field: kinds.Blocks()),
    (fields.Boolean, lambda field: kinds.Boolean()),
    (fields.Integer, lambda field: kinds.Integer()),
    (fields.Float, lambda field: kinds.Float()),
    (fields.Decimal, _decimal_kind),
    (fields.Date, lambda field: kinds.Date()),
    (fields.Time, lambda field: kinds.Time()),
    (fields.DateTime, lambda field: kinds.DateTime()),
    (fields.UUID, _canonical_kind),
    (fields.IP, _canonical_kind),
    (fields.IPInterface, _canonical_kind),
    (fields.String, lambda field: kinds.Text()),
    (fields.Enum, lambda field: kinds.Json() if field.by_value else _canonical_kind(field)),
)


def kind_of(field: fields.Field[Any]) -> kinds.Kind:
    """The kind of value that a declared field stores; JSON for unknown classes."""
    if not isinstance(field, Related) and relation_in(field) is not None:
        return kinds.Relations()
    for field_class, make in _KINDS:
        if isinstance(field, field_class):
            return make(field)
    return kinds.Json()


#: Attributes of fields without fields inside: what a field is itself inside of, and texts.
_NOT_INSIDE = ("parent", "error_messages")
_CONTAINERS = (list, tuple, Mapping)


def inner_fields(field: fields.Field[Any]) -> Iterator[fields.Field[Any]]:
    """The fields inside a field, at any depth: those of the entries of a list, a tuple or a
    dictionary, those of a nested schema, and whatever fields a site's own field consists of.

    :raises Exception: whatever a nested schema that cannot be made raises.
    """
    waiting, seen = [field], set()
    while waiting:
        outer = waiting.pop()
        inner = [*_fields_in(v for name, v in vars(outer).items() if name not in _NOT_INSIDE)]
        if isinstance(outer, fields.Nested):
            # A schema can be nested in itself, each time as a new object with new fields.
            schema = outer.schema
            known = type(schema), frozenset(schema.fields)
            inner += [] if known in seen else schema.fields.values()
            seen.add(known)
        yield from inner
        waiting += inner


def _fields_in(values: Iterable[Any]) -> Iterator[fields.Field[Any]]:
    for value in values:
        if isinstance(value, fields.Field):
            yield value
        elif isinstance(value, _CONTAINERS):
            yield from _fields_in(value.values() if isinstance(value, Mapping) else value)


#: The fields whose values are written as instants.
INSTANTS = (fields.DateTime, fields.NaiveDateTime, fields.AwareDateTime)


def answer_field(field: fields.Field[Any]) -> fields.Field[Any]:
    """The field that serialises answers, made from the declared one and, inside it, from the
    declared ones there."""
    copied: Any = copy.copy(field)
    # What validators compare is not what these write.
    if type(field) in INSTANTS and copied.format in (None, "iso", "iso8601"):
        copied.__class__, copied.validators = Instant, []
    elif type(field) is fields.Decimal:
        copied.__class__, copied.validators = DecimalText, []
    elif type(field) in (fields.Nested, fields.Pluck):
        # A schema can be nested in itself, so it is not looked at until it is needed.
        copied.nested, copied._schema = partial(_answer_schema, field), None
    elif type(field) is fields.List:
        copied.inner = answer_field(field.inner)
    elif type(field) is fields.Tuple:
        copied.tuple_fields = [answer_field(inner) for inner in field.tuple_fields]
    elif type(field) is fields.Dict:
        copied.key_field, copied.value_field = (
            inner and answer_field(inner) for inner in (field.key_field, field.value_field)
        )
    return copied  # type: ignore[no-any-return]


def _answer_schema(nested: Any) -> Schema:
    schema = nested.schema
    copied: Any = copy.copy(schema)
    # The hook has already changed the fields that are copied here.
    copied.on_bind_field = lambda name, field: None
    copied.declared_fields = {
        name: answer_field(field) for name, field in schema.declared_fields.items()
    }
    return copied  # type: ignore[no-any-return]

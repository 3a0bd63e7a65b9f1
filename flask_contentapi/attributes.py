"""Checks the attributes of declared classes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from typing import Any

from marshmallow import fields

from flask_contentapi.content import ChildObject, Content, Document, Image, Page
from flask_contentapi.errors import DeclarationError
from flask_contentapi.fields import Blocks, Children, Related, inner_fields, relation_in
from flask_contentapi.hints import suggest
from flask_contentapi.types import ObjectType

__all__ = ["LISTINGS", "OPTIONS", "PARAMETERS", "check_attributes", "check_field", "mistake"]

#: The attributes that list keys to show.
LISTINGS = (
    "listing_default_fields",
    "nested_default_fields",
    "detail_only_fields",
    "i18n_default_fields",
)
#: The options of types that are lists; all options are in ``OPTIONS``.
_LISTS = ("api_fields", "search_fields", "meta_fields", "body_fields", "api_filters", *LISTINGS)
#: The similarity at which an attribute is almost certainly meant for one of them.
_SURELY = 0.85
#: The attributes that describe a type.
OPTIONS = ("app_label", "endpoint", "built_in_search_fields", *_LISTS)
#: Names that a field cannot have: keys of records and of answers, derived columns, and attributes
#: of the classes themselves.
_RESERVED = frozenset("type meta Meta detail_url html_url download_url url_path".split()) | {
    name
    for base in (Page, Image, Document, ChildObject)
    for own in base.__mro__[:-1]
    for name, value in {**inspect.get_annotations(own), **vars(own)}.items()
    if not isinstance(value, fields.Field) and not name.startswith("__")
}
#: What ``type=`` can tell apart.
_APP_LABEL = re.compile(r"[^\s,]*")
#: Query parameters. A field with such a name could be shown but not filtered by.
PARAMETERS = frozenset(
    "limit offset order search search_operator fields type child_of ancestor_of descendant_of "
    "site locale translation_of format html_path _".split()
)


def mistake(declared: ObjectType, attribute: str, what: str, hint: str = "") -> DeclarationError:
    """The error that names an attribute of a type.

    :param declared: the type.
    :param attribute: the attribute.
    :param what: what is wrong with it, as the rest of a sentence.
    :param hint: a sentence to append, with a leading space.
    """
    return DeclarationError(f"{declared.content_class.__name__}.{attribute} {what}.{hint}")


def check_attributes(content_class: type[Content]) -> None:
    """Refuses attributes that must be mistakes.

    :raises DeclarationError: naming the first one.
    """
    for base in content_class.__mro__:
        for name, value in vars(base).items():
            wrong = _wrong_attribute(name, value)
            if wrong:
                raise DeclarationError(f"{content_class.__name__}.{name} {wrong}")


#: The fields that have to stand by themselves, each with what is to be written instead.
_ALONE: Mapping[type[fields.Field[Any]], str] = {
    Related: "a relation is a field of its own, Related(...), or fields.List(Related(...)) for "
    "one to many, in the class or in one of its child objects, or it represents a type of blocks",
    Children: "Children are a field of their own",
    Blocks: "Blocks are a field of their own, with the representations of all inner blocks",
}


def check_field(
    declared: ObjectType, attribute: str, field: fields.Field[Any], *, stored: bool = False
) -> None:
    """Refuses a field with another inside that would not be followed, as a hidden object's id
    would be shown, and a field with a nested schema that cannot be made.

    :param stored: whether it is a stored field, which may be a relation, child objects or blocks
        itself; otherwise it writes a value, or represents a type of blocks.
    """
    if stored and isinstance(field, Blocks):
        return
    outer = relation_in(field) or field if stored else field
    try:
        inner = [*inner_fields(outer)]
    except Exception as error:
        what = f"nests a schema that cannot be made: {error}"
        raise mistake(declared, attribute, what.rstrip(".")) from error
    for found in inner if stored else (field, *inner):
        for alone, remedy in _ALONE.items():
            # Blocks without representations are plain JSON.
            if isinstance(found, alone) and getattr(found, "representations", True):
                what = f"has {alone.__name__} where it would not be followed; {remedy}"
                raise mistake(declared, attribute, what)
    for nested in (field, *inner):
        if isinstance(nested, fields.Pluck) and nested.field_name not in nested.schema.fields:
            what = f"plucks {nested.field_name!r}, which is no field of the schema"
            hint = suggest(nested.field_name, nested.schema.fields)
            raise mistake(declared, attribute, what, hint)


def _wrong_attribute(name: str, value: Any) -> str:
    """What is wrong with an attribute of a class, and what would be right; "" if nothing."""
    if isinstance(value, fields.Field):
        return "is a name that the API uses itself; take another." if name in _RESERVED else ""
    if name in _LISTS and (isinstance(value, str) or not isinstance(value, Iterable)):
        return f"is {value!r}; it must be a list."
    if name == "app_label" and not (isinstance(value, str) and _APP_LABEL.fullmatch(value)):
        return f"is {value!r}; it must be a name, as 'blog'."
    # A nested class statement has the name of the attribute, which is no mistake.
    if isinstance(value, type) and issubclass(value, fields.Field) and name != value.__name__:
        module = "fields." if value.__module__ == fields.__name__ else ""
        return f"is a class; write {module}{value.__name__}()."
    if isinstance(value, str | list | tuple) and name not in OPTIONS:
        hint = suggest(name, OPTIONS, likeness=_SURELY)
        return f"is nothing that a type has.{hint}" if hint else ""
    return ""

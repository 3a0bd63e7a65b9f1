"""Checks the attributes of declared classes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from marshmallow import fields, missing

from flask_contentapi import kinds
from flask_contentapi.answers import check_nested
from flask_contentapi.declarations import Column, Endpoint, Export, ObjectType, Source
from flask_contentapi.errors import BadRequest, DeclarationError, suggest
from flask_contentapi.fields import (
    RENDITION,
    Anything,
    Blocks,
    Children,
    Derived,
    Related,
    Rendition,
    RichText,
    answer_field,
    inner_fields,
    kind_of,
    relation_in,
)
from flask_contentapi.parameters import PARAMETERS
from flask_contentapi.renditions import read_spec
from flask_contentapi.selection import WAYS, parse_fields
from flask_contentapi.sources import BUILT_IN, Stored, attribute, computed, rendition_of
from flask_contentapi.types import (
    APIField,
    APIFilter,
    ChildObject,
    Content,
    Document,
    Entry,
    Image,
    Page,
    Redirect,
    class_in_place,
)

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
_SURELY = 0.84
#: The attributes that describe a type.
OPTIONS = ("app_label", "endpoint", "built_in_search_fields", *_LISTS)
#: Names that a field cannot have: keys of records and of answers, derived columns, and attributes
#: of the classes themselves.
RESERVED = frozenset("type meta Meta detail_url html_url download_url url_path".split()) | {
    name
    for base in (Page, Image, Document, ChildObject)
    for own in base.__mro__[:-1]
    for name, value in {**inspect.get_annotations(own), **vars(own)}.items()
    if not isinstance(value, fields.Field) and not name.startswith("__")
}
#: What ``type=`` can tell apart.
_APP_LABEL = re.compile(r"[^\s,]*")


def mistake(declared: ObjectType, attribute: str, what: str, hint: str = "") -> DeclarationError:
    """The error that names an attribute of a type.

    :param what: what is wrong with it, as the rest of a sentence.
    :param hint: a sentence to append, with a leading space.
    """
    return DeclarationError(f"{declared.content_class.__name__}.{attribute} {what}.{hint}")


def _check_attributes(content_class: type[Content]) -> None:
    """Refuses attributes that must be mistakes."""
    for base in content_class.__mro__:
        for name, value in vars(base).items():
            # What Python adds to every class is no mistake.
            wrong = "" if name.startswith("__") else _wrong_attribute(name, value)
            if wrong:
                raise DeclarationError(f"{content_class.__name__}.{name} {wrong}")


#: The fields that have to stand by themselves, each with what is to be written instead.
_ALONE: Mapping[type[fields.Field[Any]], str] = {
    Related: "a relation is a field of its own, Related(...), or fields.List(Related(...)) for "
    "one to many, in the class or in one of its child objects, or it represents a type of blocks",
    Children: "Children are a field of their own",
    Blocks: "Blocks are a field of their own, with the representations of all inner blocks",
    RichText: "a RichText is a field of its own in the class or in one of its child objects, or "
    "shows a stored text, or represents a type of blocks",
    Rendition: "a Rendition is a field of its own, or that of an APIField",
}


def _check_field(
    declared: ObjectType, attribute: str, field: fields.Field[Any], *, stored: bool = False
) -> None:
    """Refuses a field with another inside that would not be followed, as a hidden object's id, or a
    script in rich text, would be shown, and a field with a nested schema that cannot be made.

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
    for found in inner if stored or isinstance(field, RichText) else (field, *inner):
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
    if isinstance(value, fields.Field):
        return "is a name that the API uses itself; take another." if name in RESERVED else ""
    if name in _LISTS and (isinstance(value, str) or not isinstance(value, Iterable)):
        return f"is {value!r}; it must be a list."
    if name == "app_label" and not (isinstance(value, str) and _APP_LABEL.fullmatch(value)):
        return f"is {value!r}; it must be a name, as 'blog'."
    if wrong := class_in_place(name, value):
        return wrong
    if isinstance(value, str | list | tuple) and name not in OPTIONS:
        hint = suggest(name.lower(), OPTIONS, likeness=_SURELY)
        return f"is nothing that a type has.{hint}" if hint else ""
    return ""


#: Fields that compute a value instead of serialising a stored one.
COMPUTED = (fields.Function, fields.Method, fields.Constant)


def _exports_of(declared: ObjectType) -> dict[str, Export]:
    """The keys of the answers of a type that has its columns, in order."""
    content_class, endpoint = declared.content_class, declared.endpoint
    # A field of its own hides renditions, or a way, of the same name.
    own = {getattr(entry, "name", entry) for entry in content_class.api_fields}
    built_in = [n for n in content_class.body_fields if n != "renditions" or n not in own]
    ways = [n for n in WAYS if endpoint and endpoint.tree and n not in {*own, *built_in}]
    meta, body = [*content_class.meta_fields, *ways], [*built_in, *content_class.api_fields]
    # What a site lists in api_fields is never one of these.
    sources = {n: source for n, source in BUILT_IN.items() if n in (*meta, *built_in)}
    exports: dict[str, Export] = {}
    for entry, in_meta in [*((entry, True) for entry in meta), *((entry, False) for entry in body)]:
        made = partial(Export, column=None, in_meta=in_meta)
        if isinstance(entry, str) and entry in ways:
            base = declared.served_at.base
            export = made(entry, Anything(), None, way=base, only_named=True)
        elif isinstance(entry, str) and entry in sources:
            schema = {"type": "object", "additionalProperties": RENDITION}
            is_dict = entry == "renditions"
            field = fields.Raw(metadata=schema) if is_dict else fields.String()
            export = made(entry, field, sources[entry], only_named=is_dict)
        else:
            export = _make_export(declared, entry, in_meta)
        if not (isinstance(export.name, str) and export.name.isidentifier()):
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
    if not (isinstance(custom.name, str) and custom.name.isidentifier()):
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
    wrong: Any = given.source
    if not isinstance(wrong, str | None):
        what = f"has {given.name!r} with the source {wrong!r}; it must be a text"
        raise mistake(declared, "api_fields", what)
    source = given.source or given.name
    column = declared.columns.get(source)
    rendition = given.field or getattr(declared.content_class, str(source), None)
    if isinstance(rendition, Rendition):
        return Export(given.name, rendition, _rendition(declared, rendition), None, in_meta)
    for name in given.needs or ():
        if name not in declared.columns:
            what = f"has {given.name!r}, which needs {name!r}: there is no such field"
            raise mistake(declared, "api_fields", what, suggest(name, declared.columns))
    field: Any = given.field
    if not (field is None or isinstance(field, fields.Field)):
        what = f"has {given.name!r}, which {field!r} cannot write"
        raise mistake(declared, "api_fields", what, " Give a field, as fields.String().")
    if field is not None:
        _check_field(declared, f"api_fields[{given.name!r}]", field)
    made = partial(Export, given.name, in_meta=in_meta, volatile=given.volatile)
    if field is None and column is not None:
        composed = column.target or column.child or getattr(column.field, "representations", None)
        shown = None if composed else Stored(column.name)
        return made(answer_field(column.field), shown, column)
    if field is None:
        # Whether a property or method of the site's own has the name.
        own = [b for b in declared.content_class.__mro__ if b.__module__ != Content.__module__]
        names = {name for base in own[:-1] for name in vars(base) if not name.startswith("_")}
        if source in names - {*OPTIONS}:
            what = f"has {source!r}, which needs a field that writes it"
            hint = f" Write it as APIField({given.name!r}, fields.String(), source={source!r})."
            raise mistake(declared, "api_fields", what, hint)
        raise _unknown_source(declared, source)
    if column is not None and not isinstance(field, COMPUTED):
        if column.child or column.related_blocks:
            hidden = f"also write what may be hidden in {source!r}"
            what = f"has {given.name!r}, whose field would {hidden}"
            hint = " Leave the field out, or compute the value with fields.Function."
            raise mistake(declared, "api_fields", what, hint)
        return made(answer_field(field), Stored(source), None)
    written, compute = _computation(declared, given.name, field, source)
    return made(written, computed(compute, given.needs), None)


def _rendition(declared: ObjectType, field: Rendition) -> Source:
    images = [
        name
        for name, column in declared.columns.items()
        if column.target and column.target.served_at.images and not column.kind.many
    ]
    if field.relation not in images:
        what = f"has a Rendition of {field.relation!r}, which is no relation to one image"
        raise mistake(declared, "api_fields", what, suggest(str(field.relation), images))
    try:
        read_spec(str(field.spec))
    except ValueError as error:
        raise mistake(declared, "api_fields", f"has a Rendition; {error}".rstrip(".")) from None
    return rendition_of(field.relation, field.spec)


def _computation(
    declared: ObjectType, name: str, field: Any, source: str
) -> tuple[fields.Field[Any], Callable[[Any], Any]]:
    if isinstance(field, fields.Function):
        if field.serialize_func is None:
            what = f"has {name!r} with a Function without a function"
            raise mistake(declared, "api_fields", what)
        return Anything(metadata=field.metadata), field.serialize_func
    if isinstance(field, fields.Constant):
        return field, lambda instance: field.constant
    if isinstance(field, fields.Method):
        what = f"has {name!r} as a Method, which looks for it on a schema; give another field, and "
        raise mistake(declared, "api_fields", f"{what}the method as its source")
    if isinstance(field, RichText):
        what = f"has {name!r} as RichText, which is not followed in what is computed"
        raise mistake(declared, "api_fields", what, " Give fields.String(), or store the text.")
    if not hasattr(declared.content_class, source):
        raise _unknown_source(declared, source)
    is_raw = type(field) is fields.Raw
    return Anything(metadata=field.metadata) if is_raw else answer_field(field), attribute(source)


def _unknown_source(declared: ObjectType, name: object) -> DeclarationError:
    return mistake(
        declared,
        "api_fields",
        f"has {name!r}, which is no field, property or method of the class",
        suggest(str(name), declared.columns),
    )


#: The sections of the content that belong to no endpoint.
SECTIONS = ("locales", "sites", "collections")
#: The kinds that can be searched.
_SEARCHABLE = (kinds.Text, kinds.Tags, kinds.Json, kinds.Children)


class Registry:
    """All declared types.

    :param types: the site's classes. The package's own are added for pages, images or documents if
        the site has no class for them.
    :raises DeclarationError: for the first mistake found.
    """

    def __init__(self, types: Iterable[type[Entry]]) -> None:
        self.endpoints: dict[str, Endpoint] = {}
        self._children: dict[type[ChildObject], ObjectType] = {}
        self._relations: list[tuple[ObjectType, str, Related]] = []
        self.renditions: set[str] = set()
        for content_class in self._with_default_types(list(types)):
            self._add(content_class)
        for endpoint in self.endpoints.values():
            self._find_base(endpoint)
        self._complete([one for end in self.endpoints.values() for one in end.every_type])
        # What they show can be checked only now that all types have their keys.
        for declared, name, relation in self._relations:
            try:
                target = self.endpoints[relation.endpoint_name].base
                check_nested(target, parse_fields(relation.shown or ""))
            except BadRequest as error:
                what = f"is always shown with {relation.shown!r}"
                raise mistake(declared, name, what, f" {error.description}") from None

    @staticmethod
    def _with_default_types(types: list[type[Entry]]) -> list[type[Entry]]:
        for content_class in types:
            if not (isinstance(content_class, type) and issubclass(content_class, Entry)):
                raise DeclarationError(
                    f"types has {content_class!r}, which is not a subclass of Page, Image, "
                    "Document or Entry."
                )
        for own in (Page, Image, Document):
            if not any(issubclass(t, own) and t.endpoint == own.endpoint for t in types):
                types.append(own)
        return types

    def _add(self, content_class: type[Entry]) -> None:
        name = getattr(content_class, "endpoint", None)
        if not isinstance(name, str) or not name.isidentifier() or name in SECTIONS:
            raise DeclarationError(
                f"{content_class.__name__}.endpoint is {name!r}; it must be a name of its own, as "
                "'people'."
            )
        if issubclass(content_class, Page) and name != Page.endpoint:
            raise DeclarationError(
                f"{content_class.__name__}.endpoint is {name!r}; all pages are served at 'pages'."
            )
        _check_attributes(content_class)
        endpoint = self.endpoints.get(name) or Endpoint(
            name,
            tree=issubclass(content_class, Page),
            collections=issubclass(content_class, Image | Document),
            redirects=issubclass(content_class, Redirect),
            images=issubclass(content_class, Image),
        )
        self.endpoints[name] = endpoint
        label = content_class.type_label()
        if "," in label:
            raise DeclarationError(
                f"{content_class.__name__} has the label {label!r}, which type= cannot name "
                "because of the comma; set app_label = '<another>' or rename the class."
            )
        for known in (known for end in self.endpoints.values() for known in end.types.values()):
            if known.content_class is content_class:
                raise DeclarationError(f"types has {content_class.__name__} twice.")
            if known.label.lower() == label.lower():
                raise DeclarationError(
                    f"{content_class.__name__} has the label {label}, but there is {known.label} "
                    "already, and letter case does not count; set app_label = '<another>' in one "
                    "of the classes."
                )
        endpoint.types[label] = ObjectType(label, content_class, endpoint)

    def _find_base(self, endpoint: Endpoint) -> None:
        """Finds the nearest class that all types share; for pages, the package's own.

        A page type's own fields are shown only if the type is selected (specification, 2.3).
        """
        classes = [declared.content_class for declared in endpoint.types.values()]
        shared: type[Content] = next(
            base
            for base in (Page,) * endpoint.tree + classes[0].__mro__
            if all(issubclass(content_class, base) for content_class in classes)
        )
        if not (issubclass(shared, Entry) and getattr(shared, "endpoint", None) == endpoint.name):
            raise DeclarationError(
                f"{' and '.join(c.__name__ for c in classes)} are all served at "
                f"{endpoint.name!r} but share no base class with that endpoint."
            )
        by_class = {declared.content_class: declared for declared in endpoint.types.values()}
        endpoint.base = by_class.get(shared) or ObjectType(shared.type_label(), shared, endpoint)

    def _complete(self, types: Sequence[ObjectType]) -> None:
        for declared in types:
            declared.columns = self._columns(declared)
        for declared in types:
            self._check_inherited(declared)
        for declared in (*types, *self._children.values()):
            declared.exports = _exports_of(declared)
            shown = (export.field for export in declared.exports.values())
            self.renditions |= {field.spec for field in shown if isinstance(field, Rendition)}
            declared.searched = tuple(self._searched(declared))

    def _check_inherited(self, declared: ObjectType) -> None:
        """Refuses a field that stores something else, or leads elsewhere, in a type that this one
        derives from, because the lists of that type have both."""
        for above in declared.served_at.types.values():
            if issubclass(declared.content_class, above.content_class):
                for name, column in above.columns.items():
                    own = declared.columns.get(name)
                    if own is None or own.storage_signature != column.storage_signature:
                        raise mistake(declared, name, f"must store what it does in {above.label}")
                    if own.within_site is not column.within_site:
                        what = f"must have the same within_site as in {above.label}"
                        raise mistake(declared, name, what)

    # Stored fields.

    def _columns(self, declared: ObjectType) -> dict[str, Column]:
        own = declared.content_class.declared_fields()
        # Those of the base come first, even with mixins.
        common = declared.endpoint.base.content_class if declared.endpoint else ChildObject
        names = dict.fromkeys(("id", *common.declared_fields(), *own))
        for name in names.keys() - own.keys():
            raise mistake(declared, name, "is no field any more, but every type has to have it")
        # The class of the package that it derives from.
        package: Any = next(
            base for base in declared.content_class.__mro__ if base.__module__ == Content.__module__
        )
        built_in = package.declared_fields()
        return {name: self._column(declared, name, own[name], built_in.get(name)) for name in names}

    def _column(
        self,
        declared: ObjectType,
        name: str,
        field: fields.Field[Any],
        built_in: fields.Field[Any] | None,
    ) -> Column:
        is_own = field is not built_in
        if is_own and built_in is not None and _stored_kind(field) != _stored_kind(built_in):
            raise mistake(
                declared, name, f"must store what it does elsewhere: {kind_of(built_in).name}"
            )
        if is_own and isinstance(built_in, Derived):
            raise mistake(declared, name, "is derived from other fields; leave it as it is")
        if field.data_key is not None or field.attribute is not None:
            raise mistake(
                declared,
                name,
                "has a data_key or an attribute; to show it under another name, put "
                f"APIField('<name>', source='{name}') into api_fields",
            )
        if isinstance(field, COMPUTED):
            raise mistake(declared, name, "stores nothing; put it into an APIField of api_fields")
        target = self._target(declared, name, field)
        child = self._child(declared, name, field) if isinstance(field, Children) else None
        blocks = self._blocks(declared, name, field) if isinstance(field, Blocks) else {}
        if is_own:
            _check_field(declared, name, field, stored=True)
        column = Column(name, kind_of(field), field, target, child, blocks)
        try:
            if not field.required and not callable(field.load_default):
                column.default()
        except ValueError as error:
            what = f"has the default {field.load_default!r}, but it {error}"
            raise mistake(declared, name, what) from None
        return column

    def _blocks(self, declared: ObjectType, name: str, field: Blocks) -> dict[str, Column]:
        columns = {}
        representation: Any
        for block, representation in field.representations.items():
            where = f"{name}[{block!r}]"
            target = None
            is_field = isinstance(representation, fields.Field)
            cannot = fields.Method | Children if is_field else type
            if isinstance(representation, cannot) or not (is_field or callable(representation)):
                what = f"is {representation!r}; it must be a field, as fields.Date(), or a function"
                raise mistake(declared, where, what)
            if isinstance(representation, Related):
                target = self._target(declared, where, representation)
            elif is_field:
                _check_field(declared, where, representation)
            if is_field and not isinstance(representation, COMPUTED):
                columns[block] = Column(block, kind_of(representation), representation, target)
        return columns

    def _target(self, declared: ObjectType, name: str, field: Any) -> ObjectType | None:
        field = relation_in(field)
        if field is None:
            return None
        if field.endpoint_name not in self.endpoints:
            raise mistake(
                declared,
                name,
                f"is a relation to {field.endpoint!r}, which is not served; there are "
                + ", ".join(sorted(self.endpoints)),
            )
        if field.within_site and not self.endpoints[field.endpoint_name].tree:
            what = f"is within_site, but {field.endpoint_name} belong to no site; only pages do"
            raise mistake(declared, name, what)
        shown: Any = field.shown
        if not isinstance(shown, str | None):
            what = f"is always shown with {shown!r}; it must be a text, as 'title,photo'"
            raise mistake(declared, name, what)
        self._relations.append((declared, name, field))
        return self.endpoints[field.endpoint_name].base

    def _child(self, declared: ObjectType, name: str, field: Children) -> ObjectType:
        child = field.child
        default = field.load_default
        if default is not missing and (default() if callable(default) else default):
            raise mistake(declared, name, "has a default, which child objects have none of")
        if not (isinstance(child, type) and issubclass(child, ChildObject)):
            raise mistake(declared, name, "must be given a subclass of ChildObject")
        if issubclass(declared.content_class, ChildObject):
            raise mistake(declared, name, "nests child objects, which have none themselves")
        if child not in self._children:
            _check_attributes(child)
            label = child.type_label()
            if any(label == known.label for known in self._children.values()):
                raise mistake(declared, name, f"has children of a second type labelled {label}")
            made = self._children[child] = ObjectType(label, child, None)
            made.columns = self._columns(made)
            for column in made.columns.values():
                if isinstance(column.kind, kinds.Tags):
                    raise mistake(made, column.name, "are tags, which child objects have none of")
        return self._children[child]

    # Search.

    def _searched(self, declared: ObjectType) -> Iterable[Column]:
        names = [*declared.content_class.built_in_search_fields]
        names += [name for name in declared.content_class.search_fields if name not in names]
        for name in names:
            column = declared.columns.get(name)
            if column is None or not _holds_text(column.field):
                what = f"has {name!r}, which is no field that holds text"
                texts = (n for n, c in declared.columns.items() if _holds_text(c.field))
                hint = "" if column else suggest(str(name), texts)
                raise mistake(declared, "search_fields", what, hint)
            child = column.child and column.child.content_class
            if child and not (child.search_fields or child.built_in_search_fields):
                what = f"has {name!r}, but {child.__name__} has no search_fields"
                what += ", so nothing would be found; name its fields there"
                raise mistake(declared, "search_fields", what)
            if name != "title":
                yield column


def _holds_text(field: Any) -> bool:
    """Whether the values of a field can have texts that a search finds, so not the keys of
    dictionaries."""
    match field:
        case fields.List(inner=entry) | fields.Dict(value_field=fields.Field() as entry):
            return _holds_text(entry)
        case fields.Tuple(tuple_fields=[_, *_] as entries):
            return any(map(_holds_text, entries))
    return isinstance(kind_of(field), _SEARCHABLE)


def _stored_kind(field: fields.Field[Any]) -> tuple[type[kinds.Kind], str | None]:
    relation = relation_in(field)
    return type(kind_of(field)), None if relation is None else relation.endpoint_name

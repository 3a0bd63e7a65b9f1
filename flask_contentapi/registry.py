"""All declared types: made from the classes of a site, and checked.

Everything is checked once, when the registry is made; a mistake is a
:class:`~flask_contentapi.errors.DeclarationError` that names class and attribute.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

from marshmallow import fields

from flask_contentapi import kinds
from flask_contentapi.content import (
    APIField,
    APIFilter,
    ChildObject,
    Content,
    Document,
    Entry,
    Image,
    Page,
)
from flask_contentapi.errors import BadRequest, DeclarationError
from flask_contentapi.fields import Anything, Blocks, Children, Related, answer_field, kind_of
from flask_contentapi.hints import suggest
from flask_contentapi.selection import Selection, parse_fields
from flask_contentapi.sources import Computed, Source, Stored, attribute
from flask_contentapi.types import Column, Endpoint, Export, ObjectType

#: Lists of keys that are shown.
_LISTINGS = (
    "listing_default_fields",
    "nested_default_fields",
    "detail_only_fields",
    "i18n_default_fields",
)
#: What types are declared with as lists, and all they are declared with besides their fields.
_LISTS = ("api_fields", "search_fields", "meta_fields", "body_fields", "api_filters", *_LISTINGS)
#: How like one of them an attribute is that is all but sure to be meant for it.
_SURELY = 0.85
_OPTIONS = ("app_label", "endpoint", "built_in_search_fields", *_LISTS)

__all__ = ["PARAMETERS", "SECTIONS", "Registry"]

#: Names that a type cannot give to a field: keys of records and of answers, derived columns, and
#: what the classes themselves are made of.
RESERVED = frozenset("type meta Meta detail_url html_url download_url url_path".split()) | {
    name
    for base in (Page, Image, Document, ChildObject)
    for own in base.__mro__[:-1]
    for name, value in {**inspect.get_annotations(own), **vars(own)}.items()
    if not isinstance(value, fields.Field) and not name.startswith("__")
}
#: Fields that make a value instead of writing a stored one.
COMPUTED = (fields.Function, fields.Method, fields.Constant)
#: Lists of records that are not those of an endpoint.
SECTIONS = ("locales", "sites", "collections")
#: What can be searched.
_SEARCHABLE = (kinds.Text, kinds.Tags, kinds.Json, kinds.Children)
#: Query parameters; a shown field of that name could not be filtered by.
PARAMETERS = frozenset(
    "limit offset order search search_operator fields type child_of ancestor_of descendant_of "
    "site locale translation_of format html_path _".split()
)


class Registry:
    """All declared types.

    :param types: the site's classes; page, image and document types that it does not bring are
        the package's own.
    :raises DeclarationError: for the first mistake found.
    """

    def __init__(self, types: Iterable[type[Entry]]) -> None:
        self.endpoints: dict[str, Endpoint] = {}
        self._children: dict[type[ChildObject], ObjectType] = {}
        self._relations: list[tuple[ObjectType, str, Related]] = []
        for content_class in self._with_defaults(list(types)):
            self._add(content_class)
        for endpoint in self.endpoints.values():
            self._find_base(endpoint)
        self._fill(declared for end in self.endpoints.values() for declared in end.types.values())
        self._fill(end.base for end in self.endpoints.values() if end.base.label not in end.types)
        for relation in self._relations:
            self._check_shown(*relation)

    @staticmethod
    def _with_defaults(types: list[type[Entry]]) -> list[type[Entry]]:
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
        )
        self.endpoints[name] = endpoint
        label = content_class.type_label()
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
        """The nearest class that all types share; of pages the package's own.

        A page type's own fields are shown only to who selects the type (specification, 2.3).
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

    def _fill(self, types: Iterable[ObjectType]) -> None:
        filled = list(types)
        for declared in filled:
            declared.columns = self._columns(declared)
        for declared in [*filled, *self._children.values()]:
            declared.exports = self._exports(declared)
            declared.searched = tuple(self._searched(declared))

    # Stored fields.

    def _columns(self, declared: ObjectType) -> dict[str, Column]:
        """The columns of a type; those of its endpoint's base stand first, whatever it mixes in."""
        own = declared.content_class.declared_fields()
        common = declared.endpoint.base.content_class if declared.endpoint else ChildObject
        names = dict.fromkeys(("id", *common.declared_fields(), *own))
        for name in names.keys() - own.keys():
            raise _mistake(declared, name, "is no field any more, but every type has to have it")
        return {name: self._column(declared, name, own[name]) for name in names}

    def _column(self, declared: ObjectType, name: str, field: fields.Field[Any]) -> Column:
        built_in = _built_in(declared.content_class).get(name)
        if built_in is not None and type(kind_of(field)) is not type(kind_of(built_in)):
            raise _mistake(
                declared, name, f"must store what it does elsewhere: {kind_of(built_in).name}"
            )
        if field.data_key is not None or field.attribute is not None:
            raise _mistake(
                declared,
                name,
                "has a data_key or an attribute; to show it under another name, put "
                f"APIField('<name>', source='{name}') into api_fields",
            )
        if isinstance(field, COMPUTED):
            raise _mistake(declared, name, "stores nothing; put it into an APIField of api_fields")
        if isinstance(field, Related):
            self._check_relation(declared, name, field)
        target = self.target(field) if isinstance(field, Related) else None
        child = self._child(declared, name, field) if isinstance(field, Children) else None
        if isinstance(field, Blocks):
            for block, relation in field.relations.items():
                self._check_relation(declared, f"{name}[{block!r}]", relation)
        column = Column(name, kind_of(field), field, target, child)
        try:
            if not field.required and not callable(field.load_default):
                column.default()
        except ValueError as error:
            what = f"has the default {field.load_default!r}, but it {error}"
            raise _mistake(declared, name, what) from None
        return column

    def _check_relation(self, declared: ObjectType, name: str, field: Related) -> None:
        if field.endpoint_name not in self.endpoints:
            raise _mistake(
                declared,
                name,
                f"is a relation to {field.endpoint!r}, which is not served; there are "
                + ", ".join(sorted(self.endpoints)),
            )
        try:
            parse_fields(field.shown or "")
        except BadRequest as error:
            what = f"is always shown with {field.shown!r}. {error.description}"
            raise _mistake(declared, name, what.rstrip(".")) from None
        self._relations.append((declared, name, field))

    def _check_shown(self, declared: ObjectType, name: str, field: Related) -> None:
        """Refuses relations that are always shown with fields which are not there."""
        wrong = _not_shown(self.target(field), parse_fields(field.shown or ""))
        if wrong:
            what = f"is always shown with {field.shown!r}, but {wrong!r} is nothing to be shown"
            raise _mistake(declared, name, what)

    def target(self, field: Related) -> ObjectType:
        """What a relation of the declared types points to."""
        return self.endpoints[field.endpoint_name].base

    def _child(self, declared: ObjectType, name: str, field: Children) -> ObjectType:
        child = field.child
        if not (isinstance(child, type) and issubclass(child, ChildObject)):
            raise _mistake(declared, name, "must be given a subclass of ChildObject")
        if issubclass(declared.content_class, ChildObject):
            raise _mistake(declared, name, "nests child objects, which have none themselves")
        if child not in self._children:
            _check_attributes(child)
            label = child.type_label()
            if any(label == known.label for known in self._children.values()):
                raise _mistake(declared, name, f"has children of a second type labelled {label}")
            self._children[child] = ObjectType(label, child, None)
            self._children[child].columns = self._columns(self._children[child])
            self._refuse_tags(self._children[child])
        return self._children[child]

    @staticmethod
    def _refuse_tags(child: ObjectType) -> None:
        for column in child.columns.values():
            if isinstance(column.kind, kinds.Tags):
                raise _mistake(child, column.name, "are tags, which child objects have none of")

    # Keys of answers.

    def _exports(self, declared: ObjectType) -> dict[str, Export]:
        content_class = declared.content_class
        listed: list[tuple[str | APIField, bool]] = [
            *((entry, True) for entry in content_class.meta_fields),
            *((entry, False) for entry in content_class.body_fields),
            *((entry, False) for entry in content_class.api_fields),
        ]
        exports: dict[str, Export] = {}
        for entry, in_meta in listed:
            export = self._export(declared, entry, in_meta)
            if not _is_name(export.name):
                what = f"has {export.name!r}; a key of an answer is a name, as Python has them"
                raise _mistake(declared, "api_fields", what)
            if export.name in exports or export.name == "meta":
                what = f"has {export.name!r}, which the API shows already"
                raise _mistake(declared, "api_fields", what)
            exports[export.name] = export
        self._check_names(declared, exports)
        return exports

    def _check_names(self, declared: ObjectType, exports: dict[str, Export]) -> None:
        for name, export in exports.items():
            if name in PARAMETERS and not export.in_meta and export.column is not None:
                raise _mistake(
                    declared,
                    "api_fields",
                    f"shows {name!r}, which is a query parameter; show it under another name, as "
                    f"APIField('<name>', source={export.column.name!r})",
                )
        taken = {*PARAMETERS, *exports}
        for custom in declared.api_filters:
            self._check_filter(declared, custom, taken)
            taken.add(custom.name)
        for listing in _LISTINGS:
            for name in getattr(declared.content_class, listing, ()):
                if name not in exports:
                    raise _mistake(declared, listing, f"has {name!r}, which is not shown")

    @staticmethod
    def _check_filter(declared: ObjectType, custom: APIFilter, taken: set[str]) -> None:
        column = declared.columns.get(custom.source)
        if column is None or not column.kind.orderable:
            what = f"compares {custom.source!r}, which is no single stored value"
            fitting = [name for name, other in declared.columns.items() if other.kind.orderable]
            raise _mistake(declared, "api_filters", what, suggest(custom.source, fitting))
        if custom.name in taken:
            what = f"has {custom.name!r}, which is a parameter already"
            raise _mistake(declared, "api_filters", what)
        if custom.operator not in ("lt", "le", "gt", "ge"):
            what = f"has {custom.name!r} with the operator {custom.operator!r}"
            raise _mistake(declared, "api_filters", what, " There are lt, le, gt and ge.")

    def _export(self, declared: ObjectType, entry: str | APIField, in_meta: bool) -> Export:
        given = entry if isinstance(entry, APIField) else APIField(entry)
        return replace(self._made(declared, given, in_meta), volatile=given.volatile)

    def _made(self, declared: ObjectType, given: APIField, in_meta: bool) -> Export:
        if isinstance(given.source, Source):
            assert given.field is not None
            return Export(given.name, given.field, given.source, None, in_meta)
        source = given.source or given.name
        column = declared.columns.get(source)
        if given.needs is not None:
            self._check_needs(declared, given)
        wanted: Any = given.field
        if not (wanted is None or isinstance(wanted, fields.Field)):
            what = f"has {given.name!r}, which {wanted!r} cannot write"
            raise _mistake(declared, "api_fields", what, " Give a field, as fields.String().")
        if given.field is None:
            if column is None:
                raise self._unknown(declared, source)
            return self._stored(given.name, column, in_meta)
        if column is not None and not isinstance(given.field, COMPUTED):
            return Export(given.name, answer_field(given.field), Stored(source), None, in_meta)
        field, compute = self._computation(declared, given, source)
        return Export(given.name, field, Computed(compute, given.needs), None, in_meta)

    def _computation(
        self, declared: ObjectType, given: APIField, source: str
    ) -> tuple[fields.Field[Any], Callable[[Any], Any]]:
        """The field that writes a computed key, and what computes it."""
        field = given.field
        assert field is not None
        if isinstance(field, fields.Function):
            return Anything(), cast(Callable[[Any], Any], field.serialize_func)
        if isinstance(field, fields.Constant):
            return field, lambda instance: field.constant
        if isinstance(field, fields.Method):
            what = f"has {given.name!r} as a Method, which looks for it on a schema; "
            raise _mistake(
                declared, "api_fields", what + "give another field, and the method as its source"
            )
        if not hasattr(declared.content_class, source):
            raise self._unknown(declared, source)
        written = Anything() if type(field) is fields.Raw else answer_field(field)
        return written, attribute(source)

    @staticmethod
    def _stored(name: str, column: Column, in_meta: bool) -> Export:
        field, shown = column.field, None
        if isinstance(field, Related) and field.shown is not None:
            shown = parse_fields(field.shown)
        composed = column.target or column.child or getattr(field, "representations", None)
        source = None if composed else Stored(column.name)
        return Export(name, answer_field(field), source, column, in_meta, shown)

    @staticmethod
    def _unknown(declared: ObjectType, name: object) -> DeclarationError:
        return _mistake(
            declared,
            "api_fields",
            f"has {name!r}, which is no field, property or method of the class",
            suggest(str(name), declared.columns),
        )

    @staticmethod
    def _check_needs(declared: ObjectType, given: APIField) -> None:
        for name in given.needs or ():
            if name not in declared.columns:
                what = f"has {given.name!r}, which needs {name!r}: there is no such field"
                raise _mistake(declared, "api_fields", what, suggest(name, declared.columns))

    # Search.

    def _searched(self, declared: ObjectType) -> Iterable[Column]:
        names = [*declared.content_class.built_in_search_fields]
        names += [name for name in declared.content_class.search_fields if name not in names]
        for name in names:
            column = declared.columns.get(name)
            if column is None or not _is_searchable(column):
                what = f"has {name!r}, which is no field that holds text"
                texts = (c.name for c in declared.columns.values() if _is_searchable(c))
                hint = "" if column else suggest(str(name), texts)
                raise _mistake(declared, "search_fields", what, hint)
            if name != "title":
                yield column


def _is_searchable(column: Column) -> bool:
    return isinstance(column.kind, _SEARCHABLE)


def _built_in(content_class: type[Content]) -> Mapping[str, fields.Field[Any]]:
    """The stored fields that the package's own base of a class has."""
    own = [base for base in content_class.__mro__ if base.__module__ == Content.__module__]
    return cast(type[Content], own[0]).declared_fields()


def _check_attributes(content_class: type[Content]) -> None:
    """Refuses attributes that cannot be meant as they stand."""
    for base in content_class.__mro__:
        for name, value in vars(base).items():
            wrong = _wrong_attribute(name, value)
            if wrong:
                raise DeclarationError(f"{content_class.__name__}.{name} {wrong}")


def _wrong_attribute(name: str, value: Any) -> str:
    """What is wrong with an attribute of a class, and what would be right; "" if nothing."""
    if isinstance(value, fields.Field):
        return "is a name that the API uses itself; take another." if name in RESERVED else ""
    if name in _LISTS and (isinstance(value, str) or not isinstance(value, Iterable)):
        return f"is {value!r}; it must be a list."
    # A class that is made right there has its own name.
    if isinstance(value, type) and issubclass(value, fields.Field) and name != value.__name__:
        module = "fields." if value.__module__ == fields.__name__ else ""
        return f"is a class; write {module}{value.__name__}()."
    if isinstance(value, str | list | tuple) and name not in _OPTIONS:
        hint = suggest(name, _OPTIONS, likeness=_SURELY)
        return f"is nothing that a type has.{hint}" if hint else ""
    return ""


def _not_shown(target: ObjectType, selection: Selection) -> str | None:
    """What a selection names that an embedded object has not, or has no fields of."""
    for name in (*selection.added, *selection.removed):
        export = target.exports.get(name)
        if export is None or name in target.detail_only:
            return name
        inner = selection.added.get(name)
        if inner is not None:
            wrong = _not_shown(export.nested, inner) if export.nested else name
            if wrong:
                return wrong
    return None


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and name.isidentifier()


def _mistake(declared: ObjectType, attribute: str, what: str, hint: str = "") -> DeclarationError:
    return DeclarationError(f"{declared.content_class.__name__}.{attribute} {what}.{hint}")

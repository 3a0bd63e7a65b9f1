"""All declared types, built from the classes of a site and checked.

Everything is checked once, when the registry is built. A mistake raises a
:class:`~flask_contentapi.errors.DeclarationError` that names the class and the attribute.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from marshmallow import fields, missing

from flask_contentapi import kinds
from flask_contentapi.attributes import check_attributes, check_field, mistake
from flask_contentapi.content import ChildObject, Content, Document, Entry, Image, Page
from flask_contentapi.errors import BadRequest, DeclarationError
from flask_contentapi.exports import COMPUTED, exports_of
from flask_contentapi.fields import Blocks, Children, Related, kind_of, relation_in
from flask_contentapi.hints import suggest
from flask_contentapi.selection import Selection, parse_fields
from flask_contentapi.types import Column, Endpoint, ObjectType

__all__ = ["SECTIONS", "Registry"]

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
        for content_class in self._with_default_types(list(types)):
            self._add(content_class)
        for endpoint in self.endpoints.values():
            self._find_base(endpoint)
        self._complete_types(
            declared for end in self.endpoints.values() for declared in end.types.values()
        )
        self._complete_types(
            end.base for end in self.endpoints.values() if end.base.label not in end.types
        )
        for relation in self._relations:
            self._check_shown(*relation)

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
        check_attributes(content_class)
        endpoint = self.endpoints.get(name) or Endpoint(
            name,
            tree=issubclass(content_class, Page),
            collections=issubclass(content_class, Image | Document),
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

    def _complete_types(self, types: Iterable[ObjectType]) -> None:
        filled = list(types)
        for declared in filled:
            declared.columns = self._columns(declared)
        for declared in filled:
            self._check_inherited(declared)
        for declared in [*filled, *self._children.values()]:
            declared.exports = exports_of(declared)
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
        """The columns of a type. Those of its endpoint's base come first, even with mixins."""
        own = declared.content_class.declared_fields()
        common = declared.endpoint.base.content_class if declared.endpoint else ChildObject
        names = dict.fromkeys(("id", *common.declared_fields(), *own))
        for name in names.keys() - own.keys():
            raise mistake(declared, name, "is no field any more, but every type has to have it")
        return {name: self._column(declared, name, own[name]) for name in names}

    def _column(self, declared: ObjectType, name: str, field: fields.Field[Any]) -> Column:
        built_in = _built_in_fields(declared.content_class).get(name)
        if built_in is not None and _stored_kind(field) != _stored_kind(built_in):
            raise mistake(
                declared, name, f"must store what it does elsewhere: {kind_of(built_in).name}"
            )
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
        check_field(declared, name, field, stored=True)
        column = Column(name, kind_of(field), field, target, child, blocks)
        try:
            if not field.required and not callable(field.load_default):
                column.default()
        except ValueError as error:
            what = f"has the default {field.load_default!r}, but it {error}"
            raise mistake(declared, name, what) from None
        return column

    def _blocks(self, declared: ObjectType, name: str, field: Blocks) -> dict[str, Column]:
        """The columns that the values of blocks are read as, by block type."""
        columns = {}
        for block, representation in field.representations.items():
            where = f"{name}[{block!r}]"
            target = None
            if not _can_convert(representation):
                what = f"is {representation!r}; it must be a field, as fields.Date(), or a function"
                raise mistake(declared, where, what)
            if isinstance(representation, Related):
                target = self._target(declared, where, representation)
            elif isinstance(representation, fields.Field):
                check_field(declared, where, representation)
            if isinstance(representation, fields.Field) and not isinstance(
                representation, COMPUTED
            ):
                columns[block] = Column(block, kind_of(representation), representation, target)
        return columns

    def _target(self, declared: ObjectType, name: str, field: Any) -> ObjectType | None:
        """The type that a declared relation to one or many points to; None for other fields."""
        relation = relation_in(field)
        if relation is None:
            return None
        self._check_relation(declared, name, relation)
        return self.endpoints[relation.endpoint_name].base

    def _check_relation(self, declared: ObjectType, name: str, field: Related) -> None:
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
        try:
            parse_fields(field.shown or "")
        except BadRequest as error:
            what = f"is always shown with {field.shown!r}. {error.description}".rstrip(".")
            raise mistake(declared, name, what) from None
        self._relations.append((declared, name, field))

    def _check_shown(self, declared: ObjectType, name: str, field: Related) -> None:
        """Refuses a relation that is always shown with fields that do not exist."""
        target = self.endpoints[field.endpoint_name].base
        wrong = _first_not_shown(target, parse_fields(field.shown or ""))
        if wrong:
            what = f"is always shown with {field.shown!r}, but {wrong!r} is nothing to be shown"
            raise mistake(declared, name, what)

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
            check_attributes(child)
            label = child.type_label()
            if any(label == known.label for known in self._children.values()):
                raise mistake(declared, name, f"has children of a second type labelled {label}")
            self._children[child] = ObjectType(label, child, None)
            self._children[child].columns = self._columns(self._children[child])
            self._refuse_tags(self._children[child])
        return self._children[child]

    @staticmethod
    def _refuse_tags(child: ObjectType) -> None:
        for column in child.columns.values():
            if isinstance(column.kind, kinds.Tags):
                raise mistake(child, column.name, "are tags, which child objects have none of")

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
                raise mistake(declared, "search_fields", what, hint)
            child = column.child and column.child.content_class
            if child and not (child.search_fields or child.built_in_search_fields):
                what = f"has {name!r}, but {child.__name__} has no search_fields"
                what += ", so nothing would be found; name its fields there"
                raise mistake(declared, "search_fields", what)
            if name != "title":
                yield column


def _can_convert(representation: Any) -> bool:
    """Whether something can be given a block's value and return the one in answers."""
    if isinstance(representation, fields.Field):
        return not isinstance(representation, fields.Method | Children)
    return callable(representation) and not isinstance(representation, type)


def _is_searchable(column: Column) -> bool:
    return isinstance(column.kind, _SEARCHABLE)


def _built_in_fields(content_class: type[Content]) -> Mapping[str, fields.Field[Any]]:
    """The stored fields of the package's own class that a class derives from."""
    own = [base for base in content_class.__mro__ if base.__module__ == Content.__module__]
    return cast(type[Content], own[0]).declared_fields()


def _stored_kind(field: fields.Field[Any]) -> tuple[type[kinds.Kind], str | None]:
    """What a field stores, with the endpoint of a relation."""
    relation = relation_in(field)
    return type(kind_of(field)), None if relation is None else relation.endpoint_name


def _first_not_shown(target: ObjectType, selection: Selection) -> str | None:
    """The first name in a selection that an embedded object does not show, or shows without
    fields to select from; None if there is none."""
    for name in (*selection.added, *selection.removed):
        export = target.exports.get(name)
        if export is None or name in target.detail_only:
            return name
        inner = selection.added.get(name)
        if inner is not None:
            wrong = _first_not_shown(export.nested, inner) if export.nested else name
            if wrong:
                return wrong
    return None

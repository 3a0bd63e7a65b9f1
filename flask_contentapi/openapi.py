"""The description of the API by OpenAPI 3.1, made from what answers: the schemas of types, and the
table of parameters (9 of what is beyond the contract). The schemas and the plans that make answers
(:mod:`flask_contentapi.answers`) come from the same declared fields.

``fields`` makes answers vary. An item has the schema of its type if it has all default fields of
lists, and otherwise that of what was selected, where every key is optional.
"""

from __future__ import annotations

import copy
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin
from apispec.ext.marshmallow.field_converter import DEFAULT_FIELD_MAPPING
from apispec.ext.marshmallow.openapi import OpenAPIConverter
from marshmallow import ValidationError, fields, validate

from flask_contentapi import kinds
from flask_contentapi.answers import choose
from flask_contentapi.caching import VARY
from flask_contentapi.declarations import Endpoint, Export, ObjectType
from flask_contentapi.fields import DecimalText
from flask_contentapi.parameters import PARAMETERS, PART, STREAM_TYPE, Parameters
from flask_contentapi.renditions import MIME_TYPES
from flask_contentapi.selection import Selection
from flask_contentapi.sources import BUILT_IN

_Json = dict[str, Any]
#: The labels that ``type`` can have; None for an undeclared type.
_Labels = Sequence[str | None]
#: Keys, each with what is selected of the objects in it; None: whatever a client selects.
_Keys = Iterable[tuple[Export, Selection | None]]


def _keys(types: Iterable[ObjectType]) -> _Keys:
    return [(export, None) for declared in types for export in declared.exports.values()]


def _can_be_null(export: Export) -> bool:
    column = export.column
    if column is None:
        return not (export.source is BUILT_IN["detail_url"] or "type" in export.field.metadata)
    # A value can be infinite, or from a time when the field was declared otherwise.
    if isinstance(column.kind, kinds.Float) or not column.is_plain:
        return True
    default = column.field.load_default
    return not column.field.required and (callable(default) or column.default() is None)


def _default(export: Export) -> Iterator[_Json]:
    """The schema of the default of a stored field, if the field itself would not accept it."""
    column = export.column
    if column is None or column.field.required or callable(column.field.load_default):
        return
    default = column.default()
    try:
        for validator in column.field.validators if default is not None else ():
            validator(default)
    except ValidationError:
        yield {"enum": [default]}


#: Modules whose fields write what apispec says of them.
_KNOWN = ("marshmallow.", "flask_contentapi.")
#: What names of components may contain.
_UNUSABLE = re.compile(r"[^A-Za-z0-9._-]")


class _Converter(OpenAPIConverter):
    field_mapping = {**DEFAULT_FIELD_MAPPING, DecimalText: ("string", "decimal")}

    def field2property(self, field: fields.Field[Any]) -> _Json:
        # A site's own field writes anything, unless its metadata says what.
        if not type(field)._serialize.__module__.startswith(_KNOWN):
            return self.metadata2properties(field)
        made = {n: v for n, v in super().field2property(field).items() if v is not None}
        if None not in made.get("enum", ()):
            return made
        # Generators of clients read a choice better if null is apart from it.
        given: _Json = {"enum": [value for value in made["enum"] if value is not None]}
        for name in {"string", "integer", "number"} & {*made.get("type", ())}:
            given["type"] = name
        return {"anyOf": [given, {"type": "null"}]}

    def field2type_and_format(self, field: fields.Field[Any], **_: Any) -> _Json:
        made: _Json = super().field2type_and_format(field)
        if getattr(field, "as_string", False):
            return {"type": "string"}
        is_formatted = getattr(field, "format", None) not in (None, "iso", "iso8601")
        return {"type": made["type"]} if is_formatted else made

    def field2default(self, field: fields.Field[Any], **_: Any) -> _Json:
        return {}  # answers have every value

    def field2pattern(self, field: fields.Field[Any], **_: Any) -> _Json:
        return {}  # the pattern is one of Python's


class _Plugin(MarshmallowPlugin):
    Converter = _Converter


def describe(title: str, parameters: Parameters) -> _Json:
    """The description of an instance, without its servers."""
    return _Description(title, parameters).make()


#: The JSON Schema of a header, by its name.
_HEADERS: Mapping[str, _Json] = {
    "Cache-Control": {"type": "string", "examples": ["public, no-cache"]},
    "ETag": {"type": "string", "examples": ['"6b3a6e8b2d1f4c0e9a7d5c3b1f2e4d6c"']},
    "If-None-Match": {"type": "string", "examples": ['"6b3a6e8b2d1f4c0e9a7d5c3b1f2e4d6c"']},
    "Link": {
        "type": "string",
        "examples": ['<https://example.org/api/v2/pages/?offset=20>; rel="next"'],
    },
    "Location": {"type": "string", "format": "uri"},
    "Retry-After": {"type": "integer"},
    "Vary": {"type": "string", "examples": [VARY]},
    "Cache-Tag": {"type": "string", "examples": ["contentapi, pages, pages-7"]},
    "Surrogate-Key": {"type": "string", "examples": ["contentapi pages pages-7"]},
}
#: Values by type and format.
_EXAMPLES: Mapping[tuple[Any, str | None], Any] = {
    ("boolean", None): True,
    ("string", None): "text",
    ("string", "date"): "2026-01-15",
    ("string", "date-time"): "2026-01-15T08:00:00Z",
    ("string", "decimal"): "4.50",
    ("string", "email"): "owl@example.org",
    ("string", "url"): "https://example.org/",
    ("string", "uuid"): "6f9619ff-8b86-d011-b42d-00c04fc964ff",
}
_TEXT: _Json = {"type": "string"}
_FLAG: _Json = {"type": "boolean"}
_WHOLE: _Json = {"type": "integer"}
_NUMBER: _Json = {**_WHOLE, "minimum": 0}
#: The id of an object in a path.
_IDENTITY: _Json = {"name": "id", "in": "path", "required": True, "schema": _NUMBER}
_ERRORS = {
    "400": "A parameter is unknown, or its value cannot be used.",
    "403": "The token of preview is not accepted here.",
    "404": "There is no such object, site or language, or it may not be seen.",
    "500": "The answer cannot be made because of an error in the application.",
    "503": "The content cannot be read now.",
    "default": "Something else that the site does not allow.",
}


def _array(entry: _Json) -> _Json:
    return {"type": "array", "items": entry}


def _object(keys: _Json, optional: Collection[str] = ()) -> _Json:
    """The schema of an object that always has all keys but the optional ones."""
    always = sorted(name for name in keys if name not in optional)
    return {"type": "object", "properties": keys, **({"required": always} if always else {})}


def _ref(name: str) -> _Json:
    return {"$ref": f"#/components/schemas/{name}"}


_MESSAGE = {**_TEXT, "examples": ["limit must be from 0 to 20."]}
_COUNTS = {"type": "object", "additionalProperties": _array(_ref("Value"))}
_INDEX = {
    "endpoints": {"type": "object", "additionalProperties": _ref("Endpoint")},
    "locales": _array(_TEXT),
    "site": {"anyOf": [_ref("Site"), {"type": "null"}]},
    "openapi_url": _TEXT,
    "explorer_url": _TEXT,
    "sites": _array(_ref("Site")),
}
_SITE = {"hostname": _TEXT, "port": _WHOLE, "site_name": _TEXT}
_SITE_ITEM = {
    "id": _NUMBER,
    "meta": _ref("Meta"),
    **_SITE,
    "root_page_id": _WHOLE,
    "is_default_site": _FLAG,
}
_LOCALE_ITEM = {
    "id": {**_WHOLE, "minimum": 1},
    "meta": _ref("Meta"),
    "language_code": _TEXT,
    "is_default": _FLAG,
}
#: The schemas of what is no object of the content, by the names of their components.
_OTHERS: Mapping[str, _Json] = {
    "Error": _object({"message": _MESSAGE}),
    "Endpoint": _object({"url": _TEXT, "types": _array(_TEXT)}),
    "Site": _object(_SITE),
    "Index": _object(_INDEX, ("explorer_url", "sites")),
    "Value": _object({"value": {}, "count": {**_WHOLE, "minimum": 1}}),
    "Total": _object({"total_count": _NUMBER, "facets": _COUNTS}, ("facets",)),
}
#: Those of the sites and the languages, which can be without addresses.
_SECTIONS: Mapping[str, _Json] = {
    "Meta": _object({"type": _TEXT, "detail_url": _TEXT}),
    "SiteItem": _object(_SITE_ITEM),
    "LocaleItem": _object(_LOCALE_ITEM),
}


def _headers(*names: str) -> _Json:
    return {name: {"schema": _HEADERS[name]} for name in names}


class _Description:
    def __init__(self, title: str, parameters: Parameters) -> None:
        self._parameters, self._settings = parameters, parameters.settings
        #: The components for types and endpoints.
        self._refs: dict[ObjectType | Endpoint, _Json] = {}
        plugin = _Plugin(self._name_of)  # type: ignore[arg-type]
        self._spec = APISpec(title, self._settings.release or "1", "3.1.0", plugins=[plugin])
        assert plugin.converter is not None
        self._converter = plugin.converter

    def make(self) -> _Json:
        has_sections = self._settings.sites_enabled
        for name, schema in {**_OTHERS, **(_SECTIONS if has_sections else {})}.items():
            self._spec.components.schema(name, schema)
        for status, purpose in _ERRORS.items():
            headers = _headers("Cache-Control", *["Retry-After"] * (status == "503"))
            made = {"description": purpose, "content": self._json(_ref("Error"))}
            self._spec.components.response(f"Error{status}", {**made, "headers": headers})
        index, own = self._json(_ref("Index")), self._json({"type": "object"})
        explored = "A browser is sent to the explorer." if self._settings.explorer else ""
        self._path("/", "index", "What there is.", [], index, moved=explored)
        self._path("/openapi.json", "openapi", "This description.", [], own)
        for endpoint in self._parameters.endpoints.values():
            self._add(endpoint)
        sections = {"sites": _ref("SiteItem"), "locales": _ref("LocaleItem")}
        for name, item in sections.items() if has_sections else ():
            images = self._query(self._parameters.endpoints["images"], "list")
            part = [parameter for parameter in images if parameter["name"] in PART]
            listed, shown = self._list_of(name, item), self._json(item)
            self._path(f"/{name}/", f"{name}_list", "A list.", part, listed)
            self._path(f"/{name}/{{id}}/", f"{name}_detail", "One object.", [_IDENTITY], shown)
        whole: _Json = self._spec.to_dict()
        return whole

    def _add(self, endpoint: Endpoint) -> None:
        name = endpoint.name
        item = self._component(f"{name}.Item", self._item(endpoint))
        listed, shown = self._list_of(name, item), self._json(item)
        if self._settings.stream_enabled:
            # Each line is one of the items.
            listed[STREAM_TYPE] = {"schema": {"type": "string"}}
        detail = [_IDENTITY, *self._query(endpoint, "detail")]
        find = [{"name": "id", "in": "query", "schema": _NUMBER}, *self._query(endpoint, "find")]
        asked = self._query(endpoint, "list")
        self._path(f"/{name}/", f"{name}_list", "A list.", asked, listed, links=True)
        address = "The address of an object."
        self._path(f"/{name}/find/", f"{name}_find", address, find, {}, moved=address)
        self._path(f"/{name}/{{id}}/", f"{name}_detail", "One object.", detail, shown)
        if endpoint.images and self._settings.makes_renditions:
            place = [_IDENTITY, {**_IDENTITY, "name": "file", "schema": {"type": "string"}}]
            binary = {"schema": {"type": "string", "format": "binary"}}
            files = dict.fromkeys(MIME_TYPES.values(), binary)
            picture = "A picture, at the address in an answer."
            address = f"/{name}/{{id}}/renditions/{{file}}"
            self._path(address, f"{name}_rendition", picture, place, files, moved=picture)
        if endpoint.tree:
            by_path = self._query(endpoint, "detail_by_path")
            for parameter in by_path:
                parameter["required"] = parameter["name"] == "html_path"
            operation = f"{name}_detail_by_path", "The object at a path."
            self._path(f"/{name}/detail_by_path/", *operation, by_path, shown)

    def _list_of(self, name: str, item: _Json) -> _Json:
        page = _object({"meta": _ref("Total"), "items": _array(item)})
        return self._json(self._component(f"{name}.List", page))

    def _item(self, endpoint: Endpoint) -> _Json:
        own = {label: self._of(declared) for label, declared in endpoint.types.items()}
        mapping = {label: ref["$ref"] for label, ref in own.items()}
        selected = self._of(endpoint)
        self._component_of(selected)["x-fields"] = _chosen(endpoint.base)
        for label, ref in own.items():
            self._component_of(ref)["x-fields"] = _chosen(endpoint.types[label])
        return {
            "anyOf": [*own.values(), selected],
            "discriminator": {"propertyName": "meta.type", "mapping": mapping},
        }

    def _path(
        self,
        path: str,
        name: str,
        purpose: str,
        parameters: list[_Json],
        content: _Json,
        *,
        moved: str = "",
        links: bool = False,
    ) -> None:
        """Adds an address, which answers with content by media type, redirects, or both."""
        header = self._settings.cache_tag_header
        named = ["Cache-Control", "Vary", *([header] if header and parameters else [])]
        responses: _Json = {status: f"Error{status}" for status in _ERRORS}
        if moved:
            responses["302"] = {"description": moved, "headers": _headers("Location", *named)}
        if content:
            headers = _headers("ETag", *named, *["Link"] * links)
            responses["200"] = {"description": purpose, "content": content, "headers": headers}
            responses["304"] = {"description": "The client has it.", "headers": headers}
            known = "If-None-Match"
            parameters = [*parameters, {"name": known, "in": "header", "schema": _HEADERS[known]}]
        operation = {
            "operationId": name,
            "summary": purpose,
            "tags": [path.split("/")[1] or "index"],
            "parameters": parameters,
            "responses": dict(sorted(responses.items())),
        }
        self._spec.path(path, operations={"get": operation})

    def _query(self, endpoint: Endpoint, view: str) -> list[_Json]:
        found: defaultdict[str, dict[ObjectType, _Json]] = defaultdict(dict)
        for declared in endpoint.every_type:
            for name, make in self._parameters.names(declared, view).items():
                if endpoint.base not in found[name]:  # what all types share is the same in each
                    found[name][declared] = self._converter.field2property(make())
        return [
            {
                "name": name,
                "in": "query",
                "description": self._purpose(name, schemas, endpoint),
                **_filters(schemas, endpoint),
                "schema": _any_of(schemas.values()),
            }
            for name, schemas in found.items()
        ]

    def _purpose(self, name: str, schemas: Mapping[ObjectType, _Json], endpoint: Endpoint) -> str:
        if name in PARAMETERS:
            return PARAMETERS[name].purpose
        (purpose, *_) = {schema.pop("description"): None for schema in schemas.values()}
        labels = [declared.label for declared in schemas]
        if endpoint.base in schemas:
            return str(purpose)
        return f"{purpose} Needs type={' or '.join(labels)}."

    def _json(self, schema: _Json) -> _Json:
        return {"application/json": {"schema": schema, "example": self._example(schema)}}

    def _example(self, schema: _Json) -> Any:
        if "$ref" in schema:
            return self._example(self._component_of(schema))
        if "anyOf" in schema:
            return self._example(schema["anyOf"][0])
        if values := schema.get("examples") or schema.get("enum"):
            return values[0]
        kind = schema.get("type")
        kind = kind[0] if isinstance(kind, list) else kind
        if kind == "object":
            required = schema.get("required", ())
            return {name: self._example(schema["properties"][name]) for name in required}
        if kind == "array":
            return [self._example(schema["items"])]
        if kind in ("integer", "number"):
            return min(max(1, schema.get("minimum", 1)), schema.get("maximum", 1))
        return _EXAMPLES.get((kind, schema.get("format")))

    # The schemas of objects.

    def _of(self, described: ObjectType | Endpoint) -> _Json:
        """The schema of all keys that a type shows, of which those of items in lists are required;
        or, for an endpoint, of what a selection leaves of any object."""
        if described in self._refs:
            return self._refs[described]
        types: Iterable[ObjectType]
        required: Collection[str] = ()
        labels: _Labels
        if isinstance(described, Endpoint):
            name, types = f"{described.name}.Selected", described.every_type
            labels = [*described.types, None]
        else:
            name, types, labels = described.label, [described], [described.label]
            if (endpoint := described.endpoint) is not None:
                # With those that it derives from: their lists have its objects too.
                own = described.content_class
                above = (t for t in endpoint.every_type if issubclass(own, t.content_class))
                types = dict.fromkeys((described, *above))
                listed = choose(described, "list", i18n=self._settings.i18n)
                required = {export.name for export, _ in listed}
        # It is there before its keys, because types may point to each other in a circle.
        ref = self._refs[described] = self._component(name, {})
        made = self._shown(_keys(types), required, labels, f"{name}.Meta")
        self._component_of(ref).update(made)
        return ref

    def _shown(
        self, keys: _Keys, required: Collection[str], labels: _Labels, meta_name: str = ""
    ) -> _Json:
        """The schema of objects of some types, which may write the same key differently.

        :param required: the keys that are always there.
        :param meta_name: the name of the component for ``meta``; "" if it is written here.
        """
        body: defaultdict[str, list[_Json]] = defaultdict(list)
        meta: defaultdict[str, list[_Json]] = defaultdict(list)
        for export, selection in keys:
            found = (meta if export.in_meta else body)[export.name]
            found += self._values(export, labels, selection)
        whole = {"id": _any_of(body.pop("id"))} if "id" in body else {}
        always = {*required}
        if meta:
            inner = {name: _any_of(schemas) for name, schemas in meta.items()}
            made = _object(inner, inner.keys() - always)
            whole["meta"] = self._component(meta_name, made) if meta_name else made
            always |= {"meta"} if "required" in made else set()
        whole |= {name: _any_of(schemas) for name, schemas in body.items()}
        return _object(whole, whole.keys() - always)

    def _values(
        self, export: Export, labels: _Labels, selection: Selection | None
    ) -> Iterator[_Json]:
        """The schemas of what a key can hold."""
        column = export.column
        if export.way is not None:
            yield _array(self._embedded(export.way, selection))
        elif column is None or export.source is not None:
            field: Any = copy.copy(export.field)
            field.allow_none = _can_be_null(export)
            field.validators = field.validators if column is not None else []
            if export.source is BUILT_IN["type"]:
                field.validators = [validate.OneOf(labels)]
                field.allow_none = None in labels
            yield self._converter.field2property(field)
        elif (inner := column.target or column.child) is not None:
            embedded = self._embedded(inner, export.shown or selection)
            many = column.kind.many or column.child is not None
            yield _array(embedded) if many else {"anyOf": [embedded, {"type": "null"}]}
        else:
            yield _array({})
        yield from _default(export)

    def _embedded(self, inner: ObjectType, selection: Selection | None) -> _Json:
        if selection is None:
            return self._of(inner.endpoint or inner)
        labels = [*inner.endpoint.types, None] if inner.endpoint else [inner.label]
        return self._shown(choose(inner, "nested", selection), inner.exports, labels)

    # Components.

    def _component_of(self, ref: _Json) -> _Json:
        made: _Json = self._spec.components.schemas[ref["$ref"].rpartition("/")[2]]
        return made

    def _component(self, name: str, schema: _Json) -> _Json:
        name = self._free(name)
        self._spec.components.schema(name, schema)
        return _ref(name)

    def _name_of(self, schema: Any) -> str | None:
        """The name of the component for a nested schema; None if only a part of it is nested,
        which is written where it is used."""
        own = schema if isinstance(schema, type) else type(schema)
        is_part = getattr(schema, "exclude", ()) or getattr(schema, "only", None) is not None
        return None if is_part else self._free(own.__name__)

    def _free(self, wanted: str) -> str:
        wanted = _UNUSABLE.sub("_", wanted)
        numbered = (wanted + "_" * number for number in count())
        return next(name for name in numbered if name not in self._spec.components.schemas)


def _chosen(declared: ObjectType) -> _Json:
    """What the schema of a type cannot say of its keys: which it has by default inside another
    object, which only details have, and which an answer has only if it is asked for them."""
    everything = {export.name for export, _ in choose(declared, "detail", Selection("*"))}
    return {
        "nested": [export.name for export, _ in choose(declared, "nested")],
        "detail_only": sorted(declared.detail_only),
        "named_only": [name for name in declared.exports if name not in everything],
    }


def _filters(schemas: Mapping[ObjectType, _Json], endpoint: Endpoint) -> _Json:
    found: dict[str, _Json] = {}
    for declared, schema in schemas.items():
        if own := schema.pop("x-filter", None):
            made = found.setdefault(repr(own), {**own, "types": []})
            made["types"] += [declared.label] * (declared is not endpoint.base)
    return {"x-filters": [*found.values()]} if found else {}


def _any_of(schemas: Iterable[_Json]) -> _Json:
    different = [*{repr(schema): schema for schema in schemas}.values()]
    return different[0] if len(different) == 1 else {"anyOf": different}

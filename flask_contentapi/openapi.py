"""The description of the API by OpenAPI 3.1, made from what answers: the declared fields of types,
of which the plans that make answers (:mod:`flask_contentapi.answers`) consist too, and the table of
parameters (9 of what is beyond the contract).

``fields`` makes answers vary. An item has the schema of its type if it has all default fields of
lists, and otherwise that of what was selected, where every key is optional.
"""

from __future__ import annotations

import copy
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin
from apispec.ext.marshmallow.field_converter import DEFAULT_FIELD_MAPPING
from apispec.ext.marshmallow.openapi import OpenAPIConverter
from marshmallow import EXCLUDE, Schema, ValidationError, fields, validate

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
#: Modules whose fields write what apispec says of them.
_KNOWN = ("marshmallow.", "flask_contentapi.")
#: What names of components may contain.
_UNUSABLE = re.compile(r"[^A-Za-z0-9._-]")


class _Schema(Schema):
    class Meta:
        # Later releases may add keys.
        unknown = EXCLUDE


class _Error(_Schema):
    message = fields.String(required=True, metadata={"examples": ["limit must be from 0 to 20."]})


class _Endpoint(_Schema):
    url = fields.String(required=True)
    types = fields.List(fields.String(), required=True)


class _Site(_Schema):
    hostname = fields.String(required=True)
    port = fields.Integer(required=True)
    site_name = fields.String(required=True)


class _Index(_Schema):
    endpoints = fields.Dict(fields.String(), fields.Nested(_Endpoint), required=True)
    locales = fields.List(fields.String(), required=True)
    site = fields.Nested(_Site, required=True, allow_none=True)
    openapi_url = fields.String(required=True)
    explorer_url = fields.String()
    sites = fields.List(fields.Nested(_Site))


class _Meta(_Schema):
    type = fields.String(required=True)
    detail_url = fields.String(required=True)


class _SiteItem(_Site):
    id = fields.Integer(required=True, validate=validate.Range(0))
    meta = fields.Nested(_Meta, required=True)
    root_page_id = fields.Integer(required=True)
    is_default_site = fields.Boolean(required=True)


class _LocaleItem(_Schema):
    id = fields.Integer(required=True, validate=validate.Range(1))
    meta = fields.Nested(_Meta, required=True)
    language_code = fields.String(required=True)
    is_default = fields.Boolean(required=True)


class _Value(_Schema):
    value = fields.Raw(required=True)
    count = fields.Integer(required=True, validate=validate.Range(1))


class _Total(_Schema):
    total_count = fields.Integer(required=True, validate=validate.Range(0))
    facets = fields.Dict(fields.String(), fields.List(fields.Nested(_Value)))


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
    "Allow": {"type": "string", "examples": ["GET, HEAD, OPTIONS"]},
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
#: The id of an object in a path.
_NUMBER: _Json = {"type": "integer", "minimum": 0}
_IDENTITY: _Json = {"name": "id", "in": "path", "required": True, "schema": _NUMBER}
_ERRORS = {
    "400": "A parameter is unknown, or its value cannot be used.",
    "403": "The token of preview is not accepted here.",
    "404": "There is no such object, site or language, or it may not be seen.",
    "500": "The answer cannot be made because of an error in the application.",
    "503": "The content cannot be read now.",
    "default": "Something else that the site does not allow.",
}


def _headers(*names: str) -> _Json:
    return {name: {"schema": _HEADERS[name]} for name in names}


class _Description:
    def __init__(self, title: str, parameters: Parameters) -> None:
        self._parameters, self._settings = parameters, parameters.settings
        self._names: set[str] = set()
        self._made: dict[ObjectType | Endpoint, _Json] = {}
        plugin = _Plugin(self._name_of)  # type: ignore[arg-type]
        self._spec = APISpec(title, self._settings.release or "1", "3.1.0", plugins=[plugin])
        assert plugin.converter is not None
        self._converter = plugin.converter

    def make(self) -> _Json:
        for status, purpose in _ERRORS.items():
            headers = _headers("Cache-Control", *["Retry-After"] * (status == "503"))
            self._spec.components.response(
                f"Error{status}", {**self._answer(purpose, self._ref(_Error)), "headers": headers}
            )
        headers = _headers("Location", "Cache-Control", "Vary")
        moved = {"302": {"description": "A browser is sent to the explorer.", "headers": headers}}
        further = moved if self._settings.explorer else {}
        self._path("/", "index", "What there is.", [], self._ref(_Index), further=further)
        self._path("/openapi.json", "openapi", "This description.", [], {"type": "object"})
        for endpoint in self._parameters.endpoints.values():
            self._add(endpoint)
        sections = {"sites": _SiteItem, "locales": _LocaleItem}
        for name, schema in sections.items() if self._settings.sites_enabled else ():
            images = self._query(self._parameters.endpoints["images"], "list")
            part = [parameter for parameter in images if parameter["name"] in PART]
            item = self._ref(schema)
            self._path(f"/{name}/", f"{name}_list", "A list.", part, self._list_of(name, item))
            self._path(f"/{name}/{{id}}/", f"{name}_detail", "One object.", [_IDENTITY], item)
        made: _Json = self._spec.to_dict()
        return made

    def _add(self, endpoint: Endpoint) -> None:
        name = endpoint.name
        item = self._component(f"{name}.Item", self._item(endpoint))
        items = self._list_of(name, item)
        detail = [_IDENTITY, *self._query(endpoint, "detail")]
        find = [{"name": "id", "in": "query", "schema": _NUMBER}, *self._query(endpoint, "find")]
        asked = self._query(endpoint, "list")
        self._path(f"/{name}/", f"{name}_list", "A list.", asked, items, is_list=True)
        self._path(f"/{name}/find/", f"{name}_find", "The address of an object.", find, None)
        self._path(f"/{name}/{{id}}/", f"{name}_detail", "One object.", detail, item)
        if endpoint.images and self._settings.makes_renditions:
            file = {"name": "file", "in": "path", "required": True, "schema": {"type": "string"}}
            operation = f"{name}_rendition", "A picture, at the address in an answer."
            self._path(f"/{name}/{{id}}/renditions/{{file}}", *operation, [_IDENTITY, file], {})
        if endpoint.tree:
            by_path = self._query(endpoint, "detail_by_path")
            for parameter in by_path:
                parameter["required"] = parameter["name"] == "html_path"
            operation = f"{name}_detail_by_path", "The object at a path."
            self._path(f"/{name}/detail_by_path/", *operation, by_path, item)

    def _list_of(self, name: str, item: _Json) -> _Json:
        properties = {"meta": self._ref(_Total), "items": {"type": "array", "items": item}}
        page = {"type": "object", "properties": properties, "required": ["meta", "items"]}
        return self._component(f"{name}.List", page)

    def _item(self, endpoint: Endpoint) -> _Json:
        own = {label: self._shown(declared) for label, declared in endpoint.types.items()}
        mapping = {label: ref["$ref"] for label, ref in own.items()}
        selected = self._shown(endpoint)
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
        answer: _Json | None,
        *,
        is_list: bool = False,
        further: Mapping[str, _Json] = MappingProxyType({}),
    ) -> None:
        # The answer is its schema; None for a redirect, nothing for a file.
        header = self._settings.cache_tag_header
        named = ["Cache-Control", "Vary", *([header] if header and parameters else [])]
        responses: _Json = {status: f"Error{status}" for status in _ERRORS} | dict(further)
        if not answer:
            moved = {"description": purpose, "headers": _headers("Location", *named)}
            responses["302"] = moved
        if answer is not None:
            headers = _headers("ETag", *named, *["Link"] * is_list)
            binary = {"schema": {"type": "string", "format": "binary"}}
            files = {"description": purpose, "content": dict.fromkeys(MIME_TYPES.values(), binary)}
            made = self._answer(purpose, answer) if answer else files
            responses["200"] = {**made, "headers": headers}
            if is_list and self._settings.stream_enabled:
                # Each line is one of the items.
                whole = {"schema": {"type": "string"}}
                responses["200"]["content"][STREAM_TYPE] = whole
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

    def _answer(self, purpose: str, schema: _Json) -> _Json:
        content = {"schema": schema, "example": self._example(schema)}
        return {"description": purpose, "content": {"application/json": content}}

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

    # Objects.

    def _shown(self, described: ObjectType | Endpoint) -> _Json:
        """The schema of all keys that a type shows, where those of items in lists are required; or
        of what a selection leaves of any object of an endpoint."""
        if described in self._made:
            return self._made[described]
        required: set[str] = set()
        labels: list[str | None]
        if isinstance(described, Endpoint):
            name, types = f"{described.name}.Selected", [*described.every_type]
            labels = [*described.types, None]
        else:
            name, types, labels = described.label, [described], [described.label]
            if described.endpoint is not None:
                chosen = choose(described, "list", i18n=self._settings.i18n)
                required = {export.name for export, _ in chosen}
                # With those that it derives from: their lists have its objects too.
                types += [t for t in described.endpoint.every_type if described.label in t.types]
        name = self._free(name)
        # Types may point to each other in a circle.
        self._made[described] = {"$ref": f"#/components/schemas/{name}"}
        keys = [(e, None) for declared in dict.fromkeys(types) for e in declared.exports.values()]
        self._spec.components.schema(name, self._object(keys, required, labels, name))
        return self._made[described]

    def _embedded(self, inner: ObjectType, selection: Selection | None) -> _Json:
        if selection is None:
            return self._shown(inner.endpoint or inner)
        chosen = choose(inner, "nested", selection)
        labels = [*inner.endpoint.types, None] if inner.endpoint else [inner.label]
        return self._object(chosen, inner.exports, labels)

    def _object(
        self,
        keys: Iterable[tuple[Export, Selection | None]],
        required: Collection[str],
        labels: Sequence[str | None],
        name: str = "",
    ) -> _Json:
        """The schema of objects of some types, which may write the same key differently.

        :param keys: their keys, each with what is selected inside it; None: all that can be.
        :param required: the keys that are always there.
        :param labels: the labels that ``type`` can have; None for an undeclared type.
        :param name: the name of its component, if it has one.
        """
        values: defaultdict[tuple[bool, str], list[_Json]] = defaultdict(list)
        for export, selection in keys:
            values[export.in_meta, export.name] += self._values(export, selection, labels)
        meta, body = (
            {key: _any_of(made) for (in_meta, key), made in values.items() if in_meta is place}
            for place in (True, False)
        )
        if not meta:
            return _object(body, required)
        inner = _object(meta, required)
        first = {"id": body.pop("id")} if "id" in body else {}
        body = {**first, "meta": self._component(f"{name}.Meta", inner) if name else inner, **body}
        return _object(body, [*required, *["meta"] * ("required" in inner)])

    def _values(
        self, export: Export, selection: Selection | None, labels: Sequence[str | None]
    ) -> Iterator[_Json]:
        """The schema of what a key holds, and further ones of what else it can hold."""
        column = export.column
        if export.way is not None:
            yield {"type": "array", "items": self._embedded(export.way, selection)}
        elif column is None or export.source is not None:
            field: Any = copy.copy(export.field)
            field.allow_none = _can_be_null(export)
            field.validators = field.validators if column is not None else []
            if export.source is BUILT_IN["type"]:
                field.validators = [validate.OneOf(labels)]
                field.allow_none = None in labels
            yield self._converter.field2property(field)
        elif (inner := column.target or column.child) is not None:
            item = self._embedded(inner, export.shown or selection)
            if column.kind.many or column.child is not None:
                yield {"type": "array", "items": item}
            elif "$ref" in item:
                yield {"anyOf": [item, {"type": "null"}]}
            else:
                yield {**item, "type": ["object", "null"]}
        else:
            yield {"type": "array", "items": {}}
        yield from _default(export)

    # Components.

    def _ref(self, schema: type[Schema]) -> _Json:
        made: _Json = self._converter.resolve_nested_schema(schema)  # type: ignore[no-untyped-call]
        return made

    def _component_of(self, ref: _Json) -> _Json:
        made: _Json = self._spec.components.schemas[ref["$ref"].rpartition("/")[2]]
        return made

    def _component(self, name: str, schema: _Json) -> _Json:
        name = self._free(name)
        self._spec.components.schema(name, schema)
        return {"$ref": f"#/components/schemas/{name}"}

    def _name_of(self, schema: Any) -> str | None:
        """The name of the component for a schema; None if it is written where it is used."""
        own = schema if isinstance(schema, type) else type(schema)
        if getattr(schema, "exclude", ()) or getattr(schema, "only", None) is not None:
            return None
        return self._free(own.__name__.removeprefix("_"))

    def _free(self, wanted: str) -> str:
        name = _UNUSABLE.sub("_", wanted)
        while name in self._names:
            name += "_"
        self._names.add(name)
        return name


def _object(properties: _Json, required: Collection[str]) -> _Json:
    always = sorted(properties.keys() & required)
    made = {"type": "object", "properties": properties}
    return {**made, "required": always} if always else made


def _can_be_null(export: Export) -> bool:
    column = export.column
    if column is None:
        is_address = export.source is BUILT_IN["detail_url"]
        return not (is_address or "type" in export.field.metadata)
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

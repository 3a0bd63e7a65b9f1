"""Compares answers with the description of the API that gives them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import jsonschema_rs
from flask import Flask
from werkzeug.test import TestResponse

from flask_contentapi.caching import fingerprint
from flask_contentapi.openapi import describe
from flask_contentapi.state import State

__all__ = ["Description", "check", "description_of"]

#: The headers of answers that have to be described.
HEADERS = ("Cache-Control", "Cache-Tag", "ETag", "Link", "Location", "Retry-After")


def _closed(schema: Any) -> Any:
    """A schema that allows only the described keys of objects."""
    if isinstance(schema, list):
        return [_closed(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _closed(value) for name, value in schema.items()}
    if isinstance(schema.get("properties"), dict):
        closed.setdefault("additionalProperties", False)
    return closed


@dataclass
class Description:
    """The description of an API.

    :param document: the OpenAPI document.
    """

    document: Mapping[str, Any]
    _validators: dict[str, Callable[[Any], Any]] = field(default_factory=dict)

    @cached_property
    def operations(self) -> dict[str, Mapping[str, Any]]:
        """The operations, by id."""
        paths = self.document["paths"].values()
        return {path["get"]["operationId"]: path["get"] for path in paths}

    @cached_property
    def _components(self) -> Any:
        return _closed(self.document["components"])

    def check(self, operation: str, response: TestResponse) -> None:
        """Compares an answer with the description of its operation."""
        responses = self.operations[operation]["responses"]
        described = responses.get(str(response.status_code), responses["default"])
        if "$ref" in described:
            name = described["$ref"].rpartition("/")[2]
            described = self.document["components"]["responses"][name]
        told = {name for name in HEADERS if name in response.headers}
        assert told <= described["headers"].keys(), told
        names = {parameter["name"] for parameter in self.operations[operation]["parameters"]}
        if response.status_code == 200 and operation.endswith("_list"):
            assert response.request.args.keys() <= names
        if response.status_code == 200:
            assert response.mimetype in described["content"]
        if response.request.method == "GET" and response.is_json:
            self._validate(described["content"]["application/json"]["schema"], response)

    def _validate(self, schema: Mapping[str, Any], response: TestResponse) -> None:
        key = repr(schema)
        if key not in self._validators:
            whole = {**_closed(schema), "components": self._components}
            validator = jsonschema_rs.Draft202012Validator(whole, validate_formats=True)
            self._validators[key] = validator.validate
        try:
            self._validators[key](response.get_json())
        except jsonschema_rs.ValidationError as error:
            raise AssertionError(f"{response.request.url} {response.text}\n{error}") from None


#: Settings that no description has anything of, so that instances that differ in them share one.
UNSEEN: Mapping[str, Any] = {
    "url_prefix": "/unseen",
    "base_url": "http://unseen.example",
    "media_url": "/unseen/",
    "stop_words": frozenset({"unseen"}),
    "rich_text_format": "html",
    "embed_max": 7,
}
_known: dict[tuple[str, bool], Description] = {}


def description_of(app: Flask, state: State) -> Description:
    """The description of an instance; those with the same declarations share it."""
    own = state.fingerprint, state.settings.makes_renditions
    if own not in _known:
        settings = replace(state.settings, **UNSEEN)
        shared = fingerprint(state.registry, settings.shaping), settings.makes_renditions
        if shared not in _known:
            made = describe(app.name, state.parameters)
            _known[shared] = Description(made)
        _known[own] = _known[shared]
    return _known[own]


def check(app: Flask, response: TestResponse) -> None:
    """Compares an answer with the description of the instance that gave it."""
    if response.request.method not in ("GET", "HEAD") or "Content-Encoding" in response.headers:
        return
    for name, state in app.extensions.get("contentapi", {}).items():
        # Each description takes time, and other tests hold the answers of all storages alike.
        if state.backend_name != "memory":
            continue
        place, _, rest = response.request.path.partition(f"{state.settings.url_prefix}/")
        known = description_of(app, state)
        view, _, last = rest.removesuffix("/").partition("/")
        operation = {"": "index", "openapi.json": "openapi"}.get(rest, view)
        if rest.endswith("/") and view:
            operation += {
                name: f"_{name or 'list'}" for name in ("", "find", "detail_by_path")
            }.get(last, "_detail")
        is_file = "/renditions/" in last
        operation += "_rendition" * is_file
        if not place and operation in known.operations and (is_file or rest.count("/") < 3):
            known.check(operation, response)

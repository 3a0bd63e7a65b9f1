"""A fingerprint of everything that shapes the answers of a site except its content.

It is the same in every process with the same declarations and settings, and differs if anything
in them differs. The compiled code in declarations counts, but not code that it calls elsewhere.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Iterable, Iterator, Mapping, Set
from datetime import date, time, timedelta, tzinfo
from decimal import Decimal
from enum import Enum
from hashlib import blake2b
from importlib.metadata import version
from typing import Any

from marshmallow import Schema, fields, validate

from flask_contentapi.addresses import PageURLs
from flask_contentapi.markup import installed_packages
from flask_contentapi.registry import Registry
from flask_contentapi.types import APIField, APIFilter, Content

#: Classes whose ``repr`` is complete, and the same in every process.
_PLAIN = (type(None), type(...), bool, int, float, complex, str, bytes, Decimal)
_CALENDAR = (date, time, timedelta, tzinfo)
#: The classes that declarations consist of. They count with everything in the class body, and
#: their instances with all attributes. Of anything else only the class counts.
_DECLARATIONS = (Content, fields.Field, Schema, validate.Validator, PageURLs, Enum)
_PARTS = (*_DECLARATIONS, APIField, APIFilter)
#: Packages whose classes are identified by the version, and those that write rich text.
_USED = ("flask_contentapi", "marshmallow", *sorted(installed_packages()))
_RELEASES = tuple(f"{name} {version(name)}" for name in _USED)
_PACKAGES = ("flask_contentapi", "marshmallow", "builtins", "abc", "enum", "typing")


def fingerprint(registry: Registry, *others: object) -> str:
    """The part of each ETag that depends on the site's declarations and settings.

    :param registry: the declared types.
    :param others: whatever else shapes answers.
    """
    digest = blake2b(digest_size=16)
    for word in _Description().describe([_RELEASES, _declared(registry), *others]):
        digest.update(f"{word}\0".encode("utf-8", "backslashreplace"))
    return digest.hexdigest()


def _declared(registry: Registry) -> list[Any]:
    return [
        (name, label, declared.content_class)
        for name, endpoint in sorted(registry.endpoints.items())
        for label, declared in sorted(endpoint.types.items())
    ]


class _Description:
    """Writes values as words; each object is described once."""

    def __init__(self) -> None:
        # By id. Holding on to the objects keeps their ids from being reused.
        self._known: dict[int, tuple[int, object]] = {}

    def describe(self, value: Any) -> Iterator[str]:
        """The words for a value."""
        yield f"{type(value).__module__}.{type(value).__qualname__}("
        if isinstance(value, _PLAIN + _CALENDAR):
            yield repr(value)
        elif isinstance(value, Mapping):
            yield from self._describe_each(part for item in value.items() for part in item)
        elif isinstance(value, Set):
            yield from sorted(" ".join(self.describe(entry)) for entry in value)
        elif isinstance(value, list | tuple):
            yield from self._describe_each(value)
        else:
            yield from self._describe_once(value)
        yield ")"

    def _describe_each(self, values: Iterable[Any]) -> Iterator[str]:
        for value in values:
            yield from self.describe(value)

    def _describe_once(self, value: Any) -> Iterator[str]:
        if id(value) in self._known:
            yield str(self._known[id(value)][0])
            return
        self._known[id(value)] = len(self._known), value
        if isinstance(value, type):
            yield from self._describe_class(value)
        else:
            yield from self._describe_each(_parts(value))

    def _describe_class(self, value: type) -> Iterator[str]:
        yield f"{value.__module__}.{value.__qualname__}"
        if not issubclass(value, _DECLARATIONS):
            return
        for base in value.__mro__:
            yield base.__qualname__
            if base.__module__.partition(".")[0] not in _PACKAGES:
                own = {name: part for name, part in vars(base).items() if _is_declared(name, part)}
                yield from self.describe(own)


def _is_declared(name: str, part: object) -> bool:
    """Whether an attribute of a class is more than what Python adds to every class."""
    return not name.startswith("__") or isinstance(part, types.FunctionType)


def _parts(value: Any) -> Iterable[Any]:
    """The parts of an object that count."""
    if isinstance(value, types.FunctionType):
        return [value.__code__, value.__defaults__, value.__kwdefaults__, value.__closure__]
    if isinstance(value, types.CellType):
        return [] if value == types.CellType() else [value.cell_contents]
    if isinstance(value, types.CodeType):
        return [value.co_code, value.co_names, value.co_consts]
    if isinstance(value, types.MethodType | staticmethod | classmethod):
        return [value.__func__, getattr(value, "__self__", None)]
    if isinstance(value, property):
        return [value.fget]
    if isinstance(value, functools.cached_property):
        return [value.func]
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, _PARTS):
        return [type(value), getattr(value, "__dict__", {})]
    return []

"""Reads types off the answers of a foreign API."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeGuard
from urllib.parse import parse_qs, urlsplit

from marshmallow import ValidationError, fields

from flask_contentapi import kinds

#: A label, which gives a class its name.
_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\.[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_DETAIL = re.compile(r"/([A-Za-z_][A-Za-z0-9_]*)/([0-9]{1,18})/*\Z")
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)\.([0-9]+)")
_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}")
#: An element of a text that an editor for rich text writes.
_MARKUP = re.compile(
    r"<(?:p|h[1-6]|ul|ol|li|br|hr|b|i|a|em|strong|blockquote|img|embed|div|span|code|pre|table)"
    r"(?:\s[^<>]*|\s*/)?>",
    re.IGNORECASE,
)
_url = fields.Url()


class Reference(NamedTuple):
    """An object embedded in another one.

    :param endpoint: where it is served.
    :param id: its id.
    :param site: the ``site`` parameter of its address, or "".
    """

    endpoint: str
    id: int
    site: str


def reference_in(value: Any) -> Reference | None:
    """What a value embeds; None if it is no object of an endpoint."""
    if not isinstance(value, dict) or not isinstance(value.get("meta"), dict):
        return None
    identity, url = value.get("id"), value["meta"].get("detail_url")
    if not is_address(url) or type(identity) is not int:
        return None
    parts = urlsplit(url)
    match = _DETAIL.search(f"/{parts.path}")
    if match is None or int(match[2]) != identity:
        return None
    return Reference(match[1], identity, parse_qs(parts.query).get("site", [""])[0])


def is_address(value: Any) -> TypeGuard[str]:
    """Whether a value is an address or a path whose parts can be told."""
    try:
        urlsplit(value).port  # noqa: B018 - it is read here
    except (ValueError, AttributeError, TypeError):
        return False
    return isinstance(value, str)


def shown_keys(value: Mapping[str, Any]) -> tuple[str, ...]:
    """The keys of an object in an answer, as ``fields`` names them."""
    meta = value.get("meta")
    inner = tuple(meta) if isinstance(meta, dict) else ()
    return (*(("id",) if "id" in value else ()), *inner, *(k for k in value if k not in _ENDS))


_ENDS = ("id", "meta")
#: The kinds of texts and of lists; an empty one may be any of them.
_TEXTS, _LISTS = ("rich", "text", "url"), ("relations", "children", "tags", "blocks")
#: All kinds but text, which everything that is written as text fits; the narrowest first.
_NARROWEST = (
    *("boolean", "integer", "float", "decimal", "date", "time", "datetime", "url"),
    *("rich", "text", "relation", "children", "relations", "tags", "blocks"),
)


class Shape:
    """What is known about the values of a key.

    :param shapes: all that is known.
    :param inside: whether the key is one of child objects or blocks, which nest no others.
    """

    def __init__(self, shapes: Shapes, *, inside: bool = False) -> None:
        self._shapes = shapes
        self._inside = inside
        #: The kinds that fit all values so far, each with what it leads to; None: there are none.
        self._fitting: dict[str, str] | None = None
        self.has_null = self.has_empty_text = self.has_empty_list = self._has_markup = False
        #: How often embedded objects had which keys.
        self.shown: Counter[tuple[str, ...]] = Counter()
        #: The kind if it is known without the values.
        self.declared = ""
        #: For blocks, the values by the types of blocks.
        self.blocks: dict[str, Shape] = {}

    def note(self, value: Any) -> None:
        """Takes in a value."""
        if value is None:
            self.has_null = True
        elif value == "":
            self.has_empty_text = True
        elif value == []:
            self.has_empty_list = True
        else:
            found = dict(self._fits(value))
            known = found if self._fitting is None else self._fitting
            self._fitting = {k: v for k, v in known.items() if found.get(k) == v}

    @property
    def kind(self) -> tuple[str, str]:
        """The narrowest kind that fits all values, and what it leads to: an endpoint, the label of
        child objects, the number of places of a decimal, or "".

        Besides those in its name it is ``null`` or ``empty`` if there are no other values, and
        ``json`` if there is none that fits.
        """
        if self.declared:
            return self.declared, ""
        if self._fitting is None:
            other = "empty" if self.has_empty_list else "null"
            return "text" if self.has_empty_text else other, ""
        fitting = {*self._fitting}
        if self.has_empty_text:
            # A missing address is empty or null, but it has to be one of them.
            fitting &= {*_TEXTS} - ({"url"} if self.has_null else set())
        if self.has_empty_list:
            fitting &= {*_LISTS}
        if self.has_null:
            fitting -= {*_LISTS}
        if not self._has_markup:
            fitting.discard("rich")
        return next(((n, self._fitting[n]) for n in _NARROWEST if n in fitting), ("json", ""))

    def _fits(self, value: Any) -> Iterator[tuple[str, str]]:
        if isinstance(value, bool):
            yield "boolean", ""
        elif isinstance(value, int):
            yield from (("integer", ""), ("float", ""))
        elif isinstance(value, float):
            yield "float", ""
        elif isinstance(value, str):
            yield from self._text_fits(value)
        elif isinstance(value, list):
            yield from self._list_fits(value)
        elif endpoint := self._embedded(value):
            yield "relation", endpoint

    def _text_fits(self, value: str) -> Iterator[tuple[str, str]]:
        self._has_markup = self._has_markup or _MARKUP.search(value) is not None
        yield from (("text", ""), ("rich", ""))
        if (match := _DECIMAL.fullmatch(value)) and _keeps(kinds.Decimal(len(match[1])), value):
            yield "decimal", str(len(match[1]))
        if _keeps(kinds.Date(), value):
            yield "date", ""
        if _keeps(kinds.Time(), value):
            yield "time", ""
        if _INSTANT.match(value) and _reads(kinds.DateTime().read, value):
            yield "datetime", ""
        if "://" in value and _reads(_url.deserialize, value):
            yield "url", ""

    def _list_fits(self, value: list[Any]) -> Iterator[tuple[str, str]]:
        if all(isinstance(e, str) and "," not in e for e in value):
            # Tags are a set.
            if not self._inside and sorted({*value}) == value:
                yield "tags", ""
        elif all(isinstance(e, dict) and isinstance(e.get("type"), str) for e in value):
            if all("value" in entry for entry in value):
                yield "blocks", ""
            for block, inner in kinds.blocks_in(value):
                shape = self.blocks.setdefault(block, Shape(self._shapes, inside=True))
                shape.note(inner)
        else:
            targets = {self._embedded(entry) for entry in value}
            if len(targets) == 1 and (endpoint := targets.pop()):
                yield "relations", endpoint
            labels = {_child_label(entry) for entry in value}
            if not self._inside and len(labels) == 1 and (label := labels.pop()):
                for entry in value:
                    self._shapes.children[label].note(entry)
                yield "children", label

    def _embedded(self, value: Any) -> str:
        reference = reference_in(value)
        if reference is None:
            return ""
        self._shapes.endpoints[reference.endpoint] = None
        self._shapes.sites |= {reference.site: None} if reference.site else {}
        keys = shown_keys(value)
        self.shown[keys] += 1
        self._shapes.nested[reference.endpoint][keys] += 1
        return reference.endpoint


def _child_label(value: Any) -> str:
    meta = value.get("meta") if isinstance(value, dict) else None
    if not isinstance(meta, dict) or type(value.get("id")) is not int or "detail_url" in meta:
        return ""
    label = meta.get("type")
    return label if is_label(label) and {*meta} == {"type"} else ""


def is_label(value: Any) -> TypeGuard[str]:
    """Whether a value is the label of a type, as ``blog.ArticlePage``: it becomes code."""
    return isinstance(value, str) and len(value) <= 200 and _LABEL.fullmatch(value) is not None


def _keeps(kind: kinds.Kind, value: str) -> bool:
    return _reads(kind.read, value) and bool(kind.write(kind.read(value)) == value)


def _reads(read: Callable[[str], object], value: str) -> bool:
    try:
        read(value)
    except (ValueError, ValidationError):
        return False
    return True


class ObjectShape:
    """What is known about the objects of a type.

    :param shapes: all that is known.
    :param inside: whether they are child objects.
    """

    def __init__(self, shapes: Shapes, *, inside: bool = False) -> None:
        new = partial(Shape, shapes, inside=inside)
        self.body: defaultdict[str, Shape] = defaultdict(new)
        self.meta: defaultdict[str, Shape] = defaultdict(new)
        #: The labels of other types that lists of this one include.
        self.includes: set[str] = set()
        #: The keys that lists show without ``fields``.
        self.listed: tuple[str, ...] = ()

    def note(self, value: Mapping[str, Any]) -> None:
        """Takes in an object."""
        for keys, inner in ((self.meta, value.get("meta") or {}), (self.body, value)):
            for key, entry in inner.items():
                if key not in _ENDS:
                    keys[key].note(entry)


class Shapes:
    """What is known about all types.

    :ivar types: the types by endpoint and label.
    :ivar children: the types of child objects by label.
    :ivar nested: by endpoint, how often its embedded objects had which keys.
    :ivar endpoints: the endpoints of embedded objects.
    :ivar sites: the sites that addresses of embedded objects name.
    """

    def __init__(self) -> None:
        self.types: defaultdict[str, defaultdict[str, ObjectShape]] = defaultdict(
            lambda: defaultdict(lambda: ObjectShape(self))
        )
        self.children: defaultdict[str, ObjectShape] = defaultdict(
            lambda: ObjectShape(self, inside=True)
        )
        self.nested: defaultdict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
        self.endpoints: dict[str, None] = {}
        self.sites: dict[str, None] = {}

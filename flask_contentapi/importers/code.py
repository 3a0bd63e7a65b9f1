"""Writes the code of a site for what a source has."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from keyword import iskeyword

from flask_contentapi.importers.inference import ObjectShape, Shape
from flask_contentapi.importers.objects import UNDECLARED, Objects
from flask_contentapi.parameters import PARAMETERS
from flask_contentapi.registry import RESERVED
from flask_contentapi.selection import WAYS
from flask_contentapi.types import ChildObject, Content, Document, Entry, Image, Page, Redirect

_BASES: Mapping[str, type[Entry]] = {
    base.endpoint: base for base in (Page, Image, Document, Redirect)
}
_FIELDS = {
    "boolean": "fields.Boolean",
    "integer": "fields.Integer",
    "float": "fields.Float",
    "date": "fields.Date",
    "time": "fields.Time",
    "datetime": "fields.DateTime",
    "url": "fields.Url",
    "text": "fields.String",
    "rich": "RichText",
    "tags": "Tags",
    "null": "fields.String",
    "json": "fields.Raw",
}
_NOTES = {
    "null": "null wherever it was seen; text is a guess",
    "empty": "empty wherever it was seen; blocks are a guess",
}
#: The kinds that have a value of their own without any, which is not null.
_NEVER_NULL = ("boolean", "url", "text", "rich", "null")


def application_code(original: Objects, origin: str, *, prefix: str) -> str:
    """The code of the application.

    :param original: what it is to answer as.
    :param origin: what it is made of, in words.
    :param prefix: where its API is.
    """
    settings: dict[str, object] = {"BACKEND": "jsonfiles:content", "URL_PREFIX": prefix or "/"}
    if original.limit_max != 20:
        settings["LIMIT_MAX"] = original.limit_max
    if original.rich_text_format != "db_html":
        settings["RICH_TEXT_FORMAT"] = original.rich_text_format
    lines = [f"    CMSAPI_{name}={_quoted(value)}," for name, value in settings.items()]
    lines += ["    CMS_I18N_ENABLED=True,"] if original.i18n else []
    has_prefixes = any(original.prefixes.values())
    languages = _LANGUAGES.format(prefixes=_quoted(original.prefixes)) if has_prefixes else ""
    return _APPLICATION.format(
        origin=_in_docstring(origin),
        names="ContentAPI, PageURLs" if has_prefixes else "ContentAPI",
        languages=languages,
        settings="\n".join(lines),
        addresses=", page_urls=Languages()" if has_prefixes else "",
    )


_APPLICATION = '''\
"""A site with the content of {origin}"""

from flask import Flask
from models import TYPES

from flask_contentapi import {names}
{languages}
app = Flask(__name__, static_folder="media", static_url_path="/media")
app.config.update(
{settings}
)
app.config.from_prefixed_env()
api = ContentAPI(app, types=TYPES{addresses})
'''

_LANGUAGES = '''

class Languages(PageURLs):
    """Addresses that start with the language."""

    prefixes = {prefixes}

    def build(self, site, locale, path):
        return super().build(site, locale, self.prefixes.get(locale, "") + path)

    def resolve(self, site, locale, html_path):
        path = "/" + html_path.strip("/") + "/"
        for code, prefix in self.prefixes.items():
            if prefix and path.startswith(prefix + "/"):
                return code, path[len(prefix) :]
        return locale, html_path

'''


_TYPES = '''\
"""The types of {origin}

They are read off its content, which shows what values there are, not what there can be.
"""

from marshmallow import fields

import flask_contentapi as cms
{imports}
{classes}

TYPES = [{names}]
'''
#: The names that the code takes from the package, and all that it uses itself.
_USED = ("APIField", "Blocks", "Children", "Related", "RichText", "Tags")
_TAKEN = (*_USED, "fields", "cms", "TYPES")


def types_code(original: Objects, origin: str) -> str:
    """The code of the types.

    :param original: what they are read off.
    :param origin: that in words.
    """
    writer = _Writer(original)
    classes = "\n".join(writer.classes())
    used = ", ".join(name for name in _USED if re.search(rf"\b{name}\(", classes))
    names = "".join(f"\n    {name}," for name in writer.served)
    return _TYPES.format(
        origin=_in_docstring(origin),
        imports=f"from flask_contentapi import {used}\n" if used else "",
        classes=classes,
        names=f"{names}\n" if names else "",
    )


class _Writer:
    """Writes classes.

    :ivar served: the names of the classes with an endpoint.
    """

    def __init__(self, original: Objects) -> None:
        self._original = original
        self._shapes = original.shapes
        self._names: dict[str, str] = {}
        self.served: list[str] = []

    def classes(self) -> Iterator[str]:
        """The code of each class, those that others need first."""
        # A child object that other types of objects do not show any more is not seen either.
        served = {
            label: (endpoint, shape)
            for endpoint in self._original.ids
            for label, shape in self._shapes.types[endpoint].items()
            if label != UNDECLARED
        }
        for label, shape in self._shapes.children.items():
            yield self._class(label, shape, "cms.ChildObject", ChildObject)
        for label in sorted(served, key=lambda label: (-len(served[label][1].includes), label)):
            endpoint, shape = served[label]
            including = [
                other
                for other, (where, above) in served.items()
                if where == endpoint and label in above.includes and other in self._names
            ]
            nearest = min(including, key=lambda other: len(served[other][1].includes), default="")
            base = _BASES.get(endpoint, Entry)
            if endpoint == "redirects" and label != "wagtailredirects.Redirect":
                base = Entry
            above = self._names[nearest] if nearest else f"cms.{base.__name__}"
            inherited = served[nearest][1] if nearest else None
            yield self._class(label, shape, above, base, inherited, endpoint)
            self.served.append(self._names[label])

    def _class(
        self,
        label: str,
        shape: ObjectShape,
        above: str,
        base: type[Content],
        inherited: ObjectShape | None = None,
        endpoint: str = "",
    ) -> str:
        app_label, _, model = label.partition(".")
        # Names with two underscores mean something to Python.
        name = f"Own{model}" if model.startswith("__") else model
        while name in self._names.values() or name in _TAKEN or iskeyword(name):
            name = f"{name}_"
        self._names[label] = name
        lines = [f"    app_label = {_quoted(app_label)}"]
        if base is Entry:
            lines.append(f"    endpoint = {_quoted(endpoint)}")
        body = _shown(shape.body, base.body_fields)
        meta = _shown(shape.meta, [*base.meta_fields, *body])
        known = {*inherited.body, *inherited.meta} if inherited else set()
        declared = [
            self._field(key, own, base) for key, own in {**meta, **body}.items() if key not in known
        ]
        lines += ["", *declared] if declared else []
        lines += self._lists(shape, meta, body, base, endpoint)
        lines += [] if name == model else ["", "", f"{name}.__name__ = {_quoted(model)}"]
        return "\n".join(["", f"class {name}({above}):", *lines, ""])

    def _lists(
        self,
        shape: ObjectShape,
        meta: Mapping[str, Shape],
        body: Mapping[str, Shape],
        base: type[Content],
        endpoint: str,
    ) -> Iterator[str]:
        """The options of a class that are lists."""
        searched = [attribute_of(k, base) for k, own in body.items() if own.kind[0] == "rich"]
        if searched and endpoint:
            yield "\n    # A guess, because the original does not tell what it searches."
            yield f"    search_fields = {_list(map(_quoted, searched))}"
        extra = [self._export(key, own, base) for key, own in meta.items()]
        if extra:
            yield f"    meta_fields = {_list(['*cms.' + base.__name__ + '.meta_fields', *extra])}"
        if body:
            exports = [self._export(key, own, base) for key, own in body.items()]
            yield f"    api_fields = {_list(exports)}"
        known = {*body, *meta, *base.meta_fields, *base.body_fields}
        for option, keys in (("listing", shape.listed), ("nested", self._nested(endpoint))):
            usual = getattr(base, f"{option}_default_fields", ())
            if keys and {*keys} != {*usual}:
                shown = [_quoted(key) for key in keys if key in known]
                yield f"    {option}_default_fields = {_list(shown)}"

    def _nested(self, endpoint: str) -> tuple[str, ...]:
        """The keys of most embedded objects of an endpoint."""
        if endpoint == "pages":
            return tuple(Page.nested_default_fields)
        most = self._shapes.nested[endpoint].most_common(1)
        return most[0][0] if most else ()

    def _field(self, key: str, shape: Shape, base: type[Content]) -> str:
        note = _NOTES.get(self._kind(shape)[0], "")
        code = f"    {attribute_of(key, base)} = {self._code(shape)}"
        return f"{code}  # {note}" if note else code

    def _kind(self, shape: Shape) -> tuple[str, str]:
        """The kind of values; JSON for objects that cannot be asked for."""
        kind, target = shape.kind
        is_lost = kind in ("relation", "relations") and target not in self._original.ids
        return ("json", "") if is_lost else (kind, target)

    def _code(self, shape: Shape) -> str:
        """The code that makes a field."""
        kind, target = self._kind(shape)
        if kind in ("relation", "relations"):
            keys = shape.shown.most_common(1)[0][0]
            is_usual = {*keys} == {*self._nested(target)}
            shown = "" if is_usual else f", shown={_quoted(','.join(['_', *keys]))}"
            made = f"Related({_quoted(target)}{shown})"
            return made if kind == "relation" else f"fields.List({made})"
        if kind == "children":
            return f"Children({self._names[target]})"
        if kind in ("blocks", "empty"):
            named = [
                f"{_quoted(block)}: {self._code(own)}"
                for block, own in shape.blocks.items()
                if self._kind(own)[0] in ("relation", "rich")
            ]
            return f"Blocks({{{', '.join(named)}}})" if named else "Blocks()"
        if kind == "decimal":
            return f"fields.Decimal(places={int(target)})"
        default = "load_default=None" if shape.has_null and kind in _NEVER_NULL else ""
        return f"{_FIELDS[kind]}({default})"

    def _export(self, key: str, shape: Shape, base: type[Content]) -> str:
        """What shows a field."""
        attribute = attribute_of(key, base)
        # A filter of such a name would be something else.
        is_parameter = key in (*PARAMETERS, "random")
        if attribute == key and not is_parameter:
            return _quoted(key)
        written = f", {self._code(shape)}" if is_parameter else ""
        return f"APIField({_quoted(key)}{written}, source={_quoted(attribute)})"


def attribute_of(key: str, base: type[Content]) -> str:
    """The name of the field for a key; another one if a class cannot have it."""
    name = f"own{key}" if key.startswith("_") else key
    while iskeyword(name) or name in {*RESERVED, *_TAKEN} or hasattr(base, name):
        name = f"{name}_"
    return name


def _shown(shapes: Mapping[str, Shape], built_in: Iterable[object]) -> dict[str, Shape]:
    """The shapes of a type's own keys that can be declared, which is what Python has as names."""
    return {
        key: shape
        for key, shape in shapes.items()
        if key.isidentifier()
        and unicodedata.normalize("NFKC", key) == key
        and key not in {*built_in, *WAYS, "type", "_"}
    }


def _in_docstring(text: str) -> str:
    return "".join(char for char in text if char.isprintable() and char not in '\\"')


def _quoted(value: object) -> str:
    """The code of texts, numbers, or a mapping of texts, with double quotes where that can be."""
    code = repr(value)
    return code if '"' in code or "\\" in code else code.replace("'", '"')


def _list(entries: Iterable[str]) -> str:
    """The code of a list, over several lines if it is long."""
    named: Sequence[str] = [*entries]
    short = f"[{', '.join(named)}]"
    return short if len(short) < 70 else "[" + "".join(f"\n        {e}," for e in named) + "\n    ]"

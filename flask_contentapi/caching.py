"""Validators and lifetimes of responses: when a client or a cache may reuse what it has.

A response's ``ETag`` is a digest of everything that shapes it: the version of the content, the
time of the next scheduled change, what the viewer may see, the address, and the site's
declarations and settings. So a client that sends the right ETag already has this very response,
and can be told so before any content is read.

Only changes count that the viewer can see, and those on other sites only if the response looked
there. Whether it does is not known before it is made, so there are two ETags, one with the next
change on the site and one with the next change anywhere; a response has the one that fits it.
"""

from __future__ import annotations

import functools
import re
import types
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from enum import Enum
from hashlib import blake2b
from importlib.metadata import version
from itertools import chain, starmap
from typing import TYPE_CHECKING, Any

from flask import Request, Response
from marshmallow import Schema, fields, validate
from werkzeug.datastructures import Headers

from flask_contentapi.addresses import PageURLs
from flask_contentapi.backend import Reader
from flask_contentapi.markup import installed_packages
from flask_contentapi.query import Viewer
from flask_contentapi.registry import Registry
from flask_contentapi.settings import Settings
from flask_contentapi.signals import EVERYTHING, tag_of
from flask_contentapi.sites import Host
from flask_contentapi.state import State
from flask_contentapi.types import APIField, APIFilter, Content

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

#: How many cache tags a response has at most; beyond that they name endpoints, not objects.
MOST_TAGS = 100
#: Where the WSGI environment of a request has the next scheduled change of a response that can be
#: repeated until then, after its ``Cache-Control`` and its ``ETag``.
UNTIL = "flask_contentapi.until"
#: An object that a response is made of, by endpoint and id; without an id any of the endpoint.
Tagged = tuple[str, int | None]
#: As :attr:`Query.scope`.
Scope = tuple[int, ...] | None
#: The request headers that decide what a viewer may see, if the site has a hook for that.
VARY = "Cookie, Authorization"
#: One of our ETags in ``If-None-Match``. Software that compresses responses appends the name of
#: the coding, as ``:br`` or ``-gzip``.
_ETAG = re.compile(r'(?:W/)?"(?P<tag>[0-9a-f]{32})(?:[:;-](?P<coding>[a-z0-9-]{1,20}))?"')


def tag(response: Response, settings: Settings, shown: Iterable[Tagged]) -> None:
    """Adds the cache tags of what a response is made of, if they are configured."""
    header = settings.cache_tag_header
    if header is None:
        return
    named = dict.fromkeys(starmap(tag_of, shown))
    if len(named) > MOST_TAGS:
        named = dict.fromkeys(name.partition("-")[0] for name in named)
    between = ", " if header == "Cache-Tag" else " "
    response.headers[header] = between.join([EVERYTHING, *named])


def lifetime(settings: Settings, *, left: int | None, is_private: bool = False) -> str:
    """The ``Cache-Control`` of a response.

    :param left: the seconds until the next scheduled change; None if there is none.
    :param is_private: whether others may see less.
    """
    who, age = "private" if is_private else "public", settings.cache_max_age
    if age is None:
        return f"{who}, no-cache"
    age = age if left is None else min(age, left)
    stale = settings.cache_stale
    stale = stale if left is None else min(stale, left - age)
    return f"{who}, max-age={age}" + (f", stale-while-revalidate={stale}" if stale else "")


class NotModified(Response):
    """A 304 response: no body, and no headers about one."""

    default_status = 304
    default_mimetype = None

    def get_wsgi_headers(self, environ: WSGIEnvironment) -> Headers:
        return self.headers


class Freshness:
    """The validator and lifetime of the response to one request.

    :param host: the host of the request.
    :param scope: the pages of the site, as :attr:`Query.scope`.
    :ivar etags: the ETags, without quotes, of a response that pages of a scope can change by
        appearing or expiring, for two scopes: the site's, and None. Empty if the content has no
        version.
    :ivar keys: the keys for caching the response, as :attr:`etags`; none without a cache, and none
        with a hook, because computed fields may depend on the viewer too.
    """

    def __init__(
        self,
        state: State,
        reader: Reader,
        viewer: Viewer,
        request: Request,
        host: Host,
        scope: Scope,
    ) -> None:
        self._state, self._settings = state, state.settings
        self._viewer, self._request = viewer, request
        self._if_none_match = request.environ.get("HTTP_IF_NONE_MATCH", "")
        version = reader.version
        is_needed = version is not None or state.settings.cache_max_age is not None
        self._changes: dict[Scope, datetime | None] = {}
        if is_needed:
            anywhere = reader.next_change(viewer)
            # Where nothing is to come anywhere, nothing is on the site.
            here = None if anywhere is None else reader.next_change(viewer, scope)
            self._changes = {scope: here, None: anywhere}
        self.etags: dict[Scope, str] = {}
        made: dict[datetime | None, str] = {}
        who = f"{sorted(viewer.pages)}\0{sorted(viewer.collections)}"
        where = f"{host.scheme}\0{host.name}\0{host.port}\0{request.root_path}\0{request.path}"
        for some, change in self._changes.items() if version is not None else ():
            if change not in made:
                what = f"{state.fingerprint}\0{version}\0{change}"
                text = f"{what}\0{who}\0{where}\0{request.query_string!r}"
                made[change] = blake2b(text.encode(), digest_size=16).hexdigest()
            self.etags[some] = made[change]
        is_kept = state.can_view is None and state.settings.cache_size
        self.keys: Mapping[Scope, str] = self.etags if is_kept else {}

    def not_modified(self) -> Response | None:
        """The 304 response, with the very ETag that the client sent; None if the client has another
        response, or none."""
        if not self._if_none_match:
            return None
        scopes = {etag: scope for scope, etag in reversed(self.etags.items())}
        matching = [tag for tag in _ETAG.finditer(self._if_none_match) if tag["tag"] in scopes]
        # Both headers can have thousands of entries. Of equal ones the first counts.
        named = any(tag["coding"] for tag in matching)
        codings = [*self._request.accept_encodings][::-1] if named else ()
        accepted = {name.lower(): quality for name, quality in codings}
        for known in matching:
            coding = known["coding"]
            if coding is None or accepted.get(coding, accepted.get("*", 0)) > 0:
                response = NotModified(())
                self._add_headers(response.headers, scopes[known["tag"]], known[0])
                return response
        return None

    def mark(self, response: Response, scope: Scope) -> Response:
        """Adds the lifetime to a response and, unless it is a redirect, the ETag.

        :param scope: the scope of the pages that can change it by appearing or expiring.
        """
        headers = response.headers
        # Headers itself would raise an error inside for a name that it does not have.
        if "Cache-Control" not in dict(headers.to_wsgi_list()):
            is_whole = response.status_code == 200 and scope in self.etags
            etag = f'"{self.etags[scope]}"' if is_whole else None
            age = self._add_headers(headers, scope, etag)
            if is_whole:
                self._request.environ[UNTIL] = age, etag, self._changes[scope]
        if response.status_code == 200 and self._if_none_match.strip() == "*":
            # ``*`` matches any response, even one without an ETag.
            response.status_code = 304
        return response

    def _add_headers(self, headers: Headers, scope: Scope, etag: str | None) -> str:
        is_private = bool(self._viewer.pages or self._viewer.collections)
        change = None if self._settings.cache_max_age is None else self._changes[scope]
        left = None if change is None else int((change - self._viewer.moment).total_seconds())
        age = lifetime(self._settings, left=left, is_private=is_private)
        headers.add("Cache-Control", age)
        if etag is not None:
            headers.add("ETag", etag)
        if self._state.can_view is not None:
            headers.add("Vary", VARY)
        return age


#: Classes whose ``repr`` is complete, and the same in every process.
_PLAIN = (type(None), type(...), bool, int, float, complex, str, bytes, Decimal)
_CALENDAR = (date, time, timedelta, tzinfo)
_WRITTEN = (*_PLAIN, *_CALENDAR)
#: The classes that declarations consist of. They count with everything in the class body, and
#: their instances with all attributes. Of anything else only the class counts.
_DECLARATIONS = (Content, fields.Field, Schema, validate.Validator, PageURLs, Enum)
_PARTS = (*_DECLARATIONS, APIField, APIFilter)
#: The attributes that tell all of other things, which code consists of.
_TOLD: tuple[tuple[type[Any], Sequence[str]], ...] = (
    (types.FunctionType, ("__code__", "__defaults__", "__kwdefaults__", "__closure__")),
    (types.CodeType, ("co_code", "co_names", "co_consts")),
    (types.MethodType, ("__func__", "__self__")),
    (staticmethod, ("__func__",)),
    (classmethod, ("__func__",)),
    (property, ("fget",)),
    (functools.cached_property, ("func",)),
    (functools.partial, ("func", "args", "keywords")),
)
#: Packages whose classes are identified by the version, and those that write rich text.
_USED = ("flask_contentapi", "marshmallow", *sorted(installed_packages()))
_RELEASES = tuple(f"{name} {version(name)}" for name in _USED)
_PACKAGES = ("flask_contentapi", "marshmallow", "builtins", "abc", "enum", "typing")


def fingerprint(registry: Registry, *others: object) -> str:
    """The part of each ETag that depends on the site's declarations and settings.

    :param others: whatever else shapes answers.
    """
    declared = [
        (name, label, own.content_class)
        for name, endpoint in sorted(registry.endpoints.items())
        for label, own in sorted(endpoint.types.items())
    ]
    words: list[str] = []
    _describe([_RELEASES, declared, *others], words, {})
    text = "\0".join([*words, ""])
    return blake2b(text.encode("utf-8", "backslashreplace"), digest_size=16).hexdigest()


def _describe(value: Any, words: list[str], known: dict[int, tuple[int, object]]) -> None:
    """Adds a value to words; each object is described once.

    :param known: by id the objects so far. Holding on to them keeps their ids from being reused.
    """
    parts: Iterable[Any] = ()
    words.append(f"{type(value).__module__}.{type(value).__qualname__}(")
    if isinstance(value, _WRITTEN):
        words.append(repr(value))
    elif isinstance(value, (list, tuple)):
        parts = value
    elif isinstance(value, (dict, Mapping)):
        parts = chain.from_iterable(value.items())
    elif isinstance(value, Set):
        entries: list[str] = []
        for entry in value:
            own: list[str] = []
            _describe(entry, own, known)
            entries.append(" ".join(own))
        words += sorted(entries)
    elif id(value) in known:
        words.append(str(known[id(value)][0]))
    else:
        known[id(value)] = len(known), value
        parts = _parts(value)
    for part in parts:
        _describe(part, words, known)
    words.append(")")


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, type):
        bases = value.__mro__ if issubclass(value, _DECLARATIONS) else ()
        own = [base for base in bases if base.__module__.partition(".")[0] not in _PACKAGES]
        names = [f"{base.__module__}.{base.__qualname__}" for base in (value, *bases)]
        # Without what Python adds to every class.
        return names, [
            {n: v for n, v in vars(b).items() if n[:2] != "__" or isinstance(v, types.FunctionType)}
            for b in own
        ]
    if isinstance(value, types.CellType):
        return [] if value == types.CellType() else [value.cell_contents]
    if isinstance(value, _PARTS):
        return [type(value), getattr(value, "__dict__", {})]
    told = next((names for kind, names in _TOLD if isinstance(value, kind)), ())
    return [getattr(value, name) for name in told]

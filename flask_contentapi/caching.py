"""Validators and lifetimes of answers: when a client or a cache may use what it has.

An answer's tag (``ETag``) is a digest of all that shapes it: the version of the content, the
time in which nothing changes by itself, what its reader may see, the address, and the site's
declarations and settings. So a client that has the right tag was given this very answer, and
may be told so before any content is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from flask import Request, Response
from werkzeug.datastructures import Headers

from flask_contentapi.backend import Reader
from flask_contentapi.origins import host_of
from flask_contentapi.query import Viewer
from flask_contentapi.signals import EVERYTHING
from flask_contentapi.state import State

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

__all__ = ["Freshness", "tag_header"]

#: How many tags an answer names at most; beyond that it names endpoints instead of objects.
MOST_TAGS = 100
#: How many tags of answers are kept.
KEPT = 512
#: What decides what a reader may see, where the site has a hook for that.
_VARY = "Cookie, Authorization"
#: A tag of ours in ``If-None-Match``. What compresses answers appends the name of the coding, as
#: ``:br`` or ``-gzip``.
_GIVEN = re.compile(r'(?:W/)?"(?P<tag>[0-9a-f]{32})(?:[:;-](?P<coding>[a-z0-9-]{1,20}))?"')


def tag_header(header: str, tags: Iterable[str]) -> str:
    """What an answer is made of, as a header of a cache names it.

    :param header: ``Cache-Tag`` (commas) or ``Surrogate-Key`` (spaces).
    :param tags: names of endpoints, and of objects as ``pages-7``.
    """
    named = dict.fromkeys(tags)
    if len(named) > MOST_TAGS:
        named = dict.fromkeys(tag.partition("-")[0] for tag in named)
    return (", " if header == "Cache-Tag" else " ").join([EVERYTHING, *named])


@lru_cache(KEPT)
def _digest(*parts: Any) -> str:
    """A short text that stands for all that shapes an answer."""
    words = (sorted(part) if isinstance(part, frozenset) else part for part in parts)
    return blake2b("\0".join(map(str, words)).encode(), digest_size=16).hexdigest()


class NotModified(Response):
    """What a client gets that has the answer already: no body, and no headers about one."""

    default_status = 304
    default_mimetype = None

    def get_wsgi_headers(self, environ: WSGIEnvironment) -> Headers:
        return self.headers


class Freshness:
    """How long the answer to one request stays what it is.

    :param state: the instance that is asked.
    :param reader: the content.
    :param viewer: who looks, and when.
    :param request: the request.
    :ivar tag: the answer's tag; None where nobody knows whether the content changes.
    """

    def __init__(self, state: State, reader: Reader, viewer: Viewer, request: Request) -> None:
        self._state = state
        self._settings = state.settings
        self._reader = reader
        self._viewer = viewer
        self._request = request
        self._given = request.environ.get("HTTP_IF_NONE_MATCH", "")
        self.tag = self._tag()
        self._known = self._find_known()

    @property
    def key(self) -> str | None:
        """What the answer is kept by; None if it is made for this request alone.

        With a hook the code of computed fields may know the reader as well.
        """
        is_shared = self._state.can_view is None and self._request.method == "GET"
        return self.tag if is_shared else None

    def _tag(self) -> str | None:
        request, viewer = self._request, self._viewer
        if self._reader.version is None:
            return None
        return _digest(
            self._state.fingerprint,
            self._reader.version,
            self._reader.next_change(viewer.moment),
            viewer.pages,
            viewer.collections,
            request.scheme,
            host_of(request),
            request.root_path,
            request.path,
            request.query_string,
        )

    def _find_known(self) -> str | None:
        """The tag by which the client has the answer already, as it was given to the client."""
        found = _GIVEN.finditer(self._given)
        return next((known[0] for known in found if self._is_own(known)), None)

    def _is_own(self, known: re.Match[str]) -> bool:
        """Whether a tag is the answer's, or that of the answer in a coding that is accepted."""
        if known["tag"] != self.tag:
            return False
        coding = known["coding"]
        return coding is None or self._request.accept_encodings.quality(coding) > 0

    def is_known(self) -> bool:
        """Whether the client has the answer already."""
        return self._known is not None

    def not_modified(self) -> Response:
        """What tells the client so, with the very tag that it has."""
        response = NotModified(())
        self._mark(response.headers, is_whole=True)
        return response

    def marked(self, response: Response) -> Response:
        """An answer with how long it may be used without asking again and, unless it only leads
        to another address, with its tag."""
        headers = response.headers
        if "Cache-Control" not in headers:
            self._mark(headers, is_whole=response.status_code == 200)
        if response.status_code == 200 and self._given.strip() == "*":
            # There is an answer, and the client wants it only if there is none.
            response.status_code = 304
        return response

    def _mark(self, headers: Headers, *, is_whole: bool) -> None:
        """Adds headers.

        :param is_whole: whether it is the answer itself, and not where to find it.
        """
        headers.add("Cache-Control", self._lifetime())
        if is_whole and self.tag is not None:
            headers.add("ETag", self._known or f'"{self.tag}"')
        if self._state.can_view is not None:
            headers.add("Vary", _VARY)

    def _lifetime(self) -> str:
        private = self._viewer.pages or self._viewer.collections
        scope = "private" if private else "public"
        age = self._settings.cache_max_age
        if age is None:
            return f"{scope}, no-cache"
        left = self._seconds_left()
        age = age if left is None else min(age, left)
        stale = self._settings.cache_stale
        stale = stale if left is None else min(stale, left - age)
        return f"{scope}, max-age={age}" + (f", stale-while-revalidate={stale}" if stale else "")

    def _seconds_left(self) -> int | None:
        """How long time itself changes nothing; None: for ever."""
        change = self._reader.next_change(self._viewer.moment)
        return None if change is None else int((change - self._viewer.moment).total_seconds())

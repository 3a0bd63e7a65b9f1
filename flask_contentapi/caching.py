"""Validators and lifetimes of responses: when a client or a cache may reuse what it has.

A response's ``ETag`` is a digest of everything that shapes it: the version of the content, the
time of the next scheduled change, what the viewer may see, the address, and the site's
declarations and settings. So a client that sends the right ETag already has this very response,
and can be told so before any content is read.
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

#: How many cache tags a response has at most; beyond that they name endpoints, not objects.
MOST_TAGS = 100
#: How many ETags are cached.
DIGEST_CACHE_SIZE = 512
#: The request headers that decide what a viewer may see, if the site has a hook for that.
_VARY = "Cookie, Authorization"
#: One of our ETags in ``If-None-Match``. Software that compresses responses appends the name of
#: the coding, as ``:br`` or ``-gzip``.
_ETAG = re.compile(r'(?:W/)?"(?P<tag>[0-9a-f]{32})(?:[:;-](?P<coding>[a-z0-9-]{1,20}))?"')


def tag_header(header: str, tags: Iterable[str]) -> str:
    """The value of a cache tag header, which names what a response is made of.

    :param header: ``Cache-Tag`` (commas) or ``Surrogate-Key`` (spaces).
    :param tags: names of endpoints, and of objects as ``pages-7``.
    """
    named = dict.fromkeys(tags)
    if len(named) > MOST_TAGS:
        named = dict.fromkeys(tag.partition("-")[0] for tag in named)
    return (", " if header == "Cache-Tag" else " ").join([EVERYTHING, *named])


@lru_cache(DIGEST_CACHE_SIZE)
def _digest(*parts: Any) -> str:
    """A short digest of everything that shapes a response."""
    words = (sorted(part) if isinstance(part, frozenset) else part for part in parts)
    return blake2b("\0".join(map(str, words)).encode(), digest_size=16).hexdigest()


class NotModified(Response):
    """A 304 response: no body, and no headers about one."""

    default_status = 304
    default_mimetype = None

    def get_wsgi_headers(self, environ: WSGIEnvironment) -> Headers:
        return self.headers


class Freshness:
    """The validator and lifetime of the response to one request.

    :param state: the instance that serves it.
    :param reader: the content.
    :param viewer: who sends the request, and when.
    :param request: the request.
    :ivar etag: the ETag, without quotes; None if the content has no version.
    """

    def __init__(self, state: State, reader: Reader, viewer: Viewer, request: Request) -> None:
        self._state = state
        self._settings = state.settings
        self._reader = reader
        self._viewer = viewer
        self._request = request
        self._if_none_match = request.environ.get("HTTP_IF_NONE_MATCH", "")
        self.etag = self._make_etag()
        self._matching_etag = self._find_matching_etag()

    @property
    def key(self) -> str | None:
        """The key for caching the response; None if it is made for this request alone.

        With a hook, computed fields may depend on the viewer too.
        """
        is_shared = self._state.can_view is None and self._request.method == "GET"
        return self.etag if is_shared else None

    def _make_etag(self) -> str | None:
        request, viewer = self._request, self._viewer
        if self._reader.version is None:
            return None
        return _digest(
            self._state.fingerprint,
            self._reader.version,
            self._reader.next_change(viewer.moment),
            viewer.pages,
            viewer.collections,
            host_of(request).address,
            request.root_path,
            request.path,
            request.query_string,
        )

    def _find_matching_etag(self) -> str | None:
        """The ETag in ``If-None-Match`` that matches the response, as the client sent it."""
        found = _ETAG.finditer(self._if_none_match)
        return next((known[0] for known in found if self._is_etag_of_response(known)), None)

    def _is_etag_of_response(self, known: re.Match[str]) -> bool:
        """Whether an ETag is that of the response, as it is or in a coding the client accepts."""
        if known["tag"] != self.etag:
            return False
        coding = known["coding"]
        return coding is None or self._request.accept_encodings.quality(coding) > 0

    def is_known(self) -> bool:
        """Whether the client already has the response."""
        return self._matching_etag is not None

    def not_modified(self) -> Response:
        """The 304 response, with the very ETag that the client sent."""
        response = NotModified(())
        self._add_headers(response.headers, is_whole=True)
        return response

    def mark(self, response: Response) -> Response:
        """Adds the lifetime to a response and, unless it is a redirect, the ETag."""
        headers = response.headers
        if "Cache-Control" not in headers:
            self._add_headers(headers, is_whole=response.status_code == 200)
        if response.status_code == 200 and self._if_none_match.strip() == "*":
            # ``*`` matches any response, even one without an ETag.
            response.status_code = 304
        return response

    def _add_headers(self, headers: Headers, *, is_whole: bool) -> None:
        """Adds the headers.

        :param is_whole: whether the response is the object or list itself and not a redirect.
        """
        headers.add("Cache-Control", self._lifetime())
        if is_whole and self.etag is not None:
            headers.add("ETag", self._matching_etag or f'"{self.etag}"')
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
        """The seconds until the next scheduled change; None if there is none."""
        change = self._reader.next_change(self._viewer.moment)
        return None if change is None else int((change - self._viewer.moment).total_seconds())

"""Validators and lifetimes of answers: when a client or a cache may use what it has.

An answer's tag (``ETag``) is a digest of all that shapes it: the version of the content, the
time in which nothing changes by itself, what its reader may see, the address, and the site's
declarations and settings. So a client that has the right tag was given this very answer, and
may be told so before any content is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING

from flask import Request, Response

from flask_contentapi.backend import Reader
from flask_contentapi.query import Viewer
from flask_contentapi.signals import EVERYTHING

if TYPE_CHECKING:
    from flask_contentapi.extension import State

__all__ = ["Freshness", "tag_header"]

#: How many tags an answer names at most; beyond that it names endpoints instead of objects.
MOST_TAGS = 100
#: What decides what a reader may see, where the site has a hook for that.
_VARY = "Cookie, Authorization"
#: The tag of an answer in a coding.
_CODED = re.compile(r"(?P<tag>[0-9a-f]+)[:;-](?P<coding>[a-z0-9-]{1,20})")


def tag_header(header: str, tags: Iterable[str]) -> str:
    """What an answer is made of, as a header of a cache names it.

    :param header: ``Cache-Tag`` (commas) or ``Surrogate-Key`` (spaces).
    :param tags: names of endpoints, and of objects as ``pages-7``.
    """
    named = dict.fromkeys(tags)
    if len(named) > MOST_TAGS:
        named = dict.fromkeys(tag.partition("-")[0] for tag in named)
    return (", " if header == "Cache-Tag" else " ").join([EVERYTHING, *named])


class Freshness:
    """How long the answer to one request stays what it is.

    :param state: the instance that is asked.
    :param reader: the content.
    :param viewer: who looks, and when.
    :param request: the request.
    """

    def __init__(self, state: State, reader: Reader, viewer: Viewer, request: Request) -> None:
        self._state = state
        self._settings = state.settings
        self._reader = reader
        self._viewer = viewer
        self._request = request

    @property
    def key(self) -> str | None:
        """What the answer is kept by; None if it is made for this request alone.

        With a hook the code of computed fields may know the reader as well.
        """
        is_shared = self._state.can_view is None and self._request.method == "GET"
        return self.tag if is_shared else None

    @cached_property
    def tag(self) -> str | None:
        """The answer's tag; None where nobody knows whether the content changes."""
        request, viewer = self._request, self._viewer
        if self._reader.version is None:
            return None
        content = self._reader.version, self._reader.next_change(viewer.moment)
        rights = sorted(viewer.pages), sorted(viewer.collections)
        address = request.scheme, request.host.lower(), request.root_path, request.path
        parts = self._state.fingerprint, *content, *rights, *address, request.query_string
        return blake2b("\0".join(map(str, parts)).encode(), digest_size=16).hexdigest()

    @cached_property
    def _known(self) -> str | None:
        """The tag by which the client has the answer already, as it was given to the client."""
        given = self._request.if_none_match.as_set(include_weak=True)
        # An empty tag is read as None.
        return next((known for known in sorted(filter(None, given)) if self._is_ours(known)), None)

    def _is_ours(self, known: str) -> bool:
        """Whether a tag is the answer's own, or that of the answer in a coding that is accepted.

        What compresses answers appends the name of the coding, as ``:br`` or ``-gzip``.
        """
        if self.tag is None:
            return False
        if known == self.tag:
            return True
        coded = _CODED.fullmatch(known)
        if coded is None or coded["tag"] != self.tag:
            return False
        return self._request.accept_encodings.quality(coded["coding"]) > 0

    def is_known(self) -> bool:
        """Whether the client has the answer already."""
        return self._known is not None

    def not_modified(self) -> Response:
        """What tells the client so, with the very tag that it has."""
        response = self.marked(Response(status=304))
        if self._known is not None:
            is_strong = self._request.if_none_match.is_strong(self._known)
            response.set_etag(self._known, weak=not is_strong)
        return response

    def marked(self, response: Response) -> Response:
        """An answer with how long it may be used without asking again and, unless it only leads
        to another address, with its tag."""
        if "Cache-Control" not in response.headers:
            response.headers["Cache-Control"] = self._lifetime()
            if self.tag is not None and response.status_code in (200, 304):
                response.set_etag(self.tag)
        if self._state.can_view is not None:
            response.headers["Vary"] = _VARY
        if response.status_code == 200 and self._request.if_none_match.star_tag:
            # There is an answer, and the client wants it only if there is none.
            response.status_code = 304
        return response

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

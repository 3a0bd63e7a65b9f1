"""WSGI middleware that repeats answers of the API without Flask."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from flask import Flask

from flask_contentapi.cache import BoundedCache
from flask_contentapi.caching import UNTIL, lifetime
from flask_contentapi.errors import ConfigurationError
from flask_contentapi.extension import ContentAPI

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

Headers = list[tuple[str, str]]
#: What of a request shapes an answer. Proxies name the original host in various headers.
_SHAPING = (
    *("HTTP_HOST", "wsgi.url_scheme", "SCRIPT_NAME", "PATH_INFO", "QUERY_STRING", "SERVER_NAME"),
    *("SERVER_PORT", "HTTP_X_FORWARDED_HOST", "HTTP_X_FORWARDED_PORT", "HTTP_X_FORWARDED_PREFIX"),
    *("HTTP_X_FORWARDED_PROTO", "HTTP_FORWARDED"),
)
#: Headers of answers that are made for one request.
_PERSONAL = frozenset(("set-cookie", "vary"))
#: What ``If-None-Match`` is without Flask's help: nothing, or one ETag to which no software that
#: compresses answers has added the name of a coding.
_AT_MOST_ONE = re.compile(r'("[^":;-]*")?')
#: The estimated size of an answer besides its texts, in bytes.
_OVERHEAD = 2048


class _Kept(NamedTuple):
    """A kept answer.

    :param mark: the mark of the content before it was made, :meth:`Backend.mark`.
    :param until: when the content changes by itself, or None.
    :param etag: its ``ETag``.
    :param headers: its other headers, without the lifetime.
    :param body: its body.
    :param size: how much memory it takes with its key, in bytes.
    """

    mark: object
    until: datetime | None
    etag: str
    headers: Headers
    body: bytes
    size: int


class KeptAnswers:
    """Repeats answers, and says that clients have them already, before a request gets to Flask.

    ::

        app.wsgi_app = KeptAnswers(app, api)

    Hooks of the site, such as ``before_request``, do not see the requests that it answers. Answers
    with ``Vary`` or ``Set-Cookie``, or whose lifetime or ``ETag`` a hook has changed, are not kept.
    Besides the content's mark nothing is looked at, so it needs a backend that can tell whether the
    content has changed, as the bundled ones can; with others all requests get to Flask.

    :param app: the application.
    :param api: its API, initialised. Answers take the memory of ``CMSAPI_CACHE_SIZE`` once more.
    :raises ConfigurationError: if the API has ``can_view``, because what a visitor may see is only
        known to Flask, and if ``app`` is no application.
    """

    def __init__(self, app: Flask, api: ContentAPI) -> None:
        if not isinstance(app, Flask):
            raise ConfigurationError(
                "KeptAnswers takes the application itself, not its wsgi_app; write "
                "app.wsgi_app = KeptAnswers(app, api)."
            )
        with app.app_context():
            state = self._state = api.state
        if state.can_view is not None:
            raise ConfigurationError(
                "KeptAnswers cannot be used with can_view, which has to see every request; leave "
                "one of them out."
            )
        self._app = app.wsgi_app
        self._prefix = f"{state.settings.url_prefix}/"
        self._kept: BoundedCache[_Kept] = BoundedCache(
            state.settings.cache_size, lambda kept: kept.size
        )

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] != "GET" or not environ["PATH_INFO"].startswith(self._prefix):
            return self._app(environ, start_response)
        # Read before the answer is made, so that a change meanwhile makes it another one.
        mark = self._state.backend.mark()
        if mark is None:
            return self._app(environ, start_response)
        key = tuple([environ.get(name) for name in _SHAPING])
        kept, known = self._kept.get(key), environ.get("HTTP_IF_NONE_MATCH", "").removeprefix("W/")
        if kept is not None and kept.mark == mark and _AT_MOST_ONE.fullmatch(known):
            now = self._state.clock()
            if kept.until is None or now < kept.until:
                left = None if kept.until is None else int((kept.until - now).total_seconds())
                fresh = ("Cache-Control", lifetime(self._state.settings, left=left))
                if known != kept.etag:
                    start_response("200 OK", [*kept.headers, fresh, ("ETag", kept.etag)])
                    return [kept.body]
                own = [pair for pair in kept.headers if not pair[0].startswith("Content-")]
                start_response("304 NOT MODIFIED", [*own, fresh, ("ETag", kept.etag)])
                return []
        return self._ask(environ, start_response, key, mark)

    def _ask(
        self, environ: WSGIEnvironment, start_response: StartResponse, key: Any, mark: object
    ) -> Iterable[bytes]:
        said: list[Any] = []

        def note(status: str, headers: Headers, error: Any = None) -> Callable[[bytes], object]:
            said[:] = status, headers
            return start_response(status, headers, error)

        parts = self._app(environ, note)
        status, headers = said or ("", [])
        names = {name.lower() for name, _ in headers}
        age, etag, until = environ.get(UNTIL, ("", "", None))
        is_ours = ("Cache-Control", age) in headers and ("ETag", etag) in headers
        # Streams have no length, and can be too long to be kept.
        can_be_kept = is_ours and "content-length" in names and not names & _PERSONAL
        if not status.startswith("200 ") or not can_be_kept:
            return parts
        try:
            body = b"".join(parts)
        finally:
            getattr(parts, "close", lambda: None)()
        own = [pair for pair in headers if pair[0] not in ("Cache-Control", "ETag")]
        # Clients decide how long the key is.
        texts = body, *filter(None, key), *chain.from_iterable(own)
        size = _OVERHEAD + sum(map(len, texts))
        self._kept.put(key, _Kept(mark, until, etag, own, body, size))
        return [body]

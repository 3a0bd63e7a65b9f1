"""The explorer: a page for people, which reads the index and the description of the API (9 of what
is beyond the contract). It is made of the files in this folder, as they are."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import cast

from flask import Request, Response

from flask_contentapi.declarations import Endpoint
from flask_contentapi.errors import ConfigurationError, NotFound
from flask_contentapi.state import State
from flask_contentapi.views import EndpointView

#: The first part of its addresses below the prefix, which an endpoint of the site may have.
_NAME = "explorer"
_PAGE = "explorer.html"
_MIMETYPES = {"css": "text/css", "html": "text/html", "js": "text/javascript"}
#: What the page may do: run its own files, ask its own host, and show pictures from anywhere.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' http: https: data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_HEADERS = {
    "Cache-Control": "public, no-cache",
    "Content-Security-Policy": _POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def is_explored(
    wanted: bool | None, endpoints: Mapping[str, Endpoint], prefix: str, *, debug: bool
) -> bool:
    """Whether an instance has the explorer.

    :param wanted: the setting; None: in debug mode.
    :param endpoints: the endpoints of the site. One with the name of the explorer comes first.
    :param prefix: the prefix of the keys of settings.
    :param debug: whether the application is in debug mode.
    :raises ConfigurationError: if it is wanted, but its address is that of an endpoint.
    """
    if _NAME not in endpoints:
        return debug if wanted is None else wanted
    if wanted:
        raise ConfigurationError(
            f"{prefix}EXPLORER is True, but the site has an endpoint {_NAME!r}, whose address the "
            "explorer would have; give the endpoint another name, or leave the explorer out."
        )
    return False


class ExplorerView(EndpointView):
    """The page and its files."""

    def __init__(self, state: State, endpoint: Endpoint) -> None:
        super().__init__(state, endpoint)
        kinds = {path: path.name.rpartition(".")[2] for path in files(__name__).iterdir()}
        self._files = {
            path.name: (path.read_bytes(), _MIMETYPES[kind])
            for path, kind in kinds.items()
            if kind in _MIMETYPES
        }

    def answer(self, request: Request, **parts: str) -> Response:
        """The response with a file.

        :param parts: its name, ``file``; without one it is the page.
        """
        file = self._files.get(parts.get("file", _PAGE))
        if file is None:
            page = f"{self.state.settings.url_prefix}/{_NAME}/"
            raise NotFound(f"The explorer has no such file. It is at {page}.")
        content, mimetype = file
        response = Response(content, mimetype=mimetype, headers=_HEADERS)
        response.add_etag()
        return cast(Response, response.make_conditional(request))

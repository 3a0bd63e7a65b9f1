"""The responses to errors, those of routing too."""

from __future__ import annotations

from typing import cast

from flask import Response, current_app
from flask import request as current_request
from werkzeug.exceptions import BadHost, HTTPException, InternalServerError, SecurityError
from werkzeug.routing import RequestRedirect, WebsocketMismatch
from werkzeug.utils import redirect

from flask_contentapi.addresses import host_of
from flask_contentapi.errors import BackendUnavailable, NotFound
from flask_contentapi.logs import Outages
from flask_contentapi.sites import Host
from flask_contentapi.state import State
from flask_contentapi.views import NOTHING, allowed_methods, json_response


def routing_error(state: State) -> Response | None:
    """The response to a request under the prefix for which Flask finds no view; None to others.

    These are few: those without the last slash, to hosts that Werkzeug does not know, or with a
    newline in the path. Redirects get the same base as all other addresses.
    """
    request = current_request
    error = request.routing_exception
    if error is None or not f"{request.path}/".startswith(f"{state.settings.url_prefix}/"):
        return None
    if request.method == "OPTIONS":
        return allowed_methods()
    host = host_of(request)
    # A host that Werkzeug does not know, or a WebSocket, a wish that servers may ignore.
    if not isinstance(error, SecurityError) and (
        isinstance(error, BadHost | WebsocketMismatch) or not request.host
    ):
        error = request.routing_exception = _match_at(host)
    if error is None:
        return None
    if isinstance(error, RequestRedirect):
        # Not raised, because TRAP_HTTP_EXCEPTIONS would make an error of it.
        path = error.new_url.partition("://")[2].partition("/")[2]
        path = f"/{path.removeprefix(request.root_path.strip('/')).lstrip('/')}"
        base = state.origins.base(host, request.root_path)
        return cast(Response, redirect(base + path, error.code, Response))
    if isinstance(error, SecurityError):
        error.description = "Requests to this host are not answered."
    if isinstance(error, NotFound):
        error.description = NOTHING
    return http_error(error)


def _match_at(host: Host) -> HTTPException | None:
    """Looks for the view again, at the host in its normal form or, without one, at any. Returns the
    error if there is none."""
    url_map = current_app.url_map
    adapter = url_map.bind(
        str(host) if host.name else "localhost",
        current_request.root_path,
        None if url_map.host_matching else url_map.default_subdomain,
        default_method=current_request.method,
        path_info=current_request.path,
        query_args=current_request.query_string.decode("utf-8", "replace"),
    )
    try:
        current_request.url_rule, view_args = adapter.match(return_rule=True)
    except HTTPException as error:
        return error
    current_request.view_args = dict(view_args)
    return None


def http_error(error: HTTPException) -> Response:
    """The response to an error of HTTP."""
    if error.description == InternalServerError.description:
        error.description = "The answer cannot be made because of an error in the application."
    response = json_response({"message": error.description or error.name}, error.code or 500)
    for name, value in error.get_headers():
        if name.lower() != "content-type":
            response.headers[name] = value
    # It has no cache tags, so caches could not tell when it is over.
    response.headers["Cache-Control"] = "no-store"
    return response


def unavailable(outages: Outages, error: BackendUnavailable) -> Response:
    """The response if the storage does not answer."""
    outages.report(error)
    response = json_response({"message": "The content cannot be read now; try again later."}, 503)
    response.headers.update({"Retry-After": str(error.retry_after), "Cache-Control": "no-store"})
    return response

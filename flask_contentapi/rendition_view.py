"""The view of the files of renditions."""

from __future__ import annotations

from pathlib import Path
from typing import cast
from urllib.parse import urlencode

from flask import Request, Response, send_file
from werkzeug.exceptions import InternalServerError
from werkzeug.utils import redirect

from flask_contentapi.addresses import host_of
from flask_contentapi.backend import Reader
from flask_contentapi.caching import VARY, tag
from flask_contentapi.errors import NotFound
from flask_contentapi.parameters import read_query_string
from flask_contentapi.query import Viewer
from flask_contentapi.renditions import MIME_TYPES, Picture, RenditionError
from flask_contentapi.sources import RowLayout, picture_of
from flask_contentapi.views import EndpointView, identify_viewer, not_found, read_id


class RenditionView(EndpointView):
    """The file of a rendition of an image."""

    def answer(self, request: Request, **parts: str) -> Response:
        identity, layout = read_id(parts["id"]), RowLayout(self.endpoint.base)
        picture_in = picture_of(layout)

        def find(reader: Reader) -> tuple[Viewer, Picture]:
            viewer = identify_viewer(self.state, reader, request.query_string)
            rows = reader.fetch(self.endpoint.name, [identity], layout.columns, viewer)
            if identity not in rows:
                raise not_found(self.endpoint)
            return viewer, picture_in(rows[identity])

        viewer, picture = self.state.backend.read(find)
        if self.state.outages.is_reported:
            self.state.outages.end()
        return self._respond(request, viewer, picture, parts["file"])

    def _respond(self, request: Request, viewer: Viewer, picture: Picture, file: str) -> Response:
        state, endpoint = self.state, self.endpoint.name
        name = file.rsplit(".", 2)[0]
        if name not in state.renditions.specs:
            known = ", ".join(state.renditions.specs) or "none"
            raise NotFound(f"There is no rendition {name!r}; there are {known}.")
        current = state.renditions.file_name(picture, name)
        if file != current:
            # It is the address of what the image, or the rendition, was before.
            base = state.origins.base(host_of(request), request.root_path)
            address = f"{base}{state.settings.url_prefix}/{endpoint}/{picture.id}/renditions/"
            # What only the token shows is there with it alone.
            given = {} if viewer.previewed is None else read_query_string(request.query_string)
            query = f"?{urlencode({'preview': given['preview']})}" if given else ""
            moved = cast(Response, redirect(f"{address}{current}{query}", 302, Response))
            moved.headers["Cache-Control"] = "no-store"
            return moved
        try:
            path = state.renditions.file(endpoint, picture, name)
        except RenditionError as error:
            raise (NotFound if error.missing else InternalServerError)(str(error)) from error
        return self._sent(path, viewer, picture.id)

    def _sent(self, path: Path, viewer: Viewer, identity: int) -> Response:
        """The response with a file. At its address there is never another picture."""
        response = send_file(path, MIME_TYPES[path.suffix[1:]])
        headers = response.headers
        who = "private" if viewer.pages or viewer.collections else "public"
        headers["Cache-Control"] = f"{who}, max-age=31536000, immutable"
        if viewer.previewed is not None:
            headers["Cache-Control"] = "private, no-store"
        if self.state.can_view is not None:
            headers["Vary"] = VARY
        tag(response, self.state.settings, [(self.endpoint.name, identity)])
        # A drawing can have scripts.
        headers["Content-Security-Policy"] = (
            "default-src 'none'; style-src 'unsafe-inline'; sandbox"
        )
        headers["X-Content-Type-Options"] = "nosniff"
        return response

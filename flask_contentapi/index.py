"""What there is: the index, the sites, the languages and the description of the API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from hashlib import blake2b
from typing import Any, ClassVar, cast

from flask import Request, Response, current_app
from werkzeug.utils import redirect

from flask_contentapi.addresses import host_of
from flask_contentapi.caching import lifetime, tag
from flask_contentapi.errors import NotFound
from flask_contentapi.openapi import describe
from flask_contentapi.parameters import check_length, check_values
from flask_contentapi.sites import Site
from flask_contentapi.views import EndpointView, Responder, json_response, read_id


class IndexView(EndpointView):
    """What there is, and where. It is given an endpoint that needs no site."""

    has_previews = False

    def answer(self, request: Request, **parts: str) -> Response:
        """What there is; browsers are sent to the explorer, if there is one."""
        settings = self.state.settings
        if not settings.explorer:
            return super().answer(request, **parts)
        wanted = request.accept_mimetypes.best_match(["application/json", "text/html"])
        if wanted == "text/html":
            base = self.state.origins.base(host_of(request), request.root_path)
            location = f"{base}{settings.url_prefix}/explorer/"
            response = cast(Response, redirect(location, 302, Response))
            response.headers["Cache-Control"] = "public, no-cache"
        else:
            response = super().answer(request, **parts)
        response.vary.add("Accept")
        return response

    def get(self, responder: Responder, **parts: str) -> Response:
        site, addresses = responder.site, responder.addresses
        body: dict[str, Any] = {
            "endpoints": {
                name: {"url": addresses.detail_url(name), "types": [*endpoint.types]}
                for name, endpoint in self.state.registry.endpoints.items()
            },
            "locales": [*responder.reader.locales],
            "site": _described(site) if site.hostname else None,
            "openapi_url": f"{addresses.api}/openapi.json",
        }
        if self.state.settings.explorer:
            body["explorer_url"] = f"{addresses.api}/explorer/"
            sites = responder.reader.sites
            body["sites"] = [_described(other) for other in sites if other.hostname]
        return json_response(body)


class SectionView(EndpointView):
    """What belongs to no endpoint of the content, as a list or one by one, in the order of the
    content. It is given an endpoint that needs no site."""

    name: ClassVar[str]
    label: ClassVar[str]
    has_previews = False

    def get(self, responder: Responder, **parts: str) -> Response:
        address = responder.addresses.detail_url(self.name)
        found: Mapping[int, Any] = {
            identity: {
                "id": identity,
                "meta": {"type": self.label, "detail_url": f"{address}{identity}/"},
                **values,
            }
            for identity, values in self.known(responder)
        }
        body: Any
        if "id" in parts:
            check_length(responder.request.query_string)
            check_values(responder.given)
            body = found.get(read_id(parts["id"]))
        else:
            part = self.state.parameters.part(responder.request.query_string)
            body = {"meta": {"total_count": len(found)}, "items": [*found.values()][part]}
        if body is None:
            raise NotFound(f"There is no such object in {self.name}, or it may not be seen.")
        response = json_response(body)
        tag(response, self.state.settings, [("pages", None)])
        return response

    def known(self, responder: Responder) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """What the viewer may know of: ids and values."""
        raise NotImplementedError


class SitesView(SectionView):
    """The sites whose home page the viewer may see.

    Their ids are made of their hosts: numbers in a row would tell of hidden ones.
    """

    name, label = "sites", "wagtailcore.Site"

    def known(self, responder: Responder) -> Iterator[tuple[int, Mapping[str, Any]]]:
        # Pages of all sites count.
        responder.schedule = None
        sites = [site for site in responder.reader.sites if site.hostname and site.homes]
        homes = {site.homes[0].page for site in sites}
        seen = responder.reader.fetch("pages", homes, ["id"], responder.viewer)
        for site in sites:
            if site.homes[0].page in seen:
                host = f"{site.hostname}:{site.port}".encode()
                home = {"root_page_id": site.homes[0].page, "is_default_site": site.is_default}
                identity = int.from_bytes(blake2b(host, digest_size=6).digest())
                yield identity, {**_described(site), **home}


class LocalesView(SectionView):
    """The languages that the content declares, as the index names them."""

    name, label = "locales", "wagtailcore.Locale"

    def known(self, responder: Responder) -> Iterator[tuple[int, Mapping[str, Any]]]:
        for number, code in enumerate(responder.reader.locales, 1):
            yield number, {"language_code": code, "is_default": number == 1}


#: These views, by the names of the sections.
SECTION_VIEWS: Mapping[str, type[SectionView]] = {v.name: v for v in (SitesView, LocalesView)}


class OpenAPIView(EndpointView):
    """The description of the API. It does not depend on the content."""

    def answer(self, request: Request, **parts: str) -> Response:
        base = self.state.origins.base(host_of(request), request.root_path)
        servers = [{"url": base + self.state.settings.url_prefix}]
        response = json_response({**self._description, "servers": servers})
        response.headers["Cache-Control"] = lifetime(self.state.settings, left=None)
        response.add_etag()
        return cast(Response, response.make_conditional(request))

    @cached_property
    def _description(self) -> Mapping[str, Any]:
        return describe(current_app.name, self.state.parameters)


def _described(site: Site) -> Mapping[str, Any]:
    return {"hostname": site.hostname, "port": site.port, "site_name": site.site_name}

"""The origins of requests: the requested site, and the addresses in its answers."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from flask import Request
from werkzeug.wsgi import get_host

from flask_contentapi.addresses import Addresses, PageURLs
from flask_contentapi.hosts import Host
from flask_contentapi.settings import Settings
from flask_contentapi.sites import Site, Sites

#: How many origins are cached. Without trusted hosts or a proxy, clients can make up any host.
CACHE_SIZE = 256


def host_of(request: Request) -> Host:
    """The host that a request is sent to."""
    host = request.environ.get("HTTP_HOST")
    if host is None:
        host = get_host(request.environ)
    elif not host.isascii():
        # WSGI passes bytes as characters. International names are sent as UTF-8, if at all.
        with suppress(UnicodeError):
            host = host.encode("latin-1").decode()
    return Host.of(request.scheme, host)


class Origin(NamedTuple):
    """The origin of a request.

    :param site: the requested site; None if there is none.
    :param addresses: the addresses for its answers.
    """

    site: Site | None
    addresses: Addresses


class Origins:
    """The origins of one instance; those of recent requests are cached.

    :param settings: the settings.
    :param page_urls: builds the addresses of pages.
    """

    def __init__(self, settings: Settings, page_urls: PageURLs) -> None:
        self._settings = settings
        self._page_urls = page_urls
        self.find = lru_cache(CACHE_SIZE)(self._find)

    def base(self, host: Host, root_path: str) -> str:
        """Scheme, host and path that all addresses except those of pages start with.

        The parameters are those of the request.
        """
        if self._settings.base_url is not None:
            return self._settings.base_url
        return host.address + _above(root_path)

    def _find(self, sites: Sites, host: Host, root_path: str, named: str) -> Origin:
        """The origin of a request.

        :param sites: all sites.
        :param host: the host, as :func:`host_of` returns it.
        :param root_path: where the application is mounted.
        :param named: the ``site`` parameter, or "".
        :raises NotFound: if there is no site of that name.
        :raises BadRequest: if the parameter names no single site.
        """
        settings = self._settings
        here = sites.answering(host.name, host.port)
        site = sites.named(named) if named else here
        hosts = [here]
        if settings.base_url is not None:
            parts = urlsplit(settings.base_url)
            base = Host.of(parts.scheme, parts.netloc)
            hosts.append(sites.answering(base.name, base.port))
        addresses = Addresses(
            self.base(host, root_path),
            settings.url_prefix,
            settings.media_url,
            sites=sites,
            site=site or Site("", homes=()),
            hosts=hosts,
            i18n=settings.i18n,
            page_urls=self._page_urls,
        )
        return Origin(site, addresses)


def _above(root_path: str) -> str:
    """The path of the application's mount point, normalised, as proxies pass it in many forms."""
    path = root_path.strip("/")
    return quote(f"/{path}") if path else ""

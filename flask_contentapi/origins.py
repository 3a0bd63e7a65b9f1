"""The origins of requests: the requested site, and the addresses in its answers."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from flask import Request

from flask_contentapi.addresses import Addresses, PageURLs
from flask_contentapi.settings import Settings
from flask_contentapi.sites import Site, Sites

__all__ = ["Origin", "Origins", "host_of"]

#: How many origins are cached. Without trusted hosts or a proxy, clients can make up any host.
CACHE_SIZE = 256
#: Hosts, including some that Werkzeug rejects but container networks and some clients use: names
#: with an underscore, and a colon without a port.
_HOST = re.compile(
    r"((?:[a-z0-9_-]+\.)*[a-z0-9_-]+\.?|\[[0-9a-f:.]+\])(?::([1-9][0-9]{0,4})?)?", re.ASCII
)
_PORTS = {"http": "80", "https": "443"}


def host_of(request: Request) -> str:
    """The host that a request is sent to, in lower case, with its port unless it is the default;
    "" if the host is unusable."""
    if request.host:
        return request.host.lower()
    match = _HOST.fullmatch(request.environ.get("HTTP_HOST", "").lower())
    if not match:
        return ""
    name, port = match.groups()
    if port is None or port == _PORTS.get(request.scheme):
        return str(name)
    return f"{name}:{port}" if int(port) < 2**16 else ""


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

    def base(self, scheme: str, host: str, root_path: str) -> str:
        """Scheme, host and path that all addresses except those of pages start with.

        The parameters are those of the request.
        """
        if self._settings.base_url is not None:
            return self._settings.base_url
        # If the host is unusable, addresses have none.
        return (f"{scheme}://{host}" if host else "") + _above(root_path)

    def _find(self, sites: Sites, scheme: str, host: str, root_path: str, named: str) -> Origin:
        """The origin of a request.

        :param sites: all sites.
        :param scheme: ``http`` or ``https``.
        :param host: the host, as :func:`host_of` returns it.
        :param root_path: where the application is mounted.
        :param named: the ``site`` parameter, or "".
        :raises NotFound: if there is no site of that name.
        :raises BadRequest: if the parameter names no single site.
        """
        settings = self._settings
        here = sites.answering(*_host_and_port(host, scheme))
        site = sites.named(named) if named else here
        hosts = [here]
        if settings.base_url is not None:
            parts = urlsplit(settings.base_url)
            hosts.append(sites.answering(*_host_and_port(parts.netloc, parts.scheme)))
        addresses = Addresses(
            self.base(scheme, host, root_path),
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


def _host_and_port(host: str, scheme: str) -> tuple[str, int]:
    name, colon, port = host.lower().rpartition(":")
    if colon and port.isdecimal() and not name.endswith(":"):
        return name, int(port)
    return host.lower(), 443 if scheme == "https" else 80

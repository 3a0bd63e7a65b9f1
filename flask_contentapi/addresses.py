"""The addresses in answers, and the origins of requests that they depend on (contract, Fields)."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any
from urllib.parse import quote, urlsplit

from flask import Request
from werkzeug.wsgi import get_host

from flask_contentapi.renditions import Picture, Renditions
from flask_contentapi.settings import Settings
from flask_contentapi.sites import MOST_HOSTS, Home, Host, Site, Sites, is_absolute

#: Paths that need no escaping.
_SAFE = re.compile(r"[\w.~/-]*", re.ASCII)


class PageURLs:
    """Builds and resolves the public addresses of pages; subclass it for another scheme.

    By default an address has the slugs below the home page, for every language in the same way.
    For a site with the language in front, for example::

        class LanguageFirst(PageURLs):
            def build(self, site, locale, path):
                return super().build(site, locale, f"/{locale}{path}")

            def resolve(self, site, locale, html_path):
                first, *rest = html_path.strip("/").split("/")
                return first or locale, "/".join(rest)

        ContentAPI(app, types=[...], page_urls=LanguageFirst())
    """

    def build(self, site: Site, locale: str | None, path: str) -> str | None:
        """The address of a page, or None if it has none.

        :param site: the site it is in; its ``address`` is None if no site has a host name.
        :param locale: the language of its tree.
        :param path: the slugs below its home page, percent-encoded, ``/`` for the home page.
        """
        return None if site.address is None else site.address + path

    def resolve(self, site: Site, locale: str | None, html_path: str) -> tuple[str | None, str]:
        """The language tree and the slugs below its home page that a path leads to.

        :param site: the requested site.
        :param locale: the ``locale`` parameter, or None.
        :param html_path: the ``html_path`` parameter as the client gave it, decoded.
        """
        return locale, html_path


class Addresses:
    """The addresses for one request.

    Those of pages are on the requested site if possible.

    :param origins: what all requests have in common.
    :param sites: the sites of the content.
    :param host: the host of the request.
    :param root_path: its path to the application.
    :param named: its ``site`` parameter, or "".
    :ivar site: the requested site; None if there is none.
    :ivar scope: the pages of the requested site, as :attr:`Query.scope`.
    :ivar paths: the possible starts of their ``url_path``.
    :ivar api: the address of the API, without a trailing slash.
    :ivar renditions: the renditions of images.
    :ivar here: the possible starts of the ``url_path`` of pages that need no ``site`` parameter.
    """

    def __init__(
        self, origins: Origins, sites: Sites, host: Host, root_path: str, named: str
    ) -> None:
        settings, base = origins.settings, origins.base(host, root_path)
        i18n, media = settings.i18n, settings.media_url
        answering = sites.answering(host.name, host.port)
        self.site = sites.named(named) if named else answering
        if settings.base_url is not None:
            parts = urlsplit(settings.base_url)
            other = Host.of(parts.scheme, parts.netloc)
            answering = sites.answering(other.name, other.port)
        known = self.site or Site("")
        self.scope, self.paths = known.scope(i18n), known.paths(i18n)
        self.api = base + settings.url_prefix
        self._media = media if is_absolute(media) else base + media
        self._sites = sites
        self.here = answering.paths(i18n) if answering else ()
        own = sorted(known.language_trees(i18n), key=lambda home: -len(home.url_path))
        self._trees = [*((known, home) for home in own), *sites.trees[i18n]]
        self._page_urls, self.renditions = origins.page_urls, origins.renditions

    def detail_url(self, endpoint: str) -> str:
        """The address of an endpoint's detail views, up to the id."""
        return f"{self.api}/{endpoint}/"

    def other_site(self, url_path: str) -> str:
        """The ``site`` parameter that a later request for a page needs; "" if it needs none."""
        site_and_home = None if url_path.startswith(self.here) else self._locate(url_path)
        return self._sites.name(site_and_home[0]) if site_and_home else ""

    def html_url(self, url_path: str) -> str | None:
        """The public address of a page; None if it is in no site or the site has no host."""
        for site, home in self._trees:
            if url_path.startswith(home.url_path):
                path = url_path[len(home.url_path) - 1 :]
                return self._page_urls.build(site, home.locale, path)
        return None

    def download_url(self, file: str) -> str | None:
        """The address of a file; None if there is no file."""
        if not file or ("//" in file and is_absolute(file)):
            return file or None
        path = file.lstrip("/")
        return self._media + (path if _SAFE.fullmatch(path) else quote(path))

    def rendition(self, endpoint: str, picture: Picture, name: str) -> dict[str, Any] | None:
        """A rendition as answers show it, as :meth:`Renditions.describe`."""
        is_elsewhere = self.renditions.are_made_here and is_absolute(picture.file)
        url = None if is_elsewhere else self.download_url(picture.file)
        address = f"{self.api}/{endpoint}/{picture.id}/renditions/"
        return self.renditions.describe(picture, name, address, url)

    def trail(self, url_path: str) -> list[str]:
        """The paths of the pages above a page, from the home page of its site down; from the top
        if it is in no site."""
        site_and_home = self._locate(url_path)
        first = len(site_and_home[1].url_path) if site_and_home else 2
        ends = [end for end, sign in enumerate(url_path, 1) if sign == "/"]
        return [url_path[:end] for end in ends[:-1] if end >= first]

    def above(self, url_path: str) -> str | None:
        """The last path of its :meth:`trail`; None if that is empty."""
        site_and_home = self._locate(url_path)
        end = url_path.rfind("/", 0, -1) + 1
        is_first = end < 2 or (site_and_home and site_and_home[1].url_path == url_path)
        return None if is_first else url_path[:end]

    def _locate(self, url_path: str) -> tuple[Site, Home] | None:
        return next((tree for tree in self._trees if url_path.startswith(tree[1].url_path)), None)


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


class Origins:
    """Finds the addresses for requests of one instance; those for recent ones are cached."""

    def __init__(self, settings: Settings, page_urls: PageURLs, renditions: Renditions) -> None:
        self.settings, self.page_urls, self.renditions = settings, page_urls, renditions
        self.find = lru_cache(MOST_HOSTS)(partial(Addresses, self))

    def base(self, host: Host, root_path: str) -> str:
        """Scheme, host and path that all addresses except those of pages start with.

        The parameters are those of the request.
        """
        if self.settings.base_url is not None:
            return self.settings.base_url
        # Proxies pass the path of the mount point in many forms.
        path = root_path.strip("/")
        return host.address + (quote(f"/{path}") if path else "")

"""The sites of the content, with the hosts and paths by which requests and pages find them.

Hosts and paths are compared and written in one form.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from encodings.idna import nameprep
from functools import cached_property, lru_cache
from ipaddress import IPv6Address
from typing import NamedTuple
from urllib.parse import quote, unquote_to_bytes

from flask_contentapi.errors import BadRequest, NotFound

_ABSOLUTE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:)?//")
_PORTS = {"http": 80, "https": 443}
#: A host in lower case. Names may have underscores, as container networks use them.
_HOST = re.compile(
    r"(?:(?P<name>[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*)\.?|\[(?P<ipv6>[0-9a-f:.]+)\])"
    r"(?::(?P<port>[0-9]{1,5})?)?"
)
#: The maximum length of a name, and of what may follow it, in characters.
_LONGEST, _PORT = 253, len(".:65535")
#: The dots between the labels of international names.
_DOTS = re.compile("[.\u3002\uff0e\uff61]")
#: Letters that international names keep; the older standard that ``nameprep`` follows did not.
_KEPT = re.compile("([ßς])")
#: How many hosts are cached. Without trusted hosts or a proxy, clients can make up any.
MOST_HOSTS = 256


class Host(NamedTuple):
    """What addresses start with: scheme, host name and port, in their normal form.

    :param scheme: ``http`` or ``https``.
    :param name: the host name; "" for a host that cannot be written into an address.
    """

    scheme: str
    name: str
    port: int

    @classmethod
    def of(cls, scheme: str, text: str) -> Host:
        """The host of an address.

        :param scheme: the scheme, in any case; all but ``https`` count as ``http``.
        :param text: the host, with or without a port.
        """
        scheme = "https" if scheme.lower() == "https" else "http"
        try:
            name, port = read_host(text)
        except ValueError:
            name, port = "", None
        return cls(scheme, name, port or _PORTS[scheme])

    def __str__(self) -> str:
        """The host, with the port unless it is the default of the scheme."""
        return self.name if self.port == _PORTS[self.scheme] else f"{self.name}:{self.port}"

    @property
    def address(self) -> str:
        """Scheme, host and port; "" for a host that cannot be written."""
        return f"{self.scheme}://{self}" if self.name else ""


@lru_cache(MOST_HOSTS)
def read_host(text: str) -> tuple[str, int | None]:
    """A host name in its normal form, and the port or None.

    Names are in lower case, without the last dot, international ones as ``xn--``.

    >>> read_host("Bücher.example.:8000")
    ('xn--bcher-kva.example', 8000)

    :raises ValueError: if it is no host that can be written into an address.
    """
    if len(text) > _LONGEST + _PORT:
        raise ValueError("no host is that long")
    if not text.isascii():
        # Each character by itself, as the lower case of a sigma depends on its neighbours.
        host, colon, number = "".join(map(str.lower, text)).partition(":")
        text = ".".join(map(_label_to_ascii, _DOTS.split(host))) + colon + number
    match = _HOST.fullmatch(text.lower())
    if match is None or len(match["name"] or "") > _LONGEST:
        raise ValueError(f"{text!r} is no host")
    port = int(match["port"]) if match["port"] else None
    if port is not None and port not in range(1, 2**16):
        raise ValueError(f"{text!r} has no port")
    return match["name"] or f"[{IPv6Address(match['ipv6'])}]", port


def _label_to_ascii(label: str) -> str:
    parts = _KEPT.split(label)
    prepared = "".join(part if _KEPT.match(part) else nameprep(part) for part in parts)
    if prepared.isascii():
        return prepared
    return f"xn--{prepared.encode('punycode').decode('ascii')}"


#: The ``site`` parameter.
_NAMED = re.compile(r"(?:\[[^\]]*\]|[^:\[\]]+)(?::[0-9]+)?")


class Home(NamedTuple):
    """A home page: the site's own, or a translation of it.

    :param page: its id.
    :param locale: the language of its tree.
    :param url_path: the slugs down to it, percent-encoded, as ``/home/``.
    """

    page: int
    locale: str | None
    url_path: str


@dataclass(frozen=True)
class Site:
    """One site.

    :param hostname: its host name in its normal form; "" for the unnamed site of content without
        sites.
    :param port: the port it is reached at.
    :param site_name: its display name.
    :param is_default: whether it answers to all hosts that no other site answers to.
    :param homes: its home page, then that page's translations; empty if there is no page.
    """

    hostname: str
    port: int = 80
    site_name: str = ""
    is_default: bool = False
    homes: tuple[Home, ...] = ()

    @cached_property
    def address(self) -> str | None:
        """Scheme, host and port of the addresses of its pages; None for the unnamed site."""
        if not self.hostname:
            return None
        return Host("https" if self.port == 443 else "http", self.hostname, self.port).address

    def language_trees(self, i18n: bool) -> tuple[Home, ...]:
        """The home pages whose trees belong to it; translations only with i18n."""
        return self.homes if i18n else self.homes[:1]

    def scope(self, i18n: bool) -> tuple[int, ...] | None:
        """The ids of those home pages; None if all pages are in the site."""
        if not self.hostname:
            return None
        return tuple(home.page for home in self.language_trees(i18n))

    def paths(self, i18n: bool) -> tuple[str, ...]:
        """The possible starts of its pages' ``url_path``."""
        if not self.hostname:
            return ("/",)
        return tuple(home.url_path for home in self.language_trees(i18n))


class Sites:
    """All sites. Content without sites has an unnamed one, whose home is the first root page.

    :param sites: the sites, in the order of their records.
    :param first_root: the home pages of the unnamed site.
    """

    def __init__(self, sites: Iterable[Site], first_root: tuple[Home, ...] = ()) -> None:
        self._sites = tuple(sites) or (Site("", is_default=True, homes=first_root),)
        hosts = Counter(site.hostname for site in self._sites)
        #: The sites by what names them, the full name first.
        self._named = {f"{site.hostname}:{site.port}": site for site in self._sites}
        self._named |= {s.hostname: s for s in self._sites if hosts[s.hostname] == 1}
        self._default = next((site for site in self._sites if site.is_default), None)

    def __iter__(self) -> Iterator[Site]:
        return iter(self._sites)

    def answering(self, hostname: str, port: int) -> Site | None:
        """The site that answers to a host; None if there is neither one nor a default site.

        :param hostname: the host name, in its normal form.
        """
        full = f"{hostname}:{port}"
        return self._named.get(full) or self._named.get(hostname) or self._default

    def named(self, text: str) -> Site:
        """The site that the ``site`` parameter names.

        :param text: ``hostname`` or ``hostname:port``, in any form.
        :raises BadRequest: if it is neither, or matches several sites.
        :raises NotFound: if it matches none.
        """
        if not _NAMED.fullmatch(text):
            raise BadRequest("site must be <hostname> or <hostname>:<port>.")
        try:
            hostname, port = read_host(text)
        except ValueError:
            raise NotFound(f"There is no site {text!r}.") from None
        known = self._named.get(hostname if port is None else f"{hostname}:{port}")
        if known is not None:
            return known
        ports = sorted(site.port for site in self._sites if site.hostname == hostname)
        if port is not None or not ports:
            raise NotFound(f"There is no site {text!r}.")
        names = " or ".join(f"{hostname}:{port}" for port in ports)
        raise BadRequest(f"Several sites are at {hostname}: ask for {names}.")

    def name(self, site: Site) -> str:
        """The value of the ``site`` parameter for a site, with the port only if it is needed."""
        own = site.hostname
        return own if own in self._named else f"{own}:{site.port}"

    @cached_property
    def aliases(self) -> Mapping[str, Sequence[str]]:
        """For each text in its normal form that names a site, all that name the same site."""
        known: dict[str, Sequence[str]] = {}
        for site in self._sites if self._sites[0].hostname else ():
            names = tuple(dict.fromkeys((f"{site.hostname}:{site.port}", self.name(site))))
            known |= dict.fromkeys(names, names)
        return known

    def locate(self, url_path: str, i18n: bool) -> tuple[Site, Home] | None:
        """The site and the home page that a page is under. The deepest home page wins, then the
        default site, then the first host name.

        :param url_path: the page's slugs, as :attr:`Home.url_path`.
        """
        return next(
            (tree for tree in self.trees[i18n] if url_path.startswith(tree[1].url_path)), None
        )

    @cached_property
    def trees(self) -> Mapping[bool, Sequence[tuple[Site, Home]]]:
        """With i18n and without, all trees of pages that belong to sites, in the order in which
        :meth:`locate` looks at them."""
        by_name = sorted(self._sites, key=lambda site: site.hostname)
        trees = {
            i18n: [(site, home) for site in by_name for home in site.language_trees(i18n)]
            for i18n in (False, True)
        }
        for found in trees.values():
            found.sort(key=lambda tree: (-len(tree[1].url_path), not tree[0].is_default))
        return trees


def quote_slug(slug: str) -> str:
    """A slug, percent-encoded for addresses and ``url_path``."""
    return quote(slug, safe="")


def split_path(html_path: str) -> list[str]:
    """The slugs of a path, without empty ones."""
    return [part for part in html_path.split("/") if part]


def is_absolute(address: str) -> bool:
    """Whether an address names its host, as ``https://example.org/`` or ``//example.org/``."""
    return _ABSOLUTE.match(address) is not None


def normal_path(path: str) -> str:
    """A path with its query in the form in which redirects are compared.

    >>> normal_path("old/?b=%C3%A9&a=1#top")
    '/old?a=1&b=%C3%A9'
    """
    path, _, query = path.partition("#")[0].partition("?")
    parts = sorted(quote(unquote_to_bytes(part), safe="=") for part in query.split("&") if part)
    normal = f"/{quote(unquote_to_bytes(path).strip(b'/'))}"
    return f"{normal}?{'&'.join(parts)}" if parts else normal

"""Hosts, in the one form in which they are compared and written."""

from __future__ import annotations

import re
from encodings.idna import nameprep
from functools import lru_cache
from ipaddress import IPv6Address
from typing import NamedTuple

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
CACHE_SIZE = 256


class Host(NamedTuple):
    """What addresses start with: scheme, host name and port, in their normal form.

    :param scheme: ``http`` or ``https``.
    :param name: the host name; "" for a host that cannot be written into an address.
    :param port: the port.
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


@lru_cache(CACHE_SIZE)
def read_host(text: str) -> tuple[str, int | None]:
    """A host name in its normal form, and the port or None.

    Names are in lower case, without the last dot, international ones as ``xn--``.

    >>> read_host("Bücher.example.:8000")
    ('xn--bcher-kva.example', 8000)

    :raises ValueError: if it is no host that can be written into an address.
    """
    if len(text) > _LONGEST + _PORT:
        raise ValueError("no host is that long")
    match = _HOST.fullmatch(text.lower() if text.isascii() else _to_ascii(text))
    if match is None or len(match["name"] or "") > _LONGEST:
        raise ValueError(f"{text!r} is no host")
    port = int(match["port"]) if match["port"] else None
    if port is not None and port not in range(1, 2**16):
        raise ValueError(f"{text!r} has no port")
    return match["name"] or f"[{IPv6Address(match['ipv6'])}]", port


def _to_ascii(text: str) -> str:
    """An international host in ASCII."""
    # Each character by itself, as the lower case of a sigma depends on its neighbours.
    host, colon, port = "".join(map(str.lower, text)).partition(":")
    return ".".join(map(_label_to_ascii, _DOTS.split(host))) + colon + port


def _label_to_ascii(label: str) -> str:
    parts = _KEPT.split(label)
    prepared = "".join(part if _KEPT.match(part) else nameprep(part) for part in parts)
    if prepared.isascii():
        return prepared
    return f"xn--{prepared.encode('punycode').decode('ascii')}"

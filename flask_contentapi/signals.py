"""What a site can listen to (blinker signals, as Flask's own)."""

from __future__ import annotations

from urllib.parse import quote

from blinker import Namespace

__all__ = ["EVERYTHING", "content_changed", "tag_of"]

_signals = Namespace()

#: The tag of every answer.
EVERYTHING = "content"

#: Sent by a backend after the content it serves has changed, with ``tags``: those of all answers
#: that are different now, or may be. With a ``CMSAPI_CACHE_TAG_HEADER`` answers name their tags,
#: so that what a cache in front of the site holds can be purged exactly. Sent in the process that
#: changed the content, or found it changed.
content_changed = _signals.signal("content-changed")


def tag_of(endpoint: str, identity: int | None = None) -> str:
    """The tag of the answers that show an object, or lists of an endpoint.

    :param endpoint: the endpoint.
    :param identity: the object's id, or None for the lists.
    """
    name = quote(endpoint)
    return name if identity is None else f"{name}-{identity}"

"""The signal that a site can connect to (a blinker signal, like Flask's own), and its tags."""

from __future__ import annotations

from collections.abc import Set
from urllib.parse import quote

from blinker import Namespace

from flask_contentapi.query import ObjectKey

#: The cache tag that every answer has.
EVERYTHING = "content"

#: Sent by a backend after the content it serves has changed, with ``tags``: the cache tags of all
#: answers that may have changed. With ``CMSAPI_CACHE_TAG_HEADER`` answers carry their tags in a
#: header, so that a cache in front of the site can be purged selectively. Sent in the process that
#: changed the content, or noticed the change.
content_changed = Namespace().signal("content-changed")


def tag_of(endpoint: str, identity: int | None = None) -> str:
    """The cache tag of answers that show an object, or of lists of an endpoint.

    :param identity: the object's id, or None for the lists.
    """
    name = quote(endpoint)
    return name if identity is None else f"{name}-{identity}"


#: How many changed objects are named at most; beyond that everything counts as changed.
MOST_NAMED = 1000


def tags_of(changed: Set[ObjectKey]) -> frozenset[str]:
    """The cache tags of the answers that contain some objects, or could contain them."""
    if len(changed) > MOST_NAMED:
        return frozenset([EVERYTHING])
    named = (tag_of(name, identity) for name, identity in changed)
    return frozenset((*named, *(tag_of(name) for name, _ in changed)))

"""What both ways of storing pages by hand work out when they read the records."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from bench.content import Record

__all__ = ["Place", "placed", "plain_text"]

_TAG = re.compile("<[^>]*>")


class Place(NamedTuple):
    """Where a page stands.

    :param path: sorts pages in the order of the tree; those below a page begin with its own.
    :param url: its address on the site.
    :param public: whether everybody may see it.
    :param above: the ids of the pages above it.
    :param open: whether nothing restricts it and what is below it.
    """

    path: str
    url: str
    public: bool
    above: tuple[int, ...]
    open: bool


def placed(pages: Iterable[Record]) -> Iterator[tuple[Record, Place]]:
    """Pages with where they stand; parents come first."""
    places: dict[int | None, Place] = {None: Place("", "/", True, (), True)}
    children: dict[int | None, int] = {}
    for page in pages:
        above = places[page["parent"]]
        number = children[page["parent"]] = children.get(page["parent"], 0) + 1
        slug = page["locale"] if page["parent"] is None else page["slug"]
        is_open = above.open and "restriction" not in page
        is_public = is_open and page.get("live", True)
        place = places[page["id"]] = Place(
            f"{above.path}{number:06}",
            f"{above.url}{slug}/",
            is_public,
            above.above if page["parent"] is None else (*above.above, page["parent"]),
            is_open,
        )
        yield page, place


def plain_text(page: Record) -> str:
    """What is searched of a page besides its title."""
    return f"{page.get('intro', '')} {_TAG.sub(' ', page.get('body', ''))}"

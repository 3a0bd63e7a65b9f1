"""What both hand-written APIs derive from the records when they load them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from bench.content import Record

__all__ = ["Place", "placed", "plain_text"]

_TAG = re.compile("<[^>]*>")


class Place(NamedTuple):
    """The place of a page in the tree.

    :param path: sorts pages in tree order; the paths of pages below a page start with its own.
    :param url: its address on the site.
    :param public: whether everybody may see it.
    :param above: the ids of the pages above it.
    :param open: whether neither it nor a page above it is restricted.
    """

    path: str
    url: str
    public: bool
    above: tuple[int, ...]
    open: bool


def placed(pages: Iterable[Record]) -> Iterator[tuple[Record, Place]]:
    """Pages with their places; parents have to come first."""
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
    """The text of a page that is searched in addition to its title."""
    return f"{page.get('intro', '')} {_TAG.sub(' ', page.get('body', ''))}"

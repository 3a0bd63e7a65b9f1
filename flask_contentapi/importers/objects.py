"""What there is at a source: the objects of an API, their types, and where they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from flask_contentapi.importers.inference import Shapes

Item = dict[str, Any]
#: The endpoints of what is in folders.
FILED = ("pages", "images", "documents")
#: The label of pages whose type the source does not tell.
UNDECLARED = "undeclared.Page"


class OriginalSite(NamedTuple):
    """A site.

    :param parameter: the ``site`` parameter that asks for it; "" for the one that answers anyway.
    :param home: its home page.
    :param address: the address of that page, or None.
    :param name: its display name, or "".
    """

    parameter: str
    home: int
    address: str | None
    name: str = ""


class PlacedPage(NamedTuple):
    """A page in the tree.

    :param id: its id.
    :param label: the label of its type.
    :param parent: the page above it, or None.
    :param site: the index of its site.
    :param slug: for a page that stands for a hidden one, its slug; else "".
    """

    id: int
    label: str
    parent: int | None
    site: int
    slug: str = ""


class Objects(ABC):
    """The content of a source.

    :ivar tree: the pages in tree order.
    :ivar sites: the sites.
    :ivar ids: the ids of all objects, by endpoint.
    :ivar shapes: the types.
    :ivar limit_max: the highest ``limit``; None: there is none.
    :ivar i18n: whether pages have languages to filter by.
    :ivar locales: the languages of pages.
    :ivar prefixes: what the addresses of each language start with, if it is not always "".
    :ivar translation_keys: what pages and their translations share.
    :ivar rich_text_format: the format of rich text that is not asked for.
    :ivar base: the address that those of files and redirects start from, or "".
    :ivar hidden: by section and id, values that answers do not show.
    """

    def __init__(self) -> None:
        self.tree: list[PlacedPage] = []
        self.sites: list[OriginalSite] = []
        self.ids: dict[str, set[int]] = {"pages": set()}
        self.shapes = Shapes()
        self.limit_max: int | None = 20
        self.i18n = False
        self.locales: dict[str, None] = {}
        self.prefixes: dict[str, str] = {}
        self.translation_keys: dict[int, str] = {}
        self.rich_text_format = "db_html"
        self.base = ""
        self.hidden: dict[tuple[str, int], Item] = {}

    def note_translations(self, ids: Collection[int]) -> None:
        """Notes that pages are translations of each other."""
        if len({*ids}) > 1:
            self.translation_keys.update(dict.fromkeys(ids, f"page-{min(ids)}"))

    @abstractmethod
    def pages(self) -> Iterator[tuple[PlacedPage, Item | None]]:
        """All pages in tree order, each with what an answer has of it; None if it stands for a
        hidden one."""

    @abstractmethod
    def others(self, endpoint: str) -> Iterator[tuple[str, Item]]:
        """All objects of another endpoint, each with the label of its type."""

"""The twelve workloads that are measured, each with varying requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from bench.content import ABOVE, Magazine, Record

__all__ = ["CONDITIONAL", "PREFIX", "WORKLOADS", "Workload", "addresses"]

PREFIX = "/api/v2"
PAGES = f"{PREFIX}/pages/"
ARTICLES = f"{PAGES}?type=magazine.ArticlePage"
#: How many addresses a workload has, so that cached answers do not pass for speed.
VARIANTS = 20
#: The name of an additional workload: all answers that have an ETag, requested with it.
CONDITIONAL = "304"


class Sample:
    """Objects of the content that appear in requests.

    :param magazine: the content.
    :param pages: the records of its pages.
    """

    def __init__(self, magazine: Magazine, pages: Iterable[Record]) -> None:
        self.size = magazine.counts["pages"]
        self.tags = magazine.tags[:VARIANTS]
        words = magazine.languages["en"].words
        # Pairs of words: some articles have one of them, and few have both.
        self.pairs = list(zip(words[380:], words[420:], strict=False))[:VARIANTS]
        self.sections: list[int] = []
        self.topics: list[int] = []
        self.articles: list[Record] = []
        self.paths: list[str] = []
        self._look(pages)

    def _look(self, pages: Iterable[Record]) -> None:
        """Chooses objects from all levels, and articles from all years."""
        paths: dict[int | None, str] = {}
        hidden: set[int | None] = set()
        step = (self.size - ABOVE) // (2 * VARIANTS)
        for page in pages:
            identity, parent = page["id"], page["parent"]
            slug = page["locale"] if parent is None else page["slug"]
            path = f"{paths.get(parent, '/')}{slug}/"
            is_hidden = parent in hidden or "restriction" in page
            if identity <= ABOVE:
                paths[identity] = path
                if is_hidden:
                    hidden.add(identity)
            if is_hidden or not page.get("live", True):
                continue
            if page["type"] == "magazine.SectionPage":
                self.sections.append(identity)
            elif page["type"] == "magazine.TopicPage":
                self.topics.append(identity)
            elif parent in paths and len(self.articles) * step <= identity - ABOVE:
                self.articles.append(page)
                self.paths.append(path)


@dataclass(frozen=True)
class Workload:
    """One kind of request.

    :param name: its short name.
    :param title: what it requests.
    :param make: makes its addresses from the sample.
    :param ranked: whether the order of matches is up to the engine.
    """

    name: str
    title: str
    make: Callable[[Sample], Iterable[str]]
    ranked: bool = False


WORKLOADS: Sequence[Workload] = (
    Workload("W1", "list, defaults", lambda s: [PAGES]),
    Workload("W2", "one type, fields=*", lambda s: [f"{ARTICLES}&fields=*&limit=20"]),
    Workload(
        "W3",
        "three fields, one nested",
        lambda s: [f"{ARTICLES}&fields=title,date,photo(width,height)&limit=20"],
    ),
    Workload("W4", "exact slug", lambda s: [f"{PAGES}?slug={page['slug']}" for page in s.articles]),
    Workload(
        "W5",
        "child_of, in menus",
        lambda s: [f"{PAGES}?child_of={page}&show_in_menus=true" for page in s.topics],
    ),
    Workload(
        "W6",
        "descendant_of, newest first",
        lambda s: [
            f"{PAGES}?descendant_of={page}&order=-first_published_at&limit=20"
            for page in s.sections
        ],
    ),
    Workload(
        "W7",
        "offset at nine tenths",
        lambda s: [
            f"{PAGES}?offset={s.size * 9 // 10 + 3 * number}&limit=20" for number in range(VARIANTS)
        ],
    ),
    Workload(
        "W8",
        "search, two words",
        lambda s: [f"{PAGES}?search={a}+{b}&search_operator=and" for a, b in s.pairs],
        ranked=True,
    ),
    Workload("W9", "detail", lambda s: [f"{PAGES}{page['id']}/" for page in s.articles]),
    Workload(
        "W10",
        "find/ by path",
        lambda s: [f"{PAGES}find/?html_path={quote(path)}" for path in s.paths],
    ),
    Workload("W11", "images", lambda s: [f"{PREFIX}/images/?limit=20"]),
    Workload(
        "W12",
        "tag, by title",
        lambda s: [f"{ARTICLES}&tags={tag}&order=title&limit=20" for tag in s.tags],
    ),
)


def addresses(magazine: Magazine, pages: Iterable[Record]) -> dict[str, list[str]]:
    """The addresses of each workload, by its name.

    :param magazine: the content.
    :param pages: the records of its pages.
    """
    sample = Sample(magazine, pages)
    return {workload.name: [*workload.make(sample)][:VARIANTS] for workload in WORKLOADS}

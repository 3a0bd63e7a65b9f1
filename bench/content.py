"""Content to measure with: any number of pages, and always the same ones.

It is a magazine in two languages. Each has a home page, sections, topics and, written over many
years, articles. Some articles continue another one and are below it. A few are drafts, and one
topic of each language is only for visitors who have logged in. Records are made one after another,
so that a million pages need no more memory than a thousand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any

import orjson

__all__ = ["ABOVE", "HOST", "LOCALES", "SECTIONS", "TOPICS", "Magazine", "Record", "Records"]

HOST = "magazine.example"
LOCALES = ("en", "de")
#: The number of sections of a language, and of topics in a section.
SECTIONS, TOPICS = 8, 12
#: The number of pages above the articles.
ABOVE = len(LOCALES) * (1 + SECTIONS + SECTIONS * TOPICS)
#: The number of different words of a language, and of tags.
WORDS, TAGS = 3000, 200
#: One in this many articles is a draft, continues another one, or is in menus.
DRAFT, SEQUEL, MENU = 50, 25, 20
BEGAN = datetime(2005, 1, 1, tzinfo=UTC)
YEARS = timedelta(days=20 * 365)
#: Widths and heights of pictures.
FORMATS = ((1600, 900), (1200, 800), (800, 800), (600, 900))

Record = dict[str, Any]


class Language:
    """The words of a language. As in real texts, a few of them make up most of a text.

    :param code: the language's code.
    """

    def __init__(self, code: str) -> None:
        random = Random(f"words {code}")
        consonants = {"en": "bdfglmnprst", "de": "hjkmrtvwz"}[code]
        made: dict[str, None] = {}
        while len(made) < WORDS:
            syllables = random.randint(2, 4)
            made["".join(_syllable(random, consonants) for _ in range(syllables))] = None
        #: All words, the most frequent first.
        self.words = list(made)
        self._weights = list(accumulate(1 / (rank + 10) for rank in range(WORDS)))

    def sentence(self, random: Random, words: int) -> str:
        """A sentence with a number of words."""
        chosen = random.choices(self.words, cum_weights=self._weights, k=words)
        return " ".join(chosen).capitalize() + "."

    def title(self, random: Random) -> str:
        """A title, in which all words are equally frequent."""
        return " ".join(random.choices(self.words, k=random.randint(3, 6))).capitalize()


def _syllable(random: Random, consonants: str) -> str:
    return random.choice(consonants) + random.choice("aeiou")


class Magazine(Mapping[str, Iterable[Any]]):
    """The whole content, as records by section.

    :param pages: the number of pages.
    """

    def __init__(self, pages: int) -> None:
        if pages <= ABOVE:
            raise ValueError(f"There have to be more than {ABOVE} pages.")
        self.counts = {"pages": pages, "images": pages // 10, "documents": pages // 20}
        self.languages = {code: Language(code) for code in LOCALES}
        self.tags = sorted(Random("tags").sample(self.languages["en"].words, TAGS))

    def __iter__(self) -> Iterator[str]:
        return iter(("locales", "sites", "images", "documents", "pages"))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __getitem__(self, section: str) -> Iterable[Any]:
        if section not in list(self):
            raise KeyError(section)
        made: Iterable[Any] = getattr(self, f"_{section}")()
        return made

    def _locales(self) -> Iterable[str]:
        return LOCALES

    def _sites(self) -> Iterable[Record]:
        return [{"hostname": HOST, "root_page": 1, "is_default": True}]

    def _images(self) -> Iterator[Record]:
        random = Random("images")
        for identity in range(1, self.counts["images"] + 1):
            width, height = random.choice(FORMATS)
            file = self._file(random, identity, "magazine.Photo", f"photos/{identity:06}.jpg")
            yield {**file, "width": width, "height": height}

    def _documents(self) -> Iterator[Record]:
        random = Random("documents")
        for identity in range(1, self.counts["documents"] + 1):
            yield self._file(random, identity, "magazine.Paper", f"papers/{identity:06}.pdf")

    def _file(self, random: Random, identity: int, label: str, file: str) -> Record:
        title, tags = self.languages["en"].title(random), self._some_tags(random, 0, 3)
        return {"id": identity, "type": label, "title": title, "file": file, "tags": tags}

    def _some_tags(self, random: Random, least: int, most: int) -> list[str]:
        return sorted(random.sample(self.tags, random.randint(least, most)))

    # Pages.

    def _pages(self) -> Iterator[Record]:
        topics = []
        for record in self._above():
            yield record
            if record["type"] == "magazine.TopicPage":
                topics.append(record)
        yield from self._articles(topics)

    def _above(self) -> Iterator[Record]:
        """The home pages, the sections and the topics."""
        random = Random("above")
        parents: list[Record] = [{"id": None, "locale": code} for code in LOCALES]
        identity = 0
        for name, count in (("Home", 1), ("Section", SECTIONS), ("Topic", TOPICS)):
            level = []
            for parent in (parent for parent in parents for _ in range(count)):
                identity += 1
                page = self._page(random, identity, f"magazine.{name}Page", parent)
                level.append({**page, "show_in_menus": True})
            if name == "Home":
                level = [{**home, "translation_key": "home"} for home in level]
            if name == "Topic":
                for private in (level[TOPICS], level[-1]):
                    private["restriction"] = {"type": "login"}
            yield from level
            parents = level

    def _articles(self, topics: list[Record]) -> Iterator[Record]:
        random = Random("articles")
        # The article in each topic that the next sequel continues.
        begun = {topic["id"]: topic for topic in topics}
        links = 0
        for identity in range(ABOVE + 1, self.counts["pages"] + 1):
            topic = random.choice(topics)
            is_sequel = random.randrange(SEQUEL) == 0
            parent = begun[topic["id"]] if is_sequel else topic
            page = self._page(random, identity, "magazine.ArticlePage", parent)
            page["live"] = random.randrange(DRAFT) > 0
            page["show_in_menus"] = random.randrange(MENU) == 0
            page.update(self._article(random, page, links))
            links += len(page["links"])
            yield page
            if not is_sequel and page["live"]:
                begun[topic["id"]] = {"id": identity, "locale": topic["locale"]}

    def _page(self, random: Random, identity: int, label: str, parent: Record) -> Record:
        """The fields that every page has."""
        language = self.languages[parent["locale"]]
        title = language.title(random)
        return {
            "id": identity,
            "type": label,
            "parent": parent["id"],
            "title": title,
            "slug": f"{title.lower().replace(' ', '-')}-{identity}",
            "locale": parent["locale"],
            "first_published_at": self._published(random, identity),
            "seo_title": title,
            "search_description": language.sentence(random, 12),
        }

    def _published(self, random: Random, identity: int) -> str:
        """When a page was published: roughly in the order of ids."""
        written = BEGAN + YEARS * (identity / self.counts["pages"])
        delay = timedelta(minutes=random.randrange(60 * 24 * 30))
        return f"{written + delay:%Y-%m-%dT%H:%M:00Z}"

    def _article(self, random: Random, page: Record, links: int) -> Record:
        """The fields that only articles have. Relations point to older pages."""
        language = self.languages[page["locale"]]
        paragraphs = (language.sentence(random, random.randint(60, 100)) for _ in range(3))
        return {
            "date": page["first_published_at"][:10],
            "intro": language.sentence(random, 25),
            "body": "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs),
            "photo": self._perhaps(random, self.counts["images"]),
            "attachment": self._perhaps(random, self.counts["documents"]),
            "see_also": self._perhaps(random, page["id"] - 1),
            "tags": self._some_tags(random, 1, 5),
            "links": [
                {
                    "id": links + number,
                    "title": language.title(random),
                    "url": f"https://elsewhere.example/{random.randrange(10**6)}",
                }
                for number in range(1, random.randint(1, 4))
            ],
        }

    @staticmethod
    def _perhaps(random: Random, last: int) -> int | None:
        """A random id up to the last one; None in one of five cases."""
        return None if random.randrange(5) == 0 else random.randint(1, last)


class Records(Mapping[str, Iterable[Any]]):
    """Content in a folder, with a file of JSON lines for each section.

    :param folder: the folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @staticmethod
    def write(content: Mapping[str, Iterable[Any]], folder: Path) -> Records:
        """Writes content into a folder."""
        for section, records in content.items():
            with (folder / f"{section}.jsonl").open("wb") as file:
                file.writelines(orjson.dumps(r, option=orjson.OPT_APPEND_NEWLINE) for r in records)
        return Records(folder)

    def __iter__(self) -> Iterator[str]:
        return (path.stem for path in sorted(self._folder.glob("*.jsonl")))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __getitem__(self, section: str) -> Iterator[Any]:
        path = self._folder / f"{section}.jsonl"
        if not path.exists():
            raise KeyError(section)
        return self._lines(path)

    @staticmethod
    def _lines(path: Path) -> Iterator[Any]:
        with path.open("rb") as file:
            yield from map(orjson.loads, file)

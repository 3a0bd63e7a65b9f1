"""Content to measure with: any number of pages, and always the same ones.

It is a magazine in two languages. Each has a home page, sections, topics and, written over twenty
years, articles. A few articles are drafts, and one topic of each language is only for members.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate, count, product
from random import Random
from typing import Any

Record = dict[str, Any]

HOST, PREFIX = "magazine.example", "/api/v2"
#: The letters of each language, apart from the vowels.
LETTERS = {"en": "bdfglmnprst", "de": "hjkmrtvwz"}
SECTIONS, TOPICS = 8, 12
#: The number of pages above the articles.
ABOVE = len(LETTERS) * (1 + SECTIONS + SECTIONS * TOPICS)
BEGAN, YEARS = datetime(2005, 1, 1, tzinfo=UTC), timedelta(days=20 * 365)
#: The words of each language, the most frequent first.
WORDS = {
    code: Random(code).sample([*map("".join, product(*[letters, "aeiou"] * 3))], 3000)
    for code, letters in LETTERS.items()
}
#: How often words are used: a few make up most of a text.
WEIGHTS = [*accumulate(1 / (rank + 10) for rank in range(3000))]
TAGS = sorted(Random("tags").sample(WORDS["en"], 200))
TEASER = "title,date,photo(width,height)"
#: How many addresses a workload has, and how many if none may repeat: more than caches keep.
SOME, FRESH = 20, 6000


def records(size: int) -> Mapping[str, Iterable[Any]]:
    """Content with a number of pages, by section; it is made while it is read, once."""
    if size <= ABOVE:
        raise SystemExit(f"There have to be more than {ABOVE} pages.")
    sites = [{"hostname": HOST, "root_page": 1, "is_default": True}]
    photos, pages = _photos(size // 10), _pages(size)
    return {"locales": [*LETTERS], "sites": sites, "images": photos, "pages": pages}


def _text(random: Random, locale: str, least: int, most: int) -> str:
    words = random.choices(WORDS[locale], cum_weights=WEIGHTS, k=random.randint(least, most))
    return " ".join(words).capitalize()


def _photos(number: int) -> Iterator[Record]:
    random = Random("photos")
    for id in range(1, number + 1):
        record = {"id": id, "type": "magazine.Photo", "title": _text(random, "en", 3, 6)}
        record |= {"width": random.choice((600, 800, 1600)), "height": 900}
        tags = sorted(random.sample(TAGS, random.randint(0, 3)))
        yield record | {"file": f"photos/{id:06}.jpg", "tags": tags}


def _pages(size: int) -> Iterator[Record]:
    random, ids, links = Random("pages"), count(1), count(1)

    def page(name: str, parent: Record, **fields: Any) -> Record:
        id, locale = next(ids), parent["locale"]
        title = _text(random, locale, 3, 6)
        at = BEGAN + YEARS * (id / size) + timedelta(minutes=random.randrange(60 * 24 * 30))
        record = {"id": id, "type": f"magazine.{name}Page", "parent": parent["id"]}
        record |= {"title": title, "slug": f"{title.lower().replace(' ', '-')}-{id}"}
        record |= {"locale": locale, "first_published_at": f"{at:%Y-%m-%dT%H:%M:00Z}"}
        record |= {"seo_title": title, "search_description": _text(random, locale, 12, 12)}
        return {**record, "show_in_menus": True, **fields}

    homes = [page("Home", {"id": None, "locale": code}, translation_key="home") for code in LETTERS]
    sections = [page("Section", home) for home in homes for _ in range(SECTIONS)]
    topics = [page("Topic", section) for section in sections for _ in range(TOPICS)]
    for members in topics[:: SECTIONS * TOPICS]:
        members["restriction"] = {"type": "login"}
    yield from homes + sections + topics
    for id in range(ABOVE + 1, size + 1):
        article = page("Article", random.choice(topics))
        locale = article["locale"]
        article |= {"live": random.randrange(50) > 0, "show_in_menus": random.randrange(20) == 0}
        article["date"] = article["first_published_at"][:10]
        article["intro"] = _text(random, locale, 25, 25)
        article["body"] = "".join(f"<p>{_text(random, locale, 60, 100)}.</p>" for _ in range(3))
        article["tags"] = sorted(random.sample(TAGS, random.randint(1, 5)))
        # Relations point to older pages.
        for field, last in {"photo": size // 10, "see_also": id - 1}.items():
            article[field] = random.randint(1, last) if random.randrange(5) else None
        urls = [f"https://elsewhere.example/{number}" for number in range(random.randrange(4))]
        article["links"] = [
            {"id": next(links), "title": _text(random, locale, 3, 6), "url": url} for url in urls
        ]
        yield article


def addresses(size: int, rows: Callable[..., Any]) -> Iterator[tuple[str, str, list[str]]]:
    """Workloads, ``some`` or ``fresh``, and addresses, which are repeated or do not repeat.

    :param rows: asks the tables made by hand.
    """
    sql = "SELECT id, slug, url, locale FROM page WHERE type = ? ORDER BY id"
    types = ("Section", "Topic", "Article")
    sections, topics, articles = (rows(sql, f"magazine.{name}Page") for name in types)
    windows = [f"&offset={first}&limit={limit}" for limit in range(20, 32) for first in range(500)]
    limits, deep = [f"&limit={limit}" for limit in range(20, 60)], size * 9 // 10
    # Some articles have one of two such words, and few have both.
    pairs = [*product(WORDS["en"][380:458], WORDS["en"][458:536])]
    typed, newest = "pages/?type=magazine.ArticlePage", "&order=-first_published_at"
    # What is asked, for each of some values, and how that varies if no address repeats.
    asked: list[tuple[str, str, Sequence[Sequence[Any]], Sequence[str]]] = [
        ("list, defaults", "pages/?", [()], windows),
        ("articles, fields=*", f"{typed}&fields=*", [()], windows),
        ("three fields, one nested", f"{typed}&fields={TEASER}", [()], windows),
        ("exact slug", "pages/?slug={1}", articles, [""]),
        ("child_of, in menus", "pages/?child_of={0}&show_in_menus=true", topics, limits),
        ("descendant_of, newest first", "pages/?descendant_of={0}" + newest, sections, windows),
        ("offset at nine tenths", "pages/?offset={0}", [(deep + n,) for n in range(500)], limits),
        ("search, two words", "pages/?search={0}+{1}&search_operator=and", pairs, [""]),
        ("detail", "pages/{0}/", articles, [""]),
        ("find/ by path", "pages/find/?html_path={2}&locale={3}", articles, [""]),
        ("images", "images/?", [()], windows),
        ("tag, by title", f"{typed}&tags={{0}}&order=title", [(tag,) for tag in TAGS], windows),
    ]
    for number, (title, start, values, ends) in enumerate(asked, 1):
        name = f"W{number} {title}"
        starts = [f"{PREFIX}/{start.format(*of)}" for of in values]
        some = starts[:: len(starts) // SOME or 1][:SOME]
        yield name, "some", [start.rstrip("?") for start in some]
        each = ends[: FRESH // len(starts) or 1]
        fresh = [f"{start}{end}".replace("?&", "?") for start in starts for end in each]
        yield name, "fresh", Random(name).sample(fresh, min(FRESH, len(fresh)))

"""Content to measure with: any number of pages, and always the same ones.

It is a magazine in two languages. Each has a home page, sections, topics and, written over twenty
years, articles. A few articles are drafts, and one topic of each language is only for members.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import accumulate, product
from pathlib import Path
from random import Random
from typing import Any

import orjson

from bench.magazine import HOST, PREFIX

Record = dict[str, Any]

LOCALES = {"en": "bdfglmnprst", "de": "hjkmrtvwz"}
SECTIONS, TOPICS = 8, 12
#: The number of pages above the articles.
ABOVE = len(LOCALES) * (1 + SECTIONS + SECTIONS * TOPICS)
BEGAN, YEARS = datetime(2005, 1, 1, tzinfo=UTC), timedelta(days=20 * 365)
#: How many addresses a workload has, and how many if none may repeat: more than caches keep.
SOME, FRESH = 20, 6000
#: By how many offsets those of a list differ; then the limit differs as well.
OFFSETS = 500
#: How often words are used, the most frequent first: a few make up most of a text.
WEIGHTS = list(accumulate(1 / (rank + 10) for rank in range(3000)))


def _words(code: str) -> list[str]:
    random, made = Random(f"words {code}"), dict[str, None]()
    while len(made) < len(WEIGHTS):
        letters = [LOCALES[code], "aeiou"] * random.randint(2, 4)
        made["".join(map(random.choice, letters))] = None
    return list(made)


#: The words of each language, the most frequent first.
WORDS = {code: _words(code) for code in LOCALES}
TAGS = sorted(Random("tags").sample(WORDS["en"], 200))


def write(size: int, folder: Path) -> None:
    """Writes content with a number of pages: a file of JSON lines for each section."""
    if size <= ABOVE:
        raise SystemExit(f"There have to be more than {ABOVE} pages.")
    site = {"hostname": HOST, "root_page": 1, "is_default": True}
    content = {"locales": LOCALES, "sites": [site], "images": _photos(size // 10)}
    for section, records in {**content, "pages": _pages(size)}.items():
        with (folder / f"{section}.jsonl").open("wb") as file:
            file.writelines(orjson.dumps(r, option=orjson.OPT_APPEND_NEWLINE) for r in records)


def _photos(count: int) -> Iterator[Record]:
    random = Random("photos")
    for number in range(1, count + 1):
        record = {"id": number, "type": "magazine.Photo", "title": _title(random, "en")}
        record |= {"width": random.choice((600, 800, 1600)), "height": 900}
        yield record | {"file": f"photos/{number:06}.jpg", "tags": _tags(random, 0, 3)}


def _title(random: Random, locale: str) -> str:
    return " ".join(random.choices(WORDS[locale], k=random.randint(3, 6))).capitalize()


def _sentence(random: Random, locale: str, length: int) -> str:
    words = random.choices(WORDS[locale], cum_weights=WEIGHTS, k=length)
    return " ".join(words).capitalize() + "."


def _tags(random: Random, least: int, most: int) -> list[str]:
    return sorted(random.sample(TAGS, random.randint(least, most)))


def _pages(size: int) -> Iterator[Record]:
    random, number, links = Random("pages"), 0, 0

    def page(name: str, parent: Record) -> Record:
        title, locale = _title(random, parent["locale"]), parent["locale"]
        at = BEGAN + YEARS * (number / size) + timedelta(minutes=random.randrange(60 * 24 * 30))
        record = {"id": number, "type": f"magazine.{name}Page", "parent": parent["id"]}
        record |= {"title": title, "slug": f"{title.lower().replace(' ', '-')}-{number}"}
        record |= {"locale": locale, "first_published_at": f"{at:%Y-%m-%dT%H:%M:00Z}"}
        return record | {"seo_title": title, "search_description": _sentence(random, locale, 12)}

    parents: list[Record] = [{"id": None, "locale": code} for code in LOCALES]
    for name, count in (("Home", 1), ("Section", SECTIONS), ("Topic", TOPICS)):
        level = []
        for parent in (parent for parent in parents for _ in range(count)):
            number += 1
            level.append({**page(name, parent), "show_in_menus": True})
            if name == "Home":
                level[-1]["translation_key"] = "home"
        if name == "Topic":
            for members in (level[TOPICS], level[-1]):
                members["restriction"] = {"type": "login"}
        yield from level
        parents = level
    while number < size:
        number += 1
        record = page("Article", random.choice(parents))
        locale = record["locale"]
        texts = (_sentence(random, locale, random.randint(60, 100)) for _ in range(3))
        record |= {"live": random.randrange(50) > 0, "show_in_menus": random.randrange(20) == 0}
        record |= {"date": record["first_published_at"][:10], "tags": _tags(random, 1, 5)}
        record["intro"] = _sentence(random, locale, 25)
        record["body"] = "".join(f"<p>{text}</p>" for text in texts)
        # Relations point to older pages.
        last = {"photo": size // 10, "see_also": number - 1}
        for name, most in last.items():
            record[name] = random.randint(1, most) if random.randrange(5) else None
        record["links"] = []
        for _ in range(random.randrange(4)):
            links += 1
            url = f"https://elsewhere.example/{random.randrange(10**6)}"
            record["links"].append({"id": links, "title": _title(random, locale), "url": url})
        yield record


#: The workloads: what is asked, for each of some values, and how that varies if no address repeats.
ARTICLES, WINDOW = "pages/?type=magazine.ArticlePage", "&offset={n}&limit={m}"
WORKLOADS = [
    ("list, defaults", "pages/?", WINDOW),
    ("articles, fields=*", f"{ARTICLES}&fields=*", WINDOW),
    ("three fields, one nested", f"{ARTICLES}&fields=title,date,photo(width,height)", WINDOW),
    ("exact slug", "pages/?slug={article[1]}", ""),
    ("child_of, in menus", "pages/?child_of={topic[0]}&show_in_menus=true", "&limit={k}"),
    (
        "descendant_of, newest first",
        "pages/?descendant_of={section[0]}&order=-first_published_at",
        WINDOW,
    ),
    ("offset at nine tenths", "pages/?offset={deep}", "&limit={k}"),
    ("search, two words", "pages/?search={pair[0]}+{pair[1]}&search_operator=and", ""),
    ("detail", "pages/{article[0]}/", ""),
    ("find/ by path", "pages/find/?html_path={article[2]}", ""),
    ("images", "images/?", WINDOW),
    ("tag, by title", f"{ARTICLES}&tags={{tag}}&order=title", WINDOW),
]


def addresses(size: int, rows: Callable[..., Any]) -> dict[str, dict[str, list[str]]]:
    """The addresses of each workload: ``some``, which are repeated, and ``fresh`` ones.

    :param rows: asks the tables made by hand.
    """
    sql = "SELECT id, slug, url FROM page WHERE type = ? ORDER BY id"
    values: dict[str, Iterable[Any]] = {
        name: rows(sql, f"magazine.{name.title()}Page") for name in ("section", "topic", "article")
    }
    # Some articles have one of two such words, and few have both.
    values["pair"] = [*product(WORDS["en"][380:458], WORDS["en"][458:536])]
    values["deep"], values["tag"] = range(size * 9 // 10, size * 9 // 10 + OFFSETS), TAGS
    asked: dict[str, dict[str, list[str]]] = {"some": {}, "fresh": {}}
    for number, (title, start, vary) in enumerate(WORKLOADS, 1):
        name = next((name for name in values if f"{{{name}" in start), "tag")
        starts = [*dict.fromkeys(f"{PREFIX}/{start}".format(**{name: v}) for v in values[name])]
        variants = range(FRESH // len(starts) if vary else 1)
        ends = [vary.format(n=n % OFFSETS, m=20 + n // OFFSETS, k=20 + n) for n in variants]
        made = [(start + end).replace("?&", "?") for start in starts for end in ends]
        name = f"W{number} {title}"
        some = starts[:: max(1, len(starts) // SOME)][:SOME]
        asked["some"][name] = [start.rstrip("?") for start in some]
        asked["fresh"][name] = Random(name).sample(made, min(FRESH, len(made)))
    return asked

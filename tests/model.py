"""A slow, obvious model of the API: what a request finds in content records.

It works on records as they are, plain dictionaries, and shares no code with the package, so that
the two agree only if both are right. It returns ids in order and their total, or the status of an
error.
"""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote

Record = Mapping[str, Any]
Content = Mapping[str, list[Any]]

# The fields of the types in tests/generated.py, with their kinds.

PAGE = {
    "id": "integer",
    "title": "text",
    "slug": "text",
    "show_in_menus": "boolean",
    "seo_title": "text",
    "search_description": "text",
    "first_published_at": "datetime",
    "expires_at": "datetime",
    "alias_of": "pages",
}
NOTE = {
    "text": "text",
    "rich": "rich",
    "number": "integer",
    "ratio": "float",
    "amount": "decimal",
    "exact": "decimal",
    "flag": "boolean",
    "day": "date",
    "clock": "time",
    "moment": "datetime",
    "tags": "tags",
    "picture": "images",
    "paper": "documents",
    "other": "pages",
    "owner": "people",
    "others": "many pages",
    "pictures": "many images",
}
#: The fields that lists of each type can be filtered by, in addition to those of all pages.
TYPES: dict[str, dict[str, str]] = {
    "w.Note": NOTE,
    "w.LongNote": {**NOTE, "extra": "text"},
    "w.Plain": {"number": "integer", "text": "text"},
}
#: The types that a filter by each type includes.
DERIVED = {"w.Note": {"w.Note", "w.LongNote"}, "w.LongNote": {"w.LongNote"}, "w.Plain": {"w.Plain"}}
#: The fields of objects other than pages.
OTHERS: dict[str, dict[str, str]] = {
    "images": {
        "id": "integer",
        "title": "text",
        "tags": "tags",
        "rank": "integer",
        "credit": "text",
        "width": "integer",
        "height": "integer",
    },
    "documents": {"id": "integer", "title": "text", "tags": "tags"},
    "people": {"id": "integer", "name": "text", "boss": "people", "page": "pages"},
    "redirects": {"id": "integer", "old_path": "text", "is_permanent": "boolean"},
}
RELATIONS = ("pages", "images", "documents", "people")
#: All sections of objects.
SECTIONS = (*RELATIONS, "redirects")
#: What the kind of a relation to many starts with, before the section.
MANY = "many "
STOP_WORDS = set(
    "a an and are as at be but by for if in into is it no not of on or such that the their then "
    "there these they this to was will with".split()
)


# Values.


def normal(kind: str, value: Any) -> Any:
    """A record's value in the form for comparisons; None if it is missing."""
    if value is None:
        return {"text": "", "rich": "", "boolean": False, "tags": frozenset()}.get(kind)
    read: dict[str, Callable[[Any], Any]] = {
        "float": float,
        "decimal": lambda number: Decimal(str(number)),
        "date": dt.date.fromisoformat,
        "time": dt.time.fromisoformat,
        "datetime": instant,
        "tags": frozenset,
    }
    return read[kind](value) if kind in read else value


def instant(text: str) -> dt.datetime:
    """An instant; one without an offset is in UTC."""
    moment = dt.datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)


# Words.

CONTROLS = "[\u00ad\u200c-\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]"


def words(text: str) -> list[str]:
    """The words of a text in lower case: runs of letters and digits, without diacritics and
    characters that only control how text is shown."""
    plain = bare(bare(text).lower())
    return "".join(char if char.isalnum() else " " for char in plain).split()


def bare(text: str) -> str:
    """A text without combining marks and controls."""
    marks = ("Mn", "Mc", "Me")
    decomposed = re.sub(CONTROLS, "", unicodedata.normalize("NFKD", text))
    return "".join(char for char in decomposed if unicodedata.category(char) not in marks)


class Reading(HTMLParser):
    """The text of HTML. Every tag ends a word, except the inline ones."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.text = ""
        self.feed(markup)
        self.close()

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.text += "" if tag in ("a", "b", "em", "i") else " "

    def handle_endtag(self, tag: str) -> None:
        self.handle_starttag(tag, ())

    def handle_comment(self, data: str) -> None:
        self.text += " "


def texts_of(section: str, record: Record) -> Iterable[str]:
    """The texts by which searches find an object."""
    if section == "people":
        yield record.get("name") or ""
        return
    yield record.get("title") or ""
    if section in ("images", "documents"):
        yield from record.get("tags") or ()
        yield (record.get("credit") or "") if section == "images" else ""
    if record.get("type") in ("w.Note", "w.LongNote"):
        yield record.get("text") or ""
        yield from record.get("tags") or ()
        yield Reading(record.get("rich") or "").text
        yield from (part.get("name") or "" for part in record.get("parts") or ())
        yield from (Reading(block["value"]).text for block in record.get("body") or ())
    if record.get("type") == "w.LongNote":
        yield record.get("extra") or ""


# Requests.


@dataclass
class Request:
    """A request.

    :param section: the section of the objects.
    :param host: the host, with its port if there is one.
    :param opened: the types of restrictions that the viewer may pass.
    :param moment: the time of the request.
    :param types: the requested types, or None.
    :param conditions: the filters.
    :param order: the fields to sort by, each with whether it is descending.
    :param shuffled: whether the order is random.
    :param tree: relations, each with a page or "root".
    :param words: the text to search for, or None.
    :param every: whether every word has to match; None: the API's default.
    :param begun: the text of which the last word is the beginning of one, or None.
    :param previewed: the section and id of the object that its token shows, or None.
    """

    section: str
    host: str
    opened: frozenset[str]
    moment: dt.datetime
    types: tuple[str, ...] | None = None
    conditions: list[Condition] = field(default_factory=list)
    order: list[tuple[str, bool]] = field(default_factory=list)
    shuffled: bool = False
    tree: list[tuple[str, int | str]] = field(default_factory=list)
    words: str | None = None
    every: bool | None = None
    begun: str | None = None
    site: str | None = None
    locale: str | None = None
    limit: int | None = None
    offset: int | None = None
    fields: str | None = None
    facets: tuple[str, ...] = ()
    rich_text_format: str | None = None
    previewed: tuple[str, int] | None = None

    def parameters(self) -> list[tuple[str, str]]:
        """The query string."""
        order = ",".join("-" * down + name for name, down in self.order)
        given: list[tuple[str, Any]] = [
            ("type", self.types and ",".join(self.types)),
            *((condition.parameter, condition.value) for condition in self.conditions),
            ("order", "random" if self.shuffled else order or None),
            *self.tree,
            ("search", self.words),
            ("autocomplete", self.begun),
            ("search_operator", {True: "and", False: "OR", None: None}[self.every]),
            ("site", self.site),
            ("locale", self.locale),
            ("limit", self.limit),
            ("offset", self.offset),
            ("fields", self.fields),
            ("facets", ",".join(self.facets) or None),
            ("rich_text_format", self.rich_text_format),
        ]
        return [(name, str(value)) for name, value in given if value is not None]


@dataclass
class Condition:
    """One filter.

    :param parameter: its name, which is that of the field, maybe with a comparison.
    :param value: the value as the client writes it.
    :param kind: the kind of the field.
    :param holds: whether a normalised value meets the condition.
    """

    parameter: str
    value: str
    kind: str
    holds: Callable[[Any], bool]


def comparisons_of(kind: str) -> list[str]:
    """The comparisons of a field."""
    entries = kind == "tags" or kind.startswith(MANY)
    text = kind in ("text", "rich")
    found = ["in", "not"]
    if not entries and kind != "boolean" and kind not in RELATIONS:
        found += ["lt", "lte", "gt", "gte"]
    if not entries and kind != "boolean" and not text:
        found += ["isnull"]
    return [*found, "startswith"] if text else found


def compares(operator: str, found: Any, wanted: Any) -> bool:
    """Whether a normalised value compares with the one that is asked for, or with those."""
    entries = found if isinstance(found, list | frozenset) else [found]
    if operator in ("in", "not"):
        return any(entry in wanted for entry in entries) is (operator == "in")
    if operator == "isnull":
        return (found is None) is bool(wanted)
    if found is None:
        return False
    if operator == "startswith":
        return bool(found[: len(wanted)] == wanted)
    if operator in ("lte", "gte") and found == wanted:
        return True
    return bool(found < wanted if operator in ("lt", "lte") else found > wanted)


@dataclass
class Found:
    """An answer: the listed ids, in order, and those of all matches."""

    ids: list[int]
    matching: list[int]


# The model.


class Model:
    """The model of some content.

    :param content: the records.
    :param i18n: whether internationalisation is on.
    """

    def __init__(self, content: Content, i18n: bool) -> None:
        self.content = content
        self.i18n = i18n
        self.records = {
            section: {record["id"]: record for record in content.get(section, ())}
            for section in SECTIONS
        }
        self.collections = {record["id"]: record for record in content.get("collections", ())}
        self.locales = list(content.get("locales", ()))
        self.pages = list(self.below(None))

    def below(self, parent: int | None) -> Iterable[int]:
        """The pages below one, each before its children."""
        for record in self.content.get("pages", ()):
            if record.get("parent") == parent:
                yield record["id"]
                yield from self.below(record["id"])

    def above(self, page: int) -> list[int]:
        """The pages above one, the nearest first."""
        parent = self.records["pages"][page].get("parent")
        return [] if parent is None else [parent, *self.above(parent)]

    # Visibility.

    def sees(self, request: Request, section: str, identity: Any) -> bool:
        """Whether an object exists and is visible."""
        if identity not in self.records[section]:
            return False
        if (section, identity) == request.previewed:
            return True
        record = self.records[section][identity]
        if section == "redirects":
            page = record.get("redirect_page")
            return page is None or self.sees(request, "pages", page)
        if section == "pages":
            chain = [self.records["pages"][id] for id in (identity, *self.above(identity))]
            starts, ends = record.get("go_live_at"), record.get("expires_at")
            if record.get("live") is False:
                return False
            if starts is not None and instant(starts) > request.moment:
                return False
            if ends is not None and instant(ends) <= request.moment:
                return False
        else:
            chain = []
            collection = record.get("collection")
            while collection is not None:
                chain.append(self.collections[collection])
                collection = self.collections[collection].get("parent")
        rules = [above.get("restriction") for above in chain]
        return all(rule["type"] in request.opened for rule in rules if rule)

    def value(self, request: Request, kind: str, record: Record, name: str) -> Any:
        """A field of a record in the form for comparisons. Relations to hidden objects are None."""
        if name == "locale":
            return self.locale(record)
        value = record.get(name)
        if kind.startswith(MANY):
            section = kind.removeprefix(MANY)
            return [other for other in value or () if self.sees(request, section, other)]
        if kind in RELATIONS:
            return value if self.sees(request, kind, value) else None
        return normal(kind, value)

    def locale(self, record: Record) -> str | None:
        """The language of a page."""
        given: str | None = record.get("locale")
        return given or (self.locales[0] if self.locales else None)

    def knows(self, request: Request, scope: Iterable[int]) -> bool:
        """Whether the requested language is declared or, if none is, that of a visible page."""
        if self.locales:
            return request.locale in self.locales
        seen = (id for id in scope if self.sees(request, "pages", id))
        return request.locale in [self.locale(self.records["pages"][id]) for id in seen]

    # Sites.

    def site(self, request: Request) -> Any:
        """The requested site, None if there are no sites, or the status of an error."""
        sites = self.content.get("sites", ())
        known = {(s["hostname"].lower(), s.get("port") or 80): s for s in sites}
        if request.site is not None:
            return self.named(request.site, known)
        host, _, port = request.host.lower().partition(":")
        if (host, int(port or 80)) in known:
            return known[host, int(port or 80)]
        same = [site for (name, _), site in known.items() if name == host]
        if len(same) == 1:
            return same[0]
        default = [site for site in sites if site.get("is_default")]
        return default[0] if default else None if not known else 404

    @staticmethod
    def named(text: str, known: Mapping[tuple[str, int], Record]) -> Any:
        """The site named by the parameter ``site``, or the status of an error."""
        host, _, port = text.lower().partition(":")
        if port:
            return known.get((host, int(port)), 404)
        same = [site for (name, _), site in known.items() if name == host]
        return same[0] if len(same) == 1 else 400 if same else 404

    def homes(self, site: Record | None) -> list[int]:
        """The home page of a site, and its translations."""
        if site is None:
            roots = [id for id in self.pages if self.records["pages"][id].get("parent") is None]
            first = roots[:1]
        else:
            first = [site["root_page"]]
        if not first or not self.i18n:
            return first
        return first + self.translations(first[0])

    def translations(self, page: int) -> list[int]:
        """The other pages with the translation key of a page."""
        key = self.records["pages"][page].get("translation_key")
        same = [id for id in self.pages if self.records["pages"][id].get("translation_key") == key]
        return [] if key is None else [id for id in same if id != page]

    def ways(self, request: Request, page: int) -> dict[str, list[int]]:
        """The pages that a page of the requested site leads to, by the name of the way."""
        homes = self.homes(self.site(request))
        trail: list[int] = []
        for above in [page, *self.above(page)]:
            trail.append(above)
            if above in homes:
                break
        below = [id for id in self.pages if self.records["pages"][id].get("parent") == page]
        found = {
            "ancestors": trail[:0:-1],
            "children": below,
            "translations": self.translations(page),
        }
        return {
            name: [id for id in ids if self.sees(request, "pages", id)]
            for name, ids in found.items()
        }

    def scope(self, site: Record | None) -> list[int]:
        """The pages of a site."""
        if site is None:
            return self.pages
        homes = set(self.homes(site))
        return [id for id in self.pages if homes & {id, *self.above(id)}]

    # Lists.

    def answer(self, request: Request) -> Found | int:
        """The answer to a request for a list, or the status of an error."""
        if request.section == "redirects":
            site = self.site(request)
            if isinstance(site, int):
                return site
            redirects = self.records["redirects"]
            candidates = sorted(id for id in redirects if self.leads(redirects[id], site))
        elif request.section != "pages":
            candidates = sorted(self.records[request.section])
        else:
            narrowed = self.narrow(request)
            if isinstance(narrowed, int):
                return narrowed
            candidates = narrowed
        if request.shuffled and request.offset is not None:
            return 400
        found = [id for id in candidates if self.matches(request, id)]
        found = self.ordered(request, found)
        start = request.offset or 0
        return Found(found[start : start + (20 if request.limit is None else request.limit)], found)

    def narrow(self, request: Request) -> list[int] | int:
        """The pages that match in site, tree and language, or the status of an error."""
        site = self.site(request)
        if isinstance(site, int):
            return site
        if self.previews_elsewhere(request, site):
            return 403
        relations = [relation for relation, _ in request.tree]
        if {"child_of", "descendant_of"} <= {*relations}:
            return 400
        if request.shuffled and request.offset is not None:
            return 400
        scope = self.scope(site)
        pages = scope
        for relation, named in request.tree:
            page: Any = named
            if named == "root":
                page = next(iter(self.homes(site)), None)
            if page not in scope or not self.sees(request, "pages", page):
                return 400
            related = self.relatives(relation, page)
            pages = [id for id in pages if id in related]
        if request.locale is not None:
            if not self.knows(request, scope):
                return 404
            pages = [id for id in pages if self.locale(self.records["pages"][id]) == request.locale]
        return pages

    def previews_elsewhere(self, request: Request, site: Any) -> bool:
        """Whether the token of a request is for a page of another site."""
        section, identity = request.previewed or ("", 0)
        there = section == "pages" and identity in self.records["pages"]
        return there and identity not in self.scope(site)

    def relatives(self, relation: str, page: int) -> list[int]:
        """The pages that have a relation to a page."""
        if relation == "child_of":
            return [id for id in self.pages if self.above(id)[:1] == [page]]
        if relation == "descendant_of":
            return [id for id in self.pages if page in self.above(id)]
        if relation == "ancestor_of":
            return self.above(page)
        return self.translations(page)

    def matches(self, request: Request, identity: int) -> bool:
        """Whether an object is visible and matches."""
        record = self.records[request.section][identity]
        if not self.sees(request, request.section, identity):
            return False
        if request.types is not None:
            wanted = {label for named in request.types for label in DERIVED[proper(named)]}
            if record.get("type") not in wanted:
                return False
        for condition in request.conditions:
            name = condition.parameter.partition("__")[0]
            value = self.value(request, condition.kind, record, name)
            if not condition.holds(value):
                return False
        if request.begun is not None and not self.has_begun(request, record):
            return False
        return request.words is None or self.has_words(request, record)

    @staticmethod
    def asked_words(request: Request) -> list[str]:
        asked = words(request.words or "")
        return [word for word in asked if word not in STOP_WORDS] or asked

    @staticmethod
    def has_begun(request: Request, record: Record) -> bool:
        own = own_words(request, record)
        *whole, last = words(request.begun or "") or [""]
        return bool(last) and {*whole} <= own and any(word.startswith(last) for word in own)

    def has_words(self, request: Request, record: Record) -> bool:
        asked = self.asked_words(request)
        own = own_words(request, record)
        if not asked:
            return False
        return all(w in own for w in asked) if request.every else any(w in own for w in asked)

    def ordered(self, request: Request, found: list[int]) -> list[int]:
        """Ids in the requested order; ties by id."""
        if not request.order:
            return sorted(found, key=lambda id: self.relevance(request, id), reverse=True)
        kinds = kinds_of(request.section, request.types)
        ordered = sorted(found)
        for name, descending in reversed(request.order):
            keys = {}
            for id in ordered:
                record = self.records[request.section][id]
                value = self.value(request, kinds[name], record, name)
                keys[id] = (value is not None, 0 if value is None else value)
            ordered.sort(key=keys.__getitem__, reverse=descending)
        return ordered

    def facet(
        self, request: Request, matching: list[int], name: str
    ) -> list[tuple[str | Any, int]]:
        """The most frequent values of a field, each with how many of the objects have it."""
        kind = {**kinds_of(request.section, request.types), "type": "type"}[name]
        counts: dict[Any, int] = {}
        for id in matching:
            value = self.value(request, kind, self.records[request.section][id], name)
            entries = set(value) if isinstance(value, list | frozenset) else {value} - {None}
            for entry in entries - {"gone.Type"} if name == "type" else entries:
                counts[entry] = counts.get(entry, 0) + 1
        return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:20]

    def relevance(self, request: Request, identity: int) -> tuple[bool, int]:
        """Whether the word that is begun is in the title; and one for each requested word that is
        found, and eight more if it is in the title."""
        record = self.records[request.section][identity]
        own, title = own_words(request, record), words(record.get("title") or "")
        last = "".join(words(request.begun or "")[-1:])
        begun = bool(last) and any(word.startswith(last) for word in title)
        asked = {*self.asked_words(request)}
        return begun, sum((word in own) + 8 * (word in title) for word in asked)

    # Single objects.

    def detail(self, request: Request, identity: int) -> int:
        """The status of a request for a detail view."""
        if request.section in ("pages", "redirects"):
            site = self.site(request)
            if isinstance(site, int):
                return site
            if self.previews_elsewhere(request, site):
                return 403
        if request.previewed not in (None, (request.section, identity)):
            return 403
        if request.section == "pages" and identity not in self.scope(site):
            return 404
        return 200 if self.sees(request, request.section, identity) else 404

    def leads(self, redirect: Record, site: Any) -> bool:
        """Whether a redirect is one of a site, or of all sites."""
        sites = self.content.get("sites", ())
        known = {(s["hostname"].lower(), s.get("port") or 80): s for s in sites}
        named = redirect.get("site")
        return not named or (site is not None and self.named(named, known) is site)

    def moved(self, request: Request, path: str) -> int | None:
        """The redirect from a former path, or None."""
        site = self.site(request)
        if isinstance(site, int):
            return None
        redirects = self.records["redirects"]
        own: list[int] = [id for id in redirects if self.leads(redirects[id], site)]
        seen = [id for id in own if self.sees(request, "redirects", id)]
        whole = former(path)
        for wanted in (whole, (whole[0], [])):
            found = [id for id in seen if former(redirects[id]["old_path"]) == wanted]
            # The one of all sites comes last.
            for id in sorted(found, key=lambda id: not redirects[id].get("site")):
                return id
        return None

    def find(self, request: Request, path: str) -> int | None:
        """The page at a path below a site's home page, or None."""
        site = self.site(request)
        if isinstance(site, int):
            return None
        language = request.locale if self.i18n else None
        homes = self.homes(site)
        # The tree of the language comes first. Elsewhere, only pages in the language are found.
        trees = sorted(homes, key=lambda home: language not in (None, self.language(home)))
        slugs = [slug for slug in path.split("/") if slug]
        for home in trees[: None if language and slugs else 1]:
            page = self.at(home, slugs)
            if page is None or self.detail(request, page) != 200:
                continue
            if language in (None, self.language(home), self.language(page)):
                return page
        return None

    def language(self, page: int) -> str | None:
        """The language of a page."""
        return self.locale(self.records["pages"][page])

    def at(self, page: int, slugs: Sequence[str]) -> int | None:
        """The page at some slugs below a page, or None."""
        for slug in slugs:
            below = [id for id in self.pages if self.above(id)[:1] == [page]]
            named = [id for id in below if self.records["pages"][id]["slug"] == slug]
            if not named:
                return None
            page = named[0]
        return page


def own_words(request: Request, record: Record) -> set[str]:
    """The words by which searches find an object."""
    return {word for text in texts_of(request.section, record) for word in words(text)}


def former(text: str) -> tuple[str, list[str]]:
    """A former path and the parts of its query, in the form for comparisons."""
    path, _, query = text.split("#")[0].partition("?")
    return unquote(path).strip("/"), sorted(unquote(part) for part in query.split("&") if part)


def proper(label: str) -> str:
    """The declared form of a type's label, from one in any letter case."""
    return next(known for known in TYPES if known.lower() == label.lower())


def kinds_of(section: str, types: tuple[str, ...] | None) -> dict[str, str]:
    """The fields that a list can be filtered or ordered by."""
    if section != "pages":
        return OTHERS[section]
    own = {proper(label) for label in types or ()}
    return {**PAGE, "locale": "locale", **(TYPES[own.pop()] if len(own) == 1 else {})}

"""Random changes of content, each for a database and for content records.

The records are plain dictionaries. Whether the result is valid is left to another backend.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from flask_contentapi.writer import Writer
from tests.generated import IDS, LOCALES, RULES, TEXTS, own_fields, texts, values
from tests.model import OTHERS, TYPES, instant

Record = dict[str, Any]
Content = dict[str, list[Any]]
#: Returns the record of an object after the change.
Known = Callable[[str, int], Record]


class Refused(Exception):
    """The change cannot be made, whatever the resulting records."""


def find(records: list[Record], id: Any) -> Record:
    """The record with an id."""
    for record in records:
        if record["id"] == id:
            return record
    raise Refused


@dataclass(frozen=True)
class Change:
    """A change of content."""

    def make(self, writer: Writer) -> Any:
        """Makes the change in a database."""
        raise NotImplementedError

    def on(self, content: Content, made: Any, known: Known) -> None:
        """Makes the change in content records.

        :param made: the result of :meth:`make`.
        :param known: for what only the database knows: generated ids and slugs.
        :raises Refused: if it cannot be made.
        """
        raise NotImplementedError


def put(content: Content, page: Record, before: int | None) -> None:
    """Inserts a page before a sibling, or after all others."""
    pages = content.setdefault("pages", [])
    place = len(pages)
    if before is not None:
        sibling = find(pages, before)
        if sibling.get("parent") != page.get("parent"):
            raise Refused
        place = pages.index(sibling)
    pages.insert(place, page)


@dataclass(frozen=True)
class Add(Change):
    endpoint: str
    record: Record
    before: int | None = None

    def make(self, writer: Writer) -> Any:
        return writer.add(self.endpoint, self.record, before=self.before)

    def on(self, content: Content, made: Any, known: Known) -> None:
        record = {**self.record, "id": made}
        if self.endpoint == "pages":
            record["slug"] = record["slug"] or known("pages", made)["slug"]
            for above in content.get("pages", ()):
                if above["id"] == record.get("parent") and "locale" in above:
                    record.setdefault("locale", above["locale"])
            put(content, record, self.before)
        else:
            content.setdefault(self.endpoint, []).append(record)


@dataclass(frozen=True)
class Update(Change):
    endpoint: str
    id: int
    changes: Record

    def make(self, writer: Writer) -> Any:
        return writer.update(self.endpoint, self.id, **self.changes)

    def on(self, content: Content, made: Any, known: Known) -> None:
        record = find(content.get(self.endpoint, []), self.id)
        if any(self.changes.get(n, record.get(n)) != record.get(n) for n in ("id", "parent")):
            raise Refused
        record |= self.changes


@dataclass(frozen=True)
class Move(Change):
    page: int
    parent: int | None
    before: int | None = None

    def make(self, writer: Writer) -> Any:
        return writer.move(self.page, self.parent, before=self.before)

    def on(self, content: Content, made: Any, known: Known) -> None:
        page = find(content.get("pages", []), self.page)
        content["pages"].remove(page)
        page["parent"] = self.parent
        put(content, page, self.before)


@dataclass(frozen=True)
class Publish(Change):
    page: int

    def make(self, writer: Writer) -> Any:
        return writer.publish(self.page)

    def on(self, content: Content, made: Any, known: Known) -> None:
        page = find(content.get("pages", []), self.page)
        now = dt.datetime.now(dt.UTC)
        page |= {"live": True, "go_live_at": None}
        if page.get("expires_at") is not None and instant(page["expires_at"]) <= now:
            page["expires_at"] = None
        if page.get("first_published_at") is None:
            page["first_published_at"] = known("pages", self.page)["first_published_at"]


@dataclass(frozen=True)
class Unpublish(Change):
    page: int

    def make(self, writer: Writer) -> Any:
        return writer.unpublish(self.page)

    def on(self, content: Content, made: Any, known: Known) -> None:
        find(content.get("pages", []), self.page)["live"] = False


@dataclass(frozen=True)
class Delete(Change):
    endpoint: str
    id: int
    descendants: bool = False

    def make(self, writer: Writer) -> Any:
        return writer.delete(self.endpoint, self.id, descendants=self.descendants)

    def on(self, content: Content, made: Any, known: Known) -> None:
        records = content.get(self.endpoint, [])
        doomed = [find(records, self.id)["id"]]
        if self.endpoint == "pages":
            for page in doomed:
                doomed += [record["id"] for record in records if record.get("parent") == page]
            if any(site["root_page"] in doomed for site in content.get("sites", ())):
                raise Refused
        if len(doomed) > 1 and not self.descendants:
            raise Refused
        records[:] = [record for record in records if record["id"] not in doomed]


def copied(content: Content, page: int, made: Any, known: Known) -> Record:
    """A copy of a page; only a database knows its new slug and the new ids of child objects."""
    copy = deepcopy(find(content.get("pages", []), page))
    given = known("pages", made)
    copy |= {"id": made, "slug": given["slug"]}
    parts = copy.get("parts") or []
    twins = given.get("parts") or [{"id": 10**6 + number} for number in range(len(parts))]
    for part, twin in zip(parts, twins, strict=True):
        part["id"] = twin["id"]
    return copy


@dataclass(frozen=True)
class Alias(Change):
    page: int
    parent: int | None
    changes: Record = field(default_factory=dict)

    def make(self, writer: Writer) -> Any:
        return writer.alias(self.page, self.parent, **self.changes)

    def on(self, content: Content, made: Any, known: Known) -> None:
        copy = copied(content, self.page, made, known)
        copy |= {"parent": self.parent, "alias_of": self.page, "translation_key": None}
        put(content, {**copy, **self.changes}, None)


@dataclass(frozen=True)
class Translate(Change):
    page: int
    locale: str
    changes: Record = field(default_factory=dict)

    def make(self, writer: Writer) -> Any:
        return writer.translate(self.page, self.locale, **self.changes)

    def on(self, content: Content, made: Any, known: Known) -> None:
        page = find(content.get("pages", []), self.page)
        if self._in_locale(content, page) is not None:
            raise Refused
        if page.get("translation_key") is None:
            page["translation_key"] = known("pages", made)["translation_key"]
        copy = copied(content, self.page, made, known)
        above = copy.get("parent")
        if above is not None:
            parent = self._in_locale(content, find(content["pages"], above))
            copy["parent"] = above if parent is None else parent["id"]
        put(content, {**copy, "locale": self.locale, "live": False, **self.changes}, None)

    def _in_locale(self, content: Content, page: Record) -> Record | None:
        """A page or its translation, whichever is in the language; None if neither is."""
        key = page.get("translation_key")
        for other in content["pages"]:
            same = other is page or (key is not None and other.get("translation_key") == key)
            if same and other.get("locale") == self.locale:
                return other  # type: ignore[no-any-return]
        return None


@dataclass(frozen=True)
class PutLocale(Change):
    code: str

    def make(self, writer: Writer) -> Any:
        return writer.put_locale(self.code)

    def on(self, content: Content, made: Any, known: Known) -> None:
        if self.code not in content.setdefault("locales", []):
            named = {page["locale"] for page in content.get("pages", ()) if page.get("locale")}
            others = () if content["locales"] else sorted(named - {self.code})
            content["locales"] += [self.code, *others]


@dataclass(frozen=True)
class PutSite(Change):
    site: Record

    def make(self, writer: Writer) -> Any:
        return writer.put_site(**self.site)

    def on(self, content: Content, made: Any, known: Known) -> None:
        sites = content.setdefault("sites", [])
        if self.site.get("is_default"):
            for other in sites:
                other["is_default"] = False
        for place, other in enumerate(sites):
            if address(other) == address(self.site):
                sites[place] = {**other, **self.site}
                return
        sites.append(self.site)


def address(site: Mapping[str, Any]) -> tuple[str, int]:
    """The key of a site."""
    return site["hostname"].lower(), site.get("port", 80)


@dataclass(frozen=True)
class DeleteSite(Change):
    hostname: str
    port: int

    def make(self, writer: Writer) -> Any:
        return writer.delete_site(self.hostname, self.port)

    def on(self, content: Content, made: Any, known: Known) -> None:
        gone = (self.hostname.lower(), self.port)
        content["sites"] = [s for s in content.get("sites", ()) if address(s) != gone]


@dataclass(frozen=True)
class PutCollection(Change):
    collection: Record

    def make(self, writer: Writer) -> Any:
        return writer.put_collection(**self.collection)

    def on(self, content: Content, made: Any, known: Known) -> None:
        collections = content.setdefault("collections", [])
        for place, other in enumerate(collections):
            if other["id"] == self.collection["id"]:
                collections[place] = {**other, **self.collection}
                return
        collections.append(self.collection)


@dataclass(frozen=True)
class DeleteCollection(Change):
    id: int

    def make(self, writer: Writer) -> Any:
        return writer.delete_collection(self.id)

    def on(self, content: Content, made: Any, known: Known) -> None:
        collections = content.get("collections", [])
        collections.remove(find(collections, self.id))
        inside = [*collections, *content.get("images", ()), *content.get("documents", ())]
        if any(self.id in (one.get("parent"), one.get("collection")) for one in inside):
            raise Refused


# Random changes.

_COMMON: dict[str, st.SearchStrategy[Any]] = {
    "slug": st.sampled_from(["a", "b", "é", "x y", "a/b", ""]),
    "title": st.sampled_from([*TEXTS, None]),
    "live": st.booleans(),
    "go_live_at": st.none() | values("datetime"),
    "expires_at": st.none() | values("datetime"),
    "seo_title": texts,
    "locale": st.sampled_from([None, *LOCALES]),
    "translation_key": st.sampled_from([None, "k1", "k2"]),
    "alias_of": st.none() | values("pages"),
    "restriction": st.sampled_from([None, {}, {"type": "login"}, {"type": "groups"}]),
    "parts": st.lists(st.fixed_dictionaries({"id": st.sampled_from([10, 11, 20]), "name": texts})),
}
_MEDIA = {"title": texts, "tags": values("tags"), "collection": st.sampled_from([None, 1, 2, 9])}
_COLLECTIONS = st.fixed_dictionaries(
    {"id": st.integers(1, 5), "parent": st.sampled_from([None, 1, 2, 3, 9])},
    optional={"name": texts, "restriction": st.sampled_from([None, {"type": RULES[0]}])},
)
_SITES: dict[str, st.SearchStrategy[Any]] = {
    "hostname": st.sampled_from(["a.example", "A.example", "c.example", "no host"]),
    "port": st.sampled_from([80, 8000]),
}


def fields_of(endpoint: str, label: str) -> dict[str, st.SearchStrategy[Any]]:
    """Values for each field of a type, not all of them valid."""
    if endpoint == "pages":
        return {**_COMMON, **own_fields(TYPES.get(label, {}))}
    own = own_fields(OTHERS[endpoint])
    return own if endpoint == "people" else {**own, **_MEDIA}


def some_of(fields: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Record]:
    """Values for one to three fields."""
    names = st.lists(st.sampled_from(list(fields)), min_size=1, max_size=3, unique=True)
    return names.flatmap(lambda some: st.fixed_dictionaries({name: fields[name] for name in some}))


def changes(content: Content) -> st.SearchStrategy[Change]:
    """Changes of some content, most of which are possible."""
    there = [record["id"] for record in content.get("pages", ())]
    pages = st.sampled_from([*there * 3, 99])
    places = st.sampled_from([None, None, *there * 2, 99])
    befores = st.none() | pages
    own: dict[str, st.SearchStrategy[Any]] = {"title": texts, "live": st.booleans()}
    differing = st.fixed_dictionaries({}, optional=own)
    return st.one_of(
        st.sampled_from(["pages", "pages", "images", "documents", "people"]).flatmap(
            lambda endpoint: additions(endpoint, places, befores)
        ),
        *[st.deferred(lambda: updates(content))] * 3,
        *[st.builds(Move, pages, places, befores)] * 3,
        st.builds(Publish, pages),
        st.builds(Unpublish, pages),
        st.builds(Delete, st.just("pages"), pages, st.booleans()),
        st.builds(Delete, st.sampled_from(["images", "documents", "people"]), st.integers(1, 4)),
        st.builds(Alias, pages, places, differing),
        st.builds(Translate, pages, st.sampled_from([*LOCALES, "xx"]), differing),
        st.builds(PutLocale, st.sampled_from(["en", "fr", "de", ""])),
        st.builds(PutSite, st.fixed_dictionaries({**_SITES, "root_page": pages}, optional=DEFAULT)),
        st.builds(DeleteSite, _SITES["hostname"], _SITES["port"]),
        st.builds(PutCollection, _COLLECTIONS),
        st.builds(DeleteCollection, st.integers(1, 4)),
    )


DEFAULT: dict[str, st.SearchStrategy[Any]] = {"is_default": st.booleans()}


@st.composite
def additions(
    draw: st.DrawFn,
    endpoint: str,
    places: st.SearchStrategy[int | None],
    befores: st.SearchStrategy[int | None],
) -> Add:
    """New objects, some of which exist already."""
    label = draw(st.sampled_from([*TYPES, "gone.Type"]))
    id = draw(st.sampled_from([*IDS, *range(30, 60)]))
    record = {"id": id, **draw(some_of(fields_of(endpoint, label)))}
    record.setdefault("title", draw(texts))
    if endpoint == "people":
        del record["title"]
    if endpoint != "pages":
        return Add(endpoint, record)
    record |= {"type": label, "parent": draw(places)}
    record.setdefault("slug", f"new-{id}")
    return Add(endpoint, record, draw(befores))


@st.composite
def updates(draw: st.DrawFn, content: Content) -> Update:
    """New values for fields of an object."""
    there = [(name, r) for name in ("pages", *OTHERS) for r in content.get(name, ())]
    there.append(("pages", {"id": 99, "type": "w.Note"}))
    endpoint, record = draw(st.sampled_from(there))
    changes = draw(some_of(fields_of(endpoint, record["type"])))
    return Update(endpoint, record["id"], changes)

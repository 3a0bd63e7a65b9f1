"""Why an object is not shown to everybody, and in which lists it is, in sentences for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from flask_contentapi.backend import Reader
from flask_contentapi.content import Restriction
from flask_contentapi.declarations import Endpoint
from flask_contentapi.kinds import DateTime
from flask_contentapi.query import Query, Viewer
from flask_contentapi.settings import Settings
from flask_contentapi.sites import Site


def read_hidden(
    reader: Reader, endpoint: Endpoint, id: int, viewer: Viewer
) -> dict[str, Any] | None:
    """The values of an object that all types of its endpoint have, whoever may see it.

    :param viewer: who asks, and when.
    :returns: the values by column; None if there is no such object.
    """
    columns = ["type", *endpoint.base.columns, *["url_path"] * endpoint.tree]
    previewing = replace(viewer, previewed=(endpoint.name, id))
    row = reader.fetch(endpoint.name, [id], columns, previewing).get(id)
    return None if row is None else dict(zip(columns, row, strict=True))


@dataclass(frozen=True)
class Reasons:
    """What decides where an object is shown.

    :param reader: the content.
    :param settings: the settings.
    :param endpoint: the endpoint of the object.
    :param found: its values, as :func:`read_hidden` gives them.
    :param viewer: somebody whom no restriction lets in.
    """

    reader: Reader
    settings: Settings
    endpoint: Endpoint
    found: Mapping[str, Any]
    viewer: Viewer

    def hiding(self) -> Iterator[str]:
        """The reasons why it is not shown to everybody, each in a sentence; none if it is."""
        if self.endpoint.tree:
            start, end = self.found["go_live_at"], self.found["expires_at"]
            if not self.found["live"]:
                yield "It is a draft: its live is false."
            if start is not None and start > self.viewer.moment:
                yield f"It goes live at {DateTime().write(start)}."
            if end is not None and end <= self.viewer.moment:
                yield f"It expired at {DateTime().write(end)}."
            yield from self._outside()
        page = self.found[self.endpoint.essential] if self.endpoint.essential else None
        if page is not None and not self.reader.fetch("pages", [page], ["id"], self.viewer):
            yield f"It leads to page {page}, which is not shown to everybody."
        kind, own = ("Page", "id") if self.endpoint.tree else ("Collection", "collection")
        for identity, rule in self._restricted():
            where = f"{kind} {identity}, above it,"
            if self.found[own] == identity:
                where = "It" if self.endpoint.tree else f"Its collection {identity}"
            yield f"{where} is restricted ({rule['type']}): can_view decides who sees it."

    def listing(self, prefix: str) -> Iterator[str]:
        """The lists that show it to everybody, each in a sentence.

        :param prefix: the address of the API.
        """
        if self.endpoint.redirects:
            yield f"It is in the lists of {self.found['site_name'] or 'every site'}."
        for site in self._sites(self.settings.i18n) if self.endpoint.tree else [None]:
            if not self.endpoint.redirects:
                yield self._place(prefix, site)
        label, types = self.found["type"], self.endpoint.types.values()
        if label not in self.endpoint.types:
            yield f"Its type {label!r} is not declared, so that only common fields are shown."
        named = [t.label for t in types if label in t.types or self.endpoint.is_of_all(t)]
        if named:
            yield f"A list with type= has it if that names {' or '.join(named)}."
        if self.endpoint.tree and self.settings.i18n:
            language = self.found["locale"]
            yield (
                f"A list with locale= has it if that is {language}."
                if language
                else "It has no language, so that no list with locale= has it."
            )

    def _place(self, prefix: str, site: Site | None) -> str:
        scope, asked = None, dict[str, Any]()
        if site is not None:
            scope = site.scope(self.settings.i18n)
            asked = {"site": self.reader.sites.name(site)} if site.hostname else {}
        ids = [*self.reader.ids(Query(self.endpoint.name, ("id",), self.viewer, scope))]
        place, size = ids.index(self.found["id"]), self.settings.default_limit
        if size and place >= size:
            asked["offset"] = place // size * size
        address = f"{prefix}/{self.endpoint.name}/{'?' if asked else ''}{urlencode(asked)}"
        return f"It is number {place + 1} of {len(ids)}: {address}"

    def _sites(self, i18n: bool) -> list[Site]:
        path = self.found["url_path"]
        return [site for site in self.reader.sites if path.startswith(site.paths(i18n))]

    def _outside(self) -> Iterator[str]:
        if self._sites(self.settings.i18n):
            return
        homes = [f"{s.homes[0].page} of {s.hostname}" for s in self.reader.sites if s.homes]
        yield (
            "It is below a translation of a home page, which counts only with CMS_I18N_ENABLED."
            if self._sites(i18n=True)
            else f"It is not below the home page of any site: {', '.join(homes)}."
        )

    def _restricted(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """The restricted pages or collections that it is in, the nearest first, and their rules."""
        pages, collections = self.reader.restrictions
        if self.endpoint.tree:
            return _chain(pages, self._nearest_page())
        return _chain(collections, self._nearest_collection())

    def _nearest_page(self) -> int | None:
        identity, parent = self.found["id"], self.found["parent"]
        while identity not in self.reader.restrictions.pages:
            if parent is None:
                return None
            above = read_hidden(self.reader, self.endpoint, parent, self.viewer)
            identity, parent = parent, above and above["parent"]
        return int(identity)

    def _nearest_collection(self) -> int | None:
        """The one that has to be opened, as readers do not know collections without restriction."""
        known = self.reader.restrictions.collections
        opened = {
            nearest: frozenset(identity for identity, _ in _chain(known, nearest))
            for nearest in (None, *known)
        }
        for nearest, chain in sorted(opened.items(), key=lambda item: len(item[1])):
            viewer = replace(self.viewer, collections=chain)
            if self.reader.fetch(self.endpoint.name, [self.found["id"]], ["id"], viewer):
                return nearest
        return None


def _chain(
    known: Mapping[int, Restriction], nearest: int | None
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """A restricted page or collection and those above it, with their rules."""
    while nearest is not None:
        yield nearest, known[nearest].rule
        nearest = known[nearest].within

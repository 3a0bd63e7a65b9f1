"""Finds sites and their home pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flask_contentapi.records import Place, RecordReader
from flask_contentapi.sites import Home, Site, Sites
from flask_contentapi.tables import Table

__all__ = ["find_sites"]


def find_sites(
    records: Sequence[dict[str, Any] | None], pages: Table, reader: RecordReader
) -> Sites:
    """All sites.

    :param records: their records with all keys; None for those with a mistake.
    :param pages: the pages in tree order.
    :param reader: collects problems.
    """
    homes, refused = _Homes(pages), reader.refused["pages"]
    sites: dict[tuple[str, int], Site] = {}
    for index, site in enumerate(records):
        if site is None:
            continue
        hostname, port = site["hostname"], site["port"]
        place = Place("sites", index, f"sites {hostname}:{port}")
        if site["root_page"] not in homes and site["root_page"] not in refused:
            reader.note(place, "root_page", f"there is no page {site['root_page']}")
        if (hostname, port) in sites:
            reader.note(place, "hostname", "another site has this host name and port already")
        if site["is_default"] and any(other.is_default for other in sites.values()):
            reader.note(place, "is_default", "another site is the default already")
        trees = homes.of(site["root_page"])
        sites[hostname, port] = Site(hostname, port, site["site_name"], site["is_default"], trees)
    first_root = homes.of(pages.rows[0][0]) if pages.rows else ()
    return Sites(sites.values(), first_root)


class _Homes:
    """Finds home pages with their translations."""

    def __init__(self, pages: Table) -> None:
        columns = pages.endpoint.base.places
        self._locale, self._key = columns["locale"], columns["translation_key"]
        self._pages = pages
        self._indexes = {row[0]: index for index, row in enumerate(pages.rows)}

    def __contains__(self, page: int) -> bool:
        return page in self._indexes

    def of(self, page: int) -> tuple[Home, ...]:
        """The page itself, then its translations in tree order; empty if there is no page."""
        if page not in self:
            return ()
        key = self._pages.rows[self._indexes[page]][self._key]
        found = [self._home(self._indexes[page])]
        for index, row in enumerate(self._pages.rows if key is not None else ()):
            if row[self._key] == key and row[0] != page:
                found.append(self._home(index))
        return tuple(found)

    def _home(self, index: int) -> Home:
        row = self._pages.rows[index]
        return Home(row[0], row[self._locale], self._pages.url_paths[index])

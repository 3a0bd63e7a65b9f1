"""Makes content records of the objects of a foreign API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from flask_contentapi.declarations import Column, Export, ObjectType
from flask_contentapi.importers.inference import is_address, reference_in
from flask_contentapi.importers.objects import Objects
from flask_contentapi.kinds import convert_blocks
from flask_contentapi.registry import Registry
from flask_contentapi.selection import WAYS
from flask_contentapi.sources import Stored

Record = dict[str, Any]


class PulledContent(Mapping[str, Iterable[Any]]):
    """The records of each section, made anew each time they are read.

    :param original: what there is.
    :param registry: the types that they are made for.
    :param file_of: gives the ``file`` for the address of a file.
    :param kept: by section and id, values that only the present content has.
    :param general: by section, present records that the source cannot show: collections, the
        objects of other endpoints and those added by hand, which stay, and sites, which keep their
        hosts.
    :ivar told: what the types do not know, each in a sentence.
    """

    def __init__(
        self,
        original: Objects,
        registry: Registry,
        file_of: Callable[[str], str] = str,
        kept: Mapping[tuple[str, int], Record] = {},
        general: Mapping[str, Sequence[Any]] = {},
    ) -> None:
        self._original, self._registry = original, registry
        self._file_of, self._kept, self._general = file_of, kept, general
        endpoints = [name for name in registry.endpoints if name in original.ids]
        self._names = [*dict.fromkeys(["locales", "sites", *endpoints, *self._general])]
        self._own_sites = {site["root_page"]: site for site in self._general.get("sites", ())}
        self._page_at: dict[str, int] = {}
        self.told: dict[str, None] = {}
        for name in original.ids.keys() - registry.endpoints.keys():
            left = f"so that its {len(original.ids[name])} objects are left out"
            self.told[f"No type is served at {name}, {left}."] = None

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __getitem__(self, section: str) -> Iterable[Any]:
        if section == "locales":
            return [*self._original.locales]
        if section == "sites":
            return [*self._sites()]
        if section not in self._names:
            raise KeyError(section)
        others = self._general.get(section, ())
        if section not in self._original.ids:
            return others
        return chain(self._pages() if section == "pages" else self._others(section), others)

    def _sites(self) -> Iterator[Record]:
        for site in self._original.sites:
            parts = urlsplit(site.address or "")
            if site.home in self._own_sites:
                yield self._own_sites[site.home]
            elif parts.hostname:
                default = 443 if parts.scheme == "https" else 80
                yield {
                    "hostname": parts.hostname,
                    "port": parts.port or default,
                    "site_name": site.name,
                    "root_page": site.home,
                    "is_default": not site.parameter,
                }

    def _pages(self) -> Iterator[Record]:
        locales: dict[int | None, Any] = {}
        for page, item in self._original.pages():
            if item is None:
                # It stands for a hidden one.
                own = {"title": page.slug, "slug": page.slug, "locale": locales.get(page.parent)}
                record = {"id": page.id, "type": page.label, "parent": page.parent, **own}
                record["live"] = False
            else:
                record = self._record("pages", page.label, item)
                url = item["meta"].get("html_url")
                if "redirects" in self._original.ids and isinstance(url, str):
                    self._page_at.setdefault(url.rstrip("/"), page.id)
                key = self._original.translation_keys.get(page.id)
                record |= {"parent": page.parent} | ({"translation_key": key} if key else {})
            locales[page.id] = record.get("locale")
            yield record

    def _others(self, section: str) -> Iterator[Record]:
        for label, item in self._original.others(section):
            record = self._record(section, label, item)
            if self._registry.endpoints[section].redirects:
                location = item.get("location")
                # What Wagtail shows, without is_permanent, can be the path of a page; here only a
                # link can be a path.
                base = "" if "is_permanent" in item else self._original.base
                place = urljoin(base, location) if is_address(location) else ""
                page = self._page_at.get(place.rstrip("/"))
                record |= {"redirect_link": location} if page is None else {"redirect_page": page}
                if not location:
                    self.told[f"Redirect {item['id']} leads nowhere, and is left out."] = None
                    continue
            url = item["meta"].get("download_url")
            if self._registry.endpoints[section].collections and is_address(url):
                record["file"] = self._file_of(urljoin(self._original.base, url))
            yield record

    def _record(self, section: str, label: str, item: Record) -> Record:
        endpoint = self._registry.endpoints[section]
        declared = endpoint.type_of(label)
        keys = {**item["meta"], **item}
        key = section, item["id"]
        kept = {**self._kept.get(key, {}), **self._original.hidden.get(key, {})}
        record = {**kept, "id": item["id"], "type": label, **self._values(declared, item)}
        unknown = keys.keys() - declared.exports.keys() - {"meta", *WAYS, "parent"}
        if label not in endpoint.types:
            self.told[f"{label} is not declared; its objects are served as plain ones."] = None
            record |= {key: keys[key] for key in unknown if key not in record}
        elif unknown:
            names = ", ".join(n if n.isprintable() else repr(n) for n in sorted(unknown))
            self.told[f"{label} has no {names} in its api_fields, so that this is left out."] = None
        return record

    def _values(self, declared: ObjectType, item: Record) -> Record:
        """The values of stored fields, by their names in records."""
        values: Record = {}
        for name, export in declared.exports.items():
            column = column_of(declared, export)
            place = item.get("meta", {}) if export.in_meta else item
            if column is None or name not in place or name in ("id", "parent"):
                continue
            value = self._stored(column, place[name])
            # What is no address, say, is not there.
            if value != "" or column.field.required or column.default() != "":
                values[column.name] = value
        return values

    def _stored(self, column: Column, value: Any) -> Any:
        if column.target is not None:
            known = self._original.ids.get(column.target.served_at.name, ())
            found = map(reference_in, value if isinstance(value, list) else [value])
            # Those of hidden objects are left out.
            ids = [reference.id for reference in found if reference and reference.id in known]
            return ids if column.kind.many else next(iter(ids), None)
        if column.child is not None and isinstance(value, list):
            child = column.child
            objects = [entry for entry in value if isinstance(entry, dict)]
            return [{"id": entry.get("id"), **self._values(child, entry)} for entry in objects]
        # In blocks, relations are ids.
        writers = {name: partial(self._stored, own) for name, own in column.related_blocks.items()}
        return convert_blocks(value, writers, {}) if writers else value


def column_of(declared: ObjectType, export: Export) -> Column | None:
    """The stored field that a key shows, also if another field writes it."""
    if export.column is None and isinstance(export.source, Stored):
        return declared.columns[export.source.column]
    return export.column


def local_file(url: str) -> str:
    """The name for a file, below the folder of files.

    >>> local_file("https://cms.example/media/images/a%20tree.jpg")
    'images/a tree.jpg'
    """
    parts = [unquote(part) for part in urlsplit(url).path.split("/")]
    safe = ["".join(c for c in part if c.isprintable() and c not in '/\\:*?"<>|') for part in parts]
    named = [part.lstrip(".") for part in safe if part.strip(". ")]
    return "/".join(named[1:] if named[:1] == ["media"] and len(named) > 1 else named)

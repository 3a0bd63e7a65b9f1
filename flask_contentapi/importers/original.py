"""Reads the whole content of a foreign API: what there is, where it is, and of which types."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit
from zlib import crc32

from flask_contentapi.content import DEEPEST
from flask_contentapi.importers.inference import is_address, is_label, reference_in, shown_keys
from flask_contentapi.importers.objects import UNDECLARED, Item, Objects, OriginalSite, PlacedPage
from flask_contentapi.importers.source import Source, SourceError
from flask_contentapi.logs import watched

#: The most objects of an endpoint, and the most types, sites and endpoints.
MOST_OBJECTS, MOST_NAMES = 1_000_000, 500
#: How many objects are asked for at a time if any number can be.
MANY = 100
#: The least id of pages that stand for hidden ones between others. It does not depend on what else
#: there is, so that the same page gets the same one every time.
HIDDEN = 1 << 40


class _Branch(NamedTuple):
    """A page that others can be below: its id, and its address with a slash at the end."""

    id: int
    url: str


class Original(Objects):
    """The content of a foreign API.

    :param source: the API.
    :param sites: further sites, as its ``site`` parameter names them.
    :param endpoints: further endpoints.
    :raises SourceError: if the source does not answer as it must.
    """

    def __init__(
        self, source: Source, *, sites: Sequence[str] = (), endpoints: Sequence[str] = ()
    ) -> None:
        super().__init__()
        self._source, self.base = source, source.base
        self._labels: defaultdict[tuple[str, int], dict[str, list[int]]] = defaultdict(dict)
        #: The types whose details have more than lists.
        self._in_details: set[tuple[str, str]] = set()
        self._locale_of: dict[int, str] = {}
        self._homes: set[int] = set()
        self._is_exact = False
        self._look_around()
        self._index = self._read_index()
        self._read_pages(sites)
        self._read_others(endpoints)
        self._read_translations()

    # What the source can do.

    def _look_around(self) -> None:
        first = self._source.ask("pages/", limit=1)
        if first.status != 200:
            raise SourceError(
                f"There is nothing at {self._source.base}pages/ ({first.status}); the address "
                "of the API is what comes before pages/."
            )
        items = _items(first.data, self._source.base)
        self.i18n = any("locale" in item["meta"] for item in items)
        beyond = {"limit": 100_000, "offset": 1_000_000, "fields": "_,id"}
        self.limit_max = None
        status, _, body = self._source.ask_plainly("pages/", **beyond)
        if status != 200:
            # The message tells the maximum, as "limit cannot be higher than 20".
            numbers = re.findall(rb"[0-9]{1,6}", body[:1000])
            self.limit_max = int(numbers[-1]) if numbers and int(numbers[-1]) else 20
        self._limit = min(self.limit_max or MANY, MANY)
        stored = {"rich_text_format": "db_html"}
        knows = self._source.ask("pages/", limit=1, **stored).status == 200
        self._as_stored: dict[str, str] = stored if knows else {}
        self._placing = "_,id,type,html_url,slug,locale"
        if self._source.ask("pages/", limit=1, fields=self._placing).status != 200:
            self._placing = "_,id,type,html_url,slug"

    def _read_index(self) -> dict[str, Any]:
        """What this package shows of a site; Wagtail has no index."""
        try:
            index = self._source.ask("").data
        except SourceError:
            return {}
        return index if isinstance(index, dict) else {}

    def _list(self, path: str, label: str, **parameters: Any) -> Iterator[Item]:
        """All items of a list.

        :param label: what the progress is called; "" shows none.
        """
        asked = {**parameters, "limit": self._limit}
        url = self._source.address(path, asked)
        answer = self._source.ask(path, **asked)
        if answer.status != 200:
            raise SourceError(f"{url} answers {answer.status}.")
        total = _total(answer.data, url)
        starts = range(0, total or 1, self._limit)
        others = self._source.ask_all((path, {**asked, "offset": start}) for start in starts[1:])
        parts = zip(starts, chain([answer], others), strict=True)
        items = chain.from_iterable(self._page(part.data, url, total, n) for n, part in parts)
        seen = set()
        for item in watched(items, label, total) if label else items:
            if item["id"] in seen:
                raise SourceError(f"{url} has {item['id']} twice. Is it being changed? Pull again.")
            seen.add(item["id"])
            yield item

    def _page(self, data: Any, url: str, total: int, start: int) -> list[Item]:
        items = _items(data, url)
        wanted = min(self._limit, total - start)
        if _total(data, url) != total or len(items) != wanted:
            raise SourceError(
                f"{url} says that there are {total} and then {_total(data, url)}, and has "
                f"{len(items)} from offset {start} on. Is it being changed? Pull again."
            )
        return items

    def _site(self, number: int) -> dict[str, str]:
        name = self.sites[number].parameter
        return {"site": name} if name else {}

    # Pages.

    def _read_pages(self, sites: Sequence[str]) -> None:
        waiting = ["", *sites]
        for name in waiting:
            if len(waiting) > MOST_NAMES:
                raise SourceError(f"{self._source.base} names more than {MOST_NAMES} sites.")
            if name and self._source.ask("pages/", limit=1, site=name).status != 200:
                if name in sites:
                    raise SourceError(f"{self._source.base} has no site {name!r}.")
                continue
            number = len(self.sites)
            while self._place_pages(name) and not self._read_types(number):
                # The addresses of pages are no guide to their places.
                self._is_exact = True
                self.tree = [page for page in self.tree if page.site != number]
                self.ids["pages"] = {page.id for page in self.tree}
                del self._labels["pages", number]
                self.sites.pop()
            waiting += [site for site in self.shapes.sites if site not in waiting]

    def _place_pages(self, name: str) -> bool:
        """Puts the pages of a site into the tree; returns whether it was not known yet."""
        asked = {"site": name} if name else {}
        items = self._list("pages/", "finding pages", **asked, fields=self._placing)
        first = next(items, None)
        if first is None:
            if not name:
                raise SourceError(f"{self._source.base} shows no pages.")
            return False
        if any(site.home == first["id"] for site in self.sites):
            return False
        shown = self._index.get("site")
        title = shown.get("site_name") if isinstance(shown, dict) and not name else ""
        title = title if isinstance(title, str) else ""
        number = len(self.sites)
        self.sites.append(OriginalSite(name, first["id"], _address(first), title))
        self._homes = {first["id"]}
        if self.i18n:
            of_home = {**asked, "translation_of": first["id"], "fields": "_,id"}
            found = self._list("pages/", "", **of_home)
            self._homes.update(item["id"] for item in found)
        stack: list[_Branch] = []
        for item in (first, *items):
            self._place(item, number, stack)
        return True

    def _place(self, item: Item, site: int, stack: list[_Branch]) -> None:
        identity, meta = item["id"], item["meta"]
        if identity in self.ids["pages"]:
            return  # of another site, whose tree it is in
        label, url = meta.get("type"), _address(item)
        label = UNDECLARED if label is None else _checked(label)
        if isinstance(meta.get("locale"), str):
            self.locales[meta["locale"]] = None
            self._locale_of[identity] = meta["locale"]
        parent = self._parent(item, label, site, stack)
        self.ids["pages"].add(identity)
        self.tree.append(PlacedPage(identity, label, parent, site))
        self._labels["pages", site].setdefault(label, []).append(identity)
        stack.append(_Branch(identity, url or ""))
        if identity in self._homes and url and identity in self._locale_of:
            self.prefixes[self._locale_of[identity]] = urlsplit(url).path.rstrip("/")

    def _parent(self, item: Item, label: str, site: int, stack: list[_Branch]) -> int | None:
        """The parent of a page; cuts the branch that the last page was on down to it."""
        identity, url = item["id"], _address(item)
        above = _above(url, item["meta"].get("slug"))
        if identity in self._homes:
            stack.clear()
            return None
        if above is not None and not self._is_exact and _cut(stack, "url", above):
            return stack[-1].id
        asked = {**self._site(site), "fields": "_,parent"}
        found = _parent_in(self._source.ask(f"pages/{identity}/", **asked).data)
        if found is not None:
            if not _cut(stack, "id", found):
                raise SourceError(
                    f"Page {identity} of {self._source.base} has the parent {found}, which does "
                    "not come before it, as it does in a tree."
                )
            return found
        if url is None:
            stack.clear()
            return None
        # The page above is hidden, and has no place of its own where addresses do not tell it.
        if above is None or any(branch.url == above for branch in stack):
            above = f"{stack[0].url}hidden-{identity}/"
        return self._hide(above, label, site, stack)

    def _hide(self, above: str, label: str, site: int, stack: list[_Branch]) -> int | None:
        """Adds pages that stand for hidden ones, down to an address; returns the last one."""
        while stack and not above.startswith(stack[-1].url):
            stack.pop()
        start = stack[-1].url if stack else _root(above)
        url, slugs = start, above[len(start) :].strip("/").split("/")
        if len(slugs) > DEEPEST:
            raise SourceError(
                f"{self._source.base} has a page below {len(slugs):,} hidden ones; a tree has at "
                f"most {DEEPEST} levels."
            )
        for slug in slugs:
            url = f"{url}{slug}/"
            identity = HIDDEN + crc32(url.encode())
            if identity not in self.ids["pages"]:
                self.ids["pages"].add(identity)
                parent = stack[-1].id if stack else None
                self.tree.append(PlacedPage(identity, label, parent, site, unquote(slug)))
            stack.append(_Branch(identity, url))
        return stack[-1].id

    def _read_types(self, site: int) -> bool:
        if len(self._labels["pages", site]) > MOST_NAMES:
            raise SourceError(f"{self._source.base} has more than {MOST_NAMES} types of pages.")
        parents = {page.id: page.parent for page in self.tree if page.site == site}
        is_known = False
        for label, ids in self._labels["pages", site].items():
            shape = self.shapes.types["pages"][label]
            for item in self.items("pages", label, site):
                shape.note(item)
                if self._as_stored and not is_known and "linktype=" in str(item):
                    self._find_format(item, site)
                    is_known = True
                own = item["meta"].get("type")
                if isinstance(own, str) and own != label:
                    shape.includes.add(_checked(own))
            shown = self._source.ask(f"pages/{ids[0]}/", **self._site(site)).data
            self._compare_detail("pages", label, site, shown)
            placed = parents[ids[0]]
            is_right = placed is None or placed >= HIDDEN or _parent_in(shown) == placed
            if not is_right and self._is_exact:
                raise SourceError(f"{self._source.base} gives page {ids[0]} two parents.")
            if not is_right:
                return False
        return True

    def _compare_detail(self, endpoint: str, label: str, site: int, shown: Any) -> None:
        """Sees to it that details are asked for if they have more than lists have."""
        shape = self.shapes.types[endpoint][label]
        if not isinstance(shown, dict) or not isinstance(shown.get("meta"), dict):
            raise SourceError(f"{self._source.base}{endpoint}/ has an object without its details.")
        listed = {*shape.body, *shape.meta, "id", *["parent"] * (endpoint == "pages")}
        if {*shown_keys(shown)} - listed and (endpoint, label) not in self._in_details:
            self._in_details.add((endpoint, label))
            for item in self.items(endpoint, label, site):
                shape.note(item)

    def _find_format(self, item: Item, site: int) -> None:
        path, asked = f"pages/{item['id']}/", self._site(site)
        shown = self._source.ask(path, **asked).data
        for name in ("html", "markdown", "db_markdown"):
            if shown == self._source.ask(path, **asked, rich_text_format=name).data:
                self.rich_text_format = name

    # Other endpoints.

    def _read_others(self, endpoints: Sequence[str]) -> None:
        shown = self._index.get("endpoints")
        named = [n for n in shown if str(n).isidentifier()] if isinstance(shown, dict) else []
        waiting = ["images", "documents", "redirects", *named, *endpoints]
        for name in waiting:
            if name in self.ids:
                continue
            if len(waiting) > MOST_NAMES:
                raise SourceError(f"{self._source.base} names more than {MOST_NAMES} endpoints.")
            first = self._source.ask(f"{name}/", limit=1)
            if first.status == 200:
                self._read_endpoint(name, first.data)
            elif name in endpoints:
                raise SourceError(f"{self._source.base} has no endpoint {name!r}.")
            waiting += [found for found in self.shapes.endpoints if found not in waiting]

    def _read_endpoint(self, name: str, first: Any) -> None:
        self.ids[name] = ids = set()
        labels = self._labels[name, 0]
        path = f"{name}/"
        for item in self._list(path, f"reading {name}", fields="*", **self._as_stored):
            label = _checked(item["meta"].get("type"))
            labels.setdefault(label, []).append(item["id"])
            ids.add(item["id"])
            self.shapes.types[name][label].note(item)
        for label, found in labels.items():
            shape = self.shapes.types[name][label]
            for item in _items(first, self._source.base):
                if item["meta"].get("type") == label:
                    shape.listed = shown_keys(item)
            shown = self._source.ask(f"{name}/{found[0]}/").data
            self._compare_detail(name, label, 0, shown)

    def items(self, endpoint: str, label: str, site: int = 0) -> Iterator[Item]:
        """The objects of a type with all their fields, in the order of lists.

        Pages of types that derive from it are among them, with the fields that they share.
        """
        everything = {**self._as_stored, **self._site(site), "fields": "*"}
        if (endpoint, label) in self._in_details:
            ids = self._labels[endpoint, site][label]
            paths = ((f"{endpoint}/{identity}/", everything) for identity in ids)
            answers = watched(self._source.ask_all(paths), f"reading {label}", len(ids))
            for identity, answer in zip(ids, answers, strict=True):
                if not _is_item(answer.data) or answer.data["id"] != identity:
                    raise SourceError(
                        f"{self._source.base}{endpoint}/{identity}/ has no object {identity}. Is "
                        "it being changed? Pull again."
                    )
                yield answer.data
        elif endpoint != "pages":
            found = self._list(f"{endpoint}/", f"reading {label}", fields="*", **self._as_stored)
            yield from (item for item in found if item["meta"].get("type") == label)
        elif label == UNDECLARED:
            found = self._list("pages/", "reading pages", **everything)
            yield from (item for item in found if item["meta"].get("type") is None)
        else:
            yield from self._list("pages/", f"reading {label}", type=label, **everything)

    def pages(self) -> Iterator[tuple[PlacedPage, Item | None]]:
        readers = {
            (site, label): self._own_items(label, site)
            for (endpoint, site), labels in [*self._labels.items()]
            if endpoint == "pages"
            for label in labels
        }
        for page in self.tree:
            if page.slug:
                yield page, None
                continue
            item = next(readers[page.site, page.label], None)
            if item is None or item["id"] != page.id:
                raise SourceError(
                    f"The list of {page.label} at {self._source.base} is in another order than "
                    "that of all pages. Is it being changed? Pull again."
                )
            yield page, item

    def _own_items(self, label: str, site: int) -> Iterator[Item]:
        """The pages of a site with a type, without those of derived types and other sites."""
        own = {*self._labels["pages", site][label]}
        return (item for item in self.items("pages", label, site) if item["id"] in own)

    def others(self, endpoint: str) -> Iterator[tuple[str, Item]]:
        for label in self._labels[endpoint, 0]:
            for item in self.items(endpoint, label):
                yield label, item

    # Languages.

    def _read_translations(self) -> None:
        if not self.i18n:
            return
        keys = "_,id,translations(_,id)"
        if self._source.ask("pages/", limit=1, fields=keys).status == 200:
            for number in range(len(self.sites)):
                asked = {**self._site(number), "fields": keys}
                for item in self._list("pages/", "reading translations", **asked):
                    others = item["meta"].get("translations") or []
                    self.note_translations([item["id"], *(other["id"] for other in others)])
            return
        # Each group is asked for once, by the first of its pages.
        pages = [page for page in self.tree if not page.slug]
        last = [*self.locales][-1] if self.locales else ""
        for page in watched(pages, "reading translations", len(pages)):
            known = page.id in self.translation_keys
            if known or (self._locale_of.get(page.id) == last and len(self.locales) > 1):
                continue
            asked = {**self._site(page.site), "fields": "_,id", "translation_of": str(page.id)}
            items = self._list("pages/", "", **asked)
            self.note_translations([page.id, *(item["id"] for item in items)])


def _items(data: Any, url: str) -> list[Item]:
    items = data.get("items") if isinstance(data, dict) else None
    if not isinstance(items, list) or not all(map(_is_item, items)):
        raise SourceError(f"{url} is no list of objects with id and meta, as this API has them.")
    return items


def _is_item(item: Any) -> bool:
    is_object = isinstance(item, dict) and isinstance(item.setdefault("meta", {}), dict)
    return is_object and type(item.get("id")) is int and item["id"] >= 0


def _parent_in(detail: Any) -> int | None:
    """The page above, if a detail shows it."""
    meta = detail.get("meta") if isinstance(detail, dict) else None
    parent = reference_in(meta.get("parent")) if isinstance(meta, dict) else None
    return parent and parent.id


def _total(data: Any, url: str) -> int:
    meta = data.get("meta") if isinstance(data, dict) else None
    total = meta.get("total_count") if isinstance(meta, dict) else None
    if type(total) is not int or not 0 <= total <= MOST_OBJECTS:
        raise SourceError(
            f"{url} has the total_count {total!r}; it can be from 0 to {MOST_OBJECTS:,}."
        )
    return total


def _checked(label: Any) -> str:
    if not is_label(label):
        raise SourceError(f"The source has the type {label!r}; it is to be as blog.ArticlePage.")
    return label


def _address(item: Item) -> str | None:
    url = item["meta"].get("html_url")
    return f"{url.rstrip('/')}/" if url and is_address(url) else None


def _root(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/" if parts.netloc else "/"


def _above(url: str | None, slug: Any) -> str | None:
    if url is None or len(url) <= len(_root(url)):
        return None
    head, _, last = url[:-1].rpartition("/")
    return f"{head}/" if unquote(last) == slug else None


def _cut(stack: list[_Branch], key: str, value: Any) -> bool:
    """Cuts a branch behind the last page with a value; returns whether there is one."""
    for depth in range(len(stack) - 1, -1, -1):
        if getattr(stack[depth], key) == value:
            del stack[depth + 1 :]
            return True
    return False

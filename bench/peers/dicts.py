"""The hand-written API on dicts in memory, with an index for each kind of query."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from flask import Flask, Response, abort, redirect, request
from flask.typing import ResponseReturnValue

from bench.content import Record, Records
from bench.peers import items
from bench.peers.tree import placed, plain_text
from bench.workloads import PREFIX

__all__ = ["create_app"]

PAGE = itemgetter("id", "type", "url", "slug", "first_published_at", "locale", "title")
WHOLE = itemgetter(
    *("id", "type", "url", "slug", "show_in_menus", "seo_title", "search_description"),
    *("first_published_at", "locale", "title"),
)
ARTICLE = itemgetter("date", "intro", "body", "tags", "links")
FILE = itemgetter("id", "title", "file")
SIZED = itemgetter("id", "title", "file", "width", "height")
#: The weight of a word in a title; elsewhere it is 1.
TITLE_WEIGHT = 8
_WORD = re.compile("[a-z]+")


class Store:
    """The public content, with an index for each kind of query.

    :param records: the content.
    """

    def __init__(self, records: Mapping[str, Iterable[Any]]) -> None:
        self.images = {record["id"]: record for record in records["images"]}
        self.documents = {record["id"]: record for record in records["documents"]}
        self.all_images = list(self.images.values())
        self.pages = [
            {**page, "path": place.path, "url": place.url, "above": place.above}
            for page, place in placed(records["pages"])
            if place.public
        ]
        self.pages.sort(key=itemgetter("path"))
        self.by_id = {page["id"]: page for page in self.pages}
        self.by_url = {page["url"]: page for page in self.pages}
        self.by_slug = _grouped((page["slug"], page) for page in self.pages)
        self.by_type = _grouped((page["type"], page) for page in self.pages)
        self.menus = _grouped(
            (page["parent"], page) for page in self.pages if page["show_in_menus"]
        )
        self.newest_below = self._newest_below()
        self.by_tag = _grouped(
            (tag, page)
            for page in sorted(self.pages, key=itemgetter("title", "id"))
            for tag in page.get("tags", ())
        )
        self._words = self._index_words()

    def _newest_below(self) -> Mapping[int, list[Record]]:
        """The pages below each page, newest first."""
        newest = sorted(self.pages, key=itemgetter("id"))
        newest.sort(key=itemgetter("first_published_at"), reverse=True)
        return _grouped((above, page) for page in newest for above in page["above"])

    def _index_words(self) -> Mapping[str, dict[int, int]]:
        """For each word the positions of the pages that have it, and its weight in each."""
        index: dict[str, dict[int, int]] = defaultdict(dict)
        for place, page in enumerate(self.pages):
            for text, weight in ((page["title"], TITLE_WEIGHT), (plain_text(page), 1)):
                for word in _WORD.findall(text.lower()):
                    index[word][place] = index[word].get(place, 0) + weight
        return index

    def search(self, words: Sequence[str]) -> list[Record]:
        """The pages that have all words, the best match first."""
        having = sorted((self._words.get(word, {}) for word in words), key=len)
        found = set(having[0])
        for other in having[1:]:
            found &= other.keys()
        best = sorted((-sum(each[place] for each in having), place) for place in found)
        return [self.pages[place] for _, place in best]

    def select(self, args: Mapping[str, str]) -> Sequence[Record]:
        """The pages that match a query."""
        if "slug" in args:
            return self.by_slug.get(args["slug"], ())
        if "child_of" in args and args.get("show_in_menus") == "true":
            return self.menus.get(int(args["child_of"]), ())
        if "descendant_of" in args and args.get("order") == "-first_published_at":
            return self.newest_below.get(int(args["descendant_of"]), ())
        if "search" in args and args.get("search_operator") == "and":
            return self.search(args["search"].split())
        if "tags" in args and args.get("order") == "title":
            return self.by_tag.get(args["tags"], ())
        return self.by_type.get(args["type"], ()) if "type" in args else self.pages

    # Items.

    def listed(self, page: Record) -> items.Item:
        """A page in a list."""
        return items.page(*PAGE(page))

    def teaser(self, page: Record) -> items.Item:
        """An article with date and photo."""
        photo = self.images.get(page["photo"])
        shown = photo and items.sized_photo(*SIZED(photo))
        return {**items.page(*PAGE(page)), "date": page["date"], "photo": shown}

    def article(self, page: Record) -> items.Item:
        """An article with all fields."""
        return {**items.whole_page(*WHOLE(page)), **self._own(page)}

    def detail(self, page: Record) -> items.Item:
        """A page as in its detail view."""
        above = self.by_id.get(page["parent"])
        parent = above and items.page_link(above["id"], above["type"], above["title"], above["url"])
        whole = items.whole_page(*WHOLE(page), further={"parent": parent})
        return {**whole, **self._own(page)} if "body" in page else whole

    def _own(self, page: Record) -> items.Item:
        photo = self.images.get(page["photo"])
        paper = self.documents.get(page["attachment"])
        other = self.by_id.get(page["see_also"])
        return items.article(
            *ARTICLE(page),
            photo=photo and items.file("magazine.Photo", *FILE(photo)),
            attachment=paper and items.file("magazine.Paper", *FILE(paper)),
            see_also=other and items.page_link(other["id"], other["type"], other["title"]),
        )


def _grouped(pairs: Iterable[tuple[Any, Record]]) -> Mapping[Any, list[Record]]:
    groups: dict[Any, list[Record]] = {}
    for key, record in pairs:
        groups.setdefault(key, []).append(record)
    return groups


def create_app(folder: str) -> Flask:
    """The site.

    :param folder: the folder with the records.
    """
    app = Flask(__name__)
    store = Store(Records(Path(folder)))
    shapes = {None: store.listed, "*": store.article, items.TEASER: store.teaser}

    @app.get(f"{PREFIX}/pages/")
    def pages() -> Response:
        shape = shapes.get(request.args.get("fields")) or abort(400)
        return _list(store.select(request.args), shape)

    @app.get(f"{PREFIX}/images/")
    def images() -> Response:
        return _list(store.all_images, lambda r: items.listed_photo(*FILE(r), tags=r["tags"]))

    @app.get(f"{PREFIX}/pages/<int:identity>/")
    def detail(identity: int) -> Response:
        return items.json_response(store.detail(store.by_id.get(identity) or abort(404)))

    @app.get(f"{PREFIX}/pages/find/")
    def find() -> ResponseReturnValue:
        page = store.by_url.get(request.args["html_path"]) or abort(404)
        return redirect(f"{items.API}/pages/{page['id']}/")

    return app


def _list(found: Sequence[Record], shape: Any) -> Response:
    offset, limit = request.args.get("offset", 0, int), request.args.get("limit", 20, int)
    some = [shape(record) for record in found[offset : offset + limit]]
    return items.json_response({"meta": {"total_count": len(found)}, "items": some})

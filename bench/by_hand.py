"""The same API, written by hand for this one site: on dicts, and on tables of a database.

Only what everybody may see is stored, so that nothing has to be checked.
"""

from __future__ import annotations

import re
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

import orjson
import psycopg
from flask import Flask, Response, redirect, request
from flask.typing import ResponseReturnValue

from bench.magazine import HOST, PREFIX, Record, records

Row = Sequence[Any]
Found = tuple[int, Sequence[Row]]
LINK = {"type": "magazine.Link"}
SITE, API = f"http://{HOST}", f"http://{HOST}{PREFIX}"

# Items, each made of a row.


def _listed(row: Row) -> Record:
    id, type, url, slug, published, locale, title = row
    meta = {"type": type, "detail_url": f"{API}/pages/{id}/", "html_url": f"{SITE}{url}"}
    meta |= {"slug": slug, "first_published_at": published, "locale": locale}
    return {"id": id, "meta": meta, "title": title}


def _teaser(row: Row) -> Record:
    photo = _file(row[8:11])
    photo = photo and {**photo, "width": row[11], "height": row[12]}
    return {**_listed(row[:7]), "date": row[7], "photo": photo}


def _whole(row: Row, **further: Any) -> Record:
    id, type, url, slug, published, locale, title, in_menus, seo_title, description = row[:10]
    meta = {"type": type, "detail_url": f"{API}/pages/{id}/", "html_url": f"{SITE}{url}"}
    meta |= {"slug": slug, "show_in_menus": bool(in_menus), "seo_title": seo_title}
    meta |= {"search_description": description, "first_published_at": published}
    meta |= {"expires_at": None, "alias_of": None, **further, "locale": locale}
    item = {"id": id, "meta": meta, "title": title}
    if row[10] is not None:
        item |= {"date": row[10], "intro": row[11], "body": row[12]}
        item |= {"photo": _file(row[15:18]), "see_also": _link(row[18:21])}
        item |= {"tags": orjson.Fragment(row[13]), "links": orjson.Fragment(row[14])}
    return item


def _file(row: Row, **tags: Any) -> Any:
    id, title, file = row
    meta = {"type": "magazine.Photo", "detail_url": f"{API}/images/{id}/", **tags}
    return id and {
        "id": id,
        "meta": {**meta, "download_url": f"{SITE}/media/{file}"},
        "title": title,
    }


def _link(row: Row) -> Any:
    id, type, title, *url = row
    meta = {"type": type, "detail_url": f"{API}/pages/{id}/"}
    if url:
        meta["html_url"] = f"{SITE}{url[0]}"
    return id and {"id": id, "meta": meta, "title": title}


class Shape(NamedTuple):
    """How objects are shown: items are made of rows with these columns."""

    item: Callable[[Row], Record]
    columns: str
    joins: str = ""


COLUMNS = "p.id, p.type, p.url, p.slug, p.published, p.locale, p.title"
ARTICLE = " LEFT JOIN article a ON a.page = p.id LEFT JOIN photo f ON f.id = a.photo"
LISTED = Shape(_listed, COLUMNS)
TEASER = Shape(_teaser, f"{COLUMNS}, a.date, f.id, f.title, f.file, f.width, f.height", ARTICLE)
WHOLE = Shape(
    _whole,
    f"{COLUMNS}, p.in_menus, p.seo_title, p.description, a.date, a.intro, a.body, a.tags, a.links,"
    " f.id, f.title, f.file, o.id, o.type, o.title",
    f"{ARTICLE} LEFT JOIN page o ON o.id = a.see_also",
)
DETAIL = Shape(
    lambda row: _whole(row, parent=_link(row[21:25])),
    f"{WHOLE.columns}, u.id, u.type, u.title, u.url",
    f"{WHOLE.joins} LEFT JOIN page u ON u.id = p.parent",
)
PHOTO = Shape(
    lambda row: _file(row[:3], tags=orjson.Fragment(row[3])), "p.id, p.title, p.file, p.tags"
)
SHAPES = {"": LISTED, "*": WHOLE, "title,date,photo(width,height)": TEASER}


#: What databases do differently: texts that compare by code point, and the search for words.
DIALECTS = {
    "sqlite": {
        "text": "TEXT",
        "search": "CREATE VIRTUAL TABLE words USING fts5 (title, rest, content='')",
        "words": "words (rowid, title, rest) VALUES (?, ?, ?)",
        "found": "SELECT rowid AS id, bm25(words, 8, 1) AS score FROM words WHERE words MATCH ?",
    },
    "postgresql": {
        "text": 'TEXT COLLATE "C"',
        "search": "CREATE TABLE words (id INTEGER PRIMARY KEY, texts tsvector);"
        "CREATE INDEX words_texts ON words USING gin (texts)",
        "words": "words VALUES"
        " (?, setweight(to_tsvector('simple', ?), 'A') || to_tsvector('simple', ?))",
        "found": "SELECT id, -ts_rank(texts, wanted) AS score"
        " FROM words, plainto_tsquery('simple', ?) wanted WHERE texts @@ wanted",
    },
}
TABLES = """
CREATE TABLE photo (
    id INTEGER PRIMARY KEY, title TEXT, file TEXT, tags TEXT, width INTEGER, height INTEGER);
CREATE TABLE page (
    id INTEGER PRIMARY KEY, type {text}, parent INTEGER, title {text}, slug {text}, locale TEXT,
    published {text}, seo_title TEXT, description TEXT, in_menus INTEGER, url {text}, place {text});
CREATE TABLE article (
    page INTEGER PRIMARY KEY, date TEXT, tags TEXT, intro TEXT, body TEXT,
    photo INTEGER, see_also INTEGER, links TEXT);
CREATE TABLE below (above INTEGER, published {text}, page INTEGER);
CREATE TABLE tagged (tag {text}, page INTEGER, PRIMARY KEY (tag, page));
CREATE INDEX page_place ON page (place);
CREATE INDEX page_type ON page (type, place);
CREATE INDEX page_slug ON page (slug);
CREATE INDEX page_menu ON page (parent, in_menus, place);
CREATE INDEX page_url ON page (url);
CREATE INDEX below_newest ON below (above, published DESC, page);
"""
#: Tables, condition and order for each kind of query, by the first of these filters.
QUERIES = {
    "id": ("page p", "WHERE p.id = ?", "p.id"),
    "slug": ("page p", "WHERE p.slug = ?", "p.place"),
    "html_path": ("page p", "WHERE p.url = ?", "p.place"),
    "child_of": ("page p", "WHERE p.parent = ? AND p.in_menus = 1", "p.place"),
    "descendant_of": (
        "below b JOIN page p ON p.id = b.page",
        "WHERE b.above = ?",
        "b.published DESC, b.page",
    ),
    "tags": ("tagged t JOIN page p ON p.id = t.page", "WHERE t.tag = ?", "p.title, p.id"),
    "type": ("page p", "WHERE p.type = ?", "p.place"),
    "": ("page p", "", "p.place"),
}
#: The columns of objects, as their records name them.
_PHOTO = itemgetter("id", "title", "file", "tags", "width", "height")
_PAGE = itemgetter(
    *("id", "type", "parent", "title", "slug", "locale", "first_published_at", "seo_title"),
    *("search_description", "show_in_menus", "url", "place"),
)
_ARTICLE = itemgetter(*("id", "date", "tags", "intro", "body", "photo", "see_also", "links"))


class Tables:
    """A database, at the address that the product has for it; all are asked the same."""

    def __init__(self, address: str) -> None:
        parts, self._connection = urlsplit(address), cast(Any, None)
        self._dialect, self._mark = DIALECTS[parts.scheme], "%s"
        if parts.scheme == "sqlite":
            self._mark = "?"
            self._connection = sqlite3.connect(parts.path[1:], check_same_thread=False)
            self._connection.isolation_level = None
        else:
            self._connection = psycopg.connect(address, autocommit=True)
        self._sql = cache(lambda sql: sql.replace("?", self._mark))

    def rows(self, sql: str, *values: Any) -> Sequence[Row]:
        """The rows that a statement returns."""
        cursor = self._connection.cursor()
        cursor.execute(self._sql(sql), values)
        return cursor.fetchall() if cursor.description else ()

    def load(self, folder: str) -> None:
        """Makes the tables and fills them with the content in a folder."""
        for sql in (TABLES.format(**self._dialect) + self._dialect["search"]).split(";"):
            self.rows(sql)
        content = records(folder)
        self.rows("BEGIN")
        self._insert("photo", map(_PHOTO, content["images"]))
        pages = _public(content["pages"])
        while some := list(islice(pages, 1000)):
            self._insert("page", map(_PAGE, some))
            self._insert("article", [_ARTICLE(page) for page in some if "body" in page])
            dated = [(up, p["first_published_at"], p["id"]) for p in some for up in p["above"]]
            self._insert("below", dated)
            self._insert("tagged", [(tag, p["id"]) for p in some for tag in p.get("tags", ())])
            self._insert("words", [(page["id"], page["title"], page["texts"]) for page in some])
        self.rows("COMMIT")

    def _insert(self, table: str, rows: Iterable[Row]) -> None:
        values = [[*map(_stored, row)] for row in rows]
        marks = ", ".join("?" * len(values[0])) if values else ""
        sql = self._dialect["words"] if table == "words" else f"{table} VALUES ({marks})"
        if values:
            self._connection.cursor().executemany(self._sql(f"INSERT INTO {sql}"), values)

    def select(self, query: Mapping[str, str], shape: Shape, first: int, limit: int) -> Found:
        """How many objects match a query, and rows of some of them."""
        name = next((name for name in QUERIES if name in query), "")
        (tables, where, order), values = QUERIES[name], [query[name]] if name else []
        if shape is PHOTO:
            tables, order = "photo p", "p.id"
        elif "search" in query:
            tables = f"({self._dialect['found']}) w JOIN page p ON p.id = w.id"
            order, values = "w.score, w.id", [query["search"]]
        sql = f"SELECT {shape.columns} FROM {tables}{shape.joins} {where} ORDER BY {order}"
        rows = self.rows(f"{sql} LIMIT {limit} OFFSET {first}", *values)
        # Fewer rows than the limit are the last ones, so that nothing has to be counted.
        if len(rows) < limit and (rows or not first):
            return first + len(rows), rows
        return self.rows(f"SELECT count(*) FROM {tables} {where}", *values)[0][0], rows


def _public(pages: Iterable[Record]) -> Iterator[Record]:
    """The pages that everybody may see, with what is derived from their places in the tree."""
    places: dict[int | None, tuple[str, str, list[int]]] = {None: ("/", "", [])}
    for page in pages:
        id, up = page["id"], page["parent"]
        if up in places and "restriction" not in page and page.get("live", True):
            url, place, above = places[up]
            url, place = f"{url}{page['slug'] if up else page['locale']}/", f"{place}{id:07}"
            places[id] = url, place, [*above, up] if up else []
            links = [{"id": own.pop("id"), "meta": LINK, **own} for own in page.get("links", ())]
            texts = f"{page.get('intro', '')} {page.get('body', '')}"
            derived = {"url": url, "place": place, "above": places[id][2], "texts": texts}
            yield page | derived | {"links": links}


def _stored(value: Any) -> Any:
    """A value as a column has it."""
    if isinstance(value, list):
        return orjson.dumps(value).decode()
    return int(value) if isinstance(value, bool) else value


class Dicts:
    """The rows of tables in memory, in a list for each query."""

    def __init__(self, tables: Tables) -> None:
        columns = f"{DETAIL.columns}, f.width, f.height, p.parent"
        sql = f"SELECT {columns} FROM page p{DETAIL.joins} ORDER BY p.place"
        pages = {row[0]: row for row in tables.rows(sql)}
        self._lists = defaultdict[str, list[Row]](list)
        self._lists["images"] += tables.rows(f"SELECT {PHOTO.columns} FROM photo p ORDER BY p.id")
        self._words, self._pages = defaultdict[str, dict[int, int]](dict), pages
        for row in pages.values():
            id, type, url, slug = row[:4]
            queries = ["", f"type={type}", f"slug={slug}", f"id={id}", f"html_path={url}"]
            queries += [f"child_of={row[27]}&show_in_menus=true"] * row[7]
            for query in queries:
                self._lists[query].append(row)
            for text, weight in ((row[6], 8), (f"{row[11]} {row[12]}", 1)):
                for word in re.findall("[a-z]+", text.lower()):
                    self._words[word][id] = self._words[word].get(id, 0) + weight
        for up, id in tables.rows("SELECT above, page FROM below ORDER BY published DESC, page"):
            self._lists[f"descendant_of={up}&order=-first_published_at"].append(pages[id])
        sql = "SELECT tag, p.id FROM tagged JOIN page p ON p.id = page ORDER BY p.title, p.id"
        for tag, id in tables.rows(sql):
            query = f"type=magazine.ArticlePage&tags={tag}&order=title"
            self._lists[query].append(pages[id])

    def select(self, query: Mapping[str, str], shape: Shape, first: int, limit: int) -> Found:
        """How many objects match a query, and rows of some of them."""
        if "search" in query:
            of = [self._words.get(word, {}) for word in query["search"].split()]
            both = set(of[0]).intersection(*of[1:])
            best = sorted((-sum(each[id] for each in of), id) for id in both)
            found: Sequence[Row] = [self._pages[id] for _, id in best]
        else:
            text = "&".join(f"{name}={value}" for name, value in query.items())
            found = self._lists.get("images" if shape is PHOTO else text, ())
        rows = found[first : first + limit]
        if shape is LISTED:
            rows = [row[:7] for row in rows]
        elif shape is TEASER:
            rows = [(*row[:7], row[10], *row[15:18], *row[25:27]) for row in rows]
        return len(found), rows


def create_app(address: str, in_memory: bool = False) -> Flask:
    """The site, on a database that is filled, or on dicts that are made of it."""
    app, tables = Flask(__name__), Tables(address)
    select = (Dicts(tables) if in_memory else tables).select

    @app.get(f"{PREFIX}/<any(pages, images):endpoint>/")
    def listed(endpoint: str) -> Response:
        query = request.args.to_dict()
        shape = PHOTO if endpoint == "images" else SHAPES[query.pop("fields", "")]
        first, limit = int(query.pop("offset", 0)), int(query.pop("limit", 20))
        total, rows = select(query, shape, first, limit)
        found = {"meta": {"total_count": total}, "items": [*map(shape.item, rows)]}
        return Response(orjson.dumps(found), mimetype="application/json")

    @app.get(f"{PREFIX}/pages/<id>/")
    def detail(id: str) -> Response:
        _, (row,) = select({"id": id}, DETAIL, 0, 2)
        return Response(orjson.dumps(DETAIL.item(row)), mimetype="application/json")

    @app.get(f"{PREFIX}/pages/find/")
    def find() -> ResponseReturnValue:
        _, ((id, *_),) = select(request.args, LISTED, 0, 2)
        return redirect(f"{API}/pages/{id}/")

    return app


def constant(file: str) -> Flask:
    """A site that always gives what is in a file."""
    app, body = Flask(__name__), Path(file).read_bytes()

    @app.get("/<path:anything>")
    def answer(anything: str) -> Response:
        return Response(body, mimetype="application/json")

    return app

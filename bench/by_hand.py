"""The same API, written by hand for this one site: on dicts, and on tables of a database.

Only what everybody may see is stored, so that nothing has to be checked.
"""

from __future__ import annotations

import re
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import orjson
import psycopg
from flask import Flask, Response, redirect, request
from flask.typing import ResponseReturnValue

from bench.content import HOST, PREFIX, TEASER, Record, records

Row = Sequence[Any]
Found = tuple[int, Sequence[Row]]
SITE, API = f"http://{HOST}", f"http://{HOST}{PREFIX}"

# Items, each made of a row.


def _listed(row: Row) -> Record:
    id, type, url, slug, published, locale, title = row
    meta = {"type": type, "detail_url": f"{API}/pages/{id}/", "html_url": f"{SITE}{url}"}
    meta |= {"slug": slug, "first_published_at": published, "locale": locale}
    return {"id": id, "meta": meta, "title": title}


def _teaser(row: Row) -> Record:
    photo = row[8] and {**_file(row[8:11]), "width": row[11], "height": row[12]}
    return {**_listed(row[:7]), "date": row[7], "photo": photo}


def _whole(row: Row, **further: Any) -> Record:
    id, type, url, slug, published, locale, title, in_menus, seo_title, description = row[:10]
    meta = {"type": type, "detail_url": f"{API}/pages/{id}/", "html_url": f"{SITE}{url}"}
    meta |= {"slug": slug, "show_in_menus": bool(in_menus), "seo_title": seo_title}
    meta |= {"search_description": description, "first_published_at": published}
    meta |= {"expires_at": None, "alias_of": None, **further, "locale": locale}
    item = {"id": id, "meta": meta, "title": title}
    date, intro, body, tags, links = row[10:15]
    if date is not None:
        item |= {"date": date, "intro": intro, "body": body}
        item |= {"photo": _file(row[15:18]), "see_also": _link(row[18:21])}
        item |= {"tags": orjson.Fragment(tags), "links": orjson.Fragment(links)}
    return item


def _detail(row: Row) -> Record:
    return _whole(row, parent=_link(row[21:25]))


def _photo(row: Row) -> Any:
    return _file(row, tags=orjson.Fragment(row[3]))


def _file(row: Row, **tags: Any) -> Any:
    id, title, file = row[:3]
    meta = {"type": "magazine.Photo", "detail_url": f"{API}/images/{id}/", **tags}
    meta["download_url"] = f"{SITE}/media/{file}"
    return id and {"id": id, "meta": meta, "title": title}


def _link(row: Row) -> Any:
    id, type, title, *url = row
    meta = {"type": type, "detail_url": f"{API}/pages/{id}/"}
    if url:
        meta["html_url"] = f"{SITE}{url[0]}"
    return id and {"id": id, "meta": meta, "title": title}


COLUMNS = "p.id, p.type, p.url, p.slug, p.first_published_at, p.locale, p.title"
ALL = (
    f"{COLUMNS}, p.show_in_menus, p.seo_title, p.search_description, a.date, a.intro, a.body,"
    " a.tags, a.links, f.id, f.title, f.file, o.id, o.type, o.title"
)
ARTICLE = " LEFT JOIN article a ON a.id = p.id LEFT JOIN photo f ON f.id = a.photo"
OTHER = " LEFT JOIN page o ON o.id = a.see_also"
PARENT = " LEFT JOIN page u ON u.id = p.parent"
#: How objects are shown: what makes an item of a row, the columns of the row, and joins for them;
#: those of lists by ``fields``.
SHAPES: dict[str, tuple[Callable[[Row], Any], str, str]] = {
    "": (_listed, COLUMNS, ""),
    "*": (_whole, ALL, ARTICLE + OTHER),
    TEASER: (_teaser, f"{COLUMNS}, a.date, f.id, f.title, f.file, f.width, f.height", ARTICLE),
    "detail": (_detail, f"{ALL}, u.id, u.type, u.title, u.url", ARTICLE + OTHER + PARENT),
    "images": (_photo, "p.id, p.title, p.file, p.tags", ""),
}
#: What databases do differently: texts that compare by code point, and the search for words.
DIALECTS = {
    "sqlite": {
        "text": "TEXT",
        "words": "CREATE VIRTUAL TABLE words USING fts5 (title, rest, content='');"
        "INSERT INTO words (rowid, title, rest) SELECT id, title, intro || ' ' || body"
        " FROM page LEFT JOIN article USING (id)",
        "found": "SELECT rowid AS id, bm25(words, 8, 1) AS score FROM words WHERE words MATCH ?",
    },
    "postgresql": {
        "text": 'TEXT COLLATE "C"',
        "words": "CREATE TABLE words AS SELECT id, setweight(to_tsvector('simple', title), 'A')"
        " || to_tsvector('simple', concat(intro, ' ', body)) AS texts"
        " FROM page LEFT JOIN article USING (id);"
        "CREATE INDEX by_word ON words USING gin (texts)",
        "found": "SELECT id, -ts_rank(texts, wanted) AS score"
        " FROM words, plainto_tsquery('simple', ?) wanted WHERE texts @@ wanted",
    },
}
#: The columns of the tables, most of them as content names them.
TABLES = {
    "photo": "id INTEGER PRIMARY KEY, title TEXT, file TEXT, tags TEXT, width INTEGER,"
    " height INTEGER",
    "page": "id INTEGER PRIMARY KEY, type TEXT, parent INTEGER, title TEXT, slug TEXT,"
    " locale TEXT, first_published_at TEXT, seo_title TEXT, search_description TEXT,"
    " show_in_menus BOOLEAN, url TEXT, place TEXT",
    "article": "id INTEGER PRIMARY KEY, date TEXT, tags TEXT, intro TEXT, body TEXT,"
    " photo INTEGER, see_also INTEGER, links TEXT",
    "below": "top INTEGER, first_published_at TEXT, id INTEGER",
    "tagged": "tag TEXT, id INTEGER",
}
INDEXES = [
    *("page (place)", "page (type, place)", "page (slug)", "page (url)", "tagged (tag, id)"),
    *("page (parent, place) WHERE show_in_menus", "below (top, first_published_at DESC, id)"),
]
#: For each kind of query the rows that it is about, their column that it names, and the order; a
#: query is of the first kind that it has a parameter for.
QUERIES = {
    "id": ("page p", "p.id", "p.id"),
    "slug": ("page p", "p.slug", "p.place"),
    "html_path": ("page p", "p.url", "p.place"),
    "child_of": ("(SELECT * FROM page WHERE show_in_menus) p", "p.parent", "p.place"),
    "descendant_of": ("below b JOIN page p USING (id)", "b.top", "b.first_published_at DESC, b.id"),
    "tags": ("tagged t JOIN page p ON p.id = t.id", "t.tag", "p.title, p.id"),
    "search": ("", "", "w.score, w.id"),
    "type": ("page p", "p.type", "p.place"),
    "pages": ("page p", "", "p.place"),
    "images": ("photo p", "", "p.id"),
}


class Tables:
    """A database, at the address that the product has for it; all are asked the same."""

    def __init__(self, address: str) -> None:
        kind, _, file = address.partition(":///")
        self._connection: Any
        if kind == "sqlite":
            self._mark, self._connection = "?", sqlite3.connect(file, isolation_level=None)
        else:
            self._mark, self._connection = "%s", psycopg.connect(address, autocommit=True)
        self._dialect = DIALECTS[address.partition(":")[0]]

    def rows(self, sql: str, *values: Any) -> Sequence[Row]:
        """The rows that a statement returns."""
        cursor = self._connection.execute(sql.replace("?", self._mark), values)
        return cursor.fetchall() if cursor.description else ()

    def load(self, size: int) -> None:
        """Makes the tables and fills them with a number of pages."""
        found = records(size)
        pages = [*_public(found["pages"])]
        articles = [page for page in pages if "body" in page]
        filled = {"photo": found["images"], "page": pages, "article": articles}
        filled["below"] = ({**page, "top": top} for page in pages for top in page["ups"])
        filled["tagged"] = ({**page, "tag": tag} for page in articles for tag in page["tags"])
        self.rows("BEGIN")
        for table, columns in TABLES.items():
            self.rows(f"CREATE TABLE {table} ({columns})".replace("TEXT", self._dialect["text"]))
            names = [column.split()[0] for column in columns.split(", ")]
            rows = [[_stored(record[name]) for name in names] for record in filled[table]]
            sql = f"INSERT INTO {table} VALUES ({', '.join(self._mark for _ in names)})"
            self._connection.cursor().executemany(sql, rows)
        indexes = [f"CREATE INDEX by_{number} ON {on}" for number, on in enumerate(INDEXES)]
        for sql in (*indexes, *self._dialect["words"].split(";")):
            self.rows(sql)
        self.rows("COMMIT")

    def select(self, kind: str, value: str, shape: str, first: int, limit: int) -> Found:
        """How many objects a query finds, and rows of some of them."""
        (tables, key, order), (_, columns, joins), where = QUERIES[kind], SHAPES[shape], ""
        values = [value] if value else []
        if kind == "search":
            tables = f"({self._dialect['found']}) w JOIN page p ON p.id = w.id"
        elif key:
            where = f" WHERE {key} = ?"
        sql = f"SELECT {columns} FROM {tables}{joins}{where} ORDER BY {order}"
        rows = self.rows(f"{sql} LIMIT {limit} OFFSET {first}", *values)
        # Fewer rows than the limit are the last ones, so that nothing has to be counted.
        if len(rows) < limit and (rows or not first):
            return first + len(rows), rows
        return self.rows(f"SELECT count(*) FROM {tables}{where}", *values)[0][0], rows


def _public(pages: Iterable[Record]) -> Iterator[Record]:
    """The pages that everybody may see, with what is derived from their places in the tree."""
    places: dict[int | None, Record] = {None: {"url": "", "place": "", "ups": []}}
    for page in pages:
        id, above = page["id"], places.get(page["parent"])
        if above and "restriction" not in page and page.get("live", True):
            url = f"{above['url']}{page['slug']}/" if page["parent"] else "/"
            ups = [*above["ups"], page["parent"]] if page["parent"] else []
            places[id] = {"url": url, "place": f"{above['place']}{id:07}", "ups": ups}
            start = {"id": 0, "meta": {"type": "magazine.Link"}}
            yield page | places[id] | {"links": [start | own for own in page.get("links", ())]}


def _stored(value: Any) -> Any:
    return orjson.dumps(value).decode() if isinstance(value, list) else value


class Dicts:
    """The rows of tables in memory, with a list for each query."""

    def __init__(self, tables: Tables) -> None:
        self._rows: dict[str, dict[int, Row]] = {}
        for shape in SHAPES:
            kind = "images" if shape == "images" else "pages"
            _, rows = tables.select(kind, "", shape, 0, 10**9)
            self._rows[shape] = {row[0]: row for row in rows}
        self._found = defaultdict[tuple[str, str], list[int]](list)
        for kind, (source, key, order) in QUERIES.items():
            if source:
                sql = f"SELECT {key or 'NULL'}, p.id FROM {source} ORDER BY {order}"
                for value, id in tables.rows(sql):
                    self._found[kind, str(value or "")].append(id)
        self._words = defaultdict[str, dict[int, int]](dict)
        for id, row in self._rows["*"].items():
            for text, weight in ((row[6], 8), (f"{row[11]} {row[12]}", 1)):
                for word in re.findall("[a-z]+", text.lower()):
                    self._words[word][id] = self._words[word].get(id, 0) + weight

    def select(self, kind: str, value: str, shape: str, first: int, limit: int) -> Found:
        """How many objects a query finds, and rows of some of them."""
        if kind == "search":
            of = [self._words.get(word, {}) for word in value.split()]
            both = set(of[0]).intersection(*of[1:])
            found = [id for _, id in sorted((-sum(each[id] for each in of), id) for id in both)]
        else:
            found = self._found.get((kind, value), [])
        rows = self._rows[shape]
        return len(found), [rows[id] for id in found[first : first + limit]]


def create_app(address: str, in_memory: bool = False) -> Flask:
    """The site, on a database that is filled, or on dicts that are made of it."""
    app, tables = Flask(__name__), Tables(address)
    select = (Dicts(tables) if in_memory else tables).select

    @app.get(f"{PREFIX}/<any(pages, images):endpoint>/")
    def listed(endpoint: str) -> Response:
        query = request.args.to_dict()
        shape = endpoint if endpoint == "images" else query.get("fields", "")
        kind = next((kind for kind in QUERIES if kind in query), endpoint)
        first, limit = int(query.get("offset", 0)), int(query.get("limit", 20))
        total, rows = select(kind, query.get(kind, ""), shape, first, limit)
        found = {"meta": {"total_count": total}, "items": [*map(SHAPES[shape][0], rows)]}
        return Response(orjson.dumps(found), mimetype="application/json")

    @app.get(f"{PREFIX}/pages/<id>/")
    def detail(id: str) -> Response:
        _, (row,) = select("id", id, "detail", 0, 2)
        return Response(orjson.dumps(_detail(row)), mimetype="application/json")

    @app.get(f"{PREFIX}/pages/find/")
    def find() -> ResponseReturnValue:
        _, ((id, *_),) = select("html_path", request.args["html_path"], "", 0, 2)
        return redirect(f"{API}/pages/{id}/?locale={request.args['locale']}")

    return app

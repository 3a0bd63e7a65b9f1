"""The hand-written API on a database, with the same statements for SQLite and PostgreSQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache
from typing import Any, NamedTuple, Protocol

import orjson
import psycopg
from flask import Flask, Response, abort, redirect, request
from flask.typing import ResponseReturnValue

from bench.content import Record
from bench.peers import items
from bench.peers.tree import placed
from bench.workloads import PREFIX

__all__ = ["Database", "connect", "create_app", "load"]

TABLES = """
CREATE TABLE photo (
    id INTEGER PRIMARY KEY, title TEXT, file TEXT, width INTEGER, height INTEGER, tags TEXT
);
CREATE TABLE paper (id INTEGER PRIMARY KEY, title TEXT, file TEXT);
CREATE TABLE page (
    id INTEGER PRIMARY KEY, type TEXT, parent INTEGER, path {text}, url {text}, slug {text},
    show_in_menus INTEGER, seo_title TEXT, search_description TEXT,
    first_published_at {text}, locale TEXT, title {text}
);
CREATE TABLE article (
    page INTEGER PRIMARY KEY, date TEXT, intro TEXT, body TEXT, tags TEXT, links TEXT,
    photo INTEGER, attachment INTEGER, see_also INTEGER
);
CREATE TABLE below (above INTEGER, first_published_at {text}, page INTEGER);
CREATE TABLE tagged (tag {text}, page INTEGER, PRIMARY KEY (tag, page));
"""
INDEXES = """
CREATE INDEX page_path ON page (path);
CREATE INDEX page_type ON page (type, path);
CREATE INDEX page_slug ON page (slug);
CREATE INDEX page_menu ON page (parent, path) WHERE show_in_menus = 1;
CREATE INDEX page_url ON page (url);
CREATE INDEX below_newest ON below (above, first_published_at DESC, page);
ANALYZE;
"""
#: The texts that are searched.
TEXTS = """
SELECT p.id, p.title,
    a.intro || ' ' || replace(replace(a.body, '<p>', ' '), '</p>', ' ') AS rest
FROM page p JOIN article a ON a.page = p.id
UNION ALL SELECT p.id, p.title, '' FROM page p WHERE p.type != 'magazine.ArticlePage'
"""
#: How many rows are written at once.
BATCH = 1000

PAGE = "p.id, p.type, p.url, p.slug, p.first_published_at, p.locale, p.title"
WHOLE = (
    "p.id, p.type, p.url, p.slug, p.show_in_menus, p.seo_title, p.search_description,"
    " p.first_published_at, p.locale, p.title"
)
ARTICLE = (
    "a.date, a.intro, a.body, a.tags, a.links, f.id, f.title, f.file, d.id, d.title, d.file,"
    " o.id, o.type, o.title"
)
JOINS = (
    " LEFT JOIN article a ON a.page = p.id LEFT JOIN photo f ON f.id = a.photo"
    " LEFT JOIN paper d ON d.id = a.attachment"
    " LEFT JOIN page o ON o.id = a.see_also"
)
TEASER = f"{PAGE}, a.date, f.id, f.title, f.file, f.width, f.height"
TEASER_JOINS = " JOIN article a ON a.page = p.id LEFT JOIN photo f ON f.id = a.photo"
PARENT = "u.id, u.type, u.title, u.url"
PARENT_JOIN = " LEFT JOIN page u ON u.id = p.parent"


class Database(Protocol):
    """A connection to a database.

    :ivar text: the column type for texts that have to compare by code point.
    :ivar words: makes the table of words, from a query for texts.
    :ivar found: a subquery for the pages that match some words, with their rank; lower is better.
    """

    text: str
    words: str
    found: str

    def rows(self, sql: str, *values: Any) -> list[Any]:
        """The rows that a statement returns."""

    def run(self, statements: str) -> None:
        """Runs statements that are separated by semicolons."""

    def fill(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        """Inserts rows into a table; they have a value for each column."""

    def close(self) -> None:
        """Closes the connection."""


class SQLite:
    """An SQLite file.

    :param path: the file.
    """

    text = "TEXT"
    words = """
        CREATE VIRTUAL TABLE words USING fts5 (title, rest, content='');
        INSERT INTO words (rowid, title, rest) %s;
    """
    found = "(SELECT rowid AS id, bm25(words, 8, 1) AS rank FROM words WHERE words MATCH ?) w"

    def __init__(self, path: str) -> None:
        self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)

    def rows(self, sql: str, *values: Any) -> list[Any]:
        return self._connection.execute(sql, values).fetchall()

    def run(self, statements: str) -> None:
        for statement in statements.split(";"):
            self._connection.execute(statement)

    def fill(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        if rows:
            places = ", ".join("?" * len(rows[0]))
            self._connection.executemany(f"INSERT INTO {table} VALUES ({places})", rows)

    def close(self) -> None:
        self._connection.close()


class PostgreSQL:
    """A PostgreSQL database.

    :param address: as ``postgresql://user@host/name``.
    """

    text = 'TEXT COLLATE "C"'
    words = """
        CREATE TABLE words (page INTEGER PRIMARY KEY, found tsvector);
        INSERT INTO words
        SELECT id, setweight(to_tsvector('simple', title), 'A') || to_tsvector('simple', rest)
        FROM (%s) AS texts;
        CREATE INDEX words_found ON words USING gin (found);
    """
    found = (
        "(SELECT page AS id, -ts_rank(found, wanted) AS rank"
        " FROM words, plainto_tsquery('simple', ?) wanted WHERE found @@ wanted) w"
    )

    def __init__(self, address: str) -> None:
        self._connection = psycopg.connect(address, autocommit=True)

    def rows(self, sql: str, *values: Any) -> list[Any]:
        return self._connection.execute(_with_percent(sql), values).fetchall()

    def run(self, statements: str) -> None:
        self._connection.execute(statements.encode())

    def fill(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        with self._connection.cursor().copy(f"COPY {table} FROM STDIN".encode()) as copy:
            for row in rows:
                copy.write_row(row)

    def close(self) -> None:
        self._connection.close()


@cache
def _with_percent(sql: str) -> bytes:
    """A statement with the placeholders of this driver."""
    return sql.replace("?", "%s").encode()


def connect(address: str) -> Database:
    """A connection.

    :param address: ``postgresql://...``, or the path of an SQLite file.
    """
    return PostgreSQL(address) if address.startswith("postgresql:") else SQLite(address)


# Loading.

#: The columns of the tables, as the records name them.
PHOTO_COLUMNS = ("id", "title", "file", "width", "height", "tags")
PAPER_COLUMNS = ("id", "title", "file")
PAGE_COLUMNS = (
    *("id", "type", "parent", "path", "url", "slug", "show_in_menus", "seo_title"),
    *("search_description", "first_published_at", "locale", "title"),
)
ARTICLE_COLUMNS = (
    "id",
    "date",
    "intro",
    "body",
    "tags",
    "links",
    "photo",
    "attachment",
    "see_also",
)


def load(address: str, records: Mapping[str, Iterable[Any]]) -> None:
    """Makes the tables and fills them.

    :param address: as for :func:`connect`; the database is empty.
    :param records: the content.
    """
    with closing(connect(address)) as database:
        database.run(TABLES.format(text=database.text) + "BEGIN")
        _fill(database, "photo", records["images"], PHOTO_COLUMNS)
        _fill(database, "paper", records["documents"], PAPER_COLUMNS)
        for pages in _batches(_public(records["pages"])):
            _fill_pages(database, pages)
        database.run("COMMIT;" + database.words % TEXTS + INDEXES)


def _public(pages: Iterable[Record]) -> Iterator[Record]:
    for page, place in placed(pages):
        if place.public:
            yield {**page, **place._asdict()}


def _fill_pages(database: Database, pages: list[Record]) -> None:
    _fill(database, "page", pages, PAGE_COLUMNS)
    _fill(database, "article", [page for page in pages if "body" in page], ARTICLE_COLUMNS)
    below = [(a, page["first_published_at"], page["id"]) for page in pages for a in page["above"]]
    database.fill("below", below)
    tagged = [(tag, page["id"]) for page in pages for tag in page.get("tags", ())]
    database.fill("tagged", tagged)


def _fill(
    database: Database, table: str, records: Iterable[Record], columns: Sequence[str]
) -> None:
    rows = [[_value(record[column]) for column in columns] for record in records]
    database.fill(table, rows)


def _value(value: Any) -> Any:
    if isinstance(value, list):
        return orjson.dumps(value).decode()
    return int(value) if isinstance(value, bool) else value


def _batches(values: Iterable[Any]) -> Iterator[list[Any]]:
    batch = []
    for value in values:
        batch.append(value)
        if len(batch) == BATCH:
            yield batch
            batch = []
    yield batch


# Serving.


class Wanted(NamedTuple):
    """The parts of the statement for a list.

    :param source: the tables in which objects are found.
    :param where: the condition, or "".
    :param values: the parameters of both.
    :param order: the order.
    :param rest: further joins, to show what was found.
    """

    source: str
    where: str
    values: Sequence[Any]
    order: str
    rest: str = ""


#: Other filters for pages: the condition, and the function that parses the value.
FILTERS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "type": ("p.type = ?", str),
    "slug": ("p.slug = ?", str),
    "child_of": ("p.parent = ?", int),
    "show_in_menus": ("p.show_in_menus = ?", ["false", "true"].index),
}


def _wanted_pages(database: Database, args: Mapping[str, str]) -> Wanted:
    """The parts of the statement for the pages that match a query."""
    if "search" in args:
        join = " JOIN page p ON p.id = w.id"
        return Wanted(database.found, "", [args["search"]], "w.rank, w.id", join)
    if "descendant_of" in args and args.get("order") == "-first_published_at":
        above, join = int(args["descendant_of"]), " JOIN page p ON p.id = b.page"
        newest = "b.first_published_at DESC, b.page"
        return Wanted("below b", " WHERE b.above = ?", [above], newest, join)
    if "tags" in args and args.get("order") == "title":
        tag, join = args["tags"], " JOIN page p ON p.id = t.page"
        return Wanted("tagged t", " WHERE t.tag = ?", [tag], "p.title, p.id", join)
    filters = [(*FILTERS[name], value) for name, value in args.items() if name in FILTERS]
    where = " AND ".join(condition for condition, *_ in filters)
    values = [read(value) for _, read, value in filters]
    return Wanted("page p", where and f" WHERE {where}", values, "p.path")


class Shape(NamedTuple):
    """How rows become items.

    :param columns: the columns.
    :param joins: the joins for them.
    :param build: makes an item from a row.
    """

    columns: str
    joins: str
    build: Callable[[Sequence[Any]], items.Item]


def _teaser(row: Sequence[Any]) -> items.Item:
    photo = None if row[8] is None else items.sized_photo(*row[8:])
    return {**items.page(*row[:7]), "date": row[7], "photo": photo}


def _article(row: Sequence[Any]) -> items.Item:
    return {**items.whole_page(*row[:10]), **_own(row[10:24])}


def _own(row: Sequence[Any]) -> items.Item:
    date, intro, body, tags, links, *others = row
    photo, paper, other = others[:3], others[3:6], others[6:]
    return items.article(
        *(date, intro, body, orjson.Fragment(tags), orjson.loads(links)),
        photo=None if photo[0] is None else items.file("magazine.Photo", *photo),
        attachment=None if paper[0] is None else items.file("magazine.Paper", *paper),
        see_also=None if other[0] is None else items.page_link(*other),
    )


def _detail(row: Sequence[Any]) -> items.Item:
    parent = None if row[24] is None else items.page_link(*row[24:])
    whole = items.whole_page(*row[:10], further={"parent": parent})
    return whole if row[10] is None else {**whole, **_own(row[10:24])}


def _listed_photo(row: Sequence[Any]) -> items.Item:
    return items.listed_photo(*row[:3], tags=orjson.Fragment(row[3]))


SHAPES = {
    None: Shape(PAGE, "", lambda row: items.page(*row)),
    "*": Shape(f"{WHOLE}, {ARTICLE}", JOINS, _article),
    items.TEASER: Shape(TEASER, TEASER_JOINS, _teaser),
}
PHOTOS = Shape("p.id, p.title, p.file, p.tags", "", _listed_photo)


def create_app(address: str) -> Flask:
    """The site.

    :param address: as for :func:`connect`.
    """
    app = Flask(__name__)
    database = app.extensions["database"] = connect(address)

    @app.get(f"{PREFIX}/pages/")
    def pages() -> Response:
        shape = SHAPES.get(request.args.get("fields")) or abort(400)
        return _list(database, _wanted_pages(database, request.args), shape)

    @app.get(f"{PREFIX}/images/")
    def images() -> Response:
        return _list(database, Wanted("photo p", "", (), "p.id"), PHOTOS)

    @app.get(f"{PREFIX}/pages/<int:identity>/")
    def detail(identity: int) -> Response:
        sql = f"SELECT {WHOLE}, {ARTICLE}, {PARENT} FROM page p{JOINS}{PARENT_JOIN}"
        rows = database.rows(f"{sql} WHERE p.id = ?", identity)
        return items.json_response(_detail(rows[0] if rows else abort(404)))

    @app.get(f"{PREFIX}/pages/find/")
    def find() -> ResponseReturnValue:
        path = request.args["html_path"]
        rows = database.rows("SELECT p.id FROM page p WHERE p.url = ?", path)
        return redirect(f"{items.API}/pages/{rows[0][0]}/") if rows else abort(404)

    return app


def _list(database: Database, wanted: Wanted, shape: Shape) -> Response:
    limit, offset = request.args.get("limit", 20, int), request.args.get("offset", 0, int)
    source, where, values, order, rest = wanted
    rows = database.rows(
        f"SELECT {shape.columns} FROM {source}{rest}{shape.joins}{where}"
        f" ORDER BY {order} LIMIT ? OFFSET ?",
        *(*values, limit, offset),
    )
    total = offset + len(rows)
    # Fewer rows than the limit are the last ones, so that nothing has to be counted.
    if len(rows) == limit or (offset and not rows):
        ((total,),) = database.rows(f"SELECT count(*) FROM {source}{where}", *values)
    return items.json_response(
        {"meta": {"total_count": total}, "items": [shape.build(row) for row in rows]}
    )

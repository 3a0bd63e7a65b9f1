"""What tables and indexes are called in the database.

Every database takes these names as they are: SQL has them quoted, since a type, an endpoint or a
field may have capital letters, and they are cut where they would be too long.
"""

from __future__ import annotations

from flask_contentapi_peewee.columns import md5

__all__ = [
    "LONGEST_NAME",
    "PREFIX",
    "aside_name",
    "index_name",
    "query_name",
    "table_name",
    "words_name",
]

#: In front of the name of every table, so that they can live beside a site's own.
PREFIX = "contentapi_"
#: How long the name of a table or an index may be, in bytes.
LONGEST_NAME = 60


def table_name(name: str) -> str:
    """What the table of an endpoint, a type or a field is called.

    >>> table_name("pages")
    'contentapi_pages'
    """
    return _short(f"{PREFIX}{name}")


def words_name(base: str) -> str:
    """What the table of words is called of the endpoint whose table has a name.

    >>> words_name("contentapi_pages")
    'contentapi_pages_words'
    """
    return _short(f"{base}_words")


def index_name(table: str, about: str) -> str:
    """What an index of a table is called.

    :param about: a column, or what else it is about; underscores around it do not count.

    >>> index_name("contentapi_pages", "path_")
    'contentapi_pages_path'
    """
    return _short(f"{table}_{about.strip('_')}")


def aside_name(name: str, about: str) -> str:
    """What a table or a column is called that is put aside.

    :param about: what it had.

    >>> aside_name("stars", "integer")
    'stars__integer'
    """
    return _short(f"{name}__{about}")


def query_name(table: str) -> str:
    """What a query is called by which a table is read with rows from elsewhere.

    >>> query_name("contentapi_pages")
    'contentapi_pages__all'
    """
    return _short(f"{table}__all")


def _short(name: str) -> str:
    stored = name.encode()
    if len(stored) <= LONGEST_NAME:
        return name
    return f"{stored[: LONGEST_NAME - 9].decode(errors='ignore')}_{md5(name)[:8]}"

"""The names of tables and indexes in the database.

Every database accepts these names. SQL quotes them, because a type, an endpoint or a field may
have capital letters, and names that would be too long are cut.
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

#: The prefix of all table names, so that the tables can coexist with a site's own.
PREFIX = "contentapi_"
#: The maximum length of the name of a table or an index, in bytes.
LONGEST_NAME = 60


def table_name(name: str) -> str:
    """The name of the table of an endpoint, a type or a field.

    >>> table_name("pages")
    'contentapi_pages'
    """
    return _short(f"{PREFIX}{name}")


def words_name(base: str) -> str:
    """The name of an endpoint's table of words, from the name of its table.

    >>> words_name("contentapi_pages")
    'contentapi_pages_words'
    """
    return _short(f"{base}_words")


def index_name(table: str, about: str) -> str:
    """The name of an index of a table.

    :param about: a column, or another subject; underscores around it are removed.

    >>> index_name("contentapi_pages", "path_")
    'contentapi_pages_path'
    """
    return _short(f"{table}_{about.strip('_')}")


def aside_name(name: str, about: str) -> str:
    """The name of a table or a column that is put aside.

    :param about: the kind of its values.

    >>> aside_name("stars", "integer")
    'stars__integer'
    """
    return _short(f"{name}__{about}")


def query_name(table: str) -> str:
    """The name of the common table expression that adds rows from elsewhere to a table.

    >>> query_name("contentapi_pages")
    'contentapi_pages__all'
    """
    return _short(f"{table}__all")


def _short(name: str) -> str:
    stored = name.encode()
    if len(stored) <= LONGEST_NAME:
        return name
    return f"{stored[: LONGEST_NAME - 9].decode(errors='ignore')}_{md5(name)[:8]}"

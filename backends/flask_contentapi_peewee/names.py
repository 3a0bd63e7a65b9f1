"""The names of tables and indexes in the database.

Every database accepts these names. SQL quotes them, because a type, an endpoint or a field may
have capital letters, and names that would be too long are cut.
"""

from __future__ import annotations

from typing import Any

import orjson

from flask_contentapi_peewee.columns import md5

__all__ = ["LONGEST_NAME", "PREFIX", "derived_name", "index_name", "table_name"]

#: The prefix of all table names, so that the tables can coexist with a site's own.
PREFIX = "contentapi_"
#: The maximum length of the name of a table or an index, in bytes.
LONGEST_NAME = 60


def table_name(name: str) -> str:
    """The name of the table of an endpoint or a type.

    >>> table_name("pages")
    'contentapi_pages'
    """
    return _short(f"{PREFIX}{name}")


def derived_name(name: str, declaration: Any) -> str:
    """The name of a derived table, without the prefix.

    :param name: what it is derived from.
    :param declaration: the declarations that it depends on, as JSON.

    >>> derived_name("pages_terms", {"blog.BlogPage": {"tags": "tags"}})
    'pages_terms__ce7f0e9b'
    """
    digest = md5(orjson.dumps(declaration).decode())[:8]
    return f"{name.encode()[: LONGEST_NAME - 26].decode(errors='ignore')}__{digest}"


def index_name(table: str, about: str) -> str:
    """The name of an index of a table.

    :param about: a column, or another subject; underscores around it are removed.

    >>> index_name("contentapi_pages", "path_")
    'contentapi_pages_path'
    """
    return _short(f"{table}_{about.strip('_')}")


def _short(name: str) -> str:
    stored = name.encode()
    if len(stored) <= LONGEST_NAME:
        return name
    return f"{stored[: LONGEST_NAME - 9].decode(errors='ignore')}_{md5(name)[:8]}"

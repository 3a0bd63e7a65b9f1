"""What is asked of a backend: who sees, and what is wanted, in no storage's words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple

__all__ = ["Filter", "Order", "Query", "Relation", "Row", "Search", "Selected", "Tree", "Viewer"]

#: The values of the columns that were asked for, in their order.
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who looks, and when: what the visible part of the content depends on.

    :param moment: now, in UTC. Of the pages those are shown that are live and have
        ``go_live_at <= moment < expires_at``; an end of that window that is missing is open.
    :param pages: the restricted pages that are open to the viewer, each with all above it.
    :param collections: the same for the collections of images and documents.
    """

    moment: datetime
    pages: frozenset[int] = frozenset()
    collections: frozenset[int] = frozenset()


class Filter(NamedTuple):
    """One condition on a column.

    A relation to what the viewer may not see counts as missing.

    :param column: the stored field, or for pages ``url_path``, which is only compared by ``eq``.
    :param operator: ``eq`` (an exact value), ``in`` (one of several, maybe of none),
        ``lt le gt ge`` (missing values never match) or ``all`` (tags: every one of them).
    :param value: a stored value as :mod:`flask_contentapi.kinds` has it, never None, or a tuple
        of them.
    """

    column: str
    operator: Literal["eq", "in", "lt", "le", "gt", "ge", "all"]
    value: Any


class Order(NamedTuple):
    """One key of the order.

    :param column: the stored field. Texts are in the order of their code points; a relation
        to what the viewer may not see counts as missing.
    :param descending: largest first. Missing values come first ascending and last descending.
    """

    column: str
    descending: bool = False


Relation = Literal["child_of", "descendant_of", "ancestor_of", "translation_of"]


class Tree(NamedTuple):
    """A condition on the place in the tree of pages, or among translations.

    :param relation: what the pages are to the page that is named.
    :param page: its id; unless it is visible and in the scope, the query has no answer
        (:attr:`Selected.unseen`).
    """

    relation: Relation
    page: int


@dataclass(frozen=True, slots=True)
class Search:
    """Words to be found.

    :param words: normalised by :func:`flask_contentapi.search.terms`.
    :param every: whether an object has to have every word, or one of them.
    """

    words: tuple[str, ...]
    every: bool


@dataclass(frozen=True, slots=True)
class Query:
    """One list.

    Columns are named that every type of the endpoint has or, where ``types`` are given, each of
    those.

    :param endpoint: which objects (``"pages"``, ``"images"``, ...).
    :param columns: the stored fields wanted in each row, in order; besides them ``type`` (the
        label) and for pages ``url_path`` (the slugs down to it, percent-encoded, ``/home/log/``).
    :param viewer: who looks.
    :param scope: ids of home pages; only they and the pages below them count. None: all.
    :param types: labels of types; the types derived from them are named as well. None: all,
        with the objects whose type is not declared.
    :param filters: conditions, all to be met.
    :param tree: conditions on places in the tree, all to be met.
    :param search: words to be found, or None.
    :param order: keys; ties end in id order. Empty: by relevance for a search, where the
        backend ranks, else the default order (tree order for pages, id order for the rest),
        which ends its ties too.
    :param random: random order instead.
    :param limit: how many rows at most; None: all.
    :param offset: how many rows to leave out before.
    :param count: whether the total is wanted.
    """

    endpoint: str
    columns: tuple[str, ...]
    viewer: Viewer
    scope: tuple[int, ...] | None = None
    types: frozenset[str] | None = None
    filters: tuple[Filter, ...] = ()
    tree: tuple[Tree, ...] = ()
    search: Search | None = None
    order: tuple[Order, ...] = ()
    random: bool = False
    limit: int | None = None
    offset: int = 0
    count: bool = True

    @property
    def conditions(self) -> tuple[Any, ...]:
        """What decides, with the viewer and the scope, which objects match."""
        return self.endpoint, self.types, self.filters, self.tree, self.search


class Selected(NamedTuple):
    """What a query found.

    :param rows: the rows asked for, in order.
    :param total: how many objects match, whatever limit and offset; any number if it was not
        asked for.
    :param unseen: pages named in the query that may not be seen; then there are no rows.
    """

    rows: Sequence[Row]
    total: int = 0
    unseen: tuple[int, ...] = ()

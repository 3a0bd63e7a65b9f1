"""Queries to a backend: who asks, and for what, independently of any storage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple

#: How many values of a facet are given at most.
MOST_VALUES = 20
#: The values of the requested columns, in order.
Row = tuple[Any, ...]
#: An object: its endpoint and id.
ObjectKey = tuple[str, int]


class Viewer(NamedTuple):
    """Who sends the request, and when. This determines the visible part of the content.

    :param moment: now, in UTC. A page is visible if it is live and
        ``go_live_at <= moment < expires_at``; a missing end of that window is open.
    :param pages: the restricted pages that the viewer may see; any restricted page above one of
        them is among them.
    :param collections: the same for the collections of images and documents.
    :param previewed: an object that the viewer may see whatever else holds, as if it were visible;
        what is below it or leads to it is not meant. None: there is none.
    :param everything: whether nothing at all is hidden: for editors and commands, not for requests.
    """

    moment: datetime
    pages: frozenset[int] = frozenset()
    collections: frozenset[int] = frozenset()
    previewed: ObjectKey | None = None
    everything: bool = False


class Filter(NamedTuple):
    """One condition on a column.

    A relation to an object that the viewer may not see counts as missing, and so does one that is
    declared ``within_site`` to a page that is not in the scope; in a relation to many such objects
    are left out.

    Missing values meet no condition but ``not`` and ``isnull``.

    :param column: the stored field; ``type`` (the label), which is only compared by ``not``;
        or for pages ``url_path``, which is only compared by ``eq`` and
        ``in``.
    :param operator: ``eq`` (an exact value), ``in`` (one of several, possibly none), ``not`` (none
        of several), ``lt le gt ge``, ``isnull`` (whether it is missing) or ``startswith``. Tags and
        relations to many have ``all`` (every one of several), ``in`` (at least one) and ``not``
        (none). :data:`flask_contentapi.filters.OPERATORS` has the meaning of each.
    :param value: for ``isnull`` a bool; otherwise a stored value as defined by
        :mod:`flask_contentapi.kinds`, never None, or a tuple of them.
    """

    column: str
    operator: str
    value: Any


class Order(NamedTuple):
    """One key of the order.

    :param column: the stored field. Texts are ordered by code point. Relations are as in
        :class:`Filter`.
    :param descending: whether the largest comes first. Missing values come first in ascending
        order and last in descending order.
    """

    column: str
    descending: bool = False


Relation = Literal["child_of", "descendant_of", "ancestor_of", "translation_of"]


class Tree(NamedTuple):
    """A condition on the place in the tree of pages, or among translations.

    :param relation: the relation of the matching pages to the named page.
    :param page: the id of that page; unless it is visible and in the scope, the query has no
        answer (:attr:`Selected.unseen`).
    """

    relation: Relation
    page: int


@dataclass(frozen=True, slots=True)
class Search:
    """Words to search for.

    :param words: at least one, normalised by :func:`flask_contentapi.search.words`.
    :param every: whether an object must have every word; otherwise one of them is enough.
    :param prefix: whether the last one is the beginning of a word; then ``every`` is true.
    """

    words: tuple[str, ...]
    every: bool
    prefix: bool = False


class Query(NamedTuple):
    """One list.

    The columns of filters and of the order are common to every type of the endpoint or, if
    ``types`` are given, to each of those.

    :param endpoint: the endpoint of the objects (``"pages"``, ``"images"``, ...).
    :param columns: the columns wanted in each row, in order: stored fields, ``type`` (the label)
        and for pages ``url_path`` (the slugs down to it, percent-encoded, ``/home/log/``). A row
        has None for the fields that its type lacks.
    :param viewer: who sends the request, and when.
    :param scope: ids of home pages; only they and the pages below them match. None: all.
    :param types: labels of types, including all types derived from them. None: all, including
        objects of undeclared types.
    :param filters: conditions, all to be met.
    :param tree: conditions on places in the tree, all to be met.
    :param searches: words to search for, all to be met.
    :param order: keys of the order; ties are broken by id. Empty: by relevance for the searches,
        of which the first counts most, else the default order (tree order for pages, id order for
        others). Ties in relevance are broken by the default order. With ``prefix``, relevance is
        whether a word with that beginning is in the title; otherwise it is only for backends that
        rank.
    :param random: random order instead.
    :param limit: how many rows at most; None: all.
    :param offset: how many rows to skip.
    :param count: whether the total is wanted.
    :param each: how many rows at most for each value of the first filter's column; then there is
        neither an order nor a limit, and no total is wanted. None: all.
    :param facets: columns whose values are to be counted among all objects that match.
    """

    endpoint: str
    columns: tuple[str, ...]
    viewer: Viewer
    scope: tuple[int, ...] | None = None
    types: frozenset[str] | None = None
    filters: tuple[Filter, ...] = ()
    tree: tuple[Tree, ...] = ()
    searches: tuple[Search, ...] = ()
    order: tuple[Order, ...] = ()
    random: bool = False
    limit: int | None = None
    offset: int = 0
    count: bool = True  # type: ignore[assignment]  # hides a method of tuples
    each: int | None = None
    facets: tuple[str, ...] = ()

    @property
    def conditions(self) -> tuple[Any, ...]:
        """What determines, with the viewer and the scope, which objects match."""
        return self.endpoint, self.types, self.filters, self.tree, self.searches


class Selected(NamedTuple):
    """The result of a query.

    :param rows: the requested rows, in order.
    :param total: how many objects match, regardless of limit and offset; any number if it was
        not requested.
    :param unseen: pages named in the query that may not be seen; then there are no rows.
    :param facets: for each facet the most frequent values with how many objects have them, at most
        :data:`MOST_VALUES`; equally frequent ones in ascending order. Missing values and labels of
        undeclared types are left out; relations are as in :class:`Filter`, and of tags and
        relations to many each entry is a value.
    """

    rows: Sequence[Row]
    total: int = 0
    unseen: tuple[int, ...] = ()
    facets: Sequence[Sequence[tuple[Any, int]]] = ()

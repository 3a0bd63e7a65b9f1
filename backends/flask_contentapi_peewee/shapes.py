"""What queries that share a statement have in common, and in which values they differ.

Where what they have in common comes from the structure of the content, as places in the tree and
the turn of time do, it stands in the text of the statement: from that a planner knows how much is
to be expected, and it is seldom another one. So does how many rows are wanted, where it is few:
a server that does not know it plans anew each time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from peewee import SQL

from flask_contentapi.query import Filter, Order, Query, Viewer
from flask_contentapi_peewee.engines import Engine

__all__ = ["Shape", "Slot", "Values", "literal", "shape_of", "slot"]

_PLACE = re.compile(r"[0-9:]*")

#: Up to how many rows are few.
SHORT = 100
#: Columns that many objects have the same value of.
WIDE = frozenset(("show_in_menus", "locale"))


class Values(NamedTuple):
    """What fills the slots of a statement.

    :param viewer: who looks.
    :param closed: the collections that the viewer may not see into.
    :param scope: the paths of some pages; only they and the pages below them count. None: all.
    :param since: when the turn of time began that the viewer's moment is in; from then on the
        same pages are visible.
    :param query: the query, if it is for one.
    :param ids: the objects that are asked for, if they are named.
    :param named: the paths of the pages that the query names, once they are known.
    """

    viewer: Viewer
    closed: Sequence[int] = ()
    scope: tuple[str, ...] | None = None
    since: int = 0
    query: Query | None = None
    ids: Sequence[int] = ()
    named: Sequence[str | None] = ()


class Slot:
    """A parameter that is different each time."""

    __slots__ = ("get",)

    def __init__(self, get: Callable[[Any], Any]) -> None:
        self.get = get


def slot(engine: Engine, get: Callable[[Any], Any]) -> SQL:
    """The place of a parameter that is different each time.

    :param get: gives its value for some :class:`Values`.
    """
    return SQL(engine.database.param, (Slot(get),))


def literal(value: int | str) -> SQL:
    """A number or a place in the tree, as it stands in the text of a statement."""
    if isinstance(value, int):
        return SQL(str(value))
    assert _PLACE.fullmatch(value)
    return SQL(f"'{value}'")


class Shape(NamedTuple):
    """What queries that share a statement have in common; the values are left out.

    :param endpoint: as :attr:`Query.endpoint`.
    :param columns: as :attr:`Query.columns`.
    :param types: as :attr:`Query.types`.
    :param filters: of each the column, the operator, and how many values there are.
    :param relations: of each condition on the tree the relation.
    :param searched: how many words are to be found.
    :param every: whether all that is found has every one of them.
    :param order: as :attr:`Query.order`.
    :param random: as :attr:`Query.random`.
    :param scope: as :attr:`Values.scope`.
    :param since: as :attr:`Values.since`.
    :param opened: whether some restricted pages are open to the viewer.
    :param closed: whether some collections are not.
    :param counted: whether it is known how many match, and the paths of pages that are named.
    :param everything: whether what nobody may see counts as well.
    :param deep: whether many rows come before those that are wanted.
    :param walk: whether so many match that going through all in order finds the wanted ones soon.
    :param backward: whether the order is turned round, so that the last ones come first.
    :param limit: how many rows are wanted, if they are few; None for more.
    :param offset: whether some rows are to be skipped.
    :param one: whether a single object is asked for by its id.
    """

    endpoint: str
    columns: tuple[str, ...] = ()
    types: frozenset[str] | None = None
    filters: tuple[tuple[str, str, int], ...] = ()
    relations: tuple[str, ...] = ()
    searched: int = 0
    every: bool = False
    order: tuple[Order, ...] = ()
    random: bool = False
    scope: tuple[str, ...] | None = None
    since: int = 0
    opened: bool = False
    closed: bool = False
    counted: bool = False
    everything: bool = False
    deep: bool = False
    walk: bool = False
    backward: bool = False
    limit: int | None = None
    offset: bool = False
    one: bool = False

    def of_part(self, query: Query) -> Shape:
        """The same for the part of the rows that a query wants."""
        few = query.limit is not None and query.limit <= SHORT
        return self._replace(limit=query.limit if few else None, offset=query.offset > 0)

    @property
    def is_narrow(self) -> bool:
        """Whether there is a condition that few objects meet, wherever they are."""
        related = any(relation != "descendant_of" for relation in self.relations)
        return bool(self.searched) or related or any(name not in WIDE for name, *_ in self.filters)


def shape_of(query: Query, values: Values) -> Shape:
    """The shape of a query."""
    words = query.search.words if query.search else ()
    return Shape(
        query.endpoint,
        query.columns,
        query.types,
        tuple((f.column, f.operator, _arity(f)) for f in query.filters),
        tuple(tree.relation for tree in query.tree),
        len(words),
        len(words) == 1 or bool(query.search and query.search.every),
        query.order,
        query.random,
        values.scope,
        values.since,
        bool(query.viewer.pages),
        bool(values.closed),
    )


def _arity(condition: Filter) -> int:
    return len(condition.value) if condition.operator in ("in", "all") else 1

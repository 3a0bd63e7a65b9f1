"""Shapes: what queries that share a statement have in common, and the values in which they differ.

Values that come from the structure of the content, such as positions in the tree and the start of
the current period, are literals in the statement. They let the planner estimate the number of
rows, and they rarely change. The limit is a literal too if it is small, because otherwise a server
plans the statement again each time.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from peewee import SQL

from flask_contentapi.query import Filter, Order, Query, Viewer
from flask_contentapi_peewee.columns import EPOCH
from flask_contentapi_peewee.engines import Engine

_PATH = re.compile(r"[0-9:]*")

#: The greatest limit that is a literal.
SHORT = 100
#: How many values a filter has of a column in :data:`MANY_VALUES`: any number, as one parameter.
MANY = -1
#: Columns and operators that compare them with any number of values.
MANY_VALUES = {("parent", "in"), ("translation_key", "in"), ("url_path", "in")}
#: Columns in which many objects have the same value.
WIDE = frozenset(("show_in_menus", "locale"))
#: Operators that many objects meet.
EXCEPT = frozenset(("not", "isnull"))


def operands(condition: Filter) -> Sequence[Any]:
    """The values that a filter compares with."""
    if condition.operator in ("in", "not", "all"):
        return condition.value  # type: ignore[no-any-return]
    if condition.operator == "startswith":
        # The texts with a beginning are between it and the least text above all of them, if any.
        last = condition.value.rstrip(chr(sys.maxunicode))
        # The code points of surrogates are no characters.
        after = last and (0xE000 if last[-1] == "\ud7ff" else ord(last[-1]) + 1)
        return (condition.value, last[:-1] + chr(after)) if last else (condition.value,)
    # Whether a value is missing is not compared with anything.
    return (condition.value,) if condition.value or condition.operator != "isnull" else ()


class Values(NamedTuple):
    """The values for the slots of a statement.

    :param viewer: who sends the request, and when.
    :param closed: the collections that are closed to the viewer.
    :param query: the query, if there is one.
    :param ids: the ids of the requested objects, if they are requested by id.
    :param named: the paths of the pages that the query names, once they are known.
    """

    viewer: Viewer
    closed: Sequence[int] = ()
    query: Query | None = None
    ids: Sequence[int] = ()
    named: Sequence[str | None] = ()


#: The viewer of statements that are asked for everything.
NOBODY = Viewer(EPOCH)


class Slot:
    """A parameter that is filled for each query."""

    __slots__ = ("get",)

    def __init__(self, get: Callable[[Any], Any]) -> None:
        self.get = get


def slot(engine: Engine, get: Callable[[Any], Any]) -> SQL:
    """The placeholder of a parameter that is filled for each query.

    :param get: returns its value for some :class:`Values`.
    """
    return SQL(engine.database.param, (Slot(get),))


def literal(value: int | str) -> SQL:
    """A number or a path, as a literal in the text of a statement."""
    if isinstance(value, int):
        return SQL(str(value))
    assert _PATH.fullmatch(value)
    return SQL(f"'{value}'")


class Visibility(NamedTuple):
    """What a viewer may see, as far as it shapes statements.

    :param scope: the paths of some pages; only they and the pages below them match. None: all.
    :param since: the start of the :class:`~flask_contentapi_peewee.structure.Period` with the
        viewer's moment; since then the same pages have been visible.
    :param opened: whether some restricted pages are open to the viewer.
    :param closed: whether some collections are closed to the viewer.
    :param previewed: the endpoint of the object that the viewer sees in any case, or "".
    :param everything: whether hidden objects match as well.
    """

    scope: tuple[str, ...] | None = None
    since: int = 0
    opened: bool = False
    closed: bool = False
    previewed: str = ""
    everything: bool = False


class Shape(NamedTuple):
    """What queries that share a statement have in common, without their values. What is not
    described here is as in :class:`Query`.

    :param filters: the column, the operator and the number of operands of each filter.
    :param relations: the relation of each condition on the tree.
    :param searches: for each search the number of words, whether a match must have every one of
        them, and whether the last is the beginning of a word.
    :param visible: what the viewer may see.
    :param columns: as :attr:`Query.columns`; None: all that is stored.
    :param counted: whether the total and the paths of named pages are known.
    :param deep: whether many rows are skipped.
    :param walk: whether so many objects match that walking an index in order finds rows soon.
    :param broad: the same for the index of the default order.
    :param backward: whether the order is reversed.
    :param limit: how many rows are wanted, if they are few; None for more.
    :param offset: whether rows are skipped.
    :param one: whether a single object is requested by its id.
    """

    endpoint: str
    types: frozenset[str] | None = None
    filters: tuple[tuple[str, str, int], ...] = ()
    relations: tuple[str, ...] = ()
    searches: tuple[tuple[int, bool, bool], ...] = ()
    visible: Visibility = Visibility()
    columns: tuple[str, ...] | None = ()
    order: tuple[Order, ...] = ()
    random: bool = False
    each: int | None = None
    limit: int | None = None
    offset: bool = False
    counted: bool = False
    deep: bool = False
    walk: bool = False
    broad: bool = False
    backward: bool = False
    one: bool = False

    @property
    def is_narrow(self) -> bool:
        """Whether there is a condition that few objects meet, anywhere in the tree."""
        related = any(relation != "descendant_of" for relation in self.relations)
        narrow = (n not in WIDE and o not in EXCEPT for n, o, _ in self.filters)
        return bool(self.searches) or related or (not self.broad and any(narrow))


def shape_of_all(query: Query, visible: Visibility, *, counted: bool = False) -> Shape:
    """The shape of all that matches a query, in any order."""
    return Shape(*_conditions_of(query), visible, counted=counted)


def shape_of(query: Query, visible: Visibility, **others: Any) -> Shape:
    """The shape of a query.

    :param others: what does not follow from it.
    """
    return Shape(
        *_conditions_of(query),
        visible,
        query.columns,
        query.order,
        query.random,
        query.each,
        query.limit if query.limit is not None and query.limit <= SHORT else None,
        query.offset > 0,
        **others,
    )


#: The first parts of a :class:`Shape`, which say what matches.
_Conditions = tuple[
    str,
    frozenset[str] | None,
    tuple[tuple[str, str, int], ...],
    tuple[str, ...],
    tuple[tuple[int, bool, bool], ...],
]


def _conditions_of(query: Query) -> _Conditions:
    filters = [(*f[:2], MANY if f[:2] in MANY_VALUES else len(operands(f))) for f in query.filters]
    searches = [(len(s.words), s.every or len(s.words) == 1, s.prefix) for s in query.searches]
    relations = tuple([tree.relation for tree in query.tree])
    return query.endpoint, query.types, tuple(filters), relations, tuple(searches)

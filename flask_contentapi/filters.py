"""How lists are filtered: ``<field>=<value>`` and ``<field>__<operator>=<value>``.

An operator is one entry of :data:`OPERATORS`. Backends that look at each object take its meaning
from there; a database has a condition of its own for each (contract, Parameters; 1 and 11 of what
is beyond it).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Container, Mapping
from itertools import chain
from typing import Any, NamedTuple

from flask_contentapi import kinds
from flask_contentapi.declarations import Column, ObjectType
from flask_contentapi.kinds import Gap
from flask_contentapi.query import Filter

#: How many values ``in`` and ``not`` may have.
MAX_VALUES = 100
#: Conditions that no object meets.
NOTHING = (Filter("id", "in", ()),)

#: The conditions that a text in a query string makes for a column.
#:
#: :raises ValueError: if it cannot be read, saying what could.
Read = Callable[[Column, str], tuple[Filter, ...]]


class Operator(NamedTuple):
    """A way to compare a field.

    :param name: what follows the field and ``__`` in a parameter; "" for the field alone.
    :param purpose: which objects are found, after "Only objects whose field".
    :param fits: tells whether a column, which can be filtered, has it.
    :param read: reads its value.
    :param meets: whether a stored value, None if it is missing, meets the condition for a value.
        Tags and relations to many are collections of their entries.
    """

    name: str
    purpose: str
    fits: Callable[[Column], bool]
    read: Read
    meets: Callable[[Any, Any], bool]


def filters_of(
    declared: ObjectType, reserved: Container[str]
) -> Mapping[str, tuple[Column, Operator]]:
    """The filters of a type by parameter, each with its column and operator.

    The names of fields, and of the type's own parameters, win over comparisons.

    :param reserved: parameters that mean something else. Fields of their names have no filters.
    """
    found = {}
    for name, column in declared.filterable.items():
        for each in OPERATORS.values():
            parameter = f"{name}__{each.name}" if each.name else name
            is_other_field = each.name and parameter in declared.exports
            if each.fits(column) and name not in reserved and not is_other_field:
                found[parameter] = column, each
    own = {
        f.name: (declared.columns[f.source], OPERATORS[f.operator]) for f in declared.api_filters
    }
    return found | own


# Reading values.


def _exactly(name: str) -> Read:
    def read(column: Column, text: str) -> tuple[Filter, ...]:
        wanted = column.kind.parse(text)
        return NOTHING if isinstance(wanted, Gap) else (Filter(column.name, name, wanted),)

    return read


def _among(name: str, without: tuple[Filter, ...]) -> Read:
    """Reads several values.

    :param without: the conditions if none of them can be stored.
    """

    def read(column: Column, text: str) -> tuple[Filter, ...]:
        parts = text.split(",")
        if len(parts) > MAX_VALUES:
            raise ValueError(f"has more than {MAX_VALUES} values")
        values = [column.kind.parse(part) for part in parts]
        stored = [value for value in values if not isinstance(value, Gap)]
        wanted = dict.fromkeys(chain.from_iterable(stored) if column.kind.many else stored)
        return (Filter(column.name, name, tuple(wanted)),) if wanted else without

    return read


def _compared(name: str) -> Read:
    # A value between storable ones is compared by its neighbour.
    nearest, neighbour = ("le", "below") if name in ("lt", "le") else ("ge", "above")

    def read(column: Column, text: str) -> tuple[Filter, ...]:
        wanted = column.kind.parse(text)
        if not isinstance(wanted, Gap):
            return (Filter(column.name, name, wanted),)
        wanted = getattr(wanted, neighbour)
        return NOTHING if wanted is None else (Filter(column.name, nearest, wanted),)

    return read


# Which stored values meet a condition.


def _has_any(own: Any, wanted: Collection[Any]) -> bool:
    if isinstance(own, tuple | set):
        return any(entry in wanted for entry in own)
    return own in wanted


def _there(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda own, wanted: own is not None and compare(own, wanted)


def _comparison(parameter: str, purpose: str, name: str) -> Operator:
    apart = kinds.Boolean | kinds.Relation
    return Operator(
        parameter,
        purpose,
        lambda column: column.kind.orderable and not isinstance(column.kind, apart),
        _compared(name),
        _there(getattr(operator, name)),
    )


#: All operators, by the name that :class:`~flask_contentapi.query.Filter` has for them.
OPERATORS: dict[str, Operator] = {
    "eq": Operator(
        "", "is the value", lambda column: not column.kind.many, _exactly("eq"), operator.eq
    ),
    "all": Operator(
        "",
        "has all of the values, separated by commas",
        lambda column: column.kind.many,
        _exactly("all"),
        lambda own, wanted: set(wanted) <= set(own),
    ),
    "in": Operator(
        "in",
        "is, or has, one of the values, separated by commas",
        lambda column: True,
        _among("in", NOTHING),
        _has_any,
    ),
    "not": Operator(
        "not",
        "is, and has, none of the values, separated by commas",
        lambda column: True,
        _among("not", ()),
        lambda own, wanted: not _has_any(own, wanted),
    ),
    "lt": _comparison("lt", "is below the value", "lt"),
    "le": _comparison("lte", "is the value or below", "le"),
    "gt": _comparison("gt", "is above the value", "gt"),
    "ge": _comparison("gte", "is the value or above", "ge"),
    "isnull": Operator(
        "isnull",
        "is missing (true) or there (false)",
        lambda column: (
            not column.kind.many
            and (column.kind.empty_value is None or column.field.load_default is None)
        ),
        lambda column, text: (Filter(column.name, "isnull", kinds.Boolean().parse(text)),),
        lambda own, wanted: (own is None) is wanted,
    ),
    "startswith": Operator(
        "startswith",
        "begins with the value",
        lambda column: isinstance(column.kind, kinds.Text),
        lambda column, text: (Filter(column.name, "startswith", text),),
        _there(str.startswith),
    ),
}

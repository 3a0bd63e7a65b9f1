"""Joins many conditions, or numbers, in a balanced tree.

Joined in sequence they would be nested deeply, and a client's query, or many sites and languages,
would soon exceed the nesting that libraries and databases allow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import add, and_, or_

from peewee import SQL

from flask_contentapi_peewee.columns import Clause

__all__ = ["all_of", "any_of", "sum_of"]


def all_of(conditions: Sequence[Clause]) -> Clause:
    """The condition that all conditions are met; true if there are none."""
    return _balanced(and_, conditions) if conditions else SQL("1 = 1")


def any_of(conditions: Sequence[Clause]) -> Clause:
    """The condition that one of the conditions is met; false if there are none."""
    return _balanced(or_, conditions) if conditions else SQL("1 = 0")


def sum_of(numbers: Sequence[Clause]) -> Clause:
    """The sum of some numbers, at least one."""
    return _balanced(add, numbers)


def _balanced(join: Callable[[Clause, Clause], Clause], conditions: Sequence[Clause]) -> Clause:
    """Conditions joined in pairs, then the pairs in pairs, and so on."""
    if len(conditions) == 1:
        return conditions[0]
    middle = len(conditions) // 2
    return join(_balanced(join, conditions[:middle]), _balanced(join, conditions[middle:]))

"""Many conditions as one, or numbers, in trees that are as flat as can be.

In a row they would be nested one in the other, and what libraries and databases can bear of
that is soon used up by what a client asks for, or by many sites and languages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import add, and_, or_

from peewee import SQL

from flask_contentapi_peewee.columns import Clause

__all__ = ["all_of", "any_of", "sum_of"]


def all_of(conditions: Sequence[Clause]) -> Clause:
    """Whether all of some conditions are met; of none all are."""
    return _joined(and_, conditions) if conditions else SQL("1 = 1")


def any_of(conditions: Sequence[Clause]) -> Clause:
    """Whether one of some conditions is met; of none none is."""
    return _joined(or_, conditions) if conditions else SQL("1 = 0")


def sum_of(numbers: Sequence[Clause]) -> Clause:
    """The sum of some numbers, at least one."""
    return _joined(add, numbers)


def _joined(join: Callable[[Clause, Clause], Clause], conditions: Sequence[Clause]) -> Clause:
    """Conditions joined in pairs, and the pairs in pairs."""
    if len(conditions) == 1:
        return conditions[0]
    middle = len(conditions) // 2
    return join(_joined(join, conditions[:middle]), _joined(join, conditions[middle:]))

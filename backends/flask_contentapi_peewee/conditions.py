"""The conditions that filters make for columns, by operator."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from flask_contentapi.query import Filter
from flask_contentapi_peewee.columns import Clause
from flask_contentapi_peewee.engines import Engine

__all__ = ["CONDITIONS", "operands"]


def operands(condition: Filter) -> Sequence[Any]:
    """The values that a filter compares with."""
    if condition.operator in ("in", "not", "all"):
        return condition.value  # type: ignore[no-any-return]
    if condition.operator == "startswith":
        return _range(condition.value)
    # Whether a value is missing is not compared with anything.
    return (condition.value,) if condition.value or condition.operator != "isnull" else ()


def _range(start: str) -> Sequence[str]:
    """The texts between which those with a beginning are: the beginning itself, and the least text
    that is above all of them, if there is one."""
    last = start.rstrip(chr(sys.maxunicode))
    if not last:
        return (start,)
    # The code points of surrogates are no characters.
    after = 0xE000 if last[-1] == "\ud7ff" else ord(last[-1]) + 1
    return start, last[:-1] + chr(after)


def _compared(operator: str) -> Condition:
    return lambda engine, field, wanted: engine.compare(field, operator, wanted[0])


def _starts_with(engine: Engine, field: Clause, wanted: Sequence[Clause]) -> Clause:
    start, *end = wanted
    above = engine.compare(field, ">=", start)
    return above & engine.compare(field, "<", end[0]) if end else above


#: The condition that a column is there and compares in some way with the :func:`operands`.
Condition = Callable[[Engine, Clause, Sequence[Clause]], Clause]

#: The condition of each operator. That for ``not`` is negated, with a missing value meeting it.
CONDITIONS: dict[str, Condition] = {
    "eq": lambda engine, field, wanted: engine.equals(field, wanted[0]),
    "in": lambda engine, field, wanted: engine.one_of(field, wanted),
    "not": lambda engine, field, wanted: field.in_(wanted),
    "lt": _compared("<"),
    "le": _compared("<="),
    "gt": _compared(">"),
    "ge": _compared(">="),
    "startswith": _starts_with,
}

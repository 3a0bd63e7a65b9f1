"""Columns of a site's own tables as our tables keep the same values, in SQL."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import reduce
from typing import ClassVar

import peewee
from peewee import SQL, fn

from flask_contentapi_peewee.columns import Clause, StoredField

__all__ = ["Conversion"]

_PARTS = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))


class Conversion(ABC):
    """What is different from one database to the next.

    :cvar is_loose: whether a column can have values of any type.
    :cvar materialized: False where the database can be told not to work out a named query as a
        whole before it is asked.
    :param sql_types: the database's type for each name of a kind.
    """

    is_loose: ClassVar[bool] = False
    materialized: ClassVar[bool | None] = None

    def __init__(self, sql_types: Mapping[str, str]) -> None:
        self.sql_types = sql_types

    @abstractmethod
    def typed(self, name: str, value: Clause) -> Clause:
        """A value that is as we keep it, with the type and the collation of our column.

        :param name: the name of the kind, or ``key`` or ``path``.
        """

    def stored(self, field: StoredField, column: Clause) -> Clause:
        """The value of a column as our column keeps it.

        :param field: our column.
        :param column: theirs, or an expression of such.
        """
        name = field.kind.name
        if isinstance(column, peewee.UUIDField):
            return self.typed(name, self._uuid(column))
        convert = getattr(self, f"_{name}", None)
        return self.typed(name, column if convert is None else convert(field, column))

    def _uuid(self, column: Clause) -> Clause:
        """A UUID that is kept as 32 digits."""
        parts: list[Clause] = [fn.SUBSTR(column, start, length) for start, length in _PARTS]
        return reduce(lambda start, part: start.concat("-").concat(part), parts)

    def _boolean(self, field: StoredField, column: Clause) -> Clause:
        return peewee.Case(None, [(column, SQL("TRUE")), (~column, SQL("FALSE"))], None)

    @abstractmethod
    def step(self, identity: Clause) -> Clause:
        """The step of a page's path that its id makes, after those of all pages of ours."""

    def address(self, value: Clause) -> Clause:
        """An address that is put together."""
        return self.typed("text", value)

    def has(self, text: Clause, part: Clause) -> Clause:
        """Whether a text has another one in it."""
        return fn.INSTR(text, part) > 0

    def number(self, identity: Clause) -> Clause:
        """The id of an object, made of a column with the id of a row."""
        return identity

    def legible(self, column: Clause) -> Clause:
        """Whether a column has text."""
        return column.is_null(False)

    def odd(self, name: str, column: Clause) -> Clause | None:
        """Whether a column has something that is not of a kind, and is shown as if it had nothing.

        :param name: the name of the kind.
        :returns: None where no column can, or where it is seen otherwise.
        """
        return None

    @abstractmethod
    def moment(self, column: Clause) -> Clause:
        """A date and time as the number that :func:`microseconds` gives; NULL if it is none.

        What comes before all times of Python's is :data:`ALWAYS`, what comes after them
        :data:`NEVER`.
        """

    def is_null(self, column: Clause) -> Clause:
        """Whether a column has nothing."""
        return column.is_null()

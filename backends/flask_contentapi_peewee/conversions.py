"""Converts columns of a site's own tables to the form that our tables have, in SQL."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import reduce
from typing import ClassVar

import peewee
from peewee import SQL, fn

from flask_contentapi_peewee.columns import Clause, StoredField

__all__ = ["Conversion", "Converter"]

#: Converts a site's column to what our column stores; is given our column and the site's.
Converter = Callable[[StoredField, Clause], Clause]

_PARTS = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))


class Conversion(ABC):
    """The conversions of one kind of database.

    :cvar is_loose: whether a column can have values of any type.
    :cvar materialized: False if the database can be told not to materialise a common table
        expression.
    :param sql_types: the database's type for each name of a kind.
    """

    is_loose: ClassVar[bool] = False
    materialized: ClassVar[bool | None] = None

    def __init__(self, sql_types: Mapping[str, str]) -> None:
        self.sql_types = sql_types

    @abstractmethod
    def typed(self, name: str, value: Clause) -> Clause:
        """A converted value, with the type and the collation of our column.

        :param name: the name of the kind, or ``key`` or ``path``.
        """

    def stored(self, field: StoredField, column: Clause) -> Clause:
        """The value of a site's column as our column stores it.

        :param field: our column.
        :param column: the site's column, or an expression.
        """
        name = field.kind.name
        if isinstance(column, peewee.UUIDField):
            return self.typed(name, self._uuid(column))
        convert = self.converters.get(name)
        return self.typed(name, column if convert is None else convert(field, column))

    @property
    def converters(self) -> dict[str, Converter]:
        """The converters of columns, by the name of the kind; other kinds need none."""
        return {"boolean": self._boolean}

    def _uuid(self, column: Clause) -> Clause:
        """A UUID that is stored as 32 digits."""
        parts: list[Clause] = [fn.SUBSTR(column, start, length) for start, length in _PARTS]
        return reduce(lambda start, part: start.concat("-").concat(part), parts)

    def _boolean(self, field: StoredField, column: Clause) -> Clause:
        return peewee.Case(None, [(column, SQL("TRUE")), (~column, SQL("FALSE"))], None)

    @abstractmethod
    def step(self, identity: Clause) -> Clause:
        """The step of a page's path made from its id, which follows those of all our pages."""

    def address(self, value: Clause) -> Clause:
        """An address that has been concatenated."""
        return self.typed("text", value)

    def has(self, text: Clause, part: Clause) -> Clause:
        """The condition that a text contains another."""
        return fn.INSTR(text, part) > 0

    def object_id(self, identity: Clause) -> Clause:
        """The id of an object, from a column with the id of a row."""
        return identity

    def is_legible(self, column: Clause) -> Clause:
        """The condition that a column has valid text."""
        return column.is_null(False)

    def has_other_kind(self, name: str, column: Clause) -> Clause | None:
        """The condition that a column has a value not of a kind, which is shown as if empty.

        :param name: the name of the kind.
        :returns: None if no column can have one, or if it is detected otherwise.
        """
        return None

    @abstractmethod
    def moment(self, column: Clause) -> Clause:
        """A date and time as the number that :func:`microseconds` returns; NULL if not valid.

        Moments before the range of Python's dates are :data:`ALWAYS`, and those after it
        :data:`NEVER`.
        """

    def is_null(self, column: Clause) -> Clause:
        """The condition that a column is null."""
        return column.is_null()

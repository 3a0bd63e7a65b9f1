"""How rows of a site's own models become content records."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import peewee
from peewee import SQL, fn
from playhouse import signals

from flask_contentapi.declarations import Column, ObjectType
from flask_contentapi.errors import BackendUnavailable, ConfigurationError, suggest
from flask_contentapi.fields import Derived
from flask_contentapi.types import Entry
from flask_contentapi_peewee.connections import DATABASE_ERRORS
from flask_contentapi_peewee.documents import BATCH
from flask_contentapi_peewee.tables import MARK_PREFIX, Model, Tables

EntryClass = type[Entry]


@dataclass(eq=False, repr=False)
class Followed:
    """One of the site's own models, whose rows are served as objects of one declared type.

    The rows are copied, and the copies follow every change. The table itself is only read::

        Followed(
            Post,
            BlogPage,
            {
                "title": Post.headline,
                "live": lambda post: post.status == "published",
                "parent": 3,
            },
            ids_from=1_000_000,
            changed=Post.changed,
        )

    :param model: the model; its primary key is an integer.
    :param type: the type, which nothing else belongs to.
    :param record: a function that returns the content record of a row, without ``id`` and ``type``;
        or a mapping with a column of the model, a function of the row or a constant for each field.
        Fields that the mapping leaves out have the values of columns with the same names. A foreign
        key to another followed model becomes the id of that row's object.
    :param ids_from: a number that is added to the keys of rows; ids must differ within an endpoint.
    :param where: the condition on the rows to serve; None: all.
    :param prefetch: models or queries of rows that the functions use, such as tags, as for
        :func:`peewee.prefetch`.
    :param changed: a column that every change of a row, or of what belongs to it, sets to a greater
        value than any in the table. It should have an index.
    :param mark: a function whose result, any JSON, differs after every change of the table; then
        all rows are read. With ``changed`` it has to differ only after rows have been deleted,
        which is noticed by counting all rows otherwise.
        With neither ``changed`` nor ``mark`` the model has to derive from
        :class:`playhouse.signals.Model`, and changes show if they are made through its methods.
    """

    model: Model
    type: EntryClass
    record: Mapping[str, Any] | Callable[[Any], Mapping[str, Any]] | None = None
    _: KW_ONLY
    ids_from: int = 0
    where: Any = None
    prefetch: Sequence[Any] = ()
    changed: peewee.Field | None = None
    mark: Callable[[], Any] | None = None

    def __repr__(self) -> str:
        return f"Followed({self.model.__name__}, {self.type.__name__})"


class Source:
    """A followed model and the type that it gives the objects of.

    :raises ConfigurationError: if the model cannot be followed so.
    """

    def __init__(
        self, followed: Followed, declared: ObjectType, others: Sequence[Followed], tables: Tables
    ) -> None:
        self.followed, self.model = followed, followed.model
        self.declared, self.endpoint, self.label = declared, declared.served_at, declared.label
        self.ids_from = followed.ids_from
        #: The endpoint's own table, and the condition on the objects of the type.
        self.base = tables.endpoints[self.endpoint.name].base
        self.is_own = self.base.fields["type"] == self.label
        #: A record without values.
        self.nothing = dict.fromkeys(_written(declared))
        self.key: Any = self.model._meta.primary_key
        self.has_signals = issubclass(self.model, signals.Model)
        #: The key of its mark in the state table.
        self.state_key = f"{MARK_PREFIX}{declared.label}"
        self._check()
        record = followed.record or {}
        getters = {} if callable(record) else self._getters(record, others)
        self.record_of: Callable[[Any], Mapping[str, Any]] = (
            record if callable(record) else lambda row: {n: get(row) for n, get in getters.items()}
        )

    def _check(self) -> None:
        followed, name = self.followed, self.model.__name__
        if not isinstance(self.key, peewee.IntegerField):
            raise ConfigurationError(f"{followed}: the primary key of {name} must be an integer.")
        if not (self.has_signals or followed.changed is not None or followed.mark is not None):
            raise ConfigurationError(
                f"{followed}: nothing tells when rows change. Give changed=, the column that every "
                f"change increases, or mark=, or derive {name} from playhouse.signals.Model."
            )
        if followed.changed is not None and getattr(followed.changed, "model", 0) != self.model:
            raise ConfigurationError(f"{followed}: changed must be a column of {name}.")
        if not isinstance(followed.ids_from, int):
            raise ConfigurationError(f"{followed}: ids_from must be an integer.")
        try:
            join = peewee.prefetch_add_subquery  # type: ignore[attr-defined]
            join(self.rows(), followed.prefetch, peewee.PREFETCH_TYPE.WHERE)
        except (AttributeError, TypeError) as error:
            raise ConfigurationError(
                f"{followed}: prefetch must be a list of models, or queries of them, that foreign "
                f"keys join with {name}; {error}."
            ) from error

    def _getters(
        self, given: Mapping[str, Any], others: Sequence[Followed]
    ) -> dict[str, Callable[[Any], Any]]:
        columns = {n: c for n, c in _written(self.declared).items() if n != "id"}
        for name in given.keys() - columns.keys():
            hint = suggest(name, columns)
            raise ConfigurationError(
                f"{self.followed}: {self.label} has no field {name!r} to be given.{hint}"
            )
        known = self.model._meta.fields
        values = {name: given.get(name, known.get(name)) for name in columns}
        return {n: self._getter(columns[n], v, others) for n, v in values.items() if v is not None}

    def _getter(
        self, column: Column, value: Any, others: Sequence[Followed]
    ) -> Callable[[Any], Any]:
        if not isinstance(value, peewee.Field):
            return value if callable(value) else lambda row: value
        if value.model is not self.model:
            raise ConfigurationError(
                f"{self.followed}: {column.name} is a column of {value.model.__name__}."
            )
        name, shift = value.name, 0
        if isinstance(value, peewee.ForeignKeyField):
            if column.target is not None:
                at = [t.content_class for t in column.target.served_at.types.values()]
                found = {f.ids_from for f in others if f.model is value.rel_model and f.type in at}
                if len(found) > 1:
                    raise ConfigurationError(
                        f"{self.followed}: {column.name} could have the ids of several types; give "
                        "a function."
                    )
                shift = next(iter(found), 0)
            return lambda row: None if (key := row.__data__[name]) is None else key + shift
        return lambda row: getattr(row, name)

    # Statements.

    def rows(self, *columns: Any) -> Any:
        """The query for the rows to serve."""
        query = self.model.select(*columns)
        return query if self.followed.where is None else query.where(self.followed.where)

    def questions(self) -> Iterator[Any]:
        """The two queries for its mark."""
        changed, has_mark = self.followed.changed, self.followed.mark is not None
        yield SQL("NULL") if changed is None else self.rows(fn.MAX(changed))
        yield SQL("NULL") if changed is None or has_mark else self.rows(fn.COUNT(SQL("1")))

    def mark(self, answers: Sequence[Any]) -> str:
        """Its mark as text, from the answers to :meth:`questions`."""
        greatest, number = answers
        if not isinstance(greatest, int | float | str | None):
            greatest = str(greatest)
        try:
            own = None if self.followed.mark is None else self.followed.mark()
        except DATABASE_ERRORS:
            raise
        except Exception as error:
            why = f"{self.followed}: its mark raises {type(error).__name__}: {error}"
            raise BackendUnavailable(why) from error
        return json.dumps([greatest, number, own], default=str)

    def keys_since(self, greatest: Any) -> Iterator[list[int]]:
        """The keys of rows whose ``changed`` is at least a value, in batches; None: of all."""
        query = self.rows(self.key).order_by(self.key).limit(BATCH)
        if greatest is not None:
            value = SQL(self.model._meta.database.param, [greatest])
            query = query.where(self.followed.changed >= value)
        keys = [key for (key,) in query.tuples()]
        while keys:
            yield keys
            keys = [key for (key,) in query.where(self.key > keys[-1]).tuples()]

    def fetch(self, keys: Sequence[int]) -> dict[int, Any]:
        """Rows by key; in place of one that cannot be read, a text that says why."""
        query = self.rows().where(self.key.in_(keys))
        try:
            rows = peewee.prefetch(query, *self.followed.prefetch)
            return {row._pk: row for row in rows}
        except Exception as error:
            # SQLite stores any value in any column, even text that is no text; and a site's own
            # columns may fail in any way.
            if isinstance(error, DATABASE_ERRORS) and "UTF-8" not in str(error):
                raise
            if len(keys) == 1:
                # The error itself would keep the result open, and SQLite's file locked.
                return {keys[0]: repr(error)}
        return {k: row for key in keys for k, row in self.fetch([key]).items()}

    def name_of(self, identity: int) -> str:
        """The name of the row of an object in messages."""
        return f"{self.model.__name__} {identity - self.ids_from} ({self.endpoint.name} {identity})"


def _written(declared: ObjectType) -> dict[str, Column]:
    columns = declared.columns.items()
    return {name: column for name, column in columns if not isinstance(column.field, Derived)}

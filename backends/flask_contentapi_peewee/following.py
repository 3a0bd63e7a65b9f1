"""Follows a site's own models: copies their rows into the content and keeps the copies in step.

Whether a model has changed is asked before each answer, with one statement for all models: the mark
of a model (the greatest value of its column ``changed``, and the number of rows) is compared with
the one from when its rows were last copied. Only rows that may have changed are read then. Rows
that are saved through peewee's signals are noted in the site's own transaction and read as well.

A row that cannot be copied is left out, and remembered with its problems; it is read again when it
changes or, if it may fit now, when something else does.
"""

from __future__ import annotations

import json
import secrets
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import peewee
from peewee import SQL
from playhouse import signals

from flask_contentapi.errors import ConfigurationError, Problem
from flask_contentapi.writer import Writer
from flask_contentapi_peewee.copying import NOTED, WAITING, Copying
from flask_contentapi_peewee.followed import Followed, Source
from flask_contentapi_peewee.reader import DatabaseReader
from flask_contentapi_peewee.tables import Tables
from flask_contentapi_peewee.writing import DatabaseTransaction


class Following:
    """All followed models of a backend.

    :param follow: copies what has changed, without waiting for the next answer.
    :param logs: whether to log which rows are left out.
    :raises ConfigurationError: if a model cannot be followed so.
    """

    def __init__(
        self,
        followed: Sequence[Followed],
        tables: Tables,
        follow: Callable[[], None],
        logs: bool,
    ) -> None:
        self._logs = logs
        self._tables, self._database = tables, tables.engine.database
        declared = {
            known.content_class: known
            for endpoint in tables.registry.endpoints.values()
            for known in endpoint.types.values()
        }
        self.sources: dict[str, Source] = {}
        for one in followed:
            known = declared.get(one.type)
            if known is None:
                raise ConfigurationError(f"{one}: {one.type.__name__} is none of the types.")
            if known.label in self.sources:
                raise ConfigurationError(f"{one}: another model gives {known.label} already.")
            if one.model._meta.database is not self._database:
                raise ConfigurationError(f"{one}: it must be in the database of the backend.")
            self.sources[known.label] = Source(one, known, followed, self._tables)
            self._tables.followed_types[known.label] = (
                f"{known.label} has the rows of {one.model.__name__} and changes only with them"
            )
        self._question = self._make_question()
        self._has_table = False
        self._follow = follow
        self._hear()

    # Marks.

    def _make_question(self) -> tuple[str, Sequence[Any]]:
        fields = self._tables.followed.fields
        noted = self._tables.followed.model.select(SQL("1")).limit(1)
        columns = [noted.where(fields["standing"] == NOTED, fields["type"].in_([*self.sources]))]
        for source in self.sources.values():
            columns += [self._tables.state_of(source.state_key), *source.questions()]
        sql, parameters = peewee.Select(columns=columns).bind(self._database).sql()
        return sql, parameters

    def marks(self) -> tuple[bool, dict[str, tuple[str | None, str]]]:
        """Whether rows are noted, and for each followed type the mark of the rows as they were
        copied, and their mark now."""
        ((noted, *found),) = self._database.execute_sql(*self._question).fetchall()
        marks = {}
        for place, (label, source) in enumerate(self.sources.items()):
            stored, *answers = found[3 * place : 3 * place + 3]
            marks[label] = stored, source.mark(answers)
        return noted is not None, marks

    def is_outdated(self) -> bool:
        """Whether rows may have changed since they were copied."""
        noted, marks = self.marks()
        return noted or any(stored != now for stored, now in marks.values())

    # Signals.

    def _hear(self) -> None:
        this, name = weakref.ref(self), f"flask_contentapi {id(self)}"

        def hear(sender: Any, instance: Any, **_: Any) -> None:
            following = this()
            if following is not None and following.note(type(instance), instance._pk):
                following._follow()

        models = {source.model for source in self.sources.values() if source.has_signals}
        places = [(s, m) for s in (signals.post_save, signals.post_delete) for m in models]
        for signal, model in places:
            signal.connect(hear, name, model)
        #: Stops noting rows.
        self.close = weakref.finalize(self, _disconnect, name, places)

    def note(self, model: type[peewee.Model], key: int) -> bool:
        """Notes a row that has been saved or deleted, in the transaction in which that was done.

        :returns: whether the row can be copied at once, as no transaction is open.
        """
        table = self._tables.followed
        self._has_table = self._has_table or self._database.table_exists(table.name)
        if not self._has_table:
            return False
        for label, source in self.sources.items():
            if issubclass(model, source.model):
                self.remember(label, key, NOTED)
        return not self._database.in_transaction()

    def remember(self, label: str, key: int, standing: int, problems: str | None = None) -> None:
        """Writes a row into the table of followed rows."""
        table = self._tables.followed
        # Transactions of the site must not wait for each other, so each adds rows of its own.
        values = [secrets.randbits(62), label, key, standing, problems]
        self._database.execute_sql(table.insert_text, values)

    # Copying.

    def copy(
        self, transaction: DatabaseTransaction, writer: Writer, *, whole: bool = False
    ) -> int | None:
        """Copies what has changed.

        :returns: how many objects were written or removed; None if another process has copied
            everything meanwhile.
        :raises ConfigurationError: if there are objects of a followed type that no row gave.
        """
        noted, marks = self.marks()
        if not (whole or noted or any(stored != now for stored, now in marks.values())):
            return None
        copying = Copying(self.sources, transaction, writer)
        for label, (stored, now) in marks.items():
            copying.copy_changed(self.sources[label], stored, now, whole)
        copying.copy_waiting()
        if self._logs:
            copying.log_left_out()
        return copying.written

    def note_waiting(self, reader: DatabaseReader) -> None:
        """Notes rows that may fit now because other content has changed."""
        fields = self._tables.followed.fields
        query = self._tables.followed.model.select(fields["type"], fields["row"])
        query = query.where(fields["standing"] == WAITING, fields["type"].in_([*self.sources]))
        for label, key in reader.all(query.distinct()):
            self.remember(label, key, NOTED)

    def problems(self, reader: DatabaseReader) -> Iterator[Problem]:
        """Why rows are left out."""
        table = self._tables.followed
        columns = [table.fields["problems"]]
        query = table.model.select(*columns).where(
            table.fields["standing"] > NOTED, table.fields["type"].in_([*self.sources])
        )
        for (problems,) in reader.all(query.order_by(table.fields["type"], table.fields["row"])):
            yield from (Problem(*parts) for parts in json.loads(problems))


def _disconnect(name: str, places: Sequence[tuple[Any, Any]]) -> None:
    for signal, model in places:
        signal.disconnect(name=name, sender=model)

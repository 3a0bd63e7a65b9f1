"""What the package tells of its work: the log, outages of the storage, and progress."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from threading import Lock
from typing import Any, TypeVar

import click
from flask.logging import default_handler

from flask_contentapi.cache import renew_after_fork
from flask_contentapi.errors import BackendUnavailable

#: How long nothing more is logged about an outage, in seconds.
PAUSE = 60

#: The exit status of a command that Ctrl-C has ended.
INTERRUPTED = 130

#: The sections whose names have a singular; those of sites may be in any language.
_PLURALS = ("locales", "sites", "collections", "pages", "images", "documents", "redirects")

#: The logger of the package; backends of others may have their own.
log = logging.getLogger("flask_contentapi")


class _DefaultHandler(logging.Handler):
    """Writes records as Flask writes its own, on sites that have configured no logging.

    Whether they have is known only when something is logged, because many do it after the
    application is made.
    """

    def emit(self, record: logging.LogRecord) -> None:
        above = log.parent if log.propagate else None
        if log.handlers == [self] and not (above and above.hasHandlers()):
            default_handler.handle(record)


log.addHandler(_DefaultHandler())


class Outages:
    """Logs the outages of a storage: one line a minute, and one when it answers again.

    :param clock: returns a time in seconds that never goes back.
    :ivar is_reported: whether the last line says that it does not answer.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Forgets the outage."""
        self._lock = Lock()
        self._silent_until = -math.inf
        self.is_reported = False

    def report(self, error: BackendUnavailable) -> None:
        """Logs that a request could not be answered, unless another one was just before it."""
        with self._lock:
            now = self._clock()
            if now < self._silent_until:
                return
            self._silent_until = now + PAUSE
            self.is_reported = True
        log.error("The content cannot be read: %s", error)

    def end(self) -> None:
        """Logs that a request could be answered, if the last line says that it could not."""
        with self._lock:
            was_reported, self.is_reported = self.is_reported, False
        if was_reported:
            log.warning("The content can be read again.")


T = TypeVar("T")
#: Passes objects through; its arguments are those of :func:`watched`.
Watch = Callable[[Iterable[Any], str, int | None], Iterable[Any]]

_watch: ContextVar[Watch | None] = ContextVar("watch", default=None)


@contextmanager
def watching(watch: Watch) -> Iterator[None]:
    """Passes the objects that are :func:`watched` meanwhile through a function."""
    token = _watch.set(watch)
    try:
        yield
    finally:
        _watch.reset(token)


def watched(objects: Iterable[T], label: str, total: int | None = None) -> Iterable[T]:
    """The objects, watched while they are worked on if anybody wants to.

    :param label: what is done to them.
    :param total: how many there are; None if that is not known.
    """
    watch = _watch.get()
    return objects if watch is None else watch(objects, label, total)


def amounts(counts: Mapping[str, int]) -> str:
    """Tells how many objects there are.

    :param counts: the numbers by section.
    """
    found = [
        f"{number} {name[:-1] if number == 1 and name in _PLURALS else name}"
        for name, number in counts.items()
        if number
    ]
    return ", ".join(found) or "Nothing"


@contextmanager
def interruption_told(reader: Callable[[], AbstractContextManager[Any]]) -> Iterator[None]:
    """Tells on Ctrl-C that the content has been changed already, if it has.

    :param reader: gives a reader of the content that is changed meanwhile.
    """
    before = _version(reader)
    try:
        yield
    except KeyboardInterrupt:
        if _version(reader) in (before, None):
            raise
        said = "The content has been changed; only what comes after that has been interrupted."
        click.echo(f"\n{said} All of it is checked by: flask contentapi check.", err=True)
        raise SystemExit(INTERRUPTED) from None


def _version(reader: Callable[[], AbstractContextManager[Any]]) -> str | None:
    with suppress(Exception), reader() as content:
        version: str | None = content.version
        return version
    # The content cannot be read now.
    return None

"""Lets a command show how far the work on many objects has come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

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

    :param objects: the objects.
    :param label: what is done to them.
    :param total: how many there are; None if that is not known.
    """
    watch = _watch.get()
    return objects if watch is None else watch(objects, label, total)

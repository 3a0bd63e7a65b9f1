"""Bounded caches, among them one of answers, so that repeated requests are not processed again.

The keys of answers are the ETags, which change whenever the answers change (see
:class:`flask_contentapi.caching.Freshness`). So nothing has to be invalidated when the content
changes: stale answers are no longer requested and make room for others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, Protocol, TypeVar
from weakref import WeakSet

from cachetools import LRUCache
from flask import Response


class Renewable(Protocol):
    """Something with a lock, which would stay locked in the forked process for ever."""

    def renew(self) -> None:
        """Makes the lock, and what it protects, anew."""


_renewables: WeakSet[Renewable] = WeakSet()


def renew_after_fork(renewable: Renewable) -> None:
    """Renews something in every process that is forked from now on, as long as it exists."""
    _renewables.add(renewable)


def _renew() -> None:
    for renewable in _renewables:
        renewable.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


T = TypeVar("T")


class BoundedCache(Generic[T]):
    """A thread-safe LRU cache.

    :param size_of: returns the size of an entry; None: 1 each.
    """

    def __init__(self, max_size: int, size_of: Callable[[T], int] | None = None) -> None:
        self._max_size = max_size
        self._size_of = size_of
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Empties the cache."""
        self._entries: LRUCache[Hashable, T] = LRUCache(self._max_size, self._size_of)
        self._lock = Lock()

    def get(self, key: Hashable) -> T | None:
        """The cached value of a key; None if there is none."""
        # Shorter than its own get, which looks twice.
        with self._lock:
            try:
                return self._entries[key]
            except KeyError:
                return None

    def put(self, key: Hashable, value: T) -> T:
        """Caches a value, unless it is larger than the cache; returns the value."""
        with self._lock:
            if self._entries.getsizeof(value) <= self._entries.maxsize:
                self._entries[key] = value
        return value

    def __len__(self) -> int:
        return len(self._entries)


#: The headers that are computed for each request.
_OWN = ("Cache-Control", "ETag")
#: The estimated size of an answer besides its body and the text of its headers, in bytes.
_OVERHEAD = 1024


#: What is kept of an answer: its body, status and headers, without its lifetime, as that depends on
#: the time.
Answer = tuple[bytes, int, list[tuple[str, str]]]


def _size(answer: Answer) -> int:
    body, _, headers = answer
    return len(body) + sum(len(name) + len(value) for name, value in headers) + _OVERHEAD


class AnswerCache:
    """The recent answers of one instance.

    :param size: the size of the cache, in bytes.
    """

    def __init__(self, size: int) -> None:
        self._cache: BoundedCache[Answer] = BoundedCache(size, _size)

    def get(self, key: str) -> Answer | None:
        """The answer with a key; None if it is not cached."""
        return self._cache.get(key)

    def put(self, key: str | None, response: Response) -> None:
        """Caches an answer, unless it must be made each time, or is useless to a client that has no
        answer yet."""
        if key is None or response.headers["Cache-Control"] == "no-store":
            return
        if response.status_code == 304:
            return
        headers = [(name, value) for name, value in response.headers if name not in _OWN]
        # orjson's bytes are part of a longer buffer, which would be kept as a whole.
        body = bytes(memoryview(response.get_data()))
        self._cache.put(key, (body, response.status_code, headers))

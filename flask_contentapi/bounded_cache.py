"""A bounded cache."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

from cachetools import LRUCache

from flask_contentapi.forks import renew_after_fork

__all__ = ["BoundedCache"]

T = TypeVar("T")


class BoundedCache(Generic[T]):
    """A thread-safe LRU cache.

    :param max_size: its maximum size.
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
        with self._lock:
            return self._entries.get(key)

    def put(self, key: Hashable, value: T) -> T:
        """Caches a value, unless it is larger than the cache; returns the value."""
        with self._lock:
            if self._entries.getsizeof(value) <= self._entries.maxsize:
                self._entries[key] = value
        return value

    def __len__(self) -> int:
        return len(self._entries)

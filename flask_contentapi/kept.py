"""A bounded cache."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

from cachetools import LRUCache

__all__ = ["Kept"]

T = TypeVar("T")


class Kept(Generic[T]):
    """A thread-safe LRU cache.

    :param room: its maximum size.
    :param room_of: returns the size of an entry; None: 1 each.
    """

    def __init__(self, room: int, room_of: Callable[[T], int] | None = None) -> None:
        self._things: LRUCache[Hashable, T] = LRUCache(room, room_of)
        self._lock = Lock()

    def find(self, key: Hashable) -> T | None:
        """The cached value of a key; None if there is none."""
        with self._lock:
            return self._things.get(key)

    def keep(self, key: Hashable, thing: T) -> T:
        """Caches a value, unless it is larger than the cache; returns the value."""
        with self._lock:
            if self._things.getsizeof(thing) <= self._things.maxsize:
                self._things[key] = thing
        return thing

    def __len__(self) -> int:
        return len(self._things)

"""What was made last, kept in bounded room."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

from cachetools import LRUCache

__all__ = ["Kept"]

T = TypeVar("T")


class Kept(Generic[T]):
    """Things by what they are made of; those that were not asked for longest go first.

    :param room: how much of them is kept.
    :param room_of: what one of them takes; None: 1.
    """

    def __init__(self, room: int, room_of: Callable[[T], int] | None = None) -> None:
        self._things: LRUCache[Hashable, T] = LRUCache(room, room_of)
        self._lock = Lock()

    def find(self, key: Hashable) -> T | None:
        """What is kept under a key; None if nothing is."""
        with self._lock:
            return self._things.get(key)

    def keep(self, key: Hashable, thing: T) -> T:
        """Keeps a thing, unless it takes more than there is room for; gives it back."""
        with self._lock:
            if self._things.getsizeof(thing) <= self._things.maxsize:
                self._things[key] = thing
        return thing

    def __len__(self) -> int:
        return len(self._things)

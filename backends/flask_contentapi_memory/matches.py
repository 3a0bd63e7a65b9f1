"""Conditions and matches, as lists of places that are rarely copied."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from flask_contentapi_memory.shelves import Range

__all__ = ["Condition", "Matches"]

#: The size of a cache entry besides its places, counted in places.
ENTRY_OVERHEAD = 100


class Condition(NamedTuple):
    """One condition of a query.

    :param places: the places that meet it, in ascending order; None if there is no index.
    :param test: returns whether the object at a place meets it.
    :param hidden: whether the places may include hidden objects.
    :param typed: whether the places include only objects of the query's types.
    :param shared: whether the list of places exists anyway.
    """

    places: Sequence[int] | None
    test: Callable[[int], Any]
    hidden: bool = False
    typed: bool = False
    shared: bool = False


class Matches:
    """Places, as windows on a list that is not copied.

    :param places: the list.
    :param windows: the parts of it that match; None: all.
    :param shared: whether the list exists anyway, so that caching it takes no memory.
    """

    def __init__(
        self,
        places: Sequence[int],
        windows: Sequence[Range] | None = None,
        *,
        shared: bool = False,
    ) -> None:
        self._places = places
        self._windows = [(0, len(places))] if windows is None else windows
        self._size = sum(high - low for low, high in self._windows)
        #: Its size in a cache, counted in places.
        self.cache_size = ENTRY_OVERHEAD + (0 if shared else len(places))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[int]:
        return chain.from_iterable(self._places[low:high] for low, high in self._windows)

    def is_all_of(self, places: Sequence[int]) -> bool:
        """Whether the list is the given one, so that only the windows restrict it."""
        return self._places is places

    def slice(self, offset: int, size: int) -> list[int]:
        """At most ``size`` places, from an offset on."""
        taken: list[int] = []
        for low, high in self._windows:
            taken += self._places[min(low + offset, high) : min(low + offset + size, high)]
            size -= max(min(high - low - offset, size), 0)
            offset = max(offset - (high - low), 0)
        return taken

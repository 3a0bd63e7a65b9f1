"""Conditions and matches, as lists of positions that are rarely copied."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from flask_contentapi_memory.shelves import Range

__all__ = ["Condition", "Matches"]

#: The size of a cache entry besides its positions, counted in positions.
ENTRY_OVERHEAD = 100


class Condition(NamedTuple):
    """One condition of a query.

    :param positions: the positions that meet it, in ascending order; None if there is no index.
    :param test: returns whether the object at a position meets it.
    :param may_be_hidden: whether the positions may include hidden objects.
    :param is_typed: whether the positions include only objects of the query's types.
    :param is_shared: whether the list of positions exists anyway.
    """

    positions: Sequence[int] | None
    test: Callable[[int], Any]
    may_be_hidden: bool = False
    is_typed: bool = False
    is_shared: bool = False


class Matches:
    """Places, as windows on a list that is not copied.

    :param positions: the list.
    :param windows: the parts of it that match; None: all.
    :param is_shared: whether the list exists anyway, so that caching it takes no memory.
    """

    def __init__(
        self,
        positions: Sequence[int],
        windows: Sequence[Range] | None = None,
        *,
        is_shared: bool = False,
    ) -> None:
        self._positions = positions
        self._windows = [(0, len(positions))] if windows is None else windows
        self._size = sum(high - low for low, high in self._windows)
        #: Its size in a cache, counted in positions.
        self.cache_size = ENTRY_OVERHEAD + (0 if is_shared else len(positions))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[int]:
        return chain.from_iterable(self._positions[low:high] for low, high in self._windows)

    def is_all_of(self, positions: Sequence[int]) -> bool:
        """Whether the list is the given one, so that only the windows restrict it."""
        return self._positions is positions

    def slice(self, offset: int, size: int) -> list[int]:
        """At most ``size`` positions, from an offset on."""
        taken: list[int] = []
        for low, high in self._windows:
            taken += self._positions[min(low + offset, high) : min(low + offset + size, high)]
            size -= max(min(high - low - offset, size), 0)
            offset = max(offset - (high - low), 0)
        return taken

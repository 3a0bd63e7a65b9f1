"""What meets a condition, and what was found: places, copied as seldom as can be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from flask_contentapi_memory.shelves import Range

__all__ = ["Condition", "Matches"]

#: What keeping something takes besides its places, in places.
ROOM = 100


class Condition(NamedTuple):
    """One condition of a query.

    :param places: the places that meet it, in ascending order; None where no index knows them.
    :param test: whether the object at a place meets it.
    :param hidden: whether there may be hidden objects among the places.
    :param typed: whether there are only objects of the query's types among them.
    :param shared: whether the list of the places is one that is there anyway.
    """

    places: Sequence[int] | None
    test: Callable[[int], Any]
    hidden: bool = False
    typed: bool = False
    shared: bool = False


class Matches:
    """Places, as windows of a list, which is not copied.

    :param places: the list.
    :param windows: the parts of it that count; None: all.
    :param shared: whether the list is there anyway, so that keeping it takes nothing.
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
        #: What keeping it takes, in places.
        self.room = ROOM + (0 if shared else len(places))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[int]:
        return chain.from_iterable(self._places[low:high] for low, high in self._windows)

    def is_all_of(self, places: Sequence[int]) -> bool:
        """Whether the list is a certain one, so that nothing but the windows was chosen."""
        return self._places is places

    def slice(self, offset: int, size: int) -> list[int]:
        """Some of them, from an offset on."""
        taken: list[int] = []
        for low, high in self._windows:
            taken += self._places[min(low + offset, high) : min(low + offset + size, high)]
            size -= max(min(high - low - offset, size), 0)
            offset = max(offset - (high - low), 0)
        return taken

"""Places in the tree of pages as text, so that an index on it serves queries about the tree.

A path has a step for each page from the root page down. A step is the page's number among its
siblings, with the count of its digits in front, so that text order is number order::

    210        the first root page (10)
    210220     its second child (20)
    2103100    its tenth (100)

A page comes before its descendants, and these before its next sibling. The paths of pages below a
page are between its path and its path followed by a colon, the character after 9.
"""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["AFTER", "GAP", "LARGEST", "end", "last_number", "step"]

#: The initial difference between the numbers of siblings, to leave room for pages in between.
GAP = 10
#: The largest number that a step can have.
LARGEST = 10**9 - 1
#: Follows every step in text order.
AFTER = ":"


def step(number: int) -> str:
    """The step of the page with a number among its siblings.

    >>> step(10), step(100)
    ('210', '3100')
    """
    digits = str(number)
    return f"{len(digits)}{digits}"


def end(path: str) -> str:
    """The text that sorts directly after a page and all pages below it."""
    return path + AFTER


def last_number(path: str) -> int:
    """The number of a page among its siblings.

    >>> last_number("210220")
    20
    """
    ends = [0, *_ends(path)]
    return int(path[ends[-2] + 1 :])


def _ends(path: str) -> Iterator[int]:
    """Where each step of a path ends."""
    position = 0
    while position < len(path):
        position += 1 + int(path[position])
        yield position

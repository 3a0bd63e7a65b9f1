"""What is added to a message: a remark on a wrong name, and names that may have been meant."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence

__all__ = ["remarks", "suggest"]

#: How many wrong names are looked at: there can be thousands.
_REMARKED = 3


def remarks(wrong: Sequence[str], remark: Callable[[str], str]) -> str:
    """What there is to say of wrong names: of each after its name, where there are several.

    :param remark: gives sentences about a name, or "".
    """
    said = [(name, remark(name)) for name in wrong[:_REMARKED]]
    return "".join(f" {name}:{text}" if len(wrong) > 1 else text for name, text in said if text)


def suggest(wrong: str, known: Iterable[str], *, likeness: float = 0.65) -> str:
    """A sentence with names that are close to a wrong one, or "".

    :param likeness: how close they have to be, 1 being the same.
    """
    close = difflib.get_close_matches(wrong, list(known), n=3, cutoff=likeness)
    return f" Did you mean {' or '.join(map(repr, close))}?" if close else ""

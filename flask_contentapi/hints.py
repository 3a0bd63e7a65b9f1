"""Hints in error messages: remarks on wrong names, and similar names that may be meant."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence

__all__ = ["remarks", "suggest"]

#: How many wrong names get a remark, as there can be thousands.
_REMARKED = 3


def remarks(wrong: Sequence[str], remark: Callable[[str], str]) -> str:
    """Remarks on wrong names. If there are several names, each remark follows its name.

    :param remark: returns sentences about a name, or "".
    """
    said = [(name, remark(name)) for name in wrong[:_REMARKED]]
    return "".join(f" {name}:{text}" if len(wrong) > 1 else text for name, text in said if text)


def suggest(wrong: str, known: Iterable[str], *, likeness: float = 0.65) -> str:
    """A sentence with names that are close to a wrong one, or "".

    :param likeness: the required similarity; 1 means equal.
    """
    close = difflib.get_close_matches(wrong, list(known), n=3, cutoff=likeness)
    return f" Did you mean {' or '.join(map(repr, close))}?" if close else ""

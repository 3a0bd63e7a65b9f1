"""Words as tokens that the full text search of every database takes as they are.

A token is made of ASCII letters and digits, at least three and at most some thirty, and is no
word of any language, so that no engine drops it for being short or common, cuts it, folds its
case or takes it apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

__all__ = ["token", "tokens"]

#: The longest word that is kept readable.
LONGEST = 30


def token(word: str) -> str:
    """The token of a word as :func:`flask_contentapi.search.words` gives it.

    >>> token("storm")
    'zzstorm'
    """
    if word.isascii() and len(word) <= LONGEST:
        return f"zz{word}"
    return f"zy{blake2b(word.encode(), digest_size=14).hexdigest()}"


def tokens(words: Iterable[str]) -> list[str]:
    """The tokens of some words, in order."""
    return [token(word) for word in words]

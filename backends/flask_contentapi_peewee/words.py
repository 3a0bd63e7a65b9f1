"""Converts words to tokens that the full text search of every database indexes unchanged.

A token consists of ASCII letters and digits, at least three and at most some thirty, and is no
word of any language. So no engine drops it as short or common, truncates it, folds its case or
splits it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b

__all__ = ["token", "tokens"]

#: How many words keep their tokens.
CACHE_SIZE = 10_000
#: The length of the longest word that stays readable.
LONGEST = 30


@lru_cache(CACHE_SIZE)
def token(word: str) -> str:
    """The token of a word that :func:`flask_contentapi.search.words` returns.

    >>> token("storm")
    'zzstorm'
    """
    if word.isascii() and len(word) <= LONGEST:
        return f"zz{word}"
    return f"zy{blake2b(word.encode(), digest_size=14).hexdigest()}"


def tokens(words: Iterable[str]) -> list[str]:
    """The tokens of some words, in order."""
    return [token(word) for word in words]

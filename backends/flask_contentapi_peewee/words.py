"""Converts words to tokens that the full text search of every database indexes unchanged.

A token consists of ASCII letters and digits, at least three and at most some seventy, and is no
word of any language. So no engine drops it as short or common, truncates it, folds its case or
splits it. The token of the beginning of a word is the beginning of a token of the word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b

#: How many words keep their tokens.
CACHE_SIZE = 10_000
#: How much of a word is in one token.
LONGEST = 48
#: The characters that are written as others: those that engines fold, and the one that they are
#: written with.
_OTHERS = re.compile("[^0-9a-y]")


def token(word: str) -> str:
    """The token by which a word is found that :func:`flask_contentapi.search.words` returns.

    >>> token("storm")
    'zzstorm'
    """
    return _parts(word)[-1]


def tokens(words: Iterable[str]) -> str:
    """The tokens of some words, each word once, separated by spaces; a long word has several.

    >>> tokens(["storm", "of", "storm"])
    'zzstorm zzof'
    """
    distinct = dict.fromkeys(words)
    text = " ".join(distinct)
    if text.isascii() and 2 * max(map(len, distinct), default=LONGEST) < LONGEST:
        # So it nearly always is, and much faster.
        return f"zz{text.replace('z', 'zz').replace(' ', ' zz')}"
    return " ".join(part for word in distinct for part in _parts(word))


@lru_cache(CACHE_SIZE)
def _parts(word: str) -> tuple[str, ...]:
    """The tokens of a word: one for each part of it, with a digest of the parts before.

    Only the last one is shorter than the others, so it belongs to no longer word.
    """
    code = _OTHERS.sub(_written, word)
    starts = range(LONGEST, len(code) + 1, LONGEST)
    digests = (blake2b(code[:start].encode(), digest_size=10).hexdigest() for start in starts)
    later = (f"zy{d}{code[n : n + LONGEST]}" for n, d in zip(starts, digests, strict=True))
    return (f"zz{code[:LONGEST]}", *later)


def _written(char: re.Match[str]) -> str:
    """How a character is written. What comes behind a ``z`` tells how long that is."""
    return "zz" if char[0] == "z" else f"z{ord(char[0]):05x}"

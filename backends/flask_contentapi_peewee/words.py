"""Converts words to tokens that the full text search of databases indexes unchanged.

A word consists of letters and digits of any script, in lower case. A token for servers consists of
ASCII letters and digits, at least three and at most some seventy, and is no word of any language.
So no server drops it as short or common, truncates it, folds its case or splits it. SQLite takes
words as they are, unless they are huge. The token of the beginning of a word is the beginning of a
token of the word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b

#: How many words keep their tokens.
CACHE_SIZE = 10_000
#: The form of tokens. Another number lets tables of words be made anew.
VERSION = 2
#: How many characters of a word are in one token for servers, and in one for SQLite, which cuts
#: tokens after 32,768 bytes.
LONGEST, LONGEST_PLAIN = 48, 8000
#: The characters that are written as others: those that servers fold, and the one that they are
#: written with.
_OTHERS = re.compile("[^0-9a-y]")
_HUGE = re.compile(rf"[^ ]{{{LONGEST_PLAIN}}}")


def server_tokens(words: str) -> str:
    """The tokens of some words for servers, each word once; a long word has several.

    >>> server_tokens("storm of storm")
    'zzstorm zzof'
    """
    distinct = dict.fromkeys(words.split())
    text = " ".join(distinct)
    if text.isascii() and 2 * max(map(len, distinct), default=LONGEST) < LONGEST:
        # So it nearly always is, and much faster.
        return f"zz{text.replace('z', 'zz').replace(' ', ' zz')}"
    return " ".join(map(_server_tokens_of, distinct))


def plain_tokens(words: str) -> str:
    """The tokens of some words for SQLite; only huge words have several.

    >>> plain_tokens("storm of storm")
    'storm of storm'
    """
    if len(words) < LONGEST_PLAIN or not _HUGE.search(words):
        return words
    # A dot is in no word, and separates none in the index.
    return " ".join(part for word in words.split() for part in _parts(word, LONGEST_PLAIN, "", "·"))


@lru_cache(CACHE_SIZE)
def _server_tokens_of(word: str) -> str:
    return " ".join(_parts(_OTHERS.sub(_written, word), LONGEST, "zz", "zy"))


def _parts(code: str, size: int, first: str, later: str) -> Iterator[str]:
    """The parts of a word: each begins with a sign, later ones with a digest of those before.

    Only the last one is shorter than the others, so it belongs to no longer word.
    """
    yield f"{first}{code[:size]}"
    digest = blake2b(digest_size=10)
    for start in range(size, len(code) + 1, size):
        digest.update(code[start - size : start].encode())
        yield f"{later}{digest.hexdigest()}{code[start : start + size]}"


def _written(char: re.Match[str]) -> str:
    """How a character is written. What comes behind a ``z`` tells how long that is."""
    return "zz" if char[0] == "z" else f"z{ord(char[0]):05x}"

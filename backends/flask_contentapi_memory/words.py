"""The index of words: which objects have a word, and how much it weighs in each."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

__all__ = ["WordIndex"]

#: How fast further occurrences of a word lose weight (the k of BM25).
_SATURATION = 4.0
#: How many searches are kept.
KEPT = 32
#: How many bits the weight of a word in an object has.
_BITS = 16
#: The most that a word can weigh in an object.
HEAVIEST = 2**_BITS - 1


class WordIndex:
    """An index that does not change.

    Objects are numbered. Where a word occurs is a list of numbers, each with the weight of the word
    in its last bits: an entry for every word of every object has to be short, and quickly made.

    :param documents: for each object its id and the weights of its words.
    """

    def __init__(self, documents: Iterable[tuple[int, Mapping[str, int]]]) -> None:
        self._ids = array("q")
        self._size = 0
        self._postings: dict[str, array[int]] = {}
        #: As :meth:`_score`; who turns the pages of what was found asks for it again and again.
        self.score = lru_cache(KEPT)(self._score)
        self._add(documents)

    def _add(self, documents: Iterable[tuple[int, Mapping[str, int]]]) -> None:
        adding = _Adding(self._postings)
        for identity, weights in documents:
            first = len(self._ids) << _BITS
            self._ids.append(identity)
            self._size += 1
            for word, weight in weights.items():
                adding[word](first + (weight if weight < HEAVIEST else HEAVIEST))

    def revised(
        self, before: Mapping[int, Mapping[str, int]], after: Mapping[int, Mapping[str, int]]
    ) -> WordIndex:
        """An index in which some objects have other words.

        :param before: the words that they had, by id; those that are new have none.
        :param after: the words that they have; those that are gone have none.
        """
        index = WordIndex(())
        index._ids, index._size = self._ids[:], self._size - len(before)
        index._postings = dict(self._postings)
        for word in {word for words in (*before.values(), *after.values()) for word in words}:
            posting = self._postings.get(word, ())
            left = (entry for entry in posting if self._ids[entry >> _BITS] not in before)
            index._postings[word] = array("q", left)
        index._add(after.items())
        return index

    def _score(self, words: tuple[str, ...], every: bool) -> Mapping[int, float]:
        """How well those objects fit that have every word, or one of them, by id."""
        postings = sorted((self._postings.get(word, ()) for word in words), key=len)
        scores: dict[int, float] = {}
        for number, posting in enumerate(postings):
            found = [(self._ids[entry >> _BITS], entry & HEAVIEST) for entry in posting]
            if every and number:
                found = [pair for pair in found if pair[0] in scores]
            rarity = math.log(1 + self._size / (len(posting) + 1))
            gained = {
                identity: scores.get(identity, 0.0) + rarity * weight / (weight + _SATURATION)
                for identity, weight in found
            }
            scores = gained if every else scores | gained
        return scores


class _Adding(dict[str, Callable[[int], None]]):
    """By word what adds an entry for it; a word is new when it is first asked for.

    :param postings: where the entries of each word are.
    """

    def __init__(self, postings: dict[str, array[int]]) -> None:
        self._postings = postings

    def __missing__(self, word: str) -> Callable[[int], None]:
        posting = self._postings.setdefault(word, array("q"))
        self[word] = posting.append
        return posting.append

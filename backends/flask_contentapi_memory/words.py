"""The index of words: which objects have a word, and how much it weighs in each."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

__all__ = ["WordIndex"]

#: How fast further occurrences of a word lose weight (the k of BM25).
_SATURATION = 4.0
#: How many searches are kept.
KEPT = 32
#: The most that a word can weigh in an object.
HEAVIEST = 65535


class Posting:
    """Where one word occurs: ids in ascending order, and its weight in each."""

    __slots__ = ("ids", "weights")

    def __init__(self) -> None:
        self.ids = array("q")
        self.weights = array("H")

    def __len__(self) -> int:
        return len(self.ids)

    def without(self, identities: Iterable[int]) -> Posting:
        """A copy that leaves objects out."""
        left_out = set(identities)
        copy = Posting()
        for identity, weight in zip(self.ids, self.weights, strict=True):
            if identity not in left_out:
                copy.ids.append(identity)
                copy.weights.append(weight)
        return copy

    def put(self, identity: int, weight: int) -> None:
        """Adds an object that the posting does not have yet."""
        place = bisect_left(self.ids, identity)
        self.ids.insert(place, identity)
        self.weights.insert(place, min(weight, HEAVIEST))


class WordIndex:
    """An index that does not change.

    :param documents: for each object its id and the weights of its words, in ascending order.
    """

    def __init__(self, documents: Iterable[tuple[int, Mapping[str, int]]]) -> None:
        self._postings: dict[str, Posting] = {}
        self._size = 0
        #: As :meth:`_score`; who turns the pages of what was found asks for it again and again.
        self.score = lru_cache(KEPT)(self._score)
        adding: dict[str, tuple[Callable[[int], None], Callable[[int], None]]] = {}
        for identity, weights in documents:
            self._size += 1
            for word, weight in weights.items():
                if word not in adding:
                    posting = self._postings[word] = Posting()
                    adding[word] = posting.ids.append, posting.weights.append
                add_id, add_weight = adding[word]
                add_id(identity)
                add_weight(weight if weight < HEAVIEST else HEAVIEST)

    def revised(
        self, before: Mapping[int, Mapping[str, int]], after: Mapping[int, Mapping[str, int]]
    ) -> WordIndex:
        """An index in which some objects have other words.

        :param before: the words that they had, by id; those that are new have none.
        :param after: the words that they have; those that are gone have none.
        """
        index = WordIndex(())
        index._postings = dict(self._postings)
        index._size = self._size + len(after) - len(before)
        for word in {word for words in (*before.values(), *after.values()) for word in words}:
            posting = self._postings.get(word, _NOWHERE).without(before.keys() | after.keys())
            for identity, words in after.items():
                if word in words:
                    posting.put(identity, words[word])
            index._postings[word] = posting
        return index

    def _score(self, words: tuple[str, ...], every: bool) -> Mapping[int, float]:
        """How well those objects fit that have every word, or one of them, by id."""
        postings = sorted((self._postings.get(word, _NOWHERE) for word in words), key=len)
        scores: dict[int, float] = {}
        for number, posting in enumerate(postings):
            found: Iterable[tuple[int, int]] = zip(posting.ids, posting.weights, strict=True)
            if every and number:
                found = [pair for pair in found if pair[0] in scores]
            rarity = math.log(1 + self._size / (len(posting) + 1))
            gained = {
                identity: scores.get(identity, 0.0) + rarity * weight / (weight + _SATURATION)
                for identity, weight in found
            }
            scores = gained if every else scores | gained
        return scores


_NOWHERE = Posting()

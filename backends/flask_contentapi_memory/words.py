"""The index of words: which objects have a word, and how much it weighs in each."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

__all__ = ["WordIndex"]

#: How fast further occurrences of a word lose weight (the k of BM25).
_SATURATION = 4.0
#: The most that a word can weigh in an object.
HEAVIEST = 65535


class Posting:
    """Where one word occurs: ids in ascending order, and its weight in each."""

    __slots__ = ("ids", "weights")

    def __init__(self) -> None:
        self.ids = array("q")
        self.weights = array("H")

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

    def weigh(self, identities: Iterable[int]) -> Iterator[tuple[int, int]]:
        """The word's weight in each of some objects that have it."""
        ids, weights = self.ids, self.weights
        for identity in identities:
            yield identity, weights[bisect_left(ids, identity)]


class WordIndex:
    """An index that does not change.

    :param documents: for each object its id and the weights of its words, in ascending order.
    """

    def __init__(self, documents: Iterable[tuple[int, Mapping[str, int]]]) -> None:
        self._postings: dict[str, Posting] = {}
        self._size = 0
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

    def find(self, words: Sequence[str], every: bool) -> set[int]:
        """The ids of the objects that have every word, or one of them."""
        found = [self._postings.get(word, _NOWHERE).ids for word in words]
        if not every:
            return set().union(*found)
        first, *rest = sorted(found, key=len)
        return set(first).intersection(*rest)

    def score(self, words: Sequence[str], every: bool, ids: Iterable[int]) -> dict[int, float]:
        """How well objects that were found fit the words."""
        scores = dict.fromkeys(ids, 0.0)
        for word in words:
            posting = self._postings.get(word, _NOWHERE)
            rarity = math.log(1 + self._size / (len(posting.ids) + 1))
            having = scores if every else scores.keys() & set(posting.ids)
            for identity, weight in posting.weigh(having):
                scores[identity] += rarity * weight / (weight + _SATURATION)
        return scores


_NOWHERE = Posting()

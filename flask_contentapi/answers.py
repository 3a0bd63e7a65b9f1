"""Answers that are kept, so that what is asked again need not be made again.

They are kept by their tags, which are other ones whenever the answers are (see
:class:`flask_contentapi.caching.Freshness`). So nothing has to be taken out when the content
changes: what is not asked for any longer makes room for what is.
"""

from __future__ import annotations

from typing import NamedTuple

from flask import Response

from flask_contentapi.kept import Kept

__all__ = ["Answers"]

#: What an answer has of its own each time that it is given.
_OWN = ("Cache-Control", "ETag")
#: What an answer takes besides its body and the texts of its headers, in bytes.
_OVERHEAD = 1024


class _Answer(NamedTuple):
    """What is kept of an answer; how long it may be used depends on when it is given."""

    body: bytes
    status: int
    headers: list[tuple[str, str]]


def _size(answer: _Answer) -> int:
    headers = sum(len(name) + len(value) for name, value in answer.headers)
    return len(answer.body) + headers + _OVERHEAD


class Answers:
    """The answers of one instance that were given last.

    :param size: how many bytes may be kept.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._kept: Kept[_Answer] = Kept(size, _size)

    def find(self, key: str | None) -> Response | None:
        """The answer with a key, without its lifetime and tag; None if it is not kept."""
        if key is None or not self._size:
            return None
        answer = self._kept.find(key)
        return None if answer is None else Response(*answer)

    def keep(self, key: str | None, response: Response) -> None:
        """Keeps an answer, unless it is one that must be made each time."""
        if key is None or not self._size or response.headers["Cache-Control"] == "no-store":
            return
        if response.status_code == 304:
            # It says nothing to a client that has no answer yet.
            return
        headers = [(name, value) for name, value in response.headers if name not in _OWN]
        # What orjson makes is a part of something longer, which would be kept as a whole.
        body = bytes(memoryview(response.get_data()))
        self._kept.keep(key, _Answer(body, response.status_code, headers))

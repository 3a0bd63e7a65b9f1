"""Compares the answers of servers before anything is timed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import orjson

from bench.workloads import WORKLOADS, Workload

__all__ = ["DifferentAnswer", "compare"]

#: Added to ranked searches, so that all matches can be compared, whatever their order.
ALL = "&limit=1000000"


class Answering(Protocol):
    """Something that answers requests."""

    def get(self, path: str) -> Any:
        """An answer with ``status``, ``location`` and ``body``."""


class DifferentAnswer(Exception):
    """Two servers give different answers to a request."""


def compare(servers: Mapping[str, Answering], addresses: Mapping[str, Sequence[str]]) -> None:
    """Sends every request to every server and compares the answers.

    :param servers: servers with the same content, by name.
    :param addresses: the addresses of the workloads to compare.
    :raises DifferentAnswer: if answers differ in any byte, except for the order of ranked searches.
    """
    (first, wanted), *others = servers.items()
    for workload in WORKLOADS:
        for path in addresses.get(workload.name, ()):
            right = _essence(wanted, workload, path)
            for name, server in others:
                answer = _essence(server, workload, path)
                if answer != right:
                    raise DifferentAnswer(
                        f"{path}\n{first}: {right!r:.2000}\n{name}: {answer!r:.2000}"
                    )


def _essence(server: Answering, workload: Workload, path: str) -> Any:
    answer = server.get(path + ALL if workload.ranked else path)
    if answer.status not in (200, 302):
        raise DifferentAnswer(f"{path}: {answer.status} {answer.body!r:.500}")
    if not workload.ranked:
        return answer.status, answer.location, answer.body
    found = orjson.loads(answer.body)
    return found["meta"], sorted(found["items"], key=lambda item: item["id"])

"""Makes anew in a forked process what another thread may have been using meanwhile."""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Renewable(Protocol):
    """Something with a lock, which would stay locked in the forked process for ever."""

    def renew(self) -> None:
        """Makes the lock, and what it protects, anew."""


_renewables: WeakSet[Renewable] = WeakSet()


def renew_after_fork(renewable: Renewable) -> None:
    """Renews something in every process that is forked from now on, as long as it exists."""
    _renewables.add(renewable)


def _renew() -> None:
    for renewable in _renewables:
        renewable.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)

"""Processes that are forked while other threads use what they share."""

from __future__ import annotations

import os
import signal

import pytest

from flask_contentapi.bounded_cache import BoundedCache


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_cache_in_use_is_usable_after_a_fork() -> None:
    cache: BoundedCache[int] = BoundedCache(2)
    cache.put("kept", 1)
    with cache._lock:
        child = os.fork()
        if child == 0:
            signal.alarm(10)
            os._exit(0 if cache.get("kept") is None and cache.put("new", 2) == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert cache.get("kept") == 1

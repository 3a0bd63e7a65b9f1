"""Processes that are forked while other threads use what they share."""

from __future__ import annotations

import os
import signal
import threading

import pytest
from flask import Flask

from flask_contentapi import ContentAPI
from flask_contentapi.cache import BoundedCache
from flask_contentapi_memory import MemoryBackend

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")


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


def test_content_is_changed_after_a_fork_amid_a_change() -> None:
    backend = MemoryBackend({"pages": [{"id": 1, "title": "A", "slug": "a"}]})
    ContentAPI(Flask("site"), backend=backend, types=[])
    started, end = threading.Event(), threading.Event()
    thread = threading.Thread(target=change_slowly, args=(backend, started, end))
    thread.start()
    started.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        with backend.write() as writer:
            title = writer.record("pages", 1)["title"]
        os._exit(0 if title == "A" else 1)
    end.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


def change_slowly(backend: MemoryBackend, started: threading.Event, end: threading.Event) -> None:
    with backend.write() as writer:
        writer.update("pages", 1, title="B")
        started.set()
        end.wait()

"""Readers of long requests, each with a thread and a connection of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Any, cast

from flask_contentapi.backend import Reader

__all__ = ["in_own_thread"]


class _Elsewhere:
    """A reader of which everything is done by another thread.

    :param call: calls a function in that thread.
    :param reader: the reader.
    """

    def __init__(self, call: Callable[..., Any], reader: Reader) -> None:
        self._call, self._reader = call, reader

    def __getattr__(self, name: str) -> Any:
        part = self._call(getattr, self._reader, name)
        return partial(self._call, part) if callable(part) else part


@contextmanager
def in_own_thread(open_reader: Callable[[], AbstractContextManager[Reader]]) -> Iterator[Reader]:
    """A reader that is opened, used and closed in a new thread.

    Connections belong to threads. The thread that uses the reader can so answer other requests,
    and change content, before it closes the reader.

    :param open_reader: opens the reader.
    """
    with ThreadPoolExecutor(1, "contentapi") as thread:

        def call(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
            return thread.submit(function, *args, **named).result()

        stack = ExitStack()
        reader = call(lambda: stack.enter_context(open_reader()))
        try:
            yield cast(Reader, _Elsewhere(call, reader))
        except BaseException as error:
            call(stack.__exit__, type(error), error, error.__traceback__)
            raise
        call(stack.close)

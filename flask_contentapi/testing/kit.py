"""What all tests of the kit share: backends to be tested, and a short way to write queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import orjson
import pytest

from flask_contentapi.backend import Backend, Reader
from flask_contentapi.content import Entry
from flask_contentapi.query import Filter, Order, Query, Search, Tree, Viewer
from flask_contentapi.registry import Registry
from flask_contentapi.testing.sample import CONTENT, NOW
from flask_contentapi.testing.sample_types import TYPES

__all__ = [
    "ANYBODY",
    "BOARD",
    "EXHIBITS",
    "STAFF",
    "Kit",
    "asks",
    "exact",
    "found",
    "holds",
    "query",
]

#: Somebody without rights; who may pass ``login``; who may pass everything.
ANYBODY = Viewer(NOW)
STAFF = Viewer(NOW, frozenset({36}), frozenset({3}))
BOARD = Viewer(NOW, frozenset({36, 38}), frozenset({3, 6}))

EXHIBITS = frozenset({"museum.Exhibit", "museum.Loan"})


class Kit:
    """Base of the tests.

    What a backend may do in a way of its own is declared by attributes of the class. They do
    not skip tests, but say what is expected instead.

    :cvar ranks: whether searches come by relevance; otherwise they come in default order and
        need every word where the client does not say. As :attr:`Backend.ranks`.
    :cvar holds_content: whether a reader holds on to the content that it began with when another
        is loaded; otherwise it may raise :exc:`ContentChanged` from then on.
    :cvar load_waits: whether :meth:`Backend.load` waits until the readers that are open at the
        time are closed; otherwise it replaces the content at once.
    """

    ranks: ClassVar[bool] = True
    holds_content: ClassVar[bool] = True
    load_waits: ClassVar[bool] = False

    def make_backend(self) -> Backend:
        """A fresh backend: empty, not opened, and sharing nothing with those made before.

        It is closed when the tests are done with it; several are open at the same time.
        """
        raise NotImplementedError(f"{type(self).__name__} has to say how to make a backend.")

    def reopen(self, backend: Backend) -> Backend:
        """Another backend for what the given one has stored, not opened, as another process has it.

        Override it where :attr:`Backend.persistent` is true.
        """
        return self.make_backend()

    @classmethod
    @contextmanager
    def opened(
        cls,
        content: Mapping[str, Any] | None = None,
        backend: Backend | None = None,
        types: Iterable[type[Entry]] = TYPES,
    ) -> Iterator[Backend]:
        """A backend that is opened.

        :param content: what to load into it; None: nothing.
        :param backend: the backend; None: a fresh one.
        :param types: what is declared.
        """
        backend = backend or cls().make_backend()
        backend.open(Registry(types))
        try:
            backend.create()
            if content is not None:
                backend.load(content)
            yield backend
        finally:
            backend.close()

    @pytest.fixture(scope="class")
    @classmethod
    def sample(cls) -> Iterator[Backend]:
        """A backend with the sample content, for all tests that do not change it."""
        with cls.opened(CONTENT) as backend:
            yield backend

    @pytest.fixture
    def reader(self, sample: Backend) -> Iterator[Reader]:
        """A reader of the sample content."""
        with sample.reader() as reader:
            yield reader

    @pytest.fixture
    def backend(self) -> Iterator[Backend]:
        """A backend of the test's own, empty and opened."""
        with self.opened() as backend:
            yield backend


def query(
    endpoint: str = "pages",
    *columns: str,
    viewer: Viewer = ANYBODY,
    where: Iterable[tuple[str, Any, Any]] = (),
    tree: Mapping[Any, int] | None = None,
    any_word: str = "",
    every_word: str = "",
    order: str = "",
    **parts: Any,
) -> Query:
    """A query in few words.

    :param columns: those of the rows; without any the id alone.
    :param where: filters: column, operator and value.
    :param tree: pages by the relation to them.
    :param any_word: words of a search of which one is enough.
    :param every_word: words of a search that are all needed.
    :param order: keys as the parameter ``order`` has them: ``"-title,id"``.
    :param parts: as of :class:`Query`.
    """
    keys = (Order(key.removeprefix("-"), key.startswith("-")) for key in order.split(",") if key)
    words = tuple((any_word or every_word).split())
    return Query(
        endpoint,
        columns or ("id",),
        viewer,
        filters=tuple(Filter(*condition) for condition in where),
        tree=tuple(Tree(*condition) for condition in (tree or {}).items()),
        search=Search(words, bool(every_word)) if words else None,
        order=tuple(keys),
        **parts,
    )


def asks(rule: str, ids: list[int], *args: Any, total: int | None = None, **kwargs: Any) -> Any:
    """One line of a table of queries.

    :param rule: what is wrong with a backend that answers otherwise.
    :param ids: of the objects that have to be answered, in order.
    :param total: how many match, where that is not as many.
    :param args: with ``kwargs`` as of :func:`query`.
    """
    total = len(ids) if total is None else total
    return pytest.param(query(*args, **kwargs), ids, total, id=rule)


def holds(table: list[Any]) -> pytest.MarkDecorator:
    """Runs a test with each line of a table that :func:`asks` made."""
    return pytest.mark.parametrize(("query", "ids", "total"), table)


def found(reader: Reader, query: Query) -> tuple[list[int], int]:
    """The ids that a query finds, and the total."""
    selected = reader.select(query)
    return [row[0] for row in selected.rows], selected.total


def exact(value: Any) -> tuple[type, bytes]:
    """Something that is equal only for values that are answered the very same way."""
    return type(value), orjson.dumps(value, default=repr, option=orjson.OPT_UTC_Z)

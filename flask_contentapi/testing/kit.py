"""Helpers that all tests share: backends to test, and a short way to write queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, get_args

import orjson
import pytest

from flask_contentapi.backend import Backend, Reader
from flask_contentapi.query import Filter, Order, Query, Relation, Search, Tree, Viewer
from flask_contentapi.registry import Registry
from flask_contentapi.testing.sample import CONTENT, NOW, SMALL
from flask_contentapi.testing.sample_types import TYPES
from flask_contentapi.types import Entry

#: A viewer without rights; one who may pass ``login``; one who may pass everything.
ANYBODY = Viewer(NOW)
STAFF = Viewer(NOW, frozenset({36}), frozenset({3}))
BOARD = Viewer(NOW, frozenset({36, 38}), frozenset({3, 6}))
#: One who may pass pages that have the ids of restricted collections.
PAGES_ALONE = Viewer(NOW, pages=frozenset({3, 6}))

LOANS = frozenset({"museum.Loan"})
EXHIBITS = LOANS | {"museum.Exhibit"}


class Kit:
    """Base of the tests.

    Class attributes declare where a backend's behaviour may differ. They do not skip tests, but
    change what is expected.

    :cvar ranks: whether searches are ordered by relevance, as :attr:`Backend.ranks`. Otherwise
        they are in default order, and by default need every word.
    :cvar holds_content: whether a reader keeps the content it started with when other content is
        loaded. Otherwise it may raise :exc:`ContentChanged` from then on.
    :cvar load_waits: whether :meth:`Backend.load` waits until open readers are closed. Otherwise
        it replaces the content at once.
    """

    ranks: ClassVar[bool] = True
    holds_content: ClassVar[bool] = True
    load_waits: ClassVar[bool] = False

    def make_backend(self) -> Backend:
        """A fresh backend: empty, not opened, and sharing nothing with earlier ones.

        Tests close it when they are done. Several may be open at the same time.
        """
        raise NotImplementedError(f"{type(self).__name__} has to say how to make a backend.")

    def reopen(self, backend: Backend) -> Backend:
        """Another backend for the same storage, not opened, as in another process.

        Override it if :attr:`Backend.persistent` is true.
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
        """An opened backend.

        :param content: the content to load into it; None: nothing.
        :param backend: the backend; None: a fresh one.
        :param types: the declared types.
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
        """A backend with the sample content, shared by all tests that do not change it."""
        with cls.opened(CONTENT) as backend:
            yield backend

    @pytest.fixture
    def reader(self, sample: Backend) -> Iterator[Reader]:
        """A reader of the sample content."""
        with sample.reader() as reader:
            yield reader

    @pytest.fixture
    def backend(self) -> Iterator[Backend]:
        """A backend for a single test, empty and opened."""
        with self.opened() as backend:
            yield backend

    @pytest.fixture
    def small(self, backend: Backend) -> Backend:
        """A backend for a single test, with little content."""
        backend.load(SMALL)
        return backend


def query(
    endpoint: str = "pages",
    *columns: str,
    viewer: Viewer = ANYBODY,
    where: Iterable[tuple[str, Any, Any]] = (),
    any_word: str = "",
    every_word: str = "",
    begun: str = "",
    order: str = "",
    **parts: Any,
) -> Query:
    """Makes a query from short arguments.

    :param columns: the columns of the rows; by default only the id.
    :param where: filters: column, operator and value.
    :param any_word: words of a search, one of which is enough.
    :param every_word: words of a search, all of which are needed.
    :param begun: the same, the last one being the beginning of a word.
    :param order: keys as in the parameter ``order``: ``"-title,id"``.
    :param parts: relations to pages, as ``child_of=1``; other arguments of :class:`Query`.
    """
    tree = tuple(Tree(name, parts.pop(name)) for name in get_args(Relation) if name in parts)
    keys = (Order(key.removeprefix("-"), key.startswith("-")) for key in order.split(",") if key)
    texts = (begun, True, True), (any_word, False), (every_word, True)
    return Query(
        endpoint,
        columns or ("id",),
        viewer,
        filters=tuple(Filter(*condition) for condition in where),
        tree=tree,
        searches=tuple(Search(tuple(text.split()), *how) for text, *how in texts if text),
        order=tuple(keys),
        **parts,
    )


def case(rule: str, ids: list[int], *args: Any, total: int | None = None, **kwargs: Any) -> Any:
    """One line of a table of queries.

    :param rule: what is wrong with a backend that answers differently.
    :param ids: the ids of the expected objects, in order.
    :param total: how many match, if that is not the number of ids.
    :param args: with ``kwargs``, the arguments of :func:`query`.
    """
    total = len(ids) if total is None else total
    return pytest.param(query(*args, **kwargs), ids, total, id=rule)


def named(table: Iterable[tuple[Any, ...]]) -> list[Any]:
    """The parameters of a test for each line of a table, which begins with the rule."""
    return [pytest.param(*values, id=rule) for rule, *values in table]


def finds(table: list[Any]) -> Any:
    """A test that each query of a table made by :func:`case` finds the expected objects."""

    @pytest.mark.parametrize(("query", "ids", "total"), table)
    def test(self: Kit, reader: Reader, query: Query, ids: list[int], total: int) -> None:
        selected = reader.select(query)
        assert ([row[0] for row in selected.rows], selected.total) == (ids, total)
        assert not selected.unseen

    return test


def found(reader: Reader, query: Query) -> tuple[list[int], int]:
    """The ids that a query finds, and the total."""
    selected = reader.select(query)
    return [row[0] for row in selected.rows], selected.total


def exact(value: Any) -> tuple[type, bytes]:
    """A key that is equal only for values that look the same in answers."""
    return type(value), orjson.dumps(value, default=repr, option=orjson.OPT_UTC_Z)

"""The tests that every backend has to pass, for the test-suites of backends.

The author of a backend subclasses :class:`BackendTests` and defines how to make a backend::

    from flask_contentapi.testing import BackendTests

    class TestShelfBackend(BackendTests):
        def make_backend(self):
            return ShelfBackend(tempfile.mkdtemp())

pytest then runs a few hundred tests on a small sample of content. The name of each test is the
rule that it checks. Needs pytest, which ``pip install 'flask_contentapi[testing]'`` installs.
"""

import pytest

# Makes failing assertions show their values, as in a suite's own tests.
for _module in "answers facts filters kit lists loads rows visibility writes".split():
    pytest.register_assert_rewrite(f"{__name__}.{_module}")

from flask_contentapi.testing.answers import AnswerTests
from flask_contentapi.testing.facts import FactTests
from flask_contentapi.testing.filters import FilterTests
from flask_contentapi.testing.kit import Kit
from flask_contentapi.testing.lists import OrderTests, SearchTests, TreeTests
from flask_contentapi.testing.loads import LoadTests
from flask_contentapi.testing.rows import RowTests
from flask_contentapi.testing.sample import CONTENT, NOW
from flask_contentapi.testing.sample_types import TYPES
from flask_contentapi.testing.visibility import VisibilityTests
from flask_contentapi.testing.writes import WriteTests

__all__ = [
    "CONTENT",
    "NOW",
    "TYPES",
    "AnswerTests",
    "BackendTests",
    "FactTests",
    "FilterTests",
    "Kit",
    "LoadTests",
    "OrderTests",
    "RowTests",
    "SearchTests",
    "TreeTests",
    "VisibilityTests",
    "WriteTests",
]


class BackendTests(
    LoadTests,
    FactTests,
    RowTests,
    VisibilityTests,
    FilterTests,
    TreeTests,
    SearchTests,
    OrderTests,
    AnswerTests,
):
    """All tests that every backend has to pass; :class:`WriteTests` are for those with ``write()``.

    While a backend is being written, each base class can be used on its own.
    """

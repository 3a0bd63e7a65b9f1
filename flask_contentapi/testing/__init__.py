"""The tests that every backend has to pass, for the test-suites of backends.

The author of a backend subclasses :class:`BackendTests` and says how to make one::

    from flask_contentapi.testing import BackendTests

    class TestShelfBackend(BackendTests):
        def make_backend(self):
            return ShelfBackend(tempfile.mkdtemp())

pytest then runs a few hundred tests over a small sample content. The name of each says the rule
that it holds. Needs pytest, which ``pip install 'flask_contentapi[testing]'`` brings.
"""

import pytest

# So that failing assertions show their values, as those of a suite's own tests do.
for _module in "answers facts filters kit loads orders rows searches trees visibility".split():
    pytest.register_assert_rewrite(f"{__name__}.{_module}")

from flask_contentapi.testing.answers import AnswerTests
from flask_contentapi.testing.facts import FactTests
from flask_contentapi.testing.filters import FilterTests
from flask_contentapi.testing.kit import Kit
from flask_contentapi.testing.loads import LoadTests
from flask_contentapi.testing.orders import OrderTests
from flask_contentapi.testing.rows import RowTests
from flask_contentapi.testing.sample import CONTENT, NOW
from flask_contentapi.testing.sample_types import TYPES
from flask_contentapi.testing.searches import SearchTests
from flask_contentapi.testing.trees import TreeTests
from flask_contentapi.testing.visibility import VisibilityTests

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
    """All tests. Each of the bases can be used alone while a backend is being written."""

"""Fixtures for all tests. Every test that uses ``backend`` runs on each backend."""

from __future__ import annotations

import gc
import json
import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from hypothesis import HealthCheck, settings

from tests.api import API
from tests.servers import SERVERS, share
from tests.sites import make_site
from tests.stores import QUICK, named_backends, wrong_variables

CONFORMANCE = Path(__file__).parent / "conformance"

# How much generated content and how many generated requests are tried: less for a quick answer,
# more with "--hypothesis-profile=ci". There is no deadline, because loading takes time.
_GENERATED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", _GENERATED, max_examples=5)
settings.register_profile("default", _GENERATED, max_examples=30)
settings.register_profile("ci", _GENERATED, max_examples=600)

#: In the source of a module whose tests are all slow.
_ALL_SLOW = re.compile(r"^pytestmark = .*\bslow\b", re.MULTILINE)
#: Makes an application that serves some content, from an empty store of the test's backend.
MakeApp = Callable[..., Flask]
#: The same, but returns its API.
MakeAPI = Callable[..., API]
#: Loads content into the application that the tests of a module share, and returns its API.
Fill = Callable[[Mapping[str, Any]], API]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option ``--backends``."""
    parser.addoption(
        "--backends",
        type=named_backends,
        metavar="NAMES",
        help="Run all tests on these backends: names with commas, or all. By default, each test "
        f"runs on the first of {','.join(QUICK)} that it is for, without those that are slow.",
    )


def chosen_backends(config: pytest.Config) -> tuple[str, ...]:
    """The backends that tests run on."""
    return config.getoption("backends") or QUICK


def pytest_report_header(config: pytest.Config) -> str:
    """Says what runs."""
    left_out = "" if config.getoption("backends") else ", without slow tests"
    return f"backends: {', '.join(chosen_backends(config))}{left_out}"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs tests that use ``backend`` on each chosen backend that their marker names.

    Without ``--backends`` on one: that the stores answer alike, the tests of backends show.
    """
    if "chosen_backend" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("backends")
        names = [n for n in chosen_backends(metafunc.config) if not marker or n in marker.args]
        if metafunc.config.getoption("backends") is None:
            names = names[:1]
        metafunc.parametrize("chosen_backend", names, scope="session")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves out modules of slow tests where no backends are named: importing takes time, too."""
    if config.getoption("backends") is not None or collection_path.suffix != ".py":
        return None
    return bool(_ALL_SLOW.search(collection_path.read_text(encoding="utf-8"))) or None


def is_wanted(
    config: pytest.Config, backends: pytest.Mark | None, slow: pytest.Mark | None
) -> bool:
    """Whether tests with these marks run: on a chosen backend, and quick where none are named."""
    if backends and {*chosen_backends(config)}.isdisjoint(backends.args):
        return False
    return not slow or config.getoption("backends") is not None


def pytest_pycollect_makeitem(
    collector: pytest.Collector, name: str, obj: object
) -> list[pytest.Item] | None:
    """Leaves out classes of tests that are not wanted, without making their tests first."""
    if not isinstance(obj, type):
        return None
    marks = {mark.name: mark for mark in getattr(obj, "pytestmark", ())}
    wanted = is_wanted(collector.config, marks.get("backends"), marks.get("slow"))
    return None if wanted else []


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out tests of backends that are not chosen, and slow ones where none are named."""
    wanted: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for item in items:
        marks = item.get_closest_marker("backends"), item.get_closest_marker("slow")
        (wanted if is_wanted(config, *marks) else others).append(item)
    # What was collected stays to the end: the garbage collector need not look through it again.
    # Applications are many objects that come and go together, so it looks seldom.
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
    config.hook.pytest_deselected(items=others)
    items[:] = wanted


def pytest_configure(config: pytest.Config) -> None:
    """Refuses wrong variables, and starts servers once for several processes (``pytest -n 2``)."""
    settings.load_profile("default" if config.getoption("backends") else "quick")
    wrong = [*wrong_variables(os.environ)]
    if wrong:
        raise pytest.UsageError("\n".join(wrong))
    if getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput"):
        share(name for name in chosen_backends(config) if name in SERVERS)


@pytest.fixture(scope="session")
def backend(chosen_backend: str) -> str:
    """The name of a backend."""
    return chosen_backend


@pytest.fixture(scope="session")
def reference_content() -> Mapping[str, Any]:
    """The content of the reference site."""
    text = (CONFORMANCE / "content.json").read_text(encoding="utf-8")
    content: Mapping[str, Any] = json.loads(text)
    return content


@pytest.fixture(scope="session")
def make_app(backend: str) -> MakeApp:
    """Makes an application, as :func:`make_site` does for the test's backend."""
    return partial(make_site, backend)


@pytest.fixture(scope="session")
def make_api(make_app: MakeApp) -> MakeAPI:
    """Makes an application as ``make_app`` does, and returns its API."""

    def make(content: Mapping[str, Any] | None = None, /, **options: Any) -> API:
        return API(make_app(content, **options))

    return make


@pytest.fixture(scope="module")
def fill(make_api: MakeAPI) -> Fill:
    """Fills one application with other content each time, which takes less than making one."""
    api = make_api()

    def load(content: Mapping[str, Any]) -> API:
        api.load(content)
        return api

    return load


@pytest.fixture
def app(make_app: MakeApp, reference_content: Mapping[str, Any]) -> Flask:
    """The reference site."""
    return make_app(reference_content)


@pytest.fixture(scope="session")
def reference(make_app: MakeApp, reference_content: Mapping[str, Any]) -> API:
    """The API of the reference site, which no test changes."""
    return API(make_app(reference_content))

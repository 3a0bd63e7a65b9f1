"""Fixtures for all tests: every test that uses ``backend`` runs on each of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from flask_contentapi import ContentAPI, Entry
from tests.conformance.reference_site import TYPES
from tests.stores import BACKENDS, fresh_address

CONFORMANCE = Path(__file__).parent / "conformance"

#: Makes an application that serves some content, from a fresh store of the test's backend.
MakeApp = Callable[..., Flask]


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    """The name of a backend."""
    name: str = request.param
    return name


@pytest.fixture(scope="session")
def reference_content() -> Mapping[str, Any]:
    """The content of the reference site."""
    text = (CONFORMANCE / "content.json").read_text(encoding="utf-8")
    content: Mapping[str, Any] = json.loads(text)
    return content


@pytest.fixture
def make_app(backend: str) -> MakeApp:
    """Makes an application; without types it has those of the reference site."""

    def make(
        content: Mapping[str, Any] | None = None,
        types: Iterable[type[Entry]] = TYPES,
        config: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Flask:
        app = Flask("site")
        app.config.update(TESTING=True, CMSAPI_BACKEND=fresh_address(backend), **(config or {}))
        api = ContentAPI(app, types=types, **options)
        with app.app_context():
            api.backend.load(content or {})
        return app

    return make


@pytest.fixture
def app(make_app: MakeApp, reference_content: Mapping[str, Any]) -> Flask:
    """The reference site."""
    return make_app(reference_content)

"""Applications that serve some content from an empty store of some backend."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from flask import Flask

from flask_contentapi import ContentAPI, Entry
from tests.conformance.reference_site import TYPES
from tests.stores import take_store


def make_site(
    backend: str,
    /,
    content: Mapping[str, Any] | None = None,
    types: Iterable[type[Entry]] = TYPES,
    config: Mapping[str, Any] | None = None,
    **options: Any,
) -> Flask:
    """Makes an application, by default with the types of the reference site.

    :param backend: the name of the backend.
    :param options: as for the extension.
    """
    app = Flask("site")
    store = take_store(backend, types)
    app.config.update({"TESTING": True, "CMSAPI_BACKEND": store.address})
    app.config.update(config or {})
    api = ContentAPI(app, types=types, **options)
    with app.app_context():
        store.lend(api.backend)
        api.backend.load(content or {})
    return app

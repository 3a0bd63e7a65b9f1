"""Windfall, a community orchard: a small site that makes every page from the JSON API.

Run it with ``python3 demo``. The content is in ``content/``, its types are in :mod:`demo.models`,
and what turns it into HTML is in :mod:`demo.website` and ``templates/``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from flask import Config, Flask
from flask_cors import CORS

from demo import members, website
from demo.languages import LANGUAGES, LanguageInPath
from demo.models import TYPES
from flask_contentapi import ContentAPI
from flask_contentapi.errors import ConfigurationError

__all__ = ["create_app"]

#: A real site has its own key, and keeps it secret.
PUBLIC_KEY = "known to all"

#: What the templates, and what the site says about itself, rely on.
FIXED: dict[str, Any] = {
    "CMSAPI_URL_PREFIX": "/api/v2",
    "CMSAPI_SEARCH_ENABLED": True,
    "CMSAPI_RICH_TEXT_FORMAT": "html",
    "CMSAPI_RENDITIONS": {
        "small": "width-400|format-webp|webpquality-70",
        "medium": "width-800|format-webp|webpquality-70",
        "large": "width-1200|format-webp|webpquality-70",
    },
    "CMS_I18N_ENABLED": True,
}


def create_app(config: Mapping[str, Any] | None = None) -> Flask:
    """The site.

    :param config: settings that override those of the environment (``FLASK_CMSAPI_BACKEND`` and
        the like) and the site's own.
    """
    app = Flask(__name__)
    app.config.update(
        SECRET_KEY=PUBLIC_KEY,
        SESSION_COOKIE_SAMESITE="Lax",
        CMSAPI_BACKEND="sqlite:///instance/demo.db",
        CMSAPI_EXPLORER=True,
        CMSAPI_MEDIA_FOLDER="media",
        CMSAPI_RENDITION_FOLDER="instance/renditions",
        **FIXED,
    )
    app.config.update(_environment())
    key = app.config["SECRET_KEY"]
    if not isinstance(key, str) or not key:
        raise ConfigurationError(
            f"SECRET_KEY is {key!r}; it must be a text. What looks like a number is written in "
            "double quotes in environment variables."
        )
    for name, value in FIXED.items():
        if app.config[name] != value:
            raise ConfigurationError(
                f"{name} is {app.config[name]!r}; the pages of the demo need {json.dumps(value)}."
            )
    app.config.update(config or {})

    api = ContentAPI(app, types=TYPES, can_view=members.can_view, page_urls=LanguageInPath())
    # Front ends that somebody tries are on other ports.
    CORS(app, resources={"/api/v2/.*": {"origins": r"http://(localhost|127\.0\.0\.1)(:\d+)?$"}})
    for language in LANGUAGES.values():
        app.register_blueprint(website.pages, name=language.code, url_prefix=language.prefix)
    app.register_blueprint(website.files)
    if app.config.get("EDITOR_PASSWORD"):
        if app.config["SECRET_KEY"] == PUBLIC_KEY:
            message = "The editor needs a SECRET_KEY of its own. Start it with python3 demo --edit."
            raise ConfigurationError(message)
        from demo.editor import add_editor

        add_editor(app, api)
    return app


def _environment() -> dict[str, Any]:
    """What the site reads of the environment: those settings that it can tell a mistake in."""
    given = Config("")
    given.from_prefixed_env()
    known = ("CMS", "SECRET_KEY", "EDITOR_PASSWORD")
    return {name: value for name, value in given.items() if name.startswith(known)}

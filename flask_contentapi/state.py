"""The state of one instance of the extension in one application."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from flask_contentapi.addresses import Origins, PageURLs
from flask_contentapi.backend import Backend
from flask_contentapi.cache import AnswerCache
from flask_contentapi.logs import Outages
from flask_contentapi.parameters import Parameters
from flask_contentapi.previews import Previews
from flask_contentapi.registry import Registry
from flask_contentapi.renditions import Renditions
from flask_contentapi.settings import Settings

#: Returns whether a restriction, as in the record, lets the current request pass.
CanView = Callable[[Mapping[str, Any]], bool]


@dataclass(frozen=True)
class State:
    """The state of one instance in one application.

    :param settings: its settings.
    :param registry: the declared types.
    :param backend: the storage, opened.
    :param parameters: reads query strings.
    :param can_view: the hook that lets requests through restrictions, or None.
    :param page_urls: builds and resolves the addresses of pages.
    :param origins: finds the site of a request.
    :param renditions: the renditions of images.
    :param previews: writes and reads the tokens of previews.
    :param answer_cache: the cached answers.
    :param outages: logs when the backend does not answer.
    :param clock: returns the current time.
    :param fingerprint: the part of every ETag that depends on declarations and settings.
    :param config_prefix: the prefix of the keys of its settings.
    :param backend_name: the name of the backend in messages; "" if none is given or configured.
    """

    settings: Settings
    registry: Registry
    backend: Backend
    parameters: Parameters
    can_view: CanView | None
    page_urls: PageURLs
    origins: Origins
    renditions: Renditions
    previews: Previews
    answer_cache: AnswerCache
    outages: Outages
    clock: Callable[[], datetime]
    fingerprint: str
    config_prefix: str
    backend_name: str

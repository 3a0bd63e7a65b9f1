"""What one instance of the extension is in one application."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from flask_contentapi.addresses import PageURLs
from flask_contentapi.answers import Answers
from flask_contentapi.arguments import Arguments
from flask_contentapi.backend import Backend
from flask_contentapi.origins import Origins
from flask_contentapi.registry import Registry
from flask_contentapi.settings import Settings

__all__ = ["CanView", "State"]

#: Whether a restriction, as the record has it, lets the present request pass.
CanView = Callable[[Mapping[str, Any]], bool]


@dataclass(frozen=True)
class State:
    """What one instance is in one application.

    :param settings: its settings.
    :param registry: the declared types.
    :param backend: the storage, opened.
    :param arguments: reads query strings.
    :param can_view: the hook that lets requests through restrictions, or None.
    :param page_urls: how addresses of pages are made.
    :param origins: where requests come to.
    :param answers: those that are kept.
    :param clock: gives the time.
    :param fingerprint: what all of this adds to the tag of an answer.
    :param config_prefix: what the keys of its settings start with.
    :param backend_name: what the backend is called to people; "" where none was named or given.
    """

    settings: Settings
    registry: Registry
    backend: Backend
    arguments: Arguments
    can_view: CanView | None
    page_urls: PageURLs
    origins: Origins
    answers: Answers
    clock: Callable[[], datetime]
    fingerprint: str
    config_prefix: str
    backend_name: str

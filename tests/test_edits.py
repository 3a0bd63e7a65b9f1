"""What an edit does to answers, to their validators, and to caches in front of a site."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from flask_contentapi.registry import Registry
from flask_contentapi_memory import MemoryBackend
from tests.api import API
from tests.conftest import MakeAPI
from tests.edits import (
    CONTENT,
    EDITS,
    NOW,
    PRIVATE,
    TYPES,
    Answer,
    Content,
    answers,
    can_view,
    change,
    edited,
    heard,
)
from tests.stores import on_two

pytestmark = [on_two, pytest.mark.slow]

#: Answers by host, path and the restriction that the viewer may pass.
Known = dict[tuple[str, str, str], Answer]


@dataclass
class Made:
    """An edit that has been made.

    :param before: the answers before it.
    :param after: the answers after it.
    :param tags: the cache tags that were reported as changed.
    :param records: the whole content after it.
    :param wanted: the expected content.
    """

    before: Known
    after: Known
    tags: set[str]
    records: dict[str, list[Any]]
    wanted: Content

    @property
    def changed(self) -> list[tuple[Answer, Answer]]:
        """The answers that have changed, before and after."""
        pairs = ((known, self.after[at]) for at, known in self.before.items())
        return [(known, new) for known, new in pairs if known.shown != new.shown]


@pytest.fixture(scope="module")
def api(make_api: MakeAPI) -> API:
    config = {"CMS_I18N_ENABLED": True, "CMSAPI_CACHE_TAG_HEADER": "Cache-Tag"}
    return make_api(types=TYPES, config=config, can_view=can_view, clock=lambda: NOW)


@pytest.fixture(scope="module", params=EDITS)
def made(api: API, request: pytest.FixtureRequest) -> Made:
    """Each edit, made as far as possible by changing objects."""
    api.load(CONTENT)
    before = everything(api)
    wanted = edited(CONTENT, EDITS[request.param])
    with heard(api) as tags:
        change(api, CONTENT, wanted)
    return Made(before, everything(api), tags, api.dump(), wanted)


def everything(api: API) -> Known:
    """The answers to everybody, and the private ones to a viewer who may pass ``login``."""
    return answers(api) | answers(api, "login", PRIVATE)


def test_an_edit_makes_what_loading_makes(made: Made) -> None:
    backend = MemoryBackend(made.wanted)
    backend.open(Registry(TYPES))
    loaded: dict[str, list[Any]] = {}
    for section, record in backend.dump():
        loaded.setdefault(section, []).append(record)
    assert made.records == loaded


def test_another_answer_has_another_tag(made: Made) -> None:
    assert made.changed
    assert all(new.etag is None or new.etag != known.etag for known, new in made.changed)


def test_every_answer_that_an_edit_changes_is_purged(made: Made) -> None:
    assert all(made.tags & known.tags for known, _ in made.changed if known.is_public)

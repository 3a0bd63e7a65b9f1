"""Cache tags: an answer names what it is made of; a signal names what a write changes."""

from __future__ import annotations

from collections.abc import Set
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from werkzeug.datastructures import ResponseCacheControl

from flask_contentapi import ContentError, content_changed
from flask_contentapi.caching import MOST_TAGS
from flask_contentapi.signals import MOST_NAMED
from tests.api import API
from tests.conftest import MakeAPI
from tests.edits import (
    CONTENT,
    EDITS,
    NOW,
    PLACES,
    TYPES,
    Answer,
    Clock,
    Edit,
    answers,
    article,
    change,
    edited,
    heard,
    note,
    put,
    random_edits,
)
from tests.folders import Folder
from tests.samples import image
from tests.stores import on_two

#: Answers by host, path and the restriction that the viewer may pass.
Known = dict[tuple[str, str, str], Answer]


@pytest.fixture(scope="module")
def api(make_api: MakeAPI) -> API:
    config = {"CMS_I18N_ENABLED": True, "CMSAPI_CACHE_TAG_HEADER": "Cache-Tag"}
    return make_api(CONTENT, types=TYPES, config=config, clock=lambda: NOW)


@pytest.fixture(scope="module")
def known(api: API) -> Known:
    """The answers that a cache holds before anything is changed."""
    return answers(api)


def purged(api: API, edit: Edit) -> set[str]:
    """The cache tags that an edit changes."""
    api.load(CONTENT)
    with heard(api) as tags:
        change(api, CONTENT, edited(CONTENT, edit))
    return tags


@pytest.mark.parametrize(
    ("edit", "path"),
    [
        ("page: title", "pages/2/"),
        ("page: title", "pages/13/"),
        ("page: title", "people/2/?fields=page(*)"),
        ("page: title", "images/?fields=*"),
        ("page: body", "people/1/"),
        ("page: hidden", "pages/13/"),
        ("page: added", "pages/3/"),
        ("page: shown", "pages/4/"),
        ("page: slug", "pages/13/"),
        ("image: title", "pages/4/"),
        ("image: title", "pages/5/"),
        ("image: title", "pages/"),
        ("image: title", "documents/?fields=*"),
        ("image: hidden", "pages/4/"),
        ("image: added", "pages/13/"),
        ("document: title", "pages/4/"),
        ("document: shown", "pages/13/"),
        ("entry: name", "pages/"),
    ],
)
def test_answers_that_an_edit_does_not_concern_are_kept(
    api: API, known: Known, edit: str, path: str
) -> None:
    assert not purged(api, EDITS[edit]) & known["localhost", path, ""].tags


def tags_at(api: API, path: str, header: str = "Cache-Tag", **options: Any) -> list[str]:
    """The cache tags of an answer, from its header."""
    separator = ", " if header == "Cache-Tag" else " "
    return api.get(path, **options).headers[header].split(separator)


def test_an_object_names_itself_and_what_it_shows(api: API) -> None:
    api.load(CONTENT)
    shown = {"pages-3", "pages-2", "pages-4", "pages-13", "images-1", "documents-1"}
    assert {*tags_at(api, "pages/3/")} == {"content", *shown}
    assert {*tags_at(api, "pages/3/?fields=_,title")} == {"content", "pages-3"}
    assert tags_at(api, "images/2/") == ["content", "images-2"]
    assert tags_at(api, "people/1/") == ["content", "people-1", "pages-4"]


def test_objects_are_named_in_the_order_of_their_ids(make_api: MakeAPI) -> None:
    links = [{"id": id, "page": id} for id in (16, 9, 3)]
    pages = [article(1, links=links), *(note(id, 1) for id in (3, 9, 16))]
    config = {"CMSAPI_CACHE_TAG_HEADER": "Surrogate-Key"}
    api = make_api({"pages": pages}, types=TYPES, config=config)
    named = tags_at(api, "pages/1/", "Surrogate-Key")
    assert named == ["content", "pages-1", "pages-3", "pages-9", "pages-16"]


def test_a_list_names_its_endpoint_and_what_its_items_show(api: API) -> None:
    api.load(CONTENT)
    assert tags_at(api, "pages/") == ["content", "pages"]
    assert tags_at(api, "images/?limit=0") == ["content", "images"]
    listed = {"people", "pages-4"}
    assert {*tags_at(api, "people/?fields=page")} == {"content", *listed}


def test_what_only_leads_elsewhere_is_kept_as_long_as_a_list(api: API) -> None:
    api.load(CONTENT)
    assert tags_at(api, "pages/find/?html_path=/p2/p4/") == ["content", "pages"]
    assert tags_at(api, "images/find/?id=1") == ["content", "images"]


def test_nothing_hidden_is_named(api: API) -> None:
    api.load(CONTENT)
    for id in (3, 4, 5, 7):
        hidden = {"pages-6", "pages-8", "pages-9", "images-3", "images-9", "documents-2"}
        assert not hidden & {*tags_at(api, f"pages/{id}/")}


@pytest.mark.parametrize("path", ["pages/", "pages/3/", "people/?fields=*"])
def test_head_names_what_get_names(api: API, path: str) -> None:
    api.load(CONTENT)
    assert tags_at(api, path, method="HEAD") == tags_at(api, path)


def test_errors_name_nothing(api: API) -> None:
    api.load(CONTENT)
    for path in ("pages/6/", "pages/?limit=x", "pages/find/?html_path=/x/", "x/"):
        assert "Cache-Tag" not in api.get(path).headers


@pytest.fixture(scope="module")
def crowd(make_api: MakeAPI) -> API:
    """A page that links to more pages than the cache tags of an answer can name."""
    links = [{"id": id, "page": id} for id in range(2, 2 + MOST_TAGS)]
    pages = [article(1, links=links), *(note(id, 1) for id in range(2, 2 + MOST_TAGS))]
    config = {"CMSAPI_CACHE_TAG_HEADER": "Surrogate-Key"}
    return make_api({"pages": pages}, types=TYPES, config=config)


def test_an_answer_of_many_objects_names_their_endpoints(crowd: API) -> None:
    assert len(tags_at(crowd, "pages/2/", "Surrogate-Key")) == 3
    assert tags_at(crowd, "pages/1/", "Surrogate-Key") == ["content", "pages"]


def test_without_the_setting_nothing_is_named(make_api: MakeAPI) -> None:
    headers = make_api(CONTENT, types=TYPES).get("pages/3/").headers
    assert not {"Cache-Tag", "Surrogate-Key"} & {*headers.keys()}


# The signal.


def test_a_change_of_many_objects_concerns_everything(api: API) -> None:
    api.load(CONTENT)
    many = {**CONTENT, "images": [image(id) for id in range(1, 3 + MOST_NAMED)]}
    with heard(api) as tags:
        change(api, CONTENT, many)
    assert tags == {"content"}


def test_the_signal_comes_when_the_change_is_there(api: API) -> None:
    api.load(CONTENT)
    seen = []

    def look(sender: object, tags: Set[str]) -> None:
        seen.append((api.json("pages/4/")["title"], "pages-4" in tags))

    with content_changed.connected_to(look, api.backend):
        change(api, CONTENT, edited(CONTENT, EDITS["page: title"]))
    assert seen == [("New", True)]


def test_what_is_refused_is_not_heard_of(api: API) -> None:
    api.load(CONTENT)
    with heard(api) as tags, pytest.raises(ContentError):
        change(api, CONTENT, edited(CONTENT, put("images", 1, width="wide")))
    assert not tags


def test_what_changes_nothing_is_not_heard_of(api: API) -> None:
    api.load(CONTENT)
    with heard(api) as tags:
        change(api, CONTENT, CONTENT)
    assert not tags


def test_loading_is_heard_of(api: API) -> None:
    api.load(CONTENT)
    with heard(api) as tags:
        api.load(edited(CONTENT, EDITS["page: title"]))
    assert tags & {"content", "pages-4"}


def test_others_do_not_hear_of_it(api: API, make_api: MakeAPI) -> None:
    api.load(CONTENT)
    with heard(make_api(CONTENT, types=TYPES)) as tags:
        change(api, CONTENT, edited(CONTENT, EDITS["page: title"]))
    assert not tags


def test_files_that_have_changed_are_heard_of(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.put("images.json", [image(1), image(2)])
    api = folder.api()
    folder.put("images.json", [image(1), image(2, title="New")])
    with heard(api) as tags:
        api.backend.reload()
    assert tags == {"images", "images-2"}


def test_a_language_that_is_gone_is_heard_of(api: API) -> None:
    api.load({**CONTENT, "locales": ["en", "fr", "de"]})
    held = Answer(api, "pages/?locale=de")
    with heard(api) as tags:
        api.load(CONTENT)
    assert (held.status, api.status("pages/?locale=de")) == (200, 404)
    assert tags & held.tags


# A cache that is purged by the signal.


class Edge:
    """A cache in front of a site that stores answers whenever, and as long as, it may.

    :param api: the site.
    :param clock: returns the time.
    """

    def __init__(self, api: API, clock: Clock) -> None:
        self._api, self._clock = api, clock
        self._kept: dict[tuple[str, str], tuple[Answer, datetime]] = {}

    def purge(self, sender: object, tags: Set[str]) -> None:
        """Drops the answers with one of some cache tags."""
        self._kept = {at: kept for at, kept in self._kept.items() if not tags & kept[0].tags}

    def get(self, host: str, path: str) -> Answer:
        """The answer, from the cache or from the site."""
        kept, until = self._kept.get((host, path), (None, NOW))
        if kept and self._clock.now < until:
            return kept
        condition = {"If-None-Match": kept.etag} if kept and kept.etag else {}
        answer = Answer(self._api.at(host), path, headers=condition)
        if kept and answer.status == 304:
            answer.shown, answer.tags = kept.shown, kept.tags
        seconds = lifetime(answer.cache_control)
        self._kept[host, path] = answer, self._clock.now + timedelta(seconds=seconds)
        return answer


def lifetime(said: ResponseCacheControl) -> int:
    """How long a shared cache may return an answer, in seconds."""
    if said.private or said.no_store or said.no_cache or said.max_age is None:
        return 0
    return said.max_age + (said.stale_while_revalidate or 0)


#: An edit, and the seconds that pass after it.
Step = tuple[Edit, float]
clock = Clock()


@pytest.fixture(scope="module")
def origin(make_api: MakeAPI) -> API:
    """A site for a cache, whose content changes with time while answers are cached."""
    config = {
        "CMS_I18N_ENABLED": True,
        "CMSAPI_CACHE_MAX_AGE": 7200,
        "CMSAPI_CACHE_STALE_WHILE_REVALIDATE": 600,
        "CMSAPI_CACHE_TAG_HEADER": "Cache-Tag",
    }
    return make_api(types=TYPES, config=config, clock=clock)


@on_two
@pytest.mark.slow
@settings(max_examples=10)
@given(steps=st.lists(st.tuples(random_edits, st.sampled_from([0, 1, 1799.5, 1800])), min_size=4))
def test_a_cache_in_front_never_gives_what_is_over(origin: API, steps: list[Step]) -> None:
    content = CONTENT
    origin.load(content)
    clock.now = NOW
    edge = Edge(origin, clock)
    with content_changed.connected_to(edge.purge, origin.backend):
        for edit, seconds in steps[:4]:
            before, content = content, edited(content, edit)
            change(origin, before, content)
            clock.wait(seconds)
            for host, path in PLACES:
                assert edge.get(host, path).shown == Answer(origin.at(host), path).shown

"""What a site's own code changes in a database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import event, given, note
from hypothesis import strategies as st

from flask_contentapi.errors import ContentError
from flask_contentapi_peewee import PeeweeBackend
from flask_contentapi_peewee.writing import Writer
from tests.api import API
from tests.generated import contents, requests
from tests.rewriting import Change, Content, Refused, changes
from tests.stores import BACKENDS, DATABASES
from tests.test_model import Pair, ask, everything, make_pair


@pytest.fixture(scope="session", params=[name for name in BACKENDS if name in DATABASES])
def backend(request: pytest.FixtureRequest) -> str:
    """The name of a database."""
    name: str = request.param
    return name


@contextmanager
def writing(api: API) -> Iterator[Writer]:
    """Changes the content of an application."""
    assert isinstance(api.backend, PeeweeBackend)
    with api.backend.write() as writer:
        yield writer


# Random changes.


class Wanted:
    """The content that changes should lead to, kept by a backend that only loads.

    :param api: asks that backend.
    :param content: what is there at first.
    """

    def __init__(self, api: API, content: Content) -> None:
        self.api = api
        api.load(content)
        self.content = api.dump()

    def allows(self, change: Change) -> bool:
        """Whether a change can be made."""
        try:
            self.api.load(self._after(change, 10**6, lambda endpoint, id: {**_NEW}))
        except (Refused, ContentError) as error:
            event(f"{type(change).__name__}: {type(error).__name__}")
            return False
        event(f"{type(change).__name__}: made")
        return True

    def follow(self, change: Change, made: Any, writer: Writer) -> None:
        """Makes the same change as a database."""
        self.api.load(self._after(change, made, writer.record))
        self.content = self.api.dump()

    def _after(self, change: Change, made: Any, known: Any) -> Content:
        after = deepcopy(self.content)
        change.on(after, getattr(change, "record", {}).get("id", made), known)
        return after


#: What a database would give to a new page.
_NEW: dict[str, Any] = {
    "slug": "one-of-its-own",
    "translation_key": "new",
    "first_published_at": "2026-01-01",
}


class Undo(Exception):
    """Takes back what was changed."""


@pytest.fixture(scope="module")
def sites(backend: str) -> tuple[Pair, Pair]:
    """The same sites in memory and in a database."""
    return make_pair("memory"), make_pair(backend)


@given(data=st.data(), content=contents(), i18n=st.booleans())
def test_changes_lead_to_what_the_records_say(
    sites: tuple[Pair, Pair], data: st.DataObject, content: Content, i18n: bool
) -> None:
    memory, database = (pair[i18n] for pair in sites)
    wanted = Wanted(memory, content)
    database.load(content)
    for _ in range(data.draw(st.integers(1, 4))):
        before = deepcopy(wanted.content)
        try:
            with writing(database) as writer:
                change_some(data, wanted, writer)
                if data.draw(st.integers(0, 5)) == 5:
                    raise Undo
        except Undo:
            wanted.content = before
        assert database.dump() == wanted.content
    memory.load(wanted.content)
    assert everything(database) == everything(memory)
    for _ in range(5):
        request = data.draw(requests(complete(wanted.content), i18n))
        first, second = ask(memory, request), ask(database, request)
        if request.ranked or request.shuffled:
            assert first.get_json().get("meta") == second.get_json().get("meta")
        else:
            assert first.data == second.data


def complete(content: Content) -> Content:
    """Content with all sections, whose pages all say what they are below."""
    sections = ("locales", "sites", "pages", "images", "documents", "people")
    pages = [{"parent": None, **page} for page in content.get("pages", ())]
    return {**dict.fromkeys(sections, []), **content, "pages": pages}


def change_some(data: st.DataObject, wanted: Wanted, writer: Writer) -> None:
    for _ in range(data.draw(st.integers(1, 4))):
        change = data.draw(changes(wanted.content))
        note(repr(change))
        if wanted.allows(change):
            wanted.follow(change, change.make(writer), writer)
        else:
            with pytest.raises(ContentError):
                change.make(writer)

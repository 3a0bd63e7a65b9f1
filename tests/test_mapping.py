"""Rows of a site's own models are served as if they were the backend's own content."""

from __future__ import annotations

from typing import Any

import peewee
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from tests.api import API
from tests.databases import on_databases
from tests.generated import contents, requests
from tests.mapped_site import Content, fill, mapped, open_database, serve, split
from tests.test_model import Pair, ask, everything, make_pair
from tests.test_sql_writing import complete

pytestmark = on_databases


# Random rows.


@pytest.fixture(scope="module")
def database(backend: str) -> peewee.Database:
    """The site's own database."""
    return open_database(backend)


@pytest.fixture(scope="module")
def pair(database: peewee.Database) -> Pair:
    """The site that serves its rows, without internationalisation and with it."""
    off, on = (serve(database, mapped(), {"CMS_I18N_ENABLED": i18n}) for i18n in (False, True))
    return off, on


@pytest.fixture(scope="module")
def memory() -> Pair:
    """The same sites with all content in memory."""
    return make_pair("memory")


@given(data=st.data(), content=contents(), i18n=st.booleans())
def test_rows_give_the_same_bytes_as_records(
    database: peewee.Database,
    pair: Pair,
    memory: Pair,
    data: st.DataObject,
    content: Content,
    i18n: bool,
) -> None:
    rows, records = pair[i18n], memory[i18n]
    own, theirs = split(content)
    fill(database, theirs)
    rows.load(own)
    dumped = rows.dump()
    records.load(dumped)
    assert len(dumped.get("images", ())) == len(content["images"])
    assert len(dumped["pages"]) == len(content["pages"]) + 1
    assert everything(rows) == everything(records)
    for _ in range(10):
        compare(rows, records, data.draw(requests(complete(dumped), i18n)))


def compare(first: API, second: API, wanted: Any) -> None:
    """Asks two sites the same; how well something is found may differ."""
    answers = [ask(api, wanted) for api in (first, second)]
    note(f"{answers[0].text}\n{answers[1].text}")
    if wanted.ranked or wanted.shuffled:
        assert answers[0].get_json().get("meta") == answers[1].get_json().get("meta")
    else:
        assert answers[0].data == answers[1].data

"""A pooler in front of PostgreSQL that lends a connection for one transaction at a time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.api import API
from tests.databases import api_at, asked, storage, writing
from tests.samples import page, site
from tests.servers import pgbouncer, postgresql
from tests.stores import fresh_address, leave_out

pytestmark = [pytest.mark.backends("postgresql"), pytest.mark.slow]

CONTENT = {"sites": [site(1)], "pages": [page(1, slug="home"), page(2, 1), page(3, 1)]}


@pytest.fixture
def address(backend: str) -> Iterator[str]:
    """The address of a new database behind the pooler, with an open query."""
    name, server = fresh_address(backend).rpartition("/")[2], postgresql()
    assert server is not None
    pooler = pgbouncer(server)
    if pooler is None:
        leave_out("pgbouncer is not installed")
    pooler.start()
    yield f"{pooler.server.address}/{name}?prepare_threshold=none"
    pooler.stop()


def test_content_is_written_and_read_through_a_pooler(address: str) -> None:
    api, other = api_at(address, CONTENT), api_at(address)
    with asked(other, "pages/?search=page", threads=3) as answered:
        for number in range(40):
            with writing(api) as writer:
                writer.update("pages", 2, title=f"Page {number}")
                writer.update("pages", 3, title=f"Page {number}")
            assert _titles(other) == [f"Page {number}"] * 2
    assert {*answered} == {200}
    assert [*api.backend.check()] == []
    assert dict(api.backend.dump())["pages"]["title"] == "Page 39"


def _titles(api: API) -> list[str]:
    return [one["title"] for one in api.json("pages/?child_of=1&order=id")["items"]]


def test_nothing_is_prepared_behind_a_pooler(address: str) -> None:
    api = api_at(address, CONTENT)
    for number in range(20):
        # The second time only the version is asked for.
        assert [api.status(f"pages/2/?_={number}") for _ in range(2)] == [200] * 2
        with writing(api) as writer:
            writer.update("pages", 2, title=f"Page {number}")
    database = storage(api).engine.database
    with database.connection_context():
        found = database.execute_sql("SELECT name FROM pg_prepared_statements").fetchall()
    assert found == []

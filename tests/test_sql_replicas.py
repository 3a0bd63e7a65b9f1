"""Several hosts in one address: reading from replicas, and what happens when hosts fail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import peewee
import pytest

from flask_contentapi.errors import BackendUnavailable
from tests.api import API
from tests.databases import api_at, asked, on_servers, storage, until, writing
from tests.samples import page, site
from tests.servers import Daemon, new_mariadb, new_postgresql, standby_of, why_missing
from tests.stores import leave_out

pytestmark = [on_servers, pytest.mark.slow]

CONTENT = {"sites": [site(1)], "pages": [page(1, slug="home"), page(2, 1)]}
NAME = "contentapi_replicated"


class Pair:
    """A server and another one with the same content.

    :param primary: the server that is written to.
    :param replica: the server that is read from.
    """

    def __init__(self, primary: Daemon, replica: Daemon) -> None:
        self.primary, self.replica = primary, replica

    def api(self, options: str = "") -> API:
        """The API of a site with both. Its first request is read from the replica."""
        first, second = (d.server.address for d in (self.primary, self.replica))
        _, _, port = second.rpartition(":")
        api = api_at(f"{first},127.0.0.1:{port}/{NAME}{options}")
        assert api.ids("pages/") == [1, 2]
        return api

    def begin(self) -> None:
        """Starts both."""
        self.primary.start()
        self.replica.start()


@pytest.fixture(scope="module")
def servers(backend: str) -> Iterator[Pair]:
    make = {"postgresql": replicated_postgresql, "mariadb": doubled_mariadb}[backend]
    if why_missing(backend):
        leave_out(why_missing(backend))
    pair = make()
    yield pair
    pair.replica.stop()
    pair.primary.stop()


def replicated_postgresql() -> Pair:
    """A primary and its standby."""
    primary = new_postgresql()
    assert primary is not None
    primary.start()
    primary.server.create_database(NAME)
    api_at(f"{primary.server.address}/{NAME}", CONTENT)
    return Pair(primary, standby_of(primary))


def doubled_mariadb() -> Pair:
    """Two servers with the same content, loaded separately."""
    daemons = [new_mariadb(), new_mariadb()]
    for daemon in daemons:
        assert daemon is not None
        daemon.start()
        daemon.server.create_database(NAME)
        api_at(f"{daemon.server.address}/{NAME}", CONTENT)
    primary, replica = daemons
    assert primary is not None
    assert replica is not None
    return Pair(primary, replica)


@pytest.fixture
def pair(servers: Pair) -> Pair:
    servers.begin()
    until(lambda: answers_at(servers.replica))
    until(lambda: answers_at(servers.primary))
    return servers


def answers_at(daemon: Daemon) -> bool:
    """Whether the site can be served from one server alone."""
    return api_at(f"{daemon.server.address}/{NAME}").status("pages/") == 200


def read_from(api: API) -> int:
    """The port of the server used for reading."""
    return port_of(storage(api).engine.reading)


def written_to(api: API) -> int:
    """The port of the server used for writing."""
    return port_of(storage(api).engine.database)


def port_of(database: peewee.Database) -> int:
    """The port of the server behind a connection."""
    is_mariadb = isinstance(database, peewee.MySQLDatabase)
    with database.connection_context():
        sql = "SELECT @@port" if is_mariadb else "SELECT inet_server_port()"
        ((port,),) = database.execute_sql(sql).fetchall()
    return int(port)


def test_reads_go_to_the_replica_and_writes_to_the_primary(pair: Pair) -> None:
    for _ in range(6):
        api = pair.api()
        assert (read_from(api), written_to(api)) == (pair.replica.port, pair.primary.port)


def test_requests_within_a_block_see_its_changes(pair: Pair) -> None:
    api = pair.api()
    with writing(api) as writer:
        writer.update("pages", 2, title="Within")
        assert api.json("pages/2/")["title"] == "Within"


on_postgresql = pytest.mark.backends("postgresql")


@on_postgresql
def test_the_order_of_hosts_does_not_matter_to_postgresql(pair: Pair) -> None:
    api = Pair(pair.replica, pair.primary).api()
    assert (read_from(api), written_to(api)) == (pair.replica.port, pair.primary.port)


def test_reads_go_on_when_the_primary_dies(pair: Pair) -> None:
    api = pair.api()
    with asked(api, "pages/?fields=*") as statuses:
        pair.primary.crash()
    assert set(statuses) == {200}
    with pytest.raises(BackendUnavailable), writing(api):
        pass


def test_reads_go_on_when_the_replica_dies(pair: Pair) -> None:
    api = pair.api()
    with asked(api, "pages/?fields=*") as statuses:
        pair.replica.crash()
    assert set(statuses) == {200}
    assert read_from(api) == pair.primary.port


def test_a_site_can_start_while_the_primary_is_gone(pair: Pair) -> None:
    pair.primary.crash()
    assert pair.api().ids("pages/") == [1, 2]


def test_writes_go_on_when_the_primary_is_back(pair: Pair) -> None:
    api = pair.api()
    pair.primary.crash()
    with pytest.raises(BackendUnavailable), writing(api):
        pass
    pair.primary.start()
    until(lambda: answers_at(pair.primary))
    with writing(api) as writer:
        writer.update("pages", 2, title=str(id(api)))
    assert api_at(f"{pair.primary.server.address}/{NAME}").json("pages/2/")["title"] == str(id(api))


def test_reads_return_to_the_replica_when_it_is_back(pair: Pair) -> None:
    api = pair.api("?stale_timeout=1")
    pair.replica.crash()
    assert api.status("pages/") == 200
    pair.replica.start()
    until(lambda: read_from(api) == pair.replica.port)
    assert api.status("pages/") == 200


def test_all_hosts_gone_is_said_with_503_until_one_is_back(pair: Pair) -> None:
    api = pair.api()
    pair.primary.crash()
    pair.replica.crash()
    assert api.refusal("pages/", 503)
    pair.replica.start()
    until(lambda: api.status("pages/") == 200)


# Streaming replication.


@pytest.fixture
def streaming(servers: Pair) -> Iterator[Pair]:
    """A PostgreSQL primary with one more standby, for a single test."""
    servers.begin()
    until(lambda: answers_at(servers.primary))
    standby = standby_of(servers.primary)
    standby.start()
    until(lambda: answers_at(standby))
    yield Pair(servers.primary, standby)
    standby.stop()


@on_postgresql
def test_what_is_written_arrives_at_the_replica(streaming: Pair) -> None:
    api = streaming.api()
    with writing(api) as writer:
        writer.update("pages", 2, title="Streamed")
    until(lambda: api.json("pages/2/")["title"] == "Streamed")
    assert api.ids("pages/?title=Streamed") == [2]


@on_postgresql
def test_writes_go_to_a_replica_that_became_the_primary(streaming: Pair) -> None:
    api = streaming.api()
    streaming.primary.crash()
    promote(streaming.replica)
    with writing(api) as writer:
        writer.update("pages", 2, title="After")
    assert api.json("pages/2/")["title"] == "After"


def promote(daemon: Daemon) -> None:
    """Makes a standby a primary."""
    api = api_at(f"{daemon.server.address}/{NAME}")
    database: Any = storage(api).engine.database
    with database.connection_context():
        assert database.execute_sql("SELECT pg_promote()").fetchall() == [(True,)]


def test_nothing_is_dumped_while_it_is_changed(pair: Pair) -> None:
    api = pair.api()
    with pytest.raises(RuntimeError, match="not dumped while it is changed"), writing(api):
        next(iter(api.backend.dump()))

"""The content in all forms that are served; those that take long to make are reused."""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import psycopg

from bench import magazine
from bench.content import HOST, Magazine, Records
from bench.peers import sql
from bench.servers import ROOT, Server, pinned
from bench.workloads import addresses
from tests.servers import SERVERS, why_missing

__all__ = ["Stores", "say"]

FOLDER = ROOT / "bench" / "instance"
#: The files that the content depends on.
CONTENT = ["bench/content.py", "bench/workloads.py"]
#: Further files that the stores of the extension depend on.
PRODUCT = ["bench/magazine.py", "flask_contentapi/*.py", "backends/*/*.py"]


def say(text: str) -> None:
    """Reports progress."""
    print(text, flush=True)


class Stores:
    """Content with one number of pages, in all forms.

    :param pages: the number of pages.
    :param folder: where the forms are stored.
    """

    def __init__(self, pages: int, folder: Path = FOLDER) -> None:
        self.pages = pages
        self._folder = folder / str(pages)
        self._folder.mkdir(parents=True, exist_ok=True)

    def arguments(self, server: Server) -> Sequence[str]:
        """The arguments of a server's factory; its store is made if it is missing."""
        if server.factory == "bench.magazine:create_app":
            return self._product(server.storage)
        if server.storage == "records":
            return [self._records]
        if server.storage == "answer":
            return [self._answer()]
        return [self._by_hand(server.storage)]

    @cached_property
    def addresses(self) -> dict[str, list[str]]:
        """The addresses of each workload."""
        found: dict[str, list[str]] = json.loads(Path(self._records, "addresses.json").read_text())
        return found

    @cached_property
    def _records(self) -> str:
        def make(folder: Path) -> None:
            folder.mkdir()
            content = Magazine(self.pages)
            records = Records.write(content, folder)
            found = addresses(content, records["pages"])
            (folder / "addresses.json").write_text(json.dumps(found))

        return self._made("records", CONTENT, make)

    def _product(self, storage: str) -> Sequence[str]:
        if storage == "memory":
            return ["memory", self._records]
        if storage == "jsonfiles":

            def make(folder: Path) -> None:
                folder.mkdir()
                self._load(f"jsonfiles:{folder}")

            return [f"jsonfiles:{self._made('json', [*CONTENT, *PRODUCT], make)}"]
        if storage == "sqlite":
            path = self._made(
                "product.db", [*CONTENT, *PRODUCT], lambda p: self._load(f"sqlite:///{p}")
            )
            return [f"sqlite:///{path}"]
        address = self._database(storage)
        self._load(address)
        _tidy(address)
        return [address]

    def _load(self, address: str) -> None:
        say(f"Loading {self.pages:,} pages into {address.partition(':')[0]}")
        with _quiet():
            app = magazine.create_app(address)
        with app.app_context():
            backend = app.extensions["contentapi"]["contentapi"].backend
            backend.create()
            backend.load(Records(Path(self._records)))
            backend.close()

    def _by_hand(self, storage: str) -> str:
        if storage == "sqlite":
            sources = [*CONTENT, "bench/peers/sql.py", "bench/peers/tree.py"]
            return self._made("hand.db", sources, lambda path: self._load_by_hand(str(path)))
        address = self._database(storage)
        self._load_by_hand(address)
        _tidy(address)
        return address

    def _load_by_hand(self, address: str) -> None:
        say(f"Loading {self.pages:,} pages into tables made by hand")
        sql.load(address, Records(Path(self._records)))

    def _answer(self) -> str:
        """The path of a file with a list of pages."""
        app = sql.create_app(self._by_hand("sqlite"))
        answer = app.test_client().get(self.addresses["W1"][0], headers={"Host": HOST})
        path = self._folder / "answer.json"
        path.write_bytes(answer.data)
        return str(path)

    def _made(self, name: str, sources: Sequence[str], make: Callable[[Path], None]) -> str:
        """The path of something in the folder, which is made if it is missing or out of date.

        :param sources: patterns of the files that it depends on.
        :param make: makes it at a path.
        """
        path, stamp = self._folder / name, self._folder / f"{name}.made"
        digest = hashlib.sha256()
        for source in sorted(path for pattern in sources for path in ROOT.glob(pattern)):
            digest.update(source.read_bytes())
        if not stamp.exists() or stamp.read_text() != digest.hexdigest():
            _remove(path)
            make(path)
            stamp.write_text(digest.hexdigest())
        return str(path)

    @staticmethod
    def _database(kind: str) -> str:
        """The address of a new, empty database on a server of a kind.

        :raises SystemExit: if there is no such server.
        """
        with pinned(0):
            server = SERVERS[kind]()
        if server is None:
            raise SystemExit(f"{why_missing(kind)}; leave it out with --backends.")
        name = f"bench_{secrets.token_hex(6)}"
        server.create_database(name)
        return f"{server.address}/{name}"


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppresses the message that there are no tables yet."""
    log = logging.getLogger("flask_contentapi")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


def _tidy(address: str) -> None:
    """Prepares a database server for a solid-state disk, as its manual recommends."""
    if not address.startswith("postgresql:"):
        return
    name = address.rpartition("/")[2]
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} SET random_page_cost = 1.1".encode())
        connection.execute("VACUUM ANALYZE")


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    for leftover in path.parent.glob(f"{path.name}*"):
        leftover.unlink()

"""Makes connection pools for the database addresses in settings."""

from __future__ import annotations

import re
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from flask_contentapi.errors import ConfigurationError
from flask_contentapi_peewee.connections import (
    MariaDBPool,
    PostgreSQLPool,
    SQLitePool,
    pymysql,
    reason,
)

__all__ = ["mariadb", "postgresql", "sqlite"]

#: How many connections a process opens at most, and how long a request waits for one, in s.
MAX_CONNECTIONS = 20
WAIT = 10
#: How long connecting to a host may take, in s.
CONNECT_TIMEOUT = 5
#: After how long connections to replicas are replaced, in s, because hosts come back.
RETURN = 60

#: Characters in a user name or password that should be percent-encoded but are not.
_UNENCODED = re.compile(r"@|%(?![0-9A-Fa-f]{2})")

_FILE_OPTIONS = {"max_connections": int, "timeout": float, "stale_timeout": float}
_POOL_OPTIONS = {**_FILE_OPTIONS, "recheck": float}


def sqlite(address: str, root: Path) -> SQLitePool:
    """Connections to the file that an address names.

    :param address: as ``///site.db``.
    :param root: the folder that relative paths start from.
    :raises ConfigurationError: if the address cannot be used; the other functions do the same.
    """
    text, _, query = address.partition("?")
    name = unquote(text.removeprefix("///"))
    has_slashes = text.startswith("///") or not text.startswith("/")
    if not name or name == ":memory:" or name.startswith("//") or not has_slashes:
        raise ConfigurationError(
            f"sqlite:{address} names no file; use sqlite:///site.db, with a fourth slash for "
            "an absolute path."
        )
    for option, _ in parse_qsl(query):
        if option not in _FILE_OPTIONS:
            known = ", ".join(_FILE_OPTIONS)
            raise ConfigurationError(f"{option} is no option; there are {known}.")
    options = _pool(query)
    pool = SQLitePool(
        (root / name).absolute().as_uri(),
        pragmas={"synchronous": "normal", "cache_size": -65_536, "mmap_size": 1 << 30},
        **options,
    )
    # The pool consumes the option, but it is the timeout for locks of the file as well.
    pool.timeout = options["timeout"]
    return pool


def postgresql(address: str) -> list[PostgreSQLPool]:
    """Connections to PostgreSQL: for writing and, with several hosts, separate ones for reading.

    :param address: as ``//user:password@host/name``; several hosts are separated by commas.
    """
    parts = _parts("postgresql", address)
    _driver("psycopg", "postgresql")
    if "," not in _hosts(parts):
        return [_postgresql(parts)]
    reading = {"target_session_attrs": "prefer-standby", "load_balance_hosts": "random"}
    return [_postgresql(parts, target_session_attrs="read-write"), _postgresql(parts, **reading)]


def _postgresql(parts: SplitResult, **options: str) -> PostgreSQLPool:
    given = {"connect_timeout": str(CONNECT_TIMEOUT), **_others(parts.query), **options}
    conninfo = f"postgresql://{parts.netloc}{parts.path}?{urlencode(given, quote_via=quote)}"
    try:
        import_module("psycopg.conninfo").conninfo_to_dict(conninfo)
    except import_module("psycopg").Error as error:
        raise ConfigurationError(f"The address cannot be used: {reason(error)}.") from error
    return PostgreSQLPool(
        conninfo, prefer_psycopg3=True, **_pool(parts.query, several="load_balance_hosts" in given)
    )


def mariadb(address: str) -> list[MariaDBPool]:
    """Connections to MariaDB: for writing and, with several hosts, separate ones for reading.

    :param address: as ``//user:password@host/name``; several hosts are separated by commas, and
        the first is used for writing.
    """
    parts = _parts("mariadb", address)
    _driver("pymysql", "mariadb")
    primary, *replicas = [_host(host) for host in _hosts(parts).split(",")]
    if not replicas:
        return [_mariadb(parts, [primary])]
    return [_mariadb(parts, [primary]), _mariadb(parts, [*replicas, primary])]


def _mariadb(parts: SplitResult, hosts: list[dict[str, Any]]) -> MariaDBPool:
    user, colon, password = parts.netloc.rpartition("@")[0].partition(":")
    given: dict[str, Any] = {"charset": "utf8mb4", "connect_timeout": CONNECT_TIMEOUT}
    given |= {name: _number(value) for name, value in _others(parts.query).items()}
    given |= {"user": unquote(user)} if user else {}
    given |= {"password": unquote(password)} if colon else {}
    try:
        pymysql().connect(**given, defer_connect=True)
    except (TypeError, ValueError, OSError) as error:
        said = reason(error).rpartition("() ")[2]
        raise ConfigurationError(f"The address cannot be used: {said}.") from error
    name = unquote(parts.path.lstrip("/"))
    return MariaDBPool(name, hosts=hosts, **given, **_pool(parts.query, several=len(hosts) > 1))


# Parts.


def _parts(scheme: str, address: str) -> SplitResult:
    with suppress(ValueError):
        parts = urlsplit(f"{scheme}:{address}")
        named = parts.netloc and parts.path.strip("/")
        is_whole = address.startswith("//") and (scheme != "mariadb" or named)
        if is_whole and not _is_torn(parts):
            return parts
    # The address is not shown, because it may contain a password.
    raise ConfigurationError(
        f"The address must be as {scheme}://user:password@host/name; a port is a number, and what "
        "is neither letter nor digit in the password is percent-encoded, as %2F for a slash."
    )


def _is_torn(parts: SplitResult) -> bool:
    """Whether a password with unencoded characters has been split wrongly.

    :raises ValueError: if a port is not a number.
    """
    ports = [urlsplit(f"//{host}").port for host in _hosts(parts).split(",")]
    account = parts.netloc.rpartition("@")[0]
    return 0 in ports or "@" in parts.path + parts.fragment or bool(_UNENCODED.search(account))


def _driver(module: str, extra: str) -> None:
    try:
        import_module(module)
    except ImportError as error:
        raise ConfigurationError(
            f'{module} is not installed; install it with: pip install "flask_contentapi[{extra}]".'
        ) from error


def _hosts(parts: SplitResult) -> str:
    return parts.netloc.rpartition("@")[2]


def _host(text: str) -> dict[str, Any]:
    """The connection options for a host with or without a port; IPv6 has square brackets."""
    parts = urlsplit(f"//{text}")
    port = {"port": parts.port} if parts.port else {}
    return {"host": unquote(parts.hostname or "localhost"), **port}


def _pool(query: str, several: bool = False) -> dict[str, Any]:
    """The options of the connection pool in the query string of an address."""
    given: dict[str, Any] = {"max_connections": MAX_CONNECTIONS, "timeout": WAIT}
    if several:
        given["stale_timeout"] = RETURN
    for name, value in parse_qsl(query):
        if name in _POOL_OPTIONS:
            try:
                given[name] = _POOL_OPTIONS[name](value)
            except ValueError:
                raise ConfigurationError(f"{name} is {value!r}; it must be a number.") from None
    return given


def _others(query: str) -> dict[str, str]:
    return {name: value for name, value in parse_qsl(query) if name not in _POOL_OPTIONS}


def _number(text: str) -> str | int:
    return int(text) if text.isdecimal() else text

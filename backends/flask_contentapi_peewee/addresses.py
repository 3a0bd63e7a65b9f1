"""Makes connection pools for the database addresses in settings."""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urlencode, urlsplit

from flask_contentapi.errors import ConfigurationError
from flask_contentapi_peewee.connections import (
    MariaDBPool,
    PostgreSQLPool,
    SQLitePool,
    pymysql,
    reason,
)

#: How many connections a process opens at most, and how long a request waits for one, in s.
MAX_CONNECTIONS = 20
WAIT = 10
#: How long connecting to a host may take, in s.
CONNECT_TIMEOUT = 5
#: After how long connections to replicas are replaced, in s, because hosts come back.
RETURN = 60

#: Characters in a user name or password that should be percent-encoded but are not.
_UNENCODED = re.compile(r"@|%(?![0-9A-Fa-f]{2})")
#: Characters that would end an address, or get lost.
_LOST = re.compile(r"[\x00-\x1f#]|^ | $")


def _number(text: str) -> float:
    if not 0 <= (number := float(text)) < float("inf"):
        raise ValueError(text)
    return number


def _count(text: str) -> int:
    if (number := int(text)) < 1:
        raise ValueError(text)
    return number


def _threshold(text: str) -> int | None:
    return None if text == "none" else _count(text)


def _truth(text: str) -> bool:
    return {"true": True, "1": True, "false": False, "0": False}[text]


def _file(text: str) -> str:
    # The driver reads none if it is not there.
    if not os.path.isfile(os.path.expanduser(text)):
        raise ValueError(text)
    return text


def _charset(text: str) -> str:
    return {"utf8mb4": text}[text]


Read = Callable[[str], Any]
#: The functions that read the values of options, and what they read.
_WANTED: dict[Read, str] = {
    _number: "a number from 0 on",
    _count: "an integer from 1 on",
    _threshold: "an integer from 1 on, or none",
    _truth: "true or false",
    _file: "the path of a file",
    _charset: "utf8mb4, as others lack characters",
}
_FILE_OPTIONS = {"max_connections": _count, "timeout": _number, "stale_timeout": _number}
_POOL_OPTIONS = {**_FILE_OPTIONS, "recheck": _number}
_MARIADB_OPTIONS: dict[str, Read] = {
    **dict.fromkeys(("connect_timeout", "read_timeout", "write_timeout"), _number),
    "max_allowed_packet": _count,
    **dict.fromkeys(("ssl_disabled", "ssl_verify_cert", "ssl_verify_identity"), _truth),
    **dict.fromkeys(("ssl_ca", "ssl_cert", "ssl_key", "read_default_file"), _file),
    **dict.fromkeys(("user", "unix_socket", "bind_address", "program_name"), str),
    # The driver would write a text in Latin-1.
    "password": str.encode,
    "charset": _charset,
    **dict.fromkeys(("collation", "sql_mode", "init_command"), str),
    **dict.fromkeys(("ssl_key_password", "read_default_group", "server_public_key"), str),
}


def sqlite(address: str, root: Path) -> SQLitePool:
    """Connections to the file that an address names.

    :param address: as ``///site.db``.
    :param root: the folder that relative paths start from.
    :raises ConfigurationError: if the address cannot be used; the other functions do the same.
    """
    text, *query = address.split("?", 1)
    name = unquote(text.removeprefix("///"))
    has_slashes = text.startswith("///") or not text.startswith("/")
    is_file = not (name == ":memory:" or name.startswith("//") or re.search(r"\x00|^$|/$", name))
    if not (is_file and has_slashes):
        raise ConfigurationError(
            f"sqlite:{address} names no file; use sqlite:///site.db, with a fourth slash for "
            "an absolute path."
        )
    hint = " A question mark in the name of a file is written %3F."
    options = _pool(_options(query, _FILE_OPTIONS, hint=hint))
    pool = SQLitePool(
        (root / name).absolute().as_uri(),
        uri=True,
        check_same_thread=False,
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
    parts, hosts, query = _parts("postgresql", address)
    _driver("psycopg", "postgresql")
    conninfo = f"postgresql://{parts.netloc}{parts.path}"
    writing, reading = {}, {}
    if len(hosts) > 1:
        writing = {"target_session_attrs": "read-write"}
        reading = {"target_session_attrs": "prefer-standby", "load_balance_hosts": "random"}
    defaults = import_module("psycopg.pq").Conninfo.get_defaults()
    of_driver: dict[str, Read] = {option.keyword.decode(): str for option in defaults}
    settled = {*_conninfo_options(conninfo), *reading}
    known = {**_POOL_OPTIONS, "prepare_threshold": _threshold, **of_driver}
    options = _options(query, known, settled)
    pool = _pool(options, several=bool(reading))
    # An option of the driver, and none of the server's library.
    pool |= {name: options.pop(name) for name in options.keys() & {"prepare_threshold"}}
    given = {"connect_timeout": str(CONNECT_TIMEOUT), **options}
    found = []
    for more in [writing, reading] if reading else [{}]:
        full = f"{conninfo}?{urlencode({**given, **more}, quote_via=quote)}"
        _conninfo_options(full)
        found.append(PostgreSQLPool(full, prefer_psycopg3=True, **pool))
    return found


def _conninfo_options(conninfo: str) -> Mapping[str, Any]:
    try:
        options: Mapping[str, Any] = import_module("psycopg.conninfo").conninfo_to_dict(conninfo)
    except import_module("psycopg").Error as error:
        raise ConfigurationError(f"The address cannot be used: {reason(error)}.") from error
    return options


def mariadb(address: str) -> list[MariaDBPool]:
    """Connections to MariaDB: for writing and, with several hosts, separate ones for reading.

    :param address: as ``//user:password@host/name``; several hosts are separated by commas, and
        the first is used for writing.
    """
    parts, hosts, query = _parts("mariadb", address)
    _driver("pymysql", "mariadb")
    user, colon, password = parts.netloc.rpartition("@")[0].partition(":")
    account: dict[str, Any] = {"user": unquote(user)} if user else {}
    account |= {"password": unquote(password).encode()} if colon else {}
    options = _options(query, {**_POOL_OPTIONS, **_MARIADB_OPTIONS}, account)
    pool = _pool(options, several=len(hosts) > 1)
    given = {"charset": "utf8mb4", "connect_timeout": CONNECT_TIMEOUT, **account, **options}
    try:
        pymysql().connect(**given, defer_connect=True)
    except (TypeError, ValueError, OSError) as error:
        raise ConfigurationError(f"The address cannot be used: {reason(error)}.") from error
    except configparser.Error:
        # It quotes the file, which may have passwords.
        file = given["read_default_file"]
        raise ConfigurationError(f"read_default_file is {file!r}, which has no options.") from None
    primary, *replicas = [
        {"host": _host(h.hostname or "localhost"), **({"port": h.port} if h.port else {})}
        for h in hosts
    ]
    name = unquote(parts.path[1:])
    each = [[primary], *([[*replicas, primary]] if replicas else [])]
    return [MariaDBPool(name, hosts=some, **given, **pool) for some in each]


# Parts.


def _host(text: str) -> str:
    name = unquote(text)
    try:
        # As the driver does when it connects.
        name.encode("idna")
    except UnicodeError:
        raise ConfigurationError(f"{name!r} cannot be the name of a host.") from None
    return name


def _parts(scheme: str, address: str) -> tuple[SplitResult, Sequence[SplitResult], Sequence[str]]:
    """The address itself, its hosts, and what follows the question mark, if there is one."""
    text, *query = address.split("?", 1)
    with suppress(ValueError):
        # Drivers read what is percent-encoded as UTF-8.
        unquote(address, errors="strict")
        parts = urlsplit(f"{scheme}:{text}")
        account, _, names = parts.netloc.rpartition("@")
        hosts = [urlsplit(f"//{name}") for name in names.split(",")]
        named = parts.netloc and parts.path.strip("/")
        is_whole = text.startswith("//") and (scheme != "mariadb" or named)
        is_torn = "@" in "".join([parts.path, *query]) or 0 in [host.port for host in hosts]
        if is_whole and not (is_torn or _LOST.search(address) or _UNENCODED.search(account)):
            return parts, hosts, query
    # The address is not shown, because it may contain a password.
    raise ConfigurationError(
        f"The address must be as {scheme}://user:password@host/name; a port is a number, and what "
        "is neither letter nor digit in the password is percent-encoded, as %2F for a slash."
    )


def _driver(module: str, extra: str) -> None:
    try:
        import_module(module)
    except ImportError as error:
        raise ConfigurationError(
            f'{module} is not installed; install it with: pip install "flask_contentapi[{extra}]".'
        ) from error


# Options.


def _options(
    query: Sequence[str], known: Mapping[str, Read], settled: Collection[str] = (), hint: str = ""
) -> dict[str, Any]:
    """The options of an address, by name.

    :param known: the functions that read the values of those that there are.
    :param settled: those that what stands before the question mark determines.
    :param hint: what else may be wrong, after a space.
    """
    options: dict[str, Any] = {}
    known = {name: read for name, read in known.items() if name not in settled}
    for part in query[0].split("&") if query else []:
        name, _, value = map(unquote, part.partition("="))
        if name in settled:
            raise ConfigurationError(f"{name} is no option here: the rest of the address tells it.")
        if name not in known:
            raise ConfigurationError(f"{name!r} is no option; there are {', '.join(known)}.{hint}")
        if not value:
            raise ConfigurationError(f"{name} has no value; write {name}=..., or leave it out.")
        if name in options:
            raise ConfigurationError(f"{name} is given twice.")
        try:
            options[name] = known[name](value)
        except (ValueError, KeyError):
            wanted = _WANTED[known[name]]
            raise ConfigurationError(f"{name} is {value!r}; it must be {wanted}.") from None
    return options


def _pool(options: dict[str, Any], several: bool = False) -> dict[str, Any]:
    """Takes those for the pool out of all options."""
    given: dict[str, Any] = {"max_connections": MAX_CONNECTIONS, "timeout": WAIT}
    if several:
        given["stale_timeout"] = RETURN
    return given | {n: options.pop(n) for n in options.keys() & _POOL_OPTIONS.keys()}

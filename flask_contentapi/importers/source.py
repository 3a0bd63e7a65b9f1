"""Asks a foreign API: politely, within bounds, and each question only once."""

from __future__ import annotations

import asyncio
import hashlib
import socket
import sqlite3
import time
import zlib
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.parse import urlencode

import httpx
import orjson
from werkzeug.http import parse_date

from flask_contentapi.errors import ContentAPIError
from flask_contentapi.kinds import read_json

#: The most bytes of an answer and of a file, unpacked.
MOST_BYTES, MOST_FILE_BYTES = 64 << 20, 2 << 30
#: How often a question is asked, and the seconds before the second time, which double each time.
TRIES, BACKOFF = 4, 1.0
#: The longest time that a source can ask to be left alone, in seconds.
LONGEST_WAIT = 120
#: The longest time between two parts of an answer, in seconds.
SILENCE = 20.0
#: How long the answers of a pull that was stopped are good for another one, in seconds.
RESUMABLE = 3600
_BUSY = (429, 500, 502, 503, 504)
#: The answers that mean something; others are errors of the source.
_MEANT = (200, 304, 400, 404)
_LOGIN = (401, 403)
#: The addresses that networks translate into those of version 4.
_TRANSLATED = IPv6Network("64:ff9b::/96")


class SourceError(ContentAPIError):
    """The source does not answer as it must; the message says how."""


class Answer(NamedTuple):
    """An answer of a source.

    :param status: 200, 400 or 404.
    :param data: its JSON; None if it is an error.
    """

    status: int
    data: Any


class _Again(Exception):
    """The question may be asked again.

    :param why: what was wrong.
    :param wait: the seconds that the source asks to wait; None if it does not say.
    """

    def __init__(self, why: str, wait: float | None = None) -> None:
        super().__init__(why)
        self.wait = wait


class Cache:
    """The answers so far, in an SQLite file, so that a pull that was stopped can go on.

    Answers of a pull that was finished are used again if the source says that they still hold.

    :param file: the file, which may not exist yet.
    :raises sqlite3.Error: if another pull uses it, or it cannot be written; so does all else.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._database = sqlite3.connect(file, timeout=0, isolation_level=None)
        try:
            self._database.executescript(
                # A lost answer is asked for again, so that nothing has to reach the disk.
                "PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = OFF;"
                # Those of earlier pulls were asked at 0.
                "CREATE TABLE IF NOT EXISTS answer"
                " (question TEXT PRIMARY KEY, etag TEXT, body BLOB, asked REAL);"
            )
        except sqlite3.Error:
            self._database.close()
            if file.is_file() and not file.stat().st_size:
                file.unlink()
            raise
        now = time.time()
        old = "UPDATE answer SET asked = 0 WHERE asked NOT BETWEEN ? AND ?"
        self._database.execute(old, [now - RESUMABLE, now])

    def find(self, question: str) -> tuple[str | None, bytes, bool]:
        """The validator and the body of an answer, and whether it is of this pull."""
        found = self._database.execute(
            "SELECT etag, body, asked FROM answer WHERE question = ?", [question]
        ).fetchone()
        if found is None:
            return None, b"", False
        return found[0], zlib.decompress(found[1]), found[2] > 0

    def keep(self, question: str, etag: str | None, body: bytes) -> None:
        """Keeps an answer."""
        values = [question, etag, zlib.compress(body, 1), time.time()]
        self._database.execute("INSERT OR REPLACE INTO answer VALUES (?, ?, ?, ?)", values)

    def finish(self) -> None:
        """Keeps only what another pull can ask the source about."""
        self._database.execute("DELETE FROM answer WHERE etag IS NULL OR asked = 0")
        self.begin_anew()

    def begin_anew(self) -> None:
        """Makes the answers so far those of an earlier pull."""
        self._database.execute("UPDATE answer SET asked = 0")

    def close(self) -> None:
        """Closes the file, and removes it if it has nothing for another pull."""
        is_empty = not self._database.execute("SELECT count(*) FROM answer").fetchone()[0]
        self._database.close()
        if is_empty:
            self._file.unlink(missing_ok=True)


class Source:
    """A foreign API.

    Only its own host is asked, and those that files are at; redirects are not followed. Unless the
    source itself is on a private network, no address in one is asked.

    :param url: its address, as ``https://cms.example/api/v2/``.
    :param cache: keeps the answers.
    :param headers: sent with every question to the source itself.
    :param connections: how many questions are asked at a time.
    :param pause: the seconds between two questions.
    :param timeout: the seconds that an answer may take.
    :raises SourceError: if the address cannot be asked.
    """

    def __init__(
        self,
        url: str,
        cache: Cache,
        *,
        headers: Sequence[tuple[str, str]] = (),
        connections: int = 1,
        pause: float = 0.0,
        timeout: float = 60.0,
    ) -> None:
        self.base = _checked(url)
        self._cache = cache
        self._headers = headers
        self._key = hashlib.sha256(repr(sorted(headers)).encode()).hexdigest()[:16]
        self._connections, self._pause, self._timeout = connections, pause, timeout
        self._runner = asyncio.Runner()
        #: By scheme and host: connections are to network addresses, which several hosts can have,
        #: but what one of them has proved to be, the others have not.
        self._clients: dict[tuple[str, bytes], httpx.AsyncClient] = {}
        self._hosts: dict[str, Sequence[str]] = {}
        #: How many questions have been sent.
        self.asked = 0
        self._is_private = False
        self._is_private = not all(map(_is_public, self._resolve(self.base)))

    def close(self) -> None:
        """Closes the connections."""
        for client in self._clients.values():
            self._runner.run(client.aclose())
        self._runner.close()

    def address(self, path: str, parameters: Mapping[str, Any]) -> str:
        """The address of a question."""
        query = urlencode(parameters, safe=",*()")
        return f"{self.base}{path}{'?' if query else ''}{query}"

    def ask(self, path: str, **parameters: Any) -> Answer:
        """The answer to a question.

        :param path: the path below the address of the source.
        :raises SourceError: if there is none within the bounds.
        """
        return next(self.ask_all([(path, parameters)]))

    def ask_all(self, questions: Iterable[tuple[str, Mapping[str, Any]]]) -> Iterator[Answer]:
        """The answers to questions, in order, some of them asked at a time."""
        waiting = (self.address(path, parameters) for path, parameters in questions)
        while batch := [*islice(waiting, self._connections)]:
            yield from self._runner.run(self._together(batch))

    async def _together(self, urls: Sequence[str]) -> list[Answer]:
        return await asyncio.gather(*map(self._answer, urls))

    async def _answer(self, url: str) -> Answer:
        question = f"{self._key} {url}"
        etag, kept, is_recent = self._cache.find(question)
        if is_recent:
            return Answer(200, _json(kept, url, ""))
        response, body = await self._patiently(url, self._asking(etag))
        _check(response, url, _MEANT)
        if response.status_code == 304:
            body = kept
        elif response.status_code != 200:
            return Answer(response.status_code, None)
        data = _json(body, url, response.headers.get("Content-Type", ""))
        self._cache.keep(question, response.headers.get("ETag", etag), body)
        return Answer(200, data)

    def ask_plainly(self, path: str, **parameters: Any) -> tuple[int, str, bytes]:
        """The status, the address that it redirects to, and the body of any answer."""
        url = self.address(path, parameters)
        response, body = self._runner.run(self._patiently(url, self._asking()))
        return response.status_code, response.headers.get("Location", ""), body

    def _asking(self, etag: str | None = None) -> dict[str, str]:
        known = {"If-None-Match": etag} if etag else {}
        return {**dict(self._headers), "Accept": "application/json", **known}

    def same_host(self, url: str) -> bool:
        """Whether an address is on the host of the source."""
        own, other = httpx.URL(self.base), httpx.URL(url)
        return (own.scheme, own.netloc) == (other.scheme, other.netloc)

    def download(self, url: str, stream: IO[bytes]) -> None:
        """Writes a file into a stream.

        :param url: its address, which may be on another host.
        :raises SourceError: if it cannot be had.
        """
        wanted = _read(url)
        allowed = ("https",) if self.base.startswith("https:") else ("https", "http")
        if wanted.scheme not in allowed or not wanted.host:
            raise SourceError(f"{url} is not asked: it is no {' or '.join(allowed)} address.")
        headers = dict(self._headers) if self.same_host(url) else {}
        response, _ = self._runner.run(self._patiently(url, headers, stream))
        _check(response, url, (200,))

    # One question.

    async def _patiently(
        self, url: str, headers: Mapping[str, str], stream: IO[bytes] | None = None
    ) -> tuple[httpx.Response, bytes]:
        """A response with its body; asks again if that may help."""
        for number in range(TRIES):
            try:
                return await self._once(url, headers, stream, number)
            except _Again as error:
                why = error
            except httpx.TransportError as error:
                why = _Again(_reason(error))
            wait = BACKOFF * 2**number if why.wait is None else why.wait
            if wait > LONGEST_WAIT:
                raise SourceError(
                    f"{url} {why}, and asks to wait for {wait:.0f} s; pull again after that."
                )
            if number < TRIES - 1:
                await asyncio.sleep(wait)
        raise SourceError(f"{url} {why}, {TRIES} times.") from why

    async def _once(
        self, url: str, headers: Mapping[str, str], stream: IO[bytes] | None, number: int
    ) -> tuple[httpx.Response, bytes]:
        await asyncio.sleep(self._pause)
        self.asked += 1
        wanted = httpx.URL(url)
        addresses = self._resolve(url)
        client = self._client(wanted)
        request = client.build_request(
            "GET",
            wanted.copy_with(host=addresses[number % len(addresses)]),
            headers={**headers, "Host": wanted.netloc.decode()},
            extensions={"sni_hostname": wanted.host},
        )
        seconds = self._timeout * (1 if stream is None else 10)
        try:
            async with asyncio.timeout(seconds):
                response = await client.send(request, stream=True)
                try:
                    if response.status_code in _BUSY:
                        wait = _seconds(response.headers.get("Retry-After", ""))
                        raise _Again(f"answers {response.status_code}", wait)
                    return response, await _body(response, url, stream)
                finally:
                    await response.aclose()
        except TimeoutError:
            raise SourceError(f"{url} is not answered within {seconds:g} s.") from None

    def _client(self, url: httpx.URL) -> httpx.AsyncClient:
        key = url.scheme, url.netloc
        if key not in self._clients:
            self._clients[key] = httpx.AsyncClient(
                timeout=min(self._timeout, SILENCE),
                headers={
                    "User-Agent": f"flask_contentapi/{version('flask_contentapi')} (pull)",
                    "Accept-Encoding": "gzip",
                },
                # The address that is asked is the one that was checked, which no proxy would know.
                trust_env=False,
            )
        return self._clients[key]

    def _resolve(self, url: str) -> Sequence[str]:
        """The network addresses of the host, always the same ones, so that the address that is
        asked is the one that was checked."""
        host = httpx.URL(url).host
        if host not in self._hosts:
            try:
                found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            except (OSError, UnicodeError) as error:
                raise SourceError(f"There is no host {host!r}: {error}.") from None
            self._hosts[host] = [*dict.fromkeys(str(entry[4][0]) for entry in found)]
        addresses = self._hosts[host]
        own = httpx.URL(self.base).host
        if host != own and not self._is_private and not all(map(_is_public, addresses)):
            raise SourceError(f"{url} is not asked: {host} is on a private network.")
        return addresses


def _check(response: httpx.Response, url: str, meant: Container[int]) -> None:
    """Refuses a response that means nothing."""
    status = response.status_code
    if status in _LOGIN:
        raise SourceError(
            f"{url} answers {status}: it asks for a login. Give what it wants to see as "
            '--header "Authorization: ..."'
        )
    if 300 <= status < 400 and status not in meant:
        place = response.headers.get("Location", "nowhere")
        raise SourceError(
            f"{url} redirects to {place!r}, which is not followed; if that is the API, pull from "
            "there."
        )
    if status not in meant:
        raise SourceError(f"{url} answers {status}.")


async def _body(response: httpx.Response, url: str, stream: IO[bytes] | None) -> bytes:
    """The body of a response; "" if it goes into the stream."""
    most = MOST_BYTES if stream is None else MOST_FILE_BYTES
    coding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if coding not in ("identity", "gzip", ""):
        # What is packed twice is unpacked at once, whatever its size.
        raise SourceError(f"{url} is packed as {coding!r}; only gzip was asked for.")
    parts, size = [], 0
    too_much = SourceError(f"{url} sends more than {most >> 20} MiB.")
    if int(response.headers.get("Content-Length", 0)) > most:
        raise too_much
    if stream is not None:
        stream.seek(0)
        stream.truncate()
    async for part in response.aiter_bytes():
        size += len(part)
        if size > most:
            raise too_much
        if stream is None:
            parts.append(part)
        else:
            stream.write(part)
    return b"".join(parts)


def _read(url: str) -> httpx.URL:
    try:
        return httpx.URL(url)
    except httpx.InvalidURL as error:
        raise SourceError(f"{url!r} is no address: {error}.") from None


def _checked(url: str) -> str:
    parsed = _read(url)
    if parsed.scheme not in ("http", "https") or not parsed.host or parsed.query or parsed.userinfo:
        raise SourceError(
            f"{url!r} is no address of an API; it is to be as https://cms.example/api/v2/"
        )
    return f"{str(parsed).rstrip('/')}/"


def _is_public(address: str) -> bool:
    """Whether a network address is none of a private, a local or another special range."""
    ip = ip_address(address.partition("%")[0])
    if isinstance(ip, IPv6Address):
        translated = IPv4Address(int(ip) & 0xFFFFFFFF) if ip in _TRANSLATED else None
        ip = ip.ipv4_mapped or ip.sixtofour or translated or ip
    return ip.is_global and not ip.is_multicast


def _reason(error: httpx.TransportError) -> str:
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return f"cannot be reached ({str(error) or 'no answer'})"
    if isinstance(error, httpx.TimeoutException):
        return f"says nothing for {SILENCE:g} s"
    return f"breaks off its answer ({error})"


def _json(body: bytes, url: str, content_type: str) -> Any:
    try:
        return read_json(orjson.loads(body))
    except ValueError as error:
        # The message of the parser tells positions, which help nobody with a page of HTML.
        what = f"{content_type.partition(';')[0]}, no JSON" if content_type else "no JSON"
        if isinstance(error, orjson.JSONDecodeError) and "json" not in content_type:
            raise SourceError(f"{url} answers with {what}; is it the address of an API?") from None
        raise SourceError(f"{url} answers with what cannot be read: {error}.") from None


def _seconds(text: str) -> float | None:
    if text.isdecimal():
        return float(text[:9])
    date = parse_date(text)
    return None if date is None else max((date - datetime.now(UTC)).total_seconds(), 0)

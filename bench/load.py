"""Asks a server as fast as it answers: by wrk where it is installed, and if not, from here."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from math import ceil
from pathlib import Path
from socket import create_connection
from typing import NamedTuple

from bench.content import HOST

__all__ = ["GENERATOR", "Request", "drive", "drive_from_here", "drive_with_wrk"]

#: How many requests are under way at a time.
CONNECTIONS = 4
#: Statuses of answers that are what was asked for.
GOOD = re.compile(rb"HTTP/1\.[01] (200|302|304) ")
SCRIPT = Path(__file__).with_name("wrk.lua")


class Request(NamedTuple):
    """A request.

    :param path: the address, without the host.
    :param tag: what ``If-None-Match`` says, or "".
    """

    path: str
    tag: str = ""


class WrongAnswer(Exception):
    """A server did not answer, or with an error."""


def drive_with_wrk(port: int, requests: Sequence[Request], seconds: float) -> float:
    """Asks again and again.

    :param port: where the server is.
    :param requests: what it is asked, in turn.
    :param seconds: how long.
    :returns: how many answers there were in a second.
    :raises WrongAnswer: if one was an error.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".requests") as file:
        file.writelines(f"{request.path}\t{request.tag}\n" for request in requests)
        file.flush()
        command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{ceil(seconds) + 1}s"]
        command += ["-H", f"Host: {HOST}", "-s", str(SCRIPT)]
        command += [f"http://127.0.0.1:{port}", "--", file.name]
        said = _interrupted(command, seconds)
    answered, microseconds, errors = map(int, said.splitlines()[-1].split())
    if errors:
        raise WrongAnswer(f"{errors} errors to {requests[0].path}")
    return answered / (microseconds / 1e6)


def _interrupted(command: Sequence[str], seconds: float) -> str:
    """What a program says that runs so long, and counts whole seconds itself."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            said, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            said, _ = process.communicate()
    return said


def drive_from_here(port: int, requests: Sequence[Request], seconds: float) -> float:
    """The same as :func:`drive_with_wrk` without it."""
    messages = [_message(request) for request in requests]
    begin = time.perf_counter()

    def ask(first: int) -> int:
        answered = 0
        while time.perf_counter() < begin + seconds:
            _ask(port, messages[(first + answered) % len(messages)])
            answered += 1
        return answered

    with ThreadPoolExecutor(CONNECTIONS) as threads:
        answered = sum(threads.map(ask, range(CONNECTIONS)))
    return answered / (time.perf_counter() - begin)


def _message(request: Request) -> bytes:
    tag = f"If-None-Match: {request.tag}\r\n" if request.tag else ""
    return f"GET {request.path} HTTP/1.1\r\nHost: {HOST}\r\n{tag}Connection: close\r\n\r\n".encode()


def _ask(port: int, message: bytes) -> None:
    """Sends a request and reads its answer to the end."""
    with create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(message)
        parts = list(iter(lambda: connection.recv(1 << 18), b""))
    if not parts or not GOOD.match(parts[0]):
        raise WrongAnswer(repr(b"".join(parts)[:200]))


#: What asks.
GENERATOR = "wrk" if shutil.which("wrk") else "bench/load.py"
drive = drive_with_wrk if GENERATOR == "wrk" else drive_from_here

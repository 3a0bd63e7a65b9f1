"""Sends requests as fast as a server answers: with wrk if installed, otherwise from Python."""

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

#: The number of simultaneous requests.
CONNECTIONS = 4
#: The start of successful answers.
GOOD = re.compile(rb"HTTP/1\.[01] (200|302|304) ")
SCRIPT = Path(__file__).with_name("wrk.lua")


class Request(NamedTuple):
    """A request.

    :param path: the address, without the host.
    :param tag: the value of ``If-None-Match``, or "".
    """

    path: str
    tag: str = ""


class WrongAnswer(Exception):
    """A server did not answer, or answered with an error."""


def drive_with_wrk(port: int, requests: Sequence[Request], seconds: float) -> float:
    """Sends requests repeatedly.

    :param port: the port of the server.
    :param requests: the requests, which are sent in turn.
    :param seconds: for how long.
    :returns: the number of answers per second.
    :raises WrongAnswer: if an answer was an error.
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
    """The output of a program stopped after some seconds; its own timer has whole seconds only."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            said, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            said, _ = process.communicate()
    return said


def drive_from_here(port: int, requests: Sequence[Request], seconds: float) -> float:
    """Does the same as :func:`drive_with_wrk`, without wrk."""
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
    """Sends a request and reads the whole answer."""
    with create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(message)
        parts = list(iter(lambda: connection.recv(1 << 18), b""))
    if not parts or not GOOD.match(parts[0]):
        raise WrongAnswer(repr(b"".join(parts)[:200]))


#: The program that sends the requests.
GENERATOR = "wrk" if shutil.which("wrk") else "bench/load.py"
drive = drive_with_wrk if GENERATOR == "wrk" else drive_from_here

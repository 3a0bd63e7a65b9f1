"""Starts the demo: ``python3 demo``, or with another backend ``python3 demo BACKEND``.

By default the content is in an SQLite file in ``demo/instance``. If there is no content yet, it is
loaded from the JSON files in ``demo/content``. The port is 5000, or the first free one after it;
``FLASK_RUN_PORT`` sets another one to start from, and ``FLASK_RUN_HOST`` another host.

``python3 demo --edit`` adds the editor, on this machine only. ``FLASK_EDITOR_PASSWORD`` sets its
password; without it a new one is made.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import runpy
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from secrets import token_hex
from typing import Any

HERE = Path(__file__).resolve().parent
#: The environment variable for the backend.
_BACKEND = "FLASK_CMSAPI_BACKEND"
#: That for the editor's password.
_PASSWORD = "FLASK_EDITOR_PASSWORD"  # noqa: S105 - only its name


def main() -> int:
    """Makes what is missing, prints the demo's address, and serves it until it is stopped."""
    arguments = _arguments()
    backend = arguments.backend
    host, port = _host_and_port()
    if arguments.edit and not host.startswith("127."):
        raise SystemExit("The editor is for this machine alone; start it without FLASK_RUN_HOST.")
    place = backend or os.environ.get(_BACKEND, "an SQLite file")
    if arguments.edit and place.startswith(("jsonfiles:", "memory")):
        raise SystemExit(
            f"The editor needs a database, and {place} is none. Type python3 demo --edit: it edits "
            "a copy of the content in an SQLite file."
        )
    environment = runpy.run_path(str(HERE / "environment.py"))["environment"]
    (HERE / "instance").mkdir(exist_ok=True)
    command = [str(environment("demo")), "-m", "flask", "--app", "demo"]
    named = {_BACKEND: backend} if backend else {}
    given: dict[str, Any] = {"cwd": HERE.parent, "env": {**os.environ, **named}}
    if arguments.edit:
        password = os.environ.get(_PASSWORD) or token_hex(8)
        # In double quotes nothing is read as a number.
        given["env"] |= {_PASSWORD: json.dumps(password)}
        given["env"].setdefault("FLASK_SECRET_KEY", json.dumps(token_hex(16)))
    else:
        given["env"].pop(_PASSWORD, None)

    def contentapi(*arguments: str) -> bytes:
        done = subprocess.run(
            [*command, "contentapi", *arguments], **given, capture_output=True, check=False
        )
        if done.returncode:
            typed = " ".join([*(f"{name}={value}" for name, value in named.items()), *command])
            message = done.stderr.decode()
            raise SystemExit(message.replace("flask contentapi", f"{typed} contentapi"))
        return bytes(done.stdout)

    contentapi("init-db")
    if contentapi("dump", "-").strip() == b"{}":
        contentapi("load", "jsonfiles:content")
    scheme = "https" if os.environ.get("FLASK_RUN_CERT") else "http"
    where = f"{scheme}://{host}:{port}"
    said = f"""
The demo is at {where}/ and its API at {where}/api/v2/pages/
Look around in it at {where}/api/v2/explorer/
Its content is in {place}. Control-C ends it.
"""
    if arguments.edit:
        said = f"{said.rstrip()}\nEdit it at {where}/admin/ with the password {password}\n"
    return _serve([*command, "run", "--port", str(port)], given, host, port, said)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        usage="[FLASK_RUN_PORT=5000] python3 demo [--edit] [BACKEND]",
        description="Starts the demo. The first time it makes a virtual environment in .venv.",
        epilog="FLASK_RUN_PORT is the port to begin with; the first free one from there is taken.",
    )
    parser.add_argument(
        "backend",
        metavar="BACKEND",
        nargs="?",
        help="where the content is: jsonfiles:content, or the address of a database; "
        "usually an SQLite file in demo/instance",
    )
    parser.add_argument(
        "--edit",
        action="store_true",
        help="with an editor at /admin/, for content in a database",
    )
    return parser.parse_args()


def _serve(command: list[str], given: dict[str, Any], host: str, port: int, said: str) -> int:
    """Runs the server until it ends or this process is stopped.

    :param said: what is printed as soon as it listens.
    """
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    with subprocess.Popen(command, **given) as server:
        try:
            while server.poll() is None and _is_free(host, port):
                time.sleep(0.05)
            if server.poll() is None:
                print(said, flush=True)
            return server.wait()
        finally:
            server.terminate()


def _host_and_port() -> tuple[str, int]:
    """The host to serve at and its first free port; wrong variables end the process."""
    debug = os.environ.get("FLASK_DEBUG", "")
    if debug not in ("", "0", "1", "true", "false"):
        raise SystemExit(f"FLASK_DEBUG is {debug!r}; it must be true or false.")
    given = os.environ.get("FLASK_RUN_PORT", "5000")
    if not re.fullmatch("[0-9]{1,5}", given) or not 0 < int(given) < 65536:
        raise SystemExit(f"FLASK_RUN_PORT is {given!r}; it must be a number from 1 to 65535.")
    host = os.environ.get("FLASK_RUN_HOST", "127.0.0.1")
    try:
        # An empty one would be every address.
        with socket.create_server((host or ".", 0)):
            pass
    except (OSError, UnicodeError):
        raise SystemExit(
            f"FLASK_RUN_HOST is {host!r}; it must be an IPv4 address of this machine, as 127.0.0.1."
        ) from None
    free = (port for port in range(int(given), 65536) if _is_free(host, port))
    port = next(free, None)
    if port is None:
        raise SystemExit(f"No port from FLASK_RUN_PORT, {given}, on is free; set a lower one.")
    return host, port


def _is_free(host: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) != 0


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except KeyboardInterrupt:
        print()

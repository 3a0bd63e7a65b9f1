"""Starts the demo: ``python3 demo``, or with another backend ``python3 demo BACKEND``.

Without one the content is kept in an SQLite file in ``demo/instance``. Where there is no content
yet, it is loaded from the JSON files in ``demo/content``. The port is 5000, or the first free one
after it; ``FLASK_RUN_PORT`` names another one to begin with.
"""

from __future__ import annotations

import os
import runpy
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def main() -> int:
    """Makes what is missing, says where the demo is, and serves it until it is stopped."""
    environment = runpy.run_path(str(HERE / "environment.py"))["environment"]
    (HERE / "instance").mkdir(exist_ok=True)
    backend = sys.argv[1] if len(sys.argv) > 1 else "sqlite:///instance/demo.db"
    command = [environment("demo"), "-m", "flask", "--app", "demo"]
    given: dict[str, Any] = {
        "cwd": HERE.parent,
        "env": {**os.environ, "FLASK_CMSAPI_BACKEND": backend},
    }

    def contentapi(*arguments: str) -> bytes:
        done = subprocess.run(
            [*command, "contentapi", *arguments], **given, capture_output=True, check=False
        )
        if done.returncode:
            raise SystemExit(done.stderr.decode())
        return bytes(done.stdout)

    contentapi("init-db")
    if contentapi("dump", "-").strip() == b"{}":
        contentapi("load", "jsonfiles:content")
    port = _free_port()
    print(f"\nThe demo is at http://127.0.0.1:{port}/ and its API at", end=" ")
    print(f"http://127.0.0.1:{port}/api/v2/pages/\nControl-C ends it.\n", flush=True)
    return subprocess.call([*command, "run", "--port", str(port)], **given)


def _free_port() -> int:
    port = int(os.environ.get("FLASK_RUN_PORT", 5000))
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
        port += 1


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except KeyboardInterrupt:
        print()

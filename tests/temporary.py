"""Temporary folders for tests, which are deleted when the process ends, however it ends."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

__all__ = ["new_folder"]

#: A folder in memory.
MEMORY = Path("/dev/shm")  # noqa: S108 - nothing in it is opened by a predictable name
#: The bytes that have to be free there, and in the machine's memory; a whole run takes 4 GB.
ROOM = 8 << 30

#: Waits until this process is gone, then deletes repeatedly, as servers may still write.
_WATCHER = """
import pathlib, shutil, sys, time
sys.stdin.read()
while pathlib.Path(sys.argv[1]).exists():
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    time.sleep(0.2)
"""

_watchers: list[subprocess.Popen[bytes]] = []


def new_folder(prefix: str = "") -> Path:
    """An empty folder."""
    return Path(tempfile.mkdtemp(prefix=prefix, dir=_workplace()))


@cache
def _workplace() -> Path:
    """The folder for all temporary folders of this process."""
    folder = Path(tempfile.mkdtemp(prefix="contentapi-", dir=_fastest_folder()))
    # Servers run as other users.
    folder.chmod(0o755)
    command = [sys.executable, "-c", _WATCHER, str(folder)]
    _watchers.append(subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True))
    return folder


def _fastest_folder() -> Path | None:
    """The folder in memory if it has enough room; None for the default one."""
    if MEMORY.is_dir() and min(shutil.disk_usage(MEMORY).free, _free_memory()) >= ROOM:
        return MEMORY
    return None


def _free_memory() -> int:
    """The available memory of the machine, in bytes."""
    known = re.search(r"^MemAvailable: +(\d+) kB$", Path("/proc/meminfo").read_text(), re.M)
    return int(known[1]) << 10 if known else 0

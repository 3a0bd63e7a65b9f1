"""Where tests put what they make: folders that go with the process, in whatever way it ends."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

__all__ = ["new_folder"]

#: A folder whose files are kept in memory.
MEMORY = Path("/dev/shm")  # noqa: S108 - nothing is opened there by a name that others know
#: What has to be free there, and of the machine's memory as well, in bytes: a whole run takes 4 GB.
ROOM = 8 << 30

#: It reads until this process is gone; servers that end meanwhile may still write.
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
    """The folder for all that this process makes."""
    folder = Path(tempfile.mkdtemp(prefix="contentapi-", dir=_fastest_folder()))
    # Servers run as somebody else.
    folder.chmod(0o755)
    command = [sys.executable, "-c", _WATCHER, str(folder)]
    _watchers.append(subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True))
    return folder


def _fastest_folder() -> Path | None:
    """The folder in memory, where there is one with room enough; None for the usual one."""
    if MEMORY.is_dir() and min(shutil.disk_usage(MEMORY).free, _free_memory()) >= ROOM:
        return MEMORY
    return None


def _free_memory() -> int:
    """What is left of the machine's memory, in bytes."""
    known = re.search(r"^MemAvailable: +(\d+) kB$", Path("/proc/meminfo").read_text(), re.M)
    return int(known[1]) << 10 if known else 0

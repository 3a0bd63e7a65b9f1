"""Disks that are full, and files that may only be read, whoever runs the tests.

Root becomes another account meanwhile, which may be unable to import modules; so let what has to
happen then happen once before.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["full_disk", "on_posix", "write_protected"]

on_posix = pytest.mark.skipif(os.name == "nt", reason="there are no limits and no other users")

#: An account without rights, which root becomes because nothing is write-protected for root.
_NOBODY = 65534


@contextmanager
def write_protected(*paths: Path) -> Iterator[None]:
    """Nobody may write some files, or make files in some folders, meanwhile."""
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in paths}
    is_root = os.geteuid() == 0
    try:
        for path, mode in modes.items():
            path.chmod((mode & ~0o222) | 0o555)
        if is_root:
            os.seteuid(_NOBODY)
        yield
    finally:
        if is_root:
            os.seteuid(0)
        for path, mode in modes.items():
            path.chmod(mode)


@contextmanager
def full_disk() -> Iterator[None]:
    """No file grows meanwhile, so that every disk seems full; nothing may be printed either."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

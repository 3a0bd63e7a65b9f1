"""The tests for backends detect faults: each wrong backend fails one that names its fault."""

from __future__ import annotations

import pytest

from tests.wrong_backends import FAULTS

pytest_plugins = ["pytester"]


@pytest.mark.slow
def test_kit_catches_every_fault(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("from tests.wrong_backends import kits\n\nglobals().update(kits())\n")
    run = pytester.inline_run("-p", "no:cacheprovider")
    failed = [
        r.nodeid.partition("::")[2] for r in run.getreports("pytest_runtest_logreport") if r.failed
    ]
    missed = {
        fault: test
        for fault, (_, test) in FAULTS.items()
        if not any(name.startswith(f"Test{fault}::{test}") for name in failed)
    }
    assert missed == {}

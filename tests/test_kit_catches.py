"""The tests for backends detect faults: each wrong backend fails one that names its fault."""

from __future__ import annotations

import pytest

from tests.wrong_backends import FAULTS

pytest_plugins = ["pytester"]


@pytest.mark.parametrize("fault", FAULTS)
def test_kit_catches(pytester: pytest.Pytester, fault: str) -> None:
    _, test = FAULTS[fault]
    name, _, _ = test.partition("[")
    pytester.makepyfile(
        f"from tests.wrong_backends import kit_for\n\nTestWrong = kit_for({fault!r})\n"
    )
    run = pytester.inline_run("-k", f"{name}", "-p", "no:cacheprovider")
    failed = [report.nodeid for report in run.getreports() if report.failed]
    assert [node for node in failed if node.partition("::TestWrong::")[2].startswith(test)]

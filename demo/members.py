"""Decides who may see the members' pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import session

__all__ = ["NAME", "PASSWORD", "can_view", "is_member", "log_in", "log_out"]

#: The only member in the demo; the login page shows both.
NAME, PASSWORD = "pippin", "windfall"


def can_view(restriction: Mapping[str, Any]) -> bool:
    """The hook that decides for the API whether this visitor may pass a restriction."""
    return restriction["type"] == "login" and is_member()


def is_member() -> bool:
    """Whether the visitor is logged in."""
    return "member" in session


def log_in(name: str, password: str) -> bool:
    """Logs the visitor in, if name and password are right."""
    if (name, password) != (NAME, PASSWORD):
        return False
    session["member"] = name
    return True


def log_out() -> None:
    """Logs the visitor out."""
    session.pop("member", None)

"""Modules of the product use only names that other modules export."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from typing import cast

import pytest

from tests.pages import ROOT

pytestmark = pytest.mark.slow

#: The packages of the product, and the folders that contain them.
PACKAGES = {
    "flask_contentapi": ROOT,
    **{path.name: path.parent for path in (ROOT / "backends").glob("flask_contentapi_*")},
}
#: All modules by name.
FILES = {
    ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
    for package, root in PACKAGES.items()
    for path in (root / package).rglob("*.py")
}


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(FILES[module].read_text(encoding="utf-8"))


@cache
def offered_by(module: str) -> set[str]:
    """The names in a module's ``__all__``, or else all it defines without an underscore."""
    defined: set[str] = set()
    for node in tree_of(module).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined.add(node.name)
        for target in assigned_by(node):
            if ast.unparse(target) == "__all__":
                return set(ast.literal_eval(cast(ast.Assign, node).value))
            defined |= {inner.id for inner in ast.walk(target) if isinstance(inner, ast.Name)}
    return {name for name in defined if not name.startswith("_")}


def assigned_by(node: ast.stmt) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, ast.AnnAssign) else []


def taken_by(module: str) -> Iterator[tuple[str, str]]:
    """The names that a module imports or uses from others, each with the other module."""
    modules: dict[str, str] = {}
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.ImportFrom) and node.module in FILES:
            for name in (alias.name for alias in node.names):
                if f"{node.module}.{name}" in FILES:
                    modules[name] = f"{node.module}.{name}"
                else:
                    yield node.module, name
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") in modules:
            yield modules[ast.unparse(node.value)], node.attr


@pytest.mark.parametrize("module", sorted(FILES))
def test_only_what_is_offered_is_taken(module: str) -> None:
    taken = [(other, name) for other, name in taken_by(module) if name not in offered_by(other)]
    assert taken == []


@pytest.mark.parametrize("folder", ["demo", "tests", "bench"])
def test_what_runs_as_a_folder_hides_nothing_of_python(folder: str) -> None:
    names = {path.stem for path in (ROOT / folder).iterdir()}
    assert not names & sys.stdlib_module_names

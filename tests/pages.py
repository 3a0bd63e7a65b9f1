"""The pages of the documentation, and the code blocks on them, in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.core import publish_doctree
from docutils.parsers.rst import Directive, directives

__all__ = ["PAGES", "ROOT", "Block", "blocks_of", "text_of"]

ROOT = Path(__file__).resolve().parent.parent
#: The start of a comment before a block that cannot be run; the reason follows.
NOT_RUN = "not run:"
#: The start of one before a block that is a file, where captions cannot be used.
FILE = "file:"
#: All pages, by their paths below the root.
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [*ROOT.glob("*.rst"), *ROOT.glob("docs/**/*.rst")]
    if "_build" not in path.parts
)


@dataclass(frozen=True)
class Block:
    """A block of code.

    :param line: the line of the page.
    :param language: the language, or "".
    :param caption: the name of the file that it is, or "".
    :param text: the code.
    :param not_run: why it cannot be run, or "".
    """

    line: int
    language: str
    caption: str
    text: str
    not_run: str


class _Description(Directive):
    """Sphinx's description of a setting or an option, which may contain code."""

    has_content = True
    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {"type": directives.unchanged, "default": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        container = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, container)
        return [container]


class _CodeBlock(Directive):
    """Sphinx's ``code-block``, which would need a whole project."""

    has_content = True
    required_arguments = 1
    option_spec = dict.fromkeys(
        ("caption", "emphasize-lines", "linenos", "name"), directives.unchanged
    )

    def run(self) -> list[nodes.Node]:
        text = "\n".join(self.content)
        caption = self.options.get("caption", "")
        return [
            nodes.literal_block(
                text, text, language=self.arguments[0], caption=caption, at=self.lineno
            )
        ]


def text_of(page: str) -> str:
    """The source of a page."""
    return (ROOT / page).read_text(encoding="utf-8")


@cache
def blocks_of(page: str) -> tuple[Block, ...]:
    """All code blocks on a page."""
    directives.register_directive("code-block", _CodeBlock)
    for name in ("confval", "option"):
        directives.register_directive(name, _Description)
    # Roles and directives that only Sphinx has are ignored.
    settings = {"report_level": 5, "halt_level": 5, "file_insertion_enabled": False}
    document = publish_doctree(text_of(page), str(ROOT / page), settings_overrides=settings)
    return tuple(_blocks(document))


def _blocks(document: Any) -> Iterator[Block]:
    for node in document.findall(nodes.literal_block):
        if node.parent.tagname != "system_message":
            yield Block(
                node.get("at", node.line or 0),
                node.get("language", ""),
                node.get("caption", "") or _note(node, FILE),
                node.astext(),
                _note(node, NOT_RUN),
            )
    for node in document.findall(nodes.doctest_block):
        yield Block(node.line or 0, "", "", node.astext(), "")


def _note(node: Any, start: str) -> str:
    """The rest of a comment before a block that starts with a text, or ""."""
    place = node.parent.index(node)
    before = node.parent[place - 1] if place else None
    text = before.astext() if isinstance(before, nodes.comment) else ""
    return " ".join(text.removeprefix(start).split()) if text.startswith(start) else ""

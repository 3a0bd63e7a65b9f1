"""Follows a page of the documentation, as its reader would, in a folder of its own.

The language of a code block determines what it is:

* with a caption it is a file or the end of one, and ``diff`` is a change to one;
* ``console`` is typed in, and output that it shows has to be the output of the command;
* ``python`` is run, in the module ``app`` of the folder, and ``pycon`` is run as a doctest;
* ``text`` that starts with ``GET`` is a request to the site, and so is ``http``;
* ``json`` is the answer to the previous request, and so is ``http`` that starts with a status.

All other blocks are ignored. A comment ``.. not run:`` before code that cannot be run gives the
reason.
"""

from __future__ import annotations

import doctest
import importlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import types
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPErrorProcessor, Request, build_opener

from flask import Flask

from tests.pages import ROOT, Block
from tests.servers import answers, free_port, start, stop

__all__ = ["Workshop"]

#: The address that pages show; tests replace its port by a free one.
HOST = "127.0.0.1:5000"
#: How pages show an ``ETag``; in a request it stands for the last one received.
SOME_TAG = '"..."'
#: The start of a caption for code that is appended to a file, before the file's name.
AT_THE_END = "at the end of "
_SERVER = re.compile(r"flask\b.*\brun\b|gunicorn\b|python3? demo\b")


@dataclass
class Answer:
    """The answer to a request."""

    status: int
    headers: Mapping[str, str]
    text: str


class _AsItIs(HTTPErrorProcessor):
    """Neither follows redirects nor raises errors."""

    def http_response(self, request: Request, response: Any) -> Any:
        return response


class Workshop:
    """A folder in which a page is followed.

    :param folder: the folder.
    :param sample: the site to send requests to; by default ``app`` in the page's code.
    :param instead: replacements for texts in commands.
    """

    def __init__(
        self, folder: Path, sample: Flask | None = None, instead: Mapping[str, str] | None = None
    ) -> None:
        self.folder = folder
        self.instead = dict(instead or {})
        self._sample = sample
        self._module: types.ModuleType | None = None
        self._answer: Answer | None = None
        self._tag = ""
        self._server: subprocess.Popen[bytes] | None = None
        self._here = folder
        self._port = free_port()
        self._environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "MYPYPATH": f"{ROOT}{os.pathsep}{ROOT / 'backends'}",
            "FLASK_RUN_PORT": str(self._port),
            "NO_COLOR": "1",
        }

    def follow(self, blocks: Iterable[Block]) -> None:
        """Follows the code blocks in order."""
        try:
            for block in blocks:
                if not block.not_run:
                    self._do(block)
            self._expect_success()
        except Exception as error:
            error.add_note(f"in line {block.line}:\n{block.text}")
            raise
        finally:
            self._end_server()
            sys.modules.pop("app", None)

    def _do(self, block: Block) -> None:
        if block.caption and block.language == "diff":
            self._change(block)
        elif block.caption.startswith(AT_THE_END):
            name = block.caption.removeprefix(AT_THE_END)
            before = (self.folder / name).read_text(encoding="utf-8")
            self._write(name, f"{before}\n\n{block.text}\n")
        elif block.caption:
            self._write(block.caption, f"{block.text}\n")
        elif block.language == "console":
            self._type_in(block.text)
        elif block.language == "python":
            exec(compile(block.text, "app.py", "exec"), vars(self.module))  # noqa: S102 - our own
        elif block.language == "pycon":
            self._doctest(block.text)
        elif block.language == "json":
            self._expect(block.text)
        elif block.language == "http" and block.text.startswith("HTTP/"):
            self._expect_whole(block.text)
        elif block.language == "http" or block.text.startswith("GET "):
            self._ask(block.text)

    # Files and Python.

    def _write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if name == "app.py":
            self._module = None

    def _change(self, block: Block) -> None:
        """Removes lines with a minus from a file and inserts those with a plus."""
        path = self.folder / block.caption
        text = path.read_text(encoding="utf-8")
        lines = block.text.splitlines()
        before = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("+"))
        after = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("-"))
        assert text.count(before) == 1, "the place of the change is not clear"
        self._write(block.caption, text.replace(before, after))

    @property
    def module(self) -> types.ModuleType:
        """The site's module, from its file or from the code on the page."""
        if self._module is None:
            sys.modules.pop("app", None)
            path = self.folder / "app.py"
            if path.exists():
                self._module = self._imported()
            else:
                self._module = sys.modules["app"] = types.ModuleType("app")
                self._module.__file__ = str(path)
        return self._module

    def _imported(self) -> types.ModuleType:
        importlib.invalidate_caches()
        sys.path.insert(0, str(self.folder))
        try:
            return importlib.import_module("app")
        finally:
            sys.path.remove(str(self.folder))

    def _doctest(self, text: str) -> None:
        test = doctest.DocTestParser().get_doctest(text, {}, "page", None, None)
        test.globs = vars(self.module)
        report: list[str] = []
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        runner.run(test, out=report.append, clear_globs=False)
        assert not report, "".join(report)

    # Requests.

    def _ask(self, text: str) -> None:
        """Sends a request to the site in this process."""
        self._expect_success()
        head, *headers = text.splitlines()
        method, path = head.removesuffix(" HTTP/1.1").split(" ", 1)
        site = self._sample or self.module.app
        given = [line.replace(SOME_TAG, self._tag).split(": ", 1) for line in headers]
        response = site.test_client().open(
            path.replace(" ", "%20"),
            method=method,
            base_url=f"http://{HOST}/",
            headers=given,
        )
        self._answer = Answer(response.status_code, {**response.headers}, response.text)
        self._tag = response.headers.get("ETag", self._tag)

    def _curl(self, *arguments: str) -> None:
        """Sends a request to the server; ``-i`` and ``-s`` make no difference here."""
        self._expect_success()
        given = list(arguments)
        headers = dict(
            argument.split(": ", 1)
            for before, argument in zip(["", *given], given, strict=False)
            if before == "-H"
        )
        (address,) = (argument for argument in given if argument.startswith("http"))
        try:
            opener = build_opener(_AsItIs)
            with opener.open(Request(address, headers=headers)) as response:  # noqa: S310
                body = response.read().decode()
                self._answer = Answer(response.status, response.headers, body)
        except HTTPError as error:
            raise AssertionError(f"{address}: {error}") from error

    def _expect(self, text: str) -> None:
        """Compares the body of the answer with a value, including the order of keys."""
        answer = self._taken()
        assert answer.status == 200, answer.text
        assert _tidy(self._shown(answer.text)) == _tidy(text)

    def _expect_whole(self, text: str) -> None:
        """Compares the answer with a status, the headers that are shown, and a body."""
        answer = self._taken()
        head, _, body = text.partition("\n\n")
        status, *headers = head.splitlines()
        assert answer.status == int(status.split()[1])
        for name, value in (line.split(": ", 1) for line in headers):
            shown = self._shown(answer.headers.get(name, ""))
            assert value == (SOME_TAG if name == "ETag" and shown else shown), name
        if body:
            assert _tidy(self._shown(answer.text)) == _tidy(body)

    def _taken(self) -> Answer:
        assert self._answer is not None, "this answers nothing"
        answer, self._answer = self._answer, None
        return answer

    def _expect_success(self) -> None:
        """Requires that a request whose answer is not shown did not fail."""
        if self._answer is not None:
            assert self._taken().status < 400

    # Commands.

    def _type_in(self, text: str) -> None:
        """Runs commands, each after ``$``, and compares their output."""
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, shown = _taken_apart(part)
            for text, here in {HOST: self._address, **self.instead}.items():
                command = command.replace(text, here)
            self._run(command, shown.strip("\n"))

    def _run(self, command: str, shown: str) -> None:
        words = shlex.split(command)
        if words[0] == "cd":
            self._here = (self._here / words[1]).resolve()
        elif words[0] == "export":
            name, _, value = words[1].partition("=")
            self._environment[name] = value
        elif words[0] == "curl":
            self._curl(*words[1:])
        elif _SERVER.search(command):
            self._end_server()
            self._server = start(
                ["sh", "-c", f"exec {command}"],
                self._port,
                cwd=self._here,
                env=self._environment,
                start_new_session=True,
            )
        else:
            self._run_to_its_end(command, shown)

    def _run_to_its_end(self, command: str, shown: str) -> None:
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=self._here,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        output = self._shown(done.stdout).strip("\n")
        if shown:
            assert output == shown
        else:
            assert done.returncode == 0, output

    @property
    def _address(self) -> str:
        return f"127.0.0.1:{self._port}"

    def _shown(self, text: str) -> str:
        """An output, with the port that pages show."""
        return text.replace(self._address, HOST)

    def _end_server(self) -> None:
        if self._server is not None:
            stop(self._server)
            # The server may be a child of the command, in the same process group.
            with suppress(ProcessLookupError):
                os.killpg(self._server.pid, signal.SIGTERM)
            while answers(self._port):
                time.sleep(0.05)
            self._server = None


def _taken_apart(text: str) -> tuple[str, str]:
    """A command, which a backslash continues in the next line, and its output below it."""
    end = re.search(r"(?<!\\)(\n|\Z)", text)
    assert end is not None
    return text[: end.start()].replace("\\\n", " "), text[end.end() :]


def _tidy(text: str) -> str:
    """A text in the form for comparisons: JSON with one key or entry per line."""
    try:
        return json.dumps(json.loads(text), indent=1, ensure_ascii=False)
    except ValueError:
        return text.strip()

"""The documentation is true: its code runs, and everything that exists is documented."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from docutils.core import publish_doctree
from docutils.parsers.rst import directives
from docutils.parsers.rst.directives.body import CodeBlock
from flask import Flask

import flask_contentapi
from demo import create_app
from flask_contentapi import Backend, ContentAPI, Reader, kinds, query
from flask_contentapi.cli import COMMANDS
from flask_contentapi.parameters import PARAMETERS
from flask_contentapi.records import RecordReader
from flask_contentapi.registry import Registry
from flask_contentapi.settings import Settings
from tests.clones import copy_demo
from tests.pages import PAGES, ROOT, Block, blocks_of, text_of
from tests.servers import SERVERS, why_missing
from tests.stores import fresh_address, leave_out

# Makes failing assertions in the module show their values.
pytest.register_assert_rewrite("tests.workshop")

from tests.workshop import Workshop  # noqa: E402

pytestmark = pytest.mark.slow

README = "README.rst"
TUTORIAL = "docs/tutorial.rst"
DATABASES = "docs/howto/databases.rst"
#: The database server in the tutorial.
POSTGRESQL = "postgresql://club:secret@localhost/walks"
#: The text on pages with requests to the demo.
ASKS_THE_DEMO = "requests to the demo"
#: Directives whose content needs no check.
WITHOUT_CODE = {
    *("attribute", "autoclass", "autodata", "autoexception", "autofunction", "automodule"),
    *("currentmodule", "image", "include", "literalinclude", "program", "toctree"),
}
#: Directives whose content is checked.
SEARCHED = {"code-block", "confval", "list-table", "option"}
MODULES = sorted(
    [
        "__main__",
        "admin",
        "explorer",
        "importers",
        *(path.stem for path in (ROOT / "flask_contentapi").glob("[!_]*.py")),
    ]
)
#: Values of some kinds in content records.
STORED = {
    "Text": "a",
    "Canonical": "a",
    "Integer": 1,
    "Float": 1,
    "Decimal": "1.5",
    "Boolean": True,
    "Date": "2026-03-01",
    "Time": "18:30:00",
    "DateTime": "2026-03-01T18:30:00Z",
    "Relation": 1,
    "Tags": ["a"],
    "Blocks": [],
}


# Code.


@pytest.fixture(scope="module")
def demo() -> Flask:
    return create_app({"TESTING": True, "CMSAPI_BACKEND": "jsonfiles:content"})


@pytest.mark.parametrize("page", [p for p in PAGES if p not in (README, TUTORIAL, DATABASES)])
def test_page_can_be_followed(page: str, tmp_path: Path, demo: Flask) -> None:
    sample = demo if ASKS_THE_DEMO in text_of(page) else None
    Workshop(tmp_path, sample).follow(blocks_of(page))


def test_readme_can_be_followed(tmp_path: Path) -> None:
    copy_demo(tmp_path)
    Workshop(tmp_path).follow(blocks_of(README))


def test_tutorial_can_be_followed(tmp_path: Path) -> None:
    files, server, _ = tutorial()
    workshop = Workshop(tmp_path)
    workshop.follow(files)
    if SERVERS["postgresql"]() is None:
        leave_out(why_missing("postgresql"))
    workshop.instead[POSTGRESQL] = fresh_address("postgresql")
    workshop.follow(server)


def test_databases_can_be_followed(tmp_path: Path) -> None:
    copy_demo(tmp_path)
    blocks = blocks_of(DATABASES)
    place = next(n for n, block in enumerate(blocks) if "@localhost" in block.text)
    workshop = Workshop(tmp_path)
    workshop.follow(blocks[:place])
    for name in SERVERS:
        if why_missing(name):
            leave_out(why_missing(name))
        workshop.instead[f"{name}://club:secret@localhost/songs"] = fresh_address(name)
    orchard = "postgresql://club:secret@localhost/orchard"
    workshop.instead[orchard] = fresh_address("postgresql")
    workshop.follow(blocks[place:])


def test_page_type_can_be_added_to_the_demo(tmp_path: Path) -> None:
    *_, second_part = tutorial()
    copy_demo(tmp_path)
    Workshop(tmp_path).follow(second_part)


def tutorial() -> list[tuple[Block, ...]]:
    """The code of the tutorial: up to the database server, from there to the demo, and the rest."""
    blocks = blocks_of(TUTORIAL)
    places = [
        next(number for number, block in enumerate(blocks) if text in block.text)
        for text in (POSTGRESQL, "python3 demo")
    ]
    return [blocks[: places[0]], blocks[places[0] : places[1]], blocks[places[1] :]]


@pytest.mark.parametrize("page", PAGES)
def test_all_code_is_looked_at(page: str) -> None:
    used = set(re.findall(r"^ *\.\. ([\w-]+)::", text_of(page), re.MULTILINE))
    assert used <= SEARCHED | WITHOUT_CODE
    assert [block.text for block in blocks_of(page) if not block.language] == []


@pytest.mark.parametrize("page", PAGES)
def test_requests_have_a_site_that_is_asked(page: str) -> None:
    asked = [block for block in blocks_of(page) if block.text.startswith(("GET ", "POST "))]
    makes_one = any(block.language == "python" for block in blocks_of(page))
    assert not asked or makes_one or ASKS_THE_DEMO in text_of(page)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_are_true(name: str) -> None:
    module = importlib.import_module(f"flask_contentapi.{name}")
    assert doctest.testmod(module).failed == 0


def test_what_is_called_a_mistake_in_fields_is_one(demo: Flask) -> None:
    mistakes = text_of("docs/reference/fields.rst").partition("Mistakes\n--------")[2]
    client = demo.test_client()
    wrong = re.findall(r"\* - ``fields=(.+?)``", mistakes)
    for text in wrong:
        answer = client.get("/api/v2/pages/7/", query_string={"fields": text})
        assert answer.status_code == 400, text
    assert len(wrong) == 11


# Completeness.


def missing(names: Iterable[str], page: str, form: str = "``{}``") -> list[str]:
    """The names that are not on a page in some form."""
    text = text_of(page)
    return [name for name in names if form.format(name) not in text]


class Recorder(dict[str, Any]):
    """A configuration that records the requested keys."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.asked.add(key)
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        self.asked.add(str(key))
        return super().__contains__(key)


def test_every_setting_is_explained() -> None:
    app = Flask("site")
    app.config = recorder = Recorder()  # type: ignore[assignment]
    recorder["DEBUG"] = False
    ContentAPI(app)
    own = {key for key in recorder.asked if key.startswith("CMS")} - {"CMSAPI_I18N_ENABLED"}
    explained = re.findall(r"^\.\. confval:: (\w+)$", settings_page(), re.MULTILINE)
    assert set(explained) == own


def test_defaults_of_settings_are_as_shown() -> None:
    shown = dict(re.findall(r"confval:: (\w+)\n.+\n +:default: ``(.+?)``", settings_page()))
    recorded = {key: ast.literal_eval(value) for key, value in shown.items()}
    assert recorded.pop("CMSAPI_BACKEND") == "memory"
    assert Settings.from_config(recorded, "CMSAPI_") == Settings()
    assert len(recorded) == 20


def test_stop_words_are_as_shown() -> None:
    (words,) = re.findall(r":default: \*([^*]+)\*", settings_page())
    assert set(words.split()) == Settings().stop_words


def settings_page() -> str:
    return text_of("docs/reference/settings.rst")


def test_every_query_parameter_is_explained() -> None:
    headings = re.findall(r"^(\S+)\n~+$", text_of("docs/reference/parameters.rst"), re.MULTILINE)
    named = {heading.replace("\\", "") for heading in headings}
    assert named >= PARAMETERS.keys() - {"fields"} | {"id"}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_command_is_explained(command: Any) -> None:
    page = text_of("docs/reference/commands.rst")
    assert f"\n{command.name}\n{'-' * len(command.name)}\n" in page
    for parameter in command.params:
        names = [*parameter.opts, parameter.make_metavar(None).strip("[]")]
        assert f".. option:: {next(n for n in names if not n.islower() or n[0] == '-')}\n" in page


def test_every_public_name_is_explained() -> None:
    pages = [text_of(f"docs/reference/{page}.rst") for page in ("python", "backends")]
    forms = r"^\.\. auto\w+:: (?:flask_contentapi\.)?(\w+)$"
    assert set(re.findall(forms, "\n".join(pages), re.MULTILINE)) >= {*flask_contentapi.__all__}


@pytest.mark.parametrize("contract", [Backend, Reader])
def test_every_method_of_the_contract_is_explained(contract: type) -> None:
    page = text_of("docs/reference/backends.rst")
    assert f".. autoclass:: flask_contentapi.{contract.__name__}\n   :members:\n" in page
    own = {name: value for name, value in vars(contract).items() if not name.startswith("_")}
    attributes = re.findall(r":cvar (\w+):", contract.__doc__ or "")
    assert [n for n, v in own.items() if n not in attributes and not inspect.getdoc(v)] == []


@pytest.mark.parametrize("part", [p for p in vars(query).values() if isinstance(p, type)])
def test_every_part_of_a_query_is_explained(part: type) -> None:
    page = text_of("docs/reference/backends.rst")
    if part.__module__ == query.__name__:
        assert f".. autoclass:: flask_contentapi.query.{part.__name__}\n" in page
        for parameter in inspect.signature(part).parameters:
            assert f":param {parameter}:" in (part.__doc__ or "")


def test_kinds_are_as_shown() -> None:
    page = text_of("docs/reference/backends.rst")
    rows = re.findall(r"^   \* - ``(\w+)``\n((?:     - .+\n){5})", page, re.MULTILINE)
    cells = {name: re.findall(r"     - (.+)\n", rest) for name, rest in rows}
    below = kinds_below(kinds.Kind)
    found = {kind.__name__: kind for kind in below if hasattr(kind, "name")}
    assert {
        name: (cell[0], cell[2], *(text == "yes" for text in cell[3:]))
        for name, cell in cells.items()
    } == {
        name: (f"``{kind.name}``", f"``{kind.empty(kind)!r}``", kind.filterable, kind.orderable)  # type: ignore[arg-type]
        for name, kind in found.items()
    }


@pytest.mark.parametrize(("name", "value"), STORED.items())
def test_stored_values_of_a_kind_are_as_shown(name: str, value: Any) -> None:
    page = text_of("docs/reference/backends.rst")
    kind = kinds.Canonical(str) if name == "Canonical" else getattr(kinds, name)()
    stored = type(kind.read(value)).__name__
    assert re.search(rf"   \* - ``{name}``\n.+\n     - ``{stored}``", page)


def kinds_below(base: type[kinds.Kind]) -> Iterator[type[kinds.Kind]]:
    for kind in base.__subclasses__():
        yield kind
        yield from kinds_below(kind)


def test_cited_clauses_are_explained() -> None:
    folders = ("flask_contentapi", "backends")
    files = [path for folder in folders for path in (ROOT / folder).glob("**/*.py")]
    code = "\n".join(path.read_text(encoding="utf-8") for path in files)
    sections = re.findall(r"specification, ([\d.]*\d)(?: and ([\d.]*\d))?", code)
    cited = {f"\nS {number} " for pair in sections for number in pair if number}
    cited |= {name.strip() for name in re.findall(r"contract, ([A-Z][\w ]+)", code)}
    assert len(cited) > 10
    assert missing(cited, "docs/contract.rst", "{}") == []


def test_every_key_of_records_is_explained() -> None:
    registry = Registry([])
    reader = RecordReader(registry)
    site = reader.read_site(0, {"hostname": "localhost", "root_page": 1})
    collection = reader.read_collection(0, {"id": 1})
    assert site is not None
    assert collection is not None
    keys = {*site, *collection, "type"}
    for endpoint in registry.endpoints.values():
        keys.update(endpoint.base.columns)
    assert missing(keys, "docs/reference/records.rst") == []


@pytest.mark.parametrize("endpoint", ["pages", "images", "documents"])
def test_every_key_of_answers_is_explained(endpoint: str) -> None:
    exports = Registry([]).endpoints[endpoint].base.exports
    keys = [f"meta.{name}" if export.in_meta else name for name, export in exports.items()]
    assert missing(keys, "docs/reference/answers.rst") == []


def test_every_error_that_is_answered_is_explained() -> None:
    assert missing([f"   * - {s}\n" for s in (400, 404, 405, 503)], ERRORS, "{}") == []


ERRORS = "docs/reference/errors.rst"


# The README, and the diagram of the modules.


def test_readme_can_be_shown_everywhere() -> None:
    directives.register_directive("code-block", CodeBlock)
    publish_doctree(text_of(README), settings_overrides={"halt_level": 1, "report_level": 1})


def test_links_to_files_lead_somewhere() -> None:
    links = re.findall(r"<(\S+\.rst)>`_", text_of(README))
    assert len(links) > 10
    assert [link for link in links if not (ROOT / link).is_file()] == []


def modules_of_the_core() -> str:
    """The section of the page."""
    _, _, rest = text_of("docs/development.rst").partition("Modules of the core")
    return rest.partition("Modules of the database backend")[0]


def test_modules_import_only_what_stands_below_them() -> None:
    page = modules_of_the_core()
    rows = re.findall(r"^   (\w+(?: \w+)*)  +\S", page, re.MULTILINE)
    row_of = {module: number for number, row in enumerate(rows) for module in row.split()}
    assert sorted(row_of) == MODULES
    upwards = {
        (module, other)
        for module in MODULES
        for other in imported_by(module)
        if row_of[other] <= row_of[module]
    }
    assert upwards == set(re.findall(r"``(\w+)`` from ``(\w+)``", page))


def test_only_type_hints_know_names_from_above() -> None:
    page = modules_of_the_core()
    for module, other in re.findall(r"``(\w+)`` from ``(\w+)``", page):
        assert other not in imported_by(module, hints=False)


def imported_by(module: str, *, hints: bool = True) -> set[str]:
    """The modules of the core that a module imports.

    :param hints: whether to include imports for type hints only.
    """
    folder = ROOT / "flask_contentapi"
    files = [*(folder / module).glob("*.py")] or [folder / f"{module}.py"]
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in files]
    nodes = [node for tree in trees for node in (ast.walk(tree) if hints else tree.body)]
    named = {name for node in nodes if isinstance(node, ast.ImportFrom) for name in named_by(node)}
    return named - {module} if len(files) > 1 else named


def named_by(node: ast.ImportFrom) -> Iterator[str]:
    """The modules of the core that a statement imports, or imports from."""
    package, _, name = (node.module or "").partition(".")
    if package == "flask_contentapi":
        yield from [name.partition(".")[0]] if name else (alias.name for alias in node.names)

"""The views. Each one requests its subject from the API and passes it to a template.

Anything else that a template shows, such as the menu or the latest articles, it requests itself.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from flask import (
    Blueprint,
    Response,
    abort,
    current_app,
    redirect,
    render_template,
    request,
    send_from_directory,
    url_for,
)
from flask.typing import ResponseReturnValue
from jinja2 import Template
from werkzeug.exceptions import HTTPException, NotFound

from demo import api, members
from demo.languages import ENGLISH, LANGUAGES, Language

__all__ = ["files", "pages"]

RESULTS = 6
#: The fields of a page: its own, and the pages that its trail and its languages lead to.
PAGE = "*,ancestors(_,title,html_url),translations(_,locale,html_url)"
#: Those of the home page, which also leads to the sections and what is in them.
SECTIONS = "children(_,type,title,html_url,show_in_menus,children(_,title,html_url,day,intro))"
#: Those of the home page that the header and the footer of every page show.
FRAME = "_,title,address,links,children(_,title,html_url,show_in_menus)"

#: Registered once for each language, under its code.
pages = Blueprint("pages", __name__)
files = Blueprint("files", __name__)


# Pages, and lists of them.


@pages.get("/")
@pages.get("/<path:path>/")
def page(path: str = "") -> ResponseReturnValue:
    """Any page of the tree; the template is named after its type, if there is one."""
    try:
        fields = PAGE if path else f"{PAGE},{SECTIONS}"
        found = api.find(request.path, fields=fields, preview=request.args.get("preview"))
    except NotFound:
        moved = api.moved(request.full_path)
        return redirect(moved["location"], 301 if moved["is_permanent"] else 302)
    original = found["meta"]["alias_of"]
    if original:
        return redirect(original["meta"]["html_url"], 301)
    own = (found["meta"]["type"] or "").rpartition(".")[2]
    templates: list[str | Template] = [f"pages/{own}.html", "pages/Page.html"]
    home = None if path else found
    return render_template(templates, page=found, home=home, source=found.url)


@pages.get("/apple/<slug>/")
def apple(slug: str) -> str:
    """One variety of apple."""
    found = api.items("apples", slug=slug, fields="*")
    if not found:
        abort(404)
    return render_template("apple.html", apple=found[0], source=found.url)


@pages.get("/tag/<tag>/")
def tag(tag: str) -> str:
    """The articles that have a tag."""
    found = api.items(
        "pages",
        type="demo.ArticlePage",
        tags=tag,
        locale=language().code,
        order="-published_date",
        fields="published_date,reading_minutes,intro,feed_image",
    )
    return render_template("tag.html", tag=tag, articles=found, source=found.url)


@pages.get("/search/")
def search() -> str:
    """The pages and documents that have all the words in ``q``."""
    words = request.args.get("q", "").strip()
    found = part_of(
        "pages",
        RESULTS,
        search=words,
        search_operator="and",
        locale=language().code,
        fields="search_description",
    )
    papers = api.items("documents", search=words, search_operator="and", fields="*")
    return render_template(
        "search.html",
        words=words,
        found=found,
        papers=papers,
        size=RESULTS,
        source=found.url,
    )


# Members.


@pages.route("/login/", methods=["GET", "POST"])
def login() -> ResponseReturnValue:
    """The login form for members."""
    then = request.values.get("next", "")
    wrong = False
    if request.method == "POST":
        wrong = not members.log_in(request.form["name"], request.form["password"])
        if not wrong:
            return redirect(path_of(then))
    return render_template("login.html", then=then, wrong=wrong)


@pages.post("/logout/")
def logout() -> ResponseReturnValue:
    """Logs the visitor out and redirects to the home page."""
    members.log_out()
    return redirect(address("page"))


# Files, which a web server in front would serve.


@files.get("/media/<path:file>")
def media(file: str) -> Response:
    """The file of a picture or a document, at its ``download_url``."""
    if "members" in PurePosixPath(file.lower()).parts and not members.is_member():
        abort(404)
    return send_from_directory(Path(current_app.root_path) / "media", file)


# Shared by all pages.


@pages.app_errorhandler(HTTPException)
def error(problem: HTTPException) -> ResponseReturnValue:
    """The page for an error. It does not reveal whether a page is hidden or missing.

    It has no menu if the API does not answer.
    """
    home = None
    with suppress(HTTPException):
        home = frame()
    response = problem.get_response()
    response.set_data(render_template("error.html", problem=problem, home=home))
    return response


@pages.app_context_processor
def common() -> dict[str, Any]:
    """The names that all templates can use."""
    return {
        "_": language().say,
        "address": address,
        "address_in": address_in,
        "api": api,
        "frame": frame,
        "language": language(),
        "languages": LANGUAGES.values(),
        "member": members.is_member(),
        "members": members,
        "number": page_number(),
        "page": None,
        "part_of": part_of,
        "source": None,
    }


def frame() -> api.Item:
    """What the header and the footer of every page show of the home page."""
    return api.find(f"{language().prefix}/", fields=FRAME)


def language() -> Language:
    """The language of the request."""
    return LANGUAGES.get(request.blueprint or "", ENGLISH)


def page_number() -> int:
    """Which part of a long list is requested, from 1 on; 0 if that is no number."""
    return request.args.get("page", 0 if "page" in request.args else 1, int)


def part_of(endpoint: str, size: int, **parameters: Any) -> api.Items:
    """The requested part of a long list; beyond its end there is nothing."""
    number = page_number()
    found = api.items(endpoint, limit=size, offset=(number - 1) * size, **parameters)
    if number > 1 and not found:
        abort(404)
    return found


def address(view: str, **values: Any) -> str:
    """The address of a view, in the language of the request."""
    return url_for(f"{language().code}.{view}", **values)


def path_of(text: str) -> str:
    """The address of a page, from a form; whatever the input, it is on this site."""
    path = text.strip("/")
    return url_for("en.page", path=path) if path else address("page")


def address_in(other: Language, page: api.Item | None) -> str:
    """The address of this page in another language; the home page if it is not translated."""
    if page:
        for translation in page["meta"]["translations"]:
            if translation["meta"]["locale"] == other.code:
                return str(translation["meta"]["html_url"])
    view = (request.endpoint or "").rpartition(".")[2]
    if view in ("apple", "search", "login"):
        values: dict[str, Any] = {**(request.view_args or {}), **request.args, "page": None}
        return url_for(f"{other.code}.{view}", **values)
    return url_for(f"{other.code}.page")

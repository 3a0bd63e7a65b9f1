"""The site's only access to its content: requests to the JSON API.

They are made to this very application, in the same process and without a socket, because a demo on
a server with a single worker would otherwise wait for itself. Host and cookies are passed on, so
that the API sees the visitor who requested the page. A front end in its own process would have the
same functions over an HTTP client.
"""

from __future__ import annotations

from typing import Any

from flask import abort, current_app, g, request, url_for

__all__ = ["Item", "Items", "calls", "find", "get", "items", "moved"]


class Item(dict[str, Any]):
    """One object.

    :ivar url: the address that it was requested from.
    """

    url: str


class Items(list[dict[str, Any]]):
    """The objects of a list.

    :ivar url: the address that they were requested from.
    :ivar total: how many there are without ``limit`` and ``offset``.
    """

    url: str
    total: int


def find(html_path: str, **parameters: Any) -> Item:
    """The page at a path of the site."""
    return _item("pages_detailbypath", html_path=html_path, **parameters)


def moved(path: str) -> Item:
    """The redirect from a former path of the site."""
    return _item("redirects_find", html_path=path)


def get(endpoint: str, id: int, **parameters: Any) -> Item:
    """One object of an endpoint, such as ``"pages"``."""
    return _item(f"{endpoint}_detail", id=id, **parameters)


def items(endpoint: str, **parameters: Any) -> Items:
    """The objects of an endpoint that match the parameters of the API."""
    answer, url = _ask(f"{endpoint}_list", parameters)
    found = Items(answer["items"])
    found.url, found.total = url, answer["meta"]["total_count"]
    return found


def calls() -> list[str]:
    """The addresses requested so far for the current page."""
    made: list[str] = g.setdefault("api_calls", [])
    return made


def _item(view: str, **parameters: Any) -> Item:
    answer, url = _ask(view, parameters)
    item = Item(answer)
    item.url = url
    return item


def _ask(view: str, parameters: dict[str, Any]) -> tuple[Any, str]:
    """The JSON from a view of the API, and its address.

    An error of the API becomes the same error of the page.
    """
    path = url_for(f"contentapi.{view}", **parameters).removeprefix(request.root_path)
    response = current_app.test_client(use_cookies=False).get(
        path,
        base_url=request.url_root,
        headers={"Cookie": request.headers.get("Cookie", "")},
        follow_redirects=True,
    )
    answer: Any = response.json
    if response.status_code != 200:
        abort(response.status_code, answer["message"])
    calls().append(response.request.url)
    return answer, response.request.url

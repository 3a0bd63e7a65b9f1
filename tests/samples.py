"""Content records with the minimum that is required, to which tests add what they need.

Pages have a type of the reference site with few fields of its own.
"""

from __future__ import annotations

from typing import Any

Record = dict[str, Any]


def page(id: int, parent: int | None = None, **values: Any) -> Record:
    """A page with the slug ``p<id>``."""
    plain = {"type": "standard.StandardPage", "title": f"Page {id}", "slug": f"p{id}"}
    return {"id": id, "parent": parent, **plain, **values}


def plain(id: int, parent: int | None = None, **values: Any) -> Record:
    """A page of the package's own class."""
    return page(id, parent, **{"type": "flask_contentapi.Page", **values})


def blog(id: int, parent: int | None = None, **values: Any) -> Record:
    """A page of the type with the most fields."""
    return page(id, parent, **{"type": "blog.BlogPage", **values})


def image(id: int, **values: Any) -> Record:
    """An image."""
    return {"id": id, "title": f"Image {id}", "file": f"{id}.png", **values}


def document(id: int, **values: Any) -> Record:
    """A document."""
    return {"id": id, "title": f"Document {id}", "file": f"{id}.pdf", **values}


def site(root_page: int, hostname: str = "localhost", **values: Any) -> Record:
    """A site."""
    return {"hostname": hostname, "root_page": root_page, **values}


def private(type: str = "login", **details: Any) -> Record:
    """A restriction."""
    return {"type": type, **details}

"""The form of answers, hand-written; each function takes stored values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from flask import Response

from bench.content import HOST
from bench.workloads import PREFIX

__all__ = [
    "API",
    "DETAIL",
    "TEASER",
    "article",
    "file",
    "json_response",
    "listed_photo",
    "page",
    "page_link",
    "sized_photo",
    "whole_page",
]

SITE = f"http://{HOST}"
API = f"{SITE}{PREFIX}"
MEDIA = f"{SITE}/media/"
#: The start of the detail address of each type of file.
DETAIL = {"magazine.Photo": f"{API}/images/", "magazine.Paper": f"{API}/documents/"}
#: The value of ``fields`` that the front page of the magazine sends.
TEASER = "title,date,photo(width,height)"

Item = dict[str, Any]


def json_response(value: Any) -> Response:
    """An answer."""
    return Response(orjson.dumps(value), mimetype="application/json")


def page(
    id: int, type: str, url: str, slug: str, first_published_at: str, locale: str, title: str
) -> Item:
    """A page in a list."""
    return {
        "id": id,
        "meta": {
            "type": type,
            "detail_url": f"{API}/pages/{id}/",
            "html_url": f"{SITE}{url}",
            "slug": slug,
            "first_published_at": first_published_at,
            "locale": locale,
        },
        "title": title,
    }


def whole_page(
    id: int,
    type: str,
    url: str,
    slug: str,
    show_in_menus: int,
    seo_title: str,
    search_description: str,
    first_published_at: str,
    locale: str,
    title: str,
    *,
    further: Mapping[str, Any] | None = None,
) -> Item:
    """A page with the fields that every page has.

    :param further: the keys that only its detail view has.
    """
    return {
        "id": id,
        "meta": {
            "type": type,
            "detail_url": f"{API}/pages/{id}/",
            "html_url": f"{SITE}{url}",
            "slug": slug,
            "show_in_menus": bool(show_in_menus),
            "seo_title": seo_title,
            "search_description": search_description,
            "first_published_at": first_published_at,
            "expires_at": None,
            "alias_of": None,
            **(further or {}),
            "locale": locale,
        },
        "title": title,
    }


def article(
    date: str,
    intro: str,
    body: str,
    tags: Any,
    links: list[Item],
    *,
    photo: Item | None,
    attachment: Item | None,
    see_also: Item | None,
) -> Item:
    """The fields that only articles have."""
    return {
        "date": date,
        "intro": intro,
        "body": body,
        "photo": photo,
        "attachment": attachment,
        "see_also": see_also,
        "tags": tags,
        "links": [
            {
                "id": link["id"],
                "meta": {"type": "magazine.Link"},
                "title": link["title"],
                "url": link["url"],
            }
            for link in links
        ],
    }


def page_link(id: int, type: str, title: str, url: str | None = None) -> Item:
    """A page that another one points to.

    :param url: its address, if that is shown.
    """
    meta = {"type": type, "detail_url": f"{API}/pages/{id}/"}
    if url is not None:
        meta["html_url"] = f"{SITE}{url}"
    return {"id": id, "meta": meta, "title": title}


def file(label: str, id: int, title: str, path: str) -> Item:
    """A picture or a document that a page points to."""
    return {
        "id": id,
        "meta": {
            "type": label,
            "detail_url": f"{DETAIL[label]}{id}/",
            "download_url": f"{MEDIA}{path}",
        },
        "title": title,
    }


def sized_photo(id: int, title: str, path: str, width: int, height: int) -> Item:
    """A picture with its size."""
    return {**file("magazine.Photo", id, title, path), "width": width, "height": height}


def listed_photo(id: int, title: str, path: str, *, tags: Any) -> Item:
    """A picture in a list."""
    return {
        "id": id,
        "meta": {
            "type": "magazine.Photo",
            "detail_url": f"{API}/images/{id}/",
            "tags": tags,
            "download_url": f"{MEDIA}{path}",
        },
        "title": title,
    }

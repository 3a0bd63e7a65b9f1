"""The site that is measured: a magazine in two languages, as a developer would write it.

This module imports nothing else of the benchmark, so that it runs on another checkout as well.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
from flask import Flask
from marshmallow import fields

import flask_contentapi as cms
from flask_contentapi.sites import Site
from flask_contentapi_memory import MemoryBackend

__all__ = ["HOST", "PREFIX", "Record", "create_app", "records"]

Record = dict[str, Any]
HOST = "magazine.example"
PREFIX = "/api/v2"


class HomePage(cms.Page):
    """The home page of a language."""


class SectionPage(cms.Page):
    """A department, such as science."""


class TopicPage(cms.Page):
    """The parent of the articles on a topic."""


class Link(cms.ChildObject):
    title = fields.String()
    url = fields.Url()
    api_fields = ["title", "url"]


class ArticlePage(cms.Page):
    date = fields.Date()
    intro = fields.String()
    body = cms.RichText()
    photo = cms.Related("images")
    see_also = cms.Related("pages")
    tags = cms.Tags()
    links = cms.Children(Link)
    search_fields = ["intro", "body"]
    api_fields = ["date", "intro", "body", "photo", "see_also", "tags", "links"]


class Photo(cms.Image):
    """A picture."""


class LanguageFirst(cms.PageURLs):
    """Addresses that start with the language."""

    def build(self, site: Site, locale: str | None, path: str) -> str | None:
        return super().build(site, locale, f"/{locale}{path}")

    def resolve(self, site: Site, locale: str | None, html_path: str) -> tuple[str | None, str]:
        first, _, rest = html_path.strip("/").partition("/")
        return first or locale, rest


def records(folder: str) -> Mapping[str, Iterator[Record]]:
    """The content in a folder, which has a file of JSON lines for each section; read it once."""
    files = sorted(Path(folder).glob("*.jsonl"))
    return {file.stem: map(orjson.loads, file.read_bytes().splitlines()) for file in files}


def create_app(address: str, folder: str, kept: bool = False) -> Flask:
    """The site.

    :param address: the value of ``CMSAPI_BACKEND``.
    :param folder: the folder with the content, which memory reads.
    :param kept: whether answers are kept, as they usually are; otherwise each is made anew.
    """
    app = Flask(__name__)
    # Without a maximum, all that a search has found can be asked for at once and compared.
    app.config.update(CMSAPI_BACKEND=address, CMSAPI_LIMIT_MAX=None, CMS_I18N_ENABLED=True)
    if not kept:
        app.config["CMSAPI_CACHE_SIZE"] = 0
    types = [HomePage, SectionPage, TopicPage, ArticlePage, Photo]
    backend = MemoryBackend(records(folder)) if address == "memory" else None
    app.extensions["magazine"] = cms.ContentAPI(
        app, types=types, backend=backend, page_urls=LanguageFirst()
    )
    return app


def _load(address: str, folder: str) -> None:
    app = create_app(address, folder)
    with app.app_context():
        app.extensions["magazine"].backend.create()
        app.extensions["magazine"].backend.load(records(folder))


def _count(address: str, folder: str) -> None:
    """Prints the number of statements for each workload, when the same is asked again."""
    made: list[str] = []
    log = logging.getLogger("peewee")
    log.setLevel(logging.DEBUG)
    vars(log)["debug"] = lambda statement: made.append(statement[0])
    client, counts = create_app(address, folder).test_client(), {}
    for name, (path, *_) in json.loads(Path(folder, "addresses.json").read_text()).items():
        client.get(path, headers={"Host": HOST})
        made.clear()
        client.get(path, headers={"Host": HOST})
        counts[name] = sum(sql.lstrip("( ").startswith(("SELECT", "WITH")) for sql in made)
    print(json.dumps(counts))


if __name__ == "__main__":
    # That a new store has no tables yet is no news.
    logging.getLogger("flask_contentapi").setLevel(logging.CRITICAL)
    {"load": _load, "count": _count}[sys.argv[1]](*sys.argv[2:])

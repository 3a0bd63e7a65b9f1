"""The site that is measured: a magazine in two languages, as a developer would write it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
from flask import Flask
from marshmallow import fields

import flask_contentapi as cms
from flask_contentapi.middleware import KeptAnswers
from flask_contentapi.sites import Site
from flask_contentapi_memory import MemoryBackend

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
    return {file.stem: _lines_of(file) for file in sorted(Path(folder).glob("*.jsonl"))}


def _lines_of(file: Path) -> Iterator[Record]:
    with file.open("rb") as lines:
        yield from map(orjson.loads, lines)


def create_app(address: str, folder: str, kept: bool = False) -> Flask:
    """The site.

    :param address: the value of ``CMSAPI_BACKEND``.
    :param folder: the folder with the content, which memory reads and other stores are filled with.
    :param kept: whether answers are kept; otherwise each is made anew.
    """
    app = Flask(__name__)
    # Without a maximum, all that a search has found can be asked for at once and compared.
    app.config.update(CMSAPI_BACKEND=address, CMSAPI_LIMIT_MAX=None, CMS_I18N_ENABLED=True)
    if not kept:
        app.config["CMSAPI_CACHE_SIZE"] = 0
    types = [HomePage, SectionPage, TopicPage, ArticlePage, Photo]
    backend = MemoryBackend(records(folder)) if address == "memory" else None
    api = cms.ContentAPI(app, types=types, backend=backend, page_urls=LanguageFirst())
    app.extensions["magazine"] = api
    if kept:
        app.wsgi_app = KeptAnswers(app, api)  # type: ignore[method-assign]
    return app


def load(address: str, folder: str) -> None:
    """Fills a new store with the content in a folder."""
    app = create_app(address, folder)
    with app.app_context():
        backend = app.extensions["magazine"].backend
        backend.create()
        backend.load(records(folder))

"""The site that is measured: a magazine in two languages, as a developer would write it."""

from __future__ import annotations

from flask import Flask
from marshmallow import fields

import flask_contentapi as cms
from bench.content import records
from flask_contentapi.middleware import KeptAnswers
from flask_contentapi_memory import MemoryBackend


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


api = cms.ContentAPI(types=[HomePage, SectionPage, TopicPage, ArticlePage, Photo])


def create_app(address: str, size: int, kept: bool = False) -> Flask:
    """The site.

    :param address: the value of ``CMSAPI_BACKEND``.
    :param size: the number of pages, which memory is made with and other stores are filled with.
    :param kept: whether answers are kept; otherwise each is made anew.
    """
    app = Flask(__name__)
    # Without a maximum, all that a search has found can be asked for at once and compared.
    app.config.update(CMSAPI_BACKEND=address, CMSAPI_LIMIT_MAX=None, CMS_I18N_ENABLED=True)
    if not kept:
        app.config["CMSAPI_CACHE_SIZE"] = 0
    api.init_app(app, backend=MemoryBackend(records(size)) if address == "memory" else None)
    if kept:
        app.wsgi_app = KeptAnswers(app, api)  # type: ignore[method-assign]
    return app


def load(address: str, size: int) -> None:
    """Fills a new store with a number of pages."""
    with create_app(address, size).app_context():
        api.backend.create()
        api.backend.load(records(size))

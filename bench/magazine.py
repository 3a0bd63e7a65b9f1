"""The site that is measured: a magazine in two languages, as a developer would write it."""

from __future__ import annotations

from pathlib import Path

from flask import Flask
from marshmallow import fields

from bench.content import HOST, Records
from flask_contentapi import (
    Backend,
    ChildObject,
    Children,
    ContentAPI,
    Document,
    Image,
    Page,
    PageURLs,
    Related,
    RichText,
    Tags,
)
from flask_contentapi.sites import Site
from flask_contentapi_memory import MemoryBackend

__all__ = ["HOST", "TYPES", "create_app"]


class HomePage(Page):
    """The home page of a language."""


class SectionPage(Page):
    """A department, such as science."""


class TopicPage(Page):
    """The parent of the articles on a topic."""


class Link(ChildObject):
    title = fields.String()
    url = fields.Url()

    api_fields = ["title", "url"]


class ArticlePage(Page):
    date = fields.Date()
    intro = fields.String()
    body = RichText()
    photo = Related("images")
    attachment = Related("documents")
    see_also = Related("pages")
    tags = Tags()
    links = Children(Link)

    search_fields = ["intro", "body"]
    api_fields = ["date", "intro", "body", "photo", "attachment", "see_also", "tags", "links"]


class Photo(Image):
    """A picture."""


class Paper(Document):
    """A file to download."""


TYPES = [HomePage, SectionPage, TopicPage, ArticlePage, Photo, Paper]


class LanguageFirst(PageURLs):
    """Addresses that start with the language."""

    def build(self, site: Site, locale: str | None, path: str) -> str | None:
        return super().build(site, locale, f"/{locale}{path}")

    def resolve(self, site: Site, locale: str | None, html_path: str) -> tuple[str | None, str]:
        first, _, rest = html_path.strip("/").partition("/")
        return first or locale, rest


def create_app(address: str, folder: str = "") -> Flask:
    """The site.

    :param address: the value of ``CMSAPI_BACKEND``.
    :param folder: the folder with the records, for the memory backend.
    """
    app = Flask(__name__)
    # Without a maximum, all matches of a search can be requested at once and compared. Answers are
    # not cached, so that making them is measured, unless the environment says otherwise.
    app.config.update(CMSAPI_BACKEND=address, CMSAPI_LIMIT_MAX=None, CMS_I18N_ENABLED=True)
    app.config.update(CMSAPI_CACHE_SIZE=0)
    app.config.from_prefixed_env()
    backend: Backend | None = None
    if folder:
        backend = MemoryBackend(Records(Path(folder)))
    ContentAPI(app, types=TYPES, backend=backend, page_urls=LanguageFirst())
    return app

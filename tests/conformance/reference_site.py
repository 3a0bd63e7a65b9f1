"""The site to which the recorded requests in ``cases.jsonl`` were sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Flask
from marshmallow import fields

import flask_contentapi as contentapi
from flask_contentapi import (
    APIField,
    Blocks,
    ChildObject,
    Children,
    ContentAPI,
    Document,
    Image,
    Redirect,
    Related,
    RichText,
    Tags,
)
from tests.stores import take_store


class Page(contentapi.Page):
    """The base of all page types, with the label that the requests use."""

    app_label = "wagtailcore"


class HomePage(Page):
    app_label = "home"
    strapline = fields.String()
    hero = Related("images")
    api_fields = ["strapline", "hero"]


class BlogIndexPage(Page):
    app_label = "blog"
    intro = RichText()
    api_fields = ["intro"]


class BlogPageAuthor(ChildObject):
    app_label = "blog"
    name = fields.String()
    portrait = Related("images")
    secret = fields.String()
    api_fields = ["name", "portrait"]


class BlogPageRelatedLink(ChildObject):
    app_label = "blog"
    title = fields.String()
    url = fields.String()
    link_page = Related("pages")
    link_document = Related("documents")
    api_fields = ["title", "url", "link_page", "link_document"]


class BlogPage(Page):
    app_label = "blog"
    published_date = fields.Date()
    intro = fields.String()
    body = RichText()
    feed_image = Related("images")
    featured = fields.Boolean()
    reading_minutes = fields.Integer()
    rating = fields.Decimal(places=2)
    private_note = fields.String()
    tags = Tags()
    authors = Children(BlogPageAuthor)
    related_links = Children(BlogPageRelatedLink)

    search_fields = ["intro", "body"]
    api_fields = [
        "published_date",
        APIField("published_date_display", fields.Date(format="%d %B %Y"), source="published_date"),
        "intro",
        "body",
        "feed_image",
        "featured",
        "reading_minutes",
        "rating",
        "tags",
        "authors",
        "related_links",
        APIField("shout", fields.Function(lambda page: page.title.upper()), needs=["title"]),
    ]


class EventIndexPage(Page):
    app_label = "events"


class EventGalleryItem(ChildObject):
    app_label = "events"
    image = Related("images")
    caption = fields.String()
    api_fields = ["image", "caption"]


class EventPage(Page):
    app_label = "events"
    starts_at = fields.DateTime()
    ends_at = fields.DateTime()
    opens = fields.Time()
    venue = fields.String()
    capacity = fields.Integer()
    price = fields.Float()
    website = fields.String()
    programme = Related("documents")
    gallery = Children(EventGalleryItem)

    search_fields = ["venue"]
    api_fields = [
        "starts_at",
        "ends_at",
        "opens",
        "venue",
        "capacity",
        "price",
        "website",
        "programme",
        "gallery",
    ]


class StandardPage(Page):
    app_label = "standard"
    body = Blocks()
    banner = Related("images")
    api_fields = ["body", "banner"]


class SecretPage(Page):
    app_label = "standard"
    note = fields.String()


class TrailPage(Page):
    app_label = "guide"
    grade = fields.Integer()
    stops = fields.List(Related("pages"))
    photos = fields.List(Related("images"))
    lead = Related("pages")
    api_fields = ["grade", "stops", "photos", "lead"]


class Picture(Image):
    app_label = "media"
    credit = fields.String()
    internal_note = fields.String()
    api_fields = ["credit"]


class Paper(Document):
    app_label = "media"
    summary = fields.String()
    pages_count = fields.Integer()
    api_fields = ["summary", "pages_count"]


TYPES = (
    Page,
    HomePage,
    BlogIndexPage,
    BlogPage,
    EventIndexPage,
    EventPage,
    StandardPage,
    SecretPage,
    TrailPage,
    Picture,
    Paper,
    Redirect,
)


def create_app(content: Mapping[str, Any], backend: str, config: Mapping[str, Any]) -> Flask:
    """The site, with content that is loaded into an empty store.

    :param content: content records.
    :param backend: the name of the store.
    :param config: configuration of the application.
    """
    app = Flask(__name__)
    store = take_store(backend, TYPES)
    app.config.update(CMSAPI_BACKEND=store.address, **config)
    api = ContentAPI(app, types=TYPES)
    with app.app_context():
        store.lend(api.backend)
        api.backend.load(content)
    return app

"""The content types of the site: each class is a type of object that the API serves."""

from __future__ import annotations

from typing import Any

from marshmallow import fields, validate

from flask_contentapi import (
    APIField,
    Blocks,
    ChildObject,
    Children,
    Document,
    Entry,
    Image,
    Page,
    Redirect,
    Related,
    RichText,
    Tags,
)

#: The fields that are shown of a page that another one links to.
LINK = "_,id,type,detail_url,html_url,title"
WORDS_A_MINUTE = 150


class Picture(Image):
    """A picture with its credit and a German title, embedded with its renditions."""

    title_de = fields.String()
    credit = fields.String()

    search_fields = ["title_de"]
    api_fields = ["title_de", "credit"]
    nested_default_fields = [
        *Image.nested_default_fields,
        "width",
        "height",
        "renditions",
        "title_de",
        "credit",
    ]


class Paper(Document):
    """A document with a summary."""

    title_de = fields.String()
    summary = fields.String()
    summary_de = fields.String()

    search_fields = ["title_de", "summary", "summary_de"]
    api_fields = ["title_de", "summary", "summary_de"]
    nested_default_fields = [*Document.nested_default_fields, "title_de", "summary", "summary_de"]


class Apple(Entry):
    """A variety that grows in the orchard, served at its own endpoint."""

    endpoint = "apples"

    name = fields.String(required=True)
    slug = fields.String(required=True)
    origin = fields.String()
    origin_de = fields.String()
    known_since = fields.Integer()
    picked = fields.Integer(validate=validate.Range(1, 12))
    keeps_until = fields.Integer(validate=validate.Range(1, 12))
    trees = fields.Integer()
    uses = Tags()
    taste = fields.String()
    taste_de = fields.String()
    picture = Related("images")

    search_fields = ["name", "origin", "origin_de", "taste", "taste_de"]
    api_fields = [
        "name",
        "slug",
        "origin",
        "origin_de",
        "known_since",
        "picked",
        "keeps_until",
        "trees",
        "uses",
        "taste",
        "taste_de",
        "picture",
    ]
    listing_default_fields = [*Entry.listing_default_fields, "name", "slug", "picked", "picture"]
    nested_default_fields = listing_default_fields


class Figure(ChildObject):
    """A number to be proud of."""

    number = fields.String()
    label = fields.String()

    api_fields = ["number", "label"]


class RelatedLink(ChildObject):
    """A link to a page, a document or another site."""

    title = fields.String()
    page = Related("pages", shown=LINK)
    document = Related("documents")
    url = fields.Url()

    api_fields = ["title", "page", "document", "url"]


class HomePage(Page):
    """The home page of a language."""

    strapline = fields.String()
    intro = RichText()
    hero = Related("images")
    figures = Children(Figure)
    address = fields.String()
    links = Children(RelatedLink)

    search_fields = ["intro"]
    api_fields = ["strapline", "intro", "hero", "figures", "address", "links"]


class StandardPage(Page):
    """A page made of blocks."""

    intro = fields.String()
    banner = Related("images")
    body = Blocks(
        {
            "picture": Related("images"),
            "document": Related("documents"),
            "text": RichText(),
        }
    )

    search_fields = ["intro", "body"]
    api_fields = ["intro", "banner", "body"]


class ApplesPage(Page):
    """The list of all apples."""

    intro = fields.String()

    api_fields = ["intro"]


class JournalPage(Page):
    """The list of all articles of a language."""

    intro = fields.String()

    api_fields = ["intro"]


class Author(ChildObject):
    name = fields.String()
    role = fields.String()

    api_fields = ["name", "role"]


def reading_minutes(article: Any) -> int:
    """How many minutes it takes to read an article; computed when it is requested."""
    return max(1, round(len(article.body.split()) / WORDS_A_MINUTE))


class ArticlePage(Page):
    """An entry of the journal."""

    published_date = fields.Date()
    intro = fields.String()
    body = RichText()
    feed_image = Related("images")
    authors = Children(Author)
    apple = Related("apples")
    tags = Tags()
    related_links = Children(RelatedLink)

    search_fields = ["intro", "body"]
    api_fields = [
        "published_date",
        APIField("reading_minutes", fields.Function(reading_minutes), needs=["body"]),
        "intro",
        "body",
        "feed_image",
        "authors",
        "apple",
        "tags",
        "related_links",
    ]


class EventsPage(Page):
    """The list of all events of a language."""

    intro = fields.String()

    api_fields = ["intro"]


class EventPage(Page):
    """An event to attend; times are local to the orchard."""

    day = fields.Date()
    begins = fields.Time()
    ends = fields.Time()
    place = fields.String()
    intro = fields.String()
    body = RichText()
    picture = Related("images")
    programme = Related("documents")

    search_fields = ["place", "intro", "body"]
    api_fields = ["day", "begins", "ends", "place", "intro", "body", "picture", "programme"]


TYPES = [
    Picture,
    Paper,
    Apple,
    HomePage,
    StandardPage,
    ApplesPage,
    JournalPage,
    ArticlePage,
    EventsPage,
    Redirect,
    EventPage,
]

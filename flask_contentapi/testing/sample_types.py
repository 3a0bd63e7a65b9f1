"""The types of the sample content: one of everything that can be declared."""

from __future__ import annotations

from marshmallow import fields

from flask_contentapi import (
    APIField,
    APIFilter,
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


class Caption(ChildObject):
    app_label = "museum"
    text = fields.String()
    photo = Related("images")
    room = Related("pages")
    remark = fields.String()
    sketches = fields.List(Related("images"))
    search_fields = ["text"]
    api_fields = ["text", "photo", "room", "sketches"]


class Room(Page):
    app_label = "museum"
    floor = fields.Integer()
    api_fields = ["floor"]


class Exhibit(Page):
    """Has a field of every kind."""

    app_label = "museum"
    story = fields.String()
    panel = RichText()
    number = fields.Integer()
    weight = fields.Float()
    price = fields.Decimal(places=2)
    ratio = fields.Decimal()
    on_loan = fields.Boolean()
    found_on = fields.Date()
    opens_at = fields.Time()
    cleaned_at = fields.DateTime()
    photo = Related("images")
    leaflet = Related("documents")
    twin = Related("pages")
    keeper = Related("people")
    beside = Related("pages", within_site=True)
    neighbours = fields.List(Related("pages"))
    views = fields.List(Related("images"))
    tags = Tags()
    captions = Children(Caption)
    body = Blocks({"photo": Related("images")})
    data = fields.Dict()
    remark = fields.String()

    search_fields = ["story", "panel", "tags", "captions", "body"]
    api_fields = [
        *"story panel number weight price ratio on_loan found_on opens_at cleaned_at".split(),
        *"photo leaflet twin keeper beside neighbours views tags captions body data".split(),
        APIField("year", fields.Date(format="%Y"), source="found_on"),
    ]
    api_filters = [
        APIFilter("found_since", "found_on", "ge"),
        APIFilter("remark_from", "remark", "ge"),
    ]


class Lent:
    """A mixin that gives the columns of a derived type other places."""

    lender = fields.String()


class Loan(Exhibit, Lent):
    app_label = "museum"
    api_fields = [*Exhibit.api_fields, "lender"]


class Photo(Image):
    app_label = "museum"
    photographer = fields.String()
    api_fields = ["photographer"]


class Scan(Photo):
    app_label = "museum"
    resolution = fields.Integer()
    api_fields = [*Photo.api_fields, "resolution"]


class Leaflet(Document):
    app_label = "museum"
    summary = fields.String()
    search_fields = ["summary"]
    api_fields = ["summary"]


class Person(Entry):
    app_label = "museum"
    endpoint = "people"
    name = fields.String(required=True)
    born = fields.Date()
    portrait = Related("images")
    mentor = Related("people")
    search_fields = ["name"]
    api_fields = ["name", "born", "portrait", "mentor"]


TYPES = (Room, Exhibit, Loan, Photo, Scan, Leaflet, Person, Redirect)

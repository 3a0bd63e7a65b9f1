"""A mapping that does not fit stops the start of the site with a message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import peewee
import pytest
from flask import Flask
from marshmallow import fields

from flask_contentapi import (
    ChildObject,
    Children,
    ContentAPI,
    DeclarationError,
    Entry,
    Image,
    Page,
    Related,
    Tags,
)
from flask_contentapi_peewee import ChildRows, MappedModel, PeeweeBackend, TagRows


class Word(peewee.Model):
    text = peewee.CharField()


class Shelf(peewee.Model):
    id = peewee.AutoField()
    title = peewee.CharField()
    slug = peewee.CharField(unique=True)
    up = peewee.ForeignKeyField("self", null=True)


class Book(peewee.Model):
    id = peewee.AutoField()
    name = peewee.CharField()
    slug = peewee.CharField()
    printed = peewee.DateField()
    shelf = peewee.ForeignKeyField(Shelf)
    shelf_slug = peewee.ForeignKeyField(Shelf, field="slug")
    sequel = peewee.ForeignKeyField("self", null=True)
    words = peewee.ManyToManyField(Word)


class Leaf(peewee.Model):
    book = peewee.ForeignKeyField(Book)
    number = peewee.IntegerField()


class Loan(peewee.Model):
    isbn = peewee.CharField(primary_key=True)
    title = peewee.CharField()
    slug = peewee.CharField()


class Pair(peewee.Model):
    book = peewee.ForeignKeyField(Book)
    word = peewee.ForeignKeyField(Word)

    class Meta:
        primary_key = peewee.CompositeKey("book", "word")


class LeafObject(ChildObject):
    number = fields.Integer(required=True)


class ShelfPage(Page):
    pass


class BookPage(Page):
    printed = fields.Date()
    number = fields.Integer()
    sequel = Related("pages")
    cover = Related("images")
    words = Tags()
    leaves = Children(LeafObject)


class Cover(Image):
    pass


class Lent(Entry):
    endpoint = "loans"


TYPES = (ShelfPage, BookPage, Cover, Lent)
#: The minimal mapping of a book.
BOOK = {"title": Book.name, "parent": 1}
SHELF = {"parent": Shelf.up}


def book(columns: Any = None, **options: Any) -> MappedModel:
    """Books as pages, mapped correctly except for the arguments."""
    return MappedModel(BookPage, Book, {**BOOK, **(columns or {})}, **options)


def shelf(**options: Any) -> MappedModel:
    """Shelves as pages."""
    return MappedModel(ShelfPage, Shelf, SHELF, **{"under": 1, **options})


def start(*models: MappedModel, types: Any = TYPES) -> None:
    """Starts a site."""
    backend = PeeweeBackend.on(peewee.SqliteDatabase(":memory:"), models)
    ContentAPI(Flask("site"), types=types, backend=backend)


def test_a_mapping_that_fits_starts() -> None:
    many = {
        "words": TagRows(Book.words, Word.text),
        "leaves": ChildRows(Leaf.book, sort=Leaf.number),
        "parent": Book.shelf,
        "live": Book.name != "",
        "number": peewee.fn.LENGTH(Book.name),
    }
    start(book(many, ids_from=1000, where=Book.name != "", version=Book.id), shelf())


WRONG: dict[str, tuple[Callable[[], list[MappedModel]], str]] = {
    "a type that is not declared": (
        lambda: [MappedModel(Page, Book, BOOK)],
        r"MappedModel\(Page, Book\): the type is not among the declared types",
    ),
    "a type twice": (
        lambda: [book(), MappedModel(BookPage, Shelf, {"parent": 1})],
        r"MappedModel\(BookPage, Shelf\): the type is mapped to another model already",
    ),
    "a key that is no integer": (
        lambda: [MappedModel(Lent, Loan)],
        r"primary key of Loan must be one column of integers, but it is Loan\.isbn",
    ),
    "a key of two columns": (
        lambda: [MappedModel(Lent, Pair)],
        r"primary key of Pair must be one column of integers, but it is Pair\.book, Pair\.word",
    ),
    "ids from a text": (lambda: [book(ids_from="9")], "ids_from must be an integer, 0 or more"),
    "ids from below": (lambda: [book(ids_from=-1)], "ids_from must be an integer, 0 or more"),
    "a condition that is none": (lambda: [book(where=True)], "where must be a condition, not True"),
    "a version that is none": (
        lambda: [book(version="changed")],
        "version must be a column, True or False, not 'changed'",
    ),
    "another model's version": (
        lambda: [book(version=Shelf.id)],
        r"version is made of Shelf\.id, which is no column of Book",
    ),
    "no such field": (
        lambda: [book({"titel": Book.name})],
        r"BookPage\.titel is no field that can be mapped.*title",
    ),
    "the id": (lambda: [book({"id": Book.id})], r"BookPage\.id is no field that can be mapped"),
    "a restriction": (
        lambda: [book({"restriction": {"type": "login"}})],
        r"BookPage\.restriction cannot be mapped; restrict the page",
    ),
    "no title": (
        lambda: [MappedModel(BookPage, Book, {"parent": 1})],
        r"BookPage\.title is missing",
    ),
    "a constant that does not fit": (
        lambda: [book({"number": "many"})],
        r"BookPage\.number must be an integer",
    ),
    "another model's column": (
        lambda: [book({"title": Shelf.title})],
        r"BookPage\.title is made of Shelf\.title, which is no column of Book",
    ),
    "another model's column in an expression": (
        lambda: [book({"live": peewee.fn.LENGTH(Shelf.title) > 1})],
        r"BookPage\.live is made of Shelf\.title, which is no column of Book",
    ),
    "a column of another kind": (
        lambda: [book({"number": Book.printed})],
        r"BookPage\.number is a integer, which the DateField printed does not hold",
    ),
    "a relation to what is not mapped": (
        lambda: [book({"cover": Book.shelf}), shelf()],
        r"BookPage\.cover is shelf, which points to Shelf, but that is not mapped to a type of "
        "images",
    ),
    "a relation by another column": (
        lambda: [book({"sequel": Book.shelf_slug}), shelf()],
        r"BookPage\.sequel is shelf_slug, which does not have the ids of Shelf",
    ),
    "no parent": (
        lambda: [MappedModel(BookPage, Book, {"title": Book.name})],
        r"BookPage\.parent must be the id of a page .* but it is None",
    ),
    "two parents": (lambda: [book(under=2)], r"BookPage\.parent must be the id of a page"),
    "a parent that is not mapped": (
        lambda: [book({"parent": Book.shelf})],
        r"BookPage\.parent is shelf, which points to Shelf, but that is not mapped",
    ),
    "a parent of another model": (
        lambda: [book({"parent": Shelf.up}), shelf()],
        r"BookPage\.parent is made of Shelf\.up, which is no column of Book",
    ),
    "nothing to be under": (
        lambda: [shelf(under=None)],
        r"ShelfPage\.parent is up, which is null for the first pages of all; give as under=",
    ),
    "tags that are a column": (
        lambda: [book({"words": Book.name})],
        r"BookPage\.words must be TagRows\(\.\.\.\)",
    ),
    "a column that is tags": (
        lambda: [book({"number": TagRows(Book.words, Word.text)})],
        r"BookPage\.number must be a column or a constant",
    ),
    "tags without a text": (
        lambda: [book({"words": TagRows(Book.words, cast(Any, Word))})],
        r"BookPage\.words: tag must be the column with the tag's text",
    ),
    "tags of another model": (
        lambda: [book({"words": TagRows(Leaf.number, Word.text)})],
        r"BookPage\.words: owner must be what points to Book",
    ),
    "tags that are elsewhere": (
        lambda: [book({"words": TagRows(Leaf.book, Word.text)})],
        r"BookPage\.words: Word, which has the tags, is not what Leaf points to",
    ),
    "child objects that are a column": (
        lambda: [book({"leaves": Leaf.book})],
        r"BookPage\.leaves must be ChildRows\(\.\.\.\)",
    ),
    "child objects of another model": (
        lambda: [book({"leaves": ChildRows(Book.shelf)})],
        r"BookPage\.leaves: owner must be what points to Book",
    ),
    "a child object's field": (
        lambda: [book({"leaves": ChildRows(Leaf.book, {"page": Leaf.number})})],
        r"LeafObject\.page is no field that can be mapped",
    ),
    "a child object's column": (
        lambda: [book({"leaves": ChildRows(Leaf.book, {"number": Book.id})})],
        r"LeafObject\.number is made of Book\.id, which is no column of Leaf",
    ),
    "another model's sort": (
        lambda: [book({"leaves": ChildRows(Leaf.book, sort=Book.id)})],
        r"BookPage\.leaves is made of Book\.id, which is no column of Leaf",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_mapping_that_does_not_fit_is_refused(what: str) -> None:
    make, message = WRONG[what]
    with pytest.raises(DeclarationError, match=message):
        start(*make())


class First(Page):
    pass


class Second(Page):
    pass


class One(peewee.Model):
    title = peewee.CharField()
    slug = peewee.CharField()
    other = peewee.DeferredForeignKey("Two", null=True)


class Two(peewee.Model):
    title = peewee.CharField()
    slug = peewee.CharField()
    other = peewee.ForeignKeyField(One, null=True)


def test_parents_that_go_round_are_refused() -> None:
    models = [
        MappedModel(First, One, {"parent": One.other}, under=1),
        MappedModel(Second, Two, {"parent": Two.other}, under=1),
    ]
    with pytest.raises(DeclarationError, match="the parents go round in a circle"):
        start(*models, types=[First, Second])


def test_a_parent_that_is_mapped_twice_is_refused() -> None:
    models = [
        MappedModel(First, One, {"parent": 1}),
        MappedModel(BookPage, One, {"parent": 1}, ids_from=1000),
        MappedModel(Second, Two, {"parent": Two.other}),
    ]
    with pytest.raises(DeclarationError, match="One is mapped with different ids_from"):
        start(*models, types=[First, Second, BookPage])
    models[1].ids_from = 0
    with pytest.raises(DeclarationError, match="One, which is mapped more than once"):
        start(*models, types=[First, Second, BookPage])

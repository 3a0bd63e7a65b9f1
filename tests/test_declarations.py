"""Every mistake in a declaration is an error at start-up that names the class and attribute."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask
from marshmallow import Schema, fields

from flask_contentapi import (
    APIField,
    APIFilter,
    Blocks,
    ChildObject,
    Children,
    ContentAPI,
    DeclarationError,
    Document,
    Entry,
    Image,
    Page,
    Related,
    RichText,
    Tags,
)


def mistake(*types: Any) -> str:
    """The message of the error that refuses some types."""
    app = Flask("site")
    with pytest.raises(DeclarationError) as raised:
        ContentAPI(app, types=types)
    assert "contentapi" not in app.blueprints
    return str(raised.value)


def page_with(**attributes: Any) -> type[Page]:
    """A page type ``News`` with attributes."""
    return type("News", (Page,), {"app_label": "news", **attributes})


def child_with(**attributes: Any) -> type[ChildObject]:
    """A child object type ``Part`` with attributes."""
    return type("Part", (ChildObject,), {"app_label": "news", **attributes})


def person_with(**attributes: Any) -> type[Entry]:
    """A type ``Person`` with attributes, at its own endpoint."""
    return type("Person", (Entry,), {"app_label": "staff", "endpoint": "people", **attributes})


TEXT = fields.String()


# The list of types.


@pytest.mark.parametrize(
    "wrong", [None, 5, "Page", object, Flask, Page(id=1), fields.String, Entry()]
)
def test_types_are_classes_of_content(wrong: Any) -> None:
    assert mistake(page_with(), wrong).startswith(f"types has {wrong!r}")


def test_child_objects_are_no_types_of_their_own() -> None:
    assert "Part" in mistake(child_with())


@pytest.mark.parametrize("endpoint", [None, "", 5, "a/b", "two words", "a-b", "1st", TEXT])
def test_endpoints_have_a_name(endpoint: Any) -> None:
    assert mistake(person_with(endpoint=endpoint)).startswith("Person.endpoint ")


def test_an_entry_without_an_endpoint_is_refused() -> None:
    assert mistake(type("Person", (Entry,), {})).startswith("Person.endpoint is None")


@pytest.mark.parametrize("endpoint", ["sites", "locales", "collections"])
def test_endpoints_are_no_other_sections_of_records(endpoint: str) -> None:
    assert mistake(person_with(endpoint=endpoint)).startswith(f"Person.endpoint is {endpoint!r}")


def test_pages_are_served_at_one_endpoint() -> None:
    assert mistake(page_with(endpoint="news")).startswith("News.endpoint is 'news'")
    assert mistake(page_with(endpoint="news"), type("Other", (Page,), {})).startswith(
        "News.endpoint"
    )


def test_types_of_an_endpoint_share_a_base_class_there() -> None:
    message = mistake(person_with(), type("Robot", (Entry,), {"endpoint": "people"}))
    assert "Person and Robot" in message
    assert "'people'" in message
    assert "'pages'" in mistake(person_with(endpoint="pages"))
    assert "'images'" in mistake(person_with(endpoint="images"))
    assert "'documents'" in mistake(type("Photo", (Image,), {"endpoint": "documents"}))


def test_labels_are_given_once() -> None:
    again = type("News", (Page,), {"app_label": "news"})
    assert "news.News" in mistake(page_with(), again)
    assert "news.NEWS" in mistake(page_with(), type("NEWS", (Page,), {"app_label": "news"}))
    assert "staff.Person" in mistake(
        person_with(), type("Person", (Document,), {"app_label": "staff"})
    )
    assert "news.News" in mistake(page_with(), page_with())


def test_a_class_stands_in_the_list_once() -> None:
    news = page_with()
    assert mistake(news, news) == "types has News twice."


def test_labels_differ_in_more_than_letter_case() -> None:
    message = mistake(page_with(), type("NEWS", (Page,), {"app_label": "news"}))
    assert message.startswith("NEWS has the label news.NEWS, but there is news.News already, and")
    assert "app_label" in message


# Attributes with wrong values.


@pytest.mark.parametrize("make", [page_with, person_with, child_with])
@pytest.mark.parametrize("wrong", ["text", None, 5])
@pytest.mark.parametrize("name", ["api_fields", "search_fields"])
def test_lists_are_lists(make: Any, wrong: Any, name: str) -> None:
    declared = make(text=TEXT, **{name: wrong})
    types = [page_with(parts=Children(declared))] if make is child_with else [declared]
    assert mistake(*types) == f"{declared.__name__}.{name} is {wrong!r}; it must be a list."


@pytest.mark.parametrize("name", ["api_filters", "listing_default_fields", "detail_only_fields"])
def test_further_lists_are_lists(name: str) -> None:
    assert mistake(page_with(**{name: "id"})) == f"News.{name} is 'id'; it must be a list."


def test_fields_have_brackets() -> None:
    mixin = type("Mixin", (), {"tags": Tags})
    assert mistake(page_with(fee=fields.Integer)) == "News.fee is a class; write fields.Integer()."
    assert mistake(type("News", (mixin, Page), {})) == "News.tags is a class; write Tags()."
    part = child_with(fee=fields.Integer)
    assert mistake(page_with(parts=Children(part))).startswith("Part.fee is a class")


@pytest.mark.parametrize(
    ("name", "value", "meant"),
    [
        ("api_feilds", ["text"], "api_fields"),
        ("api_filed", ["text"], "api_fields"),
        ("API_FIELDS", ["text"], "api_fields"),
        ("search_field", ("text",), "search_fields"),
        ("list_default_fields", ["id"], "listing_default_fields"),
        ("app_lable", "press", "app_label"),
    ],
)
def test_options_are_spelt_rightly(name: str, value: Any, meant: str) -> None:
    message = mistake(page_with(text=TEXT, **{name: value}))
    assert message.startswith(f"News.{name} is nothing that a type has. Did you mean {meant!r}")


# Names of fields.


@pytest.mark.parametrize(
    "name",
    [
        *("type", "meta", "Meta", "detail_url", "html_url", "download_url", "url_path"),
        *("api_fields", "search_fields", "app_label", "to_record", "declared_fields"),
        *("meta_fields", "body_fields", "listing_default_fields", "api_filters"),
    ],
)
def test_names_that_the_api_uses_itself_are_reserved(name: str) -> None:
    assert mistake(page_with(**{name: TEXT})).startswith(f"News.{name} ")


@pytest.mark.parametrize("name", ["type", "meta", "detail_url", "to_record", "api_fields"])
def test_names_are_reserved_in_child_objects_too(name: str) -> None:
    part = child_with(**{name: TEXT})
    assert mistake(page_with(parts=Children(part))).startswith(f"Part.{name} ")


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("id", fields.String()),
        ("title", fields.Integer()),
        ("slug", fields.Raw()),
        ("live", fields.String()),
        ("parent", fields.Integer()),
        ("first_published_at", fields.Date()),
        ("restriction", fields.Boolean()),
        ("translation_key", fields.List(fields.String())),
    ],
)
def test_built_in_fields_store_the_same_in_every_type(name: str, field: fields.Field[Any]) -> None:
    assert mistake(page_with(**{name: field})).startswith(f"News.{name} must store")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (fields.Integer(), fields.String()),
        (fields.Decimal(places=2), fields.Decimal(places=0)),
        (fields.UUID(), fields.IP()),
        (Related("pages"), Related("images")),
        (Related("pages"), fields.List(Related("pages"))),
        (fields.List(Related("pages")), fields.List(Related("images"))),
        (fields.List(Related("pages")), fields.List(fields.Integer())),
        (fields.Date(), fields.DateTime()),
    ],
)
def test_derived_types_store_what_those_above_do(
    first: fields.Field[Any], second: fields.Field[Any]
) -> None:
    above = page_with(extra=first)
    below = type("Local", (above,), {"extra": second})
    with pytest.raises(DeclarationError, match=r"^Local\.extra must store what it does in "):
        ContentAPI(Flask("site"), types=[above, below])
    ContentAPI(Flask("site"), types=[above, type("Local", (above,), {"extra": first})])


@pytest.mark.parametrize(("name", "field"), [("tags", fields.List(TEXT)), ("width", TEXT)])
def test_built_in_fields_of_images_store_the_same(name: str, field: fields.Field[Any]) -> None:
    assert mistake(type("Photo", (Image,), {name: field})).startswith(f"Photo.{name} must store")


@pytest.mark.parametrize("name", ["title", "slug", "live", "parent", "locale", "restriction"])
def test_no_type_goes_without_a_built_in_field(name: str) -> None:
    assert mistake(page_with(**{name: None})).startswith(f"News.{name} ")


@pytest.mark.parametrize("options", [{"data_key": "t"}, {"attribute": "t"}])
def test_other_names_are_given_in_api_fields(options: dict[str, Any]) -> None:
    message = mistake(page_with(text=fields.String(**options)))
    assert message.startswith("News.text has a data_key or an attribute")
    assert "APIField('<name>', source='text')" in message


@pytest.mark.parametrize(
    "field", [fields.Function(lambda page: 1), fields.Method("x"), fields.Constant(1)]
)
def test_computed_fields_are_not_stored(field: fields.Field[Any]) -> None:
    assert mistake(page_with(text=field)).startswith("News.text stores nothing")


@pytest.mark.parametrize("app_label", ["a,b", "a b", 5])
def test_labels_can_be_asked_for(app_label: Any) -> None:
    assert mistake(page_with(app_label=app_label)).startswith("News.app_label is ")


@pytest.mark.parametrize(
    "field",
    [
        fields.Nested("NoSuchSchema"),
        fields.List(fields.Nested(lambda: 5)),  # type: ignore[arg-type, return-value]
        fields.Dict(values=fields.Pluck(Schema.from_dict({"a": TEXT}), "b")),
    ],
)
def test_nested_schemas_can_be_made(field: fields.Field[Any]) -> None:
    assert mistake(page_with(extra=field)).startswith("News.extra nests a schema that cannot be")
    shown = APIField("more", field, source="title")
    assert "nests a schema that cannot be" in mistake(page_with(api_fields=[shown]))
    body = Blocks({"extra": field})
    assert mistake(page_with(body=body)).startswith("News.body['extra'] nests a schema")


def test_nested_schemas_are_made_at_the_start() -> None:
    def later() -> Schema:
        raise RuntimeError("not yet")

    message = mistake(page_with(extra=fields.Nested(later), api_fields=["extra"]))
    assert message == "News.extra nests a schema that cannot be made: not yet."


class Linked(Schema):
    page = Related("pages")


class Chain(Schema):
    page = Related("pages")
    more = fields.List(fields.Nested(lambda: Chain(exclude=["page"])))


class Either(fields.Field[Any]):
    def __init__(self, *others: fields.Field[Any]) -> None:
        super().__init__()
        self.others = others


class PageOf(Related):
    pass


#: Fields with a relation inside that nobody follows.
UNFOLLOWED = {
    "tuple": fields.Tuple((fields.Integer(), Related("pages"))),
    "values of a dictionary": fields.Dict(values=Related("pages")),
    "keys of a dictionary": fields.Dict(keys=Related("pages")),
    "list of lists": fields.List(fields.List(Related("pages"))),
    "relation of the site's own in a tuple": fields.Tuple((PageOf("pages"),)),
    "schema": fields.Nested(Linked),
    "schema by name": fields.Nested("Linked"),
    "schema by a function": fields.Nested(lambda: Linked()),
    "schema of a dictionary": fields.Nested({"page": Related("pages")}),
    "schemas": fields.Nested(Linked, many=True),
    "list of schemas": fields.List(fields.Nested(Linked)),
    "schema in a schema": fields.Nested({"inner": fields.Nested(Linked)}),
    "schema in itself": fields.Nested({"chain": fields.Nested(Chain)}),
    "part of a schema": fields.Pluck(Linked, "page"),
    "field of the site's own": Either(fields.String(), Related("pages")),
    "child objects in a list": fields.List(Children(child_with())),
    "blocks in a list": fields.List(Blocks({"page": Related("pages")})),
    "rich texts in a list": fields.List(RichText()),
    "rich texts in a dictionary": fields.Dict(values=RichText()),
    "rich text in a tuple": fields.Tuple((RichText(), fields.Integer())),
    "rich text in a schema": fields.Nested({"text": RichText()}),
    "rich text of a schema": fields.Pluck(Schema.from_dict({"text": RichText()}), "text"),
}


@pytest.mark.parametrize("field", UNFOLLOWED.values(), ids=UNFOLLOWED.keys())
def test_relations_that_nobody_follows_are_refused(field: fields.Field[Any]) -> None:
    followed = "where it would not be followed; "
    assert followed in mistake(page_with(extra=field))
    assert followed in mistake(page_with(parts=Children(child_with(extra=field))))
    assert followed in mistake(page_with(body=Blocks({"extra": field})))
    key = APIField("more", field, source="title")
    assert followed in mistake(page_with(api_fields=[key]))


def test_what_is_computed_is_no_rich_text() -> None:
    news = page_with(intro=lambda page: "", api_fields=[APIField("intro", RichText())])
    assert mistake(news) == (
        "News.api_fields has 'intro' as RichText, which is not followed in what is computed. Give "
        "fields.String(), or store the text."
    )


@pytest.mark.parametrize(
    "field",
    [
        *(Related("pages"), fields.List(Related("pages")), Children(child_with())),
        Blocks({"day": fields.Date()}),
    ],
    ids=["relation", "relation to many", "child objects", "blocks"],
)
def test_no_key_is_written_by_a_relation(field: fields.Field[Any]) -> None:
    message = mistake(page_with(api_fields=[APIField("more", field, source="title")]))
    assert message.startswith("News.api_fields['more'] has ")


@pytest.mark.parametrize(
    "field",
    [fields.List(Related("images")), Blocks({"image": Related("images")})],
    ids=["relation to many", "blocks"],
)
def test_a_block_has_one_relation_at_most(field: fields.Field[Any]) -> None:
    message = mistake(page_with(body=Blocks({"gallery": field})))
    assert message.startswith("News.body['gallery'] has ")


def test_what_is_refused_names_what_to_write() -> None:
    assert mistake(page_with(extra=UNFOLLOWED["tuple"])) == (
        "News.extra has Related where it would not be followed; a relation is a field of its own, "
        "Related(...), or fields.List(Related(...)) for one to many, in the class or in one of its "
        "child objects, or it represents a type of blocks."
    )


@pytest.mark.parametrize(
    "wrong", [5, "x", None, fields.String, fields.Method("x"), Children(child_with())]
)
def test_blocks_are_represented_by_fields_or_functions(wrong: Any) -> None:
    message = mistake(page_with(body=Blocks({"part": wrong})))
    assert message.startswith("News.body['part'] is ")
    assert message.endswith("it must be a field, as fields.Date(), or a function.")


@pytest.mark.parametrize(
    "wrong", ["text", APIFilter("a b", "text", "ge"), APIFilter("", "id", "ge")]
)
def test_filters_are_named(wrong: Any) -> None:
    assert mistake(page_with(text=TEXT, api_filters=[wrong])).startswith("News.api_filters has ")


def test_what_computes_is_there() -> None:
    key = APIField("more", fields.Function())
    assert "with a Function without a function" in mistake(page_with(api_fields=[key]))
    source: Any = ["title"]
    key = APIField("more", source=source)
    assert "with the source ['title']" in mistake(page_with(api_fields=[key]))


def test_what_is_computed_needs_a_field_that_writes_it() -> None:
    shout = property(lambda page: page.title.upper())
    message = mistake(page_with(shout=shout, api_fields=["shout"]))
    assert message.startswith("News.api_fields has 'shout', which needs a field that writes it.")
    assert "APIField('shout', fields.String(), source='shout')" in message


def test_a_derived_type_has_all_fields_of_the_one_above() -> None:
    above = page_with(extra=TEXT)
    below = type("Local", (above,), {"extra": None})
    assert mistake(above, below).startswith("Local.extra must store what it does in ")


# Relations and child objects.


def test_child_objects_have_no_default() -> None:
    message = mistake(page_with(parts=Children(child_with(), load_default=[{}])))
    assert message.startswith("News.parts has a default")


def test_pages_have_pages_above() -> None:
    assert mistake(page_with(parent=Related("images"))).startswith("News.parent must store ")


def test_what_relations_are_shown_with_is_a_text() -> None:
    shown: Any = ["title"]
    message = mistake(page_with(other=Related("pages", shown=shown)))
    assert message.startswith("News.other is always shown with ['title']; it must be a text")


@pytest.mark.parametrize(
    "target", ["people", "page", "", Entry, ChildObject, person_with(), None, 5, Page(id=1)]
)
def test_relations_point_to_what_is_served(target: Any) -> None:
    wrong = Related(target)
    if isinstance(target, Page):
        return
    assert mistake(page_with(other=wrong)).startswith("News.other is a relation to")
    assert mistake(page_with(others=fields.List(wrong))).startswith("News.others is a relation to")
    assert mistake(page_with(parts=Children(child_with(other=wrong)))).startswith("Part.other ")
    assert mistake(page_with(body=Blocks({"other": wrong}))).startswith("News.body['other'] ")


@pytest.mark.parametrize(
    "shown", ["title,", "nothing", "_,-title", "hero(title)", "parent", "-x", "tags(x)"]
)
def test_relations_are_shown_with_fields_that_are_there(shown: str) -> None:
    message = mistake(page_with(hero=Related("images", shown=shown), api_fields=["hero"]))
    assert message.startswith("News.hero is always shown with")


def test_fields_in_brackets_are_checked_as_well() -> None:
    person = person_with(boss=Related("people"), api_fields=["boss"])
    for shown, wrong in (("boss(id)", False), ("boss(boss(id))", False), ("boss(boss(x))", True)):
        news = page_with(author=Related("people", shown=shown), api_fields=["author"])
        if wrong:
            assert mistake(news, person).startswith("News.author is always shown with")
        else:
            ContentAPI(Flask("site"), types=[news, person])


def test_what_is_always_shown_can_be_answered() -> None:
    related = Related("pages", shown="children(children(children))")
    message = mistake(page_with(related=related, api_fields=["related"]))
    assert message.startswith("News cannot be shown: fields has children inside children")


def test_embedded_objects_do_not_bring_themselves_again() -> None:
    own = {"boss": Related("people"), "api_fields": ["boss"]}
    message = mistake(person_with(**own, nested_default_fields=["boss"]))
    assert message.startswith("Person.boss always brings itself again")
    shown = {"boss": Related("people", shown="_,boss"), "api_fields": ["boss"]}
    assert mistake(person_with(**shown)).startswith("Person.boss always brings itself again")
    body = Blocks({"person": Related("people")})
    message = mistake(person_with(body=body, api_fields=["body"], nested_default_fields=["body"]))
    assert message.startswith("Person.body always brings itself again")
    body = Blocks({"person": Related("people", shown="_,body")})
    assert mistake(person_with(body=body, api_fields=["body"])).startswith("Person.body always")
    ContentAPI(Flask("site"), types=[person_with(**own)])


@pytest.mark.parametrize("child", [Page, Entry, fields.String, "Part", None, 5])
def test_children_are_child_objects(child: Any) -> None:
    assert mistake(page_with(parts=Children(child))).startswith("News.parts must be given")


def test_children_have_no_children() -> None:
    outer = child_with(inner=Children(type("Inner", (ChildObject,), {})))
    assert mistake(page_with(parts=Children(outer))).startswith("Part.inner nests child objects")


def test_children_have_no_tags() -> None:
    assert mistake(page_with(parts=Children(child_with(tags=Tags())))).startswith(
        "Part.tags are tags"
    )


def test_labels_of_children_are_given_once() -> None:
    news = page_with(parts=Children(child_with()), others=Children(child_with()))
    assert mistake(news).startswith("News.others has children of a second type labelled news.Part")


# Exported fields.


@pytest.mark.parametrize("make", [page_with, person_with, child_with])
@pytest.mark.parametrize(
    "entry",
    [
        "txet",
        "",
        5,
        None,
        APIField("x"),
        APIField("x", source="txet"),
        APIField("x", fields.String(), source="txet"),
        APIField("x", fields.String()),
    ],
)
def test_what_is_shown_is_declared(make: Any, entry: Any) -> None:
    declared = make(text=TEXT, api_fields=["text", entry])
    types = [page_with(parts=Children(declared))] if make is child_with else [declared]
    assert mistake(*types).startswith(f"{declared.__name__}.api_fields has ")


def test_a_near_miss_is_suggested() -> None:
    assert "'text'" in mistake(page_with(text=TEXT, api_fields=["txet"]))
    assert "'text'" in mistake(page_with(text=TEXT, api_filters=[APIFilter("a", "txet", "ge")]))


@pytest.mark.parametrize("field", [fields.String, "text", 5])
def test_what_writes_a_key_is_a_field(field: Any) -> None:
    news = page_with(text=TEXT, api_fields=[APIField("x", field, source="text")])
    assert mistake(news).startswith("News.api_fields has 'x'")


@pytest.mark.parametrize(
    "stored",
    [Children(child_with(text=TEXT)), Blocks({"page": Related("pages")})],
    ids=["child objects", "blocks with relations"],
)
def test_no_other_field_writes_what_embeds_objects(stored: Any) -> None:
    news = page_with(parts=stored, api_fields=[APIField("x", fields.Raw(), source="parts")])
    assert mistake(news) == (
        "News.api_fields has 'x', whose field would also write what may be hidden in 'parts'. "
        "Leave the field out, or compute the value with fields.Function."
    )


@pytest.mark.parametrize(
    "name", ["id", "title", "slug", "type", "html_url", "parent", "meta", "text"]
)
def test_keys_are_shown_once(name: str) -> None:
    news = page_with(text=TEXT, api_fields=["text", APIField(name, source="text")])
    assert mistake(news) == f"News.api_fields has {name!r}, which the API shows already."


@pytest.mark.parametrize("name", ["two words", "a-b", "a.b", "1st", "a,b", "*"])
def test_keys_are_names_that_fields_can_say(name: str) -> None:
    news = page_with(text=TEXT, api_fields=[APIField(name, source="text")])
    said = f"News.api_fields has {name!r}; a key of an answer is a name, as Python has them."
    assert mistake(news) == said


@pytest.mark.parametrize(
    "name", ["limit", "offset", "order", "search", "fields", "site", "child_of", "_"]
)
def test_keys_are_not_named_as_parameters(name: str) -> None:
    message = mistake(page_with(**{name: TEXT}, api_fields=[name]))
    assert message.startswith(f"News.api_fields shows {name!r}, which is a query parameter")
    message = mistake(page_with(text=TEXT, api_fields=[APIField(name, source="text")]))
    assert "source='text'" in message


def test_a_field_named_as_a_parameter_can_be_stored_and_renamed() -> None:
    news = page_with(limit=TEXT, api_fields=[APIField("upper_limit", source="limit")])
    ContentAPI(Flask("site"), types=[news])


@pytest.mark.parametrize("field", [fields.Method("x"), fields.Method("x", deserialize="y")])
def test_methods_are_given_as_a_source(field: fields.Field[Any]) -> None:
    message = mistake(page_with(api_fields=[APIField("x", field)]))
    assert message.startswith("News.api_fields has 'x' as a Method")


@pytest.mark.parametrize("needs", [["txet"], ["text", "x"], ["type"], "title"])
def test_needs_are_stored_fields(needs: Any) -> None:
    shout = APIField("shout", fields.Function(lambda page: page.text), needs=needs)
    message = mistake(page_with(text=TEXT, api_fields=[shout]))
    assert message.startswith("News.api_fields has 'shout', which needs ")


@pytest.mark.parametrize(
    "attribute",
    [
        "listing_default_fields",
        "nested_default_fields",
        "detail_only_fields",
        "i18n_default_fields",
    ],
)
def test_default_fields_are_shown(attribute: str) -> None:
    message = mistake(person_with(name=TEXT, **{attribute: ["id", "name"]}))
    assert message == f"Person.{attribute} has 'name', which is not shown."


# Searched and filtered fields.


@pytest.mark.parametrize(
    "name", ["xyz", "number", "day", "flag", "picture", "shown", "id", "live", "parent", ""]
)
def test_what_is_searched_holds_text(name: str) -> None:
    news = page_with(
        text=TEXT,
        number=fields.Integer(),
        day=fields.Date(),
        flag=fields.Boolean(),
        picture=Related("images"),
        search_fields=["text", name],
        api_fields=[APIField("shown", source="text")],
    )
    assert mistake(news) == f"News.search_fields has {name!r}, which is no field that holds text."


@pytest.mark.parametrize(
    "field",
    [
        fields.List(fields.Integer()),
        fields.List(fields.Tuple((fields.Float(), fields.Boolean()))),
        fields.Dict(keys=TEXT, values=fields.List(fields.Date())),
        fields.List(Related("pages")),
    ],
)
def test_no_search_is_for_numbers_alone(field: fields.Field[Any]) -> None:
    message = mistake(page_with(extra=field, search_fields=["extra"]))
    assert message == "News.search_fields has 'extra', which is no field that holds text."


@pytest.mark.parametrize(
    "field",
    [
        *(fields.List(TEXT), fields.Dict(), fields.Dict(keys=fields.Integer()), fields.Raw()),
        fields.Tuple((fields.Integer(), fields.Dict(values=fields.UUID()))),
    ],
)
def test_whatever_can_hold_text_is_searched(field: fields.Field[Any]) -> None:
    ContentAPI(Flask("site"), types=[page_with(extra=field, search_fields=["extra"])])


def test_what_is_searched_is_looked_for_among_texts() -> None:
    def message(**own: Any) -> str:
        return mistake(page_with(**own, search_fields=["fe"]))

    assert message(fee=TEXT).endswith("text. Did you mean 'fee'?")
    assert message(fee=fields.Integer()).endswith("text.")


def test_what_is_compared_is_looked_for_among_single_values() -> None:
    def message(**own: Any) -> str:
        return mistake(page_with(**own, api_filters=[APIFilter("since", "fe", "ge")]))

    assert message(fee=TEXT).endswith("value. Did you mean 'fee'?")
    assert message(fee=Blocks()).endswith("value.")


def test_searched_children_have_searched_fields() -> None:
    news = page_with(parts=Children(child_with(text=TEXT)), search_fields=["parts"])
    assert mistake(news) == (
        "News.search_fields has 'parts', but Part has no search_fields, so nothing would be found; "
        "name its fields there."
    )


def test_what_is_searched_in_children_holds_text() -> None:
    part = child_with(number=fields.Integer(), search_fields=["number"])
    message = mistake(page_with(parts=Children(part), search_fields=["parts"]))
    assert message.startswith("Part.search_fields has 'number'")


@pytest.mark.parametrize("source", ["txet", "tags", "body", "data", "parts", "shown", ""])
def test_filters_compare_single_stored_values(source: str) -> None:
    news = page_with(
        text=TEXT,
        tags=Tags(),
        body=Blocks(),
        data=fields.Raw(),
        parts=Children(child_with()),
        api_fields=[APIField("shown", source="text")],
        api_filters=[APIFilter("since", source, "ge")],
    )
    assert mistake(news).startswith(f"News.api_filters compares {source!r}")


@pytest.mark.parametrize(
    "name", ["limit", "type", "title", "slug", "text", "locale", "_", "html_path"]
)
def test_filters_have_names_of_their_own(name: str) -> None:
    filters = [APIFilter(name, "text", "ge")]
    news = page_with(text=TEXT, api_fields=["text"], api_filters=filters)
    assert mistake(news) == f"News.api_filters has {name!r}, which is a parameter already."


def test_two_filters_have_two_names() -> None:
    filters = [APIFilter("since", "text", "ge"), APIFilter("since", "text", "le")]
    message = mistake(page_with(text=TEXT, api_filters=filters))
    assert message == "News.api_filters has 'since', which is a parameter already."


@pytest.mark.parametrize("operator", ["", "eq", ">=", "GE", None, "contains"])
def test_filters_have_an_operator_that_is_there(operator: Any) -> None:
    filters = [APIFilter("since", "text", operator)]
    message = mistake(page_with(text=TEXT, api_filters=filters))
    assert message.startswith("News.api_filters has 'since' with the operator")
    assert "lt, le, gt and ge" in message


@pytest.mark.parametrize("default", ["x", 5.5, [], object()])
def test_defaults_fit_their_field(default: Any) -> None:
    message = mistake(page_with(number=fields.Integer(load_default=default)))
    assert message.startswith("News.number ")


# Declarations that look wrong but are valid.


def test_ordinary_names_can_be_declared() -> None:
    names = "label name values items keys copy get context fields_ dump load endpoint_ body date"
    own = {name: fields.String() for name in names.split()}
    part = child_with(**own, api_fields=names.split())
    news = page_with(**own, parts=Children(part), api_fields=[*names.split(), "parts"])
    ContentAPI(Flask("site"), types=[news, person_with(**own, api_fields=names.split())])


def test_classes_can_have_more_than_fields() -> None:
    inner = type("Fee", (fields.Integer,), {})
    own = {"Fee": inner, "fee": inner(), "fee_fields": ["fee"], "label": "News", "search_fee": len}
    ContentAPI(Flask("site"), types=[page_with(**own, api_fields=["fee"])])


def test_built_in_fields_can_be_declared_anew() -> None:
    news = page_with(
        title=RichText(required=True),
        slug=fields.String(required=True),
        seo_title=fields.Email(),
        expires_at=fields.AwareDateTime(),
    )
    ContentAPI(Flask("site"), types=[news])

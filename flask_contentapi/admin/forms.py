"""Forms for content objects, made from the declared fields."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any

from flask_admin.form import BaseForm, Select2TagsField
from flask_admin.model.fields import InlineFieldList, InlineModelFormField
from flask_admin.model.widgets import AjaxSelect2Widget
from markupsafe import Markup
from marshmallow import fields, validate
from wtforms import BooleanField, Field, FieldList, Form, HiddenField
from wtforms.validators import InputRequired
from wtforms.widgets import HiddenInput, TextArea, TextInput, html_params

from flask_contentapi import kinds
from flask_contentapi.declarations import Column, ObjectType
from flask_contentapi.errors import Problem
from flask_contentapi.fields import Derived, RichText, itself
from flask_contentapi.query import Row
from flask_contentapi.types import Document, Image, Page, Redirect

#: The hidden field with the version that the form shows.
VERSION = "contentapi_version"
#: Arguments of forms, which no field can have the name of.
_ARGUMENTS = {"data", "extra_filters", "formdata", "meta", "obj", "prefix"}
#: An example of the rule that only some visitors may see a page.
_RESTRICTION = ', such as {"type": "login"}'
#: Texts of one line: those that the package declares, except for descriptions.
_LINES = {
    name
    for base in (Page, Image, Document, Redirect)
    for name in base.declared_fields()
    if "description" not in name
}


class ValueField(Field):
    """A stored value as text. What is sent unchanged leaves the value as it is, even what the text
    does not show of it, such as microseconds.

    :param read: gives the value for a text; raises a ValueError.
    :param show: gives the text for a value.
    """

    def __init__(
        self, read: Callable[[str], Any], show: Callable[[Any], str] = str, **options: Any
    ) -> None:
        super().__init__(**options)
        self._read, self._show = read, show

    def _value(self) -> str:
        if self.raw_data:
            return str(self.raw_data[0])
        return "" if self.data is None else self._show(self.data)

    def process_formdata(self, valuelist: Sequence[str]) -> None:
        """Reads the text that was sent."""
        if valuelist:
            self.data = self._read(valuelist[0]) if valuelist[0] else None
            stored = self.object_data
            if stored is not None and self.data == self._read(self._show(stored)):
                self.data = stored


class Choices:
    """The widget of a :class:`ChoiceField`. A stored value that is none of the choices is shown
    as well, and stays until another is chosen."""

    def __call__(self, field: Any, **options: Any) -> Markup:
        """The HTML."""
        present = field._value()
        choices = {**field.choices, present: field.choices.get(present, present)}
        option = Markup('<option value="{}">{}</option>')
        selected = Markup('<option value="{}" selected>{}</option>')
        shown = Markup("").join(
            (selected if text == present else option).format(text, label)
            for text, label in choices.items()
        )
        params = html_params(name=field.name, id=field.id, **options)
        escaped = Markup(params)  # noqa: S704 - html_params escapes
        return Markup("<select {}>{}</select>").format(escaped, shown)


class ChoiceField(ValueField):
    """One of some values.

    :param choices: the values, each with its label.
    """

    def __init__(self, choices: Iterable[tuple[Any, str]], **options: Any) -> None:
        known = [(str(value), value, label) for value, label in choices]
        values = {text: value for text, value, _ in known}
        super().__init__(lambda text: values.get(text, text), **{"widget": Choices(), **options})
        self.choices = {"": "", **{text: label for text, _, label in known}}


class RelationField(Field):
    """The id of an object, which is searched by its title.

    :param loader: finds the objects.
    :param many: whether there are several, in order.
    """

    separator = ","
    allow_blank = True

    def __init__(self, loader: Any, many: bool = False, **options: Any) -> None:
        super().__init__(widget=AjaxSelect2Widget(multiple=many), **options)
        self.loader, self._many = loader, many

    def process_formdata(self, valuelist: Sequence[str]) -> None:
        """Reads the ids that were sent."""
        texts = [text for text in ",".join(valuelist).split(",") if text not in ("", "__None")]
        try:
            ids = [int(text) for text in texts]
        except ValueError:
            raise ValueError("must be the id of an object") from None
        self.data = ids if self._many else next(iter(ids), None)


class TagsField(Select2TagsField):
    """A set of tags."""

    def __init__(self, **options: Any) -> None:
        super().__init__(save_as_list=True, **options)


class ChildForm(BaseForm):
    """The base of forms of child objects."""


def _text(text: str) -> str:
    # Browsers send each end of a line as two characters.
    return text.replace("\r\n", "\n")


def _json(text: str, example: str = "") -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"must be JSON{example}: {error}") from None


def _json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _instant(value: Any) -> str:
    return str(value.strftime("%H:%M:%S" if value.second else "%H:%M"))


def _moment(value: Any) -> str:
    return f"{value.date().isoformat()}T{_instant(value)}"


#: For each kind that is written in one line: the type of the input, and how a value is read and
#: shown.
_IN_A_LINE: tuple[tuple[type[kinds.Kind], str, Any, Callable[[Any], str]], ...] = (
    (kinds.Integer, "text", lambda kind: kinds.parse_integer, str),
    (kinds.Float, "text", lambda kind: kind.parse, repr),
    (kinds.Decimal, "text", lambda kind: kind.read, lambda value: format(value, "f")),
    (kinds.Date, "date", lambda kind: kind.read, lambda value: value.isoformat()),
    (kinds.Time, "time", lambda kind: kind.read, _instant),
    (kinds.DateTime, "datetime-local", lambda kind: kind.read, _moment),
)


def field_for(column: Column, loader: Callable[[str], Any], options: dict[str, Any]) -> Any:
    """The WTForms field for a declared one, unbound.

    :param loader: gives what searches the objects of an endpoint.
    :param options: its label and further arguments.
    """
    kind, declared = column.kind, column.field
    if column.child is not None:
        inner = form_class(ChildForm, column.child, loader, _labelled)
        return InlineFieldList(InlineModelFormField(inner, "id"), **options)
    if column.target is not None:
        return RelationField(loader(column.target.served_at.name), kind.many, **options)
    if isinstance(kind, kinds.Tags):
        return TagsField(**options)
    if (choices := _choices(declared)) is not None:
        return ChoiceField(choices, **options)
    if isinstance(kind, kinds.Boolean):
        return BooleanField(**options)
    for known, input_type, read, show in _IN_A_LINE:
        if isinstance(kind, known):
            widget = TextInput(input_type)
            return ValueField(read(kind), show, **{"widget": widget, **options})
    if isinstance(kind, kinds.Text):
        is_line = isinstance(kind, kinds.Canonical) or column.name in _LINES
        is_line |= isinstance(declared, fields.Url | fields.Email)
        plain = {"widget": TextInput() if is_line else TextArea()}
        if isinstance(declared, RichText):
            plain |= {"render_kw": {"rows": 12}, "description": "HTML"}
        elif not is_line:
            plain |= {"render_kw": {"rows": 1}}
        return ValueField(_text, **{**plain, **options})
    plain = {"widget": TextArea(), "render_kw": {"rows": 3, "spellcheck": "false"}}
    plain["description"], read = "JSON", _json
    if column.name == "restriction":
        plain["description"] = f"JSON{_RESTRICTION}. Hides the page and all below it from visitors."
        read = partial(_json, example=_RESTRICTION)
    return ValueField(read, _json_text, **{**plain, **options})


def _choices(declared: fields.Field[Any]) -> list[tuple[Any, str]] | None:
    if isinstance(declared, fields.Enum):
        members = [(declared.serialize("", m, accessor=itself), m.name) for m in declared.enum]
        return [(value, str(name).replace("_", " ")) for value, name in members]
    for validator in declared.validators:
        if isinstance(validator, validate.OneOf) and not isinstance(declared, fields.List):
            labelled = zip_longest(validator.choices, validator.labels)
            return [(value, str(label or value)) for value, label in labelled]
    return None


def _labelled(column: Column) -> dict[str, Any]:
    return {"label": column.name.replace("_", " ").capitalize()}


def form_class(
    base: type[Form],
    declared: ObjectType,
    loader: Callable[[str], Any],
    options: Callable[[Column], dict[str, Any]],
    wanted: Callable[[str], bool] = lambda name: True,
    overrides: Mapping[str, Any] | None = None,
) -> type[Form]:
    """A form for the objects of a type. Its ``contentapi_columns`` are the declared fields that it
    has, by the names of its own fields.

    :param base: the class that it derives from.
    :param loader: as for :func:`field_for`.
    :param options: the label and further arguments of a field.
    :param wanted: whether it is to have a field.
    :param overrides: fields to take instead of the usual ones.
    """
    own: dict[str, Any] = {}
    columns: dict[str, Column] = {}
    taken = {*dir(base), *_ARGUMENTS, VERSION, "contentapi_columns", "csrf_token"}
    # What a page says comes before its settings.
    settings = Page.declared_fields().keys() - {"title", "slug", "parent"}
    for name, column in sorted(declared.columns.items(), key=lambda item: item[0] in settings):
        if isinstance(column.field, Derived) or not (wanted(name) or name == "id"):
            continue
        if name == "id":
            if declared.endpoint is None:
                own["id"] = ValueField(kinds.parse_integer, widget=HiddenInput())
            continue
        given = options(column)
        plain = column.child is None and not isinstance(column.kind, kinds.Boolean)
        if column.field.required and plain and name != "slug":
            given["validators"] = [InputRequired(), *given.get("validators", ())]
        attribute = f"field_{name}" if name in taken or name.startswith("_") else name
        override = (overrides or {}).get(name)
        own[attribute] = override(**given) if override else field_for(column, loader, given)
        columns[attribute] = column
    own[VERSION] = HiddenField()
    if declared.endpoint is None:
        del own[VERSION]
    return type("ContentForm", (base,), {**own, "contentapi_columns": columns})


def data_for(form: type[Form], declared: ObjectType, row: Row) -> dict[str, Any]:
    """What the form of a stored object is filled with.

    :param row: the columns of its type, :attr:`ObjectType.column_names`.
    """
    values = dict(zip(declared.column_names, row, strict=True))
    data = {"id": values["id"]}
    for attribute, column in form.contentapi_columns.items():
        value = values[column.name]
        if column.child is not None:
            inner = getattr(form, attribute).args[0].args[0]
            value = [data_for(inner, column.child, child) for child in value or ()]
        data[attribute] = list(value) if isinstance(value, tuple) else value
    return data


def defaults_for(form: type[Form]) -> dict[str, Any]:
    """What the form of a new object is filled with: the declared defaults."""
    return {
        attribute: list(value) if isinstance(value, tuple) else value
        for attribute, column in form.contentapi_columns.items()
        if not column.field.required and (value := column.default()) is not None
    }


def values_in(form: Any) -> dict[str, Any]:
    """The values in a form by the names of the declared fields, as records have them."""
    return {c.name: _value(form[attr], c) for attr, c in form.contentapi_columns.items()}


def _value(field: Any, column: Column) -> Any:
    if column.child is not None:
        return [
            {"id": entry.form["id"].data, **values_in(entry.form)} for entry in kept_entries(field)
        ]
    if isinstance(field, BooleanField):
        return None if field.object_data is None and not field.data else field.data
    if not field.data and isinstance(column.kind, kinds.Text) and not column.field.required:
        # Null would be the default again.
        return "" if column.default() else None
    return field.data


def kept_entries(field: Any) -> list[Any]:
    """The entries of a list of child objects that are not to be deleted, nor new and empty."""
    return [
        entry
        for entry in field.entries
        if not field.should_delete(entry)
        and (entry.form["id"].data is not None or any(values_in(entry.form).values()))
    ]


def show_problem(form: Any, problem: Problem) -> bool:
    """Shows what is wrong with a record at the field that it concerns; returns whether there is
    one."""
    field = _field_at(form, problem.path)
    if field is None:
        return False
    add_error(field, problem.message)
    return True


def _field_at(form: Any, path: Sequence[Any]) -> Any:
    attributes = {column.name: attr for attr, column in form.contentapi_columns.items()}
    if not path or path[0] not in attributes:
        return None
    field = form[attributes[path[0]]]
    if isinstance(field, FieldList) and len(path) > 2:
        return _field_at(kept_entries(field)[path[1]].form, path[2:])
    return field


def add_error(field: Any, message: str) -> None:
    """Adds a message to a field."""
    field.errors = [*field.errors, message]

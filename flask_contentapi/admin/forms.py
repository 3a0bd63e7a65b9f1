"""Forms for content objects, made from the declared fields."""

from __future__ import annotations

import json
import re
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
from wtforms.fields.choices import Choice, SelectFieldBase
from wtforms.utils import unset_value
from wtforms.validators import InputRequired, ValidationError
from wtforms.widgets import Input, Select, TextArea, TextInput

from flask_contentapi import kinds
from flask_contentapi.declarations import Column, ObjectType
from flask_contentapi.errors import Problem
from flask_contentapi.fields import Derived, RichText, itself
from flask_contentapi.query import Row
from flask_contentapi.records import differ
from flask_contentapi.types import Document, Image, Page, Redirect

#: The hidden field with the version that the form shows.
VERSION = "contentapi_version"
#: Names that fields of forms cannot have, as they are those of something else: attributes and
#: arguments of forms, what their templates look for, and where a page leads to.
_TAKEN = {
    *vars(Form()),
    *("data", "extra_filters", "formdata", "meta", "obj", "prefix", "self"),
    *("contentapi_columns", "csrf_token", "hidden_tag", "url", VERSION),
}
#: WTForms takes attributes that begin so for functions, and the last of them marks other names.
_TAKEN_BEGINNINGS = ("_", "filter_", "validate_", "field_")
#: An example of the rule that only some visitors may see a page.
_RESTRICTION = ', such as {"type": "login"}'
#: Texts of one line: those that the package declares, except for descriptions.
_LINES = {
    name
    for base in (Page, Image, Document, Redirect)
    for name in base.declared_fields()
    if "description" not in name
}


def is_unchanged(field: Any) -> bool:
    """Whether the text that was shown for a stored value has come back. Then the value stays as it
    is, even what the text does not show of it, such as microseconds."""
    if not field.raw_data or not hasattr(field, "_value"):
        return False
    data, sent = field.data, field.raw_data
    field.data, field.raw_data = field.object_data, None
    shown = field._value()
    field.data, field.raw_data = data, sent
    # Browsers leave out the ends of lines in inputs, and send those in other fields their own way.
    end = "" if isinstance(field.widget, Input) else "\n"
    return re.sub("\r\n?|\n", end, shown) == re.sub("\r\n?|\n", end, sent[0])


class Required(InputRequired):
    """Asks for a value, except where none is stored."""

    def __call__(self, form: Any, field: Any) -> None:
        if field.object_data is None or differ(field.data, field.object_data):
            super().__call__(form, field)


class ValueField(Field):
    """A stored value as text.

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

    def process_data(self, value: Any) -> None:
        super().process_data(value)
        if value == "":
            # Browsers would not send it.
            self.flags.required = False

    def process_formdata(self, valuelist: Sequence[str]) -> None:
        if valuelist and not is_unchanged(self):
            self.data = self._read(valuelist[0]) if valuelist[0] else None


class ChoiceField(ValueField, SelectFieldBase):
    """One of some values. A stored value that is none of them is shown as well, and stays until
    another is chosen.

    :param choices: the values, each with its label.
    """

    widget = Select()

    def __init__(self, choices: Iterable[tuple[Any, str]], **options: Any) -> None:
        known = [(str(value), value, label) for value, label in choices]
        values = {text: value for text, value, _ in known}
        super().__init__(lambda text: values.get(text, text), **options)
        self._labels = {"": "", **{text: label for text, _, label in known}}

    def iter_choices(self) -> list[Choice]:
        present = self._value()
        labels = {**self._labels, present: self._labels.get(present, present)}
        return [Choice(text, label, text == present, {}) for text, label in labels.items()]


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

    def process_data(self, value: Any) -> None:
        super().process_data([] if self._many and value is None else value)

    def process_formdata(self, valuelist: Sequence[str]) -> None:
        texts = [text for text in ",".join(valuelist).split(",") if text not in ("", "__None")]
        try:
            ids = [int(text) for text in texts]
        except ValueError:
            raise ValueError("must be the id of an object") from None
        self.data = ids if self._many else next(iter(ids), None)

    def pre_validate(self, form: Any) -> None:
        # What is stored may stay, even if it leads nowhere.
        missing = self.loader.missing({*ids_in(self.data)} - {*ids_in(self.object_data)})
        if missing:
            some = ", ".join(map(str, sorted(missing)))
            raise ValidationError(f"there is no object {some} in {self.loader.name}")


def ids_in(related: Any) -> list[int]:
    """The ids in a value of a :class:`RelationField`."""
    return related if isinstance(related, list) else [] if related is None else [related]


class TagsField(Select2TagsField):
    """A set of tags."""

    def process_formdata(self, valuelist: Sequence[str] | None = None) -> None:
        if not is_unchanged(self):
            super().process_formdata(valuelist)


class ChildrenField(InlineFieldList):
    """Child objects. Those that come back are the stored ones with the same ids; all others are
    new, whatever ids they have."""

    def __call__(self, **options: Any) -> Markup:
        """The HTML, in which boxes for deleting stay ticked."""
        html = super().__call__(**options)
        for entry in filter(self.should_delete, self.entries):
            box = f'name="del-{entry.id}"'
            html = html.replace(box, f"{box} checked")
        return Markup(html)  # noqa: S704 - a template's, which escapes

    def process(self, formdata: Any, data: Any = unset_value, extra_filters: Any = None) -> None:
        stored = data if isinstance(data, list) else ()
        self._stored = {str(child["id"]): child for child in stored}
        super().process(formdata, data)

    def _extract_indices(self, prefix: str, formdata: Any) -> list[int]:
        pattern = re.compile(re.escape(prefix) + "-([0-9]{1,9})-")
        return [int(found[1]) for name in formdata if (found := pattern.match(name))]

    def _add_entry(self, formdata: Any = None, data: Any = unset_value, index: Any = None) -> Any:
        if formdata:
            data = self._stored.get(formdata.get(f"{self.name}-{index}-id"), unset_value)
        return super()._add_entry(formdata, data, index)


def _text(text: str) -> str:
    # Browsers send each end of a line as two characters.
    return text.replace("\r\n", "\n")


def _json(text: str, example: str = "") -> Any:
    try:
        number = kinds.Float().parse
        return kinds.read_json(json.loads(text, parse_constant=number, parse_float=number))
    except RecursionError:
        raise ValueError(f"must be JSON nested at most {kinds.JSON_DEPTH} deep") from None
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
        named = lambda own: {"label": own.name.replace("_", " ").capitalize()}  # noqa: E731
        inner = form_class(BaseForm, column.child, loader, named)
        empty = partial(defaults_for, inner)
        return ChildrenField(InlineModelFormField(inner, "id", default=empty), **options)
    if column.target is not None:
        return RelationField(loader(column.target.served_at.name), kind.many, **options)
    if isinstance(kind, kinds.Tags):
        return TagsField(save_as_list=True, **options)
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
    taken = {*dir(base), *_TAKEN}
    # What a page says comes before its settings.
    settings = Page.declared_fields().keys() - {"title", "slug", "parent"}
    for name, column in sorted(declared.columns.items(), key=lambda item: item[0] in settings):
        if isinstance(column.field, Derived) or name == "id" or not wanted(name):
            continue
        given = options(column)
        plain = column.child is None and not isinstance(column.kind, kinds.Boolean)
        if column.field.required and plain and name != "slug":
            given["validators"] = [Required(), *given.get("validators", ())]
        is_taken = name in taken or name.startswith(_TAKEN_BEGINNINGS)
        attribute = f"field_{name}" if is_taken else name
        override = (overrides or {}).get(name)
        own[attribute] = override(**given) if override else field_for(column, loader, given)
        columns[attribute] = column
    own["id" if declared.endpoint is None else VERSION] = HiddenField()
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


def related_in(form: Any) -> dict[str, set[int]]:
    """The ids of the objects that a form's relations lead to, by their endpoints."""
    found: dict[str, set[int]] = {}
    for field in form:
        if isinstance(field, RelationField):
            found.setdefault(field.loader.name, set()).update(ids_in(field.data))
        if isinstance(field, ChildrenField):
            for inner in (*(entry.form for entry in field.entries), untouched_child(field)):
                for name, others in related_in(inner).items():
                    found.setdefault(name, set()).update(others)
    return found


def _value(field: Any, column: Column) -> Any:
    if column.child is not None:
        return [
            {"id": entry.form["id"].object_data, **values_in(entry.form)}
            for entry in kept_entries(field)
        ]
    if isinstance(field, BooleanField):
        is_none = field.object_data is None and not field.data and not column.field.required
        return None if is_none else field.data
    is_kept = is_unchanged(field)
    value = field.object_data if is_kept else field.data
    if column.field.required:
        return value
    if not value and isinstance(column.kind, kinds.Text) and not is_kept:
        # Null would be the default again.
        return "" if column.default() else None
    return value if differ(value, column.default()) else None


def untouched_child(field: ChildrenField) -> Any:
    """The form of a new child object, as it begins."""
    inner = field.unbound_field.args[0]
    return inner(data=defaults_for(inner))


def kept_entries(field: Any) -> list[Any]:
    """The entries of a list of child objects that are not to be deleted, nor new and untouched."""
    untouched = values_in(untouched_child(field))
    return [
        entry
        for entry in field.entries
        if not field.should_delete(entry)
        and (entry.form["id"].object_data is not None or differ(values_in(entry.form), untouched))
    ]


def show_problem(form: Any, problem: Problem) -> bool:
    """Shows what is wrong with a record at the field that it concerns; returns whether there is
    one."""
    field = _field_at(form, problem.path)
    if field is not None:
        add_error(field, problem.message)
    return field is not None


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

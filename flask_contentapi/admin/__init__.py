"""An editor for content that :meth:`Backend.write` changes: a view for Flask-Admin.

It needs the extra ``admin``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, TypeVar

from flask import abort, flash, g, make_response, redirect, request
from flask_admin import expose
from flask_admin.actions import action
from flask_admin.form import SecureForm
from flask_admin.helpers import get_form_data, get_redirect_target
from flask_admin.model import BaseModelView
from flask_admin.model.ajax import AjaxModelLoader
from jinja2 import ChoiceLoader, PackageLoader
from markupsafe import Markup
from werkzeug.datastructures import CombinedMultiDict, MultiDict
from wtforms import BooleanField, ValidationError

from flask_contentapi import kinds
from flask_contentapi.addresses import Addresses, host_of
from flask_contentapi.admin.forms import (
    VERSION,
    add_error,
    data_for,
    defaults_for,
    form_class,
    related_in,
    show_problem,
    values_in,
)
from flask_contentapi.backend import Reader
from flask_contentapi.declarations import Column, Endpoint, ObjectType
from flask_contentapi.errors import BackendUnavailable, ConfigurationError, ContentError
from flask_contentapi.extension import ContentAPI
from flask_contentapi.query import Filter, Order, Query, Row, Search, Tree, Viewer
from flask_contentapi.records import differ, write_record
from flask_contentapi.search import words
from flask_contentapi.state import State
from flask_contentapi.writer import Writer

__all__ = ["ContentView"]

T = TypeVar("T")

#: What publishing, moving and translating a page change.
_NOT_IN_FORMS = ("alias_of", "first_published_at", "live", "locale", "parent", "translation_key")
#: How many objects a search for a relation gives at most.
_MOST_FOUND = 50
#: How many objects are skipped at most.
_DEEPEST = 10**9
#: Answers are the editor's alone, are in no frame, and tell no other site their address, which may
#: have the token of a preview. Within the site they do, as Flask-WTF asks for it.
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Referrer-Policy": "same-origin",
}
_NOT_SAVED = "Nothing was saved. The fields below say what is wrong."


@dataclass(frozen=True)
class Item:
    """An object as the editor sees it.

    :param id: its id.
    :param label: the label of its type.
    :param title: what it is called.
    :param state: for a page, whether it is shown, in a word or two.
    :param language: for a page, its locale.
    :param above: for a page, the id of the page above it.
    :param has_children: whether there are pages below it.
    :param file: for an image, the address of its file.
    :param row: the columns of its type, :attr:`ObjectType.column_names`; () in lists.
    :param version: differs after every change of the object; "" in lists.
    """

    id: int
    label: str
    title: str
    state: str = ""
    language: str = ""
    above: int | None = None
    has_children: bool = False
    file: str | None = None
    row: Row = ()
    version: str = ""

    @property
    def type(self) -> str:
        """The name of its type, without that of the application."""
        return _plain(self.label)


class _Loader(AjaxModelLoader):
    """Finds objects of an endpoint for relations."""

    def __init__(self, view: ContentView, endpoint: str) -> None:
        super().__init__(endpoint, {"minimum_input_length": 0, "placeholder": "Search by title"})
        self._view = view

    def format(self, model: Any) -> tuple[str, str] | None:
        """The id of an object and what it is called; the object can be given by its id."""
        if model is None:
            return None
        if not isinstance(model, Item):
            model = g.contentapi_related[self.name].get(model) or Item(model, "", "Nothing there")
        return str(model.id), f"{model.title} ({model.id}{model.state and f', {model.state}'})"

    def get_list(self, query: str, offset: int = 0, limit: int = 10) -> Sequence[Any]:
        """The objects with some words, in hidden ones too."""
        limits = {"limit": min(limit, _MOST_FOUND), "offset": min(max(offset or 0, 0), _DEEPEST)}
        return self._view.find(self.name, query or "", **limits)[1]

    def missing(self, ids: Set[int]) -> Set[int]:
        """Those of some ids that no object has."""
        return ids - self._view.fetch(self.name, ids).keys() if ids else ids


class ContentView(BaseModelView):
    """Edits the objects of an endpoint, and for pages their tree.

    Nobody may do so until a subclass overrides ``is_accessible``. The class attributes of
    Flask-Admin's ``BaseModelView`` apply, such as ``can_delete``, ``column_labels``,
    ``form_excluded_columns``, ``form_overrides``, ``form_args`` and ``form_widget_args``. Columns
    are the declared fields.

    :param api: the instance of the extension. It is initialised in the application before the view.
    :param endpoint: the endpoint, as ``"pages"``.
    :param options: the arguments of Flask-Admin's views, such as ``name`` and ``url``.
    :raises ConfigurationError: with the application, if it has no such endpoint, or its content is
        not changed by :meth:`Backend.write`.
    """

    list_template = "contentapi/list.html"
    create_template = "contentapi/form.html"
    edit_template = "contentapi/form.html"
    form_base_class = SecureForm
    form_columns: Sequence[str] | None = None
    form_excluded_columns: Sequence[str] = ()
    column_sortable_list = ("title",)
    page_size = 50
    #: The endpoint.
    declared: Endpoint

    def __init__(self, api: ContentAPI, endpoint: str = "pages", /, **options: Any) -> None:
        self.api = api
        self._forms: dict[tuple[str, bool], Any] = {}
        options = {"name": endpoint.capitalize(), "endpoint": f"edit_{endpoint}", **options}
        # Flask-Admin wants a class for the name of it.
        super().__init__(type(endpoint, (), {}), url=options.pop("url", endpoint), **options)

    def create_blueprint(self, admin: Any) -> Any:
        """Makes the blueprint, in the application that the content is served in."""
        state: State = admin.app.extensions["contentapi"][self.api.name]
        known = state.registry.endpoints
        if self.model.__name__ not in known:
            there = ", ".join(known)
            message = f"There is no endpoint {self.model.__name__!r} to edit; there are {there}."
            raise ConfigurationError(message)
        try:
            state.backend.transaction()
        except NotImplementedError as error:
            raise ConfigurationError(f"There is nothing to edit: {error}") from None
        self.declared = known[self.model.__name__]
        self._has_languages = self.declared.tree and state.settings.i18n
        parents = {"pages"} if self.declared.tree else set()
        related = parents.union(*map(_related, self.declared.types.values()))
        self.form_ajax_refs = {name: _Loader(self, name) for name in related}
        super()._refresh_cache()
        blueprint = super().create_blueprint(admin)
        own = PackageLoader("flask_contentapi.admin")
        blueprint.jinja_loader = ChoiceLoader([own, blueprint.jinja_loader])
        return blueprint

    def is_accessible(self) -> bool:
        """Whether the present user may edit; to be overridden."""
        return False

    def _refresh_cache(self) -> None:
        """Waits for the application, which says what there is to show."""

    # Reading.

    def _read(self, work: Callable[[Reader], T]) -> T:
        return self.api.backend.read(work)

    @property
    def _viewer(self) -> Viewer:
        return Viewer(kinds.utc(self.api.state.clock()), everything=True)

    def find(self, endpoint: str, text: str, **limits: Any) -> tuple[int, list[Item]]:
        """The objects of an endpoint with some words, which may be hidden.

        :param limits: further attributes of the query.
        :returns: how many there are, and those within the limits.
        """
        known = self.api.state.registry.endpoints[endpoint]
        found = tuple(dict.fromkeys(words(text)))[:10]
        query = Query(
            endpoint,
            _columns(known),
            self._viewer,
            searches=(Search(found, every=True, prefix=True),) if found else (),
            **limits,
        )
        if text.strip() and not found:
            return 0, []
        selected = self._read(lambda reader: reader.select(query))
        return selected.total, self._items(known, selected.rows)

    def fetch(self, endpoint: str, ids: Iterable[int]) -> dict[int, Item]:
        """Objects of an endpoint that there are, by their ids."""
        known, viewer = self.api.state.registry.endpoints[endpoint], self._viewer
        there = [id for id in ids if id in kinds.INT64]
        rows = self._read(lambda reader: reader.fetch(endpoint, there, _columns(known), viewer))
        return {item.id: item for item in self._items(known, rows.values())}

    def _items(self, endpoint: Endpoint, rows: Iterable[Row]) -> list[Item]:
        viewer, title = self._viewer, _title_column(endpoint)
        address = self._addresses().download_url if endpoint.images else str
        items = []
        for row in rows:
            values = dict(zip(_columns(endpoint), row, strict=True))
            item = Item(row[0], row[1], str(values[title] or "") or f"{endpoint.name} {row[0]}")
            if endpoint.tree:
                language, above = values["locale"] or "", values["parent"]
                item = replace(item, state=_state(values, viewer), language=language, above=above)
            items.append(replace(item, file=address(values.get("file") or "")))
        live = [item.id for item in items if item.state == "live"]
        if not live:
            return items
        everybody = viewer._replace(everything=False)
        shown = self._read(lambda reader: reader.fetch(endpoint.name, live, ["id"], everybody))
        restricted = {*live} - shown.keys()
        return [replace(i, state="live, restricted") if i.id in restricted else i for i in items]

    def _addresses(self) -> Addresses:
        state = self.api.state
        sites = self._read(lambda reader: reader.sites)
        return state.origins.find(sites, host_of(request), request.root_path, "")

    def get_list(
        self,
        page: int | None,
        sort_field: Any,
        sort_desc: Any,
        search: str | None,
        filters: Any,
        page_size: int | None = None,
    ) -> tuple[int, list[Item]]:
        """The objects to list: of pages those below the one that the address names, or all that
        a search finds."""
        size = page_size or self.page_size
        limits: dict[str, Any] = {"limit": size, "offset": min(max(page or 0, 0) * size, _DEEPEST)}
        if sort_field:
            column = {"title": _title_column(self.declared)}.get(sort_field, sort_field)
            limits["order"] = (Order(column, bool(sort_desc)),)
        if self.declared.tree and not search:
            limits |= _below(_asked_parent())
        total, items = self.find(self.declared.name, search or "", **limits)
        if not self.declared.tree:
            return total, items
        above = self._with_children([item.id for item in items])
        return total, [replace(item, has_children=item.id in above) for item in items]

    def _with_children(self, ids: Sequence[int]) -> set[int]:
        wanted = (Filter("parent", "in", tuple(ids)),)
        query = Query("pages", ("parent",), self._viewer, filters=wanted, count=False, each=1)
        return {row[0] for row in self._read(lambda reader: reader.select(query)).rows}

    def _trail(self, page: int | None) -> list[Item]:
        """The pages above a place in the tree, from the top down, with the page itself."""
        if page is None:
            return []
        _, above = self.find("pages", "", tree=(Tree("ancestor_of", page),))
        return [*above, *self.fetch("pages", [page]).values()]

    def get_one(self, id: Any) -> Item | None:
        """An object with all its values; None if there is none, or its type is not declared."""
        endpoint, viewer = self.declared, self._viewer
        columns = lambda label: endpoint.type_of(label).column_names  # noqa: E731
        try:
            identity = int(id)
        except (TypeError, ValueError):
            return None
        item = self.fetch(endpoint.name, [identity]).get(identity)
        found = item and self._read(
            lambda reader: reader.get(endpoint.name, identity, columns, viewer)
        )
        if not (item and found and found[0] in endpoint.types):
            return None
        return replace(item, row=found[1], version=_version(write_record(endpoint, found[1])))

    # What Flask-Admin asks for.

    def get_pk_value(self, model: Item) -> int:
        """The id of an object."""
        return model.id

    def scaffold_list_columns(self) -> list[str]:
        """The columns of lists."""
        more = ["state"] * self.declared.tree + ["language"] * self._has_languages
        more += ["type"] * (len(self.declared.types) > 1)
        return ["file"] * self.declared.images + ["title", *more]

    def init_search(self) -> bool:
        """Whether lists can be searched."""
        return True

    def search_placeholder(self) -> str:
        """What the input for searching says."""
        return f"Search all {self.declared.name}"

    def _prettify_name(self, name: str) -> str:
        return name.replace("_", " ").capitalize()

    def scaffold_form(self) -> Any:
        """A form without fields, as those of the types differ."""
        return self.form_base_class

    def _form(self, declared: ObjectType, *, is_new: bool) -> Any:
        key = declared.label, is_new
        if key not in self._forms:
            left_out = {*self.form_excluded_columns, *(_NOT_IN_FORMS if self.declared.tree else ())}
            left_out -= {"parent"} if is_new else set()
            only, args = self.form_columns, self.form_args or {}
            self._forms[key] = form_class(
                self.form_base_class,
                declared,
                self._form_ajax_refs.__getitem__,
                lambda column: {**self._options(column), **args.get(column.name, {})},
                lambda name: name not in left_out and (not only or name in (*only, "parent")),
                self.form_overrides,
            )
        return self._forms[key]

    def _options(self, column: Column) -> dict[str, Any]:
        label = self.get_column_name(column.name)
        if column.name == "parent" and self.declared.tree:
            return {"label": label, "validators": [self._check_parent]}
        return {"label": f"{label} (UTC)" if isinstance(column.kind, kinds.DateTime) else label}

    def _check_parent(self, _: Any, field: Any) -> None:
        """Refuses a page that is below none, unless it is the first one."""
        if field.data is None and not field.errors and self.find("pages", "", limit=1)[0]:
            raise ValidationError("Choose the page that it is to be below.")

    def create_form(self, obj: Any = None) -> Any:
        """The form of a new object, of the type that the address names."""
        declared = self.declared.types[self._asked_type()]
        form = self._form(declared, is_new=True)
        data = {**defaults_for(form), "parent": _asked_parent()}
        return form(get_form_data(), data=data)

    def edit_form(self, obj: Any = None) -> Any:
        """The form of an object."""
        return self._filled(self._form(self.declared.types[obj.label], is_new=False), obj)

    def _filled(self, form: Any, item: Item) -> Any:
        data = data_for(form, self.declared.types[item.label], item.row)
        return form(get_form_data(), data={**data, VERSION: item.version})

    def _asked_type(self) -> str:
        known = self.declared.types
        return request.args.get("type", next(iter(known)) if len(known) == 1 else "")

    def get_url(self, endpoint: str, **values: Any) -> str:
        """The address of a view; new pages are below the one that is looked at."""
        if endpoint == ".create_view" and "parent" in request.args:
            values.setdefault("parent", request.args["parent"])
        url: str = super().get_url(endpoint, **values)
        return url

    def get_save_return_url(self, model: Item, is_created: bool = False) -> str:
        """Where a saved form leads to: the list that has the object."""
        return get_redirect_target() or self.get_url(".index_view", parent=model.above)

    # Changing.

    def validate_form(self, form: Any) -> bool:
        """Whether a form was sent, and fits."""
        fits: bool = super().validate_form(form)
        if "csrf_token" in form.errors:
            flash("The form was open for too long. Send it again.", "error")
        elif form.errors and VERSION in form:
            flash(_NOT_SAVED, "error")
        return fits

    def create_model(self, form: Any) -> Item | None:
        """Adds an object, a page as a draft."""
        record = {"type": self._asked_type(), **values_in(form)}

        def add(content: Writer) -> int:
            if self.declared.tree:
                record["live"] = False
            identity = content.add(self.declared.name, record)
            self._publish(content, identity)
            return identity

        return self.get_one(self._write(add, form))

    def update_model(self, form: Any, model: Item) -> bool:
        """Changes an object, unless somebody else has since the form was made."""
        name, values, version = self.declared.name, values_in(form), form[VERSION].data

        def change(content: Writer) -> bool:
            if _version(content.record(name, model.id)) != version:
                return False
            if self.declared.tree and "parent" in values:
                content.move(model.id, values["parent"])
            else:
                content.update(name, model.id, **values)
                self._publish(content, model.id)
            return True

        done = self._write(change, form)
        if done is False:
            self._tell_conflict(form, model)
        return bool(done)

    def _write(self, work: Callable[[Writer], T], form: Any = None) -> T | None:
        """Changes the content; None if it does not fit, which is told where it can be."""
        try:
            with self.api.backend.write() as content:
                return work(content)
        except ContentError as error:
            left = [p for p in error.problems if form is None or not show_problem(form, p)]
            for problem in left:
                flash(str(problem), "error")
            if len(left) < len(error.problems):
                flash(_NOT_SAVED, "error")
            return None

    def _publish(self, content: Writer, page: int) -> None:
        """Publishes a page if that is wanted, at the time that it says."""
        if self.declared.tree and "_publish" in request.form:
            self._show(content, page)

    def _show(self, content: Writer, page: int) -> None:
        starts = content.record("pages", page).get("go_live_at")
        if starts is not None and kinds.DateTime().read(starts) > self._viewer.moment:
            content.update("pages", page, live=True)
        else:
            content.publish(page)

    def _tell_conflict(self, form: Any, model: Item) -> None:
        """Says what somebody else has changed meanwhile. Saving again then overwrites that."""
        now = self.get_one(model.id)
        if now is None:
            flash("Somebody else has deleted this meanwhile. Nothing was saved.", "error")
            return
        flash(
            "Somebody else has changed this since you opened it. Nothing was saved. Fields that "
            "differ say what is stored now: take it over, or save again to replace it.",
            "error",
        )
        declared = self.declared.types[now.label]
        stored = type(form)(data=data_for(type(form), declared, now.row))
        theirs, sent = values_in(stored), values_in(form)
        for attribute, column in form.contentapi_columns.items():
            value = theirs[column.name]
            if differ(sent[column.name], value):
                shown = getattr(stored[attribute], "_value", lambda value=value: value)()
                if isinstance(form[attribute], BooleanField):
                    shown = "yes" if value else "no"
                add_error(form[attribute], f"Now stored: {shown or 'nothing'}")
        form[VERSION].data = now.version

    def delete_model(self, model: Item) -> bool:
        """Deletes an object."""
        if self.declared.tree and self._with_children([model.id]):
            flash("There are pages below it. Move or delete them first.", "error")
            return False

        def delete(content: Writer) -> bool:
            content.delete(self.declared.name, model.id)
            return True

        return bool(self._write(delete))

    def is_action_allowed(self, name: str) -> bool:
        """Whether an action is there: all change pages."""
        is_allowed: bool = super().is_action_allowed(name)
        return is_allowed and self.declared.tree and bool(self.can_edit)

    @action("publish", "Publish")
    def action_publish(self, ids: Sequence[str]) -> None:
        """Publishes pages."""
        self._change_each(ids, self._show)

    @action("unpublish", "Unpublish")
    def action_unpublish(self, ids: Sequence[str]) -> None:
        """Makes pages drafts."""
        self._change_each(ids, lambda content, page: content.unpublish(page))

    @action("up", "Move up")
    def action_up(self, ids: Sequence[str]) -> None:
        """Moves pages in front of the sibling before them."""
        self._change_each(ids, lambda content, page: self._shift(content, page, -1))

    @action("down", "Move down")
    def action_down(self, ids: Sequence[str]) -> None:
        """Moves pages behind the sibling after them."""
        self._change_each(ids[::-1], lambda content, page: self._shift(content, page, 1))

    def _change_each(self, ids: Sequence[str], change: Callable[[Writer, int], None]) -> None:
        def change_each(content: Writer) -> None:
            for page in [int(id) for id in ids if re.fullmatch("[0-9]{1,18}", id)]:
                change(content, page)

        self._write(change_each)

    def _shift(self, content: Writer, page: int, step: int) -> None:
        parent = content.record("pages", page).get("parent")
        query = Query("pages", ("id",), self._viewer, **_below(parent))
        siblings = [*self._read(lambda reader: reader.ids(query))]
        place = siblings.index(page) + step
        if 0 <= place < len(siblings):
            siblings.remove(page)
            content.move(page, parent, before=next(iter(siblings[place:]), None))

    def translations(self, page: Item) -> dict[str, int | None]:
        """The other languages, each with the translation of a page, if there is one."""
        tree = (Tree("translation_of", page.id),)
        query = Query("pages", ("locale", "id"), self._viewer, tree=tree, count=False)

        def read(reader: Reader) -> dict[str, int | None]:
            there = {**dict.fromkeys(reader.locales), **dict(reader.select(query).rows)}
            return {locale: id for locale, id in there.items() if locale != page.language}

        return self._read(read) if self._has_languages else {}

    # Pages of the editor.

    def render(self, template: str, **values: Any) -> Any:
        """Renders a template, which knows the place in the tree, and what relations lead to."""
        model, form = values.get("model"), values.get("form")
        related = {} if form is None else related_in(form)
        g.contentapi_related = {name: self.fetch(name, ids) for name, ids in related.items()}
        page = model.above if model else _asked_parent()
        trail = self._trail(page) if self.declared.tree else []
        tokens = self.action_form() if self.declared.tree else None
        known = {"trail": trail, "tokens": tokens, "type": _plain(self._asked_type())}
        return super().render(template, **{**known, **values})

    @expose("/new/", methods=("GET", "POST"))
    def create_view(self) -> Any:
        """The form of a new object, once its type is chosen."""
        if self.can_create and self._asked_type() not in self.declared.types:
            return self.render("contentapi/types.html", types=sorted(self.declared.types))
        return super().create_view()

    @expose("/move/", methods=("GET", "POST"))
    def move_view(self) -> Any:
        """The form that moves a page below another one."""
        model = self.get_one(request.args.get("id"))
        if model is None or not self.declared.tree or not self.can_edit:
            abort(404)
        place = form_class(
            self.form_base_class,
            self.declared.types[model.label],
            self._form_ajax_refs.__getitem__,
            lambda column: {**self._options(column), "label": "Below"},
            lambda name: name == "parent",
        )
        form = self._filled(place, model)
        if self.validate_form(form) and self.update_model(form, model):
            flash(f"{model.title} was moved.", "success")
            return redirect(self.get_url(".index_view", parent=form.parent.data))
        return_url = self.get_save_return_url(model)
        return self.render("contentapi/move.html", model=model, form=form, return_url=return_url)

    @expose("/translate/", methods=("POST",))
    def translate_view(self) -> Any:
        """Adds a translation of a page, which is a draft, and leads to its form."""
        model = self.get_one(request.form.get("id"))
        if model is None or not self.declared.tree or not self.can_create:
            abort(404)
        new, locale = None, request.form.get("locale", "")
        if self.validate_form(self.action_form()):
            new = self._write(lambda content: content.translate(model.id, locale))
        return redirect(self.get_url(".edit_view", id=new or model.id))

    @expose("/preview/")
    def preview_view(self) -> Any:
        """Leads to an object that may not be public yet."""
        model = self.get_one(request.args.get("id"))
        if model is None:
            abort(404)
        token, html_url = self.api.preview_token(self.declared.name, model.id), None
        if self.declared.tree:
            asked = ("pages", [model.id], ["url_path"], self._viewer)
            path = self._read(lambda reader: reader.fetch(*asked))[model.id][0]
            html_url = self._addresses().html_url(path)
        return redirect(self.preview_url(model.id, token, html_url))

    def preview_url(self, id: int, token: str, html_url: str | None) -> str:
        """The address of a preview: that of a page in the site, with the token as ``preview``, or
        else that in the API.

        :param html_url: the public address of a page; None if it has none.
        """
        if html_url is not None:
            return f"{html_url}?preview={token}"
        return f"{self._addresses().detail_url(self.declared.name)}{id}/?preview={token}"

    def _run_view(self, view: Any, *args: Any, **kwargs: Any) -> Any:
        # Flask-Admin leads to this address afterwards.
        values = MultiDict(request.values)
        if not _is_here(values.get("url", "")):
            values.poplist("url")
        request.values = CombinedMultiDict([values])
        try:
            answer = make_response(super()._run_view(view, *args, **kwargs))
        except BackendUnavailable as error:
            self.api.state.outages.report(error)
            abort(503)
        for name, value in _HEADERS.items():
            answer.headers.setdefault(name, value)
        return answer

    def _thumbnail(self, _: Any, item: Item, name: str) -> Any:
        image = Markup('<img src="{}" alt="" loading="lazy" class="contentapi-thumbnail">')
        return image.format(item.file) if item.file else ""

    def _title(self, _: Any, item: Item, name: str) -> Any:
        """A link to what is below a page, or else to the form."""
        if item.has_children:
            url = self.get_url(".index_view", parent=item.id)
            return Markup('<a href="{}">{} ›</a>').format(url, item.title)
        if not self.can_edit:
            return item.title
        url = self.get_url(".edit_view", id=item.id, url=request.script_root + request.full_path)
        return Markup('<a href="{}">{}</a>').format(url, item.title)

    column_formatters: Mapping[str, Any] = {"file": _thumbnail, "title": _title}


def _plain(label: str) -> str:
    return label.rpartition(".")[2]


def _is_here(url: str) -> bool:
    """Whether an address leads to a path of this site; browsers take ``\\`` for ``/``, and leave
    out blanks and control characters."""
    return re.fullmatch(r"/(?!/)[^\\\s\x00-\x20\x7f]*", url) is not None


def _related(declared: ObjectType) -> set[str]:
    """The endpoints that the relations of a type lead to, and those of its child objects."""
    columns = declared.columns.values()
    found = {column.target.served_at.name for column in columns if column.target is not None}
    return found.union(*(_related(column.child) for column in columns if column.child is not None))


def _asked_parent() -> int | None:
    """The page that the address names, which new ones are below."""
    parent = request.args.get("parent", type=int)
    if parent is not None and parent not in kinds.INT64:
        abort(404)
    return parent


def _below(parent: int | None) -> dict[str, Any]:
    """What a query has that is for the pages below another one, or for those below none."""
    if parent is None:
        return {"filters": (Filter("parent", "isnull", True),)}
    return {"tree": (Tree("child_of", parent),)}


def _columns(endpoint: Endpoint) -> tuple[str, ...]:
    """The columns that say what an object is called, and whether it is shown."""
    more = ["live", "go_live_at", "expires_at", "parent", "locale"] * endpoint.tree
    more += ["file"] * endpoint.images
    return (*dict.fromkeys(["id", "type", _title_column(endpoint), *more]),)


def _title_column(endpoint: Endpoint) -> str:
    """The title, or else the first text that all objects of an endpoint have."""
    columns = endpoint.base.columns
    texts = (name for name, column in columns.items() if isinstance(column.kind, kinds.Text))
    return "title" if "title" in columns else next(texts, "id")


def _state(page: Mapping[str, Any], viewer: Viewer) -> str:
    start, end = page["go_live_at"], page["expires_at"]
    if not page["live"]:
        return "draft"
    if end is not None and end <= viewer.moment:
        return "expired"
    return "scheduled" if start is not None and start > viewer.moment else "live"


def _version(record: Mapping[str, Any]) -> str:
    text = json.dumps(record, sort_keys=True, default=str)
    return blake2b(text.encode(), digest_size=12).hexdigest()

"""The editor at ``/admin/``, for those who know its password."""

from __future__ import annotations

from hmac import compare_digest
from typing import Any

from flask import Flask, current_app, redirect, request, session, url_for
from flask.typing import ResponseReturnValue
from flask_admin import Admin, AdminIndexView, expose
from flask_admin.form import SecureForm
from flask_admin.menu import MenuLink
from wtforms import PasswordField, ValidationError
from wtforms.validators import InputRequired

from flask_contentapi import ContentAPI
from flask_contentapi.admin import ContentView

__all__ = ["ENDPOINTS", "add_editor"]

ENDPOINTS = ("pages", "images", "documents", "apples", "redirects")


class LoginForm(SecureForm):
    """Asks for the password."""

    password = PasswordField("Password", [InputRequired()])

    def validate_password(self, field: Any) -> None:
        """Refuses a wrong password."""
        right = str(current_app.config["EDITOR_PASSWORD"])
        if not compare_digest(field.data.encode(), right.encode()):
            raise ValidationError("This is not the password.")


class Home(AdminIndexView):
    """The login, and what can be edited."""

    @expose("/", methods=("GET", "POST"))
    def index(self) -> ResponseReturnValue:
        """Logs the editor in, and leads to the pages."""
        form = LoginForm(request.form)
        if request.method == "POST" and form.validate():
            session["editor"] = True
        if "editor" in session:
            return redirect(url_for("edit_pages.index_view"))
        answer: str = self.render("editor_login.html", form=form)
        return answer

    @expose("/logout/")
    def logout(self) -> ResponseReturnValue:
        """Logs the editor out."""
        session.pop("editor", None)
        return redirect(url_for("admin.index"))

    def is_visible(self) -> bool:
        """It is not in the menu."""
        return False


class Editor(ContentView):
    """What only the editor may do."""

    def is_accessible(self) -> bool:
        """Whether the editor is logged in."""
        return "editor" in session

    def inaccessible_callback(self, name: str, **_: Any) -> ResponseReturnValue:
        """Leads to the login."""
        return redirect(url_for("admin.index"))


def add_editor(app: Flask, api: ContentAPI) -> None:
    """Adds the editor of all content to the site."""
    admin = Admin(app, name="Windfall", index_view=Home())
    for endpoint in ENDPOINTS:
        admin.add_view(Editor(api, endpoint))
    admin.add_link(MenuLink("Site", "/"))
    admin.add_link(MenuLink("Log out", endpoint="admin.logout"))

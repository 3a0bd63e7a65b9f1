"""A constant answer, which shows what Flask and the server cost by themselves."""

from __future__ import annotations

from pathlib import Path

from flask import Flask, Response

__all__ = ["create_app"]


def create_app(path: str) -> Flask:
    """The site.

    :param path: the file with the answer.
    """
    app = Flask(__name__)
    body = Path(path).read_bytes()

    @app.get("/<path:anything>")
    def answer(anything: str) -> Response:
        return Response(body, mimetype="application/json")

    return app

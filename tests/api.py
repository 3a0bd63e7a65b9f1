"""Short ways to send requests to an application's API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from flask import Flask
from werkzeug.test import TestResponse

from flask_contentapi.backend import Backend
from tests.description import check

PREFIX = "/api/v2"


class API:
    """The API of an application, at one host.

    :param app: the application.
    :param prefix: where its API is mounted.
    :param host: the host name, with its port if that matters.
    """

    def __init__(self, app: Flask, prefix: str = PREFIX, host: str = "localhost") -> None:
        self.app, self.prefix, self.host = app, prefix, host
        self._client = app.test_client(use_cookies=False)

    def at(self, host: str) -> API:
        """The same API, at another host."""
        return API(self.app, self.prefix, host)

    def get(self, path: str, **options: Any) -> TestResponse:
        """The answer to a path below the prefix.

        :param options: as for the test client; ``method`` for other methods.
        """
        response = self._client.open(
            f"{self.prefix}/{path}", **{"base_url": f"http://{self.host}/", **options}
        )
        check(self.app, response)
        return response

    @property
    def backend(self) -> Backend:
        """The storage of the application's only instance."""
        (state,) = self.app.extensions["contentapi"].values()
        backend: Backend = state.backend
        return backend

    def load(self, content: Mapping[str, Any]) -> None:
        """Replaces the whole content."""
        with self.app.app_context():
            self.backend.load(content)

    def dump(self) -> dict[str, list[Any]]:
        """The whole content, as records."""
        sections: dict[str, list[Any]] = {}
        with self.app.app_context():
            for section, record in self.backend.dump():
                sections.setdefault(section, []).append(record)
        return sections

    def follow(self, address: str) -> TestResponse:
        """The answer to an absolute address, at the host in it."""
        parts = urlsplit(address)
        return self._client.open(
            f"{parts.path}?{parts.query}", base_url=f"{parts.scheme}://{parts.netloc}/"
        )

    def status(self, path: str) -> int:
        """The status of an answer."""
        return self.get(path).status_code

    def json(self, path: str, **options: Any) -> Any:
        """The body of an answer, which has to be a success."""
        response = self.get(path, **options)
        assert response.status_code == 200, response.text
        return response.get_json()

    def items(self, path: str, **options: Any) -> list[dict[str, Any]]:
        """The items of a list."""
        found: list[dict[str, Any]] = self.json(path, **options)["items"]
        return found

    def ids(self, path: str, **options: Any) -> list[int]:
        """The ids of the items of a list, in order."""
        return [item["id"] for item in self.items(path, **options)]

    def total(self, path: str, **options: Any) -> int:
        """The total of a list."""
        count: int = self.json(path, **options)["meta"]["total_count"]
        return count

    def refusal(self, path: str, status: int = 400) -> str:
        """The message of an answer, which has to be an error with the given status."""
        response = self.get(path)
        assert response.status_code == status, response.text
        body = response.get_json()
        assert body.keys() == {"message"}
        message: str = body["message"]
        return message

"""The state of one instance of the extension in one application, with its tokens of previews."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from itsdangerous import BadSignature, URLSafeSerializer
from werkzeug.exceptions import Forbidden

from flask_contentapi.addresses import Origins, PageURLs
from flask_contentapi.backend import Backend
from flask_contentapi.cache import AnswerCache
from flask_contentapi.errors import ConfigurationError
from flask_contentapi.kinds import utc
from flask_contentapi.logs import Outages
from flask_contentapi.parameters import Parameters
from flask_contentapi.query import ObjectKey
from flask_contentapi.registry import Registry
from flask_contentapi.renditions import Renditions
from flask_contentapi.settings import Settings


class Previews:
    """Writes and reads the tokens of one instance.

    :param name: the name of the instance; tokens of another one are not accepted.
    :param config: the configuration of the application, with ``SECRET_KEY``.
    """

    def __init__(self, name: str, config: Mapping[str, Any], clock: Callable[[], datetime]) -> None:
        self._salt, self._config, self._clock = f"contentapi.preview.{name}", config, clock

    @property
    def _serializer(self) -> URLSafeSerializer:
        key = self._config.get("SECRET_KEY")
        if not key:
            raise ConfigurationError("Previews are signed with SECRET_KEY, which is not set.")
        # The last key signs; the others are former ones.
        keys = [*(self._config.get("SECRET_KEY_FALLBACKS") or ()), key]
        if not all(isinstance(key, str | bytes) for key in keys):
            raise ConfigurationError(
                "SECRET_KEY must be a text, and SECRET_KEY_FALLBACKS a list of texts. What looks "
                "like a number is written in double quotes in environment variables."
            )
        return URLSafeSerializer(keys, self._salt)

    def write(self, shown: ObjectKey, max_age: int, moment: datetime | None) -> str:
        """A token that shows an object.

        :param max_age: how long it is accepted, in seconds.
        :param moment: the moment at which the content is shown; None: now.
        :raises ConfigurationError: if the application has no ``SECRET_KEY``.
        :raises ValueError: if the moment has passed.
        """
        now = utc(self._clock())
        if moment is not None and utc(moment) < now:
            raise ValueError(f"at is {moment.isoformat()}; it must be a moment to come.")
        at = None if moment is None else utc(moment).isoformat()
        token = self._serializer.dumps([*shown, now.timestamp() + max_age, at])
        return token if isinstance(token, str) else token.decode()

    def read(self, token: str) -> tuple[ObjectKey, datetime | None]:
        """The object that a token shows, and the moment, as for :meth:`write`.

        :raises Forbidden: if it was not written here, or is no longer accepted.
        """
        try:
            endpoint, identity, until, at = self._serializer.loads(token)
        except (BadSignature, ConfigurationError):
            raise Forbidden("preview is no token of this API.") from None
        if utc(self._clock()).timestamp() >= until:
            raise Forbidden("The token of preview has expired.")
        return (endpoint, identity), None if at is None else datetime.fromisoformat(at)


#: Returns whether a restriction, as in the record, lets the current request pass.
CanView = Callable[[Mapping[str, Any]], bool]


@dataclass(frozen=True)
class State:
    """The state of one instance in one application.

    :param settings: its settings.
    :param registry: the declared types.
    :param backend: the storage, opened.
    :param parameters: reads query strings.
    :param can_view: the hook that lets requests through restrictions, or None.
    :param page_urls: builds and resolves the addresses of pages.
    :param origins: finds the site of a request.
    :param renditions: the renditions of images.
    :param previews: writes and reads the tokens of previews.
    :param answer_cache: the cached answers.
    :param outages: logs when the backend does not answer.
    :param clock: returns the current time.
    :param fingerprint: the part of every ETag that depends on declarations and settings.
    :param config_prefix: the prefix of the keys of its settings.
    :param backend_name: the name of the backend in messages; "" if none is given or configured.
    """

    settings: Settings
    registry: Registry
    backend: Backend
    parameters: Parameters
    can_view: CanView | None
    page_urls: PageURLs
    origins: Origins
    renditions: Renditions
    previews: Previews
    answer_cache: AnswerCache
    outages: Outages
    clock: Callable[[], datetime]
    fingerprint: str
    config_prefix: str
    backend_name: str

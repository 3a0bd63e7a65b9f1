"""The Flask extension."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from secrets import token_hex
from textwrap import shorten
from typing import Any, NoReturn

from flask import Blueprint, Flask, current_app
from flask.blueprints import BlueprintSetupState
from werkzeug.exceptions import HTTPException, default_exceptions
from werkzeug.routing import Rule

from flask_contentapi.addresses import Origins, PageURLs
from flask_contentapi.backend import Backend, find_backend, name_of
from flask_contentapi.cache import AnswerCache
from flask_contentapi.caching import fingerprint
from flask_contentapi.cli import COMMANDS, is_command
from flask_contentapi.errors import BackendUnavailable, ConfigurationError, DeclarationError
from flask_contentapi.explorer import ExplorerView, is_explored
from flask_contentapi.http_errors import http_error, routing_error, unavailable
from flask_contentapi.index import SECTION_VIEWS, IndexView, OpenAPIView
from flask_contentapi.logs import Outages, log
from flask_contentapi.parameters import Parameters
from flask_contentapi.registry import Registry
from flask_contentapi.rendition_view import RenditionView
from flask_contentapi.renditions import Renditions
from flask_contentapi.settings import Settings, doubtful_settings, no_backend
from flask_contentapi.state import CanView, Previews, State
from flask_contentapi.types import Entry
from flask_contentapi.views import (
    DetailByPathView,
    DetailView,
    EndpointView,
    FindPageView,
    FindRedirectView,
    FindView,
    ListView,
    UnknownView,
)

_NOW = partial(datetime.now, UTC)


class ContentAPI:
    """Serves a site's content as a JSON API::

        api = ContentAPI(app, types=[HomePage, BlogPage], backend=MemoryBackend(content))

    or, with an application factory, ``api = ContentAPI(types=[...])`` and later
    ``api.init_app(app)``. Applications do not affect each other.

    :param app: the application to serve in.
    :param types: the declared classes, subclasses of :class:`Page`, :class:`Image`,
        :class:`Document` or :class:`Entry`.
    :param backend: where the content is: a backend, for this application alone, or a text as in
        the setting ``CMSAPI_BACKEND``. By default that setting is used.
    :param can_view: the hook that decides about restrictions. It is called in the context of a
        request with the restriction as in the record, and returns whether the request may pass.
        Without it nothing restricted is shown.
    :param page_urls: builds and resolves the public addresses of pages.
    :param name: the name of the instance; each further one in an application needs its own.
    :param config_prefix: the prefix of the keys of its settings.
    :param clock: returns the current time, in UTC; for previews and tests.
    :raises DeclarationError: if ``types`` is not a list; with an application, if a type is
        declared wrongly.
    :raises ConfigurationError: with an application, as :meth:`init_app` does.
    :raises ContentError: with an application, as :meth:`init_app` does.
    """

    def __init__(
        self,
        app: Flask | None = None,
        *,
        types: Iterable[type[Entry]] = (),
        backend: Backend | str | None = None,
        can_view: CanView | None = None,
        page_urls: PageURLs | None = None,
        name: str = "contentapi",
        config_prefix: str = "CMSAPI_",
        clock: Callable[[], datetime] = _NOW,
    ) -> None:
        given: Any = types
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise DeclarationError(
                f"types is {_shortened(given)}; it must be a list of classes, as [HomePage]."
            )
        self._types = tuple(types)
        self._backend = backend
        self._can_view = can_view
        self._page_urls = page_urls or PageURLs()
        self._clock = clock
        self.name = name
        self.config_prefix = config_prefix
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Flask, *, backend: Backend | str | None = None) -> None:
        """Serves the content in an application.

        :param app: the application.
        :param backend: as for the class, for this application only.
        :raises DeclarationError: if a type is declared wrongly.
        :raises ConfigurationError: if a setting or the backend cannot be used, or the application
            already has an instance of that name.
        :raises ContentError: if the backend's content cannot be loaded.
        """
        instances: dict[str, State] = app.extensions.setdefault("contentapi", {})
        if self.name in instances:
            raise ConfigurationError(
                f"The application has an instance named {self.name!r} already; give this one "
                "another name, as ContentAPI(name='intranet', config_prefix='INTRANET_')."
            )
        self._check_arguments()
        settings = Settings.from_config(app.config, self.config_prefix)
        registry = Registry(self._types)
        shown = is_explored(
            settings.explorer, registry.endpoints, self.config_prefix, debug=app.debug
        )
        settings = replace(settings, explorer=shown)
        for name, other in instances.items():
            known, own = (one.url_prefix for one in (other.settings, settings))
            if own in _taken(other.settings, other.registry) or known in _taken(settings, registry):
                raise ConfigurationError(
                    f"{self.config_prefix}URL_PREFIX is {own!r}, but addresses of the instance "
                    f"{name!r} below {known!r} would be the same; give this one another."
                )
        template = settings.rendition_url
        renditions = Renditions(settings.renditions, sorted(registry.renditions), template)
        folders = settings.media_folder, settings.rendition_folder
        renditions.open(self.config_prefix, Path(app.root_path), *folders)
        storage, backend_name = self._find_backend(app, backend)
        logs = not is_command()
        # In development code may have changed at each start.
        nonce = token_hex(8) if app.debug else ""
        storage.open(registry, debug=app.debug, logs=logs)
        state = State(
            settings=settings,
            registry=registry,
            backend=storage,
            parameters=Parameters(registry.endpoints, settings, storage.ranks),
            can_view=self._can_view,
            page_urls=self._page_urls,
            origins=Origins(settings, self._page_urls, renditions),
            renditions=renditions,
            previews=Previews(self.name, app.config, self._clock),
            answer_cache=AnswerCache(settings.cache_size),
            outages=Outages(),
            clock=self._clock,
            fingerprint=fingerprint(registry, settings.shaping, self._page_urls, nonce),
            config_prefix=self.config_prefix,
            backend_name=backend_name,
        )
        if logs and not backend_name:
            log.warning("%s", no_backend(self.config_prefix))
        prefixes = [other.config_prefix for other in instances.values()]
        doubts = doubtful_settings(app.config, self.config_prefix, prefixes, all_known=False)
        for doubt in doubts if logs else ():
            log.warning("%s", doubt)
        instances[self.name] = state
        app.register_blueprint(self._blueprint(state))

    @property
    def state(self) -> State:
        """The state of the instance in the current application.

        :raises RuntimeError: if it was not initialised there.
        """
        state = current_app.extensions.get("contentapi", {}).get(self.name)
        if state is None:
            raise RuntimeError(
                f"The current application has no ContentAPI named {self.name!r}; call init_app."
            )
        return state  # type: ignore[no-any-return]

    @property
    def backend(self) -> Backend:
        """The storage in the current application.

        :raises RuntimeError: if the instance was not initialised there.
        """
        return self.state.backend

    def preview_token(
        self, endpoint: str, id: int, *, max_age: int = 3600, at: datetime | None = None
    ) -> str:
        """A token that shows an object that is not public yet, for the parameter ``preview``.

        It is signed with the ``SECRET_KEY`` of the current application.

        :param endpoint: the endpoint of the object, such as ``"pages"``.
        :param id: its id.
        :param max_age: how long the token is accepted, in seconds.
        :param at: a moment to come at which the content is shown; UTC without an offset. By
            default it is shown as it is now.
        :raises ValueError: if there is no such endpoint, another argument is of another kind, or
            the time has passed.
        :raises ConfigurationError: if the application has no ``SECRET_KEY``.
        :raises RuntimeError: if the instance was not initialised in the current application.
        """
        state = self.state
        if endpoint not in state.registry.endpoints:
            known = ", ".join(state.registry.endpoints)
            raise ValueError(f"There is no endpoint {endpoint!r}; there are {known}.")
        arguments: tuple[tuple[str, object, Any, str], ...] = (
            ("id", id, int, "a number"),
            ("max_age", max_age, int | float, "a number of seconds"),
            ("at", at, datetime | None, "a datetime"),
        )
        for argument, given, kind, wanted in arguments:
            if not isinstance(given, kind):
                raise ValueError(f"{argument} is {_shortened(given)}; it must be {wanted}.")
        return state.previews.write((endpoint, id), max_age, at)

    def _check_arguments(self) -> None:
        name, prefix, hook, urls = self.name, self.config_prefix, self._can_view, self._page_urls
        is_name = isinstance(name, str) and bool(name) and "." not in name
        takes_one = "a function of one argument, the restriction, and not async"
        is_hook, is_clock = hook is None or _takes_one(hook), callable(self._clock)
        a_class = "an instance of a subclass of PageURLs"
        checks: tuple[tuple[str, object, bool, str], ...] = (
            ("name", name, is_name, "a text without dots"),
            ("config_prefix", prefix, isinstance(prefix, str), "a text, as 'CMSAPI_'"),
            ("can_view", hook, is_hook, takes_one),
            ("clock", self._clock, is_clock, "a function that returns the time"),
            ("page_urls", urls, isinstance(urls, PageURLs), a_class),
        )
        for argument, given, fits, wanted in checks:
            if not fits:
                raise ConfigurationError(f"{argument} is {_shortened(given)}; it must be {wanted}.")

    def _find_backend(self, app: Flask, backend: Backend | str | None) -> tuple[Backend, str]:
        where, given = "backend", self._backend if backend is None else backend
        root = Path(app.root_path)
        if given is None:
            where = f"{self.config_prefix}BACKEND"
            if where not in app.config:
                return find_backend("memory", root), ""
            given = app.config[where]
        if isinstance(given, Backend):
            return given, name_of(given)
        if not isinstance(given, str):
            raise ConfigurationError(
                f"{where} is {_shortened(given)}; it must be a Backend, such as "
                "MemoryBackend(records), or a text that names one, such as 'sqlite:///site.db'."
            )
        try:
            return find_backend(given, root), given.partition(":")[0]
        except ConfigurationError as error:
            # The whole value is not shown, because it may contain a password.
            raise ConfigurationError(f"{where}: {error}") from error

    def _blueprint(self, state: State) -> Blueprint:
        blueprint = Blueprint(
            self.name, __name__, url_prefix=state.settings.url_prefix, cli_group=self.name
        )
        for command in COMMANDS:
            blueprint.cli.add_command(command)
        # Flask prefers an application's handler for a code to a blueprint's handler for a class.
        for code in default_exceptions:
            blueprint.register_error_handler(code, http_error)
        blueprint.register_error_handler(HTTPException, http_error)
        blueprint.register_error_handler(BackendUnavailable, partial(unavailable, state.outages))
        blueprint.register_error_handler(Exception, _reraise)
        blueprint.before_app_request(partial(routing_error, state))

        def add(rule: str, view_name: str, view: type[EndpointView], served: str) -> None:
            dispatch = view(state, state.registry.endpoints[served]).dispatch
            blueprint.record(partial(_add_rule, rule, view_name, dispatch))

        for name, endpoint in state.registry.endpoints.items():
            find = FindRedirectView if endpoint.redirects else FindView
            add(f"/{name}/", f"{name}_list", ListView, name)
            add(f"/{name}/<id>/", f"{name}_detail", DetailView, name)
            add(f"/{name}/find/", f"{name}_find", FindPageView if endpoint.tree else find, name)
            if endpoint.tree:
                add(f"/{name}/detail_by_path/", f"{name}_detailbypath", DetailByPathView, name)
            if endpoint.images and state.settings.makes_renditions:
                rule = f"/{name}/<id>/renditions/<file>"
                add(rule, f"{name}_rendition", RenditionView, name)
        add("/", "index", IndexView, "images")
        add("/openapi.json", "openapi", OpenAPIView, "images")
        if state.settings.sites_enabled:
            for name, section in SECTION_VIEWS.items():
                add(f"/{name}/", f"{name}_list", section, "images")
                add(f"/{name}/<id>/", f"{name}_detail", section, "images")
        if state.settings.explorer:
            add("/explorer/", "explorer_page", ExplorerView, "images")
            add("/explorer/<file>", "explorer_file", ExplorerView, "images")
        add("/<path:path>", "unknown", UnknownView, "pages")
        return blueprint


def _takes_one(hook: Any) -> bool:
    if any(map(inspect.iscoroutinefunction, (hook, getattr(hook, "__call__", None)))):  # noqa: B004
        return False
    try:
        inspect.signature(hook).bind(None)
    except TypeError:
        return False
    except ValueError:  # some functions in C have no signature
        pass
    return True


def _shortened(given: object) -> str:
    return shorten(repr(given), 100, placeholder="...")


def _add_rule(
    rule: str, view_name: str, view_function: Callable[..., Any], setup: BlueprintSetupState
) -> None:
    """Adds a URL rule for every method, which ``add_url_rule`` cannot do."""
    endpoint = f"{setup.name_prefix}.{setup.name}.{view_name}".lstrip(".")
    host = "<host>" if setup.app.url_map.host_matching else None
    setup.app.url_map.add(
        Rule(f"{setup.url_prefix}{rule}", endpoint=endpoint, host=host, strict_slashes=True)
    )
    setup.app.view_functions[endpoint] = view_function


def _taken(settings: Settings, registry: Registry) -> set[str]:
    prefix, further = settings.url_prefix, ["explorer"] * bool(settings.explorer)
    further += [*SECTION_VIEWS] * settings.sites_enabled
    return {prefix, *(f"{prefix}/{name}" for name in (*registry.endpoints, *further))}


def _reraise(error: Exception) -> NoReturn:
    """Overrides an application's handler for all exceptions, so that the response is our 500."""
    raise error

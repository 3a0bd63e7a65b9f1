"""Applies a selection to a type, which gives the keys of an answer (specification, 4.3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, cast

from flask_contentapi.content import Entry
from flask_contentapi.errors import BadRequest, DeclarationError
from flask_contentapi.hints import remarks, suggest
from flask_contentapi.registry import Registry
from flask_contentapi.selection import DEFAULT, Selection
from flask_contentapi.types import Export, ObjectType

__all__ = ["Chosen", "View", "choose", "is_volatile", "refuse_circles"]

View = Literal["list", "detail", "nested"]
#: The keys in the order of exports, each with the selection in its brackets.
Chosen = list[tuple[Export, Selection]]


def choose(
    declared: ObjectType, view: View, selection: Selection = DEFAULT, i18n: bool = False
) -> Chosen:
    """The keys that a view of a type has (contract, Fields).

    :param selection: the ``fields`` parameter, or what is in brackets in it.
    :param i18n: whether internationalisation is on.
    :raises BadRequest: if the selection names what the type does not show.
    """
    hidden = frozenset() if view == "detail" else declared.detail_only
    available = {n: e for n, e in declared.exports.items() if n not in hidden}
    _check(declared, view, available, selection)
    if selection.base == "*":
        names = set(available)
    else:
        names = set() if selection.base == "_" else set(_defaults(declared, view, i18n))
    names = (names | selection.added.keys()) - selection.removed
    return [
        (export, selection.added.get(name) or DEFAULT)
        for name, export in available.items()
        if name in names
    ]


def refuse_circles(registry: Registry) -> None:
    """Refuses types whose objects embed each other endlessly.

    :raises DeclarationError: naming a class and what it always shows.
    """
    for endpoint in registry.endpoints.values():
        for declared in {endpoint.base, *endpoint.types.values()}:
            for export in declared.exports.values():
                _refuse_circles_from(declared, export, DEFAULT, ())


def _refuse_circles_from(
    declared: ObjectType,
    export: Export,
    inner: Selection,
    above: tuple[tuple[ObjectType, Selection], ...],
) -> None:
    for target, selection in _embedded_types(export, inner):
        if (target, selection) in above:
            raise DeclarationError(
                f"{declared.content_class.__name__}.{export.name} always brings itself again, "
                "without an end; take it out of nested_default_fields or of what is shown."
            )
        for further in choose(target, "nested", selection):
            _refuse_circles_from(target, *further, (*above, (target, selection)))


def _embedded_types(export: Export, inner: Selection) -> Iterator[tuple[ObjectType, Selection]]:
    """The types of the objects in a key, each with its selection."""
    column = export.column
    if column is None or export.source is not None:
        return
    if column.target or column.child:
        yield cast(ObjectType, column.target or column.child), export.shown or inner
    for block in column.related_blocks.values():
        assert block.target is not None
        yield block.target, block.shown or DEFAULT


def is_volatile(chosen: Chosen) -> bool:
    """Whether one of the keys, or a key of an object in them, depends on more than the content."""
    return any(
        export.volatile
        or any(
            is_volatile(choose(target, "nested", selection))
            for target, selection in _embedded_types(export, inner)
        )
        for export, inner in chosen
    )


def _check(
    declared: ObjectType, view: View, available: Mapping[str, Export], selection: Selection
) -> None:
    unknown = sorted((selection.added.keys() | selection.removed) - available.keys())
    if unknown:
        hint = remarks(unknown, lambda name: _hint(declared, view, available, name))
        hint = hint or f" There are {', '.join(available)}."
        raise BadRequest(f"fields names what is not here: {', '.join(unknown)}.{hint}")
    for name, inner in selection.added.items():
        if inner is not None and available[name].nested is None:
            raise BadRequest(f"{name} has no fields of its own to be chosen in brackets.")


def _hint(declared: ObjectType, view: View, available: Mapping[str, Export], unknown: str) -> str:
    """A hint about an unknown field, or ""."""
    if unknown in declared.detail_only and unknown not in available:
        return f" {unknown} is shown in details only."
    hint = ""
    if unknown == "meta":
        inside = [name for name, export in available.items() if export.in_meta]
        hint = f" What is in meta is named directly: {', '.join(inside)}."
    elif view == "list":
        hint = declared.hint(unknown)
    elif view == "nested" and declared.endpoint and (labels := declared.labels_showing(unknown)):
        hint = f" It is a field of {', '.join(labels)}; here is only what all objects have."
    return hint or suggest(unknown, available)


def _defaults(declared: ObjectType, view: View, i18n: bool) -> Iterable[str]:
    content_class = declared.content_class
    if not issubclass(content_class, Entry):
        return declared.exports
    languages = content_class.i18n_default_fields
    if view == "detail":
        return declared.exports.keys() - (() if i18n else languages)
    if view == "nested":
        return content_class.nested_default_fields
    return (*content_class.listing_default_fields, *(languages if i18n else ()))

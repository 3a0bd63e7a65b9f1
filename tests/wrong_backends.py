"""Backends with one fault each, derived from the list backend."""

from __future__ import annotations

import logging
import random
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from typing import Any, ClassVar

from docs.examples.list_backend import ListBackend, ListReader, Thing
from flask_contentapi.backend import Backend, ContentChanged
from flask_contentapi.content import Library, Restrictions, read_library
from flask_contentapi.declarations import ObjectType
from flask_contentapi.errors import BackendUnavailable, ContentError, Problem
from flask_contentapi.query import Filter, ObjectKey, Query, Row, Search, Selected, Tree, Viewer
from flask_contentapi.registry import Registry
from flask_contentapi.sites import Sites
from flask_contentapi.testing import TYPES, BackendTests, WriteTests
from flask_contentapi.testing.sample import NOW
from flask_contentapi.writer import StoredObject
from flask_contentapi_memory import MemoryBackend
from flask_contentapi_memory.backend import Snapshot
from flask_contentapi_memory.draft import Draft

#: Each wrong backend, with a test that has to detect the fault.
FAULTS: dict[str, tuple[type[Backend], str]] = {}


def caught_by(test: str) -> Callable[[type[Any]], type[Any]]:
    """Registers a reader or a backend with a fault.

    :param test: the name of a test that has to fail for it.
    """

    def register(wrong: type[Any]) -> type[Any]:
        backend = wrong if issubclass(wrong, Backend) else _serving(wrong)
        FAULTS[wrong.__name__] = backend, test
        return wrong

    return register


def _serving(wrong: type[ListReader]) -> type[Backend]:
    class Serving(ListBackend):
        def load(self, content: Mapping[str, Iterable[Any]]) -> None:
            super().load(content)
            self.content = wrong(self.content.library, self.content.version)

    return Serving


# Visibility.


@caught_by("test_viewer[pages: expires_at is the first moment after]")
class IgnoresExpiry(ListReader):
    def is_live(self, page: Mapping[str, Any], moment: datetime) -> bool:
        return super().is_live({**page, "expires_at": None}, moment)


@caught_by("test_viewer[pages: go_live_at is the first moment]")
class GoesLiveTooLate(ListReader):
    def is_live(self, page: Mapping[str, Any], moment: datetime) -> bool:
        return super().is_live(page, moment) and page["go_live_at"] != moment


@caught_by("test_viewer[pages: windows are held against the moment of the viewer]")
class KeepsAClockOfItsOwn(ListReader):
    def is_live(self, page: Mapping[str, Any], moment: datetime) -> bool:
        return super().is_live(page, NOW)


@caught_by("test_viewer[pages: below a draft they are shown]")
class HidesBelowDrafts(ListReader):
    def visible(self, endpoint: str, viewer: Viewer, scope: Sequence[int] | None) -> list[Thing]:
        found = super().visible(endpoint, viewer, scope)
        if endpoint != "pages":
            return found
        hidden = tuple(t.values["url_path"] for t in self.things(endpoint) if not t.values["live"])
        return [thing for thing in found if not thing.values["url_path"].startswith(hidden)]


@caught_by("test_viewer[images: in collections below a restricted one are closed]")
class LeaksRestrictedCollections(ListReader):
    def things(self, endpoint: str) -> list[Thing]:
        return [
            replace(thing, access=thing.values.get("collection"))
            if thing.values.get("collection") in self.restrictions.collections
            else replace(thing, access=None)
            if endpoint == "images"
            else thing
            for thing in super().things(endpoint)
        ]


@caught_by("test_viewer[redirects: those to pages that may not be seen are left out]")
class ShowsRedirectsToHiddenPages(ListReader):
    def visible(self, endpoint: str, viewer: Viewer, scope: Sequence[int] | None) -> list[Thing]:
        if endpoint == "redirects":
            return self.things(endpoint)
        return super().visible(endpoint, viewer, scope)


@caught_by("test_viewer[images: a restriction that is open opens the collections below]")
class NeedsNoSecondRight(ListReader):
    def visible(self, endpoint: str, viewer: Viewer, scope: Sequence[int] | None) -> list[Thing]:
        every = frozenset(self.restrictions.collections) if viewer.collections else frozenset()
        return super().visible(endpoint, viewer._replace(collections=every), scope)


@caught_by("test_viewer[pages: open collections open no pages]")
class TakesCollectionsForPages(ListReader):
    def visible(self, endpoint: str, viewer: Viewer, scope: Sequence[int] | None) -> list[Thing]:
        both = viewer.pages | viewer.collections
        return super().visible(endpoint, viewer._replace(pages=both, collections=both), scope)


@caught_by("test_preview[a page that opens later]")
class IgnoresPreviews(ListReader):
    def visible(self, endpoint: str, viewer: Viewer, scope: Sequence[int] | None) -> list[Thing]:
        return super().visible(endpoint, viewer._replace(previewed=None), scope)


@caught_by("test_preview[a restricted page without what is below]")
class OpensWhatIsBelowPreviewedPages(ListReader):
    def visible(self, endpoint: str, viewer: Viewer, scope: Sequence[int] | None) -> list[Thing]:
        opened = {viewer.previewed[1]} if viewer.previewed else set()
        return super().visible(endpoint, viewer._replace(pages=viewer.pages | opened), scope)


@caught_by("test_preview[a page of one endpoint is no image of another]")
class PreviewsByIdAlone(ListReader):
    def visible(self, endpoint: str, viewer: Viewer, scope: Sequence[int] | None) -> list[Thing]:
        shown = (endpoint, viewer.previewed[1]) if viewer.previewed else None
        return super().visible(endpoint, viewer._replace(previewed=shown), scope)


@caught_by("test_preview[a page is previewed in its site alone]")
class PreviewsAnywhere(ListReader):
    def visible(self, endpoint: str, viewer: Viewer, scope: Sequence[int] | None) -> list[Thing]:
        found = super().visible(endpoint, viewer, scope)
        if scope is None or viewer.previewed is None:
            return found
        everywhere = super().visible(endpoint, viewer, None)
        own = [t for t in everywhere if (endpoint, t.values["id"]) == viewer.previewed]
        return found + [thing for thing in own if thing not in found]


@caught_by("test_everything[images of all collections are there]")
class HidesFromEditors(ListReader):
    def visible(self, endpoint: str, viewer: Viewer, scope: Sequence[int] | None) -> list[Thing]:
        return super().visible(endpoint, viewer._replace(everything=False), scope)


@caught_by("test_scope[a site is its home page and all below]")
class IgnoresScope(ListReader):
    def visible(self, endpoint: str, viewer: Viewer, scope: Sequence[int] | None) -> list[Thing]:
        return super().visible(endpoint, viewer, None)


@caught_by("test_scope[slugs that start alike are apart]")
class TakesPathsForPrefixes(ListReader):
    def things(self, endpoint: str) -> list[Thing]:
        return [
            replace(t, values={**t.values, "url_path": t.values.get("url_path", "").rstrip("/")})
            for t in super().things(endpoint)
        ]


@caught_by("test_types[undeclared types are none of the declared ones]")
class TakesUndeclaredTypesForTheBase(ListReader):
    def matches(self, thing: Thing, query: Query) -> bool:
        label = thing.values["type"]
        types = query.types and (query.types | ({label} if label not in _LABELS else set()))
        return super().matches(thing, query._replace(types=types))


_LABELS = {label for end in Registry(TYPES).endpoints.values() for label in end.types}


# Filters.


class Compares(ListReader):
    """Compares texts by a key made from them."""

    made: ClassVar[Callable[[str], str]]

    def passes(self, thing: Thing, condition: Filter, query: Query) -> bool:
        made = type(self).made
        values = {n: made(v) if isinstance(v, str) else v for n, v in thing.values.items()}
        wanted = condition.value
        if isinstance(wanted, str):
            condition = condition._replace(value=made(wanted))
        return super().passes(replace(thing, values=values), condition, query)


@caught_by("test_filter[title eq 'agate': letter case, accents and spaces count]")
class IsBlindToCase(Compares):
    made = str.casefold


@caught_by("test_filter[story eq 'zinc': spaces at the end count]")
class IsBlindToSpacesAtTheEnd(Compares):
    made = str.rstrip


def _bare(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))


@caught_by("test_filter[story gt 'zinc': texts compare by code point]")
class IsBlindToAccents(Compares):
    made = _bare


@caught_by("test_filter[price eq Decimal('999999999999999999999999999999.98'): no digit is lost]")
class KeepsDecimalsAsFloats(ListReader):
    def passes(self, thing: Thing, condition: Filter, query: Query) -> bool:
        if condition.column in ("price", "ratio") and thing.values.get("price") is not None:
            values = {n: float(thing.values[n]) for n in ("price", "ratio")}
            thing = replace(thing, values={**thing.values, **values})
            condition = condition._replace(value=float(condition.value))
        return super().passes(thing, condition, query)


@caught_by("test_filter[number lt 0: missing values never match]")
class MatchesMissingValues(ListReader):
    def passes(self, thing: Thing, condition: Filter, query: Query) -> bool:
        lesser = condition.operator in ("lt", "le")
        missing = self.value(thing, condition.column, query) is None
        return (lesser and missing) or super().passes(thing, condition, query)


@caught_by("test_filter[tags all ('quartz', 'Quartz'): every one of them]")
class TakesAnyTag(ListReader):
    def passes(self, thing: Thing, condition: Filter, query: Query) -> bool:
        if condition.operator == "all":
            return bool({*condition.value} & {*thing.values[condition.column]})
        return super().passes(thing, condition, query)


@caught_by("test_filter[photo eq 5: a hidden target counts as missing]")
class TellsHiddenTargets(ListReader):
    def value(self, thing: Thing, column: str, query: Query) -> Any:
        return thing.values[column]


@caught_by("test_filter[neighbours all (26,): a draft is not there]")
class TellsHiddenTargetsAmongMany(ListReader):
    def value(self, thing: Thing, column: str, query: Query) -> Any:
        value = thing.values[column]
        return value if isinstance(value, tuple) else super().value(thing, column, query)


@caught_by("test_filter[number not (7, 0): a missing value is none of them]")
class TakesMissingValuesForAll(ListReader):
    def passes(self, thing: Thing, condition: Filter, query: Query) -> bool:
        missing = self.value(thing, condition.column, query) is None
        return not missing and super().passes(thing, condition, query)


@caught_by("test_facet[photo-")
class CountsHiddenTargets(ListReader):
    def facet(self, found: list[Thing], column: str, query: Query) -> list[tuple[Any, int]]:
        counts = Counter(thing.values[column] for thing in found)
        return sorted(counts.items(), key=lambda pair: (-pair[1], str(pair[0])))


@caught_by("test_facet_has_the_most_frequent_values")
class CountsWhatIsShown(ListReader):
    def facet(self, found: list[Thing], column: str, query: Query) -> list[tuple[Any, int]]:
        return super().facet(found[: query.limit], column, query)


@caught_by("test_filter[beside eq 60: in scope 20]")
class TellsTargetsOfOtherSites(ListReader):
    def value(self, thing: Thing, column: str, query: Query) -> Any:
        return super().value(thing, column, query._replace(scope=None))


@caught_by("test_column_has_exact_values[neighbours]")
class SortsTargets(ListReader):
    def things(self, endpoint: str) -> list[Thing]:
        return [
            replace(thing, values={**thing.values, "neighbours": tuple(sorted(targets))})
            if (targets := thing.values.get("neighbours"))
            else thing
            for thing in super().things(endpoint)
        ]


@caught_by("test_filter[several filters: all are to be met]")
class MeetsTheFirstFilterAlone(ListReader):
    def matches(self, thing: Thing, query: Query) -> bool:
        return super().matches(thing, query._replace(filters=query.filters[:1]))


# The tree.


@caught_by("test_relation[descendant_of: slugs that start alike are apart]")
class TakesWrongDescendants(ListReader):
    def is_related(self, thing: Thing, tree: Tree) -> bool:
        if tree.relation != "descendant_of":
            return super().is_related(thing, tree)
        named = next(t.values for t in self.things("pages") if t.values["id"] == tree.page)
        path: str = thing.values["url_path"]
        return thing.values["id"] != tree.page and path.startswith(named["url_path"][:-1])


@caught_by("test_relation[translation_of: pages without a key are no translations]")
class TakesNoKeyForAKey(ListReader):
    def is_related(self, thing: Thing, tree: Tree) -> bool:
        if tree.relation != "translation_of":
            return super().is_related(thing, tree)
        named = next(t.values for t in self.things("pages") if t.values["id"] == tree.page)
        same = thing.values["translation_key"] == named["translation_key"]
        return bool(same and thing.values["id"] != tree.page)


@caught_by("test_relation[two relations: both are to be met]")
class MeetsTheFirstRelationAlone(ListReader):
    def matches(self, thing: Thing, query: Query) -> bool:
        return super().matches(thing, query._replace(tree=query.tree[:1]))


@caught_by("test_names_unseen[a draft]")
class SaysNothingOfUnseenPages(ListReader):
    def select(self, query: Query) -> Selected:
        return super().select(query)._replace(unseen=())


# Searches.


@caught_by("test_finds[or: one of the words]")
class TakesOrForAnd(ListReader):
    def has_words(self, thing: Thing, search: Search) -> bool:
        return super().has_words(thing, replace(search, every=True))


@caught_by("test_finds[and: every word]")
class TakesAndForOr(ListReader):
    def has_words(self, thing: Thing, search: Search) -> bool:
        return super().has_words(thing, replace(search, every=False))


@caught_by("test_finds[whole words are found, no parts]")
class FindsPartsOfWords(ListReader):
    def has_words(self, thing: Thing, search: Search) -> bool:
        title = thing.values.get("title", "").casefold()
        return super().has_words(thing, search) or any(word in title for word in search.words)


@caught_by("test_word_in_title_comes_before_word_elsewhere")
class RanksNothing(ListReader):
    def relevance(self, thing: Thing, search: Search) -> int:
        return 0


@caught_by("test_beginning_of_word_in_title_comes_first")
class RanksNoBeginnings(ListReader):
    def relevance(self, thing: Thing, search: Search) -> int:
        return 0 if search.prefix else super().relevance(thing, search)


@caught_by("test_finds[begun: a word that starts so]")
class FindsWholeWords(ListReader):
    def weights(self, thing: Thing, search: Search) -> list[int]:
        return super().weights(thing, replace(search, prefix=False))


@caught_by("test_finds[begun: the others are whole words]")
class FindsSeveralBeginnings(ListReader):
    def weights(self, thing: Thing, search: Search) -> list[int]:
        single = [replace(search, words=(word,)) for word in search.words]
        return [super(FindsSeveralBeginnings, self).weights(thing, one)[0] for one in single]


@caught_by("test_finds[two searches: what both find]")
class SearchesOnce(ListReader):
    def matches(self, thing: Thing, query: Query) -> bool:
        return super().matches(thing, query._replace(searches=query.searches[:1]))


@caught_by("test_ties_of_relevance_are_in_default_order")
class RanksTiesById(ListReader):
    def relevance(self, thing: Thing, search: Search) -> int:
        identity: int = thing.values["id"]
        return 1000 * super().relevance(thing, search) - identity


# Order, limit and offset.


@caught_by("test_order[found_on: missing values first ascending, last descending; ties by id]")
class PutsMissingValuesLast(ListReader):
    def key(self, value: Any) -> tuple[bool, Any]:
        return (value is None, value)


@caught_by("test_order[-title: missing values first ascending, last descending; ties by id]")
class TurnsTiesAround(ListReader):
    def sort(self, found: list[Thing], query: Query) -> None:
        super().sort(found, query)
        if query.order and query.order[-1].descending:
            ascending = tuple(key._replace(descending=not key.descending) for key in query.order)
            super().sort(found, query._replace(order=ascending))
            found.reverse()


@caught_by("test_order[story: missing values first ascending, last descending; ties by id]")
class OrdersByUTF16(ListReader):
    def key(self, value: Any) -> tuple[bool, Any]:
        return super().key(value.encode("utf-16-be") if isinstance(value, str) else value)


@caught_by("test_order[number,-id: each key in its own direction]")
class HasOneDirectionForAllKeys(ListReader):
    def sort(self, found: list[Thing], query: Query) -> None:
        order = tuple(key._replace(descending=query.order[0].descending) for key in query.order)
        super().sort(found, query._replace(order=order))


@caught_by("test_viewer[pages: drafts and what is closed or restricted are left out; tree order]")
class OrdersPagesById(ListReader):
    def sort(self, found: list[Thing], query: Query) -> None:
        found.sort(key=lambda thing: int(thing.values["id"]))
        super().sort(found, query)


@caught_by("test_window[limit: at most as many]")
class CountsTheWindowAlone(ListReader):
    def select(self, query: Query) -> Selected:
        selected = super().select(query)
        return selected._replace(total=len(selected.rows))


@caught_by("test_viewer[documents: restricted collections are closed]")
class CountsHiddenOnes(ListReader):
    def select(self, query: Query) -> Selected:
        selected = super().select(query)
        everything = len(self.library.tables[query.endpoint].rows)
        return selected if query.filters else selected._replace(total=everything)


@caught_by("test_window[offset: past the end]")
class TurnsHugeOffsetsAround(ListReader):
    def select(self, query: Query) -> Selected:
        return super().select(query._replace(offset=query.offset % 2**31 % 7))


@caught_by("test_window[limit: None is all]")
class HasALimitOfItsOwn(ListReader):
    def select(self, query: Query) -> Selected:
        return super().select(query._replace(limit=4 if query.limit is None else query.limit))


@caught_by("test_random_has_all_that_match_each_once")
class DrawsTwice(ListReader):
    def select(self, query: Query) -> Selected:
        selected = super().select(query)
        if not query.random or not selected.rows:
            return selected
        return selected._replace(rows=[selected.rows[0], *selected.rows[:-1]])


@caught_by("test_random_is_another_order_each_time")
class DrawsTheSameEachTime(ListReader):
    def sort(self, found: list[Thing], query: Query) -> None:
        if query.random:
            random.Random(7).shuffle(found)
        else:
            super().sort(found, query)


@caught_by("test_rows_are_the_same_without_a_count")
class AnswersNothingWithoutACount(ListReader):
    def select(self, query: Query) -> Selected:
        return super().select(query) if query.count else Selected(())


# Rows.


@caught_by("test_rows_of_lists[columns are in the order asked]")
class SortsColumns(ListReader):
    def select(self, query: Query) -> Selected:
        return super().select(query._replace(columns=tuple(sorted(query.columns))))


@caught_by("test_column_has_exact_values[body]")
class SortsKeysOfJSON(ListReader):
    def things(self, endpoint: str) -> list[Thing]:
        return [
            replace(thing, values={name: _sorted(value) for name, value in thing.values.items()})
            for thing in super().things(endpoint)
        ]


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(entry) for entry in value] if isinstance(value, list) else value


@caught_by("test_value[an instant is in UTC]")
class ForgetsOffsets(ListReader):
    def things(self, endpoint: str) -> list[Thing]:
        return [
            replace(thing, values={**thing.values, "cleaned_at": _naive(thing)})
            for thing in super().things(endpoint)
        ]


def _naive(thing: Thing) -> Any:
    value = thing.values.get("cleaned_at")
    return value and value.replace(tzinfo=None)


@caught_by("test_value[a decimal has the places of its field]")
class DropsZerosOfDecimals(ListReader):
    def things(self, endpoint: str) -> list[Thing]:
        return [
            replace(thing, values={**thing.values, "price": _normal(thing)})
            for thing in super().things(endpoint)
        ]


def _normal(thing: Thing) -> Any:
    value = thing.values.get("price")
    return value and value.normalize()


@caught_by("test_fetch_takes_more_ids_than_a_statement_has_parameters")
class FetchesFewAtATime(ListReader):
    def fetch(
        self,
        endpoint: str,
        ids: Iterable[int],
        columns: Sequence[str],
        viewer: Viewer,
        scope: Sequence[int] | None = None,
    ) -> Mapping[int, Row]:
        few = list(ids)
        if len(few) > 32_766:
            raise OSError("too many SQL variables")
        return super().fetch(endpoint, few, columns, viewer, scope)


@caught_by("test_fetch[hidden and missing ones are left out]")
class FetchesHiddenOnes(ListReader):
    def fetch(
        self,
        endpoint: str,
        ids: Iterable[int],
        columns: Sequence[str],
        viewer: Viewer,
        scope: Sequence[int] | None = None,
    ) -> Mapping[int, Row]:
        wanted = set(ids)
        return {
            thing.values["id"]: tuple(thing.values[column] for column in columns)
            for thing in self.things(endpoint)
            if thing.values["id"] in wanted
        }


@caught_by("test_get_has_nothing_of[a page out of scope]")
class FetchesOutOfScope(ListReader):
    def fetch(
        self,
        endpoint: str,
        ids: Iterable[int],
        columns: Sequence[str],
        viewer: Viewer,
        scope: Sequence[int] | None = None,
    ) -> Mapping[int, Row]:
        return super().fetch(endpoint, ids, columns, viewer)


# The content as a whole.


@caught_by("test_next_change_is_not_missed")
class ForgetsThatPagesGoLive(ListReader):
    def next_change(self, viewer: Viewer, scope: Sequence[int] | None = None) -> datetime | None:
        found = super().next_change(viewer, scope)
        if found is None:
            return None
        return super().next_change(viewer._replace(moment=found + timedelta(days=1)), scope)


@caught_by("test_next_change_is_one_that_the_viewer_sees[in the scope]")
class LooksAtAllSitesForTheNextChange(ListReader):
    def next_change(self, viewer: Viewer, scope: Sequence[int] | None = None) -> datetime | None:
        return super().next_change(viewer)


@caught_by("test_next_change_is_one_that_the_viewer_sees[in the scope]")
class TellsOfRestrictedPages(ListReader):
    def next_change(self, viewer: Viewer, scope: Sequence[int] | None = None) -> datetime | None:
        return super().next_change(viewer._replace(pages=frozenset(self.restrictions.pages)), scope)


@caught_by("test_sites_have_their_home_pages_and_translations")
class ForgetsTranslatedHomePages(ListReader):
    @property
    def sites(self) -> Sites:
        return Sites(replace(site, homes=site.homes[:1]) for site in super().sites)


@caught_by("test_restrictions_of_pages_say_which_they_are_within")
class ForgetsRestrictionsAbove(ListReader):
    @property
    def restrictions(self) -> Restrictions:
        pages, collections = super().restrictions
        alone = {page: own._replace(within=None) for page, own in pages.items()}
        return Restrictions(alone, collections)


@caught_by("test_locales_are_in_the_order_of_the_records")
class SortsLocales(ListReader):
    @property
    def locales(self) -> Sequence[str]:
        return sorted(super().locales)


@caught_by("test_version_changes_with[a title]")
class NeverChangesItsVersion(ListReader):
    @property
    def version(self) -> str:
        return "1"


@caught_by("test_version_is_the_same_while_the_content_is")
class ChangesItsVersionAlways(ListReader):
    _reads: ClassVar[Iterator[int]] = count()

    @property
    def version(self) -> str:
        return f"{super().version} {next(self._reads)}"


@caught_by("test_version_changes_with[a child object]")
class LooksAtTitlesForItsVersion(ListReader):
    @property
    def version(self) -> str:
        tables = self.library.tables.items()
        return str([(name, [row[:4] for row in table.rows]) for name, table in tables])


@caught_by("test_load_refuses_and_changes_nothing[a second slug]")
class EmptiesBeforeItLoads(ListBackend):
    def load(self, content: Mapping[str, Iterable[Any]]) -> None:
        super().load({})
        super().load(content)


@caught_by("test_load_refuses_and_changes_nothing[several at once]")
class StopsAtTheFirstProblem(ListBackend):
    def load(self, content: Mapping[str, Iterable[Any]]) -> None:
        try:
            super().load(content)
        except ContentError as error:
            raise ContentError(error.problems[:1]) from error


@caught_by("test_load_replaces_the_whole_content")
class AddsWhatItLoads(ListBackend):
    def load(self, content: Mapping[str, Iterable[Any]]) -> None:
        people = list(content.get("people", ()))
        if hasattr(self, "content"):
            kept = [record for section, record in self.dump() if section == "people"]
            loaded = {record["id"] for record in people}
            people += [record for record in kept if record["id"] not in loaded]
        super().load({**content, "people": people})


@caught_by("test_load_of_nothing_leaves_nothing")
class TakesNothingForNoLoad(ListBackend):
    def load(self, content: Mapping[str, Iterable[Any]]) -> None:
        if content or not hasattr(self, "content"):
            super().load(content)


@caught_by("test_load_takes_instances_and_iterators")
class ReadsTheContentTwice(ListBackend):
    def load(self, content: Mapping[str, Iterable[Any]]) -> None:
        read_library(content, self.registry)
        super().load(content)


class Present(ListReader):
    """Always reads the current content of the backend."""

    def __init__(self, backend: ListBackend) -> None:
        self._backend = backend

    @property
    def library(self) -> Library:  # type: ignore[override]
        return self._backend.content.library

    @property
    def version(self) -> str | None:
        return self._backend.content.version


@caught_by("test_reader_sees_one_content_while_another_is_loaded[a list]")
class ChangesUnderItsReaders(ListBackend):
    def reader(self) -> nullcontext[ListReader]:
        return nullcontext(Present(self))


class Finished(ListReader):
    """Raises an error once other content has been loaded."""

    backend: ListBackend

    def things(self, endpoint: str) -> list[Thing]:
        if self.backend.content is not self:
            raise ContentChanged
        return super().things(endpoint)


@caught_by("test_snapshot_reader_keeps_to_its_content[a list]")
class KeepsNothing(ListBackend):
    def snapshot_reader(self) -> nullcontext[ListReader]:
        return nullcontext(Present(self))


@caught_by("test_ids[of a search]")
class ListsAllIds(ListReader):
    def ids(self, query: Query) -> Sequence[int]:
        return super().ids(query._replace(searches=()))


@caught_by("test_reader_sees_one_content_while_another_is_loaded[objects by id]")
class GivesUpItsContent(ListBackend):
    def load(self, content: Mapping[str, Iterable[Any]]) -> None:
        super().load(content)
        self.content = Finished(self.content.library, self.content.version)
        self.content.backend = self


@caught_by("test_a_reader_can_be_opened_inside_another")
class HasOneReaderAtATime(ListBackend):
    def __init__(self) -> None:
        self._busy = False

    @contextmanager
    def reader(self) -> Iterator[ListReader]:  # type: ignore[override]
        if self._busy:
            raise BackendUnavailable("There is a reader already.")
        self._busy = True
        yield self.content
        self._busy = False


@caught_by("test_opened_backend_is_empty")
class StartsWithContent(ListBackend):
    def open(self, registry: Registry, *, debug: bool = False, logs: bool = True) -> None:
        super().open(registry, debug=debug, logs=logs)
        self.load({"people": [{"id": 7, "name": "Eve"}]})


@caught_by("test_opening_logs_nothing_where_a_command_says_it")
class LogsWhatACommandSays(ListBackend):
    def open(self, registry: Registry, *, debug: bool = False, logs: bool = True) -> None:
        super().open(registry, debug=debug, logs=logs)
        logging.getLogger("shelf").warning("There is nothing on the shelf.")


@caught_by("test_dump_is_lossless")
class ForgetsUndeclaredFields(ListBackend):
    def dump(self) -> Iterator[tuple[str, Any]]:
        for section, record in super().dump():
            if section == "pages":
                record.pop("scale", None)
            yield section, record


@caught_by("test_dump_is_json")
class DumpsInstants(ListBackend):
    def dump(self) -> Iterator[tuple[str, Any]]:
        for section, record in super().dump():
            yield section, {**record, "price": {record["price"]}} if "price" in record else record


@caught_by("test_check_names_undeclared_types_and_relations_to_nothing")
class ChecksNothing(ListBackend):
    def check(self, *, values: bool = True) -> Iterable[Problem]:
        return ()


@caught_by("test_check_names_undeclared_types_and_relations_to_nothing")
class ChecksNothingButValues(ListBackend):
    def check(self, *, values: bool = True) -> Iterable[Problem]:
        return super().check() if values else ()


@caught_by("test_loaded_content_outlives_a_persistent_backend")
class SaysThatItIsPersistent(ListBackend):
    persistent = True


@caught_by("test_what_is_stored_stays_after[create]")
class EmptiesWhatIsThere(ListBackend):
    def create(self) -> None:
        self.load({})


@caught_by("test_what_is_stored_stays_after[reload]")
class ForgetsOnReload(ListBackend):
    def reload(self) -> None:
        self.load({})


@caught_by("test_ranks_is_as_declared")
class SaysThatItDoesNotRank(ListBackend):
    ranks = False


# Changes.


def writing(test: str) -> Callable[[type[Draft]], type[Draft]]:
    """Registers a transaction with a fault.

    :param test: the name of a test that has to fail for it.
    """

    def register(wrong: type[Draft]) -> type[Draft]:
        class Writing(MemoryBackend):
            @contextmanager
            def transaction(self) -> Iterator[Draft]:
                with super().transaction() as draft:
                    draft.__class__ = wrong
                    yield draft

        FAULTS[wrong.__name__] = Writing, test
        return wrong

    return register


@writing("test_change_makes_what_loading_makes[a page in front of another]")
class AddsAtTheEnd(Draft):
    def insert(self, endpoint: str, new: StoredObject, before: int | None) -> None:
        super().insert(endpoint, new, None)


@writing("test_change_makes_what_loading_makes[a page less]")
class ForgetsToDelete(Draft):
    def remove(self, endpoint: str, ids: Sequence[int]) -> None:
        pass


@writing("test_change_makes_what_loading_makes[what an undeclared type has besides]")
class LosesExtras(Draft):
    def replace(self, endpoint: str, old: StoredObject, new: StoredObject) -> None:
        super().replace(endpoint, old, new._replace(extras=old.extras))


@writing("test_change_makes_what_loading_makes[a page at another place]")
class MovesNowhere(Draft):
    def move(self, old: StoredObject, parent: int | None, before: int | None) -> None:
        super().move(old, old.row[self._parent], before)


@writing("test_change_makes_what_loading_makes[a site less]")
class KeepsSites(Draft):
    def put_records(self, section: str, records: Sequence[Any]) -> None:
        if section != "sites" or len(records) > len(self.records(section)):
            super().put_records(section, records)


@writing("test_refused_change_leaves_everything[a sibling has the slug")
class OverlooksSlugs(Draft):
    def page_at(self, parent: int | None, slug: str) -> int | None:
        return None


@writing("test_refused_change_leaves_everything[has this path already")
class OverlooksRedirects(Draft):
    def redirect_at(self, site_path: str) -> int | None:
        return None


@writing("test_refused_change_leaves_everything[there are pages below it")
class OverlooksPagesBelow(Draft):
    def below(self, page: int) -> dict[int, str]:
        return {}


@writing("test_refused_change_leaves_everything[objects lie in it")
class OverlooksMembers(Draft):
    def members(self, collection: int) -> int:
        return 0


@writing("test_refused_change_leaves_everything[stands in another object")
class OverlooksOwners(Draft):
    def owners(self, child: ObjectType, ids: Sequence[int]) -> Iterator[tuple[int, ObjectKey]]:
        return iter(())


@writing("test_links_in_rich_text_are_relations")
class OverlooksLinks(Draft):
    def referring(self, targets: Set[ObjectKey]) -> Iterator[ObjectKey]:
        return iter(())


@writing("test_ids_are_not_given_again")
class GivesIdsAgain(Draft):
    def next_id(self, endpoint: str) -> int:
        return max(self._objects[endpoint], default=0) + 1


@writing("test_slugs_of_one_title_differ")
class OverlooksSlugsAlike(Draft):
    def slugs(self, parent: int | None, start: str) -> frozenset[str]:
        return frozenset()


@caught_by("test_error_takes_back_the_block")
class UndoesNothing(MemoryBackend):
    @contextmanager
    def transaction(self) -> Iterator[Draft]:
        error = None
        with super().transaction() as draft:
            try:
                yield draft
            except Exception as raised:  # raised again when the changes have been kept
                error = raised
        if error is not None:
            raise error


@caught_by("test_others_see_changes_at_the_end")
class ShowsChangesEarly(MemoryBackend):
    def reader(self) -> nullcontext[Snapshot]:
        known = self._draft
        if known is None:
            return nullcontext(self.snapshot)
        return nullcontext(Snapshot(known.library(), self.snapshot.version))


@caught_by("test_change_makes_what_loading_makes[a language]")
class KeepsItsVersionInChanges(MemoryBackend):
    @contextmanager
    def transaction(self) -> Iterator[Draft]:
        version = self.snapshot.version
        with super().transaction() as draft:
            yield draft
        self._snapshot = Snapshot(self.snapshot.library, version)


@caught_by("test_nothing_is_dumped_or_loaded_within_a_block")
class DumpsWhatIsChanged(MemoryBackend):
    def require_no_writing(self, done: str) -> None:
        pass


def kits() -> dict[str, type[BackendTests]]:
    """For each fault the tests for backends, with that wrong backend and the test that has to
    fail alone."""
    return {f"Test{fault}": _kit(*wrong) for fault, wrong in FAULTS.items()}


def _kit(backend: type[Backend], test: str) -> type[BackendTests]:
    class TestWrong(BackendTests, WriteTests):
        def make_backend(self) -> Backend:
            return backend()

    own = test.partition("[")[0]
    for name in dir(TestWrong):
        if name.startswith("test_") and name != own:
            setattr(TestWrong, name, None)
    return TestWrong

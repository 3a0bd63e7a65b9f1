"""The addresses of the site: its API, its files, and pages with the language in front."""

from django.conf import settings
from django.conf.urls.i18n import i18n_patterns
from django.urls import include, path
from django.views.static import serve
from orchard.models import Person
from wagtail import urls as wagtail_urls
from wagtail.api.v2.router import WagtailAPIRouter
from wagtail.api.v2.views import BaseAPIViewSet, PagesAPIViewSet
from wagtail.contrib.redirects.api.v2 import RedirectsAPIViewSet
from wagtail.documents import urls as document_urls
from wagtail.documents.api.v2.views import DocumentsAPIViewSet
from wagtail.images.api.v2.views import ImagesAPIViewSet


class PeopleAPIViewSet(BaseAPIViewSet):
    model = Person
    name = "people"
    listing_default_fields = [*BaseAPIViewSet.listing_default_fields, "name"]
    nested_default_fields = [*BaseAPIViewSet.nested_default_fields, "name"]


api = WagtailAPIRouter("wagtailapi")
api.register_endpoint("pages", PagesAPIViewSet)
api.register_endpoint("images", ImagesAPIViewSet)
api.register_endpoint("documents", DocumentsAPIViewSet)
api.register_endpoint("redirects", RedirectsAPIViewSet)
api.register_endpoint("people", PeopleAPIViewSet)

urlpatterns = [
    path("api/v2/", api.urls),
    path("documents/", include(document_urls)),
    path("media/<path:path>", serve, {"document_root": settings.MEDIA_ROOT}),
    *i18n_patterns(path("", include(wagtail_urls)), prefix_default_language=False),
]

"""The settings of a small Wagtail site; its database and its files are in ``WAGTAIL_FOLDER``."""

import os
from pathlib import Path

FOLDER = Path(os.environ["WAGTAIL_FOLDER"])

SECRET_KEY = "of a site for tests"  # noqa: S105
ALLOWED_HOSTS = ["*"]
USE_TZ = True
LANGUAGE_CODE = "en"
ROOT_URLCONF = "urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = [
    "orchard",
    "wagtail.contrib.redirects",
    "wagtail.documents",
    "wagtail.images",
    "wagtail.search",
    "wagtail.users",
    "wagtail.admin",
    "wagtail.sites",
    "wagtail",
    "wagtail.api.v2",
    "rest_framework",
    "taggit",
    "modelcluster",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",  # tells lengths, so that connections stay open
    "django.middleware.locale.LocaleMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
]
TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": FOLDER / "site.db",
        "CONN_MAX_AGE": None,
        "OPTIONS": {"init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF;"},
    }
}
# Tables are made without the history of the models, which takes long.
MIGRATION_MODULES = {app.rpartition(".")[2]: None for app in INSTALLED_APPS} | {
    "wagtailcore": None,
    **{f"wagtail{name}": None for name in "admin redirects docs images search sites users".split()},
    **{f"wagtail{name}": None for name in ("documents", "api_v2")},
}
WAGTAILSEARCH_BACKENDS = {
    "default": {"BACKEND": "wagtail.search.backends.database", "AUTO_UPDATE": False}
}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
MEDIA_ROOT = FOLDER / "media"
MEDIA_URL = "/media/"
STATIC_URL = "/static/"
WAGTAIL_SITE_NAME = "Orchard"
WAGTAILADMIN_BASE_URL = "http://main.example"
WAGTAIL_I18N_ENABLED = True
LANGUAGES = WAGTAIL_CONTENT_LANGUAGES = [("en", "English"), ("de", "German"), ("fr", "French")]

"""Configuration of the documentation."""

from flask_contentapi import __version__

project = "flask_contentapi"
author = "the flask_contentapi authors"
copyright = f"2026, {author}"  # noqa: A001 - Sphinx's own name
version = release = __version__

extensions = ["sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
html_theme = "alabaster"
html_theme_options = {
    "description": "Headless content delivery for Flask",
    "fixed_sidebar": True,
}

autodoc_member_order = "bysource"
autodoc_typehints = "description"
nitpicky = False

"""Configuration of the documentation."""

from flask_contentapi import __version__

project = "flask_contentapi"
author = "the flask_contentapi authors"
copyright = f"2026, {author}"
version = release = __version__

extensions = ["sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
html_theme = "alabaster"
html_theme_options = {
    "description": "Headless content delivery for Flask",
    "fixed_sidebar": True,
    "page_width": "1160px",
    "sidebar_width": "270px",
    "code_font_size": "0.82em",
}

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
nitpicky = False

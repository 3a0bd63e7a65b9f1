"""The types of the site."""

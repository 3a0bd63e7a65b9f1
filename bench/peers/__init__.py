"""The same API by hand, for this one site: what the extension is measured against."""

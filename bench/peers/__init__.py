"""The same API, hand-written for this one site: what the extension is compared with."""

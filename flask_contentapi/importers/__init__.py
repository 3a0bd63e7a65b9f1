"""Makes content, and types if there are none yet, of what is there already: a site that speaks
this API, or a folder of Markdown."""

"""Makes content, and types if there are none yet, of a site that speaks this API already."""

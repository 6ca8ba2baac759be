"""All runs of a comparison, in parallel, each kept as a row."""

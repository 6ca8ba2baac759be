"""All runs of a comparison: one after another or at once, each kept as a row."""

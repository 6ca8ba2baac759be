"""TOML files of comparisons, turned into objects."""

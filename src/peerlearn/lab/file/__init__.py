"""A comparison from its TOML file."""

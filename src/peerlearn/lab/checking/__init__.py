"""Checks of a comparison before its first run: the one place that refuses one."""

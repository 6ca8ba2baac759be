"""Rows of runs on disk, and the results read from them."""

"""Computations of one agent alone, without messages."""

"""Figures of comparisons, drawn from result files or plain arrays."""

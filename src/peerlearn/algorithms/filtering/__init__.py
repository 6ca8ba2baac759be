"""Adaptive filters that agents learn together, sample by sample."""

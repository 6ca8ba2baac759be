"""Adaptive filters of signals that arrive sample by sample at all agents."""

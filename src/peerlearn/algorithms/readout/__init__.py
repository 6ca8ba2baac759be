"""Solvers of the linear readout (ridge or lasso) over rows that stay with their agents.

One file per method.
"""

"""Solvers of the linear readout, ridge or lasso over rows that stay where they are: one file per method."""

"""Numbers computed from the rows of a result folder: cells, ranks, tests, expectations."""

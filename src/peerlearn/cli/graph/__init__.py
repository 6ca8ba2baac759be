"""The command graph: how fast agents on a graph come to agree."""

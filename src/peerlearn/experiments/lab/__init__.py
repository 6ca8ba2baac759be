"""The lab: a comparison of models over networks is described once, run, kept as rows, and shown from those rows."""

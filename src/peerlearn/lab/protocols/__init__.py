"""Protocols: how one run is made of a data set, a model and a network. A new file here is a new protocol."""

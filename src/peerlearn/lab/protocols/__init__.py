"""Protocols: how a run is made of a data set, a model and a network, one file each."""

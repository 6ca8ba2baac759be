"""Agents at different sites: gRPC over mutual TLS."""

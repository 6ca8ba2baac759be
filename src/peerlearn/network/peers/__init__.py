"""Peer engine: one agent per process, over gRPC with mutual TLS."""

"""One run from its data to its numbers, whatever the protocol."""

"""Real agents on real sites: their descriptions, one agent as a process, and a whole network on one machine."""

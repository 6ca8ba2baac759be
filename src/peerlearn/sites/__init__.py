"""Agents as processes: the file of a site, one agent, and a whole network on one machine."""

"""Files, folder locks, stop signals and the terminal: what the lab, sites and commands share."""

"""Whether what a comparison describes can be run, told before the first run."""

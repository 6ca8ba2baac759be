"""Version of the numbers that agents compute.

Agents must compute the same numbers from the same seed and settings. Raise NUMERICS by one if a
change to peerlearn alters the numbers drawn from a seed, a formula, or the order of a sum or of
network calls. Agents of different versions then refuse to train together, and checkpoints of
another version are refused. `fit` compares what depends on the machine (numpy's generators, the
mathematical library), as a digest of the drawn numbers.
"""

NUMERICS = 4

"""The version of the numbers that agents compute.

Agents must compute the same numbers from the same seed and settings. Where a change to peerlearn
alters what is drawn from a seed, a formula, or the order of a sum or of network calls, raise
NUMERICS by one: agents of different versions then refuse to train together, and checkpoints of
another version are refused. What the machine contributes (numpy's generators, the mathematical
library) is compared by `fit`, as a digest of what was drawn.
"""

NUMERICS = 2

"""Sizes that the memory of sparse products and their machine code agree on."""

LANES = 8  # one vector register where it has 512 bits
CHAINS = 4  # sums that grow side by side: one alone would wait for every addition

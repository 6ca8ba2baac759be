"""Sizes that the memory of sparse products and their machine code agree on."""

LANES = 8  # doubles in a vector register of 512 bits
CHAINS = 4  # sums that grow side by side, because one alone would wait for every addition

"""Whole numbers modulo 2^(64 w), as w words of 64 bits each along the last axis, lowest first.

Sums of words alone would show carries: how many of the low words overflow is more than the total
tells. So numbers of several words are added with carries, and wrap around together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from peerlearn.secret.keys import Words

BITS = 64


def add(a: Words, b: Words) -> Words:
    """Return a + b."""
    total = a + b
    if total.shape[-1] == 1:
        return total
    carry = total < a
    for limb in range(1, total.shape[-1]):
        total[..., limb] += carry[..., limb - 1]
        # A word of ones plus a carry is zero; it did not overflow before.
        carry[..., limb] |= carry[..., limb - 1] & (total[..., limb] == 0)
    return total


def negate(a: Words) -> Words:
    """Return -a."""
    if a.shape[-1] == 1:
        return -a
    one = np.zeros(a.shape, dtype=np.uint64)
    one[..., 0] = 1
    return add(~a, one)


def of_whole(numbers: Sequence[int], limbs: int) -> Words:
    """Return Python's whole numbers, of any sign, as words."""
    size = limbs * BITS // 8
    modulus = 1 << (limbs * BITS)
    content = b"".join((number % modulus).to_bytes(size, "little") for number in numbers)
    return np.frombuffer(content, dtype="<u8").astype(np.uint64).reshape(len(numbers), limbs)


def to_whole(words: Words) -> list[int]:
    """Return words as Python's whole numbers from 0 on."""
    little = np.ascontiguousarray(words, dtype="<u8")
    size = 8 * little.shape[-1]
    content = little.tobytes()
    starts = range(0, len(content), size)
    return [int.from_bytes(content[start : start + size], "little") for start in starts]

"""Random features: a fixed hidden layer that every agent draws alike, so that it is never sent.

    h(x) = g(W' x + b),      W and b uniform on [-1, 1]

Pao, Park and Sobajic, Learning and generalization characteristics of the random vector functional-link net, 1994;
thesis, section 4.1. With direct links the readout also sees x itself, as in the original network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from peerlearn.arrays import Array
from peerlearn.errors import InputError

BLOCK = 512  # rows whose features stay in the cache while they are used


def _sigmoid(z: Array) -> None:
    np.negative(z, out=z)
    with np.errstate(over="ignore"):  # exp of a large number is inf, and 1 / inf the right answer
        np.exp(z, out=z)
    z += 1.0
    np.reciprocal(z, out=z)


ACTIVATIONS: dict[str, Callable[[Array], Any]] = {  # in place: this is half the time of a large fit
    "sigmoid": _sigmoid,
    "tanh": lambda z: np.tanh(z, out=z),
    "relu": lambda z: np.maximum(z, 0.0, out=z),
    "sine": lambda z: np.sin(z, out=z),
}


@dataclass(frozen=True)
class RandomFeatures:
    """x -> h(x): the hidden layer of a random vector functional-link network."""

    W: Array  # inputs x hidden units
    b: Array  # hidden units
    activation: str = "sigmoid"
    direct_links: bool = False

    @classmethod
    def draw(
        cls, inputs: int, hidden: int, *, seed: int, activation: str = "sigmoid", direct_links: bool = False
    ) -> RandomFeatures:
        if activation not in ACTIVATIONS:
            raise InputError(f"activation {activation!r} is not known: choose one of {', '.join(ACTIVATIONS)}")
        rng = np.random.default_rng(seed)
        W = rng.uniform(-1.0, 1.0, (inputs, hidden))
        return cls(W, rng.uniform(-1.0, 1.0, hidden), activation, direct_links)

    @property
    def width(self) -> int:
        """How many features there are: B in the formulas."""
        return len(self.b) + (len(self.W) if self.direct_links else 0)

    def __call__(self, X: Array) -> Array:
        """H = h(X), one row per row of X."""
        H = X @ self.W
        H += self.b
        ACTIVATIONS[self.activation](H)
        return np.hstack([H, X]) if self.direct_links else H

    def blocks(self, X: Array) -> Iterator[tuple[slice, Array]]:
        """h(X), a block of rows at a time: so that many rows never need a large H."""
        for start in range(0, len(X), BLOCK):
            rows = slice(start, start + BLOCK)
            yield rows, self(X[rows])

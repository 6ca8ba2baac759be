"""Random features: a fixed hidden layer that every agent draws alike, so it is never sent.

    h(x) = g(W' x + b),      W and b uniform on [-1, 1]

Pao, Park and Sobajic, Learning and generalization characteristics of the random vector
functional-link net, 1994; thesis, section 4.1. With direct links the readout also sees x itself, as
in the original network. Features that were chosen from the data see standardised inputs, which are
limited: a value that is far from all others would spoil predictions through the direct links.

A large fit spends a third of its time in the activation. So the product X W is computed at once,
and the activation passes over IN_CACHE rows at a time, in place, while they are in the cache.

X may be sparse (csr). Its features are dense, and `blocks` has few of them in memory at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.sparse import issparse

from peerlearn.arrays import Array
from peerlearn.errors import InputError

BLOCK = 1024  # rows whose features are in memory at a time if there are many rows
IN_CACHE = 128  # rows that stay in the cache while the activation passes over them
MOST = 3.0  # deviations from the mean that a standardised input can be away from it


def _sigmoid(z: Array, b: Array) -> None:
    np.subtract(-b, z, out=z)
    with np.errstate(over="ignore"):  # exp of a large number is inf, and 1 / inf the right answer
        np.exp(z, out=z)
    z += 1.0
    np.reciprocal(z, out=z)


def _tanh(z: Array, b: Array) -> None:
    z += b
    np.tanh(z, out=z)


def _relu(z: Array, b: Array) -> None:
    z += b
    np.maximum(z, 0.0, out=z)


def _sine(z: Array, b: Array) -> None:
    z += b
    np.sin(z, out=z)


ACTIVATIONS: dict[str, Callable[[Array, Array], None]] = {  # z <- g(z + b), in place
    "sigmoid": _sigmoid,
    "tanh": _tanh,
    "relu": _relu,
    "sine": _sine,
}


def check_activation(activation: str) -> None:
    """Refuse an activation that is not in ACTIVATIONS."""
    if activation not in ACTIVATIONS:
        raise InputError(
            f"activation {activation!r} is not known: choose one of {', '.join(ACTIVATIONS)}"
        )


def standardise(X: Any, mean: Array, scale: Array | None) -> Array:
    """Return z = (x - m) / s, limited to [-MOST, MOST], so that no row is far from all others.

    X may be sparse. The result is dense. scale: 1 / s; None stands for 1.
    """
    z: Array = (X.toarray() if issparse(X) else X) - mean
    if scale is not None:
        z *= scale
    return np.clip(z, -MOST, MOST, out=z)


def clip_rows(H: Array, norm: float) -> None:
    """Shorten rows that are longer than `norm` to that length, in place."""
    lengths = np.sqrt(np.einsum("...i,...i->...", H, H))
    H *= (norm / np.maximum(lengths, norm))[..., None]


class FeatureMap(Protocol):
    """A map x -> h(x) from rows to features, which all agents have alike."""

    @property
    def width(self) -> int:
        """Number of features, B in the formulas."""
        ...

    def __call__(self, X: Any) -> Array:
        """Return H = h(X), one row per row of X."""
        ...

    def blocks(self, X: Any) -> Iterator[tuple[slice, Array]]:
        """Yield h(X), some rows at a time."""
        ...


@dataclass(frozen=True)
class RandomFeatures:
    """Hidden layer x -> h(x) of a random vector functional-link network."""

    W: Array  # inputs x hidden units
    b: Array  # hidden units
    activation: str = "sigmoid"
    direct_links: bool = False
    center: Array | None = None  # subtracted from all features; None subtracts nothing
    mean: Array | None = None  # m of the inputs; None leaves the inputs as they are
    scale: Array | None = None  # 1 / s of the inputs
    norm: float | None = None  # longer rows of features are shortened to it; None shortens none

    @classmethod
    def draw(
        cls,
        inputs: int,
        hidden: int,
        *,
        seed: int,
        activation: str = "sigmoid",
        direct_links: bool = False,
    ) -> RandomFeatures:
        """Draw W and b from the seed."""
        check_activation(activation)
        rng = np.random.default_rng(seed)
        W = rng.uniform(-1.0, 1.0, (inputs, hidden))
        return cls(W, rng.uniform(-1.0, 1.0, hidden), activation, direct_links)

    @property
    def width(self) -> int:
        """Number of features, B in the formulas."""
        return len(self.b) + (len(self.W) if self.direct_links else 0)

    def __call__(self, X: Any, out: Array | None = None) -> Array:
        """Return H = h(X), one row per row of X; written to `out` if it is given."""
        hidden = len(self.b)
        rows = X.shape[0]
        H = np.empty((rows, self.width)) if out is None else out
        if self.mean is not None:
            X = standardise(X, self.mean, self.scale)
        if issparse(X):
            H[:, :hidden] = X @ self.W
        else:
            np.matmul(X, self.W, out=H[:, :hidden])
        for start in range(0, rows, IN_CACHE):
            ACTIVATIONS[self.activation](H[start : start + IN_CACHE, :hidden], self.b)
        if self.direct_links:
            H[:, hidden:] = X.toarray() if issparse(X) else X
        if self.center is not None:
            H -= self.center
        if self.norm is not None:
            clip_rows(H, self.norm)
        return H

    def map_stack(self, X: Array) -> Array:
        """Return H = h(X) for a stack, agents x rows x inputs.

        The bits of an agent do not depend on the other agents.
        """
        hidden = len(self.b)
        rows = X.shape[1]
        H = np.empty((*X.shape[:2], self.width))
        if self.mean is not None:
            X = standardise(X, self.mean, self.scale)
        np.matmul(X, self.W, out=H[..., :hidden])
        at_once = max(IN_CACHE // max(rows, 1), 1)
        for start in range(0, len(X), at_once):
            ACTIVATIONS[self.activation](H[start : start + at_once, :, :hidden], self.b)
        if self.direct_links:
            H[..., hidden:] = X
        if self.center is not None:
            H -= self.center
        return H

    def blocks(self, X: Any) -> Iterator[tuple[slice, Array]]:
        """Yield h(X), some rows at a time, all in the same memory: use or copy them."""
        N = X.shape[0]
        buffer = np.empty((min(N, BLOCK), self.width))
        for start in range(0, N, BLOCK):
            rows = slice(start, min(start + BLOCK, N))
            yield rows, self(X[rows], buffer[: rows.stop - start])

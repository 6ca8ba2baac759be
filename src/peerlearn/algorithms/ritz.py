"""The smallest eigenvalue of P A, as conjugate gradients come to know it.

With steps s_j and t_j (d_{j+1} = z_{j+1} + t_j d_j) the iteration has built the tridiagonal matrix

    T_jj = 1/s_j + t_{j-1}/s_{j-1},     T_{j,j+1} = sqrt(t_j)/s_j

whose eigenvalues, the Ritz values, approach those of P A from within (Golub and Van Loan, Matrix computations, section
11.3.5). The smallest turns a residual into a distance.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigvalsh_tridiagonal

from peerlearn.arrays import Array


class Ritz:
    """One tridiagonal matrix per column, grown by a row with every iteration."""

    def __init__(self, columns: int) -> None:
        self.smallest: Array = np.ones(columns)  # P is meant to be near A^-1
        self.begin()

    def begin(self) -> None:
        """A new run of the iteration: another matrix. What was seen of the spectrum stays true."""
        self._s: list[Array] = []
        self._t: list[Array] = []

    def add(self, s: Array, t: Array) -> None:
        self._s.append(s)
        self._t.append(t)
        steps, turns = np.array(self._s), np.maximum(np.array(self._t), 0.0)
        for column in np.flatnonzero((steps > 0).all(axis=0)):  # a column that is solved takes no more steps
            step, turn = steps[:, column], turns[:, column]
            diagonal = 1 / step
            diagonal[1:] += turn[:-1] / step[:-1]
            beside = np.sqrt(turn[:-1]) / step[:-1]
            value = eigvalsh_tridiagonal(diagonal, beside, select="i", select_range=(0, 0))[0]
            if 0 < value < self.smallest[column]:
                self.smallest[column] = value

"""Models of sequences: every agent has sequences of its own, in which rows are times.

deal       sequences to the hosted agents, or check the shares            alone
compare    settings, and what is drawn from the seed                      over the network
train      on what comes of it                                            over the network
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from peerlearn.models.base import DEALING, Setup, Takes
from peerlearn.models.fitted_model import Answer, FittedModel
from peerlearn.models.sequences import Sequences, sequences_of


class SequenceModel(FittedModel):
    """Base class of models of sequences. They have a parameter `washout`, and a subclass has `train`."""

    takes: ClassVar[Takes] = "sequences"
    seeds: ClassVar[tuple[str, ...]] = (DEALING,)

    washout: int
    _single_output: bool  # whether y has no second axis
    _n_outputs: int

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Train on X, y: one sequence, an array of time x inputs, or a list of them (or a 3-D array), and y likewise.

        Where all agents of a network are hosted here, many sequences are dealt to them evenly, and
        one sequence is cut into one stretch of time per agent; a process that hosts one agent gives
        that agent's own. fit(shares) takes a list of (X_k, y_k), one per hosted agent; a table of 0
        rows is for one that has no samples. The state is zero where a sequence begins, or a
        stretch.
        """
        return self.fit_over_network(X, y)

    def learn(self, setup: Setup, *given: Any) -> Answer:
        sequences = sequences_of(
            self, setup.network, *given, washout=self.washout, seed=setup.seeds[DEALING]
        )
        self._single_output, self._n_outputs = sequences.single, sequences.targets[0].shape[1]
        samples = (
            np.bincount(sequences.owners, [len(x) for x in sequences.inputs]).astype(int).tolist()
        )
        self.draw_and_compare(setup, self.n_features_in_, self._n_outputs, rows=samples)
        return self.train(setup, sequences)

    @abstractmethod
    def train(self, setup: Setup, sequences: Sequences) -> Answer:
        """Return what all agents learn together from the sequences of the hosted ones, some of which have none."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.input_tags.three_d_array = True
        # The tag that leaves out just the two checks that shuffle rows, or predict some of them:
        # here rows are times.
        tags.non_deterministic = True
        return tags

"""Models of sequences: every agent has its own sequences, in which rows are time steps.

deal       sequences to the hosted agents, or check the shares            alone
compare    settings and random parts                                      over the network
train      on the sequences                                               over the network
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from peerlearn.models.base import DEALING, Answer, FittedModel, Setup, Takes
from peerlearn.models.sequence_shares import Sequences, sequences_of


class SequenceModel(FittedModel):
    """Base class of models of sequences.

    A subclass has a parameter `washout` and implements `train`.
    """

    takes: ClassVar[Takes] = "sequences"
    seeds: ClassVar[tuple[str, ...]] = (DEALING,)

    washout: int
    _single_output: bool  # whether y has no second axis
    _n_outputs: int

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Train on sequences and their outputs.

        If all agents of a network are hosted here, a list of sequences is dealt to them evenly, and
        a single sequence is cut into one stretch of time per agent. A process that hosts one agent
        gives that agent's sequences. The state is zero at the beginning of each sequence or
        stretch.

        Parameters
        ----------
        X : array-like of shape (n_times, n_inputs), list of such arrays, or list of (X_k, y_k)
            One sequence, or many sequences (a list, or an array with three axes). A list of shares
            has one (X_k, y_k) per hosted agent; an agent without samples has a table of 0 rows.
        y : array-like of shape (n_times,) or (n_times, n_outputs), or list of them, default None
            The outputs of the sequences; None if X is a list of shares.

        Returns
        -------
        self : the model
        """
        return self.fit_over_network(X, y)

    def learn(self, setup: Setup, *given: Any) -> Answer:
        sequences = sequences_of(
            self, setup.network, *given, washout=self.washout, seed=setup.seeds[DEALING]
        )
        self._single_output = sequences.single
        self._n_outputs = sequences.targets[0].shape[1]
        lengths = [len(x) for x in sequences.inputs]
        samples = np.bincount(sequences.owners, lengths).astype(int).tolist()
        self.draw_and_compare(setup, self.n_features_in_, self._n_outputs, rows=samples)
        return self.train(setup, sequences)

    @abstractmethod
    def train(self, setup: Setup, sequences: Sequences) -> Answer:
        """Train all agents together, and return the answer. Hosted agents may have no samples."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.input_tags.three_d_array = True
        # Rows are time steps, so scikit-learn's two checks that shuffle rows or predict only some
        # of them do not apply. This tag switches off exactly those two.
        tags.non_deterministic = True
        return tags

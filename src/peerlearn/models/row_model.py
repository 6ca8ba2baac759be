"""Models of rows: every agent has rows of its own, with all columns, and a target for each.

deal       X and y to the hosted agents, or check the shares              alone
encode     targets as numbers; classifiers agree on their classes         over the network
compare    settings, and what is drawn from the seed                      over the network
train      on what comes of it                                            over the network
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from peerlearn.arrays import Array
from peerlearn.data.dataset import AnyArray
from peerlearn.models.base import DEALING, Setup
from peerlearn.models.fitted_model import Answer, FittedModel
from peerlearn.models.shares import shares_of
from peerlearn.models.targets import Targets


class RowModel(Targets, FittedModel):
    """Base class of models of rows.

    A subclass has `train` and `agent_outputs`, and is a classifier (`LabelTargets`) or a regressor
    (`NumberTargets`).
    """

    seeds: ClassVar[tuple[str, ...]] = (DEALING,)

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Train on X, y: dealt to the agents if all of them are hosted here, this agent's share if it is the only one.

        fit(shares) takes a list of (X_k, y_k), one per hosted agent, as `peerlearn.partition` makes
        it.
        """
        return self.fit_over_network(X, y)

    def learn(self, setup: Setup, *given: Any) -> Answer:
        inputs, targets = shares_of(self, setup.network, *given, seed=setup.seeds[DEALING])
        outputs = self.encode(setup.network, targets)
        rows = [own.shape[0] for own in inputs]
        self.draw_and_compare(setup, inputs[0].shape[1], outputs[0].shape[1], rows=rows)
        return self.train(setup, inputs, outputs)

    @abstractmethod
    def train(self, setup: Setup, inputs: list[Any], outputs: list[Array]) -> Answer:
        """Return what all agents learn together.

        inputs: n_k x d of each hosted agent, checked, some of them with no rows. outputs: n_k x M,
        its
        targets as numbers.
        """

    def rows_to_predict(self, X: ArrayLike) -> Any:
        """Return rows as numbers if the model is fitted, and fitted to such columns."""
        check_is_fitted(self)
        sparse = "csr" if get_tags(self).input_tags.sparse else False
        return validate_data(self, X, accept_sparse=sparse, dtype=np.float64, reset=False)

    def to_archive(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        return {}, self.target_entries()

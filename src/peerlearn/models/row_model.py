"""Models of rows: every agent has its own rows, with all columns and a target for each row.

deal       X and y to the hosted agents, or check the shares              alone
encode     targets as numbers; classifiers agree on their classes         over the network
compare    settings and random parts                                      over the network
train      on inputs and encoded targets                                  over the network
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
from peerlearn.models.row_shares import shares_of
from peerlearn.models.targets import Targets


class RowModel(Targets, FittedModel):
    """Base class of models of rows.

    A subclass implements `train` and `agent_outputs`. It also inherits from `LabelTargets` if it is
    a classifier, or from `NumberTargets` if it is a regressor.
    """

    seeds: ClassVar[tuple[str, ...]] = (DEALING,)

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Train on rows and their targets.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns), or list of (X_k, y_k)
            The rows. If all agents are hosted here, the rows are dealt to them. A process that
            hosts one agent gives that agent's rows. A list of shares, as `peerlearn.partition`
            makes it, has one (X_k, y_k) per hosted agent.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs), default None
            The targets of the rows; None if X is a list of shares.

        Returns
        -------
        self : the model
        """
        return self.fit_over_network(X, y)

    def learn(self, setup: Setup, *given: Any) -> Answer:
        inputs, outputs, _ = self.checked_rows(setup, *given)
        return self.train(setup, inputs, outputs)

    def checked_rows(
        self, setup: Setup, X: Any, y: Any, weights: Any = None
    ) -> tuple[list[Any], list[Array], list[Array] | None]:
        """Return checked inputs, encoded targets and weights, after agents compared settings."""
        inputs, targets, dealt = shares_of(
            self, setup.network, X, y, seed=setup.seeds[DEALING], weights=weights
        )
        outputs = self.encode(setup.network, targets)
        rows = [own.shape[0] for own in inputs]
        columns = inputs[0].shape[1]
        self.draw_and_compare(setup, columns, outputs[0].shape[1], rows=rows)
        return inputs, outputs, dealt

    @abstractmethod
    def train(self, setup: Setup, inputs: list[Any], outputs: list[Array]) -> Answer:
        """Train all agents together, and return the answer.

        inputs: checked rows of each hosted agent, n_k x d; n_k may be 0.
        outputs: encoded targets of each hosted agent, n_k x M.
        """

    def rows_to_predict(self, X: Any) -> Any:
        """Check that the model is fitted and X has its columns, and return X as numbers."""
        check_is_fitted(self)
        sparse = "csr" if get_tags(self).input_tags.sparse else False
        return validate_data(self, X, accept_sparse=sparse, dtype=np.float64, reset=False)

    def to_archive(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        return {}, self.target_entries()

"""Regression of numbers, counts and positive numbers, with standard errors.

    minimise  sum_k sum_i a_i phi(y_i, f(x_i))  +  alpha/2 |b|^2         k: agents, i: their rows
    f(x) = b'x + b_0,   expected y: f(x), or exp f(x)

phi is the negative log-likelihood of a family (local/families.py). McCullagh and Nelder,
Generalized linear models, 1989. A saved file also has the entry family in its text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import column_or_1d

from peerlearn.algorithms.smooth import SmoothSolver
from peerlearn.arrays import Array
from peerlearn.errors import DataError, InputError
from peerlearn.local.families import REGRESSIONS, OutputFamily
from peerlearn.models.base import RandomState
from peerlearn.models.generalised_linear import GeneralisedLinear, check_offset
from peerlearn.models.targets import NumberTargets
from peerlearn.network import Network

__all__ = ["GLMRegressor"]


class GLMRegressor(NumberTargets, GeneralisedLinear):
    """Generalised linear regression that agents train together; rows stay at their agents.

    The answer is that of all rows in one place. Without a penalty, `summary` has standard errors,
    confidence intervals, p-values, deviance and AIC.

    Parameters
    ----------
    family : {"gaussian", "poisson", "gamma"}, default "gaussian"
        Distribution of the targets: any numbers, counts of 0 or more, or numbers above 0. Poisson
        and gamma have the log link: exp f(x) is predicted.
    alpha : float, default 1.0
        Weight of the penalty on the coefficients; the intercept has none. 0 fits by maximum
        likelihood.
    penalty : {"ridge", "lasso"}, default "ridge"
        alpha/2 times the sum of squares of the coefficients, or alpha times the sum of their sizes,
        which makes some of them 0. A lasso needs the solver "newton".
    fit_intercept : bool, default True
        Whether f(x) has a constant.
    solver : str or SmoothSolver, default "newton"
        How agents minimise together: "newton", which is exact to 1e-8 and takes up to 1000
        coefficients, "lbfgs", "tracking", "diffusion", or an object with settings.
    network : Network or None, default None
        The graph of agents. None trains on all rows in one place, the centralised baseline.
    random_state : int, RandomState or None, default None
        Seed of the dealing of rows to agents.

    Attributes
    ----------
    coefficients_ : ndarray of shape (n_hosted_agents, n_columns, 1)
        Coefficients of each hosted agent.
    intercept_ : ndarray of shape (n_hosted_agents, 1)
        The constant of each hosted agent; 0 without fit_intercept.
    inference_ : Inference or None
        What `summary` shows; None if alpha is above 0.
    report_ : Report
        What the solver did and what was sent. It prints as a small table.

    Examples
    --------
    >>> import numpy as np
    >>> from peerlearn import GLMRegressor, SimulatedNetwork, graphs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((400, 2))
    >>> visits = rng.poisson(np.exp(1.0 + 0.5 * X[:, 0]))
    >>> network = SimulatedNetwork(graphs.ring(4))
    >>> model = GLMRegressor("poisson", alpha=0, network=network, random_state=0)
    >>> table = model.fit(X, visits).summary()
    >>> table.coefficients.round(2), table.standard_errors.round(2)
    (array([ 0.94,  0.53, -0.05]), array([0.03, 0.03, 0.03]))
    """

    def __init__(
        self,
        family: str = "gaussian",
        alpha: float = 1.0,
        *,
        penalty: str = "ridge",
        fit_intercept: bool = True,
        solver: SmoothSolver | str = "newton",
        network: Network | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.family = family
        self.alpha = alpha
        self.penalty = penalty
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.network = network
        self.random_state = random_state

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.family not in REGRESSIONS:
            raise InputError(
                f"family is {self.family!r:.60}: give one of {', '.join(map(repr, REGRESSIONS))}"
            )

    def family_of_targets(self) -> OutputFamily:
        return REGRESSIONS[self.family]()

    def encode(self, network: Network, targets: Sequence[Any]) -> list[Array]:
        """Return each hosted agent's numbers as rows x 1, if the family can have them."""
        outputs = []
        for agent, y in zip(network.hosted, targets, strict=True):
            own = np.asarray(column_or_1d(y, warn=True), dtype=np.float64)
            self._check_range(own, network.names[agent])
            outputs.append(own)
        return super().encode(network, outputs)

    def _check_range(self, y: Array, agent: Any) -> None:
        wrong = {"poisson": y < 0, "gamma": y <= 0}.get(self.family)
        if wrong is None or not wrong.any():
            return
        wanted = "0 or more" if self.family == "poisson" else "above 0"
        raise DataError(
            f"agent {agent}: y has {y[wrong][0]:g}, where the family {self.family!r} takes numbers "
            f"{wanted}: leave such rows out, or use another family"
        )

    def check_means(self, means: Array) -> None:
        if self.family == "poisson" and not means[0] > 0:
            raise DataError(
                "all targets of the whole network are 0, so that no mean above 0 is best: check y"
            )

    def decode(self, outputs: Array) -> Any:
        return REGRESSIONS[self.family]().mean(super().decode(outputs))

    def predict(self, X: ArrayLike, offset: ArrayLike | None = None) -> Array:
        """Return the expected target of each row, by the first hosted agent's coefficients.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
            The rows.
        offset : array-like of shape (n_rows,), default None
            What is added to f(x), as in `fit`; None adds nothing.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        f = self.agent_outputs(X, slice(1))[0]
        if offset is not None:
            f = f + check_offset(offset, len(f), 1, "")
        expected: Array = self.decode(f)
        return expected

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        tags.target_tags.positive_only = self.family != "gaussian"
        return tags

"""Logistic regression of two classes or more, with standard errors.

    minimise  sum_k sum_i -a_i log p(y_i | x_i)  +  alpha/2 |B|^2        k: agents, i: their rows
    p(c | x) = exp f_c(x) / sum_c exp f_c(x),   f(x) = B'x + b

With two classes, f is the output of the second class, and that of the first is 0. With more, all
classes have an output, and outputs are shifted so that coefficients have mean 0 over classes.
Newton needs about 7 sums. Hastie, Tibshirani and Friedman, The elements of statistical learning,
2009, section 4.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, softmax

from peerlearn.algorithms.likelihood import SUMS
from peerlearn.algorithms.smooth import SmoothSolver
from peerlearn.algorithms.sums import sum_alike
from peerlearn.arrays import Array
from peerlearn.errors import DataError
from peerlearn.local.families import Logistic, Multinomial, OutputFamily
from peerlearn.models.base import RandomState
from peerlearn.models.class_weight import ClassWeight, check_class_weight, weigh_classes
from peerlearn.models.generalised_linear import GeneralisedLinear
from peerlearn.models.labels import stream_classes
from peerlearn.models.targets import LabelTargets
from peerlearn.network import Network

__all__ = ["LogisticClassifier"]


class LogisticClassifier(LabelTargets, GeneralisedLinear):
    """Logistic regression that agents train together; rows stay at their agents.

    The answer is that of all rows in one place. Without a penalty, `summary` has standard errors,
    confidence intervals, p-values, deviance and AIC.

    Parameters
    ----------
    alpha : float, default 1.0
        Weight of the penalty on the coefficients; the intercept has none. It is 1/C of
        scikit-learn. 0 fits by maximum likelihood.
    penalty : {"ridge", "lasso"}, default "ridge"
        alpha/2 times the sum of squares of the coefficients, or alpha times the sum of their sizes,
        which makes some of them 0. A lasso needs the solver "newton".
    fit_intercept : bool, default True
        Whether f(x) has a constant.
    classes : sequence of labels or None, default None
        All labels that any agent may have. Agents then send each other no labels, and a network
        with secrecy needs that. None lets `fit` find the labels that occur anywhere in the network.
    class_weight : "balanced", dict of label: weight, or None, default None
        Factors of the log-likelihoods of each class's rows. With "balanced", all classes have the
        same weight together: a class weighs the more the fewer rows the whole network has of it.
        That costs one more sum, of as many numbers as there are classes. Standard errors are then
        those of weighted rows: see `fit`.
    solver : str or SmoothSolver, default "newton"
        How agents minimise together: "newton", which is exact to 1e-8 and takes up to 1000
        coefficients, "lbfgs", "tracking", "diffusion", or an object with settings.
    network : Network or None, default None
        The graph of agents. None trains on all rows in one place, the centralised baseline.
    random_state : int, RandomState or None, default None
        Seed of the dealing of rows to agents.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        All labels that occur anywhere in the network, or those that were given.
    coefficients_ : ndarray of shape (n_hosted_agents, n_columns, M)
        Coefficients of each hosted agent. M is 1 for two classes, else one output per class.
    intercept_ : ndarray of shape (n_hosted_agents, M)
        The constant of each hosted agent; 0 without fit_intercept.
    inference_ : Inference or None
        What `summary` shows; None if alpha is above 0.
    report_ : Report
        What the solver did and what was sent. It prints as a small table.

    Examples
    --------
    >>> from peerlearn import LogisticClassifier, SimulatedNetwork, data, graphs
    >>> iris = data.load("iris")
    >>> network = SimulatedNetwork(graphs.ring(4))
    >>> model = LogisticClassifier(network=network, random_state=0).fit(iris.X, iris.y)
    >>> model.predict_proba(iris.X[:1]).round(2)
    array([[0.96, 0.04, 0.  ]])

    Standard errors, of versicolor against virginica:

    >>> model = LogisticClassifier(alpha=0, network=network, random_state=0)
    >>> table = model.fit(iris.X[50:, :2], iris.y[50:]).summary()
    >>> table.standard_errors.round(3)
    array([0.39 , 0.93 , 1.035])
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        penalty: str = "ridge",
        fit_intercept: bool = True,
        classes: Sequence[Any] | None = None,
        class_weight: ClassWeight = None,
        solver: SmoothSolver | str = "newton",
        network: Network | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.alpha = alpha
        self.penalty = penalty
        self.fit_intercept = fit_intercept
        self.classes = classes
        self.class_weight = class_weight
        self.solver = solver
        self.network = network
        self.random_state = random_state

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.classes is not None:
            stream_classes(self.classes)
        check_class_weight(self.class_weight)

    def weigh_rows(
        self, network: Network, outputs: list[Array], weights: list[Array] | None
    ) -> list[Array] | None:
        return weigh_classes(
            self.class_weight,
            self.classes_.tolist(),
            outputs,
            weights,
            lambda counts: sum_alike(network, counts, SUMS, "rows of each class"),
        )

    def family_of_targets(self) -> OutputFamily:
        if len(self.classes_) == 2:
            return Logistic()
        return Multinomial(has_reference=not self._has_lasso)

    def check_means(self, means: Array) -> None:
        shares = means
        if len(self.classes_) == 2:
            shares = np.array([1.0 - means[0], 1.0 + means[0]])
        if shares.min() <= 0:
            label = self.classes_[shares.argmin()]
            raise DataError(
                f"all rows of class {label} have weight 0 in the whole network: give some of them "
                "a weight above 0, or leave them out"
            )

    def outputs_of_targets(self, W: Array) -> Array:
        if W.shape[2] in (1, len(self.classes_)):
            return W
        of_all = np.concatenate([np.zeros_like(W[:, :, :1]), W], axis=2)
        means: Array = of_all.mean(axis=2, keepdims=True)
        return of_all - means

    def predict_proba(self, X: ArrayLike) -> Array:
        """Return the probability of each class, by the first hosted agent's coefficients.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        return self._probabilities(self.agent_outputs(X, slice(1))[0])

    def agent_probabilities(self, X: ArrayLike) -> Array:
        """Return the probabilities of every hosted agent: agents x rows x classes."""
        return np.stack([self._probabilities(f) for f in self.agent_outputs(X)])

    def _probabilities(self, f: Array) -> Array:
        if len(self.classes_) == 2:
            second: Array = expit(f)
            return np.hstack([1.0 - second, second])
        probabilities: Array = softmax(f, axis=1)
        return probabilities

    def name_coefficients(self, names: list[str]) -> list[str]:
        """Return names, and the class that a coefficient compares with the first class."""
        if len(self.classes_) == 2:
            return names
        return [f"{name}, {label}" for name in names for label in self.classes_[1:]]

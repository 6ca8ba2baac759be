"""Every agent has some columns of every row; row identity is checked by keyed hashes.

Random vector functional-link networks over columns (thesis, chapter 6):

    f(x) = c + sum_k b_k'h_k(x_k)

    x_k: the columns of agent k,   h_k: its random features,   b_k: its coefficients

All agents know y. A solver of `peerlearn.algorithms.columns` finds b_1 .. b_L while the columns
stay at their agents. Every agent has all rows of its own features, and y: it subtracts their means
itself, and the intercept c costs no message. Agents also predict together: each computes its part,
and the network sums the parts.

    deal       columns to the hosted agents, or check their tables               alone
    compare    settings, identifiers of rows, targets                            over the network
    solve      for b_k                                                           over the network
    predict    b_k'h_k(x_k) alone, then their sum (or a vote)                    over the network
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_scalar
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from peerlearn.algorithms.agreement import Drawn, check_same_settings
from peerlearn.algorithms.averaging import total
from peerlearn.algorithms.calibration import fit_scales
from peerlearn.algorithms.columns import COLUMNS, ColumnSolver
from peerlearn.algorithms.columns.solver import Prediction
from peerlearn.algorithms.iteration import Report
from peerlearn.algorithms.row_identity import (
    checksum,
    common_rows,
    key_of,
    same_rows,
    texts_of,
    texts_of_numbers,
)
from peerlearn.arrays import Array, Indices, one_blas_thread
from peerlearn.errors import DataError, InputError
from peerlearn.local.column_blocks import ColumnBlocks, FeatureMaps, subtract_means
from peerlearn.local.features import RandomFeatures, check_activation
from peerlearn.local.held_out import HeldOutScores
from peerlearn.local.penalties import Ridge
from peerlearn.models.base import (
    DEALING,
    Answer,
    FittedModel,
    OwnAnswer,
    RandomState,
    Setup,
    Takes,
    check_intercept,
    network_fitted_over,
    one_agent,
)
from peerlearn.models.column_shares import ColumnShares, Given, column_shares, row_texts
from peerlearn.models.probabilities import (
    Probabilities,
    check_probability,
    deal_folds,
    has_probabilities,
    number_of_folds,
)
from peerlearn.models.targets import NumberTargets, Targets
from peerlearn.network import Network

__all__ = ["VerticalRVFLClassifier", "VerticalRVFLRegressor"]

ROWS = ("refuse", "intersection")
FEATURES = "the features"
HASHES = "the hashes of identifiers"
TIES = "ties of votes"
SAME_ORDER = "give all agents the same rows in the same order"


@dataclass(frozen=True)
class Readout:
    """Features and coefficients of each hosted agent, and the intercept."""

    features: list[RandomFeatures]
    coefficients: list[Array]
    intercept: Array


class _Vertical(Targets, FittedModel):
    """Common part of the classifier and the regressor: row comparison, solver and prediction."""

    leaks: ClassVar = "would send outputs of single agents for rows that all know"
    instead: ClassVar = "give agents rows, and use RVFLClassifier or RVFLRegressor"
    parts: ClassVar = {"solver": COLUMNS}
    takes: ClassVar[Takes] = "columns"
    predicts_alone: ClassVar = False
    seeds: ClassVar = (FEATURES, DEALING, HASHES, TIES)

    coefficients_: list[Array]
    intercept_: Array
    features_: list[RandomFeatures]
    columns_: list[Indices] | None
    kept_rows_: list[Indices] | None
    _given: Given
    _prediction: Prediction
    _agents: int  # of the network it was fitted over

    def __init__(
        self,
        n_hidden: int | Sequence[int] = 50,
        alpha: float = 1.0,
        *,
        activation: str = "sigmoid",
        direct_links: bool = False,
        fit_intercept: bool = True,
        solver: ColumnSolver | str = "auto",
        network: Network | None = None,
        rows: str = "refuse",
        row_key: str | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.n_hidden = n_hidden
        self.alpha = alpha
        self.activation = activation
        self.direct_links = direct_links
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.network = network
        self.rows = rows
        self.row_key = row_key
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, ids: ArrayLike | None = None) -> Self:
        """Train on columns of the same rows.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns), or list of such tables
            If all agents are hosted here, the columns are dealt to them. A process that hosts one
            agent gives that agent's columns. A list, as `partition.columns` makes it, has the
            columns of each hosted agent.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs), or list of them
            The targets. With a list of tables it may be a list with the targets of each agent.
        ids : array-like of shape (n_rows,), or list of them, default None
            Identifiers of the rows, by which agents check that they mean the same rows. None
            takes the index of a data frame, or else the positions of the rows.

        Returns
        -------
        self : the model
        """
        return self.fit_over_network(X, y, ids)

    def agent_predictions(self, X: ArrayLike, ids: ArrayLike | None = None) -> Any:
        """Return the predictions of every hosted agent: agents x rows, or agents x rows x outputs.

        They are the same at all agents, unless each predicts by its own columns (solver="local").
        """
        return np.stack([self.decode(outputs) for outputs in self.agent_outputs(X, ids=ids)])

    def agent_scores(self, X: ArrayLike, y: ArrayLike, ids: ArrayLike | None = None) -> Array:
        """Return the score of every hosted agent's own predictions, as `score` computes it."""
        return self._score_agents(y, self.agent_predictions(X, ids))

    def check_settings(self) -> Setup:
        setup = super().check_settings()
        self._units(setup.network)
        return setup

    def check_parameters(self) -> None:
        check_scalar(self.alpha, "alpha", Real)
        Ridge(self.alpha)
        check_activation(self.activation)
        check_intercept(self.fit_intercept)
        if self.rows not in ROWS:
            raise InputError(f"rows {self.rows!r} is not known: choose one of {', '.join(ROWS)}")
        if not isinstance(self.row_key, str | None):
            raise InputError(
                "row_key must be a text that all agents know, or None, "
                f"not {type(self.row_key).__name__}"
            )

    def learn(self, setup: Setup, *given: Any) -> Answer:
        network = setup.network
        solver = setup.parts["solver"]
        self._row_seed = setup.seeds[HASHES]
        self._tie_seed = setup.seeds[TIES]
        shares = column_shares(self, network, *given, seed=setup.seeds[DEALING])
        for own in shares.different_targets.values():
            self.encode(one_agent(), [own])  # refuses bad targets before anything is sent
        if self.rows == "intersection" and network.size > 1:
            shares.check_identifiers()
        maps = FeatureMaps(
            self._units(network), setup.seeds[FEATURES], self.activation, self.direct_links
        )
        self.kept_rows_ = None
        if network.size > 1:
            shares = self._agree(setup, shares, maps)
        (Y,) = self.encode(one_agent(), shares.targets[:1])
        self._prediction = solver.prediction if network.size > 1 else "own"
        readout, report = self._solve(setup, maps, shares.inputs, Y)
        self.calibrate(setup, maps, shares.inputs, Y)
        self.features_ = readout.features
        self.intercept_ = readout.intercept
        self.columns_ = shares.given.columns
        self._given = shares.given
        self._agents = network.size
        return OwnAnswer(readout.coefficients, report)

    def _solve(
        self, setup: Setup, maps: FeatureMaps, inputs: Sequence[Array], Y: Array
    ) -> tuple[Readout, Report]:
        """Return the hosted agents' parts of f, learned from these rows, and the report."""
        network = setup.network
        blocks = ColumnBlocks.of_inputs(maps, network.hosted, inputs)
        agents = zip(network.hosted, inputs, strict=True)
        features = [maps.draw(agent, own.shape[1]) for agent, own in agents]
        intercept = np.zeros(Y.shape[1])
        if self.fit_intercept:
            centers = blocks.centre()
            pairs = zip(features, centers, strict=True)
            features = [replace(h, center=center) for h, center in pairs]
            Y = Y.copy()
            intercept = subtract_means(Y)
        solution = setup.parts["solver"].solve_columns(network, blocks, Y, self.alpha)
        return Readout(features, solution.coefficients, intercept), solution.report

    def calibrate(self, setup: Setup, maps: FeatureMaps, inputs: Sequence[Array], Y: Array) -> None:
        """Fit probabilities, if they are asked for."""

    def _units(self, network: Network) -> tuple[int, ...]:
        """Return the number of hidden units of each agent of the network."""
        given: Any = self.n_hidden
        each = isinstance(given, list | tuple | np.ndarray)
        hidden = list(given) if each else [given] * network.size
        if len(hidden) != network.size:
            raise InputError(
                f"n_hidden has {len(hidden)} numbers, but the network has {network.size} agents: "
                "give one for each, or one number for all"
            )
        for agent, units in enumerate(hidden):
            name = f"n_hidden of agent {agent}" if each else "n_hidden"
            check_scalar(units, name, Integral, min_val=1)
        return tuple(int(units) for units in hidden)

    def _agree(self, setup: Setup, shares: ColumnShares, maps: FeatureMaps) -> ColumnShares:
        """Check that all agents have the same settings, rows and targets.

        With rows="intersection", keep the rows that all agents have. Simulated agents cannot
        differ in their settings, but they compare as well, so that every engine sends the same
        messages.
        """
        network = setup.network
        key = key_of(self.row_key, self._row_seed)
        check_same_settings(
            network,
            {
                "n_hidden": maps.hidden,
                "alpha": self.alpha,
                "activation": self.activation,
                "direct_links": float(self.direct_links),
                "fit_intercept": float(self.fit_intercept),
                **self.compared_settings(),
                "the seed of the features": maps.seed,
                **setup.parts,
                "rows": self.rows,
                "row_key (a checksum)": checksum(key),
            },
            Drawn.of_features(maps.draw(0, 1)),  # a sample: every agent can draw all features
        )
        if self.rows == "refuse":
            way_out = f"{SAME_ORDER}, or set rows='intersection'"
            same_rows(network, shares.texts, key, "the identifiers of rows", way_out)
        else:
            self.kept_rows_ = common_rows(network, shares.texts, key)
            inputs = zip(shares.inputs, self.kept_rows_, strict=True)
            targets = zip(shares.targets, self.kept_rows_, strict=True)
            shares = replace(
                shares,
                inputs=[X[rows] for X, rows in inputs],
                targets=[y[rows] for y, rows in targets],
            )
        texts = {which: self._row_texts(y) for which, y in shares.different_targets.items()}
        own_texts = [texts[id(y)] for y in shares.targets]
        same_rows(network, own_texts, key, "y", "give all agents the same targets")
        return shares

    def compared_settings(self) -> dict[str, Any]:
        """Return further settings that all agents must share, by name."""
        return {}

    def agent_outputs(
        self, X: ArrayLike, agents: slice = slice(None), ids: ArrayLike | None = None
    ) -> Array:
        """Return f(X) by these hosted agents: agents x rows x M. All agents call it together."""
        return self._all_outputs(X, ids)[agents]

    def _all_outputs(self, X: Any, ids: Any) -> Array:
        check_is_fitted(self)
        network = self._network_to_predict()
        inputs = self._given.inputs(self, X)
        lengths = [len(own) for own in inputs]
        if self._prediction != "own":
            key = key_of(self.row_key, self._row_seed)
            what = "the identifiers of the rows to predict"
            same_rows(network, row_texts(X, ids, lengths), key, what, SAME_ORDER)
        elif len(set(lengths)) > 1:
            raise DataError(
                f"tables of {min(lengths)} to {max(lengths)} rows were given to predict: "
                f"{SAME_ORDER}"
            )
        readout = Readout(self.features_, self.coefficients_, self.intercept_)
        with one_blas_thread():
            return self._combine(network, readout, inputs)

    def _combine(self, network: Network, readout: Readout, inputs: Sequence[Array]) -> Array:
        """Return f of rows, agents x rows x M, from the parts of all agents."""
        agents = zip(readout.features, inputs, readout.coefficients, strict=True)
        parts = np.stack([h(own) @ b for h, own, b in agents])
        if self._prediction == "own":
            return parts + readout.intercept
        if self._prediction == "sum":
            return total(network, parts) + readout.intercept
        # An agent without columns abstains.
        voting = np.array([float(len(b) > 0) for b in readout.coefficients])
        return self._vote(network, parts + voting[:, None, None] * readout.intercept, voting)

    def _network_to_predict(self) -> Network:
        """Return the network to predict over, which must be the one of the training."""
        if self._prediction == "own":
            return one_agent()
        return network_fitted_over(self.network, self._agents, self._given.agents, "columns")

    @abstractmethod
    def _row_texts(self, y: Any) -> list[str]:
        """Return a text for each row's target, to be compared between agents."""

    @abstractmethod
    def _vote(self, network: Network, parts: Array, voting: Array) -> Array:
        """Return one output per row from the outputs of single agents.

        parts: outputs of each hosted agent, agents x rows x M.
        voting: 1 for each hosted agent that votes, 0 for each that abstains.
        """


class VerticalRVFLClassifier(Probabilities, _Vertical):
    """Random-feature classifier for agents that have different columns of the same rows.

    Agents train and predict together; columns stay at their agents. All agents know y.

    Parameters
    ----------
    n_hidden : int or sequence of int, default 50
        Number of hidden units of every agent, or one number per agent.
    alpha : float, default 1.0
        Ridge penalty on the coefficients, lambda in the thesis.
    activation : {"sigmoid", "tanh", "relu", "sine"}, default "sigmoid"
        Activation function of the hidden units.
    direct_links : bool, default False
        Whether the readout sees the inputs as well as the hidden units.
    fit_intercept : bool, default True
        Whether f(x) has a constant that is not penalised. It costs no message.
    probability : bool, default False
        Whether to fit `predict_proba`, on scores of rows by models of the other folds: 5 more
        trainings, or fewer if a class has fewer rows.
    solver : str or ColumnSolver, default "auto"
        How agents compute the coefficients together: "auto", "dual", "sketched", "sharing", the
        baselines "local" and "ensemble", or an object with settings such as
        SharingADMM(tolerance=1e-6).
    network : Network or None, default None
        The graph of agents. None trains on all columns in one place, the centralised baseline.
    rows : {"refuse", "intersection"}, default "refuse"
        What to do if agents do not have the same rows in the same order: refuse to train, or train
        on the rows that all of them have.
    row_key : str or None, default None
        A secret text that only the agents know, for the hashes of identifiers that they send. None
        derives it from random_state; then whoever knows that number can test guesses.
    random_state : int, RandomState or None, default None
        Seed of the hidden layers, of the dealing of columns and of ties of votes. Agents in several
        processes must all give the same whole number.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        All labels.
    coefficients_ : list of ndarray of shape (B_k, M)
        Coefficients of each hosted agent. M is 1 for two classes, else one output per class.
    intercept_ : ndarray of shape (M,)
        The mean of the targets, from which outputs are measured; 0 without fit_intercept.
    features_ : list of RandomFeatures
        The hidden layer of each hosted agent. With fit_intercept, its features are measured from
        their means over the training rows.
    columns_ : list of ndarray, or None
        The columns of each agent if one table was dealt, else None.
    kept_rows_ : list of ndarray, or None
        With rows="intersection", the rows of each hosted agent that were used, in their common
        order.
    probability_scale_ : ndarray or None
        The factor s of probabilities softmax(s f(x)), or 1 / (1 + exp(-s f(x))) for two classes;
        None without probability.
    report_ : Report
        What the solver did and what was sent. It prints as a small table.

    Examples
    --------
    >>> from peerlearn import SimulatedNetwork, VerticalRVFLClassifier, data, graphs
    >>> digits = data.load("digits")
    >>> network = SimulatedNetwork(graphs.ring(4))
    >>> model = VerticalRVFLClassifier(network=network, random_state=0)
    >>> model = model.fit(digits.X[:1500], digits.y[:1500])
    >>> bool(model.score(digits.X[1500:], digits.y[1500:]) > 0.8)
    True
    """

    def __init__(
        self,
        n_hidden: int | Sequence[int] = 50,
        alpha: float = 1.0,
        *,
        activation: str = "sigmoid",
        direct_links: bool = False,
        fit_intercept: bool = True,
        probability: bool = False,
        solver: ColumnSolver | str = "auto",
        network: Network | None = None,
        rows: str = "refuse",
        row_key: str | None = None,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(
            n_hidden,
            alpha,
            activation=activation,
            direct_links=direct_links,
            fit_intercept=fit_intercept,
            solver=solver,
            network=network,
            rows=rows,
            row_key=row_key,
            random_state=random_state,
        )
        self.probability = probability

    def check_parameters(self) -> None:
        super().check_parameters()
        check_probability(self.probability)

    def compared_settings(self) -> dict[str, Any]:
        return {"probability": float(self.probability)}

    def calibrate(self, setup: Setup, maps: FeatureMaps, inputs: Sequence[Array], Y: Array) -> None:
        """Fit probabilities on scores of rows held out, which all agents know: nothing is summed.

        Every agent has the same rows and the same folds.
        """
        self.keep_scales(None)
        if not self.probability:
            return
        codes = self._choose(Y)
        count = number_of_folds(np.bincount(codes).astype(np.float64), self.classes_)
        seeds = [(self._tie_seed, code) for code in range(len(self.classes_))]
        folds = deal_folds(codes, count, seeds)
        scores = np.zeros((len(inputs), *Y.shape))
        for fold in range(count):
            held = folds == fold
            readout, _ = self._solve(setup, maps, [X[~held] for X in inputs], Y[~held])
            held_inputs = [X[held] for X in inputs]
            scores[:, held] = self._combine(setup.network, readout, held_inputs)
        self.keep_scales(fit_scales([HeldOutScores(own, Y) for own in scores], np.asarray))

    def decision_function(self, X: ArrayLike, ids: ArrayLike | None = None) -> Array:
        """Return f(x) for each row. All agents call it together, each with its own columns.

        For two classes it is one number per row, and above 0 means classes_[1]. For more classes
        it is one number per row and class.
        """
        return self._shape_decision(self._all_outputs(X, ids)[0])

    def predict(self, X: ArrayLike, ids: ArrayLike | None = None) -> Any:
        """Return the class of each row. All agents call it together, each with its columns."""
        return self.decode(self._all_outputs(X, ids)[0])

    @available_if(has_probabilities)
    def predict_proba(self, X: ArrayLike, ids: ArrayLike | None = None) -> Array:
        """Return the probability of each class, rows x classes. All agents call it together.

        Needs probability=True. The class with the largest probability is the one that `predict`
        returns.
        """
        probabilities: Array = self._probabilities(self._all_outputs(X, ids))[0]
        return probabilities

    @available_if(has_probabilities)
    def agent_probabilities(self, X: ArrayLike, ids: ArrayLike | None = None) -> Array:
        """Return the probabilities of every hosted agent: agents x rows x classes."""
        return self._probabilities(self._all_outputs(X, ids))

    def _row_texts(self, y: Any) -> list[str]:
        return texts_of(np.ravel(y), "labels")

    def _vote(self, network: Network, parts: Array, voting: Array) -> Array:
        """Return the number of votes for each class. Random fractions below 0.5 decide ties."""
        C = len(self.classes_)
        pairs = zip(parts, voting, strict=True)
        one_hot = np.eye(C)
        ballots = np.stack([one_hot[self._choose(part)] * vote for part, vote in pairs])
        # The seed is the same at all agents, so they decide ties alike.
        generator = np.random.default_rng(self._tie_seed)
        ties = generator.uniform(0.0, 0.5, ballots.shape[1:])
        votes: Array = np.rint(total(network, ballots)) + ties
        return votes[:, :, 1:] - votes[:, :, :1] if C == 2 else votes


class VerticalRVFLRegressor(NumberTargets, _Vertical):
    """Random-feature regressor for agents that have different columns of the same rows.

    Agents train and predict together; columns stay at their agents. All agents know y, one number
    per row or several.

    Parameters
    ----------
    n_hidden : int or sequence of int, default 50
        Number of hidden units of every agent, or one number per agent.
    alpha : float, default 1.0
        Ridge penalty on the coefficients, lambda in the thesis.
    activation : {"sigmoid", "tanh", "relu", "sine"}, default "sigmoid"
        Activation function of the hidden units.
    direct_links : bool, default False
        Whether the readout sees the inputs as well as the hidden units.
    fit_intercept : bool, default True
        Whether f(x) has a constant that is not penalised. It costs no message.
    solver : str or ColumnSolver, default "auto"
        How agents compute the coefficients together: "auto", "dual", "sketched", "sharing", the
        baselines "local" and "ensemble", or an object with settings such as
        SharingADMM(tolerance=1e-6). "ensemble" averages the predictions of all agents.
    network : Network or None, default None
        The graph of agents. None trains on all columns in one place, the centralised baseline.
    rows : {"refuse", "intersection"}, default "refuse"
        What to do if agents do not have the same rows in the same order: refuse to train, or train
        on the rows that all of them have.
    row_key : str or None, default None
        A secret text that only the agents know, for the hashes of identifiers that they send. None
        derives it from random_state; then whoever knows that number can test guesses.
    random_state : int, RandomState or None, default None
        Seed of the hidden layers, of the dealing of columns and of ties of votes. Agents in several
        processes must all give the same whole number.

    Attributes
    ----------
    coefficients_ : list of ndarray of shape (B_k, M)
        Coefficients of each hosted agent, for M outputs.
    intercept_ : ndarray of shape (M,)
        The mean of the targets, from which outputs are measured; 0 without fit_intercept.
    features_ : list of RandomFeatures
        The hidden layer of each hosted agent. With fit_intercept, its features are measured from
        their means over the training rows.
    columns_ : list of ndarray, or None
        The columns of each agent if one table was dealt, else None.
    kept_rows_ : list of ndarray, or None
        With rows="intersection", the rows of each hosted agent that were used, in their common
        order.
    report_ : Report
        What the solver did and what was sent. It prints as a small table.

    Examples
    --------
    >>> import numpy as np
    >>> from peerlearn import SimulatedNetwork, VerticalRVFLRegressor, graphs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 4))
    >>> y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + X[:, 2] - X[:, 3]
    >>> network = SimulatedNetwork(graphs.ring(4))
    >>> settings = {"solver": "dual", "network": network, "random_state": 0}
    >>> model = VerticalRVFLRegressor(alpha=1e-3, **settings).fit(X, y)
    >>> bool(model.score(X, y) > 0.99)
    True
    """

    def predict(self, X: ArrayLike, ids: ArrayLike | None = None) -> Array:
        """Return f(x): one number per row, or one per row and output.

        All agents call it together, each with its own columns.
        """
        y: Array = self.decode(self._all_outputs(X, ids)[0])
        return y

    def _row_texts(self, y: Any) -> list[str]:
        return texts_of_numbers(np.asarray(y, dtype=np.float64))

    def _vote(self, network: Network, parts: Array, voting: Array) -> Array:
        """Return the average over agents with columns; 0 if no agent has any."""
        sums = total(network, parts)
        voters = np.maximum(total(network, voting), 1.0)
        return sums / voters[:, None, None]

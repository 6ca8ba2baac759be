"""Every agent has some columns of every row; row identity is checked by keyed hashes.

Random vector functional-link networks over columns (thesis, chapter 6):

    f(x) = sum_k b_k'h_k(x_k)       x_k: the columns of agent k, h_k: random features of its own, b_k: its coefficients

All agents know y. They train b_1 .. b_L together, each over columns that never leave it, which is
the work of a solver, see `peerlearn.algorithms.columns`. They also predict together: each agent
gives its part, and the network the sum.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from peerlearn.algorithms.agreement import Drawn, check_same_settings
from peerlearn.algorithms.averaging import total
from peerlearn.algorithms.columns import COLUMNS, ColumnSolver
from peerlearn.algorithms.columns.solver import Prediction
from peerlearn.algorithms.row_identity import (
    checksum,
    common_rows,
    key_of,
    same_rows,
    texts_of,
    texts_of_numbers,
)
from peerlearn.arrays import Array, Indices
from peerlearn.errors import DataError, InputError
from peerlearn.local.column_blocks import ColumnBlocks, FeatureMaps
from peerlearn.local.features import RandomFeatures, check_activation
from peerlearn.local.penalties import Ridge
from peerlearn.local.threads import one_blas_thread
from peerlearn.models.base import DEALING, Setup, Takes
from peerlearn.models.column_shares import ColumnShares, Given, column_shares, row_texts
from peerlearn.models.fitted_model import Answer, FittedModel, OwnAnswer
from peerlearn.models.label_targets import LabelTargets
from peerlearn.models.number_targets import NumberTargets
from peerlearn.models.settings import network_fitted_over, one_agent
from peerlearn.models.targets import Targets
from peerlearn.network import Network

__all__ = ["VerticalRVFLClassifier", "VerticalRVFLRegressor"]

ROWS = ("refuse", "intersection")
FEATURES, HASHES, TIES = "the features", "the hashes of identifiers", "ties of votes"
SAME_ORDER = "give all agents the same rows in the same order"


class _Vertical(Targets, FittedModel):
    """What the classifier and the regressor share: columns, rows that must be the same, solver, and prediction."""

    parts: ClassVar = {"solver": COLUMNS}
    takes: ClassVar[Takes] = "columns"
    predicts_alone: ClassVar = False
    seeds: ClassVar = (FEATURES, DEALING, HASHES, TIES)

    coefficients_: list[Array]
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
        solver: ColumnSolver | str = "auto",
        network: Network | None = None,
        rows: str = "refuse",
        row_key: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_hidden = n_hidden
        self.alpha = alpha
        self.activation = activation
        self.direct_links = direct_links
        self.solver = solver
        self.network = network
        self.rows = rows
        self.row_key = row_key
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, ids: ArrayLike | None = None) -> Self:
        """Train on X, y: columns are dealt to the agents if all are hosted here, the agent's own if it is the only one.

        fit(tables, y) takes a list with the columns of each hosted agent, as `partition.columns`
        makes it; y and ids may then be lists too, with those of each agent. ids, one per row, tell
        agents that they mean the same rows.
        """
        return self.fit_over_network(X, y, ids)

    def agent_predictions(self, X: ArrayLike, ids: ArrayLike | None = None) -> Any:
        """As `predict`, one line per hosted agent: alike, unless each predicts by its own columns (solver="local")."""
        return np.stack([self.decode(outputs) for outputs in self.agent_outputs(X, ids=ids)])

    def agent_scores(self, X: ArrayLike, y: ArrayLike, ids: ArrayLike | None = None) -> Array:
        """As `score`, one number per hosted agent."""
        return self._score_agents(y, self.agent_predictions(X, ids))

    def check_settings(self) -> Setup:
        setup = super().check_settings()
        self._units(setup.network)
        return setup

    def check_parameters(self) -> None:
        check_scalar(self.alpha, "alpha", Real)
        Ridge(self.alpha)
        check_activation(self.activation)
        if self.rows not in ROWS:
            raise InputError(f"rows {self.rows!r} is not known: choose one of {', '.join(ROWS)}")
        if not isinstance(self.row_key, str | None):
            raise InputError(
                f"row_key must be a text that all agents know, or None, not {type(self.row_key).__name__}"
            )

    def learn(self, setup: Setup, *given: Any) -> Answer:
        network, solver = setup.network, setup.parts["solver"]
        self._row_seed, self._tie_seed = setup.seeds[HASHES], setup.seeds[TIES]
        shares = column_shares(self, network, *given, seed=setup.seeds[DEALING])
        for own in shares.different_targets.values():
            self.encode(one_agent(), [own])  # refused now, before anything is sent
        if self.rows == "intersection" and network.size > 1:
            shares.must_be_told_apart()
        maps = FeatureMaps(
            self._units(network), setup.seeds[FEATURES], self.activation, self.direct_links
        )
        self.kept_rows_ = None
        if network.size > 1:
            shares = self._agree(setup, shares, maps)
        (Y,) = self.encode(one_agent(), shares.targets[:1])
        blocks = ColumnBlocks.of_inputs(maps, network.hosted, shares.inputs)
        solution = solver.solve_columns(network, blocks, Y, self.alpha)
        inputs = zip(network.hosted, shares.inputs, strict=True)
        self.features_ = [maps.draw(agent, own.shape[1]) for agent, own in inputs]
        self.columns_, self._given = shares.given.columns, shares.given
        self._agents, self._prediction = (
            network.size,
            solver.prediction if network.size > 1 else "own",
        )
        return OwnAnswer(solution.coefficients, solution.report)

    def _units(self, network: Network) -> tuple[int, ...]:
        """Return the hidden units of each agent of the network."""
        given: Any = self.n_hidden
        each = isinstance(given, list | tuple | np.ndarray)
        hidden = list(given) if each else [given] * network.size
        if len(hidden) != network.size:
            raise InputError(
                f"n_hidden has {len(hidden)} numbers, but the network has {network.size} agents: give one for each, or "
                "one number for all"
            )
        for agent, units in enumerate(hidden):
            check_scalar(
                units, f"n_hidden of agent {agent}" if each else "n_hidden", Integral, min_val=1
            )
        return tuple(int(units) for units in hidden)

    def _agree(self, setup: Setup, shares: ColumnShares, maps: FeatureMaps) -> ColumnShares:
        """Check that all agents have the same settings, rows and targets, or keep the rows that all have.

        In simulation, where they cannot differ, agents ask all the same: what is sent does not
        depend on the engine.
        """
        network, key = setup.network, key_of(self.row_key, self._row_seed)
        check_same_settings(
            network,
            {
                "n_hidden": maps.hidden,
                "alpha": self.alpha,
                "activation": self.activation,
                "direct_links": float(self.direct_links),
                "the seed of the features": maps.seed,
                **setup.parts,
                "rows": self.rows,
                "row_key (a checksum)": checksum(key),
            },
            Drawn.of_features(maps.draw(0, 1)),  # any will do: everybody can draw everybody's
        )
        if self.rows == "refuse":
            way_out = f"{SAME_ORDER}, or set rows='intersection'"
            same_rows(network, shares.texts, key, "the identifiers of rows", way_out)
        else:
            self.kept_rows_ = common_rows(network, shares.texts, key)
            shares = replace(
                shares,
                inputs=[X[kept] for X, kept in zip(shares.inputs, self.kept_rows_, strict=True)],
                targets=[y[kept] for y, kept in zip(shares.targets, self.kept_rows_, strict=True)],
            )
        texts = {which: self._row_texts(y) for which, y in shares.different_targets.items()}
        same_rows(
            network,
            [texts[id(y)] for y in shares.targets],
            key,
            "y",
            "give all agents the same targets",
        )
        return shares

    def agent_outputs(
        self, X: ArrayLike, agents: slice = slice(None), ids: ArrayLike | None = None
    ) -> Array:
        """As for every model; all agents of the network call it at the same time."""
        return self._outputs(X, ids)[agents]

    def _outputs(self, X: Any, ids: Any) -> Array:
        check_is_fitted(self)
        network = self._network_to_predict()
        inputs = self._given.inputs(self, X)
        lengths = [len(own) for own in inputs]
        if self._prediction != "own":
            key, what = (
                key_of(self.row_key, self._row_seed),
                "the identifiers of the rows to predict",
            )
            same_rows(network, row_texts(X, ids, lengths), key, what, SAME_ORDER)
        elif len(set(lengths)) > 1:
            raise DataError(
                f"tables of {min(lengths)} to {max(lengths)} rows were given to predict: {SAME_ORDER}"
            )
        with one_blas_thread():
            parts = np.stack(
                [
                    h(own) @ b
                    for h, own, b in zip(self.features_, inputs, self.coefficients_, strict=True)
                ]
            )
        if self._prediction == "own":
            return parts
        if self._prediction == "sum":
            return total(network, parts)
        voting = np.array(
            [float(len(b) > 0) for b in self.coefficients_]
        )  # an agent without columns abstains
        return self._vote(network, parts, voting)

    def _network_to_predict(self) -> Network:
        """Return the network that the model was fitted over, or refuse with the reason why it takes one."""
        if self._prediction == "own":
            return one_agent()
        return network_fitted_over(self.network, self._agents, self._given.agents, "columns")

    @abstractmethod
    def _row_texts(self, y: Any) -> list[str]:
        """A text for each row's target, to be compared between agents."""

    @abstractmethod
    def _vote(self, network: Network, parts: Array, voting: Array) -> Array:
        """Return one output for each row from what each agent alone would say, if it is voting (1) and not (0)."""


class VerticalRVFLClassifier(LabelTargets, _Vertical):
    """A classifier that agents train and use together, each with its own columns of everybody's rows.

    Parameters
    ----------
    n_hidden: hidden units of every agent, or one number per agent.
    alpha: ridge penalty on the coefficients, lambda in the thesis.
    activation: "sigmoid", "tanh", "relu" or "sine".
    direct_links: let the readout see the inputs beside the hidden units.
    solver: "auto", "dual", "sketched", "sharing", the baselines "local" and "ensemble", or an
        object with settings such as SharingADMM(tolerance=1e-6).
    network: who talks to whom; None trains on all columns in one place, the centralised baseline.
    rows: "refuse" where agents do not have the same rows in the same order, or "intersection" to go
        on with those that all have.
    row_key: a text that only the agents know, for the hashes of identifiers that they send. None
        takes it from
        random_state: then whoever knows that number can test guesses.
    random_state: seeds the hidden layers, the dealing of columns and ties of votes; the same number
        at every agent.

    Attributes
    ----------
    classes_: all labels.
    coefficients_: a list of B_k x M arrays, one per hosted agent; M is 1 for two classes, else one
        output per class.
    features_: a list, the hidden layer of each hosted agent.
    columns_: the columns of each agent where a table was dealt, else None.
    kept_rows_: with rows="intersection", the rows of each hosted agent that were used, in their
        common order.
    report_: how the solver got there and what was sent; prints as a small table.

    >>> from peerlearn import SimulatedNetwork, data, graphs
    >>> digits = data.load("digits")
    >>> model = VerticalRVFLClassifier(network=SimulatedNetwork(graphs.ring(4)), random_state=0)
    >>> bool(model.fit(digits.X[:1500], digits.y[:1500]).score(digits.X[1500:], digits.y[1500:]) > 0.8)
    True
    """

    def decision_function(self, X: ArrayLike, ids: ArrayLike | None = None) -> Array:
        """f(x): one number per row for two classes (above 0 means classes_[1]), else one per row and class.

        All agents call it at the same time, each with its own columns.
        """
        return self._shape_decision(self._outputs(X, ids)[0])

    def predict(self, X: ArrayLike, ids: ArrayLike | None = None) -> Any:
        """The class of each row. All agents call it at the same time, each with its own columns."""
        return self.decode(self._outputs(X, ids)[0])

    def _row_texts(self, y: Any) -> list[str]:
        return texts_of(np.ravel(y), "labels")

    def _vote(self, network: Network, parts: Array, voting: Array) -> Array:
        """The number of votes for each class; less than half a vote more or less at random decides ties."""
        C = len(self.classes_)
        ballots = np.stack(
            [np.eye(C)[self._choose(part)] * vote for part, vote in zip(parts, voting, strict=True)]
        )
        ties = np.random.default_rng(self._tie_seed).uniform(
            0.0, 0.5, ballots.shape[1:]
        )  # by row, alike at all agents
        votes: Array = np.rint(total(network, ballots)) + ties
        return votes[:, :, 1:] - votes[:, :, :1] if C == 2 else votes


class VerticalRVFLRegressor(NumberTargets, _Vertical):
    """A regressor that agents train and use together, each with its own columns of everybody's rows.

    Parameters and attributes are those of `VerticalRVFLClassifier`, without classes; an ensemble
    averages.
    """

    def predict(self, X: ArrayLike, ids: ArrayLike | None = None) -> Array:
        """f(x): one number per row, or one per row and output. All agents call it at the same time."""
        predicted: Array = self.decode(self._outputs(X, ids)[0])
        return predicted

    def _row_texts(self, y: Any) -> list[str]:
        return texts_of_numbers(np.asarray(y, dtype=np.float64))

    def _vote(self, network: Network, parts: Array, voting: Array) -> Array:
        """The average; 0 where nobody has columns."""
        return total(network, parts) / np.maximum(total(network, voting), 1.0)[:, None, None]

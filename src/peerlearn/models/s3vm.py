"""Few labels: linear semi-supervised support vector machines, sparse rows too.

Thesis, section 8.2:

    minimise  C1/(2L) sum over labelled rows of max(0, 1 - y f)^2
              + C2/(2U) sum over unlabelled rows of exp(-s f^2)  +  1/2 |w|^2
    f(x) = w'(x - m) + b,   m: mean of the unlabelled rows of the whole network,   b = 2r - 1

The second sum pushes the boundary away from where the rows are. r, the share of positive rows,
keeps it from pushing all rows to one side (Chapelle and Zien, Semi-supervised classification by low
density separation, 2005).

    L, U and m                                     over the network: totals
    r                                              over the network: a machine of the labelled rows,
                                                   and a total of what it predicts
    w                                              over the network: `peerlearn.algorithms.smooth`
    b <- b - t,   L - P + (1 - r) U of all f lie below t       over the network: totals of counts

L rows have a label, P of them a positive one, and U rows have none. The share of positive labels
says nothing about r if somebody chose as many rows of each class to be labelled. So r is counted
among the unlabelled rows, as the machine without the second sum classifies them:

    r = (U+ + 1/2) / (U + 1),   U+: unlabelled rows with v'(x - n) + a > 0
    v, a  minimise  C1/(2L) sum over labelled rows of max(0, 1 - y (v'(x - n) + a))^2
                    + 1/2 |v|^2 + 1/2 a^2,   n: mean of the labelled rows

docs/decisions/0024-few-labels-defaults.md compares it with other estimates.

b = 2r - 1 makes the mean of f right, but not the share of positives: with r = 0.3 it calls 3 % of
G50C positive. The last step, which the thesis does not have, corrects that. Error in percent
without and with it, 40 labels:

                               G50C              PCMAC             Garageband
    data sets as they are       6.7 and  6.3      5.0 and  4.8      23.1 and 22.8
    30 % of the rows positive  25.6 and  8.7     29.2 and 17.7      18.9 and 19.2

The step counts all rows, because the share among a few unlabelled rows means little (G50C with 5
unlabelled and 395 labelled rows: 34.1 if only those 5 are counted, 11.5 if all are).

M > 2 classes have one f each, f_c(x) = w_c'(x - m) + b_c, and the class with the largest f is
predicted. All f are trained at once, as one problem with M (d + 1) coefficients, whose losses
`peerlearn.local.margin_losses` describes. The labelled rows determine the b_c, so neither r nor the
last step is needed.

A saved model has the arrays

    coefficients    w, one per column; of more than two classes M x columns
    mean            m, one per column
    intercept       b, a single number, or M of them

and, in its text, the entry positive_share for two classes and outputs, M, for more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from peerlearn.algorithms.agreement import check_coefficients
from peerlearn.algorithms.averaging import Averaging
from peerlearn.algorithms.smooth import SMOOTH, Minimum, SmoothSolver
from peerlearn.algorithms.sums import sum_alike
from peerlearn.algorithms.threshold import threshold
from peerlearn.arrays import Array, dots
from peerlearn.data.dataset import AnyArray
from peerlearn.errors import DataError, InputError, WireError
from peerlearn.local.losses import CurvedLosses
from peerlearn.local.margin_losses import MulticlassS3VMLosses, S3VMLosses
from peerlearn.models.archive_reader import ArchiveReader
from peerlearn.models.base import Answer, RandomState, Setup, network_of, one_agent
from peerlearn.models.labels import stream_classes
from peerlearn.models.secret_parts import check_classes_given, check_secret_part
from peerlearn.models.targets import LARGEST, check_finite_rows
from peerlearn.models.unlabelled import Marks, PartlyLabelled, is_labelled, is_unlabelled
from peerlearn.network import Network
from peerlearn.secret.refusals import secret_error
from peerlearn.secret.statement import HIDDEN_SUMS

__all__ = ["S3VMClassifier"]

SUMS = Averaging(tolerance=1e-9)  # exact, except where messages get lost


class S3VMClassifier(PartlyLabelled):
    """Semi-supervised linear support vector machine, for any number of classes.

    Rows without a label have -1 in y. An agent may have only labelled rows, only unlabelled ones,
    or none. X may be sparse. If an agent has a single labelled row, that row can be computed from
    the gradients it sends.

    Parameters
    ----------
    C1 : float, default 1.0
        Weight of the labelled rows.
    C2 : float, default 1.0
        Weight of the unlabelled rows. With 0 it is a support vector machine of the labelled rows.
    s : float, default 5.0
        How sharply the boundary is kept away from unlabelled rows.
    positive_share : float or None, default None
        r, the share of unlabelled rows of class classes_[1], between 0 and 1. None estimates it
        over the network: a machine of the labelled rows alone classifies the unlabelled rows, and
        they are counted. That costs a second training, of fewer rows. Give r if it is known. With
        more than two classes it is not needed.
    classes : sequence of labels or None, default None
        All labels that any agent may have, without -1. Agents then send each other no labels, and
        a network with secrecy needs that. None lets `fit` find the labels that occur anywhere in
        the network.
    probability : bool, default False
        Whether to fit `predict_proba`, on scores of labelled rows by models that were trained
        without the labels of their fold: 5 more trainings. With fewer than 5 labels of a class
        there are fewer folds; one label is refused.
    solver : str or SmoothSolver, default "lbfgs"
        How agents minimise together: "lbfgs", "newton", "next", "tracking", "diffusion", or an
        object with settings. All except "diffusion" need a network that delivers every message.
    network : Network or None, default None
        The graph of agents. None trains on all rows in one place, the centralised baseline.
    random_state : int, RandomState or None, default None
        Seed of the dealing of rows to agents.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        All labels that occur anywhere in the network.
    coefficients_ : ndarray of shape (n_hosted_agents, n_columns)
        w of each hosted agent. For more than two classes it is one w per class, and the shape is
        (n_hosted_agents, n_classes, n_columns).
    mean_ : ndarray of shape (n_hosted_agents, n_columns)
        m of each hosted agent.
    intercept_ : ndarray of shape (n_hosted_agents,)
        b of each hosted agent; (n_hosted_agents, n_classes) for more than two classes.
    positive_share_ : float or None
        r; None for more than two classes.
    probability_scale_ : ndarray or None
        The factor s of probabilities softmax(s f(x)), or 1 / (1 + exp(-s f(x))) for two classes;
        None without probability.
    report_ : Report
        What the solver did and what was sent. It prints as a small table.

    Examples
    --------
    >>> from peerlearn import S3VMClassifier, SimulatedNetwork, data, graphs
    >>> g50c = data.load("g50c")
    >>> y = g50c.y.copy()
    >>> y[y == -1] = 0  # because -1 marks rows without a label
    >>> some = y.copy()
    >>> some[40:] = -1  # 40 labels
    >>> network = SimulatedNetwork(graphs.ring(5))
    >>> model = S3VMClassifier(positive_share=0.5, network=network, random_state=0)
    >>> bool(model.fit(g50c.X, some).score(g50c.X, y) > 0.9)
    True
    """

    parts: ClassVar = {"solver": SMOOTH}
    same_coordinates: ClassVar = True
    claim: ClassVar = HIDDEN_SUMS

    coefficients_: Array
    mean_: Array
    intercept_: Array
    positive_share_: float | None

    def __init__(
        self,
        C1: float = 1.0,
        C2: float = 1.0,
        *,
        s: float = 5.0,
        positive_share: float | None = None,
        classes: Sequence[Any] | None = None,
        probability: bool = False,
        solver: SmoothSolver | str = "lbfgs",
        network: Network | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.C1 = C1
        self.C2 = C2
        self.s = s
        self.positive_share = positive_share
        self.classes = classes
        self.probability = probability
        self.solver = solver
        self.network = network
        self.random_state = random_state

    def check_secrecy(self, parts: Mapping[str, Any]) -> None:
        network = network_of(self.network)
        check_secret_part(parts["solver"], network, "use solver='lbfgs' or 'newton'")
        check_classes_given(self)
        if self.probability:
            raise secret_error(
                "S3VMClassifier with probability=True",
                "would need many more sums",
                "set it to False",
            )

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.classes is not None:
            stream_classes(self.classes)
        for name, least in (("C1", "above 0"), ("C2", "of 0 or more"), ("s", "above 0")):
            value = _as_number(getattr(self, name))
            may_be_zero = name == "C2"
            if not (0 < value < np.inf or (value == 0 and may_be_zero)):
                raise InputError(f"{name} is {getattr(self, name)!r}: give a number {least}")
        if self.positive_share is not None and not 0 < _as_number(self.positive_share) < 1:
            raise InputError(
                f"positive_share is {self.positive_share!r}: give a number between 0 and 1, the "
                "share of rows of the second class, or None to estimate it"
            )

    def common_settings(self, setup: Setup, columns: int, outputs: int | None) -> dict[str, Any]:
        # The number of outputs follows from the classes, on which agents have agreed already.
        return super().common_settings(setup, columns, None)

    def train(self, setup: Setup, inputs: list[Any], outputs: list[Array]) -> Answer:
        network = setup.network
        solver = setup.parts["solver"]
        if self.positive_share is not None and len(self.classes_) > 2:
            raise DataError(
                f"positive_share is the share of one of two classes, but the labelled rows of the "
                f"whole network have {len(self.classes_)}, "
                f"{', '.join(map(str, self.classes_)):.200}: set positive_share to None"
            )
        labels = count_labels(network, outputs)
        m = _mean(network, inputs, labels)
        r = None if len(self.classes_) > 2 else self._share(network, solver, inputs, labels)
        losses = self._losses(inputs, labels, m, r)
        found = solver.minimise(network, losses, 1.0)
        # Checked here, before anything is computed from them.
        _check_coefficients(network, found)
        w = found.coefficients
        self.mean_ = m
        self.positive_share_ = r
        if r is None:
            each = w.reshape(len(m), len(self.classes_), -1)
            w = each[:, :, :-1].copy()
            self.intercept_ = each[:, :, -1].copy()
        else:
            ends = np.cumsum([len(own) for own in labels.targets])
            f = np.split(losses.outputs(w), ends[:-1])
            below = labels.L - labels.P + (1 - r) * labels.U
            t = threshold(network, f, below, count=labels.L + labels.U)
            self.intercept_ = np.full(len(m), 2 * r - 1 - t)
        self.calibrate(setup, outputs, partial(self._score_again, setup, inputs))
        answer: Answer = replace(found, coefficients=w, apart=None)
        return answer

    def _score_again(
        self, setup: Setup, inputs: list[Any], without: list[Array], held: list[Marks]
    ) -> list[Array]:
        """Return scores of the rows held out, by a model trained without their labels."""
        other = copy(self)
        other.probability = False
        if hasattr(other, "feature_names_in_"):
            del other.feature_names_in_  # rows have no names any more
        other.coefficients_ = other.train(setup, inputs, without).coefficients
        scores = [np.zeros((0, Y.shape[1])) for Y in without]
        for k, (X, rows) in enumerate(zip(inputs, held, strict=True)):
            if rows.any():
                scores[k] = other.agent_outputs(X[rows], slice(k, k + 1))[0]
        return scores

    def _share(
        self, network: Network, solver: SmoothSolver, inputs: list[Any], labels: Labels
    ) -> float:
        """Return r of two classes."""
        if self.positive_share is not None:
            return float(self.positive_share)
        if labels.U == 0:
            return labels.P / labels.L
        return _estimate_share(network, solver, inputs, labels, self.C1)

    def _losses(
        self, inputs: list[Any], labels: Labels, m: Array, r: float | None
    ) -> S3VMLosses | MulticlassS3VMLosses:
        """Return the losses of two classes, or, if r is None, of more."""
        weights = (self.C1, self.C2, self.s)
        counts = {"labelled": labels.L, "unlabelled": labels.U}
        if r is not None:
            return S3VMLosses(inputs, labels.targets, m, 2 * r - 1, *weights, **counts)
        rows = [_with_constant(X) for X in inputs]
        means = np.pad(m, ((0, 0), (0, 1)))  # the constant column is not centred
        return MulticlassS3VMLosses(
            rows, labels.targets, means, *weights, classes=len(self.classes_), **counts
        )

    def agent_outputs(self, X: ArrayLike, agents: slice = slice(None)) -> Array:
        rows = self.rows_to_predict(X)
        check_finite_rows(rows, "")
        means = self.mean_[agents]
        b = self.intercept_[agents].reshape(len(means), -1)
        w = self.coefficients_[agents].reshape(b.size, -1)
        offsets = b.ravel() - dots(w, np.repeat(means, b.shape[1], axis=0))
        outputs: Array = (rows @ w.T).T + offsets[:, None]
        return outputs.reshape(*b.shape, -1).transpose(0, 2, 1)

    def objective(self, X: Array, y: AnyArray) -> tuple[CurvedLosses, float]:
        """Return the losses of rows in one place, and alpha.

        Training minimises the sum of the losses and alpha/2 |w|^2. For more than two classes the
        coefficients of all classes are one vector.
        """
        known = ~is_unlabelled(y)
        outputs = self._encode_labels(y[known], known)
        labels = count_labels(one_agent(), [outputs])
        m = self.mean_[:1]  # the same at all agents
        return self._losses([X], labels, m, self.positive_share_), 1.0

    def to_archive(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        arrays = {"mean": self.mean_[0], "intercept": np.asarray(self.intercept_[0])}
        if self.positive_share_ is None:
            return arrays, {"outputs": len(self.classes_), **self.target_entries()}
        return arrays, {"positive_share": self.positive_share_, **self.target_entries()}

    def from_archive(self, reader: ArchiveReader) -> None:
        inputs = self.n_features_in_
        outputs = reader.entry("outputs", int) if "outputs" in reader.about else 1
        per_class = (outputs,) if outputs > 1 else ()
        coefficients = reader.numbers("coefficients", *per_class, inputs, largest=LARGEST)
        self.coefficients_ = coefficients[None]
        self.mean_ = reader.numbers("mean", inputs, largest=LARGEST)[None]
        self.intercept_ = reader.numbers("intercept", *per_class, largest=LARGEST)[None]
        self.restore_targets(reader, outputs)
        self.positive_share_ = None
        if outputs > 1:
            return
        self.positive_share_ = reader.entry("positive_share", float)
        if not 0 < self.positive_share_ < 1:
            raise reader.wrong(
                f"its positive_share is {self.positive_share_}, which is not between 0 and 1"
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _as_number(value: Any) -> float:
    """Return the value as a float, or NaN if it is no number."""
    return float(value) if isinstance(value, Real) else np.nan


@dataclass(frozen=True)
class Labels:
    """Targets of the hosted agents, and counts of the whole network.

    targets: of two classes -1, +1, and 0 for rows without a label; of more the number of the class,
    and -1 for rows without one. marks: which rows have a label. L, U: rows with and without one.
    P: rows with a label of the last class.
    """

    targets: list[Array]
    marks: list[Marks]
    L: int
    P: int
    U: int


def count_labels(network: Network, outputs: Sequence[Array]) -> Labels:
    """Return the labels of the whole network, from the encoded targets of the hosted agents."""
    marks = [is_labelled(Y) for Y in outputs]
    targets = [Y[:, 0] for Y in outputs]
    if outputs[0].shape[1] > 1:
        pairs = zip(outputs, marks, strict=True)
        targets = [np.where(own, Y.argmax(axis=1), -1.0) for Y, own in pairs]
    counts = [
        [np.count_nonzero(own), np.count_nonzero(Y[:, -1] > 0), np.count_nonzero(~own)]
        for Y, own in zip(outputs, marks, strict=True)
    ]
    own = np.array(counts, dtype=np.float64)
    sums = sum_alike(network, own, SUMS, "rows with and without labels")[0]  # alike
    L, P, U = sums
    if not (np.isfinite(sums).all() and 0.5 < P < L - 0.5 and U > -0.5):
        raise WireError(
            f"all agents together count {L:g} labelled rows, {P:g} of them positive, and {U:g} "
            "others, which cannot be right: one of them probably runs another version or "
            "configuration, or no row has a label of some class"
        )
    return Labels(targets, marks, round(L), round(P), round(U))


def _estimate_share(
    network: Network, solver: SmoothSolver, inputs: Sequence[Any], labels: Labels, C1: float
) -> float:
    """Return r, by how a machine of the labelled rows classifies the unlabelled ones."""
    pairs = list(zip(inputs, labels.marks, strict=True))
    labelled = [_with_constant(X[own]) for X, own in pairs]
    signs = [y[own] for y, own in zip(labels.targets, labels.marks, strict=True)]
    own_sums = np.stack([np.asarray(X.sum(axis=0)).ravel() for X in labelled])
    n = sum_alike(network, own_sums, SUMS, "sums of labelled rows") / labels.L
    n[:, -1] = 0.0  # the constant column is not centred
    losses = S3VMLosses(labelled, signs, n, C1=C1, C2=0.0, labelled=labels.L, unlabelled=0)
    found = solver.minimise(network, losses, 1.0)
    _check_coefficients(network, found)
    counts = []
    for v, centre, (X, own) in zip(found.coefficients, n, pairs, strict=True):
        f = _with_constant(X[~own]) @ v - v @ centre
        counts.append([np.count_nonzero(f > 0)])
    numbers = np.array(counts, dtype=np.float64)
    sums = sum_alike(network, numbers, SUMS, "rows predicted to be positive")
    positive = float(sums[0, 0])  # the same at all agents
    r = (round(positive) + 0.5) / (labels.U + 1)
    if not 0 < r < 1:
        raise WireError(
            f"all agents together predict {positive:g} of {labels.U} unlabelled rows to be "
            "positive, which cannot be right: one of them probably runs another version or "
            "configuration"
        )
    return r


def _check_coefficients(network: Network, found: Minimum) -> None:
    with network.allow_messages():  # all agents have the same
        check_coefficients(network, found.coefficients, found.apart)


def _with_constant(X: Any) -> Any:
    """Return rows with one more column of ones, sparse if they are."""
    ones = np.ones((X.shape[0], 1))
    return sp.hstack([X, ones], format="csr") if sp.issparse(X) else np.hstack([X, ones])


def _mean(network: Network, inputs: Sequence[Any], labels: Labels) -> Array:
    """Return the mean of the unlabelled rows, at every hosted agent.

    If all rows have labels, it is the mean of all rows.
    """
    pairs = zip(inputs, labels.marks, strict=True)
    rows = [X[~own] if labels.U else X for X, own in pairs]
    own_sums = np.stack([np.asarray(own.sum(axis=0)).ravel() for own in rows])
    return sum_alike(network, own_sums, SUMS, "sums of unlabelled rows") / (labels.U or labels.L)

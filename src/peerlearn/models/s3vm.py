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

For M > 2 classes all of this is done for each class against the rest. The labelled rows of the
class and those of the rest weigh the same: otherwise the rest decides alone. The M machines are
trained at once, as one problem with M d coefficients, and the class with the largest f is
predicted. r of a class is (U_c + 1/2) / (U + M/2), with U_c the unlabelled rows for which its f is
the largest.

A saved model has the arrays

    coefficients    w, one per column; of more than two classes M x columns
    mean            m, one per column
    intercept       b, a single number, or M of them
    positive_shares r, one per class; only with more than two classes

and, for two classes, the entry positive_share in its text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from peerlearn.algorithms.agreement import check_coefficients
from peerlearn.algorithms.averaging import Averaging
from peerlearn.algorithms.smooth import SMOOTH, SmoothSolver
from peerlearn.algorithms.sums import sum_alike
from peerlearn.algorithms.threshold import threshold
from peerlearn.arrays import Array, dots
from peerlearn.data.dataset import AnyArray
from peerlearn.errors import DataError, InputError, WireError
from peerlearn.local.losses import CurvedLosses
from peerlearn.local.margin_losses import S3VMLosses, SeparateLosses
from peerlearn.models.archive_reader import ArchiveReader
from peerlearn.models.base import Setup
from peerlearn.models.fitted_model import Answer
from peerlearn.models.settings import RandomState, one_agent
from peerlearn.models.targets import LARGEST, check_finite_rows
from peerlearn.models.unlabelled import PartlyLabelled, is_labelled, is_unlabelled
from peerlearn.network import Network

__all__ = ["S3VMClassifier"]

SUMS = Averaging(tolerance=1e-9)  # exact, except where messages get lost


class S3VMClassifier(PartlyLabelled):
    """Semi-supervised linear support vector machine, one class against the rest.

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
        they are counted. That costs a second training, of fewer rows. Give r if it is known; for
        more than two classes it is always estimated.
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
    positive_share_ : float or ndarray of shape (n_classes,)
        r; for more than two classes one per class.
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

    coefficients_: Array
    mean_: Array
    intercept_: Array
    positive_share_: float | Array

    def __init__(
        self,
        C1: float = 1.0,
        C2: float = 1.0,
        *,
        s: float = 5.0,
        positive_share: float | None = None,
        solver: SmoothSolver | str = "lbfgs",
        network: Network | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.C1 = C1
        self.C2 = C2
        self.s = s
        self.positive_share = positive_share
        self.solver = solver
        self.network = network
        self.random_state = random_state

    def check_parameters(self) -> None:
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
        L = labels.L
        P = labels.P
        U = labels.U
        if self.positive_share is not None:
            r = np.array([float(self.positive_share)])
        elif U == 0:
            r = P / L
        else:
            r = _estimate_shares(network, solver, inputs, labels, self.C1)
        m = _mean(network, inputs, labels)
        losses = self._losses(inputs, labels, m, r)
        found = solver.minimise(network, losses, 1.0)
        # Checked here, before the threshold is computed from them.
        check_coefficients(network, found.coefficients, found.apart)
        ends = np.cumsum([X.shape[0] for X in inputs])
        f = np.split(losses.outputs(found.coefficients), ends[:-1])
        t = [
            threshold(network, [own[:, c] for own in f], L - P[c] + (1 - r[c]) * U, L + U)
            for c in range(len(P))
        ]
        b = np.tile(2 * r - 1 - np.array(t), (len(m), 1))
        w = found.coefficients
        self.mean_ = m
        if len(P) == 1:
            self.positive_share_ = float(r[0])
            self.intercept_ = b[:, 0]
        else:
            self.positive_share_ = r
            self.intercept_ = b
            w = w.reshape(len(m), len(P), -1)
        answer: Answer = replace(found, coefficients=w, apart=None)
        return answer

    def _losses(self, inputs: list[Any], labels: Labels, m: Array, r: Array) -> SeparateLosses:
        """Return the losses of all classes."""
        b = 2 * r - 1
        first = S3VMLosses(
            inputs,
            labels.signs[0],
            m,
            b[0],
            self.C1,
            self.C2,
            self.s,
            labelled=labels.L,
            unlabelled=labels.U,
        )
        return _by_class(first, labels.signs, b, labels.P)

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
        r = np.atleast_1d(self.positive_share_)
        m = self.mean_[:1]  # the same at all agents
        return self._losses([X], labels, m, r), 1.0

    def to_archive(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        arrays = {"mean": self.mean_[0], "intercept": np.asarray(self.intercept_[0])}
        if isinstance(self.positive_share_, float):
            return arrays, {"positive_share": self.positive_share_}
        return {**arrays, "positive_shares": self.positive_share_}, {}

    def from_archive(self, reader: ArchiveReader) -> None:
        inputs = self.n_features_in_
        many = "positive_shares" in reader.arrays
        shape = (None, inputs) if many else (inputs,)
        coefficients = reader.numbers("coefficients", *shape, largest=LARGEST)
        outputs = len(coefficients) if many else 1
        per_class = (outputs,) if many else ()
        self.coefficients_ = coefficients[None]
        self.mean_ = reader.numbers("mean", inputs, largest=LARGEST)[None]
        self.intercept_ = reader.numbers("intercept", *per_class, largest=LARGEST)[None]
        self.restore_targets(reader, outputs)
        if many:
            self.positive_share_ = reader.numbers("positive_shares", outputs)
        else:
            self.positive_share_ = reader.entry("positive_share", float)
        if not np.all(
            (np.asarray(self.positive_share_) > 0) & (np.asarray(self.positive_share_) < 1)
        ):
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
    """Labels as signs of each class against the rest, counted over the whole network.

    signs: of each class, the targets of each hosted agent: +1, -1, and 0 for rows without a label.
    Two classes have a single entry. L, U: rows with and without a label. P: rows with the sign +1,
    one number per entry.
    """

    signs: list[list[Array]]
    L: int
    P: Array
    U: int


def count_labels(network: Network, outputs: Sequence[Array]) -> Labels:
    """Return the labels of the whole network, from the encoded targets of the hosted agents."""
    signs = [[Y[:, 0] for Y in outputs]]
    if outputs[0].shape[1] > 1:
        against = [np.where(is_labelled(Y)[:, None], 2 * Y - 1, 0.0) for Y in outputs]
        signs = [[own[:, c] for own in against] for c in range(outputs[0].shape[1])]
    counts = []
    for of_agent in zip(*signs, strict=True):
        labelled = np.count_nonzero(of_agent[0])
        positive = [np.count_nonzero(y > 0) for y in of_agent]
        counts.append([labelled, *positive, len(of_agent[0]) - labelled])
    sums = sum_alike(network, np.array(counts, dtype=np.float64), SUMS)[0]  # the same at all agents
    L = sums[0]
    P = sums[1:-1]
    U = sums[-1]
    if not (np.isfinite(sums).all() and np.all((P > 0.5) & (P < L - 0.5)) and U > -0.5):
        listed = ", ".join(f"{count:g}" for count in P)
        raise WireError(
            f"all agents together count {L:g} labelled rows, {listed} of them positive, and {U:g} "
            "others, which cannot be right: one of them probably runs another version or "
            "configuration"
        )
    return Labels(signs, round(L), np.rint(P), round(U))


def _by_class(
    first: S3VMLosses, signs: Sequence[Sequence[Array]], b: Array, P: Array
) -> SeparateLosses:
    """Return the losses of every class. first: those of the first class, without weights."""
    if len(P) == 1:
        return SeparateLosses([first])
    each = zip(signs, b, P, strict=True)
    return SeparateLosses([first.of_class(*of_class) for of_class in each])


def _estimate_shares(
    network: Network, solver: SmoothSolver, inputs: Sequence[Any], labels: Labels, C1: float
) -> Array:
    """Return r of each class: how a machine of the labelled rows classifies the unlabelled ones."""
    known = [y != 0 for y in labels.signs[0]]
    labelled = [_with_constant(X[own]) for X, own in zip(inputs, known, strict=True)]
    signs = [[y[own] for y, own in zip(each, known, strict=True)] for each in labels.signs]
    own_sums = np.stack([np.asarray(X.sum(axis=0)).ravel() for X in labelled])
    n = sum_alike(network, own_sums, SUMS) / labels.L
    n[:, -1] = 0.0  # the constant column is not centred
    first = S3VMLosses(labelled, signs[0], n, C1=C1, C2=0.0, labelled=labels.L, unlabelled=0)
    losses = _by_class(first, signs, np.zeros(len(signs)), labels.P)
    found = solver.minimise(network, losses, 1.0)
    check_coefficients(network, found.coefficients, found.apart)
    v = found.coefficients.reshape(len(inputs), len(signs), -1)
    counts = []
    for k, (X, own) in enumerate(zip(inputs, known, strict=True)):
        f = _with_constant(X[~own]) @ v[k].T - v[k] @ n[k]
        if len(signs) == 1:
            counts.append([np.count_nonzero(f > 0)])
        else:
            counts.append(np.bincount(f.argmax(axis=1), minlength=len(signs)).tolist())
    sums = sum_alike(network, np.array(counts, dtype=np.float64), SUMS)[0]  # the same at all
    sides = max(len(signs), 2)
    r: Array = (np.rint(sums) + 0.5) / (labels.U + sides / 2)
    if not np.all((r > 0) & (r < 1)):
        raise WireError(
            f"all agents together predict {sums} of {labels.U} unlabelled rows, which cannot be "
            "right: one of them probably runs another version or configuration"
        )
    return r


def _with_constant(X: Any) -> Any:
    """Return rows with one more column of ones, sparse if they are."""
    ones = np.ones((X.shape[0], 1))
    return sp.hstack([X, ones], format="csr") if sp.issparse(X) else np.hstack([X, ones])


def _mean(network: Network, inputs: Sequence[Any], labels: Labels) -> Array:
    """Return the mean of the unlabelled rows, at every hosted agent.

    If all rows have labels, it is the mean of all rows.
    """
    pairs = zip(inputs, labels.signs[0], strict=True)
    rows = [X[y == 0] if labels.U else X for X, y in pairs]
    own_sums = np.stack([np.asarray(own.sum(axis=0)).ravel() for own in rows])
    return sum_alike(network, own_sums, SUMS) / (labels.U or labels.L)

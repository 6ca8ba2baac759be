"""Losses of rows: derivatives against differences, sparse against dense, agents together against
agents alone.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from peerlearn.errors import DataError, InputError
from peerlearn.local.margin_losses import LogisticLosses, MulticlassS3VMLosses, S3VMLosses
from peerlearn.local.surrogates import largest_curvatures, newton_steps, surrogate_minima

RNG = np.random.default_rng(0)
D = 6
ROWS = (7, 1, 0, 12, 4, 5)
DENSE = [np.where(RNG.random((n, D)) < 0.5, RNG.standard_normal((n, D)), 0.0) for n in ROWS]
SIGNS = [np.where(RNG.random(n) < 0.5, 1, -1) for n in ROWS]
# Some labelled, none, no rows at all, some, only labelled, only unlabelled.
PARTLY = [
    y * kept
    for y, kept in zip(SIGNS, (np.arange(7) % 2, 0, 1, np.arange(12) % 3 == 0, 1, 0), strict=True)
]
L = sum(int(np.count_nonzero(y)) for y in PARTLY)
U = sum(ROWS) - L
M = np.linspace(-0.2, 0.4, D)
W = 0.7 * RNG.standard_normal((len(ROWS), D))
# Rows have a label where they have one in PARTLY.
CLASSES = [np.where(y != 0, RNG.integers(0, 3, size=len(y)), -1) for y in PARTLY]
W_OF_THREE = 0.7 * RNG.standard_normal((len(ROWS), 3 * D))


def as_given(form):
    mixed = [sp.csr_array(X) if k % 2 else X for k, X in enumerate(DENSE)]
    return {"dense": DENSE, "sparse": [sp.csr_array(X) for X in DENSE], "mixed": mixed}[form]


def s3vm(inputs=DENSE, targets=PARTLY, m=M, b=0.3, C1=2.0, C2=3.0, s=5.0, **counts):
    return S3VMLosses(
        inputs, targets, m, b, C1, C2, s, **{"labelled": L, "unlabelled": U, **counts}
    )


def logistic(inputs=DENSE, targets=SIGNS):
    return LogisticLosses(inputs, targets)


def three_classes(inputs=DENSE, targets=CLASSES, C2=3.0):
    return MulticlassS3VMLosses(
        inputs, targets, M, 2.0, C2, 1.5, classes=3, labelled=L, unlabelled=U
    )


KINDS = {"s3vm": s3vm, "logistic": logistic, "three classes": three_classes}
TARGETS = {"s3vm": PARTLY, "logistic": SIGNS, "three classes": CLASSES}
POINTS = {"s3vm": W, "logistic": W, "three classes": W_OF_THREE}


def differences(function, w, e=1e-6):
    """Derivatives of what each agent finds, entry by entry, by central differences."""
    columns = []
    for j in range(w.shape[1]):
        step = np.zeros_like(w)
        step[:, j] = e
        columns.append((function(w + step) - function(w - step)) / (2 * e))
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("form", ["dense", "sparse", "mixed"])
@pytest.mark.parametrize("kind", KINDS)
class TestDerivatives:
    def test_gradient(self, kind, form):
        losses = KINDS[kind](as_given(form))
        w = POINTS[kind]
        np.testing.assert_allclose(losses.gradient(w), differences(losses.value, w), atol=1e-6)

    def test_form_of_inputs_does_not_matter(self, kind, form):
        w = POINTS[kind]
        np.testing.assert_array_equal(
            KINDS[kind](as_given(form)).gradient(w), KINDS[kind]().gradient(w)
        )

    def test_an_agent_alone_has_the_same_bits(self, kind, form):
        together = KINDS[kind](as_given(form))
        ws = POINTS[kind]
        for k in range(len(ROWS)):
            targets = TARGETS[kind][k : k + 1]
            alone = KINDS[kind](as_given(form)[k : k + 1], targets)
            w = ws[k : k + 1]
            np.testing.assert_array_equal(alone.gradient(w)[0], together.gradient(ws)[k])
            assert alone.value(w)[0] == together.value(ws)[k]
            np.testing.assert_array_equal(alone.curvature(w)(w)[0], together.curvature(ws)(ws)[k])
            np.testing.assert_array_equal(
                newton_steps(alone, w, w, 6, 0.1)[0],
                newton_steps(together, ws, ws, 6, 0.1)[k],
            )
            minimum = surrogate_minima(together, ws, ws, 0.1)[k]
            np.testing.assert_array_equal(surrogate_minima(alone, w, w, 0.1)[0], minimum)


def test_curvature_of_a_convex_loss_is_its_second_derivative():
    losses = logistic()
    p = RNG.standard_normal(W.shape)
    e = 1e-6
    change = (losses.gradient(W + e * p) - losses.gradient(W - e * p)) / (2 * e)
    np.testing.assert_allclose(losses.curvature(W)(p), change, atol=1e-6)


def test_curvature_of_s3vm_leaves_out_what_bends_down():
    """Row by row: max(phi'', 0), by second differences of one row's loss."""
    e = 1e-4
    for x, y in zip(np.vstack(DENSE), np.concatenate(PARTLY), strict=True):
        one = s3vm([x[None]], [np.array([y])])
        w = W[:1]
        z = x - M
        along = z / (z @ z)  # moves f by one
        bend = (one.value(w + e * along) - 2 * one.value(w) + one.value(w - e * along))[0] / e**2
        expected = max(bend, 0.0) * (z @ z)
        assert (one.curvature(w)(z[None])[0] @ z) / (z @ z) == pytest.approx(expected, abs=1e-4)


def test_s3vm_is_what_the_formula_says():
    w, total = W[0], 0.0
    for X, y in zip(DENSE, PARTLY, strict=True):
        f = (X - M) @ w + 0.3
        total += 2.0 / (2 * L) * np.sum(np.maximum(0, 1 - y * f)[y != 0] ** 2)
        total += 3.0 / (2 * U) * np.sum(np.exp(-5.0 * f[y == 0] ** 2))
    assert s3vm().value(np.tile(w, (len(ROWS), 1))).sum() == pytest.approx(total, rel=1e-12)


def test_three_classes_are_what_the_formula_says():
    w = W_OF_THREE[0]
    total = 0.0
    for X, y in zip(DENSE, CLASSES, strict=True):
        f = (X - M) @ w.reshape(3, D).T
        for own, label in zip(f, y, strict=True):
            if label < 0:
                p = np.exp(1.5 * own) / np.exp(1.5 * own).sum()
                total += 3 * 3.0 / U * (1 - p @ p)
            else:
                short = np.maximum(0, 1 - own[label] + np.delete(own, label))
                total += 10 * 2.0 / (2 * L) * short @ short
    losses = three_classes()
    assert losses.value(np.tile(w, (len(ROWS), 1))).sum() == pytest.approx(total, rel=1e-12)


def test_curvature_of_three_classes_is_that_of_labelled_rows():
    labelled_alone = three_classes(C2=0.0)
    p = RNG.standard_normal(W_OF_THREE.shape)
    e = 1e-7
    ahead = labelled_alone.gradient(W_OF_THREE + e * p)
    behind = labelled_alone.gradient(W_OF_THREE - e * p)
    change = (ahead - behind) / (2 * e)
    np.testing.assert_allclose(three_classes().curvature(W_OF_THREE)(p), change, atol=1e-5)


def test_large_outputs_of_three_classes_do_not_overflow():
    losses = three_classes()
    assert np.isfinite(losses.value(1e4 * W_OF_THREE)).all()
    assert np.isfinite(losses.gradient(1e4 * W_OF_THREE)).all()


def test_convex_part_of_s3vm_is_that_of_labelled_rows():
    np.testing.assert_array_equal(
        three_classes().convex_gradient(W_OF_THREE), three_classes(C2=0.0).gradient(W_OF_THREE)
    )
    labelled_alone = s3vm(C2=0.0)
    np.testing.assert_array_equal(s3vm().convex_gradient(W), labelled_alone.gradient(W))
    np.testing.assert_array_equal(logistic().convex_gradient(W), logistic().gradient(W))


def test_each_agent_may_have_its_own_copy_of_the_mean():
    np.testing.assert_array_equal(
        s3vm(m=np.tile(M, (len(ROWS), 1))).gradient(W), s3vm().gradient(W)
    )


def test_logistic_is_a_sum_and_survives_large_outputs():
    losses = LogisticLosses([np.array([[1e3], [1e3]])], [np.array([1, -1])])
    assert losses.value(np.ones((1, 1)))[0] == pytest.approx(1e3)
    assert losses.gradient(np.ones((1, 1)))[0] == pytest.approx([1e3])


class TestSurrogates:
    def test_newton_steps_solve_their_systems(self):
        losses, alpha, N = logistic(), 0.5, 6
        p = newton_steps(losses, W, W, N, alpha)
        left = N * losses.curvature(W)(p) + alpha * p
        assert (np.linalg.norm(left + W, axis=1) <= 0.011 * np.linalg.norm(W, axis=1)).all()

    @pytest.mark.parametrize("kind", ["s3vm", "logistic"])
    def test_surrogate_minima_have_no_slope(self, kind):
        losses, alpha, G = KINDS[kind](), 0.5, np.flip(W)
        u = surrogate_minima(losses, W, G, alpha)
        slope = losses.convex_gradient(u) - losses.convex_gradient(W) + alpha * (u - W) + G
        assert (np.linalg.norm(slope, axis=1) <= 0.0011 * np.linalg.norm(G, axis=1)).all()

    def test_largest_curvatures(self):
        losses = logistic()
        found = largest_curvatures(losses.gradient, np.zeros_like(W))
        true = [
            np.linalg.norm(X, 2) ** 2 / 4 if len(X) else 0.0 for X in DENSE
        ]  # phi'' is 1/4 at 0
        assert (found <= np.array(true) * 1.001).all()
        assert (found >= np.array(true) * 0.7).all()


BAD = [
    (lambda: s3vm(targets=[*PARTLY[:-1], np.full(5, 2)]), DataError, "a target is 2"),
    (lambda: logistic(targets=PARTLY), DataError, "a target is 0: targets must be -1 or [+]1"),
    (lambda: s3vm(labelled=3), DataError, "is said to have 3 labelled"),
    (lambda: s3vm(C1=-1.0), InputError, "C1 is -1.0"),
    (lambda: s3vm(s=np.nan), InputError, "s is nan"),
    (lambda: s3vm(m=np.ones(3)), DataError, r"m has shape \(3,\): give 6 numbers"),
    (lambda: logistic(targets=SIGNS[:2]), DataError, "inputs of 6 agents and targets of 2"),
    (lambda: logistic([], []), DataError, "inputs of 0 agents"),
    (
        lambda: logistic([np.ones((2, 3)), np.ones((2, 4))], [np.ones(2)] * 2),
        DataError,
        "4 columns, inputs\\[0\\] has 3",
    ),
    (lambda: logistic([np.ones((2, 3))], [np.ones(3)]), DataError, "has 2 rows: give one per row"),
    (lambda: logistic([np.ones(3)], [np.ones(3)]), DataError, "one row per example"),
    (lambda: logistic([np.full((1, 2), np.nan)], [np.ones(1)]), DataError, "NaN or infinite"),
]


@pytest.mark.parametrize(
    ("make", "error", "sentence"), BAD, ids=[sentence for _, _, sentence in BAD]
)
def test_what_cannot_be_used_is_refused(make, error, sentence):
    with pytest.raises(error, match=sentence):
        make()

"""Cross-validation from sums, against ridge regression fitted on the other folds' rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge

from peerlearn.local.candidates import (
    CANDIDATES,
    Candidate,
    Directions,
    direct_links,
    hash_rows,
)
from peerlearn.local.cross_validation import (
    RATIOS,
    Candidates,
    held_out_errors,
    least_place,
    splits_of,
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((120, 3)) * [1.0, 10.0, 0.1] + [0.0, 100.0, 0.0]
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1]])
WEIGHTS = RNG.integers(0, 3, 120).astype(float)
FOLDS = RNG.integers(0, 4, 120)
MEAN = X.mean(axis=0)
SCALE = 1 / X.std(axis=0)
Z = np.clip((X - MEAN) * SCALE, -3, 3)
DIRECTIONS = Directions.draw(3, 8, seed=0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("centred", [False, True])
def test_errors_are_those_of_models_fitted_without_the_fold(centred, weighted):
    layers = [DIRECTIONS.layer(kind, MEAN, SCALE) for kind in CANDIDATES]
    shared = direct_links(MEAN, SCALE)
    candidates = Candidates(shared, layers, outputs=2)
    w = WEIGHTS if weighted else None
    folds = []
    for fold in range(4):
        own = fold == FOLDS
        sums = candidates.sums(X[own], Y[own], None if w is None else w[own])
        folds.append(candidates.matrices(sums))
    for place, layer in enumerate(layers):
        H = np.hstack([shared(X), layer(X)])
        splits = splits_of([own[place] for own in folds], 2, centred=centred)
        errors = held_out_errors(splits, 2, None)
        expected = sum(errors_by_ridge(H, fold != FOLDS, w, centred=centred) for fold in range(4))
        np.testing.assert_allclose(errors, expected, rtol=1e-6)


def errors_by_ridge(H, learned, w, *, centred):
    """Return the squared errors of the other rows, for each ratio."""
    own = np.ones(len(H)) if w is None else w
    mean = np.average(H[learned], axis=0, weights=own[learned]) if centred else 0.0
    about = H[learned] - mean
    size = np.sum(own[learned, None] * about**2) / H.shape[1]
    errors = []
    for ratio in RATIOS:
        model = Ridge(ratio * size, fit_intercept=centred)
        model.fit(H[learned], Y[learned], sample_weight=own[learned])
        off = model.predict(H[~learned]) - Y[~learned]
        errors.append(np.sum(own[~learned, None] * off**2))
    return np.array(errors)


def test_a_given_alpha_is_the_only_one():
    candidates = Candidates(None, [direct_links(MEAN, SCALE)], outputs=2)
    folds = [candidates.matrices(candidates.sums(X[own], Y[own], None))[0] for own in halves()]
    splits = splits_of(folds, 2, centred=True)
    expected = 0.0
    for own in halves():
        model = Ridge(3.0).fit(Z[~own], Y[~own])
        expected += np.sum((model.predict(Z[own]) - Y[own]) ** 2)
    np.testing.assert_allclose(held_out_errors(splits, 2, 3.0), [expected], rtol=1e-9)


def halves():
    first = np.arange(120) < 60
    return first, ~first


def test_folds_without_rows_are_left_out():
    candidates = Candidates(None, [direct_links(MEAN, SCALE)], outputs=2)
    parts = [(X, Y), (X[:0], Y[:0])]
    folds = [candidates.matrices(candidates.sums(x, y, None))[0] for x, y in parts]
    assert splits_of(folds, 2, centred=True) == []


def test_errors_that_differ_by_rounding_are_equal():
    assert least_place(np.array([1.0 + 1e-9, 1.0, 2.0])) == 0
    assert least_place(np.array([1.1, 1.0, 2.0])) == 1
    assert least_place(np.zeros(3)) == 0


def test_a_layer_is_that_of_standardised_rows():
    layer = DIRECTIONS.layer(Candidate("fourier", 0.5), MEAN, SCALE)
    expected = np.sin(Z @ DIRECTIONS.V / (0.5 * np.sqrt(6)) + DIRECTIONS.p)
    np.testing.assert_allclose(layer(X), expected, atol=1e-9)
    assert DIRECTIONS.layer(Candidate("linear"), MEAN, SCALE).width == 0


def test_a_column_that_does_not_vary_is_ignored():
    scale = SCALE * [1.0, 0.0, 1.0]
    layer = DIRECTIONS.layer(Candidate("tanh"), MEAN, scale)
    elsewhere = X.copy()
    elsewhere[:, 1] += 7.0
    np.testing.assert_allclose(layer(elsewhere), layer(X), atol=1e-12)
    assert not direct_links(MEAN, scale)(X)[:, 1].any()


def test_the_hash_of_a_row_depends_on_the_row_alone():
    rows = RNG.integers(-2, 3, (5000, 3)).astype(float)
    mean = np.zeros(3)
    scale = np.ones(3)
    hashes = hash_rows(rows, mean, scale, 5)
    np.testing.assert_array_equal(hash_rows(rows[::-1], mean, scale, 5), hashes[::-1])
    np.testing.assert_array_equal(hash_rows(rows, mean + 1e-15, scale - 1e-15, 5), hashes)
    np.testing.assert_array_equal(hash_rows(3 * rows, mean, scale / 3, 5), hashes)
    np.testing.assert_array_equal(hash_rows(sp.csr_array(rows), mean, scale, 5), hashes)
    assert len(np.unique(hashes)) == len(np.unique(rows, axis=0))
    assert (hash_rows(rows, mean, scale, 6) != hashes).any()


def test_hashes_spread_rows_evenly_over_folds():
    hashes = hash_rows(RNG.standard_normal((5000, 2)), np.zeros(2), np.ones(2), 5)
    counts = np.bincount((hashes % 5).astype(int), minlength=5)
    assert counts.min() > 900
    assert counts.max() < 1100
    assert 0.45 < np.mean(hashes < 2**31) < 0.55

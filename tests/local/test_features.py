"""Random features are their formula."""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn.errors import InputError
from peerlearn.local.features import ACTIVATIONS, RandomFeatures

BY_HAND = {
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "tanh": np.tanh,
    "relu": lambda z: z * (z > 0),
    "sine": np.sin,
}


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
@pytest.mark.parametrize("direct", [False, True])
def test_features_are_the_formula(activation, direct):
    features = RandomFeatures.draw(4, 7, seed=1, activation=activation, direct_links=direct)
    X = np.random.default_rng(0).standard_normal((9000, 4))
    expected = BY_HAND[activation](X @ features.W + features.b)
    expected = np.hstack([expected, X]) if direct else expected
    np.testing.assert_allclose(features(X), expected, atol=1e-12)
    assert features.width == expected.shape[1]
    np.testing.assert_array_equal(np.vstack([h.copy() for _, h in features.blocks(X)]), features(X))


def test_features_are_uniform_seeded_and_never_overflow():
    features = RandomFeatures.draw(30, 400, seed=5)
    again = RandomFeatures.draw(30, 400, seed=5)
    assert (features.W == again.W).all()
    assert (features.b == again.b).all()
    assert (features.W != RandomFeatures.draw(30, 400, seed=6).W).any()
    assert -1 <= features.W.min() < -0.99 < 0.99 < features.W.max() <= 1
    assert features.W.mean() == pytest.approx(0, abs=0.02)
    assert np.isfinite(features(np.full((2, 30), 1e6))).all()


def test_unknown_activation_gets_its_sentence():
    with pytest.raises(
        InputError, match="activation 'step' is not known: choose one of sigmoid, tanh, relu, sine"
    ):
        RandomFeatures.draw(2, 3, seed=0, activation="step")

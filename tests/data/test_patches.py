"""Features of images by their patches, against the formula written out pixel by pixel."""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn.data.patches import Patches
from peerlearn.errors import DataError, InputError

RNG = np.random.default_rng(0)
SIDE, SIZE, STEP, K = 12, 4, 2, 7


def pictures(n=30):
    """Squares of one colour on a ground of another, with some noise."""
    images = np.zeros((n, SIDE, SIDE, 3))
    for image in images:
        (top, left), ground, colour = RNG.integers(0, SIDE - 5, 2), *RNG.integers(0, 256, (2, 3))
        image[:] = ground
        image[top : top + 5, left : left + 5] = colour
    return np.clip(images + RNG.normal(0, 5, images.shape), 0, 255).reshape(n, -1)


def by_hand(fitted, row):
    image = (row.reshape(SIDE, SIDE, 3) - fitted.low_) / (fitted.high_ - fitted.low_)
    places = range(0, SIDE - SIZE + 1, STEP)
    quarters = np.zeros((2, 2, K))
    for i, top in enumerate(places):
        for j, left in enumerate(places):
            p = image[top : top + SIZE, left : left + SIZE].transpose(2, 0, 1).ravel()
            p = (p - p.mean()) / np.sqrt(p.var() + 10 / 255**2)
            away = np.linalg.norm((p - fitted.mean_) @ fitted.whitening_ - fitted.centres_, axis=1)
            half = (len(places) + 1) // 2
            quarters[int(i >= half), int(j >= half)] += np.maximum(0.0, away.mean() - away)
    return quarters.ravel()


def test_features_are_those_of_the_formula():
    X = pictures()
    patches = Patches(K, size=SIZE, step=STEP, n_samples=20, random_state=0).fit(X)
    found = patches.transform(X)
    assert found.shape == (30, 4 * K)
    np.testing.assert_allclose(found, [by_hand(patches, row) for row in X], atol=1e-3)
    assert found.max() > 0.1


def test_whitened_patches_are_white_but_for_faint_directions():
    X = pictures(60)
    patches = Patches(K, size=SIZE, n_samples=30, random_state=0).fit(X)
    images = X.reshape(-1, SIDE, SIDE, 3)
    drawn = [
        images[i, top : top + SIZE, left : left + SIZE].transpose(2, 0, 1).ravel()
        for i, top, left in zip(
            RNG.integers(0, 60, 2000), *RNG.integers(0, SIDE - SIZE + 1, (2, 2000)), strict=True
        )
    ]
    p = np.array([(q - q.mean()) / np.sqrt(q.var() + 10) for q in drawn])
    variances = np.linalg.eigvalsh(np.cov((p - patches.mean_) @ patches.whitening_, rowvar=False))
    assert 0.8 < variances.max() < 1.4  # as near to one as so few patches allow


def test_the_same_seed_gives_the_same_features_and_another_does_not():
    X = pictures()
    first, again, other = (
        Patches(K, size=SIZE, random_state=seed).fit(X).transform(X) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


def test_images_of_one_colour_have_features_too():
    assert np.isfinite(
        Patches(2, size=SIZE, random_state=0).fit_transform(np.full((3, SIDE * SIDE * 3), 7.0))
    ).all()


@pytest.mark.parametrize("columns", [SIDE * SIDE, SIDE * SIDE * 3 + 3, 27])
def test_rows_that_are_no_images_are_refused(columns):
    with pytest.raises(
        DataError, match=f"rows of {columns} columns are no square images of 3 colours"
    ):
        Patches(K, size=SIZE).fit(np.zeros((5, columns)))


@pytest.mark.parametrize("name", ["n_patches", "size", "step", "n_samples"])
def test_settings_that_mean_nothing_are_refused(name):
    with pytest.raises(InputError, match=f"{name} of Patches is 0: give a whole number"):
        Patches(**{name: 0}).fit(pictures(5))

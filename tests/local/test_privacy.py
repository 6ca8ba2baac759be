"""What transforms keep of distances, and what whoever sees them can take back: the numbers of
docs/privacy.md.
"""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn import SimulatedNetwork, graphs
from peerlearn.algorithms.distances import Exchange
from peerlearn.errors import InputError
from peerlearn.local.privacy import RandomProjection, TanhTransform
from peerlearn.local.squared_distances import squared_distances

RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 10))
NETWORK = SimulatedNetwork(graphs.ring(5))


def away(found, truth):
    return np.linalg.norm(found - truth) / np.linalg.norm(truth)


def embedded(D, d):
    """Points with these squared distances, about their mean (classical scaling)."""
    J = np.eye(len(D)) - 1 / len(D)
    values, vectors = np.linalg.eigh(-0.5 * J @ D @ J)
    return vectors[:, -d:] * np.sqrt(np.maximum(values[-d:], 0))


def turned(Z, own, X_own):
    """All points, turned and moved so that those of an agent lie on its own rows (Procrustes)."""
    U, _, Wt = np.linalg.svd((Z[own] - Z[own].mean(axis=0)).T @ (X_own - X_own.mean(axis=0)))
    return (Z - Z[own].mean(axis=0)) @ (U @ Wt) + X_own.mean(axis=0)


class TestProjection:
    def test_keeps_inner_products_on_average(self):
        drawn = [RandomProjection(3).drawn(10, seed)(X) for seed in range(4000)]
        mean = np.mean([u @ u.T for u in drawn], axis=0)
        assert away(mean, X @ X.T) < 0.06  # expected of so many draws: sqrt(11 / 3) / 63
        assert away(drawn[0] @ drawn[0].T, X @ X.T) > 0.3  # of one draw it cannot be said

    def test_is_the_same_at_every_agent(self):
        first, second = (RandomProjection(4).drawn(10, 7) for _ in range(2))
        assert np.array_equal(first(X), second(X))
        assert first(X).shape == (30, 4)
        assert not np.allclose(first(X), RandomProjection(4).drawn(10, 8)(X))
        assert first(X[:0]).shape == (0, 4)

    def test_to_more_columns_than_there_are(self):
        with pytest.raises(
            InputError, match="RandomProjection to 11 columns of rows that have 10 hides nothing"
        ):
            RandomProjection(11).drawn(10, 0)

    def test_to_a_share_of_the_columns(self):
        for transform in (RandomProjection, TanhTransform):
            assert np.array_equal(transform(0.3).drawn(10, 7)(X), transform(3).drawn(10, 7)(X))
            assert transform(0.01).drawn(10, 7)(X).shape == (30, 1)

    @pytest.mark.parametrize("m", [0, -2, 1.5, "3"])
    def test_to_no_number_of_columns(self, m):
        for transform in (RandomProjection, TanhTransform):
            with pytest.raises(InputError, match=f"m of {transform.__name__} is {m!r}"):
                transform(m)


class TestTanh:
    def test_keeps_inner_products_where_C_is_small(self):
        drawn = [TanhTransform(50, 200, C=1e-6).drawn(10, seed)(X) for seed in range(150)]
        assert (
            away(np.mean([v @ v.T for v in drawn], axis=0), X @ X.T) < 0.1
        )  # expected: sqrt(11/50 + 11/200) / 12

    @pytest.mark.parametrize(
        "variances", [{}, {"a": 0.5}, {"b": 4.0}, {"Q": 9.0}, {"C": 1e-8}], ids=str
    )
    def test_keeps_distances_whatever_the_variances(self, variances):
        D = squared_distances(X)
        found = [
            squared_distances(TanhTransform(40, 300, **variances).drawn(10, seed)(X))
            for seed in range(100)
        ]
        assert away(np.mean(found, axis=0), D) < 0.1

    def test_the_numbers_of_the_table_are_variances(self):
        """As deviations they would be a million times smaller, and so would what is shared."""
        v = TanhTransform(2000, 2000, C=1e-6).drawn(10, 0)
        slope = v(1e-3 * np.eye(10)) / 1e-3
        assert np.median(np.linalg.norm(slope, axis=1)) == pytest.approx(1.0, abs=0.1)

    def test_a_large_C_keeps_less(self):
        D = squared_distances(X)
        small, large = (
            squared_distances(TanhTransform(2000, 2000, C=c).drawn(10, 0)(X)) for c in (1e-6, 1.0)
        )
        assert away(small, D) < 0.1 < away(large, D)

    def test_rows_in_parts_and_none(self, monkeypatch):
        transform = TanhTransform(3, 50).drawn(10, 0)
        at_once = transform(X)
        monkeypatch.setattr("peerlearn.local.privacy.AT_ONCE", 100)  # two rows at a time
        np.testing.assert_allclose(transform(X), at_once, rtol=1e-12)
        assert transform(X[:0]).shape == (0, 3)

    @pytest.mark.parametrize("setting", ["t", "a", "b", "Q", "C"])
    def test_settings_that_cannot_be(self, setting):
        with pytest.raises(InputError, match=f"{setting} of TanhTransform is -1"):
            TanhTransform(3, **{setting: -1})


class TestAttacks:
    """None of this is hidden: whoever can compute distances to others' rows can compute
    the rows.
    """

    def test_completed_distances_and_own_rows_give_everybodys(self):
        """Landmarks need no own rows: tests/whole/test_attacks.py."""
        rows = [RNG.standard_normal((n, 6)) + 3 for n in (12, 7, 9, 8, 10)]
        known = Exchange(1.0, 1.0, 9, 9).share(NETWORK, rows, seed=0)
        found = turned(
            embedded(known.D[1], 6), known.places.of(1), rows[1]
        )  # agent 1 has d + 1 rows
        assert away(found, np.vstack(rows)) < 1e-12

    def test_with_fewer_own_rows_a_mirror_image_or_a_turn_remains(self):
        rows = RNG.standard_normal((40, 6))
        found = [
            turned(embedded(squared_distances(rows), 6), slice(0, n), rows[:n]) for n in (3, 6, 7)
        ]
        assert away(found[0], rows) > 0.5
        mirror = rows[:6].mean(axis=0) + (found[1] - rows[:6].mean(axis=0)) @ reflection(rows[:6])
        assert min(away(found[1], rows), away(mirror, rows)) < 1e-10  # one of two
        assert away(found[2], rows) < 1e-12

    @pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
    def test_the_agreed_projection_gives_all_but_what_it_leaves_out(self, part):
        rows, m = RNG.standard_normal((300, 50)), round(50 * part)
        project = RandomProjection(m).drawn(50, 4)
        R = project(np.eye(50)).T
        assert away(project(rows) @ np.linalg.pinv(R).T, rows) == pytest.approx(
            np.sqrt(1 - part), abs=0.03
        )

    def test_the_agreed_tanh_is_undone_by_newton_steps(self):
        rows = RNG.uniform(-1, 1, (20, 6))
        transform = TanhTransform(6, 500, a=0.5, C=1e-2).drawn(6, 3)
        shared, found = transform(rows), np.zeros_like(rows)
        for _ in range(20):
            slopes = [
                (transform(x + 1e-6 * np.eye(6)) - transform(x[None])).T / 1e-6 for x in found
            ]
            gaps = shared - transform(found)
            found = found + np.array(
                [np.linalg.solve(J, gap) for J, gap in zip(slopes, gaps, strict=True)]
            )
        assert away(found, rows) < 1e-8


def reflection(own):
    """In the hyperplane through d points."""
    normal = np.linalg.svd(own - own.mean(axis=0))[2][-1]
    return np.eye(len(normal)) - 2 * np.outer(normal, normal)

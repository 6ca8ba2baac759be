"""Counts, means and variances with differential privacy."""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn import DifferentialPrivacy, SimulatedNetwork, graphs, private_moments
from peerlearn.algorithms.differential_privacy import GRID
from peerlearn.algorithms.moments_with_noise import _sum_moments
from peerlearn.errors import DataError, InputError
from peerlearn.testing.threads import run_in_threads

GRAPH = graphs.ring(4)
RNG = np.random.default_rng(0)
TABLES = [RNG.normal([3.0, -2.0], [1.0, 0.1], (n, 2)) for n in (3000, 0, 1, 2000)]
BOUNDS = [(0, 10), (-3, 0)]


def network_of(seed=None):
    network = SimulatedNetwork(GRAPH, secrecy="sums", colluders=2)
    network.noise_seed = seed
    return network


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_moments_are_near_those_of_all_rows(neighbors):
    privacy = DifferentialPrivacy(5.0, neighbors=neighbors)
    found = private_moments(TABLES, BOUNDS, privacy, network_of(0))
    rows = np.vstack(TABLES)
    assert found.count == pytest.approx(len(rows), abs=30)
    np.testing.assert_allclose(found.means, rows.mean(axis=0), atol=0.05)
    np.testing.assert_allclose(found.variances, rows.var(axis=0), atol=0.15)
    assert found.privacy.epsilon <= 5.0
    assert found.privacy.neighbors == neighbors
    assert found.privacy.clipping == "2 columns to their bounds"


def test_noise_is_new_each_time_and_the_same_at_all_agents():
    privacy = DifferentialPrivacy(1.0)
    first = private_moments(TABLES, BOUNDS, privacy, network_of())
    assert first.count != private_moments(TABLES, BOUNDS, privacy, network_of()).count

    def work(network):
        network.keep_secrets("sums", 2)
        network.noise_seed = 7
        own = [TABLES[network.hosted[0]]]
        return private_moments(own, BOUNDS, privacy, network)

    expected = private_moments(TABLES, BOUNDS, privacy, network_of(7))
    for found in run_in_threads(GRAPH, work):
        assert found.count == expected.count
        np.testing.assert_array_equal(found.variances, expected.variances)


def test_one_row_changes_sums_by_no_more_than_allowed():
    u = np.vstack([RNG.uniform(-1.5, 1.5, (300, 3)), np.ones((1, 3)), -np.ones((1, 3))])
    sums = np.array([_sum_moments(row[None]) for row in u], dtype=float) / GRID**2
    alone = np.linalg.norm(sums, axis=1)
    assert np.sqrt(7) * 0.999 <= alone.max() <= np.sqrt(7)
    apart = np.linalg.norm(sums[:, None] - sums[None], axis=2)
    assert 2 * np.sqrt(3) * 0.999 <= apart.max() <= 2 * np.sqrt(3)


def test_no_rows_at_all():
    found = private_moments([t[:0] for t in TABLES], BOUNDS, DifferentialPrivacy(1.0), network_of())
    assert found.count >= 1
    assert (found.variances >= 0).all()


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ([(0, 1)], "give 1 columns"),
        ([(0, 1), (2, 2)], "the bounds of column 1 are 2 and 2"),
        ([(0, 1), (2, np.inf)], "smallest and largest value per column"),
        (3, "smallest and largest value per column"),
        (["ab", "cd"], "smallest and largest value per column"),
    ],
)
def test_bad_bounds_are_refused(bounds, said):
    network = network_of()
    with pytest.raises(InputError, match=said):
        private_moments(TABLES, bounds, DifferentialPrivacy(1.0), network)
    assert network.ledger.messages == 0


def test_bad_tables_and_networks_are_refused():
    privacy = DifferentialPrivacy(1.0)
    with pytest.raises(InputError, match="secrecy='sums'"):
        private_moments(TABLES, BOUNDS, privacy, SimulatedNetwork(GRAPH))
    with pytest.raises(DataError, match="give 4 tables"):
        private_moments(TABLES[:3], BOUNDS, privacy, network_of())
    gaps = [*TABLES[:3], np.full((2, 2), np.nan)]
    with pytest.raises(DataError, match="no NaN"):
        private_moments(gaps, BOUNDS, privacy, network_of())

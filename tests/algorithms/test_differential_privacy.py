"""Noise in shares: what it promises, what one row changes, and what a coalition learns."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from scipy.stats import beta, ks_2samp, kstest, norm

from peerlearn import DifferentialPrivacy, SimulatedNetwork, graphs
from peerlearn.algorithms.differential_privacy import (
    GRID,
    LEAST_DEVIATION,
    MOST_ROWS,
    check_row_count,
    plan_noise,
    round_rows,
)
from peerlearn.errors import DataError, InputError, MissingExtra
from peerlearn.secret.accounting import compute_epsilon, find_noise_multiplier

RNG = np.random.default_rng(0)


def network_of(agents, colluders):
    return SimulatedNetwork(graphs.complete(agents), secrecy="sums", colluders=colluders)


def exact_delta(multiplier, epsilon):
    """Delta of the continuous Gaussian: Balle and Wang, 2018, theorem 8."""
    half = 1 / (2 * multiplier)
    shift = epsilon * multiplier
    return norm.cdf(half - shift) - math.exp(epsilon + norm.logcdf(-half - shift))


@pytest.mark.parametrize("epsilon", [0.001, 0.1, 1.0, 10.0, 1000.0])
@pytest.mark.parametrize("delta", [1e-15, 1e-6, 1e-3])
def test_the_noise_is_enough_and_not_much_more(epsilon, delta):
    multiplier = DifferentialPrivacy(epsilon, delta).noise_multiplier
    assert compute_epsilon([multiplier], delta) <= epsilon
    assert exact_delta(multiplier, epsilon) <= delta
    # Renyi divergences ask for more noise than the exact curve, by this much at most.
    assert exact_delta(multiplier / 1.5, epsilon) > delta


def test_several_releases_cost_less_than_their_sum_and_more_than_one():
    multiplier = DifferentialPrivacy(1.0).noise_multiplier
    assert 1.0 < compute_epsilon([multiplier] * 4, 1e-6) < 4.0
    # Four Gaussian releases are one with half the noise.
    assert compute_epsilon([multiplier] * 4, 1e-6) == pytest.approx(
        compute_epsilon([multiplier / 2], 1e-6)
    )


@pytest.mark.parametrize(("agents", "colluders"), [(3, 1), (10, 1), (10, 8), (100, 30)])
def test_honest_agents_alone_have_the_noise_that_is_needed(agents, colluders):
    privacy = DifferentialPrivacy(1.0)
    sensitivities = (GRID**2, 1.25 * GRID**2)
    plan = plan_noise(privacy, sensitivities, network_of(agents, colluders), "")
    honest = agents - colluders
    for deviation, sensitivity in zip(plan.deviations, sensitivities, strict=True):
        # Each of two parts takes half of what may be spent.
        own = math.sqrt(honest) * deviation / sensitivity
        assert own >= math.sqrt(2) * privacy.noise_multiplier
        assert own <= math.sqrt(2) * privacy.noise_multiplier * 1.0001
    assert plan.statement.noise_multiplier >= privacy.noise_multiplier
    assert 0.99 < plan.statement.epsilon <= 1.0
    assert (plan.statement.agents, plan.statement.colluders) == (agents, colluders)


def test_noise_is_never_coarser_than_the_grid():
    plan = plan_noise(DifferentialPrivacy(1000.0), [10.0], network_of(5, 1), "")
    assert plan.deviations == (LEAST_DEVIATION,)
    assert plan.statement.epsilon < 0.1


def rows_to_round():
    yield RNG.standard_normal((200, 7)) * 10.0 ** RNG.integers(-8, 8, (200, 1))
    yield RNG.standard_normal((50, 1))
    yield np.ones((1, 3000)) * 1e90
    yield np.eye(5) * (1 + 1e-15)
    yield np.zeros((2, 3))


@pytest.mark.parametrize("H", list(rows_to_round()))
@pytest.mark.parametrize("norm", [1.0, 1e-5, 123.456])
def test_no_row_is_longer_than_the_grid(H, norm):
    whole = round_rows(H, norm)
    assert (whole == np.rint(whole)).all()
    for row in whole.astype(np.int64).tolist():
        assert sum(number**2 for number in row) <= GRID**2
    short = np.linalg.norm(H, axis=1) <= norm
    np.testing.assert_allclose(whole[short] / GRID, H[short] / norm, atol=1.01 / GRID)


def test_more_rows_than_fit_are_refused():
    check_row_count(MOST_ROWS // 10, 10)
    with pytest.raises(DataError, match="more than private sums of 10 agents take"):
        check_row_count(MOST_ROWS // 10 + 1, 10)


def honest_noise(plan, honest, numbers, repetition):
    """Sum of the noise of honest agents, which is all that hides their rows from a coalition."""
    parts = [np.zeros(numbers, dtype=np.int64)] * len(plan.deviations)
    keys = [b"%16d%16d" % (repetition, agent) for agent in range(honest)]
    return sum(plan.add_noise(key, parts)[:, 0] for key in keys).view(np.int64)


def test_the_noise_of_all_agents_is_that_of_a_curator_times_the_colluders_share():
    """Equal in distribution, up to the variance L / (L - t): Kolmogorov and Smirnov."""
    privacy = DifferentialPrivacy(1.0)
    L, t = 7, 3
    shared = plan_noise(privacy, [GRID**2], network_of(L, t), "")
    honest_of_one = network_of(3, 1)
    honest_of_one.size = 1
    honest_of_one.colluders = 0
    curator = plan_noise(privacy, [GRID**2], honest_of_one, "")
    ours = np.concatenate([honest_noise(shared, L, 200, n) for n in range(40)])
    theirs = np.concatenate([honest_noise(curator, 1, 200, n) for n in range(100, 140)])
    factor = math.sqrt(L / (L - t))
    assert ks_2samp(ours / factor, theirs).pvalue > 1e-3
    assert kstest(ours / shared.total_deviation(0), "norm").pvalue > 1e-3
    assert ks_2samp(ours, theirs).pvalue < 1e-6  # the test sees the factor
    assert np.var(ours) / np.var(theirs) == pytest.approx(L / (L - t), rel=0.06)


def least_epsilon(found, false, trials, delta):
    """Epsilon that is certain (99 %) from an attack: of so many, right and wrong accusations."""
    right = beta.ppf(0.005, found, trials - found + 1)
    wrong = beta.ppf(0.995, false + 1, trials - false)
    return math.log(max(right - delta, 1e-9) / wrong)


@pytest.mark.processes  # it takes as long
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("noise", ["as planned", "a fifth"])
def test_a_membership_attack_stays_below_what_epsilon_allows(epsilon, noise):
    """A coalition of the root and one more agent knows all rows but one, and its own noise.

    It takes the likelihood ratio, the best test there is. With a fifth of the noise it learns more
    than epsilon allows, so the attack would notice.
    """
    L, t = 5, 2
    privacy = DifferentialPrivacy(epsilon, 1e-5)
    used = privacy
    if noise == "a fifth":
        stronger = 5 * epsilon
        while DifferentialPrivacy(stronger, 1e-5).noise_multiplier > privacy.noise_multiplier / 5:
            stronger *= 1.1
        used = DifferentialPrivacy(stronger, 1e-5)
    plan = plan_noise(used, [GRID**2], network_of(L, t), "")
    trials = 1500
    row = np.zeros(3, dtype=np.int64)
    row[0] = GRID**2  # the most that a row can change
    without = np.array([honest_noise(plan, L - t, 3, n) for n in range(trials)])
    with_row = np.array([honest_noise(plan, L - t, 3, trials + n) + row for n in range(trials)])
    known = [
        least_epsilon(
            np.count_nonzero(with_row[:, 0] > threshold),
            np.count_nonzero(without[:, 0] > threshold),
            trials,
            1e-5,
        )
        for threshold in np.quantile(without[:, 0], [0.5, 0.8, 0.9, 0.95, 0.99, 0.998])
    ]
    assert (max(known) <= epsilon) == (noise == "as planned")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"epsilon": 0}, "epsilon of DifferentialPrivacy is 0: give a number from 0.001 to 1000"),
        ({"epsilon": float("nan")}, "epsilon of DifferentialPrivacy is nan"),
        ({"epsilon": "1"}, "epsilon of DifferentialPrivacy is '1'"),
        ({"epsilon": 1, "delta": 0}, "delta of DifferentialPrivacy is 0"),
        ({"epsilon": 1, "neighbors": "both"}, "neighbors of DifferentialPrivacy is 'both'"),
        ({"epsilon": 1, "feature_norm": 0}, "feature_norm of DifferentialPrivacy is 0"),
        ({"epsilon": 1, "target_bounds": (1, 1)}, "target_bounds of DifferentialPrivacy is"),
        ({"epsilon": 1, "target_bounds": 3}, "target_bounds of DifferentialPrivacy is 3"),
    ],
)
def test_bad_settings_are_refused(settings, said):
    with pytest.raises(InputError, match=said):
        DifferentialPrivacy(**settings)


def test_bounds_from_a_file_are_those_of_python():
    assert DifferentialPrivacy(1, target_bounds=[0, 1]) == DifferentialPrivacy(
        1.0, target_bounds=(0.0, 1.0)
    )


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    find_noise_multiplier.cache_clear()
    with pytest.raises(MissingExtra, match="pip install dp-accounting cryptography"):
        _ = DifferentialPrivacy(1.0).noise_multiplier

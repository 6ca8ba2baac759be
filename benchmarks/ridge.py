"""Claim: fitting random features is as fast as a ridge regression on features that cost nothing.

Setting: RVFLRegressor(n_hidden=500, alpha=8) without a network, 10,000 rows of 50 inputs. Rivals:
scikit-learn's
Ridge(alpha=8, fit_intercept=False) (a) on the same features, given to it for free, and (b) with the
time it takes to compute them in plain numpy. Limit: 1.0 times the time of either; (b) is like for
like, (a) is what we would like. All with the machine's own threads, and all with one thread.
"""

from __future__ import annotations

import numpy as np
from common import holds, milliseconds, ratio, show, timed
from sklearn.linear_model import Ridge
from threadpoolctl import threadpool_limits

from peerlearn import RVFLRegressor
from peerlearn.arrays import Array

ROWS, INPUTS, HIDDEN, ALPHA, LIMIT, REPEATS = 10_000, 50, 500, 8.0, 1.0, 11


def compare(threads: int | None) -> list[list[str]]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (ROWS, INPUTS))
    y = np.sin(X @ rng.standard_normal(INPUTS)) + 0.1 * rng.standard_normal(ROWS)
    ours = RVFLRegressor(
        HIDDEN, ALPHA, fit_intercept=False, random_state=0, activation="sigmoid"
    ).fit(X, y)
    W, b, H = ours.features_.W, ours.features_.b, ours.features_(X)
    rival = Ridge(alpha=ALPHA, fit_intercept=False)
    np.testing.assert_allclose(
        rival.fit(H, y).coef_, ours.coefficients_[0, :, 0], rtol=1e-6, atol=1e-9
    )
    with threadpool_limits(threads):
        times = timed(
            {
                "ours": lambda: ours.fit(X, y),
                "(a) Ridge alone": lambda: rival.fit(H, y),
                "(b) features and Ridge": lambda: rival.fit(1 / (1 + np.exp(-(X @ W + b))), y),
            },
            REPEATS,
        )
    mine = times.pop("ours")
    return [
        row(name, "all" if threads is None else f"{threads}", mine, seconds)
        for name, seconds in times.items()
    ]


def row(name: str, threads: str, ours: Array, rival: Array) -> list[str]:
    r = ratio(ours, rival)
    return [
        name,
        threads,
        milliseconds(ours),
        milliseconds(rival),
        f"{r:.2f}",
        f"{LIMIT:g}",
        holds(r, LIMIT),
    ]


def main() -> None:
    rows = compare(None) + compare(1)
    columns = [
        "rival: scikit-learn",
        "threads",
        "ours, ms",
        "rival, ms",
        "ours / rival",
        "limit",
        "",
    ]
    show(f"Centralised fit, {ROWS:,} rows, {HIDDEN} features", columns, rows)


if __name__ == "__main__":
    main()

"""alpha="auto" of echo state networks: longer closed loops, and one choice for all agents."""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn import ESNRegressor, Gram, SimulatedNetwork, data, graphs
from peerlearn.algorithms.readout.auto import solvers
from peerlearn.errors import InputError
from peerlearn.local.gcv import best_alpha
from tests.support.split_network import run_apart

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (4, 100, 1))
Y = X[:, :, 0] ** 2 + 0.1 * RNG.standard_normal((4, 100)) + 5
SHARES = list(zip(X, Y, strict=True))


def net(agents=4):
    return SimulatedNetwork(graphs.ring(agents))


def esn(units=20, **settings):
    settings = {"network": net(), "washout": 10, "random_state": 0, "alpha": "auto", **settings}
    return ESNRegressor(units, **settings)


def chaotic_series(name, seed):
    """A series of chaos, and how many of its samples are learned."""
    if name == "lorenz":
        return data.lorenz(1, 4500, dt=0.02, seed=seed)[0][0], 3000
    return data.mackey_glass(1, 3500, tau=17.0, ahead=1, seed=seed)[0][0], 2000


def horizon(series, n, alpha, seed):
    """Samples until a closed loop has left the series, by 0.4 of its standard deviation."""
    past, following = series[:n], series[1 : n + 1]
    model = esn(300, alpha=alpha, washout=100, random_state=seed).fit(past, following)
    truth = series[n + 1 :]
    found = model.forecast(len(truth), past, following).reshape(truth.shape)
    errors = np.sqrt(np.mean((found - truth) ** 2, axis=1)) / truth.std()
    left = np.flatnonzero(~(errors < 0.4))
    return left[0] if len(left) else len(truth)


@pytest.mark.parametrize(("name", "times"), [("lorenz", 1.8), ("mackey-glass", 4.0)])
def test_closed_loops_follow_chaos_for_longer(name, times):
    """Over 8 seeds the mean is 2.2 times longer on Lorenz, and 4.8 times on Mackey-Glass."""
    fixed, chosen = [], []
    for seed in range(4):
        series, n = chaotic_series(name, seed)
        fixed.append(horizon(series, n, 1e-3, seed))
        chosen.append(horizon(series, n, "auto", seed))
    assert np.mean(chosen) > times * np.mean(fixed)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_it_is_the_choice_of_one_place(fit_intercept):
    model = esn(fit_intercept=fit_intercept).fit(SHARES)
    H = np.vstack([h[10:] for h in model.reservoir_.harvest(list(X), None)])
    d = np.concatenate([y[10:] for y in Y])
    if fit_intercept:
        H = H[:, 1:] - H[:, 1:].mean(axis=0)
        d = d - d.mean()
    wanted = best_alpha(
        H.T @ H, H.T @ d[:, None], np.sum(d**2), len(d), free=int(fit_intercept), rounding=1e-14
    )
    assert model.alpha_ == pytest.approx(np.full(4, wanted))
    assert f"alpha {wanted:.3g} by generalised cross-validation" in model.report_.note
    again = esn(fit_intercept=fit_intercept, alpha=float(model.alpha_[0]), solver="gram")
    assert model.coefficients_.tobytes() == again.fit(SHARES).coefficients_.tobytes()


@pytest.mark.filterwarnings("ignore::peerlearn.errors.NotConverged")
@pytest.mark.parametrize("solver", [*sorted(solvers()), Gram(averaging="plain")], ids=str)
def test_every_solver_and_agents_without_samples(solver):
    given = [*SHARES[:2], (X[0][:0], Y[0][:0]), SHARES[3]]
    model = esn(solver=solver).fit(given)
    assert np.isfinite(model.coefficients_).all()
    alone = getattr(solver, "name", solver) == "local"
    assert len(set(model.alpha_.tolist())) == (4 if alone else 1)
    assert "by generalised cross-validation" in model.report_.note


def test_alone_nothing_is_sent_for_it():
    sent = [esn(solver="local", alpha=a).fit(SHARES).report_.sent.messages for a in ("auto", 1.0)]
    assert sent[0] == sent[1]


def test_one_agent_per_process_has_the_same_bits():
    together = esn().fit(SHARES)
    apart = run_apart(
        graphs.ring(4),
        lambda network, k: esn(network=network).fit([SHARES[k]]).coefficients_[0].tobytes(),
    )
    assert apart == [own.tobytes() for own in together.coefficients_]


def test_what_is_refused():
    with pytest.raises(InputError, match="alpha is 'auto', which is for penalty='ridge' only"):
        esn(penalty="lasso").fit(SHARES)
    with pytest.raises(InputError, match="alpha is 'auto', which fit chooses from all samples"):
        esn().partial_fit(SHARES)
    with pytest.raises(InputError, match="alpha, the weight of the penalty, must be a finite"):
        esn(alpha="small").fit(SHARES)

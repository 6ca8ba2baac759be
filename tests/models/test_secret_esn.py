"""ESN models from secret sums: those of open sums, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn import ESNRegressor, SimulatedNetwork, graphs
from peerlearn.errors import InputError
from peerlearn.testing import model_data as data

GRAPH = graphs.erdos_renyi(5, 0.5, seed=0)


def esn(**settings):
    usual = {"washout": 3, "solver": "gram", "alpha": 1e-3, "random_state": 0}
    return ESNRegressor(8, **{**usual, **settings})


def fit(model, **secrecy):
    network = SimulatedNetwork(GRAPH, **secrecy)
    return data.fit(model.set_params(network=network), network.hosted)


@pytest.mark.parametrize("settings", [{}, {"fit_intercept": False}, {"noise": 0.1, "leak": 0.5}])
def test_models_are_those_without_secrecy_within_both_bounds(settings):
    plain = fit(esn(**settings))
    secret = fit(esn(**settings), secrecy="sums", colluders=2)
    both = plain.report_.bound + secret.report_.bound
    assert both < 1e-6
    size = np.linalg.norm(plain.coefficients_[0])
    assert np.linalg.norm(plain.coefficients_[0] - secret.coefficients_[0]) <= both * size
    assert "only the listed totals are learned; secret against 2 of 5" in str(secret.report_)
    assert (secret.coefficients_ == secret.coefficients_[0]).all()


@pytest.mark.parametrize(
    ("words", "settings"),
    [
        ("solver='gram'", {"solver": "admm"}),
        ("penalty='ridge'", {"penalty": "lasso"}),
        ("a number as alpha", {"alpha": "auto"}),
    ],
)
def test_what_would_send_more_is_refused_before_the_first_message(words, settings):
    model = esn(**settings)
    with pytest.raises(InputError, match=f"keeps sums secret, and ESNRegressor then needs {words}"):
        fit(model, secrecy="sums")
    assert model.network.ledger.messages == 0
    network = SimulatedNetwork(GRAPH, secrecy="sums")
    with pytest.raises(InputError, match="keeps sums secret"):
        esn(network=network).partial_fit([data.chunk_in_time(k, 0) for k in range(5)])
    assert network.ledger.messages == 0

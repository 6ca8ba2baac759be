"""Audits of models: how their values travel, and what is warned about."""

from __future__ import annotations

import pytest

from peerlearn import (
    ADMM,
    AnchorLapClassifier,
    Averaging,
    ConjugateGradient,
    ESNRegressor,
    Gram,
    LapKRRClassifier,
    LogisticClassifier,
    NetworkSearchCV,
    RVFLClassifier,
    S3VMClassifier,
    SimulatedNetwork,
    SplineFilter,
    VerticalRVFLClassifier,
    average,
    graphs,
)
from peerlearn.errors import InputError
from peerlearn.models.registry import models
from peerlearn.privacy import Holdings, advise, audit, audit_model

NETWORK = SimulatedNetwork(graphs.ring(6))


def warnings_of(model, **given):
    return " ".join(audit_model(model.set_params(network=NETWORK), **given).warnings)


@pytest.mark.parametrize(
    ("model", "method"),
    [
        (RVFLClassifier(), "tree"),
        (RVFLClassifier(solver="gram"), "tree"),
        (RVFLClassifier(solver="consensus"), "tree"),
        (RVFLClassifier(solver=Gram(averaging="plain")), "plain"),
        (RVFLClassifier(solver=ConjugateGradient(averaging="chebyshev")), "chebyshev"),
        (RVFLClassifier(solver=ADMM(variant="thesis")), "plain"),
        (RVFLClassifier(solver=Gram(averaging=Averaging(max_rounds=2))), "plain"),
        (RVFLClassifier(solver="local"), "nothing"),
        (LogisticClassifier(), "tree"),
        (S3VMClassifier(), "tree"),
        (S3VMClassifier(solver="next"), "neighbors"),
        (S3VMClassifier(solver="tracking"), "neighbors"),
        (S3VMClassifier(solver="diffusion"), "neighbors"),
        (LapKRRClassifier(), "everyone"),
        (LapKRRClassifier(distances="exchange"), "everyone"),
        (LapKRRClassifier(distances="local"), "nothing"),
        (AnchorLapClassifier(), "everyone"),
        (VerticalRVFLClassifier(), "tree"),
        (SplineFilter(), "neighbors"),
    ],
)
def test_how_the_values_of_a_model_travel(model, method):
    assert audit_model(model.set_params(network=NETWORK)).method == method


def test_the_round_limit_of_a_solver_is_that_of_the_audit():
    solver = Gram(averaging=Averaging("plain", max_rounds=2))
    found = audit_model(RVFLClassifier(solver=solver, network=NETWORK))
    assert found.views == audit(NETWORK.graph, method="plain", rounds=2).views
    assert found.computes == (4,) * 6


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (RVFLClassifier(), "'auto' chooses"),
        (RVFLClassifier(solver="admm"), "ADMM sends coefficients in every iteration"),
        (RVFLClassifier(solver="consensus"), "fit one agent's own rows best"),
        (RVFLClassifier(solver="cg"), "tells as much as H'H"),
        (RVFLClassifier(solver=ConjugateGradient(preconditioner="local")), "sums of the agents' i"),
        (ESNRegressor(solver="cg"), "sums of the agents' inverses"),
        (RVFLClassifier(solver=Gram(averaging="plain")), "flood the largest"),
        (LapKRRClassifier(), "every row of every agent to every agent"),
        (LapKRRClassifier(distances="exchange"), "raw rows"),
        (AnchorLapClassifier(), "means of an agent's rows"),
        (S3VMClassifier(solver="next"), "NEXT sends values of single agents"),
        (S3VMClassifier(), "Their sequence may tell more"),
        (LogisticClassifier(), "Their sequence may tell more"),
        (VerticalRVFLClassifier(), "one agent's columns"),
    ],
)
def test_leaks_that_are_not_linear_are_named(model, said):
    assert said in warnings_of(model)


def test_a_synthetic_preconditioner_sends_no_inverses():
    assert "inverses" not in warnings_of(RVFLClassifier(solver="cg"))


def test_few_rows_for_known_features():
    model = RVFLClassifier(100, 1.0, features="fixed", solver="gram")
    rows = {"a": 69, "b": 70, "c": 0}
    assert "holds for a." in warnings_of(model, holdings=Holdings(rows, inputs=30))
    assert "Count the rows of each site" in warnings_of(model)
    assert "masks would not hide" in warnings_of(
        model, holdings=Holdings({"a": 30, "b": 39}, inputs=30)
    )
    assert warnings_of(model, holdings=Holdings({"a": 70, "b": 70}, inputs=30)) == ""


def test_chosen_settings_need_more_rows():
    """Sums over a fifth of the rows are sent, for as many features as there are rows in all."""
    rows = {"a": 349, "b": 350, "c": 600}
    for model in (
        RVFLClassifier(100, "auto", features="fixed", solver="gram"),
        NetworkSearchCV(RVFLClassifier(100, 1.0, features="fixed", network=NETWORK), {}),
    ):
        found = audit_model(model.set_params(network=NETWORK), holdings=Holdings(rows, inputs=30))
        said = " ".join(found.warnings)
        assert "each of 5 parts" in said
        assert "holds for a." in said
    chosen = warnings_of(RVFLClassifier(), holdings=Holdings(rows, inputs=30))
    assert "530 random features" in chosen
    assert "100 random features" in warnings_of(
        RVFLClassifier(direct_links=False), holdings=Holdings({"a": 3, "b": 3}, inputs=2)
    )
    assert "random features" not in warnings_of(RVFLClassifier(features="columns"))


def test_one_row_and_one_labelled_row():
    one = Holdings({"a": 1, "b": 40}, {"a": 1, "b": 1})
    assert "One row only: a." in warnings_of(S3VMClassifier(), holdings=one)
    assert "One labelled row only: a, b." in warnings_of(S3VMClassifier(), holdings=one)
    assert "labelled" not in warnings_of(LogisticClassifier(), holdings=one)
    assert "standardised" in warnings_of(LogisticClassifier(), holdings=Holdings(scaled=True))


def test_few_agents():
    assert "Two agents have no secrets" in " ".join(
        audit_model(LogisticClassifier(network=SimulatedNetwork(graphs.complete(2)))).warnings
    )
    assert "one is left" in warnings_of(LogisticClassifier(), colluders=5)
    assert "two are left" in warnings_of(LogisticClassifier(), colluders=4)
    assert "left" not in warnings_of(LogisticClassifier(), colluders=3)


def test_masks_are_for_sums_only():
    masked = audit_model(RVFLClassifier(network=NETWORK), masks="sums")
    assert masked.masks
    assert masked.exposed == ()
    refused = audit_model(RVFLClassifier(solver="admm", network=NETWORK), masks="sums")
    assert not refused.masks
    assert "Masked sums cannot protect RVFLClassifier" in refused.warnings[-1]


class OwnSolver:
    """A solver that the auditor does not know."""

    name = "own"
    exact = False

    def solve(self, network, problems, penalty):
        return average(network, problems.moment)


def test_an_unknown_solver_is_assumed_to_send_single_values():
    found = audit_model(RVFLClassifier(solver=OwnSolver(), network=NETWORK))
    assert found.method == "neighbors"
    assert "What OwnSolver sends is not known" in found.warnings[0]


def test_every_model_can_be_audited():
    for kind in models().values():
        assert audit_model(kind(network=NETWORK)).exposures


def test_a_model_without_a_network_is_refused():
    with pytest.raises(InputError, match="sends nothing"):
        audit_model(RVFLClassifier())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"method": "plain"}, 'expose 2 values instead of 6: use averaging="tree"'),
        ({"method": "neighbors"}, "a solver that sends sums over a tree"),
        ({"method": "everyone"}, "a model that sends sums"),
        ({"method": "nothing"}, "Nothing has to be done"),
        ({"method": "tree"}, "3 to 2, 4 to 5. Choose links"),
        ({"colluders": 5}, "Ask more agents to take part: against 5 curious agents it takes 7."),
        ({"masks": "sums"}, "5 agents would have to collude to learn more"),
        ({"masks": graphs.ring(6), "colluders": 2}, "Without 2 of its agents"),
    ],
)
def test_advice(given, said):
    assert said in " ".join(advise(NETWORK.graph, audit(NETWORK.graph, **given)))

"""L-BFGS over a tree: what travels, who decides, and how it ends. That it reaches the minimum is in
test_minimum.
"""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn import SimulatedNetwork, graphs
from peerlearn.algorithms.smooth import LBFGS, NEXT
from peerlearn.algorithms.smooth import lbfgs as module
from peerlearn.errors import NotConverged, WireError
from peerlearn.local.margin_losses import LogisticLosses
from tests.support.smooth_problems import ALPHA, GRAPH, g50c_over, rows
from tests.support.split_network import run_apart


def test_an_evaluation_is_w_down_the_tree_and_sums_up():
    X, y = rows(7)
    network = SimulatedNetwork(GRAPH)
    report = LBFGS().minimise(network, LogisticLosses(X, y), ALPHA).report
    links, height, evaluations = 6, network.tree.height, report.iterations
    assert report.sent.rounds == (2 * evaluations + 1) * height  # and where it ended, down the tree
    assert report.sent.messages == (2 * evaluations + 1) * links
    # Down: w and four numbers. Up: the gradient, the value and a bound of rounding.
    assert report.sent.bytes == 8 * links * (evaluations * (4 + 4 + 4 + 2) + 4 + 4)


def test_losses_that_are_not_convex_send_no_bounds():
    losses, _ = g50c_over(7)
    report = LBFGS().minimise(SimulatedNetwork(GRAPH), losses, 1.0).report
    d = losses.dimension
    assert report.sent.bytes == 8 * 6 * (report.iterations * (d + 3 + d + 1) + d + 3)
    assert report.bound == np.inf
    assert report.bound_reason.startswith("the losses are not known to be convex")


def test_it_sends_far_less_than_gossip():
    losses, _ = g50c_over(25)
    sent = {}
    for solver in (LBFGS(), NEXT()):
        network = SimulatedNetwork(graphs.erdos_renyi(25, 0.25, seed=1))
        assert solver.minimise(network, losses, 1.0).report.converged
        sent[solver.name] = network.ledger.bytes
    assert 20 * sent["lbfgs"] < sent["next"]


def test_only_the_agent_in_the_middle_decides(monkeypatch):
    """On machines of another kind, others might decide otherwise."""
    X, y = rows(7)
    calls = []
    real = module.scipy.optimize.minimize
    monkeypatch.setattr(
        module.scipy.optimize, "minimize", lambda *a, **k: calls.append(1) or real(*a, **k)
    )
    found = run_apart(
        GRAPH, lambda network, k: LBFGS().minimise(network, LogisticLosses([X[k]], [y[k]]), ALPHA)
    )
    assert calls == [1]
    for own in found:
        np.testing.assert_array_equal(own.coefficients, found[0].coefficients)
        assert own.report.residuals == found[0].report.residuals


@pytest.mark.parametrize(("most", "tolerance"), [(3, 1e-5), (10_000, 1e-12)])
def test_an_end_that_is_not_near_enough_is_told_to_all(most, tolerance):
    X, y = [1e6 * own for own in rows(7)[0]], rows(7)[1]  # 1e-12 is beyond rounding

    def work(network, k):
        return LBFGS(tolerance, most).minimise(network, LogisticLosses([X[k]], [y[k]]), 1e-3).report

    with pytest.warns(NotConverged, match="LBFGS stopped after"):
        reports = run_apart(GRAPH, work)
    assert len({report.residuals for report in reports}) == 1
    assert not reports[0].converged
    assert reports[0].iterations <= most + module.LINE_SEARCH
    assert reports[0].residuals[-1] > tolerance


def test_a_leader_that_never_ends_is_refused(monkeypatch):
    X, y = rows(7)
    root = SimulatedNetwork(GRAPH).tree.root

    def endless(search, w):
        while True:
            search._evaluate(w)

    def work(network, k):
        if k == root:
            monkeypatch.setattr(module._Search, "steer", endless)
        return LBFGS(max_iterations=5).minimise(network, LogisticLosses([X[k]], [y[k]]), ALPHA)

    with pytest.raises(WireError, match=f"agent {root} does not end its search"):
        run_apart(GRAPH, work)

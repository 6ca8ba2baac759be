"""Completion of distances: errors, shares and time after an exchange of so many rounds,
as by hand.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from peerlearn import SimulatedNetwork, graphs
from peerlearn.algorithms.completion import BlockCompletion, DiffusionCompletion
from peerlearn.algorithms.distances import Exchange
from peerlearn.errors import InputError
from peerlearn.lab.description.comparison import Data, Model, protocol_named
from tests.support.lab_given import classes, comparison, model, ran

EXCHANGE = {
    "name": "exchange",
    "patterns": 0.3,
    "entries": 0.2,
    "pattern_rounds": 9,
    "entry_rounds": 4,
}
COMPLETIONS = {
    "diffusion": ({"name": "diffusion", "iterations": 60}, DiffusionCompletion(iterations=60)),
    "block": (
        {"name": "block", "step": 0.1, "iterations": 60},
        BlockCompletion(step=0.1, iterations=60),
    ),
}
pytestmark = pytest.mark.filterwarnings("ignore::peerlearn.errors.NotConverged")


def completing(*models, data=None, **settings):
    table = classes(60, 3, noise=1.0)
    return comparison(table, *models, protocol="completion", settings=settings, data=data, folds=1)


def by_hand(trial, exchange, completion, count=60):
    """Rows in the run's order, what agents find for their distances, and what was sent."""
    X = trial.data.given.X
    rows = np.random.default_rng(trial.seed("split")).permutation(60)[:count]
    dealt = np.array_split(np.random.default_rng(trial.seed("deal")).permutation(count), 4)
    parts = [X[rows][own] for own in dealt]
    network, seed = SimulatedNetwork(graphs.ring(4)), trial.seed("model")
    known = exchange.share(network, parts, seed)
    completed = completion.complete(network, known, seed)
    everything = np.vstack(parts)
    D = cdist(everything, everything, "sqeuclidean")
    errors = [np.linalg.norm(own - D) / np.linalg.norm(D) for own in completed.D]
    return errors, np.mean(known.mask), network.ledger.since(), completed.report, (known, D)


@pytest.mark.parametrize("name", COMPLETIONS)
def test_as_by_hand(name):
    described, completion = COMPLETIONS[name]
    whole = completing(
        model("M", "LapKRRClassifier", distances=EXCHANGE, completion=described), rows=40
    )
    ((trial, outcome),) = ran(whole)
    errors, share, sent, report, _ = by_hand(trial, Exchange(0.3, 0.2, 9, 4), completion, 40)
    assert outcome.agents["completion_error"] == pytest.approx(errors)
    assert outcome.values["completion_error"] == pytest.approx(np.mean(errors))
    assert outcome.values["known"] == pytest.approx(share)
    assert 0.2 < share < 0.99
    assert outcome.sent == sent
    assert (outcome.converged, outcome.iterations) == (report.converged, report.iterations)
    assert outcome.curves == {}
    assert outcome.seconds > 0


def test_curves_over_rounds_of_the_exchange():
    described, completion = COMPLETIONS["diffusion"]
    whole = completing(
        model("M", "LapKRRClassifier", distances=EXCHANGE, completion=described), rounds=(0, 5, 12)
    )
    ((trial, outcome),) = ran(whole)
    for name in ("completion_error", "known", "seconds"):
        assert list(outcome.curves[name][0]) == [0.0, 5.0, 12.0]
    for n, error, share in zip(
        (0, 5, 12), outcome.curves["completion_error"][1], outcome.curves["known"][1], strict=True
    ):
        errors, known, sent, report, _ = by_hand(trial, Exchange(0.3, 0.2, n, n), completion)
        assert error == pytest.approx(np.mean(errors))
        assert share == pytest.approx(known)
    assert outcome.values["completion_error"] == outcome.curves["completion_error"][1][-1]
    assert outcome.sent == sent  # of the last one
    assert outcome.iterations == report.iterations
    assert outcome.curves["known"][1][0] == pytest.approx(
        0.075
    )  # 15 x 15 of own rows, 45 of others to themselves


def test_errors_by_iteration():
    described, completion = COMPLETIONS["block"]
    whole = completing(
        model("M", "LapKRRClassifier", distances=EXCHANGE, completion=described),
        rounds=(3, 8),
        by_iteration=True,
    )
    ((trial, outcome),) = ran(whole)
    *_, (known, D) = by_hand(trial, Exchange(0.3, 0.2, 8, 8), completion)
    watched = completion.complete(SimulatedNetwork(graphs.ring(4)), known, trial.seed("model"), D)
    at, errors = outcome.curves["progress"]
    assert at == list(range(len(watched.errors)))
    assert errors == pytest.approx(watched.errors.mean(axis=1))
    assert errors[-1] < errors[0]


def test_landmarks_are_exact_and_need_no_exchange():
    whole = completing(
        model("M", "LapKRRClassifier", distances="landmarks"),
        rounds=(0, 50),
        by_iteration=True,
        data={"scale": "signed"},
    )
    ((_, outcome),) = ran(whole)
    assert outcome.values["completion_error"] < 1e-12
    assert outcome.values["known"] == 1
    at, errors = outcome.curves["completion_error"]
    assert (list(at), errors[0]) == ([0.0, 50.0], errors[1])
    assert "progress" not in outcome.curves
    assert outcome.iterations == 0
    assert outcome.converged


def test_rows_are_scaled_by_what_those_drawn_are_like():
    described, _ = COMPLETIONS["diffusion"]
    one, other = (
        ran(
            completing(
                model("M", "LapKRRClassifier", distances=EXCHANGE, completion=described),
                rows=30,
                data=data,
            )
        )
        for data in ({"scale": "standard"}, {"scale": "none"})
    )
    assert one[0][1].values["completion_error"] != other[0][1].values["completion_error"]


def test_what_is_refused():
    protocol, entry = protocol_named("completion"), Data("classes", given=classes())
    assert "does not learn from distances" in protocol.refuses(entry, Model("S", "S3VMClassifier"))
    assert "knows all" in protocol.refuses(entry, Model("L", "LapKRRClassifier", "centralised"))
    assert "knows all" in protocol.refuses(entry, Model("L", "LapKRRClassifier", "alone"))
    assert protocol.refuses(entry, Model("L", "LapKRRClassifier")) == ""
    for rounds in ((-1,), (5, 3), (2, 2)):
        with pytest.raises(InputError, match="give numbers of rounds in ascending order"):
            protocol_named("completion", rounds=rounds)
    for rows in (-1, {"a": 1.5}):
        with pytest.raises(InputError, match="give whole numbers, or 0 for all rows"):
            protocol_named("completion", rows=rows)
    with pytest.raises(InputError, match="rows asks for 61 of classes, which has 60"):
        ran(completing(model("M", "LapKRRClassifier"), rows=61))

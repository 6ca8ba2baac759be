"""Metrics by hand and against scikit-learn, and how much agents differ."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as reference

from peerlearn.errors import DataError
from peerlearn.lab.description import metrics

RNG = np.random.default_rng(0)


def classes(agents=4, rows=300):
    y = RNG.choice(["a", "b", "c"], rows, p=[0.7, 0.2, 0.1])
    said = np.where(
        RNG.random((agents, rows)) < 0.6, y, RNG.choice(["a", "b", "c"], (agents, rows))
    )
    return y, said


def test_metrics_of_classes_are_scikit_learns():
    y, said = classes()
    values, agents = metrics.measure(("error", "balanced_error", "mcc"), "classification", y, said)
    assert agents["error"] == pytest.approx([1 - reference.accuracy_score(y, own) for own in said])
    assert agents["balanced_error"] == pytest.approx(
        [1 - reference.balanced_accuracy_score(y, own) for own in said]
    )
    assert agents["mcc"] == pytest.approx([reference.matthews_corrcoef(y, own) for own in said])
    assert values == {name: pytest.approx(np.mean(own)) for name, own in agents.items()}


def test_metrics_of_classes_by_hand():
    y, said = np.array([1, 1, 1, 1, -1, -1]), np.array([[1, 1, 1, -1, -1, 1]])
    values, _ = metrics.measure(("error", "balanced_error", "mcc"), "classification", y, said)
    assert values["error"] == pytest.approx(2 / 6)
    assert values["balanced_error"] == pytest.approx((1 / 4 + 1 / 2) / 2)
    assert values["mcc"] == pytest.approx((3 * 1 - 1 * 1) / np.sqrt(4 * 4 * 2 * 2))


@pytest.mark.filterwarnings("error")
def test_balanced_error_of_classes_that_test_rows_lack():
    y, said = np.array(["b", "b", "d", "d"]), np.array([["b", "a", "z", "d"]])
    assert metrics.measure(("balanced_error",), "classification", y, said)[0] == {
        "balanced_error": 0.5
    }


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (
            [[0.0, np.nan, 1.0]],
            "some predictions of the model are NaN, which is no class: let predict answer with",
        ),
        (
            [["a", "b", "a"]],
            (
                "the predictions of the model are texts, and the classes numbers: let predict "
                "answer so"
            ),
        ),
    ],
)
def test_what_cannot_be_a_class_is_no_error_but_a_failure(said, why):
    with pytest.raises(DataError, match=why):
        metrics.measure(("error",), "classification", np.array([0, 1, 1]), np.array(said))
    names = np.array(["a", "b", "b"])
    assert metrics.measure(("error",), "classification", names, names[None].astype(object))[0] == {
        "error": 0.0
    }


@pytest.mark.parametrize("outputs", [(), (3,)])
def test_metrics_of_numbers(outputs):
    y, noise = RNG.standard_normal((50, *outputs)), RNG.standard_normal((3, 50, *outputs))
    values, agents = metrics.measure(("rmse", "nrmse", "mae"), "regression", y, y + noise)
    assert agents["rmse"] == pytest.approx(
        [np.sqrt(reference.mean_squared_error(y, y + own)) for own in noise]
    )
    assert agents["mae"] == pytest.approx(
        [reference.mean_absolute_error(y, y + own) for own in noise]
    )
    squares = [np.sum(own**2) / np.sum((y - y.mean(axis=0)) ** 2) for own in noise]
    assert np.array(agents["nrmse"]) ** 2 == pytest.approx(squares)
    assert values["rmse"] == pytest.approx(np.mean(agents["rmse"]))
    mean = np.broadcast_to(y.mean(axis=0), y.shape)[None]
    assert metrics.measure(("nrmse",), "regression", y, mean)[0]["nrmse"] == pytest.approx(1.0)


def test_targets_that_are_all_alike_have_no_nrmse():
    with pytest.raises(DataError, match=r"7 test rows have all the same target.*rmse"):
        metrics.measure(("nrmse",), "regression", np.full(7, 0.1), np.zeros((1, 7)))


def test_names_of_the_other_task_and_of_protocols_are_left_out():
    y, said = classes()
    assert set(metrics.measure(("nrmse", "error", "distance"), "classification", y, said)[0]) == {
        "error"
    }
    assert set(metrics.measure((), "classification", y, said)[0]) == {"error"}
    assert set(metrics.measure((), "regression", np.arange(3.0), np.zeros((1, 3)))[0]) == {"nrmse"}


def test_only_mcc_grows_with_how_good_it_is():
    y, said = classes()
    numbers = RNG.standard_normal(50)
    answers = {
        "classification": (y, y, said[0]),
        "regression": (numbers, numbers + 0.1, numbers + 1.0),
    }
    codes, p = probabilities(3)
    for name, metric in metrics.METRICS.items():
        truth, better, worse = answers[metric.task]
        if metric.of_probabilities:
            truth, better, worse = codes, np.eye(3)[codes], p[0]
        assert (metric.of(truth, better) > metric.of(truth, worse)) == metric.larger_is_better, name


def test_spread_by_hand():
    assert metrics.spread(np.array([[[3.0], [4.0]], [[3.0], [4.0]]])) == 0.0
    assert metrics.spread(np.array([[2.0, 4.0], [4.0, 4.0], [3.0, 4.0]])) == pytest.approx(
        np.sqrt(2 / 3) / 5
    )
    assert metrics.spread(np.zeros((3, 2))) == 0.0
    assert metrics.spread(np.array([[-1.0], [1.0]])) == np.inf


def test_answers_that_differ_from_the_commonest():
    labels = np.array([["a", "b", "c"], ["a", "b", "a"], ["a", "c", "b"], ["b", "b", "a"]])
    assert metrics.share_differing(labels) == pytest.approx((1 + 1 + 2) / 12)


def test_distances_are_relative_to_the_centre():
    centre = np.array([[3.0], [4.0]])
    assert metrics.distances(np.stack([centre, 2 * centre, 0 * centre]), centre) == pytest.approx(
        [0.0, 1.0, 1.0]
    )


def test_disagreement_is_of_coefficients_where_agents_learn_the_same_ones():
    b, labels, numbers = (
        RNG.standard_normal((2, 5, 1)),
        np.array([[0, 1], [1, 1]]),
        np.array([[1.0, 3.0], [3.0, 3.0]]),
    )
    assert metrics.disagreement(b, labels) == metrics.spread(b)
    assert metrics.disagreement([b[0], b[1]], labels) == pytest.approx(1 / 4)
    assert metrics.disagreement(None, numbers) == metrics.spread(numbers)


def probabilities(classes, agents=3, rows=200):
    y = RNG.integers(0, classes, rows)
    scores = np.eye(classes)[y] + RNG.standard_normal((agents, rows, classes))
    p = np.exp(scores) / np.exp(scores).sum(axis=2, keepdims=True)
    return y, p


@pytest.mark.parametrize("count", [2, 3, 7])
def test_metrics_of_probabilities_are_scikit_learns(count):
    y, p = probabilities(count)
    labels = np.arange(count)
    found = metrics.ClassProbabilities.of([(labels, own) for own in p], y)
    asked = ("error", "log_loss", "brier")
    said = p.argmax(axis=2)
    values, agents = metrics.measure(asked, "classification", y, said, probabilities=found)
    assert agents["log_loss"] == pytest.approx([reference.log_loss(y, own) for own in p])
    scores = [own[:, 1] for own in p] if count == 2 else p
    assert agents["brier"] == pytest.approx(
        [reference.brier_score_loss(y, own, labels=labels) for own in scores]
    )
    assert values["log_loss"] == pytest.approx(np.mean(agents["log_loss"]))
    assert metrics.needs_probabilities(asked)
    assert not metrics.needs_probabilities(("error", "bytes"))


def test_without_probabilities_there_are_no_metrics_of_them():
    y, p = probabilities(3)
    values, _ = metrics.measure(("error", "brier"), "classification", y, p.argmax(axis=2))
    assert list(values) == ["error"]


def test_agents_that_know_other_classes():
    y = np.array(["a", "b", "c", "b"])
    first = (np.array(["a", "b"]), np.tile([0.25, 0.75], (4, 1)))
    second = (np.array(["b"]), np.ones((4, 1)))
    found = metrics.ClassProbabilities.of([first, second], y)
    assert found.of_agents.shape == (2, 4, 3)
    _, agents = metrics.measure(
        ("log_loss",), "classification", y, np.array([y, y]), probabilities=found
    )
    least = np.log(metrics.LEAST_PROBABILITY)
    wanted = -(np.log(0.25) + 2 * np.log(0.75) + least) / 4
    assert agents["log_loss"] == pytest.approx([wanted, -2 * least / 4])

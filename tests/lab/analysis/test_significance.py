"""Tests between models: against numbers that are published, closed forms and scipy, and when they
say nothing.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy import stats

from peerlearn.lab.analysis import statistics
from peerlearn.lab.analysis.blocks import blocks_of
from peerlearn.lab.analysis.significance import examine, probability
from peerlearn.lab.description.specs import Layout, StatisticsSpec
from tests.support.lab_rows import results_of, row, usual

RNG = np.random.default_rng(7)
# Demšar, JMLR 2006, table 6: area under the curve of four variants of C4.5 on 14 data sets. The two
# that are printed as 0.975 (voting) have ranks 2 and 3 there.
MODELS = ("C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf")
AUC = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9751, 0.975],
        [0.957, 0.978, 0.946, 0.970],
    ]
)


def test_friedman_of_the_published_example():
    found = statistics.friedman(MODELS, AUC, 0.05, smaller=False)
    assert found.ranks == pytest.approx((3.143, 2.000, 2.893, 1.964), abs=5e-4)
    assert found.chi2 == pytest.approx(9.28, abs=5e-3)
    assert found.f == pytest.approx(3.69, abs=5e-3)
    assert found.freedom == (3, 39)
    assert found.p == pytest.approx(stats.f.sf(found.f, 3, 39))
    assert found.p < 0.05  # 2.85 is its critical value there
    assert found.difference == pytest.approx(1.25, abs=5e-3)
    assert statistics.friedman(MODELS, AUC, 0.1, smaller=False).difference == pytest.approx(
        1.12, abs=5e-3
    )


def test_nemenyi_of_the_published_example():
    """At 0.10, C4.5+m+cf and C4.5+m are told from C4.5, by 1.179 and 1.143; at 0.05 nobody is."""
    strict, mild = (statistics.friedman(MODELS, AUC, level, smaller=False) for level in (0.05, 0.1))
    assert strict.alike == [("C4.5+m+cf", "C4.5+m", "C4.5+cf", "C4.5")]
    assert mild.alike == [("C4.5+m+cf", "C4.5+m", "C4.5+cf"), ("C4.5+cf", "C4.5")]
    assert 0.05 < mild.nemenyi("C4.5", "C4.5+m+cf") < 0.1
    assert mild.nemenyi("C4.5", "C4.5+cf") > 0.1


@pytest.mark.parametrize(
    ("level", "values"),
    [
        (0.05, (1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164)),
        (0.10, (1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920)),
    ],
)
def test_critical_values_are_those_of_the_published_table(level, values):
    """Table 5a there, for 2 to 10 models."""
    for models, q in enumerate(values, 2):
        scale = math.sqrt(models * (models + 1) / (6 * 14))
        assert statistics.critical_difference(models, 14, level) == pytest.approx(
            q * scale, abs=1.1e-3 * scale
        )


def test_signed_ranks_of_the_published_example():
    """Table 2 there: sums of ranks 93 and 12, two zero differences shared between them."""
    (pair,) = statistics.wilcoxon(MODELS[:2], AUC[:, :2], smaller=False)
    assert (pair.first, pair.second) == ("C4.5+m", "C4.5")
    assert pair.statistic == 12
    assert (pair.blocks, pair.wins, pair.losses) == (14, 10, 2)
    assert (
        pair.p
        == pair.corrected
        == stats.wilcoxon(np.round(AUC[:, 0] - AUC[:, 1], 9), zero_method="zsplit").pvalue
    )
    assert pair.p < 0.05


def test_friedman_without_ties_is_scipys():
    values = RNG.standard_normal((11, 5))
    found = statistics.friedman("abcde", values, 0.05)
    statistic, p = stats.friedmanchisquare(*values.T)
    assert (found.chi2, found.chi2_p) == pytest.approx((statistic, p))
    assert found.f == pytest.approx(10 * statistic / (11 * 4 - statistic))


def test_wilcoxon_is_scipys_and_corrected_over_all_pairs():
    values = RNG.standard_normal((20, 3)) + np.array([0.0, 0.6, 2.0])
    pairs = statistics.wilcoxon("abc", values)
    expected = [
        stats.wilcoxon(values[:, i], values[:, j]).pvalue for i, j in ((0, 1), (0, 2), (1, 2))
    ]
    assert [pair.p for pair in pairs] == pytest.approx(expected)
    assert [pair.corrected for pair in pairs] == statistics.holm(expected)
    assert all(pair.first < pair.second for pair in pairs if pair.p < 0.01)


def test_holm_by_hand():
    assert statistics.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert statistics.holm([0.6, 0.9]) == [1.0, 1.0]
    assert statistics.holm([]) == []


def test_always_the_same_ranks():
    """Six blocks in which b always wins: p is 2 / 2^6, and of three models 1 / 3!^5."""
    values = np.column_stack([np.arange(6) + 2.0, np.arange(6) + 1.0])
    (pair,) = statistics.wilcoxon("ab", values)
    assert (pair.first, pair.p) == ("b", 2 / 64)
    found = statistics.friedman("abc", np.column_stack([values, np.arange(6) + 5.0]), 0.05)
    assert math.isinf(found.f)
    assert found.p == pytest.approx(6.0**-5)
    assert found.ranks == (2, 1, 3)


def test_equal_values_are_no_difference():
    values = np.tile(RNG.standard_normal((8, 1)), 3)
    found = statistics.friedman("abc", values * [1, 1 + 1e-15, 1 - 1e-15], 0.05)
    assert (found.chi2, found.p) == (0.0, 1.0)
    assert found.ranks == (2, 2, 2)
    assert found.alike == [("a", "b", "c")]
    assert [pair.p for pair in statistics.wilcoxon("abc", values)] == [1.0, 1.0, 1.0]


def test_differences_that_only_rounding_tells_apart_are_ties():
    assert 0.3 - 0.1 != 0.4 - 0.2
    (pair,) = statistics.wilcoxon("ab", np.array([[0.1, 0.3], [0.4, 0.2]]))
    assert pair.statistic == 1.5


def test_pairs_use_the_blocks_that_have_both():
    values = RNG.standard_normal((12, 2))
    values[[1, 5], 0] = np.nan
    (pair,) = statistics.wilcoxon("ab", values)
    assert pair.blocks == 10
    assert pair.p == stats.wilcoxon(*np.delete(values, [1, 5], axis=0).T).pvalue


def test_how_many_blocks_it_takes():
    assert statistics.fewest_for_wilcoxon(0.05) == 6
    assert 2 / 2**6 <= 0.05 < 2 / 2**5
    assert statistics.fewest_for_wilcoxon(0.05, 10) == 9
    assert 10 * 2 / 2**9 <= 0.05 < 10 * 2 / 2**8
    assert [statistics.fewest_for_friedman(k, 0.05) for k in (2, 3, 4)] == [6, 3, 3]


def spec(**more):
    return StatisticsSpec("error", **more)


def test_blocks_of_several_data_sets_are_averages(tmp_path):
    rows = [
        row(data, model, repetition=run, error=10 * k + place + run)
        for place, data in enumerate("ABC")
        for k, model in enumerate(("x", "y"))
        for run in range(3)
    ]
    blocks = blocks_of(results_of(tmp_path, rows), spec())
    assert blocks.averaged
    assert blocks.models == ("x", "y")
    assert blocks.values.tolist() == [[1, 11], [2, 12], [3, 13]]
    told = examine(results_of(tmp_path, rows), spec()).sentences
    assert told[0] == "A block of the tests is a data set, averaged over its runs: 3 in all."
    assert "with 1 pair at least 6 blocks are needed at level 0.05, and there are 3" in told[1]


def test_blocks_of_one_data_set_are_its_runs(tmp_path):
    rows = usual(data=("G50C",), agents=(5,), runs=9)
    found = examine(results_of(tmp_path, rows), spec())
    assert found.blocks.values.shape == (9, 4)
    assert not found.blocks.averaged
    assert "one run (repetition and fold), 9 in all" in found.sentences[0]
    local = next(
        pair for pair in found.pairs if {pair.first, pair.second} == {"L-RVFL", "CONS-RVFL"}
    )
    assert (local.first, local.wins) == ("CONS-RVFL", 9)
    assert local.p == 2 / 2**9


def test_only_data_sets_that_have_the_metric_count(tmp_path):
    """Two tasks, and so one data set for each metric: a block is a run."""
    noise = RNG.standard_normal((2, 10))
    rows = [
        row("A", model, fold=k, error=0.1 + 0.01 * noise[0, k] + m)
        for m, model in enumerate("xy")
        for k in range(10)
    ]
    rows += [
        row("B", model, fold=k, nrmse=1 + noise[1, k] + m)
        for m, model in enumerate("xy")
        for k in range(10)
    ]
    rows += [row("B", "z", status="failed"), row("A", "z", status="not applicable")]
    results = results_of(tmp_path, rows)
    for metric in ("error", "nrmse"):
        found = examine(results, StatisticsSpec(metric))
        assert (found.blocks.columns, found.blocks.averaged, found.blocks.values.shape) == (
            ("fold",),
            False,
            (10, 2),
        )
        assert found.friedman is not None
        assert found.pairs[0].p == pytest.approx(2 / 2**10)
    both = examine(results, StatisticsSpec("seconds"))
    assert both.blocks.averaged


def test_centralised_models_stand_in_every_block_and_sweeps_of_some_models_are_models(tmp_path):
    rows = [row(data, "C", error=0.1, repetition=run) for data in "AB" for run in range(2)]
    for data in "AB":
        for agents in (5, 10):
            rows.append(row(data, "D", "N", agents=agents, error=agents / 100))
            for steps in (1, 2):
                settings = {"solver": {"name": "admm", "max_iterations": steps}}
                swept = {"solver.max_iterations": steps}
                rows.append(
                    row(
                        data, "E", "N", agents=agents, error=0.5 / steps, settings=settings, **swept
                    )
                )
    results = results_of(tmp_path, rows, swept=("solver.max_iterations", "agents"))
    blocks = blocks_of(results, spec(over=("data", "agents")))
    assert blocks.models == (
        "C",
        "D",
        "E, solver.max_iterations = 1",
        "E, solver.max_iterations = 2",
    )
    assert blocks.columns == ("data", "agents")
    assert blocks.values.tolist() == [[0.1, 0.05, 0.5, 0.25], [0.1, 0.1, 0.5, 0.25]] * 2
    assert "depend on each other" in examine(results, spec(over=("data", "agents"))).sentences[0]


def test_a_block_is_a_data_set_whatever_the_network(tmp_path):
    """Sizes of a network are no further evidence: 2 data sets on 4 networks are 2 blocks."""
    rows = usual(runs=3)
    results = results_of(tmp_path, rows, swept=("agents",))
    blocks = blocks_of(results, spec())
    assert blocks.columns == ("data",)
    local = [each["error"] for each in rows if (each["data"], each["model"]) == ("G50C", "L-RVFL")]
    assert len(local) == 12
    assert blocks.values.shape == (2, 4)
    assert blocks.values[0, 1] == pytest.approx(np.mean(local))
    told = examine(results, spec()).sentences
    assert (
        told[0]
        == "A block of the tests is a data set, averaged over its runs and agents: 2 in all."
    )
    single = examine(results_of(tmp_path / "one", usual(data=("G50C",)), swept=("agents",)), spec())
    assert single.blocks.values.shape == (6, 4)
    assert "one run (repetition and fold), averaged over agents, 6 in all" in single.sentences[0]


def test_models_are_measured_by_the_runs_that_all_have(tmp_path):
    """Fold 2, which nobody finds easy, has failed for b alone."""
    rows = [
        row(data, model, fold=fold, error=fold + 0.1)
        for data in "AB"
        for model in "ab"
        for fold in range(3)
    ]
    rows[5] = row("A", "b", fold=2, status="failed")
    found = examine(results_of(tmp_path, rows), spec())
    assert found.blocks.values.tolist() == [pytest.approx([0.6, 0.6]), pytest.approx([1.1, 1.1])]
    assert (
        "1 of 6 runs, which not all models have, are left out for all of them." in found.sentences
    )


def test_everybody_who_ranks_better_is_named(tmp_path):
    """a and b are equal, c lies between, and d is far from all but c."""
    ranked = {"a": 0.1, "b": 0.1, "c": 0.2, "d": 0.3}
    rows = [
        row(f"d{k}", model, error=error + k) for k in range(9) for model, error in ranked.items()
    ]
    told = examine(results_of(tmp_path, rows), spec(tests=("friedman",))).sentences[-1]
    assert told.endswith(": a ranks better than d; b ranks better than d.")


def test_who_is_left_out_is_named(tmp_path):
    rows = [row(f"d{k}", model, error=0.1 + k) for k in range(4) for model in "ab"]
    rows += [row(f"d{k}", "never", status="failed") for k in range(4)]
    rows += [row(f"d{k}", "cannot", status="not applicable") for k in range(4)]
    rows += [row(f"d{k}", "lost", error=math.nan) for k in range(4)]
    told = examine(results_of(tmp_path, rows), spec()).sentences
    assert "never is left out: all its runs failed." in told
    assert "cannot is left out: it is not applicable." in told
    assert (
        "lost is left out: no run of it has a number that the others can be compared with." in told
    )


def test_what_is_infinite_is_worst_and_no_number_leaves_the_block_out(tmp_path):
    rows = [
        row(f"d{k}", model, error=0.1 + place) for k in range(8) for place, model in enumerate("ab")
    ]
    rows += [row(f"d{k}", "c", error=math.inf if k else math.nan) for k in range(8)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = examine(results_of(tmp_path, rows), spec())
    assert found.blocks.models == ("a", "b", "c")
    assert found.friedman.ranks == (1, 2, 3)
    assert found.friedman.blocks == 7
    assert (
        "1 of 8 blocks are left out of Friedman's test, because they have no value of c."
        in found.sentences
    )
    assert [(pair.first, pair.second, pair.wins) for pair in found.pairs] == [
        ("a", "b", 8),
        ("a", "c", 7),
        ("b", "c", 7),
    ]
    both = np.array([[math.inf, math.inf], [1.0, math.inf], [2.0, 5.0]])
    assert statistics.wilcoxon("ab", both)[0].wins == 2
    assert statistics.ranks(both).tolist() == [[1.5, 1.5], [1, 2], [1, 2]]


def test_what_is_swept_for_all_models_is_a_condition(tmp_path):
    rows = [
        row(data, model, error=alpha + place, settings={"alpha": alpha}, alpha=alpha)
        for data in "AB"
        for place, model in enumerate("xy")
        for alpha in (1, 2)
    ]
    blocks = blocks_of(results_of(tmp_path, rows, swept=("alpha",)), spec(over=("data", "alpha")))
    assert blocks.models == ("x", "y")
    assert blocks.values.tolist() == [[1, 2], [2, 3]] * 2


def test_larger_is_better_where_it_is(tmp_path):
    rows = [
        row(f"d{k}", model, mcc=value + k / 100)
        for k in range(7)
        for model, value in (("a", 0.2), ("b", 0.9))
    ]
    found = examine(results_of(tmp_path, rows, metrics=["mcc"]), StatisticsSpec("mcc"))
    assert found.pairs[0].first == "b"
    assert found.friedman.ranks == (2, 1)
    assert "b is better than a" in " ".join(found.sentences)


def test_what_cannot_be_tested_is_said(tmp_path):
    alone = results_of(tmp_path / "alone", [row(f"d{k}", "only", error=0.1) for k in range(7)])
    assert examine(alone, spec()).sentences == (
        "There is nothing to test: only alone has misclassification error.",
    )
    nobody = results_of(tmp_path / "nobody", [row("d", "a", rmse=1.0), row("d", "b", rmse=1.0)])
    assert (
        examine(nobody, spec()).sentences[0]
        == "There is nothing to test: no model has misclassification error."
    )
    rows = [row(f"d{k}", model, error=0.1 + k) for k in range(7) for model in "abc"]
    rows = [
        each for each in rows if (each["data"], each["model"]) not in (("d1", "b"), ("d2", "b"))
    ]
    rows += [row("d1", "b", status="not applicable"), row("d2", "b", status="failed")]
    told = " ".join(examine(results_of(tmp_path / "holes", rows), spec()).sentences)
    assert "2 of 7 blocks are left out of Friedman's test, because they have no value of b." in told
    assert "over 5 blocks" in told
    assert "tells no two models apart" in told


def test_probabilities_in_words():
    assert [probability(p) for p in (1.0, 0.0312, 2e-5)] == ["= 1", "= 0.031", "< 0.0001"]


def test_only_the_tests_that_are_asked_for(tmp_path):
    results = results_of(tmp_path, usual(), Layout("x"), ("agents",))
    assert examine(results, spec(tests=("wilcoxon",))).friedman is None
    assert examine(results, spec(tests=("friedman",))).pairs == ()
    assert (
        examine(results, spec(level=0.001))
        .sentences[1]
        .startswith("Wilcoxon's test is not made: with 6 pairs")
    )

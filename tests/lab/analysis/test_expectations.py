"""Verdicts on rows that are made up by hand: numbers, claims, curves, and why something was not
run.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from peerlearn.lab.analysis.expectations import count_verdicts, judge, number, stand_in
from peerlearn.lab.description.specs import Expectation, Layout
from peerlearn.lab.results.results import Results

CENTRALISED, LOCAL, TOGETHER = (
    {"data": "G50C", "model": "C-RVFL"},
    {"data": "G50C", "model": "L-RVFL", "agents": 20},
    {"data": "G50C", "model": "CONS-RVFL", "agents": 20},
)


def row(where, error=None, status="done", failure="", source="", **more):
    settings = json.dumps({"data": {"source": source}})
    names = {"network": "", "agents": 1, "note": "", "settings": settings}
    return {**names, **where, "status": status, "failure": failure, "error": error, **more}


ROWS = [
    *(row(CENTRALISED, error) for error in (0.05, 0.06, 0.07)),
    *(row(LOCAL, error) for error in (0.15, 0.17)),
    *(
        row(TOGETHER, error, **{"curve.gap": [1.0, 0.5, 0.1], "curve.gap.at": [0, 10, 20]})
        for error in (0.06, 0.064)
    ),
    row({"data": "Iris", "model": "SVM"}, status="not applicable", failure="SVM needs two classes"),
    *(
        row({"data": "Iris", "model": "C-RVFL"}, status="failed", failure="it broke")
        for _ in range(2)
    ),
    row({"data": "Wine", "model": "C-RVFL"}, 0.3),
    row({"data": "Wine", "model": "C-RVFL"}, status="failed", failure="it broke"),
    row({"data": "Skin", "model": "C-RVFL"}, float("nan")),
    row({"data": "Wave", "model": "C-RVFL"}, float("inf")),
    row({"data": "Song", "model": "C-RVFL"}, 0.4, source="digits"),
]
MISSING = {
    "Sylva": "data set Sylva cannot be fetched, because OpenML is out of reach",
    "Song": "not at hand",
}


def judge_one(size="full", missing=MISSING, **expected):
    expectation = Expectation(
        **{"metric": "error", "source": "table 4.2", "where": CENTRALISED, **expected}
    )
    layout = Layout(expectations=(expectation,), missing=missing, size=size)
    (judgement,) = judge(Results(Path(), ROWS, layout, {}, {}))
    assert judgement.expectation is expectation
    assert judgement.sentence.startswith("table 4.2, ")
    return judgement


@pytest.mark.parametrize(
    ("value", "spread", "verdict"),
    [
        (0.06, 0.0, "within"),
        (0.07, 0.01, "within"),  # on the border, where 0.07 - 0.06 is a bit more than 0.01
        (0.05, 0.01, "within"),
        (0.0701, 0.01, "outside"),
        (0.0499, 0.01, "outside"),
    ],
)
def test_a_number_is_met_within_their_spread_not_ours(value, spread, verdict):
    judgement = judge_one(value=value, spread=spread)
    assert judgement.verdict == verdict
    assert judgement.ours == pytest.approx(0.06)
    assert judgement.spread == pytest.approx(0.01)  # standard deviation of 0.05, 0.06, 0.07
    assert judgement.runs == 3
    assert (judgement.found, judgement.other) == ("0.06 ± 0.01", None)


def test_the_sentence_has_everything():
    assert judge_one(value=0.058, spread=0.02).sentence == (
        "table 4.2, error: G50C, C-RVFL is 0.06 ± 0.01 (3 runs), expected 0.058 ± 0.02: within"
    )


@pytest.mark.parametrize(
    ("relation", "value", "verdict", "told"),
    [
        ("below", 0.07, "within", "at most 0.07"),
        ("below", 0.06, "within", "at most 0.06"),  # on the border
        ("below", 0.059, "outside", "at most 0.059"),
        ("above", 0.06, "within", "at least 0.06"),
        ("above", 0.061, "outside", "at least 0.061"),
    ],
)
def test_a_bound_is_kept_or_not(relation, value, verdict, told):
    judgement = judge_one(relation=relation, value=value)
    assert (judgement.verdict, judgement.theirs) == (verdict, told)
    assert (judgement.found, judgement.other) == ("0.06 ± 0.01", None)


@pytest.mark.parametrize(
    ("relation", "within", "verdict"),
    [  # 0.062 against 0.16: 61.25 % below
        ("below", 0.0, "within"),
        ("below", 0.61, "within"),
        ("below", 0.62, "outside"),
        ("above", 0.0, "outside"),
        ("equal", 0.61, "outside"),
        ("equal", 0.62, "within"),
    ],
)
def test_a_claim_compares_two_means(relation, within, verdict):
    judgement = judge_one(where=TOGETHER, relation=relation, to=LOCAL, within=within)
    assert judgement.verdict == verdict
    assert judgement.ours == pytest.approx(0.062)
    assert judgement.other == pytest.approx(0.16)
    assert judgement.found == "0.062 against 0.16"


def test_above_is_below_turned_round():
    assert judge_one(where=LOCAL, relation="above", to=TOGETHER, within=1.5).verdict == "within"
    assert judge_one(where=LOCAL, relation="above", to=TOGETHER, within=1.6).verdict == "outside"


def test_equal_means_are_neither_below_nor_above_but_equal():
    for relation, verdict in {"below": "outside", "above": "outside", "equal": "within"}.items():
        assert judge_one(relation=relation, to=CENTRALISED).verdict == verdict


def test_numbers_below_zero_are_compared_by_their_size():
    """Decibels: -39 is 25 % below -31.2, and not 30 %."""
    rows = [row(CENTRALISED, -39.0), row(LOCAL, -31.2)]
    for within, verdict in {0.24: "within", 0.26: "outside"}.items():
        claim = Expectation(
            "error", CENTRALISED, "figure", relation="below", to=LOCAL, within=within
        )
        (judgement,) = judge(Results(Path(), rows, Layout(expectations=(claim,)), {}, {}))
        assert judgement.verdict == verdict


def test_curves_are_read_where_they_are_asked_and_at_their_end_if_not():
    for at, value in {0: 1.0, 10: 0.5, 15: 0.5, 20: 0.1, None: 0.1}.items():
        assert (
            judge_one(metric="curve.gap", where=TOGETHER, at=at, value=value, spread=0.01).verdict
            == "within"
        )
    assert (
        "gap at 10: G50C"
        in judge_one(metric="curve.gap", where=TOGETHER, at=10, value=0.5, spread=0).sentence
    )


def test_what_is_outside_with_a_reason_is_explained():
    judgement = judge_one(value=0.2, spread=0.01, reason="the printed row is another")
    assert judgement.verdict == "explained"
    assert judgement.sentence.endswith(
        "0.2 ± 0.01: outside, and explained: the printed row is another"
    )
    met = judge_one(value=0.06, spread=0.01, reason="the printed row is another")
    assert (met.verdict, met.reason) == ("within", "")


@pytest.mark.parametrize("name", ["Skin", "Wave"])
def test_a_mean_that_is_no_number_or_infinite_is_outside(name):
    lost = {"data": name, "model": "C-RVFL"}
    assert judge_one(where=lost, value=0.1, spread=1.0).verdict == "outside"
    for relation in ("below", "above"):
        assert judge_one(where=lost, relation=relation, value=0.1).verdict == "outside"
        assert judge_one(where=lost, relation=relation, to=LOCAL).verdict == "outside"
    assert judge_one(where=LOCAL, relation="equal", to=lost, within=1.0).verdict == "outside"
    assert judge_one(where=LOCAL, relation="above", to=lost).verdict == "outside"
    for within in (
        0.0,
        0.5,
    ):  # what diverged is above everything, and what is no number above nothing
        verdict = "within" if name == "Wave" else "outside"
        assert judge_one(where=LOCAL, relation="below", to=lost, within=within).verdict == verdict


@pytest.mark.parametrize(
    ("where", "said"),
    [
        (
            {"data": "Sylva", "model": "C-RVFL"},
            "data set Sylva cannot be fetched, because OpenML is out of reach",
        ),
        ({"data": ["Sylva", "Fish"]}, "data set Sylva cannot be fetched"),
        ({"data": "Iris", "model": "SVM"}, "it is not applicable: SVM needs two classes"),
        ({"data": "Iris", "model": "C-RVFL"}, "2 runs failed, the first with: it broke"),
        ({**TOGETHER, "agents": 50}, "the file describes no run of agents 50"),
        ({**CENTRALISED, "agents": 20}, "the file describes no run of G50C, C-RVFL, agents 20"),
    ],
)
def test_what_was_not_run_says_why(where, said):
    for expected in (
        {"where": where, "value": 1.0, "spread": 1.0},
        {"relation": "below", "where": LOCAL, "to": where},
    ):
        judgement = judge_one(**expected)
        assert judgement.verdict == "not run"
        assert (judgement.ours, judgement.spread, judgement.runs, judgement.found) == (
            None,
            None,
            0,
            "",
        )
        assert f"was not run: {said}" in judgement.sentence


def test_a_small_size_and_a_metric_that_nobody_measured_say_so():
    small = judge_one("quick", where={**TOGETHER, "agents": 50}, value=1.0, spread=1.0)
    assert (
        "was not run: the size quick has no run of agents 50; the full size may" in small.sentence
    )
    assert (
        "was not run: no run measured rounds"
        in judge_one(metric="rounds", value=1.0, spread=1.0).sentence
    )


def test_runs_that_failed_are_not_counted_and_told():
    judgement = judge_one(where={"data": "Wine"}, value=0.3, spread=0.0)
    assert (judgement.verdict, judgement.runs) == ("within", 1)
    assert judgement.found == "0.3"  # one run has no spread
    assert judgement.sentence.endswith(
        "(1 run), expected 0.3 ± 0: within; 1 run failed and not counted"
    )


def test_a_data_set_in_place_of_another_explains_what_is_outside():
    song = {"data": "Song", "model": "C-RVFL"}
    assert judge_one(where=song, value=0.4, spread=0.01).verdict == "within"
    judgement = judge_one(where=song, value=0.1, spread=0.01)
    assert judgement.verdict == "explained"
    assert judgement.reason == "of other data: digits for Song"
    assert judgement.what.endswith("Song, C-RVFL (digits for Song)")
    assert "(digits for Song) is 0.4" in judgement.sentence
    assert judge_one(where=song, value=0.1, spread=0.01, missing={}).verdict == "outside"
    results = Results(Path(), ROWS, Layout(missing=MISSING), {}, {})
    assert [stand_in(results, name) for name in ("Song", "Sylva", "G50C")] == ["digits", "", ""]


def test_of_a_data_set_that_is_replaced_something_else_may_be_missing():
    song = {"data": "Song", "model": "L-RVFL"}
    assert (
        judge_one(where=song, value=0.4, spread=0.01).reason
        == "the file describes no run of Song, L-RVFL"
    )
    few = judge_one("quick", where={"data": "Song", "agents": 50}, value=0.4, spread=0.01)
    assert few.reason == "the size quick has no run of agents 50; the full size may"


def test_data_sets_that_are_replaced_or_missing_among_several_are_named():
    """On either side of a claim."""
    several = judge_one(
        where={"data": ["Wine", "Sylva", "Song"], "model": "C-RVFL"}, value=0.35, spread=0.01
    )
    assert (several.verdict, several.runs) == ("within", 2)
    assert several.what.endswith("(digits for Song, without Sylva)")
    song = {"data": "Song", "model": "C-RVFL"}
    claim = judge_one(relation="equal", to=song, within=0.1)
    assert (claim.verdict, claim.reason) == ("explained", "of other data: digits for Song")
    assert claim.what.endswith("(digits for Song)")
    assert judge_one(where=song, relation="equal", to=song).what.endswith(
        "C-RVFL (digits for Song)"
    )


def test_claims_and_numbers_in_words():
    assert judge_one(where=TOGETHER, relation="below", to=LOCAL).theirs == "below L-RVFL"
    assert (
        judge_one(where=TOGETHER, relation="below", to=LOCAL, within=0.3).theirs
        == "at least 30 % below L-RVFL"
    )
    assert (
        judge_one(where=TOGETHER, relation="equal", to=CENTRALISED, within=0.05).theirs
        == "within 5 % of C-RVFL"
    )
    few = judge_one(where=TOGETHER, relation="above", to={**TOGETHER, "agents": 5})
    assert (few.what, few.theirs) == ("error: G50C, CONS-RVFL, agents 20", "above agents 5")
    several = judge_one(where={"model": ["C-RVFL", "L-RVFL"]}, value=1.0, spread=1.0, missing={})
    assert several.what == "error: C-RVFL or L-RVFL"
    assert judge_one(where={}, value=1.0, spread=1.0, missing={}).what == "error: all runs"
    assert [number(each) for each in (0.0612, 1.5e-7, 1305.4, 120_000_000.0, -38.61)] == [
        "0.0612",
        "1.5e-7",
        "1,305",
        "120,000,000",
        "-38.6",
    ]


def test_verdicts_are_counted_in_one_order():
    layout = Layout(
        expectations=tuple(
            Expectation("error", where, "table 4.2", value=value, spread=0.01, reason=reason)
            for where, value, reason in [
                (CENTRALISED, 0.06, ""),
                (CENTRALISED, 0.2, "why"),
                (CENTRALISED, 0.3, ""),
                ({"data": "none"}, 0.1, ""),
                (LOCAL, 0.16, ""),
            ]
        )
    )
    judgements = judge(Results(Path(), ROWS, layout, {}, {}))
    assert count_verdicts(judgements) == {"within": 2, "outside": 1, "explained": 1, "not run": 1}
    assert list(count_verdicts([])) == ["within", "outside", "explained", "not run"]
    assert replace(judgements[0], runs=1).found == "0.06"

"""Expectations beside what the rows say: within, outside, explained, or not run.

A number is met if the mean of our runs is within their spread of it; a bound, if the mean keeps it;
a claim, if the means of two selections of runs stand in the relation that is claimed. Outside with
a reason is explained.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from peerlearn.lab.description.specs import Conditions, Expectation

if TYPE_CHECKING:
    from peerlearn.lab.results.results import Results

Verdict = Literal["within", "outside", "explained", "not run"]
VERDICTS: tuple[Verdict, ...] = ("within", "outside", "explained", "not run")
BARE = ("data", "model", "network")  # columns whose values speak for themselves


@dataclass(frozen=True)
class Judgement:
    """One expectation and its verdict; `reason` says why it is not met, where that is known."""

    expectation: Expectation
    ours: float | None  # mean over runs
    spread: float | None  # standard deviation over runs
    verdict: Verdict
    sentence: str
    runs: int = 0
    other: float | None = None  # mean of the runs that a claim compares with
    reason: str = ""
    instead: str = ""  # "g50c for G50C, without Sylva", where data sets could not be had

    @property
    def what(self) -> str:
        """The rows in words: "error: G50C, CONS-RVFL, agents 20"."""
        return what(self.expectation) + (f" ({self.instead})" if self.instead else "")

    @property
    def theirs(self) -> str:
        """The number, bound or claim: "0.058 ± 0.02", "at most 35", "30 % below L-RVFL"."""
        return theirs(self.expectation)

    @property
    def found(self) -> str:
        """Ours in the same form: "0.0612 ± 0.01", "0.06 against 0.16"; empty if not run."""
        return _describe_ours(self.ours, self.spread, self.runs, self.other)


def judge(results: Results) -> list[Judgement]:
    """Judge every expectation of the comparison, in the file's order."""
    return [_judge(results, expectation) for expectation in results.layout.expectations]


def count_verdicts(judgements: Sequence[Judgement]) -> dict[Verdict, int]:
    """Count the judgements of each verdict."""
    found = Counter(each.verdict for each in judgements)
    return {verdict: found[verdict] for verdict in VERDICTS}


def _judge(results: Results, expectation: Expectation) -> Judgement:
    ours = _Side.of(results, expectation, expectation.where)
    other = None
    if expectation.to:
        other = _Side.of(results, expectation, expectation.to)
    sides = [side for side in (ours, other) if side is not None]
    instead = ", ".join(dict.fromkeys(text for side in sides for text in side.instead))
    about = f"{expectation.source}, {what(expectation)}"
    if instead:
        about += f" ({instead})"
    for side in sides:
        if side.missing:
            sentence = f"{about} was not run: {side.missing}"
            return Judgement(expectation, None, None, "not run", sentence, reason=side.missing)
    if other is None:
        compared = None
        met = _is_number_met(expectation, ours.mean)
    else:
        compared = other.mean
        met = _claim_holds(expectation, ours.mean, other.mean)
    reason = ""
    verdict: Verdict = "within"
    if not met:
        reason = expectation.reason or (f"of other data: {instead}" if instead else "")
        verdict = "explained" if reason else "outside"
    found = _describe_ours(ours.mean, ours.spread, ours.runs, compared)
    failed = sum(side.failed for side in sides)
    sentence = f"{about} is {found} ({_count_runs(ours.runs)}), expected {theirs(expectation)}: "
    sentence += f"outside, and explained: {reason}" if verdict == "explained" else verdict
    if failed:
        sentence += f"; {_count_runs(failed)} failed and not counted"
    return Judgement(
        expectation, ours.mean, ours.spread, verdict, sentence, ours.runs, compared, reason, instead
    )


def _is_number_met(expectation: Expectation, mean: float) -> bool:
    if expectation.value is None or not math.isfinite(mean):
        return False
    above = mean - expectation.value
    spread = expectation.spread or 0.0
    too_far = {"below": above, "above": -above}.get(expectation.relation or "", abs(above) - spread)
    # A mean exactly on the border counts as within, in spite of rounding.
    return too_far <= 1e-9 * max(abs(expectation.value), abs(mean))


def _claim_holds(expectation: Expectation, ours: float, other: float) -> bool:
    """Return whether a claim holds.

    A side that diverged meets no claim, and every finite number is below it.
    """
    if not math.isfinite(ours) or not math.isfinite(other):
        return expectation.relation == "below" and math.isfinite(ours) and other == math.inf
    margin = expectation.within * abs(other)
    if expectation.relation == "equal":
        return abs(ours - other) <= margin
    gap = other - ours if expectation.relation == "below" else ours - other
    return gap > 0 and gap >= margin


@dataclass(frozen=True)
class _Side:
    """The runs that one side of an expectation is about."""

    mean: float = 0.0
    spread: float = 0.0
    runs: int = 0
    failed: int = 0
    missing: str = ""  # why there is no mean
    # Data sets that stand in for missing ones, or are left out.
    instead: tuple[str, ...] = ()

    @classmethod
    def of(cls, results: Results, expectation: Expectation, where: Conditions) -> _Side:
        rows = results.where(where)
        if not rows.rows:
            return cls(missing=_nowhere(results, where))
        done = rows.where({"status": "done"})
        failed = [row for row in rows.rows if row["status"] == "failed"]
        if not done.rows:
            return cls(missing=_none_done(rows.rows, failed))
        values = done.values(expectation.metric, expectation.at)
        if len(values) == 0:
            return cls(missing=f"no run measured {expectation.metric}")
        mean = done.mean(expectation.metric, expectation.at)
        spread = done.spread(expectation.metric, expectation.at)
        return cls(
            mean, spread, len(values), len(failed), instead=_instead(results, done.rows, where)
        )


def _instead(
    results: Results, rows: Sequence[Mapping[str, Any]], where: Conditions
) -> tuple[str, ...]:
    used = dict.fromkeys(row["data"] for row in rows)
    texts = []
    for name in used:
        other = stand_in(results, name)
        if other:
            texts.append(f"{other} for {name}")
    for name in _any_of(where.get("data")):
        if name in results.layout.missing and name not in used:
            texts.append(f"without {name}")
    return tuple(texts)


def stand_in(results: Results, name: str) -> str:
    """Return the data set used in place of a missing one, or an empty text."""
    if name not in results.layout.missing:
        return ""
    rows = results.where({"data": name}).rows
    if not rows:
        return ""
    return str(json.loads(rows[0]["settings"])["data"]["source"])


def _nowhere(results: Results, where: Conditions) -> str:
    """Return why no row fits: a missing data set, or the condition that no run meets."""
    for name, why in results.layout.missing.items():
        if (
            name in _any_of(where.get("data")) and not results.where({"data": name}).rows
        ):  # nor another for it
            return why
    alone = [key for key, value in where.items() if not results.where({key: value}).rows]
    named = ", ".join(_condition(key, where[key]) for key in (alone or where))
    if results.layout.size == "full":
        return f"the file describes no run of {named}"
    return f"the size {results.layout.size} has no run of {named}; the full size may"


def _none_done(rows: list[dict[str, Any]], failed: list[dict[str, Any]]) -> str:
    first = (failed or rows)[0]
    if failed:
        return f"{_count_runs(len(failed))} failed, the first with: {first['failure']}"
    return f"it is not applicable: {first['failure'] or first['note']}"


def what(expectation: Expectation) -> str:
    """Return the metric and the rows that an expectation is about."""
    at = "" if expectation.at is None else f" at {expectation.at:g}"
    return f"{expectation.metric.removeprefix('curve.')}{at}: {_conditions(expectation.where)}"


def theirs(expectation: Expectation) -> str:
    """Return the number or the claim in words."""
    if expectation.relation is not None and not expectation.to:
        bound = "most" if expectation.relation == "below" else "least"
        return f"at {bound} {number(expectation.value)}"
    if expectation.relation is None:
        spread = "" if expectation.spread is None else f" ± {number(expectation.spread)}"
        return number(expectation.value) + spread
    other = {
        key: value for key, value in expectation.to.items() if expectation.where.get(key) != value
    }
    name = _conditions(other or expectation.to)
    share = f"{100 * expectation.within:.3g} %"
    if expectation.relation == "equal":
        return f"within {share} of {name}"
    least = f"at least {share} " if expectation.within else ""
    return f"{least}{expectation.relation} {name}"


def _conditions(where: Mapping[str, Any]) -> str:
    return ", ".join(_condition(key, value) for key, value in where.items()) or "all runs"


def _condition(key: str, value: Any) -> str:
    told = " or ".join(map(str, _any_of(value)))
    return told if key in BARE else f"{key} {told}"


def _any_of(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def number(value: float | None) -> str:
    """Return a number with three digits, more than the thesis prints; whole numbers in full."""
    if value is None:
        return ""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.3g}".replace("e-0", "e-")


def _describe_ours(ours: float | None, spread: float | None, runs: int, other: float | None) -> str:
    if other is not None:
        return f"{number(ours)} against {number(other)}"
    return number(ours) + (f" ± {number(spread)}" if runs > 1 else "")


def _count_runs(runs: int) -> str:
    return "1 run" if runs == 1 else f"{runs} runs"

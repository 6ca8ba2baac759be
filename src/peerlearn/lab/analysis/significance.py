"""Tests of a comparison in sentences and numbers, or the reason why there is none."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from peerlearn.arrays import Array
from peerlearn.lab.analysis.blocks import Blocks, blocks_of
from peerlearn.lab.analysis.labels import in_words, smaller_is_better
from peerlearn.lab.analysis.statistics import (
    Friedman,
    Pair,
    fewest_for_friedman,
    fewest_for_wilcoxon,
    friedman,
    wilcoxon,
)
from peerlearn.lab.description.specs import StatisticsSpec

if TYPE_CHECKING:
    from peerlearn.lab.results.results import Results


@dataclass(frozen=True)
class Examined:
    spec: StatisticsSpec
    title: str
    blocks: Blocks
    pairs: tuple[Pair, ...]
    friedman: Friedman | None
    sentences: tuple[str, ...]


def examine(results: Results, spec: StatisticsSpec) -> Examined:
    """Make the tests that a specification asks for, and put them into sentences."""
    blocks = blocks_of(results, spec)
    models = blocks.models
    complete = blocks.complete
    title = in_words(spec.metric, results.facts.get("words", {}))
    left_out = [f"{model} is left out: {why}." for model, why in blocks.left_out]
    if len(models) < 2:
        who = f"{models[0]} alone has" if models else "no model has"
        nothing = f"There is nothing to test: {who} {title}."
        return Examined(spec, title, blocks, (), None, (nothing, *left_out))
    sentences = [_describe_blocks(blocks), *left_out]
    if blocks.unpaired:
        sentences.append(
            f"{blocks.unpaired} of {blocks.runs} runs, which not all models have, are left out for "
            "all of them."
        )
    lacking = _models_with(np.isnan, blocks)
    if lacking:
        incomplete = len(blocks.values) - len(complete)
        sentences.append(
            f"{incomplete} of {len(blocks.values)} blocks are left out of Friedman's test, because "
            f"they have no value of {join_names(lacking)}."
        )
    diverged = _models_with(np.isinf, blocks)
    if diverged:
        sentences.append(f"Infinite values of {join_names(diverged)} are ranked as such.")
    pairs: list[Pair] = []
    ranked = None
    if "wilcoxon" in spec.tests:
        pairs, told = _in_pairs(blocks, spec)
        sentences += told
    if "friedman" in spec.tests:
        ranked, told = _all_together(blocks, spec)
        sentences += told
    return Examined(spec, title, blocks, tuple(pairs), ranked, tuple(sentences))


def _models_with(test: Callable[[Array], Array], blocks: Blocks) -> list[str]:
    """Return the models that have such a number in some block."""
    return [model for k, model in enumerate(blocks.models) if test(blocks.values[:, k]).any()]


def _describe_blocks(blocks: Blocks) -> str:
    count = len(blocks.values)
    names = [in_words(column) for column in blocks.columns]
    mixed = [in_words(key) for key in blocks.mixed]
    if not blocks.averaged:
        mean = f" averaged over {join_names(mixed)}," if mixed else ""
        return (
            f"A block of the tests is one run ({join_names(names) or 'there is one'}),{mean} "
            f"{count} in all. They share rows, so that p-values speak of this data set alone."
        )
    mean = f"averaged over {join_names(['its runs', *mixed])}"
    if set(blocks.columns) <= {"data"}:
        return f"A block of the tests is a data set, {mean}: {count} in all."
    return (
        f"A block of the tests is one combination of {join_names(names)}, {mean}: {count} in all. "
        "Those of one data set depend on each other, so that true p-values are larger."
    )


def _in_pairs(blocks: Blocks, spec: StatisticsSpec) -> tuple[list[Pair], list[str]]:
    count = len(blocks.values)
    number = math.comb(len(blocks.models), 2)
    fewest = fewest_for_wilcoxon(spec.level, number)
    if count < fewest:
        pairs_word = "pair" if number == 1 else "pairs"
        return [], [
            f"Wilcoxon's test is not made: with {number} {pairs_word} at least {fewest} blocks "
            f"are needed at level {spec.level:g}, and there are {count}."
        ]
    pairs = wilcoxon(blocks.models, blocks.values, smaller=smaller_is_better(spec.metric))
    apart = [pair for pair in pairs if pair.corrected <= spec.level]
    losers: dict[str, list[str]] = {}
    for pair in apart:
        losers.setdefault(pair.first, []).append(pair.second)
    if not losers:
        return pairs, [
            f"Wilcoxon's signed-rank test, corrected by Holm, tells no two models apart at level "
            f"{spec.level:g}."
        ]
    told = [f"{winner} is better than {join_names(names)}" for winner, names in losers.items()]
    return pairs, [
        f"By Wilcoxon's signed-rank test, corrected by Holm for {len(pairs)} pairs: "
        f"{'; '.join(told)}."
    ]


def _all_together(blocks: Blocks, spec: StatisticsSpec) -> tuple[Friedman | None, list[str]]:
    models = blocks.models
    values = blocks.complete
    fewest = fewest_for_friedman(len(models), spec.level)
    if len(values) < fewest:
        return None, [
            f"Friedman's test is not made: blocks with values of all {len(models)} models are "
            f"{len(values)}, and at least {fewest} are needed at level {spec.level:g}."
        ]
    found = friedman(models, values, spec.level, smaller=smaller_is_better(spec.metric))
    a, b = found.freedom
    differ = found.p <= spec.level
    verdict = "the models differ" if differ else "no difference between the models is shown"
    f = "unbounded" if np.isinf(found.f) else f"{found.f:.3g}"
    told = [
        f"Friedman's test over {len(values)} blocks with the correction of Iman and Davenport: "
        f"F({a}, {b}) is {f}, p {probability(found.p)}: {verdict} at level {spec.level:g}.",
    ]
    if differ:
        readings = []
        for k in found.order:
            apart = [j for j in found.order if found.ranks[j] - found.ranks[k] > found.difference]
            if apart:
                worse = [found.models[j] for j in apart]
                readings.append(f"{found.models[k]} ranks better than {join_names(worse)}")
        reading = "; ".join(readings) or "no two models are as far apart"
        told.append(
            f"Nemenyi's critical difference of mean ranks is {found.difference:.3g}: {reading}."
        )
    return found, told


def probability(p: float) -> str:
    """Return a probability as it follows the letter p."""
    return f"= {p:.2g}" if p >= 1e-4 else "< 0.0001"


def join_names(names: Sequence[Any]) -> str:
    """Return names for a sentence: a, b and c."""
    words = [str(name) for name in names]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)

"""report.html: a comparison on one page that needs no other file, script or network."""

from __future__ import annotations

import base64
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peerlearn.errors import MissingExtra
from peerlearn.lab.analysis.expectations import count_verdicts, judge
from peerlearn.lab.analysis.significance import Examined, examine, join_names, probability
from peerlearn.lab.report import about
from peerlearn.lab.report.table_entries import MetricTable
from peerlearn.lab.report.table_text import blank_repeated
from peerlearn.lab.results.version_check import of_other_versions

if TYPE_CHECKING:
    from peerlearn.lab.results.results import Results

TEMPLATE = Path(__file__).with_name("page.html")


@dataclass(frozen=True)
class Picture:
    """A figure of the page; without an image, the caption says why it is not drawn."""

    name: str
    caption: str
    alternative: str  # for those who do not see it
    svg: bytes = b""

    @property
    def source(self) -> str:
        return f"data:image/svg+xml;base64,{base64.b64encode(self.svg).decode()}"


def page(
    results: Results, tables: list[MetricTable], pictures: list[Picture], networks: Picture | None
) -> str:
    """Return the page as text."""
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError:
        raise MissingExtra("the page of a report", "jinja2", "lab") from None
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals.update(unrepeated=blank_repeated)
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    judgements = judge(results)
    examined = [examine(results, spec) for spec in results.layout.statistics]
    return (
        template.render(
            results=results,
            layout=results.layout,
            paragraphs=[text for text in results.layout.about.split("\n") if text.strip()],
            facts=_facts(results),
            tables=tables,
            pictures=pictures,
            networks=networks,
            tests=[_test_lines(each) for each in examined],
            findings=[_finding(each) for each in examined if each.pairs],
            judgements=judgements,
            verdicts=count_verdicts(judgements),
            differing=[each for each in judgements if each.verdict in ("outside", "explained")],
            about=about,
            entries=[
                ("Protocol", about.common(results)),
                *((head, about.entries(results, part)) for head, part in _PARTS.items()),
            ],
            troubles=_troubles(results),
            of_other_versions=of_other_versions(results.rows, Path()),
        )
        + "\n"
    )


_PARTS = {"Data sets": "data", "Models": "model", "Networks": "network"}


def _facts(results: Results) -> list[tuple[str, str]]:
    facts = results.facts
    found = Counter(row["status"] for row in results.rows)
    runs = f"{found['done']:,} done" + "".join(
        f", {found[status]:,} {status}" for status in ("failed", "not applicable") if found[status]
    )
    left = facts.get("runs", len(results.rows)) - len(results.rows)
    seconds = sum(row["total_seconds"] or 0.0 for row in results.rows)
    return [
        ("Runs", runs + (f", {left:,} not made yet" if left > 0 else "")),
        *((("Folds", str(facts["folds"])),) if facts.get("folds", 1) > 1 else ()),
        ("Repetitions", str(facts.get("repetitions", 1))),
        ("Seed", str(facts.get("seed", ""))),
        ("Computing", about.duration(seconds)),
        *((("Size", results.layout.size),) if results.layout.size != "full" else ()),
    ]


def _troubles(results: Results) -> list[tuple[str, list[about.Trouble]]]:
    found = {
        "Failed": about.failures(results),
        "Did not converge": about.find_unconverged(results),
        "Not applicable": about.refusals(results),
        "Warned": about.find_warnings(results),
    }
    return [(head, troubles) for head, troubles in found.items() if troubles]


def _finding(found: Examined) -> str:
    """Return what the tests in pairs found, in a sentence: who is first, and who is as good."""
    wins = Counter(pair.first for pair in found.pairs)
    best = wins.most_common(1)[0][0]
    groups: dict[str, list[str]] = {}
    for pair in found.pairs:
        if best not in (pair.first, pair.second):
            continue
        first = pair.first == best
        word = "significantly better than" if first else "significantly worse than"
        if not pair.corrected <= found.spec.level:
            word = "not significantly different from"
        groups.setdefault(word, []).append(pair.second if first else pair.first)
    parts = [f"{word} {join_names(names)}" for word, names in groups.items()]
    return f"By {found.title}, {best} is first: {', and '.join(parts)}."


def _test_lines(found: Examined) -> dict[str, Any]:
    """Return a test with its pairs as lines of a table."""
    ranks = found.friedman
    pairs = []
    for pair in found.pairs:
        nemenyi = ""
        if ranks and {pair.first, pair.second} <= set(ranks.models):
            nemenyi = number(ranks.nemenyi(pair.first, pair.second))
        told = f"{pair.wins} : {pair.losses}"
        pairs.append(
            (
                pair,
                told,
                number(pair.p),
                number(pair.corrected),
                nemenyi,
                pair.corrected <= found.spec.level,
            )
        )
    mean_ranks = [(ranks.models[k], f"{ranks.ranks[k]:.2f}") for k in ranks.order] if ranks else []
    return {"found": found, "pairs": pairs, "ranks": mean_ranks}


def number(p: float) -> str:
    return probability(p).removeprefix("= ")

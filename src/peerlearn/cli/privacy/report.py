"""The audit of a network and its model: computed, shown in the terminal, and saved."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx
from rich.console import Console

from peerlearn.cli.privacy.subject import Subject
from peerlearn.errors import InputError
from peerlearn.privacy import Audit, advise, audit, audit_model
from peerlearn.privacy.model_audit import algorithm_of
from peerlearn.system.files import write
from peerlearn.system.terminal import say, terminal_table

SHOWN = 40  # agents in the terminal
WAYS: tuple[dict[str, Any], ...] = (
    {"method": "plain"},
    {"method": "chebyshev"},
    {"method": "tree"},
    {"masks": "sums"},
)


@dataclass(frozen=True)
class PrivacyReport:
    """An audit, those of other ways of adding up, and what to do.

    others: by title; a text says why there is none.
    """

    graph: nx.Graph
    parents: list[int]
    found: Audit
    others: dict[str, Audit | str]
    advice: tuple[str, ...]


def audit_subject(
    subject: Subject, *, method: str | None, masks: Any, colluders: int
) -> PrivacyReport:
    """Audit the model as it is set, and sums over the same graph in all ways."""
    trained = getattr(subject.model, "estimator", subject.model)  # of a search
    network = trained.network
    if method is not None:
        algorithm = algorithm_of(trained)
        if not hasattr(algorithm, "averaging"):
            raise InputError(
                f"{type(algorithm or trained).__name__} has one way of sending values: leave out "
                "--method"
            )
        trained.set_params(solver__averaging=method)
    found = audit_model(
        subject.model,
        colluders=colluders,
        masks=masks,
        names=subject.names,
        holdings=subject.holdings,
    )
    others: dict[str, Audit | str] = {}
    for way in WAYS:
        try:
            other = audit(network.graph, network.weights, colluders=colluders, **way)
            others[other.title] = other
        except InputError as error:  # more coalitions than can be tried
            others[f"{way['method']} gossip"] = str(error)
    advice = advise(network.graph, found)
    return PrivacyReport(network.graph, network.tree.parent.tolist(), found, others, advice)


def save(report: PrivacyReport, folder: Path) -> None:
    """Write audit.json, and the figure that is drawn from it."""
    from peerlearn.cli.privacy.figure import draw_audit

    content = {
        **report.found.as_dict(),
        "advice": report.advice,
        "links": [list(link) for link in report.graph.edges],
        "parents": report.parents,
        "other_ways": {
            title: each if isinstance(each, str) else each.summary()
            for title, each in report.others.items()
        },
    }
    write(folder / "audit.json", json.dumps(content, indent=2) + "\n")
    draw_audit(folder)


def show(console: Console, report: PrivacyReport) -> None:
    """Show the audit in the terminal: one sentence, two tables, warnings and advice."""
    found = report.found
    say(console, found.summary(), "")
    console.print(_compare(report))
    console.print()
    console.print(_list_agents(found))
    left = len(found.exposures) - SHOWN
    if left > 0:
        say(console, f"{left} more agents are in audit.json")
    say(console, "", "What this does not see, because it is not linear:" if found.warnings else "")
    say(console, *(f"- {sentence}" for sentence in found.warnings))
    say(console, "", "What to do:", *(f"- {sentence}" for sentence in report.advice), "")


def _compare(report: PrivacyReport) -> Any:
    who = "one agent" if report.found.colluders == 1 else f"{report.found.colluders} agents"
    table = terminal_table(
        f"Values that {who} can compute, by the way of adding up",
        ("Way",),
        ("Exposed\nagents", "First\nround", "Most that\none computes", "Last\nround"),
    )
    for title, each in report.others.items():
        if isinstance(each, str):
            table.add_row(title, *"----")
            continue
        first = min((e.rounds for e in each.exposed if e.rounds is not None), default=None)
        views = each.views or ()
        most = max(map(len, views), default=None)
        last = max((n for view in views for n in view.values()), default=None)
        used = (each.method, each.masks) == (report.found.method, report.found.masks)
        cells = (_cell(first), _cell(most), _cell(last))
        style = "bold green" if used else None
        table.add_row(title, str(len(each.exposed)), *cells, style=style)
    return table


def _list_agents(found: Audit) -> Any:
    what = "agents" if found.colluders == 1 else f"coalitions of {found.colluders}"
    numbers = [f"Known to\n{what}", "First\nround"]
    if found.views is not None:
        numbers += ["It computes\nvalues", "Last\nround"]
    if found.digits is not None:
        numbers.append("Digits\nat least")
    table = terminal_table(f"Agents, by {found.title}", ("Agent", "First known to"), tuple(numbers))
    names = [each.name for each in found.exposures]
    for each in found.exposures[:SHOWN]:
        first = ", ".join(names[k] for k in each.by) or "-"
        cells = [f"{each.coalitions:,} of {each.of:,}", _cell(each.rounds)]
        if found.views is not None:
            view = found.views[each.agent]
            cells += [str(len(view)), _cell(max(view.values(), default=None))]
        if found.digits is not None:
            cells.append(str(found.digits[each.agent]))
        table.add_row(each.name, first, *cells)
    return table


def _cell(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"

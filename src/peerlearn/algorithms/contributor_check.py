"""Check of earlier totals before a secret sum: differences of totals must show no single agent.

    ids of earlier sessions               of all agents that took part in them          public
    P_i, c_i                              how many agents took part in session i, and how many of
                                          them have other data now                      masked count
    s_i = (n_i - P_i) + (L - P_i) + c_i   agents by which the total differs from that of session i
    vote                                  nobody goes on unless all agents do           public

n_i: agents in session i. If 0 < s_i < t + 2, colluders among the s_i agents can compute what one
honest agent of them changed: all of its data, or one row that it withdrew. An agent that has other
data than in session i, or was not in it, refuses then, unless it gave its consent. If an agent of
session i is not here any more, all refuse: nobody can consent for it.

Where nobody's data changed, sets of contributors are also checked in all combinations
(`peerlearn.secret.contributors`). So is a return to earlier data: totals of three or more sessions
could be combined then.

All agents learn P_i and c_i, but not who the agents are. On engines that keep no records no message
is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from peerlearn.algorithms.agreement import union
from peerlearn.algorithms.sums import everyone
from peerlearn.errors import InputError, NetworkError, PeerlearnError
from peerlearn.network.base import Network
from peerlearn.secret.contributors import TotalRecord, exposed_agents

Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]
QUANTITY = "agents of earlier totals, and those with other data now"
SHOWN = (
    "differences of totals show what this agent changed. Nothing was sent of its data: train with "
    "those of before, or when more agents have new data; --consent (consent=True) allows it"
)


def check_contributors(
    network: Network, now: TotalRecord, count: Callable[[str, Counts], Counts]
) -> None:
    """Raise at all agents if totals of this session and earlier ones would show single agents.

    now: this session, as the hosted agent will record it. count: makes masked counts.
    """
    records = network.earlier_totals(now.own)
    own = {record.id: record for record in records}
    with network.allow_messages("ids of earlier totals"):
        labels = np.array([f"{each.id} {len(each.contributors)}" for each in records], dtype=str)
        known = [label.split() for label in union(network, [labels] * len(network.hosted)).tolist()]
    took_part = np.array([id in own for id, _ in known])
    changed = np.array([id in own and own[id].data != now.data for id, _ in known])
    flags = np.column_stack([took_part, changed]).astype(np.int64)
    counts = count(QUANTITY, np.stack([flags] * len(network.hosted)))[0]
    sizes = np.array([int(size) for _, size in known])
    P, c = counts.T
    gone = sizes - P
    s = gone + (network.size - P) + c
    problem: PeerlearnError | None = None
    try:
        if s.all():  # otherwise all data are those of an earlier session
            _check_pairs(network, s, gone, ~took_part | changed)
            alike = [own[id] for (id, _), n in zip(known, c, strict=True) if id in own and not n]
            _check_sets(network, now, alike)
            _check_return(network, now, records)
    except PeerlearnError as error:
        problem = error
    with network.allow_messages("vote on earlier totals"):
        all_agree = everyone(network, [problem is None] * len(network.hosted))
    if problem is not None:
        raise problem
    if not all_agree:
        raise NetworkError(
            "another agent refuses this training, because this total and earlier ones together "
            "would show data of a single agent (code 8): its own log says why"
        )


def _check_pairs(network: Network, s: Counts, gone: Counts, exposed: Flags) -> None:
    """Refuse a total that differs from an earlier one by too few agents."""
    few = s < network.colluders + 2
    if np.any(few & (gone > 0)):
        raise InputError(
            "this total would differ from an earlier one mainly by an agent that is not here any "
            "more, or that lost its records, so it would show what that agent contributed; nobody "
            "else can consent. Train with it, or when more agents have new data"
        )
    mine = few & exposed
    if mine.any() and not network.consent:
        raise InputError(
            f"this agent's data differ from those of an earlier total, and {s[mine].min() - 1} "
            f"other agents changed theirs: {network.colluders + 1} or more must, or {SHOWN}"
        )


def _check_sets(network: Network, now: TotalRecord, alike: Sequence[TotalRecord]) -> None:
    """Refuse a total that shows single agents if it is combined with several earlier ones."""
    sets = [record.contributors for record in (*alike, now)]
    exposed = exposed_agents(sets, network.colluders)
    if exposed is None:
        return
    if exposed - set(now.contributors):
        raise InputError(
            "sums and differences of this total and of earlier ones over other sets of agents "
            "would show what an agent contributed that is not here any more; nobody else can "
            "consent. Train with the same agents as before"
        )
    if network.names[network.hosted[0]] in exposed and not network.consent:
        raise InputError(
            f"sums and differences of this total and of earlier ones have {len(exposed)} agents "
            f"left, this one among them, so {SHOWN}"
        )


def _check_return(network: Network, now: TotalRecord, records: Sequence[TotalRecord]) -> None:
    """Refuse earlier data after other ones: three totals or more could be combined."""
    if network.consent or not network.data_version or not records:
        return
    if now.data != records[-1].data and now.data in {record.data for record in records}:
        raise InputError(
            "this agent had these data in an earlier total and other data in between, so sums and "
            f"differences of several totals may cancel all other agents, and {SHOWN}"
        )

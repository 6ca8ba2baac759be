"""Recommendations: what to change so that fewer agents can compute others' values."""

from __future__ import annotations

from collections.abc import Iterator

import networkx as nx

from peerlearn.privacy.auditor import GOSSIP, Audit, audit

SHOWN = 6  # pairs of a leaf and its parent in a sentence


def advise(graph: nx.Graph, found: Audit) -> tuple[str, ...]:
    """Return sentences about what to do after an audit of this graph.

    >>> from peerlearn import graphs
    >>> from peerlearn.privacy import audit
    >>> graph = graphs.ring(5)
    >>> print(advise(graph, audit(graph, method="plain"))[0])
    Sums over a tree would expose 2 values instead of 5: use averaging="tree".
    """
    return tuple(_sentences(graph, found))


def _sentences(graph: nx.Graph, found: Audit) -> Iterator[str]:
    t = found.colluders
    who = "a curious agent" if t == 1 else f"{t} curious agents"
    names = [each.name for each in found.exposures]
    if len(names) - t == 1:
        yield f"Ask more agents to take part: against {who} it takes {t + 2}."
        return
    if found.method == "nothing":
        yield "Each agent learns alone. Nothing has to be done."
        return
    if found.masks:
        yield from _about_masks(found)
        return
    tree = audit(graph, method="tree", colluders=t, names=names)
    if found.method in GOSSIP and len(tree.exposed) < len(found.exposed):
        yield (
            f"Sums over a tree would expose {len(tree.exposed)} values instead of "
            f'{len(found.exposed)}: use averaging="tree".'
        )
    elif found.method == "neighbors":
        yield (
            "Use a solver that sends sums over a tree (gram, cg, lbfgs, newton): it would expose "
            f"{len(tree.exposed)} values instead of {len(found.exposed)}."
        )
    elif found.method == "everyone":
        yield "Use a model that sends sums, such as RVFLClassifier, or train alone."
    if tree.exposed:
        pairs = [
            f"{each.name} to {' and '.join(names[k] for k in each.by)}"
            for each in tree.exposed[:SHOWN]
        ]
        more = f", and {len(tree.exposed) - SHOWN} more" if len(tree.exposed) > SHOWN else ""
        yield (
            f"On this tree agents show their values as they are: {', '.join(pairs)}{more}. Choose "
            "links so that these may see each other's sums."
        )
    yield (
        "On a tree, all other values are seen only in sums over groups of agents. With "
        f"secrecy='sums' on the network {who} would learn nothing but the total; RVFL models with "
        "solver='gram' can do that so far."
    )


def _about_masks(found: Audit) -> Iterator[str]:
    connectivity = found.connectivity or 0
    if connectivity > found.colluders:
        yield (
            f"Masks would hide everything but the total: {connectivity} agents would have to "
            "collude to learn more. Use secrecy='sums' on the network; RVFL models with "
            "solver='gram' can do that so far."
        )
    else:
        yield (
            f"Without {connectivity} of its agents this graph of masks falls into pieces, and "
            "these agents learn the sum of each piece: let more pairs share masks."
        )

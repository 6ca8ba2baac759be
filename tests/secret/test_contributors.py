"""Agents that combinations of totals leave over: the rule beside brute force."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from peerlearn.secret import contributors
from peerlearn.secret.contributors import exposed_agents


def by_brute_force(sets, colluders):
    """Whether some combination of the sets has so few agents, by a look at all groups of agents."""
    names = sorted(set().union(*sets))
    M = np.array([[float(name in each) for name in names] for each in sets])
    rank = np.linalg.matrix_rank(M)
    for size in range(1, colluders + 2):
        for left in combinations(range(len(names)), size):
            rest = np.delete(M, left, axis=1)
            if not rest.shape[1] or np.linalg.matrix_rank(rest) < rank:
                return True
    return False


@pytest.mark.parametrize("colluders", [1, 2, 3])
def test_the_rule_beside_brute_force(colluders):
    rng = np.random.default_rng(colluders)
    found = []
    for _ in range(150):
        agents = "abcdefghi"[: rng.integers(colluders + 3, 10)]
        sets = [
            {name for name in agents if rng.random() < 0.7} | set(agents[: colluders + 2])
            for _ in range(rng.integers(1, 5))
        ]
        exposed = exposed_agents(sets, colluders)
        assert (exposed is not None) == by_brute_force(sets, colluders), sets
        found.append(exposed is not None)
        if exposed is not None:
            assert 1 <= len(exposed) <= colluders + 1
    assert 0.1 < np.mean(found) < 0.99


def test_agents_are_named():
    assert exposed_agents(["abcd", "abc"], 1) == {"d"}
    assert exposed_agents(["zabc", "zdef", "zabcdef"], 1) == {"z"}
    assert exposed_agents(["abcd", "abcd"], 1) is None
    assert exposed_agents(["abcdefg", "abcd"], 1) is None
    assert exposed_agents(["abcdefg", "abcd"], 2) == set("efg")


def test_too_many_combinations_are_not_tried(monkeypatch):
    monkeypatch.setattr(contributors, "MOST_TRIED", 1)
    assert exposed_agents(["abcd", "bcde", "cdef"], 1) == set("abcdef")

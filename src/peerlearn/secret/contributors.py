"""Who took part in totals, and which agents' numbers follow from several totals together.

Totals over different sets of agents can be added and subtracted. If a combination of them has only
t + 1 agents or fewer left, t colluders may compute the numbers of the last one. For example, the
total of four agents less the total of three of them is what the fourth contributed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

MOST_TRIED = 20_000  # sets of agents


@dataclass(frozen=True)
class TotalRecord:
    """One session of secret sums that an agent took part in.

    id: of the session. own: random bytes of this agent in it. contributors: fingerprints of
    certificates, by name. data: digest of this agent's data.
    """

    id: str
    own: str
    contributors: dict[str, str]
    data: str


def exposed_agents(sets: Sequence[Collection[str]], colluders: int) -> set[str] | None:
    """Return agents that a combination of totals over these sets leaves, if they are too few.

    Their data are taken to be the same in all totals. None if every combination leaves at least
    colluders + 2 agents. All agents are returned if there are too many combinations to try.
    """
    names = sorted(set().union(*sets))
    unique = sorted({tuple(name in each for name in names) for each in sets})
    M = np.array(unique, dtype=np.float64)
    if len(M) <= 1:
        return None
    # Agents that took part in the same totals are left together, or not at all.
    groups = Counter(zip(*unique, strict=True))
    small = [pattern for pattern, size in groups.items() if size <= colluders + 1]
    most = min(colluders + 1, len(small))
    if sum(comb(len(small), n) for n in range(1, most + 1)) > MOST_TRIED:
        return set(names)
    rank = np.linalg.matrix_rank(M)
    columns = list(zip(*unique, strict=True))
    for count in range(1, most + 1):
        for left in combinations(small, count):
            if sum(groups[pattern] for pattern in left) > colluders + 1:
                continue
            others = [column for column in columns if column not in left]
            if not others or np.linalg.matrix_rank(np.array(others)) < rank:
                return {name for name, column in zip(names, columns, strict=True) if column in left}
    return None

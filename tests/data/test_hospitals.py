"""The mixed tables of sites: seeded, with the gaps that their docstring describes."""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn import data
from peerlearn.errors import DataError


def gaps(table, name):
    return np.mean([cell is None for cell in table[:, data.HOSPITAL_COLUMNS.index(name)]])


def test_gaps_and_categories_differ_by_site():
    shares = data.hospital_tables(rows=400)
    assert [table.shape for table, _ in shares] == [(400, 7)] * 4
    assert np.allclose(
        [gaps(X, "pressure") for X, _ in shares], [0, 1 / 8, 1 / 4, 3 / 8], atol=0.06
    )
    assert [gaps(X, "cholesterol") for X, _ in shares] == [0, 0, 0, 1]
    assert [gaps(X, "sex") for X, _ in shares] == [0.1, 0, 0, 0]
    silent = [("silent" in X[:, 2]) for X, _ in shares]
    assert silent == [False, False, False, True]
    assert all(0.2 < y.mean() < 0.8 for _, y in shares)


def test_the_same_seed_draws_the_same_tables():
    first, again, other = (data.hospital_tables(seed=seed) for seed in (1, 1, 2))
    assert all((a == b).all() for (a, _), (b, _) in zip(first, again, strict=True))
    assert (first[0][0] != other[0][0]).any()


def test_too_few_rows_are_refused():
    with pytest.raises(DataError, match="2 sites and 20 rows at least"):
        data.hospital_tables(1)

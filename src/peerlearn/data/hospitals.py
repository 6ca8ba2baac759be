"""A mixed table at several sites, drawn from a formula: numbers, categories, dates and gaps."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import numpy as np

from peerlearn.errors import DataError

HOSPITAL_COLUMNS = ("age", "sex", "pain", "pressure", "cholesterol", "smoker", "admitted")
PAINS = ("none", "typical", "atypical")
RISKS = (-1.0, 1.5, 0.3)  # of each pain
RARE = "silent"  # a pain that only the last site writes down
RARE_RISK = 0.8
FIRST_DAY = date(2020, 1, 1)
Site = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


def hospital_tables(sites: int = 4, rows: int = 150, seed: int = 0) -> list[Site]:
    """Draw one table per site, with numbers, categories, dates and gaps that differ by site.

        risk = 0.06 (age - 55) + 0.03 (pressure - 130) + 0.01 (cholesterol - 240) + habits
        habits = r(pain) + 0.8 smoker - 0.5
        y = 1 with probability 1 / (1 + exp(-risk))

    Columns are those of `HOSPITAL_COLUMNS`. Site k lacks a part k/(2 sites) of its pressures. The
    last site measures no cholesterol, and alone knows the pain "silent". Site 0 lacks every tenth
    sex. Ages grow with the number of the site. A gap is None.

    Parameters
    ----------
    sites : int, default 4
        Number of sites, 2 or more.
    rows : int, default 150
        Number of rows of each site, 20 or more.
    seed : int, default 0
        Seed of the draw.

    Returns
    -------
    list of (ndarray of object, ndarray of int64)
        The table of each site, rows x 7, and its outcomes, 0 or 1.

    Examples
    --------
    >>> from peerlearn import data
    >>> shares = data.hospital_tables(3, rows=20)
    >>> dict(zip(data.HOSPITAL_COLUMNS, shares[0][0][0]))
    {'age': 51.3, 'sex': None, 'pain': 'atypical', 'pressure': 107.0, 'cholesterol': 220.0,
     'smoker': False, 'admitted': '2023-07-27'}
    """
    if sites < 2 or rows < 20:
        raise DataError(
            f"hospital tables cannot be drawn for {sites} sites with {rows} rows: ask for 2 sites "
            "and 20 rows at least"
        )
    rng = np.random.default_rng(seed)
    return [_draw_site(rng, site, sites, rows) for site in range(sites)]


def _draw_site(rng: np.random.Generator, site: int, sites: int, rows: int) -> Site:
    last = site == sites - 1
    age = np.round(rng.normal(50 + 4 * site, 10, rows), 1)
    sex = rng.choice(["female", "male"], rows).astype(object)
    pains = (*PAINS, RARE) if last else PAINS
    risks = np.array([*RISKS, RARE_RISK])
    pain = rng.integers(0, len(pains), rows)
    pressure = np.round(rng.normal(130, 18, rows))
    cholesterol = np.round(rng.normal(240, 45, rows))
    smoker = rng.random(rows) < 0.3
    days = rng.integers(0, 4 * 365, rows)
    risk = (
        0.06 * (age - 55)
        + risks[pain]
        + 0.03 * (pressure - 130)
        + 0.01 * (cholesterol - 240)
        + 0.8 * smoker
        - 0.5
    )
    y = (rng.random(rows) < 1 / (1 + np.exp(-risk))).astype(np.int64)
    columns: list[list[Any]] = [
        age.tolist(),
        sex.tolist(),
        [pains[code] for code in pain],
        pressure.tolist(),
        cholesterol.tolist(),
        smoker.tolist(),
        [(FIRST_DAY + timedelta(days=int(day))).isoformat() for day in days],
    ]
    table = np.empty((rows, len(columns)), dtype=object)
    for column, cells in enumerate(columns):
        table[:, column] = cells
    table[rng.random(rows) < site / (2 * sites), 3] = None
    if last:
        table[:, 4] = None
    if site == 0:
        table[::10, 1] = None
    return table, y

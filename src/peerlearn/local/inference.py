"""Standard errors of coefficients that maximise a likelihood, from sums over all rows.

    by the model    d I^-1                       I: expected information,  d: dispersion
    by sites        c H^-1 (sum_k g_k g_k') H^-1     H: Hessian,  g_k: gradient of site k's rows
                    c = G / (G - 1) (N - 1) / (N - p)

The second allows that rows of one site depend on each other; it needs many sites to be exact, and
with few of them it is too small. G counts sites with rows, N rows, p coefficients. Liang and Zeger,
Longitudinal data analysis using generalized linear models, 1986. Tests and intervals use the normal
distribution.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.stats import norm

from peerlearn.arrays import Array, is_real
from peerlearn.errors import InputError

Errors = Literal["model", "sites"]
CORRECTION = "G/(G-1) * (N-1)/(N-p)"


@dataclass(frozen=True)
class Inference:
    """What a fit without a penalty says about its coefficients.

    Parameters
    ----------
    coefficients : ndarray of shape (p,)
        The estimates, the intercept first.
    by_model, by_sites : ndarray of shape (p, p)
        Covariance matrices. The second has NaN if only one site has rows.
    rows, sites : int
        How many rows there are, and sites that have some.
    dispersion : float
        Factor of the variance; 1 if the family has none.
    deviance, log_likelihood : float
        Of all rows.
    """

    coefficients: Array
    by_model: Array
    by_sites: Array
    rows: int
    sites: int
    dispersion: float
    deviance: float
    log_likelihood: float


@dataclass(frozen=True)
class Summary:
    """Table of coefficients with their standard errors; prints as a small table.

    Parameters
    ----------
    names : tuple of str
        Names of the coefficients.
    coefficients, standard_errors, z, p_values : ndarray of shape (p,)
        Estimates, their errors, the ratio of both, and the probability of a ratio this far from 0
        if the coefficient is 0.
    intervals : ndarray of shape (p, 2)
        Confidence intervals.
    covariance : ndarray of shape (p, p)
        Covariance of the estimates.
    level : float
        Confidence of the intervals.
    errors : {"model", "sites"}
        Where standard errors come from.
    correction : str
        Factor of the covariance by sites; empty for errors by the model.
    rows, sites : int
        How many rows there are, and sites that have some.
    dispersion, deviance, log_likelihood, aic : float
        Of the whole fit. The AIC counts coefficients, but not the dispersion.
    """

    names: tuple[str, ...]
    coefficients: Array
    standard_errors: Array
    z: Array
    p_values: Array
    intervals: Array
    covariance: Array
    level: float
    errors: Errors
    correction: str
    rows: int
    sites: int
    dispersion: float
    deviance: float
    log_likelihood: float
    aic: float

    def __str__(self) -> str:
        width = max(map(len, (*self.names, "coefficient")))
        share = f"{100 * self.level:g} %"
        lines = [
            f"{'':<{width}} {'coefficient':>12} {'error':>10} {'z':>8} {'p':>8} "
            f"{share + ' from':>12} {'to':>12}"
        ]
        for j, name in enumerate(self.names):
            lines.append(
                f"{name:<{width}} {self.coefficients[j]:>12.5g} {self.standard_errors[j]:>10.4g} "
                f"{self.z[j]:>8.3f} {self.p_values[j]:>8.3g} "
                f"{self.intervals[j, 0]:>12.5g} {self.intervals[j, 1]:>12.5g}"
            )
        by = "by the model"
        if self.errors == "sites":
            by = f"clustered by site, times {self.correction}"
        lines.append(f"{self.rows} rows of {self.sites} sites, errors {by}")
        lines.append(
            f"deviance {self.deviance:.6g}, AIC {self.aic:.6g}, "
            f"log-likelihood {self.log_likelihood:.6g}, dispersion {self.dispersion:.4g}"
        )
        return "\n".join(lines)


def summarise(found: Inference, names: tuple[str, ...], errors: Errors, level: float) -> Summary:
    """Return the table of coefficients with errors of one kind."""
    if errors not in ("model", "sites"):
        raise InputError(f"errors is {errors!r:.60}: give 'model' or 'sites'")
    if not is_real(level) or not 0 < level < 1:
        raise InputError(f"level is {level!r:.60}: give a number between 0 and 1, such as 0.95")
    if errors == "sites" and found.sites == 0:
        raise InputError(
            "secret sums give no errors by sites, because these need products of single sites' "
            "gradients: use errors='model'"
        )
    if errors == "sites" and found.sites < 2:
        raise InputError(
            "errors by sites need rows of two sites or more, and only one has some: "
            "use errors='model'"
        )
    covariance = found.by_model if errors == "model" else found.by_sites
    b = found.coefficients
    widths = np.sqrt(np.diag(covariance))
    z = b / widths
    reach = float(norm.isf((1 - level) / 2)) * widths
    return Summary(
        names=names,
        coefficients=b,
        standard_errors=widths,
        z=z,
        p_values=2 * norm.sf(np.abs(z)),
        intervals=np.column_stack([b - reach, b + reach]),
        covariance=covariance,
        level=float(level),
        errors=errors,
        correction=CORRECTION if errors == "sites" else "",
        rows=found.rows,
        sites=found.sites,
        dispersion=found.dispersion,
        deviance=found.deviance,
        log_likelihood=found.log_likelihood,
        aic=2.0 * (len(b) - found.log_likelihood),
    )


def in_units(found: Inference, center: Array, scale: Array, intercept: bool) -> Inference:
    """Return what is known about the coefficients of x, from those of (x - center) / scale.

    intercept: whether the first coefficients are those of a constant, which center needs.
    """
    constants = int(intercept)
    T = np.diag(np.concatenate([np.ones(constants), 1.0 / scale]))
    T[:constants, constants:] = -center / scale
    outputs = len(found.coefficients) // len(T)
    T = np.kron(T, np.eye(outputs))
    return replace(
        found,
        coefficients=T @ found.coefficients,
        by_model=T @ found.by_model @ T.T,
        by_sites=T @ found.by_sites @ T.T,
    )


def covariance_by_sites(bread: Array, scores: Array, rows: int, sites: int) -> Array:
    """Return the sandwich with its correction.

    bread: H^-1. scores: the sum of g_k g_k'.
    """
    p = len(bread)
    if sites < 2 or rows <= p:
        return np.full((p, p), np.nan)
    correction = sites / (sites - 1) * (rows - 1) / (rows - p)
    return correction * bread @ scores @ bread

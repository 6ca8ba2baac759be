"""A comparison of a model's summary with the results of statsmodels on the pooled rows."""

from __future__ import annotations

import numpy as np


def check_summary(model, pooled, clustered, rtol=1e-8):
    """Check every number of both summaries.

    pooled, clustered: results of statsmodels, with errors by the model and clustered by site.
    """
    for errors, wanted in (("model", pooled), ("sites", clustered)):
        found = model.summary(errors)
        close(found.coefficients, wanted.params, rtol)
        close(found.standard_errors, wanted.bse, rtol)
        close(found.z, wanted.tvalues, rtol)
        np.testing.assert_allclose(found.p_values, np.ravel(wanted.pvalues), rtol=rtol, atol=1e-10)
        ends = np.asarray(wanted.conf_int())
        if np.ndim(wanted.params) == 1:
            close(found.intervals, ends, rtol)
        close(found.log_likelihood, wanted.llf, rtol)
        close(found.aic, wanted.aic, rtol)
        close(found.deviance, getattr(wanted, "deviance", -2 * wanted.llf), rtol)
        close(found.dispersion, getattr(wanted, "scale", 1.0), rtol)
        assert found.rows == wanted.nobs


def close(found, wanted, rtol):
    """Compare numbers in one row each: statsmodels has a matrix for several classes."""
    np.testing.assert_allclose(np.ravel(found), np.ravel(wanted), rtol=rtol)

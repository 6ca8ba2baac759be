"""Linear semi-supervised support vector machines in a file: f(x) = w'(x - m) + b.

coefficients    w, one per column
mean            m, one per column
intercept       b, a single number

The text has positive_share.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from peerlearn.data.dataset import AnyArray
from peerlearn.models.contents import Contents
from peerlearn.models.s3vm import S3VMClassifier
from peerlearn.models.targets import LARGEST


def arrays(model: S3VMClassifier) -> dict[str, AnyArray]:
    return {"mean": model.mean_[0], "intercept": np.asarray(model.intercept_[0])}


def entries(model: S3VMClassifier) -> dict[str, Any]:
    return {"positive_share": float(model.positive_share_)}


def restore(model: S3VMClassifier, contents: Contents) -> None:
    inputs = model.n_features_in_
    model.coefficients_ = contents.numbers("coefficients", inputs, largest=LARGEST)[None]
    model.mean_ = contents.numbers("mean", inputs, largest=LARGEST)[None]
    model.intercept_ = contents.numbers("intercept", largest=LARGEST)[None]
    model.classes_ = contents.classes(1)
    model.positive_share_ = contents.entry("positive_share", float)
    if not 0 < model.positive_share_ < 1:
        raise contents.wrong(f"its positive_share is {model.positive_share_}, which is not between 0 and 1")

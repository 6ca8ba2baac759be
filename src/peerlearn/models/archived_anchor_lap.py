"""Laplacian ridge regression on anchors in a file: f(x) = b'P'k(x), k(x) from the anchors and the width.

anchors         A, anchors x inputs
projection      P, anchors x features
coefficients    b, features x outputs

The text has width, of the kernel, and nearest: how many anchors each row of the training was joined to.
"""

from __future__ import annotations

from typing import Any

from peerlearn.data.dataset import AnyArray
from peerlearn.local.anchor_graph import AnchorGraph
from peerlearn.models.anchor_lap import AnchorLapClassifier
from peerlearn.models.contents import Contents
from peerlearn.models.targets import LARGEST


def arrays(model: AnchorLapClassifier) -> dict[str, AnyArray]:
    return {"anchors": model._graph.A, "projection": model._graph.P}


def entries(model: AnchorLapClassifier) -> dict[str, Any]:
    return {"width": float(model._graph.width), "nearest": int(model._graph.nearest)}


def restore(model: AnchorLapClassifier, contents: Contents) -> None:
    A = contents.numbers("anchors", None, model.n_features_in_, largest=LARGEST)
    P = contents.numbers("projection", len(A), None, largest=LARGEST)
    width, nearest = contents.entry("width", float), contents.entry("nearest", int)
    if not 1 / LARGEST <= width <= LARGEST:
        raise contents.wrong(f"its width is {width}, which is not between {1 / LARGEST:g} and {LARGEST:g}")
    if not 1 <= nearest <= len(A):
        raise contents.wrong(f"its nearest is {nearest!r:.20}, which is not between 1 and its {len(A)} anchors")
    model._graph, model.anchors_, model.width_ = AnchorGraph(A, P, width, nearest), A, width
    coefficients = contents.numbers("coefficients", P.shape[1], None, largest=LARGEST)
    model.coefficients_, model.classes_ = coefficients[None], contents.classes(coefficients.shape[1])

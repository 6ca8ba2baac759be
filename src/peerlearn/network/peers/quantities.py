"""Names of what agents send, by the code that sends it.

A name given at each call could differ from what is sent, and a new algorithm could forget it. So
the name follows from the functions that are running: the innermost one in the list gives it. Code
that is not in the list, such as a solver of your own, gives the name of its module.
"""

from __future__ import annotations

import sys
from types import FrameType

# Modules below algorithms that send what others ask them to send.
CARRIERS = {
    f"peerlearn.algorithms.{name}"
    for name in ("all_gather", "averaging", "krylov", "secret_sums", "sums")
}
# By module below algorithms.
ALGORITHMS = {
    "agreement": "settings and checksums, to compare",
    "anchors": "centres and counts of rows",
    "calibration": "weights of classes and derivatives of a loss",
    "categories": "kinds and categories of columns",
    "certificate": "gradients and sizes, to bound the error",
    "columns.dual": "kernel products of columns",
    "columns.local": "whether columns suffice",
    "columns.sharing": "outputs of columns",
    "columns.sketched": "outputs and gradients of columns",
    "columns.sketches": "sketches of columns",
    "columns.solver": "sizes of columns",
    "completion.block": "factors of distances",
    "completion.completed": "sums of distances",
    "completion.diffusion": "factors of distances",
    "completion.windows": "misfits of distances",
    "disputes": "codes of what agents found in columns",
    "distances.exchange": "rows or distances of rows",
    "distances.landmarks": "sums of rows, and distances to landmarks",
    "distances.row_index": "numbers of rows",
    "filtering.diffusion": "coefficients of filters",
    "filtering.opening": "medians, spreads and powers of signals",
    "filtering.spans": "parts of splines",
    "iteration": "residuals",
    "likelihood": "information matrices, scores and deviances",
    "proximal": "gradients and Hessians",
    "readout.admm": "coefficients and gradients",
    "readout.auto": "numbers of rows",
    "readout.chosen_alpha": "Gram matrices and squares of targets",
    "readout.chosen_features": "moments and Gram matrices of folds",
    "readout.conjugate_gradient": "products of Gram matrices",
    "readout.consensus": "coefficients",
    "readout.gram": "Gram matrices or R factors",
    "readout.means": "sums and squares of features and targets",
    "readout.preconditioners": "moments of inputs",
    "readout.ridge_paths": "Gram matrices of folds",
    "row_identity": "keyed hashes of row identifiers",
    "smooth.diffusion": "coefficients",
    "smooth.distance": "curvatures",
    "smooth.lbfgs": "gradients",
    "smooth.minimum": "coefficients and gradients",
    "smooth.mixing": "coefficients and gradients",
    "smooth.newton": "gradients and Hessians",
    "standardise": "sums and squares of columns",
    "streaming.combining": "coefficients",
    "streaming.consensus": "coefficients",
    "streaming.exact": "Gram matrices or R factors of new rows",
    "summed_histograms": "histograms of columns",
    "threshold": "counts of outputs",
}
# By module below models.
MODELS = {
    "anchor_lap": "sums over anchors of labelled rows",
    "class_weight": "counts of classes",
    "esn": "numbers of rows",
    "lapkrr": "labels, outputs and kernel widths",
    "logistic": "counts of classes",
    "rvfl": "numbers of rows, or of rows by class",
    "s3vm": "counts, sums of labels and mean outputs",
    "scores": "sums over held-out rows, for scores",
    "search": "sums over held-out rows, for scores",
    "unlabelled": "weights of classes and derivatives of a loss",
    "vertical": "outputs of columns",
}
MODULES = {f"peerlearn.algorithms.{name}": text for name, text in ALGORITHMS.items()}
MODULES |= {f"peerlearn.models.{name}": text for name, text in MODELS.items()}
MODULES["peerlearn.preparing.imputer"] = "counts of gaps and of categories"
# Functions of modules that send different things; "" if they send what others ask them to.
FUNCTIONS = {
    ("peerlearn.algorithms.agreement", "union"): "class labels",
    ("peerlearn.algorithms.agreement", "check_coefficients"): "checksums of coefficients",
    ("peerlearn.algorithms.readout.means", "common_sums"): "",
    ("peerlearn.algorithms.summed_histograms", "add_counts"): "",
}


def name_of_sender() -> tuple[str, str]:
    """Return what is being sent, and the module that sends it."""
    frame: FrameType | None = sys._getframe(1)
    name = sender = ""
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if sender and module != sender:
            break
        known = FUNCTIONS.get((module, frame.f_code.co_name))
        if known:
            return known, module
        carries = known == "" or module in CARRIERS or module.startswith("peerlearn.network.")
        if not sender and not carries:
            sender = module
            name = MODULES.get(module) or f"numbers of {module}"
        frame = frame.f_back
    return name, sender

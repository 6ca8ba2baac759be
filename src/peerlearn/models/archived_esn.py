"""Echo state networks in a file.

W_in, W, W_fb   the reservoir: units x (1 + inputs), units x units, units x outputs
coefficients    of the constant, the inputs and the states: (1 + inputs + units) x outputs
state, last     where the last sequence that was learned from ended: states, and outputs; a forecast goes on from there.
                Not there if the first hosted agent had no samples

The text has leak and scaling, what outputs are multiplied with before they are learned; largest, of the outputs in
training; and single_output. Whoever has the file has `last`, a value of the first hosted agent's own data, and `state`,
an echo of others.
"""

from __future__ import annotations

from typing import Any

from peerlearn.data.dataset import AnyArray
from peerlearn.local.reservoir import Reservoir
from peerlearn.models.contents import Contents
from peerlearn.models.esn import ESNRegressor
from peerlearn.models.targets import LARGEST

MOST = 2.0**53  # samples: whole numbers are counted up to here


def arrays(model: ESNRegressor) -> dict[str, AnyArray]:
    end = model._latest()
    return _reservoir(model) | ({} if end is None else {"state": end[0], "last": end[1]})


def entries(model: ESNRegressor) -> dict[str, Any]:
    return {
        "leak": float(model.reservoir_.leak),
        "scaling": model._scaling,
        "largest": model._largest(),
        "single_output": model._single_output,
    }


def restore(model: ESNRegressor, contents: Contents) -> None:
    width, M = _restore(model, contents)
    model.coefficients_ = contents.numbers("coefficients", width, M, largest=LARGEST)[None]
    model._end, model._largest_fitted = None, _number(contents, "largest", 0.0, LARGEST)
    if {"state", "last"} & {*contents.arrays}:
        state = contents.numbers("state", model.reservoir_.units, largest=LARGEST)
        model._end = state, contents.numbers("last", M, largest=LARGEST)
    model._standardised = bool({"center", "scale"} & {*contents.arrays})


def stream_parts(model: ESNRegressor) -> tuple[dict[str, AnyArray], dict[str, Any]]:
    return _reservoir(model), {"seed": model._seed}


def resume(model: ESNRegressor, contents: Contents, agents: int) -> tuple[int, int]:
    shape = _restore(model, contents)
    model._seed = contents.entry("seed", int)
    if not 0 <= model._seed < 2**32:
        raise contents.wrong(f"its seed is {model._seed!r:.60}, which is not between 0 and 2^32")
    contents.numbers("state reservoir", agents, model.reservoir_.units, largest=LARGEST)
    contents.numbers("state teacher", agents, shape[1], largest=LARGEST)
    samples = contents.numbers("state samples", agents, largest=MOST)
    if (samples < 0).any() or (samples % 1).any():
        raise contents.wrong("state samples are not whole numbers of 0 or more")
    if (contents.numbers("state largest", agents, largest=LARGEST) < 0).any():
        raise contents.wrong("state largest is below 0, where sizes are told")
    return shape


def _reservoir(model: ESNRegressor) -> dict[str, AnyArray]:
    return {"W_in": model.reservoir_.W_in, "W": model.reservoir_.W, "W_fb": model.reservoir_.W_fb}


def _restore(model: ESNRegressor, contents: Contents) -> tuple[int, int]:
    """The reservoir and the form of outputs; how wide a row of the readout is, and how many outputs there are."""
    try:
        model._check_parameters()  # predictions go on with the washout, and a stream with noise as well
    except (TypeError, ValueError) as error:
        raise contents.wrong(str(error)) from error
    W_in = contents.numbers("W_in", None, 1 + model.n_features_in_, largest=LARGEST)
    W = contents.numbers("W", len(W_in), len(W_in), largest=LARGEST)
    W_fb = contents.numbers("W_fb", len(W_in), None, largest=LARGEST)
    leak, M = _number(contents, "leak", 1 / LARGEST, 1.0), W_fb.shape[1]
    model.reservoir_ = Reservoir(W_in, W, W_fb, leak)
    model._scaling = _number(contents, "scaling", 1 / LARGEST, LARGEST**0.5)
    model._single_output, model._n_outputs = contents.entry("single_output", bool), M
    if model._single_output and M > 1:
        raise contents.wrong(f"it should have one output, but W_fb is for {M}")
    return model.reservoir_.width, M


def _number(contents: Contents, name: str, least: float, most: float) -> float:
    value = contents.entry(name, float)
    if not least <= value <= most:
        raise contents.wrong(f"its {name} is {value}, which is not between {least:g} and {most:g}")
    return value

"""Files that 0.6.0 wrote are read: models predict what they predicted then, and streams go on to
the same numbers.

saved_by_0_6_0/expected.npz has the rows, and what 0.6.0 made of them.
"""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn import SimulatedNetwork, graphs
from peerlearn.models import archive
from peerlearn.models.stream_archive import resume_stream
from tests.support.pages import SUPPORT

FOLDER = SUPPORT / "saved_by_0_6_0"
with np.load(FOLDER / "expected.npz") as file:
    EXPECTED = dict(file)
NAMES = sorted(path.stem for path in FOLDER.glob("*.npz") if path.stem != "expected")
STREAMS = [name for name in NAMES if name.endswith("-stream")]


def must_be_near(found, expected):
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in STREAMS])
def test_models_predict_as_they_did(name, tmp_path):
    saved = archive.load(FOLDER / f"{name}.npz")
    assert type(saved.model).__name__ == name.partition("-")[0]
    must_be_near(saved.predict(EXPECTED["new"]), EXPECTED[name])
    archive.save(saved.model, tmp_path / "again.npz", center=saved.center, scale=saved.scale)
    must_be_near(archive.load(tmp_path / "again.npz").predict(EXPECTED["new"]), EXPECTED[name])


@pytest.mark.parametrize("name", STREAMS)
def test_streams_go_on_as_they_did(name):
    model = resume_stream(FOLDER / f"{name}.npz", SimulatedNetwork(graphs.ring(3)))
    X, y = EXPECTED["X"][18:], EXPECTED[f"{name} y"][18:]
    model.partial_fit([(X[k::3], y[k::3]) for k in range(3)])
    must_be_near(model.coefficients_, EXPECTED[name])

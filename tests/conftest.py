"""Graphs and problems that many tests need."""

from __future__ import annotations

import os

# One BLAS thread per worker: two workers with two threads each take twice as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import hypothesis
import pytest

from peerlearn import data, graphs
from tests.support import process_marker

process_marker.install()
hypothesis.settings.register_profile("no deadlines", deadline=None)
hypothesis.settings.load_profile("no deadlines")

GRAPHS = {
    "ring": graphs.ring(10),
    "random": graphs.erdos_renyi(20, 0.2, seed=0),
    "star": graphs.star(10),
    "line": graphs.linear(10, 1),
}


@pytest.fixture(params=list(GRAPHS))
def graph(request):
    return GRAPHS[request.param]


@pytest.fixture(scope="session")
def g50c():
    return data.load("g50c")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    process_marker.enter(item)
    try:
        return (yield)
    finally:
        process_marker.leave()


STATES = {}  # of each module's RNG, before its first test


@pytest.fixture(autouse=True)
def draws_do_not_depend_on_the_tests_before(request):
    rng = getattr(request.module, "RNG", None)
    if rng is not None:
        rng.bit_generator.state = STATES.setdefault(
            request.module.__name__, rng.bit_generator.state
        )


@pytest.fixture
def written(tmp_path, monkeypatch):
    """A comparison's text as a file, on a machine without data sets of its own."""
    monkeypatch.delenv("PEERLEARN_DATA", raising=False)

    def write(text):
        file = tmp_path / "mine.toml"
        file.write_text(text)
        return file

    return write

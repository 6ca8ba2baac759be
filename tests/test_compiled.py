"""Functions that numba compiles when they are first called."""

from __future__ import annotations

import subprocess
import sys

import numba
import numpy as np
import pytest

from peerlearn import compiled as module
from peerlearn.compiled import compiled


@compiled
def double(x):
    """Return twice x."""
    return 2 * x


@compiled
def quadruple(x):
    return double(double(x))


def test_functions_of_a_module_call_each_other():
    first = quadruple
    assert first(3) == 12
    assert quadruple is not first, "the module has the machine code now"
    assert quadruple(3) == double(6) == 12
    assert first(np.ones(2)).tolist() == [4.0, 4.0]


@pytest.mark.processes
def test_nothing_is_compiled_before_the_first_call():
    work = (
        "import peerlearn.network.kernels as k, sys; assert 'numba' not in sys.modules; "
        "print(k.sparse_step.__doc__)"
    )
    done = subprocess.run([sys.executable, "-c", work], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "out_k <- a sum_j C_kj x_j" in done.stdout


def test_where_nothing_can_be_kept(monkeypatch):
    """As in a container that nobody may write to: numba then refuses to cache."""

    def without_a_cache(cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(numba, "njit", without_a_cache)
    assert module._compile(len) is len
    with pytest.raises(RuntimeError):
        numba.njit(cache=True)

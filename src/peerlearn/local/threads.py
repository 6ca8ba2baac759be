"""One BLAS thread while a model is fitted.

On agent-sized problems more threads are 5-50 times slower if the machine is shared. On large
problems numpy and scipy use a pool of threads each, and the two disturb each other: a fit that took
70 ms with one thread took 60-300 ms with two.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    # Once, because the search for loaded libraries takes milliseconds.
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Return a context in which BLAS uses one thread."""
    limited: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limited

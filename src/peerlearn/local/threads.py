"""One BLAS thread while a model is fitted.

On agent-sized problems more threads are 5-50 times slower where the machine is shared. On large
ones numpy and scipy bring a pool of threads each, and the two get in each other's way: a fit of 70
ms with one thread took 60-300 with two.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    return (
        ThreadpoolController()
    )  # looking for the loaded libraries takes milliseconds: once is enough


def one_blas_thread() -> AbstractContextManager[Any]:
    limited: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limited

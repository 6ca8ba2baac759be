"""One BLAS thread while many small problems are solved: oversubscribed threads are 5-50 times slower on such sizes."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # looking for the loaded libraries takes milliseconds: once is enough


def one_blas_thread() -> AbstractContextManager[Any]:
    limited: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limited

"""Hot loops that numba compiles when they are first called, so that nobody else waits for numba to be imported.

Machine code is kept for the next start where there is a place to keep it. In the first call all
compiled functions of a module are put in its namespace: they may call each other, and who calls
`module.function` pays for no detour.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")


class compiled(Generic[Result]):  # a decorator
    """A function that is compiled when it is first called."""

    def __init__(self, function: Callable[..., Result]) -> None:
        self._function = function
        self._machine_code: Callable[..., Result] | None = None
        self.__doc__ = function.__doc__

    def __call__(self, *arguments: Any) -> Result:
        if self._machine_code is None:
            self._compile_module()
        assert self._machine_code is not None
        return self._machine_code(*arguments)

    def _compile_module(self) -> None:
        namespace = vars(sys.modules[self._function.__module__])
        for name, other in list(namespace.items()):
            if isinstance(other, compiled):
                other._machine_code = namespace[name] = _compile(other._function)
        self._machine_code = self._machine_code or _compile(self._function)


def _compile(function: Callable[..., Any]) -> Any:
    from numba import njit  # takes half a second

    try:
        return njit(cache=True, nogil=True)(function)
    except (
        RuntimeError
    ):  # nowhere to keep compiled code, as in a container that nobody may write to
        return njit(nogil=True)(function)

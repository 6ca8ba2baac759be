"""Compilation of hot loops by numba when they are first called.

Programs that call none of them do not wait for the import of numba. Machine code is cached on disk
for the next start, if there is a folder for it. The first call compiles all decorated functions of
its module and puts the compiled ones in the module's namespace. So they can call each other, and a
later call of `module.function` has no overhead.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")


class compiled(Generic[Result]):  # lower case, because it is used as a decorator
    """Function that is compiled when it is first called."""

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
    except RuntimeError:  # no folder for the cache, as in a read-only container
        return njit(nogil=True)(function)

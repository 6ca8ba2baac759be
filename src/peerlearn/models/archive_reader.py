"""Reader of saved models and streams. Each array and entry is checked when it is read.

Anybody who can write the file decides what is predicted from it, so nothing in it is trusted. Each
method returns a value that fits, or raises `wrong` with a sentence about the file.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from peerlearn.arrays import Array
from peerlearn.data.dataset import AnyArray
from peerlearn.errors import DataError

VERSION = 1
NO_TEXT = (ValueError, SystemError)  # raised by Python for code points that do not exist
Kind = TypeVar("Kind")


@dataclass(frozen=True, eq=False)
class ArchiveReader:
    """Arrays and entries of one file.

    arrays: by name.
    about: the entries of the text, by name.
    objection, way_out: beginning and end of every error message.
    """

    arrays: Mapping[str, AnyArray] = field(repr=False)
    about: dict[str, Any] = field(repr=False)
    objection: str
    way_out: str

    @classmethod
    def of_file(cls, arrays: Mapping[str, AnyArray], objection: str, way_out: str) -> ArchiveReader:
        """Return a reader of these arrays, after reading the text among them."""
        bare = cls(arrays, {}, objection, way_out)
        text = bare._array("about")
        try:
            is_text = text.dtype.kind == "U" and text.ndim == 0
            about = json.loads(text.item()) if is_text else None
            json.dumps(about, ensure_ascii=False).encode()  # all of it can be shown
        except (RecursionError, *NO_TEXT) as error:
            raise bare.wrong("the text 'about' in it is not JSON") from error
        if not isinstance(about, dict):
            raise bare.wrong("the text 'about' in it is no JSON object")
        if about.get("version") != VERSION:
            raise bare.wrong(
                f"it has version {about.get('version')!r:.20}, and this peerlearn reads {VERSION}"
            )
        return cls(arrays, about, objection, way_out)

    def wrong(self, what: str) -> DataError:
        """Return an error about the file. `what` is the reason."""
        return DataError(f"{self.objection}, because {what}: {self.way_out}")

    def entry(self, name: str, kind: type[Kind]) -> Kind:
        """Return an entry of the text, if it has that type."""
        value = self.about.get(name)
        is_flag = isinstance(value, bool) and kind is not bool  # a bool is an int for Python
        if not isinstance(value, kind) or is_flag:
            raise self.wrong(f"its {name} is {_short(value)}, which is no {kind.__name__}")
        return value

    def one_of(self, name: str, known: Collection[str]) -> str:
        """Return an entry of the text, if it is one of the known values."""
        value = self.entry(name, str)
        if value not in known:
            raise self.wrong(
                f"its {name} is {_short(value)}, which is not one of {', '.join(known)}"
            )
        return value

    def parameters(self, known: Collection[str]) -> dict[str, Any]:
        """Return the parameters of the model, if all are known and have plain values."""
        given = self.entry("parameters", dict)
        for name, value in given.items():
            if name not in known or not isinstance(value, bool | int | float | str | None):
                raise self.wrong(
                    f"it has the parameter {_short(name)} with the value {_short(value)}"
                )
        return given

    def columns(self, inputs: int) -> tuple[str, ...]:
        """Return the names of all columns, or no names."""
        names = self.entry("columns", list)
        texts = all(isinstance(name, str) for name in names)
        if not texts or len(set(names)) != len(names):
            raise self.wrong(f"its columns are {_short(names)}, which are not different names")
        if len(names) not in (0, inputs):
            raise self.wrong(f"it names {len(names)} columns, but has {inputs}")
        return tuple(names)

    def numbers(self, name: str, *shape: int | None, largest: float = np.inf) -> Array:
        """Return an array of finite float64 numbers, if it has that shape.

        None in the shape stands for any length except 0. No number may be larger than `largest`.
        """
        array = self._array(name)
        if array.dtype.kind != "f" or array.dtype.itemsize != 8:
            raise self.wrong(f"{name} has type {array.dtype}, which is not float64")
        same_axes = len(shape) == array.ndim
        fits = same_axes and all(n in (None, m) for n, m in zip(shape, array.shape, strict=True))
        if not fits or array.size == 0:
            wanted = ", ".join("any" if n is None else str(n) for n in shape)
            raise self.wrong(f"{name} has shape {array.shape}, which is not ({wanted})")
        if not np.isfinite(array).all():
            raise self.wrong(f"{name} has NaN or infinite values")
        size = np.abs(array).max()
        if size > largest:
            raise self.wrong(
                f"{name} has values up to {size:.1e}, where no training goes beyond {largest:g}"
            )
        # A file from a machine with another byte order is converted.
        return np.asarray(array, dtype=np.float64)

    def classes(self, outputs: int) -> AnyArray:
        """Return the classes, if they are sorted and fit the number of outputs."""
        classes = self._array("classes")
        try:
            labels = classes.tolist() if classes.ndim == 1 and classes.dtype.kind in "biufU" else []
            "".join(map(str, labels)).encode()  # fails for texts that cannot be shown
        except NO_TEXT:
            labels = []
        finite = classes.dtype.kind != "f" or np.isfinite(classes).all()
        if labels != sorted(set(labels)) or not finite:
            raise self.wrong("classes are not different labels in ascending order")
        expected = 1 if len(labels) == 2 else len(labels)
        if len(labels) < 2 or outputs != expected:
            raise self.wrong(
                f"it has {len(labels)} classes, but coefficients for {outputs} outputs"
            )
        return classes

    def _array(self, name: str) -> AnyArray:
        if name not in self.arrays:
            raise self.wrong(
                f"it has no array {name!r}, only {', '.join(sorted(self.arrays)) or 'nothing'}"
            )
        return self.arrays[name]


def _short(value: Any) -> str:
    return f"{value!r:.60}"

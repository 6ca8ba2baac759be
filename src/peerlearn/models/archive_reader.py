"""What a model's file holds, asked for piece by piece: each piece fits the others, or is refused in a sentence.

Whoever can write the file decides what is predicted from it, so nothing in it is taken on trust.
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
NO_TEXT = (ValueError, SystemError)  # what Python says of code points that do not exist
Kind = TypeVar("Kind")


@dataclass(frozen=True, eq=False)
class ArchiveReader:
    """Arrays by name, the entries of the text about them, and how a sentence about what is wrong begins and ends."""

    arrays: Mapping[str, AnyArray] = field(repr=False)
    about: dict[str, Any] = field(repr=False)
    objection: str
    way_out: str

    @classmethod
    def of_file(cls, arrays: Mapping[str, AnyArray], objection: str, way_out: str) -> ArchiveReader:
        """With the text about the arrays understood."""
        bare = cls(arrays, {}, objection, way_out)
        text = bare._array("about")
        try:
            about = json.loads(text.item()) if text.dtype.kind == "U" and text.ndim == 0 else None
            json.dumps(about, ensure_ascii=False).encode()  # all of it can be shown
        except (RecursionError, *NO_TEXT) as error:
            raise bare.wrong("the text 'about' in it is not JSON") from error
        if not isinstance(about, dict):
            raise bare.wrong("the text 'about' in it says nothing")
        if about.get("version") != VERSION:
            raise bare.wrong(
                f"it is of version {about.get('version')!r:.20}, and this peerlearn reads {VERSION}"
            )
        return cls(arrays, about, objection, way_out)

    def wrong(self, what: str) -> DataError:
        return DataError(f"{self.objection}, because {what}: {self.way_out}")

    def entry(self, name: str, kind: type[Kind]) -> Kind:
        """An entry of the text, of that type."""
        value = self.about.get(name)
        if not isinstance(value, kind):
            raise self.wrong(f"its {name} is {_short(value)}, which is no {kind.__name__}")
        return value

    def one_of(self, name: str, known: Collection[str]) -> str:
        value = self.entry(name, str)
        if value not in known:
            raise self.wrong(
                f"its {name} is {_short(value)}, which is not one of {', '.join(known)}"
            )
        return value

    def parameters(self, known: Collection[str]) -> dict[str, Any]:
        """Plain values for a constructor."""
        given = self.entry("parameters", dict)
        for name, value in given.items():
            if name not in known or not isinstance(value, bool | int | float | str | None):
                raise self.wrong(
                    f"it has the parameter {_short(name)} with the value {_short(value)}"
                )
        return given

    def columns(self, inputs: int) -> tuple[str, ...]:
        """The names of all columns, or none."""
        names = self.entry("columns", list)
        if not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
            raise self.wrong(f"its columns are {_short(names)}, which are not different names")
        if len(names) not in (0, inputs):
            raise self.wrong(f"it names {len(names)} columns, but has {inputs}")
        return tuple(names)

    def numbers(self, name: str, *shape: int | None, largest: float = np.inf) -> Array:
        """A float64 array without holes, of that shape; None stands for any length but 0."""
        array = self._array(name)
        if array.dtype.kind != "f" or array.dtype.itemsize != 8:
            raise self.wrong(f"{name} has type {array.dtype}, which is not float64")
        fits = len(shape) == array.ndim and all(
            n in (None, m) for n, m in zip(shape, array.shape, strict=True)
        )
        if not fits or array.size == 0:
            wanted = ", ".join("any" if n is None else str(n) for n in shape)
            raise self.wrong(f"{name} has shape {array.shape}, which is not ({wanted})")
        if not np.isfinite(array).all():
            raise self.wrong(f"{name} has NaN or infinite values")
        if (size := np.abs(array).max()) > largest:
            raise self.wrong(
                f"{name} has values up to {size:.1e}, where no training goes beyond {largest:g}"
            )
        return np.asarray(
            array, dtype=np.float64
        )  # also where it was saved on a machine with another byte order

    def classes(self, outputs: int) -> AnyArray:
        """Sorted labels, as many as the outputs tell apart."""
        classes = self._array("classes")
        try:
            labels = classes.tolist() if classes.ndim == 1 and classes.dtype.kind in "biufU" else []
            "".join(map(str, labels)).encode()
        except NO_TEXT:
            labels = []
        if labels != sorted(set(labels)) or (
            classes.dtype.kind == "f" and not np.isfinite(classes).all()
        ):
            raise self.wrong("classes are not different labels in their order")
        if len(labels) < 2 or outputs != (1 if len(labels) == 2 else len(labels)):
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

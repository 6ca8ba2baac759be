"""Keeping what was computed once: lru_cache by a text that says all that it follows from."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from peerlearn.lab.description.identity import describe_value

About = TypeVar("About")


@dataclass(frozen=True)
class Asked(Generic[About]):
    """Equal keys count as one question, though they be about other objects."""

    key: str
    about: About = field(compare=False)


def key_of(*parts: Any) -> str:
    """Objects as one text, equal where they are."""
    return json.dumps(describe_value(parts), sort_keys=True)

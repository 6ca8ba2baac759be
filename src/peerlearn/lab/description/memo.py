"""Memory of what was computed once: lru_cache by a text that the result follows from."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from peerlearn.lab.description.identity import describe_value

About = TypeVar("About")


@dataclass(frozen=True)
class Asked(Generic[About]):
    """A question with a key; equal keys are the same question, whatever it is about."""

    key: str
    about: About = field(compare=False)


def key_of(*parts: Any) -> str:
    """Return objects as one text, equal if they are."""
    return json.dumps(describe_value(parts), sort_keys=True)

"""Paths on the command line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click


class HomePath(click.Path):
    """A path in which ~ is the home folder, also where the shell left it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        return Path(os.fsdecode(super().convert(value, param, ctx))).expanduser()


PATH = HomePath()

"""What all commands share: errors end in a sentence and an exit code; paths may begin with ~."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from peerlearn.errors import InputError, MissingExtra, PeerlearnError, Stopped

CTRL_C = 130  # what shells expect of a program ended by Ctrl-C
UNUSABLE = 2  # of what has to be changed first: what was given, or what is installed
GOES_ON = 3  # of a run that ended before its time: the same command takes it up again


class HomePath(click.Path):
    """A path in which ~ is the home folder, also where the shell left it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        return Path(os.fsdecode(super().convert(value, param, ctx))).expanduser()


PATH = HomePath()


class CommandGroup(click.Group):
    """A group whose commands end in one sentence, not in a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except PeerlearnError as error:
            click.echo(f"peerlearn: {error}", err=True)
            code = _code(error)
            _end_other_ranks(code)
            ctx.exit(code)
        except KeyboardInterrupt:
            click.echo("peerlearn: stopped by Ctrl-C; files already written are whole", err=True)
            ctx.exit(CTRL_C)


def _end_other_ranks(code: int) -> None:
    """End the other ranks of an MPI job, which would wait for this one."""
    from peerlearn.network.mpi import end_job  # imports numpy and scipy; --help needs neither

    end_job(code)


def _code(error: PeerlearnError) -> int:
    """Return 2 for what has to be changed first, 3 for what can go on, else 1.

    After a signal it is the code that shells expect.
    """
    usual = 1
    if isinstance(error, InputError | MissingExtra):
        usual = UNUSABLE
    elif isinstance(error, Stopped):
        usual = GOES_ON
    return int(getattr(error, "exit_code", usual))

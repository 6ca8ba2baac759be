"""How commands end: in one sentence and an exit code, not in a traceback."""

from __future__ import annotations

from typing import Any

import click

from peerlearn.errors import InputError, PeerlearnError, Stopped
from peerlearn.network.mpi import end_job

CTRL_C = 130  # what shells expect of a program ended by Ctrl-C
GOES_ON = 3  # of a run that ended before its time: the same command takes it up again


class Doors(click.Group):
    """A group whose commands end in one sentence, not in a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except PeerlearnError as error:
            click.echo(f"peerlearn: {error}", err=True)
            code = _code(error)
            end_job(code)  # other ranks of an MPI job would wait for this one
            ctx.exit(code)
        except KeyboardInterrupt:
            click.echo("peerlearn: stopped by Ctrl-C; files already written are whole", err=True)
            ctx.exit(CTRL_C)


def _code(error: PeerlearnError) -> int:
    """2 for what was given, 3 for what can go on, 1 for the rest; ended by a signal, what shells expect."""
    usual = 2 if isinstance(error, InputError) else GOES_ON if isinstance(error, Stopped) else 1
    return int(getattr(error, "exit_code", usual))

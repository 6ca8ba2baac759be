"""Names beside the ends of lines, moved up or down to where they can be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from peerlearn.arrays import Array


@dataclass(frozen=True)
class End:
    """The end of a line in data coordinates, and the name written beside it."""

    name: str
    at: tuple[float, float]
    colour: str
    ink: str

    @property
    def lines(self) -> int:
        return 1 + self.name.count("\n")


def name_ends(axes: Axes, ends: Sequence[End], line: float, beside: float = 1.05) -> None:
    """Write names beside the ends of lines.

    line: the height of a line of letters, relative to the panel's; beside: where names begin,
    relative to its width.
    """
    heights = axes.transData.transform([end.at for end in ends])[:, 1]
    wished = axes.transAxes.inverted().transform(np.column_stack([heights, heights]))[:, 1]
    order = np.argsort(wished, kind="stable")
    room = line * np.array([ends[k].lines for k in order]) + 0.25 * line
    for k, place in zip(order, spread(wished[order], room), strict=True):
        end = ends[k]
        leader = {
            "arrowstyle": "-",
            "color": end.colour,
            "linewidth": 0.8,
            "shrinkA": 1,
            "shrinkB": 1,
            "relpos": (0, 0.5),
        }
        axes.annotate(
            end.name,
            end.at,
            (beside, place),
            xycoords="data",
            textcoords="axes fraction",
            color=end.ink,
            size=9,
            va="center",
            annotation_clip=False,
            arrowprops=leader,
            linespacing=1.0,
        )


def spread(wished: Array, room: Array) -> Array:
    """Return the places nearest to those wished, in order, each with its room.

    Names that would touch form a block around the mean of what they wish. All stay on the panel as
    long as there is room for them.
    """
    half = room / 2
    before = np.concatenate([[0.0], np.cumsum(room)[:-1]])
    offset = before + half  # of a member's middle in a block that begins with the first
    blocks: list[list[float]] = []  # sum of wished bottom lines, members
    starts: list[int] = []
    for k, wish in enumerate(wished - offset):
        blocks.append([float(wish), 1.0])
        starts.append(k)
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] > blocks[-1][0] / blocks[-1][1]:
            total, members = blocks.pop()
            starts.pop()
            blocks[-1][0] += total
            blocks[-1][1] += members
    bottoms = np.concatenate(
        [np.full(round(members), total / members) for total, members in blocks]
    )
    free = max(0.0, 1.0 - float(room.sum()))
    return np.asarray(np.clip(bottoms, 0.0, free) + offset)

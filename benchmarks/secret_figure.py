"""Draw the protocol of secret sums, as docs/secret-sums.md shows it.

python benchmarks/secret_figure.py         writes docs/secret-sums.png
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

PUBLIC = "#555555"
MASKED = "#D55E00"
ANSWER = "#0072B2"
AGENTS = ["agent c\na leaf", "agent b\nparent of c", "agent a\nthe root", "agent d\nchild of a"]
UP = [(0, 1), (1, 2), (3, 2)]
DOWN = [(2, 1), (2, 3), (1, 0)]
# Steps: what is sent, along which arrows, with labels, in which colour, and what agents do then.
STEPS = [
    (
        "1  keys",
        [*UP, *DOWN],
        ["key, nonce, certificate of c", "of b and c", "of d", "of all", "of all", "of all"],
        PUBLIC,
        "id = SHA-256(network, names, certificates, keys, nonces)",
    ),
    (
        "2  signatures",
        [*UP, *DOWN],
        ["signature of id by c", "by b and c", "by d", "of all", "of all", "of all"],
        PUBLIC,
        "each agent checks all signatures; nobody goes on unless all agree",
    ),
    (
        "3  masked sum",
        UP,
        ["$x_c + m_c$", "$x_b + m_b + x_c + m_c$", "$x_d + m_d$"],
        MASKED,
        "$m_a + m_b + m_c + m_d = 0$: the root has $x_a + x_b + x_c + x_d$, and all ones sum to 4",
    ),
    (
        "4  answer",
        DOWN,
        ["scales or coefficients", "the same", "the same"],
        ANSWER,
        "keys of the next sum depend on the answer; steps 3 and 4 are repeated for each sum",
    ),
    (
        "5  comparison",
        [(0, 1), (1, 2), (2, 3)],
        ["digest of all answers", "digest", "digest"],
        PUBLIC,
        "all agents stop if digests differ",
    ),
]


def draw(path: Path) -> None:
    figure = Figure(figsize=(10, 9.6), layout="constrained")
    FigureCanvasAgg(figure)
    ax = figure.subplots()
    y = 0.0
    for title, arrows, labels, colour, then in STEPS:
        y = _draw_step(ax, y, title, list(zip(arrows, labels, strict=True)), colour, then)
    for place, name in enumerate(AGENTS):
        ax.plot([place, place], [0.35, y + 0.1], color="0.8", linewidth=1.2, zorder=0)
        ax.text(place, 0.45, name, ha="center", va="bottom", fontsize=11, fontweight="bold")
    legend = {"public": PUBLIC, "masked: random numbers": MASKED, "to all agents": ANSWER}
    for place, (name, colour) in enumerate(legend.items()):
        ax.text(1.3 + 0.75 * place, 1.75, name, color=colour, fontsize=11, ha="center")
    ax.set(xlim=(-0.75, 3.3), ylim=(y - 0.1, 2.0))
    ax.axis("off")
    figure.savefig(path, dpi=110)


def _draw_step(
    ax: Axes,
    y: float,
    title: str,
    arrows: list[tuple[tuple[int, int], str]],
    colour: str,
    then: str,
) -> float:
    """Draw the arrows of one step from y downwards, and return where the next one begins."""
    ax.text(-0.72, y, title, fontsize=11, fontweight="bold", va="center")
    both_ways = arrows[0][1].startswith("digest")
    for (sender, receiver), label in arrows:
        ax.annotate(
            "",
            xy=(receiver, y),
            xytext=(sender, y),
            arrowprops={"arrowstyle": "<->" if both_ways else "->", "color": colour, "lw": 1.6},
        )
        ax.text((sender + receiver) / 2, y + 0.06, label, color=colour, ha="center", fontsize=9.5)
        y -= 0.45
    box = {"boxstyle": "round", "facecolor": "#F4F4F4", "edgecolor": "0.8"}
    ax.text(1.5, y - 0.02, then, ha="center", va="center", fontsize=10, bbox=box)
    return y - 0.75


if __name__ == "__main__":
    draw(Path(__file__).parent.parent / "docs" / "secret-sums.png")

"""Solvers of smooth problems, convex or not, that agents minimise together.

One file per method.
"""

from peerlearn.algorithms.smooth.diffusion import Diffusion
from peerlearn.algorithms.smooth.gradient_tracking import GradientTracking
from peerlearn.algorithms.smooth.lbfgs import LBFGS
from peerlearn.algorithms.smooth.minimum import (
    SMOOTH,
    Minimum,
    SmoothSolver,
    smooth_solver_of,
    smooth_solvers,
)
from peerlearn.algorithms.smooth.newton import Newton
from peerlearn.algorithms.smooth.next import NEXT
from peerlearn.algorithms.smooth.steps import StepRule

__all__ = [
    "LBFGS",
    "NEXT",
    "SMOOTH",
    "Diffusion",
    "GradientTracking",
    "Minimum",
    "Newton",
    "SmoothSolver",
    "StepRule",
    "smooth_solver_of",
    "smooth_solvers",
]

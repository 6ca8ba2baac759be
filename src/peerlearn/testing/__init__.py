"""Checks for engines, solvers, learners and models, ours and those of others, and a network of threads.

from peerlearn.testing import check_solver
check_solver(MySolver())            # raises AssertionError with a sentence if it is not what it says
"""

from peerlearn.testing.columns import check_column_solver
from peerlearn.testing.learners import check_learner
from peerlearn.testing.smooth import check_smooth_solver
from peerlearn.testing.solvers import check_solver
from peerlearn.testing.threads import ThreadNetwork, Wires, run_in_threads

__all__ = [
    "ThreadNetwork",
    "Wires",
    "check_column_solver",
    "check_learner",
    "check_smooth_solver",
    "check_solver",
    "run_in_threads",
]

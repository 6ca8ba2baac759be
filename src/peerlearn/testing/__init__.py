"""Checks for engines, solvers, learners and models, and a network of threads.

They are for third parties as well as for the package's own tests. Each check is one call that
raises AssertionError, with a sentence, if something is not what it says:

    from peerlearn.testing import check_solver
    check_solver(MySolver())
"""

from peerlearn.testing.columns import check_column_solver
from peerlearn.testing.engines import check_engine, check_saved_cases, run_cases, save_cases
from peerlearn.testing.learners import check_learner
from peerlearn.testing.smooth import check_smooth_solver
from peerlearn.testing.solvers import check_solver
from peerlearn.testing.threads import ThreadNetwork, Wires, run_in_threads

__all__ = [
    "ThreadNetwork",
    "Wires",
    "check_column_solver",
    "check_engine",
    "check_learner",
    "check_saved_cases",
    "check_smooth_solver",
    "check_solver",
    "run_cases",
    "run_in_threads",
    "save_cases",
]

"""Checks for engines, solvers, learners and models, and a network of threads.

They are for third parties as well as for the package's own tests. Each check is one call that
raises AssertionError, with a sentence about what is wrong:

    from peerlearn.testing import check_solver
    check_solver(MySolver())
"""

from peerlearn.testing.columns import check_column_solver
from peerlearn.testing.completion import check_completion
from peerlearn.testing.distances import check_distances
from peerlearn.testing.engines import check_engine, check_saved_cases, run_cases, save_cases
from peerlearn.testing.filters import check_filter
from peerlearn.testing.learners import check_learner
from peerlearn.testing.models import check_model, model_checks
from peerlearn.testing.smooth import check_smooth_solver
from peerlearn.testing.solvers import check_solver
from peerlearn.testing.threads import ThreadNetwork, Wires, run_in_threads

__all__ = [
    "ThreadNetwork",
    "Wires",
    "check_column_solver",
    "check_completion",
    "check_distances",
    "check_engine",
    "check_filter",
    "check_learner",
    "check_model",
    "check_saved_cases",
    "check_smooth_solver",
    "check_solver",
    "model_checks",
    "run_cases",
    "run_in_threads",
    "save_cases",
]

"""Readout solvers for agents that each have their own columns of the same rows.

One file per method.
"""

from peerlearn.algorithms.columns.auto import COLUMNS, AutoColumns, column_solver_of, column_solvers
from peerlearn.algorithms.columns.dual import DualConjugateGradient
from peerlearn.algorithms.columns.local import ColumnEnsemble, LocalColumns
from peerlearn.algorithms.columns.sharing import SharingADMM
from peerlearn.algorithms.columns.sketched import SketchedConjugateGradient
from peerlearn.algorithms.columns.solver import ColumnSolution, ColumnSolver

__all__ = [
    "COLUMNS",
    "AutoColumns",
    "ColumnEnsemble",
    "ColumnSolution",
    "ColumnSolver",
    "DualConjugateGradient",
    "LocalColumns",
    "SharingADMM",
    "SketchedConjugateGradient",
    "column_solver_of",
    "column_solvers",
]

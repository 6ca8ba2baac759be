"""The check of engines: ours pass it, the cases are found in the code, and wrong engines are noticed."""

from __future__ import annotations

import pytest

from peerlearn import SimulatedNetwork, graphs
from peerlearn.algorithms.averaging import METHODS
from peerlearn.algorithms.columns import column_solvers
from peerlearn.algorithms.completion import COMPLETION
from peerlearn.algorithms.distances import DISTANCES
from peerlearn.algorithms.readout.auto import solvers
from peerlearn.algorithms.smooth import smooth_solvers
from peerlearn.algorithms.streaming.learner import learners
from peerlearn.errors import InputError
from peerlearn.models.registry import models
from peerlearn.testing import check_engine, check_saved_cases, run_in_threads, save_cases
from peerlearn.testing.cases import algorithm_cases
from tests.conformance import FOUR, SEVEN


def simulate(graph, work, **options):
    return [work(SimulatedNetwork(graph, **options))]


class TestOurs:
    def test_threads(self):
        check_engine(run_in_threads)

    @pytest.mark.parametrize("graph", [FOUR, SEVEN], ids=str)
    def test_simulation_in_any_order_is_close(self, graph):
        check_engine(simulate, graph, tolerance=1e-10)

    def test_what_is_saved_is_compared(self, tmp_path):
        """As several processes would do it; a file that is missing is noticed."""
        network = SimulatedNetwork(FOUR, exact_order=True)
        save_cases(network, tmp_path)
        check_saved_cases(tmp_path, FOUR)
        with pytest.raises(AssertionError, match=r"agents \[0, 1, 2, 3\]: host each of the 5"):
            check_saved_cases(tmp_path, graphs.ring(5))
        (tmp_path / "agents-0-1-2-3.npz").unlink()
        with pytest.raises(AssertionError, match="has no files of save_cases"):
            check_saved_cases(tmp_path, FOUR)

    def test_too_few_agents(self):
        with pytest.raises(InputError, match="the cases are for 4 to 7 agents"):
            check_engine(simulate, graphs.ring(3))


class TestCasesAreFound:
    FOUND = algorithm_cases()

    @pytest.mark.parametrize("kind", solvers().values())
    def test_solvers(self, kind):
        averaging = METHODS if "averaging" in kind.__dataclass_fields__ else ("",)
        for method in averaging:
            assert any(
                case.startswith(kind.__name__) and f"{method}) Ridge" in case for case in self.FOUND
            ), method

    @pytest.mark.parametrize("solver", ["ADMM", "Auto"])
    def test_lasso(self, solver):
        assert any(case.startswith(solver) and case.endswith("Lasso") for case in self.FOUND)

    def test_averages(self):
        rules = ("bound", "messages")
        named = {f"average {method} by {rule}" for method in METHODS for rule in rules}
        assert named <= set(self.FOUND)

    @pytest.mark.parametrize(
        "words",
        [
            *(kind.__name__ for kind in learners().values()),
            *(kind.__name__ for kind in smooth_solvers().values()),
            *(f"columns {kind.__name__}" for kind in column_solvers().values()),
            *(f"distances {name}" for name in DISTANCES.kinds()),
            *(f"completion {name}" for name in COMPLETION.kinds()),
            *models(),
        ],
    )
    def test_others(self, words):
        assert any(case.startswith(words) for case in self.FOUND)

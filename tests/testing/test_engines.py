"""check_engine: ours pass it, cases are found in the code, and wrong engines are noticed."""

from __future__ import annotations

import re
import types

import numpy as np
import pytest

from peerlearn import SimulatedNetwork, graphs
from peerlearn.algorithms.averaging import METHODS
from peerlearn.algorithms.columns import column_solvers
from peerlearn.algorithms.completion import COMPLETION
from peerlearn.algorithms.distances import DISTANCES
from peerlearn.algorithms.readout.auto import solvers
from peerlearn.algorithms.smooth import smooth_solvers
from peerlearn.algorithms.streaming.learner import learners
from peerlearn.errors import InputError, NetworkError
from peerlearn.models.registry import models
from peerlearn.testing import check_engine, check_saved_cases, run_in_threads, save_cases
from peerlearn.testing.cases import algorithm_cases
from tests.support.conformance import FOUR, SEVEN
from tests.support.pages import python_blocks


def simulate(graph, work, **options):
    return [work(SimulatedNetwork(graph, **options))]


class TestOurs:
    @pytest.mark.processes  # one thread per agent, and all cases
    def test_threads(self):
        check_engine(run_in_threads)

    @pytest.mark.parametrize("graph", [FOUR, SEVEN], ids=str)
    @pytest.mark.processes  # all cases
    def test_simulation_in_any_order_is_close(self, graph):
        # S3VM of three classes by NEXT enlarges differences of rounding to 4e-10.
        check_engine(simulate, graph, tolerance=1e-9)

    @pytest.mark.processes  # all cases
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
            "NetworkScaler",
            "NetworkImputer",
            "NetworkEncoder",
            "TablePreparer",
        ],
    )
    def test_others(self, words):
        assert any(case.startswith(words) for case in self.FOUND)


# Wrong engines: each is the engine of CONTRIBUTING with one fault.


@pytest.fixture
def recipe():
    """The module of CONTRIBUTING's engine."""
    (text,) = [block for block in python_blocks("CONTRIBUTING.md") if "QueueNetwork(" in block]
    module = types.ModuleType("queues")
    exec(compile(text, "queues", "exec", dont_inherit=True), vars(module))
    return module


def lose_messages(recipe):
    recipe.TIMEOUT = 1.0

    class Wrong(recipe.QueueNetwork):
        sent = 0

        def send(self, receiver, content):
            self.sent += 1
            if self.sent < 7 or content is None:
                super().send(receiver, content)

    return Wrong


def lose_what_a_message_holds(recipe):
    class Wrong(recipe.QueueNetwork):
        received = 0

        def receive(self, sender):
            self.received += 1
            content = super().receive(sender)
            return bytes(len(content)) if self.received == 7 else content

    return Wrong


def swap_two_neighbors(recipe):
    class WrongHalo(recipe.QueueHalo):
        def swap(self):
            super().swap()
            if len(self.rows) > 2:
                self.rows[[1, 2]] = self.rows[[2, 1]]

    return with_halo(recipe, WrongHalo)


def swap_two_letters(recipe):
    class Wrong(recipe.QueueNetwork):
        def _post(self, letters):
            arrived = super()._post(letters)
            contents = [content for *_, content in arrived]
            ends = [(sender, receiver) for sender, receiver, _ in arrived]
            return [(*end, content) for end, content in zip(ends, contents[::-1], strict=True)]

    return Wrong


def add_in_another_order(recipe):
    class Wrong(recipe.QueueNetwork):
        def _mix(self, flat):
            super()._mix(flat)
            rows = self._halo(self._everywhere, flat.shape[1]).rows
            indptr, indices, values = self._C
            terms = values[: indptr[1], None] * rows[indices[: indptr[1]]]
            return (np.add.accumulate(terms[::-1])[-1:],)

    return Wrong


def forget_rounds_in_the_ledger(recipe):
    class Wrong(recipe.QueueNetwork):
        def _count(self, size, rounds=1):
            super()._count(size)

    return Wrong


def forget_letters_in_the_ledger(recipe):
    class Wrong(recipe.QueueNetwork):
        def exchange(self, outbox, to=None):
            inbox = super().exchange(outbox, to)
            self.ledger.count(rounds=0, messages=-1, bytes=0)
            return inbox

    return Wrong


def send_integers_as_floats(recipe):
    class WrongHalo(recipe.QueueHalo):
        def swap(self):
            super().swap()
            if self.rows.dtype.kind in "iu":
                half = self.rows[1:] // 2
                self.rows[1:] = 2 * half.astype(float).astype(self.rows.dtype)

    return with_halo(recipe, WrongHalo)


def send_single_precision(recipe):
    class WrongHalo(recipe.QueueHalo):
        def swap(self):
            super().swap()
            if self.rows.dtype.kind == "f":
                self.rows[1:] = self.rows[1:].astype(np.float32)

    return with_halo(recipe, WrongHalo)


def send_what_is_not_finite(recipe):
    class Wrong(recipe.QueueNetwork):
        checks_every_round = True  # it says so, and does not

    return Wrong


def hear_the_round_before(recipe):
    class WrongHalo(recipe.QueueHalo):
        def swap(self):
            before = self.rows[1:].copy()
            super().swap()
            if self.rows.shape[1] == 12:
                self.rows[1:] = before

    return with_halo(recipe, WrongHalo)


def with_halo(recipe, halo):
    class Wrong(recipe.QueueNetwork):
        def _new_halo(self, links, width, dtype):
            return halo(self, links, width, dtype)

    return Wrong


FAULTS = {
    lose_messages: (NetworkError, "lost agent"),
    lose_what_a_message_holds: (AssertionError, "call mix/"),
    swap_two_neighbors: (AssertionError, "call mix/"),
    swap_two_letters: (AssertionError, "call exchange/"),
    add_in_another_order: (AssertionError, "call mix/"),
    forget_rounds_in_the_ledger: (AssertionError, "call recur/sent: rounds 4 instead of 16"),
    forget_letters_in_the_ledger: (AssertionError, "call exchange/sent: messages"),
    send_integers_as_floats: (AssertionError, "call pass_on of integers/int64"),
    send_single_precision: (AssertionError, "call mix/"),
    send_what_is_not_finite: (AssertionError, "the engine sends NaN of agent 4"),
    hear_the_round_before: (AssertionError, "call mix/"),
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_wrong_engine_is_noticed(fault, recipe):
    kind = fault(recipe)
    error, sentence = FAULTS[fault]
    with pytest.raises(error, match=re.escape(sentence)):
        check_engine(lambda graph, work: recipe.run_over_queues(graph, work, kind))


def test_an_agent_that_nobody_hosts_is_noticed():
    def run(graph, work):
        return run_in_threads(graph, work)[:-1]

    with pytest.raises(AssertionError, match=r"host agents \[0, 1, 2, 3\]: host each of the 5"):
        check_engine(run)

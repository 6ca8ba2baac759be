"""Names of what agents send, found from the code that sends it."""

from __future__ import annotations

import warnings
from importlib import import_module
from types import FunctionType

import numpy as np
import pytest

from peerlearn import SimulatedNetwork, graphs, total
from peerlearn.errors import NotConverged
from peerlearn.network.peers.quantities import CARRIERS, FUNCTIONS, MODULES, name_of_sender
from peerlearn.testing.cases import algorithm_cases

NETWORK = graphs.ring(4)


def note_sender(network, call):
    if not network._quantity:
        network.senders.add(name_of_sender())


class Named(SimulatedNetwork):
    """A network that notes the names of all that is sent."""

    # It belongs to the engine, like the code that asks for the name in `PeerNetwork`.
    check_allowed = FunctionType(
        note_sender.__code__, {**globals(), "__name__": "peerlearn.network.named"}
    )

    def __init__(self):
        super().__init__(NETWORK, exact_order=True)
        self.senders = set()


# Ways of averaging make no difference here.
CASES = [name for name in algorithm_cases() if not {"plain)", "chebyshev)"} & {*name.split()}]


@pytest.mark.parametrize("name", CASES)
def test_whatever_a_model_or_algorithm_sends_has_a_name(name):
    network = Named()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        algorithm_cases()[name](network)
    unknown = {by for what, by in network.senders if what == f"numbers of {by}"}
    # Cases of averages and of the like are programs of their own.
    assert all(by.startswith("peerlearn.testing.") for by in unknown), unknown


def test_code_of_a_user_has_the_name_of_its_module():
    network = Named()
    total(network, np.ones(4))
    assert network.senders == {(f"numbers of {__name__}", __name__)}


def test_functions_that_send_different_things_have_names_of_their_own():
    network = Named()
    algorithm_cases()["RVFLClassifier Gram"](network)
    names = {what for what, by in network.senders if by.endswith("agreement")}
    assert {"class labels", "checksums of coefficients"} <= names


def test_all_names_belong_to_modules_and_functions_that_exist():
    for module in [*MODULES, *CARRIERS]:
        import_module(module)
    for module, function in FUNCTIONS:
        assert hasattr(import_module(module), function)

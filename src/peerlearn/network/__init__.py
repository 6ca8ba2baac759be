"""Engines that carry messages between agents. They know nothing of learning."""

from peerlearn.network.base import Counts, Ledger, Message, Network, Tree
from peerlearn.network.faults import Faults
from peerlearn.network.simulated import SimulatedNetwork

__all__ = ["Counts", "Faults", "Ledger", "Message", "Network", "SimulatedNetwork", "Tree"]

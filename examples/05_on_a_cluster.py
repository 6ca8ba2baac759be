"""
The same training over MPI
==========================

Start it with ``mpiexec -n 4 python examples/05_on_a_cluster.py``; without mpiexec it is one rank.
Every rank hosts some of the agents. The coefficients have the same bits as in simulation.
"""

import numpy as np

from peerlearn import MPINetwork, RVFLClassifier, SimulatedNetwork, data, graphs, partition

digits = data.load("digits")
graph = graphs.small_world(12, 2, 0.2, seed=0)
shares = partition.dirichlet(digits.X, digits.y, 12, concentration=0.3, seed=0)

with MPINetwork(graph) as network:
    mine = [shares[agent] for agent in network.hosted]  # a rank has the rows of its own agents
    model = RVFLClassifier(200, network=network, random_state=0).fit(mine)
    print(f"rank {network.comm.rank} hosts agents {network.hosted}: {model.report_.sent}")
    coefficients = network.gather(model.coefficients_)  # rank 0 gets them, the others None

if coefficients is not None:
    simulated = SimulatedNetwork(graph, exact_order=True)
    model = RVFLClassifier(200, network=simulated, random_state=0).fit(shares)
    print("the same bits as in simulation:", np.array_equal(coefficients, model.coefficients_))

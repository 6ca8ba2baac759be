"""The same training over MPI: mpiexec -n 4 python examples/05_on_a_cluster.py (without mpiexec: one rank)."""

import numpy as np

from peerlearn import MPINetwork, RVFLClassifier, SimulatedNetwork, data, graphs, partition

digits, graph = data.load("digits"), graphs.small_world(12, 2, 0.2, seed=0)
shares = partition.dirichlet(digits.X, digits.y, 12, concentration=0.3, seed=0)

with MPINetwork(graph) as network:
    mine = [shares[agent] for agent in network.hosted]  # a rank has the rows of its own agents
    model = RVFLClassifier(200, network=network, random_state=0).fit(mine)
    print(f"rank {network.comm.rank} hosts agents {network.hosted}: {model.report_.sent}")
    coefficients = network.gather(model.coefficients_)  # on rank 0, because we ask for them

if coefficients is not None:
    simulated = RVFLClassifier(
        200, network=SimulatedNetwork(graph, exact_order=True), random_state=0
    ).fit(shares)
    print("the same bits as in simulation:", np.array_equal(coefficients, simulated.coefficients_))

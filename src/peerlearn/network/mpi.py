"""MPI engine: some agents per rank, for clusters. A rank that dies ends the job.

One round is a halo exchange: only the rows of agents with neighbors on other ranks are sent, once
per pair of ranks, by persistent neighborhood collectives on a graph communicator (MPI 4.1,
chapter 8). Only their v-forms are used: the others hang or fail at a rank that hears nobody.
docs/decisions/0008 explains why product and communication do not overlap.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from hashlib import sha256
from types import TracebackType
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse import csgraph

from peerlearn import graphs
from peerlearn.arrays import Array, Indices, per_agent
from peerlearn.errors import InputError, MissingExtra
from peerlearn.network import codec
from peerlearn.network.base import Secrecy
from peerlearn.network.distributed import DistributedNetwork, Letter
from peerlearn.network.routes import Route

__all__ = ["MPINetwork"]


class MPINetwork(DistributedNetwork):
    """Network whose agents are distributed over the ranks of an MPI communicator.

    Start a script with `mpiexec -n 4 python script.py`; without mpiexec it runs as one rank. All
    ranks make the same calls, each with the entries of its own agents, `hosted`. It needs mpi4py
    and an MPI library.

    Parameters
    ----------
    graph : networkx.Graph
        Graph of the agents, the same on every rank; see `peerlearn.graphs`.
    weights : str or matrix, default "metropolis"
        Mixing matrix, as for `SimulatedNetwork`.
    comm : mpi4py.MPI.Comm, default None
        Communicator; None for all ranks of the job.
    ranks : sequence of int, default None
        Rank of each agent. None gives each rank a contiguous part of a bandwidth-reducing order.
    exact_order : bool, default True
        Accepted so that scripts can replace `SimulatedNetwork` by this class. It has no effect:
        sums always run in ascending agent number.
    secrecy : {"sums"} or None, default None
        "sums" lets agents send masked sums only, from which nobody learns more than totals.
        What would show numbers of single agents is refused before it is sent. Agents
        of one rank have no secrets from each other, and ranks are not identified: this hides
        nothing from whoever runs the job.
    colluders : int, default 1
        Under secrecy, the number of agents that may put together what they see and still learn
        nothing but totals. At most the number of agents less 2.

    Examples
    --------
    >>> from peerlearn import MPINetwork, graphs
    >>> with MPINetwork(graphs.ring(4)) as network:  # doctest: +SKIP
    ...     x = network.mix([[float(agent)] for agent in network.hosted])
    """

    def __init__(
        self,
        graph: nx.Graph,
        weights: npt.ArrayLike | sp.sparray = "metropolis",
        *,
        comm: Any = None,
        ranks: Sequence[int] | None = None,
        exact_order: bool = True,
        secrecy: Secrecy | None = None,
        colluders: int = 1,
    ) -> None:
        self.MPI = mpi()
        self.comm = self.MPI.COMM_WORLD if comm is None else comm
        end_job_when_a_rank_fails(self.comm)
        graph = graphs.checked(graph)
        size = self.comm.size
        place = assign_ranks(graph, size) if ranks is None else _check_ranks(ranks, graph, size)
        super().__init__(graph, weights, place, self.comm.rank)
        self._must_be_one_network()
        self.keep_secrets(secrecy, colluders)
        self._ranks = sorted({*self._everywhere.sent, *self._everywhere.heard})
        self._neighborhood = self.comm.Create_dist_graph_adjacent(
            self._ranks, self._ranks, reorder=False
        )

    def gather(self, x: Array) -> Array | None:
        """Return every agent's entry on rank 0, and None on the others."""
        self.check_allowed("gather")
        x = per_agent(x, len(self.hosted))
        sizes = np.bincount(self._place, minlength=self.comm.size) * (x.size // len(x))
        everything = np.empty((self.size, *x.shape[1:])) if self.comm.rank == 0 else None
        target = None if everything is None else [everything, sizes, self.MPI.DOUBLE]
        self.comm.Gatherv([np.ascontiguousarray(x), self.MPI.DOUBLE], target, root=0)
        if everything is None:
            return None
        return everything[np.argsort(np.argsort(self._place, kind="stable"), kind="stable")]

    def close(self) -> None:
        """Free the requests and the graph communicator."""
        for halo in self._halos.values():
            halo.free()
        self._halos.clear()
        self._neighborhood.Free()

    def __exit__(self, *raised: Any) -> None:
        error = raised[1]
        if error is None:
            self.close()
        elif isinstance(error, SystemExit) and error.code:  # sys.excepthook does not see it
            print(
                f"rank {self.comm.rank} ended, and with it the job: {error.code}", file=sys.stderr
            )
            end_job(error.code if isinstance(error.code, int) else 1)

    def _new_halo(self, links: Route, width: int, dtype: np.dtype[Any]) -> _RankHalo:
        return _RankHalo(self._neighborhood, self.MPI, self._ranks, links, width, dtype)

    def _post(self, letters: dict[int, list[Letter]]) -> list[Letter]:
        byte = self.MPI.BYTE
        long = self.MPI.INT64_T
        bundles = [_pack_letters(letters.get(rank, [])) for rank in self._ranks]
        # First the sizes of the bundles, then the bundles themselves.
        ones = np.ones(len(bundles), dtype=np.int64)
        places = np.arange(len(bundles))
        sizes = np.array([len(bundle) for bundle in bundles], dtype=np.int64)
        coming = np.empty_like(ones)
        self._neighborhood.Neighbor_alltoallv(
            [sizes, (ones, places), long], [coming, (ones, places), long]
        )
        sent = np.frombuffer(b"".join(bundles), np.uint8)
        got = np.empty(int(coming.sum()), dtype=np.uint8)
        starts = np.cumsum(sizes) - sizes
        ends = np.cumsum(coming)
        self._neighborhood.Neighbor_alltoallv(
            [sent, (sizes, starts), byte], [got, (coming, ends - coming), byte]
        )
        parts = np.split(got, ends[:-1]) if len(ends) else []
        return [letter for part in parts for letter in _unpack_letters(part.data)]

    def _must_be_one_network(self) -> None:
        """Raise InputError if ranks have different graphs or weights.

        Without this check they would wait for each other for ever.
        """
        C = self.mixing
        content = b"".join(part.tobytes() for part in (C.indptr, C.indices, C.data, self._place))
        mine = np.frombuffer(sha256(content).digest(), np.uint8)
        everybody = np.empty((self.comm.size, len(mine)), np.uint8)
        self.comm.Allgather(mine, everybody)
        different = np.flatnonzero((everybody != everybody[0]).any(axis=1))
        if different.size:
            raise InputError(
                f"rank {different[0]} was given another graph, other weights or other ranks than "
                "rank 0: make the same network on every rank, with the same seed"
            )


class _RankHalo:
    """Rows of a rank's agents and of those they hear; a persistent request fills the latter."""

    def __init__(
        self,
        neighborhood: Any,
        MPI: Any,
        ranks: list[int],
        links: Route,
        width: int,
        dtype: np.dtype[Any],
    ) -> None:
        self.rows = np.zeros((links.hosted + links.halo, width), dtype)
        number = {"f": MPI.DOUBLE, "i": MPI.INT64_T, "u": MPI.UINT64_T}[dtype.kind]
        none = np.empty(0, dtype=np.intp)
        leaving = [links.sent.get(rank, none) for rank in ranks]
        sent = np.array([len(rows) for rows in leaving], dtype=np.int64) * width
        heard = (
            np.array([len(links.heard.get(rank, none)) for rank in ranks], dtype=np.int64) * width
        )
        self._leaving = np.concatenate([none, *leaving]).astype(np.intp)
        self._sent: Any = None
        if all((np.diff(rows) == 1).all() for rows in leaving):
            # Rows for each rank are contiguous, so they can be sent without a copy.
            source = self.rows
            starts = np.array([rows[0] if len(rows) else 0 for rows in leaving]) * width
        else:
            source = self._sent = np.empty((len(self._leaving), width), dtype)
            starts = np.cumsum(sent) - sent
        self._request = neighborhood.Neighbor_alltoallv_init(
            [source, (sent, starts.astype(np.int64)), number],
            [self.rows[links.hosted :], (heard, np.cumsum(heard) - heard), number],
        )

    def swap(self) -> None:
        if self._sent is not None:
            # With mode="clip" numpy needs no buffer.
            np.take(self.rows, self._leaving, axis=0, out=self._sent, mode="clip")
        self._request.Start()
        self._request.Wait()

    def free(self) -> None:
        self._request.Free()


def mpi() -> Any:
    """Import and return mpi4py.MPI; the first import starts MPI."""
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError):  # RuntimeError: mpi4py is there, but no MPI library
        raise MissingExtra("MPINetwork", "mpi4py with an MPI library", "mpi") from None
    return MPI


def assign_ranks(graph: nx.Graph, ranks: int) -> Indices:
    """Return the rank of each agent, as contiguous parts of the reverse Cuthill-McKee order.

    The parts differ in size by one agent at most.
    """
    if ranks > len(graph):
        raise InputError(
            f"{ranks} ranks are too many for {len(graph)} agents: "
            f"start with mpiexec -n {len(graph)}"
        )
    links = nx.to_scipy_sparse_array(
        graph, nodelist=range(len(graph)), weight=None, format="csr", dtype=np.float64
    )
    order = csgraph.reverse_cuthill_mckee(links, symmetric_mode=True)
    place = np.empty(len(graph), dtype=np.intp)
    for rank, agents in enumerate(np.array_split(order, ranks)):
        place[agents] = rank
    return place


def end_job(code: int) -> None:
    """End all ranks with this exit code, if there are several.

    The others may be waiting for this one.
    """
    if "mpi4py.MPI" not in sys.modules:
        return
    world = mpi().COMM_WORLD
    if world.size > 1:
        sys.stdout.flush()
        sys.stderr.flush()
        world.Abort(code)


def end_job_when_a_rank_fails(comm: Any) -> None:
    """Install a hook that prints an uncaught error and ends the job.

    Without it the other ranks would wait for ever.
    """
    if comm.size > 1 and sys.excepthook is not _print_and_end:
        sys.excepthook = _print_and_end


def _print_and_end(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    print(f"rank {mpi().COMM_WORLD.rank} failed, and with it the job:", file=sys.stderr)
    traceback.print_exception(kind, error, trace)
    end_job(1)


def _check_ranks(ranks: Sequence[int], graph: nx.Graph, size: int) -> Indices:
    """Return the ranks of the agents as an array, or raise InputError."""
    agents = len(graph)
    place = np.asarray(ranks)
    if (
        place.shape != (agents,)
        or place.dtype.kind not in "iu"
        or set(place.tolist()) != set(range(size))
    ):
        raise InputError(
            f"ranks must hold the rank of each of the {agents} agents, and each rank from 0 to "
            f"{size - 1} at least once"
        )
    return place.astype(np.intp)


def _pack_letters(letters: list[Letter]) -> bytes:
    """Encode the letters for one rank; a content for several receivers is encoded once."""
    if not letters:
        return b""
    contents = {sender: content for sender, _, content in letters}
    return codec.pack(
        {
            "ends": np.array([ends for *ends, _ in letters], dtype=np.int64),
            "senders": np.array(list(contents), dtype=np.int64),
            "sizes": np.array([len(content) for content in contents.values()], dtype=np.int64),
            "contents": np.frombuffer(b"".join(contents.values()), np.uint8),
        }
    )


def _unpack_letters(data: memoryview) -> list[Letter]:
    """Decode what `_pack_letters` encoded."""
    if not len(data):
        return []
    parts = codec.unpack(data)
    contents = np.split(parts["contents"], np.cumsum(parts["sizes"])[:-1])
    content = {
        sender: own.tobytes()
        for sender, own in zip(parts["senders"].tolist(), contents, strict=True)
    }
    return [(sender, receiver, content[sender]) for sender, receiver in parts["ends"].tolist()]

"""Attacks on the protocol of secret sums by agents that do not follow it.

Each agent runs in a thread of its own, and the attacker changes what passes it. docs/secret-sums.md
lists what each attack gains.
"""

from __future__ import annotations

import os
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)

from peerlearn import RVFLRegressor, graphs
from peerlearn.algorithms import secret_sums
from peerlearn.algorithms.readout import secret_gram
from peerlearn.algorithms.secret_sums import open_session
from peerlearn.errors import DataError, NetworkError, PeerlearnError, WireError
from peerlearn.network.peers import certificates
from peerlearn.network.peers.identity import Identity
from peerlearn.network.peers.signing import CertificateSigner
from peerlearn.secret import masks, wide
from peerlearn.secret.keys import SessionKey, derive_pair_key
from peerlearn.secret.signing import SessionSigner
from peerlearn.testing.threads import run_in_threads
from tests.algorithms.test_secret_sums import (
    GRAPH,
    LEAF,
    ROOT,
    WORDS,
    run,
    secret_network,
    stopped_with_a_code,
    two_sums,
)

RNG = np.random.default_rng(0)
SHARES = [(RNG.standard_normal((n, 3)), RNG.standard_normal(n)) for n in (9, 3, 40, 4, 15, 5, 30)]


def fit(network, shares):
    model = RVFLRegressor(
        5, alpha=0.5, features="fixed", solver="gram", network=network, random_state=0
    )
    return model.fit([shares[agent] for agent in network.hosted])


def train(attack, shares=SHARES):
    """What each agent learns or raises, if `attack(network, agent)` changes the networks."""

    def work(network):
        network.keep_secrets("sums", 1)
        agent = network.hosted[0]
        attack(network, agent)
        try:
            return agent, fit(network, shares)
        except PeerlearnError as error:
            return agent, error

    return dict(run_in_threads(GRAPH, work))


def change_on_the_way(network, agent, change, width):
    """Let `change` act on rows of this width that reach the agent from the root."""
    pass_on = network.pass_on

    def changed(x, senders, receivers, *, add):
        pass_on(x, senders, receivers, add=add)
        if x.dtype == np.float64 and not add and agent in receivers and x.shape[1] == width:
            change(x)

    network.pass_on = changed


@pytest.mark.parametrize("victim", [LEAF, ROOT, 2])
def test_a_root_that_sends_false_scales_does_not_see_whose_numbers_exceed_them(monkeypatch, victim):
    """Only one agent has numbers beyond the false scale. All agents stop at the same message."""
    shares = list(SHARES)
    X, y = shares[victim]
    shares[victim] = (X, 1e6 * y)
    true = secret_gram.exponents_of

    def false(total):
        exponents = true(total)
        exponents[-1] = 12  # of the targets: enough for all others
        return exponents

    monkeypatch.setattr(secret_gram, "exponents_of", false)
    sent = {agent: [] for agent in range(7)}

    def record(network, agent):
        exchange = network.exchange

        def recorded(outbox, to=None):
            sent[agent] += [message["masked"].copy() for message in outbox if "masked" in message]
            return exchange(outbox, to)

        network.exchange = recorded

    found = train(record, shares)
    assert isinstance(found[victim], DataError)
    assert "public bound" in str(found[victim])
    others = {agent: error for agent, error in found.items() if agent != victim}
    stopped_with_a_code(others)
    # The victim sent as many words as the others, and they are not those of a sum without it.
    shapes = {agent: [words.shape for words in words_of] for agent, words_of in sent.items()}
    assert len({str(own) for agent, own in shapes.items() if agent != ROOT}) == 1


def test_nothing_is_known_of_a_sum_in_which_an_agent_refuses():
    """The total without the agent that refuses would show, beside an earlier one, its numbers."""
    seen = []

    def work(network, agent):
        session = open_session(network)
        exponents = np.array([0, 0])
        numbers = np.array([[0.25, 3.0 if agent == LEAF else 0.5]])
        total = session.sum_to_root("numbers", session.encode(numbers, exponents)[:, :, None])
        if agent == ROOT:
            seen.append(total)
        session.answer(total, 2, lambda words: words[:, 0].astype(float))

    found = run(work)
    assert isinstance(found.pop(LEAF), DataError)
    stopped_with_a_code(found)
    assert seen == [None]


@pytest.mark.parametrize("place", [-1, 3])
def test_an_agent_that_gets_another_intercept_or_coefficient_stops_all(place):
    """No sum follows the coefficients, which would show that the agents' histories differ."""

    def attack(network, agent):
        if agent == LEAF:
            change_on_the_way(network, agent, partial(add_to, place), 1 + 2 + 5 + 1)

    def add_to(place, x):
        x[0, place] += 1.0

    for error in train(attack).values():
        assert isinstance(error, NetworkError)
        assert "code 2" in str(error)


def test_no_block_of_any_stream_repeats_across_sums_and_sessions(monkeypatch):
    """Two agents draw each stream, one to add it and one to subtract it."""
    blocks = {}
    draw = masks.draw_stream

    def recorded(key, words):
        stream = draw(key, words)
        for block in stream.reshape(-1, 8):
            blocks.setdefault(block.tobytes(), []).append(key)
        return stream

    monkeypatch.setattr(masks, "draw_stream", recorded)
    for _ in range(3):
        session = open_session(secret_network())
        for quantity in ("a", "a", "b"):
            for numbers, limbs in ((15, 1), (31, 1), (3, 4), (7, 4)):
                session.sum_to_root(quantity, np.zeros((7, numbers, limbs), dtype=np.uint64))
    assert len(blocks) == 3 * 3 * (2 + 4 + 2 + 4) * 21
    assert all(len(keys) == 2 and keys[0] == keys[1] for keys in blocks.values())


def test_masked_words_of_an_earlier_session_stop_all_agents():
    kept = []

    def work(network, agent):
        first = two_sums(network, agent)
        if agent == LEAF:
            exchange = network.exchange

            def replayed(outbox, to=None):
                if "masked" in outbox[0]:
                    outbox = [{"masked": kept[0]}]
                return exchange(outbox, to)

            network.exchange = replayed
        assert first
        return two_sums(network, agent)

    exchange_of = secret_sums.MaskedSum.pack

    def pack(self):
        if not kept:
            kept.append(self.words.copy())
        return exchange_of(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secret_sums.MaskedSum, "pack", pack)
        stopped_with_a_code(run(work))


def test_a_member_of_an_earlier_session_is_refused():
    """Somebody in the place of agent 3 sends its key, nonce and signature of before again."""
    old = {}

    def work(network, agent):
        if agent == 3:
            network.keep_secret = lambda what, make: old.setdefault(what.split()[0], make())
        first = two_sums(network, agent)
        assert len(first) == 2
        return two_sums(network, agent)

    found = run(work)
    assert "agent 3 did not sign this session" in str(found[LEAF])
    assert all(isinstance(error, NetworkError) for error in found.values())


def test_a_vote_that_is_suppressed_gives_the_attacker_nothing():
    """The leaf sees a wrong signature, and its neighbors drop its vote: its masks never cancel."""
    totals = []

    def work(network):
        network.keep_secrets("sums", 1)
        (agent,) = network.hosted
        if agent == LEAF:
            network.signer = Suspicious
        else:
            flood = network.flood
            network.flood = lambda largest: flood(largest) * 0 + largest
        session = open_session(network)
        total = session.sum_to_root("numbers", WORDS[None])
        if agent == ROOT:
            totals.append(total)

    with pytest.raises(WireError, match="suspicious"):
        run_in_threads(GRAPH, work)
    assert totals in ([], [None])


class Suspicious(SessionSigner):
    """A signer that refuses all signatures."""

    def check(self, *_):
        raise WireError("suspicious")


def test_a_copied_key_with_another_top_bit_has_masks_of_its_own():
    """X25519 ignores the top bit, so that a copy is not found by comparing bytes. It gains nothing:
    the number of the agent is in the key of the pair, and the copier does not know the secret.
    """
    honest, partner = SessionKey(os.urandom(32)), SessionKey(os.urandom(32))
    copied = bytearray(honest.public)
    copied[31] ^= 0x80
    secret = partner.agree(bytes(copied), "copier")
    assert secret == partner.agree(honest.public, "honest")
    assert derive_pair_key(secret, b"s" * 32, 1, 2) != derive_pair_key(secret, b"s" * 32, 3, 2)


def test_an_altered_signature_that_is_still_valid_changes_no_key(tmp_path):
    """ECDSA: (r, n - s) is valid if (r, s) is. Signatures are in no key and no digest."""
    certificates.make(tmp_path, ["north", "south"])
    files = [tmp_path / name for name in ("authority.pem", "north.pem", "north.key")]
    signer = CertificateSigner(Identity.load(*files, "north"))
    r, s = decode_dss_signature(signer.sign(b"session"))
    order = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
    signer.check("north", signer.certificate, b"session", encode_dss_signature(r, order - s))


def test_colluders_of_all_trees_see_sums_with_masks_that_they_do_not_know():
    """What a coalition sees, as vectors over numbers and unknown streams: none of its combinations
    is without streams, except the total of all others."""
    agents = 6
    pairs = [(i, j) for i in range(agents) for j in range(i + 1, agents)]
    masked = np.zeros((agents, agents + len(pairs)))
    masked[:, :agents] = np.eye(agents)
    for place, (i, j) in enumerate(pairs):
        masked[i, agents + place] = 1
        masked[j, agents + place] = -1
    for seed in range(5):
        network = secret_network(graphs.erdos_renyi(agents, 0.5, seed=seed))
        parent, depth = network.tree.parent, network.tree.depth
        subtree = np.eye(agents)
        for agent in np.argsort(-depth, kind="stable"):
            if parent[agent] != agent and depth[agent]:
                subtree[parent[agent]] += subtree[agent]
        for coalition in combinations(range(agents), 4):
            honest = [k for k in range(agents) if k not in coalition]
            children = [k for k in range(agents) if depth[k] and parent[k] in coalition]
            seen = subtree[children] @ masked
            unknown = [
                agents + place
                for place, (i, j) in enumerate(pairs)
                if i not in coalition and j not in coalition
            ]
            seen = np.vstack([seen, [1] * agents + [0] * len(pairs)])
            values = seen[:, honest]
            streams = seen[:, unknown]
            free = null_space_of_rows(streams) @ values
            assert np.linalg.matrix_rank(np.vstack([free, np.ones(len(honest))])) == 1


def null_space_of_rows(matrix):
    """Combinations of rows that are zero."""
    u, sizes, _ = np.linalg.svd(matrix, full_matrices=True)
    rank = np.count_nonzero(sizes > 1e-9)
    return u[:, rank:].T


def test_words_of_a_neighbor_that_is_no_child_are_not_a_way_in():
    """Extra words change the total, which the check finds unless they are meant to pass it."""

    def work(network, agent):
        if agent == LEAF:
            exchange = network.exchange

            def twice(outbox, to=None):
                if "masked" in outbox[0]:
                    outbox = [{"masked": wide.add(*[outbox[0]["masked"]] * 2)}]
                return exchange(outbox, to)

            network.exchange = twice
        return two_sums(network, agent)

    stopped_with_a_code(run(work))

"""Sessions of secret sums: totals, checks of keys and signatures, and what stops all agents."""

from __future__ import annotations

import os
import zlib
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

from peerlearn import SimulatedNetwork, graphs
from peerlearn.algorithms import secret_sums
from peerlearn.algorithms.secret_sums import (
    MEMBER_BYTES,
    SIGNATURE_BYTES,
    PublicBytes,
    one_session,
    open_session,
    session_of,
)
from peerlearn.errors import DataError, InputError, NetworkError, PeerlearnError, WireError
from peerlearn.network import Faults
from peerlearn.secret import wide
from peerlearn.testing.threads import run_in_threads

GRAPH = graphs.erdos_renyi(7, 0.4, seed=1)
TREE = SimulatedNetwork(GRAPH).tree
ROOT = TREE.root
LEAF = next(k for k in range(7) if k not in TREE.parent)
WORDS = wide.of_whole([5, 2**40], 1)


def secret_network(graph=GRAPH, colluders=1):
    network = SimulatedNetwork(graph)
    network.keep_secrets("sums", colluders)
    return network


@pytest.mark.parametrize("limbs", [1, 4])
def test_the_root_learns_the_total(limbs):
    network = secret_network()
    session = open_session(network)
    numbers = np.random.default_rng(0).integers(0, 2**50, (7, 3)).tolist()
    words = np.stack([wide.of_whole(own, limbs) for own in numbers])
    for _ in range(2):  # a second sum has other masks
        total = session.sum_to_root("numbers", words)
        assert wide.to_whole(total) == np.sum(numbers, axis=0).tolist()
    answers = session.answer(total, 1, lambda found: np.array([float(found[0, 0])]))
    assert answers.tolist() == [[float(np.sum(numbers, axis=0)[0])]] * 7
    assert session.quantities == ["numbers", "numbers"]


def run(agent_work):
    """What agent_work(network, agent) returns or raises at each agent, in threads of their own."""

    def work(network):
        network.keep_secrets("sums", 1)
        agent = network.hosted[0]
        try:
            return agent, agent_work(network, agent)
        except PeerlearnError as error:
            return agent, error

    return dict(run_in_threads(GRAPH, work))


def two_sums(network, agent, scales=b""):
    session = open_session(network)
    found = []
    for _ in range(2):
        total = session.sum_to_root("numbers", WORDS[None], scales)
        answers = session.answer(total, 2, lambda words: words[:, 0].astype(float))
        found.append(answers[0].tolist())
    return found


def test_agents_that_share_only_messages_learn_the_answer():
    found = run(two_sums)
    assert found == {agent: [[35.0, 7 * 2.0**40]] * 2 for agent in range(7)}


def stopped_with_a_code(found):
    sentences = {str(error) for error in found.values()}
    assert all(type(error) is NetworkError for error in found.values())
    assert len(sentences) == 1
    assert "failed with code 1" in sentences.pop()


def test_a_subtree_that_is_left_out_stops_all_agents():
    def work(network, agent):
        if agent == ROOT:
            exchange = network.exchange
            child = int(np.flatnonzero(TREE.parent == ROOT)[0])
            child = child if child != ROOT else int(np.flatnonzero(TREE.parent == ROOT)[1])
            network.exchange = lambda *args: [
                {j: what for j, what in exchange(*args)[0].items() if is_kept(j, what)}
            ]

            def is_kept(sender, message):
                return sender != child or "masked" not in message

        return two_sums(network, agent)

    stopped_with_a_code(run(work))


def test_another_scale_stops_all_agents():
    stopped_with_a_code(run(lambda network, agent: two_sums(network, agent, bytes([agent == 2]))))


def test_an_answer_that_differs_on_the_way_stops_all_agents_at_the_next_sum():
    """The root, or an agent between it and another one, sends something else to one agent."""

    def work(network, agent):
        if agent == LEAF:
            pass_on = network.pass_on

            def changed(x, senders, receivers, *, add):
                pass_on(x, senders, receivers, add=add)
                if x.dtype == np.float64 and not add and agent in receivers:
                    x[0, 1] += 1.0

            network.pass_on = changed
        return two_sums(network, agent)

    stopped_with_a_code(run(work))


def replace_key(network, byte, *, sends):
    """Let a byte of agent 3's key, nonce or certificate change where an agent sends or gets it."""
    exchange = network.exchange

    def change(message):
        if "public" not in message:
            return message
        found = PublicBytes.unpack(message, 0, MEMBER_BYTES, 7)
        if len(found.contents) < 7 or len(found.contents[3]) < 80:  # on its way up; a signature
            return message
        key = bytearray(found.contents[3])
        key[byte] ^= 1
        return PublicBytes(found.contents | {3: bytes(key)}, MEMBER_BYTES).pack()

    def changed(outbox, to=None):
        if sends:
            return exchange([change(message) for message in outbox], to)
        return [
            {sender: change(message) for sender, message in box.items()}
            for box in exchange(outbox, to)
        ]

    network.exchange = changed


@pytest.mark.parametrize("byte", [0, 31, 32, 63, 64])
def test_a_key_nonce_or_certificate_that_is_replaced_on_the_way_is_refused(byte):
    """Before any masked number is sent. Bytes of agent 3 change where they pass the root."""
    sent = []

    def work(network, agent):
        exchange = network.exchange

        def recorded(outbox, to=None):
            sent.extend(message for message in outbox if "masked" in message)
            return exchange(outbox, to)

        network.exchange = recorded
        if agent == ROOT:
            replace_key(network, byte, sends=True)
        return two_sums(network, agent)

    found = run(work)
    assert not sent
    assert all(isinstance(error, NetworkError) for error in found.values())
    assert "session key of agent 3 was replaced" in str(found[3])


def test_a_key_that_only_some_see_replaced_is_refused_by_signatures():
    """Agent 3 sees its own key, and the leaves another one: they sign another session."""

    def work(network, agent):
        if agent != 3 and agent not in TREE.parent:
            replace_key(network, 8, sends=False)
        return two_sums(network, agent)

    for error in run(work).values():
        assert "did not sign this session" in str(error)


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"public": np.zeros(9, dtype=np.uint8)},
        {"public": np.frombuffer(zlib.compress(b"x"), np.uint8)},
    ],
    ids=["nothing", "zeros", "cut"],
)
def test_keys_that_cannot_be_read_are_refused(message):
    with pytest.raises(WireError, match="expected public keys or signatures"):
        PublicBytes.unpack(message, 2, MEMBER_BYTES, 7)


def test_keys_of_strangers_and_endless_ones_are_left_out():
    sent = PublicBytes({2: b"a" * 70, 9: b"b"}, MEMBER_BYTES).pack()
    assert PublicBytes.unpack(sent, 2, MEMBER_BYTES, 7).contents == {2: b"a" * 70}
    bomb = PublicBytes({0: bytes(1 << 24)}, MEMBER_BYTES).pack()
    assert len(PublicBytes.unpack(bomb, 2, MEMBER_BYTES, 7).contents[0]) < 7 << 16


def test_messages_with_keys_have_sizes_that_all_engines_share():
    """Certificates of one authority fit into the usual bytes."""
    for size in (1, 4, 50):
        contents = {agent: os.urandom(96) for agent in range(size)}
        assert len(PublicBytes(contents, MEMBER_BYTES).pack()["public"]) == 512 + 288 * size
        contents = {agent: os.urandom(72) for agent in range(size)}
        assert len(PublicBytes(contents, SIGNATURE_BYTES).pack()["public"]) == 32 + 80 * size


def test_a_point_of_low_order_is_refused(monkeypatch):
    monkeypatch.setattr(secret_sums.SessionKey, "public", property(zero_for_one))
    with pytest.raises(WireError, match="low order"):
        open_session(secret_network())


def zero_for_one(key):
    """The public key; that of the first key of all is a point of low order."""
    FIRST.append(key)
    return bytes(32) if key is FIRST[0] else key._key.public_key().public_bytes_raw()


FIRST = []


def test_a_signature_of_another_session_is_refused(monkeypatch):
    statement = secret_sums._statement
    calls = iter([b"x" * 32])  # the first agent signs something else
    monkeypatch.setattr(
        secret_sums, "_statement", lambda session, agent: statement(next(calls, session), agent)
    )
    with pytest.raises(WireError, match="agent 0 did not sign this session"):
        open_session(secret_network())


def test_a_copied_key_is_refused(monkeypatch):
    network = secret_network()
    network.keep_secret = lambda what, make: b"k" * 96 if what == "key" else make()
    with pytest.raises(WireError, match="the same session key"):
        open_session(network)


class Recorded(SimulatedNetwork):
    """A network that keeps the words that leave one agent in masked sums."""

    def __init__(self):
        super().__init__(GRAPH)
        self.keep_secrets("sums", 1)
        self.words = []

    def exchange(self, outbox, to=None):
        if "masked" in outbox[LEAF]:
            self.words.append(outbox[LEAF]["masked"].copy())
        return super().exchange(outbox, to)


def test_what_a_leaf_sends_is_uniform_and_never_the_same():
    sent = []
    for _ in range(2):
        network = Recorded()
        session = open_session(network)
        for _ in range(2):
            session.sum_to_root("zeros", np.zeros((7, 5000, 1), dtype=np.uint64))
        sent += network.words
    assert [words.shape for words in sent] == [(5001, 1)] * 4
    for words in sent:
        counts = np.bincount(words.view(np.uint8).ravel(), minlength=256)
        expected = words.nbytes / 256
        assert chi2.sf(np.sum((counts - expected) ** 2 / expected), 255) > 1e-6
    every = np.concatenate(sent).ravel()
    assert len(np.unique(every)) == len(every)


def test_sessions_have_different_ids_and_keys():
    network = secret_network()
    one, other = open_session(network), open_session(network)
    assert one.id != other.id
    assert not set(one._pair_keys[0].values()) & set(other._pair_keys[0].values())


CALLS = {
    "mix": lambda network, x: network.mix(x),
    "recur": lambda network, x: network.recur(x, np.ones((1, 3))),
    "flood": lambda network, x: network.flood(x),
    "mix_and_flood": lambda network, x: network.mix_and_flood(x, x),
    "mix_speaking": lambda network, x: network.mix_speaking(x, [True] * len(x)),
    "pass_on": lambda network, x: network.pass_on(
        x, TREE.levels[0], TREE.parent[TREE.levels[0]], add=True
    ),
    "exchange": lambda network, x: network.exchange([{"x": row} for row in x]),
}


@pytest.mark.parametrize("call", CALLS)
def test_what_would_show_single_numbers_is_refused_before_it_is_sent(call):
    network = secret_network()
    with pytest.raises(InputError, match="keeps sums secret"):
        CALLS[call](network, np.ones((7, 2)))
    assert network.ledger.messages == 0
    assert network.mixing_here is None
    with network.allow_messages():
        CALLS[call](network, np.ones((7, 2)))
    assert network.ledger.messages > 0


@pytest.mark.parametrize("call", CALLS)
def test_networks_of_several_processes_refuse_it_too(call):
    found = run(lambda network, agent: CALLS[call](network, np.ones((1, 2))))
    assert all("keeps sums secret" in str(error) for error in found.values())


def test_messages_are_refused_again_after_an_error_in_a_block():
    network = secret_network()
    with pytest.raises(ZeroDivisionError), network.allow_messages():
        raise ZeroDivisionError
    with pytest.raises(InputError, match="keeps sums secret"):
        network.mix(np.ones(7))


def test_wrong_settings_of_secrecy_are_refused():
    network = SimulatedNetwork(GRAPH)
    with pytest.raises(InputError, match="give 'sums' or None"):
        network.keep_secrets("all", 1)
    with pytest.raises(InputError, match="from 1 to 5"):
        network.keep_secrets("sums", 6)
    with pytest.raises(InputError, match="needs 3 agents"):
        SimulatedNetwork(graphs.complete(2)).keep_secrets("sums", 1)
    faulty = SimulatedNetwork(GRAPH, faults=Faults(loss=0.1, seed=0))
    with pytest.raises(InputError, match="every message to arrive"):
        faulty.keep_secrets("sums", 1)
    network.keep_secrets(None, 1)
    assert network.secrecy is None


def totals(network, agent):
    session = open_session(network)
    own = np.array([[[0.1 * agent, -(2.0**80)], [1e-9, agent]]])
    found = session.total("numbers", own)
    counts = session.count("rows", np.array([[agent, 2**49]]))
    largest = session.compute("numbers", own.reshape(1, 4), 1, lambda total: total[:1] * 2)
    return found[0].tolist(), counts[0].tolist(), largest.tolist(), session.quantities


def test_totals_of_plain_numbers_and_counts_at_all_agents():
    tenth = float(sum(Fraction(0.1 * agent) for agent in range(7)))
    small = float(7 * Fraction(1e-9))
    numbers = [[tenth, -7 * 2.0**80], [small, 21.0]]
    expected = numbers, [21, 7 * 2**49], [[2 * tenth]], ["numbers", "rows", "numbers"]
    assert run(totals) == dict.fromkeys(range(7), expected)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 1e38])
def test_numbers_without_a_total_are_refused_before_they_are_masked(wrong):
    network = secret_network()
    session = open_session(network)
    sent = network.ledger.messages
    values = np.ones((7, 3))
    values[2, 1] = wrong
    with pytest.raises(DataError, match="number 1 of the sums of columns"):
        session.total("sums of columns", values)
    with pytest.raises(DataError, match="more than secret sums of 7 agents"):
        session.count("rows", np.full((7, 1), 2**53))
    assert network.ledger.messages == sent
    assert not session.quantities


def test_steps_of_a_block_share_one_session_and_later_ones_do_not():
    network = secret_network()
    with one_session(network):
        first = session_of(network)
        with one_session(network):
            assert session_of(network) is first
        assert session_of(network) is first
    assert network.sessions is None
    with pytest.raises(ZeroDivisionError), one_session(network):
        raise ZeroDivisionError
    assert network.sessions is None
    assert session_of(network).id != session_of(network).id != first.id

"""The test vectors of docs/secret-sums.md: what the standards give is what peerlearn computes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from peerlearn import SimulatedNetwork, graphs
from peerlearn.algorithms import secret_sums
from peerlearn.algorithms.secret_sums import Member
from peerlearn.secret import wide
from peerlearn.secret.keys import SessionKey, SumContext, derive_pair_key, derive_sum_key, digest
from peerlearn.secret.masks import mask
from tests.support import secret_vectors

VECTORS = json.loads(secret_vectors.FILE.read_text())
SESSION = bytes.fromhex(VECTORS["session_id"])
AGENTS = [
    {name: bytes.fromhex(each[name]) for name in ("certificate", "private", "public", "nonce")}
    for each in VECTORS["agents"]
]


def test_the_file_is_what_the_standards_give():
    """python -m tests.support.secret_vectors writes it."""
    assert secret_vectors.FILE.read_text() == secret_vectors.as_text(secret_vectors.make_vectors())


def test_keys_and_session_id(monkeypatch):
    for each in AGENTS:
        assert SessionKey(each["private"]).public == each["public"]
    about = json.loads(VECTORS["description"])
    monkeypatch.setattr(secret_sums, "describe", lambda *_: about)
    network = SimulatedNetwork(graphs.complete(3), secrecy="sums", colluders=1)
    members = [
        Member(given["name"], each["certificate"], each["public"], each["nonce"])
        for given, each in zip(VECTORS["agents"], AGENTS, strict=True)
    ]
    assert secret_sums._session_id(network, members) == SESSION
    assert secret_sums._statement(SESSION, 0).hex() == VECTORS["signed_by_agent_0"]


def pair_key(i, j):
    secret = SessionKey(AGENTS[i]["private"]).agree(AGENTS[j]["public"], str(j))
    return derive_pair_key(secret, SESSION, i, j)


def test_pair_keys():
    for pair, key in VECTORS["pair_keys"].items():
        i, j = map(int, pair.split())
        assert pair_key(i, j).hex() == pair_key(j, i).hex() == key


def test_the_history_after_an_answer():
    answer = bytes.fromhex(VECTORS["answer_after_first_sum"])
    assert digest(SESSION, answer).hex() == VECTORS["sums"][1]["history"]


@pytest.mark.parametrize("vector", VECTORS["sums"], ids=["one word", "four words"])
def test_masks_of_a_sum(vector):
    named = {name: vector[name] for name in ("epoch", "number", "quantity", "limbs")}
    scales, history = (bytes.fromhex(vector[name]) for name in ("scales", "history"))
    context = SumContext(**named, shape=tuple(vector["shape"]), scales=scales, history=history)
    assert context.encode().hex() == vector["context"]
    total = np.zeros((vector["shape"][0], context.limbs), dtype=np.uint64)
    for i in range(3):
        keys = {j: pair_key(i, j) for j in range(3) if j != i}
        for j, key in keys.items():
            expected = vector["sum_keys"][f"{min(i, j)} {max(i, j)}"]
            assert derive_sum_key(key, context).hex() == expected
        own = mask(i, keys, context)
        assert wide.to_whole(own) == vector["masks"][i]
        content = wide.of_whole([*vector["contents"][i], 1], context.limbs)
        assert wide.to_whole(wide.add(content, own)) == vector["masked"][i]
        total = wide.add(total, wide.add(content, own))
    assert wide.to_whole(total) == vector["total"]
    assert vector["total"][-1] == 3

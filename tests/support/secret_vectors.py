"""Test vectors of secret sums, computed from the standards alone and without peerlearn.

    python -m tests.support.secret_vectors          writes docs/secret-sums-vectors.json

X25519 is RFC 7748, HKDF is RFC 5869, ChaCha20 is RFC 8439. Three agents make a sum of four numbers
of one word, and one of two numbers of four words, whose keys depend on what the root answered.
"""

from __future__ import annotations

import hmac
import json
import struct
from hashlib import sha256
from typing import Any

from tests.support.pages import ROOT

FILE = ROOT / "docs" / "secret-sums-vectors.json"
LABEL = b"peerlearn secret sums 1"
PRIME = 2**255 - 19
WORD = 1 << 64


def x25519(private: bytes, public: bytes) -> bytes:
    """Return the shared secret: RFC 7748, section 5."""
    scalar = int.from_bytes(private, "little")
    scalar = scalar & ~7 & ~(1 << 255) | 1 << 254
    x1 = int.from_bytes(public, "little") % 2**255
    x2, z2, x3, z3, swap = 1, 0, x1, 1, 0
    for t in reversed(range(255)):
        bit = scalar >> t & 1
        if swap ^ bit:
            x2, x3, z2, z3 = x3, x2, z3, z2
        swap = bit
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        da, cb, aa, bb = d * a, c * b, a * a, b * b
        x3, z3 = (da + cb) ** 2 % PRIME, x1 * (da - cb) ** 2 % PRIME
        e = aa - bb
        x2, z2 = aa * bb % PRIME, e * (aa + 121665 * e) % PRIME
    if swap:
        x2, z2 = x3, z3
    return (x2 * pow(z2, PRIME - 2, PRIME) % PRIME).to_bytes(32, "little")


def expand(key: bytes, info: bytes) -> bytes:
    """Return 32 bytes of HKDF-Expand: RFC 5869, section 2.3."""
    return hmac.digest(key, info + b"\1", sha256)


def chacha20(key: bytes, size: int) -> bytes:
    """Return a stream with nonce zero, from block 0 on: RFC 8439, section 2.3."""
    start = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *struct.unpack("<8I", key), 0, 0, 0, 0]
    blocks = []
    for counter in range(-(-size // 64)):
        start[12] = counter
        state = list(start)
        for _ in range(10):
            for a in range(4):
                _quarter(state, a, a + 4, a + 8, a + 12)
            for a in range(4):
                _quarter(state, a, 4 + (a + 1) % 4, 8 + (a + 2) % 4, 12 + (a + 3) % 4)
        words = [(old + new) % 2**32 for old, new in zip(start, state, strict=True)]
        blocks.append(struct.pack("<16I", *words))
    return b"".join(blocks)[:size]


def _quarter(s: list[int], a: int, b: int, c: int, d: int) -> None:
    for to, other, third, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        s[to] = (s[to] + s[other]) % 2**32
        mixed = s[third] ^ s[to]
        s[third] = (mixed << turn | mixed >> (32 - turn)) % 2**32


def join(*parts: bytes) -> bytes:
    """Return all parts, each after its length."""
    return b"".join(struct.pack("<Q", len(part)) + part for part in parts)


def digest(*parts: bytes) -> bytes:
    return sha256(join(*parts)).digest()


def make_agents() -> list[dict[str, str]]:
    base = (9).to_bytes(32, "little")
    agents = []
    for name in ("north", "south", "east"):
        private = sha256(b"private key of " + name.encode()).digest()
        agents.append(
            {
                "name": name,
                "certificate": (b"stands for the certificate of " + name.encode()).hex(),
                "private": private.hex(),
                "public": x25519(private, base).hex(),
                "nonce": sha256(b"nonce of " + name.encode()).hexdigest(),
            }
        )
    return agents


def make_sum(
    number: int,
    contents: list[list[int]],
    limbs: int,
    scales: bytes,
    history: bytes,
    pair_keys: dict[tuple[int, int], bytes],
) -> dict[str, Any]:
    """Return one sum. contents: whole numbers of each agent, without the 1 of the check."""
    quantity = f"quantity {number}"
    size = len(contents[0]) + 1
    numbers = struct.pack("<QQQ", 0, number, limbs)
    shape = struct.pack("<Q", size)
    context = join(LABEL, numbers, quantity.encode(), shape, scales, history)
    modulus = WORD**limbs
    masks = [[0] * size for _ in contents]
    keys = {}
    for (i, j), pair_key in pair_keys.items():
        key = keys[f"{i} {j}"] = expand(pair_key, context)
        stream = chacha20(key, 8 * size * limbs)
        for place in range(size):
            part = stream[8 * limbs * place : 8 * limbs * (place + 1)]
            masks[i][place] += int.from_bytes(part, "little")
            masks[j][place] -= int.from_bytes(part, "little")
    masked = [
        [(x + m) % modulus for x, m in zip([*own, 1], mask, strict=True)]
        for own, mask in zip(contents, masks, strict=True)
    ]
    return {
        "epoch": 0,
        "number": number,
        "quantity": quantity,
        "shape": [size],
        "limbs": limbs,
        "scales": scales.hex(),
        "history": history.hex(),
        "context": context.hex(),
        "sum_keys": {pair: key.hex() for pair, key in keys.items()},
        "contents": contents,
        "masks": [[m % modulus for m in mask] for mask in masks],
        "masked": masked,
        "total": [sum(column) % modulus for column in zip(*masked, strict=True)],
    }


def make_vectors() -> dict[str, Any]:
    """Return all vectors: bytes as hexadecimal text, numbers as numbers."""
    agents = make_agents()
    description = json.dumps({"the agents": [each["name"] for each in agents]}, sort_keys=True)
    settings = "epoch 0, colluders 1"
    parts = [LABEL, description.encode(), settings.encode()]
    for each in agents:
        certificate = digest(bytes.fromhex(each["certificate"]))
        key, nonce = bytes.fromhex(each["public"]), bytes.fromhex(each["nonce"])
        parts += [each["name"].encode(), certificate, key, nonce]
    session = digest(*parts)
    pair_keys = {}
    for i, j in ((0, 1), (0, 2), (1, 2)):
        shared = x25519(bytes.fromhex(agents[i]["private"]), bytes.fromhex(agents[j]["public"]))
        extracted = hmac.digest(session, shared, sha256)
        pair_keys[i, j] = expand(extracted, LABEL + struct.pack("<QQ", i, j))
    first = make_sum(0, [[1, 2, 3, 4], [10, 0, 5, 2**40], [7, 7, 0, 1]], 1, b"", session, pair_keys)
    answer = struct.pack("<3d", 0.0, 18.0, -1.5)  # code, and what the root computed
    history = digest(session, answer)
    wide = [[2**200, 5], [1, 2**64 - 1], [2**128, 1]]
    second = make_sum(1, wide, 4, b"scales", history, pair_keys)
    return {
        "label": LABEL.decode(),
        "description": description,
        "settings": settings,
        "agents": agents,
        "session_id": session.hex(),
        "signed_by_agent_0": (LABEL + b": agent 0 takes part in session " + session).hex(),
        "pair_keys": {f"{i} {j}": key.hex() for (i, j), key in pair_keys.items()},
        "answer_after_first_sum": answer.hex(),
        "sums": [first, second],
    }


def as_text(vectors: dict[str, Any]) -> str:
    return json.dumps(vectors, indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(as_text(make_vectors()))

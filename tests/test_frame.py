"""Frames: what goes in comes out, every field is checked, and no bytes bring an agent down."""

from __future__ import annotations

import random
import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from peerlearn.errors import PeerlearnError, WireError
from peerlearn.network.codec import DTYPES
from peerlearn.network.peers import frame as framing
from peerlearn.network.peers.frame import (
    CHUNK,
    HEADER,
    MOST_BYTES,
    MOST_TEXT,
    Kind,
    decode,
    encode,
    encode_text,
    split,
    text_of,
)
from peerlearn.network.peers.link import Link, Speaker

HEAD = HEADER - 8  # bytes before the checksum
FIELDS = {
    "magic": (0, "4s"), "version": (4, "B"), "kind": (5, "B"), "dtype": (6, "B"), "dimensions": (7, "B"),
    "run": (8, "I"), "sender": (12, "I"), "round": (16, "Q"), "saved": (24, "Q"), "shape": (32, "I"),
    "offset": (48, "Q"), "length": (56, "I"),
}  # fmt: skip

shapes = hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5)
arrays = st.sampled_from(DTYPES).flatmap(lambda dtype: hnp.arrays(dtype, shapes))


def row(x=(1.0, 2.0, 3.0), kind=Kind.ROW, **changed):
    """A frame, with some fields overwritten and the checksum right all the same."""
    (data,) = encode(kind, np.array(x), run=1, sender=2, round=3, saved=1)
    return sealed(data, **changed)


def sealed(data, **changed):
    data = bytearray(data)
    for name, value in changed.items():
        at, format = FIELDS[name]
        struct.pack_into(f"<{format}", data, at, value)
    struct.pack_into("<Q", data, HEAD, framing._checksum(bytes(data[:HEAD]), memoryview(data)[HEADER:]))
    return bytes(data)


@settings(deadline=None)
@given(
    arrays,
    st.sampled_from([Kind.ROW, Kind.LETTER]),
    st.tuples(
        st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1)
    ),
    st.sampled_from([8, 16, 24, 64, CHUNK]),
)
def test_what_is_sent_comes_back_with_the_same_bits(x, kind, numbers, chunk):
    run, sender, round, saved = numbers
    sent = encode(kind, x, run=run, sender=sender, round=round, saved=saved, chunk=chunk)
    got = [decode(data, run=run, chunk=chunk) for data in sent]
    for frame in got:
        assert (frame.kind, frame.sender, frame.round, frame.saved) == (kind, sender, round, saved)
        assert (frame.dtype, frame.shape, frame.size) == (x.dtype, x.shape, x.nbytes)
    assert [frame.offset for frame in got] == list(range(0, max(x.nbytes, 1), chunk))
    assert b"".join(frame.data for frame in got) == x.tobytes()


def test_arrays_of_any_layout_travel():
    x = np.arange(12.0).reshape(3, 4)
    for odd in (x.T, x[::2, ::-1], np.asfortranarray(x)):
        (data,) = encode(Kind.ROW, odd, run=1, sender=0, round=1, saved=0)
        assert bytes(decode(data, run=1).data) == odd.tobytes()


def test_no_frame_is_larger_than_a_chunk_and_its_header():
    sent = encode(Kind.ROW, np.zeros(CHUNK // 8 + 1), run=1, sender=0, round=1, saved=0)
    assert [len(data) for data in sent] == [HEADER + CHUNK, HEADER + 8]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"magic": b"HTTP"}, "a frame of protocol b'HTTP' 1.*install equal releases"),
        ({"version": 2}, "a frame of protocol b'PEER' 2"),
        ({"kind": 0}, "unknown kind 0"),
        ({"kind": 8}, "unknown kind 8"),
        ({"dtype": 9}, "type 9"),
        ({"dtype": 255}, "type 255"),
        ({"dimensions": 5}, "5 dimensions"),
        ({"dimensions": 255}, "255 dimensions"),
        ({"run": 7}, "a frame of another run: give all agents the same run name"),
        ({"length": 16}, "its length or checksum is wrong"),
        ({"length": 2**32 - 1}, "its length or checksum is wrong"),
        ({"shape": 4}, "brings bytes 0 to 24 of 32, which is no chunk of it"),
        ({"shape": 2}, "brings bytes 0 to 24 of 16"),
        ({"shape": 0}, "brings bytes 0 to 24 of 0"),
        ({"shape": MOST_BYTES // 8 + 1}, "an array of 268435464 bytes was announced, and 268435456 are the most"),
        ({"shape": 2**32 - 1}, "was announced"),
        ({"offset": 8}, "brings bytes 8 to 32 of 24"),
        ({"offset": CHUNK}, "is no chunk of it"),
        ({"offset": 2**64 - 1}, "is no chunk of it"),
        (
            {"kind": Kind.LEAVE, "shape": MOST_TEXT // 8 + 1},
            f"{MOST_TEXT + 8} bytes was announced, and {MOST_TEXT} are the most",
        ),
    ],
)
def test_every_field_is_checked(changed, why):
    with pytest.raises(WireError, match=why):
        decode(row(**changed), run=1)


def test_an_offset_inside_a_chunk_is_refused():
    sent = encode(Kind.ROW, np.arange(6.0), run=1, sender=0, round=1, saved=0, chunk=16)
    assert decode(sent[1], run=1, chunk=16).offset == 16
    with pytest.raises(WireError, match="brings bytes 8 to 24 of 48"):
        decode(sealed(sent[1], offset=8), run=1, chunk=16)


def test_nothing_has_no_second_chunk():
    (data,) = encode(Kind.LETTER, np.empty(0, np.uint8), run=1, sender=0, round=1, saved=0)
    assert decode(data, run=1).size == 0
    with pytest.raises(WireError, match="no chunk"):
        decode(sealed(data, offset=CHUNK), run=1)


def test_every_flipped_bit_is_noticed():
    data = row()
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(WireError):
            decode(bytes(flipped), run=1)


def test_every_truncation_and_addition_is_noticed():
    data = row()
    for wrong in [data[:length] for length in range(len(data))] + [data + b"x", data + data, bytes(HEADER + CHUNK + 1)]:
        with pytest.raises(WireError):
            decode(wrong, run=1)


@settings(deadline=None)
@given(st.binary(max_size=2 * HEADER))
def test_arbitrary_bytes_are_refused(data):
    with pytest.raises(WireError):
        decode(data, run=1)


class TestTexts:
    def said(self, text, kind=Kind.LEAVE):
        return text_of(decode(encode_text(kind, text, run=1, sender=0, round=0, saved=0), run=1))

    def test_come_back(self):
        assert self.said("agent Zürich ended the run: 3 ≠ 5") == "agent Zürich ended the run: 3 ≠ 5"

    def test_are_cut_where_they_are_too_long(self):
        assert self.said("a" * 10 * MOST_TEXT) == "a" * MOST_TEXT
        cut = self.said("é" * MOST_TEXT)
        assert cut == "é" * (MOST_TEXT // 2)
        assert self.said("a" + "é" * MOST_TEXT).rstrip("\N{REPLACEMENT CHARACTER}") == "a" + "é" * (MOST_TEXT // 2 - 1)

    @given(st.text(st.characters(exclude_categories=["Cs"])))
    def test_cannot_steer_a_terminal(self, text):
        assert self.said(text).isprintable()

    def test_lose_what_is_no_text(self):
        assert self.said("a\x1b[2Jb\r\n\x07\u202ec") == "a[2Jbc"
        frame = decode(row(np.frombuffer(b"\xff\x1bok", np.uint8), Kind.LEAVE), run=1)
        assert text_of(frame) == "\N{REPLACEMENT CHARACTER}ok"

    def test_can_be_made_of_any_string(self):
        """A path that is no text has such letters, and may stand in the sentence of an error."""
        assert "folder" in self.said("folder \udcff")


@settings(deadline=None)
@given(st.lists(arrays, max_size=4), st.sampled_from([8, 40, CHUNK]))
def test_joined_frames_are_split_again(some, chunk):
    sent = [data for x in some for data in encode(Kind.ROW, x, run=1, sender=0, round=1, saved=0, chunk=chunk)]
    assert split(b"".join(sent)) == sent
    assert split(memoryview(b"".join(sent))) == sent


SETTINGS = {"the graph": "a ring", "alpha": "1"}
HELLO = Speaker("run", 1, "south", SETTINGS, done=4, saved=2).hello()
(RUN,) = struct.unpack_from("<I", HELLO, FIELDS["run"][0])


def connected_link():
    link = Link(Speaker("run", 0, "north", SETTINGS, done=4), 1, "south", horizon=12)
    link.inbox.finish(4)
    link.heard(HELLO)
    for n in (3, 4, 5):
        link.send(n, [b"kept"])
    return link


def valid_frames():
    """Of all kinds."""
    south = Speaker("run", 1, "south", SETTINGS, done=5, saved=3)
    yield south.hello()
    yield from (south.word(kind) for kind in (Kind.ALIVE, Kind.DONE, Kind.SEEN))
    yield south.text(Kind.LEAVE, "agent south ended the run: no reason")
    for n in (5, 6, 16):
        yield from south.frames(Kind.ROW, np.linspace(0, 1, 7), n)
        yield from south.frames(Kind.LETTER, np.arange(40, dtype=np.uint8), n)
    yield from south.frames(Kind.LETTER, np.empty(0, np.uint8), 6)


ODD = (0, 1, 2, 3, 4, 5, 7, 8, 12, 255, 1 << 16, 1 << 20, 1 << 25, 1 << 31, (1 << 32) - 1, 1 << 63, (1 << 64) - 1)


def mutated(data, chance):
    """One to three changes: flipped bits, other bytes, a cut, an insertion, a field overwritten."""
    data = bytearray(data)
    for _ in range(chance.randint(1, 3)):
        what, at = chance.randrange(6), chance.randrange(len(data) or 1)
        if what == 0 and data:
            data[at] ^= 1 << chance.randrange(8)
        elif what == 1 and data:
            data[at] = chance.randrange(256)
        elif what == 2:
            del data[at:]
        elif what == 3:
            data[at:at] = chance.randbytes(chance.randint(1, 20))
        elif len(data) >= HEADER:
            at, format = FIELDS[chance.choice(list(FIELDS)[1:])]
            size = struct.calcsize(format)
            data[at : at + size] = (chance.choice(ODD) % 256**size).to_bytes(size, "little")
    return bytes(data)


def repaired(data, chance):
    """With the right checksum, and mostly the right length and run: so that what lies deeper is reached."""
    if len(data) < HEADER:
        return data
    changed = {"magic": b"PEER", "version": 1, "length": len(data) - HEADER}
    if chance.random() < 0.9:
        changed["run"] = RUN
    if chance.random() < 0.5:
        changed["sender"] = 1
    if chance.random() < 0.5:
        changed.update(dtype=6, dimensions=1, shape=len(data) - HEADER, offset=0)
    return sealed(data, **changed)


def test_100_000_mutated_frames_bring_nobody_down_and_cost_no_memory():
    chance, valid = random.Random(0), list(valid_frames())
    frames = [mutated(chance.choice(valid), chance) for _ in range(100_000)]
    frames = [repaired(data, chance) if n % 2 else data for n, data in enumerate(frames)]
    link, taken, refused = connected_link(), 0, set()
    tracemalloc.start()
    try:
        for n, data in enumerate(frames):
            try:
                link.heard(data)
                taken += 1
            except PeerlearnError as error:
                refused.add(type(error).__name__)
                link = connected_link()
                if n % 3 == 0:
                    link.closed()  # the next one is heard as a hello
        assert tracemalloc.get_traced_memory()[1] < 4e6
    finally:
        tracemalloc.stop()
    assert taken > 5_000  # so that more than refusals was tried
    assert {"WireError", "Left", "Refusal"} <= refused

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
    MOST_ROUNDS,
    MOST_TEXT,
    VERSION,
    Kind,
    checksum_of,
    decode,
    encode,
    encode_text,
    receipt_of,
    run_identity,
    split,
    text_of,
)
from peerlearn.network.peers.link import Link, Speaker

HEAD = HEADER - 8  # bytes before the checksum
FIELDS = {
    "magic": (0, "4s"),
    "version": (4, "B"),
    "kind": (5, "B"),
    "dtype": (6, "B"),
    "dimensions": (7, "B"),
    "run": (8, "16s"),
    "epoch": (24, "I"),
    "sender": (28, "I"),
    "round": (32, "Q"),
    "saved": (40, "Q"),
    "receipt": (48, "Q"),
    "shape": (56, "I"),
    "offset": (72, "Q"),
    "length": (80, "I"),
}
RUN = run_identity("run")

shapes = hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5)
arrays = st.sampled_from(DTYPES).flatmap(lambda dtype: hnp.arrays(dtype, shapes))


def row(x=(1.0, 2.0, 3.0), kind=Kind.ROW, **changed):
    """A frame, with some fields overwritten and the checksum right all the same."""
    (data,) = encode(kind, np.array(x), run=RUN, sender=2, round=3)
    return sealed(data, **changed)


def sealed(data, **changed):
    data = bytearray(data)
    for name, value in changed.items():
        at, format = FIELDS[name]
        struct.pack_into(f"<{format}", data, at, value)
    data[HEAD:HEADER] = framing._checksum(bytes(data[:HEAD]), memoryview(data)[HEADER:])
    return bytes(data)


@settings(deadline=None)
@given(
    arrays,
    st.sampled_from([Kind.ROW, Kind.LETTER]),
    st.tuples(
        st.binary(min_size=16, max_size=16),
        st.integers(0, 2**32 - 1),
        st.integers(0, MOST_ROUNDS - 1),
    ),
    st.sampled_from([8, 16, 24, 64, CHUNK]),
)
def test_what_is_sent_comes_back_with_the_same_bits(x, kind, numbers, chunk):
    run, sender, round = numbers
    sent = encode(kind, x, run=run, sender=sender, round=round, chunk=chunk)
    got = [decode(data, run=run, chunk=chunk) for data in sent]
    for frame, data in zip(got, sent, strict=True):
        assert (frame.kind, frame.sender, frame.round, frame.saved) == (kind, sender, round, 0)
        assert frame.checksum == checksum_of(data)
        assert (frame.dtype, frame.shape, frame.size) == (x.dtype, x.shape, x.nbytes)
    assert [frame.offset for frame in got] == list(range(0, max(x.nbytes, 1), chunk))
    assert b"".join(frame.data for frame in got) == x.tobytes()


def test_arrays_of_any_layout_travel():
    x = np.arange(12.0).reshape(3, 4)
    for odd in (x.T, x[::2, ::-1], np.asfortranarray(x)):
        (data,) = encode(Kind.ROW, odd, run=RUN, sender=0, round=1)
        assert bytes(decode(data, run=RUN).data) == odd.tobytes()


def test_no_frame_is_larger_than_a_chunk_and_its_header():
    sent = encode(Kind.ROW, np.zeros(CHUNK // 8 + 1), run=RUN, sender=0, round=1)
    assert [len(data) for data in sent] == [HEADER + CHUNK, HEADER + 8]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"magic": b"HTTP"}, "a frame that begins with b'HTTP': it is not from peerlearn"),
        ({"version": 1}, "a frame of wire format 1 came, and this release of peerlearn has 2"),
        ({"version": 255}, "a frame of wire format 255"),
        ({"kind": 0}, "unknown kind 0"),
        ({"kind": 9}, "unknown kind 9"),
        ({"dtype": 9}, "type 9"),
        ({"dtype": 255}, "type 255"),
        ({"dimensions": 5}, "5 dimensions"),
        ({"dimensions": 255}, "255 dimensions"),
        ({"run": bytes(16)}, "a frame of another run: give all agents the same run name"),
        ({"epoch": 1}, "a frame of epoch 1: this release of peerlearn knows only epoch 0"),
        ({"round": 2**64 - 1}, "a frame of round 18446744073709551615 .*: no run is so long"),
        ({"round": MOST_ROUNDS}, "no run is so long"),
        (
            {"kind": Kind.ALIVE, "saved": 2**64 - 1},
            "claims to have saved round 18446744073709551615: no run is so",
        ),
        ({"saved": 1}, "a row that claims to have saved round 1: rows claim nothing"),
        ({"receipt": 1}, "rows claim nothing"),
        ({"kind": Kind.LETTER, "saved": 1}, "a letter that claims"),
        ({"length": 16}, "its length or checksum is wrong"),
        ({"length": 2**32 - 1}, "its length or checksum is wrong"),
        ({"shape": 4}, "brings bytes 0 to 24 of 32, which is not one of its chunks"),
        ({"shape": 2}, "brings bytes 0 to 24 of 16"),
        ({"shape": 0}, "brings bytes 0 to 24 of 0"),
        (
            {"shape": MOST_BYTES // 8 + 1},
            "an array of 268435464 bytes was announced, and 268435456 are the most",
        ),
        ({"shape": 2**32 - 1}, "was announced"),
        ({"offset": 8}, "brings bytes 8 to 32 of 24"),
        ({"offset": CHUNK}, "is not one of its chunks"),
        ({"offset": 2**64 - 1}, "is not one of its chunks"),
        (
            {"kind": Kind.LEAVE, "shape": MOST_TEXT // 8 + 1},
            f"{MOST_TEXT + 8} bytes was announced, and {MOST_TEXT} are the most",
        ),
    ],
)
def test_every_field_is_checked(changed, why):
    with pytest.raises(WireError, match=why):
        decode(row(**changed), run=RUN)


def test_an_offset_inside_a_chunk_is_refused():
    sent = encode(Kind.ROW, np.arange(6.0), run=RUN, sender=0, round=1, chunk=16)
    assert decode(sent[1], run=RUN, chunk=16).offset == 16
    with pytest.raises(WireError, match="brings bytes 8 to 24 of 48"):
        decode(sealed(sent[1], offset=8), run=RUN, chunk=16)


def test_nothing_has_no_second_chunk():
    (data,) = encode(Kind.LETTER, np.empty(0, np.uint8), run=RUN, sender=0, round=1)
    assert decode(data, run=RUN).size == 0
    with pytest.raises(WireError, match="not one of its chunks"):
        decode(sealed(data, offset=CHUNK), run=RUN)


def test_every_flipped_bit_is_noticed():
    data = row()
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(WireError):
            decode(bytes(flipped), run=RUN)


def test_every_truncation_and_addition_is_noticed():
    data = row()
    for wrong in [data[:length] for length in range(len(data))] + [
        data + b"x",
        data + data,
        bytes(HEADER + CHUNK + 1),
    ]:
        with pytest.raises(WireError):
            decode(wrong, run=RUN)


@settings(deadline=None)
@given(st.binary(max_size=2 * HEADER))
def test_arbitrary_bytes_are_refused(data):
    with pytest.raises(WireError):
        decode(data, run=RUN)


class TestTexts:
    def said(self, text, kind=Kind.LEAVE):
        return text_of(decode(encode_text(kind, text, run=RUN, sender=0, round=0), run=RUN))

    def test_come_back(self):
        assert self.said("agent Zürich ended the run: 3 ≠ 5") == "agent Zürich ended the run: 3 ≠ 5"

    def test_are_cut_where_they_are_too_long(self):
        assert self.said("a" * 10 * MOST_TEXT) == "a" * MOST_TEXT
        cut = self.said("é" * MOST_TEXT)
        assert cut == "é" * (MOST_TEXT // 2)
        assert self.said("a" + "é" * MOST_TEXT).rstrip("\N{REPLACEMENT CHARACTER}") == "a" + "é" * (
            MOST_TEXT // 2 - 1
        )

    @given(st.text(st.characters(exclude_categories=["Cs"])))
    def test_cannot_steer_a_terminal(self, text):
        assert self.said(text).isprintable()

    def test_lose_what_is_no_text(self):
        assert self.said("a\x1b[2Jb\r\n\x07\u202ec") == "a[2Jbc"
        frame = decode(row(np.frombuffer(b"\xff\x1bok", np.uint8), Kind.LEAVE), run=RUN)
        assert text_of(frame) == "\N{REPLACEMENT CHARACTER}ok"

    def test_can_be_made_of_any_string(self):
        """A path that is no text has such letters, and may stand in the sentence of an error."""
        assert "folder" in self.said("folder \udcff")


@settings(deadline=None)
@given(st.lists(arrays, max_size=4), st.sampled_from([8, 40, CHUNK]))
def test_joined_frames_are_split_again(some, chunk):
    sent = [
        data for x in some for data in encode(Kind.ROW, x, run=RUN, sender=0, round=1, chunk=chunk)
    ]
    assert split(b"".join(sent)) == sent
    assert split(memoryview(b"".join(sent))) == sent


SETTINGS = {"the graph": "a ring", "alpha": "1"}
NORTH = Speaker("run", 0, "north", SETTINGS, done=4)
HELLO = Speaker("run", 1, "south", SETTINGS, done=4).hello()
SENT = {n: NORTH.frames(Kind.ROW, np.array([float(n)]), n) for n in (3, 4, 5)}
SAVED = 3, receipt_of(map(checksum_of, SENT[3]), 0)  # what the neighbor says that it has


def connected_link():
    link = Link(NORTH, 1, "south", horizon=12)
    link.inbox.finish(4)
    link.receive(HELLO)
    for n, frames in SENT.items():
        link.send(n, frames)
    return link


def valid_frames():
    """Of all kinds."""
    south = Speaker("run", 1, "south", SETTINGS, done=5)
    yield south.hello(*SAVED)
    yield from (south.word(kind, *SAVED) for kind in (Kind.ALIVE, Kind.DONE, Kind.SEEN))
    yield south.text(Kind.LEAVE, "agent south ended the run: no reason")
    yield south.text(Kind.REFUSE, "agent north has nothing left")
    for n in (5, 6, 16):
        yield from south.frames(Kind.ROW, np.linspace(0, 1, 7), n)
        yield from south.frames(Kind.LETTER, np.arange(40, dtype=np.uint8), n)
    yield from south.frames(Kind.LETTER, np.empty(0, np.uint8), 6)


ODD = (
    0,
    1,
    2,
    3,
    4,
    5,
    7,
    8,
    12,
    255,
    1 << 16,
    1 << 20,
    1 << 25,
    1 << 31,
    (1 << 32) - 1,
    1 << 63,
    (1 << 64) - 1,
)


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
    """With the right checksum, and mostly the right length and run: so that what lies deeper is
    reached.
    """
    if len(data) < HEADER:
        return data
    changed = {"magic": b"PEER", "version": VERSION, "epoch": 0, "length": len(data) - HEADER}
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
    try:
        for n, data in enumerate(frames):
            if n == 90_000:  # watching memory takes five times as long as the frames
                tracemalloc.start()
            try:
                link.receive(data)
                taken += 1
                assert link.outbox.after(SAVED[0]) == SENT[4] + SENT[5], (
                    "no lie deletes what the neighbor may need"
                )
            except PeerlearnError as error:
                refused.add(type(error).__name__)
                link = connected_link()
                if n % 3 == 0:
                    link.mark_down()  # the next one is heard as a hello
        assert tracemalloc.get_traced_memory()[1] < 4e6
    finally:
        tracemalloc.stop()
    assert taken > 5_000  # so that more than refusals was tried
    assert {"WireError", "Left", "Refused", "Refusal"} <= refused

"""Exactly-once delivery: early is kept, late is dropped, twice is once, and nobody fills our
memory.
"""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peerlearn.errors import WireError
from peerlearn.network.peers import mailbox
from peerlearn.network.peers.frame import (
    CHUNK,
    MOST_BYTES,
    Frame,
    Kind,
    checksum_of,
    decode,
    encode,
    receipt_of,
    run_identity,
)
from peerlearn.network.peers.mailbox import Inbox, Outbox, Parcel

RUN = run_identity("run")


def frames(x, round=1, kind=Kind.ROW, chunk=CHUNK):
    raw = encode(kind, np.asarray(x), run=RUN, sender=0, round=round, chunk=chunk)
    return [decode(each, run=RUN, chunk=chunk) for each in raw]


def parcel_of(x, kind=Kind.ROW, chunk=CHUNK):
    inbox = Inbox(1)
    for frame in frames(x, kind=kind, chunk=chunk):
        inbox.put(frame)
    return inbox.take(1)


class TestInbox:
    def test_what_comes_early_is_kept_until_its_round(self):
        inbox = Inbox(4)
        for n in (3, 1, 2):
            assert inbox.put(*frames([float(n)], n)) == "kept"
        for n in (1, 2, 3):
            assert inbox.has(n)
            out = np.empty(1)
            inbox.take(n).row(out, "north")
            inbox.finish(n)
            assert out == n

    def test_what_comes_twice_counts_once(self):
        inbox = Inbox(4)
        assert inbox.put(*frames([1.0])) == "kept"
        assert inbox.put(*frames([2.0])) == "repeated"
        out = np.empty(1)
        inbox.take(1).row(out, "north")
        assert out == 1.0

    def test_what_is_behind_us_is_dropped(self):
        inbox = Inbox(4)
        inbox.put(*frames([1.0], 2))
        inbox.finish(3)
        assert not inbox.has(2)
        assert inbox.put(*frames([1.0], 3)) == "stale"
        assert inbox.put(*frames([1.0], 4)) == "kept"

    def test_what_nobody_can_have_computed_yet_is_refused(self):
        inbox = Inbox(4)
        inbox.finish(10)
        assert inbox.bytes == 0
        assert inbox.put(*frames([1.0], 14)) == "kept"
        with pytest.raises(
            WireError, match="a message of round 15 came in round 11: nobody is so far ahead"
        ):
            inbox.put(*frames([1.0], 15))

    @settings(deadline=None)
    @given(st.permutations(range(7)), st.lists(st.integers(0, 6), max_size=4))
    def test_chunks_come_in_any_order_and_more_than_once(self, order, again):
        x = np.random.default_rng(0).standard_normal(13)
        parts = frames(x, chunk=16)
        inbox, became = Inbox(2), []
        for n in [*order[:3], *(k for k in again if k in order[:3]), *order[3:]]:
            became.append(inbox.put(parts[n]))
            assert inbox.has(1) == (became[-1] == "kept")
        assert [each for each in became if each != "repeated"] == 6 * ["part"] + ["kept"]
        out = np.empty(13)
        inbox.take(1).row(out, "north")
        assert out.tobytes() == x.tobytes()

    @pytest.mark.parametrize(
        "other",
        [frames([1.0, 2.0, 3.0]), frames([1, 2]), frames([1.0, 2.0], kind=Kind.LETTER)],
        ids=["shape", "type", "kind"],
    )
    def test_two_different_messages_of_one_round_are_refused(self, other):
        inbox = Inbox(2)
        inbox.put(*frames([1.0, 2.0]))
        with pytest.raises(WireError, match="two different messages came for round 1"):
            inbox.put(*other)

    def test_one_neighbor_cannot_make_us_keep_more_than_a_bound(self, monkeypatch):
        monkeypatch.setattr(mailbox, "MOST_EARLY", 12 * (8 + mailbox.OVERHEAD))
        inbox = Inbox(20)
        for n in range(1, 13):
            inbox.put(*frames([1.0], n))
        with pytest.raises(WireError, match="more than 12384 bytes came for rounds ahead"):
            inbox.put(*frames([1.0], 13))
        inbox.take(1)
        inbox.finish(1)
        assert inbox.put(*frames([1.0], 14)) == "kept"
        inbox.finish(20)
        assert inbox.bytes == 0

    def test_nothing_is_allocated_for_bytes_that_are_only_announced(self):
        inbox = Inbox(100)
        (small,) = frames(np.zeros(CHUNK // 8))
        tracemalloc.start()
        try:
            for n in range(1, 101):
                announced = (MOST_BYTES // 8,)
                inbox.put(
                    Frame(
                        Kind.ROW,
                        0,
                        n,
                        0,
                        0,
                        0,
                        np.dtype("<f8"),
                        announced,
                        MOST_BYTES,
                        0,
                        small.data,
                    )
                )
                assert not inbox.has(n)
            assert tracemalloc.get_traced_memory()[1] < 200_000
        finally:
            tracemalloc.stop()

    def test_an_empty_message_is_a_message(self):
        inbox = Inbox(2)
        assert not inbox.has(1)
        inbox.put(*frames(np.empty(0, np.uint8), kind=Kind.LETTER))
        assert inbox.has(1)
        assert inbox.take(1).letter("north") == b""


class TestParcel:
    @pytest.mark.parametrize(
        ("parcel", "said"),
        [
            (parcel_of([1.0, 2.0], Kind.LETTER), r"a letter of float64 \(2,\)"),
            (parcel_of(np.ones(2, np.float32)), r"a row of float32 \(2,\)"),
            (parcel_of(np.ones(2, np.int64)), r"a row of int64 \(2,\)"),
            (parcel_of([1.0]), r"a row of float64 \(1,\)"),
            (parcel_of([[1.0, 2.0]]), r"a row of float64 \(1, 2\)"),
            (parcel_of(np.empty(0)), r"a row of float64 \(0,\)"),
        ],
    )
    def test_what_is_not_the_row_that_is_due_is_refused(self, parcel, said):
        with pytest.raises(
            WireError, match=f"agent north sent {said}, but 2 numbers of float64 were expected"
        ):
            parcel.row(np.empty(2), "north")

    @pytest.mark.parametrize(
        "x", [[np.nan, 1.0], [np.inf, 1.0], [np.inf, -np.inf], [-np.inf, -np.inf]], ids=str
    )
    def test_numbers_that_are_not_finite_are_refused(self, x):
        with pytest.raises(WireError, match="agent north sent numbers that are not finite"):
            parcel_of(x).row(np.empty(2), "north")

    def test_large_numbers_are_finite(self):
        out = np.empty(3)
        parcel_of([1.7e308, 1.7e308, -1.7e308]).row(out, "north")
        assert out.tolist() == [1.7e308, 1.7e308, -1.7e308]

    def test_a_row_without_numbers_is_a_row(self):
        parcel_of(np.empty(0)).row(np.empty(0), "north")

    def test_letters_are_put_together_in_order(self):
        content = bytes(range(100))
        inbox = Inbox(1)
        for frame in reversed(frames(np.frombuffer(content, np.uint8), kind=Kind.LETTER, chunk=16)):
            inbox.put(frame)
        assert inbox.take(1).letter("north") == content

    def test_what_is_no_letter_is_refused(self):
        with pytest.raises(
            WireError, match="agent north sent a row of uint8, but a letter was expected"
        ):
            parcel_of(np.ones(2, np.uint8)).letter("north")
        with pytest.raises(
            WireError, match="agent north sent a letter of float64, but a letter was expected"
        ):
            parcel_of(np.ones(2), Kind.LETTER).letter("north")

    def test_what_has_not_arrived_is_not_complete(self):
        [empty] = frames(np.empty(0, np.uint8), kind=Kind.LETTER)
        assert not Parcel(empty).complete


def sent(n):
    """The two frames of round n."""
    return encode(Kind.ROW, np.full(3, float(n)), run=RUN, sender=0, round=n, chunk=16)


def receipt(rounds):
    found = 0
    for n in range(1, rounds + 1):
        found = receipt_of(map(checksum_of, sent(n)), found)
    return found


SIZE = sum(map(len, sent(1)))


class TestOutbox:
    def outbox(self, rounds=5):
        outbox = Outbox()
        for n in range(1, rounds + 1):
            outbox.add(n, sent(n))
        return outbox

    def test_later_rounds_come_in_order(self):
        assert self.outbox().after(3) == sent(4) + sent(5)
        assert self.outbox().after(5) == []

    def test_what_was_saved_is_dropped(self):
        outbox = self.outbox()
        assert outbox.drop_saved(3, receipt(3))
        assert (outbox.dropped, outbox.bytes, outbox.after(0)) == (3, 2 * SIZE, sent(4) + sent(5))
        assert outbox.drop_saved(2, receipt(2))
        assert outbox.dropped == 3
        assert outbox.drop_saved(9, receipt(5))
        assert (outbox.dropped, outbox.bytes, outbox.after(0)) == (5, 0, [])
        assert outbox.receipt == outbox.dropped_receipt == receipt(5)

    @pytest.mark.parametrize("saved", [1, 3, 5, 9])
    def test_nothing_is_dropped_for_whoever_cannot_have_it(self, saved):
        outbox = self.outbox()
        assert not outbox.drop_saved(saved, receipt(saved) + 1)
        assert not outbox.drop_saved(saved, 0)
        assert outbox.after(0) == self.outbox().after(0)

    def test_the_receiver_computes_the_same_receipt(self):
        inbox, found = Inbox(9), 0
        for n in range(1, 6):
            for data in reversed(sent(n)):  # chunks may come in any order
                inbox.put(decode(data, run=RUN, chunk=16))
            found = inbox.take(n).receipt(found)
        assert found == self.outbox().receipt

    def test_the_same_round_again_changes_nothing(self):
        outbox = self.outbox()
        outbox.add(5, sent(7))
        outbox.add(2, sent(7))
        assert outbox.bytes == 5 * SIZE
        assert outbox.after(4) == sent(5)
        assert outbox.receipt == receipt(5)

    def test_too_much_makes_the_oldest_go_and_says_so(self):
        outbox = self.outbox()
        assert not outbox.keep_below(5 * SIZE)
        assert outbox.keep_below(3 * SIZE - 1)
        assert (outbox.dropped, outbox.bytes) == (3, 2 * SIZE)
        assert not outbox.keep_below(2 * SIZE)
        outbox.keep_below(0)
        assert outbox.after(0) == sent(5)  # the present round always stays

    def test_entries_are_those_after_one_round_and_up_to_another(self):
        assert self.outbox().entries(1, 3) == [(2, sent(2)), (3, sent(3))]
        assert self.outbox().entries(5, 9) == []

"""Named arrays as bytes: what goes in comes out, and whatever comes in, nothing but arrays or a
WireError comes out.
"""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from peerlearn.errors import NetworkError, WireError
from peerlearn.network import codec

shapes = hnp.array_shapes(min_dims=0, max_dims=codec.MOST_DIMENSIONS, min_side=0, max_side=4)
arrays = st.sampled_from(codec.DTYPES).flatmap(lambda dtype: hnp.arrays(dtype, shapes))
named = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8), arrays, max_size=4
)
EXAMPLE = {
    "rows": np.arange(6.0).reshape(2, 3),
    "n": np.array(7, np.int32),
    "none": np.zeros((0, 2), np.uint8),
}


def one(shape, raw=b"", code=0):
    """A message of one array, written by hand."""
    head = struct.pack("<IHBB", 1, 1, code, len(shape)) + b"x"
    return head + struct.pack(f"<{len(shape)}Q", *shape) + raw


def only_wire_errors(data):
    """What `unpack` made of these bytes, None where it refused them."""
    try:
        return codec.unpack(data)
    except WireError:
        return None


def same(given, got):
    return (
        list(given) == list(got)
        and all(
            got[name].dtype == given[name].dtype and got[name].shape == given[name].shape
            for name in given
        )
        and all(got[name].tobytes() == given[name].tobytes() for name in given)
    )


@settings(deadline=None)
@given(named)
def test_what_is_packed_comes_back_with_the_same_bits(given_arrays):
    assert same(given_arrays, codec.unpack(codec.pack(given_arrays)))


@pytest.mark.parametrize("dtype", codec.DTYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize(
    "shape", [(), (0,), (3,), (2, 0), (2, 3), (2, 1, 3), (2, 2, 2, 2)], ids=str
)
def test_every_type_and_number_of_dimensions_travels(dtype, shape):
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    assert same({"x": x}, codec.unpack(codec.pack({"x": x})))


def test_arrays_of_any_layout_and_byte_order_travel():
    x = np.arange(24.0).reshape(4, 6)
    for odd in (
        x.T,
        x[::2, ::-1],
        np.asfortranarray(x),
        np.broadcast_to(x[0], (3, 6)),
        x.astype(">f8"),
        x.astype(">i4"),
    ):
        got = codec.unpack(codec.pack({"x": odd}))["x"]
        np.testing.assert_array_equal(got, odd)
        assert got.dtype == odd.dtype.newbyteorder("<")


def test_lists_and_numbers_travel_as_arrays():
    got = codec.unpack(codec.pack({"list": [1.0, 2.0], "number": 3}))
    assert got["list"].tolist() == [1.0, 2.0]
    assert got["number"] == 3


def test_no_arrays_are_a_message_too():
    assert codec.unpack(codec.pack({})) == {}


def test_what_arrived_cannot_be_written_to_even_where_the_bytes_can():
    got = codec.unpack(memoryview(bytearray(codec.pack(EXAMPLE))))
    for array in got.values():
        assert not array.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        got["rows"][0, 0] = 1.0


@pytest.mark.parametrize(
    "x",
    [
        np.array(["text"]),
        np.array([b"bytes"]),
        np.array([None]),
        np.array([1j]),
        np.array([1.0], np.float16),
        np.array([1], np.int16),
        np.array(["2024-01-01"], "M8[D]"),
        np.zeros(2, [("a", "f8")]),
        np.array(["text"], np.dtypes.StringDType()),
    ],
    ids=lambda x: str(x.dtype),
)
def test_other_types_are_refused_with_their_name(x):
    with pytest.raises(
        NetworkError,
        match=r"'x' has type .*, which is not sent: agents send arrays of bool, float32",
    ):
        codec.pack({"x": x})


def test_more_than_four_dimensions_are_refused():
    with pytest.raises(
        NetworkError, match="'x' has 5 dimensions: agents send at most 4, reshape it"
    ):
        codec.pack({"x": np.zeros((1, 1, 1, 1, 1))})


def test_what_could_not_be_unpacked_is_not_packed():
    """Else it is the neighbor, or the agent that is started again, who finds out."""
    with pytest.raises(NetworkError, match="up to 10000 arrays"):
        codec.pack({str(n): np.zeros(1) for n in range(codec.MOST_ARRAYS + 1)})
    with pytest.raises(NetworkError):
        codec.pack({"x" * 70_000: np.zeros(1)})


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=200))
def test_arbitrary_bytes_give_arrays_or_a_wire_error(data):
    only_wire_errors(data)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.integers(0, 3), st.integers(0, 2**64 - 1), st.sampled_from([2**31, 2**62, 2**63])
        ),
        max_size=4,
    ),
    st.integers(0, len(codec.DTYPES) - 1),
    st.binary(max_size=32),
)
def test_announced_shapes_give_arrays_or_a_wire_error(shape, code, raw):
    got = only_wire_errors(one(shape, raw, code))
    assert got is None or got["x"].nbytes == len(raw)


@pytest.mark.parametrize("shape", [(0, 2**63), (0, 2**62, 2**62), (2**64 - 1, 0)], ids=str)
def test_nothing_of_an_impossible_shape_is_refused(shape):
    with pytest.raises(WireError):
        codec.unpack(one(shape))


def test_every_truncation_is_refused():
    data = codec.pack(EXAMPLE)
    for length in range(len(data)):
        with pytest.raises(WireError):
            codec.unpack(data[:length])


@settings(deadline=None)
@given(st.binary(min_size=1, max_size=20))
def test_bytes_left_over_are_refused(more):
    with pytest.raises(WireError, match="bytes left over"):
        codec.unpack(codec.pack(EXAMPLE) + more)


def test_every_flipped_bit_gives_arrays_or_a_wire_error():
    data = codec.pack(EXAMPLE)
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        only_wire_errors(bytes(flipped))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "cut short"),
        (struct.pack("<I", codec.MOST_ARRAYS + 1), f"holds {codec.MOST_ARRAYS + 1} arrays"),
        (one((), bytes(8), code=9), "unknown type 9"),
        (struct.pack("<IHBB", 1, 0, 0, 5), "5 dimensions"),
        (struct.pack("<IHBB", 1, 9, 0, 0) + b"x", "9 letters"),
        (struct.pack("<IHBB", 1, 1, 0, 0) + b"\xff" + bytes(8), "damaged"),
        (one((2**40,)), "needs 8796093022208 bytes, and only 0 are there"),
        (
            struct.pack("<I", 2) + 2 * (struct.pack("<HBB", 1, 6, 0) + b"x") + b"ab",
            "two arrays of one name",
        ),
    ],
)
def test_a_refusal_says_why(data, why):
    with pytest.raises(WireError, match=why):
        codec.unpack(data)

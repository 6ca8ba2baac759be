"""Small .npz files that would unpack to gigabytes: refused from their headers, before any memory is
taken.
"""

from __future__ import annotations

import json
import re
import struct
import tracemalloc
import zipfile
import zlib
from contextlib import contextmanager

import numpy as np
import pytest

from peerlearn import RVFLClassifier, data
from peerlearn.data import npz, table_file
from peerlearn.errors import DataError
from peerlearn.models import archive
from peerlearn.models.stream_archive import resume_stream, save_stream
from peerlearn.network import codec
from tests.support import bombs
from tests.support.archives import arrays_in, changed

LITTLE = 16_000_000  # bytes: reading a directory and headers, and the largest file here
X = np.random.default_rng(0).standard_normal((40, 3))
Y = (X[:, 0] > 0).astype(int)
READERS = {
    "a model": archive.load,
    "a stream": resume_stream,
    "a table": lambda path: table_file.read(path, "y"),
    "a table's header": table_file.read_header,
    "a data set": lambda path: data.load(path.stem, folder=path.parent),
}


@contextmanager
def little_memory(most=LITTLE):
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


def refused(path, sentence, read=npz.read):
    with little_memory(), pytest.raises(DataError, match=sentence) as error:
        read(path)
    assert str(path) in str(error.value)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "Small.npz"


@pytest.mark.parametrize("what", READERS)
def test_a_file_of_4_mb_that_unpacks_to_gigabytes(path, what):
    about = np.array(json.dumps({"version": 1}))
    bombs.write(
        path, ("about.npy", bombs.npy(about)), ("y.npy", bombs.npy(Y)), ("X.npy", bombs.bomb())
    )
    assert path.stat().st_size < 4e6
    refused(path, r"its arrays would take 3,200,\d{3},\d{3} bytes of memory", READERS[what])


def test_listing_data_sets_says_so(path):
    bombs.write(path, ("y.npy", bombs.npy(Y)), ("X.npy", bombs.bomb()))
    with little_memory():
        (listed,) = [each for each in data.available(path.parent) if each.name == "Small"]
    assert "cannot be loaded" in listed.description
    assert "3,200,000,320 bytes of memory" in listed.description


def test_gigabytes_in_many_small_arrays(path):
    parts = [(f"{n}.npy", bombs.bomb((5_000_000,), size=40_000_000)) for n in range(50)]
    refused(bombs.write(path, *parts), "its arrays would take 2,000,000,000 bytes of memory")


class TestModels:
    """They are saved uncompressed, so that their arrays are no larger than the file."""

    @pytest.fixture
    def model(self, tmp_path):
        archive.save(
            RVFLClassifier(20, random_state=0, alpha=1.0, activation="sigmoid").fit(X, Y),
            tmp_path / "model.npz",
        )
        return tmp_path / "model.npz"

    def test_what_is_saved_is_loaded_however_large_it_is(self, model, path, monkeypatch):
        monkeypatch.setattr(npz, "ALWAYS", 0)
        monkeypatch.setattr(npz, "TIMES", 0)
        assert archive.load(model).predict(X).shape == (40,)

    def test_labels_of_four_bytes_count_as_such(self, path):
        labels = np.repeat([chr(0x4E00 + n) for n in range(1_000)], 2)
        rows = np.random.default_rng(0).standard_normal((2_000, 3))
        archive.save(
            RVFLClassifier(2, random_state=0, alpha=1.0, activation="sigmoid").fit(rows, labels),
            path,
        )
        assert archive.load(path).model.classes_.itemsize == 4

    def test_compressed_ones_are_refused(self, model, path):
        held = arrays_in(model) | {"coefficients": np.zeros((20, 1))}
        np.savez_compressed(path, **held)
        refused(
            path,
            (
                r"Small.npz holds no model .*, and those of a file of ([\d,]+) bytes may take "
                r"\1: copy it again"
            ),
            archive.load,
        )


class TestDataSets:
    """They may be compressed, up to a limit."""

    @pytest.fixture(autouse=True)
    def limits(self, monkeypatch):
        monkeypatch.setattr(npz, "ALWAYS", 200_000)

    @pytest.mark.parametrize("rows", [2_000, 3_000])
    @pytest.mark.parametrize("dtype", [np.float64, np.uint8])
    def test_compressed_tables_may_take_so_much(self, path, rows, dtype):
        """Of ten columns, as float64: 160,000 and 240,000 bytes."""
        np.savez_compressed(path, X=np.zeros((rows, 10), dtype))
        assert path.stat().st_size < 2_400
        if rows == 2_000:
            assert npz.read(path)["X"].shape == (rows, 10)
            assert npz.headers(path)["X"] == ((rows, 10), np.dtype(dtype))
        else:
            said = (
                r"would take 240,000 bytes of memory, and those of a file of .* may take "
                r"200,000: save plain arr"
            )
            refused(path, said)
            refused(path, said, npz.headers)

    def test_or_a_hundred_times_their_file(self, path):
        kept = np.random.default_rng(0).standard_normal(500)
        np.savez_compressed(path, X=np.append(kept, np.zeros(49_000)))
        assert 100 * path.stat().st_size >= 396_000
        assert npz.read(path)["X"].shape == (49_500,)

    def test_uncompressed_ones_of_any_size(self, path):
        np.savez(path, X=np.zeros((3_000, 10)))
        assert npz.read(path)["X"].shape == (3_000, 10)


class TestLies:
    def test_an_array_larger_than_the_directory_says(self, path):
        content = bombs.deflated(bombs.header(bombs.SHAPE), bombs.GIGABYTES)
        bombs.write(path, ("X.npy", (content, 1_000_000, zipfile.ZIP_DEFLATED)))
        refused(
            path,
            (
                r"'X' has shape \(400000000,\) and type float64, which take 3200000000 bytes, "
                r"and there are 9999\d\d "
            ),
        )

    def test_an_array_smaller_than_the_directory_says(self, path):
        bombs.write(path, ("X.npy", bombs.bomb((10,))))
        refused(
            path,
            (
                r"'X' has shape \(10,\) and type float64, which take 80 bytes, and there are "
                r"3200000000 for it"
            ),
        )

    def test_a_stream_that_goes_on_behind_what_is_announced(self, path):
        start = bombs.header((10,))
        member = bombs.deflated(start, bombs.GIGABYTES), len(start) + 80, zipfile.ZIP_DEFLATED
        bombs.write(path, ("X.npy", member), checksums={"X.npy": zlib.crc32(start + bytes(80))})
        with little_memory():
            assert npz.read(path)["X"].tolist() == [0.0] * 10

    def test_an_uncompressed_array_that_is_not_there(self, path):
        start = bombs.header((20_000_000,))
        bombs.write(path, ("X.npy", (start, len(start) + 160_000_000, zipfile.ZIP_STORED)))
        with pytest.raises(DataError, match="is not a readable"):
            npz.read(path)
        refused(path, "holds no model.*its arrays would take 160,000,000 bytes", archive.load)

    def test_a_header_of_gigabytes(self, path):
        start = b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**32 - 1) + b"{"
        member = (
            bombs.deflated(start, bombs.GIGABYTES),
            len(start) + bombs.GIGABYTES,
            zipfile.ZIP_DEFLATED,
        )
        refused(bombs.write(path, ("X.npy", member)), "is not a readable .npz file")
        refused(path, "is not a readable .npz file", npz.headers)

    @pytest.mark.parametrize(
        ("shape", "descr"),
        [
            ((0, 10**12), "<f8"),
            ((10**12, 0), "<f8"),
            ((0, 10**6, 10**6), "<f8"),
            ((10**12,), "<U0"),
            ((2, 10**12), "|V0"),
        ],
    )
    @pytest.mark.parametrize("what", READERS)
    def test_arrays_that_hold_nothing_and_have_long_axes(self, path, shape, descr, what):
        """X of 0 rows and 10^12 columns needs no bytes, and names for all of its columns."""
        bombs.write(
            path, ("X.npy", bombs.stored(bombs.header(shape, descr))), ("y.npy", bombs.npy(Y))
        )
        refused(path, f"'X' holds nothing and has shape {re.escape(str(shape))}", READERS[what])

    @pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0,), (0, 1_000_000)])
    def test_other_empty_arrays_are_arrays(self, path, shape):
        np.savez(path, X=np.zeros(shape))
        assert npz.read(path)["X"].shape == shape

    @pytest.mark.parametrize("shape", [(-5,), (-2, -3), (2**63, 2**63), (2**32, 2**32)])
    def test_shapes_that_are_none(self, path, shape):
        bombs.write(path, ("X.npy", bombs.stored(bombs.header(shape))))
        refused(path, "is not")


class TestDirectories:
    def test_two_arrays_of_one_name(self, path):
        bombs.write(path, ("X.npy", bombs.npy(X)), ("X.npy", bombs.npy(Y)))
        refused(
            path,
            (
                "it holds two arrays of the name 'X': save plain arrays, without compression, "
                "with np.savez"
            ),
        )

    def test_too_many_arrays(self, path):
        bombs.write(path, *((f"{n}.npy", bombs.npy(Y)) for n in range(20_000)))
        with (
            little_memory(64_000_000),
            pytest.raises(DataError, match="it holds 20000 arrays, and 10000 are the most"),
        ):
            npz.read(path)

    @pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
    def test_packings_that_numpy_does_not_write(self, path, method):
        """LZMA takes as much memory as the packed bytes ask for."""
        with zipfile.ZipFile(path, "w", method) as file:
            file.writestr("X.npy", bombs.npy(X)[0])
        refused(path, "'X' is packed in a way that numpy does not write")

    def test_members_that_are_no_arrays_are_left_alone(self, path):
        bombs.write(
            path, ("X.npy", bombs.npy(X)), ("notes", bombs.bomb()), ("dir/", bombs.stored(b""))
        )
        with little_memory():
            assert list(npz.read(path)) == list(npz.headers(path)) == ["X"]


def test_a_stream_of_few_numbers_whose_learner_would_need_gigabytes(tmp_path):
    """RLS keeps matrices of features x features; a file without them, for 30,000 features, has half
    a megabyte.
    """
    model = RVFLClassifier(10, random_state=0, alpha=1.0, activation="sigmoid").partial_fit(
        X, Y, classes=[0, 1]
    )
    save_stream(model, tmp_path / "whole.npz")
    B = 30_000
    parts = {"W": np.zeros((3, B)), "bias": np.zeros(B), "state b": np.zeros((1, B, 1))}
    path = changed(tmp_path / "whole.npz", tmp_path / "part.npz", **parts)
    refused(
        path, r"state A has shape \(1, 10, 10\), which is not \(1, 30000, 30000\)", resume_stream
    )


@pytest.mark.parametrize("shape", [(2**40,), (2**20, 2**20), (2**62,), (2**63, 0), (3, 2**40, 5)])
@pytest.mark.parametrize("count", [1, 10_000])
def test_messages_that_announce_gigabytes(shape, count):
    name = struct.pack("<HBB", 1, 0, len(shape)) + b"x" + struct.pack(f"<{len(shape)}Q", *shape)
    message = struct.pack("<I", count) + count * name + bytes(64)
    with little_memory(8_000_000), pytest.raises(codec.WireError):
        codec.unpack(message)

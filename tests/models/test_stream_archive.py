"""Streams that are saved and taken up again: the same bits, nothing unpickled, and nothing in a
file taken on trust.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peerlearn import ADMM, Averaging, RVFLClassifier, RVFLRegressor, SimulatedNetwork, graphs
from peerlearn.algorithms.streaming import DiffusionLMS, DiffusionRLS, StreamConsensus, StreamExact
from peerlearn.algorithms.streaming.learner import learners
from peerlearn.errors import DataError, InputError, PeerlearnError
from peerlearn.models.stream_archive import resume_stream, save_stream
from tests.support.archives import any_array, any_json, arrays_in, changed
from tests.support.split_network import run_apart

RNG = np.random.default_rng(0)
X = RNG.standard_normal((150, 4))
THIRDS = np.digitize(X[:, 0], [-0.4, 0.4])
LABELS = {
    "whole": THIRDS,
    "small": THIRDS.astype(np.uint8),
    "two": np.where(X[:, 0] > 0, 7, -7),
    "real": THIRDS.astype(float),
    "truths": X[:, 0] > 0,
    "text": np.array(["low", "mid", "höher"])[THIRDS],
}
CASES = (
    *(make() for make in learners().values()),
    StreamConsensus(every=2, forgetting=0.9, variant="thesis"),
    StreamConsensus(averaging=Averaging("chebyshev", 1e-7, stopping="messages")),
    StreamExact(forgetting=0.5, averaging=Averaging("plain", 1e-9, max_rounds=1000)),
    DiffusionLMS(0.01, normalised=False, every=3),
    *(make(threshold=0.3, every=2) for make in (StreamConsensus, DiffusionRLS, DiffusionLMS)),
)


def ring():
    return SimulatedNetwork(graphs.ring(4))


def streamed(y="whole", kind=RVFLClassifier, rows=50, **options):
    usual = {"alpha": 1.0, "activation": "sigmoid", "random_state": 0, "network": ring()}
    model = kind(10, **{**usual, **options})
    targets = LABELS[y] if isinstance(y, str) else y
    first = {"classes": np.unique(targets)} if kind is RVFLClassifier else {}
    for start in range(0, rows, 7):
        model.partial_fit(X[start : start + 7], targets[start : start + 7], **first)
    return model


def goes_on(model, again, y):
    """Both learn the same from here, to the last bit."""
    for rows in (slice(50, 51), slice(51, 51), slice(51, 53), slice(53, 150)):
        for each in (model, again):
            each.partial_fit(X[rows], y[rows])
        np.testing.assert_array_equal(again.coefficients_, model.coefficients_)
        assert again.report_ == model.report_
    assert np.array_equal(again.predict(X), model.predict(X))
    for name, array in model._stream.state.items():
        np.testing.assert_array_equal(again._stream.state[name], array, err_msg=name)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A good archive; tests must not change it."""
    path = tmp_path_factory.mktemp("streams") / "stream.npz"
    save_stream(streamed(stream=StreamConsensus(threshold=0.1)), path)
    return path


class TestResumed:
    @pytest.mark.parametrize("stream", CASES, ids=str)
    def test_learns_on_with_the_same_bits(self, tmp_path, stream):
        model = streamed(stream=stream)
        save_stream(model, tmp_path / "s.npz")
        again = resume_stream(tmp_path / "s.npz", ring())
        assert again._stream.learner == stream
        assert again.report_ == model.report_
        assert again.report_.iterations == 8
        goes_on(model, again, THIRDS)

    @pytest.mark.parametrize("name", list(learners()))
    def test_learners_that_were_named_keep_their_name(self, tmp_path, name):
        model = streamed(stream=name)
        save_stream(model, tmp_path / "s.npz")
        again = resume_stream(tmp_path / "s.npz", ring())
        assert again.stream == name
        goes_on(model, again, THIRDS)

    @pytest.mark.parametrize("y", list(LABELS))
    def test_whatever_the_labels(self, tmp_path, y):
        model = streamed(y)
        save_stream(model, tmp_path / "s.npz")
        again = resume_stream(tmp_path / "s.npz", ring())
        np.testing.assert_array_equal(again.classes_, model.classes_)
        assert again.classes_.dtype == model.classes_.dtype
        goes_on(model, again, LABELS[y])

    @pytest.mark.parametrize("outputs", [(), (1,), (3,)])
    def test_whatever_the_outputs(self, tmp_path, outputs):
        y = np.sin(X @ np.ones((4, *outputs)))
        model = streamed(y, RVFLRegressor, direct_links=True, activation="relu")
        save_stream(model, tmp_path / "s.npz")
        goes_on(model, resume_stream(tmp_path / "s.npz", ring()), y)

    @pytest.mark.parametrize("stream", list(learners()))
    def test_without_a_network(self, tmp_path, stream):
        model = streamed(network=None, stream=stream)
        save_stream(model, tmp_path / "s.npz")
        goes_on(model, resume_stream(tmp_path / "s.npz"), THIRDS)

    def test_without_a_random_state_the_features_are_those_that_were_drawn(self, tmp_path):
        for random_state in (None, np.random.RandomState(3)):
            model = streamed(random_state=random_state)
            save_stream(model, tmp_path / "s.npz")
            again = resume_stream(tmp_path / "s.npz", ring())
            np.testing.assert_array_equal(again.features_.W, model.features_.W)
            goes_on(model, again, THIRDS)

    def test_columns_are_known_by_name(self, tmp_path):
        frame = pd.DataFrame(X, columns=list("abcd"))
        model = RVFLRegressor(
            10, network=ring(), random_state=0, alpha=1.0, activation="sigmoid"
        ).partial_fit(frame, X[:, 0])
        save_stream(model, tmp_path / "s.npz")
        again = resume_stream(tmp_path / "s.npz", ring())
        np.testing.assert_array_equal(
            *(each.partial_fit(frame, X[:, 0]).coefficients_ for each in (model, again))
        )
        with pytest.raises(DataError, match="feature names should match"):
            again.partial_fit(frame[list("dcba")], X[:, 0])

    def test_agents_that_live_apart(self, tmp_path):
        graph, together = (
            graphs.ring(4),
            streamed(network=SimulatedNetwork(graphs.ring(4), exact_order=True)),
        )
        together.partial_fit(X[56:], THIRDS[56:])

        def first(network, k):
            model = RVFLClassifier(
                10, random_state=0, network=network, alpha=1.0, activation="sigmoid"
            )
            for start in range(0, 50, 7):
                own = [row for row in range(start, start + 7) if row % 4 == k]
                model.partial_fit(X[own], THIRDS[own], classes=[0, 1, 2])
            save_stream(model, tmp_path / f"{k}.npz")

        def then(network, k):
            own = [row for row in range(56, 150) if row % 4 == k]
            return (
                resume_stream(tmp_path / f"{k}.npz", network)
                .partial_fit(X[own], THIRDS[own])
                .coefficients_[0]
            )

        run_apart(graph, first, exact_order=True)
        np.testing.assert_array_equal(
            run_apart(graph, then, exact_order=True), together.coefficients_
        )

    def test_what_is_sent_later_is_added(self, tmp_path):
        model, network = streamed(), ring()
        save_stream(model, tmp_path / "s.npz")
        again = resume_stream(tmp_path / "s.npz", network).partial_fit(X, THIRDS)
        assert again.report_.sent == model.report_.sent + network.ledger.mark()
        assert (again._stream.rows, again._stream.chunks) == (206, 9)

    def test_parameters_may_not_change_afterwards_either(self, file):
        again = resume_stream(file, ring())
        with pytest.raises(
            InputError, match=r"alpha was changed from 1\.0 to 2\.0 while a stream is under way"
        ):
            again.set_params(alpha=2.0).partial_fit(X, THIRDS)

    def test_a_resumed_stream_can_be_saved_again(self, file, tmp_path):
        save_stream(resume_stream(file, ring()), tmp_path / "s.npz")
        first, second = arrays_in(file), arrays_in(tmp_path / "s.npz")
        assert first.keys() == second.keys()
        for name in first:
            np.testing.assert_array_equal(first[name], second[name], err_msg=name)

    @pytest.mark.parametrize(
        "memory", [lambda a: a.astype(">f8"), np.asfortranarray], ids=["byte order", "fortran"]
    )
    def test_machines_that_keep_numbers_otherwise(self, file, tmp_path, memory):
        turned = {
            name: memory(array) for name, array in arrays_in(file).items() if array.dtype == "f8"
        }
        again = resume_stream(changed(file, tmp_path / "s.npz", **turned), ring())
        goes_on(resume_stream(file, ring()), again, THIRDS)


class TestSaving:
    def test_nothing_is_pickled(self, file):
        held = arrays_in(file)  # read with allow_pickle=False
        assert {"about", "W", "bias", "classes", "state b", "state A", "state P"} <= held.keys()
        about = json.loads(held["about"].item())
        assert about["learner"] == {"name": "consensus", **asdict(StreamConsensus(threshold=0.1))}
        assert about["passed"]["rows"] == 56

    def test_models_without_a_stream(self, tmp_path):
        for model in (
            RVFLClassifier(alpha=1.0, activation="sigmoid"),
            RVFLClassifier(10, alpha=1.0, activation="sigmoid").fit(X, THIRDS),
            streamed().fit(X, THIRDS),
            object(),
        ):
            with pytest.raises(
                InputError,
                match="only a model that learns from a stream can be saved as one: call par",
            ):
                save_stream(model, tmp_path / "s.npz")
        assert list(tmp_path.iterdir()) == []

    def test_learners_that_are_not_built_in(self, tmp_path):
        class Mine(StreamExact):
            name = "mine"

        with pytest.raises(
            InputError, match="a stream that Mine learns from cannot be saved: it is not built in"
        ):
            save_stream(streamed(stream=Mine()), tmp_path / "s.npz")

    def test_solvers_are_left_to_fit(self, tmp_path):
        save_stream(streamed(solver=ADMM(1e-3)), tmp_path / "s.npz")
        assert resume_stream(tmp_path / "s.npz", ring()).solver == "auto"

    def test_a_disk_that_is_full_leaves_the_old_stream(self, tmp_path, monkeypatch):
        def full(_file):
            raise OSError(28, "No space left on device")

        save_stream(streamed(), tmp_path / "s.npz")
        before = (tmp_path / "s.npz").read_bytes()
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(
            InputError, match=r"s\.npz cannot be written \(No space left on device\): make room"
        ):
            save_stream(streamed("two"), tmp_path / "s.npz")
        assert [path.name for path in tmp_path.iterdir()] == ["s.npz"]
        assert (tmp_path / "s.npz").read_bytes() == before

    def test_folders_that_are_not_there(self, tmp_path):
        with pytest.raises(
            InputError, match=r"s\.npz cannot be written \(No such file or directory\)"
        ):
            save_stream(streamed(), tmp_path / "none" / "s.npz")
        with pytest.raises(DataError, match=r"there is no stream .*s\.npz: check the path"):
            resume_stream(tmp_path / "s.npz")


LEARNER = {"name": "consensus", **asdict(StreamConsensus(threshold=0.1))}
PASSED = {"chunks": 8, "rows": 56, "sent": {}}


LAZY = (
    np.eye(4) / 2 + np.roll(np.eye(4), 1, axis=0) / 4 + np.roll(np.eye(4), -1, axis=0) / 4
)  # other weights of a ring


class TestWrongFiles:
    def refused(self, path, sentence, network=None):
        with pytest.raises(
            DataError,
            match=(
                rf"s\.npz holds no stream that can be resumed, because .*{sentence}.*: give "
                r"the file that save"
            ),
        ):
            resume_stream(path, ring() if network is None else network)

    @pytest.mark.parametrize(
        ("network", "sentence"),
        [
            (
                SimulatedNetwork(graphs.ring(5)),
                r"its number of agents are not those of this network \(4, 5\)",
            ),
            (
                SimulatedNetwork(graphs.star(4)),
                "its links or weights are not those of this network",
            ),
            (
                SimulatedNetwork(graphs.ring(4), LAZY),
                "its links or weights are not those of this network",
            ),
        ],
    )
    def test_another_network(self, file, tmp_path, network, sentence):
        self.refused(changed(file, tmp_path / "s.npz"), sentence, network)

    def test_no_network_and_another_agent(self, file, tmp_path):
        with pytest.raises(
            DataError, match=r"its number of agents are not those of this network \(4, 1\)"
        ):
            resume_stream(file)
        about = json.loads(arrays_in(file)["about"].item())
        self.refused(
            changed(file, tmp_path / "s.npz", {"network": {**about["network"], "hosted": [2]}}),
            "agents hosted",
        )

    @pytest.mark.parametrize(
        ("change", "sentence"),
        [
            ({"drop": ["about"]}, "it has no array 'about'"),
            ({"drop": ["state A"]}, "it has no array 'state A'"),
            ({"drop": ["state silences"]}, "it has no array 'state silences'"),
            ({"drop": ["bias"]}, "it has no array 'bias'"),
            (
                {"state b": np.zeros((4, 9, 3))},
                r"state b has shape \(4, 9, 3\), which is not \(4, 10, any\)",
            ),
            ({"state b": np.zeros((4, 10, 2))}, "it has 3 classes, but coefficients for 2 outputs"),
            (
                {"state P": np.zeros((4, 10, 9))},
                r"state P has shape \(4, 10, 9\), which is not \(4, 10, 10\)",
            ),
            ({"state A": np.full((4, 10, 10), np.nan)}, "state A has NaN or infinite values"),
            (
                {"state seen": np.zeros(4, np.float32)},
                "state seen has type float32, which is not float64",
            ),
            ({"about": {"version": 2}}, "it has version 2"),
            ({"about": {"class": "Popen"}}, "its class is 'Popen'"),
            ({"about": {"network": None}}, "its network is None, which is no dict"),
            ({"about": {"learner": "exact"}}, "its learner is 'exact', which is no dict"),
            (
                {"about": {"learner": {"name": "magic"}}},
                "its learner cannot be created .*stream 'magic' is not known",
            ),
            (
                {"about": {"learner": {**LEARNER, "speed": 1}}},
                "its learner cannot be created .*'speed'",
            ),
            (
                {"about": {"learner": {**LEARNER, "every": 0}}},
                "its learner cannot be created .*every is 0",
            ),
            (
                {"about": {"learner": {**LEARNER, "averaging": {"x": 1}}}},
                "its learner cannot be created",
            ),
            ({"about": {"passed": {**PASSED, "rows": None}}}, "its counts 'passed' are not valid"),
            ({"about": {"passed": {"chunks": 8}}}, "its counts 'passed' are not valid"),
            (
                {"about": {"passed": {**PASSED, "chunks": float("inf")}}},
                "its counts 'passed' are not valid",
            ),
            (
                {"about": {"passed": {**PASSED, "sent": {"parcels": 1}}}},
                "its counts 'passed' are not valid",
            ),
            ({"about": {"parameters": {"alpha": "much"}}}, "alpha"),
            ({"about": {"parameters": {"alpha": 0.0}}}, "alpha"),
            ({"about": {"parameters": {"alpha": float("nan")}}}, "alpha"),
        ],
    )
    def test_parts_that_do_not_fit(self, file, tmp_path, change, sentence):
        self.refused(changed(file, tmp_path / "s.npz", **change), sentence)

    def test_files_that_were_cut_short(self, file, tmp_path):
        whole = file.read_bytes()
        for length in (0, 10, len(whole) // 2, len(whole) - 1):
            (tmp_path / "s.npz").write_bytes(whole[:length])
            self.refused(tmp_path / "s.npz", "")

    def test_pickled_objects_are_never_loaded(self, file, tmp_path):
        self.refused(
            changed(file, tmp_path / "s.npz", classes=np.array([print, 1, 2], dtype=object)),
            "Object arrays",
        )

    @settings(deadline=None)
    @given(data=st.data())
    def test_other_arrays_and_entries_are_refused_or_usable(self, file, data):
        held = arrays_in(file)
        text = json.loads(held.pop("about").item())
        names = sorted(
            held.keys() - {"state silences"}
        )  # how often agents were silent is only told
        arrays = data.draw(st.dictionaries(st.sampled_from(names), any_array, max_size=2))
        about = data.draw(st.dictionaries(st.sampled_from(sorted(text)), any_json, max_size=2))
        entry = data.draw(st.sampled_from(["learner", "passed", "network"]))
        inner = data.draw(
            st.dictionaries(st.sampled_from(sorted(text[entry])), any_json, max_size=1)
        )
        path = changed(
            file, file.with_name("other.npz"), {**about, entry: {**text[entry], **inner}}, **arrays
        )
        try:
            again = resume_stream(path, ring())
        except PeerlearnError:
            return
        assert len(again.predict(X)) == len(X)


def test_a_stream_of_0_6_with_a_threshold_goes_on():
    """stream-0.6.npz was saved by release 0.6.0, after 60 rows of this target."""
    network = SimulatedNetwork(graphs.ring(3))
    model = resume_stream(Path(__file__).parent / "stream-0.6.npz", network)
    rows = np.random.default_rng(0).standard_normal((60, 3))
    target = rows[:, 0] - rows[:, 1]
    # What 0.6.0 predicted before it saved the stream.
    expected = [-0.18741352, -0.21147033, -0.06451266]
    np.testing.assert_allclose(model.predict(rows[:3]), expected, atol=1e-8)
    before = np.mean((model.predict(rows) - target) ** 2)
    for _ in range(5):
        model.partial_fit(rows, target)
    assert np.mean((model.predict(rows) - target) ** 2) < before
    assert "agents kept silent" in model.report_.note
    assert model.report_.note.startswith("a stream of 360 rows so far")

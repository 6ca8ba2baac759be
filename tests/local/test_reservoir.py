"""The reservoir against its formula, written out slowly; and that a sequence's bits are its own."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse.linalg import ArpackNoConvergence
from threadpoolctl import threadpool_limits

from peerlearn.arrays import Array, one_blas_thread
from peerlearn.errors import InputError
from peerlearn.local.harvest import harvest_problems
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.records import TIMES
from peerlearn.local.reservoir import Reservoir
from peerlearn.local.sparse_product import SparseRows
from peerlearn.local.spectral_radius import spectral_radius

LENGTHS = (700, 3, 2 * TIMES, TIMES, TIMES + 1, 40, 0, 1, 600, 10, 333)


def drawn(units: int = 30, **settings: float) -> Reservoir:
    usual = {
        "spectral_radius": 0.9,
        "density": 0.25,
        "input_scaling": 0.5,
        "feedback_scaling": 0.3,
        "leak": 0.7,
        "seed": 3,
    }
    inputs, outputs = int(settings.pop("inputs", 2)), int(settings.pop("outputs", 2))
    return Reservoir.draw(inputs, outputs, units=units, **usual | settings)


def series(
    reservoir: Reservoir, lengths: tuple[int, ...] = LENGTHS, seed: int = 0
) -> tuple[list[Array], list[Array]]:
    rng = np.random.default_rng(seed)
    outputs = reservoir.W_fb.shape[1]
    x = [rng.uniform(-1, 1, (length, reservoir.inputs)) for length in lengths]
    return x, [rng.uniform(-1, 1, (length, outputs)) for length in lengths]


def slowly(
    R: Reservoir,
    x: Array,
    d: Array | None = None,
    v: Array | None = None,
    readout: Array | None = None,
):
    """Rows [1, x[n], h[n]] and what is fed back, from the formula: one sequence, one step after the
    other.
    """
    h, y, rows, outputs = np.zeros(R.units), np.zeros(R.W_fb.shape[1]), [], []
    for n in range(len(x)):
        inside = R.W_in @ np.concatenate([[1.0], x[n]]) + R.W @ h + R.W_fb @ y
        if v is not None:
            inside = inside + v[n]
        h = (1 - R.leak) * h + R.leak * np.tanh(inside)
        rows.append(np.concatenate([[1.0], x[n], h]))
        if d is not None:
            y = d[n]
        if readout is not None:
            y = readout.T @ rows[-1]
        outputs.append(y)
    return np.array(rows).reshape(len(x), R.width), np.array(outputs).reshape(
        len(x), R.W_fb.shape[1]
    )


@pytest.mark.parametrize("leak", [1.0, 0.7])
@pytest.mark.parametrize("feedback_scaling", [0.0, 0.3])
@pytest.mark.parametrize("inputs", [1, 3])
def test_state_matrix_is_the_formula(leak: float, feedback_scaling: float, inputs: int) -> None:
    R = drawn(leak=leak, feedback_scaling=feedback_scaling, inputs=inputs)
    x, d = series(R)
    for own, teacher, H in zip(x, d, R.harvest(x, d), strict=True):
        expected, _ = slowly(R, own, teacher)
        assert H.shape == (len(own), 1 + inputs + 30)
        np.testing.assert_allclose(H, expected, rtol=0, atol=1e-13)
        np.testing.assert_array_equal(H[:, : 1 + inputs], expected[:, : 1 + inputs])


def test_the_teacher_is_seen_one_step_later() -> None:
    R = drawn()
    (x,), (d,) = series(R, (20,))
    other = d.copy()
    other[7] += 1.0
    before, after = R.harvest([x], [d])[0], R.harvest([x], [other])[0]
    np.testing.assert_array_equal(before[:8], after[:8])
    np.testing.assert_allclose(
        np.arctanh((after[8, 3:] - 0.3 * after[7, 3:]) / 0.7)
        - np.arctanh((before[8, 3:] - 0.3 * before[7, 3:]) / 0.7),
        R.W_fb.sum(axis=1),
        atol=1e-12,
    )


def test_without_feedback_the_teacher_does_not_matter() -> None:
    R = drawn(feedback_scaling=0.0)
    x, d = series(R)
    assert not R.feedback
    assert all(np.array_equal(a, b) for a, b in zip(R.harvest(x, d), R.harvest(x), strict=True))


def test_noise_is_inside_the_tanh_and_comes_from_the_sequences_own_generator() -> None:
    R = drawn()
    x, d = series(R)

    def generators() -> list[np.random.Generator]:
        return [np.random.default_rng((5, j)) for j in range(len(x))]

    noisy = R.harvest(x, d, noise=generators(), amplitude=0.01)
    for own, teacher, H, rng in zip(x, d, noisy, generators(), strict=True):
        v = rng.uniform(-0.01, 0.01, (len(own), R.units))
        np.testing.assert_allclose(H, slowly(R, own, teacher, v)[0], rtol=0, atol=1e-13)
    some = R.harvest(x[4:6], d[4:6], noise=generators()[4:6], amplitude=0.01)
    assert [H.tobytes() for H in some] == [H.tobytes() for H in noisy[4:6]]


def test_noise_has_mean_zero_and_is_not_there_unless_asked_for() -> None:
    R = drawn(leak=1.0, spectral_radius=0.0, input_scaling=0.0, feedback_scaling=0.0)
    x, _ = series(R, (2000,))
    v = np.arctanh(R.harvest(x, noise=[np.random.default_rng(0)], amplitude=1e-3)[0][:, 3:])
    assert abs(v.mean()) < 5 * 1e-3 / np.sqrt(3 * v.size)  # U[0, 1e-3] would have 5e-4
    assert -1e-3 <= v.min() < -0.99e-3
    assert 0.99e-3 < v.max() <= 1e-3
    assert not R.harvest(x, noise=[np.random.default_rng(0)], amplitude=0.0)[0][:, 3:].any()


@pytest.mark.parametrize(("units", "density"), [(30, 0.25), (100, 1.0), (300, 0.25), (150, 0.05)])
def test_bits_do_not_depend_on_who_else_is_there(units: int, density: float) -> None:
    R = drawn(units, density=density)
    x, d = series(R, tuple(np.random.default_rng(1).integers(1, 120, 50)))
    b = np.random.default_rng(2).normal(size=(50, R.width, 2)) / R.width
    with one_blas_thread():
        together, ran = [H.tobytes() for H in R.harvest(x, d)], R.run(x, b)
        for size in (1, 3, 7):
            for start in range(0, 50, size):
                some = slice(start, start + size)
                assert [H.tobytes() for H in R.harvest(x[some], d[some])] == together[some]
                alone = R.run(x[some], b[some])
                assert [y.tobytes() for y in alone.outputs] == [
                    y.tobytes() for y in ran.outputs[some]
                ]
        turned = R.harvest(x[::-1], d[::-1])
    assert [H.tobytes() for H in turned] == together[::-1]


def test_sparse_and_dense_products_agree() -> None:
    R = drawn(200, density=0.03)
    assert isinstance(R.joined, SparseRows)
    dense = Reservoir(R.W_in, R.W, R.W_fb, R.leak)
    dense.__dict__["joined"] = np.hstack([R.W, R.W_fb, R.W_in])
    x, d = series(R)
    for a, b in zip(R.harvest(x, d), dense.harvest(x, d), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)
    assert isinstance(drawn(200, density=0.8).joined, np.ndarray)


def test_blocks_are_the_whole_in_order_of_time() -> None:
    R = drawn()
    x, d = series(R)
    whole, seen = R.harvest(x, d), [0] * len(x)
    for j, times, rows in R.blocks(x, d):
        assert times.start == seen[j]
        assert 0 < times.stop - times.start <= TIMES
        np.testing.assert_array_equal(rows, whole[j][times])
        seen[j] = times.stop
    assert tuple(seen) == LENGTHS


def test_a_stream_goes_on_where_it_was() -> None:
    R = drawn()
    x, d = series(R, (60, 45, 52))
    whole = R.harvest(x, d)
    h, y = np.zeros((3, R.units)), np.zeros((3, 2))
    for start, stop in pairwise((0, 1, 10, 40, 45)):
        chunks, teachers = [one[start:stop] for one in x], [one[start:stop] for one in d]
        rows = R.harvest(chunks, teachers, h0=h, y0=y)
        for own, part in zip(whole, rows, strict=True):
            np.testing.assert_array_equal(part, own[start:stop])
        h, y = (
            np.stack([one[-1, -R.units :] for one in rows]),
            np.stack([one[-1] for one in teachers]),
        )


def test_closed_loop_is_the_formula() -> None:
    R = drawn()
    x, _ = series(R)
    b = np.random.default_rng(2).normal(size=(len(x), R.width, 2)) / R.width
    ran = R.run(x, b)
    assert (ran.diverged == -1).all()
    for own, readout, y in zip(x, b, ran.outputs, strict=True):
        np.testing.assert_allclose(y, slowly(R, own, readout=readout)[1], rtol=0, atol=1e-12)


def test_a_closed_loop_goes_on_where_it_was() -> None:
    R = drawn()
    x, _ = series(R, (50, 300))
    b = np.random.default_rng(2).normal(size=(2, R.width, 2)) / R.width
    whole = R.run(x, b, y0=np.ones((2, 2)))
    begun, y0 = [one[:30] for one in x], np.ones((2, 2))
    first = R.run(begun, b, y0=y0)
    h = np.stack([rows[-1, -R.units :] for rows in R.harvest(begun, first.outputs, y0=y0)])
    rest = R.run([one[30:] for one in x], b, h0=h, y0=np.stack([y[-1] for y in first.outputs]))
    for y, start, end in zip(whole.outputs, first.outputs, rest.outputs, strict=True):
        np.testing.assert_array_equal(y, np.concatenate([start, end]))


def test_a_forecast_hears_its_own_outputs_as_inputs() -> None:
    R = drawn()
    x, _ = series(R, (TIMES + 50, 20))
    b = np.random.default_rng(2).normal(size=(2, R.width, 2)) / R.width
    ran = R.run(x, b, next_input=2.0)
    for own, readout, y in zip(
        x, b, ran.outputs, strict=True
    ):  # the second ends while the first goes on
        heard = np.concatenate([own[:1], 2.0 * y[:-1]])
        np.testing.assert_allclose(y, slowly(R, heard, readout=readout)[1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("growth", [2.0, 1e200, np.nan])
def test_divergence_is_reported_and_not_returned_as_numbers(growth: float) -> None:
    R = drawn(inputs=1, outputs=1)
    x, b = [np.full((600, 1), 0.5)] * 3, np.zeros((3, R.width, 1))
    b[1, 1] = growth  # x[n+1] = growth x[n]
    ran = R.run(x, b, next_input=1.0, limit=1000.0)
    first = 10 if growth == 2.0 else 0  # 2^10 is the first above 1000
    assert ran.diverged.tolist() == [-1, first, -1]
    assert np.isnan(ran.outputs[1][first:]).all()
    np.testing.assert_array_equal(ran.outputs[1][:first, 0], 0.5 * 2.0 ** np.arange(1, 1 + first))
    assert not ran.outputs[0].any()
    assert R.run(x, b, next_input=1.0).diverged[1] == (
        499 if growth == 2.0 else first
    )  # 2^498 < 1e150 < 2^499


def test_a_sequence_that_has_ended_does_not_go_on_growing() -> None:
    R = drawn(inputs=1, outputs=1)
    x, b = [np.full((length, 1), 0.5) for length in (5, 400)], np.zeros((2, R.width, 1))
    b[0, 1] = 1.0  # past its end x would soon be beyond all numbers
    ran = R.run(x, b, next_input=1e3)
    assert ran.diverged.tolist() == [-1, -1]
    np.testing.assert_allclose(ran.outputs[0][:, 0], 0.5 * 1e3 ** np.arange(5.0))


@pytest.mark.parametrize(
    ("units", "density", "seed"),
    [
        (5, 0.5, 0),
        (80, 0.25, 1),
        (120, 0.05, 2),
        (300, 0.25, 3),
        (400, 0.01, 4),
        *((101, 0.02, seed) for seed in range(9)),
    ],
)
def test_spectral_radius_is_that_of_all_eigenvalues(units: int, density: float, seed: int) -> None:
    R = drawn(units, density=density, spectral_radius=0.85, seed=seed)
    with one_blas_thread():
        np.testing.assert_allclose(np.abs(np.linalg.eigvals(R.W)).max(), 0.85, rtol=1e-10)
    kept = np.count_nonzero(R.W) / R.W.size
    assert abs(kept - density) < 5 * np.sqrt(density * (1 - density) / R.W.size)


def test_spectral_radius_of_matrices_that_arnoldi_does_not_like() -> None:
    assert spectral_radius(np.kron(np.eye(75), [[0.0, -2.0], [2.0, 0.0]])) == pytest.approx(
        2.0
    )  # all on one circle
    assert spectral_radius(np.roll(np.eye(150), 1, axis=0)) == pytest.approx(
        1.0
    )  # one loop through all units
    assert (
        spectral_radius(np.triu(np.ones((150, 150)), 1)) == 0
    )  # one Jordan block: rounding would give 0.8
    few = np.triu(np.ones((150, 150)), 1)
    few[7, 3] = 0.5  # units 3 to 7 are in loops, the others in none
    assert spectral_radius(few) == pytest.approx(np.abs(np.linalg.eigvals(few[3:8, 3:8])).max())
    assert spectral_radius(np.diag(np.arange(150.0)) - 140 * np.eye(150)) == 140
    assert spectral_radius(np.zeros((150, 150))) == 0


def test_spectral_radius_where_arnoldi_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object, **__: object) -> None:
        raise ArpackNoConvergence("no", np.empty(0), np.empty((0, 0)))

    monkeypatch.setattr("peerlearn.local.spectral_radius.eigs", failing)
    assert spectral_radius(np.diag(np.full(149, 0.5), 1) + 2.0 * np.eye(150)[::-1]) > 2.0


def test_what_is_drawn_depends_on_the_seed_alone() -> None:
    a, c = drawn(150), drawn(150, seed=4)
    with threadpool_limits(2):
        b = drawn(150)
    assert a.W.tobytes() == b.W.tobytes()
    assert a.W_in.tobytes() == b.W_in.tobytes()
    assert a.W_fb.tobytes() == b.W_fb.tobytes()
    assert not np.array_equal(a.W, c.W)
    assert 0.45 < np.abs(a.W_in).max() <= 0.5
    assert 0.27 < np.abs(a.W_fb).max() <= 0.3


def test_a_radius_of_zero_has_no_memory_and_no_loop_no_radius() -> None:
    assert not drawn(spectral_radius=0.0).W.any()
    with pytest.raises(InputError, match="without a loop"):
        drawn(50, density=1e-4)
    with pytest.raises(InputError, match="without a loop"):
        drawn(200, density=1e-3)


@pytest.mark.parametrize("feedback_scaling", [0.0, 0.3])
def test_problems_are_those_of_all_rows_after_the_washout(feedback_scaling: float) -> None:
    R = drawn(feedback_scaling=feedback_scaling)
    lengths, owners, washout = (
        (400, 30, 700, 25, 21, 21, 22, 23, 24, 25),
        [0, 0, 0, 1, 2, 2, 3, 3, 3, 3],
        20,
    )
    x, d = series(R, lengths)
    problems, ends = harvest_problems(
        R.blocks(x, d, owners=owners), d, owners, washout=washout, width=R.width
    )
    H = [h[washout:] for h in R.harvest(x, d)]
    mine = [[j for j, owner in enumerate(owners) if owner == k] for k in range(4)]
    rows = LeastSquares.of_rows(
        [np.concatenate([H[j] for j in own]) for own in mine],
        [np.concatenate([d[j][washout:] for j in own]) for own in mine],
    )
    assert problems.rows.tolist() == [1070, 5, 2, 14]
    alpha = np.full(4, 0.1)
    np.testing.assert_allclose(problems.ridge(alpha), rows.ridge(alpha), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(problems.moment, rows.moment, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(problems.triangles(), rows.triangles(), rtol=1e-12, atol=1e-12)
    assert all(np.array_equal(end, h[-1]) for end, h in zip(ends, H, strict=True))


@pytest.mark.parametrize("held", [1, 2**26])
def test_an_agents_problem_does_not_depend_on_the_others(
    held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where sequences are so many that they cannot all run together."""
    monkeypatch.setattr("peerlearn.local.reservoir.HELD", held)
    R, rng = drawn(), np.random.default_rng(1)
    if held == 1:
        assert [(some.start, some.stop) for some in R._packs([0] * 5 + [1] * 11 + [2, 2, 3])] == [
            (0, 5),
            (5, 13),
            (13, 19),
        ]
    owners = np.repeat([0, 1, 2, 3], [3, 11, 18, 2]).tolist()
    x, d = series(R, tuple(rng.integers(30, 400, len(owners))))
    together, _ = harvest_problems(
        R.blocks(x, d, owners=owners), d, owners, washout=20, width=R.width
    )
    for k in range(4):
        own = slice(owners.index(k), owners.index(k) + owners.count(k))
        zeros = [0] * owners.count(k)
        alone, _ = harvest_problems(
            R.blocks(x[own], d[own], owners=zeros), d[own], zeros, washout=20, width=R.width
        )
        assert alone.triangles()[0].tobytes() == together.triangles()[k].tobytes()
        assert alone.moment[0].tobytes() == together.moment[k].tobytes()
    parts = R.run(x, np.ones((len(x), R.width, 2)) / R.width)
    monkeypatch.undo()
    assert [y.tobytes() for y in parts.outputs] == [
        y.tobytes() for y in R.run(x, np.ones((len(x), R.width, 2)) / R.width).outputs
    ]

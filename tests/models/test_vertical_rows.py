"""Vertical models whose agents do not have the same rows, or targets, or settings."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from peerlearn import SimulatedNetwork, graphs
from peerlearn.errors import DataError, InputError
from peerlearn.models.vertical import VerticalRVFLClassifier, VerticalRVFLRegressor
from tests.support.split_network import run_apart


def network(agents=3):
    return SimulatedNetwork(graphs.ring(agents))


class TestRows:
    """Agents that do not have the same rows, or not in the same order."""

    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 6))
    y = np.where(X.sum(axis=1) > 0, "up", "down")
    ids = np.array([f"case {i}" for i in range(60)])

    def tables(self, *rows):
        return [self.X[own][:, 2 * k : 2 * k + 2] for k, own in enumerate(rows)]

    def model(self, **options):
        return VerticalRVFLClassifier(6, random_state=0, network=network(3), **options)

    def test_another_order_is_refused(self):
        other = np.arange(60)
        other[[20, 40]] = other[[40, 20]]
        with pytest.raises(
            DataError,
            match=r"agents disagree on the identifiers of rows, first at row 20 "
            r"\(counted from 0; all have 60 rows\): "
            r"give all agents the same rows in the same order, or set rows='intersection'",
        ):
            self.model().fit(
                self.tables(np.arange(60), np.arange(60), other),
                [self.y, self.y, self.y[other]],
                [self.ids, self.ids, self.ids[other]],
            )

    def test_missing_rows_are_refused_also_without_identifiers(self):
        with pytest.raises(
            DataError, match=r"first at row 55 \(counted from 0; they have from 55 to 60 rows\)"
        ):
            self.model().fit(
                self.tables(np.arange(60), np.arange(55), np.arange(60)),
                [self.y, self.y[:55], self.y],
            )

    def test_intersection(self):
        rows = [self.rng.permutation(60)[:n] for n in (50, 55, 60)]
        common = set(rows[0]) & set(rows[1]) & set(rows[2])
        ids = [self.ids[own] for own in rows]
        model = self.model(rows="intersection").fit(
            self.tables(*rows), [self.y[own] for own in rows], ids
        )
        orders = [own[kept] for own, kept in zip(rows, model.kept_rows_, strict=True)]
        np.testing.assert_array_equal(orders[0], orders[1])
        np.testing.assert_array_equal(orders[0], orders[2])
        assert set(orders[0].tolist()) == common
        together = self.model().fit(self.tables(*[orders[0]] * 3), self.y[orders[0]])
        for own, other in zip(model.coefficients_, together.coefficients_, strict=True):
            np.testing.assert_allclose(own, other, atol=1e-6)
        assert together.kept_rows_ is None

    def test_intersection_apart(self):
        rows = [np.arange(k, 50 + k) for k in range(3)]

        def work(own, k):
            model = VerticalRVFLClassifier(
                6, random_state=0, network=own, rows="intersection", row_key="ours"
            )
            return rows[k][
                model.fit(self.tables(*rows)[k], self.y[rows[k]], self.ids[rows[k]]).kept_rows_[0]
            ]

        orders = run_apart(graphs.ring(3), work)
        assert sorted(orders[0].tolist()) == list(range(2, 50))
        np.testing.assert_array_equal(orders[0], orders[1])

    def test_intersection_needs_identifiers(self):
        tables = self.tables(*[np.arange(60)] * 3)
        with pytest.raises(
            InputError, match="rows='intersection' needs identifiers: give ids, or data frames"
        ):
            self.model(rows="intersection").fit(tables, self.y)
        frames = [pd.DataFrame(own, index=self.ids) for own in tables]
        assert len(self.model(rows="intersection").fit(frames, self.y).kept_rows_[0]) == 60
        assert (
            len(self.model(rows="intersection").fit(self.X, self.y).kept_rows_[0]) == 60
        )  # one table for all

    def test_a_data_frames_index_identifies_rows(self):
        frames = [pd.DataFrame(own, index=self.ids) for own in self.tables(*[np.arange(60)] * 3)]
        model = self.model().fit(frames, self.y)
        assert model.score(frames, self.y) > 0.8
        with pytest.raises(DataError, match=r"disagree on the identifiers of rows, first at row 0"):
            self.model().fit([frames[0], frames[1], frames[2][::-1]], self.y)
        with pytest.raises(
            DataError, match=r"the identifiers of the rows to predict, first at row 0"
        ):
            model.predict([frames[0], frames[1], frames[2][::-1]])
        with pytest.raises(
            DataError, match=r"rows to predict, first at row 59 .* from 59 to 60 rows"
        ):
            model.predict([frames[0], frames[1], frames[2][:-1]])

    def test_targets_that_differ(self):
        other = self.y.copy()
        other[17] = "sideways"
        said = (
            r"agents disagree on y, first at row 17 \(counted from 0; all have 60 rows\): give "
            r"all agents the same"
        )
        with pytest.raises(DataError, match=said):
            self.model().fit(self.tables(*[np.arange(60)] * 3), [self.y, other, self.y])
        numbers = self.X[:, 0].copy()
        numbers[17] = np.nextafter(numbers[17], 9)
        with pytest.raises(DataError, match=said):
            VerticalRVFLRegressor(5, network=network(3)).fit(
                self.tables(*[np.arange(60)] * 3), [self.X[:, 0], numbers, self.X[:, 0]]
            )

    def test_every_agent_is_told(self):
        said = []

        def work(own, k):
            y = self.y if k else self.y[::-1]
            with pytest.raises(DataError) as caught:
                VerticalRVFLClassifier(5, random_state=0, network=own).fit(self.X[:, k : k + 2], y)
            said.append(str(caught.value))

        run_apart(graphs.ring(3), work)
        assert len(said) == 3
        assert len(set(said)) == 1

    def test_settings_that_differ_are_told(self):
        for name, values in {
            "n_hidden": [5, 6, 5],
            "alpha": [1.0, 1.0, 2.0],
            "solver": ["dual", "auto", "dual"],
            "rows": ["refuse", "intersection", "refuse"],
            "row_key": ["a", "b", "a"],
            "random_state": [1, 1, 2],
        }.items():

            def work(own, k, name=name, values=values):
                options = {"n_hidden": 5, "random_state": 0, name: values[k]}
                with pytest.raises(
                    InputError, match=r"agents disagree on .*: give all of them the same"
                ):
                    VerticalRVFLClassifier(network=own, **options).fit(
                        self.X[:, k : k + 2], self.y, self.ids
                    )

            run_apart(graphs.ring(3), work)

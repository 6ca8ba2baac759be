"""check_model: every model of the package passes it, and a model with any fault does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from peerlearn import ConjugateGradient, RVFLClassifier, RVFLRegressor, S3VMClassifier
from peerlearn.models.base import OwnAnswer, one_agent
from peerlearn.models.registry import models
from peerlearn.network.base import Counts
from peerlearn.testing import check_model, model_checks
from peerlearn.testing.conventions import convention_checks

CHECKS = [
    pytest.param(check, id=f"{name}-{what}")
    for name, kind in models().items()
    for what, check in model_checks(kind)
]


@pytest.mark.parametrize("check", CHECKS)
def test_every_model_is_what_its_class_states(check):
    check()


def test_a_model_with_settings_is_tried_with_these():
    model = RVFLRegressor(
        6, 0.5, solver=ConjugateGradient(averaging="tree"), random_state=1, activation="sigmoid"
    )
    for _, check in model_checks(model):
        check()


# Wrong models: each is right but for one fault.


class LooksAcrossAgents:
    """In simulation the mean of all agents is at hand; elsewhere it is not."""

    def train(self, setup, *given):
        answer = super().train(setup, *given)
        mean = answer.coefficients.sum(axis=0) / setup.network.size
        return replace(answer, coefficients=np.stack([mean] * len(answer.coefficients)))


class LearnsFromOwnRowsOnly:
    def draw(self, *given):
        self.features = "fixed"  # the same ones at all agents
        return super().draw(*given)

    def train(self, setup, inputs, outputs):
        alone = replace(setup, network=one_agent())
        self.fit_intercept = False  # one row about its own mean teaches nothing
        train = super().train
        each = [train(alone, [X], [y]) for X, y in zip(inputs, outputs, strict=True)]
        coefficients = np.stack([answer.coefficients[0] for answer in each])
        self.intercept_ = np.zeros((len(inputs), outputs[0].shape[1]))
        return OwnAnswer(coefficients, each[0].report)


class ForgetsAlpha:
    def train(self, *given):
        alpha, self.alpha = self.alpha, 1.0
        answer = super().train(*given)
        self.alpha = alpha
        return answer


class PenalisesPerAgent:
    def train(self, setup, *given):
        alpha, self.alpha = self.alpha, self.alpha * setup.network.size
        answer = super().train(setup, *given)
        self.alpha = alpha
        return answer


class KeepsAnAttributeOnError:
    def fit(self, X, y=None):
        self.calls_ = getattr(self, "calls_", 0) + 1
        return super().fit(X, y)


class ForgetsWhatItPredictsWith:
    def train(self, *given):
        self.offset_ = 1.0
        return super().train(*given)

    def agent_outputs(self, X, agents=slice(None)):
        return super().agent_outputs(X, agents) + self.offset_


class RestoresOtherCoefficients:
    def from_archive(self, reader):
        super().from_archive(reader)
        self.coefficients_ = self.coefficients_.astype(np.float32).astype(np.float64)


class SavesTooLittle:
    def to_archive(self):
        _, entries = super().to_archive()
        return {}, entries


class ReportsNothingSent:
    def fit(self, X, y=None):
        super().fit(X, y)
        self.report_ = replace(self.report_, sent=Counts())
        return self


class ComparesNoSettings:
    def common_settings(self, *given):
        return {}


class DropsTheFirstRow:
    """It does so where there is a network, so that the answer in one place is right."""

    def train(self, setup, inputs, outputs):
        if setup.network.size > 1:
            inputs, outputs = [X[1:] for X in inputs], [y[1:] for y in outputs]
        return super().train(setup, inputs, outputs)


class NeedsRows:
    def train(self, setup, inputs, outputs):
        inputs = [X - X.mean(axis=0) if len(X) else X - np.nan for X in inputs]
        answer = super().train(setup, inputs, outputs)
        empty = [k for k, X in enumerate(inputs) if not len(X)]
        answer.coefficients[empty] = np.nan
        return OwnAnswer(answer.coefficients, answer.report)


ROW_FAULTS = {
    LooksAcrossAgents: "in a thread of its own computes other numbers",
    KeepsAnAttributeOnError: "calls_ changed: take back what was set",
    ForgetsWhatItPredictsWith: "fails once it was saved and loaded",
    RestoresOtherCoefficients: "gives something else after it was saved and loaded",
    SavesTooLittle: "cannot be loaded as it was saved",
    ReportsNothingSent: "but the ledger has",
    ComparesNoSettings: "and are not told so",
    DropsTheFirstRow: "away from those of all rows in one place",
}
READOUT_FAULTS = {
    LearnsFromOwnRowsOnly: "train on the rows of all agents",
    ForgetsAlpha: "alpha has no effect",
    PenalisesPerAgent: "those of all rows in one place",
    NeedsRows: "has no rows, and predictions are not finite",
}


def faulty():
    for kind in (RVFLRegressor, RVFLClassifier, S3VMClassifier):
        faults = ROW_FAULTS if kind is S3VMClassifier else ROW_FAULTS | READOUT_FAULTS
        for fault, sentence in faults.items():
            yield pytest.param(kind, fault, sentence, id=f"{kind.__name__}-{fault.__name__}")


@pytest.mark.parametrize(("kind", "fault", "sentence"), list(faulty()))
def test_a_wrong_model_is_noticed(kind, fault, sentence):
    wrong = type(f"Wrong{kind.__name__}", (fault, kind), {"__init__": kind.__init__})
    with pytest.raises(AssertionError, match=sentence):
        check_model(wrong)


class TestConventions:
    """What breaks the conventions of scikit-learn is noticed by its own checks."""

    def test_a_parameter_that_fit_changes(self):
        class Wrong(RVFLRegressor):
            def fit(self, X, y=None):
                self.n_hidden = self.n_hidden + 1
                return super().fit(X, y)

        checks = dict(convention_checks(Wrong(10)))
        with pytest.raises(AssertionError, match="should not change"):
            checks["check_estimators_overwrite_params"]()

    def test_they_are_part_of_the_check(self):
        class Wrong(RVFLRegressor):
            def predict(self, X):
                return super().predict(X) + np.random.default_rng().standard_normal()

            @classmethod
            def can_be_saved(cls):
                return False

        with pytest.raises(AssertionError):
            check_model(Wrong)

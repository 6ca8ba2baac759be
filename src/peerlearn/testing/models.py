"""The check of models: what holds for all of them, and what each class states.

of all               agents in threads compute what simulated ones do, and send as much; the report
                     has all that was sent; an error leaves the model as it was; the parameter alpha
                     has an effect; agents with other settings are told so; a TOML table makes it
of rows, sequences   the targets of every agent count at every agent; agents may have no rows
same_coordinates     the coefficients are those of all rows in one place
can_be_saved()       what is loaded predicts what was saved
of signals           what `check_filter` checks
with fit             the conventions of scikit-learn
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import networkx as nx
import numpy as np
from sklearn.base import clone

from peerlearn import SimulatedNetwork, graphs
from peerlearn.arrays import Array, is_real
from peerlearn.errors import NetworkError, PeerlearnError
from peerlearn.models.base import NetworkModel
from peerlearn.testing import model_data as data
from peerlearn.testing.cases.models import over, predictions_of, usual_case
from peerlearn.testing.comparing import check_threads, quiet
from peerlearn.testing.conventions import convention_checks, over_two_agents
from peerlearn.testing.failing import FailingNetwork
from peerlearn.testing.filters import check_filter
from peerlearn.testing.model_files import check_archive, check_table
from peerlearn.testing.model_settings import make_small
from peerlearn.testing.threads import run_in_threads

__all__ = ["check_model", "model_checks"]

RING = graphs.ring(5)
CHANGED = 1  # the agent whose targets are changed; it has the most rows
EMPTY = 3  # the agent without rows
CLOSE = 1e-3  # relative distance to the answer in one place, if the solver has no tolerance
FELT = 1e-6  # relative change of outputs that counts as one

Check = Callable[[], None]


def check_model(model: NetworkModel | type[NetworkModel]) -> None:
    """Check that a model is what its class states, on every engine, in files and in scikit-learn.

    Parameters
    ----------
    model : NetworkModel or type
        A class, which is tried with small settings, or an untrained model.

    Raises
    ------
    AssertionError
        With a sentence about what is wrong. The checks of scikit-learn raise errors of their own.

    Examples
    --------
    >>> from peerlearn import RVFLRegressor
    >>> check_model(RVFLRegressor)
    """
    for _, check in model_checks(model):
        check()
    estimator = over_two_agents(model) if isinstance(model, type) else clone(model)
    if hasattr(estimator, "fit"):
        for _, check in convention_checks(estimator):
            check()


def model_checks(model: NetworkModel | type[NetworkModel]) -> Iterator[tuple[str, Check]]:
    """Yield the checks of `check_model` by name, without those of scikit-learn.

    Parameters
    ----------
    model : NetworkModel or type
        A class, which is tried with small settings, or an untrained model.

    Yields
    ------
    tuple of str and callable
        The name of a check, and the check, which is called without arguments.

    Examples
    --------
    >>> from peerlearn import RVFLRegressor
    >>> checks = dict(model_checks(RVFLRegressor))
    >>> checks["saved and loaded"]()
    """
    small = make_small(model) if isinstance(model, type) else clone(model)
    yield "same bits in threads", partial(_check_threads, small)
    yield "made from a table", partial(check_table, small)
    if small.takes == "signals":
        yield "finds the system", partial(check_filter, small)
        yield "saved and loaded", partial(check_archive, small)
        return
    yield "report", partial(_check_report, small)
    yield "as it was after an error", partial(_check_restored, small)
    yield "other settings are refused", partial(_check_other_settings, small)
    if is_real(getattr(small, "alpha", None)):
        yield "alpha has an effect", partial(_check_alpha, small)
    if small.takes in ("rows", "sequences"):
        yield "everybody counts", partial(_check_everybody_counts, small)
        yield "agents without rows", partial(_check_empty, small)
        if small.same_coordinates:
            yield "answer in one place", partial(_check_one_place, small)
    if type(small).can_be_saved():
        yield "saved and loaded", partial(check_archive, small)


def _fit(model: Any, graph: nx.Graph = RING, **options: Any) -> Any:
    network = SimulatedNetwork(graph)
    with quiet():
        return data.fit(over(network, model), network.hosted, **options)


def _check_threads(model: Any) -> None:
    check_threads(_name(model), RING, usual_case(model))


def _check_report(model: Any) -> None:
    fitted = _fit(model)
    sent = fitted.network.ledger.since()
    assert fitted.report_.sent == sent, (
        f"{_name(model)} reports {fitted.report_.sent}, but the ledger has {sent}"
    )


def _check_restored(model: Any) -> None:
    """Let the network fail early, half-way and in the last round."""
    fitted = _fit(model)
    rounds = fitted.network.ledger.rounds
    for last in sorted({0, rounds // 2, max(rounds - 2, 0)}):
        for before in (clone(model), fitted):
            before.set_params(network=FailingNetwork(RING, last))
            held = dict(vars(before))
            _must_fail(before)
            changed = [
                name
                for name in {*held, *vars(before)}
                if name not in held or vars(before).get(name) is not held[name]
            ]
            assert not changed, (
                f"{_name(model)}: the network failed after {last} rounds of fit, and "
                f"{', '.join(sorted(changed))} changed: take back what was set"
            )


def _must_fail(model: Any) -> None:
    try:
        with quiet():
            data.fit(model, model.network.hosted)
    except NetworkError:
        return
    raise AssertionError(f"{_name(model)} goes on training when its network fails")


def _check_other_settings(model: Any) -> None:
    """Give agent 1 another number for each parameter in turn."""
    for name, value in model.get_params(deep=False).items():
        if isinstance(value, bool) or not isinstance(value, int | float) or name in model.own:
            continue
        other = value + 1 if isinstance(value, int) else 0.5 * value + 0.01
        work = partial(_fit_with_other, model=model, name=name, other=other)
        try:
            with quiet():
                run_in_threads(graphs.complete(2), work)
            sentence = ""
        except PeerlearnError as error:
            sentence = str(error)
        assert f"agents disagree on {name}" in sentence, (
            f"{_name(model)}: agents have {name} {value} and {other}, and are not told so: compare "
            "it before training"
        )


def _fit_with_other(network: Any, model: Any, name: str, other: Any) -> Any:
    own = over(network, model)
    if network.hosted == (1,):
        own.set_params(**{name: other})
    return data.fit(own, network.hosted)


def _check_alpha(model: Any) -> None:
    before = _fit(model)
    after = _fit(clone(model).set_params(alpha=100 * model.alpha))
    for agent, (small, large) in enumerate(
        zip(before.coefficients_, after.coefficients_, strict=True)
    ):
        assert not np.array_equal(small, large), (
            f"{_name(model)}: alpha has no effect on the coefficients of agent {agent}"
        )
        shrinks = np.linalg.norm(large) < np.linalg.norm(small)
        assert shrinks or not model.same_coordinates, (
            f"{_name(model)}: with 100 times alpha the coefficients of agent {agent} are larger"
        )


def _check_everybody_counts(model: Any) -> None:
    """Change the targets of one agent: all others must notice, unless they are to learn alone."""
    if all(getattr(model, name) == value for name, value in model.alone.items()) and model.alone:
        return
    before = _outputs(_fit(model))
    after = _outputs(_fit(model, changed=CHANGED))
    for agent, (own, other) in enumerate(zip(before, after, strict=True)):
        away = float(np.abs(own - other).max() / max(np.abs(own).max(), 1e-300))
        assert away > FELT, (
            f"{_name(model)}: agent {agent} predicts the same whatever the targets of agent "
            f"{CHANGED} are: train on the rows of all agents"
        )


def _outputs(fitted: Any) -> Array:
    (outputs,) = predictions_of(fitted, fitted.network).values()
    return np.asarray(outputs, dtype=np.float64)


def _check_empty(model: Any) -> None:
    fitted = _fit(model, empty=(EMPTY,))
    finite = np.isfinite(_outputs(fitted)).all()
    assert finite, f"{_name(model)}: agent {EMPTY} has no rows, and predictions are not finite"
    if model.same_coordinates:
        others = [agent for agent in range(len(RING)) if agent != EMPTY]
        _check_close(f"{_name(model)}, with an agent without rows,", model, fitted, others)


def _check_one_place(model: Any) -> None:
    _check_close(_name(model), model, _fit(model), range(len(RING)))


def _check_close(what: str, model: Any, fitted: Any, agents: Any) -> None:
    """Check that coefficients are those of one place, if all algorithms are exact."""
    parts = [fitted.part(name) for name in model.parts if name != "stream"]
    if not all(getattr(part, "exact", True) for part in parts):
        return
    with quiet():
        answer = data.fit_in_one_place(clone(model).set_params(network=None), agents).coefficients_
    allowed = max([CLOSE, *(10 * float(getattr(part, "tolerance", 0.0)) for part in parts)])
    for agent, own in enumerate(fitted.coefficients_):
        assert own.shape == answer[0].shape, (
            f"{what} gives agent {agent} coefficients of shape {own.shape}, not "
            f"{answer[0].shape} as those of all rows in one place"
        )
        away = float(np.linalg.norm(own - answer[0]) / np.linalg.norm(answer[0]))
        assert away <= allowed, (
            f"{what} gives agent {agent} coefficients that are {away:.1e} away from those of all "
            "rows in one place"
        )


def _name(model: Any) -> str:
    return type(model).__name__

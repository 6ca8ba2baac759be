"""Audit of a model: how its values travel, and warnings about what is not linear.

`audit` asks who can compute the value that an agent sends. For most methods this value is a
function of the agent's rows, and rows may follow from it, or from totals over many rounds. That is
no matter of ranks. Each such leak is a warning here; the attacks behind them are kept as tests, and
docs/deploy.md has their numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from peerlearn.algorithms.averaging import Averaging
from peerlearn.algorithms.readout.admm import THESIS_AVERAGING
from peerlearn.algorithms.readout.chosen_features import FEWEST_UNITS, FOLDS
from peerlearn.errors import InputError
from peerlearn.models.base import NetworkModel
from peerlearn.models.rvfl import CHOSEN_UNITS, FIXED_UNITS
from peerlearn.models.search import NetworkSearchCV
from peerlearn.network.base import Network
from peerlearn.privacy.auditor import GOSSIP, Audit, Way, audit

# How values travel by algorithms that have no setting for it.
WAYS: dict[str, Way] = {
    "newton": "tree",
    "lbfgs": "tree",
    "next": "neighbors",
    "tracking": "neighbors",
    "diffusion": "neighbors",
    "landmarks": "everyone",
    "exchange": "everyone",
    "local": "nothing",
    "ensemble": "nothing",
    # Models without such an algorithm.
    "AnchorLapClassifier": "everyone",
    "SplineFilter": "neighbors",
    "LMSFilter": "neighbors",
}
SENTENCES = {
    "auto": "solver 'auto' chooses Gram or ConjugateGradient when it runs, whichever sends less. "
    "Gram shows more, so read what is said about it.",
    "consensus": "Consensus sends coefficients that fit one agent's own rows best.",
    "admm": "ADMM sends coefficients in every iteration. After enough iterations their totals tell "
    "H'H of single agents. Masked sums will not be offered for it.",
    "cg": "ConjugateGradient sends H'H d for many d. After as many iterations as features divided "
    "by outputs, that tells as much as H'H.",
    "newton": "Newton sends gradients and Hessians at every step. Their sequence may tell more "
    "than one sum; nothing is claimed about it.",
    "lbfgs": "LBFGS sends gradients at every step. Their sequence may tell more than one sum; "
    "nothing is claimed about it.",
    "landmarks": "Landmarks gives every row of every agent to every agent: distances to points "
    "that all agents know fix a row.",
    "AnchorLapClassifier": "AnchorLapClassifier sends means of an agent's rows to all agents.",
    "exchange": "Exchange sends raw rows, and distances that fix the others.",
}
LOCAL_INVERSES = (
    "The preconditioner 'local' sends sums of the agents' inverses, which are not linear in H'H. "
    "Masked sums will not be offered for it: use preconditioner='synthetic' or 'none'."
)
SINGLE = (
    "{name} sends values of single agents to their neighbors in every round. Masks cannot hide "
    "these."
)
UNKNOWN = (
    "What {name} sends is not known to the auditor. It assumes that neighbors get values of single "
    "agents: read how {name} works."
)
FLOODS = (
    "By gossip, agents also flood the largest of some numbers. The first message shows an agent's "
    "own number to its neighbors."
)
MASKABLE = ("auto", "gram", "cg", "consensus", "newton", "lbfgs")


@dataclass(frozen=True)
class Holdings:
    """What is known of the agents' data. What is missing is not checked.

    Parameters
    ----------
    rows : dict of str to int, default {}
        Number of rows by the name of the agent.
    labelled : dict of str to int, default {}
        Number of rows with a label.
    inputs : int or None, default None
        Number of columns.
    scaled : bool, default False
        Whether columns are standardised over the network.

    Examples
    --------
    >>> from peerlearn.privacy import Holdings
    >>> Holdings({"north": 300, "south": 1}, inputs=30).rows["south"]
    1
    """

    rows: Mapping[str, int] = field(default_factory=dict)
    labelled: Mapping[str, int] = field(default_factory=dict)
    inputs: int | None = None
    scaled: bool = False


def audit_model(
    model: NetworkModel | NetworkSearchCV,
    *,
    colluders: int = 1,
    masks: Literal["sums"] | None = None,
    names: Sequence[str] | None = None,
    holdings: Holdings | None = None,
) -> Audit:
    """Return what other agents can compute if this model is trained over its network.

    Parameters
    ----------
    model : NetworkModel or NetworkSearchCV
        A model with a network, or a search for the best settings of one. It is not trained, and
        nothing is sent.
    colluders : int, default 1
        Size of the coalition.
    masks : "sums" or None, default None
        "sums" audits masked sums, as secrecy="sums" of a network makes them, if the model's values
        are sums.
    names : list of str or None, default None
        Names of the agents; None for those of the network.
    holdings : Holdings or None, default None
        What is known of the agents' data, for the warnings.

    Returns
    -------
    Audit

    Examples
    --------
    >>> from peerlearn import RVFLClassifier, SimulatedNetwork, graphs
    >>> from peerlearn.privacy import audit_model
    >>> model = RVFLClassifier(solver="gram", network=SimulatedNetwork(graphs.ring(5)))
    >>> print(audit_model(model).summary())
    By sums over a tree, single agents can compute the values of 2 of 5 agents. Agent 1 computes
    most: 1, within 1 round.
    """
    parts = _parts_of(model)
    if isinstance(model, NetworkSearchCV):
        model = model.estimator
    network = model.network
    if network is None or network.size < 2:
        raise InputError("a model without a network sends nothing: give it one of 2 agents or more")
    algorithm = algorithm_of(model)
    method, rounds = way_of(model, algorithm, network)
    labels = list(network.names) if names is None else list(names)
    held = holdings or Holdings()
    warnings = list(_warnings(model, algorithm, method, labels, colluders))
    if method != "nothing":
        warnings += [*_feature_warnings(model, parts, held), *_row_warnings(model, held)]
    if masks is not None and _name(model, algorithm) not in MASKABLE:
        warnings.append(f"Masked sums cannot protect {type(model).__name__} as it is set here.")
        masks = None
    return audit(
        network.graph,
        network.weights,
        method=method,
        masks=masks,
        colluders=colluders,
        rounds=rounds,
        names=labels,
        warnings=warnings,
    )


def algorithm_of(model: NetworkModel) -> Any:
    """Return the algorithm whose messages are about rows: distances, else solver, else None."""
    for name in ("distances", "solver"):
        if name in model.parts:
            return model.part(name)
    return None


def _name(model: NetworkModel, algorithm: Any) -> str:
    """Return the name of the algorithm, or of the model if it has none."""
    if isinstance(algorithm, str):  # LapKRRClassifier(distances="local")
        return algorithm
    return str(getattr(algorithm, "name", type(model).__name__))


def way_of(model: NetworkModel, algorithm: Any, network: Network) -> tuple[Way, int | None]:
    """Return how values travel, and the limit of rounds; "neighbors" for what is not known."""
    averaging = getattr(algorithm, "averaging", None)
    if averaging is None:
        name = _name(model, algorithm)
        return WAYS.get(name, "neighbors"), None
    if averaging == "auto" and getattr(algorithm, "variant", "") == "thesis":
        averaging = THESIS_AVERAGING
    chosen = Averaging.of(averaging)
    method: Any = chosen.method_on(network)
    return method, chosen.max_rounds


def _warnings(
    model: NetworkModel,
    algorithm: Any,
    method: Way,
    names: Sequence[str],
    colluders: int,
) -> Iterator[str]:
    """Yield sentences about few agents, and about leaks of the algorithm."""
    honest = len(names) - colluders
    if honest == 1:
        yield (
            f"With {len(names)} agents and {colluders} curious, one is left: the total without "
            "the parts of the others is its value. No method hides it. "
            + ("Two agents have no secrets." if len(names) == 2 else "")
        ).strip()
    elif honest == 2:
        yield (
            f"With {len(names)} agents and {colluders} curious, two are left: whoever knows the "
            "value of one of them computes the other's from the total."
        )
    if method == "nothing":
        return
    name = _name(model, algorithm)
    if name in SENTENCES:
        yield SENTENCES[name]
    elif method == "neighbors":
        sentence = SINGLE if name in WAYS else UNKNOWN
        yield sentence.format(name=type(algorithm or model).__name__)
    local = getattr(algorithm, "preconditioner", "")
    if local == "local" or (local == "auto" and model.takes == "sequences"):
        yield LOCAL_INVERSES
    if method in GOSSIP:
        yield FLOODS
    if model.takes == "columns":
        yield "For each row, agents add up numbers that depend on one agent's columns."


def _parts_of(model: Any) -> int:
    """Return over how many parts of an agent's rows sums are made, to choose settings."""
    if isinstance(model, NetworkSearchCV):
        return model.cv
    chosen = model.takes == "rows" and hasattr(model, "n_hidden")
    return FOLDS if chosen and (model.alpha == "auto" or _chooses_features(model)) else 1


def _chooses_features(model: Any) -> bool:
    return getattr(model, "features", "") == "auto" and model.activation is None


def _count_features(model: Any, held: Holdings) -> int | None:
    """Return the number of random features that all agents know; None if there are none."""
    inputs = held.inputs or 0
    if hasattr(model, "n_reservoir"):
        return int(model.n_reservoir) + inputs
    if not hasattr(model, "n_hidden") or model.takes != "rows":
        return None
    if model.features not in ("auto", "fixed"):
        return None
    if not _chooses_features(model):
        return (model.n_hidden or FIXED_UNITS) + (inputs if model.direct_links is True else 0)
    rows = sum(held.rows.values()) if len(held.rows) > 1 else CHOSEN_UNITS
    units = model.n_hidden or min(max(rows, FEWEST_UNITS), CHOSEN_UNITS)
    return int(units) + (inputs if model.direct_links else 0)


def _feature_warnings(model: NetworkModel, parts: int, held: Holdings) -> Iterator[str]:
    """Yield warnings about rows that follow from products of known random features."""
    if parts > 1:
        yield (
            f"To choose settings, agents send sums over each of {parts} parts of their rows. A "
            "part is as open as an agent with so few rows. Give all settings to avoid that."
        )
    features = _count_features(model, held)
    if features is None:
        return
    inputs = held.inputs or 0
    what = "rows of a part" if parts > 1 else "rows"
    rule = (
        f"All agents know the {features} random features. If {what} + inputs < {features}, these "
        "rows can be computed from their H'H, by whoever knows that of the agent"
    )
    least = parts * (features - inputs)  # rows that an agent should have
    small = [name for name, rows in held.rows.items() if 0 < rows < least]
    if small:
        yield f"{rule}. That holds for {_some(small)}."
    elif not held.rows:
        yield f"{rule}. Count the rows of each site."
    if len(held.rows) > 1 and sum(held.rows.values()) < least:
        yield "It holds for the total of all agents as well, so masks would not hide rows."


def _row_warnings(model: NetworkModel, held: Holdings) -> Iterator[str]:
    """Yield warnings about agents with one row or one labelled row."""
    one = [name for name, rows in held.rows.items() if rows == 1]
    if one:
        yield f"One row only: {_some(one)}. Its sums of columns and of features are that row."
    if model.partly_labelled:
        one = [name for name, rows in held.labelled.items() if rows == 1]
        if one:
            yield (
                f"One labelled row only: {_some(one)}. It can be computed from the sums over "
                "labelled rows, or from the first gradient."
            )
    if held.scaled:
        yield (
            "Columns are standardised by sums over the tree, whatever the solver does: a leaf's "
            "parent sees its number of rows, and the means and deviations of its columns."
        )


def _some(names: Sequence[str], most: int = 6) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more

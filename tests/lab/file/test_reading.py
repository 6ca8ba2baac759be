"""The file of a comparison: what each of its parts becomes, and what sizes and missing data make of
it.
"""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn import toml_reader
from peerlearn.errors import InputError
from peerlearn.lab import (
    Data,
    Expectation,
    FigureSpec,
    Model,
    Net,
    Search,
    StatisticsSpec,
    TableSpec,
    make_report,
    read,
    run,
)
from peerlearn.lab.file.sizes import values_at_size
from peerlearn.lab.protocols.rows import Rows
from tests.support.pages import SUPPORT

SHORT = (SUPPORT / "short_comparison.toml").read_text()
SOUND = (SUPPORT / "sound_comparison.toml").read_text()


def test_a_file_becomes_plain_objects(written):
    comparison = read(written(SOUND))
    assert (comparison.seed, comparison.folds, comparison.repetitions) == (3, 3, 2)
    assert comparison.protocol == Rows(deal="stratified")
    pca = {"kind": "sklearn.decomposition.PCA", "n_components": 10}
    assert comparison.data == (
        Data("g50c", scale="signed", settings={"n_hidden": 20}, prepare=(pca,)),
    )
    solvers = [
        {"name": "admm", "max_iterations": most, "averaging": {"method": "plain"}}
        for most in (5, 10)
    ]
    assert comparison.models == (
        Model("C-RVFL", "RVFL", "centralised"),
        *(
            Model(
                "ADMM-RVFL",
                "RVFL",
                "network",
                {"alpha": 0.5, "solver": solver},
                swept={"solver.max_iterations": solver["max_iterations"]},
            )
            for solver in solvers
        ),
        Model("rival", "sklearn.svm.SVC", "centralised", {"C": 2.0}),
    )
    assert comparison.networks == tuple(
        Net("ER", "erdos_renyi", agents, {"p": 0.5}, "max-degree", swept={"agents": agents})
        for agents in (5, 10)
    )
    assert comparison.search == Search({"alpha": [0.1, 1.0]}, folds=3, model="C-RVFL")
    layout = comparison.layout
    assert (layout.title, layout.size, layout.text, layout.missing) == ("Sound", "full", SOUND, {})
    assert layout.statistics == (StatisticsSpec("error"),)
    assert layout.tables == (
        TableSpec("errors", "error", ("data", "agents"), "model", where={"model": "ADMM-RVFL"}),
    )
    assert layout.figures == (FigureSpec("over-agents", "lines", "error", "agents"),)
    assert layout.expectations == (
        Expectation(
            "error", {"data": "g50c", "model": "C-RVFL"}, "table 1", value=0.06, spread=0.01
        ),
    )


def test_what_a_file_leaves_out(written):
    comparison = read(written(SHORT))
    assert (
        comparison.seed,
        comparison.folds,
        comparison.repetitions,
        comparison.test_fraction,
    ) == (0, 1, 1, 0.25)
    assert comparison.protocol == Rows()
    assert comparison.metrics == ()
    assert comparison.networks == ()


def test_several_sweeps_are_combined(written):
    text = SHORT.replace('where = "centralised"', "alpha = [1, 2]\nn_hidden = [10, 20, 30]")
    nets = (
        '[[networks]]\nname = "N"\ngraph = ["ring", "star"]\nagents = [3, 4]\nweights = '
        '["metropolis", "laplacian"]\n'
    )
    comparison = read(written(text + nets))
    assert [tuple(model.swept.items()) for model in comparison.models][:2] == [
        (("alpha", 1), ("n_hidden", 10)),
        (("alpha", 1), ("n_hidden", 20)),
    ]
    assert len(comparison.models) == 6
    assert [(net.graph, net.agents, net.weights) for net in comparison.networks] == [
        (graph, agents, weights)
        for graph in ("ring", "star")
        for agents in (3, 4)
        for weights in ("metropolis", "laplacian")
    ]
    assert {tuple(net.swept) for net in comparison.networks} == {("graph", "agents", "weights")}
    assert len(list(comparison.trials())) == 6 * 8


def test_settings_and_options_of_data_are_swept_by_their_own_names(written):
    text = SHORT.replace(
        'name = "g50c"', 'name = "g50c"\nscale = ["unit", "none"]\nsettings = { alpha = [1, 2] }'
    )
    assert [data.swept for data in read(written(text)).data] == [
        {"scale": scale, "alpha": alpha} for scale in ("unit", "none") for alpha in (1, 2)
    ]
    series = 'name = "N10"\nsource = "narma10"\noptions = { length = [50, 60], sequences = 4 }'
    text = SHORT.replace('name = "g50c"', series).replace('"RVFL"\nwhere', '"ESN"\nwhere')
    comparison = read(written('protocol = { name = "sequences" }\n' + text))
    assert [(data.swept, data.options["length"]) for data in comparison.data] == [
        ({"length": 50}, 50),
        ({"length": 60}, 60),
    ]


def test_a_list_that_is_the_value_itself(written):
    rival = 'kind = "sklearn.neural_network.MLPClassifier"\nhidden_layer_sizes = [[5, 3]]'
    text = SHORT.replace('kind = "RVFL"', rival)
    (model,) = read(written(text)).models
    assert (model.settings, model.swept) == ({"hidden_layer_sizes": [5, 3]}, {})
    models = read(written(text.replace("[[5, 3]]", "[[5, 3], [4]]"))).models
    assert [model.settings["hidden_layer_sizes"] for model in models] == [[5, 3], [4]]
    assert [model.swept for model in models] == [
        {"hidden_layer_sizes": [5, 3]},
        {"hidden_layer_sizes": [4]},
    ]


def test_rivals_learn_in_one_place_unless_told_otherwise(written):
    text = SHORT.replace('where = "centralised"', "").replace(
        'kind = "RVFL"', 'kind = "sklearn.svm.SVC"'
    )
    assert read(written(text)).models[0].where == "centralised"
    nets = '[[networks]]\nname = "N"\ngraph = "ring"\nagents = 3\n'
    alone = text.replace('SVC"', 'SVC"\nwhere = "alone"') + nets
    assert read(written(alone)).models[0].where == "alone"
    assert (
        read(written(text.replace("sklearn.svm.SVC", "peerlearn.RVFLClassifier") + nets))
        .models[0]
        .where
        == "network"
    )


def test_a_grid_counts_its_agents(written):
    nets = '[[networks]]\nname = "N"\ngraph = "grid"\nrows = [2, 3]\ncolumns = 4\n'
    networks = read(written(SHORT + nets)).networks
    assert [(net.agents, net.swept) for net in networks] == [(8, {"rows": 2}), (12, {"rows": 3})]


def test_what_is_shown_is_measured(written):
    text = SHORT + (
        '[[tables]]\nname = "t"\nmetric = "mcc"\n[[figures]]\nname = "f"\nkind = '
        '"boxes"\ny = "seconds"\n'
    )
    assert read(written(text)).metrics == ("error", "mcc")
    assert read(written('metrics = ["balanced_error"]\n' + text)).metrics == (
        "balanced_error",
        "mcc",
    )


def test_quick_is_one_repetition_and_three_folds_unless_the_file_says_more(written):
    text = SHORT.replace("[[data]]", "folds = 10\nrepetitions = 5\n[[data]]", 1)
    for size in ("quick", "tiny"):
        comparison = read(written(text), size=size)
        assert (comparison.folds, comparison.repetitions, comparison.layout.size) == (3, 1, size)
    assert read(written(text)).folds == 10


SIZED = """
title = "Sizes"
folds = 5
repetitions = 4
metrics = ["error", "nrmse"]
[protocol]
deal = "even"
[[data]]
name = "g50c"
settings = { n_hidden = 200 }
[[data]]
name = "diabetes"
settings = { alpha = 1.0 }
[[models]]
name = "A"
kind = "RVFL"
n_hidden = [100, 300]
solver = { name = "admm", max_iterations = [50, 100] }
[[models]]
name = "B"
kind = "RVFL"
solver = "gram"
[[networks]]
name = "N"
graph = "ring"
agents = [5, 10, 20]
[[networks]]
name = "grid"
graph = "grid"
rows = 2
columns = 3
[search]
folds = 5
[search.grid]
alpha = [1.0, 2.0]
[[expect]]
source = "table 1"
metric = "error"
where = { model = "B", agents = 20 }
value = 0.1
spread = 0.1
[quick]
folds = 2
metrics = ["error"]
data = ["g50c"]
[quick.networks]
agents = [5, 10]
[quick.model]
n_hidden = 20
"solver.max_iterations" = 7
[quick.search]
folds = 2
"grid.alpha" = [3.0]
[quick.protocol]
deal = "stratified"
[tiny]
data = ["diabetes"]
models = ["A"]
[tiny.networks]
agents = 3
"""


def test_sizes(written):
    file = written(SIZED)
    quick = read(file, size="quick")
    assert (quick.folds, quick.repetitions, quick.metrics) == (2, 4, ("error",))
    assert [(data.name, data.settings) for data in quick.data] == [("g50c", {"n_hidden": 20})]
    assert [(model.name, dict(model.settings)) for model in quick.models] == [
        ("A", {"n_hidden": 20, "solver": {"name": "admm", "max_iterations": 7}}),
        ("B", {"solver": "gram"}),
    ]
    # What was swept stays a column, of one value.
    assert quick.models[0].swept == {"n_hidden": 20, "solver.max_iterations": 7}
    assert [net.agents for net in quick.networks] == [5, 10, 6]
    assert quick.search == Search({"alpha": [3.0]}, folds=2)
    assert quick.protocol == Rows(deal="stratified")
    assert quick.layout.expectations == read(file).layout.expectations
    tiny = read(file, size="tiny")
    assert [data.name for data in tiny.data] == ["diabetes"]
    assert [model.name for model in tiny.models] == ["A"]
    assert [net.agents for net in tiny.networks] == [3, 6]
    assert tiny.search == quick.search
    assert read(file).models[0].settings["n_hidden"] == 100
    with pytest.raises(InputError, match=r"size is 'small': there are full, quick, tiny"):
        read(file, size="small")


def test_what_a_size_leaves_out_is_checked_all_the_same(written):
    text = SIZED.replace('model = "B", agents = 20', 'model = "B", agents = 30')
    with pytest.raises(
        InputError, match=r"^expect\['table 1'\].where.agents in .*mine.toml is 30, which no run"
    ):
        read(written(text), size="quick")


def test_a_file_is_the_same_at_its_own_size_after_a_smaller_one(written):
    top = toml_reader.read(written(SHORT))
    assert values_at_size(top, "quick")["repetitions"] == 1
    assert "repetitions" not in values_at_size(top, "full")


FROM_FILES = SHORT.replace('name = "g50c"', 'name = "G50C"') + '[[data]]\nname = "iris"\n'


def test_data_that_is_not_there(written, monkeypatch):
    monkeypatch.setattr("peerlearn.lab.checking.read.fetch_missing", lambda name: None)
    with pytest.raises(
        InputError,
        match=r"^data\['G50C'\] in .*mine.toml cannot be used: data set G50C is read from",
    ):
        read(written(FROM_FILES))
    comparison = read(written(FROM_FILES), without_missing=True)
    assert [data.name for data in comparison.data] == ["iris"]
    assert list(comparison.layout.missing) == ["G50C"]
    assert comparison.layout.missing["G50C"].startswith("data set G50C is read from a folder")
    with pytest.raises(
        InputError, match=r"^data in .*mine.toml cannot be had, none of it: data set G50C is read"
    ):
        read(written(SHORT.replace("g50c", "G50C")), without_missing=True)


def test_expectations_of_data_that_is_left_out_are_no_mistake(written, monkeypatch):
    monkeypatch.setattr("peerlearn.lab.checking.read.fetch_missing", lambda name: None)
    expect = (
        '[[expect]]\nsource = "t"\nmetric = "error"\nvalue = 0\nspread = 1\nwhere = { data = '
        '"G50C" }\n'
    )
    assert read(written(FROM_FILES + expect), without_missing=True).layout.expectations[
        0
    ].where == {"data": "G50C"}


@pytest.mark.parametrize("without_missing", [False, True])
def test_a_data_set_in_the_place_of_another(without_missing, written, monkeypatch):
    monkeypatch.setattr("peerlearn.lab.checking.read.fetch_missing", lambda name: None)
    text = SHORT.replace('name = "g50c"', 'name = "G50C"\ninstead = "g50c"')
    comparison = read(written(text), without_missing=without_missing)
    assert comparison.data == (Data("G50C", source="g50c"),)
    assert comparison.layout.missing["G50C"].endswith("; g50c is used in its place")


def test_a_data_set_that_is_there_is_used(written, monkeypatch, tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "G50C.npz", X=rng.standard_normal((40, 5)), y=np.arange(40) % 2)
    text = SHORT.replace('name = "g50c"', 'name = "G50C"\ninstead = "g50c"')
    file = written(text)
    monkeypatch.setenv("PEERLEARN_DATA", str(tmp_path))
    comparison = read(file)
    assert comparison.data == (Data("G50C"),)
    assert comparison.layout.missing == {}


TOPOLOGIES = """
title = "topologies"
data = [{ name = "iris" }]
models = [{ name = "together", kind = "RVFL", n_hidden = 5, activation = "tanh" }]
[[networks]]
name = "all"
agents = [4, 5]
graph = [{ kind = "ring" }, { kind = "erdos_renyi", p = 0.9 }, { kind = "star", name = "hub" }]
"""


def test_topologies_are_one_axis(written, tmp_path):
    comparison = read(written(TOPOLOGIES))
    names = ["ring", "erdos_renyi, p 0.9", "hub"]
    assert [net.swept["graph"] for net in comparison.networks if net.agents == 5] == names
    assert [net.graph for net in comparison.networks][:3] == ["ring", "erdos_renyi", "star"]
    assert comparison.networks[1].parameters == {"p": 0.9}
    results = run(comparison, tmp_path / "out", jobs=1)
    assert results.order["graph"] == names
    make_report(tmp_path / "out")
    table = (tmp_path / "out" / "tables" / "error.md").read_text()
    assert "renyi, p 0.9 |" in table
    assert "kind" not in table
    one = TOPOLOGIES.replace("graph = [{", "graph = {").replace('" }, {', '" } # {')
    assert read(written(one)).networks[0].swept == {"agents": 4}


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('{ kind = "ring" }', "{ p = 0.2 }", "graph.kind .* is missing"),
        ('{ kind = "ring" }', '{ kind = "rings" }', "is 'rings', which is not known"),
        ("p = 0.9", "agents = 7", "graph.agents .* stands in .* too: leave out one"),
        ("p = 0.9", "q = 1", "q .* is no parameter of erdos_renyi"),
    ],
)
def test_topologies_that_cannot_be(old, new, sentence, written):
    with pytest.raises(InputError, match=sentence):
        read(written(TOPOLOGIES.replace(old, new)))

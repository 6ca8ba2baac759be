"""Raw tables at sites: [columns] has them prepared over the network, and saved with the model."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from peerlearn import PreparedModel, TablePreparer, data
from peerlearn.cli import main
from peerlearn.errors import InputError
from peerlearn.network.peers import certificates
from peerlearn.sites.description import read_site
from peerlearn.sites.plan import read_plan
from peerlearn.sites.site_folders import write_site_folders
from tests.support.site_processes import run, write_sites

NAMES = ["north", "south", "west"]
MODEL = {"kind": "RVFLClassifier", "n_hidden": 15, "random_state": 0, "solver": "gram"}
COLUMNS = '\n[columns]\nsex = ["female", "male"]\nadmitted = "drop"\n'
UP = """
run = "hospitals"
output = "out"
[network]
agents = 2
graph = "complete"
[data]
file = "all.csv"
target = "outcome"
split = "stratified"
[columns]
admitted = "date"
[model]
kind = "RVFLClassifier"
n_hidden = 15
random_state = 0
"""


def frames(seed=0):
    tables = data.hospital_tables(3, rows=40, seed=seed)
    return [pd.DataFrame(X, columns=data.HOSPITAL_COLUMNS).assign(outcome=y) for X, y in tables]


@pytest.fixture
def sites(tmp_path):
    """Three sites with raw tables; that of south has semicolons and decimal commas."""
    certificates.make(tmp_path / "papers", NAMES)
    for name, table in zip(NAMES, frames(), strict=True):
        form = {"sep": ";", "decimal": ","} if name == "south" else {}
        numbers = ["age", "pressure", "cholesterol"]
        table[numbers] = table[numbers].astype(float)
        table.to_csv(tmp_path / f"{name}.csv", index=False, **form)
    rows = {name: {"file": f"{name}.csv", "target": "outcome"} for name in NAMES}
    write_sites(tmp_path, NAMES, MODEL, data=rows)
    for name in NAMES:
        with (tmp_path / f"{name}.toml").open("a") as file:
            file.write(COLUMNS)
    return tmp_path


@pytest.mark.processes
def test_sites_train_on_raw_tables_and_predict_raw_rows(sites):
    done = run(*(("agent", f"{name}.toml") for name in NAMES), folder=sites)
    assert [code for code, _ in done] == [0, 0, 0], done
    pooled = pd.concat(frames())
    features = pooled[list(data.HOSPITAL_COLUMNS)]
    columns = {"sex": ["female", "male"], "admitted": "drop"}
    wanted = TablePreparer(columns).fit(features).transform(features)
    for name in NAMES:
        saved = PreparedModel.load(sites / name / "model.npz")
        assert np.allclose(saved.preparer.transform(features), wanted, atol=1e-9)
    rows = frames(seed=1)[2].astype(object)
    rows.loc[0, "pain"] = "never seen"
    rows.to_csv(sites / "new.csv", index=False)
    done = CliRunner().invoke(main, ["predict", f"{sites}/west/model.npz", f"{sites}/new.csv"])
    assert done.exit_code == 0, done.output
    assert "on 40 rows" in done.stderr
    found = pd.read_csv(io.StringIO(done.stdout))
    labels = saved.model.classes_.tolist()
    assert found.columns.tolist() == ["outcome", *(f"probability_{label}" for label in labels)]
    np.testing.assert_allclose(found.iloc[:, 1:].sum(axis=1), 1.0)


@pytest.mark.processes
def test_a_column_of_another_kind_is_named_with_its_site_at_all_sites(sites):
    table = pd.read_csv(sites / "west.csv").astype(object)
    table["age"] = "old"
    table.to_csv(sites / "west.csv", index=False)
    for code, words in run(*(("agent", f"{name}.toml") for name in NAMES), folder=sites):
        assert code in (2, 3), words  # 3: it heard from a neighbor first
        assert "column age has numbers at agents north and south but texts at agent west" in words


@pytest.mark.processes
def test_up_deals_a_raw_table(tmp_path):
    pd.concat(frames()).to_csv(tmp_path / "all.csv", index=False)
    (tmp_path / "up.toml").write_text(UP)
    ((code, words),) = run(("up", "up.toml"), folder=tmp_path)
    assert code == 0, words
    assert "in one place" in words
    saved = PreparedModel.load(tmp_path / "out" / "agent-0" / "model.npz")
    assert saved.preparer.kinds_["admitted"] == "date"


def test_shares_of_a_raw_table_are_written_as_csv(tmp_path):
    pd.concat(frames()).to_csv(tmp_path / "all.csv", index=False)
    (tmp_path / "up.toml").write_text(UP)
    plan = read_plan(tmp_path / "up.toml")
    write_site_folders(plan)
    site = read_site(plan.folder("agent-1") / "site.toml")
    assert site.columns == {"admitted": "date"}
    share = pd.read_csv(site.data)
    assert len(share) == len(plan.rows.shares[1][1])
    assert list(share.columns) == [*data.HOSPITAL_COLUMNS, "outcome"]


FILES = UP.replace(
    'file = "all.csv"\ntarget = "outcome"\nsplit = "stratified"\n',
    'target = "outcome"\n[data.files]\nagent-0 = "a.csv"\nagent-1 = "b.csv"\n',
)


@pytest.fixture
def files(tmp_path):
    """A network's file with a table for each of its two agents, and one with test rows."""
    first, second, new = frames()
    first.to_csv(tmp_path / "a.csv", index=False)
    second[second.columns[::-1]].to_csv(tmp_path / "b.csv", index=False)
    new.to_csv(tmp_path / "new.csv", index=False)
    (tmp_path / "up.toml").write_text(FILES)
    return tmp_path / "up.toml"


def test_each_agent_has_its_own_file(files):
    rows = read_plan(files).rows
    assert [len(y) for _, y in rows.shares] == [30, 30]
    assert len(rows.test[1]) == 20
    (X, _), (second, _) = rows.shares
    assert {type(cell) for cell in X[:, 0]} == {type(cell) for cell in second[:, 0]}
    assert tuple(rows.columns) == data.HOSPITAL_COLUMNS
    files.write_text(FILES.replace("[data.files]", 'test_files = ["new.csv"]\n[data.files]'))
    rows = read_plan(files).rows
    assert [len(y) for _, y in rows.shares] == [40, 40]
    assert len(rows.test[1]) == 40


@pytest.mark.processes
def test_up_runs_agents_with_files_of_their_own(files):
    ((code, words),) = run(("up", "up.toml"), folder=files.parent)
    assert code == 0, words
    assert "Test accuracy (20 rows)" in words
    share = pd.read_csv(files.parent / "out" / "agent-1" / "share.csv")
    assert len(share) == 30


def test_the_example_of_four_hospitals(tmp_path):
    """examples/fedheart.toml, on tables like those that it names."""
    rng = np.random.default_rng(0)
    columns = [
        "age",
        "sex",
        "cp",
        "trestbps",
        "chol",
        "fbs",
        "restecg",
        "thalach",
        "exang",
        "oldpeak",
        "slope",
        "ca",
        "thal",
    ]
    X = rng.integers(0, 3, (80, len(columns))).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    center = np.arange(80) % 4
    np.savez(tmp_path / "FedHeart.npz", X=X, y=center % 2, center=center, columns=columns)
    arguments = ["--target", "disease", "--test-fraction", "0.34", "--folder", str(tmp_path)]
    made = CliRunner().invoke(main, ["data", "sites", "FedHeart", f"{tmp_path}/tables", *arguments])
    assert made.exit_code == 0, made.output
    example = Path(__file__).parents[2] / "examples" / "fedheart.toml"
    (tmp_path / "fedheart.toml").write_text(example.read_text())
    plan = read_plan(tmp_path / "fedheart.toml")
    assert [len(y) for _, y in plan.rows.shares] == [13] * 4
    assert len(plan.rows.test[1]) == 28


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('agent-1 = "b.csv"', 'agent-2 = "b.csv"', "data.files.agent-2 in .* is not a key here"),
        ('agent-1 = "b.csv"', "", "data.files.agent-1 in .* is missing: give its file"),
        ('"b.csv"', '"c.csv"', "data.files in .* cannot be used: there is no file"),
        ('"b.csv"', '"d.csv"', "different columns: only one of agent-0 and agent-1 has 'age'"),
        ("[data.files]", "test_files = []\n[data.files]", "test_files in .* is empty"),
        ("[data.files]", "test_fraction = 2\n[data.files]", "a number between 0 and 1"),
        ("[data.files]", 'split = "even"\n[data.files]', "data.split in .* is not a key here"),
    ],
)
def test_wrong_files_are_refused(files, old, new, sentence):
    frames()[1].drop(columns="age").to_csv(files.parent / "d.csv", index=False)
    files.write_text(FILES.replace(old, new))
    with pytest.raises(InputError, match=sentence):
        read_plan(files)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('"date"', '"day"', r"\[columns\] in .* cannot be used: column admitted is declared as"),
        ("[columns]", "[colums]", "colums"),
    ],
)
def test_wrong_columns_are_refused(tmp_path, old, new, sentence):
    pd.concat(frames()).to_csv(tmp_path / "all.csv", index=False)
    (tmp_path / "up.toml").write_text(UP.replace(old, new))
    with pytest.raises(InputError, match=sentence):
        read_plan(tmp_path / "up.toml")


def test_tables_that_are_prepared_are_always_scaled(sites):
    path = sites / "north.toml"
    path.write_text(path.read_text().replace("[data]", "[data]\nscale = false"))
    with pytest.raises(InputError, match=r"data.scale in .* is false, but \[columns\] scales"):
        read_site(path)

"""Tables that cannot be learned from, or only together: the sentences that users of `up` see."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from click.testing import CliRunner

from peerlearn import PreparedModel
from peerlearn.cli import main
from tests.support.site_processes import run

UP = """
run = "wards"
output = "out"
[network]
agents = ["north", "south"]
graph = "complete"
[data]
target = "outcome"
test_files = ["new.csv"]
[data.files]
north = "north.csv"
south = "south.csv"
[columns]
[model]
kind = "LogisticClassifier"
alpha = 0
random_state = 0
"""
ROWS = 80


def wards():
    """Two tables that can be learned from."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(2):
        age = rng.normal(60, 10, ROWS).round(1)
        dose = rng.normal(5, 1, ROWS).round(2)
        ward = rng.choice(["a", "b"], ROWS)
        outcome = (rng.logistic(size=ROWS) < (age - 60) / 10).astype(int)
        columns = {"age": age, "dose": dose, "ward": ward, "outcome": outcome}
        found.append(pd.DataFrame(columns).astype({"ward": object}))
    return found


def separate(north, south):
    for table in (north, south):
        table["dose"] = np.where(table["outcome"] == 1, 1.0, -1.0) * table["dose"].abs()


def make_constant(north, south):
    north["dose"] = south["dose"] = 7.5


def make_one_class(north, south):
    north["outcome"] = south["outcome"] = 1


def empty(north, south):
    north["dose"] = south["dose"] = np.nan


def change_type(north, south):
    south["dose"] = [f"{dose} mg" if dose > 5 else "none" for dose in south["dose"]]


def write_texts(north, south):
    south["ward"] = [f"the patient of row {row} lay in ward b" * 2 for row in range(ROWS)]


BAD = {
    "separation": (
        separate,
        "the targets are separated: column dose is enough to predict some of them without any "
        "error, so that the best coefficients are infinite and have no standard errors. A penalty "
        "helps: set alpha above 0",
    ),
    "constant": (
        make_constant,
        "column dose is constant over the whole network, so that nothing can be learned about it "
        "without a penalty: leave it out, or set alpha above 0",
    ),
    "one class": (make_one_class, "there is only one class in the whole network, 1"),
    "no value": (empty, "column dose has no value at any agent of the network: leave it out"),
    "another type": (change_type, "column dose has numbers at agent north but texts at agent sout"),
    "free text": (write_texts, "column ward has free text at agent south"),
}


def write(folder, north, south):
    north.to_csv(folder / "north.csv", index=False)
    south.to_csv(folder / "south.csv", index=False)
    wards()[0].to_csv(folder / "new.csv", index=False)
    (folder / "up.toml").write_text(UP)


@pytest.mark.processes
@pytest.mark.parametrize("name", BAD)
def test_a_sentence_names_the_column_and_the_way_out(name, tmp_path):
    spoil, sentence = BAD[name]
    tables = wards()
    spoil(*tables)
    write(tmp_path, *tables)
    before = (tmp_path / "north.csv").read_bytes()
    ((code, words),) = run(("up", "up.toml"), folder=tmp_path)
    # 2 is that of an agent that found it, 1 of one that was told first.
    assert code in (1, 2), words
    assert sentence in " ".join(words.split())
    assert (tmp_path / "north.csv").read_bytes() == before
    assert not [*tmp_path.glob("out/*/model.npz")]


@pytest.mark.processes
def test_what_one_site_lacks_the_other_has(tmp_path):
    """A category and a class at one site only, and a column without values at the other."""
    north, south = wards()
    north.loc[:5, "ward"] = "c"
    south["dose"] = np.nan
    south["outcome"] = 0
    write(tmp_path, north, south)
    path = tmp_path / "up.toml"
    path.write_text(path.read_text().replace("alpha = 0", "alpha = 1.0"))
    ((code, words),) = run(("up", "up.toml"), folder=tmp_path)
    assert code == 0, words
    assert "1 of 2 agents cannot learn from their own rows" in " ".join(words.split())
    saved = PreparedModel.load(tmp_path / "out" / "south" / "model.npz")
    names = saved.preparer.get_feature_names_out().tolist()
    assert names == ["age", "dose", "dose_missing", "ward_a", "ward_b", "ward_c"]
    assert saved.predict([[80.0, None, "d"]]).shape == (1,)


@pytest.mark.processes
def test_standard_errors_from_files_alone(tmp_path):
    """Without a penalty the first category has no column, so that coefficients are unique."""
    write(tmp_path, *wards())
    ((code, words),) = run(("up", "up.toml"), folder=tmp_path)
    assert code == 0, words
    done = CliRunner().invoke(main, ["summary", f"{tmp_path}/out/south/model.npz"])
    assert done.exit_code == 0, done.output
    table = [line.split() for line in done.output.splitlines()[1:5]]
    assert [name for name, *_ in table] == ["intercept", "age", "dose", "ward_b"]
    pooled = pd.concat(wards())
    design = pooled[["age", "dose"]].assign(ward=pooled["ward"] == "b").astype(float)
    wanted = sm.Logit(pooled["outcome"], sm.add_constant(design)).fit(disp=0)
    numbers = np.array([cells[:2] for _, *cells in table], dtype=float)
    np.testing.assert_allclose(numbers[:, 0], wanted.params, rtol=1e-3)
    np.testing.assert_allclose(numbers[:, 1], wanted.bse, rtol=1e-3)

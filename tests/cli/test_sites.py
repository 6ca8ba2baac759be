"""The commands that sites need: certificates before they talk, and predictions after they have
learned.
"""

from __future__ import annotations

import csv
import io

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from peerlearn import LogisticClassifier, RVFLClassifier, RVFLRegressor, data
from peerlearn.cli import main
from peerlearn.models import archive
from peerlearn.network.peers.certificates import Identity

IRIS = data.load("iris", scaled=False)
SPECIES = np.array(["setosa", "versicolor", "virginica"])[IRIS.y]
COLUMNS = ["sepal length", "sepal width", "petal length", "petal width"]


def run(*arguments):
    return CliRunner().invoke(main, [str(each) for each in arguments])


@pytest.fixture
def model(tmp_path):
    """The species of an iris, from columns that were centered and scaled."""
    center, scale = IRIS.X.mean(axis=0), IRIS.X.std(axis=0)
    fitted = RVFLClassifier(30, random_state=0, alpha=1.0, activation="sigmoid").fit(
        (IRIS.X - center) / scale, SPECIES
    )
    path = tmp_path / "model.npz"
    archive.save(fitted, path, columns=COLUMNS, center=center, scale=scale, target="species")
    return path


def iris(**other):
    return pd.DataFrame({**dict(zip(COLUMNS, IRIS.X.T, strict=True)), **other})


def test_certs_by_number(tmp_path):
    done = run("certs", tmp_path / "papers", "--agents", 2)
    assert done.exit_code == 0
    names = [
        "authority.key",
        "authority.pem",
        "agent-0.key",
        "agent-0.pem",
        "agent-1.key",
        "agent-1.pem",
    ]
    assert done.stdout.splitlines()[:6] == [str(tmp_path / "papers" / name) for name in names]
    assert "authority.key goes to no site" in done.stdout
    files = [tmp_path / "papers" / name for name in ("authority.pem", "agent-1.pem", "agent-1.key")]
    assert Identity.load(*files, "agent-1").name == "agent-1"


def test_certs_by_name_and_for_a_latecomer(tmp_path):
    run("certs", tmp_path, "--name", "north", "--name", "south", "--days", 30)
    done = run("certs", tmp_path, "--name", "east")
    assert done.stdout.splitlines()[:2] == [str(tmp_path / "east.key"), str(tmp_path / "east.pem")]
    assert len(list(tmp_path.iterdir())) == 8


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ((), "use either --agents 4 or --name north --name south"),
        (("--agents", 2, "--name", "north"), "use either --agents 4 or --name north --name south"),
        (("--agents", 0), "cannot be made for 0 agents: choose 1 or more"),
        (("--name", "a b"), "'a b' cannot be the name of an agent"),
        (("--agents", 1, "--days", 0), "cannot be valid for 0 days"),
    ],
)
def test_certs_that_cannot_be_made(tmp_path, options, sentence):
    done = run("certs", tmp_path / "new", *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("peerlearn: ")
    assert sentence in done.stderr
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_predict_finds_columns_by_name_and_shows_the_accuracy(model, tmp_path, suffix):
    frame = iris(species=SPECIES, weight=np.ones(150))[["weight", "species", *reversed(COLUMNS)]]
    path = tmp_path / f"rows.{suffix}"
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    done = run("predict", model, path)
    found = archive.load(model).predict(IRIS.X)
    assert done.exit_code == 0
    assert done.stdout.splitlines() == ["species", *found]
    assert done.stderr == f"accuracy {np.mean(found == SPECIES):.4f} on 150 rows\n"
    assert np.mean(found == SPECIES) > 0.9


def test_predict_without_answers_shows_no_score(model, tmp_path):
    iris().to_csv(tmp_path / "rows.csv", index=False)
    done = run("predict", model, tmp_path / "rows.csv")
    assert (done.exit_code, done.stderr, len(done.stdout.splitlines())) == (0, "", 151)


def test_predict_into_a_file(model, tmp_path):
    iris(species=SPECIES).to_csv(tmp_path / "rows.csv", index=False)
    done = run("predict", model, tmp_path / "rows.csv", "--output", tmp_path / "found.csv")
    assert done.stdout == f"150 predictions in {tmp_path / 'found.csv'}\n"
    assert done.stderr.startswith("accuracy ")
    with (tmp_path / "found.csv").open(newline="") as file:
        assert [line["species"] for line in csv.DictReader(file)] == archive.load(model).predict(
            IRIS.X
        ).tolist()


@pytest.mark.parametrize("kind", [RVFLClassifier, LogisticClassifier])
def test_predict_writes_probabilities(tmp_path, kind):
    fitted = kind(random_state=0).fit(IRIS.X, SPECIES)
    archive.save(fitted, tmp_path / "model.npz", columns=COLUMNS, target="species")
    iris().to_csv(tmp_path / "rows.csv", index=False)
    done = run("predict", tmp_path / "model.npz", tmp_path / "rows.csv")
    found = pd.read_csv(io.StringIO(done.stdout))
    labels = fitted.classes_.tolist()
    assert found.columns.tolist() == ["species", *(f"probability_{label}" for label in labels)]
    wanted = fitted.predict_proba(IRIS.X)
    np.testing.assert_allclose(found.iloc[:, 1:], wanted, rtol=1e-12)
    assert found["species"].tolist() == fitted.predict(IRIS.X).tolist()


def test_predict_does_not_compare_numbers_with_text(model, tmp_path):
    iris(species=IRIS.y).to_csv(tmp_path / "rows.csv", index=False)
    done = run("predict", model, tmp_path / "rows.csv")
    assert done.exit_code == 0
    assert done.stderr == (
        "no score: column 'species' has numbers of shape (150,), where the model predicts "
        "text of shape (150,)\n"
    )


@pytest.mark.parametrize("rows", [1, 150])
@pytest.mark.parametrize("outputs", [1, 2])
def test_predict_numbers_to_the_last_bit(tmp_path, rows, outputs):
    y = IRIS.X[:, 0] if outputs == 1 else IRIS.X[:, :2]
    fitted = RVFLRegressor(30, random_state=0, alpha=1.0, activation="sigmoid").fit(
        IRIS.X[:, 2:], y
    )
    archive.save(fitted, tmp_path / "model.npz", target="y")
    np.savez(tmp_path / "rows.npz", X=IRIS.X[:rows, 2:], y=y[:rows])
    done = run("predict", tmp_path / "model.npz", tmp_path / "rows.npz")
    header, *lines = csv.reader(done.stdout.splitlines())
    assert header == (["y"] if outputs == 1 else ["y_0", "y_1"])
    found = fitted.predict(IRIS.X[:rows, 2:])
    assert np.array_equal(np.array(lines, dtype=float).reshape(found.shape), found)
    score = f"R2 {fitted.score(IRIS.X[:, 2:], y):.4f} on 150 rows\n"
    assert done.stderr == (score if rows == 150 else "no R2: it takes two rows at least\n")


def test_predict_by_a_model_without_names(tmp_path):
    archive.save(
        RVFLClassifier(30, random_state=0, alpha=1.0, activation="sigmoid").fit(IRIS.X, IRIS.y),
        tmp_path / "model.npz",
    )
    iris().to_csv(tmp_path / "rows.csv", index=False)
    done = run("predict", tmp_path / "model.npz", tmp_path / "rows.csv")
    assert done.stdout.splitlines()[:2] == ["prediction", "0"]


def test_predict_what_it_cannot(model, tmp_path):
    rows = tmp_path / "rows.csv"
    iris().drop(columns="petal width").to_csv(rows, index=False)
    for arguments, sentence in [
        ((model, rows), "lacks 'petal width': it has 'sepal length'"),
        ((rows, rows), "rows.csv holds no model that can be used, because it is no zip archive"),
        ((tmp_path / "lost.npz", rows), "there is no model"),
        ((model, tmp_path / "lost.csv"), "there is no file"),
    ]:
        done = run("predict", *arguments)
        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr.startswith("peerlearn: ")
        assert sentence in done.stderr


def test_predict_into_a_folder_that_is_missing(model, tmp_path):
    iris().to_csv(tmp_path / "rows.csv", index=False)
    done = run("predict", model, tmp_path / "rows.csv", "--output", tmp_path / "lost" / "found.csv")
    assert done.exit_code == 2
    assert "found.csv cannot be written" in done.stderr

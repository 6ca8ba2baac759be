"""Sites whose file asks for secret sums: the model of open sums, and a report that says so."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from click.testing import CliRunner

from peerlearn import RVFLClassifier
from peerlearn.cli import main
from peerlearn.errors import InputError
from peerlearn.models import archive
from peerlearn.network.peers import certificates
from peerlearn.network.peers.chain_file import read_chain
from peerlearn.sites.description import read_site
from peerlearn.sites.plan import read_plan
from peerlearn.toml_reader import toml
from tests.sites.test_agent import IRIS, MODEL, NAMES, csv_of, frame
from tests.support.site_processes import run, write_sites

CLASSES = ["setosa", "versicolor", "virginica"]
SECRET = {**MODEL, "solver": "gram", "classes": CLASSES, "class_weight": "balanced"}


def write(folder, model, **network):
    write_sites(folder, NAMES, model, data=csv_of(folder, NAMES))
    for name in NAMES:
        path = folder / f"{name}.toml"
        lines = [f"{key} = {json.dumps(value)}" for key, value in network.items()]
        path.write_text(path.read_text().replace("[network]", "\n".join(["[network]", *lines]), 1))


@pytest.mark.processes
def test_sites_train_from_secret_sums_and_report_them(tmp_path):
    certificates.make(tmp_path / "papers", NAMES)
    write(tmp_path, SECRET, secrecy="sums", colluders=1)
    done = run(*(("agent", f"{name}.toml") for name in NAMES), folder=tmp_path)
    assert [code for code, _ in done] == [0, 0, 0], done
    wanted = RVFLClassifier(
        25, random_state=0, alpha=1.0, activation="sigmoid", class_weight="balanced"
    ).fit((IRIS.X - IRIS.X.mean(axis=0)) / IRIS.X.std(axis=0), frame(slice(None)).species)
    for name, (_, said) in zip(NAMES, done, strict=True):
        saved = archive.load(tmp_path / name / "model.npz")
        found = saved.model.coefficients_[0]
        np.testing.assert_allclose(found, wanted.coefficients_[0], rtol=0, atol=1e-8)
        assert "only the listed totals are learned; secret against 1 of 3 agents" in said
        assert "totals        6: " in said
        about = json.loads((tmp_path / name / "report.json").read_text())["secrecy"]
        assert (about["colluders"], about["agents"], about["root"]) == (1, 3, "south")
        assert "rows of each class" in about["totals"]
        assert "rows of each class" in about["known_to_all"]
        assert "learned by agent south; number of values" in said
        assert "learned by all agents" in said
    assert not list(tmp_path.rglob("secrets.jsonl"))


@pytest.mark.processes
def test_a_withdrawn_row_is_shown_with_consent_only(tmp_path):
    certificates.make(tmp_path / "papers", NAMES)
    write(tmp_path, SECRET, secrecy="sums", colluders=1)

    def train(*options):
        for name in NAMES:
            shutil.rmtree(tmp_path / name / "checkpoints", ignore_errors=True)
        commands = [("agent", f"{name}.toml") for name in NAMES[1:]]
        return run(("agent", "north.toml", *options), *commands, folder=tmp_path)

    assert [code for code, _ in train()] == [0, 0, 0]
    table = tmp_path / "north.csv"
    table.write_text("".join(table.read_text().splitlines(keepends=True)[:-1]))
    done = train()
    assert done[0][0] == 2
    assert "this agent's data differ from those of an earlier total" in done[0][1]
    for code, said in done[1:]:
        assert code in (1, 3)
        assert "code 8" in said or "code 9" in said
        assert "data differ" not in said
    for name in NAMES:
        sums = [
            entry["quantity"]
            for entry in read_chain(tmp_path / name / "left.jsonl").entries
            if entry.get("protection") == "masked sum"
        ]
        assert sums.count("number of values and sum of each column") == (name != "south"), sums
    again = train("--consent")
    assert [code for code, _ in again] == [0, 0, 0], again
    done = CliRunner().invoke(main, ["privacy", "--left", str(tmp_path)])
    assert done.exit_code == 0, done.output


MISTAKES = [
    (SECRET, {"secrecy": "all"}, "network.secrecy in .* give 'sums' or None"),
    (SECRET, {"secrecy": "sums", "colluders": 2}, "whole number from 1 to 1"),
    (SECRET, {"colluders": 1}, "network.colluders in .* is for secrecy"),
    (MODEL, {"secrecy": "sums"}, "give all classes as classes="),
    ({**SECRET, "alpha": "auto"}, {"secrecy": "sums"}, "then needs a number as alpha"),
    (
        {**SECRET, "search": {"grid": {"alpha": [1.0]}}},
        {"secrecy": "sums"},
        "would make many totals over parts of the rows",
    ),
]


@pytest.mark.parametrize(("model", "network", "said"), MISTAKES)
def test_mistakes_are_found_before_anything_is_opened(tmp_path, model, network, said):
    write(tmp_path, model, **network)
    with pytest.raises(InputError, match=said):
        read_site(tmp_path / "north.toml")


def test_a_network_file_hands_secrecy_to_its_sites(tmp_path):
    plan = {
        "run": "iris",
        "output": "up",
        "network": {"agents": 4, "graph": "ring", "secrecy": "sums", "colluders": 2},
        "data": {"name": "iris"},
        "model": {**SECRET, "classes": [0, 1, 2]},
    }
    (tmp_path / "network.toml").write_text(toml(plan))
    assert read_plan(tmp_path / "network.toml").secrets == {"secrecy": "sums", "colluders": 2}

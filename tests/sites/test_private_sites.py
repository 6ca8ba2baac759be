"""Sites that train with differential privacy: the file, the budget, and what is refused."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from click.testing import CliRunner

from peerlearn.cli import main
from peerlearn.errors import InputError
from peerlearn.models import archive
from peerlearn.network.peers.privacy_budget import PrivacyBudget
from peerlearn.sites.description import read_site
from peerlearn.sites.plan import read_plan
from peerlearn.toml_reader import toml
from tests.sites.test_description import SITE
from tests.support.peer_processes import free_ports
from tests.support.site_files import NETWORK, changed, written
from tests.support.site_processes import run

NAMES = ["north", "south", "west"]
MODEL = {
    "kind": "RVFLClassifier",
    "n_hidden": 10,
    "alpha": 0.1,
    "activation": "tanh",
    "classes": ["no", "yes"],
    "solver": "gram",
    "random_state": 0,
    "differential_privacy": {"epsilon": 20.0, "delta": 1e-5},
}
PRIVATE = changed(changed(SITE, "network.secrecy", "sums"), "data.scale", False)
PRIVATE = {**PRIVATE, "model": MODEL}


def show(*arguments):
    return CliRunner().invoke(main, ["privacy", *map(str, arguments)])


def write(folder):
    ports = free_ports(3).split(",")
    rng = np.random.default_rng(0)
    for k, name in enumerate(NAMES):
        X = rng.standard_normal((200, 2))
        y = np.where(X[:, 0] > 0, "yes", "no")
        np.savez(folder / f"{name}.npz", X=X, y=y)
        site = {
            **PRIVATE,
            "name": name,
            "output": name,
            "address": f"127.0.0.1:{ports[k]}",
            "neighbors": {NAMES[k + 1]: f"127.0.0.1:{ports[k + 1]}"} if k < 2 else {},
            "data": {"file": f"{name}.npz", "scale": False},
            "privacy": {
                "budget": {"epsilon": 25.0, "delta": 1e-5},
                "file": f"spent-{name}.jsonl",
            },
        }
        del site["certificates"]
        (folder / f"{name}.toml").write_text(toml(site))


def train(folder):
    calls = [("agent", f"{name}.toml", "--insecure-loopback") for name in NAMES]
    return run(*calls, folder=folder)


@pytest.mark.processes
def test_a_run_pays_once_and_a_second_one_is_refused(tmp_path):
    write(tmp_path)
    done = train(tmp_path)
    assert [code for code, _ in done] == [0, 0, 0], done
    saved = [archive.load(tmp_path / name / "model.npz").model for name in NAMES]
    assert all((each.coefficients_ == saved[0].coefficients_).all() for each in saved)
    for name in NAMES:
        about = json.loads((tmp_path / name / "report.json").read_text())["privacy"]
        assert about["epsilon"] <= 20.0
        assert about["colluders"] == 1
        entries = PrivacyBudget(tmp_path / f"spent-{name}.jsonl").entries
        assert [entry["run"] for entry in entries] == ["study"]
    # Finished before: nothing is paid.
    assert [code for code, _ in train(tmp_path)] == [0, 0, 0]
    assert len(PrivacyBudget(tmp_path / "spent-north.jsonl").entries) == 1
    # Trained anew: too much for the budget.
    for name in NAMES:
        shutil.rmtree(tmp_path / name / "checkpoints")
    for code, said in train(tmp_path):
        assert code != 0
        assert "would bring what was spent of the privacy budget from epsilon 20" in said
    assert len(PrivacyBudget(tmp_path / "spent-north.jsonl").entries) == 1
    said = show("--spent", tmp_path / "north.toml")
    assert said.exit_code == 0, said.output
    assert "RVFLClassifier by Gram" in said.output
    assert "epsilon 20 at delta 1e-05 in 1 runs, all together; the budget is 25" in " ".join(
        said.output.split()
    )


def test_a_site_with_noise(tmp_path):
    site = read_site(written(tmp_path, PRIVATE))
    assert site.budget == PrivacyBudget(tmp_path / "spent.jsonl")
    limited = changed(PRIVATE, "privacy.budget", {"epsilon": 3})
    assert read_site(written(tmp_path, limited)).budget.epsilon == 3.0


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("data.scale", True, "data.scale is true, which releases means"),
        ("model.search", {"grid": {"alpha": [0.1, 1.0]}}, "would make many totals"),
        ("model.differential_privacy", {"delta": 0.1}, "DifferentialPrivacy needs epsilon"),
        ("model.differential_privacy", {"epsilon": 1, "x": 1}, "x is not a setting of Differ"),
        ("model.differential_privacy", {"epsilon": 0}, "epsilon of DifferentialPrivacy is 0"),
        ("model.alpha", "auto", "a number as alpha"),
        ("privacy.budget", {"epsilon": 0}, "epsilon in .* is 0: give a number above 0"),
        ("privacy.budget", {"epsilon": 1, "delta": 2}, "delta in .* is 2: give a number between"),
        ("privacy.budget", 3, "budget"),
        ("privacy.limit", 3, "limit"),
    ],
)
def test_what_a_site_with_noise_refuses(tmp_path, key, value, said):
    with pytest.raises(InputError, match=said):
        read_site(written(tmp_path, changed(PRIVATE, key, value)))


def test_noise_without_secrecy_is_refused(tmp_path):
    with pytest.raises(InputError, match="needs a network made with secrecy='sums'"):
        read_site(written(tmp_path, {**PRIVATE, "network": SITE["network"]}))


def test_a_network_file_has_no_noise(tmp_path):
    values = {**NETWORK, "model": {**MODEL, "classes": [0, 1, 2]}}
    values = changed(values, "network.secrecy", "sums")
    with pytest.raises(InputError, match="write the files of the sites"):
        read_plan(written(tmp_path, values))


def test_what_was_spent_is_listed(tmp_path):
    file = tmp_path / "spent.jsonl"
    assert "there is no" in str(show("--spent", file).output)
    assert show("--spent", file, "--graph", "ring").exit_code != 0
    site = written(tmp_path, PRIVATE)
    said = " ".join(show("--spent", site).output.split())
    assert "epsilon 0 at delta 1e-06 in 0 runs, all together; no limit is set" in said

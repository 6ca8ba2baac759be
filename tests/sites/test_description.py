"""What sites and networks are described by: every mistake is a sentence, and what is written is
what is read.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from peerlearn.errors import InputError
from peerlearn.sites.description import read_site
from peerlearn.sites.plan import read_plan
from peerlearn.sites.training import make_model, settings_to_compare
from tests.support.site_files import GONE, NETWORK, changed, written

SITE = {
    "run": "study",
    "name": "north",
    "address": "0.0.0.0:7101",
    "output": "north",
    "network": {
        "agents": ["north", "south", "west"],
        "links": [["north", "south"], ["south", "west"]],
    },
    "neighbors": {"south": "south.example:7101"},
    "certificates": {"authority": "authority.pem", "certificate": "north.pem", "key": "north.key"},
    "data": {"file": "north.csv", "target": "outcome"},
    "model": {"kind": "RVFLClassifier", "n_hidden": 20, "random_state": 0},
}


def test_a_site(tmp_path):
    site = read_site(written(tmp_path, SITE))
    assert (site.run, site.name, site.number, site.address, site.target) == (
        "study",
        "north",
        0,
        "0.0.0.0:7101",
        "outcome",
    )
    assert (site.agents, site.addresses, site.scale) == (
        ("north", "south", "west"),
        {1: "south.example:7101"},
        True,
    )
    assert sorted(site.graph.edges) == [(0, 1), (1, 2)]
    assert site.data == tmp_path / "north.csv"
    assert site.certificates == tuple(
        tmp_path / name for name in ("authority.pem", "north.pem", "north.key")
    )
    assert make_model(site.model).n_hidden == 20


def test_what_a_site_need_not_say(tmp_path):
    values = changed(changed(SITE, "certificates", GONE), "data", {"file": "north.npz"})
    site = read_site(written(tmp_path, values))
    assert (site.certificates, site.target, site.weights) == (None, "y", "metropolis")
    west = changed(changed(SITE, "name", "west"), "neighbors", GONE)  # is called, and calls nobody
    assert read_site(written(tmp_path, west)).addresses == {}


def test_paths_are_those_that_the_user_would_write(tmp_path, monkeypatch):
    (tmp_path / "sites").mkdir()
    monkeypatch.chdir(tmp_path)
    site = read_site(
        Path(written(tmp_path / "sites", changed(SITE, "output", "../results"))).relative_to(
            tmp_path
        )
    )
    assert (site.output, site.data) == (Path("results"), Path("sites/north.csv"))
    plan = read_plan(
        Path(written(tmp_path / "sites", changed(NETWORK, "output", ".."))).relative_to(tmp_path)
    )
    assert plan.output == Path()
    monkeypatch.chdir(tmp_path / "sites")
    assert (
        read_site(Path(written(Path(), changed(SITE, "output", "../results")))).output
        == tmp_path / "results"
    )
    (tmp_path / "elsewhere" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere" / "deep")
    values = changed(changed(SITE, "output", "../link/../out"), "data.file", "../link/north.csv")
    site = read_site(written(Path(), values))
    assert (site.output, site.data) == (
        tmp_path / "elsewhere/out",
        tmp_path / "elsewhere/deep/north.csv",
    )


@pytest.mark.parametrize("key", ["run", "name", "address", "output", "network", "data", "model"])
def test_keys_that_a_site_needs(tmp_path, key):
    with pytest.raises(InputError, match=rf"^{key} in .*site\.toml is missing: give "):
        read_site(written(tmp_path, changed(SITE, key, GONE)))


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("run", 3, "run in FILE is 3: give a text in quotes"),
        ("name", True, "name in FILE is True: give a text in quotes"),
        (
            "name",
            "nord",
            "name in FILE is 'nord', which is not one of network.agents: north, south, west",
        ),
        ("network", 3, "network in FILE is 3: give a table, [network]"),
        ("adress", "x", "adress in FILE is not a key here: did you mean address?"),
        (
            "zebra",
            1,
            "zebra in FILE is not a key here: there are address, certificates, columns, data",
        ),
        (
            "address",
            "north",
            "address in FILE cannot be used: the address of north is 'north': write host:port",
        ),
        ("address", "north:99999", "address in FILE cannot be used"),
        ("network.agents", GONE, "network.agents in FILE is missing: give a list of names"),
        (
            "network.agents",
            ["north", 2],
            "network.agents in FILE is ['north', 2]: give a list of different names",
        ),
        ("network.agents", ["north", "north"], "network.agents in FILE is"),
        ("network.agents", [], "network.agents in FILE is []: give a list of different names"),
        ("network.agents", 3, "network.agents in FILE is 3: give a list of names"),
        (
            "network.links",
            [["north", "east"]],
            "network.links in FILE has ['north', 'east']: give pairs of names",
        ),
        ("network.links", [["north", ["south"]]], "network.links in FILE has ['north', ['south']]"),
        ("network.links", ["north"], "network.links in FILE has 'north': give pairs of names"),
        ("network.links", [["north", "south"]], "network.links in FILE cannot be used: "),
        ("network.links", [], "network.links in FILE cannot be used: "),
        (
            "network.weights",
            "metro",
            "network.weights in FILE cannot be used: there are no weights called 'metro'",
        ),
        ("network.graph", "ring", "network.graph in FILE is not a key here"),
        (
            "neighbors.west",
            "west.example:1",
            "neighbors.west in FILE is not linked to north: there are south",
        ),
        (
            "neighbors.soth",
            "south.example:1",
            "neighbors.soth in FILE is not linked to north: did you mean south?",
        ),
        (
            "neighbors",
            {},
            "neighbors.south in FILE is missing: give the address of south, which north calls",
        ),
        (
            "neighbors.south",
            7101,
            "neighbors.south in FILE cannot be used: the address of south is 7101",
        ),
        ("certificates.key", GONE, "certificates.key in FILE is missing: give a text in quotes"),
        ("certificates.secret", "x", "certificates.secret in FILE is not a key here"),
        ("data.file", GONE, "data.file in FILE is missing: give a text in quotes"),
        ("data.target", GONE, "data.target in FILE is missing: name the column to predict"),
        ("data.scale", 1, "data.scale in FILE is 1: give true or false"),
        ("data.sclae", True, "data.sclae in FILE is not a key here: did you mean scale?"),
        (
            "model.kind",
            "RVFL",
            "[model] in FILE cannot be used: kind 'RVFL' is not known: did you mean RVFLClass",
        ),
        (
            "model.kind",
            3,
            (
                "[model] in FILE cannot be used: kind 3 is not known: there are "
                "AnchorLapClassifier, ESNR"
            ),
        ),
        (
            "model.hidden",
            3,
            (
                "[model] in FILE cannot be used: hidden is not a parameter of RVFLClassifier: "
                "did you mean"
            ),
        ),
        (
            "model.network",
            3,
            "[model] in FILE cannot be used: network is not a parameter of RVFLClassifier",
        ),
        ("model.n_hidden", -1, "[model] in FILE cannot be used: n_hidden == -1, must be >= 1"),
        (
            "model.n_hidden",
            "many",
            "[model] in FILE cannot be used: n_hidden must be an instance of int",
        ),
        ("model.alpha", -1.0, "[model] in FILE cannot be used: "),
        ("model.activation", "tanhh", "[model] in FILE cannot be used: "),
        (
            "model.random_state",
            GONE,
            "[model] in FILE cannot be used: random_state has to be a whole number",
        ),
        (
            "model.random_state",
            True,
            "[model] in FILE cannot be used: random_state has to be a whole number",
        ),
        ("model.random_state", -1, "[model] in FILE cannot be used: "),
        (
            "model.solver",
            "amdm",
            "[model] in FILE cannot be used: solver 'amdm' is not known, did you mean 'admm'?",
        ),
        ("model.solver", 3, "[model] in FILE cannot be used: solver is 3: give a name, or a table"),
        (
            "model.solver",
            {"rho": 1.0},
            "[model] in FILE cannot be used: solver is {'rho': 1.0}: give a name",
        ),
        (
            "model.solver",
            {"name": "admm", "roh": 1.0},
            "cannot be used: roh is not a setting of ADMM: did you mean rho?",
        ),
        (
            "model.solver",
            {"name": "admm", "rho": -1.0},
            "[model] in FILE cannot be used: rho must be a finite number",
        ),
        (
            "model.solver",
            {"name": "admm", "averaging": {"methd": "tree"}},
            "cannot be used: methd is not a setting of Averaging: did you mean method?",
        ),
        (
            "model.solver",
            {"name": "admm", "averaging": "telepathy"},
            "method 'telepathy' is not known",
        ),
        (
            "patience.silence",
            0,
            "patience.silence in FILE cannot be used: silence must be a number of seconds above 0",
        ),
        ("patience.silence", math.nan, "patience.silence in FILE cannot be used"),
        ("patience.silence", "5", "patience.silence in FILE is '5': give a number"),
        (
            "patience.silense",
            5,
            "patience.silense in FILE is not a key here: did you mean silence?",
        ),
    ],
)
def test_mistakes_in_a_site(tmp_path, key, value, said):
    path = written(tmp_path, changed(SITE, key, value))
    with pytest.raises(InputError) as raised:
        read_site(path)
    assert said.replace("FILE", str(path)) in str(raised.value)
    assert str(path) in str(raised.value)


def misspelt(values, key, wrong):
    """The values with another name for a dotted key."""
    *path, right = key.split(".")
    inner = values
    for part in path:
        inner = inner[part]
    return changed(changed(values, key, GONE), ".".join([*path, wrong]), inner[right])


@pytest.mark.parametrize(
    ("read", "values", "said"),
    [
        (
            read_site,
            misspelt(SITE, "neighbors", "neighbours"),
            "[neighbours] in FILE is not known: did you mean neighbors?",
        ),
        (
            read_site,
            changed(changed(SITE, "run", GONE), "zebra", {"a": 1}),
            "[zebra] in FILE is not known: there are address, certificates, columns, "
            "data, model, name, neighbors, network, "
            "output, patience, privacy, run",
        ),
        (
            read_site,
            misspelt(SITE, "certificates.key", "kye"),
            "certificates.kye in FILE is not a key here: did you mean key?",
        ),
        (
            read_site,
            misspelt(SITE, "data.file", "flie"),
            "data.flie in FILE is not a key here: did you mean file?",
        ),
        (
            read_site,
            misspelt(SITE, "network.links", "link"),
            "network.link in FILE is not a key here: did you mean links?",
        ),
        (
            read_plan,
            misspelt(NETWORK, "network", "netwrok"),
            "[netwrok] in FILE is not known: did you mean network?",
        ),
        (
            read_plan,
            misspelt(NETWORK, "network.graph", "grpah"),
            "network.grpah in FILE is not a key here: did you mean graph?",
        ),
        (
            read_plan,
            misspelt(NETWORK, "network.agents", "agnets"),
            "network.agnets in FILE is not a key here: did you mean agents?",
        ),
        (
            read_plan,
            misspelt(NETWORK, "data.name", "nmae"),
            "data.nmae in FILE is not a key here: did you mean name?",
        ),
    ],
)
def test_unknown_keys_are_named_before_what_is_missing(tmp_path, read, values, said):
    path = written(tmp_path, values)
    with pytest.raises(InputError) as raised:
        read(path)
    assert str(raised.value) == said.replace("FILE", str(path))


def test_files_that_cannot_be_read(tmp_path):
    for content, said in [("run = ", "is not TOML: "), ("run = 'a'\nrun = 'b'", "is not TOML: ")]:
        with pytest.raises(InputError, match=said):
            read_site(written(tmp_path, content))
    (tmp_path / "site.toml").write_bytes(b"run = '\xff'")
    with pytest.raises(InputError, match="save it as UTF-8"):
        read_site(tmp_path / "site.toml")
    with pytest.raises(InputError, match=r"there is no file .*lost\.toml: check the path"):
        read_site(tmp_path / "lost.toml")
    with pytest.raises(InputError, match="cannot be read"):
        read_site(tmp_path)


def test_the_same_model_in_other_words():
    plain = settings_to_compare({"random_state": 0})
    assert plain == settings_to_compare(
        {"kind": "RVFLClassifier", "random_state": 0, "alpha": "auto", "solver": {"name": "auto"}}
    )
    assert settings_to_compare({"random_state": 0, "alpha": 2.5})["model.alpha"] == 2.5
    assert "model.network" not in plain

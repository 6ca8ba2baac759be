"""What sites and networks are described by: every mistake is a sentence, and what is written is what is read."""

from __future__ import annotations

import copy
import logging
import math
import os
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from peerlearn import SimulatedNetwork, data
from peerlearn.algorithms.standardise import mean_and_deviation
from peerlearn.errors import InputError
from peerlearn.sites.description import read_site
from peerlearn.sites.plan import read_plan
from peerlearn.sites.refusals import refusals_in_the_log, sentence
from peerlearn.sites.site_folders import write_site_folders
from peerlearn.sites.training import make_model, settings_to_compare
from peerlearn.system.folder_lock import lock_folder
from peerlearn.toml_reader import toml

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
NETWORK = {
    "run": "digits",
    "output": "out",
    "network": {"agents": 3, "graph": "ring"},
    "data": {"name": "iris", "split": "stratified"},
    "model": {"kind": "RVFLClassifier", "n_hidden": 20, "random_state": 0},
}
GONE = object()


def changed(values, key, value):
    """The values with another one at a dotted key, or without it."""
    values = copy.deepcopy(values)
    *path, last = key.split(".")
    inner = values
    for part in path:
        inner = inner.setdefault(part, {})
    if value is GONE:
        del inner[last]
    else:
        inner[last] = value
    return values


def written(folder, values):
    path = folder / "site.toml"
    path.write_text(values if isinstance(values, str) else toml(values), encoding="utf-8")
    return path


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
        ("zebra", 1, "zebra in FILE is not a key here: there are address, certificates, data"),
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
            "[model] in FILE cannot be used: kind 3 is not known: there are AnchorLapClassifier, ESNR",
        ),
        (
            "model.hidden",
            3,
            "[model] in FILE cannot be used: hidden is not a parameter of RVFLClassifier: did you mean",
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


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("run", GONE, "run in FILE is missing"),
        ("outptu", "x", "outptu in FILE is not a key here: did you mean output?"),
        ("network.agents", 0, "network.agents in FILE is 0: give 1 to 100"),
        ("network.agents", 1000, "network.agents in FILE is 1000: give 1 to 100"),
        (
            "network.agents",
            "four",
            "network.agents in FILE is 'four': give how many, or a list of names",
        ),
        ("network.graph", GONE, "network.graph in FILE is missing: give one of complete, "),
        (
            "network.graph",
            "rign",
            "network.graph in FILE is 'rign', which is not known: did you mean ring?",
        ),
        ("network.graph", "from_file", "network.graph in FILE is 'from_file', which is not known"),
        (
            "network.graph",
            "erdos_renyi",
            "network.graph in FILE cannot be used: erdos_renyi needs p as well",
        ),
        (
            "network.p",
            0.5,
            "network.p in FILE is not understood: graph 'ring' takes nothing besides",
        ),
        (
            "network",
            {"agents": 3, "graph": "erdos_renyi", "q": 1},
            "network.q in FILE is not understood: graph 'erdos_r",
        ),
        (
            "network",
            {"agents": 3, "graph": "erdos_renyi", "p": "x"},
            "network.graph in FILE cannot be used: ",
        ),
        ("network", {"agents": 2, "links": []}, "network.links in FILE cannot be used: "),
        ("data.name", "lost", "data.name in FILE cannot be used: "),
        ("data", {}, "data.file in FILE is missing: give a file, or name instead"),
        (
            "data",
            {"file": "rows.csv"},
            "data.target in FILE is missing: give the name of the column",
        ),
        (
            "data",
            {"file": "rows.csv", "target": "y"},
            "data.file in FILE cannot be used: there is no file",
        ),
        ("data.test_fraction", 1, "data.test_fraction in FILE is 1: give a number between 0 and 1"),
        ("data.test_fraction", 0.001, "[data] in FILE cannot be dealt to 3 agents: "),
        (
            "data.split",
            "evne",
            "data.split in FILE is 'evne', which is not known: did you mean even?",
        ),
        ("data.seed", -1, "data.seed in FILE is -1: give 0 to"),
        ("data.target", "y", "data.target in FILE is not a key here"),
        ("model.alhpa", 1.0, "[model] in FILE cannot be used: alhpa is not a parameter"),
        ("data.test_fraction", 0.99, "[data] in FILE cannot be dealt to 3 agents: "),
    ],
)
def test_mistakes_in_a_network(tmp_path, key, value, said):
    path = written(tmp_path, changed(NETWORK, key, value))
    with pytest.raises(InputError) as raised:
        read_plan(path)
    assert said.replace("FILE", str(path)) in str(raised.value)
    assert [each.name for each in tmp_path.iterdir()] == [
        "site.toml"
    ]  # nothing is written before all is checked


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
            "[zebra] in FILE is not known: there are address, certificates, data, model, name, neighbors, network, "
            "output, patience, run",
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
        {"kind": "RVFLClassifier", "random_state": 0, "alpha": 1, "solver": {"name": "auto"}}
    )
    assert settings_to_compare({"random_state": 0, "alpha": 2.5})["model.alpha"] == 2.5
    assert "model.network" not in plain


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
PLAIN = st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=5))
def test_toml_is_read_as_it_was_written(values):
    assert tomllib.loads(toml(values)) == values


def test_toml_keeps_kinds_apart():
    assert (
        str(tomllib.loads(toml({"a": 1, "b": 1.0, "c": True, "d": math.nan})))
        == "{'a': 1, 'b': 1.0, 'c': True, 'd': nan}"
    )


def test_plans_are_the_same_every_time(tmp_path):
    shares = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        plan = read_plan(written(folder, NETWORK))
        said = []
        write_site_folders(plan, said.append)
        write_site_folders(plan, said.append)  # a second time nothing is missing
        assert said.count("making certificates") == 1
        files = [
            plan.output / "test.npz",
            *(plan.folder(name) / "share.npz" for name in plan.agents),
        ]
        shares.append([path.read_bytes() for path in files])
        sites = [read_site(plan.folder(name) / "site.toml") for name in plan.agents]
        assert [site.name for site in sites] == ["agent-0", "agent-1", "agent-2"]
        assert all(site.address.startswith("127.0.0.1:") for site in sites)
        assert len({site.address for site in sites}) == 3
        assert sites[0].addresses == {1: sites[1].address, 2: sites[2].address}
    assert shares[0] == shares[1]


def test_a_plan_of_a_file_keeps_the_name_of_the_target(tmp_path):
    iris = data.load("iris", scaled=False)
    lines = ["a,b,c,d,species"] + [
        ",".join(map(str, [*x, f"kind {y}"])) for x, y in zip(iris.X, iris.y, strict=True)
    ]
    (tmp_path / "iris.csv").write_text("\n".join(lines))
    plan = read_plan(
        written(tmp_path, changed(NETWORK, "data", {"file": "iris.csv", "target": "species"}))
    )
    write_site_folders(plan)
    site = read_site(plan.folder("agent-1") / "site.toml")
    assert (site.target, list(plan.rows.columns)) == ("species", ["a", "b", "c", "d"])
    assert sum(len(y) for _, y in plan.rows.shares) + len(plan.rows.test[1]) == 150
    assert set(plan.rows.test[1]) == {"kind 0", "kind 1", "kind 2"}


def test_two_processes_do_not_share_a_folder(tmp_path):
    already = f"agent north runs in .* already, as process {os.getpid()}: "
    with (
        lock_folder(tmp_path, "agent north"),
        pytest.raises(InputError, match=already),
        lock_folder(tmp_path, "agent north"),
    ):
        pass
    with lock_folder(tmp_path, "agent north"):
        pass


LINE = "I1116 04:38:30.631531   28937 ssl_transport_security.cc:2563] Handshake failed with error SSL_ERROR_SSL: "
PORT_IN_USE = b"E1118 00:42:31.401874   10515 add_port.cc:83] Failed to add port to server\n" * 2
OPENSSL = "error:1000007d:SSL routines:OPENSSL_internal:"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            f"{LINE}{OPENSSL}CERTIFICATE_VERIFY_FAILED: unable to get local issuer certificate",
            "the other end's certificate is not signed by our authority",
        ),
        (
            f"{LINE}{OPENSSL}CERTIFICATE_VERIFY_FAILED: certificate has expired",
            "the other end's certificate has expired",
        ),
        (
            f"{LINE}{OPENSSL}PEER_DID_NOT_RETURN_A_CERTIFICATE: Invalid certificate verification context",
            "the caller has no certificate",
        ),
        (
            f"{LINE}{OPENSSL}WRONG_VERSION_NUMBER: Invalid certificate verification context",
            "the other end does not speak TLS",
        ),
        (
            f"{LINE}{OPENSSL}HTTP_REQUEST: Invalid certificate verification context",
            "the other end does not speak TLS",
        ),
        (f"{LINE}{OPENSSL}SOMETHING_NEW: Words", "SOMETHING_NEW: Words"),
        (
            "E1116 04:38:30.638399   28936 ssl_transport_security.cc:3238] No match found for server name: west",
            "the process that listens there is not agent west",
        ),
    ],
)
def test_refusals_in_words(line, said):
    assert sentence(line) == f"refused a connection: {said}"


@pytest.mark.parametrize(
    "line", ["", "Traceback (most recent call last):", "I1116 chttp2_transport.cc] Handshake done"]
)
def test_other_lines_are_no_refusals(line):
    assert sentence(line) is None


def test_standard_error_is_read_for_refusals_and_restored(tmp_path, caplog):
    own, saved, noted = sys.stderr, os.dup(2), []
    refusal = f"{LINE}{OPENSSL}HTTP_REQUEST: Invalid certificate verification context\n".encode()
    try:
        with (tmp_path / "stderr").open("wb") as file:
            os.dup2(file.fileno(), 2)
        before = os.fstat(2).st_ino
        opened = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0
        with caplog.at_level(logging.WARNING, "peerlearn"), refusals_in_the_log(noted.append):
            assert os.fstat(2).st_ino != before
            os.write(
                2, b"one line\n" + refusal + refusal + PORT_IN_USE + b"\xff another, without an end"
            )
            print("from Python", file=sys.stderr)
        assert os.fstat(2).st_ino == before
        assert opened == (len(os.listdir("/proc/self/fd")) if opened else 0)
    finally:
        os.dup2(saved, 2)
        os.close(saved)
    assert sys.stderr is own
    text = (tmp_path / "stderr").read_text()
    assert "one line\n" in text
    assert "another, without an end" in text
    assert "from Python\n" in text
    assert "HTTP_REQUEST" not in text
    assert ".cc" not in text
    assert noted == ["gRPC: add_port.cc:83: Failed to add port to server"]  # once as well
    assert caplog.messages == [
        "refused a connection: the other end does not speak TLS"
    ]  # once, however often


@pytest.mark.parametrize("mean", [0.0, 1.0, -1e6, 1e10])
def test_columns_are_standardised_over_all_rows(graph, mean):
    rng = np.random.default_rng(0)
    shares = [
        rng.standard_normal((rows, 5)) * [1, 1e-3, 1e6, 1, 1] + mean
        for rows in rng.integers(1, 60, len(graph))
    ]
    for X in shares:
        X[:, 3], X[:, 4] = mean, 0.1  # one value each
    found_mean, found = mean_and_deviation(SimulatedNetwork(graph), shares)
    X = np.vstack(shares)
    # What numpy gets, in more digits than a float has: its own sums of squares would be no more
    # exact than ours.
    exact = X.astype(np.longdouble)
    wanted = np.where([False, False, False, True, True], 1.0, exact.std(axis=0).astype(float))
    checked = slice(None) if abs(mean) < 1e9 else [0, 2, 3, 4]  # 1e-3 is hardly there beside 1e10
    assert np.allclose(found_mean, exact.mean(axis=0).astype(float), rtol=1e-14, atol=1e-12)
    assert np.allclose(found[:, checked], wanted[checked], rtol=1e-6)
    assert np.ptp(found, axis=0).max() == 0  # all agents have the same bits

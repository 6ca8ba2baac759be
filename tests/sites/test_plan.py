"""Plans of whole networks: every mistake is a sentence."""

from __future__ import annotations

import pytest

from peerlearn import data
from peerlearn.errors import InputError
from peerlearn.sites.description import read_site
from peerlearn.sites.plan import read_plan
from peerlearn.sites.site_folders import write_site_folders
from tests.support.site_files import GONE, NETWORK, changed, written


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

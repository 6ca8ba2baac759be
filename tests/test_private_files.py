"""Who may read what is written: rights of models, checkpoints, shares and an agent's
other files.
"""

from __future__ import annotations

import os
import stat

import numpy as np
import pytest
from click.testing import CliRunner

from peerlearn import RVFLClassifier, data
from peerlearn.cli import main
from peerlearn.models import archive, stream_archive
from peerlearn.network.peers import certificates
from peerlearn.network.peers.journal import Call, Checkpoint, Journal
from peerlearn.private_files import make_private_folder, open_private
from peerlearn.sites.agent import run_agent
from peerlearn.system.files import result_folder, write
from tests.support.site_processes import write_sites

NETWORK = """
run = "private"
output = "made/out"
[network]
agents = 2
graph = "complete"
[data]
name = "iris"
[model]
kind = "RVFLClassifier"
n_hidden = 5
random_state = 0
"""


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def rights(path):
    return stat.S_IMODE(path.stat().st_mode)


def all_rights(folder):
    return {str(path.relative_to(folder)): rights(path) for path in folder.rglob("*")}


class TestTheHelper:
    def test_files_are_created_with_their_rights(self, tmp_path, umask, monkeypatch):
        monkeypatch.delattr(os, "fchmod")  # so that nothing can narrow them later
        for mode in ("w", "a", "a+", "w+b", "x"):
            with open(tmp_path / f"file {mode}", mode, opener=open_private) as file:
                assert rights(tmp_path / f"file {mode}") == 0o600
                file.write(b"x" if "b" in mode else "x")
        assert set(all_rights(tmp_path).values()) == {0o600}

    def test_a_file_that_is_there_loses_wider_rights_before_it_is_written_to(self, tmp_path, umask):
        for mode in ("a", "w", "r+"):
            path = tmp_path / mode
            path.touch()
            path.chmod(0o666)
            with open(path, mode, opener=open_private):
                assert rights(path) == 0o600

    def test_a_file_whose_rights_cannot_be_changed_is_not_written_to(self, tmp_path, monkeypatch):
        def refuse(file, mode):
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(os, "fchmod", refuse)
        opened = set(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else None
        with pytest.raises(PermissionError), open(tmp_path / "file", "w", opener=open_private):
            pass
        assert opened is None or set(os.listdir("/proc/self/fd")) == opened

    def test_folders_that_are_made(self, tmp_path, umask):
        make_private_folder(tmp_path / "a" / "b" / "c")
        assert all_rights(tmp_path) == {"a": 0o700, "a/b": 0o700, "a/b/c": 0o700}

    def test_a_folder_that_is_there_keeps_its_rights(self, tmp_path, umask):
        (tmp_path / "shared").mkdir()
        (tmp_path / "shared").chmod(0o755)
        make_private_folder(tmp_path / "shared")
        make_private_folder(tmp_path / "shared" / "new")
        assert all_rights(tmp_path) == {"shared": 0o755, "shared/new": 0o700}


def test_models_and_streams(tmp_path, umask):
    X, y = data.load("iris").X, data.load("iris").y
    archive.save(
        RVFLClassifier(5, random_state=0, alpha=1.0, activation="sigmoid").fit(X, y),
        tmp_path / "model.npz",
    )
    learning = RVFLClassifier(5, random_state=0, alpha=1.0, activation="sigmoid").partial_fit(
        X, y, classes=np.unique(y)
    )
    stream_archive.save_stream(learning, tmp_path / "stream.npz")
    assert all_rights(tmp_path) == {"model.npz": 0o600, "stream.npz": 0o600}


def test_checkpoints(tmp_path, umask):
    journal = Journal(tmp_path / "made" / "checkpoints")
    for n in (1, 2):
        journal.add(Call("mix", (np.ones((1, 2)),)))
        journal.save(Checkpoint({"round": n}, {}, {n: {"frames": np.array([n])}}))
    expected = dict.fromkeys(
        ["journal.bin", "sent-1.bin", "sent-2.bin", "checkpoint-1.bin", "checkpoint-2.bin"], 0o600
    )
    assert all_rights(tmp_path / "made" / "checkpoints") == expected
    assert rights(tmp_path / "made") == rights(tmp_path / "made" / "checkpoints") == 0o700


def test_a_journal_of_an_older_release_is_for_its_owner_alone_from_the_next_save_on(tmp_path):
    journal = Journal(tmp_path)
    for n in (1, 2):
        journal.add(Call("mix", (np.ones((1, 2)),)))
        journal.save(Checkpoint({"round": n}))
        (tmp_path / "journal.bin").chmod(0o644 if n == 1 else rights(tmp_path / "journal.bin"))
    assert rights(tmp_path / "journal.bin") == 0o600


@pytest.mark.processes
@pytest.mark.parametrize("umask", [0o000, 0o022], indirect=True, ids=oct)
def test_all_that_a_network_on_this_machine_writes(tmp_path, umask):
    (tmp_path / "network.toml").write_text(NETWORK)
    done = CliRunner().invoke(main, ["up", str(tmp_path / "network.toml")])
    assert done.exit_code == 0, done.output
    found = all_rights(tmp_path / "made")
    public = {path for path in found if path.endswith(".pem")}
    folders = {path for path in found if (tmp_path / "made" / path).is_dir()}
    assert {"out", "out/agent-0", "out/agent-0/checkpoints", "out/certificates"} <= folders
    written = {
        "out/test.npz",
        *(
            f"out/agent-1/{name}"
            for name in (
                "site.toml",
                "share.npz",
                "model.npz",
                "report.json",
                "report.txt",
                "status.json",
                "agent.log",
                "output.txt",
                ".lock",
            )
        ),
    }
    assert written <= set(found)
    assert rights(tmp_path / "made") == 0o700
    assert {path: found[path] for path in folders} == dict.fromkeys(folders, 0o700)
    private = set(found) - folders - public
    assert {path: found[path] for path in private} == dict.fromkeys(private, 0o600)


def test_the_folder_that_an_agent_makes(tmp_path, umask):
    np.savez(tmp_path / "rows.npz", X=data.load("iris").X, y=data.load("iris").y)
    write_sites(
        tmp_path,
        ["solo"],
        {"kind": "RVFLClassifier", "n_hidden": 5, "random_state": 0},
        certificates=False,
        data={"solo": {"file": "rows.npz", "target": "y"}},
    )
    run_agent(tmp_path / "solo.toml", insecure_loopback=True)
    assert rights(tmp_path / "solo") == 0o700
    assert set(all_rights(tmp_path / "solo").values()) == {0o700, 0o600}


def test_the_folder_of_certificates_and_those_above_it(tmp_path, umask):
    certificates.make(tmp_path / "made" / "papers", ["north"])
    assert rights(tmp_path / "made") == rights(tmp_path / "made" / "papers") == 0o700


def test_private_results_in_a_folder_that_somebody_shares(tmp_path, umask):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o775)
    write(result_folder(tmp_path / "shared", private=True) / "report.txt", "trained", private=True)
    assert all_rights(tmp_path) == {"shared": 0o775, "shared/report.txt": 0o600}


def test_what_users_show_has_the_rights_that_the_umask_leaves(tmp_path, umask):
    write(result_folder(tmp_path / "figures") / "figure.svg", "<svg/>")
    assert all_rights(tmp_path) == {"figures": 0o777 & ~umask, "figures/figure.svg": 0o666 & ~umask}

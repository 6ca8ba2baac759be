"""Folders with data sets, and names that are looked for in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from peerlearn.data import load
from peerlearn.data.folder import match
from peerlearn.errors import DataError
from tests.support.data_files import sentence


def test_a_folder_that_is_given_wins_and_ignores_case(folder):
    assert load("g50c", folder).source == f"read from {folder / 'G50C.npz'}"
    assert load("digits", str(folder)).X.shape == (12, 5)
    assert load("iris", folder).source == "bundled with scikit-learn"


def test_a_folder_of_the_environment_only_adds_names(folder, monkeypatch):
    monkeypatch.setenv("PEERLEARN_DATA", str(folder))
    assert load("G50C").X.shape == (12, 5)
    assert load("g50c").source == "generated, seed 0"
    assert load("digits").source == "bundled with scikit-learn"
    with pytest.raises(DataError, match="the nearest is 'Mine'"):
        load("mine")


def test_an_argument_is_read_instead_of_the_environment(folder, tmp_path_factory, monkeypatch):
    monkeypatch.setenv("PEERLEARN_DATA", str(folder))
    with pytest.raises(DataError, match=r"data set G50C has no file G50C\.npz in .*: put it there"):
        load("G50C", tmp_path_factory.mktemp("empty"))


def test_built_in_names_do_not_even_look_at_the_environment(monkeypatch):
    monkeypatch.setenv("PEERLEARN_DATA", "nowhere")
    assert load("iris").X.shape == (150, 4)


@pytest.mark.parametrize(
    ("wrong", "nearest"),
    [("g50", "g50c"), ("Iris", "iris"), ("twomoons", "two-moons"), ("garageband", "Garageband")],
)
def test_an_unknown_name_gets_the_nearest(wrong, nearest):
    text = sentence(wrong)
    assert f"no data set is called '{wrong}', the nearest is '{nearest}'" in text
    assert "available()" in text


def test_a_name_near_nothing_and_names_with_folders():
    assert sentence("zzzz").startswith("no data set is called 'zzzz': ")
    for name in ("../G50C", "a\\b", "/etc/passwd", ""):
        assert f"{name!r} is not the name of a data set" in sentence(name)


def test_a_folder_that_is_none(tmp_path, monkeypatch):
    assert "named by folder=" in sentence("G50C", tmp_path / "absent")
    monkeypatch.setenv("PEERLEARN_DATA", str(tmp_path / "absent"))
    assert "named by the environment variable PEERLEARN_DATA, is not a folder" in sentence("G50C")
    monkeypatch.setenv("PEERLEARN_DATA", "")
    assert "is read from a folder" in sentence("G50C")


def test_two_files_that_differ_in_case_alone():
    held = {
        "Mine": Path("Mine.npz"),
        "mine": Path("mine.npz"),
    }  # not on disk: some file systems ignore case
    assert match("Mine", held) == Path("Mine.npz")
    with pytest.raises(
        DataError, match="could be any of the files Mine, mine: give the name in their case"
    ):
        match("MINE", held)

"""What is said of comparisons that cannot be run: one sentence, before any run, that names file,
key and way out.
"""

from __future__ import annotations

import tomllib

import pytest

from peerlearn.errors import InputError
from peerlearn.lab import read
from tests.support.pages import SUPPORT

SOUND = (SUPPORT / "sound_comparison.toml").read_text()
BROKEN = tomllib.loads((SUPPORT / "broken_comparisons.toml").read_text())


def written(tmp_path, text):
    file = tmp_path / "mine.toml"
    file.write_text(text)
    return file


def test_the_file_that_is_broken_is_sound(tmp_path):
    assert len(list(read(written(tmp_path, SOUND)).trials())) == 3 * 2 * (1 + 2 * 2 + 1)


@pytest.mark.parametrize("mistake", BROKEN)
def test_a_mistake_is_one_sentence(mistake, tmp_path, monkeypatch):
    monkeypatch.delenv("PEERLEARN_DATA", raising=False)
    old, new, expected = (BROKEN[mistake][key] for key in ("old", "new", "said"))
    assert SOUND.count(old) == 1
    file = written(tmp_path, SOUND.replace(old, new))
    with pytest.raises(InputError) as refused:
        read(file)
    said = str(refused.value).replace(str(file), "FILE")
    if expected.endswith("..."):
        assert said.startswith(expected.removesuffix("..."))
    else:
        assert said == expected


@pytest.mark.parametrize(
    ("path", "said"),
    [("nowhere.toml", "there is no file"), (".", "cannot be read")],
)
def test_a_file_that_is_none(path, said, tmp_path):
    with pytest.raises(InputError, match=said):
        read(tmp_path / path)

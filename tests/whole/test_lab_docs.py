"""What is written about comparisons holds: the example, the page with all keys, the recipe for a
protocol.
"""

from __future__ import annotations

import re
import sys
from dataclasses import fields

import numpy as np
import pytest

from peerlearn.algorithms.registry import find_classes
from peerlearn.lab import protocols, read, run
from peerlearn.lab.description import comparison as compared
from tests.support.pages import ROOT, SUPPORT, python_blocks

SHORT = (SUPPORT / "short_comparison.toml").read_text()


def test_the_example_is_complete_and_fits_on_a_screen():
    file = ROOT / "examples" / "comparison.toml"
    lines = file.read_text().splitlines()
    assert len(lines) <= 45
    assert max(map(len, lines)) <= 80
    comparison = read(file)
    assert {model.where for model in comparison.models} == {"centralised", "alone", "network"}
    assert len(comparison.data) == 5
    assert comparison.layout.statistics
    assert comparison.layout.figures


def test_frozen_features_do_not_depend_on_who_has_which_class(tmp_path, monkeypatch):
    """The example at its smallest size, on made-up features."""
    rng = np.random.default_rng(0)
    y = np.arange(200) % 4
    X = rng.standard_normal((200, 12)) + np.eye(4, 12)[y]
    np.savez(tmp_path / "CIFAR10_features.npz", X=X, y=y)
    monkeypatch.setenv("PEERLEARN_DATA", str(tmp_path))
    results = run(
        read(ROOT / "examples" / "cifar10-features.toml", size="tiny"), tmp_path / "out", jobs=1
    )
    pooled = results.where({"model": "in one place"}).mean("error")
    together = results.where({"model": "together"})
    assert len(together.rows) == 3
    assert together.mean("error") == pytest.approx(pooled)
    assert together.mean("distance") < 1e-12


def test_four_hospitals_are_dealt_by_site(tmp_path, monkeypatch):
    """The example, read with made-up rows."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (120, 13)).astype(float)
    X[::7, 12] = np.nan
    names = [
        "age",
        "sex",
        "cp",
        "trestbps",
        "chol",
        "fbs",
        "restecg",
        "thalach",
        "exang",
        "oldpeak",
        "slope",
        "ca",
        "thal",
    ]
    center, y = np.arange(120) % 4, rng.integers(0, 2, 120)
    np.savez(tmp_path / "FedHeart.npz", X=X, y=y, center=center, columns=np.array(names))
    monkeypatch.setenv("PEERLEARN_DATA", str(tmp_path))
    comparison = read(ROOT / "examples" / "four-hospitals.toml", size="quick")
    together = next(trial for trial in comparison.trials() if trial.network)
    assert 0 <= comparison.protocol.run(together).values["error"] <= 1
    assert comparison.runs == 18


def test_the_page_shows_the_example_and_a_file_with_all_keys(written):
    example, whole, pipeline = re.findall(
        r"^```toml\n(.*?)^```", (ROOT / "docs/comparisons.md").read_text(), re.DOTALL | re.M
    )
    assert example == (ROOT / "examples" / "comparison.toml").read_text()
    for size in ("full", "quick"):
        assert read(written(whole), size=size).layout.expectations[1].relation == "equal"
    assert read(written(whole + pipeline)).models[-1].settings["svc__C"] == 2.0


def test_the_recipe_for_a_new_protocol_holds(written, tmp_path, monkeypatch):
    """CONTRIBUTING's example, saved as a file beside the other protocols: found, read and run."""
    (recipe,) = (
        block for block in python_blocks("CONTRIBUTING.md") if "class Resubstitution" in block
    )
    (tmp_path / "resubstitution.py").write_text(recipe)
    monkeypatch.setattr(protocols, "__path__", [*protocols.__path__, str(tmp_path)])
    find_classes.cache_clear()
    try:
        file = written('protocol = { name = "resubstitution", rows = 100 }\n' + SHORT)
        (trial,) = (comparison := read(file)).trials()
        outcome = comparison.protocol.run(trial)
    finally:
        find_classes.cache_clear()
        sys.modules.pop(f"{protocols.__name__}.resubstitution", None)
    assert 0 <= outcome.values["error"] < 0.2
    assert outcome.values["kept"] == 100 / 550


def test_the_page_has_every_protocol_with_its_settings():
    page = (ROOT / "docs/comparisons.md").read_text()
    for name, kind in compared.protocols().items():
        assert f"| `{name}` |" in page
        assert [each.name for each in fields(kind) if f"`{each.name}`" not in page] == [], name

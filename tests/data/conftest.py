"""Folders with files of data sets."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def folder(tmp_path):
    """A folder like the thesis's: float32 columns, int8 labels, further arrays beside them."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(12, 5)).astype(np.float32) * 3
    signs = np.tile(np.array([-1, 1], dtype=np.int8), 6)
    splits = np.arange(6, dtype=np.int16).reshape(2, 3)
    images = rng.integers(0, 256, (6, 4, 4, 3)).astype(np.uint8)
    np.savez_compressed(tmp_path / "G50C.npz", X=rows, y=signs, idx_lab=splits)
    np.savez(
        tmp_path / "Garageband.npz",
        X=np.abs(rows) / 20,
        y=signs,
        classes=np.array(["jazz", "rock"]),
    )
    np.savez(tmp_path / "BCI.npz", X=rows, y=signs)
    np.savez(tmp_path / "PCMAC.npz", X=rows, y=signs)
    np.savez(tmp_path / "2Moons.npz", X=rows[:, :2], y=signs, is_test=signs > 0)
    np.savez(tmp_path / "Skills.npz", X=rows, y=np.arange(12, dtype=np.int8))
    np.savez(tmp_path / "CCPP.npz", X=np.abs(rows), y=np.linspace(400, 500, 12, dtype=np.float32))
    np.savez(tmp_path / "CIFAR10.npz", X=images, y=np.arange(6, dtype=np.uint8), X_test=images[:2])
    np.savez(tmp_path / "Mine.npz", X=rows, y=np.linspace(0, 1, 12))
    np.savez(tmp_path / "Words.npz", X=rows, y=np.array(["a", "b"] * 6))
    np.savez(tmp_path / "digits.npz", X=rows, y=signs)
    return tmp_path


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")

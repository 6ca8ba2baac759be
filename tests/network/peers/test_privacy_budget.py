"""The budget of a site: what is paid, what is free, and what is refused."""

from __future__ import annotations

import os
import stat

import pytest

from peerlearn import DifferentialPrivacy
from peerlearn.errors import InputError, NetworkError
from peerlearn.network.peers.privacy_budget import PrivacyBudget
from peerlearn.secret.privacy_statement import Payment


def payment(noise, epsilon=1.0):
    privacy = DifferentialPrivacy(epsilon, 1e-6)
    return Payment(noise, "a model", epsilon, 1e-6, "add-remove", privacy.noise_multiplier)


@pytest.fixture
def budget(tmp_path):
    return PrivacyBudget(tmp_path / "site" / "spent.jsonl", epsilon=2.0, delta=1e-6)


def test_each_new_release_pays_until_nothing_is_left(budget):
    assert budget.spent == 0.0
    for number in range(3):
        budget.pay("study", payment(f"noise {number}"))
    # Three runs of epsilon 1 cost about sqrt(3) together; a fourth would cost 2 or more.
    assert 1.5 < budget.spent < 2.0
    before = budget.file.read_bytes()
    with pytest.raises(InputError, match=r"run 'late' would .* to 2\..*, and the budget is 2"):
        budget.pay("late", payment("noise 3"))
    assert budget.file.read_bytes() == before
    budget.pay("small", payment("noise 4", 0.1))
    assert [entry["run"] for entry in budget.entries] == ["study"] * 3 + ["small"]


def test_a_resumed_release_is_free_also_when_nothing_is_left(budget):
    budget.pay("study", payment("noise", 1.99))
    spent = budget.spent
    for _ in range(3):
        budget.pay("study", payment("noise", 1.99))
    assert budget.spent == spent
    with pytest.raises(InputError, match="would bring"):
        budget.pay("study", payment("other noise", 1.99))


def test_without_a_limit_runs_are_recorded_and_none_is_refused(tmp_path):
    budget = PrivacyBudget(tmp_path / "spent.jsonl")
    for number in range(3):
        budget.pay("study", payment(f"noise {number}", 100.0))
    assert budget.spent > 100
    entry = budget.entries[0]
    assert (entry["what"], entry["epsilon"], entry["delta"]) == ("a model", 100.0, 1e-6)
    assert stat.S_IMODE(budget.file.stat().st_mode) == 0o600


def test_a_line_is_on_disk_before_pay_returns(budget, monkeypatch):
    synced = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(fsync(file)))
    budget.pay("study", payment("noise"))
    assert synced


def test_a_file_that_was_edited_or_cannot_be_written_stops_the_run(budget, monkeypatch):
    budget.pay("study", payment("noise"))
    text = budget.file.read_text().replace('"epsilon":1.0', '"epsilon":0.1')
    budget.file.write_text(text)
    with pytest.raises(NetworkError, match="line 1 was edited"):
        budget.pay("study", payment("more"))

    def fail(file):
        raise OSError(28, "No space left on device")

    other = PrivacyBudget(budget.file.with_name("other.jsonl"), 2.0)
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(NetworkError, match="cannot be written"):
        other.pay("study", payment("noise"))
    assert other.spent == 0.0

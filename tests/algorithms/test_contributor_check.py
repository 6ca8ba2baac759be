"""Totals of several trainings: what their differences show, and when a training is refused."""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn import graphs
from peerlearn.algorithms.secret_sums import one_session, session_of
from peerlearn.errors import PeerlearnError
from peerlearn.network.peers.contributor_file import ContributorFile
from peerlearn.testing import run_in_threads

ROWS = np.random.default_rng(0).standard_normal((900, 6))
NAMES = ("north", "south", "west", "east", "centre")


def train(folder, shares, *, consent=(), colluders=1, versions=True):
    """Return the total of all sites' Gram matrices, or what each site said instead.

    shares: rows by name of the site. consent: names of those that give it. versions: whether sites
    know a digest of their data.
    """
    names = tuple(shares)

    def work(network):
        name = names[network.hosted[0]]
        records = ContributorFile(folder / name)
        network.names = names
        network.earlier_totals = records.before
        network.record_total = records.add
        network.consent = name in consent
        network.keep_secrets("sums", colluders)
        rows = shares[name]
        if versions:
            network.data_version = str(hash(rows.tobytes()))
        with one_session(network):
            session = session_of(network)
            try:
                found = session.total("Gram matrices", (rows.T @ rows)[None])[0]
            except PeerlearnError as error:
                assert "Gram matrices" not in session.quantities, "it was sent"
                return error
            assert session.total("row counts", np.full((1, 1), len(rows)))[0, 0] > 0
            return found

    found = run_in_threads(graphs.ring(len(names)), work)
    if isinstance(found[0], PeerlearnError):
        return {name: str(error) for name, error in zip(names, found, strict=True)}
    np.testing.assert_array_equal(found[0], found[-1])
    return found[0]


def deal(names=NAMES[:4], rows=ROWS):
    return dict(zip(names, np.array_split(rows, len(names)), strict=True))


def changed(shares, *names):
    return {name: rows[1:] if name in names else rows for name, rows in shares.items()}


@pytest.mark.parametrize("versions", [True, False])
def test_one_withdrawn_row_is_shown_by_a_difference_and_only_with_consent(tmp_path, versions):
    """The attack: two totals that differ by one row of 900 give that row."""
    shares = deal()
    before = train(tmp_path, shares, versions=versions)
    less = changed(shares, "south")
    refused = train(tmp_path, less, versions=versions)
    assert "this agent's data differ from those of an earlier total" in refused.pop("south")
    assert all("(code 8): its own log says why" in said for said in refused.values())
    refused = train(tmp_path, less, consent=("north", "west", "east"), versions=versions)
    assert "and 0 other agents changed theirs: 2 or more must" in refused["south"]
    after = train(tmp_path, less, consent=("south",), versions=versions)
    values, vectors = np.linalg.eigh(before - after)
    row = np.sqrt(values[-1]) * vectors[:, -1]
    wanted = shares["south"][0]
    found = row * np.sign(row @ wanted)
    assert np.linalg.norm(found - wanted) < 1e-13 * np.linalg.norm(wanted)
    # The same data again show nothing new.
    np.testing.assert_array_equal(train(tmp_path, less, versions=versions), after)


def test_a_change_at_enough_sites_needs_no_consent(tmp_path):
    shares = deal(NAMES)
    train(tmp_path, shares, colluders=2)
    refused = train(tmp_path, changed(shares, *NAMES[:3]), colluders=2)
    assert "and 2 other agents changed theirs: 3 or more must" in refused["north"]
    assert "code 8" in refused["centre"]
    train(tmp_path, changed(shares, *NAMES[:4]), colluders=2)


def test_nobody_consents_for_a_site_that_left(tmp_path):
    shares = deal()
    train(tmp_path, shares)
    rest = {name: shares[name] for name in NAMES[:3]}
    for consent in ((), NAMES[:3]):
        refused = train(tmp_path, rest, consent=consent)
        assert all("not here any more" in said for said in refused.values())
    refused = train(tmp_path, changed(rest, "north"), consent=NAMES[:3])
    assert all("not here any more" in said for said in refused.values())
    with_news = changed(rest, *NAMES[:2])  # the site that left, and two others: t + 2
    assert isinstance(train(tmp_path, with_news), np.ndarray)


def test_a_site_that_joins_decides_about_its_own_data(tmp_path):
    shares = deal()
    train(tmp_path, {name: shares[name] for name in NAMES[:3]})
    refused = train(tmp_path, shares)
    assert "this agent's data differ" in refused["east"]
    assert all("code 8" in refused[name] for name in NAMES[:3])
    train(tmp_path, shares, consent=("east",))


def test_sums_and_differences_of_three_totals(tmp_path):
    """Pairs differ by three agents or more, but (z a b c) + (z d e f) - all = z."""
    names = "zabcdef"
    rows = dict(zip(names, np.array_split(ROWS, 7), strict=True))
    for sites in ("zabc", "zdef"):
        train(tmp_path, {name: rows[name] for name in sites})
    refused = train(tmp_path, rows, consent="abcdef")
    assert "sums and differences of this total and of earlier ones have 1 agents" in refused["z"]
    assert "code 8" in refused["a"]
    train(tmp_path, rows, consent="z")


def test_a_return_to_earlier_data(tmp_path):
    shares = deal(NAMES)
    later = changed(shares, *NAMES[:3])
    latest = changed(later, *NAMES[2:])
    for each in (shares, later, latest):
        train(tmp_path, each)
    back = {**latest, **{name: shares[name] for name in NAMES[:2]}, "centre": ROWS[:7]}
    refused = train(tmp_path, back)
    assert "had these data in an earlier total and other data in between" in refused["north"]
    assert "code 8" in refused["centre"]
    train(tmp_path, back, consent=NAMES[:2])


def test_a_restarted_agent_does_not_compare_a_session_with_itself(tmp_path):
    train(tmp_path, deal())
    records = ContributorFile(tmp_path / "north")
    (record,) = records.before("none")
    assert records.before(record.own) == []
    records.add(record)
    assert len(ContributorFile(tmp_path / "north").before("none")) == 1
    assert (tmp_path / "north" / "totals.jsonl").stat().st_mode & 0o777 == 0o600
    assert set(record.contributors) == set(NAMES[:4])

"""The conversation of two neighbors, and whole runs under cuts, losses, repetitions and kills."""

from __future__ import annotations

import json
import logging

import numpy as np
import pytest

from peerlearn import SimulatedNetwork, graphs
from peerlearn.errors import InputError, Mismatch, NetworkError, Stopped, WireError
from peerlearn.network.peers.frame import Kind, decode
from peerlearn.network.peers.link import Left, Link, Refusal, Speaker
from tests.disturbed import World

SETTINGS = {"the graph": "a ring", "alpha": "0.1"}


def speaker(number=0, name="north", run="run", settings=SETTINGS, **more):
    return Speaker(run, number, name, settings, **more)


def south(**more):
    return speaker(1, "south", **more)


def new_link(**more):
    return Link(speaker(**more), 1, "south", horizon=8)


def greeted(done=0, saved=0, **more):
    link = new_link(**more)
    link.heard(south(done=done, saved=saved).hello())
    return link


def row(n, of=None, x=1.0):
    return (of or south(done=n - 1)).frames(Kind.ROW, np.array([x]), n)


def hello_of(told):
    """A hello with any content."""
    return south().text(Kind.HELLO, told if isinstance(told, str) else json.dumps(told))


def only_terminal_safe(error):
    return str(error.value).isprintable() and len(str(error.value)) < 1000


class TestHello:
    def test_brings_the_link_up(self):
        link = new_link()
        assert not link.up
        assert link.heard(south(done=3).hello()) == []
        assert (link.up, link.greetings, link.done) == (True, 1, 3)

    def test_is_answered_with_all_that_the_neighbor_may_lack(self):
        link = new_link()
        for n in (1, 2, 3):
            assert link.send(n, [b"%d" % n]) == []  # nobody is there yet
        assert link.heard(south(done=1).hello()) == [b"2", b"3"]
        assert link.send(4, [b"4"]) == [b"4"]
        link.closed()
        assert link.send(5, [b"5"]) == []
        assert link.heard(south(done=3).hello()) == [b"4", b"5"]

    def test_of_a_neighbor_that_comes_back_with_less_counts(self):
        """Found by the schedules below: an agent that is itself catching up held back what the other one lacks."""
        link = greeted(done=10)  # we were killed, and the neighbor is ahead of us
        assert link.send(9, [b"9"]) == []  # it has this
        link.closed()
        assert link.heard(south(done=5).hello()) == [b"9"]  # now it was killed, and is behind
        assert link.send(10, [b"10"]) == [b"10"]

    def test_says_what_was_saved(self):
        link = new_link()
        for n in (1, 2, 3):
            link.send(n, [b"%d" % n])
        link.heard(south(done=3, saved=2).hello())
        assert link.outbox.after(0) == [b"3"]

    def test_of_an_agent_that_needs_what_is_gone_is_refused(self):
        link = greeted(done=5, saved=4)
        link.closed()
        with pytest.raises(
            Refusal, match="agent south is back in round 4, and agent north has nothing left of rounds up to 4"
        ):
            link.heard(south(done=3).hello())
        assert not link.up
        link.heard(south(done=4).hello())
        assert link.up

    def test_twice_is_refused(self):
        with pytest.raises(WireError, match="agent south said hello twice"):
            greeted().heard(south().hello())

    def test_comes_first(self):
        for data in (*row(1), south().word(Kind.ALIVE), south().word(Kind.DONE)):
            with pytest.raises(WireError, match="agent south spoke before it said hello"):
                new_link().heard(data)
        link = greeted()
        link.closed()
        with pytest.raises(WireError, match="before it said hello"):
            link.heard(*row(1))

    @pytest.mark.parametrize(
        "told",
        ["", "no json", "[]", "3", "null", "[" * 60_000, '{"run":' * 9_000, "9" * 60_000, '{"run": "run"', "\x00"],
        ids=lambda told: told[:8] or "nothing",
    )
    def test_that_cannot_be_read_is_refused(self, told):
        with pytest.raises(WireError, match="agent south said a hello that cannot be read"):
            new_link().heard(hello_of(told))

    @pytest.mark.parametrize("depth", [10, 400, 900, 960, 980, 990])
    def test_that_is_deeply_nested_is_refused(self, depth):
        with pytest.raises((WireError, Mismatch)):
            new_link().heard(hello_of('{"run": ' + "[" * depth + "]" * depth + "}"))

    @pytest.mark.parametrize("settings", [None, 3, [], "text", {}, {"alpha": None}, {"alpha": {"a": [1]}}], ids=str)
    def test_with_settings_of_any_kind_gets_its_sentence(self, settings):
        with pytest.raises(Mismatch, match="disagree on alpha"):
            new_link().heard(hello_of({"run": "run", "agent": "south", "settings": settings}))


class TestMismatch:
    def test_before_the_first_round_ends_the_run_with_the_key_and_both_values(self):
        with pytest.raises(Mismatch, match=r"north and south disagree on alpha: 0.1 at north, 0.2 at south; give all"):
            new_link().heard(south(settings={**SETTINGS, "alpha": "0.2"}).hello())

    def test_later_turns_the_newcomer_away(self):
        other = south(settings={**SETTINGS, "alpha": "0.2"}).hello()
        with pytest.raises(Refusal, match=r"disagree on alpha: 0.1 at north, 0.2 at south"):
            new_link(done=3).heard(other)
        link = greeted()
        link.closed()
        with pytest.raises(Refusal, match="disagree on alpha"):
            link.heard(other)
        assert not link.up

    def test_of_a_setting_that_one_side_lacks(self):
        with pytest.raises(Mismatch, match="disagree on beta: nothing at north, 1 at south"):
            new_link().heard(south(settings={**SETTINGS, "beta": "1"}).hello())
        with pytest.raises(Mismatch, match=r"disagree on alpha: 0.1 at north, nothing at south"):
            new_link().heard(south(settings={"the graph": "a ring"}).hello())

    def test_of_the_name(self):
        with pytest.raises(Mismatch, match="disagree on its name: south at north, west at south"):
            new_link().heard(speaker(1, "west").hello())

    def test_of_the_run_is_noticed_in_every_frame_and_where_checksums_happen_to_agree(self):
        with pytest.raises(WireError, match="a frame of another run: give all agents the same run name"):
            new_link().heard(south(run="walk").hello())
        other = south(run="walk")
        other._run = speaker()._run
        with pytest.raises(Mismatch, match="disagree on the run: run at north, walk at south"):
            new_link().heard(other.hello())

    def test_is_an_input_error_and_a_refusal_is_not(self):
        assert issubclass(Mismatch, InputError)
        assert issubclass(Refusal, NetworkError)
        assert not issubclass(Refusal, Mismatch)

    @pytest.mark.parametrize(
        "settings",
        [
            {**SETTINGS, "alpha": "\x1b[2Jevil\r\n"},
            {**SETTINGS, "alpha": "a" * 5000},
            {**SETTINGS, "\x1b[2Jevil\r\n": "1"},
            {**SETTINGS, "a" * 5000: "1"},
            {**SETTINGS, "\ud800": "1"},
        ],
        ids=["value", "long value", "key", "long key", "no text"],
    )
    def test_cannot_steer_a_terminal_or_fill_it(self, settings):
        with pytest.raises(Mismatch, match="disagree on") as error:
            new_link().heard(south(settings=settings).hello())
        assert only_terminal_safe(error)
        speaker().text(Kind.LEAVE, str(error.value))  # the neighbor is told


class TestFrames:
    def test_of_rounds_are_kept_until_asked_for_and_tell_how_far_the_neighbor_is(self):
        link = greeted()
        assert link.heard(*row(2)) == []
        assert link.heard(*row(1)) == []
        assert link.heard(*row(1)) == []
        assert (link.done, link.inbox.has(1), link.inbox.has(2), link.inbox.has(3)) == (1, True, True, False)

    def test_tell_what_was_saved(self):
        link = greeted()
        for n in (1, 2, 3):
            link.send(n, [b"%d" % n])
        link.heard(south(done=3, saved=1).word(Kind.ALIVE))
        assert (link.done, link.outbox.after(0)) == (3, [b"2", b"3"])

    def test_of_somebody_else_are_refused(self):
        with pytest.raises(WireError, match="a frame of agent number 2 came on the link of agent south"):
            greeted().heard(speaker(2, "south").word(Kind.ALIVE))

    def test_that_are_refused_change_nothing(self):
        link = greeted()
        link.send(1, [b"1"])
        with pytest.raises(WireError, match="nobody is so far ahead"):
            link.heard(*row(1000, south(done=999, saved=998)))
        assert (link.done, link.outbox.dropped) == (0, 0)

    def test_cannot_have_saved_what_is_ahead_of_their_sender(self):
        other = south(done=3, saved=4)
        for link, data in ((new_link(), other.hello()), (greeted(), other.word(Kind.ALIVE))):
            link.send(1, [b"1"])
            with pytest.raises(WireError):
                link.heard(data)
            assert link.outbox.after(0) == [b"1"]

    def test_the_neighbor_has_are_not_written_but_kept(self):
        link = greeted(done=5)
        assert link.send(5, [b"5"]) == []
        assert link.send(6, [b"6"]) == [b"6"]
        assert link.outbox.after(4) == [b"5", b"6"]

    def test_of_a_farewell_end_the_run_with_their_sentence(self):
        for link in (new_link(), greeted()):
            with pytest.raises(Left, match=r"^agent south ended the run: no rows$"):
                link.heard(south().text(Kind.LEAVE, "agent south ended the run: \x1bno rows"))
        assert issubclass(Left, Stopped)

    def test_done_is_answered_and_seen_is_remembered(self):
        link = greeted()
        (answer,) = link.heard(south(done=9).word(Kind.DONE))
        assert (link.finished, link.seen, link.done) == (True, False, 9)
        other = Link(south(), 0, "north", horizon=8)
        other.heard(speaker().hello())
        assert decode(answer, run=speaker()._run).kind is Kind.SEEN
        assert other.heard(answer) == []
        assert (other.finished, other.seen) == (False, True)


# Whole runs -----------------------------------------------------------------------------------------------------------


def plain(network, breathe):
    """x <- C x."""
    x = np.random.default_rng(network.hosted[0]).standard_normal((1, 3))
    for _ in range(8):
        x = network.mix(x)
        breathe()
    return x


def rich(network, breathe):
    """Every call of the contract: recurrences, letters, a sum over the tree and back, floods."""
    agent, tree = network.hosted[0], network.tree
    x = np.random.default_rng(agent).standard_normal((1, 3))
    steps = np.array([[1.0, 0.0, 0.0], [1.3, -0.1, -0.2], [1.1, 0.2, -0.3]])
    x = network.recur(x, steps)
    breathe()
    (letters,) = network.exchange([{"x": x[0]}] if agent % 2 == 0 else [{}])
    for sender in sorted(letters):
        x = x + 0.1 * letters[sender]["x"]
    for level in reversed(tree.levels):
        network.pass_on(x, level, tree.parent[level], add=True)
        breathe()
    for level in tree.levels:
        network.pass_on(x, tree.parent[level], level, add=False)
    mixed, largest = network.mix_and_flood(x + agent, np.abs(x))
    return network.recur(mixed + 0.01 * network.flood(largest), steps)


PROGRAMS = {"plain": plain, "rich": rich}
calm = {}


@pytest.fixture
def undisturbed(tmp_path, monkeypatch):
    """What a run gives that nothing happens to."""
    monkeypatch.setattr(logging.getLogger("peerlearn.peers"), "disabled", True)

    def result(program, size):
        if (program, size) not in calm:
            world = World(graphs.ring(size), tmp_path / f"calm-{size}", PROGRAMS[program], 0, tricks=False)
            calm[program, size] = world.run(monkeypatch)
        return calm[program, size]

    return result


def test_an_undisturbed_run_is_the_simulation(undisturbed):
    network = SimulatedNetwork(graphs.ring(4), exact_order=True)
    x = np.concatenate([np.random.default_rng(agent).standard_normal((1, 3)) for agent in range(4)])
    for _ in range(8):
        x = network.mix(x)
    np.testing.assert_array_equal(undisturbed("plain", 4), x)


DISTURBANCES = {"cuts": {"cuts": 6}, "a kill": {"kills": 1}, "kills": {"kills": 5}, "all": {"kills": 5, "cuts": 6}}


@pytest.mark.parametrize("block", range(4))
@pytest.mark.parametrize("disturbances", DISTURBANCES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_whatever_happens_the_result_has_the_bits_of_an_undisturbed_run(
    tmp_path, monkeypatch, undisturbed, program, disturbances, block
):
    for seed in range(10 * block, 10 * block + 10):
        size = 3 + seed % 3
        expected = undisturbed(program, size)
        world = World(graphs.ring(size), tmp_path / str(seed), PROGRAMS[program], seed, **DISTURBANCES[disturbances])
        try:
            result = world.run(monkeypatch)
            assert result.tobytes() == expected.tobytes(), "the result has other bits"
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}\n" + "\n".join(world.told[-60:])) from error


def all_end(tmp_path, monkeypatch, expected, *, torn):
    """Runs in which agents are killed when the first one is done; gives those that waited for others in vain."""
    in_vain = {}
    for seed in range(20):
        world = World(graphs.ring(3), tmp_path / str(seed), plain, seed, kills=3, late=True, torn=torn)
        try:
            assert world.run(monkeypatch).tobytes() == expected.tobytes(), "the result has other bits"
        except (AssertionError, Stopped) as error:
            raise AssertionError(f"seed {seed}: {error}\n" + "\n".join(world.told[-60:])) from error
        if world.gave_up:
            in_vain[seed] = world.gave_up
    return in_vain


def test_an_agent_that_is_killed_when_it_is_done_need_not_wait_for_others_that_are_gone(
    tmp_path, monkeypatch, undisturbed
):
    assert all_end(tmp_path, monkeypatch, undisturbed("plain", 3), torn=False) == {}


def test_an_agent_that_said_it_is_done_does_not_come_back_needing_others(tmp_path, monkeypatch, undisturbed):
    """Not even when its newest checkpoint is torn: they may have forgotten the run."""
    all_end(tmp_path, monkeypatch, undisturbed("plain", 3), torn=True)

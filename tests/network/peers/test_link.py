"""The conversation of two neighbors, and whole runs under cuts, losses, repetitions and kills."""

from __future__ import annotations

import json
import logging

import numpy as np
import pytest

from peerlearn import SimulatedNetwork, graphs
from peerlearn.errors import InputError, Mismatch, NetworkError, Stopped, WireError
from peerlearn.network.peers.frame import (
    CHUNK,
    MOST_ROUNDS,
    VERSION,
    Kind,
    checksum_of,
    decode,
    receipt_of,
)
from peerlearn.network.peers.link import MOST_DISPUTED, Left, Link, Refusal, Refused, Speaker
from tests.support.disturbed import World

SETTINGS = {"the graph": "a ring", "alpha": "0.1"}


def speaker(number=0, name="north", run="run", settings=SETTINGS, **more):
    return Speaker(run, number, name, settings, **more)


def south(**more):
    return speaker(1, "south", **more)


def new_link(**more):
    return Link(speaker(**more), 1, "south", horizon=8)


def greeted(done=0, **more):
    link = new_link(**more)
    link.receive(south(done=done).hello())
    return link


def ours(n):
    """The frames of a row that we send in round n."""
    return speaker().frames(Kind.ROW, np.array([float(n)]), n)


def receipt(rounds):
    """Of a neighbor that took what we sent in rounds 1, 2, .."""
    found = 0
    for n in range(1, rounds + 1):
        found = receipt_of(map(checksum_of, ours(n)), found)
    return found


def sending(rounds=3, **more):
    """A link that is up, over which we have sent some rounds."""
    link = greeted(**more)
    for n in range(1, rounds + 1):
        link.send(n, ours(n))
    link.me.done = rounds
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
        assert link.receive(south(done=3).hello()) == []
        assert (link.up, link.greetings, link.done) == (True, 1, 3)

    def test_is_answered_with_all_that_the_neighbor_may_lack(self):
        link = new_link()
        for n in (1, 2, 3):
            assert link.send(n, ours(n)) == []  # nobody is there yet
        assert link.receive(south(done=1).hello()) == ours(2) + ours(3)
        assert link.send(4, ours(4)) == ours(4)
        link.mark_down()
        assert link.send(5, ours(5)) == []
        assert link.receive(south(done=3).hello()) == ours(4) + ours(5)

    def test_of_a_neighbor_that_comes_back_with_less_counts(self):
        """Found by the schedules below: an agent that is itself catching up held back what the
        other one lacks.
        """
        link = greeted(done=10)  # we were killed, and the neighbor is ahead of us
        assert link.send(9, ours(9)) == []  # it has this
        link.mark_down()
        assert link.receive(south(done=5).hello()) == ours(9)  # now it was killed, and is behind
        assert link.send(10, ours(10)) == ours(10)

    def test_says_what_was_saved(self):
        link = sending(3)
        link.mark_down()
        link.receive(south(done=3).hello(2, receipt(2)))
        assert link.outbox.after(0) == ours(3)

    def test_of_an_agent_that_needs_what_is_gone_is_refused(self):
        link = sending(5)
        link.receive(south(done=5).word(Kind.ALIVE, 4, receipt(4)))
        link.mark_down()
        with pytest.raises(
            Refusal,
            match=(
                "agent south is back in round 4, and agent north has nothing left of rounds up to 4"
            ),
        ):
            link.receive(south(done=3).hello())
        assert not link.up
        link.receive(south(done=4).hello())
        assert link.up

    def test_twice_is_refused(self):
        with pytest.raises(WireError, match="agent south said hello twice"):
            greeted().receive(south().hello())

    def test_comes_first(self):
        for data in (*row(1), south().word(Kind.ALIVE), south().word(Kind.DONE)):
            with pytest.raises(WireError, match="agent south spoke before it said hello"):
                new_link().receive(data)
        link = greeted()
        link.mark_down()
        with pytest.raises(WireError, match="before it said hello"):
            link.receive(*row(1))

    @pytest.mark.parametrize(
        "told",
        [
            "",
            "no json",
            "[]",
            "3",
            "null",
            "[" * 60_000,
            '{"run":' * 9_000,
            "9" * 60_000,
            '{"run": "run"',
            "\x00",
        ],
        ids=lambda told: told[:8] or "nothing",
    )
    def test_that_cannot_be_read_is_refused(self, told):
        with pytest.raises(WireError, match="agent south sent a hello that cannot be read"):
            new_link().receive(hello_of(told))

    @pytest.mark.parametrize("depth", [10, 400, 900, 960, 980, 990])
    def test_that_is_deeply_nested_is_refused(self, depth):
        with pytest.raises((WireError, Mismatch)):
            new_link().receive(hello_of('{"run": ' + "[" * depth + "]" * depth + "}"))

    @pytest.mark.parametrize(
        "settings", [None, 3, [], "text", {}, {"alpha": None}, {"alpha": {"a": [1]}}], ids=str
    )
    def test_with_settings_of_any_kind_gets_its_sentence(self, settings):
        with pytest.raises(Mismatch, match="disagree on alpha"):
            new_link().receive(hello_of({"run": "run", "agent": "south", "settings": settings}))


class TestMismatch:
    def test_before_the_first_round_ends_the_run_with_the_key_and_both_values(self):
        with pytest.raises(
            Mismatch,
            match=r"north and south disagree on alpha: 0.1 at north, 0.2 at south; give all",
        ):
            new_link().receive(south(settings={**SETTINGS, "alpha": "0.2"}).hello())

    def test_later_turns_the_newcomer_away(self):
        other = south(settings={**SETTINGS, "alpha": "0.2"}).hello()
        with pytest.raises(Refusal, match=r"disagree on alpha: 0.1 at north, 0.2 at south"):
            new_link(done=3).receive(other)
        link = greeted()
        link.mark_down()
        with pytest.raises(Refusal, match="disagree on alpha"):
            link.receive(other)
        assert not link.up

    def test_of_a_setting_that_one_side_lacks(self):
        with pytest.raises(Mismatch, match="disagree on beta: nothing at north, 1 at south"):
            new_link().receive(south(settings={**SETTINGS, "beta": "1"}).hello())
        with pytest.raises(Mismatch, match=r"disagree on alpha: 0.1 at north, nothing at south"):
            new_link().receive(south(settings={"the graph": "a ring"}).hello())

    def test_of_the_name(self):
        with pytest.raises(Mismatch, match="disagree on its name: south at north, west at south"):
            new_link().receive(speaker(1, "west").hello())

    def test_of_the_wire_format_names_both(self):
        hello = bytearray(south().hello())
        hello[4] = VERSION + 1
        sentence = (
            f"disagree on the wire format of peerlearn: {VERSION} at north, {VERSION + 1} at "
            "south; install the"
        )
        with pytest.raises(Mismatch, match=sentence):
            new_link().receive(bytes(hello))
        with pytest.raises(Refusal, match=sentence):
            new_link(done=3).receive(bytes(hello))

    def test_of_the_run_is_noticed_in_every_frame_and_where_checksums_happen_to_agree(self):
        with pytest.raises(
            WireError, match="a frame of another run: give all agents the same run name"
        ):
            new_link().receive(south(run="walk").hello())
        other = south(run="walk")
        other._run = speaker()._run
        with pytest.raises(Mismatch, match="disagree on the run: run at north, walk at south"):
            new_link().receive(other.hello())

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
            new_link().receive(south(settings=settings).hello())
        assert only_terminal_safe(error)
        speaker().text(Kind.LEAVE, str(error.value))  # the neighbor is told


class TestFrames:
    def test_of_rounds_are_kept_until_asked_for_and_tell_how_far_the_neighbor_is(self):
        link = greeted()
        assert link.receive(*row(2)) == []
        assert link.receive(*row(1)) == []
        assert link.receive(*row(1)) == []
        assert (link.done, link.inbox.has(1), link.inbox.has(2), link.inbox.has(3)) == (
            1,
            True,
            True,
            False,
        )

    def test_of_somebody_else_are_refused(self):
        with pytest.raises(
            WireError, match="a frame of agent number 2 came on the link of agent south"
        ):
            greeted().receive(speaker(2, "south").word(Kind.ALIVE))

    def test_that_are_refused_change_nothing(self):
        link = greeted()
        link.send(1, ours(1))
        with pytest.raises(WireError, match="nobody is so far ahead"):
            link.receive(*row(1000, south(done=999)))
        assert (link.done, link.outbox.dropped) == (0, 0)

    def test_the_neighbor_has_are_not_written_but_kept(self):
        link = greeted(done=5)
        assert link.send(5, ours(5)) == []
        assert link.send(6, ours(6)) == ours(6)
        assert link.outbox.after(4) == ours(5) + ours(6)

    def test_of_a_farewell_end_the_run_with_their_sentence(self):
        farewell = south().text(Kind.LEAVE, "agent south ended the run: \x1bno rows")
        with pytest.raises(Left, match=r"^agent south ended the run: no rows$"):
            greeted().receive(farewell)
        with pytest.raises(WireError, match="before it said hello"):
            new_link().receive(farewell)
        assert issubclass(Left, Stopped)

    def test_of_a_refusal_end_this_agent_alone(self):
        with pytest.raises(Refused, match=r"^agent north is back in round 1$"):
            greeted().receive(south().text(Kind.REFUSE, "agent north is back in round 1"))
        assert issubclass(Refused, Left)

    def test_done_is_answered_and_seen_is_remembered(self):
        link = sending(3)
        (answer,) = link.receive(south(done=3).word(Kind.DONE, 3, receipt(3)))
        assert (link.finished, link.seen, link.done) == (True, False, 3)
        other = Link(south(), 0, "north", horizon=8)
        other.receive(speaker().hello())
        assert decode(answer, run=speaker()._run).kind is Kind.SEEN
        assert other.receive(answer) == []
        assert (other.finished, other.seen) == (False, True)


class TestClaims:
    """What a neighbor says of itself is checked against what can be true, and nothing of it is for
    ever.
    """

    def test_what_was_saved_is_deleted_with_the_receipt_of_what_was_sent(self):
        link = sending(3)
        link.receive(south(done=3).word(Kind.ALIVE, 1, receipt(1)))
        assert (link.done, link.outbox.after(0)) == (3, ours(2) + ours(3))

    @pytest.mark.parametrize("saved", [1, 2, 3])
    @pytest.mark.parametrize("wrong", [0, 1, receipt(4), 2**64 - 1])
    def test_without_that_receipt_nothing_is_deleted(self, saved, wrong):
        link = sending(3)
        with pytest.raises(
            WireError, match=f"says that it saved round {saved}, and did not take what was sent"
        ):
            link.receive(south(done=3).word(Kind.ALIVE, saved, wrong))
        assert link.outbox.after(0) == ours(1) + ours(2) + ours(3)
        link.mark_down()
        assert link.receive(south(done=0).hello()) == ours(1) + ours(2) + ours(3), (
            "the real one gets all that it needs"
        )

    @pytest.mark.parametrize("claimed", [4, 8, 2**47, MOST_ROUNDS, 2**63, 2**64 - 1])
    @pytest.mark.parametrize("first", [True, False], ids=["in the first hello", "later"])
    def test_no_number_makes_the_real_agent_unwelcome(self, claimed, first):
        """Found from outside: one ALIVE frame with 2^64 - 1 was believed, and the honest agent
        refused for ever.
        """
        link = new_link() if first else greeted()
        for n in (1, 2, 3):
            link.send(n, ours(n))
        link.me.done = 3
        liar = south(done=claimed)
        frame = liar.hello(claimed, 5) if first else liar.word(Kind.ALIVE, claimed, 5)
        try:
            link.receive(frame)
        except WireError:
            link.mark_down()
        assert link.outbox.after(0) == ours(1) + ours(2) + ours(3)
        link.mark_down()
        assert link.receive(south(done=1).hello()) == ours(2) + ours(3)
        assert link.done == 1

    def test_rounds_that_a_neighbor_claims_last_as_long_as_its_connection(self):
        """A bound on them was tried: an honest neighbor that is far ahead, after a kill or by
        itself, was barred.
        """
        link = sending(3)
        link.receive(south(done=10**6).word(Kind.ALIVE))
        assert link.send(4, ours(4)) == []
        link.mark_down()
        assert link.receive(south(done=3).hello()) == ours(4)
        assert link.done == 3

    @pytest.mark.parametrize(
        "left", ["the first chunk of a larger row", "a row of other numbers", "a letter"]
    )
    def test_what_somebody_else_sent_does_not_stand_in_the_way(self, left):
        link, liar = greeted(), south()
        kind = Kind.LETTER if left == "a letter" else Kind.ROW
        numbers = np.zeros(CHUNK // 8 + 1) if "chunk" in left else np.zeros(1)
        link.receive(
            liar.frames(kind, numbers if kind is Kind.ROW else np.zeros(3, np.uint8), 1)[0]
        )
        link.mark_down()
        link.receive(south().hello())
        link.receive(*row(1, x=2.0))
        out = np.empty(1)
        link.inbox.take(1).row(out, "south")
        assert out == 2.0

    def test_who_was_killed_takes_all_rows_that_its_neighbor_sends_again(self):
        link = greeted(done=500)
        for n in range(1, 509):
            link.receive(*row(n))
        with pytest.raises(
            WireError, match="a message of round 509 came in round 1: nobody is so far ahead"
        ):
            link.receive(*row(509))

    def test_an_agent_that_came_back_and_computes_other_numbers_finds_out(self):
        false = south(done=3).word(Kind.ALIVE, 2, 5)
        honest, came_back = sending(3), sending(3, restored=True)
        for _ in range(MOST_DISPUTED - 1):
            for link in (honest, came_back):
                with pytest.raises(WireError, match="did not take what was sent"):
                    link.receive(false)
        with pytest.raises(
            Refused,
            match=r"agents north and south disagree on what north sent up to round 2: since it",
        ):
            came_back.receive(false)
        with pytest.raises(WireError, match="did not take what was sent"):
            honest.receive(false)

    def test_a_neighbor_says_whom_it_waits_for(self):
        link = greeted()
        assert link.late == "south"
        link.receive(south(waits_for="west").word(Kind.ALIVE))
        assert link.late == "south"  # a Speaker's own word says nothing of it
        other = Link(south(waits_for="west\x1b[2J"), 0, "north", horizon=8)
        link.receive(other.word(Kind.ALIVE))
        assert link.late == "south (which waits for west[2J)"
        other.me.waits_for = "north"
        link.receive(other.word(Kind.ALIVE))
        assert link.late == "south", "it waits for us"

    def test_done_is_answered_once_and_seen_is_asked_for_again(self):
        link, done = sending(3), south(done=3).word(Kind.DONE, 3, receipt(3))
        assert len(link.receive(done)) == 1
        assert link.receive(done) == []
        link.receive(south(done=3).word(Kind.SEEN))
        assert link.seen
        link.mark_down()
        link.receive(south(done=3).hello())
        assert not link.seen

    def test_nobody_saved_what_is_ahead_of_it(self):
        for link, data in (
            (new_link(), south(done=3).hello(4, 0)),
            (greeted(), south(done=3).word(Kind.ALIVE, 4, 0)),
            (greeted(), south(done=3).word(Kind.DONE, 2, 0)),
        ):
            link.send(1, ours(1))
            with pytest.raises(WireError, match="says that it saved round"):
                link.receive(data)
            assert link.outbox.after(0) == ours(1)

    def test_who_is_done_has_taken_all_that_was_sent(self):
        link = sending(3)
        with pytest.raises(WireError, match="did not take what was sent"):
            link.receive(south(done=3).word(Kind.DONE, 3, 7))
        assert not link.finished
        link.receive(south(done=4).word(Kind.DONE, 4, receipt(4)))  # it is a round ahead
        assert not link.finished
        link.send(4, ours(4))
        link.me.done = 4
        assert link.finished

    def test_who_comes_back_without_being_done_is_not(self):
        link = sending(3)
        link.receive(south(done=3).word(Kind.DONE, 3, receipt(3)))
        assert link.finished
        link.mark_down()
        link.receive(south(done=3).hello(3, receipt(3)))
        assert not link.finished
        link.mark_down()
        link.receive(south(done=3, finished=True).hello(3, receipt(3)))
        assert link.finished

    def test_who_is_done_before_us_ended_early(self):
        link = sending(3)
        link.receive(south(done=2).word(Kind.DONE, 2, receipt(2)))
        assert (link.finished, link.ended_early) == (False, True)
        link.mark_down()
        assert not link.ended_early, "it may come back"

    def test_nobody_is_done_without_a_receipt(self):
        link = sending(3)
        link.receive(south(done=3).word(Kind.ALIVE, 3, receipt(3)))
        link.receive(
            south(done=2).word(Kind.DONE, 2, 99)
        )  # of rounds that are gone: nothing can be said
        assert not link.ended_early
        link.send(4, ours(4))
        link.receive(south(done=4).word(Kind.DONE, 4, 99))
        link.me.done = 4
        assert (link.finished, link.ended_early) == (False, False)

    def test_a_process_is_known_by_what_it_says_in_its_hello(self):
        one, other = south(), south()
        link = greeted()
        assert link.caller_instance(one.hello()) != link.caller_instance(other.hello())
        link.mark_down()
        link.receive(one.hello())
        assert link.instance == link.caller_instance(one.hello())
        for wrong in (*row(1), one.word(Kind.ALIVE), b"nonsense"):
            with pytest.raises(WireError):
                link.caller_instance(wrong)


# Whole runs
# --------------------------------------------------------------------------------------------------


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
            world = World(
                graphs.ring(size), tmp_path / f"calm-{size}", PROGRAMS[program], 0, tricks=False
            )
            calm[program, size] = world.run(monkeypatch)
        return calm[program, size]

    return result


def test_an_undisturbed_run_is_the_simulation(undisturbed):
    network = SimulatedNetwork(graphs.ring(4), exact_order=True)
    x = np.concatenate([np.random.default_rng(agent).standard_normal((1, 3)) for agent in range(4)])
    for _ in range(8):
        x = network.mix(x)
    np.testing.assert_array_equal(undisturbed("plain", 4), x)


DISTURBANCES = {
    "cuts": {"cuts": 6},
    "a kill": {"kills": 1},
    "kills": {"kills": 5},
    "all": {"kills": 5, "cuts": 6},
}


@pytest.mark.parametrize("block", range(4))
@pytest.mark.parametrize("disturbances", DISTURBANCES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_whatever_happens_the_result_has_the_bits_of_an_undisturbed_run(
    tmp_path, monkeypatch, undisturbed, program, disturbances, block
):
    for seed in range(5 * block, 5 * block + 5):
        size = 3 + seed % 3
        expected = undisturbed(program, size)
        world = World(
            graphs.ring(size),
            tmp_path / str(seed),
            PROGRAMS[program],
            seed,
            **DISTURBANCES[disturbances],
        )
        try:
            result = world.run(monkeypatch)
            assert result.tobytes() == expected.tobytes(), "the result has other bits"
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}\n" + "\n".join(world.told[-60:])) from error


def all_end(tmp_path, monkeypatch, expected, *, torn):
    """Runs in which agents are killed when the first one is done; gives those that waited for
    others in vain.
    """
    in_vain = {}
    for seed in range(20):
        world = World(
            graphs.ring(3), tmp_path / str(seed), plain, seed, kills=3, late=True, torn=torn
        )
        try:
            assert world.run(monkeypatch).tobytes() == expected.tobytes(), (
                "the result has other bits"
            )
        except (AssertionError, Stopped) as error:
            raise AssertionError(f"seed {seed}: {error}\n" + "\n".join(world.told[-60:])) from error
        if world.gave_up:
            in_vain[seed] = world.gave_up
    return in_vain


def test_an_agent_that_is_killed_when_it_is_done_need_not_wait_for_others_that_are_gone(
    tmp_path, monkeypatch, undisturbed
):
    assert all_end(tmp_path, monkeypatch, undisturbed("plain", 3), torn=False) == {}


def test_an_agent_that_said_it_is_done_does_not_come_back_needing_others(
    tmp_path, monkeypatch, undisturbed
):
    """Not even when its newest checkpoint is torn: they may have forgotten the run."""
    all_end(tmp_path, monkeypatch, undisturbed("plain", 3), torn=True)

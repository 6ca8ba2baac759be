"""Agents on wires in memory, disturbed by a seeded schedule: the whole engine but gRPC, without
sockets or sleeping.

Every agent is a real `PeerNetwork` with its checkpoints on disk, in a thread that runs only when it
is told to: one thread at a time, so that a seed says everything. Only `Service` is replaced.
Between any two steps the world may cut a connection, lose what was on it, deliver frames twice or
in another order, and kill an agent, which then comes back from its newest checkpoint or, where that
one was torn, from the one before.
"""

from __future__ import annotations

import random
import threading
from collections import deque
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from peerlearn.errors import PeerlearnError, Stopped, WireError
from peerlearn.network.peers import journal, replay, rounds
from peerlearn.network.peers.frame import Kind
from peerlearn.network.peers.network import PeerNetwork, Timeouts

MOST_STEPS = 30_000


class Killed(BaseException):
    """What ends the thread of an agent that is killed."""


def _baton():
    """A lock that is held: whoever acquires it waits until somebody else releases it."""
    lock = threading.Lock()
    lock.acquire()
    return lock


class Pipe:
    """One connection: what is on its way to each end, and whether it is still whole."""

    def __init__(self, i, j):
        self.to = {i: deque(), j: deque()}
        self.greeted = set()  # ends that have been handed their first frame
        self.broken = False

    def put(self, receiver, frames):
        if not self.broken:
            self.to[receiver].extend(frames)


class Wires:
    """In the place of `Service`: the wires of one agent in one of its lives."""

    def __init__(self, life, me, links, on_failure):
        self.life, self.me, self.links, self.on_failure = life, me, links, on_failure
        self.pipes = {}
        self.driving = threading.Lock()
        self.port, self.silent, self.started = 0, {}, False
        self.loop = SimpleNamespace(call_soon_threadsafe=lambda look: None)
        life.wires = self

    def look(self):
        pass

    def start(self):
        self.started = True
        self.life.pause()

    def stop(self):
        self.started = False
        for pipe in self.pipes.values():
            pipe.broken = True
        self.pipes = {}

    def write(self, neighbor, frames):
        if frames and neighbor in self.pipes:
            self.pipes[neighbor].put(neighbor, frames)
        if frames and threading.current_thread() is self.life.thread:
            self.life.pause()

    @property
    def running(self):
        return self.started

    def say_last(self, words, within):
        self.life.must_live()

    def reset(self, neighbor, reason):
        raise AssertionError(f"agent {self.me.number} gave up what agent {neighbor} sent: {reason}")

    def drive(self, ready):
        self.life.awaited = ready
        while not ready():
            self.life.pause()
        self.life.awaited = None

    def drive_on(self):
        self.life.awaited = lambda: True
        self.life.pause()
        self.life.awaited = None

    @property
    def listens(self):
        """Whether frames can come in now: while the agent waits, or computes and lets the keeper
        in.
        """
        return self.started and (self.life.awaited is not None or not self.driving.locked())


class Life:
    """One life of an agent, from its start to its end or to its being killed."""

    def __init__(self, world, number):
        self.world, self.number = world, number
        self.wires = self.awaited = self.error = None
        self.killed = self.over = False
        self.turn = _baton()
        self.thread = threading.Thread(target=self._live, daemon=True)
        self.thread.start()

    def _live(self):
        self.turn.acquire()
        try:
            if not self.killed:
                self.world.run_agent(self.number, self)
        except Killed:
            pass
        except BaseException as error:  # it is raised in the test
            self.error = error
        self.over = True
        self.world.back.release()

    def pause(self):
        self.must_live()
        self.world.back.release()
        self.turn.acquire()
        self.must_live()

    def must_live(self):
        """Who is killed can neither write nor save, whatever it does on its way out."""
        if self.killed:
            raise Killed

    def go_on(self):
        self.turn.release()
        self.world.back.acquire()
        if self.error is not None:
            raise self.error

    @property
    def ready(self):
        return not self.over and (self.awaited is None or self.awaited())


class World:
    """All agents of a graph and what is between them."""

    def __init__(
        self,
        graph,
        folder: Path,
        program,
        seed,
        *,
        kills=0,
        cuts=0,
        tricks=True,
        late=False,
        torn=None,
    ):
        self.graph, self.folder, self.program = graph, folder, program
        self.links = [tuple(sorted(link)) for link in graph.edges]
        self.random = random.Random(seed)
        self.kills, self.cuts, self.tricks = kills, cuts, tricks
        self.late = late  # kill only when the first agent is done
        # whether newest checkpoints are torn; None: half of those of agents that are not done
        self.torn = torn
        self.gave_up = []  # agents that waited for their neighbors in vain when their work was done
        self.clock, self.back = 0.0, _baton()
        self.results = {}
        self.lives = {}
        self.told = []  # what happened, for whoever has to find out why

    def run(self, monkeypatch):
        """The result of every agent."""
        clock = SimpleNamespace(monotonic=lambda: self.clock)
        real, save = journal._replace, journal.Journal.save

        def saved(self_, checkpoint):
            self.lives[int(self_.folder.name)].must_live()
            save(self_, checkpoint)

        def replace(path, content):
            self.lives[
                int(path.parent.name)
            ].pause()  # it can be killed before every file, and after
            real(path, content)
            self.lives[int(path.parent.name)].pause()

        with monkeypatch.context() as patch:
            patch.setattr(replay, "time", clock)
            patch.setattr(rounds, "time", clock)
            patch.setattr(rounds, "FAREWELL", 1e6)
            patch.setattr(journal, "_replace", replace)
            patch.setattr(journal.Journal, "save", saved)
            patch.setattr(journal.os, "fsync", lambda _: None)
            patch.setattr(
                rounds,
                "Service",
                lambda me, links, on_failure, **_: Wires(
                    self.lives[me.number], me, links, on_failure
                ),
            )
            try:
                for k in self.graph:
                    self.lives[k] = Life(self, k)
                self._until_the_end()
            finally:
                for life in self.lives.values():
                    self._end(life)
        return np.concatenate([self.results[k] for k in sorted(self.results)])

    def run_agent(self, k, life):
        """In the thread of the agent."""
        network = PeerNetwork(
            self.graph,
            k,
            listen="127.0.0.1:0",
            addresses=dict.fromkeys(self.graph, "127.0.0.1:1"),
            insecure_loopback=True,
            checkpoints=self.folder / str(k),
            patience=Timeouts(save_every=1.0),
        )
        if not network.finished:
            result = self.program(network, life.pause)
            assert k not in self.results or self.results[k].tobytes() == result.tobytes()
            self.results[k] = result
        network.finish()

    # ----------------------------------------------------------------------------------------------

    def _until_the_end(self):
        for _ in range(MOST_STEPS):
            steps = self._steps()
            if not steps and all(life.over for life in self.lives.values()):
                return
            if not steps and len(self.results) == len(self.graph):
                self.clock += 1e7  # who waits for somebody who has left need not wait longer
                steps = self._steps() or self._given_up()
            if not steps:
                raise AssertionError(
                    "nobody can go on: " + "; ".join(map(self._stands, self.lives.values()))
                )
            if not self._disturbed():
                what, *arguments = self.random.choice(steps)
                what(*arguments)
            self.clock += self.random.choice((0, 0, 0.1))
        raise AssertionError(
            "it does not end: " + "; ".join(map(self._stands, self.lives.values()))
        )

    def _steps(self):
        """All that can happen next without a disturbance."""
        steps = [(life.go_on,) for life in self.lives.values() if life.ready]
        for k, life in self.lives.items():
            for j, pipe in life.wires.pipes.items() if life.wires and life.wires.listens else ():
                if pipe.to[k]:
                    steps.append((self._deliver, k, j, pipe))
                elif pipe.broken:
                    steps.append((self._notice, k, j))
        for i, j in self.links:
            ends = [self.lives[k].wires for k in (i, j)]
            if all(end is not None and end.listens for end in ends) and j not in ends[0].pipes:
                steps.append((self._dial, i, j))
        return steps

    def _given_up(self):
        """As `Service` does when somebody has been silent for too long."""
        for k, life in self.lives.items():
            if not life.over:
                self.gave_up.append(k)
                life.wires.on_failure(Stopped("gave up after a neighbor had been silent"))
        return self._steps()

    def _dial(self, i, j):
        self._tell(f"{i} calls {j}")
        pipe = Pipe(i, j)
        for k, other in ((i, j), (j, i)):
            wires = self.lives[k].wires
            if other in wires.pipes:
                wires.pipes[other].broken = True
            wires.pipes[other] = pipe
            wires.links[other].mark_down()
            pipe.to[other].append(wires.links[other].hello())

    def _notice(self, k, j):
        del self.lives[k].wires.pipes[j]
        self.lives[k].wires.links[j].mark_down()

    def _deliver(self, k, j, pipe):
        queue, wires = pipe.to[k], self.lives[k].wires
        first = k not in pipe.greeted
        pipe.greeted.add(k)
        odd = self.random.random() if self.tricks and not first else 1.0
        at = self.random.randrange(len(queue)) if odd < 0.3 else 0
        frame = queue[at]
        if odd > 0.1:
            del queue[at]  # else it comes once more
        self._tell(f"{k} hears {j}: {wires.me.read(frame).kind.name} {wires.me.read(frame).round}")
        try:
            answers = wires.links[j].receive(frame)
        except WireError as error:
            raise AssertionError(f"agent {k} did not understand agent {j}: {error}") from error
        except PeerlearnError as error:
            raise AssertionError(f"agent {k} parted with agent {j}: {error}") from error
        pipe.put(j, answers)
        if self.random.random() < 0.02 and wires.links[j].up:
            pipe.put(j, [wires.links[j].word(Kind.ALIVE)])

    def _disturbed(self):
        if self.cuts and self.random.random() < 0.03:
            pipes = [
                pipe
                for life in self.lives.values()
                if life.wires
                for pipe in life.wires.pipes.values()
            ]
            if pipes:
                self.cuts -= 1
                self._cut(self.random.choice(pipes))
                return True
        if self.kills and (self.results or not self.late) and self.random.random() < 0.03:
            self.kills -= 1
            self._kill(self.random.choice(sorted(self.lives)))
            return True
        return False

    def _cut(self, pipe):
        """What was written last is lost, the rest still arrives."""
        self._tell(f"a cut between {' and '.join(map(str, pipe.to))}")
        pipe.broken = True
        for queue in pipe.to.values():
            for _ in range(self.random.randint(0, len(queue))):
                queue.pop()

    def _kill(self, k):
        life = self.lives[k]
        for pipe in life.wires.pipes.values() if life.wires else ():
            self._cut(pipe)
        self._end(life)
        tear = (
            self.torn
            if self.torn is not None
            else self.random.random() < 0.5 and k not in self.results
        )
        torn = tear and self._tear(k)
        self._tell(f"{k} is killed{', its newest checkpoint torn' if torn else ''}")
        self.lives[k] = Life(self, k)

    def _end(self, life):
        if not life.over:
            life.killed = True
            life.turn.release()
            self.back.acquire()
            life.thread.join()

    def _tear(self, k):
        """Spoil the newest checkpoint, if the one before is whole."""
        folder = self.folder / str(k)
        whole = {}
        for name in journal.NAMES:
            try:
                whole[journal.Journal(folder)._read_checkpoint(folder / name).about["sequence"]] = (
                    folder / name
                )
            except (OSError, WireError):
                return False
        newest = whole[max(whole)]
        content = newest.read_bytes()
        newest.write_bytes(content[: self.random.randrange(len(content))])
        return True

    def _tell(self, what):
        self.told.append(what)

    def _stands(self, life):
        if life.over:
            return f"agent {life.number} is gone"
        if life.wires is None:
            return f"agent {life.number} has not begun"
        known = {j: (link.up, link.done) for j, link in life.wires.links.items()}
        return (
            f"agent {life.number} has {life.wires.me.done} rounds behind it, its neighbors "
            f"(up, done): {known}"
        )

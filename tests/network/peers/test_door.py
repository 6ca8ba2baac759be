"""Connections that nobody talks over are closed where there are too many, and no others."""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack

import pytest

from peerlearn.network.peers import door
from peerlearn.network.peers.door import STRANGERS, Door, allow_many_files, most_connections

pytestmark = pytest.mark.skipif(not door.OPEN_FILES.is_dir(), reason="needs /proc")


@pytest.fixture
def server():
    with ExitStack() as held:
        listening = held.enter_context(socket.create_server(("127.0.0.1", 0)))
        port = listening.getsockname()[1]

        def callers(count):
            """Connections, from the caller's end; the other end is an open file of this process
            too, as gRPC's.
            """
            made = [
                held.enter_context(socket.create_connection(("127.0.0.1", port)))
                for _ in range(count)
            ]
            for _ in made:
                held.enter_context(listening.accept()[0])
            return made

        yield port, callers


def is_open(caller):
    caller.setblocking(False)
    try:
        return caller.recv(1) != b""
    except BlockingIOError:
        return True


def peer_of(caller):
    return "ipv4:{}:{}".format(*caller.getsockname())


def test_strangers_that_stay_are_closed_where_there_are_too_many(server):
    port, callers = server
    guard = Door(port, neighbors=2)
    idle = callers(STRANGERS + 10)
    neighbor = callers(1)[0]
    guard.known[peer_of(neighbor)] += 2  # a second stream on the same connection, which then ends
    guard.known[peer_of(neighbor)] -= 1
    assert guard.close_idle() == 0, "a handshake may be under way"
    late = callers(1)[0]
    assert guard.close_idle() == len(idle)
    assert not any(map(is_open, idle))
    assert is_open(neighbor)
    assert is_open(late)


def test_few_strangers_may_stay(server):
    port, callers = server
    guard = Door(port, neighbors=2)
    some = callers(STRANGERS - 10)
    files = len(os.listdir(door.OPEN_FILES))
    assert [guard.close_idle() for _ in range(3)] == [0, 0, 0]
    assert all(map(is_open, some))
    assert len(os.listdir(door.OPEN_FILES)) == files, "looking leaves no files open"


def test_connections_to_other_ports_are_left_alone(server):
    port, callers = server
    others = callers(STRANGERS + 10)
    guard = Door(port + 1, neighbors=2)
    assert [guard.close_idle() for _ in range(3)] == [0, 0, 0]
    assert all(map(is_open, others))


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        ("ipv4:127.0.0.1:7101", ("127.0.0.1", 7101)),
        ("ipv6:%5B::1%5D:7101", ("::1", 7101)),
        ("ipv6:%5B::ffff:10.0.0.1%5D:7101", ("10.0.0.1", 7101)),
        ("unix:", ("", 0)),
    ],
)
def test_addresses_as_grpc_writes_them(peer, address):
    assert door._address_of(peer) == address


def test_as_many_files_as_are_allowed(monkeypatch):
    asked = []
    monkeypatch.setattr("resource.getrlimit", lambda _: (1024, 4096))
    monkeypatch.setattr("resource.setrlimit", lambda _, limits: asked.append(limits))
    allow_many_files()
    assert asked == [(4096, 4096)]


@pytest.mark.parametrize(
    ("files", "most"), [(1024, 512), (100, 67), (-1, 1 << 19), (1 << 30, 1 << 19)]
)
def test_half_of_the_files_are_for_connections(files, most, monkeypatch):
    monkeypatch.setattr("resource.getrlimit", lambda _: (files, files))
    assert most_connections(3) == most

"""Addresses of agents, "host:port", and the sentences for those that cannot be used."""

from __future__ import annotations

from collections.abc import Iterable

from peerlearn.errors import InputError

LOOPBACK = ("127.0.0.1", "localhost")


def checked_address(address: str, whose: str) -> str:
    """The address, if it has a host and a port."""
    host, _, port = str(address).rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise InputError(
            f"the address of {whose} is {address!r}: write host:port, such as north.example:7101"
        )
    return str(address)


def only_loopback(addresses: Iterable[str]) -> None:
    """Refuse anything but this machine: what travels without encryption must not leave it."""
    for address in addresses:
        if address.rpartition(":")[0] not in LOOPBACK:
            raise InputError(
                f"the address {address} is not of this machine, and without certificates nothing may leave it: use "
                "127.0.0.1, or make certificates with peerlearn certs"
            )

"""Checks of agents' addresses, written host:port."""

from __future__ import annotations

from collections.abc import Iterable

from peerlearn.errors import InputError

LOOPBACK = ("127.0.0.1", "localhost")


def check_address(address: str, whose: str) -> str:
    """Return the address, or raise InputError if it has no host or no port."""
    host, _, port = str(address).rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise InputError(
            f"the address of {whose} is {address!r}: write host:port, such as north.example:7101"
        )
    return str(address)


def only_loopback(addresses: Iterable[str]) -> None:
    """Raise InputError for an address of another machine, where unencrypted rows must not go."""
    for address in addresses:
        if address.rpartition(":")[0] not in LOOPBACK:
            raise InputError(
                f"the address {address} is not of this machine, and without certificates nothing "
                "may leave it: use 127.0.0.1, or make certificates with peerlearn certs"
            )

"""Certificates: TLS takes them as they are made, strangers stay out, and bad files are named in a
sentence.
"""

from __future__ import annotations

import os
import shutil
import ssl
import stat
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from hypothesis import example, given, settings
from hypothesis import strategies as st

from peerlearn.errors import InputError, MissingExtra, PeerlearnError
from peerlearn.network.peers import certificates, identity
from peerlearn.network.peers.certificates import Identity, make


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """An authority with the agents north and south; tests must not change it."""
    folder = tmp_path_factory.mktemp("papers") / "made"
    make(folder, ["north", "south"])
    return folder


@pytest.fixture
def folder(original, tmp_path):
    """A copy that a test may spoil."""
    return shutil.copytree(original, tmp_path / "copy")


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    """The same names under another authority."""
    folder = tmp_path_factory.mktemp("foreign")
    make(folder, ["north", "south"])
    return folder


def load(folder, name="north", **other):
    files = {
        "authority": folder / "authority.pem",
        "certificate": folder / f"{name}.pem",
        "key": folder / f"{name}.key",
    }
    return Identity.load(**{**files, **other}, name=name)


def parsed(path):
    return x509.load_pem_x509_certificate(path.read_bytes())


def later(monkeypatch, days):
    """Let all certificates be made and read that many days from now."""
    then = identity.now() + timedelta(days=days)
    for module in (identity, certificates):
        monkeypatch.setattr(module, "now", lambda: then)


def handshake(server, client, expected="north"):
    """TLS between two agents, each given as folder and name, in memory; the name that the server
    saw.
    """
    ends = [context(*server, ssl.PROTOCOL_TLS_SERVER), context(*client, ssl.PROTOCOL_TLS_CLIENT)]
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends[0] = ends[0].wrap_bio(to_server, to_client, server_side=True)
    ends[1] = ends[1].wrap_bio(to_client, to_server, server_hostname=expected)
    waiting = list(ends)
    for _ in range(10):
        for end in list(waiting):
            try:
                end.do_handshake()
                waiting.remove(end)
            except ssl.SSLWantReadError:
                pass
    assert waiting == []
    ends[1].write(b"hello")
    assert ends[0].read() == b"hello"
    return dict(pair for part in ends[0].getpeercert()["subject"] for pair in part)["commonName"]


def context(folder, name, side):
    made = ssl.SSLContext(side)
    made.verify_mode = ssl.CERT_REQUIRED
    made.verify_flags |= ssl.VERIFY_X509_STRICT
    made.load_verify_locations(folder / "authority.pem")
    made.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
    return made


def test_two_agents_know_each_other_by_tls(original):
    assert handshake((original, "north"), (original, "south")) == "south"


def test_agents_signed_later_are_known_too(folder):
    make(folder, ["east_1.site-b"])
    assert handshake((folder, "east_1.site-b"), (folder, "north"), "east_1.site-b") == "north"


def test_a_client_of_a_foreign_authority_is_refused(original, foreign, tmp_path):
    shutil.copytree(foreign, tmp_path / "spy")
    shutil.copy(
        original / "authority.pem", tmp_path / "spy"
    )  # it trusts the agents, but they do not trust it
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake((original, "north"), (tmp_path / "spy", "south"))


def test_a_server_of_a_foreign_authority_is_refused(original, foreign):
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake((foreign, "north"), (original, "south"))


def test_an_agent_cannot_pass_for_another(original):
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        handshake((original, "south"), (original, "north"), expected="north")


def test_identities_may_call_and_be_called_but_not_sign(original):
    north = parsed(original / "north.pem")
    value = {type(each.value): each.value for each in north.extensions}
    assert [each.value for each in north.subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == [
        "north"
    ]
    assert value[x509.SubjectAlternativeName].get_values_for_type(x509.DNSName) == ["north"]
    assert value[x509.BasicConstraints] == x509.BasicConstraints(ca=False, path_length=None)
    assert set(value[x509.ExtendedKeyUsage]) == {
        ExtendedKeyUsageOID.CLIENT_AUTH,
        ExtendedKeyUsageOID.SERVER_AUTH,
    }
    assert value[x509.KeyUsage].digital_signature
    assert not value[x509.KeyUsage].key_cert_sign
    assert isinstance(north.public_key().curve, ec.SECP256R1)
    assert north.not_valid_before_utc < identity.now() - timedelta(minutes=2)
    assert timedelta(days=824) < north.not_valid_after_utc - identity.now() < timedelta(days=825)


def test_the_authority_signs_agents_and_no_further_authorities(original):
    value = {type(each.value): each.value for each in parsed(original / "authority.pem").extensions}
    assert value[x509.BasicConstraints] == x509.BasicConstraints(ca=True, path_length=0)
    assert value[x509.KeyUsage].key_cert_sign
    assert value[x509.KeyUsage].crl_sign
    assert not value[x509.KeyUsage].digital_signature


def test_keys_belong_to_their_owner_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        made = make(tmp_path / "new", ["north"])
    finally:
        os.umask(before)
    rights = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "new", *made)}
    assert rights == {
        "new": 0o700,
        "authority.key": 0o600,
        "authority.pem": 0o644,
        "north.key": 0o600,
        "north.pem": 0o644,
    }


def test_a_folder_that_exists_keeps_its_rights(tmp_path):
    tmp_path.chmod(0o755)
    make(tmp_path, ["north"])
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_further_agents_leave_all_files_as_they_are(folder):
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert make(folder, ["east"]) == [folder / "east.key", folder / "east.pem"]
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize("name", ["north", "NORTH"])
def test_an_identity_is_never_overwritten(folder, name):
    before = {path: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(
        InputError, match=r"north\.(pem|key) exists and is not overwritten.*: leave .* out"
    ):
        make(folder, ["east", name])
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    "name",
    [
        "",
        "a" * 64,
        "a b",
        "a/b",
        "..",
        ".hidden",
        "end.",
        "a..b",
        "-x",
        "x_",
        "ä",
        "a\n",
        "a\0",
        "*",
        "authority",
        "Authority",
        "127.0.0.1",
        "256.1.1.1",
        "٣",
    ],
)
def test_names_that_no_agent_can_have(tmp_path, name):
    with pytest.raises(InputError, match="cannot be the name of an agent: use 1 to 63 letters"):
        make(tmp_path / "new", ["north", name])
    assert not (tmp_path / "new").exists()


def test_names_that_agents_can_have(tmp_path):
    names = ["a", "7", "A" * 63, "site.example", "x-1_b", "1.2.3"]
    make(tmp_path, names)
    assert [load(tmp_path, name).name for name in names] == names


def test_names_must_differ_in_more_than_case(tmp_path):
    with pytest.raises(
        InputError, match="two agents cannot be called 'North', where case does not count"
    ):
        make(tmp_path, ["north", "North"])


def test_nobody_to_certify(tmp_path):
    with pytest.raises(
        InputError, match="there is no name to make a certificate for: name at least one agent"
    ):
        make(tmp_path, [])


@pytest.mark.parametrize("days", [0, -1, 3651])
def test_impossible_times(tmp_path, days):
    with pytest.raises(InputError, match=f"cannot be valid for {days} days: choose 1 to 3650"):
        make(tmp_path, ["north"], days=days)


def test_identities_end_with_their_authority(folder, monkeypatch):
    later(monkeypatch, 3000)
    make(folder, ["east"])
    assert (
        parsed(folder / "east.pem").not_valid_after_utc
        == parsed(folder / "authority.pem").not_valid_after_utc
    )


def test_an_authority_that_has_expired_signs_nobody(folder, monkeypatch):
    later(monkeypatch, 3651)
    with pytest.raises(
        InputError, match=r"authority\.pem is valid from .* to .* UTC, but it is now .* UTC: "
    ):
        make(folder, ["east"])
    assert not (folder / "east.key").exists()


def test_an_authority_with_the_key_of_another(folder, foreign):
    shutil.copy(foreign / "authority.key", folder)
    with pytest.raises(
        InputError, match=r"authority\.key does not belong to the certificate .*authority\.pem"
    ):
        make(folder, ["east"])


@pytest.mark.parametrize("lost", ["authority.pem", "authority.key"])
def test_half_an_authority_is_not_replaced(folder, lost):
    (folder / lost).unlink()
    with pytest.raises(InputError, match=f"{lost} is not there: copy it from the folder"):
        make(folder, ["east"])


def test_an_agent_cannot_act_as_authority(folder):
    for suffix in (".pem", ".key"):
        shutil.copy(folder / f"south{suffix}", folder / f"authority{suffix}")
    for attempt in (lambda: make(folder, ["east"]), lambda: load(folder)):
        with pytest.raises(InputError, match="is the certificate of an agent, not of an authority"):
            attempt()


def issued(key, *extensions, common="north"):
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)] if common else [])
    start = identity.now() - timedelta(days=1)
    builder = x509.CertificateBuilder(
        name, name, key.public_key(), 1, start, start + timedelta(days=9)
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(
        key, None if isinstance(key, ed25519.Ed25519PrivateKey) else SHA256()
    ).public_bytes(Encoding.PEM)


def test_an_authority_of_another_kind_of_key(folder):
    key = ed25519.Ed25519PrivateKey.generate()
    (folder / "authority.key").write_bytes(identity.key_as_pem(key))
    (folder / "authority.pem").write_bytes(
        issued(key, x509.BasicConstraints(ca=True, path_length=0))
    )
    with pytest.raises(InputError, match="is not an elliptic-curve key as made here"):
        make(folder, ["east"])


def test_a_full_disk_leaves_no_new_file(folder, monkeypatch):
    before, calls, really = sorted(folder.iterdir()), [], os.open

    def full(path, *rest):
        calls.append(path)
        if len(calls) == 4:
            raise OSError(28, "No space left on device")
        return really(path, *rest)

    monkeypatch.setattr(certificates.os, "open", full)
    with pytest.raises(
        InputError, match=r"cannot be written to .* \(No space left on device\): make room"
    ):
        make(folder, ["east", "west"])
    assert sorted(folder.iterdir()) == before


def test_a_folder_that_is_a_file(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="certificates cannot be written to"):
        make(tmp_path / "file", ["north"])


def test_an_identity_is_read_and_does_not_show_its_key(original):
    north = load(original)
    assert north.name == "north"
    assert north.authority == (original / "authority.pem").read_bytes()
    assert north.certificate == (original / "north.pem").read_bytes()
    assert north.key == (original / "north.key").read_bytes()
    assert repr(north) == "Identity(name='north')"


@pytest.mark.parametrize("part", ["authority", "certificate", "key"])
def test_files_that_are_missing_or_folders(original, tmp_path, part):
    with pytest.raises(InputError, match="lost is not there: copy it from the folder"):
        load(original, **{part: tmp_path / "lost"})
    with pytest.raises(InputError, match=r"cannot be read \(Is a directory\)"):
        load(original, **{part: tmp_path})


def test_files_that_may_not_be_read(original, monkeypatch):
    def denied(*_args):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)  # rights would not stop a test that runs as root
    with pytest.raises(
        InputError,
        match=r"authority.pem cannot be read \(Permission denied\): let this user read it",
    ):
        load(original)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601])
def test_keys_that_others_may_read(folder, mode):
    (folder / "north.key").chmod(mode)
    with pytest.raises(
        InputError, match=r"can be read by other users of this machine: chmod 600 .*north\.key"
    ):
        load(folder)


def test_the_key_of_another_agent(original):
    with pytest.raises(
        InputError, match=r"south\.key does not belong to the certificate .*north\.pem"
    ):
        load(original, key=original / "south.key")


def test_the_certificate_of_another_agent(original):
    files = [original / each for each in ("authority.pem", "south.pem", "south.key")]
    with pytest.raises(
        InputError, match=r"is for south, but this agent is north: give the files of north"
    ):
        Identity.load(*files, "north")


@pytest.mark.parametrize(
    ("common", "hosts", "whose"),
    [
        ("north", [], "no name that TLS knows"),
        ("", ["north", "south"], "north, south"),
        ("south", ["north"], "north, s"),
    ],
)
def test_certificates_for_no_name_or_for_several(folder, common, hosts, whose):
    key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts])] if hosts else []
    (folder / "north.key").write_bytes(identity.key_as_pem(key))
    (folder / "north.pem").write_bytes(issued(key, *names, common=common))
    with pytest.raises(InputError, match=f"is for {whose}.*, but this agent is north"):
        load(folder)


@pytest.mark.parametrize("days", [-1, 826])
def test_certificates_out_of_their_time(original, monkeypatch, days):
    paper, then = parsed(original / "north.pem"), identity.now() + timedelta(days=days)
    said = [
        f"{each:%Y-%m-%d %H:%M} UTC"
        for each in (paper.not_valid_before_utc, paper.not_valid_after_utc, then)
    ]
    monkeypatch.setattr(identity, "load_authority", parsed)  # whose own time is another matter
    monkeypatch.setattr(identity, "now", lambda: then)
    with pytest.raises(
        InputError, match=f"is valid from {said[0]} to {said[1]}, but it is now {said[2]}: "
    ):
        load(original)


def test_a_certificate_of_a_foreign_authority(original, foreign):
    with pytest.raises(
        InputError,
        match=r"north\.pem was not signed by the authority .*: give the authority.pem that",
    ):
        load(original, authority=foreign / "authority.pem")


def test_several_certificates_in_one_file(folder, foreign):
    both = (folder / "authority.pem").read_bytes() + (foreign / "authority.pem").read_bytes()
    (folder / "authority.pem").write_bytes(both)
    with pytest.raises(InputError, match="holds 2 certificates: give a file with one"):
        load(folder)


def test_an_encrypted_key(folder):
    key = identity.load_key(folder / "north.key")
    locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"word"))
    (folder / "north.key").write_bytes(locked)
    with pytest.raises(InputError, match="is not an unencrypted private key in PEM form"):
        load(folder)


@settings(deadline=None)
@given(content=st.binary(max_size=300), part=st.sampled_from(["authority", "certificate", "key"]))
@example(content=b"", part="key")
def test_whatever_bytes_a_file_has_the_answer_is_a_sentence(original, content, part):
    spoiled = original.parent / "bytes"
    spoiled.write_bytes(content)
    spoiled.chmod(0o600)
    with pytest.raises(InputError, match="in PEM form, or damaged: copy it again"):
        load(original, **{part: spoiled})


@settings(deadline=None)
@given(data=st.data())
def test_a_damaged_certificate_is_refused_or_the_same(original, data):
    part = data.draw(st.sampled_from(["authority", "certificate"]))
    healthy = parsed(
        original / ("authority.pem" if part == "authority" else "north.pem")
    ).public_bytes(Encoding.DER)
    at, byte = data.draw(st.integers(0, len(healthy) - 1)), data.draw(st.integers(0, 255))
    spoiled = original.parent / "damaged"
    spoiled.write_text(ssl.DER_cert_to_PEM_cert(healthy[:at] + bytes([byte]) + healthy[at + 1 :]))
    try:
        load(original, **{part: spoiled})
    except PeerlearnError:
        return
    changed_itself = part == "authority"  # nobody vouches for an authority but its own site
    assert changed_itself or healthy[at] == byte


def test_without_the_package(monkeypatch, original, tmp_path):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    for attempt in (lambda: make(tmp_path, ["north"]), lambda: load(original)):
        with pytest.raises(
            MissingExtra,
            match=r"needs the package cryptography.* pip install grpcio cryptography xxhash$",
        ):
            attempt()

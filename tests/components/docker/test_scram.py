"""A login by SCRAM: the example of RFC 7677, and a server that does not know the password."""

from __future__ import annotations

import base64

import pytest
from earshot_pulumi.docker.scram import ScramClient

from earshot.listeners.terms import Mechanism

NONCE = "rOprNGfwEbeRWgbNEkqO"
ASKED = f"r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()


def client() -> ScramClient:
    return ScramClient(Mechanism.SCRAM_SHA_256, "user", "pencil", NONCE)


def test_the_example_of_rfc_7677() -> None:
    login = client()
    assert login.first == f"n,,n=user,r={NONCE}".encode()
    assert (
        login.final(ASKED)
        == (
            f"c=biws,r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
            "p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        ).encode()
    )
    login.check(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


def test_a_server_that_does_not_know_the_password_is_not_believed() -> None:
    login = client()
    login.final(ASKED)
    with pytest.raises(ValueError, match="does not prove that it knows the password"):
        login.check(b"v=" + base64.b64encode(b"x" * 32))


@pytest.mark.parametrize(
    "answer",
    [
        b"e=other-error",
        b"r=another,s=QQ==,i=4096",
        f"r={NONCE},s=QQ==".encode(),
        f"r={NONCE},s=QQ==,i=2000000000".encode(),
        b"\xff",
    ],
)
def test_what_is_not_scram_is_an_error(answer: bytes) -> None:
    with pytest.raises(ValueError):
        client().final(answer)


def test_each_login_has_a_nonce_of_its_own() -> None:
    made = {ScramClient(Mechanism.SCRAM_SHA_512, "user", "pencil").first for _ in range(3)}
    assert len(made) == 3

"""Certificates and keys of nodes, as somebody else hands them over."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from tests.certificates.made import Made, made

PASSWORD = "geheim"
FILES = {
    "certificate": "certs/{node}.pem",
    "key": "certs/{node}.key",
    "authority": "certs/ca.pem",
    "password": "certs/password",
}
"""`security.tls.from` of a project whose folder `certs` has been filled."""


def hand_over(
    folder: Path,
    hosts: Mapping[int, Sequence[str]],
    subject: str = "CN=b{node},O=Example",
    *,
    signs: bool = True,
) -> None:
    """Fills ``folder``: by node id, a new certificate for these hosts, the chain up to an authority
    that stays the same, and a key with a password.

    Java refuses certificates that are not for signatures (``signs``).
    """
    root, issuing = _authorities()
    now = datetime.now(UTC) - timedelta(minutes=5)
    folder.mkdir(exist_ok=True)
    (folder / "ca.pem").write_text(root.pem)
    (folder / "password").write_text(f"{PASSWORD}\n")
    for id, names in hosts.items():
        name = subject.format(node=id)
        node = made(name, now, issuing, hosts=names, number=10 + id, signs=signs)
        (folder / f"{id}.pem").write_text(node.pem + issuing.pem)
        (folder / f"{id}.key").write_text(node.key_pem(PASSWORD))


@cache
def _authorities() -> tuple[Made, Made]:
    now = datetime.now(UTC) - timedelta(minutes=9)
    root = made("CN=Root,O=Example\\, Inc.", now, authority=True, days=900, number=1)
    return root, made("CN=Issuing", now, root, authority=True, days=400, number=2)

"""The certificates and passwords that a stack needs, and the numbers in their file names."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from earshot.certificates.authority import Subject

FIRST = 1
"""The number of a stack's first authority, and of a user's first password. File names omit it."""


@dataclass(frozen=True)
class TargetCertificates:
    """The certificates and passwords that the folder of a stack should contain."""

    stack: str
    nodes: Mapping[str, tuple[str, ...]]
    """Hosts of each node's certificate, by name of the key store (`node-1`)."""
    node: Subject
    """The subject of all node certificates."""
    users: tuple[str, ...]
    days: int
    renew_days: int
    given: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Texts of the user's own key stores, by name of a node's key store."""
    authority: str = ""
    """Certificates of the authority of ``given`` or ``private_ca``, as PEM."""
    private_ca: str = ""
    """The ARN of the private CA of ACM that issues the nodes' certificates, or empty."""
    authorities: tuple[int, ...] = (FIRST,)
    """Numbers of the stack's own authorities: the first one issues, all are trusted."""
    numbers: Mapping[str, int] = field(default_factory=dict)
    """Number of each user's password; the default is the first."""
    given_passwords: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Passwords in the stack's configuration, by user."""

    @property
    def issuer(self) -> int:
        return self.authorities[0]

    @property
    def trusts_more(self) -> bool:
        """True if nodes trust other authorities than the first one."""
        return self.is_of_others or self.authorities != (FIRST,)

    @property
    def is_of_others(self) -> bool:
        """True if the stack's own authority does not issue the nodes' certificates."""
        return bool(self.given or self.private_ca)

    @property
    def passwords(self) -> dict[str, str]:
        """The file of each user's password, by user."""
        return {
            user: numbered(f"{user}.password", self.numbers.get(user, FIRST)) for user in self.users
        }

    @property
    def hosts(self) -> dict[str, tuple[str, ...]]:
        """Hosts of each certificate, by name of the key store; empty for users."""
        return {**self.nodes, **dict.fromkeys(self.users, ())}


def numbered(name: str, number: int | str) -> str:
    """The file name for ``number``; ``name`` for the first one. ``number`` may be a pattern.

    A user's name never contains `@`.
    """
    stem, _, suffix = name.rpartition(".")
    return name if number == FIRST else f"{stem}@{number}.{suffix}"

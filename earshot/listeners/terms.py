"""The terms that all packages share: protocols, scopes, roles, and a host that is not known yet.

Without pydantic, so that a command which reads no plan starts fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from earshot.json_object import Document

ANY_IPV4 = "0.0.0.0"
DEFAULT_KAFKA = "4.1.1"
"""The version that is deployed, and assumed, where nothing names one."""


class Protocol(StrEnum):
    """Kafka's four security protocols."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def tls(self) -> bool:
        return self in (Protocol.SSL, Protocol.SASL_SSL)

    @property
    def sasl(self) -> bool:
        return self in (Protocol.SASL_PLAINTEXT, Protocol.SASL_SSL)


class Mechanism(StrEnum):
    """How users of a SASL listener log in, of those that Kafka keeps users for itself."""

    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"


def read_mechanisms(text: str) -> tuple[Mechanism, ...]:
    """Those that states name in one text, with commas between them."""
    return tuple(map(Mechanism, text.split(",")))


class ClientAuth(StrEnum):
    """Whether a listener with TLS asks clients for a certificate: Kafka's `ssl.client.auth`."""

    NONE = "none"
    REQUESTED = "requested"
    REQUIRED = "required"


class Scope(StrEnum):
    """Clients of a listener; the order is from the narrowest to the widest client scope."""

    CONTROLLER = "controller"
    INTERNAL = "internal"
    HOST = "host"
    EXTERNAL = "external"


class Strategy(StrEnum):
    """How the advertised addresses of a listener tell brokers apart."""

    OWN = "own"
    """A name of each broker's own."""
    PORT = "port"
    """One name, and a port per broker."""
    SNI = "sni"
    """One port, and a name per broker that TLS shows to what forwards connections."""
    GIVEN = "given"
    """Addresses that are written out, one per broker."""


CLIENT_SCOPES = (Scope.INTERNAL, Scope.HOST, Scope.EXTERNAL)


class Role(StrEnum):
    """KRaft process roles."""

    BROKER = "broker"
    CONTROLLER = "controller"


@dataclass(frozen=True)
class UnknownHost:
    """A host that is unknown until ``what``, a resource, is provisioned."""

    what: str

    def __str__(self) -> str:
        return f"({self.what}: not known yet)"

    @property
    def written(self) -> dict[str, str]:
        """The host in the form that `read` takes."""
        return {"what": self.what}

    @classmethod
    def read(cls, written: Document) -> UnknownHost:
        """From `{"what": ...}`, as a plan writes it; ValueError for anything else."""
        what = written.get("what")
        if set(written) != {"what"} or not isinstance(what, str):
            raise ValueError('of a host that is not known yet there is {"what": TEXT}')
        return cls(what)

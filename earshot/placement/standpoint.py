"""Standpoints: from where each scope of a stack is validated. Plain data, kept as JSON."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final, Literal

from pydantic import Field, ValidationError

from earshot.engine import HasEngine, address_of, is_here
from earshot.errors import EarshotError, SpecError
from earshot.listeners.model import Frozen
from earshot.listeners.problems import describe
from earshot.listeners.terms import Scope
from earshot.reading import content_of
from earshot.validation.contract import Contract

FILE: Final = "vantages.json"
"""Beside a stack's contract."""
BASE: Final = "debian:bookworm-slim"
HOST_NETWORK: Final = "host"
APART: Final = ""
"""A network of its own, made for the run: the way to the brokers leads through their host's name,
as for a laptop."""


class Kind(StrEnum):
    """The kind of process that validates."""

    HERE = "here"
    """This process."""
    CONTAINER = "container"
    INSTANCE = "instance"
    """A validator on an instance, which takes orders through a bucket."""
    NOT_RUN = "nobody"  # codespell:ignore nobody
    """No process; `reason` says why."""


class CandidateEngine(Frozen):
    """An engine on which the container may run; the first that answers is used."""

    engine: str | None = None
    """`unix://`, `ssh://` or `tcp://`; None: DOCKER_HOST, or this machine's socket."""
    cert_path: str | None = None


class Standpoint(Frozen):
    """The place from which one scope is validated."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,30}$")
    """The vantage's name in the report."""
    scope: Scope
    kind: Kind = Kind.HERE
    engines: tuple[CandidateEngine, ...] = ()
    network: str = APART
    """A network's name on that engine, HOST_NETWORK or APART."""
    base: str = BASE
    """The image that the validator image is built on."""
    dns: tuple[str, ...] = ()
    """DNS servers of the container; none: what the engine gives it."""
    bucket: str = ""
    """Where the validator on an instance takes orders, and puts reports."""
    region: str = ""
    """The bucket's."""
    instance: str = ""
    """The validator's id."""
    patience: float = Field(default=0, ge=0)
    """Seconds beyond its deadline that the run there may take: a new validator has yet to come."""
    reason: str = ""
    """Why no process validates there."""
    without: dict[str, str] = Field(default_factory=dict)
    """By listener of the scope, why a deploy does not validate it from there."""

    def leaves_out(self, listener: str) -> str:
        """Why ``listener`` is not validated from here; empty where it is."""
        return self.reason if self.kind is Kind.NOT_RUN else self.without.get(listener, "")


class Standpoints(Frozen):
    """The document."""

    version: Literal[1] = 1
    standpoints: tuple[Standpoint, ...]


def docker_standpoints(
    contract: Contract,
    hosts: Sequence[HasEngine],
    network: str,
    base: str = BASE,
    dns: Sequence[str] = (),
) -> tuple[Standpoint, ...]:
    """One standpoint per client scope of ``contract``, whose brokers run on ``hosts``.

    ``network`` is the brokers' network, of one name on every host. Clients of the scope `host` are
    processes of that machine: this process where the engine is this machine's, else a container
    on its engine that shares the machine's network.
    """
    engines = tuple(CandidateEngine(engine=host.engine, cert_path=host.cert_path) for host in hosts)
    here = all(is_here(address_of(host)) for host in hosts)
    where = {Scope.HOST: HOST_NETWORK, Scope.INTERNAL: network, Scope.EXTERNAL: APART}
    return tuple(
        Standpoint(
            name=scope,
            scope=scope,
            kind=Kind.HERE if scope is Scope.HOST and here else Kind.CONTAINER,
            engines=() if scope is Scope.HOST and here else engines,
            network=where[scope],
            base=base,
            dns=() if scope is Scope.HOST else tuple(dns),
        )
        for scope in contract.scopes
    )


def to_json(standpoints: Sequence[Standpoint]) -> str:
    return Standpoints(standpoints=tuple(standpoints)).model_dump_json(indent=2)


def read_standpoints(file: Path) -> tuple[Standpoint, ...]:
    """The standpoints in ``file``; raises EarshotError."""
    text = content_of(file, f"file {file}")
    try:
        return Standpoints.model_validate_json(text).standpoints
    except ValidationError as error:
        problems = error.errors()
        if problems[0]["type"] == "json_invalid":
            raise EarshotError(
                f"file {file}",
                observed=f"is no JSON ({problems[0]['msg']})",
                allowed="a file of vantages, in JSON, as a stack on Docker hosts writes it",
            ) from None
        source = f"{file} (standpoints of version 1)"
        raise SpecError.of(source, describe(error, Standpoints, None)[:20]) from None

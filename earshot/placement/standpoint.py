"""Standpoints: the places from which the scopes of a stack are validated. Stored as JSON."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final, Literal

from pydantic import Field, ValidationError

from earshot.engine.connection import HasEngine, address_of, is_here
from earshot.errors import EarshotError, SpecError
from earshot.files.reading import content_of
from earshot.listeners.model import Frozen
from earshot.listeners.problems import describe
from earshot.listeners.terms import Scope
from earshot.validation.contract import Contract

FILE: Final = "vantages.json"
"""The name of the file with all standpoints, in the folder of a stack's contract; the value of the
option `--vantages`."""
BASE: Final = "debian:bookworm-slim"
HOST_NETWORK: Final = "host"
OWN_NETWORK: Final = ""
"""A new network for the run, from which brokers are reached through their host's name, like from a
laptop."""


class Kind(StrEnum):
    """The kind of process that validates."""

    HERE = "here"
    """This process."""
    CONTAINER = "container"
    INSTANCE = "instance"
    """A validator on an instance, which gets orders through a bucket."""
    NOT_RUN = "nobody"  # codespell:ignore nobody
    """No process, for the reason in `reason`. States since 0.1.0 have this value."""


class CandidateEngine(Frozen):
    """An engine for the container. The first that answers is used."""

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
    network: str = OWN_NETWORK
    """A network's name on that engine, HOST_NETWORK or OWN_NETWORK."""
    base: str = BASE
    """The base image of the validator image."""
    dns: tuple[str, ...] = ()
    """DNS servers of the container; empty for the engine's default."""
    bucket: str = ""
    """The bucket for orders to, and reports from, the validator on an instance."""
    region: str = ""
    """The bucket's region."""
    instance: str = ""
    """The validator's instance id."""
    patience: float = Field(default=0, ge=0)
    """Seconds to wait in addition to the run's deadline: a new validator has to start."""
    reason: str = ""
    """Why no process validates there."""
    without: dict[str, str] = Field(default_factory=dict)
    """Listeners of the scope that a deploy does not validate from there, with the reasons."""

    def leaves_out(self, listener: str) -> str:
        """Why ``listener`` is not validated from here; empty if it is."""
        return self.reason if self.kind is Kind.NOT_RUN else self.without.get(listener, "")


class Standpoints(Frozen):
    """The JSON document with all standpoints of a stack."""

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

    ``network`` is the name of the brokers' network on every host. Clients of scope `host` are
    processes of the Docker host: this process if the engine is on this machine, else a container
    on that engine in the host's network.
    """
    engines = tuple(CandidateEngine(engine=host.engine, cert_path=host.cert_path) for host in hosts)
    is_all_here = all(is_here(address_of(host)) for host in hosts)
    networks = {Scope.HOST: HOST_NETWORK, Scope.INTERNAL: network, Scope.EXTERNAL: OWN_NETWORK}
    return tuple(
        Standpoint(
            name=scope,
            scope=scope,
            kind=Kind.HERE if scope is Scope.HOST and is_all_here else Kind.CONTAINER,
            engines=() if scope is Scope.HOST and is_all_here else engines,
            network=networks[scope],
            base=base,
            dns=() if scope is Scope.HOST else tuple(dns),
        )
        for scope in contract.scopes
    )


def to_json(standpoints: Sequence[Standpoint]) -> str:
    return Standpoints(standpoints=tuple(standpoints)).model_dump_json(indent=2)


def read_standpoints(file: Path) -> tuple[Standpoint, ...]:
    """The standpoints in ``file``. Raises EarshotError."""
    text = content_of(file, f"file {file}")
    try:
        return Standpoints.model_validate_json(text).standpoints
    except ValidationError as error:
        problems = error.errors()
        if problems[0]["type"] == "json_invalid":
            raise EarshotError(
                f"file {file}",
                observed=f"is not JSON ({problems[0]['msg']})",
                allowed="a JSON file of vantages, as a stack on Docker hosts writes it",
            ) from None
        source = f"{file} (standpoints of version 1)"
        raise SpecError.of(source, describe(error, Standpoints, None)[:20]) from None

"""`hosts` of placement docker: Docker hosts with their engines, names and brokers."""

import re
from collections.abc import Mapping
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator

from earshot.config.aws_docker_hosts import ENGINE_PORT, DockerHostsSpec
from earshot.config.cluster import Whole
from earshot.listeners.address import check_host
from earshot.listeners.model import Frozen, matching, text_of
from earshot.listeners.problems import describe, shown

NOT_KNOWN_YET = "not-known-yet.invalid"
"""The end of names that only the update knows; no resolver has such names."""
ENGINE_ALLOWED = "unix:///SOCKET, ssh://[USER@]HOST[:PORT] or tcp://HOST:PORT"
_LABEL = re.compile(r"[a-z0-9][a-z0-9-]{0,29}", re.ASCII)
HostName = Annotated[str, text_of(check_host, "a name or an address, as text")]
HostLabel = Annotated[str, matching(_LABEL, "up to 30 small letters, digits and hyphens")]


class DockerHost(Frozen):
    """A Docker host: the address of its engine, and its names for other machines."""

    name: HostLabel = "local"
    """A label for the host, for messages and resource names."""
    engine: str | None = None
    """The Docker engine: `unix://SOCKET`, `ssh://USER@HOST` or `tcp://HOST:PORT`. Default:
    DOCKER_HOST, or this machine's socket."""
    cert_path: str | None = None
    """A folder with ca.pem, cert.pem and key.pem, for TLS with an engine at `tcp://`."""
    external: HostName | None = None
    """The name or address under which clients on other machines reach the host."""
    internal: HostName | None = None
    """The name or address under which the other Docker hosts reach the host. Default:
    `external`."""
    brokers: tuple[Whole, ...] | None = None
    """Ids of the brokers on this host. Default: brokers are spread over the hosts in turn."""

    @field_validator("engine")
    @classmethod
    def _engine(cls, value: str | None) -> str | None:
        if value is None:
            return None
        url = urlsplit(value)
        is_valid_by_scheme = {
            "unix": not url.netloc and url.path.startswith("/") and len(url.path) > 1,
            "ssh": bool(url.hostname) and url.path in ("", "/"),
            "tcp": bool(url.hostname) and _port_of(value) is not None and url.path in ("", "/"),
        }
        if not is_valid_by_scheme.get(url.scheme, False) or not value.isprintable() or " " in value:
            raise ValueError(f"found {shown(value)}; allowed: {ENGINE_ALLOWED}")
        return value

    @model_validator(mode="after")
    def _certificates(self) -> Self:
        if self.cert_path is not None and not (self.engine or "").startswith("tcp://"):
            problem = f"found {shown(self.cert_path)} for the engine {shown(self.engine)}"
            raise ValueError(f"cert_path: {problem}; allowed: with an engine at tcp://HOST:PORT")
        return self

    @property
    def between_hosts(self) -> str | None:
        """The name or address of this host for the other Docker hosts."""
        return self.internal or self.external


class ProvisionedHost(DockerHost):
    """A host that the update creates. Its names are `NOT_KNOWN_YET` until then."""

    made: DockerHostsSpec = Field(exclude=True)


class AwsHosts(Frozen):
    """The value of `hosts` for Docker hosts that the stack creates."""

    aws: DockerHostsSpec
    """EC2 instances, created in the same update as the brokers."""


def _hosts(value: object) -> object:
    """A list of hosts unchanged; for `aws: {...}`, the hosts that the update creates."""
    if not isinstance(value, Mapping):
        return value
    try:
        hosts_spec = AwsHosts.model_validate(value).aws
    except ValidationError as error:
        raise ValueError("\n".join(describe(error, AwsHosts, value))) from None
    names = {host: f"{host}.{NOT_KNOWN_YET}" for host in hosts_spec.host_zones}
    return tuple(
        ProvisionedHost(
            name=host,
            engine=f"tcp://{name}:{ENGINE_PORT}",
            internal=name,
            external=name,
            made=hosts_spec,
        )
        for host, name in names.items()
    )


Hosts = Annotated[
    tuple[DockerHost, ...],
    BeforeValidator(_hosts, json_schema_input_type=tuple[DockerHost, ...] | AwsHosts),
]


def _port_of(url: str) -> int | None:
    try:
        return urlsplit(url).port
    except ValueError:
        return None

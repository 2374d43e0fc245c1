"""What a node's instance must know besides the plan (its operating system, and where Kafka, its
volume and its role are), and its reports through that role, as it cannot be seen from outside."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Self

from pydantic import AfterValidator, Field, ValidationError, field_validator

from earshot.config.aws_sections import FileName, KafkaRelease
from earshot.listeners.cluster_id import ClusterId
from earshot.listeners.model import Frozen, matching
from earshot.listeners.owned import check_property
from earshot.listeners.problems import refuse
from earshot.listeners.secrets import revealed


class System(StrEnum):
    AMAZON_LINUX_2023 = "amazon-linux-2023"
    DEBIAN = "debian"


@dataclass(frozen=True)
class PackageInstall:
    """How to come by a command that the machine lacks."""

    packages: Mapping[str, str]
    """The package of each command."""
    install: tuple[str, ...]
    """Shell lines that install the packages in the array `missing`."""


_COMMANDS = ("java", "curl", "tar", "gzip", "mkfs.xfs", "aws", "ss", "python3.11")
# Amazon Linux: https://docs.aws.amazon.com/corretto/latest/corretto-17-ug/amazon-linux-install.html
# It comes with curl-minimal, beside which the package curl cannot be installed.
_OF_AMAZON = (
    *("java-17-amazon-corretto-headless", "curl-minimal", "tar", "gzip", "xfsprogs"),
    *("awscli-2", "iproute", "python3.11"),
)
_OF_DEBIAN = (
    *("openjdk-17-jre-headless", "curl", "tar", "gzip", "xfsprogs"),
    *("awscli", "iproute2", "python3.11-venv"),
)
PACKAGING = {
    System.AMAZON_LINUX_2023: PackageInstall(
        packages=dict(zip(_COMMANDS, _OF_AMAZON, strict=True)),
        install=('dnf --assumeyes --quiet install "${missing[@]}"',),
    ),
    System.DEBIAN: PackageInstall(
        packages=dict(zip(_COMMANDS, _OF_DEBIAN, strict=True)),
        install=(
            "export DEBIAN_FRONTEND=noninteractive",
            "options=(--yes --quiet --no-install-recommends -o DPkg::Lock::Timeout=300)",
            'apt-get --quiet update && apt-get "${options[@]}" install "${missing[@]}"',
        ),
    ),
}


_VOLUME = re.compile(r"vol-[0-9a-f]{8,32}|/dev/[A-Za-z0-9/_.-]+", re.ASCII)
_HEAP = re.compile(r"[1-9]\d*[mg]", re.ASCII)

_BY_ID = "/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_"
SECRETS = "/run/kafka/secrets"
"""Where the files of `Boot.secrets` are; in memory, so they never reach a disk."""
PROGRESS_SECONDS = 60
"""Between two looks at what a node that is not in sync lacks."""
CLIENTS_SECONDS = 15
"""From one report of the clients of listeners that leave to the next."""
SKEW_SECONDS = 5
"""By which an instance's clock may be behind EC2's."""
SHOWN_CLIENTS = 12
"""Addresses of clients in one report, for each listener: a parameter holds 4 KiB."""


def _command(words: tuple[str, ...]) -> tuple[str, ...]:
    refuse(
        [f"found {word!r}; allowed: printable words" for word in words if not word.isprintable()][
            :1
        ]
    )
    return words


Command = Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(_command)]
"""A program and its arguments, run without a shell of its own."""


class SecretFile(Frozen):
    """A file below `SECRETS`, which the instance fetches itself; only kafka may read it."""

    name: FileName
    command: Command
    """Prints what is in the file."""


class Boot(Frozen):
    """One instance's part in a cluster. It holds no secret: anyone on the instance may read it."""

    system: System
    archive: KafkaRelease
    volume: Annotated[str, matching(_VOLUME, "an EBS volume id (vol-…) or a device (/dev/…)")]
    cluster_id: ClusterId
    report: Command
    """Takes the node's report (see `NodeReport`) as one more argument."""
    heap: Annotated[str, matching(_HEAP, "a JVM size such as 512m or 4g")] = "1g"
    secrets: tuple[SecretFile, ...] = ()
    version: Annotated[str, Field(pattern=r"^[0-9a-f]*$")] = ""
    """Of what is in `secrets`: with another one, there is something else to be fetched."""
    makes_users: bool = False
    """Whether this node makes users and permissions, by the file `USERS` among its secrets."""
    leaving: dict[str, int] = Field(default_factory=dict)
    """By name, the ports of listeners that a later change takes away. While there are any, the node
    reports every `CLIENTS_SECONDS` who is connected to them."""
    client: dict[str, str] = Field(default_factory=dict)
    """Properties with which a client on the instance itself reaches the inter-broker listener
    (the controllers' where the node is no broker); the protocol is known from the plan."""
    volume_seconds: int = Field(default=300, ge=1, le=3600)
    """How long one attempt waits for the volume to be attached; there is always another."""

    @field_validator("client")
    @classmethod
    def _plain(cls, value: dict[str, str]) -> dict[str, str]:
        refuse([f"{key} would reveal a secret" for key in revealed(value)])
        return {key: check_property(key, text) for key, text in value.items()}

    @property
    def device(self) -> str:
        """Where the volume shows up."""
        return device_of(self.volume)


def device_of(volume: str) -> str:
    """Where ``volume``, an id or a device, shows up on its instance.

    Instances on Nitro have it under the volume's id, without its hyphen:
    https://docs.aws.amazon.com/ebs/latest/userguide/identify-nvme-ebs-device.html
    """
    return volume if volume.startswith("/dev/") else _BY_ID + volume.replace("-", "")


def ssm_report(parameter: str, region: str) -> tuple[str, ...]:
    """A `Boot.report` that writes the SSM parameter named; the role needs ssm:PutParameter."""
    return (
        "aws", "ssm", "put-parameter", "--region", region, "--name", parameter,
        "--type", "String", "--overwrite", "--output", "text", "--value",
    )  # fmt: skip


def ssm_secret(name: str, parameter: str, region: str) -> SecretFile:
    """A file with the value of a SecureString; the role needs ssm:GetParameter and its key."""
    command = (
        "aws", "ssm", "get-parameter", "--region", region, "--with-decryption",
        "--query", "Parameter.Value", "--output", "text", "--name", parameter,
    )  # fmt: skip
    return SecretFile(name=name, command=command)


class NodeState(StrEnum):
    STARTING = "starting"
    IN_SYNC = "in-sync"
    FAILED = "failed"


class NodeReport(Frozen):
    """One report; the instance and its user data tell whether it is of the node now meant."""

    node: int
    instance: str
    """The instance's id, as cloud-init knows it."""
    user_data: str
    """SHA-256 of the user data that the instance booted with, in hexadecimal digits."""
    state: NodeState
    detail: str
    clients: dict[str, dict[str, int]] | None = None
    """By listener that a later change takes away, the connections of each address; None where no
    listener leaves, and where counting failed."""
    at: str
    """When, by the instance's clock (ISO 8601, UTC)."""
    booted: int | None = None
    """When the boot that wrote it began, in seconds since the epoch by the instance's clock: no
    two boots of an instance have the same. None from user data of earlier releases."""
    size_gib: int | None = None
    """How far the file system of the data volume reaches; None before it is mounted."""
    free_gib: int | None = None
    """What is free in it."""

    @property
    def serves(self) -> bool:
        return self.state is NodeState.IN_SYNC

    @classmethod
    def read(cls, text: str) -> Self | None:
        """The report in ``text``, or None where it is none (as before the first)."""
        try:
            return cls.model_validate_json(text)
        except ValidationError:
            return None

    def outdated(self, node: int, instance: str, started: float) -> str:
        """Why this is not a report of ``node`` by the present boot of ``instance``; else empty.

        ``started`` is when EC2 last started the instance, in seconds since the epoch.
        """
        if self.node != node:
            return f"the last report is node {self.node}'s"
        if self.instance != instance:
            return f"the last report is of another instance, {self.instance}"
        if self.booted is not None and self.booted + SKEW_SECONDS < started:
            return f"the last report is of an earlier boot of {instance}, which was started since"
        return ""

    @property
    def lacking(self) -> str:
        """Why the node does not serve by its own account; empty where it does."""
        return "" if self.serves else ": ".join(filter(None, (self.state, self.detail)))

    def lacks(
        self, node: int, instance: str, user_data: str, started: float = 0.0, size_gib: int = 0
    ) -> str:
        """Why this does not say that ``node`` serves as deployed: by the boot of ``instance`` that
        began after ``started``, with ``user_data`` (their digest), and with a file system of
        ``size_gib`` for its data; an empty text where it does."""
        if outdated := self.outdated(node, instance, started):
            return outdated
        if self.user_data != user_data:
            booted = f"{instance} booted with other user data: {self.user_data[:12]}…"
            return f"{booted}, not {user_data[:12]}…"
        if self.serves and self.size_gib is not None and self.size_gib < size_gib:
            grows = "the node looks every minute whether its volume has grown"
            return f"its file system has {self.size_gib} GiB, not {size_gib} yet: {grows}"
        return self.lacking

    @property
    def is_final(self) -> bool:
        """Whether waiting longer is of no use."""
        return self.state is NodeState.FAILED

"""The operating systems an instance may run, and all that depends on which one it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class System(StrEnum):
    AMAZON_LINUX_2023 = "amazon-linux-2023"
    DEBIAN = "debian"


@dataclass(frozen=True)
class Packaging:
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
    System.AMAZON_LINUX_2023: Packaging(
        packages=dict(zip(_COMMANDS, _OF_AMAZON, strict=True)),
        install=('dnf --assumeyes --quiet install "${missing[@]}"',),
    ),
    System.DEBIAN: Packaging(
        packages=dict(zip(_COMMANDS, _OF_DEBIAN, strict=True)),
        install=(
            "export DEBIAN_FRONTEND=noninteractive",
            "options=(--yes --quiet --no-install-recommends -o DPkg::Lock::Timeout=300)",
            'apt-get --quiet update && apt-get "${options[@]}" install "${missing[@]}"',
        ),
    ),
}

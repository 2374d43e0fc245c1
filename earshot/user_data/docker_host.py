"""User data of an instance that is a Docker host: an engine with TLS, its data on a volume.

Pure and deterministic. On the instance, systemd does the work on every boot:

    docker-prepare  packages, volume, the engine's key; each step does nothing when done, and what
                    fails is reported and tried again, unless it would fail again
    docker          the engine, started by the first and never without it
    docker-grow     every minute: grows the file system where its volume has grown
    docker-pull     every 15 seconds, with images in ECR: pulls those that the engine lacks
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from ipaddress import IPv4Network

from earshot.aws.ecr import HELPER
from earshot.config.aws_docker_hosts import ENGINE_PORT
from earshot.user_data.boot import PACKAGING, System, device_of
from earshot.user_data.cloud_config import cloud_config, rendered

ROOT = "/var/lib/docker"
"""Docker's data root, where the data volume is mounted."""
AUTHORITY = "/etc/docker/authority.pem"
KEYS = "/run/docker-keys"
"""Where the engine's key and certificate are; in memory, so they never reach a disk."""
REGISTRIES = "/etc/docker/registries"
"""The folder with the settings of the client that pulls images. Its logins are in memory alone."""
VOLUME_SECONDS = 300
PULL_SECONDS = 15
"""From one look for images to pull to the next."""
SUBNET_BITS = 24
COMMANDS = ("dockerd", "mkfs.xfs", "aws")
_HELPER = (f"docker-credential-{HELPER}", "amazon-ecr-credential-helper")
"""A command and its package, of the same name on Amazon Linux 2023 and Debian."""
_PACKAGES = {
    System.AMAZON_LINUX_2023: ("docker", "xfsprogs", "awscli-2"),
    System.DEBIAN: ("docker.io", "xfsprogs", "awscli"),
}


@dataclass(frozen=True)
class DockerHost:
    """One instance's part."""

    name: str
    address: str
    """The private address at which the engine takes TLS."""
    volume: str
    """The id of the data volume."""
    authority: str
    """The certificate that signs the engine's and its clients', as PEM."""
    version: str
    """Of the engine's key: another one is to be fetched where it differs."""
    fetch: tuple[str, ...]
    """Prints the engine's key and certificate, as PEM."""
    report: tuple[str, ...]
    """Takes the host's report as one more argument."""
    bridge: IPv4Network
    """The range for containers."""
    registries: tuple[str, ...] = ()
    """Registries of ECR to which the host's role logs in."""
    images: tuple[str, ...] = ()
    """Prints the names of images to pull from there, on one line; without ``registries``, none."""
    system: System = System.AMAZON_LINUX_2023


def docker_host_user_data(host: DockerHost) -> str:
    """The user data of ``host``. Raises EarshotError for a text over the limit."""
    packages = dict(zip(COMMANDS, _PACKAGES[host.system], strict=True))
    if host.registries:
        packages |= dict([_HELPER])
    values = {
        "device": device_of(host.volume),
        "root": ROOT,
        "keys": KEYS,
        "label": "docker",
        "volume_seconds": VOLUME_SECONDS,
        "packages": packages,
        "install": PACKAGING[host.system].install,
        "fetch": host.fetch,
        "report": host.report,
        "address": host.address,
        "port": ENGINE_PORT,
        "images": host.images if host.registries else (),
        "registries": REGISTRIES,
        "pull_seconds": PULL_SECONDS,
    }
    units = "/etc/systemd/system"
    files = {
        "/etc/docker/daemon.json": daemon_json(host),
        AUTHORITY: host.authority,
        f"{units}/docker-prepare.service": rendered("docker-prepare.service", values),
        f"{units}/docker.service.d/earshot.conf": rendered("docker-engine.conf", values),
    }
    if host.registries:
        helpers = {"credHelpers": dict.fromkeys(sorted(host.registries), HELPER)}
        files[f"{REGISTRIES}/config.json"] = json.dumps(helpers, indent=2) + "\n"
    scripts = {"/usr/local/sbin/docker-prepare": rendered("docker-prepare.sh", values)}
    commands = (
        ("systemctl", "daemon-reload"),
        # not waited for: it takes longer than cloud-init should
        ("systemctl", "enable", "--now", "--no-block", "docker-prepare.service"),
    )
    return cloud_config(
        f"Docker host {host.name}", files, scripts, commands, "give the host a shorter name"
    )


def daemon_json(host: DockerHost) -> str:
    """The engine's settings: only clients with a certificate of the authority are let in."""
    first, *_ = host.bridge.subnets(new_prefix=SUBNET_BITS)
    pair = f"{KEYS}/server.pem"
    settings = {
        "data-root": ROOT,
        # a changed certificate's version is no setting; it makes the instance fetch the key
        "labels": [f"earshot.host={host.name}", f"earshot.key={host.version}"],
        "log-driver": "json-file",
        "log-opts": {"max-size": "50m", "max-file": "3"},
        "bip": f"{first[1]}/{first.prefixlen}",
        "default-address-pools": [{"base": str(host.bridge), "size": SUBNET_BITS}],
        "tls": True,
        "tlsverify": True,
        "tlscacert": AUTHORITY,
        "tlscert": pair,
        "tlskey": pair,
    }
    return json.dumps(settings, indent=2) + "\n"

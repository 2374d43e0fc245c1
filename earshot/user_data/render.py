"""Renders the user data of a node: a cloud-config with files, units and a command that starts them.

Deterministic, without input or output. On the instance, systemd does the work on every boot:

    kafka-prepare   packages, Kafka, volume, storage, secrets; skips completed steps, reports
                    failures, and retries those that may be temporary
    kafka           the node itself, started by kafka-prepare
    kafka-ready     reports through the instance's role once Kafka reports that it is in sync
    kafka-grow      every minute: grows the data's file system if its volume has grown
"""

import hashlib
from itertools import takewhile
from pathlib import PurePosixPath
from typing import Any

from earshot.errors import EarshotError
from earshot.listeners.model import ClusterPlan, Listener, Node
from earshot.listeners.properties import NodeSettings, write_properties
from earshot.listeners.render import server_properties, settings
from earshot.listeners.secrets import revealed
from earshot.listeners.security import USERS, own_stores, token_options
from earshot.listeners.terms import Role
from earshot.user_data.boot import (
    CLIENTS_SECONDS,
    PACKAGING,
    PROGRESS_SECONDS,
    SECRETS,
    SHOWN_CLIENTS,
    Boot,
)
from earshot.user_data.cloud_config import cloud_config, rendered

MOUNT = "/var/lib/kafka"
"""The mount point of the data volume; a node's `log_dir` is a folder below."""
PROPERTIES = "/etc/kafka/server.properties"
CLIENT = "/etc/kafka/client.properties"
UNITS = ("kafka-prepare.service", "kafka.service", "kafka-ready.service")


def user_data(plan: ClusterPlan, node: Node, boot: Boot) -> str:
    """The user data of ``node``: ASCII, at most `LIMIT` bytes, the same for the same arguments.

    It is not compressed, so that reviewers of a stack can read the advertised listeners.
    Raises EarshotError for names that are not known yet, data outside the volume, a secret among
    the properties, and a text over the limit.
    """
    subject = f"node {node.id}"
    _check(plan, node, subject)
    values = _values(plan, node, boot)
    scripts = {
        "/usr/local/sbin/kafka-prepare": rendered("prepare.sh", values),
        "/usr/local/sbin/kafka-report": rendered("report.sh", values),
    }
    if boot.makes_users:
        scripts["/usr/local/sbin/kafka-users"] = rendered("users.sh", values)
    commands = (
        ("systemctl", "daemon-reload"),
        ("systemctl", "restart", "systemd-journald", "systemd-sysctl"),
        # in the background: it takes too long for cloud-init
        ("systemctl", "enable", "--now", "--no-block", "kafka-prepare.service"),
    )
    remedy = "set fewer or shorter properties in `extra`"
    return cloud_config(subject, _files(plan, node, boot, values), scripts, commands, remedy)


def digest(text: str) -> str:
    """The SHA-256 of the user data ``text`` as hex, which nodes report."""
    return hashlib.sha256(text.encode()).hexdigest()


def _check(plan: ClusterPlan, node: Node, subject: str) -> None:
    voters = [controller.listener(plan.controller) for controller in plan.controllers]
    for listener in (*node.listeners, *filter(None, voters)):
        if not listener.known:
            raise EarshotError(
                f"{subject}: user data",
                observed=f"{listener} is advertised, and its host is not known yet",
                allowed="names that were provisioned",
                remedy="render it when the name's resource is there",
            )
    if PurePosixPath(MOUNT) not in PurePosixPath(node.log_dir).parents or ".." in node.log_dir:
        observed, below = f"{node.log_dir} is not on the data volume", f"a directory below {MOUNT}"
        raise EarshotError(f"{subject}: log_dir", observed=observed, allowed=below)
    if keys := revealed(settings(plan, node)):
        raise EarshotError(
            f"{subject}: user data",
            observed=f"would hold the secret in {', '.join(keys)}",
            allowed="no secret: everyone who may describe the instance can read its user data",
            remedy=f"fetch it on the instance as a file below {SECRETS}, and name that file: PEM "
            "key stores need no password, and a config provider reads any value from a file",
        )


def _files(plan: ClusterPlan, node: Node, boot: Boot, values: dict[str, Any]) -> dict[str, str]:
    logging = "log4j.properties" if values["old_logging"] else "log4j2.properties"
    listener = values["listener"]
    client = {"security.protocol": listener.protocol.value} | boot.client
    client |= own_stores(settings(plan, node), listener.name)
    return {
        PROPERTIES: server_properties(plan, node),
        CLIENT: write_properties(NodeSettings(client)),
        f"/etc/kafka/{logging}": rendered(logging, values),
        "/etc/systemd/journald.conf.d/kafka.conf": rendered("journald.conf", values),
        "/etc/sysctl.d/kafka.conf": rendered("sysctl.conf", values),
        **{f"/etc/systemd/system/{unit}": rendered(unit, values) for unit in UNITS},
    }


def _values(plan: ClusterPlan, node: Node, boot: Boot) -> dict[str, Any]:
    packaging = PACKAGING[boot.system]
    commands = {"java", "curl", "tar", "gzip", "mkfs.xfs", boot.report[0]}
    commands |= {secret.command[0] for secret in boot.secrets}
    commands |= {"ss"} if boot.leaving else set()
    # the common first words of the commands for secrets, which scripts contain once
    words_by_position = zip(*(secret.command for secret in boot.secrets), strict=False)
    fetching = [
        words[0] for words in takewhile(lambda words: len(set(words)) == 1, words_by_position)
    ]
    return {
        "boot": boot,
        "fetching": fetching,
        "node": node,
        "roles": " and ".join(node.roles),
        "leaving": [f"{name}:{port}" for name, port in boot.leaving.items()],
        "shown": SHOWN_CLIENTS,
        "between_looks": PROGRESS_SECONDS,
        "between_reports": CLIENTS_SECONDS,
        "listener": _own_listener(plan, node),
        "old_logging": plan.kafka_version.startswith("3."),
        "token_options": " ".join(token_options(dict(plan.extra))),
        "packages": {k: v for k, v in packaging.packages.items() if k in commands},
        "install": packaging.install,
        "mount": MOUNT,
        "label": "kafka",
        "volume_seconds": boot.volume_seconds,
        "properties": PROPERTIES,
        "client": CLIENT,
        "secrets": SECRETS,
        "users": f"{SECRETS}/{USERS}",
    }


def _own_listener(plan: ClusterPlan, node: Node) -> Listener:
    """The listener at which a node checks itself, at the address that other nodes use."""
    name = plan.inter_broker if Role.BROKER in node.roles else plan.controller
    listener = node.listener(name)
    if listener is None:
        raise EarshotError(f"node {node.id}", observed=f"has no listener {name}")
    return listener

"""Removes containers and networks of runs that were killed.

Their labels name the cluster and the process. The next run of the same cluster on the same machine
removes those whose process has ended.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil

if TYPE_CHECKING:
    import docker

CLUSTER_LABEL: Final = "earshot.vantages.cluster"
_PID: Final = re.compile(r"[0-9]{1,10}")
OWNER_LABEL: Final = "earshot.vantages.owner"
"""The process that created the container or network: machine, pid and start time."""


def labels_of(cluster: str) -> dict[str, str]:
    """The labels of containers and networks that this process creates for ``cluster``."""
    owner = f"{socket.gethostname()} {os.getpid()} {_start(os.getpid())}"
    return {CLUSTER_LABEL: cluster, OWNER_LABEL: owner}


def remove_leftovers(client: docker.DockerClient, cluster: str) -> list[str]:
    """Removes containers and networks for ``cluster`` whose process has ended; their names."""
    from docker.errors import APIError

    label_filter = {"label": f"{CLUSTER_LABEL}={cluster}"}
    removed_names = []
    for container in client.containers.list(all=True, filters=label_filter, ignore_removed=True):
        with contextlib.suppress(APIError):
            if _is_orphan(container.labels):
                container.remove(force=True, v=True)
                removed_names.append(f"container {container.name}")
    for network in client.networks.list(filters=label_filter):
        with contextlib.suppress(APIError):
            if _is_orphan(network.attrs.get("Labels") or {}):
                network.remove()
                removed_names.append(f"network {network.name}")
    return removed_names


def _is_orphan(labels: Mapping[str, str]) -> bool:
    """True if the process in ``labels`` ran on this machine and has ended."""
    machine, pid, start_time = ([*labels.get(OWNER_LABEL, "").split(" "), "", ""])[:3]
    if machine != socket.gethostname() or not _PID.fullmatch(pid):
        return False
    try:
        return _start(int(pid)) != start_time
    except psutil.Error:
        return True


def _start(pid: int) -> str:
    """The start time of a process. Raises psutil.NoSuchProcess."""
    try:  # ticks since the machine started, which a change of the clock does not affect
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:  # no such process, or not Linux
        return f"{psutil.Process(pid).create_time():.2f}"

"""Inputs of docker:index/container:Container as the engine's API takes them."""

from __future__ import annotations

import base64
import io
import re
import tarfile
from typing import Any

import docker
from docker.types import LogConfig, Mount, Ulimit

from tests.doubles.docker.network import labels
from tests.doubles.plugin.kind import ProviderError, Shape
from tests.doubles.plugin.values import Plain

MIB = 1024 * 1024
# Inputs that need nothing but another name.
PLAIN_CONFIG = {
    "command": "command", "domainname": "domainname", "entrypoints": "entrypoint",
    "envs": "environment", "hostname": "hostname", "stdinOpen": "stdin_open",
    "stopSignal": "stop_signal", "stopTimeout": "stop_timeout", "tty": "tty", "user": "user",
    "workingDir": "working_dir",
}  # fmt: skip
PLAIN_HOST = {
    "cpuSet": "cpuset_cpus", "cpuShares": "cpu_shares", "dns": "dns", "dnsOpts": "dns_opt",
    "dnsSearches": "dns_search", "groupAdds": "group_add", "init": "init", "ipcMode": "ipc_mode",
    "networkMode": "network_mode", "pidMode": "pid_mode", "privileged": "privileged",
    "publishAllPorts": "publish_all_ports", "readOnly": "read_only", "rm": "auto_remove",
    "securityOpts": "security_opt", "sysctls": "sysctls", "tmpfs": "tmpfs",
}  # fmt: skip
MEBIBYTES = {"memory": "mem_limit", "memoryReservation": "mem_reservation", "shmSize": "shm_size"}

SHAPE: Shape = {
    **dict.fromkeys((*PLAIN_CONFIG, *PLAIN_HOST, *MEBIBYTES)),
    **dict.fromkeys(
        ("name", "image", "destroyGraceSeconds", "logDriver", "logOpts", "maxRetryCount",
         "memorySwap", "mustRun", "removeVolumes", "restart", "start", "wait", "waitTimeout")
    ),
    "capabilities": {"adds": None, "drops": None},
    "healthcheck": dict.fromkeys(("tests", "interval", "timeout", "startPeriod", "retries")),
    "hosts": {"host": None, "ip": None},
    "labels": {"label": None, "value": None},
    "mounts": {
        "target": None, "source": None, "type": None, "readOnly": None,
        "tmpfsOptions": {"sizeBytes": None, "mode": None},
    },
    "networksAdvanced": {"name": None, "aliases": None, "ipv4Address": None},
    "ports": {"internal": None, "external": None, "ip": None, "protocol": None},
    "ulimits": {"name": None, "soft": None, "hard": None},
    "uploads": {"file": None, "content": None, "contentBase64": None, "executable": None},
    "volumes": {
        "volumeName": None, "hostPath": None, "containerPath": None, "readOnly": None,
        "fromContainer": None,
    },
}  # fmt: skip


def arguments(client: docker.DockerClient, inputs: Plain) -> dict[str, Any]:
    """For the SDK's ``create_container``."""
    found = {name: inputs[key] for key, name in PLAIN_CONFIG.items() if key in inputs}
    ports = inputs.get("ports", [])
    return {
        **found,
        "image": inputs["image"],
        "name": inputs["name"],
        "labels": labels(inputs) or None,
        "ports": [(port["internal"], port.get("protocol", "tcp")) for port in ports],
        "healthcheck": _healthcheck(inputs.get("healthcheck")),
        "volumes": [
            item["containerPath"]
            for item in inputs.get("volumes", [])
            if "containerPath" in item and not {"volumeName", "hostPath"} & item.keys()
        ],
        "host_config": client.api.create_host_config(**_host(inputs)),
    }


def _host(inputs: Plain) -> dict[str, Any]:
    found = {name: inputs[key] for key, name in PLAIN_HOST.items() if key in inputs}
    found |= {name: inputs[key] * MIB for key, name in MEBIBYTES.items() if key in inputs}
    if "memorySwap" in inputs:
        found["memswap_limit"] = swap(inputs["memorySwap"])
    if "restart" in inputs or "maxRetryCount" in inputs:
        found["restart_policy"] = restart_policy(inputs)
    if "logDriver" in inputs or "logOpts" in inputs:
        driver = inputs.get("logDriver", "json-file")
        found["log_config"] = LogConfig(type=driver, config=inputs.get("logOpts", {}))
    if hosts := inputs.get("hosts"):
        found["extra_hosts"] = {item["host"]: item["ip"] for item in hosts}
    if capabilities := inputs.get("capabilities"):
        found["cap_add"] = capabilities.get("adds")
        found["cap_drop"] = capabilities.get("drops")
    if ports := inputs.get("ports"):
        found["port_bindings"] = _bindings(ports)
    if ulimits := inputs.get("ulimits"):
        found["ulimits"] = [Ulimit(**item) for item in ulimits]
    volumes = inputs.get("volumes", [])
    found["binds"] = [bind for item in volumes if (bind := _bind(item))]
    found["volumes_from"] = [item["fromContainer"] for item in volumes if "fromContainer" in item]
    found["mounts"] = [_mount(item) for item in inputs.get("mounts", [])]
    return found


def restart_policy(inputs: Plain) -> dict[str, Any]:
    return {
        "Name": inputs.get("restart", "no"),
        "MaximumRetryCount": inputs.get("maxRetryCount", 0),
    }


def swap(mebibytes: int) -> int:
    """-1 is a word of its own: no limit."""
    return mebibytes * MIB if mebibytes > 0 else mebibytes


def _bindings(ports: list[Plain]) -> dict[str, list[tuple[str, int | None]]]:
    bindings: dict[str, list[tuple[str, int | None]]] = {}
    for port in ports:
        inner = f"{port['internal']}/{port.get('protocol', 'tcp')}"
        where = (port.get("ip", "0.0.0.0"), port.get("external"))
        bindings.setdefault(inner, []).append(where)
    return bindings


def _bind(volume: Plain) -> str | None:
    source = volume.get("volumeName") or volume.get("hostPath")
    if source is None:
        return None
    return f"{source}:{volume['containerPath']}:{'ro' if volume.get('readOnly') else 'rw'}"


def _mount(item: Plain) -> Mount:
    options = item.get("tmpfsOptions", {})
    return Mount(
        item["target"],
        item.get("source"),
        type=item["type"],
        read_only=item.get("readOnly", False),
        tmpfs_size=options.get("sizeBytes"),
        tmpfs_mode=options.get("mode"),
    )


def _healthcheck(given: Plain | None) -> dict[str, Any] | None:
    if not given:
        return None
    found = {"test": given.get("tests"), "retries": given.get("retries")}
    for key, name in (
        ("interval", "interval"),
        ("timeout", "timeout"),
        ("startPeriod", "start_period"),
    ):
        if key in given:
            found[name] = nanoseconds(given[key])
    return {name: value for name, value in found.items() if value is not None}


UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|ms|s|m|h)")


def nanoseconds(text: str) -> int:
    """Of a duration as Go writes it, ``1m30s``; ProviderError for anything else."""
    if not re.fullmatch(f"(?:{PART.pattern})+|0", text):
        raise ProviderError(f"{text!r} is not a duration such as 5s, 1m30s or 500ms")
    return sum(int(float(number) * UNITS[unit]) for number, unit in PART.findall(text))


def archive(uploads: list[Plain]) -> bytes:
    """The files to put into a container, as a tar from its root on."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as files:
        for item in uploads:
            content = item.get("content", "").encode() or base64.b64decode(
                item.get("contentBase64", "")
            )
            member = tarfile.TarInfo(item["file"].lstrip("/"))
            member.size = len(content)
            member.mode = 0o744 if item.get("executable") else 0o644
            files.addfile(member, io.BytesIO(content))
    return buffer.getvalue()

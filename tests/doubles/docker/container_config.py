"""Inputs of docker:index/container:Container in the form of the engine's API."""

import re
from typing import Any

import docker
from docker.types import LogConfig

from tests.doubles.docker.network import labels
from tests.doubles.plugin.kind import ProviderError, Shape
from tests.doubles.plugin.values import Plain

MIB = 1024 * 1024
# Inputs that need nothing but another name.
PLAIN_CONFIG = {
    "command": "command", "entrypoints": "entrypoint", "envs": "environment",
    "hostname": "hostname", "stdinOpen": "stdin_open", "stopSignal": "stop_signal",
    "stopTimeout": "stop_timeout", "tty": "tty",
}  # fmt: skip
PLAIN_HOST = {
    "init": "init", "ipcMode": "ipc_mode", "networkMode": "network_mode",
    "privileged": "privileged", "publishAllPorts": "publish_all_ports", "readOnly": "read_only",
    "rm": "auto_remove",
}  # fmt: skip

SHAPE: Shape = {
    **dict.fromkeys((*PLAIN_CONFIG, *PLAIN_HOST)),
    **dict.fromkeys(
        ("name", "image", "destroyGraceSeconds", "dns", "logDriver", "logOpts", "mustRun",
         "removeVolumes", "restart", "shmSize", "start", "wait", "waitTimeout",
         "containerReadRefreshTimeoutMilliseconds")
    ),
    "healthcheck": dict.fromkeys(
        ("tests", "interval", "timeout", "startPeriod", "retries", "startInterval")
    ),
    "labels": {"label": None, "value": None},
    "networksAdvanced": {"name": None, "aliases": None, "ipv4Address": None},
    "ports": {"internal": None, "external": None, "ip": None, "protocol": None},
    "volumes": {"volumeName": None, "hostPath": None, "containerPath": None, "readOnly": None},
}  # fmt: skip
DEFAULTS: Plain = {
    "mustRun": True, "start": True, "rm": False, "restart": "no", "removeVolumes": True,
    "wait": False, "waitTimeout": 60, "containerReadRefreshTimeoutMilliseconds": 15000,
}  # fmt: skip
DETAILS: dict[str, Plain] = {
    "networksAdvanced": {
        "driverOpts": [], "gwPriority": 0, "ipv4Address": "", "ipv6Address": "",
        "linkLocalIps": [], "macAddress": "",
    },
    "volumes": {"fromContainer": "", "hostPath": "", "readOnly": False, "selinuxRelabel": ""},
}  # fmt: skip
"""Parts of objects that outputs have, with or without inputs."""
LISTS = ("devices", "dns", "dnsOpts", "dnsSearches", "groupAdds", "hosts", "securityOpts")
"""Outputs without inputs that are null after the creation and empty lists after a refresh."""


def arguments(client: docker.DockerClient, inputs: Plain) -> dict[str, Any]:
    """The arguments of the SDK's `create_container`."""
    ports = inputs.get("ports", [])
    return {
        **{name: inputs[key] for key, name in PLAIN_CONFIG.items() if key in inputs},
        "image": inputs["image"],
        "name": inputs["name"],
        "labels": labels(inputs) or None,
        "ports": [(port["internal"], port["protocol"]) for port in ports],
        "healthcheck": _healthcheck(inputs.get("healthcheck")),
        "host_config": client.api.create_host_config(**_host(inputs)),
    }


def _host(inputs: Plain) -> dict[str, Any]:
    config = {name: inputs[key] for key, name in PLAIN_HOST.items() if key in inputs}
    if "dns" in inputs:
        config["dns"] = sorted(set(inputs["dns"]))  # a set, whose order is not the program's
    if "shmSize" in inputs:
        config["shm_size"] = inputs["shmSize"] * MIB
    if "logDriver" in inputs or "logOpts" in inputs:
        driver = inputs.get("logDriver", "json-file")
        config["log_config"] = LogConfig(type=driver, config=inputs.get("logOpts", {}))
    if ports := inputs.get("ports"):
        config["port_bindings"] = _bindings(ports)
    config["restart_policy"] = restart_policy(inputs)
    config["binds"] = [_bind(volume) for volume in inputs.get("volumes", [])]
    return config


def restart_policy(inputs: Plain) -> dict[str, Any]:
    return {"Name": inputs["restart"], "MaximumRetryCount": 0}


def _bindings(ports: list[Plain]) -> dict[str, list[tuple[str, int | None]]]:
    bindings: dict[str, list[tuple[str, int | None]]] = {}
    for port in ports:
        inner = f"{port['internal']}/{port['protocol']}"
        bindings.setdefault(inner, []).append((port["ip"], port.get("external")))
    return bindings


def _bind(volume: Plain) -> str:
    source = volume.get("volumeName") or volume["hostPath"]
    return f"{source}:{volume['containerPath']}:{'ro' if volume.get('readOnly') else 'rw'}"


def _healthcheck(healthcheck: Plain | None) -> dict[str, Any] | None:
    if not healthcheck:
        return None
    config = {"test": healthcheck.get("tests"), "retries": healthcheck.get("retries")}
    for key, name in (
        ("interval", "interval"),
        ("timeout", "timeout"),
        ("startPeriod", "start_period"),
    ):
        if key in healthcheck:
            config[name] = nanoseconds(healthcheck[key])
    return {name: value for name, value in config.items() if value is not None}


UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|ms|s|m|h)")


def nanoseconds(text: str) -> int:
    """The nanoseconds of a duration in Go's form, ``1m30s``. Other forms raise ProviderError."""
    if not re.fullmatch(f"(?:{PART.pattern})+|0", text):
        raise ProviderError(f"{text!r} is not a duration such as 5s, 1m30s or 500ms")
    return sum(int(float(number) * UNITS[unit]) for number, unit in PART.findall(text))

"""The sockets at which processes listen, and which of them SECURITY.md lists."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from toolchain.paths import ROOT

VALIDATION = "validation"
"""The process that validates: a command, or the process of the test itself."""
PROCESSES: dict[str, str] = {
    "Kafka node": r"\bkafka\.Kafka\b",
    "Docker's proxy of a published port": r"\bdocker-proxy\b",
    "Spark driver": r"\bdeploy\.SparkSubmit\b",
    "Kafka's check of settings": r"\bpy4j\.GatewayServer\b",
    VALIDATION: r"earshot(\.cli\.guarded)? validate\b",
    "policy pack": r"\bpulumi\.policy\b",
    "earshot's plugin, gate": r"\bpulumi-resource-earshot\b",
    "provider plugins of others": r"\bpulumi-resource-",
    "program": r"\bpulumi-language-python-exec\b",
    "language host": r"\btoolchain\.language_host\b",
    "Pulumi engine": r"(^|/)pulumi ",
}
"""By its name in SECURITY.md, what the command line of a process contains; the first one counts."""


@dataclass(frozen=True)
class OpenSocket:
    """An address at which a process listens."""

    process: str
    """Its name in SECURITY.md; its command line where it has none."""
    address: str
    port: int

    @property
    def is_loopback(self) -> bool:
        return ipaddress.ip_address(self.address).is_loopback


def open_sockets(
    root: psutil.Process, *others: psutil.Process, network: int = 0
) -> list[OpenSocket]:
    """All at which ``root``, its descendants and ``others`` listen by TCP now.

    Only processes in the network namespace of the process ``network`` count; 0: this one.
    """
    found, namespace = [], _namespace(network or os.getpid())
    for process in (root, *root.children(recursive=True), *others):
        with contextlib.suppress(psutil.Error, OSError):
            if _namespace(process.pid) != namespace:
                continue
            command = process.cmdline()
            for item in process.net_connections("tcp"):
                if item.status == psutil.CONN_LISTEN:
                    address = item.laddr.ip.removeprefix("::ffff:")
                    name = VALIDATION if process == psutil.Process() else _name(command)
                    found.append(OpenSocket(name, address, item.laddr.port))
    return found


def _namespace(pid: int) -> Path:
    return Path(f"/proc/{pid}/ns/net").readlink()


def _name(command: Sequence[str]) -> str:
    text = " ".join(command)
    return next((name for name, is_one in PROCESSES.items() if re.search(is_one, text)), text)


def listed() -> dict[str, str]:
    """The table of SECURITY.md: by process, where it listens."""
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|", (ROOT / "SECURITY.md").read_text(), re.M)
    return {process: address for process, address in rows if process != "Process"}

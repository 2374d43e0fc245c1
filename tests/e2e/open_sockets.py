"""The sockets at which processes listen, and which of them SECURITY.md lists."""

import contextlib
import ipaddress
import os
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from toolchain.paths import ROOT

VALIDATION = "validation"
"""The process that validates: a command, or the process of the test itself."""
LISTEN = "0A"
"""The state of a socket that listens, in the kernel's tables."""
PROCESSES: dict[str, str] = {
    "Kafka node": r"\bkafka\.Kafka\b",
    "Docker's proxy of a published port": r"\bdocker-proxy\b",
    "Spark driver": r"\bdeploy\.SparkSubmit\b",
    "Kafka's check of settings": r"\bpy4j\.GatewayServer\b",
    VALIDATION: r"earshot(\.cli\.ends_with_stdin)? validate\b",
    "tunnel": r"-m earshot tunnel\b",
    "policy pack": r"\bpulumi\.policy\b",
    "earshot's plugin, gate": r"\bpulumi-resource-earshot\b",
    "provider plugins of others": r"\bpulumi-resource-",
    "program": r"\bpulumi-language-python-exec\b",
    "language host": r"\bpulumi_python_host\b",
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
            for address, port in _listening(process.pid):
                name = VALIDATION if process == psutil.Process() else _name(command)
                found.append(OpenSocket(name, address, port))
    return found


def _listening(pid: int) -> Iterator[tuple[str, int]]:
    """Where a process listens, in whichever namespace: psutil sees those of its own alone.

    https://www.kernel.org/doc/html/latest/networking/proc_net_tcp.html
    """
    inodes = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            inodes.add(str(descriptor.readlink()))
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == LISTEN and f"socket:[{inode}]" in inodes:
                host, port = local.split(":")
                words = struct.unpack(f">{len(host) // 8}I", bytes.fromhex(host))
                packed = struct.pack(f"={len(words)}I", *words)
                address = ipaddress.ip_address(packed)
                mapped = address.ipv4_mapped if address.version == 6 else None
                yield str(mapped or address), int(port, 16)


def _namespace(pid: int) -> Path:
    return Path(f"/proc/{pid}/ns/net").readlink()


def _name(command: Sequence[str]) -> str:
    text = " ".join(command)
    return next((name for name, is_one in PROCESSES.items() if re.search(is_one, text)), text)


def listed() -> dict[str, str]:
    """The table of SECURITY.md: by process, where it listens."""
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|", (ROOT / "SECURITY.md").read_text(), re.M)
    return {process: address for process, address in rows if process != "Process"}

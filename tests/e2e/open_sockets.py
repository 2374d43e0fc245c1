"""The listening sockets of processes, and the table of SECURITY.md."""

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
"""A pattern for the command line of each process, by its name in SECURITY.md. The first match
counts."""


@dataclass(frozen=True)
class OpenSocket:
    """An address at which a process listens."""

    process: str
    """The process's name in SECURITY.md, or its command line if it has none."""
    address: str
    port: int

    @property
    def is_loopback(self) -> bool:
        return ipaddress.ip_address(self.address).is_loopback


def open_sockets(
    root: psutil.Process, *other_processes: psutil.Process, network: int = 0
) -> list[OpenSocket]:
    """The TCP sockets at which ``root``, its descendants and ``other_processes`` listen now.

    Only processes in the network namespace of the process ``network`` count; 0: this one.
    """
    member = network or os.getpid()
    sockets, namespace = [], _namespace(member)
    processes = [root, *root.children(recursive=True), *other_processes]
    descriptors_of = [(target, _descriptors(target.pid)) for target in processes]
    listening = dict(_listening(member))  # after the descriptors, so that it has their sockets
    for process, descriptors in descriptors_of:
        with contextlib.suppress(psutil.Error, OSError):
            own_targets = descriptors & listening.keys()
            if not own_targets or _namespace(process.pid) != namespace:
                continue
            name = VALIDATION if process == psutil.Process() else _name(process.cmdline())
            sockets += [OpenSocket(name, *listening[target]) for target in own_targets]
    return sockets


def _descriptors(pid: int) -> set[str]:
    """The targets of a process's open descriptors; empty if it has ended."""
    targets = set()
    with contextlib.suppress(OSError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                targets.add(str(descriptor.readlink()))
    return targets


def _listening(pid: int) -> Iterator[tuple[str, tuple[str, int]]]:
    """The listening addresses in the network namespace of a process, by the target of a descriptor.

    psutil reads only its own namespace.
    https://www.kernel.org/doc/html/latest/networking/proc_net_tcp.html
    """
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == LISTEN:
                host, port = local.split(":")
                words = struct.unpack(f">{len(host) // 8}I", bytes.fromhex(host))
                packed = struct.pack(f"={len(words)}I", *words)
                address = ipaddress.ip_address(packed)
                mapped = address.ipv4_mapped if address.version == 6 else None
                yield f"socket:[{inode}]", (str(mapped or address), int(port, 16))


def _namespace(pid: int) -> Path:
    return Path(f"/proc/{pid}/ns/net").readlink()


def _name(command: Sequence[str]) -> str:
    text = " ".join(command)
    return next((name for name, is_one in PROCESSES.items() if re.search(is_one, text)), text)


def documented_addresses() -> dict[str, str]:
    """The table of SECURITY.md: the address of each process."""
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|", (ROOT / "SECURITY.md").read_text(), re.M)
    return {process: address for process, address in rows if process != "Process"}

"""Restores the kernel settings that a Docker engine changes in its network namespace."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
BRIDGE = "docker0"
# An engine's tables and their chains before any change.
UNTOUCHED = {
    "nat": ("PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"),
    "filter": ("INPUT", "FORWARD", "OUTPUT"),
}


@contextlib.contextmanager
def restored_rules() -> Iterator[None]:
    """Restores forwarding, packet rules and the default bridge at the end."""
    forwarding = FORWARDING.read_text()
    tables = {name: saved_rules(name) for name in UNTOUCHED}
    had_bridge = _has_bridge()
    try:
        yield
    finally:
        for text in tables.values():
            subprocess.run(["iptables-restore"], input=text, text=True, check=True)
        FORWARDING.write_text(forwarding)
        if not had_bridge and _has_bridge():
            subprocess.run(["ip", "link", "delete", BRIDGE], check=True)


def saved_rules(table: str) -> str:
    """The rules of ``table`` in the form of ``iptables-restore``; never empty."""
    completed = subprocess.run(
        ["iptables-save", "--table", table], check=True, capture_output=True, text=True
    )
    if f"*{table}" in completed.stdout:
        return completed.stdout
    chains = "".join(f":{chain} ACCEPT [0:0]\n" for chain in UNTOUCHED[table])
    return f"*{table}\n{chains}COMMIT\n"


def _has_bridge() -> bool:
    return Path("/sys/class/net", BRIDGE).exists()

"""Security groups as packet rules in the network namespace of an instance's container.

As EC2 has them: what no rule of the interface's groups lets in or out is dropped without a word,
answers to what was let through pass, and the way to the resolver is open.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Members = Mapping[str, frozenset[str]]

_OPENING = """*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:OUTPUT DROP [0:0]
-A INPUT -i lo -j ACCEPT
-A OUTPUT -o lo -j ACCEPT
-A INPUT -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT
-A OUTPUT -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT
-A OUTPUT -d {resolver} -p udp --dport 53 -j ACCEPT
"""


def packet_rules(groups: list[Any], members: Members, resolver: str) -> str:
    """The input of `iptables-restore` for an interface in ``groups`` (in EC2's description).

    ``members`` are the private addresses of the interfaces in each group.
    """
    lines: list[str] = []
    for group in groups:
        lines += _lines("INPUT", "-s", group["IpPermissions"], members)
        lines += _lines("OUTPUT", "-d", group["IpPermissionsEgress"], members)
    return _OPENING.format(resolver=resolver) + "".join(sorted(set(lines))) + "COMMIT\n"


def _lines(chain: str, peer: str, permissions: list[Any], members: Members) -> Iterator[str]:
    for permission in permissions:
        peers = [ip_range["CidrIp"] for ip_range in permission.get("IpRanges", [])]
        for pair in permission.get("UserIdGroupPairs", []):
            peers += members.get(pair["GroupId"], ())
        for address in peers:
            yield f"-A {chain} {peer} {address}{_match_options(permission)} -j ACCEPT\n"


def _match_options(permission: Any) -> str:
    protocol = permission["IpProtocol"]
    if protocol == "-1":
        return ""
    if protocol not in ("tcp", "udp"):
        return f" -p {protocol}"
    return f" -p {protocol} --dport {permission['FromPort']}:{permission['ToPort']}"


def before_docker(rules: str) -> str:
    """``rules`` for an instance with a Docker engine, which has the table `filter` for itself.

    As on EC2 they see a packet before the engine sends it to a container.
    """
    other_interfaces = ["-A PREROUTING ! -i eth0 -j ACCEPT", "-A POSTROUTING ! -o eth0 -j ACCEPT"]
    return before_routing(rules, other_interfaces)


def before_routing(rules: str, first_rules: Sequence[str] = ()) -> str:
    """``rules`` for a forwarding machine: they apply before the address of a packet is changed.

    ``first_rules`` come before them.
    """
    lines = ["*mangle", *first_rules]
    for line in rules.splitlines():
        forwarded_rule = line.replace("INPUT", "PREROUTING").replace("OUTPUT", "POSTROUTING")
        if forwarded_rule.startswith((":PREROUTING", ":POSTROUTING")):
            lines.insert(1, forwarded_rule)
        elif forwarded_rule.startswith("-A ") and not forwarded_rule.endswith("lo -j ACCEPT"):
            lines.append(forwarded_rule)
    return "\n".join((*lines, "COMMIT")) + "\n"


def apply(rules: str, pid: int) -> None:
    """Replaces all rules in the network namespace of process ``pid`` by ``rules``."""
    command = ["nsenter", "--net", f"--target={pid}", "iptables-restore"]
    completed = subprocess.run(command, input=rules, text=True, capture_output=True)
    assert completed.returncode == 0, f"{' '.join(command)}: {completed.stderr.strip()}\n{rules}"

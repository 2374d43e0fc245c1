"""Advertised names whose clients' DNS servers are unknown, so that KL011 does not apply."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from earshot.listeners.listed import shortened
from earshot.names.kinds import NameKind, kind_of
from earshot.rules import kl011_resolves

_HOST = re.compile(r"://(?P<host>[\w.-]+):")
_OF_DNS = frozenset({NameKind.FQDN, NameKind.PRIVATE_TLD, NameKind.UNDELEGATED})
_CLUSTER = frozenset({"svc", "pod"})
"""Labels of names that a Kubernetes cluster's own DNS server answers."""


def names_not_looked_up(values: Mapping[str, str], known: Collection[str] = ()) -> str:
    """The remark that names in ``values`` (properties) are not looked up, or an empty text.

    ``known`` are names of Services and pods, whose own names are checked in another way.
    """
    hosts = [match["host"] for match in _HOST.finditer(values.get("advertised.listeners", ""))]
    names = [
        host
        for host in dict.fromkeys(hosts)
        if kind_of(host) in _OF_DNS and not _is_of_cluster(host.split("."), known)
    ]
    if not names:
        return ""
    return f"{kl011_resolves.RULE.id}: whether {shortened(names)} resolves is not checked"


def _is_of_cluster(labels: Sequence[str], known: Collection[str]) -> bool:
    """Whether the name is `SERVICE.NAMESPACE`, `POD.SERVICE`, `POD.SERVICE.NAMESPACE` or longer."""
    return (
        bool(_CLUSTER & {*labels})
        or (len(labels) == 2 and labels[0] in known)
        or (len(labels) in (2, 3) and labels[1] in known)
    )

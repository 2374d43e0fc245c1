"""Part of KL016: the replicas of one Compose service have one configuration.

Compose and Swarm create each replica from the same variables, unless they contain a template such
as `{{.Task.Slot}}`. Sources: https://docs.docker.com/reference/compose-file/deploy/#replicas, and
https://docs.docker.com/reference/cli/docker/service/create/#create-services-using-templates.
"""

import re
from collections.abc import Iterator

from earshot.rules.kl016_nodes import RULE
from earshot.rules.rule import Finding, Severity
from earshot.topology.broker import Broker
from earshot.topology.container import is_loopback

_SEVERAL = re.compile(r"0*(?:[2-9]|[1-9][0-9]{1,5})", re.ASCII)


def same_nodes(
    broker: Broker, replicas: str, written: str, *, has_zookeeper: bool, certain: bool
) -> Iterator[Finding]:
    """A finding if all ``replicas`` (as in the file) of a broker have one node id or advertised
    address.

    ``written`` contains the advertised addresses as in the file: an image may advertise the
    container's own name. A warning unless ``certain``: a start script of the image may choose
    another id or address.
    """
    if not _SEVERAL.fullmatch(replicas):
        return
    shared = []
    if broker.id is not None and broker.id >= 0 and (has_zookeeper or _has_quorum(broker)):
        shared.append(f"the node id {broker.id}")
    addresses = dict.fromkeys(
        str(address)
        for endpoint in broker.for_clients
        if (address := endpoint.advertised) is not None
        and not is_loopback(address.host)
        and re.search(rf"(?<![\w.-]){re.escape(address.host)}(?![\w.-])", written)
    )
    if addresses:
        shared.append(f"the advertised address {next(iter(addresses))}")
    if shared:
        yield RULE.finding(
            f"runs {int(replicas)} times with one configuration: all replicas have "
            f"{' and '.join(shared)}",
            "a node id and an advertised address of its own for every broker",
            container=broker.service,
            severity=None if certain else Severity.WARNING,
            remedy="write a service for each broker, or run one replica",
            inputs=("scale", "deploy"),
            source="https://docs.docker.com/reference/compose-file/deploy/#replicas",
        )


def _has_quorum(broker: Broker) -> bool:
    """Whether the replicas are nodes of one cluster: another container may be a voter."""
    addresses = (*broker.voters.values(), *broker.quorum_servers)
    return any(address.host and not is_loopback(address.host) for address in addresses)

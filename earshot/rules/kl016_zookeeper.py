"""KL016: a broker reaches a ZooKeeper at `zookeeper.connect`.

Another file may define a name, unless this file contains a ZooKeeper or shows every container of
the network. A broker's own loopback is never another container.

Sources: the start scripts of the images, for the port at which ZooKeeper listens.
"""

import re
from collections.abc import Iterator, Mapping

from earshot.listeners.address import Address
from earshot.listeners.images import repository_of
from earshot.listeners.placeholders import is_known
from earshot.rules.kl016_nodes import RULE
from earshot.rules.rule import Finding, Severity
from earshot.topology.container import Container
from earshot.topology.model import Deployment
from earshot.topology.names import Member, Resolution
from earshot.topology.ways import Failure

KEY = "zookeeper.connect"
DEFAULT_PORT = 2181
_ZOOKEEPER = re.compile(r"(?:.*/)?(?:cp-)?zookeeper")
_PORTS = (
    (re.compile(r"(?:.*/)?confluentinc/cp-zookeeper"), "ZOOKEEPER_CLIENT_PORT"),
    (re.compile(r"(?:.*/)?bitnami(?:legacy)?/zookeeper"), "ZOO_PORT_NUMBER"),
    (re.compile(r"(?:(?:docker\.io/)?library/)?zookeeper|(?:.*/)?wurstmeister/zookeeper"), ""),
)
"""By image: the variable of the port for clients, empty for an image without one."""
_ENTRY = re.compile(r"([A-Za-z0-9._-]+)(?::([0-9]{1,5}))?", re.ASCII)


def zookeepers(containers: Mapping[str, Container]) -> dict[str, int | None]:
    """The containers with an image of ZooKeeper, each with its port for clients, if known."""
    return {
        name: _port(container)
        for name, container in containers.items()
        if _ZOOKEEPER.fullmatch(repository_of(container.image))
    }


def _port(container: Container) -> int | None:
    image = repository_of(container.image)
    for pattern, variable in _PORTS:
        if pattern.fullmatch(image) and not (container.unknown or _has_own_settings(container)):
            port = container.env.get(variable, str(DEFAULT_PORT))
            return int(port) if re.fullmatch(r"[0-9]{1,5}", port, re.ASCII) else None
    return None


def _has_own_settings(container: Container) -> bool:
    return any("conf" in path or path.endswith(".cfg") for path in container.mounts)


def lost_zookeeper(
    deployment: Deployment,
    service: str,
    connect: str,
    ports: Mapping[str, int | None],
    variable: str = KEY,
) -> Iterator[Finding]:
    """A finding if the broker ``service`` reaches no address of ``connect``.

    ``ports`` are the file's `zookeepers`; ``variable`` is what sets ``connect``. A warning if the
    machine may have the name and the file does not show every container of the broker's network.
    """
    servers = connect.strip().partition("/")[0]
    if not is_known(connect):
        return
    is_shown = deployment.containers[service].is_network_shown
    reasons, certain = {}, True
    for entry in servers.split(","):
        match = _ENTRY.fullmatch(entry.strip())
        if match is None:
            return
        address = Address(match[1], int(match[2] or DEFAULT_PORT))
        reason = _reason(deployment, service, address, ports)
        if not reason:
            return
        reasons[str(address)] = reason
        certain &= is_shown or deployment.is_certain(deployment.trace(service, address))
    addresses = (Address(name, port or DEFAULT_PORT) for name, port in ports.items())
    offers = ", ".join(
        str(offer) for offer in addresses if not _reason(deployment, service, offer, ports)
    )
    failures = "; ".join(f"{address}: {reason}" for address, reason in reasons.items())
    yield RULE.finding(
        f"{variable} leads to no ZooKeeper ({failures})",
        f"a ZooKeeper that {service} reaches{f', such as {offers}' if offers else ''}",
        container=service,
        severity=None if certain else Severity.WARNING,
        remedy=f"set {variable} to {offers or 'the address of a ZooKeeper'}",
        inputs=(KEY,),
        source="https://kafka.apache.org/39/documentation.html#brokerconfigs_zookeeper.connect",
    )


def _reason(
    deployment: Deployment, service: str, address: Address, ports: Mapping[str, int | None]
) -> str:
    """The reason why ``address`` certainly leads to no ZooKeeper, or an empty string."""
    trace = deployment.trace(service, address)
    if trace.end is Failure.SELF:
        shares = len(deployment.names.sharing(deployment.names.owner(service))) > 1
        return "" if shares or trace.doubt else trace.hops[-1].because
    if trace.end in (Failure.NOWHERE, Failure.NO_WAY):
        is_shown = bool(ports) or deployment.containers[service].is_network_shown
        return trace.hops[-1].because if is_shown and not trace.doubt else ""
    target = deployment.names.resolve(service, address.host)
    if not isinstance(target, Resolution) or target.doubt or len(target.targets) != 1:
        return ""
    member = target.targets[0]
    if not isinstance(member, Member) or len(deployment.names.sharing(member.service)) > 1:
        return ""
    container = deployment.containers[member.service]
    port = ports.get(member.service)
    if port in (None, address.port) or container.network_mode:
        return ""
    # another variable may open a second port
    number = re.compile(rf"(?<![0-9]){address.port}(?![0-9])")
    if any(map(number.search, container.env.values())):
        return ""
    return f"ZooKeeper of {member.service} listens at port {port}"

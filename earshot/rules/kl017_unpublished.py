"""Part of KL017: an address of the machine is advertised, and no port of the machine is published.

The address may still lead to the listener: through a proxy, or because it is the container's.
"""

import contextlib
import ipaddress
import re
from collections.abc import Iterator

from earshot.listeners.address import Address
from earshot.names.kinds import NameKind, ip_of, kind_of
from earshot.rules.rule import Severity
from earshot.topology.container import Container, HiddenPort
from earshot.topology.model import Deployment
from earshot.topology.names import is_gateway
from earshot.topology.walk import PublishedListener

_FORWARDER = re.compile(
    r"nginx|haproxy|traefik|envoy|caddy|socat|proxy|tunnel|cloudflared|ngrok|tailscale|wireguard"
    r"|vpn|zerotier|netbird|frp|rathole|ssh|kroxylicious|gateway|kong|apisix",
    re.IGNORECASE,
)
"""Images of proxies and tunnels."""
_DOCKERS_POOL = ipaddress.ip_network("172.16.0.0/12")
_PUBLIC_NAMES = (
    NameKind.FQDN,
    NameKind.EC2_PUBLIC,
    NameKind.EC2_PRIVATE,
    NameKind.EC2_RESOURCE,
)


def severity(deployment: Deployment, walk: PublishedListener) -> Severity | None:
    """The severity of an advertised address of the machine that no port of the machine serves.

    A warning if a proxy or a tunnel is possible: another container that is not a known client, or
    one of another file, which a network with a name of its own or a fixed address may be for. None
    if the address may lead to the listener in another way.
    """
    broker, container, address = walk.broker, walk.broker.container, walk.address
    is_completed = container.has_proxy_labels or container.is_published_elsewhere
    if is_completed or container.open_networks or container.unknown:
        return None
    if any(network.is_routed for network in container.networks):
        return None
    is_name = ip_of(address.host) is None and not is_gateway(address.host)
    is_for_members = len(broker.for_clients) == 1 or walk.endpoint.name == broker.inter_broker
    if is_name and is_for_members:
        return None  # a DNS server of the containers may know the name
    if walk.endpoint.advertised is None or not _is_of_machine(deployment, address.host):
        return None
    if any(_may_forward(other, address) for other in deployment.containers.values()):
        return None
    clients = {bootstrap.service for bootstrap in deployment.bootstraps}
    others = deployment.containers.keys() - clients - deployment.by_service.keys()
    are_known = all("zookeeper" in deployment.containers[name].image.lower() for name in others)
    is_joined = any(network.is_named or network.address for network in container.networks)
    is_certain = are_known and broker.is_image_known and not is_joined
    return Severity.ERROR if is_certain else Severity.WARNING


def _is_of_machine(deployment: Deployment, host: str) -> bool:
    """Whether ``host`` is a name or address that no container can have.

    Docker takes the addresses of networks from 172.16.0.0/12 by default. `SERVICE.NETWORK` and
    `tasks.SERVICE` are names of Docker's DNS.
    """
    containers = deployment.containers
    if is_gateway(host):
        return True
    if any(container.has_name(host) for container in containers.values()):
        return False
    if (number := ip_of(host)) is not None:
        is_routable = kind_of(host) in (NameKind.PUBLIC_ADDRESS, NameKind.PRIVATE_ADDRESS)
        return is_routable and not any(number in network for network in _subnets(deployment))
    first, _, rest = host.lower().partition(".")
    names = deployment.names.all
    is_dockers = first == "tasks" or ("." not in rest and first in names)
    return kind_of(host) in _PUBLIC_NAMES and not is_dockers


def _subnets(deployment: Deployment) -> Iterator[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    """The subnets that Docker may take container addresses from. Any IPv6 address may be one."""
    yield from (_DOCKERS_POOL, ipaddress.ip_network("::/0"))
    joined = (net for container in deployment.containers.values() for net in container.networks)
    for subnet in (subnet for network in joined for subnet in network.subnets):
        with contextlib.suppress(ValueError):
            yield ipaddress.ip_network(subnet, strict=False)


def _may_forward(container: Container, address: Address) -> bool:
    """Whether ``container`` may forward connections to ``address``, or knows another meaning."""
    host = address.host.lower()
    given = container.extra_hosts.get(host, "")
    is_usual = is_gateway(host) and is_gateway(given)
    return (
        bool(container.ports_behind(address.port))
        or any(isinstance(port, HiddenPort) for port in container.published)
        or container.on_host_network
        or bool(_FORWARDER.search(container.image))
        or host in container.links
        or bool(given and not is_usual)
    )

"""Part of KL016: a broker that uses ZooKeeper reaches itself at its advertised address.

The controller, which is one of the brokers, sends the leaders of all partitions to every broker,
with itself, at the addresses of the inter-broker listener. A lone broker that does not get them
answers clients without any broker (measured with Kafka 3.9.2). KRaft has no such connection.

Source: `ControllerChannelManager.addNewBroker` in `core/src/main/scala/kafka/controller`.
"""

from collections.abc import Iterator
from dataclasses import replace

from earshot.rules.rule import Finding, Rule
from earshot.topology.broker import Broker, Endpoint
from earshot.topology.container import is_loopback
from earshot.topology.model import Deployment
from earshot.topology.walk import failing_hop_to
from earshot.topology.ways import Failure


def check(deployment: Deployment, rule: Rule) -> Iterator[Finding]:
    """A finding for each lone broker that does not reach itself; others are checked in pairs."""
    for broker in deployment.brokers:
        endpoint = broker.named(broker.inter_broker)
        if endpoint is not None and (problem := problem_of(deployment, broker, endpoint)):
            finding = rule.finding(
                f"advertises {endpoint.advertised}, where it does not reach itself ({problem}): "
                "with ZooKeeper it then gets no leaders, and clients get no broker",
                "an inter-broker listener at whose advertised address the broker reaches itself",
                listener=endpoint.name,
                container=broker.service,
                remedy=_remedy(deployment, broker, endpoint),
                inputs=("advertised.listeners",),
            )
            yield replace(finding, is_consequence=True)


def problem_of(deployment: Deployment, broker: Broker, endpoint: Endpoint) -> str:
    """The reason why the lone ``broker`` certainly does not reach itself at ``endpoint``, which is
    the inter-broker one; or empty."""
    address = endpoint.advertised
    if not broker.has_zookeeper or len([*deployment.members(broker)]) > 1:
        return ""
    if address is None or not broker.is_image_known or is_loopback(endpoint.bind.host):
        return ""
    trace = deployment.trace(broker.service, address)
    if is_loopback(address.host):
        is_certain = len(deployment.names.sharing(deployment.names.owner(broker.service))) < 2
    else:
        has_own_network = not (broker.container.on_host_network or trace.doubt)
        joined = broker.container.networks  # other projects may join those with a fixed name
        has_own_network &= not any(network.is_named or network.is_routed for network in joined)
        is_certain = trace.end is Failure.NOWHERE and has_own_network
        is_certain = is_certain and deployment.is_certain(trace)
    hop = failing_hop_to(deployment, broker.service, address, broker) if is_certain else None
    return hop.because if hop is not None else ""


def _remedy(deployment: Deployment, broker: Broker, endpoint: Endpoint) -> str:
    port = endpoint.bind.port
    host = deployment.host_of(broker, port) or broker.service
    if endpoint.advertised is not None and is_loopback(endpoint.advertised.host):
        return (
            f"listen on port {endpoint.advertised.port} and publish it, or give brokers a "
            f"listener of their own that advertises {host}"
        )
    return f"advertise {endpoint.name}://{host}:{port}"

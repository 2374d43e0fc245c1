"""The pods and Services that Strimzi makes from a `Kafka` resource.

Sources: `KafkaResources` and `ListenersUtils` of strimzi/strimzi-kafka-operator (names of Services,
which listeners each has), and its documentation on generic listeners. The brokers' own names below
`NAME-kafka-brokers` depend on node pools, and are unknown.
"""

from collections.abc import Iterator, Sequence

from earshot.facts.strimzi import StrimziKafka, StrimziListener
from earshot.listeners.address import Address
from earshot.listeners.placeholders import is_known
from earshot.listeners.terms import Protocol
from earshot.topology.broker import Broker, Endpoint
from earshot.topology.cluster import ClusterService, Pod, ServicePort
from earshot.topology.container import Container

REPLICATION = 9091
"""The port of the listener between brokers, which needs a certificate of the cluster."""
_INTERNAL = "internal"


def pods_of(kafkas: Sequence[StrimziKafka]) -> dict[str, Pod]:
    """The pods of the brokers of ``kafkas``, by the service of their container."""
    return {_service(kafka): _pod(kafka) for kafka in kafkas if _is_known(kafka)}


def brokers_of(kafkas: Sequence[StrimziKafka]) -> Iterator[Broker]:
    """One broker for all those of each resource, whose advertised addresses are unknown."""
    for kafka in kafkas:
        if not _is_known(kafka):
            continue
        endpoints = tuple(
            Endpoint(listener.name, Address("", listener.port), None, False, _protocol(listener))
            for listener in kafka.listeners
            if listener.name and listener.port
        )
        name = _service(kafka)
        own = Endpoint("REPLICATION", Address("", REPLICATION), None, True, Protocol.SSL)
        yield Broker(name, Container(name), None, (*endpoints, own), cluster=name, is_kafka=False)


def services_of(kafkas: Sequence[StrimziKafka]) -> Iterator[ClusterService]:
    """The Services with the bootstrap addresses of ``kafkas``."""
    for kafka in kafkas:
        if not _is_known(kafka):
            continue
        inner = [REPLICATION]
        for listener in kafka.listeners:
            if listener.port and listener.type == _INTERNAL:
                inner.append(listener.port)
            elif listener.port and listener.name:
                yield _bootstrap(kafka, f"{listener.name}-bootstrap", [listener.port])
        yield _bootstrap(kafka, "bootstrap", inner)


def _bootstrap(kafka: StrimziKafka, end: str, ports: Sequence[int]) -> ClusterService:
    pod = _pod(kafka)
    service_ports = tuple(ServicePort(port, port) for port in ports)
    name = f"{pod.workload}-{end}".lower()
    return ClusterService(name, kafka.namespace, service_ports, pod.labels)


def _is_known(kafka: StrimziKafka) -> bool:
    """Whether its name and all its listeners are known and accepted."""
    return bool(kafka.name and is_known(kafka.name) and not kafka.open and not kafka.refusal)


def _service(kafka: StrimziKafka) -> str:
    return f"Kafka {kafka.name}"


def _pod(kafka: StrimziKafka) -> Pod:
    name = kafka.name.partition("#")[0]  # of a second resource: its namespace is another
    labels = {"strimzi.io/cluster": name, "strimzi.io/name": f"{name}-kafka"}
    return Pod(f"{name}-kafka", kafka.namespace, labels, (_service(kafka),), is_one=False)


def _protocol(listener: StrimziListener) -> Protocol | None:
    """None if its TLS or authentication is unknown, or `custom`."""
    if listener.tls is None or listener.authentication in (None, "custom"):
        return None
    name = "SSL" if listener.tls else "PLAINTEXT"
    has_sasl = listener.authentication not in ("", "tls")
    return Protocol(f"SASL_{name}" if has_sasl else name)

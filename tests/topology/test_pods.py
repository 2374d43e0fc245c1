"""Traces of addresses from pods and from outside the cluster."""

from dataclasses import replace

import pytest

from earshot.listeners.address import Address, parse_address
from earshot.topology.broker import Broker, Endpoint
from earshot.topology.cluster import ClusterService, Pod, ReadinessCheck, ServicePort
from earshot.topology.container import Container
from earshot.topology.names import OUTSIDE
from earshot.topology.pods import NODE, PodDeployment
from earshot.topology.walk import failing
from earshot.topology.ways import Answer, HopKind, Trace

LABELS = {"app": "kafka"}
KAFKA = Pod(
    "kafka", "n", LABELS, ("kafka/broker",), hostnames=("kafka-0",), subdomain="pods",
    ports={"outer": 9094}, node_ports={31000: 9092},
)  # fmt: skip
SERVICES = (
    ClusterService("pods", "n", (ServicePort(9092, 9092),), LABELS, is_headless=True),
    ClusterService("outer", "n", (ServicePort(9094, "outer", 30094),), LABELS),
    ClusterService("wrong", "n", (ServicePort(9092, 9099),), LABELS),
    ClusterService("named", "n", (ServicePort(9092, "other"),), LABELS),
    ClusterService("none", "n", (ServicePort(9092, 9092),), {"app": "other"}),
    ClusterService("alias", "n", (), external_name="kafka.example.com"),
    ClusterService("onward", "n", (), external_name="outer.n.svc.cluster.local"),
    ClusterService("circle", "n", (), external_name="circle.n.svc.cluster.local"),
    ClusterService("near", "n", (ServicePort(9094, 9094),), LABELS, is_local_inside=True),
    ClusterService("at", "n", (ServicePort(9094, 9094, 30099),), LABELS, is_local_outside=True),
    ClusterService("open", "n", None, LABELS),
)


def pod_deployment(
    *, is_one_replica: bool = True, balanced: bool = False, sidecar: bool = False
) -> PodDeployment:
    endpoints = (
        Endpoint("INNER", Address("", 9092), Address("kafka-0.pods", 9092)),
        Endpoint("OUTER", Address("0.0.0.0", 9094), None),
        Endpoint("LOCAL", Address("localhost", 9095), None),
        Endpoint("OWN", Address("10.0.0.1", 9096), None),
    )
    names = ("kafka/broker", *(["kafka/sidecar"] if sidecar else []))
    kafka = replace(KAFKA, containers=names, is_one=is_one_replica)
    app = Pod("app", "n", {}, ("app/it",))
    other_namespace_pod = Pod("elsewhere", "m", {}, ("elsewhere/it",))
    own_network_pod = Pod("own", "n", {}, ("own/it",), asks_cluster=False)
    containers = {name: Container(name) for name in (*names, "elsewhere/it", "own/it")}
    containers["app/it"] = Container("app/it", extra_hosts={"set": "10.0.0.9", "self": "127.0.0.1"})
    broker = Broker("kafka/broker", containers["kafka/broker"], 1, endpoints)
    pods = {
        name: pod
        for pod in (kafka, app, other_namespace_pod, own_network_pod)
        for name in pod.containers
    }
    services = tuple(replace(service, is_balanced=balanced) for service in SERVICES)
    return PodDeployment(containers, (broker,), pods=pods, services=services)


def trace_to(place: str, address: str, model: PodDeployment | None = None) -> Trace:
    return (model or pod_deployment()).trace(place, Address(*parse_address(address)))


def outcome(trace: Trace) -> tuple[Answer, HopKind]:
    """The answer of a trace, and the stage of the hop that decides it."""
    hop = failing(trace.hops) or next(
        (hop for hop in trace.hops if hop.answer is Answer.UNKNOWN), trace.hops[-1]
    )
    return hop.answer, hop.kind


YES = (Answer.YES, HopKind.SOCKET)


@pytest.mark.parametrize(
    ("place", "address", "expected"),
    [
        ("app/it", "pods:9092", YES),
        ("app/it", "pods:9094", YES),  # ports of a headless Service filter nothing
        ("app/it", "pods.n:9092", YES),
        ("elsewhere/it", "pods.n.svc.cluster.local:9092", YES),
        ("elsewhere/it", "pods:9092", (Answer.NO, HopKind.RESOLVE)),
        ("app/it", "kafka-0.pods:9092", YES),
        ("elsewhere/it", "kafka-0.pods.n.svc:9092", YES),
        ("elsewhere/it", "kafka-0:9092", (Answer.NO, HopKind.RESOLVE)),
        ("app/it", "kafka-1.pods:9092", (Answer.UNKNOWN, HopKind.RESOLVE)),
        ("elsewhere/it", "kafka-0.pods:9092", (Answer.NO, HopKind.RESOLVE)),
        ("app/it", "kafka-0.other:9092", (Answer.NO, HopKind.RESOLVE)),
        ("elsewhere/it", "kafka-0.other.n.svc:9092", (Answer.NO, HopKind.RESOLVE)),
        ("app/it", "kafka-0.other.m.svc:9092", (Answer.UNKNOWN, HopKind.RESOLVE)),
        ("app/it", "kafka-0.example.com:9092", (Answer.UNKNOWN, HopKind.RESOLVE)),
        ("app/it", "kafka-0.svc-1.n:9092", (Answer.UNKNOWN, HopKind.RESOLVE)),
        ("app/it", "outer:9094", YES),
        ("app/it", "outer:9092", (Answer.NO, HopKind.WAY)),
        ("app/it", "wrong:9092", (Answer.NO, HopKind.SOCKET)),
        ("app/it", "named:9092", (Answer.UNKNOWN, HopKind.WAY)),
        ("app/it", "none:9092", (Answer.UNKNOWN, HopKind.WAY)),
        ("app/it", "alias:9092", (Answer.UNKNOWN, HopKind.WAY)),
        ("app/it", "onward:9094", YES),
        ("app/it", "onward:9092", (Answer.NO, HopKind.WAY)),
        ("app/it", "circle:9092", (Answer.UNKNOWN, HopKind.WAY)),
        ("app/it", "near:9094", (Answer.UNKNOWN, HopKind.WAY)),
        ("app/it", "at:9094", YES),
        ("app/it", "pods.n.svc:9092", YES),
        ("app/it", "pods.n.cluster.local:9092", (Answer.UNKNOWN, HopKind.RESOLVE)),
        ("app/it", "open:9092", (Answer.UNKNOWN, HopKind.WAY)),
        ("app/it", "pods:9095", (Answer.NO, HopKind.SOCKET)),
        ("app/it", "pods:9096", (Answer.UNKNOWN, HopKind.SOCKET)),
        ("app/it", "kafka:9092", (Answer.NO, HopKind.RESOLVE)),
        ("app/it", "kafka-0:9092", (Answer.NO, HopKind.RESOLVE)),
        ("app/it", "nothing:9092", (Answer.UNKNOWN, HopKind.RESOLVE)),
        ("app/it", "kafka.example.com:9092", (Answer.UNKNOWN, HopKind.RESOLVE)),
        ("app/it", "10.0.0.1:9092", (Answer.UNKNOWN, HopKind.RESOLVE)),
        ("app/it", "set:9092", (Answer.UNKNOWN, HopKind.RESOLVE)),
        ("app/it", "localhost:9092", (Answer.NO, HopKind.SOCKET)),
        ("app/it", "self:9092", (Answer.NO, HopKind.SOCKET)),
        ("own/it", "pods:9092", (Answer.UNKNOWN, HopKind.RESOLVE)),
        ("kafka/broker", "localhost:9095", YES),
        ("kafka/broker", "kafka-0:9092", YES),
        ("kafka/broker", "kafka-0:9099", (Answer.NO, HopKind.SOCKET)),
        (OUTSIDE, "10.1.1.1:30094", (Answer.UNKNOWN, HopKind.RESOLVE)),
        (OUTSIDE, "10.1.1.1:31000", (Answer.UNKNOWN, HopKind.RESOLVE)),
        (OUTSIDE, "10.1.1.1:9094", (Answer.NO, HopKind.WAY)),
        (OUTSIDE, f"{NODE}:30094", YES),
        (OUTSIDE, f"{NODE}:30099", (Answer.UNKNOWN, HopKind.WAY)),
        (OUTSIDE, f"{NODE}:31000", (Answer.UNKNOWN, HopKind.WAY)),  # of the pod's node alone
        (OUTSIDE, "kafka-0.pods:9092", (Answer.NO, HopKind.RESOLVE)),
        (OUTSIDE, "outer:30094", (Answer.NO, HopKind.RESOLVE)),
        (OUTSIDE, "localhost:30094", (Answer.UNKNOWN, HopKind.RESOLVE)),  # kind, Docker Desktop
        (OUTSIDE, "localhost:9092", (Answer.NO, HopKind.RESOLVE)),
        (OUTSIDE, "node.example.com:30094", (Answer.UNKNOWN, HopKind.RESOLVE)),
    ],
)
def test_where_an_address_leads(place: str, address: str, expected: tuple[Answer, HopKind]) -> None:
    assert outcome(trace_to(place, address)) == expected


def test_which_replica_a_service_chooses_is_not_known() -> None:
    model = pod_deployment(is_one_replica=False)
    assert outcome(trace_to("app/it", "outer:9094", model)) == (Answer.UNKNOWN, HopKind.WAY)
    assert outcome(trace_to("kafka/broker", "localhost:9092", model)) == YES


@pytest.mark.parametrize(
    ("bound", "place", "address", "expected"),
    [
        ("kafka-0", "app/it", "pods:9094", YES),
        ("KAFKA-0", "app/it", "outer:9094", YES),
        ("kafka-0", OUTSIDE, f"{NODE}:30094", YES),
        ("kafka-0", "kafka/broker", "kafka-0:9094", YES),
        ("kafka-0.pods.n.svc.cluster.local", "app/it", "pods:9094", YES),
        ("kafka-0", "kafka/broker", "localhost:9094", (Answer.NO, HopKind.SOCKET)),
        # a name that DNS alone has, of a Service or of another pod
        ("kafka-0.pods", "app/it", "pods:9094", (Answer.UNKNOWN, HopKind.SOCKET)),
        ("kafka-1", "app/it", "pods:9094", (Answer.UNKNOWN, HopKind.SOCKET)),
        ("outer", "app/it", "outer:9094", (Answer.UNKNOWN, HopKind.SOCKET)),
    ],
)
def test_a_listener_on_the_pods_own_name_is_at_the_pods_address(
    bound: str, place: str, address: str, expected: tuple[Answer, HopKind]
) -> None:
    assert outcome(trace_to(place, address, bound_to(bound))) == expected


@pytest.mark.parametrize("changes", [{"is_one": False}, {"on_host": True}])
def test_a_name_of_replicas_or_of_a_node_is_not_known_as_the_pods_address(
    changes: dict[str, bool],
) -> None:
    model = bound_to("kafka-0", **changes)
    assert outcome(trace_to("app/it", "pods:9094", model))[0] is Answer.UNKNOWN


def bound_to(host: str, **changes: object) -> PodDeployment:
    """The broker's pod with the listener OUTER bound to ``host``."""
    model = deployment_with(**changes)
    (broker,) = model.brokers
    outer = Endpoint("OUTER", Address(host, 9094), None)
    return replace(model, brokers=(replace(broker, endpoints=(outer,)),))


def test_a_replica_knows_its_own_name_and_not_that_of_another() -> None:
    model = pod_deployment(is_one_replica=False)
    assert outcome(trace_to("kafka/broker", "kafka-0:9092", model)) == (
        Answer.UNKNOWN,
        HopKind.RESOLVE,
    )
    assert outcome(trace_to("app/it", "kafka-0:9092", model)) == (Answer.NO, HopKind.RESOLVE)


def deployment_with(**changes: object) -> PodDeployment:
    """Like `pod_deployment`, with ``changes`` of the broker's pod."""
    model = pod_deployment()
    pods = {
        name: replace(pod, **changes) if pod.workload == "kafka" else pod  # type: ignore[arg-type]
        for name, pod in model.pods.items()
    }
    return replace(model, pods=pods)


def test_a_pod_on_its_nodes_network_is_at_the_nodes_address() -> None:
    model = deployment_with(on_host=True, node_ports={})
    at_node = outcome(trace_to(OUTSIDE, f"{NODE}:9094", model))
    assert at_node == (Answer.UNKNOWN, HopKind.WAY)  # which node it is
    assert outcome(trace_to("app/it", "pods:9092", model)) == YES
    # other processes of the node are not in the file
    assert outcome(trace_to("kafka/broker", "localhost:9099", model)) == (
        Answer.UNKNOWN,
        HopKind.SOCKET,
    )
    assert outcome(trace_to("app/it", "wrong:9092", model)) == (Answer.UNKNOWN, HopKind.SOCKET)
    # its hosts file is the node's
    assert outcome(trace_to("kafka/broker", "kafka-0:9092", model)) == (Answer.NO, HopKind.RESOLVE)
    assert "port 9092 of the nodes" not in [client.setting for client in model.node_port_clients()]


def test_a_probe_that_no_listener_answers_makes_readiness_unknown() -> None:
    model = deployment_with(checks=(ReadinessCheck(8080, is_kafka=False),))
    assert outcome(trace_to("app/it", "outer:9094", model)) == (Answer.UNKNOWN, HopKind.WAY)
    for host in ("pods:9094", "kafka-0.pods:9094"):  # its names have no address before
        assert outcome(trace_to("app/it", host, model)) == (Answer.UNKNOWN, HopKind.RESOLVE)
    assert outcome(trace_to("app/it", "wrong:9092", model)) == (Answer.NO, HopKind.SOCKET)
    services_with_unready = tuple(replace(service, has_unready=True) for service in SERVICES)
    assert (
        outcome(trace_to("app/it", "outer:9094", replace(model, services=services_with_unready)))
        == YES
    )
    model_with_answer = deployment_with(checks=(ReadinessCheck(9094, is_kafka=False),))
    assert outcome(trace_to("app/it", "outer:9094", model_with_answer)) == YES


@pytest.mark.parametrize(
    ("ordinal", "expected"), [("0", YES), ("1", (Answer.UNKNOWN, HopKind.WAY))]
)
def test_a_service_of_one_replica(ordinal: str, expected: tuple[Answer, HopKind]) -> None:
    name = "statefulset.kubernetes.io/pod-name"
    replica_service = ClusterService(
        "one", "n", (ServicePort(9094, 9094),), {name: f"kafka-{ordinal}"}
    )
    model = deployment_with(replica_labels={"kafka-0": frozenset({(name, "kafka-0")})})
    model = replace(model, services=(*SERVICES, replica_service))
    assert outcome(trace_to("app/it", "one:9094", model)) == expected


def test_a_service_of_one_replica_gives_no_name_to_another() -> None:
    key = "statefulset.kubernetes.io/pod-name"
    labels = {name: frozenset({(key, name)}) for name in ("kafka-0", "kafka-1")}
    model = deployment_with(
        replica_labels=labels, hostnames=("kafka-0", "kafka-1"), subdomain="one"
    )
    replica_service = ClusterService("one", "n", (), {key: "kafka-0"}, is_headless=True)
    model = replace(model, services=(replica_service,))
    assert outcome(trace_to("app/it", "kafka-0.one:9092", model)) == YES
    assert outcome(trace_to("app/it", "kafka-1.one:9092", model)) == (Answer.NO, HopKind.RESOLVE)
    beyond = trace_to("app/it", "kafka-2.one:9092", model)
    assert outcome(beyond) == (Answer.NO, HopKind.RESOLVE)
    assert beyond.doubt == "whether something else scales kafka to more replicas"
    assert outcome(trace_to("app/it", "other-0.one:9092", model))[0] is Answer.UNKNOWN


def test_another_container_of_the_pod_may_listen() -> None:
    model = pod_deployment(sidecar=True)
    assert outcome(trace_to("app/it", "wrong:9092", model)) == (Answer.UNKNOWN, HopKind.SOCKET)
    assert outcome(trace_to("kafka/sidecar", "localhost:9092", model)) == YES


def test_a_load_balancer_has_addresses_of_its_own() -> None:
    model = pod_deployment(balanced=True)
    assert outcome(trace_to(OUTSIDE, "10.1.1.1:9094", model)) == (Answer.UNKNOWN, HopKind.RESOLVE)


def test_clients_beyond_the_cluster_come_in_by_ports_of_the_nodes() -> None:
    assert [client.setting for client in pod_deployment().node_port_clients()] == [
        "port 30094 of the nodes",
        "port 30099 of the nodes",
        "port 31000 of the nodes",
    ]
    assert not list(pod_deployment(balanced=True).node_port_clients())


def test_of_a_file_without_brokers_nothing_is_known_of_localhost() -> None:
    model = replace(pod_deployment(), brokers=())
    assert outcome(trace_to("app/it", "localhost:9092", model)) == (Answer.UNKNOWN, HopKind.RESOLVE)


def test_the_name_of_a_replica_may_be_a_service_to_the_others() -> None:
    replica_service = ClusterService("kafka-0", "n", (ServicePort(9092, 9092),), LABELS)
    model = replace(pod_deployment(is_one_replica=False), services=(*SERVICES, replica_service))
    assert outcome(trace_to("kafka/broker", "kafka-0:9092", model)) == (
        Answer.UNKNOWN,
        HopKind.RESOLVE,
    )
    assert outcome(trace_to("app/it", "kafka-0:9092", model)) == (Answer.UNKNOWN, HopKind.WAY)

"""At the gate, a plan gets the errors that a Compose file of its containers gets.

A plan has more facts than a file: the scopes of its listeners. A finding of the gate alone has one
of the reasons in `_is_decided`.
"""

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from earshot.checks.deployment import mistakes
from earshot.checks.plan import check_plan
from earshot.listeners.model import ClusterPlan, Listener, Node
from earshot.listeners.terms import Role, Scope
from earshot.names.policy import read_policy
from earshot.rules.rule import Finding
from earshot.sources.docker_container import read_container
from tests.checks.test_same_findings import Box, compose, docker_inputs

NAMES = ("kafka1", "kafka2")
REFUSALS = {"KL002", "KL014"}


@dataclass(frozen=True)
class Row:
    """A broker: what it advertises inside and to its host, where it binds, what it publishes."""

    name: str
    inner: str
    inner_port: int
    bound: str
    host: str
    host_port: int
    published: int


@st.composite
def rows(draw: st.DrawFn) -> list[Row]:
    """One or two brokers, of which the first may be wrong in every way."""
    ports = st.sampled_from([9102, 9092, 9999])
    first = Row(
        "kafka1",
        draw(st.sampled_from(["kafka1", "kafka2", "localhost"])),
        draw(st.sampled_from([19092, 9092])),
        draw(st.sampled_from(["0.0.0.0", "localhost", "kafka1"])),
        draw(st.sampled_from(["localhost", "kafka1", "203.0.113.9"])),
        draw(ports),
        draw(st.one_of(ports, st.just(0))),
    )
    second = Row("kafka2", "kafka2", 19092, "0.0.0.0", "localhost", 9112, 9112)
    return [first, second] if draw(st.booleans()) or first.inner == "kafka2" else [first]


def boxes(listed: list[Row]) -> list[Box]:
    voters = ",".join(f"{i}@{row.name}:9093" for i, row in enumerate(listed, 1))
    return [
        Box(
            row.name,
            "apache/kafka:4.1.1",
            {
                "CLUSTER_ID": "MkU3OEVBNTcwNTJENDM2Qk",
                "KAFKA_NODE_ID": str(i),
                "KAFKA_PROCESS_ROLES": "broker,controller",
                "KAFKA_LISTENERS": f"INTERNAL://:19092,HOST://{row.bound}:9092,CONTROLLER://:9093",
                "KAFKA_ADVERTISED_LISTENERS": f"INTERNAL://{row.inner}:{row.inner_port},"
                f"HOST://{row.host}:{row.host_port}",
                "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "INTERNAL:PLAINTEXT,HOST:PLAINTEXT,"
                "CONTROLLER:PLAINTEXT",
                "KAFKA_INTER_BROKER_LISTENER_NAME": "INTERNAL",
                "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
                "KAFKA_CONTROLLER_QUORUM_VOTERS": voters,
            },
            ports=((9092, row.published),) if row.published else (),
        )
        for i, row in enumerate(listed, 1)
    ]


def plan(listed: list[Row]) -> ClusterPlan:
    return ClusterPlan(
        kafka_version="4.1.1",
        inter_broker="INTERNAL",
        controller="CONTROLLER",
        replication_factor=1,
        min_insync_replicas=1,
        nodes=tuple(
            Node(
                id=i,
                roles=(Role.BROKER, Role.CONTROLLER),
                listeners=(
                    _listener("INTERNAL", Scope.INTERNAL, 19092, row.inner, row.inner_port),
                    _listener("HOST", Scope.HOST, 9092, row.host, row.host_port, row.bound),
                    _listener("CONTROLLER", Scope.CONTROLLER, 9093, row.name, 9093),
                ),
            )
            for i, row in enumerate(listed, 1)
        ),
    )


def _listener(
    name: str, scope: Scope, bind_port: int, host: str, port: int, bind_host: str = "0.0.0.0"
) -> Listener:
    return Listener(
        name=name, scopes=(scope,), bind_port=bind_port, bind_host=bind_host, host=host, port=port
    )


def by_gate(listed: list[Row]) -> list[Finding]:
    """The errors about a listener; no name is looked up."""
    hosts = {host for row in listed for host in (row.inner, row.host)}
    checked = check_plan(
        plan(listed),
        "docker",
        read_policy({"waived": dict.fromkeys(hosts, "no lookup in this test")}),
        containers={
            i: read_container(docker_inputs(box)) for i, box in enumerate(boxes(listed), 1)
        },
        addresses=dict.fromkeys(range(1, len(listed) + 1), ()),
    )
    return [item for item in checked.findings if item.is_certain_error and item.node is not None]


def by_compose(listed: list[Row]) -> list[Finding]:
    """The errors of the same containers with a client of the inner listener."""
    servers = ",".join(f"{row.name}:19092" for row in listed)
    app = Box("app", "example/app:1", {"KAFKA_BOOTSTRAP_SERVERS": servers})
    return [item for item in mistakes(compose([*boxes(listed), app])) if item.is_certain_error]


def _is_decided(item: Finding, row: Row) -> bool:
    """Whether a finding of the gate alone depends on facts that only a plan has."""
    if item.rule == "KL004":
        return True  # each of two is named, and two listeners of one broker may share no address
    unpublished = not row.published  # clients of the scope `host` are there without a port, too
    # another listener of the broker takes the client, and that one may advertise something else
    crossed = item.listener == "INTERNAL" and row.inner_port == 9092
    # a router before the machine may translate ports: of a file that is a warning
    translated = row.host == "203.0.113.9" and row.host_port != row.published
    from_host = item.listener == "HOST" and (unpublished or translated)
    return item.rule == "KL006" and (from_host or crossed)


@settings(max_examples=60, deadline=None)
@given(rows())
def test_the_gate_refuses_what_a_compose_file_gets_an_error_for(listed: list[Row]) -> None:
    by_file = by_compose(listed)
    if any(item.rule in REFUSALS for item in by_file):
        return
    gated = by_gate(listed)
    in_file = {(item.container, item.listener) for item in by_file}
    at_gate = {(NAMES[(item.node or 0) - 1], item.listener) for item in gated}
    assert in_file <= at_gate
    for item in gated:
        row = listed[(item.node or 0) - 1]
        assert (row.name, item.listener) in in_file or _is_decided(item, row), item.line

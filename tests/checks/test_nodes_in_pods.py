"""KL016 on manifests: replicas, their ids and addresses, voters, cluster ids, readiness."""

from typing import Any

import pytest

from earshot.checks.kubernetes import mistakes
from earshot.sources.kubernetes import read_manifest

VOTERS = "0@kafka-0.kafka:9093,1@kafka-1.kafka:9093,2@kafka-2.kafka:9093"
ORDINAL = "export KAFKA_NODE_ID=${HOSTNAME##*-} && exec /etc/confluent/docker/run"
OWN_NAME = "PLAINTEXT://$(POD).kafka:9092"
Env = dict[str, Any]


def stateful(
    name: str = "kafka", *, env: Env | None = None, script: str = ORDINAL, **spec: Any
) -> dict[str, Any]:
    """Three combined nodes with ids from their ordinals; ``env`` changes variables."""
    values: Env = {
        "POD": {"fieldRef": {"fieldPath": "metadata.name"}},
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": VOTERS,
        "KAFKA_LISTENERS": "PLAINTEXT://:9092,CONTROLLER://:9093",
        "KAFKA_ADVERTISED_LISTENERS": OWN_NAME,
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "CLUSTER_ID": "5L6g3nShT-eMCtK--X86sw",
        **(env or {}),
    }
    container: dict[str, Any] = {
        "name": "broker",
        "image": "confluentinc/cp-kafka:7.6.0",
        "env": [
            {"name": key, "value": value}
            if isinstance(value, str)
            else {"name": key, "valueFrom": value}
            for key, value in values.items()
            if value is not None
        ],
    }
    if script:
        container["command"] = ["sh", "-c", script]
    if probe := spec.pop("readiness", None):
        container["readinessProbe"] = probe
    kind = spec.pop("kind", "StatefulSet")
    outer = {"replicas": "3", "serviceName": "kafka", **spec}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {**outer, "template": template},
    }


def service(name: str = "kafka", app: str = "kafka", **spec: Any) -> dict[str, Any]:
    ports = [{"port": "9092"}, {"port": "9093"}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": app}, "ports": ports, "clusterIP": "None", **spec},
    }


def found(*documents: dict[str, Any]) -> list[tuple[str, str, str | None, tuple[str, ...]]]:
    return [
        (finding.rule, finding.severity, finding.listener, finding.inputs)
        for finding in mistakes(read_manifest(documents))
    ]


def of(rule: str, inputs: str, listener: str | None = None, severity: str = "error") -> Any:
    return rule, severity, listener, tuple(inputs.split())


VOTER = of("KL016", "controller.quorum.voters")
IDS = of("KL016", "node.id broker.id")
ADDRESS = of("KL016", "advertised.listeners", "PLAINTEXT")
READY = of("KL016", "readinessProbe startupProbe")
TOOL = {"exec": {"command": ["kafka-topics", "--bootstrap-server", "localhost:9092", "--list"]}}


@pytest.mark.parametrize(("documents", "expected"), [
    ([stateful(), service()], []),
    # every replica has the id of its template
    ([stateful(script="", env={"KAFKA_NODE_ID": "1"}), service()], [IDS]),
    # and pods of a Deployment have no names
    ([stateful(script="", kind="Deployment", env={"KAFKA_NODE_ID": "1"}), service()],
     [IDS, of("KL016", "controller.quorum.voters", severity="warning")]),
    # every replica advertises the address of the Service
    ([stateful(env={"KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka:9092"}), service()],
     [ADDRESS]),
    # ids begin with 0, and voters with 1: replica 0 is no voter, Kafka ends
    ([stateful(env={"KAFKA_CONTROLLER_QUORUM_VOTERS": "1@kafka-0.kafka:9093,"
                    "2@kafka-1.kafka:9093,3@kafka-2.kafka:9093"}), service()],
     [of("KL002", "controller.quorum.voters")]),
    # voters in another order than ordinals
    ([stateful(env={"KAFKA_CONTROLLER_QUORUM_VOTERS": "0@kafka-1.kafka:9093,"
                    "1@kafka-0.kafka:9093,2@kafka-2.kafka:9093"}), service()], [VOTER]),
    # one address for all voters
    ([stateful(env={"KAFKA_CONTROLLER_QUORUM_VOTERS": "0@kafka:9093,1@kafka:9093,2@kafka:9093"}),
      service()], [VOTER]),
    # a port that is not the controller's
    ([stateful(env={"KAFKA_CONTROLLER_QUORUM_VOTERS": VOTERS.replace("9093", "9092")}), service()],
     [VOTER]),
    # a voter that is no replica; of a node in no file, something else may scale the workload
    ([stateful(env={"KAFKA_CONTROLLER_QUORUM_VOTERS": VOTERS.replace("2@kafka-2", "2@kafka-3")}),
      service()], [VOTER]),
    ([stateful(env={"KAFKA_CONTROLLER_QUORUM_VOTERS": f"{VOTERS},3@kafka-3.kafka:9093"}),
      service()], [of("KL016", "controller.quorum.voters", severity="warning")]),
    # the pods have their names by the Service `kafka`, and not by `brokers`
    ([stateful(env={"KAFKA_CONTROLLER_QUORUM_VOTERS": VOTERS.replace(".kafka", ".nodes")}),
      service(), service("nodes")], [VOTER]),
    ([stateful(serviceName=""), service()], [ADDRESS, VOTER]),
    # a Service that the file does not have; the name may be one of other DNS servers
    ([stateful(env={"KAFKA_CONTROLLER_QUORUM_VOTERS": VOTERS.replace(".kafka", ".other")}),
      service()], [of("KL016", "controller.quorum.voters", severity="warning")]),
    # the Service selects other pods
    ([stateful(), service(app="other")], [ADDRESS, VOTER]),
    # the pods' own names mean nothing to other pods; another file may have such Services
    ([stateful(env={"KAFKA_CONTROLLER_QUORUM_VOTERS": VOTERS.replace(".kafka", ""),
                    "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://$(POD):9092"}), service()],
     [of("KL016", "advertised.listeners", "PLAINTEXT", "warning"),
      of("KL016", "controller.quorum.voters", severity="warning")]),
    # two workloads of one cluster with two cluster ids
    ([stateful("one", script="", replicas="1", serviceName="one",
               env={"KAFKA_NODE_ID": "1", "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@one:9093,2@two:9093",
                    "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://one:9092"}),
      stateful("two", script="", replicas="1", serviceName="two",
               env={"KAFKA_NODE_ID": "2", "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@one:9093,2@two:9093",
                    "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://two:9092",
                    "CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw"}), service("one", "one"),
      service("two", "two")], [of("KL016", "CLUSTER_ID KAFKA_KRAFT_CLUSTER_ID KAFKA_CLUSTER_ID")]),
    # readiness waits for a quorum, whose names are those of ready pods
    ([stateful(readiness=TOOL, podManagementPolicy="Parallel"), service()], [READY]),
    # the second pod waits for the first, which waits for a quorum
    ([stateful(readiness=TOOL), service(publishNotReadyAddresses="true")], [READY]),
    *((documents, []) for documents in (
        # ids, addresses and voters that the file does not show
        [stateful(script="export KAFKA_NODE_ID=$(cat /id) && /etc/confluent/docker/run"),
         service()],
        [stateful(script="", env={"KAFKA_NODE_ID": {"secretKeyRef": {"name": "s"}}}), service()],
        [stateful(env={"KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://$(IP):9092"}), service()],
        # Services in another file
        [stateful()],
        # CoreDNS has names by a Service that is not headless, the documentation excludes them
        [stateful(serviceName="nodes",
                  env={"KAFKA_CONTROLLER_QUORUM_VOTERS": VOTERS.replace(".kafka", ".nodes"),
                       "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://$(POD).nodes:9092"}),
         service("nodes", clusterIP="10.0.0.1")],
        # one replica
        [stateful(replicas="1", env={"KAFKA_CONTROLLER_QUORUM_VOTERS": "0@kafka-0.kafka:9093"}),
         service()],
        # more than are read one by one
        [stateful(script="", env={"KAFKA_NODE_ID": "1"}, replicas="${N}"), service()],
        # ready before the quorum: a connection is enough for Kafka 3.6, or a controller answers
        [stateful(readiness={"tcpSocket": {"port": "9093"}}),
         service(publishNotReadyAddresses="true")],
        [stateful(readiness={"tcpSocket": {"port": "9092"}}, podManagementPolicy="Parallel"),
         service()],
        # pods are named before they are ready, and start together
        [stateful(readiness=TOOL, podManagementPolicy="Parallel"),
         service(publishNotReadyAddresses="true")],
    )),
])  # fmt: skip
def test_nodes_find_each_other_or_not(documents: list[dict[str, Any]], expected: list[Any]) -> None:
    assert found(*documents) == expected


RANDOM = "export KAFKA_NODE_ID=${HOSTNAME##*-}\nCLUSTER_ID=$(kafka-storage random-uuid)\n"


@pytest.mark.parametrize(("script", "replicas", "expected"), [
    (f"{RANDOM}kafka-storage format -t $CLUSTER_ID -c /c; /etc/confluent/docker/run", "3",
     [of("KL016", "command")]),
    (f"if [ ! -f /id ]; then {RANDOM}fi\n/etc/confluent/docker/run", "3", []),
    (f"{RANDOM}/etc/confluent/docker/run", "1", []),
])  # fmt: skip
def test_a_cluster_id_of_each_replica(script: str, replicas: str, expected: list[Any]) -> None:
    assert found(stateful(script=script, replicas=replicas), service()) == expected


def test_a_lone_node_finds_itself_by_its_hosts_file_before_it_is_ready() -> None:
    """The kubelet writes the full name alone; `kafka-0.kafka` is DNS's."""

    def lone(voter: str) -> list[Any]:
        node = stateful(
            replicas="1",
            readiness=TOOL,
            env={"KAFKA_CONTROLLER_QUORUM_VOTERS": f"0@{voter}:9093"},
        )
        node["metadata"]["namespace"] = "data"
        named = service()
        named["metadata"]["namespace"] = "data"
        return found(node, named)

    assert lone("kafka-0.kafka.data.svc.cluster.local") == []
    assert lone("kafka-0") == []
    assert lone("localhost") == []
    assert lone("kafka-0.kafka") == [READY]
    assert lone("kafka-0.kafka.data.svc") == [READY]


def test_a_finding_names_replicas_and_stands_at_their_template() -> None:
    manifest = read_manifest([stateful(script="", env={"KAFKA_NODE_ID": "1"}), service()])
    (finding,) = mistakes(manifest)
    assert finding.container == "kafka/broker"
    assert "kafka-0/broker" in finding.observed


@pytest.mark.parametrize(("advertised", "expected"), [
    ("kafka", [of("KL015", "advertised.listeners", "PLAINTEXT")]),
    ("kafka.data", []),
])  # fmt: skip
def test_a_client_in_another_namespace_reaches_replicas_by_their_full_names(
    advertised: str, expected: list[Any]
) -> None:
    documents = [
        stateful(env={"KAFKA_ADVERTISED_LISTENERS": f"PLAINTEXT://$(POD).{advertised}:9092"}),
        service(),
    ]
    env = [{"name": "KAFKA_BOOTSTRAP_SERVERS", "value": "kafka.data:9092"}]
    pod = {"containers": [{"name": "it", "image": "example/app", "env": env}]}
    app: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "app"},
        "spec": pod,
    }
    for document, namespace in ((documents[0], "data"), (documents[1], "data"), (app, "apps")):
        document["metadata"]["namespace"] = namespace
    assert found(*documents, app) == expected

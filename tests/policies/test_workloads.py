"""The pack on workloads of Kubernetes in programs: the check of a file of manifests, at the end."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.policies.calls import UNKNOWN, UNKNOWN_LIST, Pack
from tests.rules.container_examples import KRAFT

STATEFUL_SET = "kubernetes:apps/v1:StatefulSet"
SERVICE = "kubernetes:core/v1:Service"
POD = "kubernetes:core/v1:Pod"


def broker(env: Any, image: str = "confluentinc/cp-kafka:8.0.0", **more: Any) -> dict[str, Any]:
    pod = {"containers": [{"name": "kafka", "image": image, "env": env, **more}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "broker"},
        "spec": {"template": {"metadata": {"labels": {"app": "kafka"}}, "spec": pod}},
    }


def variables(**changed: str) -> list[dict[str, str]]:
    env: Mapping[str, str] = {**KRAFT, **changed}
    return [{"name": name, "value": value} for name, value in env.items() if value]


def service(port: Any = 9092) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kafka"},
        "spec": {"selector": {"app": "kafka"}, "ports": [{"port": port}]},
    }


def client(address: str) -> dict[str, Any]:
    env = [{"name": "KAFKA_BOOTSTRAP_SERVERS", "value": address}]
    pod = {"containers": [{"name": "app", "image": "example/app:1", "env": env}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "app"}, "spec": pod}


def findings(
    pack: Pack, *resources: tuple[str, dict[str, Any]]
) -> dict[str, list[tuple[str, str]]]:
    for type, inputs in resources:
        assert pack.analyze(type, inputs, name=inputs["metadata"]["name"]) == {}
    return pack.analyze_stack([])


def test_a_workload_passes_whose_clients_are_sent_to_it() -> None:
    advertised = KRAFT["KAFKA_ADVERTISED_LISTENERS"]
    for host, policies in (("kafka", set()), ("localhost", {"kl015-stack"})):
        text = advertised.replace("localhost", host)
        workload = broker(variables(KAFKA_ADVERTISED_LISTENERS=text))
        workload["spec"]["template"]["spec"]["enableServiceLinks"] = False
        resources = [(STATEFUL_SET, workload), (SERVICE, service()), (POD, client("kafka:9092"))]
        assert set(findings(Pack(), *resources)) == policies, host


@pytest.mark.parametrize(
    ("host", "is_named"),
    [
        ("kafka.example.com", True),
        ("kafka", False),
        ("broker-0.kafka", False),
        ("broker-0.kafka.default.svc.cluster.local", False),
        ("198.51.100.7", False),
    ],
)
def test_a_full_name_that_is_not_looked_up_is_named(host: str, is_named: bool) -> None:
    text = KRAFT["KAFKA_ADVERTISED_LISTENERS"].replace("localhost", host)
    workload = broker(variables(KAFKA_ADVERTISED_LISTENERS=text))
    workload["spec"]["template"]["spec"]["enableServiceLinks"] = False
    reported = findings(Pack(), (STATEFUL_SET, workload), (SERVICE, service()))
    remark = f"container broker/kafka: KL011: whether {host} resolves is not checked"
    texts = [text for _, text in reported.get("advice-stack", [])]
    assert [text for text in texts if "KL011" in text] == [remark] * is_named


def test_replicas_with_one_id_are_named_at_the_end() -> None:
    several = broker(variables())
    several["spec"]["replicas"] = 3
    reported = findings(Pack(), (STATEFUL_SET, several))
    assert set(reported) == {"kl016-stack"}
    assert "has the node id 1" in reported["kl016-stack"][0][1]


def test_what_kafka_refuses_is_named_with_its_path() -> None:
    pack = Pack()
    reported = findings(pack, (STATEFUL_SET, broker(variables(KAFKA_LISTENERS="A://:0x"))))
    ((policy, ((urn, text),)),) = reported.items()
    assert policy == "kl002-stack" and urn.endswith("StatefulSet::broker")
    assert text.startswith(
        "container broker/kafka, listener A: listeners: listener entry 'A://:0x'"
    )
    assert pack.places == [f"{urn}, spec.template.spec.containers[0].env[3]"]


def test_a_service_called_kafka_stops_confluent_s_image() -> None:
    pack = Pack()
    reported = findings(pack, (STATEFUL_SET, broker(variables())), (SERVICE, service()))
    ((_, text),) = reported["kl014-stack"]
    assert "the Service kafka gives it KAFKA_PORT=tcp://ADDRESS:9092" in text
    assert pack.places[0].endswith("broker, spec.template.spec.containers[0]")


def test_a_client_asks_a_service_for_a_port_that_it_has() -> None:
    reported = findings(Pack(), (SERVICE, service()), (POD, client("kafka:29092")))
    ((urn, text),) = reported["kl015-stack"]
    assert urn.endswith("Pod::app") and "the Service kafka has no port but 9092" in text


@pytest.mark.parametrize(
    "inputs",
    [
        broker(UNKNOWN_LIST),
        broker([*variables(KAFKA_ADVERTISED_LISTENERS=""), UNKNOWN]),
        broker([*variables(CLUSTER_ID=""), {"name": "CLUSTER_ID", "value": UNKNOWN}]),
        broker(variables(CLUSTER_ID=""), envFrom=UNKNOWN_LIST),
        broker(variables(KAFKA_ADVERTISED_LISTENERS=""), command=UNKNOWN_LIST),
        broker(variables(CLUSTER_ID=""), volumeMounts=UNKNOWN_LIST),
        {**broker([]), "spec": UNKNOWN},
    ],
    ids=["variables", "a variable", "a value", "a source", "command", "mounts", "all of it"],
)
def test_unknown_inputs_are_not_wrong(inputs: dict[str, Any]) -> None:
    reported = findings(Pack(), (STATEFUL_SET, inputs))
    reason = "a placeholder could not be read, and may set its listeners"
    for _, text in reported.pop("advice-stack", ()):
        assert text == f"container broker/kafka: {reason}; not checked"
    assert reported == {}
    port = (SERVICE, service(UNKNOWN)), (POD, client("kafka:29092"))
    assert findings(Pack(), *port) == {}


@pytest.mark.parametrize("type", ["kubernetes:helm.sh/v3:Release", "other:apps/v1:StatefulSet"])
def test_resources_of_other_kinds_are_not_checked(type: str) -> None:
    reported = findings(Pack(), (type, broker(variables(KAFKA_LISTENERS="A://:0x"))))
    ((policy, ((_, text),)),) = reported.items()
    assert policy == "advice-stack" and f"the pack does not read {type}" in text


def test_clusters_are_told_apart_by_their_providers() -> None:
    pack = Pack()
    pack.analyze(SERVICE, service(), name="kafka", provider={"host": "one"})
    pack.analyze(POD, client("kafka:29092"), name="app", provider={"host": "two"})
    assert pack.analyze_stack([]) == {}


UNSET = variables(KAFKA_ADVERTISED_LISTENERS="")


@pytest.mark.parametrize(("env", "more", "reason"), [
    ([{"name": "KAFKA_ADVERTISED_LISTENERS", "valueFrom": {"secretKeyRef": {}}}, *UNSET], {},
     "KAFKA_ADVERTISED_LISTENERS is not known: $(KAFKA_ADVERTISED_LISTENERS)"),
    ([{"name": "KAFKA_ADVERTISED_LISTENERS", "value": UNKNOWN}, *UNSET], {},
     "KAFKA_ADVERTISED_LISTENERS is not known: ${not known yet}"),
    (UNSET, {"envFrom": [{"secretRef": {"name": "elsewhere"}}]},
     "envFrom could not be read, and may set its listeners"),
], ids=["a secret", "not known yet", "variables elsewhere"])  # fmt: skip
def test_listeners_that_are_not_known_are_said(
    env: list[dict[str, Any]], more: dict[str, Any], reason: str
) -> None:
    reported = findings(Pack(), (STATEFUL_SET, broker(env, **more)))
    ((policy, ((urn, text),)),) = reported.items()
    assert policy == "advice-stack" and urn.endswith("StatefulSet::broker")
    assert text == f"container broker/kafka: {reason}; not checked"

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earshot.facts.cluster import ClusterFacts
from earshot.facts.strimzi import StrimziBroker, StrimziKafka, StrimziListener
from earshot.rules.kl018_strimzi import RULE
from earshot.sources.strimzi import read_strimzi
from earshot.yaml_reading.document import read_yaml_documents


def read(text: str) -> tuple[StrimziKafka, ...]:
    return read_strimzi(read_yaml_documents(textwrap.dedent(text), "k.yaml", unique=False))


def kafka(
    spec: str, metadata: str = "name: k", version: str = "v1", rest: str = ""
) -> StrimziKafka:
    """The only Kafka of a file, whose `spec.kafka` is ``spec``."""
    head = f"apiVersion: kafka.strimzi.io/{version}, kind: Kafka, metadata: {{{metadata}}}"
    (kafka,) = read(f"---\n{{{head}, spec: {{kafka: {{{spec}}}}}}}\n{rest}")
    return kafka


def one(listener: str) -> StrimziListener:
    return kafka(f"listeners: [{{{listener}}}]").listeners[0]


def test_a_resource() -> None:
    (resource,) = read("""
        apiVersion: v1
        kind: ConfigMap
        ---
        apiVersion: kafka.strimzi.io/v1beta2
        kind: Kafka
        metadata: {name: mine}
        spec:
          kafka:
            replicas: 2
            listeners:
              - {name: plain, port: 9092, type: internal, tls: false}
              - name: outside
                port: 9094
                type: ingress
                tls: true
                authentication: {type: tls}
                configuration:
                  bootstrap: {host: kafka.example.org}
                  hostTemplate: b{nodeId}
                  brokers: [{broker: 0, host: b0, advertisedHost: a, advertisedPort: 443}]
    """)
    place = "spec.kafka.listeners[1]"
    broker = StrimziBroker(0, f"{place}.configuration.brokers[0]", True, "a", 443)
    listeners = (
        StrimziListener("spec.kafka.listeners[0]", "plain", 9092, "internal", False),
        StrimziListener(place, "outside", 9094, "ingress", True, "tls", True, True, (broker,)),
    )
    assert resource == StrimziKafka("mine", listeners, 2, path=(1,))


@pytest.mark.parametrize(
    ("text", "tls"),
    [
        ("tls: true", True),
        ("tls: yes", True),
        ("tls: 'true'", True),
        ("tls: false", False),
        ("tls: No", False),
        ("name: a", False),
        ("tls: '${TLS}'", None),
        ("tls: [true]", None),
    ],
)
def test_tls(text: str, tls: bool | None) -> None:
    assert one(text).tls is tls


def test_variables_are_unknown() -> None:
    listener = one('name: "${A}", port: "${B}", type: [x], configuration: {brokers: "${C}"}')
    assert (listener.name, listener.port, listener.type) == (None, None, None)
    assert listener.brokers is None
    assert one('configuration: "${A}"').brokers is None
    assert one("name: a").brokers == ()


@pytest.mark.parametrize(
    ("metadata", "more", "brokers"),
    [
        ("name: k", "", 3),
        ("name: k, annotations: {strimzi.io/node-pools: disabled}", "", None),
        ("name: k, annotations: {strimzi.io/node-pools: enabled}", "", None),
        ("name: k", "---\n{apiVersion: kafka.strimzi.io/v1beta2, kind: KafkaNodePool}", None),
    ],
)
def test_the_number_of_brokers_without_node_pools(
    metadata: str, more: str, brokers: int | None
) -> None:
    resource = kafka("replicas: 3, listeners: []", metadata, "v1beta2", more)
    assert resource.brokers == brokers


def test_resources_of_one_name_get_numbers_and_other_kinds_are_ignored() -> None:
    assert read("{apiVersion: platform.confluent.io/v1beta1, kind: Kafka}") == ()
    text = "{apiVersion: kafka.strimzi.io/v1, kind: Kafka, metadata: {name: k}}"
    resources = read(f"---\n{text}\n---\n{text}\n---\n{text}")
    assert [resource.name for resource in resources] == ["k", "k#2", "k#3"]
    reasons = {resource.open for resource in resources}
    assert reasons == {"spec.kafka.listeners is not set in this file"}


PLAIN = "{name: plain, port: 9092, type: internal, tls: false}"


@pytest.mark.parametrize(("version", "listeners", "why", "refusal"), [
    ("v1", f"[{PLAIN}]", "", ""),
    ("v1", "[]", "", " is empty"),
    ("v1beta2", "7", "", " is not a list"),
    ("v1", "{plain: {}}", "", " is not a list"),
    ("v1beta1", "{plain: {}}", " is a map, the form before Strimzi 0.20, which is not read", ""),
    ("v1", f"[{PLAIN}, 7]", "", "[1] is not a map"),
    ("v1", "'${LISTENERS}'", " holds a value that is not known", ""),
    ("v1", "['${ONE}']", " holds a value that is not known", ""),
    ("v1", "[{name: plain, port: '${PORT}', type: internal}]", "[0].port is not known", ""),
    ("v1", "[{name: plain}]", "", ""),
])  # fmt: skip
def test_why_listeners_are_not_known(version: str, listeners: str, why: str, refusal: str) -> None:
    resource = kafka(f"listeners: {listeners}", version=version)
    open_reason, problem = (text and f"spec.kafka.listeners{text}" for text in (why, refusal))
    place, reason = resource.refusal or ("", "")
    assert (resource.open, f"{place} {reason}".strip()) == (open_reason, problem)


NAMES = """
name port type tls authentication configuration bootstrap brokers broker host
advertisedHost advertisedPort hostTemplate ingress nodeport true 9092 0 localhost ${A}
"""
WORDS = st.sampled_from(NAMES.split())
LISTENERS = st.recursive(
    WORDS | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=6),
    max_leaves=30,
)


@settings(max_examples=150, deadline=None)
@given(LISTENERS)
def test_no_shape_ends_in_a_trace(listeners: object) -> None:
    resource = {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "Kafka",
        "spec": {"kafka": {"replicas": "2", "listeners": listeners}},
    }
    (kafka,) = read_strimzi([resource])
    list(RULE.findings(ClusterFacts(plan=None, strimzi=(kafka,))))

"""Kafka's settings of a secured cluster."""

import pytest

from earshot.listeners.model import ClusterPlan, Listener, Node, SecurityPlan
from earshot.listeners.properties import read_properties
from earshot.listeners.render import server_properties, settings
from earshot.listeners.secrets import revealed
from earshot.listeners.security import (
    is_computed,
    own_access,
    own_stores,
    token_listener,
    token_options,
)
from earshot.listeners.terms import ClientAuth, Mechanism, Protocol, Role, Scope


def listener(name: str, protocol: Protocol, scope: Scope) -> Listener:
    return Listener(
        name=name, protocol=protocol, scopes=(scope,), bind_port=9092, host="localhost", port=9092
    )


BROKER = Node(
    id=1, roles=(Role.BROKER,),
    listeners=(listener("INTERNAL", Protocol.SSL, Scope.INTERNAL),
               listener("EXTERNAL", Protocol.SASL_SSL, Scope.EXTERNAL)),
)  # fmt: skip
CONTROLLER = Node(
    id=9,
    roles=(Role.CONTROLLER,),
    listeners=(listener("CONTROLLER", Protocol.SSL, Scope.CONTROLLER),),
)
SECURITY = SecurityPlan(folder="/run/security", mechanism=Mechanism.SCRAM_SHA_256)
PLAN = ClusterPlan(
    kafka_version="4.1.1", inter_broker="INTERNAL", controller="CONTROLLER",
    controller_protocol=Protocol.SSL, replication_factor=1, min_insync_replicas=1,
    security=SECURITY, nodes=(BROKER, CONTROLLER),
)  # fmt: skip
COMMON = {
    "ssl.enabled.protocols": "TLSv1.3,TLSv1.2",
    "ssl.cipher.suites": (
        "TLS_AES_256_GCM_SHA384,TLS_AES_128_GCM_SHA256,TLS_CHACHA20_POLY1305_SHA256,"
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,"
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,"
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,"
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"
    ),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:CN=node,OU=nodes",
    "allow.everyone.if.no.acl.found": "false",
}


def test_nodes_are_trusted_by_what_others_call_them() -> None:
    security = SECURITY.model_copy(update={"principals": ("CN=b1,O=E\\, Inc.", "CN=b2")})
    found = settings(PLAN.model_copy(update={"security": security}), BROKER)
    assert found["super.users"] == "User:CN=b1,O=E\\, Inc.;User:CN=b2"
    assert found["ssl.truststore.location"] == "/run/security/trusted.pem"


def test_a_jvm_without_machine_code_for_aes_prefers_another_cipher() -> None:
    security = SECURITY.model_copy(update={"slow_aes": True})
    found = settings(PLAN.model_copy(update={"security": security}), BROKER)["ssl.cipher.suites"]
    assert found.split(",")[:4] == [
        "TLS_CHACHA20_POLY1305_SHA256",
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        "TLS_AES_256_GCM_SHA384",
    ]
    assert sorted(found.split(",")) == sorted(COMMON["ssl.cipher.suites"].split(","))


LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule"


def stores(node: int) -> dict[str, str]:
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": f"/run/security/node-{node}.pem",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "/run/security/ca.pem",
    }


def secured(node: Node) -> dict[str, str]:
    return {key: value for key, value in settings(PLAN, node).items() if is_computed(key)}


def test_a_broker_has_settings_for_each_listener_and_for_the_quorum() -> None:
    external = "listener.name.external."
    assert secured(BROKER) == {
        "listener.name.internal.ssl.client.auth": "required",
        f"{external}ssl.client.auth": "none",
        f"{external}sasl.enabled.mechanisms": "SCRAM-SHA-256",
        f"{external}scram-sha-256.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
        "listener.name.controller.ssl.client.auth": "required",
        **stores(1),
        **COMMON,
    }


EXTERNAL = "listener.name.external."


@pytest.mark.parametrize(("own", "expected"), [
    ({"client_auth": ClientAuth.REQUESTED}, {"ssl.client.auth": "requested"}),
    # earshot logs in by the mechanism of the cluster
    ({"mechanism": Mechanism.SCRAM_SHA_512},
     {"sasl.enabled.mechanisms": "SCRAM-SHA-512,SCRAM-SHA-256",
      "scram-sha-512.sasl.jaas.config": f"{LOGIN} required;"}),
], ids=["certificates of clients", "a mechanism"])  # fmt: skip
def test_a_listener_may_have_settings_of_its_own(
    own: dict[str, object], expected: dict[str, str]
) -> None:
    internal, external = BROKER.listeners
    node = BROKER.model_copy(update={"listeners": (internal, external.model_copy(update=own))})
    changed = {f"{EXTERNAL}{key}": value for key, value in expected.items()}
    assert secured(node) == {**secured(BROKER), **changed}


def test_a_controller_has_settings_for_the_quorum() -> None:
    own = {"listener.name.controller.ssl.client.auth": "required", **stores(9)}
    assert secured(CONTROLLER) == {**own, **COMMON}


BEARER = "listener.name.external.oauthbearer.sasl.jaas.config"
KEYS_OF_TOKENS = "sasl.oauthbearer.jwks.endpoint.url"


def test_extra_turns_tokens_on_beside_passwords() -> None:
    plan = PLAN.model_copy(update={"extra": ((BEARER, "x required;"),)})
    found = settings(plan, BROKER)
    assert found["listener.name.external.sasl.enabled.mechanisms"] == "SCRAM-SHA-256,OAUTHBEARER"
    assert found[BEARER] == "x required;"


@pytest.mark.parametrize(
    ("key", "name"),
    [
        (BEARER, "external"),
        ("listener.name.a.b.sasl.oauthbearer.expected.audience", "a.b"),
        ("listener.name.external.scram-sha-256.sasl.jaas.config", ""),
        ("listener.name.external.sasl.enabled.mechanisms", ""),
        (KEYS_OF_TOKENS, ""),
    ],
)
def test_settings_of_tokens_are_of_one_listener_or_of_all(key: str, name: str) -> None:
    assert token_listener(key) == name
    assert is_computed(key) == (not name and key != KEYS_OF_TOKENS)


def test_a_jvm_may_ask_the_servers_that_settings_name() -> None:
    one = "listener.name.external.sasl.oauthbearer.jwks.endpoint.url"
    values = {KEYS_OF_TOKENS: "https://a/keys", one: "https://b/keys", BEARER: "x required;"}
    assert token_options(values) == (
        "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=https://a/keys,https://b/keys",
    )
    assert token_options({BEARER: "x required;"}) == ()


def test_no_setting_holds_a_secret() -> None:
    assert revealed(settings(PLAN, BROKER)) == []


def test_a_plan_without_security_has_none_of_it() -> None:
    plan = PLAN.model_copy(update={"security": None})
    assert not [key for key in settings(plan, BROKER) if is_computed(key)]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("allow.everyone.if.no.acl.found", True),
        ("connections.max.reauth.ms", True),
        ("ssl.protocol", True),
        ("num.io.threads", False),
    ],
)
def test_what_security_decides_is_not_for_extra(key: str, expected: bool) -> None:
    assert is_computed(key) is expected


def test_a_client_on_a_node_comes_in_by_a_listener_with_tls() -> None:
    values = read_properties(server_properties(PLAN, BROKER)).values
    assert own_stores(values, "INTERNAL") == stores(1)
    assert own_stores(values, "OTHER") == {}


def test_stores_of_the_listener_alone_go_before_common_ones() -> None:
    """Nodes that an earlier release has started have no common ones."""
    values = dict(read_properties(server_properties(PLAN, BROKER)).values)
    common = {key: values.pop(key) for key in stores(1)}
    assert own_stores(values, "INTERNAL") == {} == own_access(values)
    values |= {f"listener.name.internal.{key}": it for key, it in common.items()}
    assert own_stores(values, "INTERNAL") == stores(1)
    values |= dict.fromkeys(common, "/elsewhere")
    assert own_stores(values, "INTERNAL") == stores(1)
    assert own_access(values)["ssl.certificate.location"] == "/run/security/node-1.pem"


def test_a_node_comes_in_by_what_it_was_started_with() -> None:
    values = read_properties(server_properties(PLAN, BROKER)).values
    assert own_access(values) == {
        "security.protocol": "SSL",
        "ssl.ca.location": "/run/security/ca.pem",
        "ssl.certificate.location": "/run/security/node-1.pem",
        "ssl.key.location": "/run/security/node-1.pem",
    }


@pytest.mark.parametrize("lost", ["inter.broker.listener.name", "authorizer.class.name"])
def test_settings_that_security_has_not_made_admit_no_client(lost: str) -> None:
    values = dict(read_properties(server_properties(PLAN, BROKER)).values)
    del values[lost]
    assert own_access(values) == {}


@pytest.mark.parametrize("quorum", [False, True])
def test_whoever_may_come_in_plain_text_may_do_what_it_could_do_before(quorum: bool) -> None:
    old = listener("OLD", Protocol.PLAINTEXT, Scope.HOST)
    if quorum:
        plan = PLAN.model_copy(update={"controller_protocol": Protocol.PLAINTEXT})
    else:
        broker = BROKER.model_copy(update={"listeners": (*BROKER.listeners, old)})
        plan = PLAN.model_copy(update={"nodes": (broker, CONTROLLER)})
    for node in plan.nodes:
        found = settings(plan, node)
        assert found["super.users"] == "User:CN=node,OU=nodes;User:ANONYMOUS"
        assert not [key for key in found if key.startswith("listener.name.old.")]
    open_quorum = "listener.name.controller.ssl.client.auth" in settings(plan, BROKER)
    assert open_quorum is not quorum

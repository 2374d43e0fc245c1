"""`security` of a stack file: what goes with it, and what is refused by name."""

from pathlib import Path
from typing import Any

import pytest

from earshot.certificates.node_pem import Files
from earshot.config.document import read_spec
from earshot.errors import SpecError
from earshot.listeners.security import AUTHORIZER
from earshot.listeners.terms import Mechanism
from earshot.placement.secured import files_of
from tests.config.aws_documents import document, read_aws
from tests.goldens import refusals_are_golden
from tests.raised import raised

MISTAKES = Path(__file__).parent / "mistakes"
"""The texts of refusals, which `EARSHOT_WRITE_GOLDENS=1` writes."""


def listeners(
    inner: dict[str, Any] | None = None, outer: dict[str, Any] | None = None
) -> list[dict[str, Any]]:
    """Two listeners with TLS, and changes of each."""
    internal = {"name": "INTERNAL", "port": 19092, "scopes": "internal", "protocol": "SSL"}
    external = {"name": "EXTERNAL", "port": 9092, "scopes": "host", "protocol": "SASL_SSL"}
    return [{**internal, **(inner or {})}, {**external, **(outer or {})}]


def secured(**changes: Any) -> dict[str, Any]:
    """A secured cluster, with ``changes``."""
    return {
        "placement": "local",
        "listeners": listeners(),
        "controllers": {"protocol": "SSL"},
        "security": {"users": [{"name": "app", "prefixes": ["app-", "app-"]}]},
        **changes,
    }


PRIVATE_CA = (
    "arn:aws:acm-pca:eu-central-1:111122223333:certificate-authority/"
    "12345678-1234-1234-1234-123456789012"
)
HOSTS = [{"name": name, "external": f"{name}.example"} for name in "ab"]
FILES = {"certificate": "certs/{node}.pem", "authority": "certs/ca.pem"}


def refusal(document: dict[str, Any]) -> str:
    error = raised(SpecError, read_spec, document, "x")
    return str(error)


def test_a_secured_cluster_has_defaults() -> None:
    security = read_spec(secured(), "x").security
    assert security is not None
    assert (security.tls.issue, security.tls.days, security.tls.renew_days) == ("stack", 397, 30)
    assert security.mechanism is Mechanism.SCRAM_SHA_512
    assert security.user_names == ("validator", "app")
    assert security.users[0].prefixes == ("app-",)


def test_nodes_may_have_certificates_of_another_authority() -> None:
    security = read_spec(secured(security={"tls": {"from": FILES}}), "x").security
    assert security is not None and security.tls.files is not None
    assert security.tls.files.certificate == "certs/{node}.pem"
    assert security.tls.files.key == security.tls.files.password == ""
    spec = read_aws(security={"tls": {"from": {"certificate": "a", "authority": "b"}}})
    assert spec.security is not None and spec.security.tls.files is not None


@pytest.mark.parametrize("region", ["", "us-gov-west-1", "eusc-de-east-1"])
def test_certificates_may_be_in_aws(region: str) -> None:
    places = {**FILES, "key": "ssm:/kafka/{node}.key", "region": region}
    security = read_spec(secured(security={"tls": {"from": places}}), "x").security
    assert security is not None
    assert files_of(security, Path("/p/.earshot/stacks/s/kafka")) == Files(
        "/p/certs/{node}.pem", "ssm:/kafka/{node}.key", "/p/certs/ca.pem", "", region
    )


def test_without_security_protocols_are_the_users_own() -> None:
    document = secured(extra={"ssl.client.auth": "required"})
    del document["security"]
    assert read_spec(document, "x").security is None


def test_each_mistake_has_one_error() -> None:
    mistakes: list[Any] = [
        {"controllers": {"protocol": "SASL_SSL"}},
        {"placement": "docker", "controllers": {"protocol": "PLAINTEXT"}},
        {"inter_broker": "EXTERNAL"},
        {"extra": {"ssl.client.auth": "none"}},
        {"security": {"users": [{"name": "validator"}]}},
        {"security": {"users": [{"name": "CN=node"}]}},
        {"security": {"users": [{"name": "node-1"}]}},
        {"security": {"users": [{"name": "ca"}]}},
        {"security": {"users": [{"name": "app"}, {"name": "app"}]}},
        {"security": {"users": [{"name": "app", "prefixes": [""]}]}},
        {"security": {"tls": {"authorities": [2, 2]}}},
        {"security": {"password_numbers": {"z": 2, "validator": 2}}},
        {"security": {"users": {"app": "hunter2"}, "password_numbers": {"app": "hunter2"}}},
        {"security": {"users": ["app:hunter2"]}},
        {"security": {"tls": {"days": 30}}},
        {"security": {"tls": {"issue": "stack", "from": FILES}}},
        {"security": {"tls": {"from": {"authority": "ca.pem"}}}},
        {"security": {"tls": {"from": {"private_ca": "arn:aws:acm:x"}}}},
        {"security": {"tls": {"from": {**FILES, "regoin": "x"}}}},
        {"security": {"tls": {"form": FILES}}},
        {"security": {"tls": {"from": {**FILES, "private_ca": PRIVATE_CA}}}},
        {"security": {"tls": {"from": {**FILES, "key": "vault:{node}"}}}},
        {"security": {"tls": {"from": {**FILES, "password": "ssm:/{node}"}}}},
        {"security": {"tls": {"from": {**FILES, "key": "ssm:/k", "region": "Frankfurt"}}}},
        {"security": {"tls": {"from": {**FILES, "region": "eu-central-1"}}}},
        {"security": {"mechanism": "PLAIN"}},
        {"extra": {"listener.name.internal.oauthbearer.sasl.jaas.config": "x required;"}},
        {"security": None, "extra": {"sasl.oauthbearer.jwks.endpoint.url": 'https://a"b'}},
        {"extra": {"sasl.oauthbearer.jwks.endpoint.url": "https://a b"}},
        *({"security": {"mechanism": mechanism}} for mechanism in ("OAUTHBEARER", "GSSAPI")),
        {"listeners": listeners({"client_auth": "none"})},
        {"listeners": listeners({"client_auth": "requested"})},
        {"listeners": listeners(outer={"client_auth": "required"}), "security": None},
        {"listeners": listeners({"mechanism": "SCRAM-SHA-256"})},
        {
            "listeners": listeners({"protocol": "PLAINTEXT"}, {"protocol": "PLAINTEXT"}),
            "controllers": {"protocol": "SASL_PLAINTEXT"},
        },
        {"listeners": listeners()[1:]},
        {
            "placement": "docker",
            "hosts": HOSTS,
            "listeners": listeners(outer={"scopes": "external"}),
        },
        {"placement": "docker", "listeners": listeners({"advertised": {1: "b1.example"}})},
    ]
    refusals_are_golden(mistakes, lambda case: refusal(secured(**case)), MISTAKES / "security.txt")


def test_each_mistake_of_instances_has_one_error() -> None:
    acl = {"authorizer.class.name": AUTHORIZER}
    mistakes: list[Any] = [
        {"security": {}, "client": {"a": "b"}, "validator": {"client": {"a": "b"}}},
        {
            "security": {},
            "secrets": {"node-1.pem": "/p", "own.pem": "/p"},
            "validator": {"secrets": {"validator.properties": "/p"}},
        },
        {"extra": acl},
        {"extra": {**acl, "super.users": "User:admin"}},
    ]
    refusals_are_golden(
        mistakes, lambda case: refusal(document(**case)), MISTAKES / "security_aws.txt"
    )


@pytest.mark.parametrize("external", ["none", "requested", "required", None])
def test_a_listener_may_ask_clients_with_passwords_for_certificates(external: str | None) -> None:
    auth = listeners({"client_auth": "required"}, {"client_auth": external})
    spec = read_spec(secured(listeners=auth), "x")
    assert spec.asks_for_certificates("INTERNAL")
    assert spec.asks_for_certificates("EXTERNAL") == (external in ("requested", "required"))


def test_a_listener_may_have_another_mechanism() -> None:
    mechanisms = listeners(outer={"mechanism": "SCRAM-SHA-256"})
    spec = read_spec(secured(listeners=mechanisms), "x")
    assert spec.security is not None
    assert spec.mechanism("EXTERNAL", spec.security) == "SCRAM-SHA-256"
    assert spec.mechanism("INTERNAL", spec.security) == "SCRAM-SHA-512"
    assert spec.mechanisms(spec.security) == ("SCRAM-SHA-512", "SCRAM-SHA-256")
    assert read_spec(secured(), "x").mechanisms(spec.security) == ("SCRAM-SHA-512",)


@pytest.mark.parametrize("placement", ["local", "docker"])
def test_security_alone_leaves_no_listener_in_plain_text(placement: str) -> None:
    spec = read_spec({"placement": placement, "security": {}}, "x")
    first, *others = spec.listeners
    assert (first.name, str(first.protocol)) == ("INTERNAL", "SSL")
    assert others and {str(listener.protocol) for listener in others} == {"SASL_SSL"}
    assert str(spec.controllers.protocol) == "SSL"
    plain = read_spec({"placement": placement}, "x")
    assert {str(listener.protocol) for listener in plain.listeners} == {"PLAINTEXT"}


def test_nodes_authenticate_on_the_listener_between_brokers() -> None:
    listeners = [
        {"name": name, "port": port, "scopes": "internal"}
        for name, port in (("CLIENTS", 19092), ("BROKERS", 19093))
    ]
    cluster = {"placement": "docker", "listeners": listeners, "inter_broker": "BROKERS"}
    spec = read_spec({**cluster, "security": {}}, "x")
    assert [str(listener.protocol) for listener in spec.listeners] == ["SASL_SSL", "SSL"]


@pytest.mark.parametrize(
    ("extra", "protocol"),
    [
        ({"super.users": "User:admin; User:ANONYMOUS"}, "PLAINTEXT"),
        ({"super.users": "${file:/etc/kafka/users:all}"}, "PLAINTEXT"),
        ({"allow.everyone.if.no.acl.found": "True"}, "PLAINTEXT"),
        ({"principal.builder.class": "org.example.Builder"}, "PLAINTEXT"),
        ({"authorizer.class.name": "org.example.Authorizer"}, "PLAINTEXT"),
        # names of nodes with certificates are not known
        ({"super.users": "User:CN=node"}, "SSL"),
    ],
)
def test_an_authorizer_that_may_accept_the_nodes_is_accepted(
    extra: dict[str, str], protocol: str
) -> None:
    extra = {"authorizer.class.name": AUTHORIZER, **extra}
    cluster = document(extra=extra, controllers={"protocol": protocol})
    assert read_spec(cluster, "x").extra == extra
